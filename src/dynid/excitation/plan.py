"""The plan of an experiment: predicted accuracy of each parameter, and how often a motion must be run."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.attached import attached
from dynid.errors import InvalidValue, UnknownName
from dynid.parameters.base import BASE, BaseParameters
from dynid.results import SavedResult, about

__all__ = ["MOST_PERIODS", "Plan", "std_of"]

Array = NDArray[np.float64]

# A parameter that needs more periods than this is not identifiable from the motion.
MOST_PERIODS = 1000


@dataclass(frozen=True, eq=False)
class Plan(SavedResult):
    """Predicted standard deviations of the base parameters against the number of periods."""

    kind = "plan"

    base: BaseParameters = field(metadata=about("Base.", codec=BASE))
    duration: float = field(metadata=about("Duration of one period, s."))
    noise: Array = field(metadata=about("The standard deviation of the torque noise.", size=("channel",)))
    rate: float = field(metadata=about("Sampling rate, Hz."))
    target: float = field(metadata=about("Relative standard deviation to be reached."))
    prior: Array = field(metadata=about("A-priori values of the base parameters.", size=("b",)))
    periods: Array = field(
        metadata=about("Periods until each parameter reaches the target; infinite if it never does.", size=("b",))
    )
    effect: Array = field(
        metadata=about(
            "Rms torque error of one standard deviation of each parameter after one period, over the noise.",
            size=("b",),
        )
    )
    directions: Array = field(
        metadata=about("The decomposition from which standard deviations are computed.", size=("b", "r"))
    )
    gains: Array = field(metadata=about("Shares of the motion in its directions.", size=("r",)))
    unseen: NDArray[np.bool_] = field(metadata=about("Parameters that are not identifiable.", size=("b",)))

    def std_after(self, periods: float = 1) -> Array:
        """The standard deviation (b,) after so many periods; 0 periods leave that of the previous recordings."""
        return std_of(self.directions, self.gains, self.unseen, periods)

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
        return str(attached(self, "summary")(self))

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


def std_of(directions: Array, gains: Array, unseen: NDArray[np.bool_], periods: ArrayLike) -> Array:
    """The standard deviations (b,) after so many periods, one number or one per parameter."""
    count = np.broadcast_to(np.asarray(periods, dtype=float), (len(directions),))
    if not np.all(np.isfinite(count)) or np.any(count < 0):
        raise InvalidValue(f"the number of periods cannot be {periods!r}", "periods")
    left = np.maximum(1.0 + (count[:, None] - 1.0) * gains, 0.0)
    share = directions**2
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(share > 0, share / left, 0.0)
    return np.where(unseen, np.inf, np.sqrt(terms.sum(axis=1)))
