"""The page of a payload, drive gains, friction, a fleet, actuators or a geometry: verdict, figures, tables."""

from __future__ import annotations

from functools import singledispatch
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.verdict import assess_actuators
from dynid.assessment.verdict.assessment import Assessment
from dynid.calibration.drive_gains import DriveGains
from dynid.calibration.payload import Payload
from dynid.calibration.verdict import assess_gains, assess_payload
from dynid.errors import InvalidType
from dynid.files import write_text
from dynid.fleet.result import FleetEstimate
from dynid.fleet.verdict import assess_fleet
from dynid.friction.selection import FrictionSelection
from dynid.friction.verdict import assess_friction
from dynid.geometry.estimate import GeometryEstimate
from dynid.geometry.verdict import assess_geometry
from dynid.report.charts import Chart, number, plus_minus
from dynid.report.content import Block, Figure, Figures, Section, Table, Text, section
from dynid.report.document import checks_section, page_of
from dynid.report.fleet import write_fleet
from dynid.report.friction import friction_chart
from dynid.report.geometry import write_geometry
from dynid.report.provenance import written

if TYPE_CHECKING:
    import polars as pl

__all__ = ["verdict_on", "write_result"]

Array = NDArray[np.float64]
Key = tuple[str, str, str]

# Rows of a table on the page.
_ROWS = 400


def write_result(
    result: Payload | DriveGains | FrictionSelection | FleetEstimate | ActuatorEstimate | GeometryEstimate,
    path: str | Path,
    unseen: Any = None,
    prior: Any = None,
    *,
    command: str = "",
) -> Assessment:
    """Write the page of a result into one self-contained HTML file, with its verdict first.

    Parameters
    ----------
    result : Payload, DriveGains, FrictionSelection, FleetEstimate, ActuatorEstimate or GeometryEstimate
        What was identified.
    path : str or Path
        HTML file to write.
    unseen, prior : Validation or PositionErrors, optional
        Errors on motion that was not fitted, of friction and of actuators, and those of the a-priori actuators; of a
        geometry the measurements, `unseen`.
    command : str
        Command that computes the result again; it is shown on the page.

    Returns
    -------
    Assessment
        The verdict at the top of the page.

    Raises
    ------
    DataError
        If there is no verdict on results of this kind.
    """
    if isinstance(result, FleetEstimate):
        return write_fleet(result, path)
    if isinstance(result, GeometryEstimate):
        return write_geometry(result, path, () if unseen is None else unseen, command=command)
    assessment = verdict_on(result, unseen, prior)
    figures, drawn = _content(result)
    sections = [
        checks_section(assessment),
        *([] if drawn is None else [drawn]),
        section("values", "Values", "Everything that was identified, in SI units.", _table(result.to_frame())),
    ]
    if command:
        sections.append(section("command", "Command", "The command that computes this again.", Text(command)))
    page = page_of(
        title=f"{assessment.robot}: can its {assessment.method} be trusted?".removeprefix(": "),
        subtitle=f"Report of {written()}.",
        judgements=[assessment],
        names=[""],
        figures=figures,
        sections=sections,
    )
    write_text(path, page)
    return assessment


def verdict_on(result: object, unseen: Any = None, prior: Any = None) -> Assessment:
    """The verdict on a result, with errors on motion that was not fitted where its kind has such."""
    if isinstance(result, Payload):
        return assess_payload(result)
    if isinstance(result, DriveGains):
        return assess_gains(result)
    if isinstance(result, FrictionSelection):
        return assess_friction(result, unseen)
    if isinstance(result, FleetEstimate):
        return assess_fleet(result)
    if isinstance(result, ActuatorEstimate):
        return assess_actuators(result, unseen, prior)
    if isinstance(result, GeometryEstimate):
        return assess_geometry(result, () if unseen is None else unseen)
    raise InvalidType(f"there is no verdict on a result of type {type(result).__name__}", "result")


@singledispatch
def _content(result: Any) -> tuple[list[Key], Section | None]:
    """Key figures of a result, and the section with its plot, if there is one."""
    return [], None


@_content.register
def _payload(result: Payload) -> tuple[list[Key], Section | None]:
    figures = [
        ("mass", f"{plus_minus(result.mass, result.mass_std)} kg", f"on {result.link}"),
        ("centre of mass", f"({', '.join(f'{x:.3f}' for x in result.centre)}) m", "in the frame of the link"),
        *(
            (f"by {source.value}", f"{number(std)} kg", "of the standard deviation of the mass")
            for source, std in result.mass_sources.items()
        ),
    ]
    lead = "The mass that each joint gives by itself, with two standard deviations of noise, beside that of all joints."
    known = np.isfinite(result.channel_mass) & (result.channel_mass_std < abs(result.mass))
    drawn = _by_joint(result.channel_mass, result.channel_mass_std, known, "mass in kg", (result.mass, result.mass_std))
    return figures, section("joints", "Joint by joint", lead, drawn, _numbering(result.channels))


@_content.register
def _gains(result: DriveGains) -> tuple[list[Key], Section | None]:
    figures = [
        (j, plus_minus(g, s), "N m/A (N/A)") for j, g, s in zip(result.joints, result.gains, result.std, strict=True)
    ]
    known = np.isfinite(result.std)
    lead = "Gain of every joint with two standard deviations, and those of both halves of the runs."
    drawn = _by_joint(result.gains, result.std, known, "gain in N m/A", None, result.halves)
    return figures, section("joints", "Joint by joint", lead, drawn, _numbering(result.joints))


@_content.register
def _friction(result: FrictionSelection) -> tuple[list[Key], Section | None]:
    figures, drawn = [], []
    for fit in result.fits:
        unit = "N" if fit.prismatic else "N m"
        figures.append((fit.joint, fit.best.name, f"{number(fit.best.rms)} {unit} unexplained"))
        if len(fit.velocity):
            chart, legend = friction_chart(fit, fit.joint)
            names = ", ".join(words for _, words in legend)
            drawn.append(Figure([chart], f"friction of {fit.joint}", names))
    lead = "Measured friction over velocity, means per velocity, and the best models."
    return figures, section("friction", "Friction", lead, Figures(drawn)) if drawn else None


def _by_joint(
    values: Array,
    std: Array,
    known: NDArray[np.bool_],
    label: str,
    whole: tuple[float, float] | None,
    others: Array | None = None,
) -> Figures | None:
    """Values of the joints in order with their intervals, those of parts, and that of all joints."""
    if not known.any():
        return None
    x = np.arange(1.0, len(values) + 1)[known]
    y, s = values[known], std[known]
    chart = Chart("joint, in order", label)
    legend = [("measured", "single joints")]
    if whole is not None:
        ends = np.array([0.5, len(values) + 0.5])
        chart.band(ends, np.full(2, whole[0] - 2 * whole[1]), np.full(2, whole[0] + 2 * whole[1]), "predicted")
        chart.level(whole[0], "predicted")
        legend.append(("predicted", "all joints, with everything that adds to the standard deviation"))
    for part in () if others is None else others:
        chart.dots(x, part[known], "error")
    if others is not None:
        legend.append(("error", "halves of the runs"))
    chart.spans(x, y - 2 * s, y + 2 * s, "measured").dots(x, y, "measured")
    return Figures([Figure([chart], label)], "wide", legend)


def _numbering(joints: tuple[str, ...]) -> Block:
    return Text("Joints: " + ", ".join(f"{k} {name}" for k, name in enumerate(joints, start=1)))


def _table(frame: pl.DataFrame) -> Table:
    """A table of a result as a table of the page."""
    numbers = {k for k, kind in enumerate(frame.dtypes) if kind.is_numeric()}
    rows = [
        ["" if x is None else number(x) if k in numbers else str(x) for k, x in enumerate(row)]
        for row in frame.head(_ROWS).iter_rows()
    ]
    words = tuple(k for k in range(1, frame.width) if k not in numbers)
    return Table(frame.columns, rows, words=words)
