"""The study of excitations: printed motions give the known figures, and ours tell more within the same limits."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.excitation.amplitudes import series_without_offset
from dynid.excitation.basis import Fourier, at_rest
from dynid.excitation.criteria import make_criterion
from dynid.excitation.limits import motion_limits
from dynid.excitation.problem import Problem
from dynid.excitation.search import shrunk
from studies.reproduce import excitation
from studies.reproduce.amplitude_sums import AmplitudeSums
from studies.reproduce.study import Figure


def _bad(figures: list[Figure]) -> list[Figure]:
    return [f for f in figures if not f.ok]


def test_printed_motions_give_the_known_figures() -> None:
    """Condition numbers, starts, spans, sums and double-S answers, none left out."""
    figures = list(excitation.table_figures())
    assert not _bad(figures)
    conditions = [f for f in figures if f.name.startswith("cond")]
    # WAM A and B, nine durations for two sets of lengths, Table A.2 twice, three variants, PUMA and two-link twice.
    assert len(conditions) == 2 + 18 + 2 + 3 + 4


@pytest.mark.slow
def test_a_design_of_the_two_link_arm_beats_the_printed_one() -> None:
    """Its condition number is below the measured one, and the sum over links is better where it was asked for."""
    figures = list(excitation.design_figures(["twolink"]))
    assert not _bad(figures)
    names = {"cond(W)", "cond(W), sums of amplitudes bounded", "sum of cond over links, designed for it"}
    assert names < {f.name for f in figures}


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
    basis = series_without_offset(20.0, 10)
    assert basis.size == 1 + 20 - 3
    x = np.concatenate([[0.0], np.random.default_rng(0).normal(size=basis.size - 1)])
    t = np.arange(2000) / 100.0
    assert abs((basis.values(t) @ x).mean()) < 1e-12
    for order in range(3):
        assert np.abs(basis.values([0.0, 20.0], order) @ x).max() < 1e-12


def test_bounded_sums_of_amplitudes_bound_the_motion() -> None:
    """Their gradients are exact, and a motion on the bounds keeps position, speed and acceleration at all times."""
    robot = dynid.load_robot("twolink").with_drives("viscous+coulomb", rotor_inertia=False)
    limits = motion_limits(robot, {"*": {"acceleration": 2.0}})
    goal = make_criterion(dynid.base_parameters(robot), "cond")
    problem = AmplitudeSums(at_rest(Fourier(10.0, 3)), goal, limits, 100, start=np.zeros(2))
    rng = np.random.default_rng(0)
    X, step = problem.unit * rng.normal(size=(2, 2, problem.basis.size))
    joints = np.arange(2)
    for k, limit in enumerate(problem.slacks(X)):
        ahead, behind = (problem.slacks(X + h * step)[k].slack[0] for h in (1e-6, -1e-6))
        slope = np.sum(problem.slack_gradients(X, limit.kind, 0 * joints, joints) * step, axis=(1, 2))
        assert np.allclose((ahead - behind) / 2e-6, slope, rtol=1e-6, atol=1e-8)
    kept = shrunk(problem, X)
    assert kept is not None and 0 <= problem.worst(kept) < 1e-6
    assert Problem(problem.basis, goal, limits, 5000).worst(kept) >= 0


def test_sum_of_conditions_is_over_links() -> None:
    """Columns of the PUMA fall into its six links, drives with the link they turn: 1 or 7, and 2 of friction."""
    base = dynid.base_parameters(dynid.load_robot("puma560").with_drives("viscous+coulomb", rotor_inertia=False))
    criterion = make_criterion(base, "sum-cond")
    assert [len(columns) for _, columns in criterion.parts] == [3, 9, 9, 9, 9, 9]
    assert [columns for _, columns in criterion.parts] == list(base.link_columns.values())
    assert sorted(i for _, columns in criterion.parts for i in columns) == list(range(base.count))
    q, v, a = np.random.default_rng(1).normal(size=(3, 200, 6))
    W = base.regressor(q, v, a)
    exact = sum(np.linalg.cond(W[:, :, columns].reshape(-1, len(columns))) for _, columns in criterion.parts)
    # The smooth stand-in lies above the condition number, by at most the 24th root of the number of columns, twice.
    assert exact <= criterion(W)[0] <= exact * 9 ** (2 / 24)
