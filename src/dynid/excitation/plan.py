"""Planning an experiment: predicted accuracy of each parameter, and how often a motion must be run.

Rows of n periods and of previous recordings add up: information = R0'R0 + n R1'R1. One decomposition of the stacked
factors gives every standard deviation for every n: with [R0; R1] = U S V' and R1 V S^-1 = P c Q', the covariance is
Z diag(1 / (1 - c^2 + n c^2)) Z' with Z = V S^-1 Q.

Source: Golub and Van Loan, Matrix Computations (4th edition 2013), generalized singular value decomposition.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidValue, UnknownName
from dynid.excitation.excitation import Excitation
from dynid.excitation.information import Earlier, earlier_information, torque_noise
from dynid.identification.observation import fold
from dynid.parameters.base import BaseParameters
from dynid.threads import one_blas_thread

__all__ = ["Plan", "plan"]

Array = NDArray[np.float64]

# On unit columns: directions below this are not identifiable, nor are parameters with a share of them.
_UNSEEN = 1e-10
# A parameter that needs more periods than this is not identifiable from the motion.
MOST_PERIODS = 1000


@dataclass(frozen=True, eq=False)
class Plan:
    """Predicted standard deviations of the base parameters against the number of periods.

    Attributes
    ----------
    base : BaseParameters
    duration : float
        Duration of one period, s.
    noise : array, shape (channel,)
        The standard deviation of the torque noise.
    rate : float
        Sampling rate, Hz.
    target : float
        Relative standard deviation to be reached.
    prior : array, shape (b,)
        A-priori values of the base parameters.
    periods : array, shape (b,)
        Periods until each parameter reaches the target; infinite if it never does.
    effect : array, shape (b,)
        Rms torque error of one standard deviation of each parameter after one period, over the noise.
    directions, gains, unseen : array
        The decomposition from which standard deviations are computed; `unseen` (b,) are not identifiable.
    """

    base: BaseParameters
    duration: float
    noise: Array
    rate: float
    target: float
    prior: Array
    periods: Array
    effect: Array
    directions: Array
    gains: Array
    unseen: NDArray[np.bool_]

    def std_after(self, periods: float = 1) -> Array:
        """The standard deviation (b,) after so many periods; 0 periods leave that of the previous recordings."""
        return _sigma(self.directions, self.gains, self.unseen, periods)

    def relative_after(self, periods: float = 1) -> Array:
        """The same in percent of the a-priori values; infinite for a value of zero."""
        with np.errstate(divide="ignore"):
            return np.where(self.prior == 0, np.inf, 100.0 * self.std_after(periods) / np.abs(self.prior))

    @property
    def std(self) -> Array:
        """The standard deviation (b,) after one period."""
        return self.std_after(1)

    @property
    def relative_std(self) -> Array:
        """The standard deviation after one period in percent of the a-priori values (b,)."""
        return self.relative_after(1)

    @property
    def unknown(self) -> tuple[str, ...]:
        """Parameters that never reach the target, however often the motion is run."""
        return tuple(n for n, k in zip(self.base.names, self.periods, strict=True) if not np.isfinite(k))

    def reason(self, name: str) -> str:
        """A sentence on when a parameter reaches the target, or why it does not."""
        if name not in self.base.names:
            raise UnknownName(f"no base parameter is named '{name}'", "name")
        i = self.base.names.index(name)
        goal = f"{100 * self.target:g} %"
        if self.unseen[i]:
            return f"{name} is not identifiable from the motion"
        if self.prior[i] == 0:
            return f"{name} is zero a priori, so it has no relative error; its standard deviation is {self.std[i]:.2g}"
        if np.isinf(self.periods[i]):
            share = self.relative_std[i]
            return f"{name}: relative error {share:.2g} % after one period, above {goal} after {MOST_PERIODS} periods"
        if self.periods[i] == 0:
            return f"{name} has a relative error below {goal} already"
        count = int(self.periods[i])
        often = "once" if count == 1 else f"for {count} periods"
        return f"run the motion {often} ({count * self.duration:g} s) for a relative error of {name} below {goal}"

    def summary(self) -> str:
        """Every base parameter with its standard deviation and the periods it needs, worst last."""
        from dynid.excitation.summary import plan_text

        return plan_text(self)

    def to_dict(self) -> dict[str, Any]:
        """The plan as plain data; None for infinite values."""

        def finite(x: float) -> float | None:
            return float(x) if np.isfinite(x) else None

        columns = (self.base.names, self.prior, self.std, self.relative_std, self.periods, self.effect)
        return {
            "noise": self.noise.tolist(),
            "rate": float(self.rate),
            "target": float(self.target),
            "base_parameters": [
                {
                    "name": name,
                    "prior": float(prior),
                    "std": finite(sigma),
                    "relative_std": finite(relative),
                    "periods": None if np.isinf(periods) else int(periods),
                    "effect": finite(effect),
                }
                for name, prior, sigma, relative, periods, effect in zip(*columns, strict=True)
            ],
            "unknown": list(self.unknown),
        }


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
    sigma = _sigma(directions, gains, unseen, 1)
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


def _sigma(directions: Array, gains: Array, unseen: NDArray[np.bool_], periods: ArrayLike) -> Array:
    """The standard deviations (b,) after so many periods, one number or one per parameter."""
    count = np.broadcast_to(np.asarray(periods, dtype=float), (len(directions),))
    if not np.all(np.isfinite(count)) or np.any(count < 0):
        raise InvalidValue(f"the number of periods cannot be {periods!r}", "periods")
    left = np.maximum(1.0 + (count[:, None] - 1.0) * gains, 0.0)
    share = directions**2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(share > 0, share / left, 0.0)
    return np.where(unseen, np.inf, np.sqrt(terms.sum(axis=1)))


def _periods(directions: Array, gains: Array, unseen: NDArray[np.bool_], goal: Array) -> Array:
    """Fewest whole periods (b,) after which each standard deviation is below its goal, by bisection."""

    def met(count: NDArray[np.int_]) -> NDArray[np.bool_]:
        return np.asarray((_sigma(directions, gains, unseen, count) <= goal) & (goal > 0))

    low, high = np.zeros(len(goal), dtype=int), np.full(len(goal), MOST_PERIODS)
    never = ~met(high)
    while np.any(low < high):
        middle = (low + high) // 2
        done = met(middle)
        low, high = np.where(done, low, middle + 1), np.where(done, middle, high)
    return np.where(never, np.inf, high)
