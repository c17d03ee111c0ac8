"""Tables of measurements: joint positions, and columns of points, poses, sockets, touched surfaces or lengths.

Columns are recognised by their names: x1, y1, z1 or NAME_x, NAME_y, NAME_z (points); x, y, z with qx, qy, qz, qw or
with roll, pitch, yaw (poses); socket, surface, length, anchor, place. A table without names holds joint positions, and
its file and folder are the socket and the place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import MissingData, NotFinite
from dynid.geometry.formats.joints import joint_columns, joint_positions
from dynid.geometry.formats.lengths import length_factor
from dynid.geometry.formats.piece import UNITS, Piece, Settings
from dynid.geometry.formats.placements import of_angles, of_quaternions, sensor_in_hand
from dynid.recording.files import stem_of
from dynid.recording.formats import read_log
from dynid.recording.names import is_time
from dynid.recording.table import Table, shown

__all__ = ["read_table"]

Array = NDArray[np.float64]

_UNIT = r"(?:[ _.\-]*[\[(]?(?P<unit>mm|cm|m|rad|deg)[\])]?)?"
_NUMBERED = re.compile(rf"(?P<axis>[xyz])[ _]?(?P<name>\d+){_UNIT}", re.IGNORECASE)
_NAMED = re.compile(rf"(?:(?P<name>.*?)[ _.\-])?(?P<axis>[xyz]){_UNIT}", re.IGNORECASE)
_QUATERNION = re.compile(
    r"(?:(?P<name>.*?)[ _.\-])??(?:q|quat|quaternion|orientation|rotation|rot)[ _.\-]?(?P<axis>[wxyz])", re.IGNORECASE
)
_ANGLES = re.compile(rf"(?:(?P<name>.*?)[ _.\-])?(?P<axis>roll|pitch|yaw){_UNIT}", re.IGNORECASE)
_LABELS = ("socket", "surface", "anchor", "place")
_LENGTH = re.compile(rf"(?:length|distance|wire){_UNIT}", re.IGNORECASE)
# Words at the end of a name that only say that it is a position.
_POSITION = re.compile(r"(?:^|[ _.\-])(?:pos|position|point|translation|trans|t|p)$", re.IGNORECASE)
# Markers whose positions differ by less than this share of their size are one.
_SAME = 1e-9


def read_table(path: Path, settings: Settings) -> list[Piece]:
    """What a table of any format of logs tells of sensors.

    Raises
    ------
    MissingJoints
        If joints that move the frame have no column.
    MissingData
        If there is a header and nothing was measured.
    """
    table = read_log(path)
    for row, problem in table.broken.items():
        raise MissingData(f"{table.place(row)} {problem}", where=table.file)
    columns = joint_columns(table, settings)
    q = joint_positions(table, columns, settings)
    good = np.isfinite(q).all(1)
    if not good.all():
        raise NotFinite(
            f"{table.place(int(np.argmin(good)))} has a joint position that is no number", "q", where=table.file
        )
    stem = stem_of(path)
    if not table.header:
        return [Piece("sockets", q, {"socket": np.full(len(q), stem)}, stem)]
    rest = [name for name in table.names if name not in columns.values()]
    found = _Columns(table, rest, settings, q)
    pieces = list(found.pieces(stem))
    if not pieces:
        raise MissingData(
            f"nothing is measured in it beside joint positions: there are no columns of points (x1, y1, z1), poses, "
            f"socket, surface or length among {shown(rest)}",
            where=table.file,
        )
    left = [name for name in rest if name not in found.used and not is_time(name)]
    if left:
        settings.note(f"columns {shown(left)} are not used", table.file)
    return pieces


class _Columns:
    """Columns of a table that are no joint positions.

    Parameters
    ----------
    table : Table
        The table.
    names : sequence of str
        Its columns without joint positions.
    settings : Settings
        What was said.
    q : ndarray, shape (N, n)
        Joint positions.
    """

    def __init__(self, table: Table, names: Sequence[str], settings: Settings, q: Array) -> None:
        self.table, self.names, self.settings, self.q = table, names, settings, q
        self.used: set[str] = set()

    def pieces(self, stem: str) -> Iterator[Piece]:
        """What was measured."""
        labels = {word: self._labels(word) for word in _LABELS}
        place = labels["place"]
        directions = self._turned()
        points = self._triples(_NUMBERED) or self._triples(_NAMED)
        turned = {name: columns for name, columns in directions.items() if name in points}
        for name, axes in turned.items():
            poses = self._poses(points.pop(name), axes)
            robot = self.settings.placements(self.q)
            shared = {"in_hand": sensor_in_hand(robot, poses, self.settings, self.table.file)}
            yield Piece("poses", self.q, {"poses": poses}, stem, shared, place, name)
        if points:
            kept = self._distinct(self._points(points))
            rows = {"points": np.stack(list(kept.values()), axis=1)}
            yield Piece("points", self.q, rows, stem, {"markers": tuple(map(_marker, kept))}, place)
        if labels["socket"] is not None:
            yield Piece("sockets", self.q, {"socket": labels["socket"]}, stem, {}, place)
        if labels["surface"] is not None:
            touched = labels["surface"]
            kinds = {name: self._surface(name) for name in sorted(set(touched.tolist()))}
            yield Piece("touches", self.q, {"surface": touched}, stem, {"surfaces": kinds}, place)
        length = next((name for name in self.names if _LENGTH.fullmatch(name)), None)
        if length is not None:
            yield self._lengths(length, labels["anchor"], stem, place)

    def _labels(self, word: str) -> NDArray[np.str_] | None:
        """Labels of postures in a column with this name."""
        name = next((x for x in self.names if x.lower() in (word, f"{word}s", f"{word}_id")), None)
        if name is None:
            return None
        self.used.add(name)
        return np.array([self.table.text(name, row).strip() for row in range(len(self.q))])

    def _triples(self, pattern: re.Pattern[str]) -> dict[str, dict[str, str]]:
        """Columns x, y, z by the name of their point."""
        found: dict[str, dict[str, str]] = {}
        for column in self.names:
            match = pattern.fullmatch(column)
            if match and column not in self.used:
                found.setdefault(_POSITION.sub("", match["name"] or ""), {})[match["axis"].lower()] = column
        whole = {name: axes for name, axes in found.items() if set(axes) == {"x", "y", "z"}}
        self.used |= {column for axes in whole.values() for column in axes.values()}
        return whole

    def _turned(self) -> dict[str, dict[str, str]]:
        """Columns of directions by the name of their pose: quaternions, or roll, pitch and yaw."""
        found: dict[str, dict[str, str]] = {}
        for pattern, wanted in ((_QUATERNION, set("wxyz")), (_ANGLES, {"roll", "pitch", "yaw"})):
            mine: dict[str, dict[str, str]] = {}
            for column in self.names:
                match = pattern.fullmatch(column)
                if match and column not in self.used:
                    mine.setdefault(match["name"] or "", {})[match["axis"].lower()] = column
            found |= {name: axes for name, axes in mine.items() if set(axes) == wanted and name not in found}
        self.used |= {column for axes in found.values() for column in axes.values()}
        return found

    def _points(self, points: Mapping[str, Mapping[str, str]]) -> dict[str, Array]:
        """Positions (N, 3) in metres by name; the unit of all is that of the point that is seen most."""
        values = {name: self.table.values([columns[axis] for axis in "xyz"]) for name, columns in points.items()}
        most = max(values, key=lambda name: int(np.isfinite(values[name]).all(1).sum()))
        column = points[most]["x"]
        match = (_NUMBERED if _NUMBERED.fullmatch(column) else _NAMED).fullmatch(column)
        unit = match["unit"] if match and match["unit"] in UNITS["points"] else None
        moved = self.settings.placements(self.q)[:, :3, 3]
        factor = length_factor("points", values[most], moved, self.settings, self.table.file, unit)
        return {name: factor * x for name, x in values.items()}

    def _poses(self, position: Mapping[str, str], direction: Mapping[str, str]) -> Array:
        """Poses (N, 4, 4)."""
        points = self._points({"": position})[""]
        if "w" in direction:
            return of_quaternions(points, self.table.values([direction[a] for a in "xyzw"]), self.table.file)
        angles = self.table.values([direction[a] for a in ("roll", "pitch", "yaw")])
        return of_angles(points, angles, self.settings, self.table.file)

    def _distinct(self, points: dict[str, Array]) -> dict[str, Array]:
        """Points without those that repeat an earlier one."""
        kept: dict[str, Array] = {}
        for name, x in points.items():
            size = max(float(np.nanmax(np.abs(x), initial=0.0)), 1e-300)
            twin = next((k for k, y in kept.items() if _same(x, y, _SAME * size)), None)
            if twin is None:
                kept[name] = x
            else:
                self.settings.note(
                    f"{_marker(name)} repeats {_marker(twin)} at every posture and is left out", self.table.file
                )
        return kept

    def _surface(self, name: str) -> str:
        """Kind of a surface: as stated, or from its name."""
        if name in self.settings.surfaces:
            return self.settings.surfaces[name]
        known = {"line": "line", "edge": "line", "point": "point", "corner": "point", "tip": "point"}
        kind = next((known[word] for word in known if word in name.lower()), "plane")
        self.settings.note(f"surface '{name}' counts as an unknown {kind}", self.table.file)
        return kind

    def _lengths(self, name: str, anchor: NDArray[np.str_] | None, stem: str, place: NDArray[np.str_] | None) -> Piece:
        """Lengths in metres from each anchor."""
        self.used.add(name)
        values = self.table.values([name])[:, 0]
        match = _LENGTH.fullmatch(name)
        unit = match["unit"] if match and match["unit"] in UNITS["lengths"] else None
        moved = self.settings.placements(self.q)[:, :3, 3]
        names = np.full(len(values), "anchor") if anchor is None else anchor
        metres = values * length_factor("lengths", values, moved, self.settings, self.table.file, unit)
        return Piece("lengths", self.q, {"lengths": metres, "anchor": names}, stem, {}, place)


def _marker(name: str) -> str:
    """What a point is called."""
    return f"marker {name}".strip() if not name or name.isdigit() else name


def _same(x: Array, y: Array, within: float) -> bool:
    """Whether two points are at one position at every posture, and hidden at the same ones."""
    seen, other = np.isfinite(x).all(1), np.isfinite(y).all(1)
    return bool((seen == other).all() and seen.any() and np.abs(x[seen] - y[seen]).max() <= within)
