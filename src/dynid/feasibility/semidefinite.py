"""Cone programs in the standard form of semidefinite programming, as text in the SDPA sparse format.

The format is min c.y subject to sum_i y_i F_i - F_0 positive semidefinite: F_0 is minus the constant part. The sum of
squares becomes one unknown that is not smaller and a matrix (Schur's complement), a second-order cone an arrow matrix.

    |x|^2 <= t as [[1, x], [x', t]] >= 0

Sources: Sousa (2014), section 3.5, for least squares as a semidefinite program; Fujisawa, Kojima, Nakata and Yamashita,
SDPA User's Manual, for the format.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dynid.errors import NotApplicable
from dynid.feasibility.cone import Block, ConeProgram, order_of, svec_indices
from dynid.feasibility.whitened import whitened

__all__ = ["Semidefinite", "semidefinite"]

Array = NDArray[np.float64]
# Rows of a block: those of its constant, then one column for each unknown.
Rows = tuple[Array, Array]


@dataclass(frozen=True, eq=False)
class Semidefinite:
    """A semidefinite program over y, and how the unknowns x of the cone program follow: x = offset + directions y.

    Attributes
    ----------
    cost : ndarray, shape (m,)
        Cost of each y.
    sizes : tuple of int
        Orders of the blocks; that of a diagonal block is negative.
    entries : ndarray, shape (k, 5)
        Rows (matrix, block, row, column, value) of the upper triangles, counted from 1; matrix 0 is F_0.
    offset : ndarray, shape (n,)
        Unknowns of the cone program where y = 0.
    directions : ndarray, shape (n, m)
        Change of these unknowns with y.
    """

    cost: Array
    sizes: tuple[int, ...]
    entries: Array
    offset: Array
    directions: Array

    def unknowns(self, y: Array) -> Array:
        """Unknowns (n,) of the cone program."""
        return np.asarray(self.offset + self.directions @ y)

    def text(self, head: Sequence[str] = ()) -> str:
        """The program in the SDPA sparse format, with lines of comment."""
        lines = [f'"{" ".join(line.split())}' for line in head]
        lines += [str(len(self.cost)), str(len(self.sizes)), " ".join(map(str, self.sizes))]
        lines.append(" ".join(repr(float(x)) for x in self.cost))
        lines += [f"{k:.0f} {b:.0f} {i:.0f} {j:.0f} {float(x)!r}" for k, b, i, j, x in self.entries]
        return "\n".join([*lines, ""])


def semidefinite(program: ConeProgram) -> Semidefinite:
    """The semidefinite program with the same solutions; the program must have no exponential cones."""
    if any(block.cone == "exponential" for block in program.blocks):
        raise NotApplicable(
            "the entropic distance is no semidefinite program: use the metric euclidean or pullback", "metric"
        )
    form = whitened(program)
    count = form.squared
    cost, directions = form.cost, form.directions
    parts = [_ordered(b) for b in form.blocks if b.cone in ("psd", "second-order")]
    flat = [b for b in form.blocks if b.cone == "nonnegative"]
    if count:
        cost = np.append(cost, 1.0)
        directions = np.pad(directions, ((0, 0), (0, 1)))
        parts.append(_epigraph(count, form.directions.shape[1]))
    entries = [row for k, part in enumerate(parts) for row in _entries(k + 1, part)]
    sizes = [len(constant) for constant, _ in parts]
    if flat:
        constant = np.concatenate([b.constant for b in flat])
        matrix = sparse.vstack([b.matrix for b in flat]).toarray()
        scale = 1.0 / np.maximum(np.abs(matrix).max(axis=1, initial=0.0), 1e-300)
        entries += _diagonal(len(sizes) + 1, constant * scale, matrix * scale[:, None])
        sizes.append(-len(constant))
    return Semidefinite(cost, tuple(sizes), np.array(sorted(entries)), form.offset, directions)


def _ordered(block: Block) -> Rows:
    """A cone as upper triangles, constant (n, n) and (n, n, m) of the unknowns, with a diagonal of order one."""
    matrix = block.matrix.toarray()
    if block.cone == "psd":
        rows, columns, weights = svec_indices(order_of(block.rows))
        constant = _upper(rows, columns, block.constant / weights)
        slopes = _upper(rows, columns, matrix / weights[:, None])
    else:
        constant = np.diag(np.full(block.rows, block.constant[0]))
        constant[0, 1:] = block.constant[1:]
        slopes = np.eye(block.rows)[:, :, None] * matrix[0]
        slopes[0, 1:] = matrix[1:]
    size = np.maximum(np.abs(np.einsum("iik->ik", slopes)).max(axis=1, initial=0.0), np.abs(np.diag(constant)))
    root = 1.0 / np.sqrt(np.where(size > 0, size, 1.0))
    weight = np.outer(root, root)
    return constant * weight, slopes * weight[:, :, None]


def _epigraph(count: int, unknowns: int) -> Rows:
    """The matrix [[2, v], [., t]] of the first unknowns v, which is positive semidefinite where t >= |v|^2 / 2."""
    constant, slopes = np.zeros((count + 1, count + 1)), np.zeros((count + 1, count + 1, unknowns + 1))
    constant[range(count), range(count)] = 2.0
    slopes[range(count), count, range(count)] = 1.0
    slopes[count, count, unknowns] = 1.0
    return constant, slopes


def _entries(block: int, part: Rows) -> Iterator[tuple[float, ...]]:
    """Entries of a block of the file: F_0 is minus the constant."""
    constant, slopes = part
    for i, j in zip(*np.nonzero(constant), strict=True):
        yield 0, block, i + 1, j + 1, -constant[i, j]
    for i, j, k in zip(*np.nonzero(slopes), strict=True):
        yield k + 1, block, i + 1, j + 1, slopes[i, j, k]


def _diagonal(block: int, constant: Array, matrix: Array) -> Iterator[tuple[float, ...]]:
    """Entries of a diagonal block of inequalities constant + matrix y >= 0."""
    for i in np.flatnonzero(constant).tolist():
        yield 0, block, i + 1, i + 1, -constant[i]
    for i, k in np.argwhere(matrix).tolist():
        yield k + 1, block, i + 1, i + 1, matrix[i, k]


def _upper(rows: NDArray[np.intp], columns: NDArray[np.intp], values: Array) -> Array:
    size = int(rows.max()) + 1
    out = np.zeros((size, size, *values.shape[1:]))
    out[rows, columns] = values
    return out
