"""Force plates of a C3D file: channels, calibration and origin to wrenches at the centre of the surface."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, Unsupported
from dynid.mocap.c3d import C3D
from dynid.mocap.plate import Plate, placement_of_corners

__all__ = ["LENGTHS", "read_plates"]

Array = NDArray[np.float64]

LENGTHS = {"mm": 1e-3, "cm": 1e-2, "dm": 0.1, "m": 1.0, "in": 0.0254, "inch": 0.0254, "ft": 0.3048}
_FORCES = {"N": 1.0, "kN": 1e3}
_CHANNELS = {1: 6, 2: 6, 3: 8, 4: 6}
_WITHOUT = "read the rest with plates='none'"


def read_plates(c3d: C3D, length: float, sign: float) -> tuple[Plate, ...]:
    """Plates of types 1 to 4; `length` is the file's unit in m, `sign` -1 where channels tell the body's action."""
    if c3d.get("FORCE_PLATFORM", "USED") is None:
        return ()
    used = int(c3d.numbers("FORCE_PLATFORM", "USED", "").ravel()[0])
    return tuple(_plate(c3d, k, length, sign) for k in range(used))


@dataclass(frozen=True, eq=False)
class _Channels:
    """Analog channels (K, n) of one plate with their units, as far as the file names them."""

    values: Array
    units: list[str]

    def forces(self, count: int) -> Array:
        return self.values[:, :count] * [_FORCES.get(_plain(u), 1.0) for u in self.units[:count]]

    def lengths(self, columns: list[int], otherwise: float) -> Array:
        return self.values[:, columns] * [LENGTHS.get(_plain(self.units[k]), otherwise) for k in columns]

    def moments(self, columns: list[int], otherwise: float) -> Array:
        """In N m; a unit that is no moment (a voltage) counts as N times the unit of length."""
        return self.values[:, columns] * [_moment(self.units[k], otherwise) for k in columns]


def _plain(unit: str) -> str:
    return re.sub(r"[\s.*·\-]", "", unit)


def _moment(unit: str, otherwise: float) -> float:
    found = re.fullmatch(r"(k?)[nN](mm|cm|m)", _plain(unit))
    return (1e3 if found[1] else 1.0) * LENGTHS[found[2]] if found else otherwise


def _plate(c3d: C3D, k: int, length: float, sign: float) -> Plate:
    name = f"plate{k + 1}"
    kind = int(_entry(c3d, "TYPE", k).ravel()[0])
    if kind not in _CHANNELS:
        raise Unsupported(f"{name} is of TYPE {kind}, known are 1 to 4; {_WITHOUT}", where=c3d.file)
    corners = length * np.asarray(_entry(c3d, "CORNERS", k), dtype=float)
    origin = length * np.asarray(_entry(c3d, "ORIGIN", k), dtype=float)
    if corners.shape != (3, 4) or origin.shape != (3,):
        raise DamagedFile(f"CORNERS or ORIGIN of {name} have the wrong shape; {_WITHOUT}", where=c3d.file)
    # The surface lies above the sensor and z points down: a positive height is a file with the vector reversed.
    origin = -origin if origin[2] > 0 else origin
    channels = _channels(c3d, k, _CHANNELS[kind], name)
    with np.errstate(all="ignore"):  # samples that are no numbers are a finding, not a fault of the file
        if kind == 1:
            wrench = _type1(channels, length)
        elif kind == 3:
            wrench = _type3(channels, origin)
        else:
            wrench = _type2(c3d, k, channels, origin, length, calibrated=kind == 4)
    corners = corners.T
    return Plate(name, c3d.rate * c3d.subsamples, sign * wrench, placement_of_corners(corners, name), corners)


def _entry(c3d: C3D, name: str, k: int) -> Array:
    values = c3d.numbers("FORCE_PLATFORM", name, f"force plates need; {_WITHOUT}")
    if values.shape[-1] <= k or not values[..., k].size:
        raise DamagedFile(f"FORCE_PLATFORM:{name} has no entry for plate {k + 1}; {_WITHOUT}", where=c3d.file)
    return np.asarray(values[..., k])


def _channels(c3d: C3D, k: int, count: int, name: str) -> _Channels:
    numbers = _entry(c3d, "CHANNEL", k).ravel().astype(int) - 1
    if len(numbers) < count:
        raise DamagedFile(f"{name} needs {count} channels, FORCE_PLATFORM:CHANNEL names {len(numbers)}", where=c3d.file)
    numbers = numbers[:count]
    there = c3d.analogs.shape[1]
    if numbers.min() < 0 or numbers.max() >= there:
        raise DamagedFile(f"{name} uses the analog channel {numbers.max() + 1}, the file has {there}", where=c3d.file)
    units = c3d.texts("ANALOG", "UNITS")
    return _Channels(c3d.analogs[:, numbers], [units[i] if i < len(units) else "" for i in numbers])


def _type1(channels: _Channels, length: float) -> Array:
    """Forces, the point of pressure on the surface and the free moment."""
    force, free = channels.forces(3), channels.moments([5], length)
    x, y = channels.lengths([3, 4], length).T
    moment = np.column_stack([y * force[:, 2], -x * force[:, 2], x * force[:, 1] - y * force[:, 0] + free[:, 0]])
    return np.hstack([force, moment])


def _type2(c3d: C3D, k: int, channels: _Channels, origin: Array, length: float, calibrated: bool) -> Array:
    """Forces and moments at the sensor, through the calibration matrix for type 4."""
    if calibrated:
        matrix = _entry(c3d, "CAL_MATRIX", k)
        if matrix.shape != (6, 6):
            raise DamagedFile(f"CAL_MATRIX of plate{k + 1} has shape {matrix.shape}, expected (6, 6)", where=c3d.file)
        channels = _Channels(channels.values @ matrix.T, channels.units)
    force, moment = channels.forces(3), channels.moments([3, 4, 5], length)
    return np.hstack([force, moment + np.cross(force, origin)])


def _type3(channels: _Channels, origin: Array) -> Array:
    """Eight forces of four sensors at (+-a, +-b), the surface `origin[2]` above them; x12 x34 y14 y23 z1 z2 z3 z4."""
    x12, x34, y14, y23, z1, z2, z3, z4 = channels.forces(8).T
    a, b = origin[:2]
    force = np.column_stack([x12 + x34, y14 + y23, z1 + z2 + z3 + z4])
    about_x, about_y = b * (z1 + z2 - z3 - z4), a * (-z1 + z2 + z3 - z4)
    moment = np.column_stack([about_x, about_y, b * (x34 - x12) + a * (y14 - y23)])
    return np.hstack([force, moment + np.cross(force, [0.0, 0.0, origin[2]])])
