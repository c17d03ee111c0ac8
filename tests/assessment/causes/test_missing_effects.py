"""Which effect is missing: truth has it, the model does not, and the search must name it and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import pytest

import dynid
from dynid.assessment.causes.missing import MissingEffects, missing_effects
from dynid.cli.demo import synthetic_recording
from dynid.errors import InvalidValue, Mismatch, MissingData, TooFew
from tests.support.errors import expect_error
from tests.support.synthetic import arm, motion

SIGNALS = dynid.Signals(cutoff=None, derivative="fourier", trim=0.0, decimate=(5,))
Extra = Callable[[np.ndarray, np.ndarray, np.ndarray, np.ndarray], np.ndarray]


def recorded(
    robot: dynid.Robot, extra: Extra | None = None, seed: int = 0, delay: int = 0, noise: float = 0.2
) -> dynid.Recording:
    """A run of the robot with an extra torque (N, joint) that its model does not know."""
    t, q, v, a = motion(robot, seed, 4000)
    torque = dynid.inverse_dynamics(robot, q, v, a)
    if extra is not None:
        torque = torque + extra(q, v, a, torque)
    torque = np.roll(torque, delay, axis=0) + noise * np.random.default_rng(seed).normal(size=q.shape)
    return dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque),))


def search(robot: dynid.Robot, recording: dynid.Recording, **options: object) -> MissingEffects:
    estimate = dynid.identify(robot, recording, "wls", signals=SIGNALS)
    return missing_effects(estimate, recording, **options)  # type: ignore[arg-type]


def at(joint: int, values: np.ndarray) -> np.ndarray:
    return values[:, None] * (np.arange(3) == joint)


CASES: dict[str, tuple[Extra, str, str, float]] = {
    "coupled viscous": (
        lambda q, v, a, t: at(1, 0.5 * v[:, 2]),
        "joint2",
        "viscous friction from the velocity of joint3",
        0.5,
    ),
    "coupled Coulomb": (
        lambda q, v, a, t: at(2, 0.5 * np.sign(v[:, 0])),
        "joint3",
        "Coulomb friction from the velocity of joint1",
        0.5,
    ),
    "coupled shaft": (
        lambda q, v, a, t: at(1, 0.5 * np.sign(v[:, 1] + v[:, 2])),
        "joint2",
        "Coulomb friction of a shaft that turns with the sum of it and joint3",
        0.5,
    ),
    "coupled inertia": (lambda q, v, a, t: at(0, 0.3 * a[:, 2]), "joint1", "inertia that turns with joint3", 0.3),
    "square": (
        lambda q, v, a, t: at(0, 0.3 * v[:, 0] * np.abs(v[:, 0])),
        "joint1",
        "friction that grows with the square of the velocity",
        0.3,
    ),
    "one-sided": (
        lambda q, v, a, t: at(2, 0.5 * np.abs(v[:, 2])),
        "joint3",
        "viscous friction that differs by direction",
        0.5,
    ),
    "spring": (lambda q, v, a, t: at(0, 0.8 * q[:, 0]), "joint1", "a spring", 0.8),
    "counterbalance": (
        lambda q, v, a, t: at(0, 2.0 * np.sin(q[:, 0])),
        "joint1",
        "a torque proportional to sin q (gravity, counterbalance)",
        2.0,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_missing_effect_is_named_alone_with_its_size(case: str) -> None:
    extra, joint, words, size = CASES[case]
    robot = arm()
    found = search(robot, recorded(robot, extra))
    assert [(e.joint, e.words) for e in found.effects] == [(joint, words)]
    effect = found.effects[0]
    # Four deviations, for eight cases.
    assert effect.coefficient == pytest.approx(size, abs=max(4 * effect.std, 0.02 * size))
    assert effect.share > 0.3 and f"explains {100 * effect.share:.0f} %" in str(effect)


def test_terms_left_out_of_the_model_are_named() -> None:
    """Offsets, Coulomb and viscous friction of the truth that the model lacks."""
    robot = arm()
    robot = robot.with_parameters(np.where(np.array(robot.parameter_names) == "off_joint2", 1.0, robot.parameters))
    recording = recorded(robot)
    for pattern, words in (
        ("off_joint2", "an offset, or Coulomb friction that differs by direction,"),
        ("fc_joint2", "Coulomb friction"),
        ("fv_joint2", "viscous friction"),
    ):
        found = search(robot.without(pattern), recording)
        assert [(e.joint, e.words) for e in found.effects] == [("joint2", words)]


def test_a_delay_of_the_torque_is_named_in_seconds() -> None:
    """Two of 4000 samples over ten seconds, in all joints alike."""
    robot = arm()
    found = search(robot, recorded(robot, delay=2, noise=0.05))
    assert (found.effects[0].joint, found.effects[0].words) == ("all joints", "a delay of the torque (s)")
    assert found.effects[0].coefficient == pytest.approx(0.005, rel=0.2)
    assert "delay of the signals" in found.advice


def test_ripple_is_looked_for_on_request() -> None:
    robot = arm()
    recording = recorded(robot, lambda q, v, a, t: at(1, 0.3 * np.sin(12 * q[:, 1])))
    found = search(robot, recording, ripple=(6, 12))
    assert [e.words for e in found.effects] == ["a ripple sin 12 q"]


def test_a_good_model_lacks_nothing() -> None:
    """False alarms stay at the level also without a least share; each draw tests over sixty candidates."""
    robot = arm()
    found = [search(robot, recorded(robot, seed=seed), least_share=0.0) for seed in range(40)]
    alarms = sum(bool(f.effects) for f in found)
    # Two are expected; the chance of more than six at 5 % is below one in a hundred.
    assert alarms <= 6
    assert "none of" in found[0].verdict and "elasticity" in found[0].advice


@lru_cache(maxsize=1)
def wrist() -> MissingEffects:
    robot = dynid.load_robot("tx40")
    recording = synthetic_recording(robot, seed=0)
    return missing_effects(dynid.identify(robot.without("*motor6"), recording, "wls"), recording)


def test_coupled_wrist_of_the_tx40() -> None:
    """Motor 6 turns joint 5 too: viscous and Coulomb friction in both joints, found through default signals."""
    shaft = "Coulomb friction of a shaft that turns with the sum of it and"
    assert {(e.joint, e.words): round(e.coefficient, 1) for e in wrist().effects} == {
        ("joint5", f"{shaft} joint6"): 1.6,
        ("joint6", f"{shaft} joint5"): 1.6,
        ("joint5", "viscous friction from the velocity of joint6"): 0.8,
        ("joint6", "viscous friction from the velocity of joint5"): 0.8,
    }


def test_table_is_ranked_and_plain_data() -> None:
    found = wrist()
    told = [e.statistic for e in found.candidates]
    assert told == sorted(told, reverse=True) and len(told) > 150
    assert json.loads(json.dumps(found.to_dict()))["effects"][0]["joint"] == found.effects[0].joint
    assert "4 effects are missing" in found.summary() and "1. joint" in found.summary()


def test_bad_input_is_named() -> None:
    robot = arm()
    recording = recorded(robot)
    estimate = dynid.identify(robot, recording, "wls", signals=SIGNALS)
    run = recording.runs[0]
    with expect_error(Mismatch):
        missing_effects(estimate, dynid.Recording(("a", "b"), (dynid.Run(run.t, run.q[:, :2]),)))
    with expect_error(MissingData):
        missing_effects(estimate, dynid.Recording(recording.joints, (dynid.Run(run.t, run.q),)))
    with expect_error(InvalidValue, "level"):
        missing_effects(estimate, recording, level=2.0)
    with expect_error(TooFew):
        missing_effects(estimate, recording, rows=5)
