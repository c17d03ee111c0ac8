"""Numbers and tables of a report as people read them."""

from __future__ import annotations

import pytest

from dynid.hypothesis import probability
from dynid.report.charts import plus_minus
from dynid.report.content import Table


@pytest.mark.parametrize(
    ("value", "std", "words"),
    [
        (25.29, 8.577, "25.3 \u00b1 8.6"),
        (23.91, 10.18, "24 \u00b1 10"),
        (1234.5, 320.0, "1230 \u00b1 320"),
        (0.007951, 0.0004159, "0.00795 \u00b1 0.00042"),
        (-12.47, 2.001, "-12.5 \u00b1 2.0"),
        (1.2341e-9, 2.3e-10, "1.234e-09 \u00b1 2.3e-10"),
        (1.5, float("nan"), "1.5 \u00b1 -"),
        (1.5, 0.0, "1.5 \u00b1 0"),
    ],
)
def test_a_value_has_as_many_digits_as_its_standard_deviation(value: float, std: float, words: str) -> None:
    assert plus_minus(value, std) == words


def test_small_p_values_have_no_exponent() -> None:
    assert [probability(p) for p in (0.0, 8.3e-276, 0.00099, 0.001, 0.0912, 1.0)] == [
        *["< 0.001"] * 3,
        "0.001",
        "0.091",
        "1",
    ]


def test_tables_with_sentences_are_lists_on_a_phone() -> None:
    long = "find out what changed between the recordings"
    assert Table(["check", "found", "p"], [["a", long, "1"]]).listed
    assert not Table(["check", "found", "p"], [["a", "short", "1"]]).listed
    assert not Table(["setting", "value"], [["a", long]]).listed
    assert not Table(["check", "found", "p"], [["a", long, "1"]], stacked=True).listed
