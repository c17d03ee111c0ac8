"""Figures of findings and of simulation errors: the trace that a finding is about, and errors by horizon."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.finding import Finding
from dynid.errors import Mismatch, MissingData, NotApplicable, SimulationFailed
from dynid.plotting.labels import axis_label, signal_label
from dynid.plotting.style import LIMIT, MEASURED, PALETTE, PREDICTED, RESIDUAL, axes_of, look_of, shared_legend, styled
from dynid.plotting.traces import TIME, chosen_joints, legend_above
from dynid.recording.drawing import prismatic_joints
from dynid.recording.recording import Recording
from dynid.recording.run import PARTS, Run
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dynid.assessment.model.horizon import SimulationError
    from dynid.assessment.model.line import LineScan

__all__ = ["draw_finding", "draw_line_scan", "draw_simulation_error"]

_TITLE = 100  # characters per line


def draw_finding(finding: Finding, recording: Recording, robot: Robot | None, ax: Any) -> Any:
    """As `Finding.plot`."""
    run = next((r for r in recording.runs if r.name == finding.run), None)
    if run is None:
        raise Mismatch(f"the recording has no run '{finding.run}', which the finding is about", "finding")
    if finding.joint and finding.joint not in recording.joints:
        raise Mismatch(f"the recording has no joint '{finding.joint}', which the finding is about", "finding")
    prismatic = prismatic_joints(robot, recording.joints)
    with styled():
        place = axes_of(1, ax=ax, size=(7.0, 2.4))[0, 0]
        t = run.t - run.t[0]
        if finding.code.signal == "t":
            place.plot(t[1:], 1e3 * np.diff(run.t), color=MEASURED, linewidth=0.8, label="time between samples")
            place.set_ylabel(axis_label("sampling step", "ms"))
        elif finding.code.signal == "wrench" and run.wrench is not None:
            for k, part in enumerate(PARTS["wrench"]):
                place.plot(t, run.wrench[:, k], color=look_of(k).color, linewidth=0.9, label=part)
            place.set_ylabel("force (N), moment (N m)")
        else:
            _joint_trace(place, finding, run, recording, prismatic)
        if robot is not None and finding.code.limited and finding.joint:
            for level in _limits(finding, robot):
                place.axhline(level, color=LIMIT, linewidth=1.0, linestyle=(0, (6, 3)))
        _mark(place, finding, t)
        place.margins(x=0.0)
        place.set_xlabel(TIME)
        where = f"{finding.run}, {finding.joint}" if finding.joint else finding.run
        lines = textwrap.wrap(f"{where}: {finding.what}", _TITLE) + textwrap.wrap(finding.how_much, _TITLE)
        place.set_title("\n".join(lines), pad=18 if place.get_legend() else 6, fontweight="normal")
    return place


def _joint_trace(place: Any, finding: Finding, run: Run, recording: Recording, prismatic: list[bool] | None) -> None:
    """The signal of the finding, of its joint or of all joints."""
    signal = _signal(finding)
    values = getattr(run, signal)
    if values is None and not (signal == "v" and finding.joint):
        raise MissingData(f"run '{run.name}' has no {signal}, which the finding is about", "finding")
    t = run.t - run.t[0]
    joints = [recording.joints.index(finding.joint)] if finding.joint else range(len(recording.joints))
    if signal == "v" and finding.joint:
        differences = np.gradient(run.q[:, joints[0]], run.t)
        place.plot(t, differences, color=PREDICTED, linewidth=0.8, label="differences of the position")
    for j in joints:
        color = MEASURED if finding.joint else look_of(j).color
        if values is not None:
            place.plot(t, values[:, j], color=color, linewidth=0.9, label=recording.joints[j])
    kinds = {None} if prismatic is None else {prismatic[j] for j in joints}
    place.set_ylabel(signal_label(signal, kinds.pop() if len(kinds) == 1 else None))


def _signal(finding: Finding) -> str:
    # A value that no channel is named of is shown at the position of its joint.
    signal = finding.code.signal or ("q" if finding.joint else "")
    if signal not in ("q", "v", "torque"):
        raise NotApplicable(
            f"a finding of code '{finding.code}' is not about a signal over time: there is no trace", "finding"
        )
    return signal


def _limits(finding: Finding, robot: Robot) -> list[float]:
    """Finite limits of the joint that belong to the finding."""
    limits = robot.limits[finding.joint]
    if finding.code.signal == "q":
        found = [limits.lower, limits.upper]
    else:
        size = limits.velocity if finding.code.signal == "v" else limits.effort
        found = [-size, size]
    return [x for x in found if np.isfinite(x)]


def _mark(place: Any, finding: Finding, t: NDArray[Any]) -> None:
    """Shade the rows that the finding applies to; one row is as wide as a sample, and at least as a thin line."""
    thin = max(0.001 * float(t[-1] - t[0]), 0.501 * float(np.median(np.diff(t))))
    spans: list[list[float]] = []
    for start, stop in finding.rows:
        low, high = float(t[start]) - thin, float(t[min(stop, len(t)) - 1]) + thin
        if spans and low <= spans[-1][1]:
            spans[-1][1] = max(high, spans[-1][1])
        else:
            spans.append([low, high])
    for k, (low, high) in enumerate(spans):
        label = "where it applies" if k == 0 else None
        place.axvspan(low, high, color=RESIDUAL, alpha=0.25, linewidth=0.0, label=label)
    if not finding.joint or finding.rows or len(place.lines) > 1:
        legend_above(place)


def draw_simulation_error(error: SimulationError, joints: str | Sequence[str] | None, ax: Any) -> NDArray[Any]:
    """As `SimulationError.plot`."""
    if error.identified is None:
        raise SimulationFailed(f"nothing was simulated: {error.reason}")
    chosen = chosen_joints(joints, error.joints)
    tools = range(len(error.tools)) if joints is None else range(0)
    charts = [(error.joints[j], error.units[j], "joint_quantiles", j) for j in chosen]
    charts += [(f"tool {error.tools[k]}", "m", "tool_quantiles", k) for k in tools]
    colors = {"identified": PREDICTED, "a-priori": RESIDUAL, "constant velocity": LIMIT}
    markers = {"identified": "o", "a-priori": "D", "constant velocity": "s"}
    columns = min(len(charts), 3)
    with styled():
        axes = axes_of(len(charts), ax=ax, columns=columns, size=(7.0, 2.0 if len(charts) > 1 else 2.8))[:, 0]
        for place, (name, unit, quantiles, k) in zip(axes, charts, strict=True):
            for model, errors in error.models.items():
                median, tail = (getattr(errors, quantiles)(share)[:, k] for share in (0.5, 0.9))
                shown = np.where(np.isfinite(median) & (median > 0), median, np.nan)
                color = colors.get(model, PALETTE[2])
                place.plot(
                    error.horizons, shown, color=color, marker=markers.get(model, "^"), markersize=3.5, label=model
                )
                if model == "identified":
                    tail = np.where(np.isfinite(tail) & (tail > 0), tail, np.nan)
                    place.plot(
                        error.horizons,
                        tail,
                        color=color,
                        linewidth=0.8,
                        linestyle=":",
                        label="identified, 90 % of starts",
                    )
            place.set_xscale("log")
            place.set_yscale("log")
            place.set_title(name)
            place.set_ylabel(axis_label("error", unit))
        for place in axes[-columns:]:
            place.set_xlabel("horizon (s)")
        shared_legend(axes, ax is None)
    return axes


def draw_line_scan(scan: LineScan, ax: Any) -> NDArray[Any]:
    """As `LineScan.plot`."""
    with styled():
        axes = axes_of(2, ax=ax, columns=1, size=(5.0, 2.0))[:, 0]
        axes[0].plot(scan.place, 100.0 * scan.ratio, color=MEASURED, marker="o", markersize=3.0)
        axes[0].set_ylabel("positive definite (%)")
        axes[1].plot(scan.place, scan.margin, color=PREDICTED, marker="o", markersize=3.0)
        axes[1].axhline(0.0, color=LIMIT, linewidth=0.8)
        axes[1].set_ylabel("margin")
        axes[1].set_xlabel("place on the line")
        half = 0.5 * (scan.place[1] - scan.place[0])
        for place in axes:
            for x in scan.place[scan.hidden]:
                place.axvspan(x - half, x + half, color=RESIDUAL, alpha=0.15, linewidth=0.0)
    return axes
