"""Robots with known errors of geometry, built, moved and loaded by Pinocchio alone.

    T_i = N_i exp(xi_i),    q_i = m_i + zero_i + sum over k = 1, 2 of A_ik sin(k m_i + phase_ik) - c_i g_i(q)

with the nominal placement N of a joint on its parent, the twist xi of its error, the reading m of its encoder, and the
torque g that holds the true robot at its deflected posture. dynid gets the nominal model and what a tracker sees.

Source: own derivation, from the definitions of these errors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.geometry.kinematics import Geometry
from dynid.geometry.measurements.points import Points
from dynid.robot.model import Robot

__all__ = ["CLASSES", "STANDARD", "TOOL", "Plant", "Sizes", "Taken", "nominal_model"]

Array = NDArray[np.float64]

TOOL = "tool"
_QUARTER = np.pi / 2
# Steps in which the deflected posture and its load agree to rounding.
_STEPS = 30
# Where three markers sit on the tool (m).
_MARKERS = np.array([[0.05, 0.02, 0.04], [-0.04, 0.06, 0.08], [0.01, -0.05, 0.12]])


@dataclass(frozen=True)
class Part:
    """One joint: its letter (RX, RY, RZ, PX, PY, PZ), its translation and roll, pitch, yaw on its parent; mass."""

    letter: str
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float] = (0.0, 0.0, 0.0)
    mass: float = 3.0
    span: float = 2.2


def _parallel_axes(rng: np.random.Generator) -> list[Part]:
    """Six revolute joints, axes 2, 3 and 4 parallel."""
    a, b = rng.uniform(0.35, 0.7, 2)
    h, w, e = rng.uniform(0.08, 0.2, 3)
    return [
        Part("RZ", (0, 0, h), mass=7),
        Part("RY", (0, w, 0), mass=10),
        Part("RY", (a, -0.6 * w, 0), mass=5),
        Part("RY", (b, 0, 0), mass=2),
        Part("RZ", (0, e, 0), mass=2),
        Part("RY", (0, 0, e), mass=1, span=3.0),
    ]


def _seven(rng: np.random.Generator) -> list[Part]:
    """Seven revolute joints with a shoulder and a wrist."""
    a, b = rng.uniform(0.3, 0.45, 2)
    h, w, e = rng.uniform(0.1, 0.2), rng.uniform(0.0, 0.09), rng.uniform(0.06, 0.12)
    return [
        Part("RZ", (0, 0, h), mass=4),
        Part("RY", (0, 0, h), mass=4),
        Part("RZ", (0, 0, 0.5 * a), mass=3),
        Part("RY", (w, 0, 0.5 * a), mass=3),
        Part("RZ", (-w, 0, 0.5 * b), mass=2),
        Part("RY", (0, 0, 0.5 * b), mass=2),
        Part("RZ", (0.8 * w, 0, e), mass=1),
    ]


def _scara(rng: np.random.Generator) -> list[Part]:
    """Two parallel revolute joints, a vertical slide, and a revolute joint."""
    a, b = rng.uniform(0.25, 0.5, 2)
    return [
        Part("RZ", (0, 0, rng.uniform(0.2, 0.4)), mass=8),
        Part("RZ", (a, 0, 0), mass=5),
        Part("PZ", (b, 0, 0), mass=2, span=0.15),
        Part("RZ", (0, 0, -0.1), mass=1, span=3.0),
    ]


def _on_a_track(rng: np.random.Generator) -> list[Part]:
    """A horizontal linear axis and six revolute joints with a spherical wrist."""
    a, b, e = rng.uniform(0.4, 0.7, 3)
    return [
        Part("PY", (0, 0, 0.3), mass=50, span=1.0),
        Part("RZ", (0, 0, 0.35), mass=15),
        Part("RY", (rng.uniform(0.05, 0.2), 0, 0.1), mass=12, span=1.5),
        Part("RY", (0, 0, a), mass=8, span=1.5),
        Part("RX", (b, 0, rng.uniform(0.02, 0.1)), mass=4),
        Part("RY", (0, 0, 0), mass=2),
        Part("RX", (0.2 * e, 0, 0), mass=1, span=3.0),
    ]


def _humanoid(rng: np.random.Generator) -> list[Part]:
    """Yaw and pitch of a torso, and an arm of seven joints whose shoulder is tilted."""
    a, b = rng.uniform(0.22, 0.32, 2)
    return [
        Part("RZ", (0, 0, 0.1), mass=5, span=1.2),
        Part("RY", (0, 0, 0.1), mass=12, span=0.6),
        Part("RY", (0, 0.2, rng.uniform(0.25, 0.4)), (rng.uniform(0.1, 0.5), 0, 0), mass=2.5),
        Part("RX", (0, 0.06, 0), mass=2, span=1.5),
        Part("RZ", (0, 0, -0.5 * a), mass=2),
        Part("RY", (0.02, 0, -0.5 * a), mass=1.5, span=1.2),
        Part("RZ", (-0.02, 0, -0.5 * b), mass=1),
        Part("RY", (0, 0, -0.5 * b), mass=0.6, span=1.2),
        Part("RX", (0, 0, 0), mass=0.5, span=1.2),
    ]


CLASSES: dict[str, Callable[[np.random.Generator], list[Part]]] = {
    "6R, parallel axes": _parallel_axes,
    "7R": _seven,
    "SCARA": _scara,
    "linear axis and 6R": _on_a_track,
    "humanoid arm with torso": _humanoid,
}


def _puma(rng: np.random.Generator) -> list[Part]:
    return [
        Part("RZ", (0, 0, 0.66)),
        Part("RY", (0, 0.15, 0)),
        Part("RY", (0.43, 0, 0)),
        Part("RX", (0.43, -0.02, 0.02)),
        Part("RY", (0, 0, 0)),
        Part("RX", (0.06, 0, 0)),
    ]


def _stanford(rng: np.random.Generator) -> list[Part]:
    return [
        Part("RZ", (0, 0, 0.41)),
        Part("RY", (0, 0.15, 0)),
        Part("PZ", (0, 0, 0.3), span=0.3),
        Part("RZ", (0, 0, 0.2)),
        Part("RY", (0, 0, 0)),
        Part("RZ", (0, 0, 0.26)),
    ]


# Robots of the literature on the number of parameters; the first of all joints has parallel neighbours in two of them.
STANDARD: dict[str, Callable[[np.random.Generator], list[Part]]] = {
    "PUMA 560 (6R)": _puma,
    "Stanford arm (RRPRRR)": _stanford,
    **CLASSES,
}


def nominal_model(parts: list[Part]) -> pin.Model:
    """The model of the file, with bodies of plausible size and a frame of the tool."""
    model, parent = pin.Model(), 0
    for i, part in enumerate(parts):
        place = pin.SE3(pin.rpy.rpyToMatrix(*part.rpy), np.array(part.xyz, dtype=float))
        parent = model.addJoint(parent, getattr(pin, f"JointModel{part.letter}")(), place, f"joint{i + 1}")
        ahead = np.array(parts[i + 1].xyz, dtype=float) if i + 1 < len(parts) else np.array([0.0, 0.0, 0.05])
        inertia = pin.Inertia(part.mass, 0.5 * ahead, 0.01 * part.mass * np.eye(3))
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    model.addFrame(pin.Frame(TOOL, parent, pin.SE3(np.eye(3), np.array([0.0, 0.0, 0.08])), pin.FrameType.OP_FRAME))
    return model


@dataclass(frozen=True)
class Sizes:
    """Standard deviations of the errors of placements and zeros, largest eccentricity, range of compliances."""

    position: tuple[float, float] = (0.5e-3, 1e-3)
    rotation: tuple[float, float] = (2e-3, 5e-3)
    zero: tuple[float, float] = (5e-3, 1e-2)
    eccentricity: float = 3e-4
    compliance: tuple[float, float] = (1e-5, 1e-4)


@dataclass(frozen=True, eq=False)
class Taken:
    """Measurements of a plant as dynid gets them, and which of them are outliers."""

    measurement: Points
    outliers: NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class Plant:
    """A robot whose errors are known."""

    nominal: pin.Model
    true: pin.Model
    twists: Array
    zero: Array
    amplitude: Array
    phase: Array
    compliance: Array
    span: Array
    base: pin.SE3
    data: pin.Data = field(repr=False)

    @classmethod
    def drawn(cls, kind: str, seed: int, sizes: Sizes | None = None) -> Plant:
        """A robot of a class; a uniformly drawn size for each robot, and normal errors of this size."""
        rng, sizes = np.random.default_rng([seed, sorted(STANDARD).index(kind)]), sizes or Sizes()
        parts = STANDARD[kind](rng)
        nominal, true = nominal_model(parts), nominal_model(parts)
        n = nominal.nq
        turns = np.array([part.letter[0] == "R" for part in parts])
        twists = np.hstack(
            [
                rng.uniform(*sizes.position) * rng.normal(size=(n, 3)),
                rng.uniform(*sizes.rotation) * rng.normal(size=(n, 3)),
            ]
        )
        for i in range(n):
            true.jointPlacements[i + 1] = nominal.jointPlacements[i + 1] * pin.exp6(twists[i])
        zero = rng.normal(size=n) * np.where(turns, rng.uniform(*sizes.zero), rng.uniform(*sizes.position))
        compliance = (
            np.exp(rng.uniform(np.log(sizes.compliance[0]), np.log(sizes.compliance[1]), n))
            if sizes.compliance[1]
            else np.zeros(n)
        )
        # Anywhere in the room, in any direction.
        base = pin.SE3(pin.Quaternion(*_unit(rng.normal(size=4))).matrix(), rng.uniform(-3, 3, 3))
        return cls(
            nominal,
            true,
            twists,
            zero,
            rng.uniform(0, sizes.eccentricity, (n, 2)) * turns[:, None],
            rng.uniform(0, 2 * np.pi, (n, 2)),
            compliance * turns,
            np.array([part.span for part in parts]),
            base,
            true.createData(),
        )

    @property
    def robot(self) -> Robot:
        """The nominal robot for dynid."""
        return Robot.from_pinocchio(self.nominal, name="nominal")

    def deflected(self, reading: Array) -> Array:
        """Where the joints are when their encoders read (n,)."""
        k = np.array([1.0, 2.0])
        still = reading + self.zero + (self.amplitude * np.sin(k * reading[:, None] + self.phase)).sum(1)
        q = still
        for _ in range(_STEPS):
            q, last = still - self.compliance * pin.computeGeneralizedGravity(self.true, self.data, q), q
            if np.abs(q - last).max() < 1e-14:
                break
        return np.asarray(q)

    def tool(self, readings: Array) -> tuple[Array, Array]:
        """Axes (N, 3, 3) and origin (N, 3) of the true tool in the robot's base."""
        frame = self.true.getFrameId(TOOL)
        out = []
        for reading in readings:
            pin.framesForwardKinematics(self.true, self.data, self.deflected(reading))
            out.append(self.data.oMf[frame].copy())
        return np.array([x.rotation for x in out]), np.array([x.translation for x in out])

    def seen(self, readings: Array, markers: int) -> Array:
        """Positions (N, M, 3) of the first markers in the tracker's frame."""
        rotation, origin = self.tool(readings)
        points = origin[:, None] + np.einsum("nij,mj->nmi", rotation, _MARKERS[:markers])
        return np.asarray(points @ self.base.rotation.T + self.base.translation)

    def readings(self, count: int, rng: np.random.Generator) -> Array:
        """Random postures."""
        return np.asarray(rng.uniform(-self.span, self.span, (count, len(self.span))))

    def taken(
        self,
        count: int,
        rng: np.random.Generator,
        *,
        markers: int = 3,
        noise: float = 2e-4,
        bits: int = 18,
        outliers: float = 0.02,
    ) -> Taken:
        """What a tracker sees of the first markers: encoders of so many bits, normal noise (m), a share of outliers."""
        exact = self.readings(count, rng)
        if not bits:
            read = exact
        else:
            step = np.where(self.turning, 2 * np.pi, 1.0) / 2**bits
            read = np.round(exact / step) * step
        points = self.seen(exact, markers)
        points = points + noise * rng.normal(size=points.shape)
        wrong = np.flatnonzero(rng.uniform(size=count) < outliers)
        push = np.array([_unit(rng.normal(size=3)) for _ in wrong]).reshape(-1, 3)
        points[wrong, rng.integers(markers, size=len(wrong))] += rng.uniform(0.01, 0.05, len(wrong))[:, None] * push
        return Taken(Points(read, TOOL, points=points), wrong)

    @property
    def turning(self) -> NDArray[np.bool_]:
        """Which joints are revolute."""
        return np.array([self.nominal.joints[i + 1].shortname()[10] == "R" for i in range(len(self.span))])

    def truth(self, geometry: Geometry) -> Array:
        """The plant's errors as unknowns of dynid: exact, but for second orders of the load."""
        values = {}
        for i, turns in enumerate(self.turning):
            error = pin.exp6(self.twists[i])
            letter = self.nominal.joints[i + 1].shortname()[11].lower()
            axis = np.eye(3)["xyz".index(letter)]
            for k, symbol in enumerate("xyz"):
                values[symbol, i] = error.translation[k]
            if turns:
                # The shortest rotation that turns the axis, and the turn about it that is left.
                turned = error.rotation @ axis
                cross = np.cross(axis, turned)
                angle = np.arctan2(np.linalg.norm(cross), axis @ turned)
                w = cross * (angle / np.linalg.norm(cross)) if cross.any() else cross
                rest = float(axis @ pin.log3(pin.exp3(w).T @ error.rotation))
                values["zero", i] = self.zero[i] + rest
                for k in (0, 1):
                    values[f"sin{k + 1}", i] = self.amplitude[i, k] * np.cos(self.phase[i, k])
                    values[f"cos{k + 1}", i] = self.amplitude[i, k] * np.sin(self.phase[i, k])
                values["c", i] = self.compliance[i]
            else:
                w = pin.log3(error.rotation)
                turned = error.rotation @ axis
                along = error.translation @ axis / (turned @ axis)
                moved = error.translation - along * turned
                for k, symbol in enumerate("xyz"):
                    values[symbol, i] = moved[k]
                values["zero", i] = self.zero[i] + along
            for k, symbol in enumerate("xyz"):
                values[f"r{symbol}", i] = w[k]
        number = {j.name: i for i, j in enumerate(geometry.robot.joints)}
        return np.array([values.get((u.symbol, number[u.owner]), 0.0) for u in geometry.unknowns])


def _unit(x: Array) -> Array:
    return np.asarray(x / np.linalg.norm(x))
