"""Faults of the torque, each planted in one joint and found there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid import Recording
from studies.reproduce.verdict_logs import slipping_springs
from tests.support.check_data import late, number, only, recorded, serious, spoiled, times
from tests.support.synthetic import arm

ROBOT = arm()
SOUND = recorded(ROBOT)
IIWA = dynid.load_robot("iiwa14")


def test_reversed_sign_of_a_loaded_joint() -> None:
    """Gravity tells joint 2 at once."""
    finding = only(dynid.check(ROBOT, spoiled(SOUND, torque=times(1, -1.0))), "joint2", "torque_sign")
    assert abs(number(finding) + 1) < 0.05


def test_reversed_sign_of_a_joint_without_gravity() -> None:
    """Joint 1 turns about the vertical axis, without gravity."""
    robot = ROBOT.with_parameters(
        [
            5 * x if n in ("fv_joint1", "fc_joint1") else x
            for n, x in zip(ROBOT.parameter_names, ROBOT.parameters, strict=True)
        ]
    )
    turned = spoiled(recorded(robot), torque=times(0, -1.0))
    findings = serious(dynid.check(ROBOT, turned))
    assert [(f.joint, f.code) for f in findings] == [("joint1", "torque_sign")]


def test_reversed_friction_of_a_wheel() -> None:
    """The model has no torque beside the joint's own inertia: the sign is that of the friction alone."""
    body = {"mass": 5.0, "tensor": [0.1, 0, 0, 0.1, 0, 0.2]}
    wheel = dynid.Robot.from_dh(
        [{"alpha": 0.0, "inertia": body, "drive": {"fv": 1.0, "fc": 2.0}}], "modified", name="wheel"
    )
    only(dynid.check(wheel, spoiled(recorded(wheel), torque=times(0, -1.0))), "joint1", "friction_sign")


@pytest.mark.parametrize(("factor", "code"), [(3.0, "torque_gain"), (0.1, "torque_unit")])
def test_gain(factor: float, code: str) -> None:
    """A factor that an uncertain model does not explain, with its confidence; 1.5 is not told."""
    finding = only(dynid.check(ROBOT, spoiled(SOUND, torque=times(1, factor))), "joint2", code, "warning")
    assert abs(number(finding) / factor - 1) < 0.05 and "confidence" in finding.how_much
    assert not serious(dynid.check(ROBOT, spoiled(SOUND, torque=times(1, 1.5))))


def test_gain_is_not_told_where_the_joint_is_not_loaded() -> None:
    """A wheel's torque is its own inertia and friction: both are free, so no gain is claimed."""
    body = {"mass": 5.0, "tensor": [0.1, 0, 0, 0.1, 0, 0.2]}
    wheel = dynid.Robot.from_dh(
        [{"alpha": 0.0, "inertia": body, "drive": {"fv": 0.1, "fc": 0.2}}], "modified", name="wheel"
    )
    assert not serious(dynid.check(wheel, spoiled(recorded(wheel), torque=times(0, 2.5))))


@pytest.mark.parametrize("samples", [6, 20])
def test_delay(samples: int) -> None:
    """Found to a sample of 5 ms, also with a model that is off by 20 %."""
    rng = np.random.default_rng(0)
    rough = ROBOT.with_parameters(ROBOT.parameters * rng.uniform(0.8, 1.2, len(ROBOT.parameters)))
    finding = only(dynid.check(rough, spoiled(SOUND, torque=late(1, samples))), "joint2", "torque_delay", "warning")
    assert abs(number(finding) - 0.005 * samples) < 5e-3


def test_friction_that_builds_up_is_no_delay() -> None:
    """Presliding of 5 mrad looks like a delay; setting one would make the model worse."""
    run = SOUND.runs[0]
    soft = 3.0 * (slipping_springs(run.q, 0.005) - np.sign(run.v))
    plain = ROBOT.with_parameters(
        [3.0 if n.startswith("fc") else x for n, x in zip(ROBOT.parameter_names, ROBOT.parameters, strict=True)]
    )
    log = spoiled(recorded(plain), torque=lambda x: x + soft)
    assert "torque_delay" not in {f.code for f in dynid.check(plain, log)}


def test_offset() -> None:
    """An offset that the robot does not model is told with its size."""
    bare = ROBOT.without("off_*")
    moved = SOUND.runs[0].torque + np.array([0.0, 6.0, 0.0])
    findings = [f for f in dynid.check(bare, spoiled(SOUND, torque=moved)) if f.code == "torque_offset"]
    assert [f.joint for f in findings] == ["joint2"] and abs(number(findings[0]) - 6.1) < 0.2
    assert "Model an offset" in findings[0].what_to_do


def test_swapped_columns() -> None:
    """Torques of joints 2 and 3 exchanged."""
    findings = serious(dynid.check(ROBOT, spoiled(SOUND, torque=lambda y: y[:, [0, 2, 1]])))
    assert [f.joint for f in findings] == ["joint2", "joint3"]
    assert findings[0].code == "torque_order" and "belong to joint 'joint3'" in findings[0].what


def test_all_columns_in_another_order() -> None:
    """Positions, velocities and torques of seven joints in the order 2, 3, 4, 1, 5, 6, 7."""
    order = [1, 2, 3, 0, 4, 5, 6]
    run = recorded(IIWA).runs[0]
    wrong = Recording(
        IIWA.coordinates, (dynid.Run(run.t, run.q[:, order], v=run.v[:, order], torque=run.torque[:, order]),)
    )
    findings = [f for f in dynid.check(IIWA, wrong) if f.code == "joint_order"]
    assert [f.joint for f in findings] == list(IIWA.coordinates[:4])
    assert ", ".join(IIWA.coordinates[i] for i in order) in findings[0].what_to_do


def test_efforts_that_are_no_torques() -> None:
    """Zero in most samples; hardly varying; without the static load."""
    zeros = SOUND.runs[0].torque.copy()
    zeros[np.arange(len(zeros)) % 10 > 0, 1] = 0.0
    found = {f.code: f for f in dynid.check(ROBOT, spoiled(SOUND, torque=zeros)) if f.joint == "joint2"}
    assert number(found["torque_zero"]) == pytest.approx(90, abs=1)
    noise = SOUND.runs[0].torque.copy()
    noise[:, 1] = 0.01 * np.random.default_rng(0).normal(size=len(noise))
    only(dynid.check(ROBOT, spoiled(SOUND, torque=noise)), "joint2", "torque_too_small", "warning")
    lift = dynid.Robot.from_dh(
        [{"kind": "prismatic", "alpha": 0.0, "inertia": {"mass": 20.0}}], "modified", name="lift"
    )
    raised = recorded(lift.with_drives(friction="viscous"))
    weightless = spoiled(raised, torque=raised.runs[0].torque - 20 * 9.81)
    only(dynid.check(lift, weightless), "joint1", "torque_gravity_compensated", "warning")


def test_unsigned_currents() -> None:
    """Magnitudes of all joints; a single joint that gravity loads on one side is sound."""
    only(dynid.check(ROBOT, spoiled(SOUND, torque=np.abs(SOUND.runs[0].torque))), "", "torque_unsigned")
    raised = SOUND.runs[0].torque.copy()
    raised[:, 1] += 1.1 * np.abs(raised[:, 1]).max()
    codes = {f.code for f in dynid.check(ROBOT, spoiled(SOUND, torque=raised))}
    assert "torque_unsigned" not in codes


def test_computed_torques() -> None:
    """Bodies without friction and without noise, beside positions of an encoder; in a simulation it is only told."""
    ideal = IIWA.with_drives(friction="none")
    computed = recorded(ideal, noise=0.0)
    only(dynid.check(IIWA, computed), "", "torque_computed", "warning")
    assert not serious(dynid.check(IIWA, recorded(ideal, noise=0.02)))
    assert not serious(dynid.check(IIWA, recorded(IIWA, noise=0.0)))


def test_torque_without_its_sign() -> None:
    """The magnitude with the sign of the velocity; a joint whose friction is nearly all loses nothing."""
    run = SOUND.runs[0]
    assert run.v is not None

    def rectified(j: int) -> dynid.Recording:
        return spoiled(SOUND, torque=lambda x: np.where(np.arange(3) == j, np.abs(x) * np.sign(run.v), x))

    (finding,) = (f for f in dynid.check(ROBOT, rectified(1)) if f.severity == "error")
    assert (finding.joint, finding.code) == ("joint2", "torque_unsigned")
    assert number(finding) > 20 and "sign of the velocity" in finding.what
    rough = replace(ROBOT, drives=tuple(replace(t, value=50.0) if t.name == "fc_joint1" else t for t in ROBOT.drives))
    sound = recorded(rough)
    v = sound.runs[0].v
    assert v is not None
    nearly = spoiled(sound, torque=lambda x: np.where(np.arange(3) == 0, np.abs(x) * np.sign(v), x))
    assert "torque_unsigned" not in {f.code for f in dynid.check(rough, nearly)}


def test_a_log_without_torques_says_what_it_is_good_for() -> None:
    silent = replace(SOUND.runs[0], torque=None)
    for run, words in (
        (silent, "Log torques or motor currents"),
        (replace(silent, reference=silent.q), "dynid actuators"),
        (replace(silent, current=silent.q), "dynid gains"),
    ):
        findings = serious(dynid.check(ROBOT, Recording(ROBOT.coordinates, (run,))))
        assert [f.code for f in findings] == ["torque_missing"] and words in findings[0].what_to_do
        with pytest.raises(dynid.DynidError, match=words[1:]):
            dynid.identify(ROBOT, Recording(ROBOT.coordinates, (run,)))
