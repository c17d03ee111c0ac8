"""Faults of single channels, of the range and of the motion as a whole."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

import dynid
from dynid import Recording, Run
from tests.support.check_data import number, only, recorded, serious, spoiled, times
from tests.support.synthetic import arm

ROBOT = arm().with_limits({f"joint{i}": {"position": (-2.0, 2.0), "velocity": 2.0, "effort": 200.0} for i in (1, 2, 3)})
SOUND = recorded(ROBOT)


def test_stuck_velocity_and_torque() -> None:
    """Constants while the joint moves."""
    only(dynid.check(ROBOT, spoiled(SOUND, v=times(1, 0.0))), "joint2", "velocity_constant")
    only(dynid.check(ROBOT, spoiled(SOUND, torque=times(2, 0.0))), "joint3", "torque_constant")


def test_stuck_position() -> None:
    """The velocity integrates to a motion that the position does not show; a joint at rest is only told."""

    def stuck(q: np.ndarray) -> np.ndarray:
        q[:, 0] = 0.3
        return q

    v = SOUND.runs[0].v + np.array([0.5, 0.0, 0.0])
    findings = dynid.check(ROBOT, spoiled(SOUND, q=stuck, v=v, torque=None))
    assert any(f.joint == "joint1" and f.severity == "error" and f.code == "position_stuck" for f in findings)
    findings = dynid.check(ROBOT, spoiled(SOUND, q=stuck, v=None, torque=None))
    assert any(f.joint == "joint1" and f.severity == "info" and f.code == "joint_not_moving" for f in findings)


def test_a_position_that_freezes_and_jumps() -> None:
    """From when on and for how long; a joint that rests, or whose encoder has coarse counts, is not frozen."""
    rate, start, stop = 200, 900, 1300

    def frozen(q: np.ndarray) -> np.ndarray:
        q[start:stop, 1] = q[start, 1]
        return q

    def counted(q: np.ndarray) -> np.ndarray:
        return np.round(q * 200) / 200

    (finding,) = [f for f in dynid.check(ROBOT, spoiled(SOUND, q=frozen)) if f.code == "position_stuck"]
    assert (finding.joint, finding.severity) == ("joint2", "error")
    assert f"t = {start / rate:.4g} s" in finding.what and f"{(stop - start) / rate:.2g} s" in finding.what
    rests = np.concatenate([np.repeat(SOUND.runs[0].q[:1], 600, axis=0), SOUND.runs[0].q[:-600]])
    for good in (counted, lambda q: rests):
        assert not any(f.code == "position_stuck" for f in dynid.check(ROBOT, spoiled(SOUND, q=good)))


def test_a_wrapped_angle_is_not_in_another_unit() -> None:
    """An angle from 0 to 2 pi is beyond the limits as one in degrees is, but it jumps by a revolution of rad."""

    def named(change: Callable[[np.ndarray], np.ndarray]) -> set[str]:
        def changed(q: np.ndarray) -> np.ndarray:
            q[:, 1] = change(q[:, 1])
            return q

        found = {f.code for f in dynid.check(ROBOT, spoiled(SOUND, q=changed)) if f.joint == "joint2"}
        return {str(code) for code in found & {"angle_wrapped", "position_unit"}}

    assert named(lambda q: q % (2 * np.pi)) == {"angle_wrapped"} and named(np.degrees) == {"position_unit"}


def test_clipped_torque() -> None:
    """A drive that gives 80 % of the largest torque, which is negative, and no more."""
    torque = SOUND.runs[0].torque.copy()
    end = 0.8 * torque[:, 1].min()
    count = int(np.sum(torque[:, 1] <= end))
    torque[:, 1] = np.maximum(torque[:, 1], end)
    finding = next(
        f for f in serious(dynid.check(ROBOT, spoiled(SOUND, torque=torque))) if f.code == "torque_saturated"
    )
    assert finding.joint == "joint2" and number(finding) == count


def test_coarse_steps() -> None:
    """A position encoder of 512 counts, a torque in steps of its standard deviation; a fine encoder says nothing."""
    step = 2 * np.pi / 512

    def coarse(q: np.ndarray) -> np.ndarray:
        q[:, 1] = np.round(q[:, 1] / step) * step
        return q

    found = [f for f in dynid.check(ROBOT, spoiled(SOUND, q=coarse)) if f.code == "position_resolution"]
    assert [f.joint for f in found] == ["joint2"] and number(found[0]) == pytest.approx(step, rel=0.01)
    torque = SOUND.runs[0].torque.copy()
    width = float(np.std(torque[:, 2]))
    torque[:, 2] = np.round(torque[:, 2] / width) * width
    found = [f for f in dynid.check(ROBOT, spoiled(SOUND, torque=torque)) if f.code == "torque_resolution"]
    assert [(f.joint, f.severity) for f in found] == [("joint3", "warning")]
    assert number(found[0]) == pytest.approx(width, rel=0.01)


@pytest.mark.parametrize(("steps", "severity"), [(2.5, ["warning"]), (4.0, ["info"]), (10.0, [])])
def test_torques_of_few_values(steps: float, severity: list[str]) -> None:
    """Steps per standard deviation: rounding to a tenth of the variation is warned about, to a twentieth reported."""
    torque = SOUND.runs[0].torque.copy()
    width = float(np.std(torque[:, 2])) / steps
    torque[:, 2] = np.round(torque[:, 2] / width) * width
    found = [f for f in dynid.check(ROBOT, spoiled(SOUND, torque=torque)) if f.code == "torque_resolution"]
    assert [f.severity for f in found] == severity


def test_standing_still() -> None:
    """Three quarters of the run at rest."""
    run = SOUND.runs[0]
    rest = np.repeat(run.q[-1:], 12000, axis=0)
    q = np.vstack([run.q, rest])
    t = np.arange(len(q)) * 0.005
    finding = next(f for f in dynid.check(ROBOT, Recording(SOUND.joints, (Run(t, q),))) if f.code == "standstill")
    assert finding.severity == "warning" and abs(number(finding) - 75) < 3
    still = dynid.check(ROBOT, Recording(SOUND.joints, (Run(t[:2000], rest[:2000]),)))
    assert any(f.code == "robot_not_moving" for f in still)


def test_degrees_and_limits() -> None:
    """Degrees are recognised with and without limits; an exceeded range, velocity and torque are measured."""
    finding = serious(dynid.check(ROBOT, spoiled(SOUND, q=times(1, 180 / np.pi), v=None, torque=None)))[0]
    assert finding.joint == "joint2" and finding.code == "position_unit" and finding.severity == "error"
    assert any(f.code == "position_unit" for f in dynid.check(arm(), spoiled(SOUND, q=times(1, 180 / np.pi), v=None)))
    tight = ROBOT.with_limits({"joint3": {"position": (-0.5, 0.5), "velocity": 0.3, "effort": 1.0}})
    found = {str(f.code): number(f) for f in dynid.check(tight, SOUND) if f.joint == "joint3"}
    q, v, torque = (np.abs(x[:, 2]).max() for x in (SOUND.runs[0].q, SOUND.runs[0].v, SOUND.runs[0].torque))
    assert found["position_limit"] == pytest.approx(q - 0.5, abs=0.01)
    assert found["velocity_limit"] == pytest.approx(v, rel=0.05)
    assert found["torque_limit"] == pytest.approx(torque, rel=0.05)
    for share, severity in ((0.9, "info"), (0.7, "warning")):
        rated = {"position": (-9, 9), "velocity": share * float(v), "effort": share * float(torque)}
        found_limits = dynid.check(ROBOT.with_limits({"joint3": rated}), SOUND)
        assert [f.severity for f in found_limits if f.code in ("velocity_limit", "torque_limit")] == [severity] * 2


def test_wrapped_angles() -> None:
    """An angle that jumps by a whole turn."""
    free = arm()

    def wrapped(q: np.ndarray) -> np.ndarray:
        q[:, 0] = np.mod(q[:, 0] - q[:, 0].mean(), 2 * np.pi) - np.pi
        return q

    findings = serious(dynid.check(free, spoiled(SOUND, q=wrapped)))
    assert any(f.joint == "joint1" and f.code == "angle_wrapped" for f in findings)


def test_impossible_numbers() -> None:
    """One damaged sample is named with its row."""
    torque = SOUND.runs[0].torque.copy()
    torque[17, 1] = 1e100
    finding = serious(dynid.check(ROBOT, spoiled(SOUND, torque=torque)))[0]
    assert finding.joint == "joint2" and finding.code == "value_implausible" and "row 17" in finding.what


def test_motion_of_one_joint_cannot_show_the_others() -> None:
    """Only joint 3 moves: what the other joints would show is named, rank and condition are told."""
    q = SOUND.runs[0].q.copy()
    q[:, :2] = 0.2
    findings = dynid.check(ROBOT, spoiled(SOUND, q=q, v=None, torque=None))
    finding = next(f for f in findings if f.code == "parameters_not_excited")
    assert finding.severity == "warning" and "fv_joint1" in finding.what and "fv_joint3" not in finding.what
    count = dynid.base_parameters(ROBOT, channels="torque").count
    assert f"of {count} base parameters" in finding.how_much and number(finding) >= 6


def test_other_runs_can_show_what_one_does_not() -> None:
    """Excitation is judged for all runs together."""
    q = SOUND.runs[0].q.copy()
    q[:, :2] = 0.2
    poor = spoiled(SOUND, q=q, v=None, torque=None)
    assert not any(f.code == "parameters_not_excited" for f in dynid.check(ROBOT, poor + SOUND))


def test_short_recordings_have_few_rows_a_parameter() -> None:
    """Two seconds of a slow motion."""
    findings = dynid.check(ROBOT, SOUND.between(0.0, 2.0))
    finding = next(f for f in findings if f.code == "rows_few")
    assert number(finding) < 10
