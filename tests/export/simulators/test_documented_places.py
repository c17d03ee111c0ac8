"""The tables of the documentation are those of the simulators."""

from __future__ import annotations

from pathlib import Path

from dynid.export import ActuatorProperty
from dynid.export.simulators.write import SIMULATORS

PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "simulator-actuators.md"


def test_every_place_is_documented() -> None:
    found: dict[tuple[str, str], str] = {}
    head: list[str] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        cells = [c.strip() for c in line.strip("|").split("|")] if line.startswith("|") else []
        if cells[:1] == ["property"]:
            head = cells
        elif cells and len(cells) == len(head) and set(cells[1]) - {"-"}:
            found |= {(name, cells[0]): cell for name, cell in zip(head[1:], cells[1:], strict=True)}
    expected = {
        (simulator.words, str(what)): simulator.places.get(what, "lost")
        for simulator in SIMULATORS.values()
        for what in ActuatorProperty
    }
    assert found == expected
