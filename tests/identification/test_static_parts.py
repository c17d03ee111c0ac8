"""Masses and first moments from postures, inertias from motions, against one least squares over everything."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
import dynid.recording
from dynid import Recording, Robot, Run, Signals
from dynid.errors import InvalidValue, Mismatch, MissingData
from dynid.recording import WrenchSensor
from tests.support.errors import expect_error
from tests.support.humanoids import EXACT, dance, humanoid, standing

Array = NDArray[np.float64]

NOISE = np.array([2.0, 2.0, 3.0, 0.5, 0.4, 0.6])
STILL = Signals(cutoff=None, trim=0.0, resample=None, decimate=())


def body() -> Robot:
    """A trunk with a head and an arm, on a plate."""
    return humanoid(2, base="instrumented", limbs="HA")


def postures(robot: Robot, seed: int, noise: Array | float = NOISE, count: int = 40, samples: int = 40) -> Recording:
    """Runs that stand still, one a posture, with the wrench at the base."""
    rng = np.random.default_rng(seed)
    t = np.arange(samples) * 0.01
    runs = []
    for k in range(count):
        q = np.tile(rng.uniform(-1.5, 1.5, robot.n), (samples, 1))
        load = dynid.inverse_dynamics(robot, q, 0 * q, 0 * q)[:, :6]
        runs.append(Run(t, q, wrench=load + noise * rng.normal(size=(samples, 6)), name=f"posture{k}"))
    return Recording(robot.coordinates, tuple(runs))


def motion(robot: Robot, seed: int, noise: Array | float = NOISE) -> Recording:
    moved = dance(robot, seed=7)
    load = dynid.inverse_dynamics(robot, moved.q, moved.v, moved.a)[:, :6]
    load += noise * np.random.default_rng(seed).normal(size=load.shape)
    return Recording(robot.coordinates, (Run(moved.t, moved.q, wrench=load),))


def test_at_rest_only_masses_and_first_moments_show() -> None:
    """Their number is the rank of the regressor over many postures, for wrench and torques."""
    for robot, channels in ((body(), "wrench"), (body(), "torque"), (humanoid(0), "wrench")):
        base = dynid.base_parameters(robot, channels=channels, still=True)
        assert {robot.layout[j].symbol for j in base.kept} <= {"m", "mx", "my", "mz"}
        q = dance(robot, samples=400).q
        zero = np.zeros((len(q), robot.nv))
        Y = base.regressor(q, zero, zero)
        assert np.linalg.matrix_rank(Y.reshape(-1, base.count), tol=1e-6) == base.count
        Y = dynid.regressor(robot, q, zero, zero)[:, [robot.channels.index(c) for c in base.channels]]
        np.testing.assert_allclose(Y @ robot.parameters, base.regressor(q, zero, zero) @ base.values(), atol=1e-8)


def test_postures_then_motion_is_one_least_squares() -> None:
    """All rows, each over its noise, in one lstsq: values and covariance."""
    robot = body()
    static = dynid.identification.static_parameters(robot, postures(robot, 0), signals=STILL)
    assert static.postures == 40
    seen = dynid.identification.observe(robot, motion(robot, 1), signals=EXACT)
    found = dynid.identification.identify_in_steps(robot, static, seen)
    rows, values = [], []
    for recording, noise, still in ((postures(robot, 0), static.noise, True), (motion(robot, 1), found.noise, False)):
        for run in recording.runs:
            moved = dance(robot, seed=7)
            v, a = (0 * run.q, 0 * run.q) if still else (moved.v, moved.a)
            W = found.base.regressor(run.q, v, a) / noise[:, None]
            rows.append(W.reshape(-1, found.base.count))
            values.append((run.wrench / noise).ravel())
    W, y = np.vstack(rows), np.concatenate(values)
    expected = np.linalg.lstsq(W, y, rcond=None)[0]
    np.testing.assert_allclose(found.beta, expected, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(W.T @ W), rtol=1e-5, atol=1e-10)
    alone = dynid.identify(robot, seen, "wls")
    assert np.all(found.std < 1.02 * alone.std) and np.median(found.std / alone.std) < 0.95


@pytest.mark.slow
def test_held_combinations_stay_and_deviations_are_right() -> None:
    """What postures told is not moved; over many draws errors are as large as their deviations say."""
    robot = body()
    base = dynid.base_parameters(robot, channels="wrench")
    errors: dict[bool, list[Array]] = {True: [], False: []}
    for seed in range(25):
        static = dynid.identification.static_parameters(robot, postures(robot, seed, samples=35), signals=STILL)
        seen = dynid.identification.observe(robot, motion(robot, 100 + seed), signals=EXACT, base=base)
        for held, kept in errors.items():
            found = dynid.identification.identify_in_steps(robot, static, seen, held=held)
            kept.append((found.beta - found.base.values()) / found.std)
            if held:
                np.testing.assert_allclose(static.in_motion(found.base) @ found.beta, static.beta, atol=1e-10)
    for kept in errors.values():
        # Mean of 25 draws of some 60 squares that are correlated: within a few percent of one.
        assert 0.85 < np.mean(np.square(kept)) < 1.15


def test_centre_of_pressure_and_weight_do_as_a_plate() -> None:
    """A floating body on the ground, noise-free: the same combinations as from the whole wrench."""
    robot = humanoid(0, limbs="LA")
    rng = np.random.default_rng(3)
    t = np.arange(35) * 0.01
    weight = 9.81 * dynid.dynamics.total_mass(robot)
    runs = []
    for _ in range(30):
        joints = np.tile(rng.uniform(-1, 1, robot.n), (35, 1))
        pose = dynid.recording.base_from_foot(robot, joints, "footL").pose
        centre = dynid.dynamics.center_of_mass(robot, np.hstack([pose, joints]))
        plate = dynid.identification.pressure_wrench(centre[:, :2], weight)
        runs.append(Run(t, joints, base=pose, wrenches={"plate": plate}, sensors={"plate": WrenchSensor("world")}))
    static = dynid.identification.static_parameters(
        robot, Recording(robot.coordinates, tuple(runs)), signals=STILL, channels="wrench"
    )
    # The foot always stands flat: how high its mass is shows in no posture.
    assert static.unseen == ("mz_legL_link6",)
    np.testing.assert_allclose(static.beta, static.base.values(), rtol=1e-6, atol=1e-8)


def test_moving_samples_do_not_count() -> None:
    """A run that moves between two postures gives rows of its still parts alone; one that never rests none."""
    robot = body()
    t = np.arange(600) * 0.01
    bump = np.clip((t - 2.0) / 2.0, 0.0, 1.0)
    way = bump**3 * (10 - 15 * bump + 6 * bump**2)
    q = np.outer(way, np.linspace(0.3, 1.0, robot.n))
    a = np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    load = dynid.inverse_dynamics(robot, q, np.gradient(q, t, axis=0), a)[:, :6]
    still = postures(robot, 0, noise=0.0)
    both = still + Recording(robot.coordinates, (Run(t, q, wrench=load),))
    static = dynid.identification.static_parameters(robot, both, signals=STILL)
    assert static.postures == 42 and 3.9 < static.seconds - 40 * 0.4 < 4.4
    with expect_error(MissingData, "max_velocity"):
        dynid.identification.static_parameters(robot, motion(robot, 0), signals=EXACT)


def test_parts_that_do_not_belong_together_are_refused() -> None:
    """Another robot, and torques that do not show what the wrench showed."""
    robot = body()
    static = dynid.identification.static_parameters(robot, postures(robot, 0), signals=STILL)
    other = humanoid(2, base="instrumented", limbs="HB")
    with expect_error(Mismatch, "static"):
        dynid.identification.identify_in_steps(other, static, motion(other, 0), signals=EXACT)
    moved = dance(robot, seed=7)
    with expect_error(Mismatch, "channels"):
        dynid.identification.identify_in_steps(
            robot, static, standing(robot, moved, {}), signals=EXACT, channels="torque"
        )
    with expect_error(InvalidValue, "weight"):
        dynid.identification.pressure_wrench([[0.0, 0.0]], 0.0)
