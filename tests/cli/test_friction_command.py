"""`dynid friction`: table, data, picture, and bad input in one line."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import dynid
from dynid.cli.main import app
from dynid.errors import DataError
from dynid.report.friction import friction_figure
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
    assert [x["best"] for x in page] == ["coulomb+viscous", "stribeck", "coulomb+viscous"]


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


def test_a_map_is_drawn_with_its_deviations() -> None:
    speed = np.linspace(0.1, 2.0, 12)
    found = dynid.friction.FrictionMap(
        "joint2", speed, 0.5 + 0.3 * speed, np.full(12, 0.01), np.ones(12), tuple([20] * 12)
    )
    fit = dynid.friction.fit_friction(arm(), found, models=["coulomb+viscous"])
    drawing = ET.fromstring(friction_figure(fit, "a < b", found))
    dots = [p for p in drawing.iter("{http://www.w3.org/2000/svg}path") if "dots" in (p.get("class") or "")]
    assert sum((p.get("d") or "").count("h0") for p in dots) == 24
    with pytest.raises(DataError, match="too few"):
        dynid.friction.fit_friction(
            arm(), dynid.friction.FrictionMap("joint2", *(speed[:2],) * 4, (20, 20)), models=["stribeck"]
        )
