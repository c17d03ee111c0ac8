"""Samples that packages of ROS write: robot_calibration, easy_handeye2 and MoveIt's hand-eye calibration.

robot_calibration: documents with joint_states (name, position) and observations (sensor_name, features with a
header.frame_id and a point), as `ros2 topic echo` writes CalibrationData. easy_handeye2: samples, each with the
transforms robot and tracking. MoveIt: a list of effector_wrt_world and object_wrt_sensor, 16 numbers each, and a second
file with joint_names and joint_values.

The forms are those of robot_calibration_msgs/CalibrationData and Observation, easy_handeye2_msgs/SampleList, and of the
buttons "Save samples" and "Save joint states" of moveit_calibration.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.frames import frame_on_link
from dynid.errors import (
    DamagedFile,
    MissingData,
    MissingFile,
    MissingJoints,
    ModelError,
    NotApplicable,
    TooFew,
    WrongFormat,
)
from dynid.geometry.formats.joints import positions_of
from dynid.geometry.formats.piece import Piece, Settings, carrying
from dynid.geometry.formats.placements import of_matrix, of_transform, sensor_in_hand
from dynid.limits import file_limits
from dynid.reading import read_json, read_text
from dynid.recording.files import kind_of
from dynid.recording.table import shown

__all__ = ["ENDINGS", "JointStates", "is_joint_states", "joint_states_of", "read_plain", "read_samples"]

Array = NDArray[np.float64]

ENDINGS = (".yaml", ".yml", ".json")
# Joints that differ by less than this between samples stand still (rad or m); points that do so are known ones (m).
_STILL, _FIXED = 1e-3, 1e-9


@dataclass(frozen=True, eq=False)
class JointStates:
    """Joint positions in a file of their own.

    Attributes
    ----------
    names : tuple of str
        Names of the joints.
    values : ndarray, shape (N, k)
        Positions as in the file.
    file : str
        Name of the file.
    """

    names: tuple[str, ...]
    values: Array
    file: str


def read_plain(path: Path) -> Any:
    """Content of a YAML or JSON file, a list of them where a file holds several documents."""
    try:
        found = [read_json(path)] if kind_of(path) == ".json" else _documents(read_text(path), path.name)
    except FileNotFoundError:
        raise MissingFile(f"there is no file '{path}'") from None
    except OSError as error:
        raise MissingFile(f"'{path}' cannot be read: {error.strerror or error}") from None
    except (UnicodeDecodeError, ValueError, RecursionError) as error:
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise DamagedFile(f"it is neither YAML nor JSON: {reason:.120}", where=path.name) from None
    if not found:
        raise MissingData("it is empty", where=path.name)
    return found[0] if len(found) == 1 else found


def _documents(text: str, file: str) -> list[Any]:
    """Documents of a YAML text; ValueError for everything that is wrong with it."""
    import yaml

    loader, depth, most = getattr(yaml, "CSafeLoader", yaml.SafeLoader), 0, file_limits().nesting
    try:
        for event in yaml.parse(text, Loader=loader):
            # Aliases could make a small file a large one; none of these packages writes them.
            if isinstance(event, yaml.AliasEvent):
                raise DamagedFile("it has YAML aliases, which are not read: write the values themselves", where=file)
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > most:
                raise ValueError(f"it is nested more than {most} levels deep, the limit DYNID_MAX_NESTING")
        return [x for x in yaml.load_all(text, Loader=loader) if x is not None]
    except yaml.YAMLError as error:
        raise ValueError(str(error)) from None


def is_joint_states(content: Any) -> bool:
    """Whether a file has nothing but joint positions, as MoveIt writes them."""
    return isinstance(content, Mapping) and "joint_names" in content and "joint_values" in content


def joint_states_of(content: Mapping[str, Any], file: str) -> JointStates:
    """Joint positions of a file of their own."""
    names = content["joint_names"]
    values = _numbers(content["joint_values"], "joint_values", file)
    if not isinstance(names, list) or values.ndim != 2 or values.shape[1] != len(names):
        raise DamagedFile("joint_values does not have one number per name in joint_names", where=file)
    return JointStates(tuple(map(str, names)), values, file)


def read_samples(content: Any, stem: str, file: str, states: Sequence[JointStates], settings: Settings) -> list[Piece]:
    """What samples tell of sensors.

    Parameters
    ----------
    content : object
        Content of the file.
    stem, file : str
        Name of the file without and with its ending.
    states : sequence of JointStates
        Joint positions of files beside it, for samples that have none; of several those of as many postures count.
    settings : Settings
        What was said, and the notes.

    Raises
    ------
    WrongFormat
        If it is none of the known forms.
    MissingJoints
        If samples have poses of the robot and no joint positions.
    """
    samples = content.get("samples", content) if isinstance(content, Mapping) else content
    samples = [samples] if isinstance(samples, Mapping) else samples
    if not isinstance(samples, list) or not samples or not all(isinstance(x, Mapping) for x in samples):
        raise WrongFormat("it holds no list of samples", where=file)
    if all("observations" in x for x in samples):
        return _calibration_data(samples, stem, file, settings)
    for pair, read in ((("effector_wrt_world", "object_wrt_sensor"), of_matrix), (("robot", "tracking"), of_transform)):
        if all(key in x for x in samples for key in pair):
            robot, seen = (
                np.array([read(x[key], f"{file}, sample {k + 1}") for k, x in enumerate(samples)]) for key in pair
            )
            q = _own_joints(samples, file, states, settings)
            in_hand = sensor_in_hand(robot, seen, settings, file)
            return [Piece("poses", q, {"poses": seen}, stem, {"in_hand": in_hand})]
    raise WrongFormat(
        "samples have neither observations (robot_calibration), robot and tracking (easy_handeye2), nor "
        "effector_wrt_world and object_wrt_sensor (MoveIt)",
        where=file,
    )


def _own_joints(
    samples: Sequence[Mapping[str, Any]], file: str, states: Sequence[JointStates], settings: Settings
) -> Array:
    """Joint positions of hand-eye samples: their own, or those of a file beside them."""
    key = next((k for k in ("joint_states", "joint_state", "joints") if all(k in x for x in samples)), None)
    if key is not None:
        return _joints([x[key] for x in samples], file, settings)
    if not states:
        raise MissingJoints(
            "samples have poses of the robot and no joint positions: they show where a camera sits and no errors of "
            "joints; give the joint positions of the same samples too (MoveIt: Save joint states)",
            where=file,
        )
    mine = next((s for s in states if len(s.values) == len(samples)), states[0])
    if len(mine.values) != len(samples):
        raise MissingData(f"{mine.file} has {len(mine.values)} postures for {len(samples)} samples", where=file)
    at = _places(mine.names, mine.file, settings)
    columns = [mine.names.index(name) for name in at.values()]
    return positions_of(mine.values[:, columns], tuple(at), settings, mine.file)


def _joints(states: Sequence[Any], file: str, settings: Settings) -> Array:
    """Positions (N, n) of sensor_msgs JointState messages."""
    first: dict[int, str] = {}
    rows = []
    for k, state in enumerate(states):
        where = f"{file}, sample {k + 1}"
        if not isinstance(state, Mapping) or not isinstance(state.get("name"), list):
            raise DamagedFile("its joint states have no list of names", where=where)
        values = _numbers(state.get("position"), "position", where)
        names = list(map(str, state["name"]))
        if values.shape != (len(names),):
            raise DamagedFile(f"its joint states have {len(names)} names and {values.size} positions", where=where)
        mine = _places(names, where, settings)
        first = first or mine
        if set(mine) != set(first):
            raise MissingData("it has positions of other joints than the first sample", where=where)
        rows.append([values[names.index(first[i])] for i in first])
    return positions_of(np.array(rows), tuple(first), settings, file)


def _places(names: Sequence[str], file: str, settings: Settings) -> dict[int, str]:
    """Names of joints by their place among the independent ones."""
    known = settings.robot.coordinates
    missing = [known[k] for k in settings.carrying if known[k] not in names]
    if missing:
        raise MissingJoints(
            f"there are no positions of {shown(missing)}, which move '{settings.frame}': there are {shown(names)}",
            missing,
            where=file,
        )
    return {k: name for k, name in enumerate(known) if name in names}


def _numbers(given: Any, what: str, where: str) -> Array:
    try:
        found = np.array(given, dtype=float)
    except (TypeError, ValueError):
        raise DamagedFile(f"{what} are not numbers", where=where) from None
    if not np.isfinite(found).all():
        raise DamagedFile(f"{what} are not all numbers", where=where)
    return found


# -- robot_calibration ---------------------------------------------------------------------------------


def _calibration_data(samples: Sequence[Mapping[str, Any]], stem: str, file: str, settings: Settings) -> list[Piece]:
    """Points that sensors of robot_calibration saw; points that never change are those of the target on the robot."""
    q = _joints([x.get("joint_states") for x in samples], file, settings)
    seen: dict[str, dict[int, tuple[str, Array]]] = {}
    for k, sample in enumerate(samples):
        observations = sample["observations"] or ()
        if not isinstance(observations, list | tuple):
            raise DamagedFile("its observations are no list", where=f"{file}, sample {k + 1}")
        for observation in observations:
            name, frame, points = _observation(observation, f"{file}, sample {k + 1}")
            if len(points):
                seen.setdefault(name, {})[k] = (frame, points)
    pieces, known = [], []
    for name, rows in seen.items():
        counts = {len(points) for _, points in rows.values()}
        if len(counts) > 1:
            raise MissingData(
                f"sensor '{name}' saw {min(counts)} to {max(counts)} features: keep samples that show all", where=file
            )
        points = np.full((len(samples), counts.pop(), 3), np.nan)
        for k, (_, mine) in rows.items():
            points[k] = mine
        moved = np.nanmax(points, axis=0) - np.nanmin(points, axis=0)
        if len(rows) > 1 and moved.max() < _FIXED:
            known.append(name)
            continue
        _check_sensor_stands(name, next(iter(rows.values()))[0], q, file, settings)
        pieces.append((name, points))
    if not pieces:
        raise TooFew("no sensor saw features that move between the samples", where=file)
    if known:
        settings.note(f"features of {shown(known)} never change, they are the target on '{settings.frame}'", file)
    out = []
    for name, points in pieces:
        some = np.isfinite(points).all((1, 2))
        names = tuple(f"feature {m + 1}" for m in range(points.shape[1]))
        out.append(Piece("points", q[some], {"points": points[some]}, stem, {"markers": names}, None, name))
    return out


def _observation(given: Any, where: str) -> tuple[str, str, Array]:
    """Name of the sensor, frame, and points (M, 3) of an observation."""
    try:
        features = given["features"] or []
        points = np.array([[float(f["point"][a]) for a in "xyz"] for f in features]).reshape(-1, 3)
        frame = str(features[0].get("header", {}).get("frame_id", "")) if features else ""
        return str(given["sensor_name"]), frame, points
    except (KeyError, TypeError, ValueError, AttributeError):
        raise DamagedFile("an observation has no sensor_name and features with points", where=where) from None


def _check_sensor_stands(sensor: str, frame: str, q: Array, file: str, settings: Settings) -> None:
    """Refuse a sensor that the robot moves: its place would be another one at every posture."""
    try:
        frame_on_link(settings.robot, frame)
    except ModelError:
        settings.note(f"the robot has no frame '{frame}': sensor '{sensor}' counts as standing still", file)
        return
    moving = [k for k in carrying(settings.robot, frame) if np.ptp(q[:, k]) > _STILL]
    if moving:
        names = shown([settings.robot.coordinates[k] for k in moving])
        raise NotApplicable(
            f"sensor '{sensor}' sees points in '{frame}', which {names} moved between the samples: use samples where "
            "they stand still",
            where=file,
        )
