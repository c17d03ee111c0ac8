"""The page of a geometric calibration: verdict, error before and after, where it is, and what the measurements show."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Assessment
from dynid.dynamics.frames import frame_placement
from dynid.files import write_text
from dynid.geometry.at_postures import PostureErrors, posture_errors, problem_of
from dynid.geometry.base import base_geometry
from dynid.geometry.estimate import GeometryEstimate
from dynid.geometry.hidden import remedies
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.unknowns import UnknownKind
from dynid.geometry.verdict import assess_geometry
from dynid.identification.judgement import REASONS
from dynid.report.charts import Chart, interval, number, plus_minus
from dynid.report.content import Figure, Figures, Scene, Section, Table, Text, section
from dynid.report.document import checks_section, page_of
from dynid.report.provenance import written
from dynid.robot.skeleton import bars, poses

__all__ = ["write_geometry"]

Array = NDArray[np.float64]

_SHOWN = {"m": (1e3, "mm"), "rad": (180 / np.pi, "deg"), "rad/(N m)": (1e6, "urad/(N m)"), "m/N": (1e6, "um/N")}
# 97.5 % quantile of a normal distribution.
_TWO_SIDED = 1.959964
# Share of the robot's size that a large error is drawn as, arrows in the picture, and rows of a table.
_ARROW, _ARROWS, _ROWS = 0.12, 400, 400
# Postures of the map over the workspace, and its horizontal slices.
_MAP, _SLICES = 300, 3
# Below this share of what was expected an unknown is hardly shown.
_HARDLY = 0.05


@dataclass(frozen=True)
class _Top:
    """What stands at the top of the page."""

    verdict: str
    reasons: tuple[str, ...]


def write_geometry(
    found: GeometryEstimate, path: str | Path, measurements: Sequence[Measurement] = (), *, command: str = ""
) -> Assessment:
    """Write the page of a geometric calibration into one self-contained HTML file, with its verdict first.

    Parameters
    ----------
    found : GeometryEstimate
        The identified geometry.
    path : str or Path
        HTML file to write.
    measurements : sequence of Measurement
        Those of the fit, or others; pictures of errors need them.
    command : str
        Command that computes the calibration again; it is shown on the page.

    Returns
    -------
    Assessment
        The verdict at the top of the page.
    """
    assessment = assess_geometry(found, measurements)
    errors = posture_errors(found, measurements) if len(measurements) else ()
    sections = [
        _picture(found, errors),
        _by_posture(found, errors),
        _workspace(found),
        _differences(found),
        _base(found, measurements),
        _sensors(found),
        _hidden(found, measurements),
        checks_section(assessment),
        section("notes", "Notes", "What was assumed.", *map(Text, found.notes)) if found.notes else None,
        section("command", "Command", "The command that computes this again.", Text(command)) if command else None,
    ]
    page = page_of(
        title=f"{found.robot.name}: can its calibrated geometry be trusted?",
        subtitle=f"{_postures(found)} postures of {', '.join(found.frames)}. Report of {written()}.",
        judgements=[_Top(assessment.verdict, (*assessment.reasons[:REASONS], f"next: {_next(assessment)}"))],
        names=[""],
        figures=list(_figures(found)),
        sections=[s for s in sections if s is not None],
    )
    write_text(path, page)
    return assessment


def _next(assessment: Assessment) -> str:
    """One thing to do next."""
    advice = next((c.advice for c in assessment.against if c.advice), "")
    return advice or "write the corrected robot with dynid geometry export"


def _postures(found: GeometryEstimate) -> int:
    return sum(s.postures for s in found.sensors)


def _figures(found: GeometryEstimate) -> Iterator[tuple[str, str, str]]:
    """Key figures: name, value, remark."""
    held = found.held_out
    if held is not None:
        (mean, after), (most, most_after) = held.mean, held.largest
        words = f"mean; 95 % of them below {1e3 * most:.3g} before and {1e3 * most_after:.3g} mm after"
        yield f"error at {held.by} left out", f"{1e3 * mean:.3g} \u2192 {1e3 * after:.3g} mm", words
    else:
        for s in found.sensors:
            yield s.name, f"{1e3 * s.before:.3g} \u2192 {1e3 * s.after:.3g} mm", "in the fit; nothing was left out"
    aside = sum(len(s.set_aside) for s in found.sensors)
    yield "postures", str(_postures(found)), f"{aside} set aside"
    yield "combinations shown", str(found.rank), f"of {found.joint_count} errors of joints"


# -- errors --------------------------------------------------------------------------------------------


def _picture(found: GeometryEstimate, errors: Sequence[PostureErrors]) -> Section | None:
    """The robot with its errors at the measured positions as arrows."""
    drawn = [e for e in errors if e.away_before is not None and e.away_after is not None]
    if not drawn:
        return None
    q = drawn[0].q[len(drawn[0].q) // 2]
    bones = [
        [(h[:3, :3] @ x + h[:3, 3]) for x in (b.start, b.end)]
        for b in bars(found.robot)
        for h in (poses(found.robot, q)[b.link],)
    ]
    points = np.concatenate([e.position for e in drawn])
    reach = float(np.linalg.norm(np.ptp(points, axis=0)))
    large = float(np.nanquantile(np.concatenate([e.before for e in drawn]), 0.95))
    times = _round_down(_ARROW * max(reach, 0.1) / max(large, 1e-6))
    arrows = []
    for e in drawn:
        step = max(1, len(e.q) * len(drawn) // _ARROWS)
        for kind, away in (("before", e.away_before), ("after", e.away_after)):
            assert away is not None
            rows = zip(e.position[::step], away[::step], strict=True)
            arrows += [{"p": p, "v": times * v, "k": kind} for p, v in rows if np.isfinite(v).all()]
    data = json.dumps({"bones": bones, "joints": [], "bodies": [], "arrows": arrows}, default=_plain)
    words = (
        f"Errors are drawn {times:g} times as large as they are, from the predicted position of {drawn[0].frame} "
        "towards the measured one. Drag or use the arrow keys to rotate, scroll to zoom. The robot stands in one of "
        "the postures."
    )
    switches = (("before", "geometry of the file", True), ("after", "identified geometry", True))
    lead = "Where the robot is off at the measured positions; sensors are placed best for each of both geometries."
    return section(
        "picture", "Errors in space", lead, Scene(data, words, "The robot with its errors as arrows", switches)
    )


def _plain(x: Array) -> list[float]:
    out: list[float] = np.round(x, 5).tolist()
    return out


def _round_down(x: float) -> float:
    """The largest of 1, 2 and 5 times a power of ten below a number."""
    power = 10.0 ** np.floor(np.log10(x))
    return float(max(f for f in (1, 2, 5) if f * power <= x * (1 + 1e-9)) * power)


def _by_posture(found: GeometryEstimate, errors: Sequence[PostureErrors]) -> Section | None:
    """Errors posture by posture, those that were left out where they are known, and along the axes of the base."""
    figures, held = [], found.held_out
    if held is not None:
        for name in dict.fromkeys(held.sensor):
            mine = np.array([s == name for s in held.sensor])
            figures.append(_errors_of(name, held.number[mine], held.before[mine], held.after[mine], held.by))
    else:
        figures = [_errors_of(e.sensor, np.arange(len(e.q), dtype=np.int64), e.before, e.after, "") for e in errors]
    rows = []
    for e in errors:
        if e.away_before is None or e.away_after is None:
            continue
        for axis, name in enumerate("xyz"):
            pair = [1e3 * float(np.sqrt(np.nanmean(a[:, axis] ** 2))) for a in (e.away_before, e.away_after)]
            mean = [1e3 * float(np.nanmean(a[:, axis])) for a in (e.away_before, e.away_after)]
            rows.append(
                [e.sensor, f"{name} of the base", *map(number, pair), *(f"{x + 0.0:.3f}" for x in np.round(mean, 3))]
            )
    if not figures and not rows:
        return None
    how = f"of the fit without the {held.by} of each posture" if held is not None else "of the fit itself"
    head = ["sensor", "along", "before, mm", "after, mm", "mean before, mm", "mean after, mm"]
    legend = [("error", "geometry of the file"), ("predicted", f"identified geometry, {how}")]
    drawn = Figures(figures, "wide", legend) if figures else None
    table = Table(head, rows, title="By direction, all postures in the fit", numbers=2) if rows else None
    return section("postures", "Posture by posture", "Distance between measured and predicted points.", drawn, table)


def _errors_of(name: str, at: NDArray[np.int64], before: Array, after: Array, by: str) -> Figure:
    """Errors over the number of the posture."""
    order = np.argsort(at, kind="stable")
    x = at[order] + 1.0
    chart = Chart("posture", "error in mm", name)
    for y, kind in ((before, "error"), (after, "predicted")):
        seen = np.isfinite(y[order])
        chart.dots(x[seen], 1e3 * y[order][seen], kind)
    chart.level(0.0, "zero")
    return Figure([chart], name, f"Postures are left out by {by}." if by else "")


# -- workspace -----------------------------------------------------------------------------------------


def _workspace(found: GeometryEstimate) -> Section:
    """What the geometry of the file does to the tool over the workspace, and how well that is known."""
    robot, frame, rng = found.robot, found.frames[0], np.random.default_rng(0)
    limits = [robot.limits[c] for c in robot.coordinates]
    low = np.array([x.lower if np.isfinite(x.lower) else -np.pi for x in limits])
    high = np.array([x.upper if np.isfinite(x.upper) else np.pi for x in limits])
    q = rng.uniform(low, high, (_MAP, robot.n))
    nominal = np.asarray(frame_placement(robot, q, frame))[:, :3, 3]
    real = found.place(q, frame)[0][:, :3, 3]
    away = _without_rigid_motion(nominal, real)
    std = 1e3 * found.tool_std(q, frame)
    size = 1e3 * np.linalg.norm(away, axis=1)
    edges = np.quantile(nominal[:, 2], np.linspace(0, 1, _SLICES + 1))
    reach = max(float(np.ptp(nominal[:, :2], axis=0).max()), 0.1)
    times = _round_down(0.5 * _ARROW * reach / max(1e-3 * float(np.quantile(size, 0.95)), 1e-9))
    least, most = float(std.min()), float(std.max())
    figures = []
    for k in range(_SLICES):
        inside = (nominal[:, 2] >= edges[k]) & (nominal[:, 2] <= edges[k + 1])
        chart = Chart("x in m", "y in m", "", width=340.0, height=330.0)
        words = [
            f"error of the file {s:.3g} mm, known to {d:.2g} mm" for s, d in zip(size[inside], std[inside], strict=True)
        ]
        share = (std[inside] - least) / max(most - least, 1e-12)
        chart.marks(nominal[inside, 0], nominal[inside, 1], share, words)
        (x, y), (dx, dy) = nominal[inside, :2].T, times * away[inside, :2].T
        chart.arrows(x, y, dx, dy, "residual")
        figures.append(Figure([chart], f"z from {edges[k]:.2f} to {edges[k + 1]:.2f} m"))
    lead = (
        f"Over random postures within the joint ranges the geometry of the file is off by {np.median(size):.3g} mm "
        f"(median; 95 % below {np.quantile(size, 0.95):.3g} mm), and the identified one is known to "
        f"{np.median(std):.2g} mm (one standard deviation, median). A motion of the whole base is left out of both."
    )
    legend = (
        f"Arrows: identified less nominal position of {frame}, {times:g} times as large. Circles: standard deviation "
        f"of the identified position, from {least:.2g} mm (blue) to {most:.2g} mm (red)."
    )
    return section("workspace", "Over the workspace", lead, Figures(figures, "small"), Text(legend))


def _without_rigid_motion(points: Array, moved: Array) -> Array:
    """Differences (N, 3) of points after the rigid motion of one set onto the other that fits best."""
    a, b = points - points.mean(0), moved - moved.mean(0)
    u, _, vt = np.linalg.svd(b.T @ a)
    turn = u @ np.diag([1, 1, np.sign(np.linalg.det(u @ vt))]) @ vt
    return b @ turn - a


# -- values --------------------------------------------------------------------------------------------


def _scaled(value: float, unit: str) -> tuple[float, str]:
    """A value in the unit that people read."""
    scale, shown = _SHOWN.get(unit, (1.0, unit))
    return scale * value, shown


def _differences(found: GeometryEstimate) -> Section:
    """All errors of joints with intervals, those that are most certain first."""
    count = found.joint_count
    ratio = np.abs(found.values[:count]) / np.maximum(found.std[:count], 1e-300)
    rows = []
    for k in np.argsort(-ratio, kind="stable")[:_ROWS]:
        u = found.unknowns[k]
        value, unit = _scaled(float(found.values[k]), u.unit)
        half = _TWO_SIDED * _scaled(float(found.std[k]), u.unit)[0]
        drawn = Markup(interval(0.0, value, value - half, value + half))
        rows.append(
            [u.name, number(value), f"{value - half:.3g} to {value + half:.3g}", drawn, unit, f"{found.shown[k]:.0%}"]
        )
    head = ["error", "value", "95 % interval", "beside zero", "unit", "shown"]
    lead = (
        "How far each joint is from where the file has it. Single errors may be exchanged for others without changing "
        "a measurement; the combinations below are what the measurements show."
    )
    return section("differences", "Differences from the file", lead, Table(head, rows, words=(3, 4)))


def _base(found: GeometryEstimate, measurements: Sequence[Measurement]) -> Section | None:
    """Combinations that the measurements show, in words and with their values."""
    if not len(measurements):
        return None
    problem, x = problem_of(found, measurements)
    shown = base_geometry(problem, x)
    names = [u.name for u in found.unknowns[: found.joint_count]]
    try:
        at = [names.index(u.name) for u in shown.unknowns]
    except ValueError:  # measurements of other frames than those of the fit
        return None
    values = shown.weights @ found.values[at]
    std = np.sqrt(np.einsum("bi,ij,bj->b", shown.weights, found.covariance[np.ix_(at, at)], shown.weights))
    rows = []
    for k, words, value, s in zip(shown.kept, shown.expressions, values, std, strict=True):
        scaled, unit = _scaled(float(value), shown.unknowns[k].unit)
        rows.append([words, plus_minus(scaled, _scaled(float(s), shown.unknowns[k].unit)[0]), unit])
    lead = (
        f"{shown.count} combinations of errors of joints change the measurements; everything else follows from priors."
    )
    return section("base", "Base parameters", lead, Table(["combination", "value and std", "unit"], rows, words=(2,)))


def _sensors(found: GeometryEstimate) -> Section:
    """What was measured, how well, and where the sensors are."""
    rows = []
    for s in found.sensors:
        aside = ", ".join(str(i + 1) for i in s.set_aside[:20]) or "none"
        robot = f"{1e3 * s.position:.2g} mm" if s.position else "not told apart"
        rows.append(
            [
                s.name,
                s.kind,
                s.frame,
                aside,
                str(s.postures),
                *map(number, (1e3 * s.before, 1e3 * s.after, s.noise)),
                robot,
            ]
        )
    head = [
        "sensor",
        "kind",
        "frame",
        "set aside",
        "postures",
        "before, mm",
        "after, mm",
        "noise over expected",
        "robot",
    ]
    own = []
    for k in range(found.joint_count, len(found.unknowns)):
        u = found.unknowns[k]
        value, unit = _scaled(float(found.values[k]), u.unit)
        own.append([u.name, plus_minus(value, _scaled(float(found.std[k]), u.unit)[0]), unit])
    lead = "Errors of the fit (root mean square), and scatter of sensor and robot told apart where that is possible."
    moved = Table(
        ["unknown", "value and std", "unit"],
        own[:_ROWS],
        "From where each sensor was expected",
        folded=True,
        words=(2,),
    )
    return section("sensors", "Sensors", lead, Table(head, rows, numbers=4, words=(8,)), moved if own else None)


def _hidden(found: GeometryEstimate, measurements: Sequence[Measurement]) -> Section:
    """Errors that the measurements do not show, and what would show them."""
    names = list(found.hidden)
    hardly = [
        u.name
        for u, s in zip(found.unknowns, found.shown, strict=True)
        if u.kind is not UnknownKind.SENSOR and s < _HARDLY and u.name not in names
    ]
    more = remedies(problem_of(found, measurements)[0]) if len(measurements) else ()
    rows = [
        [r.words, ", ".join(r.shows[:12]) + (f" and {len(r.shows) - 12} more" if len(r.shows) > 12 else "")]
        for r in more
    ]
    lead = "Errors that change no measurement, or act as an unknown of a sensor does, keep their expected value."
    return section(
        "hidden",
        "Not shown",
        lead,
        Text("Not shown: " + (", ".join(names) or "nothing") + "."),
        Text(f"Hardly shown (below {_HARDLY:.0%}): {', '.join(hardly)}.") if hardly else None,
        Table(["what would show more", "errors"], rows, numbers=2) if rows else None,
    )
