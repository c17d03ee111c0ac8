"""Reproductions: every figure within its tolerance, and a wrong one is caught."""

from __future__ import annotations

from collections import Counter

import pytest

import dynid
from dynid.errors import DataError
from studies.reproduce import structure
from studies.reproduce.expression import linear_form
from studies.reproduce.registry import find_study, studies
from studies.reproduce.study import Figure, number, published
from tests.support.errors import expect_error

# Designs, simulations and Monte Carlo runs take minutes; tests of their own look at them.
LONG = (
    "compensated-control",
    "coverage",
    "excitation",
    "extrapolation",
    "pc-didim",
    "semi-parametric",
    "stacking",
    "verdicts",
)
MINUTES = (
    "actuators",
    "fleet",
    "flexible",
    "geometry",
    "geometry-postures",
    "intervals",
    "legs",
    "refusals",
    "regret",
    "wam",
)
QUICK = sorted(name for name, study in studies().items() if not study.needs_data and name not in (*LONG, *MINUTES))


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in MINUTES)])
def test_every_published_figure_is_met(name: str) -> None:
    """A study passes only if all of its figures do."""
    out = [f for f in find_study(name).run() if not f.ok]
    assert not out, out


def test_structure_covers_every_published_grouping() -> None:
    """The data hold all 61, 76, 57 and 36 expressions, each representative once."""
    cases = {c["title"]: c for c in published("structure")["case"]}
    for title, count in {"TX40": 61, "WAM": 76, "iiwa": 57, "PUMA 560, inertial parameters": 36}.items():
        expressions = cases[title]["expressions"]
        assert len(expressions) == cases[title]["base"] == count
        assert Counter(expressions).most_common(1)[0][1] == 1


@pytest.mark.parametrize(
    "text",
    [
        "Izz1 + Ia1 + Iyy2 + Iyy3 + 0.07*mz3 + 0.05184*(m3+m4+m5+m6)",  # a coefficient off in its fourth digit
        "Izz1 + Ia1 + Iyy2 + 0.07*mz3 + 0.05185*(m3+m4+m5+m6)",  # a term missing
        "Ixx2 + Iyy2 - 0.050625*(m3+m4+m5+m6)",  # a sign
        "Iyy6",  # not a representative of the left-to-right scan
    ],
)
def test_a_wrong_grouping_is_out_of_tolerance(text: str) -> None:
    """The comparison can fail: each of these is the published line with one slip."""
    case = next(c for c in published("structure")["case"] if c["title"] == "TX40")
    base = dynid.base_parameters(structure.case_robot(case))
    assert not structure._grouping("x", case, base, text).ok


def test_figures_compare_by_absolute_difference() -> None:
    """At the tolerance is within, above is out; a value that is no number is out."""
    assert number("s", "n", 1.0, 1.0 + 1e-7, 1e-6, "r").ok
    assert not number("s", "n", 1.0, 1.1, 1e-6, "r").ok
    assert not number("s", "n", 1.0, float("nan"), 1e-6, "r").ok
    assert not Figure("s", "n", "", "", float("inf"), 1.0, "r").ok


def test_unknown_study_is_named() -> None:
    """The error lists what there is."""
    with expect_error(DataError):
        find_study("nonsense")


def test_linear_forms_read_published_expressions() -> None:
    """Sums, products with lengths, powers and brackets expand to coefficients."""
    form = linear_form("XX2 - YY2 + 2*d3*MZ3 + (d3+d4)**2*(M4+M5)", {"d3": 0.5, "d4": 1.5})
    assert form == {"XX2": 1.0, "YY2": -1.0, "MZ3": 1.0, "M4": 4.0, "M5": 4.0}
    for bad in ("XX2*YY2", "XX2 + 1", "XX2 +", "sin(XX2)", "XX2**2"):
        with pytest.raises(dynid.DataError):
            linear_form(bad)
