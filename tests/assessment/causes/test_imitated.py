"""Counterbalances that free bodies imitate: named by what the file knows of the bodies, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.assessment.causes.cause import Trial
from studies.reproduce.plants import other_bodies
from tests.assessment.causes.test_causes import CASES, SIGNALS, Fault, causes, only
from tests.support.synthetic import arm, motion

# Size, distances of both ends from the joint, length without force, and direction of spring cylinders.
CYLINDERS = {
    "long": (300.0, 0.5, 0.15, 0.3, 0.0),
    "short and turned": (400.0, 0.25, 0.12, 0.1, 0.6),
    "pushes": (-200.0, 0.4, 0.2, 0.2, -0.4),
}


def cylinder(size: float, anchor: float, lever: float, rest: float, turned: float) -> Fault:
    """A spring between two points, about joint 2."""

    def fault(q: np.ndarray, v: np.ndarray, torque: np.ndarray, run: int) -> tuple[np.ndarray, np.ndarray]:
        x = np.pi - (q[:, 1] - turned)
        length = np.sqrt(anchor**2 + lever**2 - 2 * anchor * lever * np.cos(x))
        return q, torque + only(1, -size * (length - rest) * anchor * lever * np.sin(x) / length)

    return fault


def with_errors(seed: int) -> dynid.Robot:
    """The arm as its file may have it: bodies with errors of about 20 %."""
    return other_bodies(arm(), 0.1, np.random.default_rng([seed, 7]))


@pytest.mark.parametrize("kind", CYLINDERS)
def test_a_counterbalance_is_named_although_free_bodies_imitate_it(kind: str) -> None:
    first = causes(cylinder(*CYLINDERS[kind]), with_errors(0)).causes[0]
    assert (first.code, first.joints, first.option) == ("gravity", ("joint2",), "counterbalance=joint2")
    assert first.probability > 0.5 and first.trial is not None and first.trial.after < 0.7 * first.trial.before
    # With it, bodies near the file leave hardly more than free ones.
    assert first.trial.strain is not None and first.trial.strain < 0.1


def test_without_bodies_in_the_file_nobody_knows() -> None:
    bare = arm()
    bare = replace(bare, links=tuple(replace(x, inertia=np.zeros(10)) for x in bare.links))
    assert all(c.code != "gravity" for c in causes(cylinder(*CYLINDERS["long"]), bare).causes)


@pytest.mark.parametrize("seed", range(4))
def test_bodies_that_differ_from_the_file_are_no_counterbalance(seed: int) -> None:
    assert causes(model=with_errors(seed), seed=seed).causes == ()


@pytest.mark.parametrize("case", ["tilt", "length", "position gain", "gain"])
def test_wrong_geometry_and_gains_are_no_counterbalance(case: str) -> None:
    fault, model, code, *_ = CASES[case]
    found = causes(fault, model).causes
    assert found[0].code == code and all(c.code not in ("gravity", "spring") for c in found)


def test_bodies_of_a_robot_that_has_the_effect_are_right_again() -> None:
    """The advice, followed: the weight of the identified bodies is that of the truth, and the search is silent."""
    fault, robot = cylinder(*CYLINDERS["long"]), with_errors(1)
    t, q, v, a = motion(arm(), 0, 4000)
    _, torque = fault(q, v, dynid.inverse_dynamics(arm(), q, v, a), 0)
    torque = torque + 0.05 * np.random.default_rng(0).normal(size=q.shape)
    recording = dynid.Recording(arm().coordinates, (dynid.Run(t, q, torque=torque),))
    better = robot.with_effects("counterbalance=joint2")

    def weight(x: dynid.Robot) -> np.ndarray:
        return dynid.inverse_dynamics(replace(x, drives=()), q, 0 * q, 0 * q)[:, 1]

    found = [weight(dynid.identify(x, recording, "auto", signals=SIGNALS).identified_robot) for x in (robot, better)]
    errors = [float(np.std(x - weight(arm())) / np.std(weight(arm()))) for x in found]
    assert errors[0] > 0.2 and errors[1] < 0.3 * errors[0]
    assert all(c.code != "gravity" for c in causes(fault, better).causes)


def test_the_trial_says_whose_error_it_is() -> None:
    plain, held = Trial("joint1", 0.1, 0.05, True), Trial("joint1", 0.1, 0.05, True, 0.2)
    assert "file" not in str(plain) and "with bodies near those of the file" in str(held)
    assert (plain.left, held.left) == (0.5, 0.2)
