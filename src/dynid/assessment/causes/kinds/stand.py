"""Candidate cause: the base stands on something soft, and rocks under the reactions of the robot."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.causes.cause_code import CauseCode, Relevance
from dynid.assessment.causes.cause_groups import Group, Model
from dynid.assessment.causes.cause_source import CauseSource
from dynid.assessment.causes.deflection import BETWEEN
from dynid.assessment.causes.kinds.geometry import slopes_of
from dynid.dynamics.functions import inverse_dynamics
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.signals.filters import lowpass

__all__ = ["STAND", "SWINGING_BASE", "Stand"]

Array = NDArray[np.float64]

SWINGING_BASE = CauseCode(
    "swinging_base",
    "the base, or what it stands on, rocks under the reactions of the robot",
    "bolt the base, or what it stands on, to stiff ground, or excite more slowly",
    "1 mrad",
    check="flexibility",
    relevance=Relevance(clear=True),
)

# Frequencies (Hz) of the robot on its stand, how deep (m) under the base it pivots, and its damping ratio.
_FREQUENCIES: Array = 1.5 * 1.2 ** np.arange(10.0)
_DEPTHS = (0.0, 0.5, 1.0)
_DAMPING = 0.07
_LEAST = 1.0  # mrad
# Coordinates of the base: along two horizontal axes, and about them; the pairs that a pivot couples, with their sign.
_BASE = 4
_PLANES = ((2, 1, -1.0), (3, 0, 1.0))


class Stand:
    """The robot of a model on a base that can move sideways and tilt: its reactions, and what its motion changes.

    The deflection of an angle that the reactions turn follows I d'' + c d' + k d = moment about the pivot.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        robot = _on_base(model.bodies)
        values = dict(zip(model.bodies.parameter_names, model.body_parameters, strict=True))
        parameters = np.array([values.get(name, 0.0) for name in robot.parameter_names])
        self._reactions = [
            -inverse_dynamics(robot, _wide(m.q), _wide(m.v), _wide(m.a), parameters)[:, :_BASE]
            for m in model.rows.motions
        ]
        self._slopes = [slopes_of(robot, parameters, model.rows, k) for k in range(_BASE)]

    @staticmethod
    def fits(model: Model) -> bool:
        """Whether the robot of a model can be put on a stand: a tree on a base that is fixed, with weight."""
        robot = model.bodies
        return not robot.loops and robot.transmission is None and bool(np.any(robot.gravity))

    def groups(self) -> Iterator[Group]:
        """The base on a stand of each frequency, pivoting at each depth."""
        return self._at(_FREQUENCIES)

    def between(self, coarse: list[Group], best: Group) -> Iterator[Group]:
        """Frequencies near that of the best one of the coarse groups."""
        at = [g is best for g in coarse].index(True) // len(_DEPTHS)
        return self._at(_FREQUENCIES[at] * BETWEEN)

    def _at(self, frequencies: Array) -> Iterator[Group]:
        for frequency in frequencies:
            made = [self._responses(r, float(frequency)) for r in range(len(self._reactions))]
            for depth in _DEPTHS:
                planes, largest = [], 0.0
                for angle, along, sign in _PLANES:
                    moved = [x[:, angle] + sign * depth * x[:, along] for x in made]
                    largest = max(largest, *(float(np.abs(x[:, 0]).max()) for x in moved))
                    planes.append(self._torques(moved, angle, along, sign * depth))
                scale = 1e-3 / max(largest, 1e-300)
                columns = [scale * np.column_stack(parts) for parts in zip(*planes, strict=True)]
                yield Group(
                    SWINGING_BASE, (), _rocking(float(frequency)), self._model.everywhere(columns), "mrad",
                    1 / np.sqrt(len(_PLANES)), _LEAST, core=len(_PLANES),
                )  # fmt: skip

    def _responses(self, run: int, frequency: float) -> Array:
        """Motion (N, coordinate, 3) of oscillators of unit inertia that the reactions of a run drive."""
        motion, w = self._model.rows.motions[run], 2 * np.pi * frequency
        below = [1.0, 2 * _DAMPING * w, w**2]
        out = []
        for n in range(3):
            b, a = scipy.signal.bilinear([1.0, *[0.0] * n], below, motion.rate)
            start = scipy.signal.lfilter_zi(b, a)[:, None] * self._reactions[run][:1]
            out.append(scipy.signal.lfilter(b, a, self._reactions[run], axis=0, zi=start)[0])
        moved = np.stack(out, axis=-1)
        return lowpass(moved, motion.cutoff, motion.rate) if motion.cutoff is not None else moved

    def _torques(self, moved: list[Array], angle: int, along: int, arm: float) -> list[Array]:
        """Torque of each channel where the base turns by an angle (N, 3) per run about a pivot."""
        whole = np.concatenate(moved)
        return [
            np.sum((turn + arm * shift) * whole[i], axis=1)
            for turn, shift, i in zip(self._slopes[angle], self._slopes[along], self._model.rows.index, strict=True)
        ]


def _on_base(robot: Robot) -> Robot:
    """The robot on four more joints: two along and two about horizontal axes through the origin of the base."""
    up = -robot.gravity / np.linalg.norm(robot.gravity)
    first = np.cross(up, np.eye(3)[int(np.argmin(np.abs(up)))])
    first = first / np.linalg.norm(first)
    second = np.cross(up, first)
    stem, taken = "stand", [link.name for link in robot.links] + [joint.name for joint in robot.joints]
    while any(name.startswith(stem) for name in taken):
        stem += "_"
    names = [f"{stem}{k}" for k in range(_BASE)]
    joints = [
        Joint(name, "prismatic" if k < 2 else "revolute", k, np.eye(4), (first, second)[k % 2])
        for k, name in enumerate(names)
    ]
    links = [Link(name, np.zeros(10), virtual=bool(k)) for k, name in enumerate(names)]
    base = replace(robot.links[0], inertia=np.zeros(10))
    return replace(
        robot,
        links=(*links, base, *robot.links[1:]),
        joints=(*joints, *(replace(x, parent=x.parent + _BASE) for x in robot.joints)),
        frames=(), merged=(), passive=(), assembled=None, postures={},
    )  # fmt: skip


def _wide(x: Array) -> Array:
    """Coordinates (N, n) with those of the base before them, at rest."""
    return np.hstack([np.zeros((len(x), _BASE)), x])


def _rocking(frequency: float) -> Callable[[str, float], str]:
    return lambda size, _: f"the base rocks at about {frequency:.2g} Hz, by {size} mrad"


STAND = CauseSource(name="stand", codes=(SWINGING_BASE,))
