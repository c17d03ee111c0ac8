"""Figures of a residual: the torque that the rigid model leaves, and the learned torque with its interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.plotting.labels import axis_label
from dynid.plotting.style import MEASURED, PREDICTED, axes_of, shared_legend, styled
from dynid.plotting.traces import TIME, chosen_joints, with_gaps

if TYPE_CHECKING:
    from dynid.recording.recording import Recording
    from dynid.residual.residual import Residual

__all__ = ["draw_residual"]


def draw_residual(
    residual: Residual, recording: Recording, joints: str | Sequence[str] | None, ax: Any
) -> NDArray[Any]:
    """As `Residual.plot`."""
    rows = residual.rows(recording).joints
    names = [residual.robot.coordinates[one.joint] for one in rows]
    chosen = [rows[k] for k in chosen_joints(joints, names)]
    columns = 1 if len(chosen) == 1 else 2
    with styled():
        axes = axes_of(len(chosen), ax=ax, columns=columns, size=(7.0, 2.4))[:, 0]
        for place, one in zip(axes, chosen, strict=True):
            name = residual.robot.coordinates[one.joint]
            unit = residual.robot.channel_units[name]
            found = residual.predict(*one.motion)
            learned, std = found.learned[:, one.joint], found.std[:, one.joint]
            left = one.torque - found.rigid[:, one.joint]
            t, left, learned, std = with_gaps(one.clock, left, learned, std)
            place.plot(t, left, color=MEASURED, linewidth=0.8, alpha=0.75, label="measured less rigid model")
            if np.nanmax(std, initial=0.0) > 0:
                band = {"color": PREDICTED, "alpha": 0.2, "linewidth": 0.0, "label": "95 % interval"}
                place.fill_between(t, learned - 1.96 * std, learned + 1.96 * std, **band)
            place.plot(t, learned, color=PREDICTED, label="learned torque")
            place.set_title(name if residual.joints[one.joint] is not None else f"{name}: nothing learned")
            place.set_ylabel(axis_label("residual force" if unit == "N" else "residual torque", unit))
            place.margins(x=0.0)
        for place in axes[-columns:]:
            place.set_xlabel(TIME)
        shared_legend(axes, ax is None)
    return axes
