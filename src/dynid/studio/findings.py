"""What the checks found in a recording."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from dynid.studio.tables import sentence_table

__all__ = ["findings_table"]

_KEYS = ("severity", "joint", "what", "how_much", "what_to_do")


def findings_table(found: Any = None) -> None:
    """The findings that `dynid check --json` printed; nothing before it ran."""
    if found is None:
        return
    listed = found["findings"] if isinstance(found, dict) else found
    if not listed:
        ui.label("Nothing was found wrong with the recording.").mark("findings")
        return
    sentence_table([{k: str(x.get(k) or "") for k in _KEYS} for x in listed])
