"""Which combinations of parameters are identifiable from the torques of a tree, exactly and without samples.

A change of the parameters does not change the torques exactly if it changes neither the kinetic and potential energy
(up to constants) nor the dissipative drive terms. From the tips to the base, a change of a body must have no effect
through its own joint, for every motion of its parent; the remaining changes act as a change of the parent. The motions
of the parent are a span of orbits under the joints before it, and the span of an orbit exp(q A) x is the smallest
A-invariant subspace that contains x, which linear algebra gives without sampling.

A change d of the inertia of a body, with all bodies beyond it, has no effect through its joint with screw s if, for the
motions w, the kinetic functionals k and the gravity g that can occur before it,

    s' I(d) s = 0,    s' I(d) w = 0,    k' G d = 0,    g . (m s_v + s_w x h) = 0

with the rate G of the inertial parameters in the frame of the parent, and m and h of the change d.

Source: Wensing, Niemeyer and Slotine, A Geometric Characterization of Observability in Inertial Parameter
Identification (2024); rotor inertias, offsets and friction on any shaft are our own addition.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.tree import LINEAR_KINDS, compile_robot
from dynid.errors import NotApplicable
from dynid.robot.drives import LAW_OF_KIND, TermKind
from dynid.robot.inertia import (
    inertia_from_pseudo,
    inertia_to_pseudo,
    inertia_to_spatial,
    inertia_transform,
)
from dynid.robot.model import Robot
from dynid.robot.spatial import inverse_placement, skew, twist_adjoint, twist_matrix

__all__ = ["Sensed", "freed_mimics", "observability_matrix"]

Array = NDArray[np.float64]
Sensed = Literal["all", "torque", "wrench"]

_RANK = 1e-9
_UNIT_INERTIAS = inertia_to_spatial(np.eye(10))


def observability_matrix(robot: Robot, sensed: Sensed = "all") -> Array:
    """Rows over the standard parameters (r, p) with the same row space as the regressor of all motions.

    With a floating base, `sensed` can leave out the base wrench ("torque") or the joint torques ("wrench"). Joint
    torques determine everything but the inertia of the whole robot with locked joints at its base. The wrench
    determines the inertial parameters of all bodies as all channels do: a change of the bodies that does not change the
    momentum leaves I S = 0, for the inertia I of the bodies beyond a joint and its screw S, and with it the kinetic
    energy. It does not determine the drives.
    """
    for joint in robot.joints:
        if joint.mimic is not None:
            raise NotApplicable(
                f"the recursion covers independent joints only: make '{joint.name}' one with freed_mimics"
            )
    if robot.base == "instrumented":
        raise NotApplicable("the recursive method covers joint torques only: use a fixed or floating base", "method")
    if sensed != "all" and robot.base != "floating":
        raise NotApplicable(f"sensed has a meaning for a floating base only, this base is {robot.base}", "sensed")
    for term in robot.drives:
        if term.kind == TermKind.CUSTOM and sensed != "wrench":
            raise NotApplicable(f"the recursive method does not cover the custom term '{term.name}'", "method")
    p = len(robot.layout)
    model = compile_robot(robot)
    home = [j.placement @ j.mount for j in robot.joints]
    effective = _effective_inertias(robot, home, model.tree.column, p)
    drive = _DriveRows(robot, used=sensed != "wrench")
    rows = [drive.rows()]

    floating = robot.base == "floating"
    # Per body: twists with labels of the joint velocities (6 + n), kinetic functionals (10), gravity with a one (4).
    twists = [np.vstack([np.eye(6), np.zeros((robot.n, 6))]) if floating else np.zeros((6 + robot.n, 0))]
    kinetic = [np.eye(10) if floating else np.zeros((10, 0))]
    gravity = [np.eye(4) if floating and robot.gravity.any() else np.append(robot.gravity, 1.0)[:, None]]
    if floating and sensed != "torque":
        rows.append(effective[0])
    ancestors: list[set[int]] = [set()]
    for j, joint in enumerate(robot.joints):
        parent, s = joint.parent, model.tree.subspace[j]
        back = inverse_placement(home[j])
        seen = np.zeros((6 + robot.n, 6 + robot.n))
        seen[:6, :6] = twist_adjoint(back)
        seen[6:, 6:] = np.eye(robot.n)
        turn = np.zeros_like(seen)
        turn[:6, :6] = _motion_cross(s)
        w = _orbit(turn, seen @ twists[parent])
        change = _inertia_generator(s).T
        k = _orbit(change, inertia_transform(home[j]).T @ kinetic[parent])
        turn4 = np.zeros((4, 4))
        turn4[:3, :3] = skew(s[3:])
        seen4 = np.eye(4)
        seen4[:3, :3] = back[:3, :3]
        g = _orbit(turn4, seen4 @ gravity[parent])

        here = effective[j + 1]
        # Own velocity squared, own velocity times that of the parent, dependence on the own position.
        rows.append((_kinetic_row(s, s) @ here + drive.inertia[j, j])[None])
        if w.shape[1]:
            crossed = np.array([_kinetic_row(s, column[:6]) for column in w.T])
            rows.append(crossed @ here + w[6:].T @ drive.inertia[j])
        rows.append((change @ k).T @ here)
        pull = np.array([np.concatenate([[-x[:3] @ s[:3]], -np.cross(x[:3], s[3:]), np.zeros(6)]) for x in g.T])
        rows.append(pull @ here + np.outer(g[3], drive.constant[j]))
        # Joints of different branches have no common term in the kinetic energy of the bodies.
        rows.append(np.array([drive.inertia[j, i] for i in range(j) if i not in ancestors[parent]]).reshape(-1, p))

        label = np.zeros(6 + robot.n)
        label[:6], label[6 + j] = s, 1.0
        twists.append(_span(np.column_stack([w, label])))
        pairs = [_kinetic_row(s, column[:6]) for column in w.T]
        kinetic.append(_span(np.column_stack([k, *pairs, _kinetic_row(s, s)])))
        gravity.append(g)
        ancestors.append(ancestors[parent] | {j})
    stacked = np.vstack(rows)
    return stacked[np.linalg.norm(stacked, axis=1) > 1e-13]


def freed_mimics(robot: Robot) -> Robot:
    """The robot with its mimic joints as independent ones without drives.

    A regressor row of the robot is a sum of rows of the freed one, with the same parameters.
    """
    names = [joint.name for joint in robot.joints]
    place = [names.index(name) for name in robot.coordinates]

    def padded(rows: Array) -> Array:
        out = np.zeros((len(names), *rows.shape[1:]))
        out[place] = rows
        return out

    drives = tuple(replace(t, direction=padded(t.direction), owner=place[t.owner]) for t in robot.drives)
    joints = tuple(replace(joint, mimic=None) for joint in robot.joints)
    return replace(robot, joints=joints, drives=drives, transmission=None)


def _effective_inertias(robot: Robot, home: list[Array], column: NDArray[np.int64], p: int) -> list[Array]:
    """Inertia of each body with all bodies beyond it (10, p), joints at zero, as a function of the parameters."""
    out = [np.zeros((10, p)) for _ in robot.links]
    for b, c in enumerate(column):
        if c >= 0:
            out[b][:, c : c + 10] = np.eye(10)
    for j in range(len(robot.joints) - 1, -1, -1):
        out[robot.joints[j].parent] += inertia_transform(home[j]) @ out[j + 1]
    return out


def _kinetic_row(s: Array, w: Array) -> Array:
    """Coefficients (10,) of the inertial parameters in s' I w."""
    return np.asarray(s @ _UNIT_INERTIAS @ w)


def _motion_cross(s: Array) -> Array:
    """s x on twists (linear, angular)."""
    x = np.zeros((6, 6))
    x[:3, :3] = x[3:, 3:] = skew(s[3:])
    x[:3, 3:] = skew(s[:3])
    return x


def _inertia_generator(s: Array) -> Array:
    """Rate (10, 10) at which the inertial parameters in the parent frame change as the joint moves."""
    t = twist_matrix(s)
    pseudo = inertia_to_pseudo(np.eye(10))
    return inertia_from_pseudo(t @ pseudo + pseudo @ t.T).T


def _span(columns: Array) -> Array:
    """Orthonormal basis of the column space."""
    norms = np.linalg.norm(columns, axis=0)
    columns = columns[:, norms > 1e-12]
    if not columns.size:
        return np.zeros((columns.shape[0], 0))
    u, s, _ = np.linalg.svd(columns / np.linalg.norm(columns, axis=0), full_matrices=False)
    return u[:, s > _RANK * s[0]]


def _orbit(generator: Array, start: Array) -> Array:
    """Basis of the smallest invariant subspace of `generator` that contains `start`."""
    basis = _span(start)
    while True:
        wider = _span(np.column_stack([basis, generator @ basis]))
        if wider.shape[1] == basis.shape[1]:
            return basis
        basis = wider


Parts = tuple[float, float, float, float]  # of 1, s, |s| and sign(s)


class _DriveRows:
    """Drive columns written in independent functions of the motion.

    `inertia` (n, n, p): coefficients in the constant part of the mass matrix; `constant` (n, p): in the
    constant torques. Velocities, signs and magnitudes along a shaft, and positions, give separate rows.
    """

    def __init__(self, robot: Robot, used: bool = True) -> None:
        n, p = robot.n, len(robot.layout)
        names = {name: i for i, name in enumerate(robot.parameter_names)}
        self.inertia = np.zeros((n, n, p))
        self.constant = np.zeros((n, p))
        self._other: dict[tuple[object, ...], Array] = {}
        self._p = p
        for term in robot.drives if used else ():
            parts = LAW_OF_KIND[term.kind].parts
            if parts is None:
                self._put((term.symbol, term.owner, term.velocity, *term.direction), names[term.name], 1.0)
            else:
                self._add(term.kind, parts, term.direction, names[term.name], term.cross_only, term.rest)

    def rows(self) -> Array:
        return np.array(list(self._other.values())).reshape(-1, self._p)

    def _put(self, key: tuple[object, ...], column: int, value: float) -> None:
        self._other.setdefault(key, np.zeros(self._p))[column] += value

    def _add(self, kind: TermKind, parts: Parts, d: Array, column: int, cross_only: bool, rest: float) -> None:
        linear = np.outer(d, d)
        if cross_only and kind in LINEAR_KINDS:
            np.fill_diagonal(linear, 0.0)
        first = d[np.flatnonzero(d)[0]]
        scale = float(np.linalg.norm(d) * np.sign(first))  # shaft velocity = scale * (unit direction . v)
        shaft = tuple(np.round(d / scale, 9))
        one, linear_part, size, sign = parts if kind != TermKind.SPRING else (-rest, *parts[1:])
        if kind == TermKind.INERTIA:
            self.inertia[:, :, column] += linear
        for i in np.flatnonzero(d):
            self.constant[i, column] += one * d[i]
            for j in np.flatnonzero(linear[i]):
                if linear_part:
                    self._put(("velocity", i, j), column, linear_part * linear[i, j])
                if kind == TermKind.SPRING:
                    self._put(("position", i, j), column, linear[i, j])
            if size:
                self._put(("size", i, shaft), column, size * d[i] * abs(scale))
            if sign:
                self._put(("sign", i, shaft), column, sign * d[i] * float(np.sign(scale)))
