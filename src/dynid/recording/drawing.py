"""Figures of a recording: its signals over time, the runs one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import Mismatch, MissingData, UnknownName
from dynid.plotting.labels import SIGNALS, signal_groups
from dynid.plotting.style import look_of
from dynid.plotting.traces import Line, Panel, chosen_joints, draw_panels
from dynid.recording.run import Run
from dynid.robot.model import Robot

__all__ = ["draw_recording", "prismatic_joints", "run_clock"]

Array = NDArray[np.float64]

_DEFAULT = ("q", "v", "torque", "current")


def prismatic_joints(robot: Robot | None, joints: Sequence[str]) -> list[bool] | None:
    """Whether each joint is prismatic; None without a robot, and a DataError for a robot with other joints."""
    if robot is None:
        return None
    if tuple(joints) != robot.coordinates:
        raise Mismatch(f"the recording is of {', '.join(joints)}, robot '{robot.name}' has other joints")
    return [robot.channel_units[name] == "N" for name in robot.coordinates]


def run_clock(runs: Sequence[Run]) -> tuple[list[Array], tuple[float, ...]]:
    """Times (N,) of every run, one run after the other, and the times at which runs begin, but for the first."""
    clocks, begins, now = [], [], 0.0
    for k, run in enumerate(runs):
        if k:
            now += run.step
            begins.append(now)
        clocks.append(run.t - run.t[0] + now)
        now = float(clocks[-1][-1])
    return clocks, tuple(begins)


def draw_recording(
    names: Sequence[str],
    runs: Sequence[Run],
    signals: str | Sequence[str] | None,
    joints: str | Sequence[str] | None,
    robot: Robot | None,
    ax: Any,
) -> NDArray[Any]:
    """As `Recording.plot`, of runs whose joints have these names."""
    prismatic = prismatic_joints(robot, names)
    wanted = (signals,) if isinstance(signals, str) else tuple(signals or ())
    unknown = [s for s in wanted if s not in SIGNALS]
    if unknown:
        raise UnknownName(f"signal '{unknown[0]}' cannot be drawn: use {', '.join(SIGNALS)}", "signals")
    held = [s for s in (wanted or _DEFAULT) if any(getattr(run, s) is not None for run in runs)]
    if len(held) < len(wanted):
        raise MissingData(f"the recording has no {next(s for s in wanted if s not in held)}", "signals")
    chosen = chosen_joints(joints, names)
    clocks, begins = run_clock(runs)
    panels, named = [], set()
    for signal in held:
        for label, members in signal_groups(signal, prismatic, chosen):
            lines = []
            for j in members:
                look = look_of(j)
                t, y = _joined(runs, signal, j, clocks)
                # Every joint is in the legend once: panels of prismatic joints have their own.
                lines.append(Line(t, y, names[j] if j not in named else "", look.color, look.dashes))
                named.add(j)
            panels.append(Panel(label, tuple(lines), marks=begins))
    return draw_panels(panels, ax)


def _joined(runs: Sequence[Run], signal: str, joint: int, clocks: Sequence[Array]) -> tuple[Array, Array]:
    """Times and values of a joint over all runs, with NaN between them and for runs without the signal."""
    t: list[Array] = []
    y: list[Array] = []
    end = np.array([np.nan])
    for run, clock in zip(runs, clocks, strict=True):
        values = getattr(run, signal)
        t += [clock, end]
        y += [np.full(len(run), np.nan) if values is None else values[:, joint], end]
    return np.concatenate(t), np.concatenate(y)
