"""Errors of an estimate on other motion, where contact forces are unknown.

The torque of a joint can be predicted without contact forces only while no foot beyond it touches. What can always be
checked is the balance of the whole robot: the forces of the feet follow from the torques of the standing legs, and
together with weight and inertia they must cancel, in six equations per sample.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.identification.legs.fold import sample_rows
from dynid.identification.legs.runs import in_mode, prepare_legs, used_modes
from dynid.markup import HtmlFrame
from dynid.recording.recording import PARTS, Recording
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    import polars as pl

    from dynid.identification.legs.result import LegsEstimate

__all__ = ["LegsValidation", "validate_legs"]

Array = NDArray[np.float64]

# An entry of a contact Jacobian below this does not load the joint (m).
_UNLOADED = 1e-9


@dataclass(frozen=True, eq=False)
class LegsValidation(HtmlFrame):
    """Errors on a recording.

    Attributes
    ----------
    joints : tuple of str
        The joints.
    units : tuple of str
        Unit of each joint's torque.
    rmse, relative : ndarray (n,)
        Root mean square torque error while no foot beyond the joint touches, and relative to that of the torque; NaN
        for joints that always carry load.
    samples : ndarray of int (n,)
        How many samples these are.
    balance : ndarray (6,)
        Root mean square error of the balance of forces (N) and moments (N m) of the whole robot, in base axes.
    weight : float
        Weight of the robot in N, for comparison.
    """

    joints: tuple[str, ...]
    units: tuple[str, ...]
    rmse: Array
    relative: Array
    samples: NDArray[np.int_]
    balance: Array
    weight: float

    def lines(self, unseen: bool = True) -> list[str]:
        """Errors per joint and of the balance, on motion that was not used for the fit or on that of the fit."""
        size = max(map(len, (*self.joints, *(f"balance {p}" for p in PARTS["wrench"]))))
        where = "on motion that was not used for the fit" if unseen else "of the fit itself"
        out = [f"errors {where}, torques of legs in the air and balance of the whole robot:"]
        for name, unit, rmse, relative in zip(self.joints, self.units, self.rmse, self.relative, strict=True):
            text = f"{rmse:10.4g} {unit:<4} {100 * relative:7.2f} %" if rmse == rmse else "always carries load"
            out.append(f"  {name:<{size}}  {text}")
        for part, error in zip(PARTS["wrench"], self.balance, strict=True):
            label = f"balance {part}"
            share = f" {100 * error / self.weight:7.2f} % of the weight" if part.startswith("f") else ""
            out.append(f"  {label:<{size}}  {error:10.4g} {'N' if share else 'N m':<4}{share}")
        return out

    def to_frame(self) -> pl.DataFrame:
        """The errors as a table.

        Returns
        -------
        polars.DataFrame
            One row per joint: joint, unit, samples, rmse and relative; NaN for joints that always carry load.
        """
        import polars as pl

        columns = {"samples": self.samples, "rmse": self.rmse, "relative": self.relative}
        return pl.DataFrame({"joint": self.joints, "unit": self.units, **columns})

    def summary(self) -> str:
        """Tables of the errors.

        Returns
        -------
        str
        """
        table = table_of("legs in the air", "joint", "samples", "RMSE", "unit", "relative %", text=("joint", "unit"))
        for name, unit, rmse, relative, count in zip(
            self.joints, self.units, self.rmse, self.relative, self.samples, strict=True
        ):
            table.add_row(name, str(count), f"{rmse:.4g}", unit, f"{100 * relative:.2f}")
        return rendered(table, *self.lines()[-6:])

    def to_dict(self) -> dict[str, Any]:
        """Values ready for JSON.

        Returns
        -------
        dict
        """
        return {
            "joints": list(self.joints),
            "rmse": [None if x != x else float(x) for x in self.rmse],
            "relative": [None if x != x else float(x) for x in self.relative],
            "samples": self.samples.tolist(),
            "balance": self.balance.tolist(),
            "weight": self.weight,
        }


def validate_legs(found: LegsEstimate, recording: Recording) -> LegsValidation:
    """Errors of an estimate on a recording, see `LegsEstimate.validate`."""
    robot = found.identified_robot
    runs = prepare_legs(
        robot,
        recording,
        found.contacts,
        imu=found.imu,
        signals=found.estimate.signals,
        foot_std=found.foot_std,
        every=None,
        foot_forces=found.foot_forces,
    )
    kept, n = list(found.estimate.base.kept), robot.n
    error, torque, count = np.zeros(n), np.zeros(n), np.zeros(n, dtype=int)
    balance, total = np.zeros(6), 0
    for run in runs:
        for mode in used_modes([run], found.contacts):
            mine = run.used[in_mode(run, mode, found.contacts)[run.used]]
            if not len(mine):
                continue
            J, Y, y, _ = sample_rows(robot, run, mine, mode)
            rest = y - Y[:, :, kept] @ found.estimate.beta
            free = np.abs(J[:, :, 6:]).max(axis=1, initial=0.0) < _UNLOADED
            error += np.sum(rest[:, 6:] ** 2 * free, axis=0)
            torque += np.sum(y[:, 6:] ** 2 * free, axis=0)
            count += free.sum(axis=0)
            legs = np.linalg.pinv(np.swapaxes(J[:, :, 6:], 1, 2), rcond=1e-3)
            force = np.einsum("nij,nj->ni", legs, rest[:, 6:])
            left = rest[:, :6] - np.einsum("nij,ni->nj", J[:, :, :6], force)
            balance += np.sum(left**2, axis=0)
            total += len(mine)
    with np.errstate(invalid="ignore", divide="ignore"):
        rmse, relative = np.sqrt(error / count), np.sqrt(error / torque)
    mass = float(sum(v for v, p in zip(robot.parameters, robot.layout, strict=True) if p.inertial and p.symbol == "m"))
    return LegsValidation(
        joints=robot.coordinates,
        units=tuple(robot.channel_units[c] for c in robot.coordinates),
        rmse=rmse,
        relative=relative,
        samples=count,
        balance=np.sqrt(balance / max(total, 1)),
        weight=mass * float(np.linalg.norm(robot.gravity)),
    )
