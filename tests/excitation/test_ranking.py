"""Motions ranked by simulated identification: against predicted accuracy, repeated, and with motions that fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.errors import DynidError, InvalidValue, MissingArgument
from dynid.excitation import Excitation, design_candidates, rank_motions
from dynid.progress import Progress
from tests.support.errors import expect_error

ROBOT = dynid.load_robot("twolink").with_drives("viscous+coulomb", rotor_inertia=False)
LIMITS = {"*": {"acceleration": 10.0}}


def loop(robot: dynid.Robot = ROBOT, **sensors: float) -> dynid.ClosedLoop:
    """A cascade of 5 Hz with noise."""
    gains = dynid.controllers.bandwidth_gains(robot, 5.0)
    noise = {"noise": 1e-5, "torque_noise": 0.2, "velocity_cutoff": 100.0} | sensors
    return dynid.ClosedLoop(
        controller=dynid.controllers.cascade(1000.0, *gains), sensors=dynid.simulation.Sensors(**noise)
    )


@pytest.fixture(scope="module")
def motions() -> tuple[Excitation, ...]:
    """Three motions, and the first one at a fifth of its size, which shows little."""
    found = design_candidates(ROBOT, 5.0, 3, size=3, limits=LIMITS, budget=90, noise=0.2)
    middle = found[0].problem(50).resting
    return (*found, replace(found[0], coefficients=middle + 0.2 * (found[0].coefficients - middle)))


def test_candidates_are_different_and_share_the_budget(motions: tuple[Excitation, ...]) -> None:
    """Each is the design of its own seed with its part of the iterations; too small a budget is refused."""
    again = dynid.design_excitation(ROBOT, 5.0, size=3, limits=LIMITS, budget=30, noise=0.2, seed=2)
    np.testing.assert_array_equal(again.coefficients, motions[2].coefficients)
    assert len({m.coefficients.tobytes() for m in motions}) == 4
    with expect_error(InvalidValue, "budget"):
        design_candidates(ROBOT, 5.0, 3, budget=2)
    with expect_error(InvalidValue, "count"):
        design_candidates(ROBOT, 5.0, 0)


def test_errors_are_those_of_repeated_identification(motions: tuple[Excitation, ...]) -> None:
    """A loop over simulate and identify gives the same numbers; the order is that of the errors; a seed repeats all."""
    reports: list[Progress] = []
    found = rank_motions(ROBOT, motions, loop(), repeats=2, seed=3, progress=reports.append)
    errors, stated = [], []
    for motion in motions:
        logs = [dynid.simulate(ROBOT, loop(), motion, seed=seed).recording() for seed in (3, 4)]
        estimates = [dynid.identify(ROBOT, log, "wls") for log in logs]
        errors.append(np.sqrt(np.mean([(e.beta - found.truth) ** 2 for e in estimates], axis=0)))
        stated.append(np.sqrt(np.mean([np.diag(e.covariance) for e in estimates], axis=0)))
    typical = np.prod(errors, axis=0) ** 0.25
    scores = [float(np.sqrt(np.mean((e / typical) ** 2))) for e in errors]
    assert [c.number for c in found.candidates] == [int(k) + 1 for k in np.argsort(scores)]
    for c in found.candidates:
        assert c.score == pytest.approx(scores[c.number - 1], rel=1e-9)
        np.testing.assert_allclose(c.std, stated[c.number - 1], rtol=1e-9)
    # What is a fifth of the size shows inertias 25 times less, and friction as well as the others do.
    assert found.candidates[-1].number == 4 and found.candidates[-1].score > 2 * found.candidates[0].score
    assert found.best is motions[found.candidates[0].number - 1]
    shares = [r.share for r in reports if r.share is not None]
    assert shares == sorted(shares) and shares[-1] == 1.0
    again = rank_motions(ROBOT, motions, loop(), repeats=2, seed=3)
    assert again.to_dict() == found.to_dict()
    assert "largest relative error" in found.summary()


def test_a_motion_that_fails_comes_last(motions: tuple[Excitation, ...]) -> None:
    """Its outcome is told; where all fail, that is an error; what makes no sense is refused."""
    fallen = dynid.ClosedLoop(
        controller=dynid.controllers.cascade(1000.0, *(1e4 * g for g in dynid.controllers.bandwidth_gains(ROBOT, 5.0))),
        sensors=loop().sensors,
    )
    with expect_error(DynidError, code="simulation_failed"):
        rank_motions(ROBOT, motions[:1], fallen, repeats=1)
    outside = replace(motions[0], coefficients=motions[0].coefficients * 1e-9)
    found = rank_motions(ROBOT, (outside, motions[0]), loop(), repeats=1)
    assert [c.number for c in found.candidates] == [2, 1] and found.candidates[1].outcome != "completed"
    assert "candidate 1: " in found.summary() and found.to_dict()["candidates"][1]["error"] is None
    with expect_error(MissingArgument, "motions"):
        rank_motions(ROBOT, (), loop())
    with expect_error(MissingArgument, "noise"):
        rank_motions(ROBOT, motions, loop(noise=0.0, torque_noise=0.0))
    with expect_error(InvalidValue, "repeats"):
        rank_motions(ROBOT, motions, loop(), repeats=0)
