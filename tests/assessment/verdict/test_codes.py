"""Codes of findings, checks and tests: verdicts follow from them, never from the words of a message."""

from __future__ import annotations

import re
from dataclasses import replace
from enum import StrEnum
from pathlib import Path

import pytest

import dynid
from dynid.assessment.causes.candidates import EFFECTS, TORQUE_DELAY
from dynid.assessment.causes.cause_source import cause_codes
from dynid.assessment.model.plausible import BodyCode
from dynid.assessment.verdict.assess import CHECKS
from dynid.assessment.verdict.assessment import CheckCode
from dynid.hypothesis import HypothesisTest, TestCode
from tests.support.verdict_cases import Made, make

DOCS = Path(__file__).parents[3] / "docs"


def reworded(made: Made, estimate: dynid.Estimate, diagnosis: dynid.stats.Diagnosis) -> dynid.Assessment:
    """The assessment of the same findings and tests with every message replaced."""
    found = (*dynid.check(made.prior, made.train), *dynid.check(made.prior, made.test))
    findings = [replace(f, what="x", how_much="x", what_to_do="x") for f in found]
    tests = tuple(replace(t, name="x", null="x", verdict="x", advice="x", notes=()) for t in diagnosis.tests)
    missing = diagnosis.missing
    assert missing is not None
    effects, candidates = (tuple(replace(e, words="x") for e in part) for part in (missing.effects, missing.candidates))
    silent = dynid.stats.Diagnosis(tests, replace(missing, effects=effects, candidates=candidates), ())
    return dynid.assess(estimate, made.test, recording=made.train, findings=findings, diagnosis=silent)


@pytest.mark.parametrize("spoil", ["sign", *(pytest.param(x, marks=pytest.mark.slow) for x in (None, "delay"))])
def test_rewording_every_message_changes_no_verdict(spoil: str | None) -> None:
    """Two faults that the verdict takes from findings, by their codes, and a test with the controller's code."""
    made = make("twolink", 4, spoil)
    estimate = dynid.identify(made.prior, made.train, made.method)
    plain = dynid.stats.diagnose(estimate, made.train)
    exogeneity = HypothesisTest(TestCode.EXOGENEITY, "name", "null", 9.0, "F(1, 9)", 0.01, 0.05, "verdict", "advice")
    diagnosis = replace(plain, tests=(*plain.tests, exogeneity))
    before = dynid.assess(estimate, made.test, recording=made.train, diagnosis=diagnosis)
    after = reworded(made, estimate, diagnosis)
    assert [(c.code, c.result, c.figure) for c in after.checks] == [(c.code, c.result, c.figure) for c in before.checks]
    assert after.verdict == before.verdict and after.check("feedback").result == "warned"


def test_every_check_has_its_code() -> None:
    of_results = {"law", "gains", "arm_model", "uncertainty", "bounds", "units", "temperature", "fleet_scatter"}
    of_results |= {"noise", "outliers", "plausible_geometry"}
    assert of_results < {code.value for code in CheckCode}
    assert len(CHECKS) == len(CheckCode) - len(of_results)


@pytest.mark.parametrize(
    ("page", "codes"),
    [
        ("report.md", CheckCode),
        ("report.md", BodyCode),
        ("statistics.md", TestCode),
    ],
)
def test_codes_are_documented(page: str, codes: type[StrEnum]) -> None:
    """Each code stands in a row of a table, and no table has codes that do not exist."""
    rows = re.findall(r"^\| `([a-z_]+)` \|", (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
    assert {c.value for c in codes} <= set(rows)
    known = {c.value for kind in (CheckCode, BodyCode, TestCode) for c in kind}
    known |= {*cause_codes(), *(kind.code for kind in EFFECTS), TORQUE_DELAY}
    assert set(rows) <= known, set(rows) - known
