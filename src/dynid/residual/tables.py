"""The flat arrays of `dynid.residual.layout`: joined for the kernels, and checked."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.residual.layout import INTEGERS, NUMBERS, SHAPES, Flag
from dynid.robot.drives import TermKind

__all__ = ["Fields", "fault", "join"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]
Fields = dict[str, NDArray[Any]]


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
