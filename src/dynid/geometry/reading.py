"""Measurements from files: tables, folders of them, and samples that packages of ROS write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray

from dynid.errors import Duplicate, MissingData, MissingFile, UnknownName, WrongFormat, did_you_mean, one_of
from dynid.geometry.formats.columns import read_table
from dynid.geometry.formats.piece import Piece, Settings
from dynid.geometry.formats.samples import ENDINGS, is_joint_states, joint_states_of, read_plain, read_samples
from dynid.geometry.measurements.lengths import Lengths
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.measurements.points import Points
from dynid.geometry.measurements.poses import Poses
from dynid.geometry.measurements.sockets import Sockets
from dynid.geometry.measurements.touches import Touches
from dynid.markup import HtmlSummary
from dynid.recording.files import kind_of, stem_of
from dynid.recording.formats import is_log
from dynid.recording.table import shown
from dynid.robot.model import Robot

__all__ = ["PLACES", "ReadMeasurements", "read_measurements"]

Places = Literal["folder", "file", "none"]

PLACES: tuple[Places, ...] = ("folder", "file", "none")
# Letters that names of files in a folder may begin with; others, such as those that begin with a dot, are not read.
_NOT_READ = (".", "_")


@dataclass(frozen=True, eq=False)
class ReadMeasurements(Sequence[Measurement], HtmlSummary):
    """Measurements from files, to be given to `calibrate_geometry` as they are.

    Attributes
    ----------
    measurements : tuple of Measurement
        One per sensor.
    notes : tuple of str
        What was guessed: units, order of joints, what a column is.
    files : tuple of Path
        Files that were read.
    """

    measurements: tuple[Measurement, ...]
    notes: tuple[str, ...]
    files: tuple[Path, ...]

    @overload
    def __getitem__(self, index: int) -> Measurement: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Measurement, ...]: ...

    def __getitem__(self, index: int | slice) -> Measurement | tuple[Measurement, ...]:
        """A measurement by its number, or some of them."""
        return self.measurements[index]

    def __len__(self) -> int:
        """Number of measurements."""
        return len(self.measurements)

    def summary(self) -> str:
        """One line per sensor, then what was guessed."""
        lines = []
        for m in self.measurements:
            places = len(set(m.place.tolist()))
            at = f" at {places} places" if places > 1 else ""
            lines.append(f"{m.name}: {len(m.q)} postures of {m.frame}{at} ({m.kind})")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def read_measurements(
    source: str | Path | Sequence[str | Path],
    robot: Robot,
    *,
    frame: str,
    distances: Mapping[tuple[str, str], float] | None = None,
    units: Mapping[str, str] | None = None,
    joints: Sequence[str] = (),
    places: Places | None = None,
    surfaces: Mapping[str, str] | None = None,
    in_hand: bool | None = None,
    noise: float | None = None,
) -> ReadMeasurements:
    """Read geometric measurements from files or folders.

    Tables have a row per posture: joint positions in columns with the joints' names, and beside them x1, y1, z1, ... or
    NAME_x, NAME_y, NAME_z (points), x, y, z with qx, qy, qz, qw or roll, pitch, yaw (poses), `socket`, `surface`,
    `length` with `anchor`, and `place`. A table without names holds joint positions alone: its file is the socket, its
    folder the place. YAML and JSON files are samples of robot_calibration, easy_handeye2 or MoveIt.

    Parameters
    ----------
    source : path or sequence of path
        Files, and folders whose files are all read.
    robot : Robot
        The robot.
    frame : str
        Link or frame that is measured.
    distances : mapping of (str, str) to float, optional
        Known distances between sockets (m), at every place that has both.
    units : mapping of str to str, optional
        Units, guessed where they are not given: q (rad, deg), slide (m, mm), points and lengths (m, cm, mm), rotation
        (rad, deg).
    joints : sequence of str, optional
        Joint columns by name or number (from 0) in the robot's order, of all joints or of those that move the frame;
        found by name by default.
    places : {"folder", "file", "none"}, optional
        What is one place, left out of the fit as a whole in validation, where files do not tell. Default: folders where
        there are several, else files.
    surfaces : mapping of str to str, optional
        Kind of each touched surface: plane, line or point. Default: by its name.
    in_hand : bool, optional
        Whether the sensor of poses is on the robot; found from the rotations by default.
    noise : float, optional
        Standard deviation of each coordinate (m), for all sensors but those of poses; that of each kind by default.

    Returns
    -------
    ReadMeasurements
        A sequence of measurements, with notes on what was guessed.

    Raises
    ------
    MissingFile, MissingData, WrongFormat
        If a file is not there, measures nothing, or is of another form.
    MissingJoints
        If joints that move the frame have no positions.
    InvalidValue
        If a stated unit cannot be that of the values.
    UnknownName
        If a stated column, socket or unit does not exist.

    Examples
    --------
    >>> import dynid, pathlib, tempfile
    >>> from dynid.geometry import read_measurements
    >>> text = "joint1,joint2,x1,y1,z1\\n" + "0.1,0.2,0.5,0.1,0\\n0.9,0.4,0.2,0.6,0\\n0.5,-1,0.8,-0.1,0\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder) / "tracker.csv"
    ...     _ = file.write_text(text)
    ...     found = read_measurements(file, dynid.load_robot("twolink"), frame="link2")
    >>> found[0].kind, found[0].points.shape
    ('points', (3, 1, 3))
    """
    if places is not None and places not in PLACES:
        raise UnknownName(f"a place is a {one_of(PLACES)}, not '{places}'{did_you_mean(places, PLACES)}", "places")
    settings = Settings(robot, frame, tuple(joints), dict(units or {}), in_hand, dict(surfaces or {}))
    files = _files(source)
    pieces = list(_pieces(files, settings))
    if len({path for path, _ in pieces}) > 1 and len(files) > _given(source):
        settings.note("files of a folder count as measured in the order of their names; name them in another order")
    joined = [_joined(same, places, settings) for same in _same(pieces)]
    used: set[str] = set()
    measurements = tuple(_measurement(piece, distances or {}, noise, settings, used) for piece in joined)
    return ReadMeasurements(measurements, settings.notes, tuple(files))


def _given(source: str | Path | Sequence[str | Path]) -> int:
    """Number of files and folders that are named."""
    return 1 if isinstance(source, str | Path) else len(source)


def _files(source: str | Path | Sequence[str | Path]) -> list[Path]:
    """All files, those of folders in alphabetical order."""
    given = [Path(source)] if isinstance(source, str | Path) else [Path(x) for x in source]
    if not given:
        raise MissingFile("no file of measurements is given", "source")
    out: list[Path] = []
    for path in given:
        if not path.is_dir():
            out.append(path)
            continue
        inside = sorted(p for p in path.rglob("*") if _is_read(p.relative_to(path)) and p.is_file())
        found = [p for p in inside if is_log(p) or kind_of(p) in ENDINGS]
        if not found:
            raise MissingFile(f"folder '{path}' has no file of measurements", "source")
        out += found
    twice = next((p for k, p in enumerate(out) if p in out[:k]), None)
    if twice is not None:
        raise Duplicate(f"'{twice}' is given twice", "source")
    return out


def _is_read(path: Path) -> bool:
    return not any(part.startswith(_NOT_READ) for part in path.parts)


def _pieces(files: Sequence[Path], settings: Settings) -> Iterator[tuple[Path, Piece]]:
    """What files tell; joint positions in files of their own go with the samples beside them."""
    plain = {path: read_plain(path) for path in files if kind_of(path) in ENDINGS}
    states = [joint_states_of(x, path.name) for path, x in plain.items() if is_joint_states(x)]
    for path in files:
        if path in plain:
            if is_joint_states(plain[path]):
                if len(plain) == len(states):
                    raise MissingData("it has joint positions and nothing that was measured", where=path.name)
                continue
            yield from ((path, p) for p in read_samples(plain[path], stem_of(path), path.name, states, settings))
        elif is_log(path):
            yield from ((path, p) for p in read_table(path, settings))
        else:
            raise WrongFormat(
                f"'{path.name}' is neither a table (.csv, .parquet, ...) nor samples ({', '.join(ENDINGS)})", "source"
            )


def _same(pieces: Sequence[tuple[Path, Piece]]) -> list[list[tuple[Path, Piece]]]:
    """Pieces of one sensor together: of one kind, with the same name, markers and mounting."""
    groups: dict[str, list[tuple[Path, Piece]]] = {}
    for path, piece in pieces:
        shared = {k: v for k, v in piece.shared.items() if k != "surfaces"}
        groups.setdefault(repr((piece.kind, piece.sensor, shared)), []).append((path, piece))
    return list(groups.values())


def _joined(same: Sequence[tuple[Path, Piece]], places: Places | None, settings: Settings) -> Piece:
    """One piece of all files of a sensor, with places."""
    folders = {path.parent for path, _ in same}
    by: Places = places or ("folder" if len(folders) > 1 else "file" if len(same) > 1 else "none")
    # Sockets in files of their own are at one place unless folders tell otherwise.
    if places is None and by == "file" and same[0][1].kind == "sockets":
        by = "none"
    if by != "none" and any(piece.place is None for _, piece in same):
        settings.note(f"every {by} is a place of its own, which validation leaves out as a whole")
    label = {"folder": lambda p: p.parent.name, "file": stem_of, "none": lambda p: ""}[by]
    place = [
        piece.place if piece.place is not None else np.full(len(piece.q), label(path), dtype=object)
        for path, piece in same
    ]
    first = same[0][1]
    rows = {key: np.concatenate([piece.rows[key] for _, piece in same]) for key in first.rows}
    shared = dict(first.shared)
    if "surfaces" in shared:
        shared["surfaces"] = {name: kind for _, piece in same for name, kind in piece.shared["surfaces"].items()}
    joined: NDArray[np.str_] = np.concatenate(place).astype(str)
    return replace(first, q=np.concatenate([piece.q for _, piece in same]), rows=rows, shared=shared, place=joined)


def _measurement(
    piece: Piece, distances: Mapping[tuple[str, str], float], noise: float | None, settings: Settings, used: set[str]
) -> Measurement:
    """The measurement that a piece is."""
    assert piece.place is not None
    name = piece.sensor or piece.kind
    name = name if name not in used else f"{piece.file} {name}"
    used.add(name)
    common: dict[str, Any] = {"q": piece.q, "frame": settings.frame, "name": name, "place": piece.place}
    if noise is not None and piece.kind != "poses":
        common["noise"] = noise
    if piece.kind == "points":
        return Points(**common, **piece.rows, **piece.shared)
    if piece.kind == "sockets":
        return _sockets(piece, distances, common, settings)
    kinds = {"poses": Poses, "touches": Touches, "lengths": Lengths}
    given = kinds[piece.kind](**common, **piece.rows, **piece.shared)
    if piece.kind == "lengths":
        settings.note("anchors of lengths are unknown, their positions are found from the lengths")
    return given


def _sockets(
    piece: Piece, distances: Mapping[tuple[str, str], float], common: dict[str, Any], settings: Settings
) -> Measurement:
    """Sockets, which at every place are others."""
    assert piece.place is not None
    names = piece.rows["socket"]
    several = len(set(piece.place.tolist())) > 1
    full = np.array([f"{p}/{s}" if several else s for p, s in zip(piece.place, names, strict=True)])
    known: dict[tuple[str, str], float] = {}
    for (a, b), distance in distances.items():
        pairs = [(a, b)] if not several else [(f"{p}/{a}", f"{p}/{b}") for p in sorted(set(piece.place.tolist()))]
        there = [pair for pair in [*pairs, (a, b)] if set(pair) <= set(full.tolist())]
        if not there:
            every = sorted(set(names.tolist()))
            raise UnknownName(
                f"no place has both sockets '{a}' and '{b}' of a distance: the sockets are {shown(every)}", "distances"
            )
        known |= dict.fromkeys(there, distance)
    if not known:
        settings.note("no distance between sockets is given: the size of the robot is that of its file")
    return Sockets(**common, socket=full, distances_known=known)
