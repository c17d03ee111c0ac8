"""The project file of a report computes its estimate again."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote

import pytest
from typer.testing import CliRunner

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.cli.main import app


def test_the_project_file_of_a_report_gives_the_same_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Options of log, robot, filters and rows are all in it, and the screen ends with next steps."""
    monkeypatch.chdir(tmp_path)
    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    synthetic_recording(robot, 0, 8.0).to_csv("run.csv")

    def done(*words: str) -> str:
        result = CliRunner().invoke(app, ["identify", *words], catch_exceptions=False)
        assert result.exit_code == 0, result.output
        return result.stdout

    options = ("--friction", "viscous+coulomb", "--cutoff", "12", "--method", "wls", "--sign", "torque=-1")
    text = done("twolink", "run.csv", *options, "--validate-rows", "6000:8000", "-o", "first.json")
    assert "total mass: " in text and "next:\n  - open first.report.html in a browser" in text
    page = Path("first.report.html").read_text(encoding="utf-8")
    address = re.search(r'download="dynid.toml" href="data:text/plain;charset=utf-8,([^"]+)"', page)
    assert address is not None
    Path("dynid.toml").write_text(unquote(address[1]), encoding="utf-8")
    done("-o", "second.json", "--report", "none")
    first, second = (dynid.Estimate.load(f"{name}.json") for name in ("first", "second"))
    assert first.beta.tolist() == second.beta.tolist() and first.signals == second.signals
    assert first.signals.cutoff == 12 and first.log_format == second.log_format
