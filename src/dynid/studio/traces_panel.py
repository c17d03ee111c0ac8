"""The step that shows data: plots of a recording, its findings on them, the predicted torque, and the pose in time."""

from __future__ import annotations

from typing import Any

import numpy as np
from nicegui import events, ui
from nicegui.element import Element

from dynid.studio.bench import Bench
from dynid.studio.traces_marks import marks_of, whole_run_findings
from dynid.studio.traces_source import TraceSource, values_at

__all__ = ["Traces", "traces_panel"]

# Seconds between two poses while the cursor is dragged.
_THROTTLE = 0.05
_STYLE = """
.dynid-traces { width: 100%; }
.dynid-traces-bar { display: flex; flex-wrap: wrap; gap: 4px; margin-bottom: 4px; }
.dynid-traces-bar button { min-width: 28px; min-height: 28px; padding: 0 8px; border: 1px solid #8886;
  border-radius: 4px; font-size: 13px; background: transparent; color: inherit; cursor: pointer; }
.dynid-traces-joint[aria-pressed=false] { opacity: 0.75; text-decoration: line-through; }
.dynid-traces-swatch { display: inline-block; width: 12px; height: 12px; margin-right: 5px; border-radius: 2px; }
.dynid-traces-stack { position: relative; touch-action: pan-y; cursor: crosshair; user-select: none; }
.dynid-traces-stack:focus-visible { outline: 2px solid #0072b2; outline-offset: 2px; }
.dynid-traces-stack canvas { display: block; width: 100%; height: 150px; }
.dynid-traces-cursor { position: absolute; top: 0; bottom: 0; width: 2px; margin-left: -1px; background: currentColor;
  pointer-events: none; opacity: 0.75; }
.dynid-traces-scrub { display: flex; align-items: center; gap: 8px; font-size: 13px; margin-top: 4px; flex-wrap: wrap; }
.dynid-traces-scrub input { flex: 1; min-width: 140px; }
.dynid-traces-scrub output { min-width: 74px; text-align: right; }
.dynid-traces-values { font-size: 12px; margin-top: 6px; border-collapse: collapse; width: 100%; }
.dynid-traces-values :is(th, td) { text-align: right; padding: 1px 4px; border-bottom: 1px solid #8884; }
.dynid-traces-values :is(th, td):first-child { text-align: left; }
.dynid-traces-message { margin: 4px 0; }
"""


class Traces(Element, component="traces.js", esm={"dynid-traces": "traces_drawing"}):
    """Plots of one run; its events tell the time of the cursor."""

    def __init__(self) -> None:
        super().__init__()
        self._props.update({"name": "", "run": 0, "predicted": False, "findings": [], "version": 0})

    def show(self, name: str, run: int, predicted: bool) -> None:
        """Show another run, or the same one again with or without its prediction."""
        version = self._props["version"] + 1
        self._props.update({"name": name, "run": run, "predicted": predicted, "version": version})
        self.update()

    def set_findings(self, marks: list[dict[str, Any]]) -> None:
        """Shade intervals of the plots."""
        self._props["findings"] = marks
        self.update()


def traces_panel(bench: Bench, source: TraceSource) -> None:
    """Look at a recording: zoom, findings, predicted torque, and the pose at the cursor.

    Parameters
    ----------
    bench : Bench
        The open page, whose robot takes the pose.
    source : TraceSource
        Where the traces come from.
    """
    session = bench.session
    ui.add_css(_STYLE)

    def show() -> None:
        if file.value:
            plots.show(str(file.value), int(number.value or 0), bool(predicted.value))

    async def chosen() -> None:
        plots.set_findings([])
        others.refresh([])
        logged = await bench.aside(lambda: source.run(str(file.value))) if file.value else None
        names = () if logged is None else logged.runs
        number.set_options(dict(enumerate(names)) or {0: "run"}, value=0)
        number.set_visibility(len(names) > 1)
        if logged is not None:
            show()

    def run_chosen() -> None:
        plots.set_findings([])
        show()

    async def check() -> None:
        name, k = str(file.value or ""), int(number.value or 0)
        if not name:
            ui.notify("choose a recording first", type="warning")
            return
        done = await bench.run(lambda told: session.check(told, name), checker)
        logged = await bench.aside(lambda: source.run(name, k))
        if done is None or not done.out.strip() or logged is None:
            return
        plots.set_findings(marks_of(logged, done.data["findings"]))
        others.refresh(whole_run_findings(done.data["findings"]))

    async def compare() -> None:
        name, k = str(file.value or ""), int(number.value or 0)
        if predicted.value and name and await bench.aside(lambda: source.prediction(name, k)) is None:
            predicted.set_value(False)  # which was told
            return
        show()

    async def moved(event: events.GenericEventArguments) -> None:
        name, k, time = str(file.value or ""), int(number.value or 0), float(event.args["time"])
        logged = await bench.aside(lambda: source.run(name, k))
        if logged is None or not np.isfinite(time):
            return
        model = await bench.aside(lambda: source.prediction(name, k)) if predicted.value else None
        bench.pose(logged.pose(time), f"the pose at {time:.3f} s of {name}")
        plots.run_method("show_values", values_at(logged, model, time))

    async def play() -> None:
        name = str(file.value or "")
        motion = await bench.aside(lambda: session.motion(name)) if name else None
        if motion is not None:
            bench.play(motion, seen=lambda time: plots.run_method("move_cursor", time))

    with ui.row().classes("items-center gap-3 w-full"):
        file = ui.select(session.recordings(), label="recording to plot", on_change=chosen).classes("w-56")
        number = ui.select({0: "run"}, value=0, label="run", on_change=run_chosen).classes("w-32")
        number.set_visibility(False)
        checker = ui.button("Check and mark", on_click=check)
        ui.button("Play", on_click=play).props("flat")
        predicted = ui.checkbox("predicted torque", on_change=compare).props("dense")
    plots = Traces()
    plots.on("cursor", moved, throttle=_THROTTLE)

    @ui.refreshable
    def others(words: list[str]) -> None:
        if words:
            ui.label("Findings on the whole run:").classes("font-medium")
        for line in words:
            ui.label(line).classes("text-sm")

    others([])

    def estimated() -> None:
        predicted.set_visibility(session.files.estimate in session.workspace.names())
        if predicted.value:
            show()

    estimated()
    bench.on_files.append(lambda: file.set_options(session.recordings()))
    bench.on_files.append(estimated)
    bench.on_robot.append(chosen)
    bench.on_estimate.append(estimated)
