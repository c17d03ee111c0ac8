"""Findings as a table and as data."""

from __future__ import annotations

import json

import pytest

from dynid.assessment import Finding
from dynid.assessment.finding import FindingCode
from dynid.report.findings import findings_data, print_findings

FINDINGS = (
    Finding(
        FindingCode.TORQUE_SIGN,
        "error",
        "run1",
        "joint2",
        "The torque has the opposite sign.",
        "-1 times the model",
        "Turn it.",
    ),
    Finding(FindingCode.STANDSTILL, "info", "run2", "", "The [arm] stands still.", "30 percent of the time", "Cut it."),
)


def test_table_holds_every_word(capsys: pytest.CaptureFixture[str]) -> None:
    """Severity, run, joint, what, how much and what to do, brackets and all, then the counts."""
    print_findings(FINDINGS)
    page = capsys.readouterr().out
    for finding in FINDINGS:
        for word in " ".join(v for k, v in vars(finding).items() if k not in ("code", "rows")).split():
            assert word in page
    assert "error: 1, warning: 0, info: 1" in page


def test_nothing_found_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """No empty table."""
    print_findings(())
    assert "No problem was found" in capsys.readouterr().out


def test_data_are_plain() -> None:
    """JSON with counts and all fields."""
    data = json.loads(json.dumps(findings_data(FINDINGS)))
    assert data["counts"] == {"error": 1, "warning": 0, "info": 1}
    assert data["findings"][0]["code"] == "torque_sign"
    assert data["findings"][0]["how_much"] == "-1 times the model"
