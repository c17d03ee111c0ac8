"""The columns of a log: what they look like, and what each of them is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import numpy as np
from nicegui import events, ui

from dynid.errors import DynidError, InvalidValue, MissingArgument
from dynid.recording.formats import has_topics
from dynid.studio.bench import Bench
from dynid.studio.findings import findings_table
from dynid.studio.mapping import CLOCK, column_numbers, listed_numbers, units_of
from dynid.studio.mapping_board import BOARD_STYLE, DRAG, DRAG_OVER, DROP, board_html, dropped
from dynid.studio.opened_log import OpenedLog
from dynid.studio.previews import sparkline

__all__ = ["mapping_panel"]

_SIGNALS = {
    "": "not used",
    CLOCK: "clock",
    "q": "q: position",
    "v": "v: velocity",
    "a": "a: acceleration",
    "torque": "torque",
    "current": "current",
    "reference": "reference: commanded position",
    "link_q": "link_q: position behind the gear",
    "wrench": "wrench of the base",
    "base": "pose of the base",
    "base_v": "velocity of the base",
    "base_a": "acceleration of the base",
    "imu": "imu",
}
_COLUMNS = ("column", "curve", "is", "conversion", "as_read", "first_values", "range")
_SI = "SI"


def mapping_panel(bench: Bench) -> None:
    """Assign columns to signals in blocks, lock joints, see what is read, and keep it as [log] of dynid.toml."""
    panel = _MappingPanel(bench)
    panel.build()


class _MappingPanel:
    """One panel of one open page; the log that it shows belongs to the session."""

    def __init__(self, bench: Bench) -> None:
        self.bench, self.session = bench, bench.session
        self._last: int | None = None

    def build(self) -> None:
        """The editor, the board of signals, the table, the joints and what is read."""
        ui.add_css(BOARD_STYLE)
        self._sentence = ui.label("Choose a log first.").classes("text-sm").mark("log-summary")
        self._guess = ui.label("").classes("text-sm opacity-80").mark("log-guess")
        with ui.row().classes("items-end gap-3 w-full"):
            self._columns = ui.input("columns, such as 1-6").classes("w-44").mark("columns")
            self._signal = ui.select(_SIGNALS, value="q", label="signal", on_change=self._signal_chosen).classes("w-44")
            self._first = ui.select([""], value="", label="from joint").classes("w-44")
            self._unit = ui.select([_SI], value=_SI, label="unit", with_input=True, new_value_mode="add").classes(
                "w-24"
            )
            self._sign = ui.select({1: "+", -1: "-"}, value=1, label="sign").classes("w-16")
            self._gain = ui.input("gain, one or one per column").classes("w-56")
            ui.button("Assign", on_click=self._assign).mark("assign")
            ui.button("Guess again", on_click=self._guess_again).props("flat")
        with ui.expansion("Drag columns onto signals", icon="drag_indicator", value=True).classes("w-full"):
            ui.label(
                "Drag a column of the table below onto a cell; several chosen rows go to one joint after the other, "
                "with unit, sign and gain of the fields above. Those fields do the same without a mouse."
            ).classes("text-sm opacity-80")
            self._board = (
                ui.html("", sanitize=False).classes("dynid-board").props('tabindex=0 role=region aria-label="signals"')
            )
            self._board.on("dragstart", js_handler=DRAG)
            self._board.on("dragover", js_handler=DRAG_OVER)
            self._board.on("dragleave", js_handler=DRAG_OVER)
            self._board.on("drop", self._dropped, js_handler=DROP)
        names = [{"name": k, "label": k.replace("_", " "), "field": k, "align": "left"} for k in _COLUMNS]
        self._table = (
            ui.table(columns=names, rows=[], row_key="number", selection="multiple", on_select=self._selected)
            .props("dense flat hide-bottom")
            .classes("w-full max-h-[60vh] dynid-columns")
        )
        self._table.add_slot("body-cell-curve", '<q-td :props="props"><span v-html="props.value"></span></q-td>')
        for slot, words in (("header", "'all columns'"), ("body", "'column ' + props.row.column")):
            box = f'<q-checkbox v-model="props.selected" dense :aria-label="{words}"/>'
            self._table.add_slot(f"{slot}-selection", box)
        self._table.add_slot(
            "body-cell-column",
            '<q-td :props="props" class="dynid-grip" draggable="true" :data-number="props.row.number">'
            '<span aria-hidden="true">\u283f</span>{{ props.value }}</q-td>',
        )
        self._table.on("dragstart", js_handler=DRAG)
        self._table.on("rowClick", self._clicked, [["shiftKey"], ["number"], []])
        with ui.row().classes("items-end gap-3 w-full"):
            self._locked = (
                ui.select([], multiple=True, label="locked joints").props("use-chips").classes("min-w-48 max-w-full")
            )
            self._at = ui.input("held at, such as torso=0.2 (rad or m)").classes("w-72")
            ui.button("Lock joints without a position", on_click=self._lock_absent).props("flat").mark("lock-absent")
        with ui.row().classes("items-end gap-3 w-full"):
            self._rows = ui.input("rows to identify from, START:STOP").classes("w-64")
            self._rate = ui.input("rate in Hz, without a clock").classes("w-52")
            self._bad = ui.select({"error": "an error", "split": "split the run"}, value="error", label="bad rows are")
            self._bad.classes("w-36")
            self._topic = ui.input("topic").classes("w-44")
            ui.button("Preview", on_click=self._settings).props("flat").mark("preview")
            self._save = ui.button("Save and check", on_click=self._save_and_check).mark("save-log")
        self._findings = ui.refreshable(findings_table)
        self._findings()
        self.bench.on_log.append(self._later)
        self.bench.on_robot.append(self._later)
        self._later()

    # -- what is shown ---------------------------------------------------------------------------

    def _later(self) -> None:
        """Show the session's log as soon as the page is free: reading it may take a while."""
        ui.timer(0.05, self._show, once=True)

    async def _show(self) -> None:
        try:
            if self.session.whole is None or not self.session.runs.identify:
                return
            opened = await asyncio.to_thread(self.session.open)
        except DynidError as error:
            self._say(str(error), wrong=True)
            return
        words, ranges, wrong = await asyncio.to_thread(_read, opened)
        self._say(words, wrong)
        self._guess.set_text(opened.guess if wrong else "")
        self._table.rows = _rows(opened, ranges)
        self._table.update()
        self._board.set_content(board_html(opened.mapping))
        self._signal_chosen()
        mapping = opened.mapping
        self._locked.set_options(list(mapping.joints), value=list(mapping.locked))
        self._at.set_value(", ".join(f"{joint}={at:g}" for joint, at in mapping.locked.items() if at))
        rest = mapping.rest
        self._rows.set_value("" if rest.rows is None else ":".join("" if x is None else str(x) for x in rest.rows))
        self._rate.set_value("" if rest.rate is None else f"{rest.rate:g}")
        self._bad.set_value(rest.bad_rows)
        self._topic.set_value(rest.topic or "")
        self._topic.set_visibility(any(map(has_topics, opened.files.values())))

    def _say(self, words: str, wrong: bool) -> None:
        self._sentence.set_text(words)
        self._sentence.classes(add="text-negative" if wrong else "", remove="" if wrong else "text-negative")

    def _signal_chosen(self) -> None:
        signal, opened = str(self._signal.value or ""), self.session.opened
        channels = () if opened is None or not signal else opened.mapping.channels(signal)
        first = self._first.value if self._first.value in channels else ""
        self._first.set_options({"": "the first"} | {c: c for c in channels}, value=first)
        unit = self._unit.value if self._unit.value in units_of(signal) else _SI
        self._unit.set_options([_SI, *units_of(signal)], value=unit)

    # -- columns ---------------------------------------------------------------------------------

    def _selected(self, event: events.TableSelectionEventArguments) -> None:
        self._columns.set_value(listed_numbers(sorted(int(row["number"]) for row in self._table.selected)))

    def _clicked(self, event: events.GenericEventArguments) -> None:
        """A click chooses a row or gives it up; with shift, all rows from the last one."""
        pressed, row = event.args[0], int(event.args[1]["number"])
        chosen = {int(r["number"]) for r in self._table.selected}
        if pressed.get("shiftKey") and self._last is not None:
            chosen |= set(range(min(row, self._last), max(row, self._last) + 1))
        else:
            chosen ^= {row}
        self._last = row
        self._table.selected = [r for r in self._table.rows if r["number"] in chosen]
        self._table.update()
        self._columns.set_value(listed_numbers(sorted(chosen)))

    async def _assign(self) -> None:
        try:
            await asyncio.to_thread(self.session.open)
            numbers = column_numbers(str(self._columns.value or ""))
        except DynidError as error:
            self.bench.tell(error)
            return
        self._put(numbers, str(self._signal.value or ""), str(self._first.value or ""))

    def _dropped(self, event: events.GenericEventArguments) -> None:
        """Assign the column that was dropped on a cell, with all chosen rows if it is one of them."""
        opened = self.session.opened
        number, signal, channel = event.args
        what = None if opened is None else dropped(number, signal, channel, opened.mapping)
        if what is not None:
            chosen = sorted(int(row["number"]) for row in self._table.selected)
            self._put(chosen if what.number in chosen else [what.number], what.signal, what.channel)

    def _put(self, numbers: list[int], signal: str, first: str) -> None:
        """Assign columns to a signal, with unit, sign and gain of the fields."""
        opened = self.session.open()
        try:
            mapping = opened.mapping.assign(
                numbers,
                signal,
                first,
                "" if self._unit.value in (None, _SI) else str(self._unit.value),
                int(self._sign.value or 1),
                _numbers(str(self._gain.value or "")),
            )
        except DynidError as error:
            self.bench.tell(error)
            return
        self.session.opened = opened.changed(mapping)
        self._table.selected = []
        for field in (self._columns, self._gain, self._first):
            field.set_value("")
        self._unit.set_value(_SI)
        self._sign.set_value(1)
        self.bench.log_changed()

    async def _guess_again(self) -> None:
        await self.bench.aside(lambda: self.session.open(again=True))
        self.bench.log_changed()

    # -- joints and settings ---------------------------------------------------------------------

    def _lock_absent(self) -> None:
        opened = self.session.opened
        if opened is None:
            self.bench.tell(MissingArgument("choose a log first", "log"))
            return
        held = {joint: opened.mapping.locked.get(joint, 0.0) for joint in opened.mapping.without_position()}
        try:
            self.session.opened = opened.changed(opened.mapping.lock(held))
        except DynidError as error:
            self.bench.tell(error)
            return
        self.bench.log_changed()

    def _apply(self) -> None:
        """Take the settings below the table into the session's log."""
        opened = self.session.open()
        rest, held = opened.mapping.rest, dict.fromkeys(self._locked.value or [], 0.0)
        for part in filter(None, (x.strip() for x in str(self._at.value or "").split(","))):
            joint, equals, value = part.partition("=")
            if joint.strip() not in held or not equals:
                raise InvalidValue(f"'{part[:40]}' is no locked joint with its position: write joint=0.2", "lock")
            held[joint.strip()] = _numbers(value)[0]
        rate = _numbers(str(self._rate.value or ""))
        fields = {
            "rows": str(self._rows.value or "").strip() or None,
            "rate": rate[0] if rate else None,
            "time": "auto",
            "bad_rows": self._bad.value,
            "topic": str(self._topic.value or "").strip() or None,
        }
        mapping = opened.mapping.lock(held)
        changed = opened.changed(replace(mapping, rest=rest.replaced(fields | {"columns": None})))
        self.session.opened = changed
        if changed.mapping.rest.topic != rest.topic:
            self.session.read_topic(changed.mapping.rest.topic)

    async def _settings(self) -> None:
        if await self._applied():
            self.bench.log_changed()

    async def _applied(self) -> bool:
        try:
            await asyncio.to_thread(self._apply)
        except DynidError as error:
            self.bench.tell(error)
            return False
        return True

    async def _save_and_check(self) -> None:
        if not await self._applied():
            return
        if await self.bench.aside(self.session.save_log) is None:
            self.bench.log_changed()
            return
        self.bench.robot_changed()
        self.bench.log_changed()
        done = await self.bench.run(self.session.check, self._save)
        if done is not None and done.out.strip():
            self._findings.refresh(done.data)


def _read(opened: OpenedLog) -> tuple[str, dict[int, tuple[float, float, str]], bool]:
    """What is read with the present assignments: a line and the ranges, or the sentence on what is missing."""
    try:
        return f"Reads {opened.summary()}.", opened.ranges(), False
    except DynidError as error:
        return f"Not read yet: {error}.", {}, True


def _rows(opened: OpenedLog, ranges: dict[int, tuple[float, float, str]]) -> list[dict[str, Any]]:
    """The rows of the table."""
    several = len(opened.files) > 1
    out = []
    for column in opened.mapping.columns:
        what = opened.mapping.assigned.get(column.number)
        numbered = column.name == str(column.reference) and not isinstance(column.reference, int)
        name = f"{column.number}: {column.name}" if numbered else str(column.number)
        converted = ranges.get(column.number)
        out.append(
            {
                "number": column.number,
                "column": f"{name} ({column.file})" if several else name,
                "curve": sparkline(column.curve),
                "is": "" if what is None else f"{_short(what.signal)} {what.channel}".strip(),
                "conversion": "" if what is None else _conversion(what.unit, what.sign, what.factor),
                "first_values": ", ".join(f"{x + 0.0:.6g}" for x in column.first),
                "range": f"{column.low:.4g} to {column.high:.4g}" if np.isfinite(column.low) else "no numbers",
                "as_read": "" if converted is None else f"{converted[0]:.4g} to {converted[1]:.4g} {converted[2]}",
            }
        )
    return out


def _short(signal: str) -> str:
    return "clock" if signal == CLOCK else signal


def _conversion(unit: str, sign: int, factor: float | None) -> str:
    parts = [unit, "-1" if sign < 0 else "", "" if factor is None else f"{factor:g}"]
    return " x ".join(filter(None, parts))


def _numbers(text: str) -> list[float]:
    try:
        return [float(x) for x in text.split(",") if x.strip()]
    except ValueError:
        raise InvalidValue(f"'{text[:40]}' are no numbers: write them with a point, separated by commas") from None
