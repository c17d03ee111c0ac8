"""The page: the robot on the left, the steps on the right."""

from __future__ import annotations

from pathlib import Path

from fastapi.responses import FileResponse, PlainTextResponse, Response
from nicegui import app, ui

from dynid.errors import DynidError
from dynid.studio.actuators_panel import actuators_panel
from dynid.studio.bench import Bench, OpenPages
from dynid.studio.estimate_panel import comparison_panel, estimate_panel
from dynid.studio.fleet_panel import fleet_panel
from dynid.studio.mapping_panel import mapping_panel
from dynid.studio.panels import export_panel, motion_panel, recording_panel, robot_panel
from dynid.studio.session import Session
from dynid.studio.tables import TABLE_STYLE
from dynid.studio.traces_panel import traces_panel
from dynid.studio.traces_routes import add_routes
from dynid.studio.traces_source import TraceSource

__all__ = ["build"]

# A report carries its own scripts and needs nothing else. Files may come from anywhere: in the sandbox a page of the
# workspace has an origin of its own, and its scripts reach neither this page nor its server.
_SANDBOX = "allow-scripts allow-downloads"
_FILE_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'; "
    f"sandbox {_SANDBOX}"
)
_APPEARANCE = Path(__file__).with_name("appearance.js").read_text(encoding="utf-8")
# White text on it, and it on white, have a contrast of 7; white text under the pointer, where it is lighter, of 5.
_PRIMARY = "#125c9a"
# White text on it has a contrast of 5.
_POSITIVE = "#1a7f3c"
_STYLE = """
body { font-feature-settings: "tnum"; }
.nicegui-content { padding: 0; }
.q-tab, .q-btn { text-transform: none; }
.q-uploader { max-height: none; width: 100%; }
.q-uploader__list { display: none; }
.dynid-hidden { position: absolute; width: 1px; height: 1px; overflow: hidden; clip-path: inset(50%); }
.q-uploader__header { background: transparent; color: inherit; }
.dynid-mono { font-family: ui-monospace, monospace; font-size: 12px; white-space: pre-wrap; overflow-wrap: anywhere; }
.body--dark :is(.q-btn--flat, .q-btn--outline, .q-field__control) { --q-primary: #8ec1ee; }
.nicegui-link { color: var(--q-primary); }
.body--dark .nicegui-link { color: #8ec1ee; }
.body--dark .text-negative { --q-negative: #ff8f86; }
.dynid-figure { overflow-x: auto; }
.dynid-figure svg { max-width: none; }
.dynid-live svg { width: 460px; max-width: 100%; height: auto; }
.dynid-live text { font-size: 11px; fill: currentColor; }
.dynid-live .grid { stroke: #8883; }
.dynid-live .line.best { fill: none; stroke: #1d6fb8; stroke-width: 2; }
.dynid-live .dots.tried { fill: none; stroke: #d9822b; stroke-width: 4; stroke-linecap:round; opacity: 0.8; }
.body--dark .dynid-live .line.best { stroke: #8ec1ee; }
iframe.dynid-report { width: 100%; height: 78vh; border: 1px solid #8884; border-radius: 6px; background: white; }
.body--dark iframe.dynid-report { background: #10151b; }
"""


def build(session: Session) -> None:
    """Register the page and the files of its workspace."""

    @app.get("/files/{name}")
    def file(name: str) -> Response:
        try:
            path = session.workspace.existing(name)
        except DynidError as error:
            return PlainTextResponse(str(error), status_code=404)
        headers = {"Content-Security-Policy": _FILE_POLICY, "Cache-Control": "no-store"}
        return FileResponse(path, headers=headers)

    @app.get("/meshes/{key}.stl")
    def mesh(key: str) -> Response:
        content = session.meshes.content(key)
        if content is None:
            return PlainTextResponse("there is no such mesh", status_code=404)
        # The address is a digest of the content, which therefore never changes.
        return Response(content, media_type="model/stl", headers={"Cache-Control": "private, max-age=3600"})

    traces = TraceSource(session)
    add_routes(app, traces)
    pages = OpenPages()
    app.on_shutdown(session.jobs.stop)

    @ui.page("/")
    def page() -> None:
        ui.add_css(_STYLE + TABLE_STYLE)
        ui.colors(primary=_PRIMARY, positive=_POSITIVE)
        ui.add_head_html(f"<script>document.documentElement.lang = 'en';\n{_APPEARANCE}</script>")
        dark = ui.dark_mode(None)

        async def other_scheme() -> None:
            # Until it is chosen, the browser decides.
            dark.set_value(not await ui.run_javascript("document.body.classList.contains('body--dark')"))

        with ui.header().classes("items-center justify-between bg-slate-800 py-2"):
            ui.label("dynid studio").classes("text-lg font-medium")
            with ui.row().classes("items-center gap-2"):
                ui.label(str(session.workspace.folder.name)).classes("opacity-70 text-sm max-sm:hidden")
                switch = ui.button(icon="contrast", on_click=other_scheme)
                switch.props('flat round dense color=white aria-label="light or dark"')
        with ui.grid().classes("w-full grid-cols-1 lg:grid-cols-[minmax(340px,5fr)_7fr] gap-0"):
            bench = Bench(session, pages)
            with ui.column().classes("w-full p-3 gap-2"):
                bench.view()
            with ui.column().classes("w-full p-3 gap-2 min-w-0"):
                _steps(bench)

    def _steps(bench: Bench) -> None:
        names = {
            "Robot": robot_panel,
            "Motion": motion_panel,
            "Recording": recording_panel,
            "Columns": mapping_panel,
            "Traces": lambda bench: traces_panel(bench, traces),
            "Estimate": estimate_panel,
            "Compare": comparison_panel,
            "Report": _report_panel,
            "Export": export_panel,
            "Actuators": actuators_panel,
            "Fleet": lambda bench: fleet_panel(bench, _SANDBOX),
        }
        with ui.tabs().props("dense align=left outside-arrows mobile-arrows").classes("w-full") as tabs:
            for name in names:
                ui.tab(name)
        with ui.tab_panels(tabs, value="Robot", keep_alive=True).classes("w-full bg-transparent"):
            for name, panel in names.items():
                with ui.tab_panel(name).classes("p-0 pt-2"):
                    panel(bench)
        bench.commands()

    def _report_panel(bench: Bench) -> None:
        @ui.refreshable
        def shown() -> None:
            report, verdict = session.files.report, session.files.verdict
            if session.current(report):
                with ui.row().classes("gap-4"):
                    ui.link("open in a tab of its own", f"/files/{report}", new_tab=True)
                    ui.link(verdict, f"/files/{verdict}", new_tab=True)
                frame = f'src="/files/{report}" title="report" sandbox="{_SANDBOX}"'
                ui.element("iframe").props(frame).classes("dynid-report")
            else:
                ui.label("Identify first; the report appears here.")

        shown()
        bench.on_estimate.append(shown.refresh)
