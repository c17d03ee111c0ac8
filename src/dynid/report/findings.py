"""Output of `dynid check`: findings as data and as a table."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rich.table import Table
from rich.text import Text

from dynid.assessment.finding import SEVERITIES, Finding
from dynid.report.page import page

__all__ = ["findings_data", "print_findings"]

_COLOR = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def findings_data(findings: Iterable[Finding]) -> dict[str, Any]:
    """Return all findings as plain data, with the count of each severity."""
    listed = list(findings)
    return {"counts": _counts(listed), "findings": [f.to_dict() for f in listed]}


def print_findings(findings: Iterable[Finding]) -> None:
    """Print one row per finding, errors first, then their counts."""
    listed = list(findings)
    console = page()
    if not listed:
        console.print(Text("No problem was found in the recording.", "green"))
        return
    several = len({f.run for f in listed}) > 1
    table = Table(show_lines=True)
    table.add_column("")
    if several:
        table.add_column("run", overflow="fold")
    table.add_column("joint", overflow="fold")
    table.add_column("what", ratio=3)
    table.add_column("how much", ratio=2)
    table.add_column("what to do", ratio=3)
    for f in listed:
        run = (Text(f.run),) if several else ()
        cells = (Text(x) for x in (f.joint, f.what, f.how_much, f.what_to_do))
        table.add_row(Text(f.severity, _COLOR[f.severity]), *run, *cells)
    console.print(table)
    console.print(", ".join(f"{severity}: {count}" for severity, count in _counts(listed).items()))


def _counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Number of findings of each severity."""
    listed = list(findings)
    return {severity: sum(f.severity == severity for f in listed) for severity in SEVERITIES}
