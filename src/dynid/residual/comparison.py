"""Torque errors with and without the learned torque."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.identification.validation_errors import Validation
from dynid.results import Result, Table, about, framed

__all__ = ["Comparison"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Comparison(Result):
    """Torque errors of k joints with and without the learned torque."""

    tables = (
        Table(
            "comparison",
            "k",
            framed(
                joint="joints",
                unit="rigid.units",
                rows="rigid.rows",
                rigid_rmse="rigid.rmse",
                rmse="compensated.rmse",
                ratio="ratio",
                rigid_nmse=lambda c: c.nmse[0],
                nmse=lambda c: c.nmse[1],
                coverage="coverage",
                share="share",
            ),
        ),
    )

    rigid: Validation = field(metadata=about("Errors of the rigid model alone."))
    compensated: Validation = field(metadata=about("Errors of rigid model and learned torque together."))
    coverage: Array = field(
        metadata=about("Share of samples within the 95 % intervals; NaN where nothing was learned.", size=("k",))
    )
    share: Array = field(metadata=about("Mean share of the learned torque that was used, 0 to 1.", size=("k",)))

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
