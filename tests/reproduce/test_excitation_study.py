"""The study of excitations: printed motions give the known figures, and ours tell more within the same limits."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.excitation.criteria import make_criterion
from dynid.reproduce import excitation
from dynid.reproduce.study import Figure


def _bad(figures: list[Figure]) -> list[Figure]:
    return [f for f in figures if not f.ok]


def test_printed_motions_give_the_known_figures() -> None:
    """Condition numbers, starts, spans, sums and double-S answers, none left out."""
    figures = list(excitation.table_figures())
    assert not _bad(figures)
    conditions = [f for f in figures if "cond" in f.name]
    # WAM A and B, nine durations for two sets of lengths, Table A.2 twice, three variants, PUMA and two-link twice each.
    assert len(conditions) == 2 + 18 + 2 + 3 + 4


def test_a_design_of_the_two_link_arm_beats_the_printed_one() -> None:
    """Its condition number is below the measured one, and the sum over links is better where it was asked for."""
    figures = list(excitation.design_figures(["twolink"]))
    assert not _bad(figures)
    assert {"cond(W)", "sum of cond over links, designed for it"} < {f.name for f in figures}


@pytest.mark.slow
def test_designs_beat_every_printed_motion() -> None:
    """PUMA, iiwa and WAM; two minutes."""
    figures = list(excitation.design_figures(["puma560", "iiwa", "wam"]))
    assert not _bad(figures)
    assert sum(f.name == "cond(W)" for f in figures) == 3


def test_a_bound_that_is_exceeded_is_out() -> None:
    """The comparison can fail, and no number is never good."""
    assert excitation._at_most("s", "n", 2.0, 2.0, "r").ok
    assert not excitation._at_most("s", "n", 2.0, 2.001, "r").ok
    assert not excitation._at_most("s", "n", 2.0, float("nan"), "r").ok


def test_the_family_of_the_iiwa_has_no_mean_and_starts_at_rest() -> None:
    """With the start posture at zero any coefficients give zero mean, and rest at zero at both ends."""
    basis = excitation._without_offset(20.0, 10)
    assert basis.size == 1 + 20 - 3
    x = np.concatenate([[0.0], np.random.default_rng(0).normal(size=basis.size - 1)])
    t = np.arange(2000) / 100.0
    assert abs((basis.values(t) @ x).mean()) < 1e-12
    for order in range(3):
        assert np.abs(basis.values([0.0, 20.0], order) @ x).max() < 1e-12


def test_sum_of_conditions_is_over_links() -> None:
    """Columns of the PUMA fall into its six links, drives with the link they turn: 1 then 7 of inertia, 2 of friction."""
    base = dynid.base_parameters(dynid.load_robot("puma560").with_drives("viscous+coulomb", False))
    criterion = make_criterion(base, "sum-cond")
    assert [len(columns) for _, columns in criterion.parts] == [3, 9, 9, 9, 9, 9]
    assert sorted(i for _, columns in criterion.parts for i in columns) == list(range(base.count))
    q, v, a = np.random.default_rng(1).normal(size=(3, 200, 6))
    W = base.regressor(q, v, a)
    exact = sum(np.linalg.cond(W[:, :, columns].reshape(-1, len(columns))) for _, columns in criterion.parts)
    # The smooth stand-in lies above the condition number, by at most the 24th root of the number of columns, twice.
    assert exact <= criterion(W)[0] <= exact * 9 ** (2 / 24)
