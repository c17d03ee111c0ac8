"""Essential parameters: base parameters that the data do not determine are removed one by one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.solution import condition_number
from dynid.identification.observation import Observation

__all__ = ["Essential", "essential_parameters"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Essential:
    """Essential parameters of an estimate.

    Attributes
    ----------
    estimate : Estimate
        The estimate with all other base parameters at zero.
    kept : tuple of int
        Indices of the essential parameters among the base parameters.
    removed : tuple of int
        Indices of the others, in the order in which they were removed.
    change : float
        Norm of the change of the predicted torques relative to their norm.
    """

    estimate: Estimate
    kept: tuple[int, ...]
    removed: tuple[int, ...]
    change: float

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the essential parameters."""
        return tuple(self.estimate.base.names[i] for i in self.kept)


def essential_parameters(
    observation: Observation, estimate: Estimate, *, ratio: float = 30.0, test: str = "ratio", level: float = 0.05
) -> Essential:
    """Remove base parameters that the data do not determine.

    Parameters
    ----------
    observation : Observation
        The data that the estimate was found from.
    estimate : Estimate
        The estimate; its weights of the channels are kept.
    ratio : float, default 30
        Limit of the test "ratio".
    test : {"ratio", "f"}, default "ratio"
        "ratio" (Pham and Gautier): the parameter with the largest relative standard deviation is removed while this is
        more than `ratio` times the smallest one. "f": it is removed while an F-test does not find its effect
        significant.
    level : float, default 0.05
        Level of the F-test.

    Returns
    -------
    Essential

    Raises
    ------
    DataError
        If `test` is unknown, or the estimate has other base parameters than the observation.
    """
    if test not in ("ratio", "f"):
        raise DataError(f"test '{test}' is unknown: use ratio or f")
    if estimate.base.names != observation.base.names:
        raise DataError(
            f"the estimate has {estimate.base.count} base parameters, the observation {observation.base.count} "
            "others: observe the robot of the estimate, observe(estimate.robot, recording)"
        )
    factor = observation.stacked(1.0 / estimate.noise)
    kept = list(range(observation.base.count))
    removed: list[int] = []
    beta, std, residual = _fit(factor, kept)
    while len(kept) > 1:
        relative = std / np.maximum(np.abs(beta), 1e-300)
        worst = int(np.argmax(relative))
        trial = kept[:worst] + kept[worst + 1 :]
        smaller = _fit(factor, trial)
        if test == "ratio":
            leave = relative[worst] > ratio * relative.min()
        else:
            freedom = observation.total_rows - len(kept)
            rise = (smaller[2] ** 2 - residual**2) / max(residual**2 / freedom, 1e-300)
            leave = rise < scipy.stats.f.ppf(1.0 - level, 1, freedom)
        if not leave:
            break
        removed.append(kept[worst])
        kept = trial
        beta, std, residual = smaller
    full = np.zeros(observation.base.count)
    full[kept] = beta
    covariance = np.zeros((full.size, full.size))
    inverse = _inverse(factor, kept)
    covariance[np.ix_(kept, kept)] = inverse @ inverse.T
    torque, norms = observation.residual_norms(full), observation.torque_norms()
    plain = observation.stacked()[:, :-1]
    change = float(np.linalg.norm(plain @ (full - estimate.beta)) / np.linalg.norm(plain @ estimate.beta))
    reduced = replace(
        estimate,
        beta=full,
        covariance=covariance,
        rms=torque / np.sqrt(np.maximum(observation.rows, 1)),
        relative_error=torque / np.where(norms > 0, norms, np.inf),
        condition_number=condition_number(factor[:, kept]),
        notes=(*estimate.notes, f"{len(kept)} essential parameters"),
    )
    return Essential(reduced, tuple(kept), tuple(removed), change)


def _inverse(factor: Array, kept: list[int]) -> Array:
    """Inverse triangle of some columns."""
    r = scipy.linalg.qr(factor[:, kept], mode="r")[0][: len(kept)]
    return np.asarray(scipy.linalg.solve_triangular(r, np.eye(len(kept))))


def _fit(factor: Array, kept: list[int]) -> tuple[Array, Array, float]:
    """Values, standard deviations and residual norm of a fit with some columns only."""
    beta = np.asarray(np.linalg.lstsq(factor[:, kept], factor[:, -1], rcond=None)[0], dtype=float)
    std = np.asarray(np.linalg.norm(_inverse(factor, kept), axis=1))
    return beta, std, float(np.linalg.norm(factor[:, -1] - factor[:, kept] @ beta))
