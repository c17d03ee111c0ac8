"""What all steps of the page share: the view of the robot, the running command, and words for what goes wrong."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import numpy as np
from nicegui import background_tasks, ui
from numpy.typing import NDArray

from dynid.errors import DynidError
from dynid.progress import Progress
from dynid.robot.model import Robot
from dynid.studio.drawing import closest_pairs, ellipsoid_corners, frame, reach
from dynid.studio.jobs import Done, Listener
from dynid.studio.live_curve import LiveCurve
from dynid.studio.meshes import Dress
from dynid.studio.scene import BODY, GHOST, RobotScene
from dynid.studio.session import Session

__all__ = ["Bench", "OpenPages"]

Array = NDArray[np.float64]
_FRAME = 1 / 20
# Seconds in which changes are gathered before other pages hear of them.
_GATHERED = 0.05

# Where the camera looks from, and from how many radii of the robot: its field of view is 75 degrees high.
_DIRECTION, _DISTANCE = np.array([0.62, -0.62, 0.48]), 2.2
# Seconds after an upload of a mesh in which another one may come.
_LAST_MESH = 0.5


class OpenPages:
    """All open pages, and those that have yet to hear of a change, by its kind."""

    def __init__(self) -> None:
        self.all: list[Bench] = []
        self._waiting: dict[str, list[Bench]] = {}

    def tell(self, kind: str, speaker: Bench) -> None:
        """Tell a change to the page where it was made at once, and to the others one after another.

        The server goes on between two of them, and a page that waits hears of several changes of a kind together.
        """
        speaker.hear(kind)
        waiting = self._waiting.setdefault(kind, [])
        idle = not waiting
        waiting += [page for page in self.all if page is not speaker and page not in waiting]
        if waiting and idle:
            background_tasks.create(self._tell_others(waiting, kind), name=f"tell pages: {kind}")

    async def _tell_others(self, waiting: list[Bench], kind: str) -> None:
        await asyncio.sleep(_GATHERED)
        while waiting:
            page = waiting.pop(0)
            if page in self.all:
                with page.client:
                    page.hear(kind)
            await asyncio.sleep(0)


class Bench:
    """One open page; all open pages show the same session, and what changes in one is seen in the others.

    Parameters
    ----------
    session : Session
        What the pages are about.
    open_pages : OpenPages
        All open pages, which this one joins until its tab is closed.
    """

    def __init__(self, session: Session, open_pages: OpenPages) -> None:
        self.session = session
        self._pages, self.client = open_pages, ui.context.client
        open_pages.all.append(self)
        self.client.on_delete(lambda: open_pages.all.remove(self))
        self.on_robot: list[Callable[[], Any]] = []
        self.on_files: list[Callable[[], Any]] = []
        self.on_estimate: list[Callable[[], Any]] = []
        self.on_log: list[Callable[[], Any]] = []
        self.on_results: list[Callable[[], Any]] = []
        self._dress = Dress()
        self._drawn: RobotScene | None = None
        self._ghost: RobotScene | None = None
        self._playing: list[tuple[RobotScene, Array, Array]] = []
        self._touching: NDArray[np.bool_] | None = None
        self._seen: Callable[[float], Any] | None = None
        self._redraw: ui.timer | None = None

    # -- what all pages show ---------------------------------------------------------------------

    def robot_changed(self) -> None:
        """Show another robot in all open pages."""
        self._pages.tell("robot", self)

    def shapes_changed(self) -> None:
        """Draw the robot anew in all open pages, once no more meshes come."""
        self._pages.tell("shapes", self)

    def files_changed(self) -> None:
        """Show the files of the workspace in all open pages."""
        self._pages.tell("files", self)

    def log_changed(self) -> None:
        """Show the chosen logs and what their columns are in all open pages."""
        self._pages.tell("log", self)

    def estimate_changed(self) -> None:
        """Show the new estimate in all open pages."""
        self._pages.tell("estimate", self)

    def results_changed(self) -> None:
        """Show what was found about actuators and fleets in all open pages."""
        self._pages.tell("results", self)

    def hear(self, kind: str) -> None:
        """Show in this page what has changed."""
        if kind == "shapes":
            self._draw_soon()
            return
        if kind == "robot":
            self.draw()
        else:
            self._history.set_text("\n".join(self.session.jobs.history) or "none")
        heard = {
            "robot": self.on_robot,
            "files": self.on_files,
            "log": self.on_log,
            "estimate": self.on_estimate,
            "results": self.on_results,
        }
        for listener in heard[kind]:
            listener()

    def _draw_soon(self) -> None:
        """Draw the robot anew once no more meshes come."""
        if self._redraw is not None:
            self._redraw.cancel()
        self._redraw = ui.timer(_LAST_MESH, self.draw, once=True)

    # -- the view --------------------------------------------------------------------------------

    def view(self) -> None:
        """The scene with its player."""
        self.scene = ui.scene(grid=(4, 20), background_color="#eef1f5")
        self.scene.classes("dynid-view w-full h-[46vh] lg:h-[72vh] rounded")
        with ui.row().classes("w-full items-center gap-3"):
            self._frames = ui.checkbox("frames", on_change=self._show).props("dense")
            self._inertias = ui.checkbox("inertias", on_change=self._show_inertias).props("dense")
            self._shapes = ui.checkbox("shapes", value=True, on_change=self._show).props("dense")
            self._shapes.set_visibility(False)
            self._play = (
                ui.button(icon="play_arrow", on_click=self._toggle)
                .props('round dense flat aria-label="play or pause"')
                .classes("ml-auto")
            )
            self._play.disable()
            self._time = ui.slider(min=0, max=1, step=0.001, value=0, on_change=self._seek)
            self._time.classes("grow w-32 min-w-32 px-2")
            self._time.props('aria-label="time of the motion"')
        self._words = ui.label("").classes("text-sm opacity-80").mark("view-words")
        self._missing = ui.label("").classes("text-sm opacity-80").mark("missing-meshes")
        self._timer = ui.timer(_FRAME, self._step, active=False)
        self.draw()

    def draw(self) -> None:
        """Put the session's robot into the scene."""
        self.stop()
        for old in (self._drawn, self._ghost):
            if old is not None:
                old.remove()
        self._drawn = self._ghost = None
        self._dress = Dress()
        self._shapes.set_visibility(False)
        self._missing.set_text("")
        robot = self.session.robot
        if robot is None:
            self._words.text = "no robot yet"
            return
        self._drawn = RobotScene(self.scene, robot, BODY)
        self._look_at(robot)
        self._show()
        self._words.text = f"{robot.name}: {robot.n} joints"
        ui.timer(0.05, self._put_on, once=True)  # meshes are read while the bars are there already

    async def _put_on(self) -> None:
        """Put the shapes of the robot's file on the bars."""
        robot, drawn = self.session.robot, self._drawn
        if robot is None or drawn is None:
            return
        dress = await self.aside(lambda: self.session.meshes.dress(self.session.name, robot))
        if dress is None or self._drawn is not drawn:  # another robot came meanwhile
            return
        self._dress = dress
        self._missing.set_text(dress.words())
        self._shapes.set_visibility(bool(dress.shapes))
        if dress.shapes:
            drawn.put_on(dress.shapes)
            self._look_at(robot)
            self._show()

    def _look_at(self, robot: Robot) -> None:
        """Move the camera so that the whole robot is seen."""
        corners = self._dress.corners()
        if self._inertias.value:
            for link, points in ellipsoid_corners(robot).items():
                corners[link] = np.vstack([corners[link], points]) if link in corners else points
        centre, radius = frame(robot, corners)
        x, y, z = (centre + _DISTANCE * radius * _DIRECTION).tolist()
        to_x, to_y, to_z = centre.tolist()
        self.scene.move_camera(x, y, z, to_x, to_y, to_z, duration=0.2)

    def _show(self) -> None:
        for drawn in filter(None, (self._drawn, self._ghost)):
            drawn.show_frames(bool(self._frames.value))
            drawn.show_shapes(bool(self._shapes.value), see_through=bool(self._inertias.value))
            drawn.show_inertias(bool(self._inertias.value))

    def _show_inertias(self) -> None:
        """Show or hide the ellipsoids, which may be larger than the robot."""
        self._show()
        if self.session.robot is not None:
            self._look_at(self.session.robot)

    # -- playing ---------------------------------------------------------------------------------

    def play(
        self,
        motion: tuple[Array, Array],
        beside: tuple[Array, Array] | None = None,
        seen: Callable[[float], Any] | None = None,
    ) -> None:
        """Play a motion; another one plays on a second robot at its side. `seen` hears the time in s that is shown."""
        robot, (t, q) = self.session.robot, motion
        if robot is None or self._drawn is None:
            return
        if self._ghost is not None:
            self._ghost.remove()
            self._ghost = None
        self._playing, self._seen = [(self._drawn, t, q)], seen
        if beside is not None:
            self._ghost = RobotScene(self.scene, robot, GHOST, 0.6)
            self._ghost.put_on(self._dress.shapes)
            self._show()
            self._playing.append((self._ghost, *beside))
        try:
            nearest, _ = closest_pairs(robot, q, self._drawn.thickness)
            self._touching = nearest < 0
        except DynidError:
            self._touching = None  # nothing in this robot can meet
        touch = "nothing touches"
        if self._touching is not None and self._touching.any():
            touch = f"bars touch in {self._touching.mean():.0%} of it, painted red"
        both = "" if beside is None else "; blue: measured, orange: simulated with what was identified"
        self._words.text = f"{t[-1]:.1f} s of motion, {touch}{both}"
        self._time.set_value(0)
        self._seek()  # the slider may have been there before
        self._play.enable()
        self._timer.activate()

    def pose(self, q: Array, words: str) -> None:
        """Show one posture (n,), or (nq,) with its floating base; what plays is stopped."""
        if self._drawn is None:
            return
        self.stop()
        self._drawn.move(q)
        self._words.text = words

    def stop(self) -> None:
        self._timer.deactivate()
        self._playing, self._touching, self._seen = [], None, None
        self._play.disable()

    def _toggle(self) -> None:
        if self._timer.active:
            self._pause()
            return
        if self._time.value >= 1.0:
            self._time.set_value(0)
        self._timer.activate()

    def _pause(self) -> None:
        self._timer.deactivate()
        self._play.props("icon=play_arrow")

    def _step(self) -> None:
        if self._playing:
            end = float(self._playing[0][1][-1])
            self._time.set_value(min(self._time.value + _FRAME / max(end, _FRAME), 1.0))
        if self._time.value >= 1.0:
            self._pause()

    def _seek(self) -> None:
        if self._timer.active:
            self._play.props("icon=pause")
        size = 0.0 if self.session.robot is None else reach(self.session.robot)
        if self._seen is not None and self._playing:
            self._seen(float(self._time.value * self._playing[0][1][-1]))
        for k, (drawn, t, q) in enumerate(self._playing):
            row = int(np.searchsorted(t, self._time.value * t[-1], "right") - 1)
            drawn.move(q[max(row, 0)], np.array([0.0, 0.9 * k * size, 0.0]))
            if k == 0 and self._touching is not None and self._touching.any():
                drawn.alarm(bool(self._touching[max(row, 0)]))

    # -- commands --------------------------------------------------------------------------------

    def commands(self) -> None:
        """The commands that ran, to be repeated anywhere."""
        with ui.expansion("commands so far", icon="terminal").classes("w-full text-sm"):
            self._history = ui.label("none").classes("dynid-mono")

    async def run(
        self, job: Callable[[Listener], Awaitable[Done]], button: ui.button, curve: LiveCurve | None = None
    ) -> Done | None:
        """Run a step: its button waits, its progress shows, its failure is told in a sentence.

        Values that the command reports are drawn as a curve, if one is given.
        """
        dialog = ui.dialog().props("persistent")
        with dialog, ui.card().classes("min-w-72 max-w-full"):
            words = ui.label("starting ...").classes("dynid-mono").mark("progress")
            bar = ui.linear_progress(0.0, show_value=False).props('instant-feedback aria-label="share of the work"')
            bar.set_visibility(False)
            picture = ui.html("", sanitize=False).classes("dynid-live").mark("live-curve")
            picture.set_visibility(False)
            with ui.row().classes("items-center w-full"):
                ui.spinner()
                ui.button("cancel", on_click=self.session.jobs.cancel).props("flat").classes("ml-auto")

        def told(progress: Progress) -> None:
            words.set_text(str(progress)[:200])
            if progress.share is not None:
                bar.set_visibility(True)
                bar.set_value(progress.share)
            if curve is not None and curve.add(progress) and len(curve) > 1:
                picture.set_visibility(True)
                picture.set_content(curve.svg())

        button.disable()
        dialog.open()
        try:
            done = await job(told)
        except DynidError as error:
            self.tell(error)
            return None
        finally:
            dialog.close()
            button.enable()
            self.files_changed()
        if not done.ok:
            ui.notify(done.reason, type="warning" if done.cancelled else "negative", multi_line=True, close_button=True)
        return done

    def tell(self, error: DynidError) -> None:
        """An error in a sentence, until it is closed."""
        ui.notify(str(error), type="negative", multi_line=True, close_button=True, timeout=0)

    async def aside(self, work: Callable[[], Any]) -> Any:
        """Something short that would hold up the page, in a thread; None where it fails, which is told."""
        try:
            return await asyncio.to_thread(work)
        except DynidError as error:
            self.tell(error)
            return None
