"""Actuators from encoder logs: the law, what is unknown, and what was found about it."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from dynid.errors import DynidError, InvalidValue
from dynid.studio.actuator_step import (
    QUANTITIES,
    ActuatorChoice,
    ActuatorStep,
    ErrorRow,
    error_rows,
    value_rows,
)
from dynid.studio.bench import Bench
from dynid.studio.estimate_panel import told_verdict
from dynid.studio.step_files import SIMULATOR_FILES
from dynid.studio.tables import plain_table

__all__ = ["actuators_panel", "error_bars"]

_BAR = 150.0  # pixels of the longest bar


def actuators_panel(bench: Bench) -> None:
    """Choose law and unknowns, run, and take the files of simulators away."""
    step = ActuatorStep(bench.session)

    def chosen() -> ActuatorChoice:
        return ActuatorChoice(
            str(law.value or "").strip(),
            _number(str(rate.value or ""), "control rate"),
            tuple(unknown.value or ()),
            tuple(export.value or ()),
            None if not draws.value else int(draws.value),
        )

    async def identify() -> None:
        try:
            choice = chosen()
        except DynidError as error:
            bench.tell(error)
            return
        done = await bench.run(lambda told: step.identify(choice, told), button)
        if done is not None and done.ok:
            bench.results_changed()

    before = _choice(step)
    ui.label(
        "From encoders alone: the log holds measured and commanded positions (q and reference), the law turns the "
        "command into torque. Armature, damping and friction of the robot file are the start."
    ).classes("text-sm opacity-80")
    words = ui.label(_words(bench)).classes("text-sm opacity-80").mark("actuator-logs")
    with ui.row().classes("items-end gap-3 w-full"):
        law = ui.input(
            "law: pd:KP,KD, torque, or a TOML file", value=before.law, autocomplete=["pd:", "torque", *step.laws()]
        ).classes("w-72 max-w-full")
        rate = ui.input(
            "control rate in Hz (continuous)", value="" if before.control_rate is None else f"{before.control_rate:g}"
        ).classes("w-60")
    with ui.row().classes("items-end gap-3 w-full"):
        unknown = (
            ui.select(
                list(dict.fromkeys([*QUANTITIES, *before.unknown])),
                value=list(before.unknown),
                multiple=True,
                with_input=True,
                new_value_mode="add-unique",
                label="unknown",
            )
            .props("use-chips")
            .classes("min-w-72 max-w-full")
        )
    with ui.row().classes("items-end gap-3 w-full"):
        export = (
            ui.select(list(SIMULATOR_FILES), value=list(before.export), multiple=True, label="files for simulators")
            .props("use-chips")
            .classes("min-w-56 max-w-full")
        )
        draws = ui.number("draws for ranges (none)", value=before.draws, min=1, precision=0).classes("w-44")
        button = ui.button("Identify actuators", on_click=identify).mark("identify-actuators")

    @ui.refreshable
    def shown() -> None:
        found = step.found()
        if found is None:
            ui.label("Values, position errors and the verdict appear here.").classes("opacity-70")
            return
        _result(found)
        said = found.get("said", [])
        if said:
            with ui.expansion(f"Notes on the robot and on what the files cannot hold ({len(said)})").classes("w-full"):
                for line in said:
                    ui.label(str(line)).classes("text-sm")
        ui.label("Files").classes("font-medium")
        with ui.row().classes("gap-2"):
            for name in step.files():
                ui.button(name, icon="download", on_click=lambda n=name: _download(bench, n)).props(
                    "flat dense no-caps"
                )

    shown()
    bench.on_results.append(shown.refresh)
    bench.on_files.append(lambda: law.set_autocomplete(["pd:", "torque", *step.laws()]))
    for changed in (bench.on_log, bench.on_robot):
        changed.append(lambda: words.set_text(_words(bench)))


def _choice(step: ActuatorStep) -> ActuatorChoice:
    try:
        return step.choice
    except (DynidError, TypeError, ValueError):
        return ActuatorChoice()


def _words(bench: Bench) -> str:
    """What is identified from."""
    try:
        runs = bench.session.runs.words()
    except DynidError as error:
        return str(error)
    return f"{runs[0].upper()}{runs[1:]}."


def _result(found: dict[str, Any]) -> None:
    """Verdict, values with standard deviations, and position errors against the model file."""
    verdict = found["verdict"]
    told_verdict(verdict, "Take the files for your simulator away.").mark("actuator-verdict")
    ui.label("Identified values").classes("font-medium")
    plain_table(
        [
            {"value of": r.label, "value": r.value, "standard deviation": r.std, "unit": r.unit}
            for r in value_rows(found)
        ]
    ).mark("actuator-values")
    for note in found.get("notes", []):
        ui.label(str(note)).classes("text-sm opacity-80")
    rows, unseen = error_rows(found)
    ui.label(f"Position error of {'unseen' if unseen else 'fitted'} motion, root mean square").classes("font-medium")
    largest = max([x for r in rows for x in (r.identified, r.given) if x is not None] or [1.0])
    table = plain_table(
        [
            {
                "joint": r.joint,
                "identified": _error(r.identified, r.unit),
                "model file": _error(r.given, r.unit),
                "compared": error_bars(r, largest),
            }
            for r in rows
        ]
    ).mark("actuator-errors")
    table.add_slot("body-cell-compared", '<q-td :props="props"><span v-html="props.value"></span></q-td>')
    ui.label("blue: identified, grey: model file").classes("text-sm opacity-80")


def _error(size: float | None, unit: str) -> str:
    if size is None:
        return "diverges"
    return f"{1e3 * size:.3g} m{unit}"


def error_bars(row: ErrorRow, largest: float) -> str:
    """The two errors of a joint as bars, the identified one above."""
    wide = [_BAR * (1.0 if x is None else x / largest) for x in (row.identified, row.given)]
    ratio = "" if not row.identified or row.given is None else f", {row.given / row.identified:.3g} times smaller"
    return (
        f'<svg width="{_BAR:g}" height="18" viewBox="0 0 {_BAR:g} 18" role="img" aria-label="errors compared{ratio}">'
        f'<rect x="0" y="1" width="{max(wide[0], 1.0):.1f}" height="7" fill="#1d6fb8"/>'
        f'<rect x="0" y="10" width="{max(wide[1], 1.0):.1f}" height="7" fill="#8a94a0"/></svg>'
    )


def _download(bench: Bench, name: str) -> None:
    try:
        ui.download(bench.session.workspace.existing(name).read_bytes(), name)
    except DynidError as error:
        bench.tell(error)


def _number(text: str, what: str) -> float | None:
    if not text.strip():
        return None
    try:
        return float(text)
    except ValueError:
        raise InvalidValue(f"{what}: '{text[:20]}' is no number") from None
