"""Sections on data checks, settings and versions, and how to reproduce the estimate."""

from __future__ import annotations

import platform
from importlib import metadata

from dynid.assessment.verdict.evidence import Evidence
from dynid.report.charts import number
from dynid.report.content import Section, Table, Text, section

__all__ = ["data_section", "settings_section"]

_PACKAGES = ("numpy", "scipy", "numba", "pin", "clarabel")


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


def settings_section(evidence: Evidence, command: str, seed: int | None) -> Section:
    """Settings of the estimate, versions, and the command that reproduces it."""
    estimate = evidence.estimate
    used = sorted({number(c) for c in estimate.cutoffs if c is not None}, key=float)
    signals = {k.replace("_", " "): str(v) for k, v in estimate.signals.to_dict().items()}
    rows = [["robot", estimate.robot.name], ["method", estimate.method], ["status", estimate.status]]
    rows += [["cut-off used", f"{', '.join(used)} Hz" if used else "none"]]
    rows += [[k, "none" if v == "None" else v] for k, v in signals.items()]
    rows += [["random seed", "none: the estimate is deterministic" if seed is None else str(seed)]]
    for what, recording in (("fitted recording", evidence.recording), ("unseen recording", evidence.unseen)):
        if recording is not None:
            runs = ", ".join(run.name for run in recording.runs[:6])
            rows.append([what, f"{runs}: {recording.samples} samples, {recording.duration:.4g} s"])
    versions = [["dynid", _version("dynid")], ["python", platform.python_version()]]
    versions += [[name, _version(name)] for name in _PACKAGES]
    again = Text(f"Command: {command}") if command else None
    notes = [Text(note) for note in estimate.notes]
    return section(
        "settings",
        "Settings and versions",
        "Everything that is needed to reproduce this estimate.",
        again,
        Table(["setting", "value"], rows, numbers=9),
        *notes,
        Table(["package", "version"], versions, numbers=9),
    )


def _version(name: str) -> str:
    """Version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return "unknown"
