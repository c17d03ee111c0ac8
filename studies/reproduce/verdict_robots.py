"""Faults of the model and of the robot itself."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics, mass_matrix
from dynid.robot.inertia import inertia_from_com
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from studies.reproduce.plants import Elastic, Stand, Traces, other_bodies
from studies.reproduce.verdict_logs import slipping_springs
from studies.reproduce.verdict_plants import RunName
from studies.reproduce.verdict_setup import Fault, Setup

__all__ = ["ADDED_TORQUES", "MODEL_FAULTS", "ROBOT_FAULTS"]

Array = NDArray[np.float64]


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


def _weightless(s: Setup, robot: Robot) -> tuple[Robot, str]:
    return robot.with_gravity([0.0, 0.0, 0.0]), "no gravity in the model"


MODEL_FAULTS: dict[Fault, Callable[[Setup, Robot], tuple[Robot, str]]] = {
    Fault.LINK_LENGTH: _length,
    Fault.GRAVITY_SIGN: _upside_down,
    Fault.GRAVITY_MISSING: _weightless,
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


def _swinging(s: Setup) -> Physical:
    """The base on a stand that rocks about two horizontal axes under it, of twice the arm's mass."""
    truth = s.plant.truth
    frequency, depth = s.between(1.5, 4.5), float(s.rng("training").uniform(0.0, 1.0))
    up = -truth.gravity / np.linalg.norm(truth.gravity)
    below, above = np.eye(4), np.eye(4)
    below[:3, 3], above[:3, 3] = -depth * up, depth * up
    first = np.cross(up, np.eye(3)[int(np.argmin(np.abs(up)))])
    axes = (first / np.linalg.norm(first), np.cross(up, first / np.linalg.norm(first)))
    ring = inertia_from_com(0.1, np.zeros(3), 0.01 * np.eye(3))
    mass = 2 * sum(float(link.inertia[0]) for link in truth.links[1:])
    pedestal = inertia_from_com(mass, -0.5 * depth * up, mass * (0.1 + depth**2 / 12) * np.eye(3))
    ground, *moving = truth.links
    links = (Link("ground", np.zeros(10)), Link("ring", ring), replace(ground, name="stand", inertia=pedestal), *moving)
    joints = (
        Joint("rock1", "revolute", 0, below, axes[0]),
        Joint("rock2", "revolute", 1, np.eye(4), axes[1], mount=above),
        *(replace(x, parent=x.parent + 2) for x in truth.joints),
    )
    whole = replace(truth, links=links, joints=joints, drives=(), frames=())
    middle = np.append(np.zeros(2), s.good["training"].q.mean(axis=0))[None]
    inertia = np.diag(mass_matrix(whole, middle)[0])[:2]
    stiffness = inertia * (2 * np.pi * frequency * np.array([1.0, 1.15])) ** 2
    stand = Stand(whole, stiffness, 2 * 0.05 * np.sqrt(stiffness * inertia))
    return _drives(s, f"the stand of the base rocks at {frequency:.1f} Hz, {depth:.1f} m below it", stand=stand)


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


def _with_load(s: Setup) -> tuple[Robot, float]:
    """The robot with a payload of 5 to 10 % of its mass, and this mass."""
    truth = s.plant.truth
    mass = s.between(0.05, 0.1) * sum(float(link.inertia[0]) for link in truth.links[1:])
    body = inertia_from_com(mass, np.array([0.02, 0.01, 0.05]), mass * 0.03**2 * np.eye(3))
    return truth.with_payload(truth.links[-1].name, body), mass


def _payload(s: Setup) -> Physical:
    loaded, mass = _with_load(s)
    return {"training": {}, "unseen": {"bodies": loaded}}, f"payload of {mass:.2f} kg in the unseen run only"


def _other_robot(s: Setup) -> Physical:
    other = other_bodies(s.plant.truth, 0.1, np.random.default_rng([s.seed, 9]))
    return {"training": {}, "unseen": {"bodies": other}}, "the unseen run is of another robot, of the same make"


def _still(s: Setup) -> Physical:
    return _both(f"{s.name} never moves", still=s.joint)


ROBOT_FAULTS: dict[Fault, Callable[[Setup], Physical]] = {
    Fault.BASE_TILT: _tilt,
    Fault.ELASTICITY: _elastic,
    Fault.SWINGING_BASE: _swinging,
    Fault.BACKLASH: _backlash,
    Fault.THERMAL_DRIFT: _drift,
    Fault.DRIVE_SATURATED: _saturated,
    Fault.COGGING: _cogging,
    Fault.STRIBECK: _stribeck,
    Fault.LOAD_FRICTION: _load,
    Fault.PAYLOAD: _payload,
    Fault.OTHER_ROBOT: _other_robot,
    Fault.JOINT_STILL: _still,
}


# Torques that drives deliver besides those of bodies and friction: a function of the traces of a run, and words.
Added = tuple[Callable[[Traces], Array], str]


def _in_joint(s: Setup, j: int, torque: Callable[[Traces], Array]) -> Callable[[Traces], Array]:
    return lambda traces: np.outer(torque(traces), np.arange(s.plant.truth.n) == j)


def _joint_spring(s: Setup) -> Added:
    j, share = s.large_joint, s.between(0.2, 0.5)
    q = s.good["training"].q[:, j]
    stiffness = share * s.rms[j] / np.std(q)
    middle = float(q.mean() + s.sign * np.std(q))
    words = f"a spring of {stiffness:.3g} in {s.plant.truth.coordinates[j]}"
    return _in_joint(s, j, lambda x: stiffness * (x.q[:, j] - middle)), words


def _counterbalance(s: Setup) -> Added:
    """A spring cylinder on the second joint, as heavy robots have."""
    j, share = min(1, s.plant.truth.n - 1), s.between(0.3, 0.7)
    anchor, lever, rest = 0.5, 0.15, 0.3

    def torque(x: Traces) -> Array:
        length = np.sqrt(anchor**2 + lever**2 - 2 * anchor * lever * np.cos(np.pi - x.q[:, j]))
        return np.asarray((length - rest) * anchor * lever * np.sin(np.pi - x.q[:, j]) / length)

    size = share * s.rms[j] / np.sqrt(np.mean(torque(s.good["training"]) ** 2))
    words = f"a spring cylinder carries {100 * share:.0f} % of the rms torque of {s.plant.truth.coordinates[j]}"
    return _in_joint(s, j, lambda x: -s.sign * size * torque(x)), words


def _cable(s: Setup) -> Added:
    j, share, distance = s.joint, s.between(0.15, 0.3), s.between(0.1, 0.3)
    slides = s.plant.truth.joints[j].kind == "prismatic"
    distance = 0.1 * distance if slides else distance
    words = f"a cable with hysteresis over {distance:.2g} rad in {s.plant.truth.coordinates[j]}"
    return _in_joint(s, j, lambda x: share * s.rms[j] * slipping_springs(x.q[:, [j]], distance)[:, 0]), words


def _coupled(s: Setup) -> Added:
    n = s.plant.truth.n
    i, j = n - 1, n - 2
    size = s.between(0.1, 0.25) * s.rms[j]
    slope = np.broadcast_to(s.plant.drives.slope, n)[i]
    words = f"friction of the motion of {s.plant.truth.coordinates[i]} acts on {s.plant.truth.coordinates[j]}"
    return _in_joint(s, j, lambda x: size * np.tanh(slope * x.v[:, i])), words


def _loaded_later(s: Setup) -> Added:
    heavier, mass = _with_load(s)
    loaded, bare = (replace(x, drives=()) for x in (heavier, s.plant.truth))
    start = s.between(0.3, 0.6)

    def more(x: Traces) -> Array:
        later = np.arange(len(x.q)) > start * len(x.q)
        heavy, light = (inverse_dynamics(robot, x.q, x.v, x.a) for robot in (loaded, bare))
        return np.asarray((heavy - light) * later[:, None])

    return more, f"a payload of {mass:.2f} kg is picked up in each run"


ADDED_TORQUES: dict[Fault, Callable[[Setup], Added]] = {
    Fault.SPRING: _joint_spring,
    Fault.COUNTERBALANCE: _counterbalance,
    Fault.CABLE: _cable,
    Fault.COUPLED_FRICTION: _coupled,
    Fault.PAYLOAD_CHANGED: _loaded_later,
}
