"""Base parameters by formula: regrouping of link parameters towards the base, modified Denavit-Hartenberg frames.

The theorem of Khalil and Dombre as restated by Krishnamoorthi (2018, appendix A), with a line that is missing there.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.robot.model import Robot

__all__ = ["printed_regrouping", "random_arm", "regrouping"]

Array = NDArray[np.float64]

_ELIMINATED = ("Iyy", "mz", "m")


def random_arm(seed: int, joints: int = 3) -> tuple[Robot, Array]:
    """A revolute arm in modified frames without drives, and its table (joint, [alpha, a, d]); random gravity."""
    rng = np.random.default_rng(seed)
    table = rng.uniform([-1.5, 0.2, -0.6], [1.5, 0.8, 0.6], (joints, 3))
    rows = [{"alpha": float(alpha), "a": float(a), "d": float(d)} for alpha, a, d in table]
    robot = Robot.from_dh(rows, convention="modified", gravity=rng.normal(size=3))
    return robot.with_drives("none", rotor_inertia=False), table


def regrouping(robot: Robot, table: ArrayLike) -> dict[str, Array]:
    """Each base parameter of a revolute arm as a row over its standard parameters, from its modified table."""
    return _regrouped(robot, np.asarray(table, dtype=float), complete=True)


def printed_regrouping(robot: Robot, table: ArrayLike) -> dict[str, Array]:
    """The same with the lines for YZ and ZZ merged into one, as printed."""
    return _regrouped(robot, np.asarray(table, dtype=float), complete=False)


def _regrouped(robot: Robot, table: Array, complete: bool) -> dict[str, Array]:
    """From the last link on, regroup its yy, mz and m to the previous link and eliminate them."""
    rows = dict(zip(robot.parameter_labels, np.eye(len(robot.layout)), strict=True))
    for j in range(robot.n, 0, -1):
        yy, mz, m = (rows.pop(f"{symbol}_{j}") for symbol in _ELIMINATED)
        rows[f"Ixx_{j}"] = rows[f"Ixx_{j}"] - yy
        if j == 1:
            break
        alpha, d, r = table[j - 1]
        s, c = np.sin(alpha), np.cos(alpha)
        turned = yy + 2 * r * mz + r**2 * m
        given = {
            "Ixx": turned,
            "Ixy": d * s * (mz + r * m),
            "Ixz": -d * c * (mz + r * m),
            "Iyy": c**2 * turned + d**2 * m,
            "Iyz": c * s * turned,
            "Izz": s**2 * turned + d**2 * m,
            "mx": d * m,
            "my": -s * (mz + r * m),
            "mz": c * (mz + r * m),
            "m": m,
        }
        if not complete:
            given["Iyz"] = c * s * yy + 2 * r * s**2 * mz + (d**2 + r**2 * s**2) * m
            del given["Izz"]
        for symbol, form in given.items():
            rows[f"{symbol}_{j - 1}"] = rows[f"{symbol}_{j - 1}"] + form
    # The first link rotates about its own axis only.
    return {k: row for k, row in rows.items() if not k.endswith("_1") or k.split("_")[0] in ("Izz", "mx", "my")}
