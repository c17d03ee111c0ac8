"""Faults of the model and of the robot itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.dynamics.functions import mass_matrix
from dynid.robot.inertia import inertia_from_com
from dynid.robot.model import Robot
from studies.reproduce.plants import Elastic
from studies.reproduce.verdict_plants import RunName
from studies.reproduce.verdict_setup import Fault, Setup

__all__ = ["MODEL_FAULTS", "ROBOT_FAULTS"]


# Faults of the model: another model than the prior, and words.
def _length(s: Setup, robot: Robot) -> tuple[Robot, str]:
    joints = list(robot.joints)
    sizes = [float(np.linalg.norm(x.placement[:3, 3])) if k else 0.0 for k, x in enumerate(joints)]
    long = [k for k, size in enumerate(sizes) if size >= 0.4 * max(sizes)]
    k = long[s.joint % len(long)]
    wrong = s.sign * (0.08 if sizes[k] > 0.3 else 0.1 * sizes[k])
    placement = joints[k].placement.copy()
    placement[:3, 3] *= 1 + wrong / sizes[k]
    joints[k] = replace(joints[k], placement=placement)
    return replace(robot, joints=tuple(joints)), f"{joints[k].name} placed {100 * wrong:.1f} cm too far in the model"


def _upside_down(s: Setup, robot: Robot) -> tuple[Robot, str]:
    return robot.with_gravity(-robot.gravity), "gravity with the wrong sign in the model"


MODEL_FAULTS: dict[Fault, Callable[[Setup, Robot], tuple[Robot, str]]] = {
    Fault.LINK_LENGTH: _length,
    Fault.GRAVITY_SIGN: _upside_down,
}

# Faults of the robot: arguments of `Plant.moved` for each run, and words.
Physical = tuple[dict[RunName, dict[str, Any]], str]


def _both(words: str, **settings: Any) -> Physical:
    return {"training": settings, "unseen": settings}, words


def _drives(s: Setup, words: str, **changes: Any) -> Physical:
    return _both(words, drives=replace(s.plant.drives, **changes))


def _tilt(s: Setup) -> Physical:
    angle, about = np.radians(5.0), 2 * np.pi * s.u
    x, y, g = np.sin(angle) * np.cos(about), np.sin(angle) * np.sin(about), np.linalg.norm(s.plant.truth.gravity)
    bodies = s.plant.truth.with_gravity(g * np.array([x, y, -np.cos(angle)]))
    return _both("base tilted by 5 degrees", bodies=bodies)


def _spring(s: Setup, frequency: float) -> tuple[int, float, float]:
    """A joint, and stiffness and damping that give its link this frequency behind a held rotor."""
    j = s.large_joint
    middle = s.good["training"].q.mean(axis=0)[None]
    inertia = float(mass_matrix(s.plant.truth, middle)[0, j, j] - s.plant.drives.rotor_inertia[j])
    stiffness = (2 * np.pi * frequency) ** 2 * inertia
    return j, stiffness, 2 * 0.05 * np.sqrt(stiffness * inertia)


def _elastic(s: Setup) -> Physical:
    frequency = s.between(4.0, 10.0)
    j, stiffness, damping = _spring(s, frequency)
    words = f"{s.plant.truth.coordinates[j]} elastic, {frequency:.1f} Hz behind the held rotor"
    return _drives(s, words, elastic=Elastic(j, stiffness, damping))


def _backlash(s: Setup) -> Physical:
    gap = np.radians(s.between(0.5, 1.5))
    j, stiffness, damping = _spring(s, 25.0)
    slides = s.plant.truth.joints[j].kind == "prismatic"
    gap = 0.1 * gap if slides else gap
    words = f"{s.plant.truth.coordinates[j]} with a backlash of {1e3 * gap:.2g} {'mm' if slides else 'mrad'}"
    return _drives(s, words, elastic=Elastic(j, stiffness, damping, float(gap)))


def _drift(s: Setup) -> Physical:
    share = s.between(0.4, 0.6)
    warming = replace(s.plant.drives, warming=share, warming_time=10.0)
    later = replace(warming, warm_since=20.0)
    words = f"viscous friction falls by {100 * share:.0f} % with a time constant of 10 s"
    return {"training": {"drives": warming}, "unseen": {"drives": later}}, words


def _saturated(s: Setup) -> Physical:
    share = s.between(0.8, 0.95)
    limit = np.where(np.arange(len(s.peak)) == s.large_joint, share * s.peak, np.inf)
    name = s.plant.truth.coordinates[s.large_joint]
    return _drives(s, f"drive of {name} saturates at {limit.min():.3g}, the command is logged", limit=limit)


def _cogging(s: Setup) -> Physical:
    amplitude, order = s.between(0.1, 0.25), float(np.round(np.exp(s.between(np.log(6), np.log(40)))))
    one = np.arange(s.plant.truth.n) == s.turning_joint
    name = s.plant.truth.coordinates[s.turning_joint]
    words = f"ripple of {100 * amplitude:.0f} % of the rms torque, {order:g} per revolution, in {name}"
    return _drives(s, words, ripple=np.where(one, amplitude * s.rms, 0.0), ripple_order=order)


def _stribeck(s: Setup) -> Physical:
    more = s.between(0.6, 1.2)
    slow = 0.1 if s.plant.name != "scara" else np.array([0.1, 0.1, 0.01, 0.1])
    words = f"Stribeck friction of {100 * more:.0f} % of the Coulomb friction"
    return _drives(s, words, stribeck=more * s.plant.drives.coulomb, stribeck_velocity=slow)


def _load(s: Setup) -> Physical:
    share = s.between(0.08, 0.15)
    return _drives(s, f"friction of {100 * share:.0f} % of the drive torque", load=share)


def _payload(s: Setup) -> Physical:
    truth = s.plant.truth
    mass = s.between(0.05, 0.1) * sum(float(link.inertia[0]) for link in truth.links[1:])
    body = inertia_from_com(mass, np.array([0.02, 0.01, 0.05]), mass * 0.03**2 * np.eye(3))
    loaded = truth.with_payload(truth.links[-1].name, body)
    return {"training": {}, "unseen": {"bodies": loaded}}, f"payload of {mass:.2f} kg in the unseen run only"


def _still(s: Setup) -> Physical:
    return _both(f"{s.name} never moves", still=s.joint)


ROBOT_FAULTS: dict[Fault, Callable[[Setup], Physical]] = {
    Fault.BASE_TILT: _tilt,
    Fault.ELASTICITY: _elastic,
    Fault.BACKLASH: _backlash,
    Fault.THERMAL_DRIFT: _drift,
    Fault.DRIVE_SATURATED: _saturated,
    Fault.COGGING: _cogging,
    Fault.STRIBECK: _stribeck,
    Fault.LOAD_FRICTION: _load,
    Fault.PAYLOAD: _payload,
    Fault.JOINT_STILL: _still,
}
