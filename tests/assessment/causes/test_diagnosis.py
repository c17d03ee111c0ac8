"""All tests of an estimate in one call: what it finds, what it leaves alone, what it cannot test."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import dynid
from dynid.assessment.causes.diagnosis import Diagnosis, diagnose
from dynid.controllers import cascade
from dynid.errors import DynidError, NotApplicable
from dynid.identification.experiment import Experiment
from dynid.identification.pipeline import estimate_closed_loop, estimate_from
from dynid.robot.drives import DriveTerm
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from tests.support.errors import expect_error
from tests.support.noisy_loop import noisy_loop

OFFSET = "an offset, or Coulomb friction that differs by direction,"


@cache
def right() -> Experiment:
    """The two-link arm in its loop, ten seconds, encoders of half a million counts."""
    return noisy_loop("twolink", 1e-5, seconds=10.0, torque_noise=0.02)


def judged(experiment: Experiment, method: str = "pc-didim") -> Diagnosis:
    estimate = estimate_closed_loop(experiment, method)
    return diagnose(estimate, experiment.recording, loop=experiment.loop)


def test_a_right_model_lacks_nothing_and_its_instruments_hold() -> None:
    """Feedback makes measured regressors endogenous and the noise coloured; neither passes for a missing effect."""
    found = judged(right())
    assert not found.tests[0].rejected and "instruments" in found.tests[0].name
    assert found.tests[1].rejected and "exogeneity" in found.tests[1].name
    assert found.missing is not None and found.missing.effects == ()
    assert len(found.tests) == 6 and found.untested == ()
    assert found.rejected == tuple(t for t in found.tests if t.rejected)


@cache
def wrong(term: str) -> Experiment:
    """A recording of a robot that has one drive term more than its model."""
    # Coulomb friction of one value for both directions: with two, an offset hides in their difference.
    model = right().robot.with_drives("viscous+coulomb", rotor_inertia=True).with_smooth_coulomb(30.0)
    extra = {
        "offset": DriveTerm("off", "joint1", np.array([1.0, 0.0]), 0, 1.5),
        "coupling": DriveTerm("fc", "belt", np.array([1.0, 1.0]), 1, 1.2, slope=30.0),
    }[term]
    known = right()
    made = simulate(model.with_terms(extra), known.loop, known.references[0], seed=3)
    return replace(known, robot=model, recording=made.recording())


def test_a_missing_offset_is_found_first() -> None:
    """With its joint and its size."""
    found = judged(wrong("offset"))
    assert found.missing is not None
    first = found.missing.effects[0]
    assert (first.joint, first.words) == ("joint1", OFFSET)
    assert first.coefficient == pytest.approx(1.5, rel=0.05)


def test_coulomb_friction_of_a_coupled_shaft_is_found() -> None:
    """In both joints that the shaft turns with."""
    found = judged(wrong("coupling"))
    assert found.missing is not None
    shaft = "Coulomb friction of a shaft that turns with the sum of it and"
    named = {(e.joint, e.words): e.coefficient for e in found.missing.effects}
    for joint, other in (("joint1", "joint2"), ("joint2", "joint1")):
        # The truth is a smooth step, the candidate a sharp one.
        assert named[joint, f"{shaft} {other}"] == pytest.approx(1.2, rel=0.15)


def test_without_a_controller_only_the_residual_is_tested() -> None:
    """Neither instruments nor exogeneity, and nothing is said to be untested."""
    estimate = estimate_from(right().measured, "wls")
    found = diagnose(estimate, right().recording)
    assert [t.name.split(" ")[0] for t in found.tests] == ["whiteness", "normality", "constant", "drive"]


def test_least_squares_are_judged_with_the_controller() -> None:
    """Open-loop estimates too: exogeneity fails, so their bias is known of."""
    estimate = dynid.identify(right().robot, right().recording, "wls", signals=right().signals)
    found = diagnose(estimate, right().recording, loop=right().loop)
    exogeneity = found.test("exogeneity")
    assert exogeneity is not None and exogeneity.rejected and "use instrumental variables" in exogeneity.advice


def test_words_and_data_hold_every_test() -> None:
    """The page names each test and its verdict; the data are plain."""
    found = judged(wrong("offset"))
    page = found.summary()
    assert all(t.name in page and t.verdict in page for t in found.tests) and OFFSET in page
    data = json.loads(json.dumps(found.to_dict()))
    assert [t["rejected"] for t in data["tests"]] == [t.rejected for t in found.tests]
    assert data["missing"]["effects"][0]["joint"] == "joint1" and data["untested"] == []


def test_what_cannot_be_tested_is_said() -> None:
    """Batches as long as the run leave none to compare: the reason stands in place of the tests."""
    estimate = estimate_closed_loop(right(), "didim")
    found = diagnose(estimate, right().recording, loop=right().loop, correlated_samples=5000)
    assert [reason.split(":")[0] for reason in found.untested] == ["instrument validity", "exogeneity"]
    assert f"not tested: {found.untested[0]}" in found.summary() and len(found.tests) == 4


def test_an_aborted_estimate_has_nothing_to_test() -> None:
    """The status is the reason."""
    gains = np.full(2, 20.0)
    unstable = replace(right(), loop=replace(right().loop, controller=cascade(1000.0, gains, -gains)))
    aborted = estimate_closed_loop(unstable, "pc-didim")
    with expect_error(NotApplicable):
        diagnose(aborted, right().recording, loop=right().loop)


def test_a_loop_that_cannot_run_with_the_estimate_is_named() -> None:
    """A good estimate judged in another loop."""
    estimate = estimate_from(right().measured, "wls")
    gains = np.full(2, 20.0)
    with expect_error(DynidError, code="simulation_failed"):
        diagnose(estimate, right().recording, loop=ClosedLoop(controller=cascade(1000.0, gains, -gains)))
