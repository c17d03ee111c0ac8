"""A person and a humanoid whose truth is known, seen by markers with 1 mm and a plate with 1 N of noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray
from scipy.spatial.transform import Rotation

import dynid
from dynid import Recording, Robot, Run, Signals
from dynid.excitation.basis import random_fourier
from dynid.recording import WrenchSensor
from dynid.robot.inertia import inertia_from_com, inertia_to_com
from tests.support.humanoids import Dance, from_euler, humanoid

Array = NDArray[np.float64]

MARKER, PLATE = 1e-3, 1.0  # m; N, and N m of moments about the world's origin
RATE, SECONDS, RUNS = 100.0, 10.0, 6
# The cut-off is found from the data; about 2 Hz, as motion is below 0.5 Hz under noise that is differentiated twice.
SIGNALS = Signals(trim=0.5, min_velocity=0.0)


def away_from(table: Robot, rng: np.random.Generator) -> Robot:
    """Masses and radii of gyration up to a fifth off, centres by a seventh and a centimetre."""

    def moved(inertia: Array) -> Array:
        mass, centre, tensor = inertia_to_com(inertia)
        k = rng.uniform(0.8, 1.2)
        shifted = centre * rng.uniform(0.85, 1.15) + 0.01 * rng.normal(size=3)
        return inertia_from_com(k * mass, shifted, k * rng.uniform(0.8, 1.2) * tensor)

    links = (x if x.virtual else replace(x, inertia=moved(x.inertia)) for x in table.links)
    return replace(table, links=tuple(links))


def moving(robot: Robot, seed: int) -> Dance:
    t = np.arange(round(SECONDS * RATE)) / RATE
    size, six = np.ones(robot.n), np.ones(6)
    q, v, a = random_fourier(-0.7 * size, 0.7 * size, 4.0 * size, SECONDS, t, seed)
    pose, twist, rate = from_euler(*random_fourier(-0.3 * six, 0.3 * six, 2.0 * six, SECONDS, t, seed + 100))
    return Dance(t, np.hstack([pose, q]), np.hstack([twist, v]), np.hstack([rate, a]))


def pose_covariance(robot: Robot, rng: np.random.Generator) -> Array:
    """Covariance (nv, nv) of poses from four markers on every body, within ten centimetres of its joint."""
    bodies = {x.name: rng.uniform(-0.1, 0.1, (4, 3)) for x in robot.links if not x.virtual}
    angles = rng.uniform(-0.3, 0.3, robot.n)

    def seen(change: Array) -> Array:
        turn = Rotation.from_rotvec(change[:, 3:6]).as_quat()
        q = np.hstack([change[:, :3], turn, angles + change[:, 6:]])
        places = {name: dynid.dynamics.frame_placement(robot, q, name) for name in bodies}
        spots = [p[:, :3, :3] @ bodies[name].T + p[:, :3, 3:] for name, p in places.items()]
        return np.concatenate(spots, axis=2).reshape(len(q), -1)

    step = 1e-5 * np.eye(robot.nv)
    J = (seen(step) - seen(-step)) / 2e-5
    return np.asarray(MARKER**2 * np.linalg.inv(J @ J.T))


def recorded(truth: Robot, motion: Dance, covariance: Array, rng: np.random.Generator) -> Run:
    """What cameras and plate tell of a motion."""
    load = dynid.inverse_dynamics(truth, motion.q, motion.v, motion.a)
    turn = Rotation.from_quat(motion.q[:, 3:7])
    force = turn.apply(load[:, :3])
    wrench = np.hstack([force, turn.apply(load[:, 3:6]) + np.cross(motion.q[:, :3], force)])
    off = rng.multivariate_normal(np.zeros(truth.nv), covariance, size=len(motion.t))
    base = np.hstack([motion.q[:, :3] + off[:, :3], (turn * Rotation.from_rotvec(off[:, 3:6])).as_quat()])
    plate = wrench + PLATE * rng.normal(size=wrench.shape)
    sensors = {"plate": WrenchSensor("world")}
    return Run(motion.t, motion.q[:, 7:] + off[:, 6:], base=base, wrenches={"plate": plate}, sensors=sensors)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["human", "humanoid"])
def test_base_parameters_and_centre_of_mass(kind: str) -> None:
    """Base parameters lie within three deviations of the truth as often as they should; the centre of mass is found."""
    rng = np.random.default_rng(3)
    table = dynid.human.human_model("male", 1.8, 80.0) if kind == "human" else humanoid(1)
    truth, covariance = away_from(table, rng), pose_covariance(table, rng)
    runs = tuple(recorded(truth, moving(table, seed), covariance, rng) for seed in range(RUNS))
    seen = dynid.identification.observe(table, Recording(table.coordinates, runs), signals=SIGNALS, channels="wrench")
    plain = dynid.identify(table, seen, "wls")
    off = (plain.beta - plain.base.matrix @ truth.parameters) / plain.std
    outside = int(np.sum(np.abs(off) > 3))
    # So many leave three deviations once in a thousand times if each does with the normal law's 0.27 %.
    assert outside <= scipy.stats.binom.ppf(0.999, len(off), 0.0027), (outside, np.abs(off).max())
    # Nor are deviations made large to hide errors.
    assert 0.5 < np.sqrt(np.mean(off**2)) < 1.3

    found = dynid.identify(table, seen, "feasible").standard
    assert found is not None
    motion = moving(table, 77)
    where = dynid.dynamics.center_of_mass(truth, motion.q)

    def miss(parameters: Array) -> float:
        return float(np.linalg.norm(dynid.dynamics.center_of_mass(table, motion.q, parameters) - where, axis=1).mean())

    assert miss(found) < miss(table.parameters) / 3
    assert miss(found) < 1e-3
