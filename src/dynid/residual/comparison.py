"""Torque errors with and without the learned torque."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.identification.validation_errors import Validation
from dynid.markup import HtmlFrame

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Comparison"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Comparison(HtmlFrame):
    """Torque errors of k joints with and without the learned torque.

    Attributes
    ----------
    rigid : Validation
        Errors of the rigid model alone.
    compensated : Validation
        Errors of rigid model and learned torque together.
    coverage : array, shape (k,)
        Share of samples within the 95 % intervals; NaN where nothing was learned.
    share : array, shape (k,)
        Mean share of the learned torque that was used, 0 to 1.
    """

    rigid: Validation
    compensated: Validation
    coverage: Array
    share: Array

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        return self.rigid.channels

    @property
    def ratio(self) -> Array:
        """Rms error of the compensated model over that of the rigid model (k,)."""
        return np.asarray(self.compensated.rmse / np.where(self.rigid.rmse > 0, self.rigid.rmse, 1.0))

    @property
    def nmse(self) -> Array:
        """Mean squared error over the variance of the measured torque, rigid and compensated (2, k)."""
        return np.array([1.0 - self.rigid.r2, 1.0 - self.compensated.r2])

    def to_frame(self) -> pl.DataFrame:
        """The errors as a table.

        Returns
        -------
        polars.DataFrame
            One row per joint: joint, unit, rows, rigid_rmse, rmse, ratio, rigid_nmse, nmse, coverage and share.
        """
        import polars as pl

        return pl.DataFrame(
            {
                "joint": self.joints,
                "unit": self.rigid.units,
                "rows": self.rigid.rows,
                "rigid_rmse": self.rigid.rmse,
                "rmse": self.compensated.rmse,
                "ratio": self.ratio,
                "rigid_nmse": self.nmse[0],
                "nmse": self.nmse[1],
                "coverage": self.coverage,
                "share": self.share,
            }
        )

    def to_dict(self) -> dict[str, Any]:
        """Rows, errors, coverage and share by joint name; None where a value is not finite."""
        return {
            joint: {
                "rows": self.rigid.rows[k],
                "unit": self.rigid.units[k],
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
        """A table with one line per joint."""
        width = max(map(len, self.joints))
        lines = [
            f"{'':<{width}}    rows      rigid  with residual  unit  ratio  nmse rigid   nmse with  coverage  share"
        ]
        for k, joint in enumerate(self.joints):
            covered = f"{self.coverage[k]:8.2f}" if np.isfinite(self.coverage[k]) else "       -"
            errors = f"{self.rigid.rmse[k]:9.4g}  {self.compensated.rmse[k]:13.4g}  {self.rigid.units[k]:<4}"
            shares = f"{self.nmse[0, k]:10.3g}  {self.nmse[1, k]:10.3g}  {covered}  {self.share[k]:5.2f}"
            lines.append(f"{joint:<{width}}  {self.rigid.rows[k]:6d}  {errors}  {self.ratio[k]:5.2f}  {shares}")
        return "\n".join(lines)


def _plain(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
