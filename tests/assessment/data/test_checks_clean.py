"""Sound recordings pass without a warning, and no data that a Recording accepts makes the checks fail."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid import Recording, Run
from dynid.errors import Mismatch
from tests.support.check_data import recorded, serious
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot
from tests.support.synthetic import arm

NUMBERS = st.sampled_from([0.0, 1.0, -1.0, 0.3, 57.3, 1e-9, 1e5, 1e30, -1e300])


@pytest.mark.parametrize("name", ["arm3", "box2", "iiwa14", "puma560", "tx40", "twolink", "wam7"])
@pytest.mark.parametrize(("rate", "noise"), [(100.0, 0.05), (500.0, 0.01)])
def test_sound_recordings_of_many_robots_pass(name: str, rate: float, noise: float) -> None:
    """Friction, rotors, encoders and one to five percent of noise are no faults."""
    robot = arm() if name == "arm3" else dynid.load_robot(name)
    assert not serious(dynid.check(robot, recorded(robot, 1, rate=rate, noise=noise)))


def test_positions_alone_and_prismatic_joints_pass() -> None:
    """Velocity may be missing, and of torque it is said; a joint may slide, a base may be instrumented."""
    robot = random_robot(2, 3, kinds="rpr").with_drives(friction="viscous+coulomb")
    recording = recorded(robot)
    assert not serious(dynid.check(robot, recording))
    run = recording.runs[0]
    alone = serious(dynid.check(robot, Recording(recording.joints, (Run(run.t, run.q),))))
    assert [f.code for f in alone] == ["torque_missing"]
    assert not serious(dynid.check(robot.with_base("instrumented"), recording))


def test_floating_bases_are_checked_without_the_model() -> None:
    """The motion of the base is not known, so torques are not compared; everything else is."""
    robot = dynid.load_robot("twolink")
    findings = dynid.check(robot.with_base("floating"), recorded(robot))
    assert not serious(findings)
    assert any(f.code == "torque_not_compared" for f in findings)


def test_runs_of_one_recording_are_told_apart() -> None:
    """A fault in the second run carries that run's name."""
    robot = arm()
    good = recorded(robot, 0)
    bad = replace(good.runs[0], torque=-good.runs[0].torque, name="second")
    findings = serious(dynid.check(robot, Recording(good.joints, (*good.runs, bad))))
    assert findings and {f.run for f in findings} == {"second"}


def test_wrong_number_of_joints_is_refused() -> None:
    """The only thing that raises."""
    with expect_error(Mismatch):
        dynid.check(dynid.load_robot("twolink"), recorded(arm()))


def test_joints_in_another_order_by_name_are_found() -> None:
    """A recording that names the robot's joints in another order."""
    robot = arm()
    recording = recorded(robot)
    findings = dynid.check(robot, Recording(recording.joints[::-1], recording.runs))
    assert any(f.code == "joint_name_order" and f.severity == "error" for f in findings)


@settings(max_examples=40, deadline=None)
@given(st.integers(2, 200), st.integers(0, 10**6), st.lists(NUMBERS, min_size=1, max_size=4), st.booleans())
def test_no_data_make_the_checks_fail(samples: int, seed: int, numbers: list[float], even: bool) -> None:
    """Short, constant, huge, random and badly clocked signals all get findings, never an exception."""
    robot = dynid.load_robot("twolink")
    rng = np.random.default_rng(seed)
    t = np.arange(samples) * 0.01 if even else rng.choice([*numbers, 0.0, 0.01, 0.02], samples).cumsum().clip(-1e9, 1e9)
    q, v, torque = (rng.choice([*numbers, rng.normal()], (samples, 2)) for _ in range(3))
    recording = Recording(robot.coordinates, (Run(t, q, v=v, torque=torque),))
    assert all(f.what.endswith(".") and f.how_much[0] in "-0123456789" for f in dynid.check(robot, recording))


@pytest.mark.parametrize("samples", [2, 3, 10, 39, 60])
def test_short_and_constant_runs_do_not_fail(samples: int) -> None:
    """Nothing moves, or hardly any sample is there."""
    robot = dynid.load_robot("twolink")
    still = np.ones((samples, 2))
    for t in (np.arange(samples) * 0.01, np.zeros(samples), np.arange(samples)[::-1] * 1.0):
        dynid.check(robot, Recording(robot.coordinates, (Run(t, still, v=0 * still, torque=still),)))
        dynid.check(robot, Recording(robot.coordinates, (Run(t, still),)))
