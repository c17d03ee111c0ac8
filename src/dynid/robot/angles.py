"""Angles of a model file that are multiples of pi/2 written with few digits, such as 1.5708 and 3.14159.

An axis that is tilted by the rounding of such an angle is not parallel to its neighbour, and the robot then has base
parameters that the real one does not have. A number counts as a rounded multiple if it agrees with one to its last
printed digit, or is zero to single precision. With two decimals it must be the rounded or cut multiple exactly.
"""

from __future__ import annotations

import math
import tomllib
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from dynid.robot.xmlfile import read_xml

__all__ = ["RoundedAngle", "exact_angle", "note_on_angles", "rounded_angles", "snap_file_angles", "snap_table_angles"]

# Where an angle was found, and the number of the file.
RoundedAngle = tuple[str, float]

_EXACT = 1e-9  # rad; what is nearer than this to a multiple is not reported
_SINGLE_PRECISION = 1e-6  # rad; rounding of an angle in single precision


def exact_angle(value: float) -> float | None:
    """The multiple of pi/2 that a printed number stands for; None if it stands for none."""
    if not math.isfinite(value):
        return None
    quarters = round(value / (math.pi / 2))
    exact = quarters * math.pi / 2
    error = abs(value - exact)
    if quarters == 0:
        return 0.0 if error <= _SINGLE_PRECISION else None
    exponent = Decimal(repr(value)).as_tuple().exponent
    decimals = -exponent if isinstance(exponent, int) else 0
    if decimals < 2:
        return None
    last = 10.0**-decimals
    if decimals == 2:
        cut = abs(value) <= abs(exact)
        return exact if error <= (last if cut else last / 2) else None
    # A multiple may be the sum of quarters that were rounded one by one: 3.14158 is twice 1.57079.
    return exact if error <= abs(quarters) * last else None


def rounded_angles(file: str | Path) -> list[RoundedAngle]:
    """Rounded angles of a URDF, SDF or TOML robot file; none for built-in robots and other formats."""
    path = Path(file)
    suffix = path.suffix.lower()
    if suffix == ".toml":
        return snap_table_angles(tomllib.loads(path.read_text(encoding="utf-8")), snap=False)
    return snap_file_angles(read_xml(path), snap=False) if suffix in (".urdf", ".sdf") else []


def snap_file_angles(root: ET.Element, snap: bool) -> list[RoundedAngle]:
    """Rounded angles of the frames in a URDF or SDF file; with `snap` the elements are changed to exact angles."""
    found: list[RoundedAngle] = []
    for where, element, key, first in _places(root):
        text = (element.text if key is None else element.get(key)) or ""
        words = text.split()
        for i in range(first, len(words)):
            try:
                value = float(words[i])
            except ValueError:
                continue  # the reader reports it
            words[i] = _snapped(value, where, found, words[i])
        if snap and key is None:
            element.text = " ".join(words)
        elif snap and key is not None:
            element.set(key, " ".join(words))
    return found


def snap_table_angles(data: dict[str, Any], snap: bool) -> list[RoundedAngle]:
    """Rounded angles of a TOML robot file; with `snap` the table is changed to exact angles."""
    found: list[RoundedAngle] = []
    rows = [r for r in data.get("joint", []) if isinstance(r, dict)] if isinstance(data.get("joint"), list) else []
    tables = [(f"joint '{row.get('name', f'joint{i}')}'", row) for i, row in enumerate(rows, start=1)]
    if isinstance(data.get("base_frame"), dict):
        tables.append(("base_frame", data["base_frame"]))
    for where, table in tables:
        for key in ("alpha", "theta"):
            if isinstance(table.get(key), float):
                exact = float(_snapped(table[key], where, found, repr(table[key])))
                table[key] = exact if snap else table[key]
        if isinstance(table.get("rpy"), list):
            exact_rpy = [float(_snapped(x, where, found, repr(x))) if isinstance(x, float) else x for x in table["rpy"]]
            table["rpy"] = exact_rpy if snap else table["rpy"]
    return found


def note_on_angles(found: list[RoundedAngle], snapped: bool) -> str:
    """One sentence on the rounded angles of a file."""
    shown = ", ".join(f"{value:.12g} ({where})" for where, value in found[:4])
    more = f" and {len(found) - 4} more" if len(found) > 4 else ""
    if snapped:
        return f"rounded angles were set to exact multiples of pi/2: {shown}{more}"
    return (
        f"angles are multiples of pi/2 with few digits, which can add base parameters that the robot does not have: "
        f"{shown}{more}; load the robot with snap_angles to make them exact"
    )


def _snapped(value: float, where: str, found: list[RoundedAngle], text: str) -> str:
    """The exact angle as text, or the text as it was; a rounded angle is added to `found`."""
    exact = exact_angle(value)
    if exact is None:
        return text
    if abs(value - exact) > _EXACT:
        found.append((where, value))
    return repr(exact)


def _places(root: ET.Element) -> Iterator[tuple[str, ET.Element, str | None, int]]:
    """Where angles of frames are: owner, element, attribute (None for its text), index of the first angle."""
    if root.tag == "robot":
        for joint in root.findall("joint"):
            origin = joint.find("origin")
            if origin is not None:
                yield f"joint '{joint.get('name')}'", origin, "rpy", 0
        return
    for element in root.iter():
        pose = element.find("pose") if element.tag in ("model", "link", "joint", "frame") else None
        if pose is None or pose.get("degrees") in ("true", "1") or pose.get("rotation_format") == "quat_xyzw":
            continue
        yield f"{element.tag} '{element.get('name')}'", pose, None, 3
