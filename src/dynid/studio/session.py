"""What the page is about: a robot, files in a workspace, and the commands that lead from one to the next."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid import controllers
from dynid.errors import DataError
from dynid.identification.estimate import Estimate
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.load import builtin_robots, load_robot
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.studio.jobs import Done, Jobs, Listener
from dynid.studio.workspace import RECORDING_FILES, ROBOT_FILES, Workspace

__all__ = ["EXPORTS", "METHODS", "Session"]

Array = NDArray[np.float64]

METHODS = ("auto", "feasible", "wls", "ols", "gls", "irls", "tls", "ridge")
FRICTIONS = ("", "none", "viscous", "viscous+coulomb", "viscous+coulomb+offset")
# Format -> file that the command writes, as seen in the workspace.
EXPORTS = {
    "urdf": "identified.urdf",
    "mjcf": "identified.xml",
    "sdf": "identified.sdf",
    "yaml": "identified.yaml",
    "json": "identified.json",
    "python": "identified_model.py",
}
MOTION, LOOP, RUN, ESTIMATE, REPORT = "motion.csv", "loop.toml", "simulated.csv", "estimate.json", "report.html"
VERDICT = "verdict.json"
_RATE = 1000.0


@dataclass
class Session:
    """One robot at a time in one workspace; every step is a command that anyone can repeat."""

    workspace: Workspace
    jobs: Jobs = field(init=False)
    name: str = ""
    robot: Robot | None = None
    friction: str = ""
    rotor_inertia: bool | None = None

    def __post_init__(self) -> None:
        self.jobs = Jobs(self.workspace.folder)

    # -- the robot -------------------------------------------------------------------------------

    def choices(self) -> list[str]:
        """Robots that can be chosen: files of the workspace, then built-in ones."""
        return [*self.workspace.names(ROBOT_FILES), *builtin_robots()]

    def choose(self, name: str, friction: str = "", rotor_inertia: bool | None = None) -> Robot:
        """Load a robot of the workspace or a built-in one; what was chosen before stays if this fails."""
        source: str | Path = name if name in builtin_robots() else self.workspace.existing(name)
        robot = load_robot(source, friction=friction or None, rotor_inertia=rotor_inertia)
        self.name, self.robot, self.friction, self.rotor_inertia = name, robot, friction, rotor_inertia
        return robot

    def adopt(self, source: str | Path) -> Robot:
        """Choose a robot from anywhere on this computer, as the command line names it: files are copied."""
        if str(source) not in builtin_robots():
            path = Path(source)
            if not path.is_file():
                raise DataError(f"there is no robot file '{source}'")
            target = self.workspace.path(path.name)
            if path.resolve() != target.resolve():
                shutil.copyfile(path, target)
            source = path.name
        return self.choose(str(source))

    @property
    def options(self) -> list[str]:
        """The robot as every command is told it."""
        if self.robot is None:
            raise DataError("choose a robot first")
        more = ["--friction", self.friction] if self.friction else []
        if self.rotor_inertia is not None:
            more.append("--rotor-inertia" if self.rotor_inertia else "--no-rotor-inertia")
        return more

    # -- the steps -------------------------------------------------------------------------------

    async def design(
        self, duration: float, budget: float, share: float, seed: int, progress: Listener | None = None
    ) -> Done:
        """A motion that shows the parameters, into motion.csv."""
        numbers = [f"--duration={duration:g}", f"--budget={budget:g}", f"--limit-share={share:g}", f"--seed={seed}"]
        drawn = ["--figure", "motion.svg", "-o", MOTION, "--json"]
        return await self.jobs.run("excite", self.name, *self.options, *numbers, *drawn, progress=progress)

    async def experiment(
        self, bandwidth: float, noise: float, torque_noise: float, name: str = RUN, progress: Listener | None = None
    ) -> Done:
        """The designed motion run by a simulated robot under a cascade controller, into a CSV file of this name."""
        self.workspace.existing(MOTION)
        if self.workspace.path(name).suffix != ".csv" or name == MOTION:
            raise DataError(f"'{name}' cannot hold the recording: give another name that ends with .csv")
        text = f'kind = "cascade"\nrate = 1000\nbandwidth = {bandwidth:g}\n'
        self.workspace.write(LOOP, text.encode())
        sensors = [f"--position-noise={noise:g}", f"--torque-noise={torque_noise:g}", "--velocity-cutoff=100"]
        files = ["--controller", LOOP, "--reference", MOTION, "-o", name, "--json"]
        return await self.jobs.run("simulate", self.name, *self.options, *files, *sensors, progress=progress)

    async def check(self, recordings: list[str], progress: Listener | None = None) -> Done:
        """What is wrong with recordings; the command fails where something is, and says what all the same."""
        return await self.jobs.run(
            "check", self.name, *self._recordings(recordings), *self.options, "--json", progress=progress
        )

    async def identify(
        self,
        recordings: list[str],
        validation: list[str],
        method: str,
        cutoff: str = "",
        progress: Listener | None = None,
    ) -> Done:
        """Parameters into estimate.json, and the report beside it."""
        if method not in METHODS:
            raise DataError(f"'{method}' is no method of this page: {', '.join(METHODS)}")
        held = [x for name in self._recordings(validation, optional=True) for x in ("--validate", name)]
        more = [f"--cutoff={cutoff}"] if cutoff else []
        files = ["-o", ESTIMATE, "--report", REPORT, "--json"]
        return await self.jobs.run(
            "identify",
            self.name,
            *self._recordings(recordings),
            *self.options,
            "--method",
            method,
            *held,
            *more,
            *files,
            progress=progress,
        )

    async def export(self, kind: str, progress: Listener | None = None) -> tuple[Done, str]:
        """The identified robot in a format of EXPORTS, and the file's name."""
        if kind not in EXPORTS:
            raise DataError(f"'{kind}' is no format of this page: {', '.join(EXPORTS)}")
        self.workspace.existing(ESTIMATE)
        name = EXPORTS[kind]
        arguments = ["export", ESTIMATE, "--to", kind, "-o", name]
        return await self.jobs.run(*arguments, progress=progress), name

    def verdict(self) -> dict[str, Any] | None:
        """What the last report says, if there is one."""
        if not self.current(VERDICT):
            return None
        try:
            found = json.loads(self.workspace.existing(VERDICT).read_text(encoding="utf-8"))
        except (DataError, ValueError):
            return None
        return found if isinstance(found, dict) and "verdict" in found else None

    def current(self, name: str) -> bool:
        """Whether a file belongs to the saved estimate: one that is older was left by a command that was killed."""
        try:
            made, estimated = (self.workspace.existing(x).stat().st_mtime_ns for x in (name, ESTIMATE))
        except DataError:
            return False
        return made >= estimated

    # -- motion to be played ---------------------------------------------------------------------

    def recording(self, name: str) -> Recording:
        """A recording of the workspace, read for the chosen robot."""
        if self.robot is None:
            raise DataError("choose a robot first")
        return load_recording(self.workspace.existing(name), self.robot)

    def motion(self, name: str, points: int = 600) -> tuple[Array, Array]:
        """Times (N,) and positions (N, n) of a file with motion, thinned for playing."""
        run = self.recording(name).runs[0]
        step = max(1, len(run.t) // points)
        q = run.q if run.base is None else np.hstack([run.base, run.q])
        return run.t[::step] - run.t[0], q[::step]

    def replay(self, name: str, bandwidth: float, points: int = 600) -> tuple[Array, Array]:
        """Where the identified robot would have gone: simulated along what a recording was asked to do, or did."""
        if self.robot is None:
            raise DataError("choose a robot first")
        # With its own drive terms: the method may have chosen other ones than those of the file.
        found = Estimate.load(self.workspace.existing(ESTIMATE))
        if found.robot.coordinates != self.robot.coordinates:
            raise DataError(f"the estimate is of another robot than '{self.robot.name}': identify again")
        run = self.recording(name).runs[0]
        wanted = run.q if run.reference is None else run.reference
        t = np.arange(run.t[0], run.t[-1], 1.0 / _RATE)
        path = np.column_stack([np.interp(t, run.t, column) for column in wanted.T])
        gains = controllers.bandwidth_gains(found.identified_robot, bandwidth)
        loop = ClosedLoop(controller=controllers.cascade(_RATE, *gains))
        done = simulate(found.identified_robot, loop, path)
        step = max(1, len(done.t) // points)
        return done.t[::step], done.q[::step]

    def recordings(self) -> list[str]:
        """Files that may hold recordings."""
        own = {ESTIMATE, VERDICT, *EXPORTS.values()}
        return [n for n in self.workspace.names(RECORDING_FILES) if n not in own]

    def _recordings(self, names: list[str], optional: bool = False) -> list[str]:
        if not names and not optional:
            raise DataError("choose a recording first")
        for name in names:
            self.workspace.existing(name)
        return names
