"""Plants along motions that are known as functions of time: Pinocchio's inverse dynamics, drives and noise in NumPy.

Nothing is integrated. The torque is exact, and a recording costs little more than its noise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.excitation.basis import random_fourier
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.inertia import inertia_from_com
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.robot.spatial import placement, rpy_rotation
from studies.reproduce.plants import colored_noise, other_bodies

__all__ = [
    "MOTIONS",
    "PRIORS",
    "Path",
    "Prior",
    "bodies",
    "moved",
    "prior_of",
    "recorded",
    "tree",
    "with_typical_drives",
]

Array = NDArray[np.float64]
Kind = Literal["rich", "slow", "few joints", "points"]
Prior = Literal["exact", "20 %", "x2", "none"]

MOTIONS: tuple[Kind, ...] = ("rich", "slow", "few joints", "points")
PRIORS: tuple[Prior, ...] = ("exact", "20 %", "x2", "none")
# Range of the motion and largest velocity, by the kind of joint: rad, m.
_RANGE, _VELOCITY = {"revolute": 1.2, "prismatic": 0.25}, {"revolute": 4.0, "prismatic": 1.0}
_COUNT = {"revolute": 2 * np.pi / 2**17, "prismatic": 2e-6}
_SLOWDOWN = 8.0
_MOVE, _REST = 0.8, 0.3  # s, of point-to-point motion
_RUNG = 0.1  # relative error of the square root of every pseudo-inertia: bodies 20 % off
# Shares of the torque of a joint along a rich motion.
_FRICTION, _OFFSET, _ROTOR = 0.12, 0.06, 0.3
_FLOOR = 0.02  # of the largest joint torque: drives of joints that carry nothing


@dataclass(frozen=True, eq=False)
class Path:
    """Positions, velocities and accelerations (N, n) at the times t (N,), exact."""

    t: Array
    q: Array
    v: Array
    a: Array

    def torque(self, truth: Robot) -> Array:
        """Torques (N, n) without noise: Pinocchio's inverse dynamics of the bodies and the drives of `truth`."""
        model = replace(truth, drives=(), transmission=None).to_pinocchio()
        data = model.createData()
        rigid = np.array([pin.rnea(model, data, *row) for row in zip(self.q, self.v, self.a, strict=True)])
        rotor, viscous, coulomb, offset = (_drive_values(truth, symbol) for symbol in ("Ia", "fv", "fc", "off"))
        return np.asarray(rigid + rotor * self.a + viscous * self.v + coulomb * np.sign(self.v) + offset)


def tree(parents: Sequence[int], kinds: str, seed: int) -> Robot:
    """Robot of links that get shorter and lighter outwards; `kinds` has "r" or "p" per joint."""
    rng = np.random.default_rng(seed)
    depth = [0]
    for parent in parents:
        depth.append(depth[parent] + 1)
    length = [max(0.4 * 0.8**k, 0.08) for k in depth]
    links, joints = [Link("base", np.zeros(10))], []
    for j, (parent, kind) in enumerate(zip(parents, kinds, strict=True), start=1):
        place = placement(rpy_rotation(np.pi / 2 * rng.choice([-1.0, 0.0, 1.0]), 0.0, rng.uniform(-0.5, 0.5)))
        if parent:
            place[:3, 3] = length[parent], 0.0, 0.0
        sort: Literal["revolute", "prismatic"] = "revolute" if kind == "r" else "prismatic"
        joints.append(Joint(f"joint{j}", sort, parent, place, np.array([0.0, 0.0, 1.0])))
        links.append(Link(f"link{j}", _body(max(8.0 * 0.75 ** depth[j], 0.3), length[j], rng)))
    return Robot(f"tree of {len(joints)}", tuple(links), tuple(joints))


def _body(mass: float, length: float, rng: np.random.Generator) -> Array:
    """A box along x with a centre of mass near its middle."""
    sides = length * np.array([1.0, 0.3, 0.3]) * rng.uniform(0.8, 1.2, 3)
    centre = length * np.array([0.45, 0.0, 0.0]) + 0.08 * length * rng.standard_normal(3)
    return inertia_from_com(mass, centre, mass / 12 * np.diag(np.sum(sides**2) - sides**2))


def bodies(name: str) -> Robot:
    """The links of a built-in robot, driven directly."""
    return replace(load_robot(name), drives=(), transmission=None)


def with_typical_drives(robot: Robot, seed: int) -> Robot:
    """Rotor inertia, viscous and Coulomb friction and offset of every joint, shares of its torque."""
    path, rng = moved(robot, "rich", 10.0, 50.0, seed), np.random.default_rng(seed)
    torque, velocity, acceleration = (np.sqrt(np.mean(x**2, axis=0)) for x in (path.torque(robot), path.v, path.a))
    torque = np.maximum(torque, _FLOOR * torque.max())
    values = {
        "Ia": _ROTOR * torque / acceleration,
        "fv": _FRICTION * torque / velocity,
        "fc": _FRICTION * torque,
        "off": _OFFSET * torque * rng.choice([-1.0, 1.0], robot.n),
    }
    scatter = {symbol: x * rng.uniform(0.5, 1.5, robot.n) for symbol, x in values.items()}
    return robot.with_terms(*(robot.joint_term(j, s, float(scatter[s][j])) for j in range(robot.n) for s in scatter))


def prior_of(truth: Robot, prior: Prior, seed: int) -> Robot:
    """What is known before: bodies that are exact, 20 % off, twice as heavy or not known; drives of zero."""
    if prior == "20 %":
        known = other_bodies(truth, _RUNG, np.random.default_rng(seed))
    else:
        factor = {"exact": 1.0, "x2": 2.0, "none": 0.0}[prior]
        known = replace(truth, links=tuple(replace(link, inertia=factor * link.inertia) for link in truth.links))
    return replace(known, drives=tuple(replace(term, value=0.0) for term in truth.drives))


def moved(robot: Robot, kind: Kind, duration: float, rate: float, seed: int) -> Path:
    """A random motion of this kind. Of few joints, every second one moves, the first one not."""
    t = np.arange(round(duration * rate)) / rate
    if kind == "points":
        return _points(robot, t, seed)
    slower = _SLOWDOWN if kind == "slow" else 1.0
    reach, fastest = (np.array([x[j.kind] for j in robot.joints]) for x in (_RANGE, _VELOCITY))
    q, v, a = random_fourier(-reach, reach, fastest, min(duration, 10.0), t / slower, seed)
    path = Path(t, q, v / slower, a / slower**2)
    if kind == "few joints" and robot.n > 1:
        path.q[:, ::2], path.v[:, ::2], path.a[:, ::2] = 0.3 * reach[::2], 0.0, 0.0
    return path


def _points(robot: Robot, t: Array, seed: int) -> Path:
    """Point-to-point motion with quintic polynomials and rests between them."""
    reach = np.array([_RANGE[j.kind] for j in robot.joints])
    step = (t // (_MOVE + _REST)).astype(int)
    points = np.random.default_rng(seed).uniform(-0.8, 0.8, (step[-1] + 2, robot.n)) * reach
    s = np.minimum((t - step * (_MOVE + _REST)) / _MOVE, 1.0)[:, None]
    start, way = points[step], points[step + 1] - points[step]
    q = start + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
    v = way * (30 * s**2 - 60 * s**3 + 30 * s**4) / _MOVE
    a = way * (60 * s - 180 * s**2 + 120 * s**3) / _MOVE**2
    return Path(t, q, v, a)


def recorded(robot: Robot, path: Path, torque: Array, share: float, corner: float | None, seed: int) -> Recording:
    """Counted positions, and the torque with noise of this share of it and this corner frequency (Hz, None: white).

    The encoders are mounted anew for every seed, so that the rounding errors differ.
    """
    rng, rate = np.random.default_rng([seed, 0 if corner is None else round(1000 * corner)]), 1 / path.t[1]
    count, shift = np.array([_COUNT[j.kind] for j in robot.joints]), rng.uniform(-0.5, 0.5, robot.n)
    level = share * np.sqrt(np.mean(torque**2, axis=0))
    noisy = torque + level * colored_noise(torque.shape, corner, rate, rng)
    run = Run(path.t, count * (np.round(path.q / count + shift) - shift), torque=noisy)
    return Recording(robot.coordinates, (run,))


def _drive_values(robot: Robot, symbol: str) -> Array:
    """Values (n,) of the joint-side drive terms with this symbol; zero where there is none."""
    out = np.zeros(robot.n)
    for term in robot.drives:
        if term.symbol == symbol:
            out[term.owner] = term.value
    return out
