"""The estimate: how it is made, whether it can be trusted and what to do next, and others beside it."""

from __future__ import annotations

from typing import Any

from nicegui import ui

from dynid.errors import DynidError
from dynid.studio.bench import Bench
from dynid.studio.comparison import EstimateRow, compared
from dynid.studio.tables import plain_table

__all__ = ["comparison_panel", "estimate_panel", "next_steps", "told_verdict"]

_COLORS = {"trusted": "positive", "use with care": "warning"}
_STEPS = 4


def estimate_panel(bench: Bench) -> None:
    """Choose the method, run, and see whether the result can be trusted."""
    session = bench.session

    async def identify() -> None:
        method, low_pass, kept = str(how.value), str(cutoff.value or "").strip(), str(name.value or "").strip()
        try:
            session.weigh(mass.value)
        except DynidError as error:
            bench.tell(error)
            return
        done = await bench.run(lambda told: session.identify(method, low_pass, kept or "estimate", told), button)
        if done is not None and done.ok:
            bench.estimate_changed()

    async def play() -> None:
        measured = await bench.aside(session.motion)
        simulated = await bench.aside(lambda: session.replay(5.0))
        if measured is not None and simulated is not None:
            bench.play(measured, beside=simulated)

    chosen = _section(bench)
    words = ui.label("").classes("text-sm opacity-80").mark("estimate-words")
    with ui.row().classes("items-end gap-3 w-full"):
        method = chosen.get("method", "auto")
        how = ui.select(list(dict.fromkeys([*session.methods(), method])), value=method, label="method").classes("w-32")
        cutoff = ui.input("low-pass, Hz (found from the data)", value=str(chosen.get("cutoff", ""))).classes("w-72")
        mass = ui.number("Mass of the robot (kg)", value=_mass(bench), min=0).classes("w-44").mark("mass")
        name = ui.input("name of the estimate", value=session.files.name).classes("w-40")
        button = ui.button("Identify", on_click=identify).mark("identify")
        ui.button("Play against simulation", on_click=play).props("flat")

    def told() -> None:
        words.set_text(_words(bench, str(how.value)))

    def weighed() -> None:
        mass.set_value(_mass(bench))

    told()
    bench.on_robot.append(weighed)
    how.on_value_change(told)
    for changed in (bench.on_robot, bench.on_log):
        changed.append(told)

    @ui.refreshable
    def verdict() -> None:
        found = session.verdict()
        if found is None:
            ui.label("The verdict appears here.").classes("opacity-70")
            return
        told_verdict(found).mark("verdict")
        effects = list(dict.fromkeys(x for c in found.get("checks", []) for x in c.get("effects", [])))
        if effects:
            words = f"Add {', '.join(effects)} to the model and identify again"
            ui.button(words, on_click=lambda: with_effects(effects)).props("flat no-caps").mark("add-effects")

    async def with_effects(effects: list[str]) -> None:
        try:
            session.add_effects(effects)
        except DynidError as error:
            bench.tell(error)
            return
        bench.robot_changed()
        await identify()

    verdict()
    bench.on_estimate.append(verdict.refresh)


def told_verdict(verdict: dict[str, Any], otherwise: str = "Export the identified robot.") -> ui.badge:
    """A verdict in its color, its reasons and what to do next."""
    word = str(verdict["verdict"])
    color = _COLORS.get(word, "negative")
    badge = ui.badge(word, color=color, text_color="black" if color == "warning" else "white").classes("text-lg p-2")
    _list("ul", "list-disc", [str(x) for x in verdict.get("reasons", [])])
    ui.label("What to do next").classes("font-medium")
    _list("ol", "list-decimal", next_steps(verdict, otherwise))
    return badge


def _list(tag: str, style: str, sentences: list[str]) -> None:
    """Sentences below each other, each with a capital letter."""
    with ui.element(tag).classes(f"{style} pl-6 space-y-1"):
        for words in sentences:
            with ui.element("li"):
                ui.label(words[:1].upper() + words[1:])


def next_steps(verdict: dict[str, Any], otherwise: str) -> list[str]:
    """What the checks recommend, those that failed first; where all passed, what is done `otherwise`."""
    checks = [x for x in verdict.get("checks", []) if isinstance(x, dict) and x.get("advice")]
    order = {"failed": 0, "warned": 1}
    wanted = sorted((x for x in checks if x.get("result") in order), key=lambda x: order[x["result"]])
    steps = list(dict.fromkeys(str(x["advice"]) for x in wanted))[:_STEPS]
    return steps or [otherwise]


def comparison_panel(bench: Bench) -> None:
    """The estimates of the workspace beside each other."""
    session = bench.session

    def look(name: str) -> None:
        try:
            session.look_at(name)
        except DynidError as error:
            bench.tell(error)
            return
        bench.estimate_changed()

    @ui.refreshable
    def shown() -> None:
        rows = compared(session.workspace)
        if not rows:
            ui.label("Identify under different names; the estimates are compared here.").classes("opacity-70")
            return
        ui.label("Errors are root mean squares of the torque on unseen motion, where motion was held out.").classes(
            "text-sm opacity-80"
        )
        plain_table(comparison_rows(rows)).mark("comparison")
        with ui.row().classes("items-end gap-3"):
            ui.select(
                [row.name for row in rows],
                value=session.files.name if session.files.name in {r.name for r in rows} else None,
                label="look at",
                on_change=lambda e: look(str(e.value)),
            ).classes("w-48")

    shown()
    bench.on_estimate.append(shown.refresh)


def comparison_rows(rows: list[EstimateRow]) -> list[dict[str, str]]:
    """The table: a row per property and joint, a column per estimate."""
    joints = list(dict.fromkeys(joint for row in rows for joint in row.errors))
    table = [
        {"": "verdict"} | {row.name: row.verdict for row in rows},
        {"": "method"} | {row.name: row.method for row in rows},
        {"": "drive terms"} | {row.name: row.drives or "none" for row in rows},
        {"": "total mass"} | {row.name: _masses(row) for row in rows},
        {"": "errors on"} | {row.name: "unseen motion" if row.unseen else "fitted motion" for row in rows},
    ]
    for joint in joints:
        table.append({"": joint} | {row.name: _error(row, joint) for row in rows})
    return table


def _masses(row: EstimateRow) -> str:
    words = f"{row.mass:.4g} kg (a priori {row.prior_mass:.4g})"
    return f"{words}, {row.given_mass}" if row.given_mass else words


def _error(row: EstimateRow, joint: str) -> str:
    if joint not in row.errors:
        return ""
    size, unit, share = row.errors[joint]
    return f"{size:.3g} {unit} ({share:.1%})".replace("  ", " ") if size == size else "stands still"


def _section(bench: Bench) -> dict[str, Any]:
    try:
        return bench.session.project.section("identify")
    except DynidError:
        return {}


def _mass(bench: Bench) -> float | None:
    try:
        return bench.session.mass
    except DynidError:
        return None


def _words(bench: Bench, method: str) -> str:
    """What is identified from, with which joints and drive terms."""
    session = bench.session
    try:
        runs = session.runs.words()
    except DynidError as error:
        return str(error)
    joints = f"; {len(session.held)} joints locked" if session.held else ""
    return f"{runs[0].upper()}{runs[1:]}{joints}; friction {session.friction_words(method)}."
