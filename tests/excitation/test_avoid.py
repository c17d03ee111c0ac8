"""Obstacles from a file, through the command line."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid
from dynid.cli.main import app
from dynid.errors import DamagedFile, InvalidShape, InvalidValue, MissingArgument, ModelError, UnknownName
from dynid.excitation.avoid import read_avoid
from tests.support.errors import Error, expect_error

CELL = """
distance = 0.05

[[obstacle]]
name = "wall"
kind = "box"
size = [0.1, 4.0, 4.0]
position = [0.5, 0.0, 0.0]
rpy = [0.0, 0.0, 0.0]

[[shape]]
link = "link2"
kind = "sphere"
size = 0.05
position = [0.3, 0.0, 0.0]
"""


def test_a_file_is_the_same_as_the_objects(tmp_path: Path) -> None:
    """Shapes, sizes and placements arrive."""
    file = tmp_path / "cell.toml"
    file.write_text(CELL, encoding="utf-8")
    robot = dynid.load_robot("twolink")
    found = read_avoid(file, robot)
    wall = dynid.excitation.clearances.Obstacle(
        "wall",
        "box",
        (0.1, 4.0, 4.0),
        np.array([[1, 0, 0, 0.5], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]], dtype=float),
    )
    at = np.eye(4)
    at[0, 3] = 0.3
    ball = dynid.excitation.clearances.LinkShape("link2", "sphere", 0.05, at)
    same = dynid.excitation.clearances.Collision(robot, distance=0.05, obstacles=[wall], shapes=[ball])
    q = np.random.default_rng(0).uniform(-1, 1, (20, robot.n))
    np.testing.assert_array_equal(found.values(q), same.values(q))
    assert found.pairs == same.pairs == (("link2", "wall"),)


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("distance = 'far'", (InvalidValue, "distance")),
        ("walls = 1", (UnknownName, "")),
        ("obstacle = 3", (InvalidValue, "")),
        (CELL.replace('kind = "box"', ""), (MissingArgument, "")),
        (CELL.replace("position = [0.5, 0.0, 0.0]", "position = [0.5]"), (InvalidShape, "")),
        (CELL.replace("position = [0.5, 0.0, 0.0]", "colour = 1"), (UnknownName, "")),
        (CELL.replace('link = "link2"', 'link = "link9"'), (ModelError, "shapes", "unknown_name")),
        ("distance =", (DamagedFile, "")),
    ],
)
def test_bad_files_are_refused(tmp_path: Path, text: str, error: Error) -> None:
    """One line that names the culprit."""
    file = tmp_path / "cell.toml"
    file.write_text(text, encoding="utf-8")
    with expect_error(*error) as error:
        read_avoid(file, dynid.load_robot("twolink"))
    assert len(str(error.value).splitlines()) == 1


def test_a_missing_file_is_named_and_nothing_is_written(tmp_path: Path) -> None:
    """The command asks before it searches."""
    out = tmp_path / "motion.csv"
    limits = '{"*": {"lower": -1.0, "upper": 1.0, "velocity": 2.0}}'
    done = CliRunner().invoke(
        app, ["excite", "twolink", "-o", str(out), "--avoid", str(tmp_path / "none.toml"), "--limits", limits]
    )
    assert done.exit_code != 0 and not out.exists()


@pytest.mark.slow
def test_the_command_keeps_off_the_floor(tmp_path: Path) -> None:
    """The example of the documentation: the forearm stays above the floor along the whole file."""
    cell, out = tmp_path / "cell.toml", tmp_path / "motion.toml"
    cell.write_text(
        """
distance = 0.03
[[obstacle]]
name = "floor"
kind = "box"
size = [3.0, 3.0, 0.1]
position = [0.0, 0.0, -0.05]
[[shape]]
link = "link4"
kind = "capsule"
size = [0.05, 0.2]
""",
        encoding="utf-8",
    )
    limits = '{"*": {"velocity": 1.5, "acceleration": 10.0}}'
    command = ["excite", "tx40", "-o", str(out), "--avoid", str(cell), "--limits", limits, "--budget", "300"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    robot = dynid.load_robot("tx40")
    motion = dynid.Excitation.from_toml(out, robot)
    closest, _ = read_avoid(cell, robot).closest(motion.sample(200.0)[1])
    assert closest >= 0.03 - 1e-3
