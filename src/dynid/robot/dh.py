"""Robots from Denavit-Hartenberg tables, in code or in a TOML file.

Both conventions use the same names: alpha and a are the twist and the length of the link, d and theta the offset along
and the angle about the joint axis. Khalil's modified tables write d for a and r for d. The joint variable is added to
theta (revolute) or d (prismatic).
"""

from __future__ import annotations

import math
import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, ValidationError

from dynid.errors import ModelError
from dynid.reading import parse_toml, read_text
from dynid.robot.angles import note_on_angles, snap_table_angles
from dynid.robot.constraints import Constraint, JointEquality, Loop, LoopKind
from dynid.robot.drives import DRIVE_LAWS, DriveTerm, Transmission
from dynid.robot.elements import ForceElement, Gas, element_terms
from dynid.robot.inertia import inertia_from_com, move_inertia
from dynid.robot.loops import close_loops
from dynid.robot.mechanism import Mechanism
from dynid.robot.parts import Frame, Joint, Link, Merge, Mimic, checked, fold_mimics, read_limits
from dynid.robot.spatial import axis_rotation, clean, placement, rpy_rotation

__all__ = ["read_toml", "robot_from_rows"]

Array = NDArray[np.float64]
R = TypeVar("R", bound=Mechanism)
Angle = float | str
Vector = tuple[float, float, float]
Tensor = tuple[float, float, float, float, float, float]
_PI = re.compile(r"\s*([+-]?)\s*(\d+(?:\.\d+)?)?\s*\*?\s*pi\s*(?:/\s*(\d+(?:\.\d+)?))?\s*")


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=False)


class _Inertia(_Strict):
    """Either about the centre of mass (com, tensor) or about the frame origin (moment, tensor_origin)."""

    mass: float
    com: Vector | None = None
    tensor: Tensor | None = None
    moment: Vector | None = None
    tensor_origin: Tensor | None = None


class _Mimic(_Strict):
    joint: str
    multiplier: float = 1.0
    offset: float = 0.0


class _Row(_Strict):
    name: str | None = None
    link: str | None = None
    parent: str | None = None
    kind: str = "revolute"
    alpha: Angle | None = None
    a: float | None = None
    d: float | None = None
    theta: Angle | None = None
    xyz: Vector | None = None
    rpy: tuple[Angle, Angle, Angle] | None = None
    axis: Vector | None = None
    inertia: _Inertia | None = None
    limits: dict[str, Any] = {}
    drive: dict[str, float] = {}
    mimic: _Mimic | None = None


class _Motor(_Strict):
    name: str
    ratio: float = 1.0
    drive: dict[str, float] = {}
    cross_only: bool = False


class _Gas(_Strict):
    area: float
    volume: float
    length: float
    exponent: float = 1.0
    pulls: bool = False


class _Element(_Strict):
    name: str
    links: tuple[str, str]
    points: tuple[Vector, Vector] = ((0.0, 0.0, 0.0), (0.0, 0.0, 0.0))
    stiffness: float | None = None
    rest: float = 0.0
    preload: float | None = None
    pressure: float | None = None
    gas: _Gas | None = None

    def element(self) -> ForceElement:
        """The force element of the table."""
        given = {name: getattr(self, name) for name in type(self).model_fields if name != "gas"}
        return ForceElement(**given, gas=None if self.gas is None else Gas(**self.gas.model_dump()))


class _Frame(_Strict):
    xyz: Vector = (0.0, 0.0, 0.0)
    rpy: tuple[Angle, Angle, Angle] = (0.0, 0.0, 0.0)


class _LoopFrame(_Frame):
    link: str
    name: str | None = None


class _Loop(_Strict):
    kind: str
    name: str = ""
    first: _LoopFrame
    second: _LoopFrame
    length: float = 0.0


class _Equality(_Strict):
    name: str = ""
    weights: dict[str, float]
    polynomial: list[float] = [0.0]
    leaders: dict[str, float] = {}


class _BaseLink(_Strict):
    name: str = "base"
    inertia: _Inertia | None = None


class _File(_Strict):
    name: str
    description: str = ""
    source: str = ""
    convention: Literal["standard", "modified", "origin"]
    base: Literal["fixed", "floating", "instrumented"] = "fixed"
    gravity: Vector = (0.0, 0.0, -9.81)
    base_frame: _Frame = _Frame()
    base_link: _BaseLink = _BaseLink()
    joint: list[_Row]
    motor: list[_Motor] = []
    coupling: list[list[float]] | None = None
    element: list[_Element] = []
    loop: list[_Loop] = []
    equality: list[_Equality] = []
    passive: list[str] | None = None
    posture: dict[str, Angle] = {}


def _angle(value: Angle, where: str) -> float:
    if isinstance(value, str):
        match = _PI.fullmatch(value)
        if match is None:
            raise ModelError(
                f"'{value}' is not an angle; write radians or a multiple of pi such as '-pi/2'",
                code="invalid_value",
                where=where,
            )
        sign, factor, divisor = match.groups()
        size = float(factor or 1) * math.pi / (float(divisor or 1) or math.nan)
        value = -size if sign == "-" else size
    if not math.isfinite(value):
        raise ModelError("an angle must be finite", code="invalid_value", where=where)
    return float(value)


def _origin(xyz: Vector, rpy: Sequence[Angle], where: str) -> Array:
    if not np.all(np.isfinite(xyz)):
        raise ModelError("xyz must be finite", "xyz", code="invalid_value", where=where)
    return clean(placement(rpy_rotation(*(_angle(x, where) for x in rpy)), xyz))


def _inertia(given: _Inertia | None, where: str) -> Array:
    if given is None:
        return np.zeros(10)
    about_com = given.tensor is not None or given.com is not None
    about_origin = given.tensor_origin is not None or given.moment is not None
    if about_com and about_origin:
        raise ModelError(
            "give com and tensor, or moment and tensor_origin, not both", "com", code="conflicting", where=where
        )

    xx, xy, xz, yy, yz, zz = (given.tensor_origin if about_origin else given.tensor) or (0.0,) * 6
    if about_origin:
        out = np.array([given.mass, *(given.moment or (0.0,) * 3), xx, xy, yy, xz, yz, zz])
        return checked(out, (10,), f"{where}: inertia")
    tensor = checked([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]], (3, 3), f"{where}: tensor")
    com = checked(given.com or (0.0,) * 3, (3,), f"{where}: com")
    return inertia_from_com(checked(given.mass, (), f"{where}: mass"), com, tensor)


def _places(row: _Row, convention: str, where: str) -> tuple[Array, Array, Array]:
    """Placement before the joint, axis, and mount of its link."""
    dh = {k: getattr(row, k) for k in ("alpha", "a", "d", "theta") if getattr(row, k) is not None}
    free = {k: getattr(row, k) for k in ("xyz", "rpy", "axis") if getattr(row, k) is not None}
    if convention == "origin":
        if dh:
            raise ModelError(
                f"{where} gives '{min(dh)}', but the convention is origin: use xyz, rpy and axis",
                "convention",
                code="conflicting",
            )
        before = _origin(row.xyz or (0.0, 0.0, 0.0), row.rpy or (0.0, 0.0, 0.0), where)
        return before, np.array(row.axis or (0.0, 0.0, 1.0)), np.eye(4)
    if free:
        raise ModelError(
            f"{where} gives '{min(free)}', but the convention is {convention}: use alpha, a, d, theta",
            "convention",
            code="conflicting",
        )
    if not dh:
        raise ModelError(
            f"{where} has no Denavit-Hartenberg values: give alpha, a, d, theta (zeros may be left out)",
            code="missing_argument",
        )
    alpha = _angle(row.alpha or 0.0, f"{where}, alpha")
    theta = _angle(row.theta or 0.0, f"{where}, theta")
    a, d = row.a or 0.0, row.d or 0.0
    if not (math.isfinite(a) and math.isfinite(d)):
        raise ModelError("a and d must be finite", code="invalid_value", where=where)
    about_x = placement(axis_rotation((1, 0, 0), alpha), (a, 0.0, 0.0))  # Trans_x(a) Rot_x(alpha)
    about_z = placement(axis_rotation((0, 0, 1), theta), (0.0, 0.0, d))  # Rot_z(theta) Trans_z(d)
    axis = np.array([0.0, 0.0, 1.0])
    if convention == "modified":  # Rot_x(alpha) Trans_x(a) Rot_z(theta) Trans_z(d)
        return clean(about_x @ about_z), axis, np.eye(4)
    return clean(about_z), axis, clean(about_x)  # Rot_z(theta) Trans_z(d) Trans_x(a) Rot_x(alpha)


def _build(kind: type[R], file: _File) -> R:
    links = [Link(file.base_link.name, _inertia(file.base_link.inertia, "base link"))]
    where_is = {file.base_link.name: (0, np.eye(4))}  # link name -> body and placement on it
    joints: list[Joint] = []
    mimics: dict[str, Mimic] = {}
    drive_of: list[dict[str, float]] = []
    frames: list[Frame] = []
    merged: list[Merge] = []
    base_frame = _origin(file.base_frame.xyz, file.base_frame.rpy, "base_frame")
    previous = file.base_link.name
    for number, row in enumerate(file.joint, start=1):
        name, link = row.name or f"joint{number}", row.link or f"link{number}"
        where = f"joint row {number} ('{name}')"
        if row.kind not in ("revolute", "prismatic", "fixed"):
            raise ModelError(
                f"{where} is of kind '{row.kind}', which is not supported: use revolute, prismatic or fixed",
                "kind",
                code="unsupported",
            )
        parent = row.parent or previous
        if parent not in where_is:
            raise ModelError(f"{where} has an unknown parent link '{parent}'", "parent", code="unknown_name")
        if link in where_is:
            raise ModelError(f"{where} defines a second link named '{link}'", code="duplicate")
        body, on_body = where_is[parent]
        before, axis, mount = _places(row, file.convention, where)
        before = on_body @ before
        if parent == file.base_link.name:
            before = base_frame @ before
        inertia = _inertia(row.inertia, where)
        if row.kind == "fixed":
            if row.drive or row.mimic or row.limits:
                raise ModelError(f"{where} is fixed and can have no drive, limits or mimic")
            place = before @ mount
            links[body] = Link(links[body].name, links[body].inertia + move_inertia(inertia, place))
            frames.append(Frame(link, body, place))
            merged.append(Merge(link, name, links[body].name, float(inertia[0])))
            where_is[link] = (body, place)
        else:
            limits = read_limits(name, row.limits)
            joints.append(Joint(name, row.kind, body, before, axis, mount, limits))  # type: ignore[arg-type]
            links.append(Link(link, inertia))
            where_is[link] = (len(links) - 1, np.eye(4))
            if row.mimic is None:
                drive_of.append(row.drive)
            else:
                mimics[name] = Mimic(row.mimic.joint, row.mimic.multiplier, row.mimic.offset)
                if row.drive:
                    raise ModelError(f"{where} mimics another joint and can have no drive of its own")
        previous = link
    mimics = fold_mimics(mimics)
    robot = kind(
        name=file.name,
        links=tuple(links),
        joints=tuple(replace(j, mimic=mimics.get(j.name)) for j in joints),
        gravity=np.array(file.gravity),
        base=file.base,
        frames=tuple(frames),
        merged=tuple(merged),
        source=file.source,
    )
    robot = _with_drives(robot, drive_of, file)
    robot = robot.with_terms(*(term for x in file.element for term in element_terms(robot, x.element())))
    return _with_loops(robot, where_is, file)


def _with_loops(robot: R, where_is: Mapping[str, tuple[int, Array]], file: _File) -> R:
    if not file.loop and not file.equality:
        if file.passive or file.posture:
            raise ModelError(
                "passive joints and a posture need loops: add [[loop]] or [[equality]] tables", code="missing_argument"
            )
        return robot
    loops: list[Constraint] = []
    for number, row in enumerate(file.loop, start=1):
        frames = []
        for given in (row.first, row.second):
            where = f"loop {number}, frame on link '{given.link}'"
            if given.link not in where_is:
                raise ModelError("there is no such link", code="unknown_name", where=where)
            body, on_body = where_is[given.link]
            frames.append(Frame(given.name or given.link, body, on_body @ _origin(given.xyz, given.rpy, where)))
        loops.append(Loop(LoopKind(row.kind), frames[0], frames[1], row.length, row.name))
    loops += [JointEquality(x.weights, tuple(x.polynomial), x.leaders, x.name) for x in file.equality]
    posture = {name: _angle(x, f"posture of joint '{name}'") for name, x in file.posture.items()}
    return close_loops(robot, loops, file.passive, posture)


def _with_drives(robot: R, drive_of: list[dict[str, float]], file: _File) -> R:
    terms: list[DriveTerm] = []
    for i, drive in enumerate(drive_of):
        if "rest" in drive and "k" not in drive:
            raise ModelError(f"joint '{robot.coordinates[i]}' has a rest position but no spring k")
        if "velocity" in drive and "fs" not in drive:
            raise ModelError(f"joint '{robot.coordinates[i]}' has a Stribeck velocity but no Stribeck friction fs")
        values = {s: v for s, v in drive.items() if s not in ("rest", "velocity")}
        terms += [robot.joint_term(i, s, v, **_settings(s, drive)) for s, v in values.items()]
    if file.motor:
        coupling: Any = np.eye(robot.n) if file.coupling is None else file.coupling
        motors, ratios = tuple(m.name for m in file.motor), np.array([m.ratio for m in file.motor])
        robot = robot.with_transmission(Transmission(motors, coupling, ratios))
        for motor in file.motor:
            terms += [robot.motor_term(motor.name, s, v, cross_only=motor.cross_only) for s, v in motor.drive.items()]
    elif file.coupling is not None:
        raise ModelError("a coupling matrix needs motors: add one [[motor]] table per column", code="missing_argument")
    return robot.with_terms(*terms)


def _settings(symbol: str, drive: Mapping[str, float]) -> dict[str, float]:
    """What a term has beside its value."""
    setting = DRIVE_LAWS[symbol].setting if symbol in DRIVE_LAWS else ""
    return {setting: drive.get(setting, 0.0)} if setting else {}


def _validated(data: Mapping[str, Any], what: str) -> _File:
    try:
        return _File.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        path = ".".join(str(x + 1) if isinstance(x, int) else str(x) for x in first["loc"])
        raise ModelError(f"{what}: {path}: {first['msg'].lower()}", code="invalid_value") from None


def read_toml(kind: type[R], path: Path, snap_angles: bool = False) -> R:
    """A robot from a TOML robot file; rounded angles are named in its notes, and made exact on request."""
    try:
        data = parse_toml(read_text(path))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ModelError(f"{path.name} is not a valid TOML file: {error}", code="file_damaged") from None
    except OSError as error:
        raise ModelError(f"{path.name} cannot be read: {error.strerror}", code="file_missing") from None
    found = snap_table_angles(data, snap_angles)
    robot = _build(kind, _validated(data, path.name))
    return replace(robot, notes=(note_on_angles(found, snap_angles),)) if found else robot


def robot_from_rows(
    kind: type[R], rows: Sequence[Mapping[str, Any] | Sequence[float]], convention: str, name: str, **options: Any
) -> R:
    """A robot from rows given in code; a row is (alpha, a, d, theta) or a mapping with the keys of the file."""
    table = []
    if isinstance(rows, str | Mapping) or not isinstance(rows, Iterable):
        raise ModelError(f"robot '{name}' needs a sequence of joint rows, got {rows!r:.60}", code="invalid_type")
    for number, row in enumerate(rows, start=1):
        if isinstance(row, Mapping):
            table.append(dict(row))
        elif isinstance(row, Sequence | np.ndarray) and len(row) == 4:
            table.append(dict(zip(("alpha", "a", "d", "theta"), row, strict=True)))
        else:
            raise ModelError(f"joint row {number} needs (alpha, a, d, theta), got {row!r:.60}", code="invalid_type")
    return _build(
        kind, _validated({"name": name, "convention": convention, "joint": table, **options}, f"robot '{name}'")
    )
