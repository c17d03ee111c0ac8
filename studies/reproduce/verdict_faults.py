"""Cases of the verdict study: recordings and a model with one fault of a realistic size, or with none."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from studies.reproduce.plants import Traces
from studies.reproduce.verdict_logs import LOG_FAULTS, disguised, logged_as, offset, swapped, turned
from studies.reproduce.verdict_plants import PLANTS, Log, RunName, recorded
from studies.reproduce.verdict_robots import ADDED_TORQUES, MODEL_FAULTS, ROBOT_FAULTS
from studies.reproduce.verdict_setup import Fault, Setup

__all__ = ["Case", "Fault", "make_case"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Case:
    """What a user has, and what the model should predict.

    Attributes
    ----------
    robot : Robot
        The user's model, with a-priori parameters.
    training, unseen : Recording
        The recording to identify from, and the one to assess with.
    words : str
        The fault with its size, for people.
    states : tuple of ndarray, shape (N, n)
        Positions, velocities and accelerations of the unseen motion in the user's coordinates, without noise.
    torque : ndarray, shape (N, n)
        True torques of these states, in the order of the user's joints; NaN where a joint hardly moves, because the
        direction of its friction is not known there.
    logged : ndarray, shape (N, n)
        The same torques as the log shows them, with its gains and signs.
    """

    plant: str
    seed: int
    fault: Fault
    words: str
    robot: Robot
    training: Recording
    unseen: Recording
    states: tuple[Array, Array, Array]
    torque: Array
    logged: Array


def make_case(plant: str, seed: int, fault: Fault = Fault.NONE) -> Case:
    """Integrate, log and spoil both runs of a plant; same arguments, same case."""
    setup = Setup(PLANTS[plant], seed, fault)
    robot, words = setup.plant.prior(seed), "good"
    moved = setup.good
    if fault in ROBOT_FAULTS:
        physical, words = ROBOT_FAULTS[fault](setup)
        moved = {run: setup.plant.moved(seed, run, **physical[run]) for run in ("training", "unseen")}
    if fault in ADDED_TORQUES:
        more, words = ADDED_TORQUES[fault](setup)
        moved = {run: replace(traces, torque=traces.torque + more(traces)) for run, traces in moved.items()}
    if fault in MODEL_FAULTS:
        robot, words = MODEL_FAULTS[fault](setup, robot)
    level = setup.sensing.level(moved["training"])
    logs: dict[RunName, Log] = {}
    for place, (run, traces) in enumerate(moved.items()):
        if fault is Fault.DRIVE_SATURATED:  # the torque that was asked for is logged
            effort = np.array(setup.plant.effort)
            traces = replace(traces, torque=np.clip(traces.wanted, -effort, effort))
        logs[run] = setup.sensing.seen(setup.sensing.log(traces), level, [seed, 3, place])
    if fault in LOG_FAULTS:
        spoil, words = LOG_FAULTS[fault](setup)
        logs = {run: spoil(log, run) for run, log in logs.items()}
    if fault is Fault.REUSED_RECORDING:
        logs["unseen"], words = disguised(setup, logs["training"])
    states, torque = _truth(setup, moved["unseen"])
    recordings = {run: recorded(setup.plant.truth, log, f"{run}{seed}") for run, log in logs.items()}
    return Case(
        plant=plant, seed=seed, fault=fault, words=words, robot=robot, training=recordings["training"],
        unseen=recordings["unseen"], states=states, torque=torque, logged=_logged(setup, torque),
    )  # fmt: skip


def _logged(setup: Setup, torque: Array) -> Array:
    """Torques (N, n) as the log shows them."""
    out = torque.copy()
    out[:, setup.joint] = logged_as(setup)[0](out[:, setup.joint])
    return out


def _truth(setup: Setup, traces: Traces) -> tuple[tuple[Array, Array, Array], Array]:
    """Every tenth state of the unseen motion in the coordinates of the user's log, and its torque.

    The first half second is left out, in which the controller finds its reference.
    """
    q, v, a, torque = (x[500::10].copy() for x in (traces.q, traces.v, traces.a, traces.torque))
    torque[np.abs(v) * setup.plant.drives.slope < 3.0] = np.nan
    if setup.fault is Fault.ENCODER_OFFSET:
        q[:, setup.turning_joint] += offset(setup)
    position, effort = turned(setup)
    for x, factor in ((q, position), (v, position), (a, position), (torque, effort)):
        x[:, setup.turning_joint] *= factor
    if setup.fault is Fault.DEGREES:
        for x in (q, v, a):
            x[:, setup.turning_joint] *= 180 / np.pi
    if setup.fault is Fault.JOINTS_SWAPPED:
        order = swapped(setup)
        q, v, a, torque = (x[:, order] for x in (q, v, a, torque))
    return (q, v, a), torque
