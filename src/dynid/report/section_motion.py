"""Section on the excitation: singular values of the regressor, and ranges of the joints."""

from __future__ import annotations

import platform
from importlib import metadata

import numpy as np
from markupsafe import Markup

from dynid.assessment.model.horizon import SimulationError
from dynid.assessment.verdict.evidence import Evidence
from dynid.identification.estimate import Estimate
from dynid.report.charts import Chart, number
from dynid.report.content import Code, Figure, Figures, Section, Table, Text, section
from dynid.report.provenance import Provenance, file_hash, samples_hash, written

__all__ = ["data_section", "motion_section", "settings_section", "simulation_section"]


def motion_section(evidence: Evidence) -> Section:
    """Singular values of the regressor, and ranges of positions, velocities and accelerations."""
    figures = []
    if evidence.fitted is not None:
        factor = evidence.fitted.stacked(1.0 / evidence.noise)[:, :-1]
        size = np.linalg.norm(factor, axis=0)
        values = np.linalg.svd(factor / np.where(size > 0, size, 1.0), compute_uv=False)
        values = np.maximum(values, 1e-9)
        chart = Chart(
            "combination of parameters, strongest first",
            "singular value, no unit",
            "singular values of the regressor",
            1000,
            240,
            log_y=True,
        )
        chart.bars(np.arange(1, len(values) + 1), values, 1.0, "predicted")
        caption = "unit columns, each channel divided by its noise; small values are poorly excited combinations"
        figures.append(Figure([chart], "Excitation of each combination of parameters", caption))
    rows = []
    if evidence.motions:
        robot = evidence.estimate.robot
        q = np.vstack([m.q for m in evidence.motions])
        v, a = (np.vstack([getattr(m, x) for m in evidence.motions]) for x in ("v", "a"))
        units = {joint.name: "rad" if joint.kind == "revolute" else "m" for joint in robot.joints}
        for j, name in enumerate(robot.coordinates):
            limit = robot.limits[name]
            room = limit.upper - limit.lower
            span, velocity = float(np.ptp(q[:, j])), float(np.abs(v[:, j]).max())
            rows.append(
                [
                    name,
                    units[name],
                    f"{q[:, j].min():.3g} \u2026 {q[:, j].max():.3g}",
                    f"{100 * span / room:.0f} %" if np.isfinite(room) and room > 0 else "-",
                    number(velocity),
                    f"{100 * velocity / limit.velocity:.0f} %"
                    if np.isfinite(limit.velocity) and limit.velocity
                    else "-",
                    number(float(np.abs(a[:, j]).max())),
                ]
            )
    head = [
        "joint",
        "unit",
        "positions",
        "of its range",
        "largest velocity /s",
        "of its limit",
        "largest acceleration /s\u00b2",
    ]
    condition = number(evidence.estimate.condition_number)
    lead = f"Condition number {condition}. A large one matters where it makes predicted torques uncertain."
    return section(
        "motion",
        "Excitation",
        lead,
        Figures(figures) if figures else None,
        Table(head, rows, numbers=2) if rows else None,
    )


# Sections on data checks, settings and versions, and how to reproduce the estimate.

_PACKAGES = ("numpy", "scipy", "numba", "pin", "clarabel", "polars")
_UNITS = {"cutoff": " Hz", "torque_cutoff": " Hz", "trim": " s", "delay": " s", "wrench_delay": " s", "period": " s"}


def data_section(evidence: Evidence) -> Section:
    """Findings of the data checks."""
    title = "Data checks"
    if evidence.findings is None:
        return section("data", title, "The recordings were not given to the report, so their data were not checked.")
    if not evidence.findings:
        return section("data", title, "No problem was found in the recordings.")
    rows = [[f.severity, f.code, f.run, f.joint or "all", f.what, f.how_much, f.what_to_do] for f in evidence.findings]
    head = ["severity", "code", "run", "joint", "what", "how much", "what to do"]
    return section("data", title, f"{len(rows)} findings, errors first.", Table(head, rows, numbers=9))


def settings_section(evidence: Evidence, origin: Provenance) -> Section:
    """Date, settings, inputs with their hashes, versions, and how the estimate is computed again."""
    estimate = evidence.estimate
    used = sorted({number(c) for c in estimate.cutoffs if c is not None}, key=float)
    rows = [["date of this report", written()]]
    rows += [["robot", estimate.robot.name], ["method", estimate.method], ["status", estimate.status]]
    rows += [["cut-off used", f"{', '.join(used)} Hz" if used else "none"]]
    rows += [["random seed", "none: the estimate is deterministic" if origin.seed is None else str(origin.seed)]]
    recordings = {"fitted recording": evidence.recording, "unseen recording": evidence.unseen}
    for what, recording in recordings.items():
        if recording is not None:
            runs = ", ".join(run.name for run in recording.runs[:6])
            rows.append([what, f"{runs}: {recording.samples} samples, {recording.duration:.4g} s"])
    hashes: list[list[str | Markup]] = [[str(path), _hash(file_hash(path))] for path in origin.files]
    hashes += [[f"samples of the {w}", _hash(samples_hash(r))] for w, r in recordings.items() if r is not None]
    versions = [["dynid", _version("dynid")], ["python", platform.python_version()]]
    versions += [[name, _version(name)] for name in _PACKAGES]
    return section(
        "settings",
        "Settings and versions",
        "Everything that is needed to reproduce this estimate.",
        Text(Markup("Command: <code>{}</code>").format(origin.command)) if origin.command else None,
        Code(origin.project, "dynid.toml") if origin.project else None,
        Table(["setting", "value"], rows, numbers=9),
        *(Text(f"{note[:1].upper()}{note[1:]}.") for note in estimate.notes),
        Table(["setting", "value"], _signals(estimate), "Cleaning of the signals", folded=True, numbers=9),
        Table(["input", "SHA-256"], hashes, "Inputs", numbers=9) if hashes else None,
        Table(["package", "version"], versions, "Versions", numbers=9),
    )


def _signals(estimate: Estimate) -> list[list[str]]:
    """Settings of the filters, with units."""
    rows = []
    for name, value in estimate.signals.to_dict().items():
        if value is None or isinstance(value, bool):
            text = "none" if value is None else "yes" if value else "no"
        else:
            text = f"{value}{_UNITS.get(name, '') if isinstance(value, float) else ''}"
        rows.append([name.replace("_", " "), text])
    return rows


def _hash(text: str) -> Markup:
    return Markup("<code>{}</code>").format(text)


def _version(name: str) -> str:
    """Version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"


# Section on simulated motion: how far it is from the measured one, by horizon.

_TITLE = "Simulated motion"
_STYLES = {"identified": "predicted", "a-priori": "measured", "constant velocity": "error"}


def simulation_section(evidence: Evidence) -> Section:
    """Errors of simulated unseen motion, of the identified and the a-priori model."""
    found = evidence.simulation
    if found is None:
        return section("simulation", _TITLE, "No unseen motion was given to the report.")
    if not found.simulated:
        return section("simulation", _TITLE, f"Not simulated: {found.reason}.")
    head, rows = found.table()
    pair = "identified and a-priori model" if found.prior is not None else "identified model"
    order = ", identified / a-priori" if found.prior is not None else ""
    lead = (
        f"The measured torque moves the {pair} from {max(found.starts)} measured states of the unseen motion, without "
        f"feedback. Median distance to the measured position after each time, and its rms over whole runs{order}."
    )
    return section(
        "simulation",
        _TITLE,
        lead,
        Table(head, rows, numbers=2),
        Text(". ".join(x[0].upper() + x[1:] for x in found.remarks()) + ".") if found.remarks() else None,
        _figures(found),
    )


def _figures(found: SimulationError) -> Figures:
    """Median errors over the horizon: of the tools, or of the joints where no end link moves."""
    unit = "m" if found.tools else "rad or m"
    chart = Chart(
        "time after the start in s",
        f"position error in {unit}",
        "error of simulated motion by horizon",
        520,
        230,
        log_y=True,
    )
    drawn = []
    for name, errors in found.models.items():
        median = errors.tool_quantiles() if found.tools else errors.joint_quantiles()
        worst = np.max(median, axis=1)
        good = np.isfinite(worst) & (worst > 0)
        if good.any():
            chart.line(np.array(found.horizons)[good], worst[good], _STYLES[name], name)
            drawn.append((_STYLES[name], name))
    what = "the end link that is farthest off" if found.tools else "the joint that is farthest off"
    return Figures([Figure([chart], "Error by horizon", f"median over the starts, of {what}")], "medium", drawn)
