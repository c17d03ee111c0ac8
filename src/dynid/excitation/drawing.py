"""Figures of a designed motion: positions, velocities, accelerations and torques with their limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.excitation.room import has_torque_model
from dynid.plotting.labels import signal_groups
from dynid.plotting.style import look_of
from dynid.plotting.traces import Line, Panel, chosen_joints, draw_panels

if TYPE_CHECKING:
    from dynid.excitation.excitation import Excitation

__all__ = ["draw_excitation"]

Array = NDArray[np.float64]

_POINTS = 1000
# Limits that a joint does not come this near to, as a share of their range, are not drawn.
_NEAR = 0.05


def draw_excitation(motion: Excitation, joints: str | Sequence[str] | None, ax: Any) -> NDArray[Any]:
    """As `Excitation.plot`."""
    robot, limits = motion.robot, motion.limits
    t = np.linspace(0.0, motion.duration, _POINTS + 1)
    q, v, a = motion.at(t)
    signals = {
        "q": (q, limits.lower, limits.upper),
        "v": (v, -limits.velocity, limits.velocity),
        "a": (a, -limits.acceleration, limits.acceleration),
    }
    if has_torque_model(robot):
        torque = inverse_dynamics(robot, q, v, a)[:, -robot.n :]
        signals["torque"] = (torque, -limits.torque, limits.torque)
    names = robot.coordinates
    prismatic = [robot.channel_units[name] == "N" for name in names]
    chosen = chosen_joints(joints, names)
    panels, named = [], set()
    for signal, (values, low, high) in signals.items():
        for label, members in signal_groups(signal, prismatic, chosen):
            lines, levels = [], []
            for j in members:
                look = look_of(j)
                lines.append(Line(t, values[:, j], names[j] if j not in named else "", look.color, look.dashes))
                named.add(j)
                for level, reached in ((low[j], values[:, j].min()), (high[j], values[:, j].max())):
                    if np.isfinite(level) and abs(level - reached) <= _NEAR * (high[j] - low[j]):
                        levels.append((float(level), look.color))
            panels.append(Panel(label, tuple(lines), tuple(levels)))
    return draw_panels(panels, ax)
