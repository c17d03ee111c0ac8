"""A residual as the flat arrays of `dynid.residual.layout`: computed, joined for the kernels, and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.tree import compile_robot
from dynid.errors import NotApplicable, Unsupported
from dynid.residual.layout import INTEGERS, NUMBERS, SHAPES, Flag
from dynid.residual.posterior import Block, Posterior, basis_columns
from dynid.residual.residual import Residual
from dynid.robot.drives import TermKind

__all__ = ["Fields", "fault", "join", "leading", "tabulate"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Fields = dict[str, NDArray[Any]]


def tabulate(residual: Residual, variance: bool, rank: int) -> Fields:
    """Every field of a residual, as flat arrays by name."""
    fields = _rigid(residual, variance) | _features(residual) | _learned(residual, variance, rank)
    return {name: _plain(fields[name], np.int64) for name in INTEGERS} | {
        name: _plain(fields[name], np.float64) for name in NUMBERS
    }


def _plain(x: NDArray[Any], kind: type) -> NDArray[Any]:
    return np.ascontiguousarray(x, dtype=kind).ravel()


def join(fields: Fields) -> tuple[Index, Array]:
    """The two arrays of `dynid.residual.layout`: head and integers, and numbers."""
    head = len(INTEGERS) + len(NUMBERS) + 2
    whole = head + np.cumsum([0, *(fields[name].size for name in INTEGERS)])
    broken = np.cumsum([0, *(fields[name].size for name in NUMBERS)])
    index = np.concatenate([whole, broken, *(fields[name] for name in INTEGERS)])
    return index, np.concatenate([fields[name] for name in NUMBERS])


def fault(f: Fields) -> str | None:
    """The first inconsistency in fields from a file, or None: compiled code does not check its indices."""
    missing = [name for name in (*INTEGERS, *NUMBERS) if name not in f]
    if missing:
        return f"'{missing[0]}' is missing"
    for name in (*INTEGERS, *NUMBERS):
        if f[name].ndim != 1 or f[name].dtype != (np.int64 if name in INTEGERS else np.float64):
            return f"'{name}' is not a list of {'integers' if name in INTEGERS else 'numbers'}"
        if name not in ("bound", "points") and not np.all(np.isfinite(f[name])):
            return f"'{name}' is not finite"
    n, d, joints = f["home"].size, f["center"].size, f["parent"].size
    terms, parts, sets, blocks = f["kind"].size, f["shape"].size, f["set_size"].size, f["rows"].size
    sizes = {
        "flags": len(Flag), "blend": 2, "gravity": 3, "inertia": 10 * joints + 10, "massive": joints + 1,
        **dict.fromkeys(("parent", "coordinate", "ratio", "offset"), joints),
        "rotation": 27 * joints, "position": 12 * joints, "subspace": 6 * joints,
        **dict.fromkeys(("cross", "rest", "slope", "value"), terms), "term_weight": f["term_joint"].size,
        **dict.fromkeys(("periodic", "velocity_scale", "noise_column", "output_scale", "prior_variance"), n),
        **dict.fromkeys(("trust", "bound", "variance_factor"), n),
        "noise": 2 * n,
        "center": 3 * n + n + int(np.count_nonzero(f["periodic"])), "amplitude": parts, "power": parts,
        "edge": n * d, **dict.fromkeys(("scale", "low", "high"), d),
        "inverse_squared_length": f["column"].size, "joint": blocks, "triangular": blocks, "block_center": d * blocks,
        "set_block": blocks,
    }  # fmt: skip
    lists = {
        "term_start": (terms, "term_joint"), "part_start": (n, "shape"), "block_start": (n, "rows"),
        "column_start": (parts, "column"), "set_column_start": (sets, "set_column"),
        "set_block_start": (sets, "set_block"), "set_point_start": (sets, "points"),
        "weight_start": (blocks, "weights"), "factor_start": (blocks, "factors"),
        "coefficient_start": (blocks, "coefficients"), "basis_root_start": (blocks, "basis_root"),
    }  # fmt: skip
    for name, size in sizes.items():
        if f[name].size != size:
            return f"'{name}' has {f[name].size} entries instead of {size}"
    for name, (items, of) in lists.items():
        if f[name].size != items + 1 or f[name][0] != 0 or f[name][-1] != f[of].size or np.any(np.diff(f[name]) < 0):
            return f"'{name}' does not divide '{of}'"
    ranges = {
        "parent": joints, "coordinate": n, "term_joint": n, "kind": TermKind.CUSTOM, "column": d, "set_column": d,
        "shape": len(SHAPES), "joint": n, "set_block": blocks, "noise_column": d,
        **dict.fromkeys(("flags", "massive", "cross", "periodic", "triangular"), 2),
    }  # fmt: skip
    for name, end in ranges.items():
        if np.any(f[name] < (-1 if name == "noise_column" else 0)) or np.any(f[name] >= end):
            return f"'{name}' is out of range"
    if np.any(f["power"] <= 0):
        return "'power' is not positive"
    return _block_fault(f)


def _block_fault(f: Fields) -> str | None:
    """Whether blocks, their sets and their factors fit together."""
    points, bases = np.diff(f["weight_start"]), np.diff(f["coefficient_start"])
    whole = f["rows"] * points - np.where(f["triangular"] != 0, f["rows"] * (f["rows"] - 1) // 2, 0)
    size = np.zeros(len(points), np.int64)
    size[f["set_block"]] = np.repeat(f["set_size"], np.diff(f["set_block_start"]))
    if np.any(f["parent"] > np.arange(f["parent"].size)):
        return "'parent' is out of order"
    if len(np.unique(f["set_block"])) != len(points) or np.any(size != points):
        return "'set_size' does not fit 'weights'"
    if np.any(np.diff(f["set_point_start"]) != f["set_size"] * np.diff(f["set_column_start"])):
        return "'points' do not fit 'set_size'"
    if np.any(f["rows"] < 0) or np.any((f["triangular"] != 0) & (f["rows"] > points)):
        return "'rows' is out of range"
    if f["flags"][Flag.VARIANCE] and np.any(np.diff(f["factor_start"]) != whole + bases * points):
        return "'factors' do not fit 'rows'"
    if f["flags"][Flag.VARIANCE] and np.any(np.diff(f["basis_root_start"]) != bases**2):
        return "'basis_root' does not fit 'coefficients'"
    if np.any(bases > 1 + f["center"].size):
        return "'coefficients' are too many"
    return None


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
