"""Planning an experiment: predicted accuracy of each parameter, and how often a motion must be run.

Rows of n periods and of previous recordings add up: information = R0'R0 + n R1'R1. One decomposition of the stacked
factors gives every standard deviation for every n: with [R0; R1] = U S V' and R1 V S^-1 = P c Q', the covariance is
Z diag(1 / (1 - c^2 + n c^2)) Z' with Z = V S^-1 Q.

Source: Golub and Van Loan, Matrix Computations (4th edition 2013), generalized singular value decomposition.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidValue
from dynid.excitation.excitation import Excitation
from dynid.excitation.information import Earlier, earlier_information, torque_noise
from dynid.excitation.plan import MOST_PERIODS, Plan, std_of
from dynid.identification.observation import fold
from dynid.threads import one_blas_thread

__all__ = ["plan"]

Array = NDArray[np.float64]

# On unit columns: directions below this are not identifiable, nor are parameters with a share of them.
_UNSEEN = 1e-10


def plan(
    excitation: Excitation,
    noise: ArrayLike,
    *,
    rate: float = 100.0,
    target: float = 0.02,
    previous: Earlier | Sequence[Earlier] = (),
) -> Plan:
    """Predict the accuracy of each base parameter; see `Excitation.plan`."""
    base = excitation.criterion.base
    std = torque_noise(noise, len(base.channels))
    if not (np.isfinite(target) and target > 0):
        raise InvalidValue(f"the target must be a positive share, such as 0.02, got {target}", "target")
    W = excitation.base_regressor(rate)[:-1] / std[:, None]
    with one_blas_thread():
        rows = fold(W.reshape(-1, base.count))
    before = earlier_information(base, previous, noise=std).rows
    directions, gains, unseen = _decomposed(before, rows)
    prior = base.values()
    # Sums that cancel leave a trace of rounding.
    prior[np.abs(prior) < 1e-12 * (np.abs(base.matrix) @ np.abs(base.robot.parameters))] = 0.0
    sigma = std_of(directions, gains, unseen, 1)
    shown = np.linalg.norm(rows, axis=0) / np.sqrt(W.shape[0] * W.shape[1])
    return Plan(
        base=base,
        duration=excitation.duration,
        noise=std,
        rate=rate,
        target=target,
        prior=prior,
        periods=_periods(directions, gains, unseen, target * np.abs(prior)),
        effect=np.where(unseen, np.inf, shown * np.where(unseen, 0.0, sigma)),
        directions=directions,
        gains=gains,
        unseen=unseen,
    )


def _decomposed(before: Array, rows: Array) -> tuple[Array, Array, NDArray[np.bool_]]:
    """Z (b, r), c^2 (r,) and which parameters (b,) neither part identifies."""
    stacked = np.vstack([before, rows])
    size = np.linalg.norm(stacked, axis=0)
    # Rounding errors in a zero column must not be scaled up.
    stacked, rows = (np.where(size > _UNSEEN * size.max(), part, 0.0) for part in (stacked, rows))
    size = np.where(size > _UNSEEN * size.max(), size, 1.0)
    _, s, vt = np.linalg.svd(fold(stacked / size))
    rank = int(np.count_nonzero(s > _UNSEEN * s[0]))
    unseen = np.linalg.norm(vt[rank:], axis=0) > np.sqrt(_UNSEEN)
    white = vt[:rank].T / s[:rank]
    _, c, qt = np.linalg.svd(rows / size @ white)
    gains = np.zeros(rank)
    gains[: len(c)] = np.minimum(c, 1.0) ** 2
    if not len(before):
        gains[:] = 1.0
    return white @ qt.T / size[:, None], gains, unseen


def _periods(directions: Array, gains: Array, unseen: NDArray[np.bool_], goal: Array) -> Array:
    """Fewest whole periods (b,) after which each standard deviation is below its goal, by bisection."""

    def met(count: NDArray[np.int_]) -> NDArray[np.bool_]:
        return np.asarray((std_of(directions, gains, unseen, count) <= goal) & (goal > 0))

    low, high = np.zeros(len(goal), dtype=int), np.full(len(goal), MOST_PERIODS)
    never = ~met(high)
    while np.any(low < high):
        middle = (low + high) // 2
        done = met(middle)
        low, high = np.where(done, low, middle + 1), np.where(done, middle, high)
    return np.where(never, np.inf, high)
