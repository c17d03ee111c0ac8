"""Interpretation of MJCF attributes: compiler settings, default classes, poses and shapes."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.inertia import inertia_from_com, move_inertia
from dynid.robot.spatial import axis_rotation, placement
from dynid.robot.xmlfile import attribute, choice, numbers

__all__ = [
    "MACROS",
    "NEEDS_MUJOCO",
    "SHAPE_SIZES",
    "Item",
    "Settings",
    "body_items",
    "changing_setting",
    "read_settings",
]

NEEDS_MUJOCO = "needs MuJoCo: pip install 'dynid[mujoco]'"

Array = NDArray[np.float64]
Attributes = Mapping[str, str]
Classes = dict[str, Attributes]  # tag -> attributes

# Elements that MuJoCo's compiler expands into bodies and joints.
MACROS = ("attach", "composite", "flexcomp", "replicate")
_MAIN = "main"  # the class of elements without a class
_BOOLEAN = ("true", "false")
# Settings that change masses or poses after reading, unless they have these values.
_ONLY = {"coordinate": "local", "balanceinertia": "false", "settotalmass": "-1", "boundmass": "0", "boundinertia": "0"}
# Number of sizes per shape; for a shape between two points, the last size is half their distance.
SHAPE_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}


class Item(NamedTuple):
    """An element of a body, the pose of its enclosing <frame>s in the body, and the active default class."""

    element: ET.Element
    pose: Array
    childclass: str | None


@dataclass(frozen=True)
class Settings:
    """Compiler settings and default classes (class -> tag -> attributes) of a file."""

    degrees: bool
    euler: str
    autolimits: bool
    inertia_from_geom: str
    groups: tuple[float, float]
    defaults: Mapping[str, Classes]

    def attributes(self, element: ET.Element, childclass: str | None) -> dict[str, str]:
        """All attributes of an element: its own override those of its class or of the childclass of its body."""
        name = element.get("class") or childclass or _MAIN
        if name not in self.defaults:
            raise ModelError(
                f"<{element.tag}> '{element.get('name', '')}' is of class '{name}', which is not defined",
                code="unknown_name",
            )
        return {**self.defaults[name].get(element.tag, {}), **element.attrib}

    def angle(self, value: float) -> float:
        """An angle of the file in rad."""
        return math.radians(value) if self.degrees else value

    def pose(self, given: Attributes, where: str) -> Array:
        """Placement from pos and one of the five representations of an orientation."""
        position = numbers(given.get("pos", "0 0 0"), 3, f"{where}, pos")
        for key, read in (
            ("quat", self._quaternion),
            ("axisangle", self._axis_angle),
            ("xyaxes", self._xy_axes),
            ("zaxis", self._z_axis),
            ("euler", self._euler),
        ):
            if key in given:
                rotation = read(given[key], f"{where}, {key}")
                if not np.all(np.isfinite(rotation)):
                    raise ModelError(f"{where}, {key}: '{given[key]}' is not an orientation")
                return placement(rotation, position)
        return placement(None, position)

    def _quaternion(self, text: str, where: str) -> Array:
        w, x, y, z = _unit(numbers(text, 4, where))
        return np.asarray(pin.Quaternion(w, x, y, z).toRotationMatrix())

    def _axis_angle(self, text: str, where: str) -> Array:
        given = numbers(text, 4, where)
        return axis_rotation(_unit(given[:3]), self.angle(given[3]))

    def _euler(self, text: str, where: str) -> Array:
        rotation = np.eye(3)
        for letter, angle in zip(self.euler, numbers(text, 3, where), strict=True):
            step = axis_rotation(np.eye(3)["xyz".index(letter.lower())], self.angle(angle))
            rotation = rotation @ step if letter.islower() else step @ rotation
        return rotation

    def _xy_axes(self, text: str, where: str) -> Array:
        given = numbers(text, 6, where)
        x = _unit(given[:3])
        y = _unit(given[3:] - x * (x @ given[3:]))
        return np.column_stack([x, y, np.cross(x, y)])

    def _z_axis(self, text: str, where: str) -> Array:
        return z_rotation(numbers(text, 3, where))

    def inertial(self, element: ET.Element, where: str) -> Array:
        """Inertial parameters of an <inertial> element in the frame of its body."""
        mass = numbers(element.get("mass"), 1, f"{where}, mass")[0]
        if "diaginertia" in element.attrib:
            tensor = np.diag(numbers(element.get("diaginertia"), 3, f"{where}, diaginertia"))
        elif "fullinertia" in element.attrib:
            xx, yy, zz, xy, xz, yz = numbers(element.get("fullinertia"), 6, f"{where}, fullinertia")
            tensor = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        else:
            raise ModelError(f"{where} has a mass but no inertia")
        body = inertia_from_com(mass, np.zeros(3), tensor)
        return move_inertia(body, self.pose(element.attrib, f"{where}, inertial"))

    def shape_inertia(self, given: Attributes, where: str) -> Array | None:
        """Inertial parameters of a geom in the frame of its body; None for a shape that needs its mesh."""
        low, high = self.groups
        if not low <= numbers(given.get("group", "0"), 1, f"{where}, group")[0] <= high:
            return np.zeros(10)
        density = numbers(given.get("density", "1000"), 1, f"{where}, density")[0]
        mass = numbers(given["mass"], 1, f"{where}, mass")[0] if "mass" in given else None
        if density < 0 or (mass is not None and mass < 0):
            raise ModelError(f"{where} has a negative {'density' if mass is None else 'mass'}")
        if mass == 0 or (mass is None and density == 0):
            return np.zeros(10)
        kind = given.get("type", "sphere")
        if kind not in SHAPE_SIZES or "mesh" in given or given.get("shellinertia") == "true":
            return None
        place, size = self.shape(given, kind, where)
        volume, unit = _UNIT_SHAPES[kind](*size)
        scale = density * volume if mass is None else mass
        return scale * move_inertia(np.asarray(unit.toDynamicParameters()), place)

    def shape(self, given: Attributes, kind: str, where: str) -> tuple[Array, Array]:
        """Placement and sizes (radii and half lengths) of a shape."""
        count = SHAPE_SIZES[kind]
        text = given.get("size", "").split()
        if "fromto" not in given or kind == "sphere":
            return self.pose(given, where), numbers(" ".join(text[:count]), count, f"{where}, size")
        ends = numbers(given["fromto"], 6, f"{where}, fromto").reshape(2, 3)
        line = ends[0] - ends[1]
        if not np.any(line):
            raise ModelError(f"{where}, fromto: the two points coincide")
        radius = numbers(text[0] if text else None, 1, f"{where}, size")
        size = np.array([*[radius[0]] * (count - 1), 0.5 * np.linalg.norm(line)])
        return placement(z_rotation(line), ends.mean(axis=0)), size


def body_items(
    settings: Settings, body: ET.Element, childclass: str | None, pose: Array | None = None
) -> Iterator[Item]:
    """The elements of a body, including those inside its <frame>s."""
    pose = np.eye(4) if pose is None else pose
    inner = body.get("childclass", childclass)
    for element in body:
        if element.tag == "frame":
            here = settings.pose(element.attrib, f"frame '{element.get('name', '')}'")
            yield from body_items(settings, element, inner, pose @ here)
        else:
            yield Item(element, pose, inner)


def z_rotation(direction: Array) -> Array:
    """The smallest rotation that maps z to a direction."""
    return np.asarray(pin.Quaternion.FromTwoVectors(np.array([0.0, 0.0, 1.0]), _unit(direction)).toRotationMatrix())


def _unit(v: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return v / np.linalg.norm(v)


def _capsule(radius: float, half: float) -> tuple[float, pin.Inertia]:
    volume = math.pi * radius**2 * (2 * half + 4 / 3 * radius)
    return volume, pin.Inertia.FromCapsule(1.0, radius, 2 * half)


# Volume and inertia for one kilogram, from MJCF's sizes (radii and half lengths).
_UNIT_SHAPES: dict[str, Callable[..., tuple[float, pin.Inertia]]] = {
    "sphere": lambda r: (4 / 3 * math.pi * r**3, pin.Inertia.FromSphere(1.0, r)),
    "capsule": _capsule,
    "cylinder": lambda r, h: (2 * math.pi * r**2 * h, pin.Inertia.FromCylinder(1.0, r, 2 * h)),
    "ellipsoid": lambda x, y, z: (4 / 3 * math.pi * x * y * z, pin.Inertia.FromEllipsoid(1.0, x, y, z)),
    "box": lambda x, y, z: (8 * x * y * z, pin.Inertia.FromBox(1.0, 2 * x, 2 * y, 2 * z)),
}


def changing_setting(root: ET.Element) -> str | None:
    """The first compiler setting that changes masses or poses after reading, as text; None if there is none."""
    for element in root.findall("compiler"):
        for key, only in _ONLY.items():
            if element.get(key, only) != only:
                return f'{key}="{element.get(key)}"'
    return None


def read_settings(root: ET.Element) -> Settings:
    """Settings from all compiler and default sections of a file."""
    given: dict[str, str] = {}
    for element in root.findall("compiler"):
        given |= element.attrib
    euler = given.get("eulerseq", "xyz")
    if len(euler) != 3 or set(euler.lower()) - set("xyz"):
        raise ModelError(f"compiler, eulerseq: '{euler}' is not a sequence of three axes")
    low, high = numbers(given.get("inertiagrouprange", "0 5"), 2, "compiler, inertiagrouprange")
    defaults: dict[str, Classes] = {_MAIN: {}}
    for element in root.findall("default"):
        _read_defaults(element, _MAIN, defaults[_MAIN], defaults)
    return Settings(
        degrees=choice(given.get("angle", "degree"), ("degree", "radian"), "compiler, angle") == "degree",
        euler=euler,
        autolimits=choice(given.get("autolimits", "true"), _BOOLEAN, "compiler, autolimits") == "true",
        inertia_from_geom=choice(
            given.get("inertiafromgeom", "auto"), (*_BOOLEAN, "auto"), "compiler, inertiafromgeom"
        ),
        groups=(low, high),
        defaults=defaults,
    )


def _read_defaults(element: ET.Element, name: str, start: Classes, out: dict[str, Classes]) -> None:
    """Add the class of a <default> element and its nested classes, which inherit from it."""
    here = dict(start)
    for child in element:
        if child.tag != "default":
            here[child.tag] = {**here.get(child.tag, {}), **child.attrib}
    out[name] = here
    for child in element.findall("default"):
        _read_defaults(child, attribute(child, "class", "a default"), here, out)
