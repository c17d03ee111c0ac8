"""`dynid friction`: table, data, picture, its file, validation, and bad input in one line."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid
from dynid.cli.main import app
from dynid.errors import TooFew
from dynid.report.friction import friction_figure
from tests.support.errors import expect_error
from tests.support.friction_truth import STRIBECK, arm, record

RUNNER = CliRunner()
ARM = """name = "arm3"
convention = "modified"
[[joint]]
alpha = 0.0
inertia = { mass = 3.0, com = [0.05, 0, 0.1], tensor = [0.03, 0, 0, 0.03, 0, 0.02] }
drive = { Ia = 0.2, fv = 1.0, fc = 0.7, off = 0.1 }
[[joint]]
alpha = "-pi/2"
inertia = { mass = 2.0, com = [0.2, 0.02, 0], tensor = [0.01, 0, 0, 0.04, 0, 0.04] }
drive = { Ia = 0.2, fv = 1.0, fc = 0.7, off = 0.1 }
[[joint]]
a = 0.4
inertia = { mass = 1.0, com = [0.1, 0, 0.05], tensor = [0.004, 0, 0, 0.01, 0, 0.01] }
drive = { Ia = 0.2, fv = 1.0, fc = 0.7, off = 0.1 }
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    folder = tmp_path_factory.mktemp("friction")
    (folder / "arm.toml").write_text(ARM)
    record("stribeck", STRIBECK, samples=2000).to_csv(folder / "run.csv")
    record("stribeck", STRIBECK, samples=2000, motion_seed=4, seed=7).to_csv(folder / "other.csv")
    return str(folder / "arm.toml"), str(folder / "run.csv")


PLAIN = ["--cutoff", "none", "--decimate", "none"]


def test_the_table_names_the_model_and_its_parameters(files: tuple[str, str]) -> None:
    result = RUNNER.invoke(app, ["friction", *files, "--joint", "joint2", *PLAIN])
    assert result.exit_code == 0, result.output
    assert "friction of joint2: stribeck (by f-test)" in result.output and "vs" in result.output


def test_all_joints_as_data(files: tuple[str, str]) -> None:
    result = RUNNER.invoke(app, ["friction", *files, "--models", "coulomb+viscous,stribeck", "--json", *PLAIN])
    assert result.exit_code == 0, result.output
    page = json.loads(result.stdout)
    assert [x["best"] for x in page["friction"].values()] == ["coulomb+viscous", "stribeck", "coulomb+viscous"]
    assert page["validation"] is None
    assert all(x["effective_rows"] <= x["rows"] for x in page["friction"].values())


def test_the_picture_is_drawn(files: tuple[str, str], tmp_path: Path) -> None:
    target = tmp_path / "friction.svg"
    result = RUNNER.invoke(app, ["friction", *files, "--joint", "joint2", "--figure", str(target), *PLAIN])
    assert result.exit_code == 0, result.output
    drawing = ET.fromstring(target.read_text())
    parts = [(p.get("class") or "", p.get("d") or "") for p in drawing.findall(".//{*}path")]
    assert sum(d.count("h0") for kind, d in parts if kind.startswith("dots")) > 100
    # Two directions of each of four models.
    assert sum(kind.startswith("line") for kind, _ in parts) == 8


def test_bad_input_ends_in_one_sentence(files: tuple[str, str], tmp_path: Path) -> None:
    def error(*words: str) -> str:
        result = RUNNER.invoke(app, ["friction", *files, *words])
        assert result.exit_code != 0
        return str(result.exception)

    assert "no joint named 'elbow'" in error("--joint", "elbow")
    assert "name it with --joint" in error("--figure", str(tmp_path / "x.svg"))
    assert "unknown friction model 'sticky'" in error("--joint", "joint2", "--models", "sticky")
    assert "needs temperatures" in error("--joint", "joint2", "--models", "temperature")
    assert "cannot be read" in error("--joint", "joint2", "--temperature", str(tmp_path / "none.csv"))
    assert "--selection 'cp' is unknown" in error("--joint", "joint2", "--selection", "cp")


def done(*words: str) -> str:
    result = RUNNER.invoke(app, ["friction", *words])
    assert result.exit_code == 0, result.output
    return result.stdout


def test_a_selection_is_written_and_validated_again(files: tuple[str, str], tmp_path: Path) -> None:
    """The same errors from the fit and from its file, which needs neither the robot nor the options."""
    saved, other = str(tmp_path / "friction.json"), str(Path(files[1]).parent / "other.csv")
    models = ("--models", "coulomb+viscous,stribeck", *PLAIN)
    first = json.loads(done(*files, *models, "-o", saved, "--validate", other, "--json"))
    again = json.loads(done(saved, "--validate", other, "--json"))
    assert again == first
    errors = [x["rmse"] for x in again["validation"].values()]
    assert list(again["validation"]) == ["joint1", "joint2", "joint3"]
    np.testing.assert_allclose(errors, 0.05, rtol=0.15)
    text = done(saved, "--validate", other)
    assert "torque errors on held-out motion" in text and "joint3" in text and "by f-test" not in text
    assert "friction of joint2: stribeck (by f-test)" in done(saved, "--joint", "joint2")
    one = json.loads(done(saved, "--joint", "joint2", "--validate", other, "--json"))
    assert list(one["validation"]) == ["joint2"]
    assert dynid.friction.FrictionSelection.load(saved).models["joint2"] == "stribeck"


def test_a_part_of_the_log_is_held_out_and_validated_on(files: tuple[str, str]) -> None:
    page = json.loads(done(*files, "--joint", "joint2", *PLAIN, "--validate-share", "0.3", "--json"))
    assert page["validation"]["joint2"]["rmse"] == pytest.approx(0.05, rel=0.2)


def test_cross_validation_is_a_selection(files: tuple[str, str]) -> None:
    text = done(*files, "--joint", "joint2", "--selection", "cross-validation", *PLAIN)
    assert "friction of joint2: stribeck (by cross-validation)" in text and "held-out rms" in text


def test_bad_files_end_in_one_sentence(files: tuple[str, str], tmp_path: Path) -> None:
    other = str(Path(files[1]).parent / "other.csv")
    saved = str(tmp_path / "friction.json")
    done(*files, "--joint", "joint2", "--models", "coulomb+viscous", *PLAIN, "-o", saved)

    def error(*words: str) -> str:
        result = RUNNER.invoke(app, ["friction", *words])
        assert result.exit_code != 0
        return str(result.exception)

    wrong = tmp_path / "wrong.json"
    wrong.write_text('{"dynid": "estimate", "version": 1}')
    assert "holds a saved estimate, not a saved friction selection" in error(str(wrong), "--validate", other)
    assert "there is no file" in error(str(tmp_path / "none.json"), "--validate", other)
    assert "there are joint2" in error(saved, "--joint", "joint1")
    assert "not fitted again" in error(saved, files[1])
    for words in (("--models", "stribeck"), ("--load", "gravity"), ("--selection", "aic"), ("--friction", "none")):
        assert "not fitted again" in error(saved, *words, "--validate", other)
    assert "give --validate" in error(saved, "--validate-share", "0.2")
    assert "give --validate" in error(saved, "--validate-rows", "0:100")
    assert "written as JSON" in error(*files, "-o", str(tmp_path / "friction.csv"))
    robot = dynid.load_robot("twolink")
    t = np.arange(200) / 100.0
    run = dynid.Run(t, np.zeros((200, 2)), torque=np.zeros((200, 2)), name="two")
    dynid.Recording(robot.coordinates, (run,)).to_csv(tmp_path / "two.csv")
    assert "joint" in error(saved, "--validate", str(tmp_path / "two.csv"))
    warm = tmp_path / "warm.csv"
    warm.write_text("T\n" + "20\n" * 2000)
    assert "that of the fitted log" in error(*files, "--validate", other, "--temperature", str(warm))


def test_a_map_is_drawn_with_its_deviations() -> None:
    speed = np.linspace(0.1, 2.0, 12)
    found = dynid.friction.FrictionMap(
        "joint2", speed, 0.5 + 0.3 * speed, np.full(12, 0.01), np.ones(12), tuple([20] * 12)
    )
    fit = dynid.friction.fit_friction(arm(), found, models=["coulomb+viscous"])
    drawing = ET.fromstring(friction_figure(fit, "a < b", found))
    dots = [p for p in drawing.iter("{http://www.w3.org/2000/svg}path") if "dots" in (p.get("class") or "")]
    assert sum((p.get("d") or "").count("h0") for p in dots) == 24
    with expect_error(TooFew, "models"):
        dynid.friction.fit_friction(
            arm(), dynid.friction.FrictionMap("joint2", *(speed[:2],) * 4, (20, 20)), models=["stribeck"]
        )
