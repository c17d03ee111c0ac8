"""From markers and a force plate to parameters: all conventions on the way have to agree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import dynid
from tests.support.capture_files import puppet, puppet_markers, seen_markers

Array = NDArray[np.float64]


def _swing(t: Array) -> Array:
    """A motion of the puppet at any times: three waves a coordinate, up to 1 Hz."""
    rng = np.random.default_rng(5)
    frequency, phase, size = (rng.uniform(a, b, (14, 3)) for a, b in ((0.2, 1.0), (0, 6), (0.05, 0.25)))
    x = (size * np.sin(2 * np.pi * frequency * t[:, None, None] + phase)).sum(axis=2)
    base = 0.3 * x[:, :3] + np.array([0.4, -0.2, 1.0])
    return np.hstack([base, Rotation.from_rotvec(x[:, 3:6]).as_quat(), x[:, 6:]])


def _speed(t: Array, step: float = 1e-4) -> Array:
    before, here, after = (_swing(t + x) for x in (-step, 0.0, step))
    turn = Rotation.from_quat(here[:, 3:7])
    spin = (Rotation.from_quat(before[:, 3:7]).inv() * Rotation.from_quat(after[:, 3:7])).as_rotvec()
    linear = turn.inv().apply(after[:, :3] - before[:, :3])
    return np.hstack([linear, spin, after[:, 7:] - before[:, 7:]]) / (2 * step)


@pytest.mark.slow
def test_a_body_on_a_plate_is_identified_from_markers() -> None:
    """Markers with 1 mm, a turned and shifted plate with 1 N of noise: the parameters come back."""
    rng = np.random.default_rng(0)
    robot, attachments = puppet(), puppet_markers(rng, 4)
    t, fast = np.arange(1500) / 100, np.arange(15000) / 1000
    acceleration = (_speed(fast + 1e-3) - _speed(fast - 1e-3)) / 2e-3
    # The plate carries the body: what moves the base is its reaction.
    q = _swing(fast)
    base = dynid.inverse_dynamics(robot, q, _speed(fast), acceleration)[:, :6]
    turn = Rotation.from_quat(q[:, 3:7])
    force = turn.apply(base[:, :3])
    centre, axes = np.array([0.5, -0.1, 0.0]), Rotation.from_euler("xz", [np.pi, 0.3])
    moment = turn.apply(base[:, 3:]) + np.cross(q[:, :3] - centre, force)
    wrench = np.hstack([axes.inv().apply(force), axes.inv().apply(moment)])
    wrench += rng.normal(size=wrench.shape) * [1, 1, 1, 0.3, 0.3, 0.3]
    place = np.eye(4)
    place[:3, :3], place[:3, 3] = axes.as_matrix(), centre
    capture = seen_markers(robot, _swing(t), attachments)
    noise = 1e-3 * rng.normal(size=capture.positions.shape)
    plate = dynid.mocap.Plate("plate1", 1000.0, wrench, place)
    capture = replace(capture, positions=capture.positions + noise, plates=(plate,))

    motion = dynid.mocap.inverse_kinematics(robot, capture, attachments)
    estimate = dynid.identify(robot, motion.recording(capture), method="wls")
    truth = estimate.base.matrix @ robot.parameters
    error = np.linalg.norm(estimate.beta - truth) / np.linalg.norm(truth)
    # A sign, frame or clock that is wrong anywhere costs tens of percent; noise of the accelerations leaves one or two.
    assert error < 0.05
    total = sum(link.inertia[0] for link in robot.links)
    mean = capture.wrench()[:, 2].mean() / 9.81
    assert abs(mean - total) < 0.02 * total
    assert not [f for f in capture.findings(total) if f.severity == "error"]
