"""What the page is about: a robot, files in a workspace, and the commands that lead from one to the next."""

from __future__ import annotations

import json
import shutil
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid import controllers
from dynid.errors import (
    ConflictingArguments,
    DataError,
    DynidError,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingFile,
    UnknownName,
    WrongFormat,
)
from dynid.feasibility.prior import check_bodies
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.registry import find_method, methods
from dynid.recording.formats import is_log
from dynid.recording.load import load_recording
from dynid.recording.log_format import LogFormat
from dynid.recording.recording import Recording
from dynid.robot.load import builtin_robots, load_robot
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.studio.comparison import EstimateFiles, keep_row, own_files
from dynid.studio.jobs import Done, Jobs, Listener
from dynid.studio.meshes import Meshes, copy_companions
from dynid.studio.opened_log import OpenedLog, held_joints, open_log
from dynid.studio.project_file import PROJECT_FILE, ProjectFile
from dynid.studio.runs import LogRuns
from dynid.studio.step_files import STEP_FILES
from dynid.studio.workspace import ROBOT_FILES, Workspace

__all__ = ["EXPORTS", "FRICTIONS", "MOTION", "PER_JOINT", "POSTURE", "RUN", "Session"]

Array = NDArray[np.float64]

FRICTIONS = ("", "none", "viscous", "viscous+coulomb", "viscous+coulomb+offset")
# In place of a value that the project file gives per joint, which the page keeps as it is.
PER_JOINT = "per joint"
# Format -> file that the command writes, as seen in the workspace.
EXPORTS = {
    "urdf": "identified.urdf",
    "mjcf": "identified.xml",
    "sdf": "identified.sdf",
    "yaml": "identified.yaml",
    "json": "identified.json",
    "python": "identified_model.py",
}
MOTION, LOOP, RUN, POSTURE = "motion.csv", "loop.toml", "simulated.csv", "posture.svg"
_RATE = 1000.0


@dataclass
class Session:
    """One robot at a time in one workspace; every step is a command that anyone can repeat.

    What is chosen is kept in dynid.toml of the workspace, which the commands read: it outlives the page.
    """

    workspace: Workspace
    jobs: Jobs = field(init=False)
    project: ProjectFile = field(init=False)
    meshes: Meshes = field(init=False)
    name: str = ""
    whole: Robot | None = None
    robot: Robot | None = None
    friction: str = ""
    rotor_inertia: bool | str | None = None
    held: dict[str, float] = field(default_factory=dict)
    opened: OpenedLog | None = None
    problem: str = ""

    def __post_init__(self) -> None:
        self.jobs, self.project = Jobs(self.workspace.folder), ProjectFile(self.workspace)
        self.meshes = Meshes(self.workspace)
        try:
            section = self.project.section("robot")
            if section:
                self._load(str(section.get("file", "")), section)
        except DynidError as error:
            self.problem = str(error)

    # -- the robot -------------------------------------------------------------------------------

    def choices(self) -> list[str]:
        """Robots that can be chosen: files of the workspace, then built-in ones."""
        own = (PROJECT_FILE, LOOP, *STEP_FILES)
        return [*(n for n in self.workspace.names(ROBOT_FILES) if n not in own), *builtin_robots()]

    def choose(self, name: str, friction: str = "", rotor_inertia: bool | str | None = None) -> Robot:
        """Load a robot of the workspace or a built-in one; what was chosen before stays if this fails."""
        before = self.project.section("robot")
        section: dict[str, Any] = dict(before) if before.get("file") == name else {"file": name}
        if friction != PER_JOINT:
            section["friction"] = friction or None
        if rotor_inertia != PER_JOINT:
            section["rotor_inertia"] = rotor_inertia
        given = {key: value for key, value in section.items() if value is not None}
        robot = self._load(name, given)
        self.project.put("robot", given)
        self.opened = None
        return robot

    def _load(self, name: str, section: Mapping[str, Any]) -> Robot:
        """Load the robot that a section [robot] describes."""
        source: str | Path = name if name in builtin_robots() else self.workspace.existing(name)
        fields = {key: value for key, value in section.items() if key not in ("file", "lock", "mass", "link_mass")}
        try:
            whole = load_robot(source, **fields)
        except TypeError:
            raise UnknownName(f"{PROJECT_FILE}: [robot] has a key that is unknown") from None
        held = held_joints(section.get("lock", []), whole)
        robot = whole.locked(held) if held else whole
        self.name, self.whole, self.robot, self.held, self.problem = name, whole, robot, held, ""
        friction, rotor = section.get("friction", ""), section.get("rotor_inertia")
        self.friction = PER_JOINT if not isinstance(friction, str) else "" if friction == "auto" else friction
        self.rotor_inertia = rotor if rotor is None or isinstance(rotor, bool) else PER_JOINT
        return robot

    def adopt(self, source: str | Path) -> Robot:
        """Choose a robot from anywhere on this computer, as the command line names it: files are copied."""
        if str(source) not in builtin_robots():
            path = Path(source)
            if not path.is_file():
                raise MissingFile(f"there is no robot file '{source}'", "source")
            target = self.workspace.path(path.name)
            if path.resolve() != target.resolve():
                shutil.copyfile(path, target)
                copy_companions(path, load_robot(path), self.workspace)
            source = path.name
        if self.robot is not None and self.name == str(source):
            return self.robot
        return self.choose(str(source))

    def lock(self, held: Mapping[str, float]) -> None:
        """Hold joints at positions (rad or m)."""
        section = self.project.section("robot")
        still = all(value == 0.0 for value in held.values())
        locked: Any = (list(held) if still else dict(held)) or None
        changed = {key: value for key, value in (section | {"lock": locked}).items() if value is not None}
        self._load(self.name, changed)
        self.project.put("robot", changed)

    def add_effects(self, effects: Sequence[str]) -> Robot:
        """Add effects of the drives to the model."""
        section = self.project.section("robot")
        changed = section | {"effects": list(dict.fromkeys([*section.get("effects", []), *effects]))}
        robot = self._load(self.name, changed)
        self.project.put("robot", changed)
        return robot

    @property
    def mass(self) -> float | None:
        """Mass of the robot's moving bodies together (kg), where it was given."""
        found = self.project.section("robot").get("mass")
        return float(found) if isinstance(found, int | float) else None

    def weigh(self, mass: float | None) -> None:
        """Keep the mass of the robot (kg), from scales or the data sheet; None where it is not known."""
        self._chosen()
        check_bodies(mass, None)
        section = self.project.section("robot")
        if section.get("mass") != mass:
            self.project.put("robot", section | {"mass": mass})

    def methods(self) -> list[str]:
        """Methods of the page: those that do not simulate."""
        return [name for name, method in methods().items() if not method.simulates]

    def friction_words(self, method: str = "auto") -> str:
        """Which friction is identified: some methods choose it unless rotor inertias are ruled out."""
        if self.friction:
            return self.friction
        known = methods().get(method)
        chooses = known is not None and known.takes == "recording"
        return "auto" if chooses and self.rotor_inertia is not False else "as in the file"

    def _chosen(self) -> Robot:
        """The robot before joints are locked."""
        if self.whole is None:
            raise MissingArgument("choose a robot first")
        return self.whole

    # -- the logs --------------------------------------------------------------------------------

    @property
    def runs(self) -> LogRuns:
        """The logs to identify from and to validate on."""
        return LogRuns.of_section(self.project.section("runs"))

    @property
    def log(self) -> LogFormat:
        """How the logs are read."""
        return LogFormat.from_toml({"log": self.project.section("log")})

    def use(self, runs: LogRuns) -> None:
        """Identify from these logs, and validate on these."""
        self._chosen()
        if not runs.identify:
            raise MissingArgument("choose a recording first")
        for name in (*runs.files, *runs.other_files):
            self.workspace.existing(name)
        if set(runs.files) & set(runs.other_files):
            raise ConflictingArguments(
                f"'{runs.files[0]}' is identified from: validate on another log, or on a share of it"
            )
        same = self.project.section("runs").get("identify") == list(runs.identify)
        self.project.put("runs", runs.to_section())
        if not same:
            self.opened = None

    def open(self, again: bool = False) -> OpenedLog:
        """The first log with its columns: as it was left, as dynid.toml reads it, or `again` as its names say."""
        if self.opened is not None and not again:
            return self.opened
        whole, runs = self._chosen(), self.runs
        files = runs.signals or {"": runs.files[0]} if runs.identify else {}
        paths = {signal: self.workspace.existing(name) for signal, name in files.items()}
        log = LogFormat() if again else self.log
        opened = open_log(paths, whole, log, None if again else self.held or None)
        if opened.guess and log != LogFormat():
            fresh = open_log(paths, whole, LogFormat())
            opened = replace(fresh, guess=f"[log] of {PROJECT_FILE} does not fit: {opened.guess}")
        self.opened = opened
        return opened

    def read_topic(self, topic: str | None) -> None:
        """Open the log at another topic of its bag."""
        paths = {signal: self.workspace.existing(name) for signal, name in self.open().files.items()}
        self.opened = open_log(paths, self._chosen(), LogFormat(topic=topic))

    def replaced(self, name: str) -> None:
        """Forget the columns of a log whose file was replaced."""
        if self.opened is not None and name in self.opened.files.values():
            self.opened = None

    def save_log(self) -> OpenedLog:
        """Write what the columns are, and which joints are locked, into dynid.toml; DataError where they do not do."""
        opened = self.open()
        _ = opened.recording  # only what can be read is kept
        self.lock(opened.mapping.locked)
        self.project.put("log", tomllib.loads(opened.mapping.log_format().to_toml()))
        return opened

    # -- the steps -------------------------------------------------------------------------------

    async def design(
        self, duration: float, budget: int, share: float, seed: int, progress: Listener | None = None
    ) -> Done:
        """A motion that shows the parameters, into motion.csv."""
        self._chosen()
        numbers = [f"--duration={duration:g}", f"--budget={budget}", f"--limit-share={share:g}", f"--seed={seed}"]
        drawn = ["--figure", "motion.svg", "-o", MOTION, "--json"]
        return await self.jobs.run("excite", *numbers, *drawn, progress=progress)

    async def experiment(
        self, bandwidth: float, noise: float, torque_noise: float, name: str = RUN, progress: Listener | None = None
    ) -> Done:
        """The designed motion run by a simulated robot under a cascade controller, into a CSV file of this name.

        The recording becomes that of the project; motion for validation is another one, or its last quarter.
        """
        self._chosen()
        self.workspace.existing(MOTION)
        if self.workspace.path(name).suffix != ".csv" or name == MOTION:
            raise WrongFormat(f"'{name}' cannot hold the recording: give another name that ends with .csv", "name")
        text = f'kind = "cascade"\nrate = 1000\nbandwidth = {bandwidth:g}\n'
        self.workspace.write(LOOP, text.encode())
        sensors = [f"--position-noise={noise:g}", f"--torque-noise={torque_noise:g}", "--velocity-cutoff=100"]
        files = ["--controller", LOOP, "--reference", MOTION, "-o", name, "--json"]
        done = await self.jobs.run("simulate", *files, *sensors, progress=progress)
        if done.ok:
            self.use(LogRuns((name,), share=0.25))
            self.project.put("log", {})
            self.opened = None
        return done

    async def check(self, progress: Listener | None = None, name: str = "") -> Done:
        """What is wrong with the logs, or with one file; the command fails where something is, and says what."""
        if name and name not in self.runs.signals.values():
            self._chosen()
            self.workspace.existing(name)
            return await self.jobs.run("check", name, "--json", progress=progress)
        self.check_logs()
        return await self.jobs.run("check", "--json", progress=progress)

    async def left_to_learn(self, progress: Listener | None = None) -> Done:
        """What the logs leave to learn of each body: a drawing of the last posture, and the score."""
        self.check_logs()
        return await self.jobs.run("live", "--figure", POSTURE, "--json", progress=progress)

    async def identify(
        self, method: str = "auto", cutoff: str = "", name: str = "estimate", progress: Listener | None = None
    ) -> Done:
        """Parameters into NAME.json with the report beside it; what the command printed is kept for comparison."""
        self.check_logs()
        if find_method(method).simulates:
            raise UnknownName(f"'{method}' is no method of this page: {', '.join(self.methods())}", "method")
        files = EstimateFiles(name)
        self.workspace.path(files.report)
        section = self.project.section("identify") | {"method": method, "cutoff": _cutoff(cutoff)}
        self.project.put("identify", section | {"output": files.estimate})
        done = await self.jobs.run("identify", "--report", files.report, "--json", progress=progress)
        if done.ok:
            keep_row(self.workspace, files, done.data)
        return done

    async def export(self, kind: str, progress: Listener | None = None, untrusted: bool = False) -> tuple[Done, str]:
        """The identified robot in a format of EXPORTS, and the file's name; `untrusted` whatever its verdict."""
        if kind not in EXPORTS:
            raise UnknownName(f"'{kind}' is no format of this page: {', '.join(EXPORTS)}", "kind")
        self.workspace.existing(self.files.estimate)
        name = EXPORTS[kind]
        arguments = ["export", self.files.estimate, "--to", kind, "-o", name, *(["--untrusted"] if untrusted else [])]
        return await self.jobs.run(*arguments, progress=progress), name

    # -- the estimate ----------------------------------------------------------------------------

    @property
    def files(self) -> EstimateFiles:
        """The files of the estimate that is looked at: the last one, or one that was chosen."""
        try:
            output = str(self.project.section("identify").get("output", ""))
        except DynidError:
            output = ""
        return EstimateFiles(output.removesuffix(".json") if output.endswith(".json") else "estimate")

    def look_at(self, name: str) -> None:
        """Look at another estimate of the workspace."""
        files = EstimateFiles(name)
        self.workspace.existing(files.estimate)
        self.project.put("identify", self.project.section("identify") | {"output": files.estimate})

    def verdict(self) -> dict[str, Any] | None:
        """What the report of the estimate says, if there is one."""
        if not self.current(self.files.verdict):
            return None
        try:
            found = json.loads(self.workspace.existing(self.files.verdict).read_text(encoding="utf-8"))
        except (DataError, ValueError):
            return None
        return found if isinstance(found, dict) and "verdict" in found else None

    def current(self, name: str, result: str = "") -> bool:
        """Whether a file belongs to a result, the saved estimate by default.

        One that is older was left by a command that was killed.
        """
        try:
            made, found = (self.workspace.existing(x).stat().st_mtime_ns for x in (name, result or self.files.estimate))
        except DataError:
            return False
        return made >= found

    # -- motion to be played ---------------------------------------------------------------------

    def recording(self, name: str = "") -> Recording:
        """The recording of a file, of the first log of the project if none is named."""
        if self.robot is None:
            raise MissingArgument("choose a robot first")
        runs = self.runs
        if name and name not in (*runs.files, *runs.other_files):
            return load_recording(self.workspace.existing(name), self.robot)
        entry = name if name and name not in runs.signals.values() else (runs.signals or runs.files[0])
        source: Any = (
            self.workspace.existing(entry)
            if isinstance(entry, str)
            else {signal: self.workspace.existing(file) for signal, file in entry.items()}
        )
        return load_recording(source, self.robot, log=self.log, whole=self.whole if self.held else None)

    def motion(self, name: str = "", points: int = 600) -> tuple[Array, Array]:
        """Times (N,) and positions (N, n) of a file with motion, or of the first log, thinned for playing."""
        run = self.recording(name).runs[0]
        step = max(1, len(run.t) // points)
        q = run.q if run.base is None else np.hstack([run.base, run.q])
        return run.t[::step] - run.t[0], q[::step]

    def replay(self, bandwidth: float, name: str = "", points: int = 600) -> tuple[Array, Array]:
        """Where the identified robot would have gone: simulated along what a recording was asked to do, or did."""
        if self.robot is None:
            raise MissingArgument("choose a robot first")
        # With its own drive terms: the method may have chosen other ones than those of the file.
        found = Estimate.load(self.workspace.existing(self.files.estimate))
        if found.robot.coordinates != self.robot.coordinates:
            raise Mismatch(f"the estimate is of another robot than '{self.robot.name}': identify again")
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
        own = {*EXPORTS.values(), *STEP_FILES, *own_files(self.workspace)}
        return [n for n in self.workspace.names() if is_log(Path(n)) and n not in own]

    def check_logs(self) -> None:
        """Refuse to run a command without a robot, or without logs that are in the workspace."""
        self._chosen()
        runs = self.runs
        if not runs.identify:
            raise MissingArgument("choose a recording first")
        for name in (*runs.files, *runs.other_files):
            self.workspace.existing(name)


def _cutoff(text: str) -> float | str | None:
    """The low-pass as the project file has it: Hz, "none", or None where it is found from the data."""
    if text in ("", "none"):
        return text or None
    try:
        return float(text)
    except ValueError:
        raise InvalidValue(f"'{text[:20]}' is no low-pass: give Hz, none, or nothing", "cutoff") from None
