"""The choice of logs: what is identified from, and which motion is held out for validation."""

from __future__ import annotations

from nicegui import ui

from dynid.errors import DynidError
from dynid.recording.run import SIGNALS
from dynid.studio.bench import Bench
from dynid.studio.opened_log import signal_of_file
from dynid.studio.runs import HELD_OUT, LogRuns

__all__ = ["log_choice"]

_SHARE = 0.25


def log_choice(bench: Bench) -> None:
    """Logs to identify from and to validate on, kept as [runs] of dynid.toml."""
    session = bench.session
    try:
        runs = session.runs
    except DynidError as error:
        ui.label(str(error)).classes("text-negative")
        runs = LogRuns()
    signals: dict[str, str] = {file: signal for signal, file in runs.signals.items()}

    def chosen() -> LogRuns:
        names, how = list(fit.value or []), str(held.value)
        several = [{signals.get(n) or signal_of_file(n): n for n in names}] if each.value else names
        return LogRuns(
            tuple(several),
            tuple(others.value or []) if how == "logs" else (),
            float(share.value or 0) if how == "share" else None,
            str(rows.value or "").strip() if how in ("rows", "logs") else "",
        )

    async def use() -> None:
        try:
            session.use(chosen())
        except DynidError as error:
            bench.tell(error)
            return
        await bench.aside(session.open)
        bench.log_changed()

    def listed() -> None:
        for field in (fit, others):
            kept = [n for n in field.value or [] if n in session.recordings()]
            field.set_options(session.recordings(), value=kept)

    def shown() -> None:
        now = session.runs
        fit.set_options(session.recordings(), value=now.files)
        others.set_options(session.recordings(), value=now.other_files)
        signals.clear()
        signals.update({file: signal for signal, file in now.signals.items()})
        each.set_value(bool(now.signals))
        held.set_value(now.held_out if now.identify else "share")
        share.set_value(now.share or _SHARE)
        rows.set_value(now.rows)
        words.set_text(now.words())

    ui.label("Logs of this identification").classes("font-medium")
    with ui.row().classes("items-end gap-3 w-full"):
        fit = ui.select(
            _known(session.recordings(), runs.files), multiple=True, value=runs.files, label="identify from"
        ).classes("w-72 max-w-full")
        each = ui.switch("one file per signal", value=bool(runs.signals))

    @ui.refreshable
    def file_signals() -> None:
        if not each.value:
            return
        with ui.row().classes("items-end gap-3 w-full"):
            for name in fit.value or []:
                signals.setdefault(name, signal_of_file(name))
                ui.select(
                    ["", "t", *SIGNALS],
                    value=signals[name],
                    label=f"signal of {name}",
                    on_change=lambda e, n=name: signals.__setitem__(n, str(e.value)),
                ).classes("w-56")

    file_signals()
    fit.on_value_change(file_signals.refresh)
    each.on_value_change(file_signals.refresh)
    with ui.row().classes("items-end gap-3 w-full"):
        held = ui.select(HELD_OUT, value=runs.held_out if runs.identify else "share", label="validate on").classes(
            "w-44"
        )
        share = ui.number("share", value=runs.share or _SHARE, min=0.01, max=0.99, step=0.05).classes("w-20")
        others = ui.select(
            _known(session.recordings(), runs.other_files), multiple=True, value=runs.other_files, label="other logs"
        ).classes("w-56 max-w-full")
        rows = ui.input("rows to validate on, START:STOP", value=runs.rows).classes("w-64")
        share.bind_visibility_from(held, "value", lambda x: x == "share")
        others.bind_visibility_from(held, "value", lambda x: x == "logs")
        rows.bind_visibility_from(held, "value", lambda x: x in ("rows", "logs"))
        ui.button("Use these logs", on_click=use).mark("use-logs")
    words = ui.label(runs.words()).classes("text-sm opacity-80").mark("runs-words")
    bench.on_files.append(listed)
    bench.on_log.append(shown)


def _known(names: list[str], chosen: list[str]) -> list[str]:
    """All names, with those of the project file that are no longer in the workspace."""
    return list(dict.fromkeys([*names, *chosen]))
