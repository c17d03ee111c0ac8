"""A lift and an arm of seven joints on a force plate: recorded motion, simulated wrench, known truth."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

import dynid
from dynid import Recording, Robot, Run, Signals
from dynid.recording import WrenchSensor
from dynid.signals.settings import prepare

pytestmark = pytest.mark.real

Array = NDArray[np.float64]

TIAGO = ("torso_lift_joint", *(f"arm_{k}_joint" for k in range(1, 8)))
# Recorded positions hold nothing that matters above this.
SMOOTH = Signals(cutoff=2.0, decimate=(), trim=1.0, min_velocity=0.0)
CLEAN = Signals(cutoff=None, decimate=(), trim=1.0, min_velocity=0.0)


@pytest.fixture(scope="module")
def lift(data: Path) -> tuple[Robot, Array, Array]:
    """The robot on a plate, and the time and smoothed positions of its recording."""
    folder = data / "tiago-figaroh"
    if not folder.is_dir():
        pytest.skip("no data of the lift with an arm")
    whole = dynid.load_robot(folder / "tiago_48_schunk.urdf")
    robot = whole.locked({name: 0.0 for name in whole.coordinates if name not in TIAGO})
    source = {"q": folder / "tiago_position.csv.gz"}
    run = prepare(dynid.load_recording(source, robot, rows=(920, 6791)).runs[0], SMOOTH)
    return robot.with_base("instrumented"), run.t, run.q


def loads(robot: Robot, t: Array, q: Array) -> Array:
    """Wrench on the base and joint torques (N, 14) along a motion, by the derivatives that cleaning takes."""
    motion = prepare(Run(t, q), Signals(cutoff=None, decimate=(), trim=0.0, min_velocity=0.0))
    return dynid.inverse_dynamics(robot, motion.q, motion.v, motion.a)


def on_a_plate(robot: Robot, t: Array, q: Array, noise: float) -> Recording:
    """A plate under the robot, a quarter of a metre below its base."""
    load = loads(robot, t, q)
    place = np.eye(4)
    place[:3, 3] = [0.1, -0.05, -0.25]
    force, moment = load[:, :3], load[:, 3:6] - np.cross(place[:3, 3], load[:, :3])
    plate = np.hstack([force, moment]) + noise * np.random.default_rng(0).normal(size=(len(t), 6))
    run = Run(
        t, q, torque=load[:, 6:], wrenches={"plate": plate}, sensors={"plate": WrenchSensor("base", placement=place)}
    )
    return Recording(robot.coordinates, (run,))


def test_wrench_and_torques_agree_without_noise(lift: tuple[Robot, Array, Array]) -> None:
    """What both see, they see alike; the wrench sees all of the arm's 7 a turning joint, and the whole body."""
    robot, t, q = lift
    recording = on_a_plate(robot, t, q, 0.0)
    found = {c: dynid.identify(robot, recording, "ols", signals=CLEAN, channels=c) for c in ("wrench", "torque")}
    for estimate in found.values():
        truth = estimate.base.matrix @ robot.parameters
        assert np.abs(estimate.beta - truth).max() < 1e-6 * np.abs(truth).max()
    sets = dynid.identification.sensor_sets(robot)
    assert len(found["wrench"].beta) == sets.counts["wrench"] > sets.counts["torque"] == len(found["torque"].beta)
    # Rows that both span, in standard parameters.
    a, b = (found[c].base.matrix for c in ("wrench", "torque"))
    shared = scipy.linalg.null_space(np.hstack([a.T, -b.T]), rcond=1e-9)
    left, right = shared[: len(a)].T @ found["wrench"].beta, shared[len(a) :].T @ found["torque"].beta
    assert shared.shape[1] > 40
    assert np.abs(left - right).max() < 1e-6 * np.abs(found["wrench"].beta).max()


def test_a_plate_under_the_robot(lift: tuple[Robot, Array, Array]) -> None:
    """A newton of noise: base parameters within three deviations at the nominal rate, and a possible robot."""
    robot, t, q = lift
    recording = on_a_plate(robot, t, q, 1.0)
    estimate = dynid.identify(robot, recording, "wls", signals=CLEAN, channels="wrench", noise_model="white")
    off = (estimate.beta - estimate.base.matrix @ robot.parameters) / estimate.std
    assert np.sum(np.abs(off) > 3) <= scipy.stats.binom.ppf(0.999, len(off), 0.0027)
    assert 0.7 < np.sqrt(np.mean(off**2)) < 1.3
    # The robot's own file is the prior; from a prior that is a fifth off, all links come out possible.
    away = robot.with_parameters(1.2 * robot.parameters)
    found = dynid.identify(away, recording, "feasible", signals=CLEAN, channels="wrench").standard
    assert found is not None
    assert dynid.feasibility.feasible_set(away, "full").violations(found, 1e-6) == []
    half = len(t) // 2
    true = loads(robot, t[half:], q[half:])[:, :6]
    ours = loads(robot.with_parameters(found), t[half:], q[half:])[:, :6]
    assert np.all(np.sqrt(np.mean((ours - true) ** 2, axis=0)) < 0.3)
