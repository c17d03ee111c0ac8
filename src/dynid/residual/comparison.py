"""Torque errors with and without the learned part."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.residual.rows import TorqueRows

if TYPE_CHECKING:
    from dynid.residual.residual import Residual

__all__ = ["Comparison", "compare"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Errors by joint (k,): of the rigid torque and of the compensated one.

    rmse in N m; nmse: mean squared error over the variance of the measured torque; `coverage` of 95 % intervals (NaN
    where nothing was learned); `share`: how much of the learned part was used on the mean.
    """

    joints: tuple[str, ...]
    rows: tuple[int, ...]
    rigid_rmse: Array
    rmse: Array
    rigid_nmse: Array
    nmse: Array
    coverage: Array
    share: Array

    @property
    def ratio(self) -> Array:
        """Compensated over rigid rmse (k,)."""
        return np.asarray(self.rmse / np.where(self.rigid_rmse > 0, self.rigid_rmse, 1.0))

    def to_dict(self) -> dict[str, Any]:
        names = ("rigid_rmse", "rmse", "ratio", "rigid_nmse", "nmse", "coverage", "share")
        return {
            joint: {"rows": self.rows[k]} | {name: _plain(getattr(self, name)[k]) for name in names}
            for k, joint in enumerate(self.joints)
        }

    def summary(self) -> str:
        """A table of the errors."""
        width = max(map(len, self.joints))
        lines = [f"{'':<{width}}    rows  rigid N m  with residual  ratio  nmse rigid   nmse with  coverage  share"]
        for k, joint in enumerate(self.joints):
            covered = f"{self.coverage[k]:8.2f}" if np.isfinite(self.coverage[k]) else "       -"
            errors = f"{self.rigid_rmse[k]:9.4g}  {self.rmse[k]:13.4g}  {self.ratio[k]:5.2f}"
            shares = f"{self.rigid_nmse[k]:10.3g}  {self.nmse[k]:10.3g}  {covered}  {self.share[k]:5.2f}"
            lines.append(f"{joint:<{width}}  {self.rows[k]:6d}  {errors}  {shares}")
        return "\n".join(lines)


def compare(residual: Residual, rows: TorqueRows) -> Comparison:
    """Errors of a residual on rows that it need not have seen."""
    names, figures = [], []
    for one in rows.joints:
        j = one.joint
        found = residual.predict(*one.motion)
        rigid = one.rigid if residual.has_rigid else np.zeros(len(one))
        error = one.torque - rigid - found.learned[:, j]
        known = residual.joints[j] is not None
        variance = max(float(np.var(one.torque)), 1e-300)
        before, after = float(np.mean((one.torque - rigid) ** 2)), float(np.mean(error**2))
        covered = float(np.mean(np.abs(error) <= 1.96 * found.deviation[:, j])) if known else np.nan
        names.append(residual.robot.coordinates[j])
        figures.append(
            (
                before**0.5, after**0.5, before / variance, after / variance, covered,
                float(found.share[:, j].mean()),
            )
        )  # fmt: skip
    columns = np.array(figures).T
    return Comparison(tuple(names), tuple(len(r) for r in rows.joints), *columns)


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
