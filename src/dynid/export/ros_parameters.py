"""The parameters of a robot as those of a ROS 2 node: links with mass, centre and inertia, joints with their drives."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, DataError, MissingData
from dynid.export.contents import body_values
from dynid.export.label import Label
from dynid.quoting import one_line, yaml_string
from dynid.robot.drives import DRIVE_LAWS
from dynid.robot.inertia import INERTIAL_SYMBOLS, inertia_from_com
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["from_ros", "to_ros"]

Array = NDArray[np.float64]

_NODE = "/**"  # any node
_WORDS = {law.symbol: law.key for law in DRIVE_LAWS.values()}
_SYMBOLS = {word: symbol for symbol, word in _WORDS.items()}
_UNITS = {False: "N m, rad, s", True: "N, m, s (prismatic)"}
_SLOPE, _CROSS = "_slope", "_cross_only"
_SETTINGS = {"rest": "spring_rest", "velocity": "stribeck_velocity"}
_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
_NOT_PLAIN = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}  # what YAML takes for other things


def to_ros(robot: Robot, label: Label | None = None) -> str:
    """Text of a parameter file for any node; the label of an estimate is comments."""
    bodies: Mapping[str, str] = {} if label is None else label.bodies
    lines = [] if label is None else [f"# {one_line(line)}" for line in label.head()]
    lines += [f"{_key(_NODE)}:", "  ros__parameters:", f"    robot: {yaml_string(robot.name)}"]
    lines.append(f"    joint_names: [{', '.join(map(yaml_string, robot.coordinates))}]")
    lines.append("    # kg, m; inertia about the centre of mass in link axes: xx, xy, xz, yy, yz, zz in kg m2")
    lines.append("    links:")
    for i in robot.parameter_links:
        link = robot.links[i]
        mass, com, tensor = body_values(link.inertia, link.name, "a ROS parameter file")
        lines += [f"      # {one_line(bodies[link.name])}"] if link.name in bodies else []
        lines += [f"      {_key(link.name)}:", f"        mass: {_float(mass)}", f"        com: {_floats(com)}"]
        lines.append(f"        inertia: {_floats(tensor[np.triu_indices(3)])}")
    for motor, section in ((False, "joints"), (True, "motors")):
        shafts: dict[str, list[str]] = {}
        terms = [t for t in robot.drives if t.motor == motor]
        units = [_UNITS[linear] for linear in sorted({t.linear for t in terms})]
        for term in terms:
            word = _WORDS.get(term.symbol, term.symbol)
            rows = shafts.setdefault(term.shaft, [])
            rows.append(f"{_key(word)}: {_float(term.value)}")
            setting = "" if term.function is not None else DRIVE_LAWS[term.symbol].setting
            rows += [f"{_SETTINGS[setting]}: {_float(getattr(term, setting))}"] if setting else []
            if term.slope:
                rows.append(f"{word}{_SLOPE}: {_float(term.slope)}")
            if term.cross_only:
                rows.append(f"{word}{_CROSS}: true")
        if shafts:
            lines += [f"    # {' and '.join(units)}", f"    {section}:"]
            for shaft, rows in shafts.items():
                lines += [f"      {_key(shaft)}:", *(f"        {row}" for row in rows)]
    return "\n".join(lines) + "\n"


def from_ros(data: Any, robot: Robot, path: str) -> tuple[dict[str, float], dict[str, dict[str, Any]]]:
    """Values of the standard parameters by name, and what is known of the drive terms."""
    given = _node(data, path)
    values: dict[str, float] = {}
    settings: dict[str, dict[str, Any]] = {}
    for link, body in _table(given, "links", path).items():
        where = f"'{path}', link '{link}'"
        mass, com = _numbers(body, "mass", (), where), _numbers(body, "com", (3,), where)
        xx, xy, xz, yy, yz, zz = _numbers(body, "inertia", (6,), where)
        pi = inertia_from_com(mass, com, [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        values |= {f"{s}_{link}": float(x) for s, x in zip(INERTIAL_SYMBOLS, pi, strict=True)}
    for kind in ("joint", "motor"):
        for shaft, drive in _table(given, f"{kind}s", path).items():
            where = f"'{path}', {kind} '{shaft}'"
            if not isinstance(drive, Mapping):
                raise DamagedFile("expected a table of parameters", where=where)
            for word in drive:
                if word in _SETTINGS.values() or word.endswith((_SLOPE, _CROSS)):
                    continue
                symbol = str(_SYMBOLS.get(word, word))
                values[f"{symbol}_{shaft}"] = float(_numbers(drive, word, (), where))
                row = {"symbol": symbol, kind: shaft, "slope": drive.get(f"{word}{_SLOPE}", 0.0)}
                setting = DRIVE_LAWS[symbol].setting if symbol in DRIVE_LAWS else ""
                row |= {name: drive.get(key, 0.0) if setting == name else 0.0 for name, key in _SETTINGS.items()}
                settings[f"{symbol}_{shaft}"] = row | {"cross_only": drive.get(f"{word}{_CROSS}", False)}
    return values, settings


def _node(data: Any, path: str) -> Mapping[str, Any]:
    """The parameters of the one node in a file that has links."""
    nodes = data.values() if isinstance(data, Mapping) else ()
    found = [n["ros__parameters"] for n in nodes if isinstance(n, Mapping) and "ros__parameters" in n]
    found = [p for p in found if isinstance(p, Mapping) and "links" in p]
    if len(found) != 1:
        raise DamagedFile(f"'{path}' must have one node with ros__parameters and links in them, it has {len(found)}")
    return found[0]


def _table(given: Mapping[str, Any], key: str, path: str) -> Mapping[str, Any]:
    table = given.get(key, {})
    if not isinstance(table, Mapping):
        raise DamagedFile(f"'{path}': {key} must be a table")
    return table


def _numbers(given: Any, key: str, shape: tuple[int, ...], where: str) -> Array:
    if not isinstance(given, Mapping) or key not in given:
        raise MissingData(f"{where} has no '{key}'")
    return checked(given[key], shape, f"{where}: {key}", DataError)


# -- text ----------------------------------------------------------------------------------------------


def _float(value: float) -> str:
    """A number that YAML and ROS take for one with a fraction, exact to the last bit."""
    text = repr(float(value) + 0.0)
    head, sign, power = text.partition("e")
    return text if "." in head else f"{head}.0{sign}{power}"


def _floats(values: Iterable[float]) -> str:
    return f"[{', '.join(_float(v) for v in values)}]"


def _key(text: str) -> str:
    return text if _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN else yaml_string(text)
