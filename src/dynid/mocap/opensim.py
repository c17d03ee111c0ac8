"""OpenSim's text files: markers (.trc), coordinates and ground forces (.mot, .sto)."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, Duplicate, TooFew, UnknownName, WrongFormat, keyword
from dynid.mocap.capture import Capture
from dynid.mocap.plate import Plate
from dynid.mocap.platforms import LENGTHS
from dynid.mocap.trial import Channels, unique_names
from dynid.reading import whole_number
from dynid.recording.files import read_bytes, stem_of

__all__ = ["read_storage", "read_trc"]

Array = NDArray[np.float64]
logger = logging.getLogger("dynid")


def read_trc(path: Path, unit: str | None) -> Capture:
    """Markers of a .trc file in m; cells without a number are gaps."""
    lines = _lines(path)
    heads = [k for k, line in enumerate(lines) if line.lstrip().lower().startswith("frame#")]
    if not heads or heads[0] < 2:
        raise WrongFormat(f"{path.name} is no TRC file: it has no line that starts with Frame#")
    head = heads[0]
    settings = dict(zip(_cells(lines[head - 2]), _cells(lines[head - 1]), strict=False))
    names = [name for name in _cells(lines[head])[2:] if name]
    unit = unit or settings.get("Units", "")
    if unit not in LENGTHS:
        raise UnknownName(f"{path.name} has the unit '{unit}': give {keyword('unit')} as one of {', '.join(LENGTHS)}")
    body = [line for line in lines[head + 2 :] if line.strip()]
    table = _numbers(body, 2 + 3 * len(names), path.name, head + 3)
    announced = settings.get("NumFrames", "")
    if (whole_number(announced) or 0) > len(table):
        raise DamagedFile(f"{path.name} is cut off: it announces {announced} frames and holds {len(table)}")
    times = table[:, 1]
    positions = LENGTHS[unit] * table[:, 2:].reshape(len(table), len(names), 3)
    rate = _rate(times, path.name)
    _refuse_uneven(times, rate, path.name)
    return Capture(stem_of(path), rate, unique_names(names, len(names), "marker"), positions, start=float(times[0]))


def read_storage(path: Path, translations: Sequence[str]) -> Capture:
    """Coordinates and ground forces of a .mot or .sto file; angles in rad whatever the header's inDegrees says.

    Columns that end in _tx, _ty, _tz or stand in `translations` are lengths. Uneven times are interpolated to an even
    clock of the same mean rate.
    """
    lines = _lines(path)
    ends = [k for k, line in enumerate(lines) if line.strip().lower() == "endheader"]
    if not ends or ends[0] + 1 >= len(lines):
        raise WrongFormat(f"{path.name} is no OpenSim file: it has no line endheader with columns after it")
    pairs = [re.split(r"\s*[=\s]\s*", line.strip(), maxsplit=1) for line in lines[: ends[0]]]
    header = {pair[0].lower(): pair[1].lower() for pair in pairs if len(pair) == 2}
    names = _cells(lines[ends[0] + 1])
    if not names or names[0].lower() != "time":
        raise WrongFormat(f"the first column is '{names[0] if names else ''}', expected time", where=path.name)
    body = [line for line in lines[ends[0] + 2 :] if line.strip()]
    table = _numbers(body, len(names), path.name, ends[0] + 3)
    announced = header.get("nrows", header.get("datarows", ""))
    if (whole_number(announced) or 0) > len(table):
        raise DamagedFile(f"{path.name} is cut off: it announces {announced} rows and holds {len(table)}")
    bad = np.argwhere(~np.isfinite(table))
    if len(bad):
        raise DamagedFile(f"column '{names[bad[0][1]]}' is no number in row {bad[0][0] + 1}", where=path.name)
    start, rate, table = _even(table, path.name)
    columns = dict(zip(names[1:], table.T, strict=True))
    if len(columns) != len(names) - 1:
        raise Duplicate(f"{path.name} has two columns of one name")
    plates, used = _plates(columns, rate)
    coordinates, units = {}, []
    paths = any(name.endswith("/value") for name in columns)
    for name, values in columns.items():
        if name in used or (paths and not name.endswith("/value")):
            continue
        plain = name.split("/")[-2] if paths else name
        length = plain in translations or re.search(r"_t[xyz]$", plain) is not None
        turned = header.get("indegrees", "no") in ("yes", "true") and not length
        coordinates[plain] = np.radians(values) if turned else values
        units.append("m" if length else "rad")
    values = np.column_stack(list(coordinates.values())) if coordinates else np.zeros((0, 0))
    channels = Channels(tuple(coordinates), tuple(units), rate, values)
    return Capture(stem_of(path), rate, plates=plates, coordinates=channels, start=start)


def _lines(path: Path) -> list[str]:
    return read_bytes(path).decode("utf-8", errors="replace").replace("\r\n", "\n").replace("\r", "\n").split("\n")


def _cells(line: str) -> list[str]:
    return [c.strip() for c in line.split("\t")] if "\t" in line else line.split()


def _numbers(body: list[str], width: int, file: str, first: int) -> Array:
    """Table of the lines; empty cells are NaN, missing ones at the end too."""
    if len(body) < 2:
        raise TooFew(f"{file} has {len(body)} rows of numbers, at least two are needed")
    out = np.full((len(body), width), np.nan)
    for k, line in enumerate(body):
        cells = _cells(line.rstrip())
        if len(cells) > width:
            raise DamagedFile(f"row {k + 1} after the header has {len(cells)} cells, expected {width}", where=file)
        try:
            out[k, : len(cells)] = [float(c) if c else np.nan for c in cells]
        except ValueError:
            wrong = next(c for c in cells if c and not _is_number(c))
            raise DamagedFile(f"line {first + k} holds '{wrong:.20}' where a number is expected", where=file) from None
    return out


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _rate(times: Array, file: str) -> float:
    steps = np.diff(times)
    if not np.all(steps > 0):
        raise DamagedFile(f"the time does not rise at row {int(np.argmin(steps > 0)) + 2}", where=file)
    return float(len(steps) / (times[-1] - times[0]))


def _refuse_uneven(times: Array, rate: float, file: str) -> None:
    off = np.abs((times - times[0]) * rate - np.arange(len(times)))
    if off.max() > 0.05:
        raise DamagedFile(f"the time leaves an even clock at row {int(np.argmax(off > 0.05)) + 1}", where=file)


def _even(table: Array, file: str) -> tuple[float, float, Array]:
    """Start, rate and columns without the time, on an even clock."""
    times = table[:, 0]
    rate = _rate(times, file)
    even = times[0] + np.arange(len(times)) / rate
    if np.abs(times - even).max() * rate > 0.05:
        logger.info("%s: uneven times, interpolated to %g Hz", file, rate)
        return float(times[0]), rate, np.column_stack([np.interp(even, times, x) for x in table[:, 1:].T])
    return float(times[0]), rate, table[:, 1:]


def _plates(columns: dict[str, Array], rate: float) -> tuple[tuple[Plate, ...], set[str]]:
    """Ground forces, their points and torques as forces without a plate, about the laboratory's origin."""
    plates, used = [], set()
    stems = list(dict.fromkeys(m[1] for name in columns if (m := re.fullmatch(r"(.*force.*?)_?v[xyz]", name, re.I))))
    for stem in stems:
        force = _vector(columns, [stem], ["v", "_v"])
        if force is None:
            continue
        point = _vector(columns, [stem], ["p", "_p"])
        turned = [re.sub("force", word, stem, flags=re.I) for word in ("torque", "moment")]
        torque = _vector(columns, turned, ["_", "", "_m", "m"])
        used |= set(force) | set(point or ()) | set(torque or ())
        rows = len(columns[force[0]])
        f, p, n = (
            np.column_stack([columns[c] for c in v]) if v else np.zeros((rows, 3)) for v in (force, point, torque)
        )
        plates.append(Plate(stem, rate, np.hstack([f, np.cross(p, f) + n]), np.eye(4)))
    return tuple(plates), used


def _vector(columns: dict[str, Array], stems: list[str], links: list[str]) -> list[str] | None:
    for stem in stems:
        for link in links:
            names = [f"{stem}{link}{axis}" for axis in "xyz"]
            if all(name in columns for name in names):
                return names
    return None
