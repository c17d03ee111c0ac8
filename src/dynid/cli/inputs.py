"""What a command works on: robot or estimate, log format, logs, closed loop."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynid.cli import values
from dynid.cli.progress import working
from dynid.cli.values import HeldOut, Source
from dynid.errors import ConflictingArguments, InvalidValue, MissingArgument, NotApplicable, TooFew

if TYPE_CHECKING:
    from dynid.cli.project import Project
    from dynid.friction.selection import FrictionSelection
    from dynid.identification.estimate import Estimate
    from dynid.identification.estimators.method import Method
    from dynid.recording.dataset import DataSet
    from dynid.recording.log_format import LogFormat
    from dynid.recording.recording import Recording
    from dynid.robot.model import Robot
    from dynid.signals.settings import Signals
    from dynid.simulation.closed_loop import ClosedLoop

__all__ = ["Inputs", "load_estimate"]


@dataclass(frozen=True, eq=False)
class Inputs:
    """What a command works on.

    Attributes
    ----------
    robot : Robot
        The robot, its joints locked as asked for; that of the estimate where one is given.
    robot_file : str
        File or built-in name of the robot; empty for that of an estimate.
    project : Project or None
        The project file in use.
    estimate : Estimate or None
        The saved estimate that was given.
    estimate_file : Path or None
        Its file.
    selection : FrictionSelection or None
        The saved friction selection that was given.
    log : LogFormat or None
        How logs are read; None for commands without logs.
    data : tuple
        Logs that the command was given, or those of [runs] identify.
    given : bool
        Whether the logs were given on the command line.
    cleaning : dict
        Fields of `Signals` from the options.
    reading : dict
        Fields of `LogFormat` from the options.
    whole : Robot or None
        The robot before joints were locked.
    base_given : bool
        Whether an option or the project file says how the robot stands.
    modelling : dict
        The options of how the robot is modelled, by name.
    """

    robot: Robot
    robot_file: str = ""
    project: Project | None = None
    estimate: Estimate | None = None
    estimate_file: Path | None = None
    selection: FrictionSelection | None = None
    log: LogFormat | None = None
    data: tuple[Source, ...] = ()
    given: bool = False
    cleaning: Mapping[str, Any] = field(default_factory=dict)
    reading: Mapping[str, Any] = field(default_factory=dict)
    whole: Robot | None = None
    base_given: bool = False
    modelling: Mapping[str, Any] = field(default_factory=dict)

    def with_locked(self, joints: Sequence[str]) -> Inputs:
        """The same with joints of the robot held at zero."""
        held = self.robot.locked(dict.fromkeys(joints, 0.0))
        whole = self.robot if self.whole is None else self.whole
        return replace(self, robot=held, whole=whole, modelling=dict(self.modelling) | {"lock": list(joints)})

    def read(self, logs: Sequence[str | Source] | None = None, rows: Any = "format") -> Recording:
        """The recording of these logs, or of those that the command works on.

        Parameters
        ----------
        logs : sequence of str or dict, optional
            Files as written on the command line; left out, DATA or [runs] identify.
        rows : tuple of 2, None or "format"
            Rows to read instead of those of the log format.
        """
        from dynid.recording.dataset import is_dataset
        from dynid.recording.load import load_recording

        sources = self._sources(logs)
        if any(is_dataset(x) for x in sources):
            raise NotApplicable(
                "data sets are for dynid identify, check, validate and report, one at a time: name log files here"
            )
        assert self.log is not None
        log = self.log if rows == "format" else self.log.replaced({"rows": rows})
        with working("reading"):
            return load_recording(sources, self.robot, log=log, whole=self.whole)

    def _sources(self, logs: Sequence[str | Source] | None) -> list[Source]:
        """These logs, or those that the command works on."""
        sources = list(self.data) if logs is None else [values.source(x) if isinstance(x, str) else x for x in logs]
        if not sources:
            raise MissingArgument("no log is given: name DATA, or list the logs in runs.identify of dynid.toml")
        return sources

    def data_set(
        self, logs: Sequence[str | Source] | None = None, *, long: bool = True, rows: Any = "format"
    ) -> DataSet | None:
        """The data set of these logs, or of those that the command works on; None where they are files.

        Parameters
        ----------
        logs : sequence of str or dict, optional
            As for `read`.
        long : bool, default True
            Whether one long file is a data set too, of ranges of its rows.
        rows : tuple of 2, None or "format"
            Rows to read instead of those of the log format.
        """
        from dynid.recording.dataset import is_dataset, is_long, open_dataset

        sources = list(self.data) if logs is None else self._sources(logs)
        if len(sources) != 1 or not (is_dataset(sources[0]) or (long and is_long(sources[0]))):
            return None
        assert self.log is not None
        log = self.log if rows == "format" else self.log.replaced({"rows": rows})
        with working("opening the data set"):
            return open_dataset(str(sources[0]), self.robot, log=log, whole=self.whole)

    def validation_logs(self) -> list[Source]:
        """Logs of [runs] validate that the command does not identify from."""
        if self.project is None:
            return []
        used = {_absolute(x) for x in self.data}
        return [x for x in self.project.logs("validate") if _absolute(x) not in used]

    def read_split(
        self, validate: Sequence[str] | None, share: float | None, rows: str | None
    ) -> tuple[Recording, Recording | None]:
        """Recordings to identify from and, where other motion is named or held out, to validate on."""
        if sum(x is not None for x in (validate or None, share)) == 2:
            raise ConflictingArguments(
                "--validate names other logs and --validate-share holds out a part of these: give one", "validate"
            )
        if share is not None and rows is not None:
            raise ConflictingArguments(
                "--validate-share and --validate-rows both hold out a part of the logs: give one", "validate_share"
            )
        between = None if rows is None else values.row_range(rows, "--validate-rows")
        others: list[Source] = [values.source(x) for x in validate or ()]
        if not others and share is None and between is None and self.project is not None:
            others = self.validation_logs()
            share, between = self.project.runs.validate_share, self.project.runs.validate_rows
        if share is not None and not 0 < share < 1:
            raise InvalidValue(f"--validate-share must lie between 0 and 1, got {share:g}", "validate_share")
        if others:
            # Rows of the log format are those to identify from; other logs are read whole, or the rows that are named.
            return self.read(), self.read(others, rows=between)
        if share is not None:
            return self.read().split(share)
        if between is not None:
            return self._hold_out(between), self.read(rows=between)
        return self.read(), None

    def held_out(self, validate: Sequence[str] | None, share: float | None, rows: str | None) -> HeldOut:
        """What `read_split` validates on: the options, or [runs] of the project file."""
        if validate or share is not None or rows is not None or self.project is None:
            return HeldOut([values.source(x) for x in validate or ()], share, rows)
        runs = self.project.runs
        between = (
            None if runs.validate_rows is None else ":".join("" if x is None else str(x) for x in runs.validate_rows)
        )
        return HeldOut(self.validation_logs(), runs.validate_share, between)

    def files(self, *more: Source) -> list[Path]:
        """Files that the command reads and that are there: robot, estimate, logs, and these logs."""
        named: list[str | Path] = [self.robot_file] if Path(self.robot_file).suffix else []
        named += [] if self.estimate_file is None else [self.estimate_file]
        for source in (*self.data, *more):
            named += [source] if isinstance(source, str) else source.values()
        found = (Path(x) for x in dict.fromkeys(named))
        return [path for path in found if path.is_file() or path.is_dir()]

    def _hold_out(self, rows: tuple[int | None, int | None]) -> Recording:
        """The recording without these rows of each log."""
        assert self.log is not None
        start, stop = rows[0] or 0, rows[1]
        if self.log.rows is not None:
            first, last = self.log.rows[0] or 0, self.log.rows[1]
            if (stop is None or first < stop) and (last is None or start < last):
                raise ConflictingArguments(
                    f"--validate-rows {start}:{'' if stop is None else stop} overlaps --rows "
                    f"{first}:{'' if last is None else last}: rows are either identified from or validated on",
                    "validate_rows",
                )
            return self.read()
        parts: list[Recording] = []
        for source in self.data:
            samples = self.read([source]).samples
            if start >= 2:
                parts.append(self.read([source], rows=(None, start)))
            if stop is not None and samples - stop >= 2:
                parts.append(self.read([source], rows=(stop, None)))
        if not parts:
            raise TooFew("--validate-rows leaves no rows to identify from", "validate_rows")
        total = parts[0]
        for part in parts[1:]:
            total = total + part
        return total

    def signals(self, **defaults: Any) -> Signals:
        """How the recording is cleaned: options over the project file over `defaults`."""
        from dynid.signals.settings import Signals

        project = {} if self.project is None else self.project.identify.signals()
        return Signals(**defaults | project | dict(self.cleaning))

    def chosen_by_user(self, method: Method | None = None) -> dict[str, str]:
        """What a method that chooses drive terms leaves as it is: friction that an option or the project file names.

        Nothing for a method without such an option. Rotor inertias that are asked for are in its model anyway.
        """
        friction, rotor_inertia = self.modelling.get("friction"), self.modelling.get("rotor_inertia")
        if self.project is not None:
            friction = self.project.robot.friction if friction is None else friction
            rotor_inertia = self.project.robot.rotor_inertia if rotor_inertia is None else rotor_inertia
        given = friction not in (None, "auto") or (friction is None and rotor_inertia is False)
        chooses = method is None or "friction" in method.option_names
        return {"friction": "given"} if given and chooses else {}

    def closed_loop(
        self,
        controller: Path | None,
        velocity_cutoff: float | None,
        coulomb_slope: str | None,
        integrator: str | None,
        *,
        sensors: Mapping[str, Any] | None = None,
    ) -> ClosedLoop | None:
        """The closed loop of the options over that of the project file; None where neither describes one."""
        from dynid.simulation.closed_loop import ClosedLoop
        from dynid.simulation.controller_files import load_controller
        from dynid.simulation.sensors import Sensors

        named: Path | Mapping[str, Any] | None = controller
        slope = None if coulomb_slope is None else values.coulomb_slope(coulomb_slope)
        if self.project is not None:
            loop = self.project.loop
            if named is None and loop.controller is not None:
                table = loop.controller
                named = table if isinstance(table, dict) else self.project.folder / table
            velocity_cutoff = velocity_cutoff if velocity_cutoff is not None else loop.velocity_cutoff
            slope = slope if slope is not None else loop.coulomb_slope
            integrator = integrator or loop.integrator
        if named is None and velocity_cutoff is not None:
            raise NotApplicable("--velocity-cutoff belongs to a closed loop: give its --controller", "velocity_cutoff")
        if named is None and slope is None and integrator is None:
            return None
        return ClosedLoop(
            controller=None if named is None else load_controller(named, self.robot),
            sensors=Sensors(velocity_cutoff=velocity_cutoff, **(sensors or {})),
            integrator=integrator or "auto",  # type: ignore[arg-type]
            coulomb_slope="auto" if slope is None else slope,
        )


def load_estimate(path: str | Path) -> Estimate:
    """A saved estimate with its robot and log format."""
    from dynid.identification.estimate import Estimate

    return Estimate.load(path)


def _absolute(source: Source) -> Any:
    if isinstance(source, str):
        return Path(source).resolve()
    return tuple(sorted((signal, Path(path).resolve()) for signal, path in source.items()))
