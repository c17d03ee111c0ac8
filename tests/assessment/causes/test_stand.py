"""A base that swings: told with its frequency, and not taken for an elastic joint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import scipy

from dynid.export.urdf import write_urdf
from studies.reproduce import verdicts
from studies.reproduce.verdict_setup import Fault
from tests.assessment.causes.test_causes import causes
from tests.support.by_pinocchio import each
from tests.support.synthetic import arm

Array = np.ndarray
RATE, SOFT = 400.0, 1e-3  # Hz, rad/(N m)


def rocking(folder: Path, frequency: float, axis: int) -> Callable[[Array, Array, Array], Array]:
    """What a base adds to the torques of the arm that turns about a horizontal axis under its reactions."""
    path = folder / "arm.urdf"
    # Joints without limits would be stored as cosine and sine.
    limits = {c: {"position": (-10.0, 10.0), "velocity": 10.0, "effort": 100.0} for c in arm().coordinates}
    write_urdf(arm().with_drives("none").with_limits(limits), path)
    fixed, free = pin.buildModelFromUrdf(str(path)), pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer())
    w = 2 * np.pi * frequency

    def torques(q: Array, v: Array, a: Array) -> Array:
        rest, unit = np.zeros((len(q), 6)), np.eye(3)[axis]
        upright = np.hstack([rest, np.ones((len(q), 1)), q])
        moment = -each(pin.rnea, free, upright, np.hstack([rest, v]), np.hstack([rest, a]))[:, 3 + axis]
        oscillator = scipy.signal.StateSpace([[0, 1], [-(w**2), -0.1 * w]], [[0], [SOFT * w**2]], np.eye(2), [[0], [0]])
        start = [SOFT * moment[0], 0.0]
        angle, speed = scipy.signal.lsim(oscillator, moment, np.arange(len(q)) / RATE, start)[1].T
        push = w**2 * (SOFT * moment - angle) - 0.1 * w * speed
        turned = np.hstack([rest[:, :3], np.outer(np.sin(angle / 2), unit), np.cos(angle / 2)[:, None], q])
        twist, rate = (np.hstack([rest[:, :3], np.outer(x, unit), y]) for x, y in ((speed, v), (push, a)))
        return np.asarray(each(pin.rnea, free, turned, twist, rate)[:, 6:] - each(pin.rnea, fixed, q, v, a))

    return torques


@pytest.mark.parametrize(("frequency", "axis"), [(2.0, 0), (4.3, 1)])
def test_a_base_that_swings_is_named_with_its_frequency(frequency: float, axis: int, tmp_path: Path) -> None:
    """Pinocchio moves the base, which an oscillator drives that is integrated on its own."""
    more = rocking(tmp_path, frequency, axis)

    def fault(q: Array, v: Array, torque: Array, run: int) -> tuple[Array, Array]:
        a = np.gradient(v, 1 / RATE, axis=0)
        return q, torque + more(q, v, a)

    found = causes(fault)
    first = found.causes[0]
    assert (first.code, first.joints, first.unit) == ("swinging_base", (), "mrad")
    told = float(first.words.split("about ")[1].split(" Hz")[0])
    assert told == pytest.approx(frequency, rel=0.1)
    assert first.trial is not None and first.trial.after < 0.5 * first.trial.before


@pytest.mark.slow
@pytest.mark.parametrize(("plant", "seed"), [("ur10", 2), ("tx40", 1)])
def test_a_robot_on_a_soft_stand(plant: str, seed: int) -> None:
    """Integrated with its stand by Pinocchio and MuJoCo: it is no elastic joint."""
    found = verdicts.judged(plant, seed, Fault.SWINGING_BASE)
    assert found.verdict != "trusted" and found.told[0][1]
