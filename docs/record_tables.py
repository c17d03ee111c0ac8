"""Tables of the pages that are made from records: `python docs/record_tables.py` writes them anew.

A table stands between the comments `<!-- records NAME -->` and `<!-- end -->`; a test says which ones are old.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path

from dynid.assessment.causes.candidates import EFFECTS, TORQUE_DELAY
from dynid.assessment.causes.cause_source import cause_codes
from dynid.assessment.data.battery import finding_codes, recording_checks
from dynid.export import ActuatorProperty
from dynid.export.simulators.registry import simulator_targets
from dynid.mocap.findings import CAPTURE_CODES
from dynid.robot.drives import DRIVE_LAWS

DOCS = Path(__file__).parent
_TABLE = re.compile(r"(<!-- records ([a-z-]+) -->\n).*?(<!-- end -->)", re.DOTALL)
# Columns of simulators beside each other.
_BESIDE = 4


def simulators() -> str:
    """Name, file and template of each simulator."""
    rows = [(f"`{x.name}`", f"`{x.ending}`", x.template, x.about) for x in simulator_targets().values()]
    return _table(("simulator", "file", "template", "what it is"), rows)


def simulator_places() -> str:
    """Where each simulator has each property."""
    targets = list(simulator_targets().values())
    tables = []
    for first in range(0, len(targets), _BESIDE):
        some = targets[first : first + _BESIDE]
        rows = [(str(what), *(x.places.get(what, "lost") for x in some)) for what in ActuatorProperty]
        tables.append(_table(("property", *(x.words for x in some)), rows))
    return "\n".join(tables)


def checks() -> str:
    """What each check of a recording finds."""
    return _table(("check", "finds", "what to do"), [(x.name, x.finds, x.advice) for x in recording_checks().values()])


def codes() -> str:
    """What each code of a finding means, and how severe it is."""
    rows = [(f"`{x}`", " or ".join(x.severities), x.meaning) for x in (*finding_codes().values(), *CAPTURE_CODES)]
    return _table(("code", "severity", "meaning"), rows)


def causes() -> str:
    """What each code of a cause means, and from where on it is named."""
    rows = [(f"`{x}`", x.meaning, x.named_from) for x in cause_codes().values()]
    return _table(("code", "cause", "named from"), rows)


def effects() -> str:
    """What each code of a missing effect means."""
    return _table(("code", "effect"), [(f"`{x}`", x.meaning) for x in (*(kind.code for kind in EFFECTS), TORQUE_DELAY)])


def drive_terms() -> str:
    """Torque and units of each kind of drive parameter."""
    rows = [(f"`{x.symbol}`", x.torque, x.words, *x.units) for x in DRIVE_LAWS.values()]
    return _table(("symbol", "f, the torque per unit of the parameter", "", "unit, revolute", "unit, prismatic"), rows)


TABLES: dict[str, Callable[[], str]] = {
    "simulators": simulators,
    "simulator-places": simulator_places,
    "checks": checks,
    "finding-codes": codes,
    "causes": causes,
    "effects": effects,
    "drive-terms": drive_terms,
}


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n".replace("|  |", "| |") for line in lines).replace(" --- ", "---")


def with_tables(text: str) -> str:
    """The text of a page with its tables made anew."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{TABLES[found[2]]()}\n{found[3]}", text)


def main() -> None:
    """Write the pages whose tables are old."""
    for page in sorted(DOCS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        if with_tables(text) != text:
            page.write_text(with_tables(text), encoding="utf-8")
            print(page.relative_to(DOCS))


if __name__ == "__main__":
    main()
