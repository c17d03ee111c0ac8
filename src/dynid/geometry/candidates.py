"""Postures in which a sensor can measure: random ones within the limits that are reachable, seen and free.

What touches something, such as a ball in its socket, has a residual that is zero at rest. From random postures

    q <- q - J' (J J' + m)^-1 r(q),    then walks    q <- q + (1 - J'(J J')^-1 J) s

along the null space of J, which is the derivative of the residual in the zeros of the joints, each step corrected by
the first line. A point that has to be in a box, where random postures hardly are, is drawn into it likewise.

Sources: Nakamura and Hanafusa, Inverse Kinematic Solutions with Singularity Robustness for Robot Manipulator Control
(1986); Liegeois, Automatic Supervisory Control of the Configuration and Behavior of Multibody Mechanisms (1977).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.frames import frame_jacobian, frame_placement
from dynid.excitation.problem import Clearance
from dynid.geometry.kinematics import Geometry
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.problem import Problem
from dynid.geometry.unknowns import GeometryModel

__all__ = ["Candidates", "Drawn", "Visible", "expected_at", "labels_of"]

Array = NDArray[np.float64]
Visible = Callable[[Array, Array], NDArray[np.bool_]]

# Random postures of one draw over those wanted, and draws until it is given up.
_MORE, _DRAWS = 2, 12
# Draws without any candidate after which there is none.
_VAIN = 3
# Steps of the search for a contact, its largest step of a joint (rad or m), and the residual (m) at which it is one.
_STEPS, _LONGEST, _CLOSE = 60, 0.4, 1e-9
# Step along the null space over the range of a joint.
_WALK = 0.25


@dataclass(frozen=True, eq=False)
class Drawn:
    """Candidate postures (N, n), and for each measurement the posture of the given one whose labels each has (N,)."""

    q: Array
    like: tuple[NDArray[np.intp], ...]

    def some(self, rows: NDArray[np.bool_] | NDArray[np.intp]) -> Drawn:
        """Some of them."""
        return Drawn(self.q[rows], tuple(x[rows] for x in self.like))

    def and_also(self, other: Drawn) -> Drawn:
        """These and others."""
        like = tuple(np.concatenate(pair) for pair in zip(self.like, other.like, strict=True))
        return Drawn(np.vstack([self.q, other.q]), like)


@dataclass(frozen=True, eq=False)
class Candidates:
    """Where candidate postures come from.

    Attributes
    ----------
    problem : Problem
        The measurements that are planned, at any postures.
    lower, upper : ndarray, shape (n,)
        Position ranges.
    visible : sequence of callable
        Each says of postures (N, n) and placements (N, 4, 4) of the measured frame which can be measured.
    clearances : sequence of Clearance
        What the robot keeps away from.
    reach : ndarray, shape (2, 3), optional
        Corners of the box in which the point is (m).
    frame : str
        The measured frame.
    point : ndarray, shape (3,)
        The point in it.
    contact : bool
        Whether what touches has to touch.
    refused : dict of str to int
        How many random postures failed, by reason.
    """

    problem: Problem
    lower: Array
    upper: Array
    visible: Sequence[Visible]
    clearances: Sequence[Clearance]
    reach: Array | None
    frame: str
    point: Array
    contact: bool
    refused: dict[str, int]

    def drawn(self, count: int, rng: np.random.Generator) -> Drawn:
        """Up to `count` candidates, fewer where hardly any posture is possible."""
        out = self._none()
        span = self.upper - self.lower
        for draw in range(_DRAWS):
            more = max(_MORE * (count - len(out.q)), 50)
            # In contact, every second draw walks on from what was found.
            if self.contact and draw % 2 and len(out.q):
                start = out.some(rng.integers(len(out.q), size=more))
                start = replace(start, q=self.walked(start, rng.normal(size=start.q.shape) * _WALK * span))
            else:
                q = rng.uniform(self.lower, self.upper, (more, len(span)))
                numbers = np.arange(more)
                like = tuple(rows[numbers % len(rows)] for rows in self._rows)
                start = Drawn(q if self.reach is None or self.contact else self._pulled(q, rng), like)
            out = out.and_also(self.possible(start))
            if len(out.q) >= count or (draw + 1 >= _VAIN and not len(out.q)):
                break
        return out.some(np.arange(min(count, len(out.q))))

    def near(self, chosen: Drawn, each: int, size: float, rng: np.random.Generator) -> Drawn:
        """Candidates around some, `size` of the ranges away."""
        start = chosen.some(np.repeat(np.arange(len(chosen.q)), each))
        step = rng.normal(size=start.q.shape) * size * (self.upper - self.lower)
        return self.possible(replace(start, q=self.walked(start, step)))

    def walked(self, at: Drawn, step: Array) -> Array:
        """Postures after a step, in contact along the null space; within the ranges."""
        if self.contact:
            _, J = self._touching(at.q, at.like)
            flat = np.einsum("nij,nj->ni", J, step)
            step = step - np.einsum("nij,ni->nj", J, np.linalg.solve(_square(J, 1e-9), flat[..., None])[..., 0])
        return np.clip(at.q + step, self.lower, self.upper)

    def possible(self, start: Drawn) -> Drawn:
        """Those of some postures that can be measured, after they were brought into contact."""
        out = start
        if self.contact:
            q, found = _solved(out.q, lambda q, rows: self._touching(q, self._like(out, rows)), self.lower, self.upper)
            self._refuse("do not reach the contact", ~found)
            out = replace(out, q=q).some(found)
        placement = frame_placement(self.problem.geometry.robot, out.q, self.frame)
        if self.reach is not None:
            at = placement[:, :3, 3] + placement[:, :3, :3] @ self.point
            out, placement = self._kept("are outside the box", out, placement, _inside(at, self.reach))
        for see in self.visible:
            seen = np.asarray(see(out.q, placement), dtype=bool)
            out, placement = self._kept("are not visible", out, placement, seen)
        for clear in self.clearances:
            if not len(out.q):
                break
            free = clear.values(out.q).min(axis=1) >= 0
            out, placement = self._kept(f"violate the limit of {clear.label}", out, placement, free)
        return out

    def _kept(self, why: str, drawn: Drawn, placement: Array, good: NDArray[np.bool_]) -> tuple[Drawn, Array]:
        self._refuse(why, ~good)
        return drawn.some(good), placement[good]

    def _refuse(self, why: str, bad: NDArray[np.bool_]) -> None:
        self.refused[why] = self.refused.get(why, 0) + int(bad.sum())

    def _none(self) -> Drawn:
        nothing = np.zeros(0, dtype=np.intp)
        return Drawn(np.zeros((0, len(self.lower))), tuple(nothing for _ in self.problem.measurements))

    @property
    def _rows(self) -> tuple[NDArray[np.intp], ...]:
        """Postures of each measurement that differ in their labels."""
        return tuple(labels_of(m)[1] for m in self.problem.measurements)

    def _like(self, drawn: Drawn, rows: NDArray[np.intp]) -> tuple[NDArray[np.intp], ...]:
        return tuple(x[rows] for x in drawn.like)

    def _touching(self, q: Array, like: tuple[NDArray[np.intp], ...]) -> tuple[Array, Array]:
        """Residual (N, r) of what touches and its derivative (N, r, n) in the joints."""
        robot = self.problem.geometry.robot
        touching = [(m, x) for m, x in zip(self.problem.measurements, like, strict=True) if m.contact]
        measured = tuple(m.at(q, x) for m, x in touching)
        frames = tuple(dict.fromkeys(f for m in measured for f in m.frames))
        moved = GeometryModel(0, 0, 1, 1, 0, 0, 0, 0, learned=False)
        problem = Problem(Geometry(robot, frames, moved, self.problem.geometry.bodies), measured)
        x = np.zeros(len(problem.unknowns))
        found = [m.residual(problem.space(k, x)) for k, m in enumerate(measured)]
        value = np.concatenate([t.value for t in found], axis=1)
        slope = np.concatenate([t.slope for t in found], axis=1)
        J = np.zeros((*value.shape, robot.n))
        for column, unknown in enumerate(problem.geometry.unknowns):
            joint = next(j for j in robot.joints if j.name == unknown.owner)
            leader, ratio = (joint.name, 1.0) if joint.mimic is None else (joint.mimic.leader, joint.mimic.ratio)
            J[..., robot.coordinates.index(leader)] += ratio * slope[..., column]
        return value, J

    def _pulled(self, q: Array, rng: np.random.Generator) -> Array:
        """Postures with those outside the box brought to random points of it, where these can be reached."""
        assert self.reach is not None
        targets = rng.uniform(self.reach[0], self.reach[1], (len(q), 3))
        robot = self.problem.geometry.robot

        def away(q: Array, rows: NDArray[np.intp]) -> tuple[Array, Array]:
            placement, J = frame_placement(robot, q, self.frame), frame_jacobian(robot, q, self.frame)
            arm = placement[:, :3, :3] @ self.point
            slope = J[:, :3] + np.cross(J[:, 3:], arm[:, :, None], axis=1)
            return placement[:, :3, 3] + arm - targets[rows], slope

        placement = frame_placement(robot, q, self.frame)
        inside = _inside(placement[:, :3, 3] + placement[:, :3, :3] @ self.point, self.reach)
        found, _ = _solved(q, away, self.lower, self.upper)
        return np.where(inside[:, None], q, found)


def labels_of(measurement: Measurement) -> tuple[list[str], NDArray[np.intp]]:
    """Names of the fields with labels that differ between postures, and one posture for each of their combinations."""
    text = [name for name in measurement.rows if np.asarray(getattr(measurement, name)).dtype.kind == "U"]
    table = np.column_stack([measurement.place, *(getattr(measurement, name) for name in text)])
    return text, np.sort(np.unique(table, axis=0, return_index=True)[1])


def expected_at(problem: Problem, drawn: Drawn) -> Problem:
    """The problem at other postures, with measured values as predicted."""
    moved = tuple(m.at(drawn.q, like) for m, like in zip(problem.measurements, drawn.like, strict=True))
    there = replace(problem, measurements=moved)
    x = np.zeros(len(there.unknowns))
    return replace(there, measurements=tuple(m.expected(there.space(k, x)) for k, m in enumerate(moved)))


def _inside(points: Array, box: Array) -> NDArray[np.bool_]:
    return np.asarray(((points >= box[0]) & (points <= box[1])).all(1))


def _square(J: Array, damping: float) -> Array:
    return np.asarray(J @ np.swapaxes(J, 1, 2) + damping * np.eye(J.shape[1]))


def _solved(
    q: Array, residual: Callable[[Array, NDArray[np.intp]], tuple[Array, Array]], lower: Array, upper: Array
) -> tuple[Array, NDArray[np.bool_]]:
    """Postures at which a residual is zero, and whether each was found."""
    q, done = q.copy(), np.zeros(len(q), dtype=bool)
    for _ in range(_STEPS):
        rows = np.flatnonzero(~done)
        if not len(rows):
            break
        r, J = residual(q[rows], rows)
        size = np.linalg.norm(r, axis=1)
        close = size < _CLOSE
        done[rows[close]] = True
        rows, r, J, size = rows[~close], r[~close], J[~close], size[~close]
        # Joints at an end of their range that would be driven beyond it stay.
        step = _toward(r, J, size)
        held = ((q[rows] <= lower) & (step < 0)) | ((q[rows] >= upper) & (step > 0))
        step = _toward(r, np.where(held[:, None], 0.0, J), size)
        step *= np.minimum(1.0, _LONGEST / np.maximum(np.abs(step).max(1, initial=0.0), 1e-300))[:, None]
        q[rows] = np.clip(q[rows] + step, lower, upper)
    return q, done


def _toward(r: Array, J: Array, size: Array) -> Array:
    """Damped steps that make residuals zero."""
    square = _square(J, 1e-12) + (1e-3 * size**2)[:, None, None] * np.eye(J.shape[1])
    return np.asarray(-np.einsum("nij,ni->nj", J, np.linalg.solve(square, r[..., None])[..., 0]))
