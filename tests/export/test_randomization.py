"""Draws as files: ranges that read back, and sampled models that MuJoCo compiles."""

from __future__ import annotations

import csv
import json
import tomllib
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import MissingArgument, NotWritable, UnknownName, WrongFormat
from dynid.export import write_ranges, write_samples
from dynid.identification import ParameterDraws
from dynid.robot import ActuatorLaw
from tests.support.errors import expect_error

LABELS = (("Ia_joint1", 'fc "x"'), ("joint1", "joint2"), ("Ia", "fc"), ("kg m2", "N m"))


def drawn(count: int = 50) -> ParameterDraws:
    values = np.random.default_rng(1).multivariate_normal([0.1, 0.5], [[1e-4, 2e-4], [2e-4, 1e-3]], count)
    return ParameterDraws(*LABELS, values)


@pytest.mark.parametrize("ending", ["json", "toml"])
def test_ranges_read_back(ending: str, tmp_path: Path) -> None:
    draws, path = drawn(), tmp_path / f"ranges.{ending}"
    write_ranges(draws, path, level=0.8)
    page = json.loads(path.read_text()) if ending == "json" else tomllib.loads(path.read_text())
    low, high = draws.quantiles(0.8)
    assert page["draws"] == 50 and page["level"] == 0.8 and page["correlation"] == draws.correlation.tolist()
    for key, expected in (("mean", draws.mean), ("std", draws.std), ("low", low), ("high", high)):
        assert [p[key] for p in page["parameters"]] == expected.tolist()
    assert [(p["name"], p["joint"], p["symbol"], p["unit"]) for p in page["parameters"]] == list(
        zip(*LABELS, strict=True)
    )


def test_ranges_as_a_table(tmp_path: Path) -> None:
    draws = drawn()
    write_ranges(draws, tmp_path / "ranges.csv")
    head, *rows = csv.reader((tmp_path / "ranges.csv").read_text().splitlines())
    assert head[:5] == ["name", "joint", "symbol", "unit", "mean"] and head[-1] == 'correlation fc "x"'
    assert rows[1][:4] == ['fc "x"', "joint2", "fc", "N m"]
    assert [float(x) for x in rows[0][-2:]] == draws.correlation[0].tolist()
    with expect_error(WrongFormat):
        write_ranges(draws, tmp_path / "ranges.xml")


def test_sampled_models_have_the_drawn_values(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    robot = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    law = ActuatorLaw(robot.coordinates, kp=20.0, kd=0.5)
    draws = drawn(3)
    files = write_samples(draws.models(robot, law), tmp_path / "models", "mujoco")
    assert [f.path.name for f in files] == ["model_0001.xml", "model_0002.xml", "model_0003.xml"]
    for row, file in zip(draws.values, files, strict=True):
        model = mujoco.MjModel.from_xml_path(str(file.path))
        assert model.dof_armature[0] == row[0] and model.dof_frictionloss[1] == row[1]
    urdfs = write_samples(draws.models(robot, law), tmp_path / "urdf", "gazebo")
    back = dynid.load_robot(urdfs[2].path, friction="coulomb")
    assert back.drives[1].value == draws.values[2, 1]


def test_a_folder_of_other_models_is_refused(tmp_path: Path) -> None:
    robot = dynid.load_robot("twolink")
    law = ActuatorLaw(robot.coordinates, kp=20.0)
    write_samples([(robot, law)] * 2, tmp_path, "mujoco")
    write_samples([(robot, law)] * 2, tmp_path, "mujoco")  # the same ones again
    with expect_error(NotWritable, "folder"):
        write_samples([(robot, law)], tmp_path, "mujoco")
    with expect_error(MissingArgument, "models"):
        write_samples([], tmp_path / "new", "mujoco")
    with expect_error(UnknownName, "simulator"):
        write_samples([(robot, law)], tmp_path / "new", "mujocco")
