"""Two estimates of one robot: is the difference significant, is it a payload, and what does it do to torques?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidValue, Mismatch
from dynid.fleet.bodies import PayloadChange, fit_payload, payload_basis
from dynid.fleet.kinds import kinds_of
from dynid.hypothesis import corrected
from dynid.identification.estimate import Estimate
from dynid.markup import HtmlFrame
from dynid.parameters.loads import load_columns

if TYPE_CHECKING:
    import polars as pl

__all__ = ["EstimateComparison", "compare_estimates"]

Array = NDArray[np.float64]
States = tuple[ArrayLike, ArrayLike, ArrayLike]

_WEAKEST = 1e-10


@dataclass(frozen=True, eq=False)
class EstimateComparison(HtmlFrame):
    """Difference of two estimates of one robot, the second less the first.

    Attributes
    ----------
    names : tuple of str
        Names of the base parameters.
    change, std : ndarray, shape (b,)
        Change of each base parameter and its standard deviation.
    statistic : float
        Hotelling's T-squared: the change squared in units of its covariance.
    freedom : int
        Number of independent combinations that were compared.
    residual_freedom : float
        Degrees of freedom of the covariances; infinite where the chi-square distribution was used.
    p_value : float
        Probability of such a statistic if nothing changed.
    level : float
        Significance level.
    p_values : ndarray, shape (b,)
        p-value of each base parameter, corrected for their number (Holm).
    payload : PayloadChange or None
        The payload that explains the change of the bodies, if that is significant.
    payload_p, other_p : float
        p-values of the change of the bodies along the directions of a payload, and beyond them.
    torque_change : ndarray, shape (channel,), or None
        Root mean square of the change of the torque on the stated motion, N m or N.
    torque : ndarray, shape (channel,), or None
        Root mean square of the torque of the first estimate on that motion, N m or N.
    channels : tuple of str
        Names of the channels.
    """

    names: tuple[str, ...]
    change: Array
    std: Array
    statistic: float
    freedom: int
    residual_freedom: float
    p_value: float
    level: float
    p_values: Array
    payload: PayloadChange | None
    payload_p: float
    other_p: float
    torque_change: Array | None
    torque: Array | None
    channels: tuple[str, ...]

    @property
    def changed(self) -> bool:
        """Whether the difference is significant."""
        return self.p_value < self.level

    @property
    def changed_names(self) -> tuple[str, ...]:
        """Base parameters whose own change is significant, the most significant first."""
        order = np.argsort(self.p_values, kind="stable")
        return tuple(self.names[j] for j in order if self.p_values[j] < self.level)

    def to_frame(self) -> pl.DataFrame:
        """The changes as a table.

        Returns
        -------
        polars.DataFrame
            One row per base parameter: parameter, change, std and p_value.
        """
        import polars as pl

        return pl.DataFrame({"parameter": self.names, "change": self.change, "std": self.std, "p_value": self.p_values})

    def summary(self) -> str:
        """The comparison in words."""
        test = (
            f"chi2({self.freedom})"
            if np.isinf(self.residual_freedom)
            else f"T2({self.freedom}, {self.residual_freedom:.0f})"
        )
        lines = [
            f"the estimates {'differ' if self.changed else 'do not differ'} significantly: "
            f"{self.statistic:.4g}, {test}, p-value {self.p_value:.2g}, level {self.level:g}"
        ]
        for name in self.changed_names:
            j = self.names.index(name)
            lines.append(f"  {name}: {self.change[j]:+.4g}, std {self.std[j]:.2g}, p-value {self.p_values[j]:.2g}")
        if self.payload is not None:
            x = self.payload
            centre = ", ".join(f"{round(float(c), 3) + 0.0:.3f}" for c in x.centre)
            lines.append(f"  as a payload on {x.link}: {x.mass:+.4g} kg, std {x.mass_std:.2g}, centre {centre} m")
        if self.torque_change is not None and self.torque is not None:
            lines.append("  torque change on the motion, RMS:")
            for row in zip(self.channels, self.torque_change, self.torque, strict=True):
                share = 100 * row[1] / row[2] if row[2] else float("nan")
                lines.append(f"    {row[0]}: {row[1]:.4g} of {row[2]:.4g} ({share:.1f} %)")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """All values as plain data."""
        out: dict[str, Any] = {
            "changed": self.changed,
            "statistic": self.statistic,
            "freedom": self.freedom,
            "residual_freedom": self.residual_freedom if np.isfinite(self.residual_freedom) else None,
            "p_value": self.p_value,
            "level": self.level,
            "parameters": [
                {"name": n, "change": float(c), "std": float(s) if np.isfinite(s) else None, "p_value": float(p)}
                for n, c, s, p in zip(self.names, self.change, self.std, self.p_values, strict=True)
            ],
            "payload_p": self.payload_p,
            "other_p": self.other_p,
        }
        if self.payload is not None:
            out["payload"] = {
                "link": self.payload.link,
                "mass": self.payload.mass,
                "mass_std": self.payload.mass_std,
                "centre": self.payload.centre.tolist(),
            }
        if self.torque_change is not None and self.torque is not None:
            out["torques"] = {
                c: {"change": float(d), "torque": float(t)}
                for c, d, t in zip(self.channels, self.torque_change, self.torque, strict=True)
            }
        return out


def compare_estimates(
    first: Estimate,
    second: Estimate,
    *,
    motion: States | None = None,
    link: str | None = None,
    level: float = 0.05,
) -> EstimateComparison:
    """Compare two estimates of one robot from separate data.

    Parameters
    ----------
    first, second : Estimate
        Estimates with the same base parameters, such as the previous and the present one.
    motion : tuple of array_like, shapes (N, nq), (N, nv), (N, nv), optional
        Positions, velocities and accelerations on which the change of the torques is computed.
    link : str, optional
        Link of the payload; by default the last one.
    level : float, default 0.05
        Significance level.

    Returns
    -------
    EstimateComparison

    Raises
    ------
    DataError
        If the estimates have different base parameters.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> from dynid.fleet import compare_estimates
    >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    >>> before, after = (dynid.identify(robot, synthetic_recording(robot, s, 20.0), "wls") for s in (0, 1))
    >>> compare_estimates(before, after).changed
    False
    """
    base = first.base
    if second.base.kept != base.kept or second.base.channels != base.channels or second.base.names != base.names:
        raise Mismatch("the estimates have different base parameters or channels: identify both with one robot")
    if not 0.0 < level < 1.0:
        raise InvalidValue(f"the significance level must lie between 0 and 1, got {level}", "level")
    change = second.beta - first.beta
    covariance = first.covariance + second.covariance
    known = np.isfinite(np.diag(covariance)) & (np.diag(covariance) > 0)
    freedom_behind = float(min(first.freedom, second.freedom))
    statistic, freedom = _square(change[known], covariance[np.ix_(known, known)])
    p_value, used = _tail(statistic, freedom, freedom_behind)
    std = np.sqrt(np.where(known, np.diag(covariance), np.inf))
    single = np.where(known, 2.0 * scipy.stats.t.sf(np.abs(change) / np.where(known, std, 1.0), freedom_behind), 1.0)
    kinds = kinds_of(base)
    bodies = np.array([j for j, kind in enumerate(kinds) if kind.of_body and known[j]], dtype=np.intp)
    payload, payload_p, other_p = None, 1.0, 1.0
    if len(bodies):
        tool = link or base.robot.links[max(base.robot.parameter_links)].name
        columns = load_columns(base, tool)[bodies]
        payload, payload_p, other_p = _payload(
            change[bodies], covariance[np.ix_(bodies, bodies)], columns, tool, freedom_behind, level
        )
    torque_change = torque = None
    if motion is not None:
        W = base.regressor(*motion)
        torque_change, torque = (np.sqrt(np.mean((W @ x) ** 2, axis=0)) for x in (change, first.beta))
    return EstimateComparison(
        names=base.names,
        change=change,
        std=std,
        statistic=statistic,
        freedom=freedom,
        residual_freedom=used,
        p_value=p_value,
        level=level,
        p_values=corrected(np.minimum(single, 1.0)),
        payload=payload,
        payload_p=payload_p,
        other_p=other_p,
        torque_change=torque_change,
        torque=torque,
        channels=base.channels,
    )


def _square(change: Array, covariance: Array) -> tuple[float, int]:
    """Square of a change in units of its covariance, and the number of its directions."""
    std = np.sqrt(np.diag(covariance))
    values, vectors = np.linalg.eigh(covariance / np.outer(std, std))
    strong = values > _WEAKEST * values[-1]
    y = (vectors[:, strong].T @ (change / std)) / np.sqrt(values[strong])
    return float(y @ y), int(strong.sum())


def _tail(statistic: float, freedom: int, behind: float) -> tuple[float, float]:
    """p-value of Hotelling's T-squared, and the degrees of freedom that were used.

    With fewer degrees of freedom than parameters, T-squared has no distribution; the chi-square one is used.
    """
    if not np.isfinite(behind) or behind <= freedom:
        return float(scipy.stats.chi2.sf(statistic, freedom)), np.inf
    scaled = statistic * (behind - freedom + 1) / (freedom * behind)
    return float(scipy.stats.f.sf(scaled, freedom, behind - freedom + 1)), behind


def _payload(
    change: Array, covariance: Array, columns: Array, link: str, behind: float, level: float
) -> tuple[PayloadChange | None, float, float]:
    """Payload that explains a change of the bodies, and p-values along its directions and beyond."""
    basis = payload_basis(columns)
    std = np.sqrt(np.diag(covariance))
    lower = np.linalg.cholesky(covariance / np.outer(std, std) + 1e-12 * np.eye(len(std)))
    root = scipy.linalg.solve_triangular(lower, np.diag(1.0 / std), lower=True)
    y = root @ change
    q, _ = np.linalg.qr(root @ basis)
    along = float(np.sum((q.T @ y) ** 2))
    beyond = max(float(y @ y) - along, 0.0)
    count = basis.shape[1]
    payload_p = _tail(along, count, behind)[0]
    other_p = _tail(beyond, len(change) - count, behind)[0] if len(change) > count else 1.0
    found = fit_payload(root @ columns, y, link) if payload_p < level else None
    return found, payload_p, other_p
