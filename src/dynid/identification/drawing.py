"""Figures of estimates and validations: parameters beside their prior, measured against predicted torques."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.patterns import matching_names
from dynid.plotting.points import Interval, draw_intervals
from dynid.plotting.traces import Pair, chosen_joints, draw_pairs

if TYPE_CHECKING:
    from dynid.identification.estimate import Estimate
    from dynid.identification.validation import Validation

__all__ = ["draw_estimate", "draw_validation"]


def draw_estimate(
    estimate: Estimate, parameters: str | Sequence[str] | None, level: float, largest: int | None, ax: Any
) -> NDArray[Any]:
    """As `Estimate.plot`."""
    base = estimate.base
    names, labels = base.names, base.robot.parameter_labels
    chosen = set(range(base.count))
    if parameters is not None:
        chosen = set()
        for pattern in [parameters] if isinstance(parameters, str) else parameters:
            found = matching_names(pattern, names)
            if not found:
                raise DataError(f"no base parameter matches '{pattern}', such as '{names[0]}'")
            chosen |= {names.index(name) for name in found}
    bounds, prior = estimate.confidence_intervals(level), base.values()
    if largest is not None:
        # Those that the data move most, in standard deviations.
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.nan_to_num(np.abs(estimate.beta - prior) / estimate.std)
        chosen = set(sorted(chosen, key=lambda k: -moved[k])[:largest])
    if not chosen:
        raise DataError("no parameter is left to be drawn")
    grouped = [np.count_nonzero(row) > 1 for row in base.matrix]
    shown = [labels[j] + ("R" if more else "") for j, more in zip(base.kept, grouped, strict=True)]
    return draw_intervals(
        [
            Interval(
                name=shown[k],
                unit=base.units[k],
                value=float(estimate.beta[k]),
                low=float(bounds[k, 0]),
                high=float(bounds[k, 1]),
                prior=float(prior[k]),
            )
            for k in sorted(chosen)
        ],
        ax,
    )


def draw_validation(validation: Validation, joints: str | Sequence[str] | None, ax: Any) -> NDArray[Any]:
    """As `Validation.plot`."""
    pairs = [
        Pair(
            validation.channels[k],
            validation.units[k],
            validation.time[k],
            validation.measured[k],
            validation.predicted[k],
        )
        for k in chosen_joints(joints, validation.channels)
    ]
    return draw_pairs(pairs, ax)
