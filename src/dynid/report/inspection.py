"""Output of `dynid inspect`: a robot and its identifiable parameters, as data and as a terminal page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from dynid.assessment.model.physical import Audit
from dynid.parameters.base import BaseParameters
from dynid.report.page import page
from dynid.robot.consistency import link_violations
from dynid.robot.drives import DRIVE_SYMBOLS
from dynid.robot.inertia import INERTIAL_SYMBOLS
from dynid.robot.model import Robot

__all__ = ["inspection_data", "print_inspection"]

_MARK = {"identifiable": ("●", "green"), "combined": ("◐", "yellow"), "unidentifiable": ("○", "bright_black")}
_WORDS = {
    "identifiable": "identifiable alone",
    "combined": "only in combination",
    "unidentifiable": "not identifiable",
}


def inspection_data(robot: Robot, base: BaseParameters, audit: Audit | None = None) -> dict[str, Any]:
    """Return the inspection as plain data for JSON."""

    def finite(x: float) -> float | None:
        return float(x) if np.isfinite(x) else None

    return {
        "name": robot.name,
        "source": robot.source.strip(),
        "notes": list(robot.notes),
        "base": robot.base,
        "gravity": [float(g) for g in robot.gravity],
        "joints": [
            {
                "name": j.name,
                "kind": j.kind,
                "parent": robot.links[j.parent].name,
                "link": robot.links[i + 1].name,
                "mimic": None if j.mimic is None else vars(j.mimic),
                "passive": j.name in robot.passive,
                "limits": {k: finite(v) for k, v in vars(j.limits).items()},
            }
            for i, j in enumerate(robot.joints)
        ],
        "loops": [{"name": x.name, "what": str(x), "rows": x.rows} for x in robot.loops],
        "merged": [vars(m) for m in robot.merged],
        "channels": list(base.channels),
        "parameters": [
            {"name": p.name, "label": p.label, "unit": p.unit, "value": float(v), "class": base.classes[p.name]}
            for p, v in zip(robot.layout, robot.parameters, strict=True)
        ],
        "counts": {"standard": len(robot.layout), "effective": base.effective_count, "base": base.count},
        "base_parameters": [
            {"name": n, "expression": e, "value": float(v)}
            for n, e, v in zip(base.names, base.expressions, base.values(), strict=True)
        ],
        "method": base.method,
        "gap": finite(base.gap),
        "inconsistent_links": link_violations(robot, robot.parameters, massless=False),
        **({} if audit is None else {"audit": audit.to_dict()}),
    }


def print_inspection(robot: Robot, base: BaseParameters, expressions: bool = False, audit: Audit | None = None) -> None:
    """Print tree with limits, parameter map, physical consistency and, on request, all expressions and an audit."""
    console = page()
    gravity = ", ".join(f"{g:g}" for g in robot.gravity)
    head = f": {robot.n} joints, {robot.base} base, gravity ({gravity}) m/s2"
    console.print(Text.assemble((robot.name, "bold"), head))
    console.print(_tree(robot))
    for loop in robot.loops:
        console.print(Text(f"  closed: {loop}"))
    for m in robot.merged:
        console.print(f"  merged: link {m.link} ({m.mass:g} kg) on fixed joint {m.joint} into {m.into}")
    for note in robot.notes:
        console.print(Text.assemble(("  note: ", "yellow"), note))
    for table in _maps(robot, base, console.width):
        console.print(table)
    legend = Text("  ")
    for name, (mark, color) in _MARK.items():
        legend.append(f"{mark} ", color)
        legend.append(f"{_WORDS[name]}   ")
    console.print(legend)
    effect = f" standard parameters, {base.effective_count} with an effect, "
    chosen = f" base parameters ({base.method}; gap of the singular values {base.gap:.0e})"
    console.print(Text.assemble((str(len(robot.layout)), "bold"), effect, (str(base.count), "bold"), chosen))
    broken = link_violations(robot, robot.parameters, massless=False)
    for link, reasons in broken.items():
        console.print(Text.assemble(("not physically consistent", "red"), f" {link}: {'; '.join(reasons)}"))
    if not broken:
        console.print(Text("All a-priori inertias are physically consistent.", "green"))
    if expressions:
        table = Table(title="base parameters", title_justify="left")
        table.add_column("#", justify="right")
        table.add_column("combination", overflow="fold")
        table.add_column("a-priori value", justify="right")
        for i, (text, value) in enumerate(zip(base.expressions, base.values(), strict=True), start=1):
            table.add_row(str(i), text, f"{value:.6g}")
        console.print(table)
    else:
        console.print("Add --base for the combinations.", style="bright_black")
    if audit is not None:
        verdict, *findings = audit.summary().splitlines()
        console.print(Text(verdict, "green" if audit.ok else "yellow" if audit.moves else "red"))
        for line in findings:
            console.print(Text(f"  {line}"))


def parameter_symbols(robot: Robot) -> list[str]:
    """Symbols of a robot's parameters: inertial ones, drive ones, then custom ones."""
    used = [p.symbol for p in robot.layout]
    known = [s for s in (*INERTIAL_SYMBOLS, *DRIVE_SYMBOLS) if s in used]
    return list(dict.fromkeys([*known, *used]))


def parameter_groups(robot: Robot) -> dict[str, str]:
    """Link or motor under which the parameters of each owner are shown; a drive is shown under its joint's link."""
    link_of = {j.name: robot.links[i + 1].name for i, j in enumerate(robot.joints)}
    return {p.owner: link_of.get(p.owner, p.owner) for p in robot.layout}


def _tree(robot: Robot) -> Tree:
    """Tree of links and joints, with limits."""
    root = Tree(Text(robot.links[0].name))
    nodes = [root]
    for i, joint in enumerate(robot.joints):
        limits = joint.limits
        unit = "rad" if joint.kind == "revolute" else "m"
        words: list[str] = [joint.kind]
        if joint.mimic is not None:
            words.append(f"= {joint.mimic.ratio:g} {joint.mimic.leader} {joint.mimic.offset:+g}")
        if joint.name in robot.passive:
            words.append("passive")
        if np.isfinite([limits.lower, limits.upper]).any():
            words.append(f"[{limits.lower:.4g}, {limits.upper:.4g}] {unit}")
        if np.isfinite(limits.velocity):
            words.append(f"{limits.velocity:.4g} {unit}/s")
        if np.isfinite(limits.effort):
            words.append(f"{limits.effort:.4g} {'N m' if unit == 'rad' else 'N'}")
        label = Text(joint.name, "bold")
        label.append(f"  {', '.join(words)}  ", "cyan")
        label.append(robot.links[i + 1].name)
        nodes.append(nodes[joint.parent].add(label))
    return root


def _maps(robot: Robot, base: BaseParameters, width: int) -> Iterator[Table]:
    """Tables of all parameters: one column per link or motor, one row per symbol, with value and class."""
    group = parameter_groups(robot)
    columns: dict[str, dict[str, Text]] = {}
    for p, value in zip(robot.layout, robot.parameters, strict=True):
        mark, color = _MARK[base.classes[p.name]]
        columns.setdefault(group[p.owner], {})[p.symbol] = Text(f"{value:.4g} {mark}", color)
    symbols = parameter_symbols(robot)
    owners = list(columns)
    fitting = max(1, (width - 8) // (max(10, *map(len, owners)) + 3))
    for start in range(0, len(owners), fitting):
        part = owners[start : start + fitting]
        table = Table(title="standard parameters" if start == 0 else None, title_justify="left")
        table.add_column("")
        for owner in part:
            table.add_column(owner, justify="right", no_wrap=True)
        for s in symbols:
            if any(s in columns[o] for o in part):
                table.add_row(s, *(columns[o].get(s, Text("")) for o in part))
        yield table
