"""The rank of a regressor and the columns that represent it.

The rank is where the singular spectrum falls most; the columns are chosen from left to right. The two are kept apart,
since a placement rounded at 1e-8 leaves residuals of 1e-8 between the columns and does not change where the
spectrum falls. Inertial columns are scaled per kind of parameter, not each to unit norm: a column that only rounding
makes different from zero stays small. Drive columns do not depend on the placements and are scaled one by one.

    rank = argmax of s_i / s_i+1,    column j is kept if |(1 - Q Q') w_j| > limit for the basis Q of those kept before.

Sources: Gautier, Numerical Calculation of the Base Inertial Parameters of Robots (1991), for the rank by QR or singular
values; Daniel, Gragg, Kaufman and Stewart, Reorthogonalization and Stable Algorithms for Updating the Gram-Schmidt QR
Factorization (1976), for Gram-Schmidt done twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.robot.parts import Parameter

__all__ = ["column_scales", "independent_columns", "left_to_right", "pivoted_columns", "spectrum_gap", "spectrum_ranks"]

Array = NDArray[np.float64]

# With scaled columns, rounding leaves about 1e-15 of a dependent column and exact geometry more than 1e-4 of an
# independent one.
_INDEPENDENT = 1e-8
_ZERO_COLUMN = 1e-10
_CLEAR = 1e-4
_SMALLEST_FALL = 100.0
# Lengths of columns that differ by less differ by rounding only.
_TIE = 1e-8
_OTHER_LIMITS = tuple(10.0**-k for k in range(2, 13))


def column_scales(layout: Sequence[Parameter], matrix: Array) -> Array:
    """Scale (p,) of every column: the largest norm of its kind for inertial parameters, its own norm for drives.

    Columns without effect have the scale zero.
    """
    norms = np.linalg.norm(matrix, axis=0)
    inertial = np.array([p.inertial for p in layout], dtype=bool)
    groups = np.array([p.group for p in layout])
    scales = norms.copy()
    for group in set(groups[inertial]):
        chosen = inertial & (groups == group)
        scales[chosen] = norms[chosen].max()
    return np.where(norms <= _ZERO_COLUMN * norms.max(initial=0.0), 0.0, scales)


def spectrum_ranks(singular: Array) -> list[int]:
    """Ranks at which descending singular values fall clearly, the largest fall first.

    Rounding is taken as the smallest size that a singular value has. A regressor of full rank falls after its last
    singular value.
    """
    floor = np.finfo(float).eps * len(singular) * singular[0]
    sizes = np.append(np.maximum(singular, floor), floor)
    falls = sizes[:-1] / sizes[1:]
    return [int(i) + 1 for i in np.argsort(-falls, kind="stable") if falls[i] >= _SMALLEST_FALL]


def spectrum_gap(singular: Array, rank: int) -> float:
    """Ratio of the last singular value of the rank and the next one."""
    below = singular[rank] if rank < len(singular) else 0.0
    return float(singular[rank - 1] / below) if below > 0 else np.inf


def independent_columns(scaled: Array, scan: Sequence[int], singular: Array) -> list[int]:
    """Columns that are independent of those scanned before them, as many as a rank of the spectrum that allows it.

    The usual limit serves where the columns that it keeps differ as clearly as the singular values of the rank do.
    Otherwise the limit is used that keeps the columns that differ most. The list is empty if no limit keeps as many
    columns as any of the ranks.
    """
    ranks = spectrum_ranks(singular)
    smallest, kept = _scanned(scaled, scan, _INDEPENDENT)
    if ranks and len(kept) == ranks[0] and smallest >= _CLEAR * singular[ranks[0] - 1]:
        return kept
    found = [(smallest, kept)] + [_scanned(scaled, scan, limit) for limit in _OTHER_LIMITS]
    for rank in ranks:
        fitting = [each for each in found if len(each[1]) == rank]
        if fitting:
            return max(fitting)[1]
    return []


def left_to_right(scaled: Array, scan: Sequence[int], limit: float = _INDEPENDENT) -> list[int]:
    """Columns that differ by more than `limit` from combinations of those scanned before them."""
    return _scanned(scaled, scan, limit)[1]


def _scanned(scaled: Array, scan: Sequence[int], limit: float) -> tuple[float, list[int]]:
    """Smallest residual of the columns kept, and these columns, by Gram-Schmidt done twice."""
    basis = np.empty((scaled.shape[0], min(scaled.shape[0], len(scan))), order="F")
    kept: list[int] = []
    smallest = np.inf
    for j in scan:
        rest, known = scaled[:, j], basis[:, : len(kept)]
        for _ in range(2):
            rest = rest - known @ (known.T @ rest)
        size = float(np.linalg.norm(rest))
        if size > limit and len(kept) < basis.shape[1]:
            basis[:, len(kept)] = rest / size
            kept.append(j)
            smallest = min(smallest, size)
    return smallest, kept


def pivoted_columns(scaled: Array, scan: Sequence[int], singular: Array) -> list[int]:
    """Columns of a pivoted QR decomposition, as many as the rank of the spectrum; none without a clear rank.

    Scaled columns are often equally long. Of those that are, to rounding, the first one is taken: LAPACK takes one that
    depends on its build.
    """
    ranks = spectrum_ranks(singular)
    if not ranks:
        return []
    left = scipy.linalg.qr(scaled[:, scan], mode="r")[0]
    kept: list[int] = []
    for _ in range(ranks[0]):
        lengths = np.linalg.norm(left, axis=0)
        lengths[kept] = 0.0
        first = int(np.argmax(lengths >= (1.0 - _TIE) * lengths.max()))
        kept.append(first)
        axis = left[:, first] / lengths[first]
        for _ in range(2):
            left = left - np.outer(axis, axis @ left)
    return [scan[j] for j in kept]
