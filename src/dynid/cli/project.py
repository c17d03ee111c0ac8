"""dynid.toml, the project file: the robot, how its logs are read, which runs there are, and how it is identified."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from dynid.cli import values
from dynid.errors import DamagedFile, DynidError, InvalidValue, MissingFile, UnknownName, did_you_mean
from dynid.reading import read_toml
from dynid.recording.log_format import LogFormat

__all__ = [
    "PROJECT_FILE",
    "ActuatorsSection",
    "FleetSection",
    "GeometrySection",
    "IdentifySection",
    "LoopSection",
    "Project",
    "RobotSection",
    "RunsSection",
    "find_project",
    "load_project",
]

PROJECT_FILE = "dynid.toml"
RunFile = str | dict[str, str]
_Mass = Annotated[float, Field(gt=0.0, allow_inf_nan=False)]


class _Section(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class RobotSection(_Section):
    """[robot]: the model file and how it is modelled.

    Attributes
    ----------
    file : str
        URDF, MJCF, SDF or TOML file, relative to the project file, or the name of a built-in robot.
    friction : str, dict of str to str, or None
        Friction law such as "viscous+coulomb+offset", for all joints or per joint; None keeps the file's own.
        "auto": method auto chooses it per joint, other methods take "viscous+coulomb+offset".
    rotor_inertia : bool, list of str, or None
        Whether rotor inertias are modelled, or the joints that have one; None keeps the file's own.
    drives : str, dict of str to str, or None
        Servo of the library whose armature and friction all joints have, or servos by regular expressions of joint
        names.
    effects : list of str
        Effects of the drives beside friction, as in --effect: "load-friction", "ripple=joint2:30".
    lock : list of str or dict of str to float
        Joints (names or patterns) that are held at zero, or at these positions in rad or m.
    gravity : tuple of 3 floats or None
        Gravity in the base frame, m/s2.
    base : {"fixed", "floating", "instrumented"} or None
        How the robot stands; None keeps the file's own.
    snap_angles : bool or None
        Whether angles such as 1.5708 are made exact multiples of pi/2; None only names them.
    ignore_loops : bool or None
        Whether the closed loops of the file are left out.
    inertia_from : {"collision", "visual"} or None
        Shapes that give the inertia of links without one (URDF and SDF).
    density, shape_mass : float or None
        Density of these shapes (kg/m3), or the mass of all links with inertia from shapes together (kg).
    mass : float or None
        Mass of the robot's moving bodies together (kg), from scales or the data sheet.
    link_mass : dict of str to float
        Masses of single links (kg); wildcards mean each link that matches.
    """

    file: str
    friction: str | dict[str, str] | None = None
    rotor_inertia: bool | list[str] | None = None
    drives: str | dict[str, str] | None = None
    effects: list[str] = Field(default_factory=list)
    lock: list[str] | dict[str, float] = Field(default_factory=list)
    gravity: tuple[float, float, float] | None = None
    base: Literal["fixed", "floating", "instrumented"] | None = None
    snap_angles: bool | None = None
    ignore_loops: bool | None = None
    inertia_from: Literal["collision", "visual"] | None = None
    density: float | None = None
    shape_mass: float | None = None
    mass: _Mass | None = None
    link_mass: dict[str, _Mass] = Field(default_factory=dict)


class RunsSection(_Section):
    """[runs]: the logs. Each entry is a file, a pattern such as run*.csv, or a table with one file per signal.

    Attributes
    ----------
    identify : list of str or dict
        Logs that the parameters are identified from.
    validate : list of str or dict
        Logs of other motion, on which the estimate is validated. Spelled `validate` in the file.
    validate_share : float or None
        Share of each run, counted from its end, that is held out for validation.
    validate_rows : str, tuple of 2 ints or None
        Rows (from 0, end excluded; also "4000:6000") for validation: of the `validate` logs, or, without any, of the
        `identify` logs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    identify: list[RunFile] = Field(default_factory=list)
    validation: list[RunFile] = Field(default_factory=list, alias="validate")
    validate_share: float | None = Field(default=None, gt=0.0, lt=1.0)
    validate_rows: tuple[int | None, int | None] | None = None

    @field_validator("validate_rows", mode="before")
    @classmethod
    def _read_rows(cls, value: Any) -> Any:
        return values.row_range(value, "runs.validate_rows") if isinstance(value, str) else value


class IdentifySection(_Section):
    """[identify]: the method and its settings, named as the options of `dynid identify`.

    Attributes
    ----------
    method : str or None
        Estimation method; None for "auto".
    cutoff : float, "auto" or "none"
        Low-pass of positions in Hz.
    decimate : list of int, "auto" or "none"
        Factors of the parallel decimation.
    min_velocity : float, list of float or str
        Lowest velocity of the rows that are used, rad/s or m/s, or a percentage such as "1%".
    measured_velocity, measured_acceleration : bool or None
        Whether recorded velocities and accelerations are used instead of derivatives.
    trim : float
        Seconds left out at both ends of a run.
    delay : float
        Seconds by which torques lag behind positions.
    constraints : {"full", "semi"} or None
        Physical consistency that methods "auto" and "feasible" impose.
    prior_weight : float, "cv" or None
        Weight of the a-priori parameters in method "feasible".
    box : bool or None
        Whether methods "auto" and "feasible" keep the bodies inside the plausible box; None for True.
    output : str or None
        File that `dynid identify` writes, relative to the project file; `dynid validate` and `dynid report` read it.
    """

    method: str | None = None
    cutoff: float | Literal["auto", "none"] | None = None
    decimate: list[int] | Literal["auto", "none"] | None = None
    min_velocity: float | list[float] | str | None = None
    measured_velocity: bool | None = None
    measured_acceleration: bool | None = None
    trim: float | None = None
    delay: float | None = None
    constraints: str | None = None
    prior_weight: float | Literal["cv"] | None = None
    box: bool | None = None
    output: str | None = None

    def signals(self) -> dict[str, Any]:
        """Fields of `Signals` that are given."""
        out: dict[str, Any] = {}
        for name in (
            "cutoff",
            "decimate",
            "min_velocity",
            "measured_velocity",
            "measured_acceleration",
            "trim",
            "delay",
        ):
            value = getattr(self, name)
            if value is not None:
                out[name] = tuple(value) if isinstance(value, list) else value
        if out.get("cutoff") == "none":
            out["cutoff"] = None
        if out.get("decimate") == "none":
            out["decimate"] = ()
        return out


class LoopSection(_Section):
    """[loop]: the closed loop, for methods that simulate it.

    Attributes
    ----------
    controller : str, dict or None
        TOML file of the controller, relative to the project file, or its table itself.
    velocity_cutoff : float or None
        Low-pass in Hz of the velocities that the controller measures.
    coulomb_slope : float, tuple of float, "auto", "exact" or None
        Slope of smooth Coulomb friction in s/rad or s/m, one number or one per joint; "auto" by default.
    integrator : str or None
        auto, rk4, semi-implicit, dopri5 or implicit.
    """

    controller: str | dict[str, Any] | None = None
    velocity_cutoff: float | None = None
    coulomb_slope: float | tuple[float, ...] | Literal["auto", "exact"] | None = None
    integrator: str | None = None


class ActuatorsSection(_Section):
    """[actuators]: the law of the actuators and what is unknown, for `dynid actuators`.

    Attributes
    ----------
    law : str or None
        "pd:KP,KD", "pd" (gains are unknown too), "file" (the position actuators of the MJCF file), "torque", or a TOML
        file relative to the project file.
    control_rate : float or None
        Frequency in Hz at which the law is computed; None where it acts continuously.
    hold : {"zero", "linear"} or None
        Command between two rows of the log.
    unknown : list of str or None
        Unknown quantities as in --unknown, such as "armature" or "friction=shared".
    output : str or None
        File for law, values and errors (.toml or .json), relative to the project file.
    export : list of str
        Simulators whose files are written beside the output.
    draws : int or None
        Draws whose ranges are written beside the output.
    """

    law: str | None = None
    control_rate: float | None = Field(default=None, gt=0.0)
    hold: Literal["zero", "linear"] | None = None
    unknown: list[str] | None = None
    output: str | None = None
    export: list[str] = Field(default_factory=list)
    draws: int | None = Field(default=None, gt=0)


class FleetSection(_Section):
    """[fleet]: the recordings of many units over many dates, for `dynid fleet`.

    Attributes
    ----------
    folder : str or None
        Folder of recordings as robot=NAME/date=YYYY-MM-DD/..., relative to the project file.
    output : str or None
        File for the table of all estimates (.parquet or .csv), relative to the project file.
    report : str or None
        HTML file for the page with the verdict, relative to the project file.
    false_alarms : float or None
        Probability of any false alarm in the whole fleet.
    unit_gains, skip_bad : bool or None
        Whether the torque gain of every unit is identified, and recordings that cannot be used are left out.
    """

    folder: str | None = None
    output: str | None = None
    report: str | None = None
    false_alarms: float | None = Field(default=None, gt=0.0, lt=1.0)
    unit_gains: bool | None = None
    skip_bad: bool | None = None


class GeometrySection(_Section):
    """[geometry]: where the joints really are, for `dynid geometry`.

    Attributes
    ----------
    frame : str or None
        Link or frame that is measured.
    measurements : list of str
        Files and folders of measurements, relative to the project file.
    distances : dict of str to float
        Known distances in m between sockets, each as "hole_0,hole_1".
    units : dict of str to str
        Units of measurements: q, slide, points, lengths, rotation.
    joints : list of str
        Joint columns in the robot's order.
    places : {"folder", "file", "none"} or None
        What is one place, which validation leaves out as a whole.
    surfaces : dict of str to str
        Kind of each touched surface: plane, line or point.
    in_hand : bool or None
        Whether the sensor of poses is on the robot.
    noise : float or None
        Standard deviation of each coordinate that is measured, m.
    bodies : str or None
        Robot file with the masses that load the joints, relative to the project file, or a built-in name.
    output : str or None
        File of the calibration (.json), relative to the project file.
    report : str or None
        HTML file for the page with the verdict, relative to the project file.
    """

    frame: str | None = None
    measurements: list[str] = Field(default_factory=list)
    distances: dict[str, Annotated[float, Field(gt=0.0, allow_inf_nan=False)]] = Field(default_factory=dict)
    units: dict[str, str] = Field(default_factory=dict)
    joints: list[str] = Field(default_factory=list)
    places: Literal["folder", "file", "none"] | None = None
    surfaces: dict[str, str] = Field(default_factory=dict)
    in_hand: bool | None = None
    noise: float | None = Field(default=None, gt=0.0)
    bodies: str | None = None
    output: str | None = None
    report: str | None = None


class Project(_Section):
    """A project file that was read.

    Attributes
    ----------
    path : Path
        The file; paths in it are relative to its folder.
    robot, log, runs, identify, loop, actuators, fleet, geometry
        Its sections.
    """

    path: Path
    robot: RobotSection
    log: LogFormat = Field(default_factory=LogFormat)
    runs: RunsSection = Field(default_factory=RunsSection)
    identify: IdentifySection = Field(default_factory=IdentifySection)
    loop: LoopSection = Field(default_factory=LoopSection)
    actuators: ActuatorsSection = Field(default_factory=ActuatorsSection)
    fleet: FleetSection = Field(default_factory=FleetSection)
    geometry: GeometrySection = Field(default_factory=GeometrySection)

    @property
    def folder(self) -> Path:
        """The folder that paths are relative to."""
        return self.path.parent

    @property
    def robot_file(self) -> str:
        """Path of the robot's file, or the name of a built-in robot."""
        file = self.robot.file
        return str(self.folder / file) if Path(file).suffix else file

    @property
    def output(self) -> Path | None:
        """File of the estimate."""
        return self.beside(self.identify.output)

    def beside(self, name: str | None) -> Path | None:
        """The path of a file or folder that the project file names."""
        return None if name is None else self.folder / name

    def logs(self, key: Literal["identify", "validate"]) -> list[str | dict[str, Path]]:
        """The logs of [runs], patterns expanded in alphabetical order."""
        out: list[str | dict[str, Path]] = []
        for entry in self.runs.identify if key == "identify" else self.runs.validation:
            if isinstance(entry, dict):
                out.append({signal: self.folder / file for signal, file in entry.items()})
                continue
            found = [self.folder / entry]
            if any(c in entry for c in "*?[") and not found[0].exists():
                found = sorted(self.folder.glob(entry))
            if not found:
                raise MissingFile(f"{self.path}: no file fits '{entry}' of runs.{key}", key)
            out += map(str, found)
        return out


def find_project(given: Path | None) -> Project | None:
    """The project file that is named, or dynid.toml of the current folder; None if there is none."""
    if given is None and not Path(PROJECT_FILE).is_file():
        return None
    path = Path(PROJECT_FILE) if given is None else given
    return load_project(path / PROJECT_FILE if path.is_dir() else path)


def load_project(path: str | Path) -> Project:
    """Read a project file.

    Parameters
    ----------
    path : str or Path
        The file, usually dynid.toml.

    Returns
    -------
    Project
        Its sections, checked.

    Raises
    ------
    DataError
        If the file cannot be read, is not TOML, or has an unknown key or a wrong value; the message names file and key.
    """
    path = Path(path)
    try:
        data = read_toml(path)
    except FileNotFoundError:
        raise MissingFile(f"there is no project file '{path}': write one with dynid init", "project") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MissingFile(f"cannot read the project file '{path}': {error}", "project") from None
    except tomllib.TOMLDecodeError as error:
        raise DamagedFile(f"the project file '{path}' is not TOML: {error}") from None
    if "path" in data:
        raise UnknownName(
            "'path' is unknown: use robot, log, runs, identify, loop, actuators, fleet and geometry", where=path
        )
    try:
        log = LogFormat.from_toml({"log": data.pop("log", {})})
    except DynidError as error:
        raise error.in_words(str).at(f"{path}: [log]") from None
    try:
        return Project(path=path, log=log, **data)
    except ValidationError as error:
        raise InvalidValue(f"{_plain(error)}", where=path) from None
    except DynidError as error:
        raise error.at(path) from None


def _plain(error: ValidationError) -> str:
    """The first problem in one sentence that names the key."""
    problem = error.errors()[0]
    where = [str(x) for x in problem["loc"]]
    if problem["type"] == "extra_forbidden":
        model: Any = Project
        for name in where[:-1]:
            model = model.model_fields[name].annotation
        known = [field.alias or name for name, field in model.model_fields.items() if name != "path"]
        return f"{'.'.join(where)} is unknown: use {', '.join(known)}{did_you_mean(where[-1], known)}"
    if problem["type"] == "missing":
        return f"{'.'.join(where)} is missing"
    # Beyond section and key the location names the alternatives of a type.
    message = problem["msg"][0].lower() + problem["msg"][1:]
    return f"{'.'.join(where[:2])}: {message}, got {problem['input']!r:.60}"
