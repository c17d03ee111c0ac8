"""What a test says, and the correction for many questions."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dynid.errors import InvalidValue, TooFew, UnknownName
from dynid.hypothesis import Hypothesis, TestCode, chi2_tail, corrected, f_ratio
from tests.support.errors import Error, expect_error

WORDS = Hypothesis(
    TestCode.NORMALITY, "a test", "nothing is there", "nothing is seen", "something is there", "go on", "look"
)


def test_corrections_match_their_textbook_formulas() -> None:
    """Bonferroni multiplies by the number, Holm by those not yet rejected, Benjamini-Hochberg by number over rank."""
    p = np.array([0.01, 0.04, 0.03, 0.005])
    np.testing.assert_allclose(corrected(p, "bonferroni"), [0.04, 0.16, 0.12, 0.02])
    np.testing.assert_allclose(corrected(p, "holm"), [0.03, 0.06, 0.06, 0.02])
    np.testing.assert_allclose(corrected(p, "benjamini-hochberg"), [0.02, 0.04, 0.04, 0.02])
    np.testing.assert_array_equal(corrected(p, "none"), p)


def test_corrections_match_statsmodels() -> None:
    from statsmodels.stats.multitest import multipletests

    p = np.random.default_rng(0).random(40) ** 3
    for ours, theirs in (("holm", "holm"), ("bonferroni", "bonferroni"), ("benjamini-hochberg", "fdr_bh")):
        np.testing.assert_allclose(corrected(p, ours), multipletests(p, method=theirs)[1])  # type: ignore[arg-type]


def test_one_question_reads_as_words_and_as_data() -> None:
    test = WORDS.judge(*chi2_tail(30.0, 3), 0.05)
    assert test.rejected and test.verdict == "something is there" and test.advice == "look"
    assert "nothing is there" in test.summary() and "chi2(3)" in test.summary()
    data = json.loads(json.dumps(test.to_dict()))
    assert data["rejected"] is True and data["code"] == "normality"
    assert not WORDS.judge(*chi2_tail(1.0, 3), 0.05).rejected


def test_many_questions_name_those_rejected() -> None:
    """The test as a whole is its strongest question, corrected for their number."""
    tails = [(1.0, "F(1, 9)", 0.4), (9.0, "F(1, 9)", 0.015), (8.0, "F(1, 9)", 0.02)]
    test = WORDS.judge_each(["a", "b", "c"], tails, 0.05)
    assert test.rejected_names == ("b", "c") and test.verdict == "something is there: b, c"
    assert test.p_value == pytest.approx(0.045) and test.statistic == 9.0
    assert "b" in test.summary() and len(test.to_dict()["details"]) == 3
    assert not WORDS.judge_each(["a", "b", "c"], tails, 0.02).rejected


def test_no_noise_at_all_is_certain() -> None:
    assert f_ratio(1.0, 2, 0.0, 5)[2] == 0.0
    assert f_ratio(0.0, 2, 0.0, 5)[2] == 1.0


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: corrected([0.1, 2.0]), (InvalidValue, "p_values")),
        (lambda: corrected([0.1], "sidak"), (UnknownName, "correction")),  # type: ignore[arg-type]
        (lambda: WORDS.judge(1.0, "", 0.5, 5.0), (InvalidValue, "level")),
        (lambda: f_ratio(1.0, 2, 1.0, 0), (TooFew, "")),
    ],
)
def test_bad_input_is_named(call, error: Error) -> None:  # type: ignore[no-untyped-def]
    with expect_error(*error):
        call()
