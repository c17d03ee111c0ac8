"""The board of signals: a cell per signal and joint, on which columns of the log are dropped."""

from __future__ import annotations

from html import escape
from typing import NamedTuple

from dynid.recording.run import PARTS
from dynid.studio.mapping import CLOCK, LogMapping

__all__ = ["BOARD_SIGNALS", "BOARD_STYLE", "DRAG", "DRAG_OVER", "DROP", "Dropped", "board_html", "dropped"]

# Signals that are always there; others appear once a column is assigned to them.
BOARD_SIGNALS = ("q", "v", "torque", "current", "reference")
_NOT_USED = "none"

BOARD_STYLE = """
.dynid-board { overflow-x: auto; max-width: 100%; }
.dynid-board table { border-collapse: separate; border-spacing: 3px; font-size: 13px; }
.dynid-board th { text-align: left; font-weight: 500; padding: 1px 6px; white-space: nowrap; }
.dynid-board td { min-width: 76px; height: 26px; padding: 1px 4px; border: 1px dashed #8888; border-radius: 4px; }
.dynid-board td.dynid-over { border: 1px solid #125c9a; background: #125c9a33; }
.dynid-board td.dynid-locked { opacity: 0.55; }
.dynid-chip { display: inline-block; padding: 0 7px; border-radius: 10px; background: #125c9a; color: white;
  cursor: grab; max-width: 130px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap;
  vertical-align: middle; }
.dynid-columns td.dynid-grip { cursor: grab; }
.dynid-columns td.dynid-grip span { opacity: 0.6; margin-right: 6px; }
.dynid-columns tbody td { user-select: none; }
"""
# The column that is dragged travels in the drag itself.
DRAG = """(e) => {
  const chip = e.target.closest('[data-number]');
  if (chip) { e.dataTransfer.setData('text/plain', chip.dataset.number); e.dataTransfer.effectAllowed = 'move'; }
}"""
DRAG_OVER = """(e) => {
  const cell = e.target.closest('[data-signal]'), board = e.currentTarget;
  board.querySelectorAll('.dynid-over').forEach(x => x !== cell && x.classList.remove('dynid-over'));
  if (cell && e.type === 'dragover') { e.preventDefault(); cell.classList.add('dynid-over'); }
}"""
DROP = """(e) => {
  const cell = e.target.closest('[data-signal]');
  e.currentTarget.querySelectorAll('.dynid-over').forEach(x => x.classList.remove('dynid-over'));
  if (!cell) return;
  e.preventDefault();
  emit(e.dataTransfer.getData('text/plain'), cell.dataset.signal, cell.dataset.channel || '');
}"""


class Dropped(NamedTuple):
    """A column that was dropped: its number, the signal ("" for not used), and the joint or component."""

    number: int
    signal: str
    channel: str


def board_html(mapping: LogMapping) -> str:
    """The board as HTML: the clock, a place for unused columns, and a row per joint with a cell per signal."""
    held = {(what.signal, what.channel): number for number, what in mapping.assigned.items()}
    used = {what.signal for what in mapping.assigned.values()}
    more = [s for s in sorted(used) if s not in (*BOARD_SIGNALS, CLOCK) and s not in PARTS]
    signals = [*BOARD_SIGNALS, *more]
    head = "".join(f'<th scope="col">{escape(s)}</th>' for s in signals)
    rows = []
    for joint in mapping.joints:
        locked = joint in mapping.locked
        cells = "".join(_cell(mapping, s, joint, held.get((s, joint)), locked) for s in signals)
        note = " (locked)" if locked else ""
        rows.append(f'<tr><th scope="row">{escape(joint)}{note}</th>{cells}</tr>')
    clock = _cell(mapping, CLOCK, "", held.get((CLOCK, "")), locked=False)
    unused = f'<td data-signal="{_NOT_USED}">drop here: not used</td>'
    top = f'<table><tbody><tr><th scope="row">clock</th>{clock}{unused}</tr></tbody></table>'
    caption = '<caption class="sr-only">columns of the log by signal and joint</caption>'
    head = f'<thead><tr><th scope="col">joint</th>{head}</tr></thead>'
    return f"{top}<table>{caption}{head}<tbody>{''.join(rows)}</tbody></table>"


def _cell(mapping: LogMapping, signal: str, channel: str, number: int | None, locked: bool) -> str:
    chip = ""
    if number is not None:
        name = escape(mapping.columns[number].name)
        chip = f'<span class="dynid-chip" draggable="true" data-number="{number}" title="{name}">{name}</span>'
    look = ' class="dynid-locked"' if locked else ""
    return f'<td{look} data-signal="{escape(signal)}" data-channel="{escape(channel)}">{chip}</td>'


def dropped(number: object, signal: object, channel: object, mapping: LogMapping) -> Dropped | None:
    """What the page says was dropped; None for a drag of anything else, such as a file or a text."""
    text = str(number)
    if not text.isascii() or not text.isdigit() or len(text) > 6 or int(text) >= len(mapping.columns):
        return None
    signal = "" if signal == _NOT_USED else str(signal)
    if signal and str(channel) not in (*mapping.channels(signal), ""):
        return None
    return Dropped(int(text), signal, str(channel) if signal else "")
