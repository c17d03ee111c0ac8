"""Findings as a table and as data."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.assessment import Finding
from dynid.assessment.data.channels import STANDSTILL
from dynid.assessment.data.context import stretches
from dynid.assessment.data.torque import TORQUE_SIGN
from dynid.cli.demo import synthetic_recording
from dynid.recording.recording import Recording
from dynid.report.findings import findings_data, print_findings

FINDINGS = (
    Finding(
        TORQUE_SIGN,
        "error",
        "run1",
        "joint2",
        "The torque has the opposite sign.",
        "-1 times the model",
        "Turn it.",
    ),
    Finding(
        STANDSTILL,
        "info",
        "run2",
        "",
        "The [arm] stands still.",
        "30 percent of the time",
        "Cut it.",
    ),
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


def test_findings_name_the_rows_that_they_apply_to() -> None:
    """Spikes and lost samples, each where it was put."""
    robot = dynid.load_robot("twolink")
    clean = synthetic_recording(robot, 0, duration=10.0)
    run = clean.runs[0]
    assert run.torque is not None
    torque, spikes = run.torque.copy(), np.arange(1500, 3500, 200)
    torque[spikes, 1] += 40 * np.ptp(torque[:, 1])
    # 300 samples are lost after row 4999.
    damaged = replace(run, torque=torque)
    kept = np.r_[0:5000, 5300 : len(run)]
    lost = replace(damaged, **{s: getattr(damaged, s)[kept] for s in ("t", "q", "torque")})
    found = {f.code: f for f in dynid.check(robot, Recording(clean.joints, (lost,)))}
    assert found["torque_spikes"].rows == tuple((int(k), int(k) + 1) for k in spikes)
    assert found["samples_missing"].rows == ((4999, 5001),)


def test_the_stretch_of_a_standstill_is_found() -> None:
    robot = dynid.load_robot("twolink")
    clean = synthetic_recording(robot, 0, duration=10.0)
    run = clean.runs[0]
    q = run.q.copy()
    q[3000:7000] = q[3000]
    q[7000:] += q[3000] - run.q[7000]
    still = Recording(clean.joints, (replace(run, q=q, v=None),))
    (finding,) = [f for f in dynid.check(robot, still) if f.code == "standstill"]
    longest = max(finding.rows, key=lambda x: x[1] - x[0])
    assert abs(longest[0] - 3000) < 300 and abs(longest[1] - 7000) < 300


def test_many_stretches_are_joined_where_they_are_near() -> None:
    flags = np.zeros(1000, dtype=bool)
    flags[::10] = flags[991:995] = True
    assert stretches(flags)[:2] == ((0, 1), (10, 11))
    few = stretches(flags, most=3)
    assert len(few) == 3 and few[-1][1] == 995
    assert all(any(a <= k < b for a, b in few) for k in np.flatnonzero(flags))
    assert stretches(np.zeros(5, dtype=bool)) == ()
