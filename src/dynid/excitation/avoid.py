"""Clearances from a file: obstacles, shapes of links, and the distance to keep."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from dynid.errors import DamagedFile, InvalidShape, InvalidValue, MissingArgument, MissingFile, UnknownName
from dynid.excitation.collision import Collision, LinkShape, Obstacle
from dynid.reading import read_toml
from dynid.robot.model import Robot
from dynid.robot.spatial import placement, rpy_rotation

__all__ = ["read_avoid"]

_PLACED = {"kind", "size", "position", "rpy"}


def read_avoid(path: str | Path, robot: Robot, urdf: str | Path | None = None) -> Collision:
    """A clearance from a TOML file with `distance` (m) and tables [[obstacle]] (with name) and [[shape]] (with link).

    Each table has kind, size, position (m) and rpy (rad). Shapes of a given URDF file are added.
    """
    try:
        data = read_toml(path)
    except FileNotFoundError:
        raise MissingFile(f"there is no file '{path}'") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DamagedFile(f"'{path}' is not valid TOML: {error}") from None
    except OSError as error:
        raise MissingFile(f"'{path}' cannot be read: {error.strerror}") from None
    unknown = sorted(set(data) - {"distance", "obstacle", "shape"})
    if unknown:
        raise UnknownName(f"'{path}': '{unknown[0]}' is unknown, use distance, [[obstacle]] and [[shape]]")
    distance = data.get("distance", 0.02)
    if isinstance(distance, bool) or not isinstance(distance, int | float):
        raise InvalidValue(f"'{path}': the distance must be a number of metres, got {distance!r:.40}", "distance")
    obstacles = [Obstacle(*_entry(path, entry, "obstacle", "name")) for entry in _tables(path, data, "obstacle")]
    shapes = [LinkShape(*_entry(path, entry, "shape", "link")) for entry in _tables(path, data, "shape")]
    return Collision(robot, urdf, distance=float(distance), obstacles=obstacles, shapes=shapes)


def _tables(path: str | Path, data: dict[str, Any], name: str) -> list[dict[str, Any]]:
    found = data.get(name, [])
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise InvalidValue(f"'{path}': write [[{name}]], once for each")
    return found


def _entry(path: str | Path, entry: dict[str, Any], what: str, key: str) -> tuple[str, str, Any, Any]:
    missing = sorted({key, "kind", "size"} - set(entry))
    if missing:
        raise MissingArgument(f"'{path}': [[{what}]] without '{missing[0]}'")
    unknown = sorted(set(entry) - _PLACED - {key})
    if unknown:
        raise UnknownName(f"'{path}': '{unknown[0]}' of {what} '{entry[key]}' is unknown")
    position, rpy = (_three(path, entry.get(k, [0.0, 0.0, 0.0]), k, entry[key]) for k in ("position", "rpy"))
    return str(entry[key]), str(entry["kind"]), entry["size"], placement(rpy_rotation(*rpy), position)


def _three(path: str | Path, given: Any, what: str, owner: Any) -> list[float]:
    numbers = isinstance(given, list) and all(isinstance(x, int | float) and not isinstance(x, bool) for x in given)
    if not numbers or len(given) != 3:
        raise InvalidShape(f"'{path}': {what} of '{owner}' needs three numbers, got {given!r:.60}")
    return [float(x) for x in given]
