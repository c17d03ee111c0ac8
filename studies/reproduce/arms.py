"""Ten arms of public URDF files with known bodies: torques by Pinocchio's inverse dynamics, drives written here.

Nothing of dynid moves these plants. Pinocchio reads the file and computes the torques of an analytic motion; friction,
rotors, springs, noise and encoders are added with NumPy. What the estimate starts from is the file as dynid reads it,
with the change that a variant makes to it.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.plants import Drives, colored_noise

__all__ = ["ARMS", "Arm", "Conditions", "Sampled", "Variant"]

Array = NDArray[np.float64]

_FRICTION = "viscous+coulomb+offset"
_PERIOD, _HARMONICS = 10.0, 5  # s
_RANGE = 1.5  # rad from the middle, at most
_FASTEST = 2.0  # rad/s
_SLOPE = 500.0  # s/rad, of the smooth Coulomb friction
_COUNTS = 2**18  # per revolution
_TWIST = 0.005  # rad, of an elastic joint at its largest torque
_LOAD, _RIPPLE, _RIPPLE_ORDER = 0.1, 0.03, 24.0  # shares of the torque of a joint, periods per revolution
_TORQUE_FLOOR = 0.02  # of the largest joint torque: friction of joints that carry nothing


class Variant(StrEnum):
    """What is wrong with the file, or missing in the model."""

    HONEST = "honest"  # the file is right
    TOOL = "tool"  # a tool of 1 to 2 kg that the file lacks
    DOUBLE = "prior x 2"
    RANDOM = "prior +-20 %"
    NONE = "no prior"
    ELASTIC = "elastic joints"
    LOAD_FRICTION = "load friction"
    COGGING = "cogging"


_MASSES: dict[Variant, tuple[float, float]] = {
    Variant.DOUBLE: (2.0, 2.0),
    Variant.RANDOM: (0.8, 1.2),
    Variant.NONE: (0.0, 0.0),
}


@dataclass(frozen=True)
class Conditions:
    """How an arm moves and is recorded.

    `noise` is a share of the rms torque of each joint, with the corner frequency `corner` in Hz, white without one.
    `speed` scales the largest velocity of the motion. The unseen motion has another seed.
    """

    duration: float = 20.0
    rate: float = 200.0
    noise: float = 0.02
    corner: float | None = 10.0
    speed: float = 1.0
    seed: int = 0


@dataclass(frozen=True, eq=False)
class Sampled:
    """The recordings of an arm: what is fitted, what is unseen, the robot before, and the true robot."""

    robot: Robot
    train: Recording
    test: Recording
    truth: Robot


@dataclass(frozen=True)
class Arm:
    """An arm of a file of example-robot-data: the first letters of the joints that move, and whether it is held back.

    Arms that are held back are not looked at while defaults are set.
    """

    name: str
    file: str
    joints: str | tuple[str, ...]
    held_back: bool

    @cached_property
    def path(self) -> Path:
        """The URDF file."""
        try:
            (found,) = (f for f in files("example-robot-data") or () if f.as_posix().endswith(self.file))
        except (PackageNotFoundError, ValueError):
            raise DataError(f"no '{self.file}' of example-robot-data: pip install 'dynid[dev]'") from None
        return Path(str(found.locate()))

    @cached_property
    def robot(self) -> Robot:
        """The arm as dynid reads it, all other joints locked, with drive terms of value zero."""
        whole = load_robot(self.path, friction="none")
        still = {name: 0.0 for name in whole.coordinates if not self._moves(name)}
        return whole.locked(still).with_drives(_FRICTION, rotor_inertia=True)

    @cached_property
    def model(self) -> Any:
        """The arm as Pinocchio reads it."""
        import pinocchio as pin

        whole = pin.buildModelFromUrdf(str(self.path))
        still = [k for k, name in enumerate(whole.names) if k and not self._moves(name)]
        return pin.buildReducedModel(whole, still, pin.neutral(whole))

    def _moves(self, joint: str) -> bool:
        return joint.startswith(self.joints)

    @cached_property
    def tool(self) -> Any:
        """A body of 1 to 2 kg, 5 to 12 cm away from the last joint."""
        import pinocchio as pin

        rng = self._rng("tool")
        mass, away = rng.uniform(1.0, 2.0), rng.standard_normal(3)
        centre = rng.uniform(0.05, 0.12) * away / np.linalg.norm(away)
        return pin.Inertia(mass, centre, mass * rng.uniform(0.03, 0.06) ** 2 * np.eye(3))

    def _rng(self, *words: object) -> np.random.Generator:
        return np.random.default_rng([zlib.crc32(" ".join(map(str, (self.name, *words))).encode())])

    @cached_property
    def _plain(self) -> tuple[Array, Array, Array, Array]:
        """Positions, velocities, accelerations and rigid torques of one motion, for the size of the drives."""
        q, v, a = self._motion(np.arange(0.0, _PERIOD, 0.02), 1.0, self._rng("drives"))
        return q, v, a, _torques(self.model, q, v, a)

    @cached_property
    def _level(self) -> Array:
        """Torque (n,) of the joints, without drives."""
        rms = np.sqrt(np.mean(self._plain[3] ** 2, axis=0))
        return np.maximum(rms, _TORQUE_FLOOR * rms.max())

    @cached_property
    def drives(self) -> Drives:
        """Rotors as heavy as a part of what they move, and friction of a part of the joint's torque."""
        q, v, _, _ = self._plain
        rng, n, level = self._rng("values"), self.model.nv, self._level
        coulomb = rng.uniform(0.05, 0.15, n) * level
        return Drives(
            rotor_inertia=rng.uniform(0.2, 0.8, n) * _mean_diagonal(self.model, q[::50]),
            viscous=rng.uniform(0.05, 0.15, n) * level / np.sqrt(np.mean(v**2, axis=0)),
            coulomb=coulomb,
            slope=_SLOPE,
            stribeck=0.2 * coulomb,
        )

    @cached_property
    def offset(self) -> Array:
        """Torque offsets (n,)."""
        return self._rng("offset").uniform(-0.05, 0.05, self.model.nv) * self._level

    def _motion(self, t: Array, speed: float, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Positions, velocities and accelerations (N, n) of a Fourier series within the joint limits."""
        limits = [self.robot.limits[c] for c in self.robot.coordinates]
        middle = np.array([0.5 * (x.lower + x.upper) if np.isfinite(x.upper - x.lower) else 0.0 for x in limits])
        range_ = np.array([min(0.4 * (x.upper - x.lower), _RANGE) for x in limits])
        fastest = speed * np.array([min(0.7 * x.velocity, _FASTEST) for x in limits])
        weight = rng.standard_normal((2, _HARMONICS, len(limits))) / np.arange(1, _HARMONICS + 1)[:, None]
        q, v, _ = _series(np.arange(0.0, _PERIOD, 0.01), weight)
        weight *= np.minimum(range_ / np.abs(q).max(axis=0), fastest / np.abs(v).max(axis=0))
        q, v, a = _series(t, weight)
        return middle + q, v, a

    def sampled(self, variant: Variant, conditions: Conditions) -> Sampled:
        """The arm of a variant, moved and recorded twice."""
        model = self.model.copy()
        if variant is Variant.TOOL:
            model.inertias[model.njoints - 1] += self.tool
        train, test = (self._recorded(model, variant, conditions, run) for run in ("training", "unseen"))
        return Sampled(self._prior(variant, conditions.seed), train, test, self._truth(model))

    def _recorded(self, model: Any, variant: Variant, conditions: Conditions, run: str) -> Recording:
        rng = self._rng(variant, conditions.seed, run)
        t = np.arange(int(conditions.duration * conditions.rate)) / conditions.rate
        # The same motion for all variants, so that they can be compared.
        q, v, a = self._motion(t, conditions.speed, self._rng("motion", conditions.seed, run))
        joint = _torques(model, q, v, a)
        if variant is Variant.ELASTIC:
            q, v, a = _rotors(t, q + _TWIST * joint / np.abs(joint).max(axis=0))
        drives = self._drives(variant)
        torque = joint + drives.rotor_inertia * a + drives.resistance(0.0, q, v, joint) + self.offset
        level = conditions.noise * np.sqrt(np.mean(torque**2, axis=0))
        noise = level * colored_noise(torque.shape, conditions.corner, conditions.rate, rng)
        count, shift = 2 * np.pi / _COUNTS, rng.uniform(-0.5, 0.5, len(joint.T))
        counted = count * (np.round(q / count + shift) - shift)
        return Recording(self.robot.coordinates, (Run(t, counted, torque=torque + noise),))

    def _drives(self, variant: Variant) -> Drives:
        if variant is Variant.LOAD_FRICTION:
            return replace(self.drives, load=_LOAD)
        if variant is Variant.COGGING:
            return replace(self.drives, ripple=_RIPPLE * self._level, ripple_order=_RIPPLE_ORDER)
        return self.drives

    def _prior(self, variant: Variant, seed: int) -> Robot:
        """What is known before: the file, with the masses that the variant gives its bodies."""
        low, high = _MASSES.get(variant, (1.0, 1.0))
        factors = self._rng("prior", seed).uniform(low, high, len(self.robot.links))
        links = (replace(x, inertia=f * x.inertia) for x, f in zip(self.robot.links, factors, strict=True))
        return replace(self.robot, links=tuple(links))

    def _truth(self, model: Any) -> Robot:
        """The bodies as Pinocchio has them and the values of the drives."""
        bodies = {name: model.inertias[k].toDynamicParameters() for k, name in enumerate(model.names) if k}
        base, *moving = self.robot.links
        links = (replace(x, inertia=bodies[j.name]) for x, j in zip(moving, self.robot.joints, strict=True))
        known = {"Ia": self.drives.rotor_inertia, "fv": self.drives.viscous, "fc": self.drives.coulomb}
        values = {f"{s}_{c}": x[j] for s, x in (known | {"off": self.offset}).items() for j, c in enumerate(bodies)}
        drives = tuple(replace(term, value=float(values[term.name])) for term in self.robot.drives)
        return replace(self.robot, links=(base, *links), drives=drives)


def _series(t: Array, weight: Array) -> tuple[Array, Array, Array]:
    """Values and first two derivatives (N, n) of a Fourier series with weights (2, harmonic, n) of sine and cosine."""
    w = 2 * np.pi / _PERIOD * np.arange(1, _HARMONICS + 1)
    sine, cosine = np.sin(t[:, None] * w), np.cos(t[:, None] * w)
    x = sine @ weight[0] + cosine @ weight[1]
    return (
        x,
        (w * cosine) @ weight[0] - (w * sine) @ weight[1],
        -(w**2 * sine) @ weight[0] - (w**2 * cosine) @ weight[1],
    )


def _mean_diagonal(model: Any, q: Array) -> Array:
    """Diagonal (n,) of the mass matrix, averaged over positions (N, n)."""
    import pinocchio as pin

    data, zero = model.createData(), pin.neutral(model)
    return np.mean([np.diag(pin.crba(model, data, pin.integrate(model, zero, x))) for x in q], axis=0)


def _torques(model: Any, q: Array, v: Array, a: Array) -> Array:
    """Joint torques (N, n) of the bodies alone."""
    import pinocchio as pin

    data, zero = model.createData(), pin.neutral(model)
    rows = (pin.rnea(model, data, pin.integrate(model, zero, x), y, z).copy() for x, y, z in zip(q, v, a, strict=True))
    return np.array(list(rows))


def _rotors(t: Array, q: Array) -> tuple[Array, Array, Array]:
    """Positions, velocities and accelerations (N, n) of rotors ahead of their elastic joints."""
    path = scipy.interpolate.CubicSpline(t, q)
    return q, path(t, 1), path(t, 2)


def _listed() -> Iterator[Arm]:
    yield Arm("ur3", "urdf/ur3_robot.urdf", "", held_back=False)
    yield Arm("ur5", "urdf/ur5_robot.urdf", "", held_back=True)
    yield Arm("ur10", "urdf/ur10_robot.urdf", "", held_back=False)
    yield Arm("panda", "urdf/panda.urdf", "panda_joint", held_back=True)
    yield Arm("jaco", "robots/kinova.urdf", "j2s6s200_joint_", held_back=False)
    yield Arm("xarm7", "urdf/xarm7.urdf", "joint", held_back=True)
    yield Arm("z1", "urdf/z1.urdf", ("joint1", "joint2", "joint3", "joint4", "joint5", "joint6"), held_back=False)
    yield Arm("tiago", "robots/tiago_no_hand.urdf", "arm_", held_back=True)
    yield Arm("talos", "robots/talos_left_arm.urdf", "arm_left_", held_back=False)
    yield Arm("baxter", "urdf/baxter.urdf", "left_", held_back=True)


ARMS: dict[str, Arm] = {arm.name: arm for arm in _listed()}
