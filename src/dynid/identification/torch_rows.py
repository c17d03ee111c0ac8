"""Regressor rows of a robot and their triangular factors with PyTorch, on a processor or a graphics card.

Takes the flat arrays of `dynid.dynamics.tree`, and imports nothing else of this package: a computer that has only numpy
and torch can load it from its file.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

__all__ = ["FilterBlock", "TorchRows"]

Array = NDArray[np.float64]

# TermKind codes as plain integers, as in the kernels.
INERTIA, VISCOUS_POSITIVE, VISCOUS_NEGATIVE, COULOMB, COULOMB_POSITIVE, COULOMB_NEGATIVE = 0, 2, 3, 4, 5, 6
STRIBECK, OFFSET, SPRING = 7, 8, 9


class FilterBlock(NamedTuple):
    """A recursive filter over blocks of B samples, with a state of size s.

    The output of a block is `response` (B, B) times its samples plus `free` (B, s) times its first state; the state
    after it is `driven` (s, B) times its samples plus `carried` (s, s) times its first state. A constant input of one
    leads to the state `steady` (s,).
    """

    response: Array
    free: Array
    driven: Array
    carried: Array
    steady: Array


def _unit_wrenches() -> Array:
    """Wrench (6) on a link of each unit parameter (10), per acceleration d, angular acceleration, and products w w'.

    mass: f = d;  first moment h: f = dw x h + w x (w x h), n = h x d;  tensor I: n = I dw + w x I w.
    """
    eye, cross = np.eye(3), np.zeros((3, 3, 3))  # (x cross y)_k = cross[k, i, j] x_i y_j
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        cross[k, i, j], cross[k, j, i] = 1.0, -1.0
    units = np.zeros((6, 3, 3))
    for unit, (i, j) in zip(units, ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)), strict=True):
        unit[i, j] = unit[j, i] = 1.0
    d, dw, ww = np.zeros((3, 6, 10)), np.zeros((3, 6, 10)), np.zeros((3, 3, 6, 10))
    d[:, :3, 0] = eye
    d[:, 3:, 1:4] = np.einsum("kji->ikj", cross)
    dw[:, :3, 1:4] = np.einsum("kij->ikj", cross)
    dw[:, 3:, 4:] = np.einsum("ski->iks", units)
    ww[:, :, :3, 1:4] = np.einsum("ik,jl->ijkl", eye, eye) - np.einsum("ij,kl->ijkl", eye, eye)
    ww[:, :, 3:, 4:] = np.einsum("kil,slj->ijks", cross, units)
    return np.concatenate([d, dw, ww.reshape(9, 6, 10)]).reshape(15, 60)


class TorchRows:
    """Rows of a robot with a fixed base on a device, as one table: per channel its columns, its torque, its velocity.

    Parameters
    ----------
    tree, drives : Tree, DriveArrays
        Arrays of the robot; custom drive terms have none.
    joints : sequence of int
        The independent joint of each channel.
    columns : sequence of ndarray of int
        Standard parameters of each channel whose columns are computed.
    device : str
        A device of PyTorch.
    """

    def __init__(
        self, tree: Any, drives: Any, joints: Sequence[int], columns: Sequence[NDArray[np.intp]], device: str
    ) -> None:
        self._tree, self._drives, self._joints, self._device = tree, drives, list(joints), device
        edges = np.cumsum([0, *(len(c) + 2 for c in columns)])
        self.spans = [slice(int(a), int(b)) for a, b in pairwise(edges)]
        self._rotation, self._position = self._put(tree.rotation), self._put(tree.position)
        self._subspace, self._gravity = self._put(tree.subspace), self._put(tree.gravity)
        self._unit = self._put(_unit_wrenches())
        # Independent joints that move each link, in the order of the twists that `_links` gives.
        self._moved_by: list[list[int]] = [[]]
        for parent, joint in zip(tree.parent, tree.coordinate, strict=True):
            above = self._moved_by[parent]
            self._moved_by.append(above if joint in above else [*above, int(joint)])
        shaft = [range(int(a), int(b)) for a, b in pairwise(drives.start)]
        links: list[list[tuple[int, int]]] = [[] for _ in tree.column]
        self._terms: list[tuple[int, int, int]] = []  # place in the table, drive term, entry of its shaft
        for span, joint, chosen in zip(self.spans, joints, columns, strict=True):
            for place, column in enumerate(chosen, start=span.start):
                for b, first in enumerate(tree.column):
                    if 0 <= first <= column < first + 10 and joint in self._moved_by[b]:
                        links[b].append((place, 10 * self._moved_by[b].index(joint) + int(column - first)))
                for t in np.flatnonzero(drives.column == column):
                    self._terms += [(place, int(t), i) for i in shaft[t] if drives.joint[i] == joint]
        # Places in the table of the entries of each link that are used.
        self._entries = [torch.tensor(found, device=device).reshape(-1, 2).T for found in links]

    def _put(self, x: ArrayLike) -> Any:
        return torch.as_tensor(np.ascontiguousarray(x, dtype=np.float64), device=self._device)

    def table(self, q: ArrayLike, v: ArrayLike, a: ArrayLike, torque: ArrayLike) -> Any:
        """Rows (N, width) from positions, velocities, accelerations and torques (N, joint)."""
        x, u, du, y = (self._put(given) for given in (q, v, a, torque))
        out = x.new_zeros(len(x), self.spans[-1].stop)
        for (places, sources), twists, motion in zip(self._entries, *self._links(x, u, du), strict=True):
            if len(places):
                wrenches = (motion @ self._unit).reshape(-1, 6, 10)
                out[:, places] = (twists @ wrenches).flatten(1)[:, sources]
        for place, t, i in self._terms:
            out[:, place] = self._drive(t, i, x, u, du)
        ends = [span.stop for span in self.spans]
        out[:, [end - 2 for end in ends]] = y[:, self._joints]
        out[:, [end - 1 for end in ends]] = u[:, self._joints]
        return out

    def _links(self, q: Any, v: Any, a: Any) -> tuple[list[Any], list[Any]]:
        """Of every link, in its axes: twists (N, k, 6) of the joints that move it, and what its wrenches depend on.

        These are the acceleration of its origin less gravity, its angular acceleration, and the products of its angular
        velocities (N, 15).
        """
        tree, cross = self._tree, torch.linalg.cross
        still = q.new_zeros(len(q), 3)
        found = [(still, still, still - self._gravity, q.new_zeros(len(q), 0, 6))]
        for j, (parent, c) in enumerate(zip(tree.parent, tree.coordinate, strict=True)):
            w, dw, d, twists = found[parent]
            x, u, du = tree.ratio[j] * q[:, c] + tree.offset[j], tree.ratio[j] * v[:, [c]], tree.ratio[j] * a[:, [c]]
            placed = torch.stack([torch.ones_like(x), torch.sin(x), torch.cos(x), x], -1)
            R, p = (placed[:, :3] @ self._rotation[j]).reshape(-1, 3, 3), placed @ self._position[j]
            slide, axis = self._subspace[j, :3].expand_as(still), self._subspace[j, 3:].expand_as(still)
            d = d + cross(dw, p) + cross(w, cross(w, p))
            w, dw, d = (torch.stack([w, dw, d], 1) @ R).unbind(1)
            d = d + slide * du + cross(2.0 * w + axis * u, slide * u)
            dw = dw + axis * du + cross(w, axis * u)
            w = w + axis * u
            turning = twists[..., 3:]
            moved = twists[..., :3] + cross(turning, p[:, None].expand_as(turning))
            twists = torch.cat([moved @ R, turning @ R], -1)
            own = float(tree.ratio[j]) * self._subspace[j]
            if len(self._moved_by[j + 1]) > twists.shape[1]:
                twists = torch.cat([twists, own.expand(len(q), 1, 6)], 1)
            else:  # a mimic joint beyond its leader
                twists[:, self._moved_by[j + 1].index(c)] += own
            found.append((w, dw, d, twists))
        motions = [torch.cat([d, dw, (w[:, :, None] * w[:, None]).flatten(1)], -1) for w, dw, d, _ in found]
        return [twists for *_, twists in found], motions

    def _drive(self, t: int, i: int, q: Any, v: Any, a: Any) -> Any:
        """Torque (N,) of a unit parameter of drive term t on the joint of entry i of its shaft: d_i f(d . v)."""
        drives = self._drives
        kind, rest, slope = int(drives.kind[t]), float(drives.rest[t]), float(drives.slope[t])
        x = a if kind == INERTIA else q if kind == SPRING else v
        s = sum(float(drives.weight[k]) * x[:, drives.joint[k]] for k in range(drives.start[t], drives.start[t + 1]))
        weight = float(drives.weight[i])
        if kind == SPRING:
            s = s - rest
        if drives.cross[t]:
            return weight * (s - weight * x[:, drives.joint[i]])
        if kind == OFFSET:
            s = torch.ones_like(s)
        elif kind == VISCOUS_POSITIVE:
            s = s.clamp(min=0.0)
        elif kind == VISCOUS_NEGATIVE:
            s = s.clamp(max=0.0)
        elif COULOMB <= kind <= STRIBECK:
            low, high = -float(kind != COULOMB_POSITIVE), float(kind != COULOMB_NEGATIVE)
            fading = torch.exp(-((s / rest) ** 2)) if kind == STRIBECK else 1.0
            if slope:
                s = 0.5 * (high + low) + 0.5 * (high - low) * torch.tanh(slope * s)
            else:
                s = high * (s > 0).to(s) + low * (s < 0).to(s)
            s = fading * s
        return weight * s

    def zero_phase(self, x: Any, pad: int, block: FilterBlock) -> Any:
        """Columns of x (N, k) filtered forward and backward, continued by `pad` reflected samples at both ends."""
        parts = FilterBlock(*(self._put(m) for m in block))
        x = torch.cat([2.0 * x[:1] - x[1 : pad + 1].flip(0), x, 2.0 * x[-1:] - x[-pad - 1 : -1].flip(0)])
        for _ in range(2):
            x = _filtered(x, parts).flip(0)
        return x[pad : len(x) - pad]

    def folded(self, factor: Array, rows: Any) -> Array:
        """Triangular factor of a factor and further rows; the rows themselves if they are fewer than the columns."""
        rows = torch.cat([self._put(factor), rows])
        if len(rows) > rows.shape[1]:
            # One decomposition of all rows: many of small blocks take ten times as long on an H200.
            rows = torch.linalg.qr(rows, mode="r").R
        return np.asarray(rows.cpu().numpy())


def _filtered(x: Any, block: Any) -> Any:
    """Columns of x (N, k) filtered in one direction, from the steady state of the first row."""
    size = len(block.response)
    blocks = torch.cat([x, x.new_zeros(-len(x) % size, x.shape[1])]).reshape(-1, size, x.shape[1])
    state, states = block.steady[:, None] * x[0], []
    for driven in block.driven @ blocks:
        states.append(state)
        state = torch.addmm(driven, block.carried, state)
    return (block.response @ blocks + block.free @ torch.stack(states)).flatten(0, 1)[: len(x)]
