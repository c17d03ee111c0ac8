"""Figures of a simulation: positions beside their references, tracking errors and torques."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

from dynid.plotting.labels import signal_groups
from dynid.plotting.style import look_of
from dynid.plotting.traces import Line, Panel, chosen_joints, draw_panels

if TYPE_CHECKING:
    from dynid.simulation.simulation import Simulation

__all__ = ["draw_simulation"]


def draw_simulation(simulation: Simulation, joints: str | Sequence[str] | None, ax: Any) -> NDArray[Any]:
    """As `Simulation.plot`."""
    robot, t = simulation.robot, simulation.t
    names = robot.coordinates
    prismatic = [robot.channel_units[name] == "N" for name in names]
    chosen = chosen_joints(joints, names)
    error = simulation.q - simulation.reference
    panels = []
    for label, members in signal_groups("q", prismatic, chosen):
        lines = []
        for j in members:
            look = look_of(j)
            lines.append(Line(t, simulation.q[:, j], names[j], look.color, look.dashes))
            lines.append(Line(t, simulation.reference[:, j], "", look.color, ":", 0.9))
        panels.append(Panel(f"{label}\nreference dotted", tuple(lines)))
    for label, members in signal_groups("q", prismatic, chosen):
        panels.append(Panel(label.replace("position", "tracking error"), _lines(t, error, members)))
    for label, members in signal_groups("torque", prismatic, chosen):
        panels.append(Panel(label, _lines(t, simulation.torque, members)))
    return draw_panels(panels, ax)


def _lines(t: NDArray[Any], values: NDArray[Any], members: Sequence[int]) -> tuple[Line, ...]:
    return tuple(Line(t, values[:, j], "", look_of(j).color, look_of(j).dashes) for j in members)
