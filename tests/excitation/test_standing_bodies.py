"""Motions for a body that stands on its feet: the pressure centre stays under it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
import dynid.recording
from dynid.errors import ConflictingArguments, Infeasible, InvalidShape, NotApplicable, UnknownName
from dynid.excitation.balance import verify_balance
from tests.support.errors import expect_error
from tests.support.humanoids import humanoid

SOLE = [[-0.06, -0.05], [0.2, -0.05], [0.2, 0.05], [-0.06, 0.05]]
LIMITS = {"*": {"velocity": 3.0, "acceleration": 20.0}}


def person() -> dynid.Robot:
    return dynid.human.human_model("male", 1.8, 80.0)


def held(robot: dynid.Robot, *free: str) -> dict[str, float]:
    return {c: 0.0 for c in robot.coordinates if not c.split("_", 1)[-1].startswith(free) and not c.startswith(free)}


@pytest.mark.slow
def test_a_person_on_both_feet_stays_upright(tmp_path: Path) -> None:
    """Designed for the wrench under the feet; the same search without the feet in mind would fall over."""
    human = person()
    standing = dynid.excitation.stand_on(
        human, ["left_sole", "right_sole"], SOLE, held=held(human, "lumbar", "shoulder"), margin=0.02
    )
    robot = standing.robot
    assert robot.base == "instrumented" and robot.n == 9
    made = dynid.design_excitation(robot, 6.0, size=3, limits=LIMITS, budget=300, clearances=[standing.support])
    free = dynid.design_excitation(robot, 6.0, size=3, limits=LIMITS, budget=60)
    assert verify_balance(standing.support, made).worst[0] > -1e-4
    assert not verify_balance(standing.support, free).kept
    assert made.criterion.base.channels == tuple(robot.channels[:6]) and np.isfinite(made.condition_number)
    made.to_toml(tmp_path / "motion.toml")
    again = dynid.Excitation.from_toml(tmp_path / "motion.toml", robot)
    assert again.criterion.base.channels == made.criterion.base.channels
    np.testing.assert_allclose(again.value, made.value, rtol=1e-9)


def test_the_wrench_of_a_standing_body_is_that_of_the_floating_one() -> None:
    """Mass, centre and pressure centre at rest do not depend on where the tree begins."""
    human = person()
    standing = dynid.excitation.stand_on(human, "left_sole", SOLE)
    values = {"left_ankle_inversion": -0.1, "right_hip_flexion": 0.4, "left_shoulder_abduction": 0.3}
    q = standing.posture(values)
    joints = np.array([[values.get(c, 0.0) for c in human.coordinates]])
    pose = dynid.recording.base_from_foot(human, joints, "left_sole").pose
    centre = dynid.dynamics.center_of_mass(human, np.hstack([pose, joints]))[0]
    wrench = dynid.inverse_dynamics(standing.robot, q, 0 * q, 0 * q)[:6]
    np.testing.assert_allclose(wrench[2], 9.81 * 80.0, rtol=1e-9)
    np.testing.assert_allclose([-wrench[4] / wrench[2], wrench[3] / wrench[2]], centre[:2], atol=1e-9)
    np.testing.assert_allclose(standing.support.center_of_mass(q)[0], centre[:2], atol=1e-9)


@pytest.mark.slow
def test_a_whole_person_on_one_foot() -> None:
    """All 35 joints: balance does not let every parameter show, so the design is about what it adds to their sizes."""
    standing = dynid.excitation.stand_on(person(), "left_sole", SOLE, margin=0.005)
    start = standing.posture({"left_ankle_inversion": -0.085})
    given = {"limits": LIMITS, "size": 2, "start": start, "noise": [3, 3, 3, 1, 1, 1], "samples": 100}
    made = dynid.design_excitation(
        standing.robot, 8.0, budget=300, clearances=[standing.support], **given, **standing.prior()
    )
    assert verify_balance(standing.support, made).worst[0] > -1e-4
    # Zero is what the sizes alone are worth: the motion must add to it.
    assert made.value < -0.1
    assert np.ptp(made.sample(20.0)[1], axis=0).max() > 0.1


def test_what_cannot_stand_is_said() -> None:
    """Two feet with free legs, feet at different heights, a floating base in the design, an empty sole."""
    human = person()
    both = ["left_sole", "right_sole"]
    with expect_error(ConflictingArguments, "held"):
        dynid.excitation.stand_on(human, both, SOLE)
    lifted = held(human, "lumbar", "shoulder") | {"right_hip_flexion": 0.5, "right_knee_flexion": 0.9}
    with expect_error(Infeasible, "posture"):
        dynid.excitation.stand_on(human, both, SOLE, held=lifted)
    with expect_error(NotApplicable):
        dynid.design_excitation(humanoid(0), limits={"*": {"lower": -1.0, "upper": 1.0, "velocity": 1.0}})
    with expect_error(InvalidShape, "soles"):
        dynid.excitation.stand_on(human, "left_sole", [0.1, 0.2])
    with expect_error(UnknownName):
        dynid.excitation.stand_on(human, "left_sole", SOLE).posture({"tail": 1.0})
