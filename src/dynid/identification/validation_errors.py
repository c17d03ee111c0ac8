"""Errors of predicted torques per channel."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.attached import attached
from dynid.recording.partitions import LeftOut
from dynid.results import Column, Result, Table, about, decimals
from dynid.robot.model import Robot

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

__all__ = ["REPEATED", "Validation", "validation_of"]

Array = NDArray[np.float64]

# Motion counts as unseen if at most this share of it repeats the fitted motion.
REPEATED = 0.1


@dataclass(frozen=True, eq=False)
class Validation(Result):
    """Errors of predicted torques.

    All figures of a joint that stands still are NaN; it has no rows, and nothing can be said about its error.
    """

    sizes = MappingProxyType({"channel": ("channels", "channels")})
    tables = (
        Table(
            "validation",
            "channel",
            (
                Column("channels", "channel", "channel"),
                Column("units", "unit", "unit"),
                Column("rows", "rows", "rows", "d"),
                Column("rmse", "rmse", "rmse", decimals),
                Column("largest", "largest", "largest", decimals),
                Column("relative", "relative", "relative", decimals),
                Column("nrmse", "nrmse", "nrmse", decimals),
                Column("r2", "r2", "r2", decimals),
            ),
        ),
    )

    channels: tuple[str, ...] = field(metadata=about("Joints and wrench channels."))
    units: tuple[str, ...] = field(metadata=about("Unit of each channel: N m or N.", size=("channel",)))
    rows: tuple[int, ...] = field(metadata=about("Number of compared rows per channel.", size=("channel",)))
    rmse: Array = field(metadata=about("Root mean square of the error.", unit="`units`", size=("channel",)))
    relative: Array = field(metadata=about("Norm of the error relative to the norm of the torque.", size=("channel",)))
    nrmse: Array = field(metadata=about("RMSE relative to the range of the measured torque.", size=("channel",)))
    largest: Array = field(metadata=about("Largest magnitude of the error.", unit="`units`", size=("channel",)))
    r2: Array = field(
        metadata=about("Share of the variance that is explained; NaN if the torque is constant.", size=("channel",))
    )
    measured: tuple[Array, ...] = field(
        metadata=about(
            "Measured torques of the rows, per channel; of a data set, those at the beginning of partitions that are "
            "evenly spaced over it."
        )
    )
    predicted: tuple[Array, ...] = field(metadata=about("Predicted torques of these rows."))
    time: tuple[Array, ...] = field(metadata=about("Times of these rows.", unit="s"))
    repeated: float = field(
        default=math.nan,
        metadata=about(
            "Share of the motion that repeats the fitted motion, whatever the name, rate or format of the recording; "
            "NaN where the fitted motion is not known."
        ),
    )
    partitions: int = field(default=0, metadata=about("Number of partitions of a data set; 0 for a recording."))
    left_out: tuple[LeftOut, ...] = field(
        default=(), metadata=about("Partitions of a data set that could not be used.")
    )

    @property
    def checked(self) -> NDArray[np.bool_]:
        """Channels (channel,) with rows; joints of the others stand still."""
        return np.array(self.rows) > 0

    def to_dict(self) -> dict[str, Any]:
        """The figures per channel as plain data, without the signals; None where a joint stands still."""
        names = ("rmse", "relative", "nrmse", "largest", "r2")
        figures = {
            c: {n: float(getattr(self, n)[i]) if self.rows[i] else None for n in names}
            for i, c in enumerate(self.channels)
        }
        return {c: {"rows": self.rows[i], "unit": self.units[i], **figures[c]} for i, c in enumerate(self.channels)}

    def samples(self) -> pl.DataFrame:
        """The compared samples as a table.

        Returns
        -------
        polars.DataFrame
            One row per sample and channel: channel, unit, t, measured, predicted and residual.
        """
        import polars as pl

        parts = [
            pl.DataFrame({"t": t, "measured": m, "predicted": p, "residual": m - p}).select(
                pl.lit(channel).alias("channel"), pl.lit(unit).alias("unit"), pl.all()
            )
            for channel, unit, t, m, p in zip(
                self.channels, self.units, self.time, self.measured, self.predicted, strict=True
            )
        ]
        return pl.concat(parts)

    def plot(
        self,
        *,
        joints: str | Sequence[str] | None = None,
        ax: Axes | Sequence[Axes] | None = None,
        band: float | None = None,
    ) -> NDArray[Any]:
        """Draw measured against predicted torques, with the residual on its own axis below.

        Parameters
        ----------
        joints : str or sequence of str, optional
            Names or patterns of the joints to draw; all by default.
        ax : Axes or sequence of Axes, optional
            Where to draw: as many axes as are returned, or one, whose place is divided. By default a new figure.
        band : float, optional
            Dashed lines beside the residual at this share of the range of the measured torque, such as 0.1.

        Returns
        -------
        ndarray of Axes, shape (channel, 2)
            The axes of the torques, and those of the residuals.

        Raises
        ------
        DataError
            If no joint matches, or the band is not positive.
        DynidError
            If matplotlib is not installed.
        """
        axes: NDArray[Any] = attached(self, "plot")(self, joints, ax, band)
        return axes

    def summary(self) -> str:
        """A table of the errors per channel, as wide as the terminal."""
        return str(attached(self, "summary")(self))


def validation_of(
    robot: Robot,
    channels: tuple[str, ...],
    measured: Sequence[Array],
    predicted: Sequence[Array],
    time: Sequence[Array],
) -> Validation:
    """The validation of measured and predicted torques (rows,) and their times in s, per channel of the robot.

    Figures of a channel without rows are NaN: its joint stands still and is not checked.
    """
    errors = [m - p for m, p in zip(measured, predicted, strict=True)]
    checked = np.array([len(e) > 0 for e in errors])

    def figure(function: Callable[[Array], Any], signals: Sequence[Array]) -> Array:
        return np.array([float(function(x)) if len(x) else np.nan for x in signals])

    rmse = figure(lambda e: np.sqrt(np.mean(e**2)), errors)
    sizes = figure(lambda m: np.linalg.norm(m), measured)
    spans, variances = figure(np.ptp, measured), figure(np.var, measured)
    return Validation(
        channels=channels,
        units=tuple(robot.channel_units[c] for c in channels),
        rows=tuple(len(e) for e in errors),
        rmse=rmse,
        relative=figure(lambda e: np.linalg.norm(e), errors) / np.where(checked & ~(sizes > 0), np.inf, sizes),
        nrmse=rmse / np.where(checked & ~(spans > 0), np.inf, spans),
        largest=figure(lambda e: np.abs(e).max(), errors),
        r2=1.0 - rmse**2 / np.where(variances > 0, variances, np.nan),
        measured=tuple(measured),
        predicted=tuple(predicted),
        time=tuple(time),
    )
