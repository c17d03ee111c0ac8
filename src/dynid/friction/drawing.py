"""Figures of friction: the curves of fitted models through the measured points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import MissingData
from dynid.friction.pieces import unit_of
from dynid.friction.rows import binned_friction
from dynid.plotting.labels import axis_label
from dynid.plotting.points import Curves, draw_curves

if TYPE_CHECKING:
    from dynid.friction.result import FrictionFit

__all__ = ["draw_friction"]

_GRID = 801


def draw_friction(fits: Sequence[FrictionFit], models: int, ax: Any) -> NDArray[Any]:
    """Draw one chart per joint, with the curves of the best `models` models."""
    return draw_curves([_curves(fit, models) for fit in fits], ax)


def _curves(fit: FrictionFit, models: int) -> Curves:
    velocity, torque = fit.velocity, fit.friction
    if not len(velocity):
        raise MissingData(f"the fit of '{fit.joint}' has no points to draw")
    reach = 1.03 * max(fit.max_velocity, float(np.abs(velocity).max()))
    grid = np.linspace(0.0 if np.all(velocity > 0) else -reach, reach, _GRID)
    grid[np.abs(grid) < 1e-9 * reach] = 1e-9 * reach
    effort = unit_of("N m", prismatic=fit.prismatic)
    mean_velocity, mean, std = binned_friction(velocity, torque)
    where = {"load": fit.mean_load, "temperature": fit.mean_temperature}
    shown = fit.ranking[: max(models, 1)]
    curves = {f"{f.name} (rms {f.rms:.2g} {effort})": f.curve(grid, **where) for f in shown}
    return Curves(
        title=fit.joint,
        x_label=axis_label("velocity", unit_of("rad/s", prismatic=fit.prismatic)),
        y_label=axis_label("friction", effort),
        x=velocity,
        y=torque,
        mean_x=mean_velocity,
        mean=mean,
        reach=2.0 * std,
        grid=grid,
        curves=curves,
    )
