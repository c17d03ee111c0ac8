"""The steps, one panel each."""

from __future__ import annotations

from typing import Any

from nicegui import events, ui

from dynid.errors import DynidError
from dynid.studio.bench import Bench
from dynid.studio.session import EXPORTS, FRICTIONS, METHODS, MOTION, RUN
from dynid.studio.workspace import UPLOAD_LIMIT

__all__ = ["Bench", "estimate_panel", "export_panel", "motion_panel", "recording_panel", "robot_panel"]


def robot_panel(bench: Bench) -> None:
    """Choose or drop a robot, and see what it is."""
    session = bench.session

    def load() -> None:
        rotor = {"as in the file": None, "yes": True, "no": False}[str(rotors.value)]
        try:
            session.choose(str(choice.value), str(friction.value), rotor)
        except DynidError as error:
            ui.notify(str(error), type="negative", multi_line=True, close_button=True, timeout=0)
            return
        bench.robot_changed()

    def shown() -> None:
        choice.set_value(session.name)
        friction.set_value(session.friction)
        rotors.set_value({None: "as in the file", True: "yes", False: "no"}[session.rotor_inertia])
        table.refresh()

    bench.on_robot.append(shown)
    bench.on_files.append(lambda: choice.set_options(session.choices()))
    with ui.row().classes("items-end gap-3 w-full"):
        choice = ui.select(session.choices(), value=session.name or None, label="robot", with_input=True).classes(
            "w-48"
        )
        friction = ui.select(
            {x: x or "as in the file" for x in FRICTIONS}, value=session.friction, label="friction"
        ).classes("w-52")
        rotors = ui.select(["as in the file", "yes", "no"], value="as in the file", label="rotor inertia")
        ui.button("Load", on_click=load).mark("load")
    _upload(bench, "drop a URDF, MJCF, SDF or TOML file")

    @ui.refreshable
    def table() -> None:
        robot = session.robot
        if robot is None:
            return
        rows = [
            {
                "joint": j.name,
                "kind": j.kind,
                "lower": f"{j.limits.lower:.3g}",
                "upper": f"{j.limits.upper:.3g}",
                "velocity": f"{j.limits.velocity:.3g}",
                "effort": f"{j.limits.effort:.3g}",
                "link": link.name,
                "mass": f"{link.inertia[0]:.4g}",
            }
            for j, link in zip(robot.joints, robot.links[1:], strict=True)
        ]
        _table(rows)

    table()


def motion_panel(bench: Bench) -> None:
    """Design a motion and play it."""
    session = bench.session

    async def design() -> None:
        numbers = float(duration.value), float(budget.value), float(share.value), int(seed.value)
        done = await bench.run(lambda told: session.design(*numbers, told), button)
        if done is not None and done.ok:
            figures.refresh(done.data)
            await play()

    async def play() -> None:
        motion = await bench.aside(lambda: session.motion(MOTION))
        if motion is not None:
            bench.play(motion)

    with ui.row().classes("items-end gap-3 w-full"):
        duration = ui.number("seconds", value=10, min=1, max=600).classes("w-24").mark("duration")
        budget = ui.number("search, s", value=10, min=1, max=3600).classes("w-24")
        share = ui.number("share of limits", value=0.8, min=0.05, max=1, step=0.05).classes("w-28")
        seed = ui.number("seed", value=0, min=0, precision=0).classes("w-20")
        button = ui.button("Design", on_click=design).mark("design")
        ui.button("Play", on_click=play).props("flat")

    @ui.refreshable
    def figures(found: dict[str, Any] | None = None) -> None:
        if found is None:
            ui.label("A motion that shows the parameters within the robot's limits.").classes("opacity-70")
            return
        ui.label(f"condition number {found['condition_number']:.1f} over {found['duration']:g} s").mark(
            "motion-figures"
        )
        _table([{"joint": k, **{x: f"{y:.0%}" for x, y in use.items()}} for k, use in found["use"].items()])
        svg = session.workspace.existing("motion.svg").read_text(encoding="utf-8")
        ui.html(svg, sanitize=False).classes("dynid-figure w-full bg-white rounded")

    figures()


def recording_panel(bench: Bench) -> None:
    """Drop recordings or make one, and see what is wrong with them."""
    session = bench.session

    async def simulated() -> None:
        numbers, name = (float(bandwidth.value), float(noise.value), float(torque_noise.value)), str(file.value)
        done = await bench.run(lambda told: session.experiment(*numbers, name, told), button)
        if done is not None and done.ok:
            chosen.set_options(session.recordings(), value=[name])
            ui.notify(f"{name} is recorded", type="positive")

    async def check() -> None:
        done = await bench.run(lambda told: session.check(list(chosen.value or []), told), checker)
        if done is not None and done.out.strip():
            findings.refresh(done.data)

    async def play() -> None:
        names = list(chosen.value or [])
        motion = await bench.aside(lambda: session.motion(names[0])) if names else None
        if motion is not None:
            bench.play(motion)

    ui.label("Drop a log of the real robot ...").classes("font-medium")
    _upload(bench, "CSV, Parquet, NPZ, MAT, HDF5, MCAP, ROS bag")
    ui.label("... or run the designed motion on a simulated one:").classes("font-medium")
    with ui.row().classes("items-end gap-3 w-full"):
        bandwidth = ui.number("bandwidth, Hz", value=5, min=0.1).classes("w-28")
        noise = ui.number("encoder noise, rad or m", value=1e-5, min=0, format="%.1e").classes("w-36")
        torque_noise = ui.number("torque noise, N m or N", value=0.2, min=0).classes("w-36")
        file = ui.input("into", value=RUN).classes("w-36")
        button = ui.button("Run simulated experiment", on_click=simulated).mark("experiment")
    with ui.row().classes("items-end gap-3 w-full"):
        chosen = ui.select(session.recordings(), multiple=True, label="recordings").classes("w-72")
        checker = ui.button("Check", on_click=check).mark("check")
        ui.button("Play", on_click=play).props("flat")
    bench.on_files.append(lambda: chosen.set_options(session.recordings()))

    @ui.refreshable
    def findings(found: Any = None) -> None:
        if found is None:
            return
        listed = found["findings"] if isinstance(found, dict) else found
        if not listed:
            ui.label("Nothing was found wrong with the recording.").mark("findings")
            return
        keys = ("severity", "joint", "what", "how_much", "what_to_do")
        _table([{k: str(x.get(k) or "") for k in keys} for x in listed])

    findings()


def estimate_panel(bench: Bench) -> None:
    """Choose signals and method, run, and see whether the result can be trusted."""
    session = bench.session

    async def identify() -> None:
        names, held = list(fit.value or []), list(validation.value or [])
        method, low_pass = str(how.value), str(cutoff.value or "")
        done = await bench.run(lambda told: session.identify(names, held, method, low_pass, told), button)
        if done is not None and done.ok:
            bench.estimate_changed()

    async def compare() -> None:
        names = list(fit.value or [])
        if not names:
            ui.notify("choose a recording first", type="warning")
            return
        measured = await bench.aside(lambda: session.motion(names[0]))
        simulated = await bench.aside(lambda: session.replay(names[0], 5.0))
        if measured is not None and simulated is not None:
            bench.play(measured, beside=simulated)

    with ui.row().classes("items-end gap-3 w-full"):
        fit = ui.select(session.recordings(), multiple=True, label="identify from").classes("w-64")
        validation = ui.select(session.recordings(), multiple=True, label="validate on").classes("w-64")
    with ui.row().classes("items-end gap-3 w-full"):
        how = ui.select(list(METHODS), value="auto", label="method").classes("w-36")
        cutoff = ui.input("low-pass, Hz (found from the data)").classes("w-60")
        button = ui.button("Identify", on_click=identify).mark("identify")
        ui.button("Play against simulation", on_click=compare).props("flat")

    def files() -> None:
        fit.set_options(session.recordings())
        validation.set_options(session.recordings())

    bench.on_files.append(files)

    @ui.refreshable
    def verdict() -> None:
        found = session.verdict()
        if found is None:
            ui.label("The verdict appears here.").classes("opacity-70")
            return
        color = {"trusted": "positive", "use with care": "warning"}.get(found["verdict"], "negative")
        ui.badge(found["verdict"], color=color).classes("text-lg p-2").mark("verdict")
        for reason in found.get("reasons", []):
            ui.label(str(reason))

    verdict()
    bench.on_estimate.append(verdict.refresh)


def export_panel(bench: Bench) -> None:
    """Write the identified robot and take it away."""
    session = bench.session

    async def export() -> None:
        written = ""

        async def job(told: Any) -> Any:
            nonlocal written
            done, written = await session.export(str(kind.value), told)
            return done

        done = await bench.run(job, button)
        if done is not None and done.ok:
            for line in filter(str.strip, done.err.splitlines()):
                ui.notify(line, multi_line=True)
            ui.download(session.workspace.existing(written).read_bytes(), written)

    with ui.row().classes("items-end gap-3 w-full"):
        kind = ui.select(list(EXPORTS), value="urdf", label="format").classes("w-36")
        button = ui.button("Export and download", on_click=export).mark("export")


def _table(rows: list[dict[str, str]]) -> None:
    columns = [
        {"name": k, "label": k.replace("_", " "), "field": k, "align": "left"} for k in (rows[0] if rows else {})
    ]
    ui.table(columns=columns, rows=rows).props("dense flat wrap-cells").classes("w-full")


def _upload(bench: Bench, words: str) -> None:
    workspace = bench.session.workspace

    async def keep(event: events.UploadEventArguments) -> None:
        name = event.file.name
        try:
            if workspace.path(name).exists():
                name = await _name_to_keep(name, workspace.free_name(name))
            if not name:
                return
            workspace.write(name, await event.file.read())
        except DynidError as error:
            ui.notify(str(error), type="negative", multi_line=True, close_button=True)
            return
        bench.files_changed()
        ui.notify(f"{name} is in the workspace", type="positive")

    def refused() -> None:
        ui.notify(f"uploads may have {UPLOAD_LIMIT >> 20} MB", type="negative")

    ui.upload(label=words, on_upload=keep, on_rejected=refused, auto_upload=True, max_file_size=UPLOAD_LIMIT).props(
        "flat bordered"
    ).classes("w-full")


async def _name_to_keep(name: str, free: str) -> str:
    """Ask whether an upload replaces the file of its name; "" if it is given up."""
    with ui.dialog().props("persistent") as dialog, ui.card():
        ui.label(f"{name} is in the workspace already.")
        with ui.row():
            ui.button(f"Keep both, as {free}", on_click=lambda: dialog.submit(free))
            ui.button("Replace", on_click=lambda: dialog.submit(name)).props("flat color=negative")
            ui.button("Cancel", on_click=lambda: dialog.submit("")).props("flat")
    return str(await dialog or "")
