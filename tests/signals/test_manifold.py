"""Poses of a base: derivatives on the manifold as good as those of joints, filters that follow any number of turns."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

from dynid import Run, Signals
from dynid.errors import Mismatch, NotApplicable
from dynid.signals.filters import derivative, lowpass
from dynid.signals.manifold import angular_velocity, average_poses, base_state, resample_poses
from dynid.signals.settings import prepare
from tests.support.errors import expect_error
from tests.support.humanoids import from_euler

Array = NDArray[np.float64]
RATE, PERIOD = 200.0, 10.0


def tumbling(turns: int = 3, samples: int = 2000) -> tuple[Array, Array, Array, Array, Array]:
    """t, pose, twist, its rate and the angles: a base that turns several times while it sways, periodically."""
    t = np.arange(samples) * (PERIOD / samples)
    w = 2 * np.pi / PERIOD
    k = np.array([1, 2, 3, 2, 3, 4])
    size, phase = np.array([0.5, 0.4, 0.3, 0.5, 0.7, 0.9]), np.array([0.1, 2.0, 1.0, 0.5, 4.0, 1.0])
    inside = w * np.outer(t, k) + phase
    x, dx, ddx = size * np.sin(inside), size * k * w * np.cos(inside), -size * (k * w) ** 2 * np.sin(inside)
    x[:, 3] += turns * w * t
    dx[:, 3] += turns * w
    return t, *from_euler(x, dx, ddx), x


@pytest.mark.parametrize(("method", "order"), [("central", 2), ("central5", 4), ("savgol", 4)])
@pytest.mark.parametrize("turns", [0, 5])
def test_rotations_are_differentiated_to_the_order_of_joints(method: str, order: int, turns: int) -> None:
    """Halving the step divides the error as it does for joints, and the error is of the same size."""
    errors = []
    for samples in (500, 1000, 2000):
        _, pose, twist, _, x = tumbling(turns, samples)
        rate = samples / PERIOD
        rotation = Rotation.from_quat(pose[:, 3:])
        found = angular_velocity(rotation, rate, method)
        errors.append(np.abs(found - twist[:, 3:])[10:-10].max())
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.3)
    assert np.log2(errors[1] / errors[2]) == pytest.approx(order, abs=0.3)
    sway = x[:, 3:] - np.outer(np.arange(len(x)) / rate, [turns * 2 * np.pi / PERIOD, 0.0, 0.0])
    plain = np.abs(derivative(sway, rate, method) - derivative(sway, rate, "fourier"))[10:-10].max()
    # In the frame of the turning base the angles vary at their frequency plus that of the turns; the higher derivatives
    # grow accordingly.
    assert errors[2] < (1 + turns) ** order * 5 * plain


def test_rotation_about_one_axis_is_differentiated_as_its_angle() -> None:
    """Exactly the joint's scheme, over several turns, ends included."""
    t = np.arange(400) / RATE
    angle = 12.0 * t + 0.8 * np.sin(5 * t)
    axis = np.array([1.0, 2.0, -2.0]) / 3.0
    rotation = Rotation.from_rotvec(angle[:, None] * axis)
    for method in ("central", "central5", "savgol"):
        expected = derivative(angle[:, None], RATE, method) * axis
        np.testing.assert_allclose(angular_velocity(rotation, RATE, method), expected, atol=1e-10 * RATE)


def test_fourier_derivatives_of_a_motion_that_repeats_are_exact() -> None:
    _, pose, twist, rate, _ = tumbling()
    state = base_state(pose, RATE, None, method="fourier")
    # Rounding of 1e-15 times the highest frequency, twice.
    np.testing.assert_allclose(state.v, twist, atol=1e-10)
    np.testing.assert_allclose(state.a, rate, atol=1e-8)


def test_twist_and_its_rate_by_central_differences() -> None:
    """Position and rotation together, in body axes."""
    _, pose, twist, rate, _ = tumbling()
    state = base_state(pose, RATE, None)
    inner = slice(5, -5)
    # Second order: h^2 / 6 times the third derivative, about 10 / s^3 for velocities and 100 for accelerations.
    np.testing.assert_allclose(state.v[inner], twist[inner], atol=5e-4)
    np.testing.assert_allclose(state.a[inner], rate[inner], atol=5e-3)


def test_low_pass_about_one_axis_is_that_of_the_angle() -> None:
    """With noise and many turns."""
    rng = np.random.default_rng(0)
    t = np.arange(2000) / RATE
    angle = 9.0 * t + 0.5 * np.sin(4 * t) + 0.01 * rng.normal(size=t.size)
    pose = np.zeros((len(t), 7))
    pose[:, 3:] = Rotation.from_rotvec(angle[:, None] * [0, 0, 1.0]).as_quat()
    found = Rotation.from_quat(base_state(pose, RATE, 8.0).pose[:, 3:])
    expected = Rotation.from_rotvec(lowpass(angle[:, None], 8.0, RATE) * [0, 0, 1.0])
    inner = slice(100, -100)
    # What is taken back as drift passes through another, slower filter: a hundred-thousandth of the noise.
    assert (found.inv() * expected).magnitude()[inner].max() < 2e-5


@pytest.mark.parametrize("turns", [0, 4])
def test_low_pass_keeps_the_motion_and_takes_the_noise(turns: int) -> None:
    """Large turns about changing axes; noise of the result is that of filtered joints, at any time of the run."""
    rng = np.random.default_rng(1)
    _, pose, twist, _, _ = tumbling(turns)
    truth = Rotation.from_quat(pose[:, 3:])
    inner = slice(100, -100)
    clean = Rotation.from_quat(base_state(pose, RATE, 8.0).pose[:, 3:])
    assert (truth.inv() * clean).magnitude()[inner].max() < 2e-5
    shake = 0.005 * rng.normal(size=(len(pose), 3))
    noisy = pose.copy()
    noisy[:, 3:] = (truth * Rotation.from_rotvec(shake)).as_quat()
    state = base_state(noisy, RATE, 8.0)
    left = (truth.inv() * Rotation.from_quat(state.pose[:, 3:])).as_rotvec()
    expected = lowpass(shake, 8.0, RATE)
    assert left[inner].std() == pytest.approx(expected[inner].std(), rel=0.05)
    assert left[-500:-100].std() < 1.3 * left[100:500].std()
    velocity_noise = (state.v - twist)[inner, 3:].std()
    assert velocity_noise == pytest.approx(derivative(expected, RATE)[inner].std(), rel=0.1)


def test_uneven_clocks_are_resampled_on_the_manifold() -> None:
    rng = np.random.default_rng(2)
    t, pose, _, _, _ = tumbling()
    uneven = np.sort(np.concatenate([t[:1], rng.choice(np.arange(1, 1999), 1500, replace=False) / RATE, t[-1:]]))
    rows = np.rint(uneven * RATE).astype(int)
    at = t[(t >= uneven[2]) & (t <= uneven[-3])]
    found = resample_poses(uneven, pose[rows], at)
    truth = pose[np.rint(at * RATE).astype(int)]
    turned = (Rotation.from_quat(found[:, 3:]).inv() * Rotation.from_quat(truth[:, 3:])).magnitude()
    # Gaps of several steps: Akima curves are of third order.
    assert turned.max() < 2e-4 and np.abs(found[:, :3] - truth[:, :3]).max() < 1e-4
    np.testing.assert_allclose(resample_poses(uneven, pose[rows], uneven)[:, :3], pose[rows][:, :3], atol=1e-12)


def test_periods_are_averaged_on_the_manifold() -> None:
    rng = np.random.default_rng(3)
    _, pose, _, _, _ = tumbling(turns=2)
    many = np.tile(pose, (25, 1))
    turns = Rotation.from_quat(many[:, 3:]) * Rotation.from_rotvec(0.01 * rng.normal(size=(len(many), 3)))
    many[:, 3:] = turns.as_quat()
    mean = average_poses(many, len(pose))
    left = (Rotation.from_quat(pose[:, 3:]).inv() * Rotation.from_quat(mean[:, 3:])).as_rotvec()
    assert left.std() == pytest.approx(0.01 / 5, rel=0.1)
    with expect_error(Mismatch, "period"):
        average_poses(np.vstack([pose, np.roll(pose, 500, axis=0)]), len(pose))


def test_runs_are_cleaned_with_their_base_and_wrenches() -> None:
    """Resampled, filtered, delayed and trimmed alike; a measured twist is used instead of a derivative."""
    t, pose, twist, rate, _ = tumbling()
    q = np.sin(np.outer(t, [1.0, 2.0]))
    force = np.sin(np.outer(t, np.ones(6)))
    run = Run(t, q, base=pose, wrench=np.cos(force), wrenches={"foot": force})
    motion = prepare(run, Signals(cutoff=20.0, wrench_delay=0.05, torque_cutoff="same"))
    assert motion.base is not None and len(motion.base.v) == len(motion.q) == len(motion.wrenches["foot"])
    at = slice(200, 1500)
    later = np.sin(motion.t + 0.05)
    np.testing.assert_allclose(motion.wrenches["foot"][at, 0], later[at], atol=1e-4)
    rows = np.rint(motion.t * RATE).astype(int)
    np.testing.assert_allclose(motion.base.a[at], rate[rows][at], atol=2e-2)
    slow = prepare(run, Signals(cutoff=20.0, resample=100.0))
    rows = np.rint(slow.t * RATE).astype(int)
    np.testing.assert_allclose(slow.base.v[50:-50], twist[rows][50:-50], atol=2e-3)  # type: ignore[union-attr]
    gyro = prepare(replace(run, base_v=twist), Signals(cutoff=None, derivative="fourier", trim=0.0))
    np.testing.assert_array_equal(gyro.base.v, twist)  # type: ignore[union-attr]
    np.testing.assert_allclose(gyro.base.a, rate, atol=1e-8)  # type: ignore[union-attr]


def test_jumps_of_the_orientation_are_refused() -> None:
    t, pose, _, _, _ = tumbling()
    pose = pose.copy()
    pose[700, 3:] = (Rotation.from_quat(pose[700, 3:]) * Rotation.from_rotvec([2.0, 0, 0])).as_quat()
    with expect_error(NotApplicable):
        prepare(Run(t, np.zeros((len(t), 1)), base=pose), Signals(cutoff=10.0))
    # A running median takes a single one out.
    prepare(Run(t, np.zeros((len(t), 1)), base=pose), Signals(cutoff=10.0, median=3))
