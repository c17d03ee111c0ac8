"""The steps, one panel each."""

from __future__ import annotations

import html
import math
from typing import Any

from nicegui import events, ui

from dynid.errors import DynidError, one_of
from dynid.recording.formats import readers
from dynid.studio.bench import Bench
from dynid.studio.findings import findings_table
from dynid.studio.live_curve import LiveCurve
from dynid.studio.meshes import MESH_FILES
from dynid.studio.runs_panel import log_choice
from dynid.studio.session import EXPORTS, FRICTIONS, MOTION, PER_JOINT, POSTURE, RUN
from dynid.studio.tables import plain_table
from dynid.studio.workspace import UPLOAD_LIMIT

__all__ = ["Bench", "export_panel", "motion_panel", "recording_panel", "robot_panel"]


_ROTORS: dict[str, bool | str | None] = {"auto": None, "yes": True, "no": False, "some joints": PER_JOINT}


def _rotor_words(value: bool | str | None) -> str:
    return next(words for words, known in _ROTORS.items() if known is value or known == value)


def _limit(value: float, unit: str) -> str:
    """A limit of a joint with its unit."""
    return f"{value:.3g}\u00a0{unit}".replace(" ", "\u00a0") if math.isfinite(value) else "none"


def robot_panel(bench: Bench) -> None:
    """Choose or drop a robot, and see what it is."""
    session = bench.session

    def load() -> None:
        try:
            session.choose(str(choice.value), str(friction.value), _ROTORS[str(rotors.value)])
        except DynidError as error:
            bench.tell(error)
            return
        bench.robot_changed()

    def shown() -> None:
        choice.set_value(session.name)
        friction.set_value(session.friction)
        rotors.set_value(_rotor_words(session.rotor_inertia))
        table.refresh()

    bench.on_robot.append(shown)
    bench.on_files.append(lambda: choice.set_options(session.choices()))
    with ui.row().classes("items-end gap-3 w-full"):
        choice = ui.select(session.choices(), value=session.name or None, label="robot", with_input=True).classes(
            "w-48"
        )
        friction = ui.select(
            {x: x or "auto" for x in (*FRICTIONS, PER_JOINT)}, value=session.friction, label="friction"
        ).classes("w-52")
        rotors = ui.select(list(_ROTORS), value=_rotor_words(session.rotor_inertia), label="rotor inertia").classes(
            "w-36"
        )
        ui.button("Load", on_click=load).mark("load")
    ui.label(
        "With friction on auto, method auto has friction and rotor inertia of every joint. "
        "Other methods take what is on auto from the file."
    ).classes("text-sm opacity-80")
    if session.problem:
        ui.label(session.problem).classes("text-negative").mark("problem")
    _upload(bench, "or drop a URDF, MJCF, SDF or TOML file, and its meshes, here")

    @ui.refreshable
    def table() -> None:
        robot = session.robot
        if robot is None:
            return
        rows = [
            {
                "joint": j.name,
                "kind": j.kind,
                "lower": _limit(j.limits.lower, place),
                "upper": _limit(j.limits.upper, place),
                "velocity": _limit(j.limits.velocity, f"{place}/s"),
                "effort": _limit(j.limits.effort, "N m" if place == "rad" else "N"),
                "link": link.name,
                "mass": f"{link.inertia[0]:.4g}\u00a0kg",
            }
            for j, link in zip(robot.joints, robot.links[1:], strict=True)
            for place in ("rad" if j.kind == "revolute" else "m",)
        ]
        plain_table(rows)

    table()


def motion_panel(bench: Bench) -> None:
    """Design a motion and play it."""
    session = bench.session

    async def design() -> None:
        numbers = float(duration.value), int(budget.value), float(share.value), int(seed.value)
        curve = LiveCurve("criterion (less is better)")
        done = await bench.run(lambda told: session.design(*numbers, told), button, curve)
        if done is not None and done.ok:
            figures.refresh(done.data, curve)
            await play()

    async def play() -> None:
        motion = await bench.aside(lambda: session.motion(MOTION))
        if motion is not None:
            bench.play(motion)

    with ui.row().classes("items-end gap-3 w-full"):
        duration = ui.number("seconds", value=10, min=1, max=600).classes("w-24").mark("duration")
        budget = ui.number("iterations", value=300, min=1, max=100000, precision=0).classes("w-24")
        share = ui.number("share of limits", value=0.8, min=0.05, max=1, step=0.05).classes("w-28")
        seed = ui.number("seed", value=0, min=0, precision=0).classes("w-20")
        button = ui.button("Design", on_click=design).mark("design")
        ui.button("Play", on_click=play).props("flat")

    @ui.refreshable
    def figures(found: dict[str, Any] | None = None, curve: LiveCurve | None = None) -> None:
        if found is None:
            ui.label("A motion that shows the parameters within the robot's limits.").classes("opacity-70")
            return
        ui.label(f"condition number {found['condition_number']:.1f} over {found['duration']:g} s").mark(
            "motion-figures"
        )
        plain_table(
            [
                {"joint": k, **{f"{x}, of what is allowed": f"{y:.0%}" for x, y in use.items()}}
                for k, use in found["use"].items()
            ]
        )
        if curve is not None and len(curve) > 1:
            words = f"How the search went: criterion {curve.words()} (dots: iterations, line: the best so far)"
            ui.label(words).classes("text-sm").mark("search-words")
            ui.html(curve.svg(), sanitize=False).classes("dynid-live")
        svg = session.workspace.existing("motion.svg").read_text(encoding="utf-8")
        ui.link("open the figure in a tab of its own", "/files/motion.svg", new_tab=True)
        figure = ui.html(svg, sanitize=False).classes("dynid-figure w-full bg-white rounded")
        figure.props('tabindex=0 role=region aria-label="the motion, scrolled by the arrow keys"')

    figures()


def recording_panel(bench: Bench) -> None:
    """Drop recordings or make one, choose what is identified from, and see what is wrong with it."""
    session = bench.session

    async def simulated() -> None:
        numbers, name = (float(bandwidth.value), float(noise.value), float(torque_noise.value)), str(file.value)
        done = await bench.run(lambda told: session.experiment(*numbers, name, told), button)
        if done is not None and done.ok:
            bench.log_changed()
            ui.notify(f"{name} is recorded", type="positive")

    async def check() -> None:
        done = await bench.run(session.check, checker)
        if done is not None and done.out.strip():
            findings.refresh(done.data)

    async def learn() -> None:
        done = await bench.run(session.left_to_learn, learner)
        if done is not None and done.ok:
            posture.refresh(done.data)

    async def play() -> None:
        motion = await bench.aside(session.motion)
        if motion is not None:
            bench.play(motion)

    ui.label("Take a log of the real robot ...").classes("font-medium")
    _upload(bench, f"or drop {one_of(reader.title for reader in readers().values())} here")
    ui.label("... or run the designed motion on a simulated one:").classes("font-medium")
    with ui.row().classes("items-end gap-3 w-full"):
        bandwidth = ui.number("bandwidth, Hz", value=5, min=0.1).classes("w-28")
        noise = ui.number("encoder noise, rad or m", value=1e-5, min=0, format="%.1e").classes("w-36")
        torque_noise = ui.number("torque noise, N m or N", value=0.2, min=0).classes("w-36")
        file = ui.input("into", value=RUN).classes("w-36")
        button = ui.button("Run simulated experiment", on_click=simulated).mark("experiment")
    ui.separator()
    log_choice(bench)
    ui.separator()
    with ui.row().classes("items-end gap-3 w-full"):
        checker = ui.button("Check", on_click=check).mark("check")
        learner = ui.button("What is left to learn", on_click=learn).props("flat").mark("learn")
        ui.button("Play", on_click=play).props("flat")
        ui.label("Columns that are not recognised by their names are assigned in the next step.").classes(
            "text-sm opacity-80"
        )
    findings = ui.refreshable(findings_table)
    findings()

    @ui.refreshable
    def posture(found: dict[str, Any] | None = None) -> None:
        if found is None:
            return
        ui.label(f"Next: {found['advice']['text']}").mark("learn-advice")
        svg = session.workspace.existing(POSTURE).read_text(encoding="utf-8")
        figure = ui.html(svg, sanitize=False).classes("dynid-live")
        figure.props('role=img aria-label="the robot, each link in the color of what is left to learn"')

    posture()


def export_panel(bench: Bench) -> None:
    """Write the identified robot and take it away."""
    session = bench.session

    async def export() -> None:
        written = ""

        async def job(told: Any) -> Any:
            nonlocal written
            done, written = await session.export(str(kind.value), told, bool(anyway.value))
            return done

        done = await bench.run(job, button)
        if done is not None and done.ok:
            lines = [line.strip().removeprefix("dynid: ") for line in done.err.splitlines()]
            notes.refresh([line for line in lines if line])
            ui.download(session.workspace.existing(written).read_bytes(), written)

    @ui.refreshable
    def words() -> None:
        verdict = session.verdict()
        if verdict is None:
            ui.label("Identify first; then the identified robot is written here.").classes("opacity-80")
            return
        ui.label(
            f"The robot with the parameters of '{session.files.name}' ({verdict['verdict']}), for simulators and "
            "controllers. What a format has no place for is named below once the file is written."
        ).classes("text-sm opacity-80")

    @ui.refreshable
    def notes(lines: list[str] | None = None) -> None:
        for line in lines or []:
            ui.label(line[:1].upper() + line[1:]).classes("text-sm").mark("export-note")

    words()
    bench.on_estimate.append(words.refresh)
    with ui.row().classes("items-end gap-3 w-full"):
        kind = ui.select(list(EXPORTS), value="urdf", label="format").classes("w-36")
        button = ui.button("Export and download", on_click=export).mark("export")
        anyway = ui.checkbox("even if the verdict is 'do not use'").mark("untrusted")
    notes()


# In place of the toolkit's own, whose buttons have no names.
_UPLOAD_HEADER = """
<div class="row items-center no-wrap q-gutter-x-md q-pa-sm">
  <q-btn outline color="primary" label="Choose files" @click="props.pickFiles"></q-btn>
  <div class="col">{words}</div>
  <q-spinner v-if="props.isUploading" size="24px"></q-spinner>
  <label class="dynid-hidden">files<q-uploader-add-trigger></q-uploader-add-trigger></label>
</div>
"""


def _upload(bench: Bench, words: str) -> None:
    workspace = bench.session.workspace

    async def keep(event: events.UploadEventArguments) -> None:
        given = name = event.file.name
        try:
            if workspace.taken(given):
                name = await _name_to_keep(given, workspace.free_name(given))
            if not name:
                return
            if name != given:  # others may have chosen it meanwhile
                name = workspace.free_name(given)
            await workspace.keep(name, event.file.size(), event.file.save)
            bench.session.replaced(name)
        except DynidError as error:
            ui.notify(str(error), type="negative", multi_line=True, close_button=True)
            return
        bench.files_changed()
        if name.lower().endswith(MESH_FILES):
            bench.shapes_changed()
        ui.notify(f"{name} is in the workspace", type="positive")

    def refused() -> None:
        ui.notify(f"uploads may have {UPLOAD_LIMIT >> 20} MB", type="negative")

    upload = ui.upload(
        on_upload=keep,
        on_rejected=refused,
        auto_upload=True,
        multiple=True,
        max_file_size=UPLOAD_LIMIT,
    )
    upload.props("flat bordered").classes("w-full").add_slot("header", _UPLOAD_HEADER.format(words=html.escape(words)))


async def _name_to_keep(name: str, free: str) -> str:
    """Ask whether an upload replaces the file of its name; "" if it is given up."""
    with ui.dialog().props("persistent") as dialog, ui.card():
        ui.label(f"{name} is in the workspace already.")
        with ui.row():
            ui.button(f"Keep both, as {free}", on_click=lambda: dialog.submit(free))
            ui.button("Replace", on_click=lambda: dialog.submit(name)).props("flat color=negative")
            ui.button("Cancel", on_click=lambda: dialog.submit("")).props("flat")
    return str(await dialog or "")
