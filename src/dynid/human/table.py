"""Anthropometric tables: share of mass, centre and radii of gyration of each segment, by sex."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import (
    DamagedFile,
    Infeasible,
    InvalidType,
    InvalidValue,
    MissingData,
    MissingFile,
    UnknownName,
    named,
)
from dynid.reading import read_toml
from dynid.robot.inertia import inertia_from_com, inertia_violations

__all__ = [
    "CENTRAL",
    "LANDMARKS",
    "PAIRED",
    "SEXES",
    "TRUNK",
    "AnthropometricTable",
    "SegmentShare",
    "anthropometric_table",
    "builtin_tables",
]

SEXES = ("male", "female")
TRUNK = ("lower_trunk", "middle_trunk", "upper_trunk")
CENTRAL = (*TRUNK, "head")
PAIRED = ("upper_arm", "forearm", "hand", "thigh", "shank", "foot")
# Points that segments begin and end at; those of the limbs have two sides.
LANDMARKS = (
    *("vertex", "cervicale", "xiphion", "omphalion", "mid_hip"),
    *("shoulder", "elbow", "wrist", "fingertip", "hip", "knee", "ankle", "heel", "toe"),
)
# Printed tables are rounded; a sum further off than this misses a segment.
_SUM = 0.005


@dataclass(frozen=True)
class SegmentShare:
    """One segment: mass as a share of the body's, length as a share of the height, the rest as shares of the length.

    `centre` lies on the line between the two `ends`, measured from the first; `radii` are about the sagittal (front to
    back), transverse (side to side) and longitudinal (end to end) axis through the centre of mass.
    """

    name: str
    ends: tuple[str, str]
    mass: float
    length: float
    centre: float
    radii: tuple[float, float, float]


@dataclass(frozen=True)
class AnthropometricTable:
    """Anthropometric table of one sex.

    Attributes
    ----------
    name : str
        Name of the table.
    reference : str
        Publication it comes from.
    sex : {"male", "female"}
        Sex.
    mid_shoulder : float
        Height of the shoulder joints above the hip joints, as a share of the body height.
    segments : mapping of str to SegmentShare
        Segments by name; lengths are shares of the body height.
    """

    name: str
    reference: str
    sex: str
    mid_shoulder: float
    segments: Mapping[str, SegmentShare]

    @property
    def total(self) -> float:
        """Sum of all mass shares of both sides; one up to the rounding of the printed table."""
        return sum(s.mass * (2 if name in PAIRED else 1) for name, s in self.segments.items())


def anthropometric_table(source: str | Path | AnthropometricTable, sex: str = "male") -> AnthropometricTable:
    """Load an anthropometric table.

    Parameters
    ----------
    source : str, Path or AnthropometricTable
        Name of a built-in table ("de-leva") or a TOML file of the same form; a table is returned as it is.
    sex : {"male", "female"}, default "male"
        Sex.

    Returns
    -------
    AnthropometricTable
        The table.

    Raises
    ------
    DataError
        If the table is unknown, incomplete, or its masses do not add up to one.

    Examples
    --------
    >>> table = anthropometric_table("de-leva", "female")
    >>> round(100 * table.segments["thigh"].mass, 2), round(table.total, 4)
    (14.78, 0.9999)
    """
    if isinstance(source, AnthropometricTable):
        return source
    data, where = _read(source)
    if sex not in SEXES:
        raise UnknownName(f"{named('sex')} '{sex}' is unknown: use {' or '.join(SEXES)}")
    if sex not in data:
        raise MissingData(f"{where} has no numbers for sex '{sex}'", "sex")
    rows = _rows(data, sex, where)
    height = _number(data[sex], "height", f"{where}, {sex}")
    ends = data.get("ends", {})
    segments = {}
    for name in (*CENTRAL, *PAIRED):
        segments[name] = _segment(name, rows[name], ends.get(name), height, f"{where}, {sex}, segment '{name}'")
    shoulder = _number(data[sex], "mid_shoulder", f"{where}, {sex}") / height
    out = AnthropometricTable(
        str(data.get("name", where)), str(data.get("reference", "")), sex, shoulder, dict(segments)
    )
    if abs(out.total - 1.0) > _SUM:
        raise InvalidValue(f"{where}, {sex}: the masses of all segments, both sides counted, add up to {out.total:.1%}")
    return out


def _read(source: str | Path) -> tuple[dict[str, Any], str]:
    """The content of a table and what to call it in messages."""
    path = Path(source)
    if path.suffix.lower() == ".toml":
        try:
            return read_toml(path), path.name
        except OSError as error:
            raise MissingFile(f"the table '{path}' cannot be read: {error.strerror or error}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise DamagedFile(f"the table '{path}' is no TOML: {error}") from None
    known = builtin_tables()
    if str(source) not in known:
        raise UnknownName(f"no anthropometric table '{source}': use {', '.join(known)}, or a .toml file", "source")
    text = (resources.files("dynid.human") / "data" / f"{source}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text), f"table '{source}'"


def builtin_tables() -> tuple[str, ...]:
    """Names of the built-in tables."""
    folder = resources.files("dynid.human") / "data"
    found = (entry.name.removesuffix(".toml") for entry in folder.iterdir() if entry.name.endswith(".toml"))
    return tuple(sorted(n for n in found if n not in ("names", "skeleton")))


def _rows(data: Mapping[str, Any], sex: str, where: str) -> Mapping[str, Any]:
    rows = data[sex].get("segments", {}) if isinstance(data[sex], Mapping) else {}
    missing = [name for name in (*CENTRAL, *PAIRED) if name not in rows]
    if missing:
        raise MissingData(f"{where} misses segments for sex '{sex}': {', '.join(missing)}", "sex")
    unknown = sorted(set(rows) - {*CENTRAL, *PAIRED})
    if unknown:
        raise UnknownName(f"{where}, {sex}: segment '{unknown[0]}' is unknown, use {', '.join((*CENTRAL, *PAIRED))}")
    return rows


def _segment(name: str, row: Any, ends: Any, height: float, where: str) -> SegmentShare:
    if not isinstance(row, Mapping):
        raise InvalidType(f"{where} must be a table of mass, length, centre and radii")
    if not isinstance(ends, list) or len(ends) != 2 or any(e not in LANDMARKS for e in ends):
        raise InvalidValue(f"{where} needs two ends among {', '.join(LANDMARKS)}, got {ends!r:.60}")
    radii = row.get("radii")
    if not isinstance(radii, list) or len(radii) != 3 or not all(_is_positive(r) for r in radii):
        raise InvalidValue(f"{where} needs three positive radii of gyration, got {radii!r:.60}")
    mass, length = _number(row, "mass", where), _number(row, "length", where)
    centre = _number(row, "centre", where)
    shares = tuple(float(r) / 100 for r in radii)
    broken = inertia_violations(inertia_from_com(1.0, np.zeros(3), np.diag(np.square(shares))))
    if broken:
        raise Infeasible(f"{where} is not a physically consistent body: {'; '.join(broken)}")
    return SegmentShare(
        name, (ends[0], ends[1]), mass / 100, length / height, centre / 100, (shares[0], shares[1], shares[2])
    )


def _number(row: Mapping[str, Any], key: str, where: str) -> float:
    value = row.get(key)
    if not _is_positive(value):
        raise InvalidValue(f"{where} needs a positive number for {key}, got {value!r:.60}")
    return float(value)  # type: ignore[arg-type]


def _is_positive(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and np.isfinite(value) and value > 0
