"""Torque errors with and without the learned part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.identification.validation import Validation, validation_of
from dynid.residual.rows import TorqueRows

if TYPE_CHECKING:
    from dynid.residual.residual import Residual

__all__ = ["Comparison", "compare"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Torque errors joint by joint: `rigid` alone and `compensated`, with the learned part.

    `coverage` (k,) of 95 % intervals, NaN where nothing was learned; `share` (k,): how much of the learned part was
    used on the mean.
    """

    rigid: Validation
    compensated: Validation
    coverage: Array
    share: Array

    @property
    def joints(self) -> tuple[str, ...]:
        return self.rigid.channels

    @property
    def ratio(self) -> Array:
        """Compensated over rigid rmse (k,)."""
        return np.asarray(self.compensated.rmse / np.where(self.rigid.rmse > 0, self.rigid.rmse, 1.0))

    @property
    def nmse(self) -> Array:
        """Mean squared error over the variance of the measured torque, rigid and compensated (2, k)."""
        return np.array([1.0 - self.rigid.r2, 1.0 - self.compensated.r2])

    def to_dict(self) -> dict[str, Any]:
        """Figures by joint."""
        return {
            joint: {
                "rows": self.rigid.rows[k],
                "rigid_rmse": float(self.rigid.rmse[k]),
                "rmse": float(self.compensated.rmse[k]),
                "ratio": float(self.ratio[k]),
                "rigid_nmse": _plain(self.nmse[0, k]),
                "nmse": _plain(self.nmse[1, k]),
                "coverage": _plain(self.coverage[k]),
                "share": float(self.share[k]),
            }
            for k, joint in enumerate(self.joints)
        }

    def summary(self) -> str:
        """A table of the errors."""
        width = max(map(len, self.joints))
        lines = [f"{'':<{width}}    rows  rigid N m  with residual  ratio  nmse rigid   nmse with  coverage  share"]
        for k, joint in enumerate(self.joints):
            covered = f"{self.coverage[k]:8.2f}" if np.isfinite(self.coverage[k]) else "       -"
            errors = f"{self.rigid.rmse[k]:9.4g}  {self.compensated.rmse[k]:13.4g}  {self.ratio[k]:5.2f}"
            shares = f"{self.nmse[0, k]:10.3g}  {self.nmse[1, k]:10.3g}  {covered}  {self.share[k]:5.2f}"
            lines.append(f"{joint:<{width}}  {self.rigid.rows[k]:6d}  {errors}  {shares}")
        return "\n".join(lines)


def compare(residual: Residual, rows: TorqueRows) -> Comparison:
    """Errors of a residual on rows that it need not have seen."""
    measured, rigid, both, covered, share = [], [], [], [], []
    for one in rows.joints:
        j = one.joint
        found = residual.predict(*one.motion)
        measured.append(one.torque)
        rigid.append(one.rigid if residual.has_rigid else np.zeros(len(one)))
        both.append(rigid[-1] + found.learned[:, j])
        inside = np.abs(one.torque - both[-1]) <= 1.96 * found.deviation[:, j]
        covered.append(float(np.mean(inside)) if residual.joints[j] is not None else np.nan)
        share.append(float(found.share[:, j].mean()))
    names = tuple(residual.robot.coordinates[one.joint] for one in rows.joints)
    times = [one.clock for one in rows.joints]
    before, after = (validation_of(names, measured, predicted, times) for predicted in (rigid, both))
    return Comparison(before, after, np.array(covered), np.array(share))


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
