"""An arm that MuJoCo integrates, one joint of which runs against the stop of MuJoCo's joint limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid import Recording, Robot, Run
from dynid.excitation.basis import random_fourier
from dynid.export.mjcf import write_mjcf
from studies.reproduce import plants
from studies.reproduce.plants import Drives, integrate, with_drive_values

Array = NDArray[np.float64]

RATE = 500.0
DURATION = 12.0
DRIVES = Drives(
    rotor_inertia=np.array([0.2, 0.05]), viscous=np.array([1.0, 0.3]), coulomb=np.array([1.5, 0.5]), slope=50.0
)


def arm() -> Robot:
    """The robot of the plant, with its true parameters."""
    bodies = replace(dynid.load_robot("box2"), drives=(), transmission=None)
    return with_drive_values(bodies.with_drives("viscous+coulomb", rotor_inertia=True), DRIVES)


def stopped_run(seed: int, joint: int | None, share: float = 0.03, hardness: float = 0.02) -> tuple[Recording, float]:
    """A recording of the arm under PD control, and the position of the stop.

    Parameters
    ----------
    seed : int
        Seed of motion and noise.
    joint : int or None
        Joint that runs against a stop at its upper end; None for no stop.
    share : float
        Share of the wanted motion that lies beyond the stop.
    hardness : float
        Time constant of the stop in s.
    """
    robot = arm()
    t = np.arange(0.0, DURATION, 1 / RATE)
    wide = np.full(2, 1.5)
    q, v, _ = random_fourier(-wide, wide, np.full(2, 4.0), DURATION, t, seed, 8)
    stop = np.inf if joint is None else float(np.quantile(q[:, joint], 1 - share))
    plants.ENGINES["MuJoCo with a stop"] = lambda body, armature: _forward(body, armature, joint, stop, hardness)

    def control(k: int, at: Array, velocity: Array) -> Array:
        return np.array([400.0, 100.0]) * (q[k] - at) + np.array([40.0, 8.0]) * (v[k] - velocity)

    drives = replace(DRIVES, limit=np.array([150.0, 50.0]))
    traces = integrate(robot, "MuJoCo with a stop", drives, control, (q[0], v[0]), len(t), 1 / RATE)
    rng = np.random.default_rng([seed, 5])
    torque = traces.torque.copy()
    torque[1:] = 0.5 * (traces.torque[1:] + traces.torque[:-1])
    torque += 0.01 * torque.std(axis=0) * rng.standard_normal(torque.shape)
    count = 2 * np.pi / 2**17
    run = Run(t, count * np.round(traces.q / count), torque=torque, name="stop")
    return Recording(robot.coordinates, (run,)), stop


def _forward(
    robot: Robot, armature: Array, joint: int | None, stop: float, hardness: float
) -> Callable[[Array, Array, Array], Array]:
    """Forward dynamics of MuJoCo with the limit of one joint."""
    import mujoco

    with TemporaryDirectory() as folder:
        path = Path(folder) / "arm.xml"
        write_mjcf(replace(robot, drives=()), path)
        model = mujoco.MjModel.from_xml_path(str(path))
    model.geom_contype[:] = model.geom_conaffinity[:] = 0
    model.jnt_limited[:] = 0
    if joint is not None:
        model.jnt_limited[joint] = 1
        model.jnt_range[joint] = (-100.0, stop)
        model.jnt_solref[joint] = (hardness, 1.0)
    model.dof_armature[:] = armature
    data = mujoco.MjData(model)

    def forward(q: Array, v: Array, torque: Array) -> Array:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, torque
        mujoco.mj_forward(model, data)
        return np.array(data.qacc)

    return forward
