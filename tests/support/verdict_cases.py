"""Simulated recordings, good and spoiled, of which it is known whether their estimates deserve trust."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from numpy.typing import NDArray

import dynid
import dynid.simulation
from dynid.excitation.basis import random_fourier

Array = NDArray[np.float64]

ROBOTS = ("tx40", "rv2sq", "iiwa14", "puma560", "twolink")
SPOILS = ("sign", "delay", "payload", "poor excitation", "too short", "infeasible")
_CONTROL, _RATE, _PERIOD = 1000.0, 500.0, 10.0
_COUNTS = 2.0**20  # encoder counts a turn of the joint: 2^13 on a motor behind a gear of 128
_TORQUE_NOISE = 0.02  # of each joint's largest torque
_MOTIONS = 10


@dataclass(frozen=True, eq=False)
class Made:
    """A robot as its data sheet has it, the recording it is identified from, and one for judging."""

    prior: dynid.Robot
    train: dynid.Recording
    test: dynid.Recording
    method: str


def make(name: str, seed: int, spoil: str | None = None) -> Made:
    """A robot that moves under its controller, seen through encoders and noisy torques; `spoil` names what is wrong."""
    rng = np.random.default_rng([seed, 7])
    truth = robot_of(name)
    prior = guessed(truth, rng)
    method = "feasible"
    duration = 2 * _PERIOD
    joint = int(rng.integers(truth.n))
    carried = truth
    if spoil == "payload":
        heaviest = max(link.inertia[0] for link in truth.links)
        mass = heaviest * rng.uniform(0.03, 0.3)
        arm = rng.uniform(0.03, 0.1, 3) * rng.choice([-1, 1], 3)
        body = dynid.inertia.inertia_from_com(mass, arm, mass * 0.03**2 * np.eye(3))
        carried = truth.with_payload(truth.links[-1].name, body)
    shrunk = rng.uniform(0.02, 0.05) if spoil == "poor excitation" else 1.0
    short = rng.uniform(2.4, 3.2) if spoil == "too short" else duration
    noise = _TORQUE_NOISE * np.abs(dynid.inverse_dynamics(truth, *best_motion(truth, 0, 1.0))).max(axis=0)
    train = recorded(truth, best_motion(truth, _MOTIONS * (2 * seed), shrunk), short, noise, seed)
    # A poor motion is judged by an equally poor one in half of the cases, where errors alone cannot show it.
    again = shrunk if seed % 4 < 2 else 1.0
    test = recorded(carried, best_motion(truth, _MOTIONS * (2 * seed + 1), again), duration, noise, seed + 1)
    if spoil == "sign":
        train, test = (changed(r, joint, lambda x: -x) for r in (train, test))
    if spoil == "delay":
        steps = int(rng.integers(5, 16))  # 10 to 30 ms
        train, test = (late(r, steps) for r in (train, test))
    if spoil == "infeasible":
        method = "wls"
        # A drive that reports too little by a half, as with a wrong gear ratio or gain, makes bodies that cannot be.
        train, test = (changed(r, joint, lambda x: 0.3 * x) for r in (train, test))
    return Made(prior, train, test, method)


@cache
def robot_of(name: str) -> dynid.Robot:
    """A built-in robot with symmetric friction."""
    return dynid.load_robot(name, friction="viscous+coulomb" if name in ("puma560", "twolink") else None)


@cache
def base_of(robot: dynid.Robot) -> dynid.parameters.BaseParameters:
    return dynid.base_parameters(robot)


def guessed(truth: dynid.Robot, rng: np.random.Generator) -> dynid.Robot:
    """What a data sheet has: every body, friction and rotor inertia off by up to a fifth."""
    values = truth.parameters.copy()
    owners = [p.owner if p.inertial else p.name for p in truth.layout]
    factor = {owner: rng.uniform(0.8, 1.2) for owner in dict.fromkeys(owners)}
    return truth.with_parameters(values * np.array([factor[o] for o in owners]))


@cache
def best_motion(robot: dynid.Robot, first: int, share: float) -> tuple[Array, Array, Array]:
    """Parameters of the best conditioned of some random periodic motions, shrunk about its middle to a share."""
    limits = list(robot.limits.values())
    lower, upper = np.array([x.lower for x in limits]), np.array([x.upper for x in limits])
    speed = np.array([x.velocity for x in limits])
    base = base_of(robot)
    t = np.arange(0.0, _PERIOD, 0.1)

    def condition(candidate: int) -> float:
        w = base.regressor(*random_fourier(lower, upper, speed, _PERIOD, t, candidate)).reshape(-1, base.count)
        return float(np.linalg.cond(w / np.linalg.norm(w, axis=0)))

    best = min(range(first, first + _MOTIONS), key=condition)
    q, v, a = random_fourier(lower, upper, speed, _PERIOD, np.arange(0.0, 2 * _PERIOD, 1 / _CONTROL), best)
    middle = q.mean(axis=0)
    return middle + share * (q - middle), share * v, share * a


def recorded(
    robot: dynid.Robot, motion: tuple[Array, Array, Array], duration: float, noise: Array, seed: int
) -> dynid.Recording:
    """The motion under a controller, as its sensors see it."""
    q = motion[0][: round(duration * _CONTROL)]
    law = dynid.controllers.computed_torque(_CONTROL, robot, np.full(robot.n, 60.0**2), np.full(robot.n, 120.0))
    sensors = dynid.simulation.Sensors(counts=_COUNTS, torque_noise=noise)
    done = dynid.simulate(robot, dynid.ClosedLoop(controller=law, sensors=sensors), q, rate=_RATE, seed=seed)
    assert done.completed, done.outcome
    run = done.run(f"motion{seed}")
    return dynid.Recording(robot.coordinates, (dynid.Run(run.t, run.q, torque=run.torque, name=run.name),))


def changed(recording: dynid.Recording, joint: int, change: Callable[[Array], Array]) -> dynid.Recording:
    """The recording with another torque of one joint."""
    (run,) = recording.runs
    assert run.torque is not None
    torque = run.torque.copy()
    torque[:, joint] = change(torque[:, joint])
    return dynid.Recording(recording.joints, (replace(run, torque=torque),))


def late(recording: dynid.Recording, steps: int) -> dynid.Recording:
    """The recording with torques that come some samples later."""
    (run,) = recording.runs
    assert run.torque is not None
    run = dynid.Run(run.t[steps:], run.q[steps:], torque=run.torque[:-steps], name=run.name)
    return dynid.Recording(recording.joints, (run,))


def judged(made: Made) -> dynid.Assessment:
    """Identify, validate and judge as a user would."""
    estimate = dynid.identify(made.prior, made.train, made.method)
    return dynid.assess(estimate, made.test, recording=made.train)
