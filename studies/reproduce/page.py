"""Terminal page of a reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.table import Table
from rich.text import Text

from dynid.report.page import page
from studies.reproduce.study import Figure, Study

__all__ = ["print_study"]


def print_study(study: Study, figures: Sequence[Figure], failed_only: bool = False) -> None:
    """Print every figure of a study: published, ours, difference, tolerance and its reason."""
    console = page()
    console.print(Text.assemble((study.name, "bold"), f": {study.title}"))
    for section, group in groupby(figures, key=lambda f: f.section):
        rows = [f for f in group if not (failed_only and f.ok)]
        if not rows:
            continue
        table = Table(title=section, title_justify="left", title_style="bold", expand=False)
        for column in ("", "figure", "published", "ours"):
            table.add_column(column, overflow="fold")
        table.add_column("difference", justify="right")
        table.add_column("tolerance", justify="right")
        table.add_column("reason", overflow="fold")
        for f in rows:
            mark = Text("ok", "green") if f.ok else Text("OUT", "red")
            name = "" if f.name == f.published else f.name
            table.add_row(mark, name, f.published, f.ours, f"{f.difference:.1e}", f"{f.tolerance:.0e}", f.reason)
        console.print(table)
    out = sum(not f.ok for f in figures)
    verdict = (f"{out} out of tolerance", "red") if out else ("all within tolerance", "green")
    console.print(Text.assemble(f"{study.name}: {len(figures)} figures, ", verdict))
