"""Sections on data checks, settings and versions, and how to reproduce the estimate."""

from __future__ import annotations

import platform
from importlib import metadata

from markupsafe import Markup

from dynid.assessment.verdict.evidence import Evidence
from dynid.identification.estimate import Estimate
from dynid.report.charts import number
from dynid.report.content import Code, Section, Table, Text, section
from dynid.report.provenance import Provenance, file_hash, samples_hash, written

__all__ = ["data_section", "settings_section"]

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
