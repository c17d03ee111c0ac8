"""Fleets: choose recordings of many units over many dates, and see which units changed."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from dynid.errors import DynidError
from dynid.studio.bench import Bench
from dynid.studio.fleet_step import FleetChoice, FleetRun, FleetStep, guessed_run
from dynid.studio.step_files import FLEET_PAGE, FLEET_TABLE
from dynid.studio.tables import plain_table

__all__ = ["fleet_panel", "fleet_rows"]


def fleet_panel(bench: Bench, sandbox: str) -> None:
    """Recordings by unit and date, the command, its table and its page.

    Parameters
    ----------
    bench : Bench
        The open page.
    sandbox : str
        What the page of the fleet may do in its frame.
    """
    session, step = bench.session, FleetStep(bench.session)
    fields: dict[str, tuple[ui.input, ui.input]] = {}

    async def arrange() -> None:
        try:
            runs = [FleetRun(n, str(fields[n][0].value or ""), str(fields[n][1].value or "")) for n in logs.value or []]
        except DynidError as error:
            bench.tell(error)
            return
        made = await bench.aside(lambda: step.arrange(runs))
        if made is not None:
            bench.files_changed()
            folder.set_options(step.folders(), value=made)
            ui.notify(f"{len(runs)} logs are in the folder {made}", type="positive")

    async def identify() -> None:
        choice = FleetChoice(str(folder.value or ""), float(alarms.value or 0), bool(skip.value), bool(gains.value))
        done = await bench.run(lambda told: step.identify(choice, told), button)
        if done is not None and done.ok:
            bench.results_changed()

    before = _choice(step)
    ui.label(
        "Many units of one robot over many dates: which of them changed, and how. Recordings lie in a folder of the "
        "workspace as robot=NAME/date=YYYY-MM-DD/log.csv, or the page makes such a folder from logs."
    ).classes("text-sm opacity-80")
    with ui.expansion("Make the folder from logs of the workspace", icon="create_new_folder").classes("w-full"):
        logs = ui.select(step.logs(), multiple=True, value=[], label="logs of the fleet").classes("w-full")

        @ui.refreshable
        def assignments() -> None:
            for name in logs.value or []:
                known = tuple(str(f.value or "") for f in fields[name]) if name in fields else guessed_run(name)
                with ui.row().classes("items-end gap-3 w-full"):
                    fields[name] = (
                        ui.input(f"unit of {name}", value=known[0]).classes("w-64 max-w-full"),
                        ui.input(f"date of {name}", value=known[1], placeholder="YYYY-MM-DD").classes(
                            "w-64 max-w-full"
                        ),
                    )

        assignments()
        logs.on_value_change(assignments.refresh)
        ui.button("Make the folder", on_click=arrange).props("flat").mark("arrange")
    with ui.row().classes("items-end gap-3 w-full"):
        known = list(dict.fromkeys([*step.folders(), *filter(None, [before.folder])]))
        folder = ui.select(known, value=before.folder or None, label="folder of the fleet").classes("w-56 max-w-full")
        alarms = ui.number(
            "probability of any false alarm", value=before.false_alarms, min=0.001, max=0.5, step=0.01
        ).classes("w-52")
        skip = ui.switch("leave out bad recordings", value=before.skip_bad)
        gains = ui.switch("torque gain per unit", value=before.unit_gains)
        button = ui.button("Identify the fleet", on_click=identify).mark("identify-fleet")

    @ui.refreshable
    def inside() -> None:
        if not folder.value:
            return
        try:
            runs = step.runs(str(folder.value))
        except DynidError as error:
            ui.label(str(error)).classes("text-negative")
            return
        units = {run.unit for run in runs}
        friction = f"friction {session.friction_words('wls')}"
        ui.label(f"{len(runs)} recordings of {len(units)} units; {friction}.").classes("text-sm opacity-80")

    inside()
    folder.on_value_change(inside.refresh)

    @ui.refreshable
    def shown() -> None:
        found = step.found()
        if found is None:
            ui.label("The units appear here, those that changed first.").classes("opacity-70")
            return
        units, changed = found["units"], sum(bool(u["changes"]) for u in found["units"])
        ui.label(
            f"{found['entries']} recordings of {len(units)} units: {changed} changed, {len(found['left_out'])} "
            f"recordings left out; {found['rate']:.3g} probability of any false alarm."
        ).mark("fleet-words")
        plain_table(fleet_rows(found)).mark("fleet-units")
        if found["left_out"]:
            ui.label("Left out").classes("font-medium")
            plain_table([{"unit": x["unit"], "date": x["date"], "why": x["words"]} for x in found["left_out"]])
        with ui.row().classes("gap-4"):
            ui.link("open in a tab of its own", f"/files/{FLEET_PAGE}", new_tab=True)
            ui.link(FLEET_TABLE, f"/files/{FLEET_TABLE}", new_tab=True).props("download")
        frame = f'src="/files/{FLEET_PAGE}" title="fleet" sandbox="{sandbox}"'
        ui.element("iframe").props(frame).classes("dynid-report")

    def listed() -> None:
        logs.set_options(step.logs(), value=[n for n in logs.value or [] if n in step.logs()])
        folder.set_options(list(dict.fromkeys([*step.folders(), *filter(None, [folder.value])])), value=folder.value)

    shown()
    bench.on_results.append(shown.refresh)
    bench.on_files.append(listed)
    bench.on_robot.append(inside.refresh)


def _choice(step: FleetStep) -> FleetChoice:
    try:
        return step.choice
    except (DynidError, TypeError, ValueError):
        return FleetChoice()


def fleet_rows(found: dict[str, Any]) -> list[dict[str, str]]:
    """A row per unit, changed ones first as the command lists them."""
    return [
        {
            "unit": str(u["unit"]),
            "verdict": str(u["code"]),
            "found": str(u["words"]),
            "dates": str(u["dates"]),
        }
        for u in found["units"]
    ]
