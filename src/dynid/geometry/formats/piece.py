"""What one file tells of one sensor, before files are joined to measurements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.frames import frame_on_link, frame_placement
from dynid.errors import InvalidValue, UnknownName, did_you_mean, named, one_of
from dynid.robot.model import Robot

__all__ = ["UNITS", "Piece", "Settings", "carrying"]

Array = NDArray[np.float64]

# Units that files may use, by what they are of, with their factors to SI.
UNITS: dict[str, dict[str, float]] = {
    "q": {"rad": 1.0, "deg": np.pi / 180},
    "slide": {"m": 1.0, "mm": 1e-3},
    "points": {"m": 1.0, "cm": 1e-2, "mm": 1e-3},
    "lengths": {"m": 1.0, "cm": 1e-2, "mm": 1e-3},
    "rotation": {"rad": 1.0, "deg": np.pi / 180},
}


@dataclass(frozen=True, eq=False)
class Settings:
    """What was said about files; everything else is guessed, and told in notes.

    Attributes
    ----------
    robot : Robot
        The robot.
    frame : str
        Link or frame that is measured.
    joints : tuple of str
        Joint columns in the order of the robot's joints; () to find them by their names.
    units : mapping of str to str
        Units by what they are of, a key of `UNITS`.
    in_hand : bool or None
        Whether the sensor of poses is on the robot.
    surfaces : mapping of str to str
        Kind of each touched surface.
    noted : dict of str to list of str
        What was guessed, with the files that it is about.
    """

    robot: Robot
    frame: str
    joints: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    in_hand: bool | None = None
    surfaces: Mapping[str, str] = field(default_factory=dict)
    noted: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        frame_on_link(self.robot, self.frame)
        for what, unit in self.units.items():
            if what not in UNITS:
                raise UnknownName(
                    f"{named('units')} are of {one_of(UNITS)}, not of '{what}'{did_you_mean(what, UNITS)}", "units"
                )
            if unit not in UNITS[what]:
                raise InvalidValue(f"unit '{unit}' of {what} is unknown: use {one_of(UNITS[what])}", "units")

    def note(self, text: str, file: str = "") -> None:
        """Tell something of a file."""
        self.noted.setdefault(text, []).append(file)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was guessed, once for all files that it is about."""
        return tuple(
            text if not files[0] else f"{files[0]}: {text}" if len(files) == 1 else f"{text} ({len(files)} files)"
            for text, files in self.noted.items()
        )

    @property
    def carrying(self) -> tuple[int, ...]:
        """Places, among the independent joints, of those that move the frame."""
        return carrying(self.robot, self.frame)

    def placements(self, q: Array) -> Array:
        """Placements (N, 4, 4) of the frame as the file of the robot has them."""
        return np.asarray(frame_placement(self.robot, q, self.frame))


@dataclass(frozen=True, eq=False)
class Piece:
    """What one file tells of one sensor.

    Attributes
    ----------
    kind : str
        Kind of measurement: points, poses, sockets, touches or lengths.
    q : ndarray, shape (N, n)
        Positions of the robot's independent joints (rad or m).
    rows : dict of str to ndarray
        What was measured, one entry per posture.
    shared : dict
        What is the same for all postures, such as names of markers.
    place : sequence of str or None
        Place of each posture, None where the file does not tell it.
    file : str
        Name of the file without its ending.
    sensor : str
        Name of the sensor, "" where it has none.
    """

    kind: str
    q: Array
    rows: dict[str, Any]
    file: str
    shared: dict[str, Any] = field(default_factory=dict)
    place: NDArray[np.str_] | None = None
    sensor: str = ""


def carrying(robot: Robot, frame: str) -> tuple[int, ...]:
    """Places, among the independent joints, of those that move a link or frame."""
    link, found = frame_on_link(robot, frame)[0], set[int]()
    while link > 0:
        joint = robot.joints[link - 1]
        found.add(robot.coordinates.index(joint.name if joint.mimic is None else joint.mimic.leader))
        link = joint.parent
    return tuple(sorted(found))
