"""A residual as the flat arrays of `dynid.residual.layout`, and the predictor of these."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.tree import compile_robot
from dynid.errors import InvalidValue, NotApplicable, Unsupported
from dynid.residual.layout import INTEGERS, NUMBERS, SHAPES, Flag
from dynid.residual.posterior import Block, Posterior, basis_columns
from dynid.residual.predictor import Predictor
from dynid.residual.residual import Residual
from dynid.residual.tables import Fields

__all__ = ["compiled_residual", "leading"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]


def compiled_residual(residual: Residual, variance: bool, rank: int, notes: Sequence[str]) -> Predictor:
    """The predictor of a residual, as `Residual.predictor`."""
    if rank < 1:
        raise InvalidValue(f"rank must be positive, got {rank}", "rank")
    return Predictor(_tabulated(residual, variance, rank), residual.robot.coordinates, notes)


def _tabulated(residual: Residual, variance: bool, rank: int) -> Fields:
    """Every field of a residual, as flat arrays by name."""
    fields = _rigid(residual, variance) | _features(residual) | _learned(residual, variance, rank)
    return {name: _plain(fields[name], np.int64) for name in INTEGERS} | {
        name: _plain(fields[name], np.float64) for name in NUMBERS
    }


def _plain(x: NDArray[Any], kind: type) -> NDArray[Any]:
    return np.ascontiguousarray(x, dtype=kind).ravel()


def _rigid(residual: Residual, variance: bool) -> Fields:
    robot = residual.robot
    if robot.base != "fixed":
        raise NotApplicable(f"a predictor needs a fixed base, that of robot '{robot.name}' is {robot.base}")
    model = compile_robot(robot)
    if model.custom and residual.has_rigid:
        name = robot.drives[model.custom[0][0]].name
        raise Unsupported(
            f"drive term '{name}' is a Python function and cannot be compiled; remove it with robot.without"
        )
    tree, drives, pi = model.tree, model.drives, robot.parameters
    return {
        "flags": _flags(residual.has_rigid, variance),
        "parent": tree.parent, "coordinate": tree.coordinate, "massive": tree.massive,
        "ratio": tree.ratio, "offset": tree.offset, "rotation": tree.rotation, "position": tree.position,
        "subspace": tree.subspace, "gravity": tree.gravity, "inertia": model.inertias(robot, pi),
        "kind": drives.kind, "term_start": drives.start, "term_joint": drives.joint, "cross": drives.cross,
        "term_weight": drives.weight, "rest": drives.rest, "slope": drives.slope, "value": pi[model.drive_columns],
    }  # fmt: skip


def _flags(rigid: bool, variance: bool) -> Index:
    """The field FLAGS."""
    values = {Flag.RIGID: rigid, Flag.VARIANCE: variance}
    return np.array([values[flag] for flag in Flag], np.int64)


def _features(residual: Residual) -> Fields:
    features, blend = residual.features, residual.blend
    return {
        "periodic": features.periodic, "velocity_scale": features.velocity_scale, "center": features.center,
        "scale": features.scale, "low": features.low, "high": features.high,
        "home": residual.home, "blend": np.array([blend.whole, blend.gone]),
    }  # fmt: skip


def _learned(residual: Residual, variance: bool, rank: int) -> Fields:
    features = residual.features
    n, d = features.n, features.count
    posteriors = [joint.posterior if joint else None for joint in residual.joints]
    fields: Fields = {
        "trust": np.array([joint.trust if joint else 0.0 for joint in residual.joints]),
        "bound": np.array([joint.bound if joint else 0.0 for joint in residual.joints]),
        "variance_factor": np.array([joint.variance_factor if joint else 1.0 for joint in residual.joints]),
        "noise_column": np.array([p.noise.column if p else -1 for p in posteriors]),
        "output_scale": np.array([p.scale if p else 1.0 for p in posteriors]),
        "prior_variance": np.array([p.kernel.variance(p.theta) if p else 1.0 for p in posteriors]),
        "noise": np.zeros((n, 2)),
        "edge": np.array([features.edges(p.kernel.columns if p else (), residual.blend.reach) for p in posteriors]),
        "block_start": _starts(len(p.blocks) if p else 0 for p in posteriors),
        "part_start": _starts(len(p.kernel.parts) if p else 0 for p in posteriors),
    }
    for j, p in enumerate(posteriors):
        if p:
            fields["noise"][j, : p.noise.size] = p.noise_theta
    known = [p for p in posteriors if p]
    parts = [(part, theta) for p in known for part, theta in zip(p.kernel.parts, p.kernel.split(p.theta), strict=True)]
    fields |= {
        "shape": np.array([SHAPES.index(part.shape) for part, _ in parts], np.int64),
        "column_start": _starts(len(part.columns) for part, _ in parts),
        "column": np.array([c for part, _ in parts for c in part.columns], np.int64),
        "amplitude": np.array([np.exp(2 * theta[0]) for _, theta in parts]),
        "inverse_squared_length": _flat(1 / part.lengths(theta) ** 2 for part, theta in parts),
        "power": np.array([part.power(theta) for part, theta in parts]),
    }
    blocks = [(p, block) for p in known for block in p.blocks]
    factors = [_factor(p, block, rank) if variance else _NO_FACTOR for p, block in blocks]
    fields |= {
        "block_center": _flat(p.centers if len(p.blocks) > 1 else np.zeros((1, d)) for p in known),
        "joint": np.array([j for j, p in enumerate(posteriors) if p for _ in p.blocks], np.int64),
        "weight_start": _starts(len(block.points) for _, block in blocks),
        "weights": _flat(block.weights for _, block in blocks),
        "coefficient_start": _starts(len(block.coefficients) for _, block in blocks),
        "coefficients": _flat(_BASIS * block.coefficients for _, block in blocks),
        "rows": np.array([rows for rows, _, _, _ in factors], np.int64),
        "triangular": np.array([triangular for _, triangular, _, _ in factors], np.int64),
        "factor_start": _starts(flat.size for _, _, flat, _ in factors),
        "factors": _flat(flat for _, _, flat, _ in factors),
        "basis_root_start": _starts(root.size for _, _, _, root in factors),
        "basis_root": _flat(root for _, _, _, root in factors),
    }
    return fields | _sets(blocks)


def _sets(blocks: list[tuple[Posterior, Block]]) -> Fields:
    """Sets of blocks with the same points, and these points by column, for the columns that their kernels use."""
    members: dict[tuple[int, bytes], list[int]] = {}
    for b, (_, block) in enumerate(blocks):
        members.setdefault((len(block.points), block.points.tobytes()), []).append(b)
    sets = list(members.values())
    columns = [sorted({c for b in s for part in blocks[b][0].kernel.parts for c in part.columns}) for s in sets]
    points = [blocks[s[0]][1].points[:, c].T for s, c in zip(sets, columns, strict=True)]
    return {
        "set_block_start": _starts(len(s) for s in sets),
        "set_block": np.array([b for s in sets for b in s], np.int64),
        "set_column_start": _starts(len(c) for c in columns),
        "set_column": np.array([c for each in columns for c in each], np.int64),
        "set_size": np.array([x.shape[1] for x in points], np.int64),
        "set_point_start": _starts(x.size for x in points),
        "points": _flat(points),
    }


# Factor of the basis functions 1, x in a posterior. Here it multiplies the coefficients, and the functions are plain.
_BASIS = float(basis_columns(0, np.zeros((1, 0)))[0, 0])
_NO_FACTOR = (0, 0, np.zeros(0), np.zeros(0))


def _factor(posterior: Posterior, block: Block, rank: int) -> tuple[int, int, Array, Array]:
    """Factors of k'Ak = |B k|^2 and r'Sr = |Z'r|^2: rows of B, whether B is triangular, B with T, and Z."""
    A, m = block.reduction, len(block.points)
    tail, root = block.projection.ravel() / _BASIS, _BASIS * _root(block.covariance)
    if m > rank:
        rows = leading(posterior.kernel.matrix(posterior.theta, block.points), A, rank)
        return rank, 0, np.concatenate([rows.ravel(), tail]), root
    C = _root(A)
    triangular = np.array_equal(C, np.tril(C))
    return m, int(triangular), np.concatenate([*(C[i * triangular :, i] for i in range(m)), tail]), root


def leading(K: Array, A: Array, rank: int) -> Array:
    """B (rank, m) with |B k|^2 at most k'Ak, and as close to it as possible for queries like the points.

    With A = C C' and any orthonormal U, |U'C'k|^2 <= |C'k|^2. Over the columns of K the loss is smallest for the
    leading left singular vectors of C'K, found by iterated projection; the bound also holds where these are inexact.
    """
    C = _root(A)
    U = np.random.default_rng(0).normal(size=(len(K), rank + _OVERSAMPLED))
    U = np.linalg.qr(C.T @ (K @ U))[0]
    for _ in range(_PROJECTIONS):
        U = np.linalg.qr(C.T @ (K @ (K @ (C @ U))))[0]
    inner, _, _ = np.linalg.svd((U.T @ C.T) @ K, full_matrices=False)
    return np.asarray((U @ inner[:, :rank]).T @ C.T, np.float64)


_OVERSAMPLED = 20
_PROJECTIONS = 2


def _root(A: Array) -> Array:
    try:
        return np.asarray(np.linalg.cholesky(A), np.float64)
    except np.linalg.LinAlgError:  # singular to working precision: points close together
        values, vectors = np.linalg.eigh(A)
        return np.asarray(vectors * np.sqrt(np.maximum(values, 0.0)))


def _starts(sizes: Any) -> Index:
    return np.cumsum([0, *sizes]).astype(np.int64)


def _flat(arrays: Any) -> Array:
    return np.concatenate([np.zeros(0), *(np.ravel(x) for x in arrays)])
