"""Visible shapes of MJCF files: those that MuJoCo's viewer shows, read without MuJoCo and without their meshes."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.extent import carriers
from dynid.robot.mjcf_files import check_requests, include_files
from dynid.robot.mjcf_shapes import MeshAsset, mesh_files
from dynid.robot.mjcf_values import MACROS, SHAPE_SIZES, Item, Settings, body_items, read_settings
from dynid.robot.model import Robot
from dynid.robot.visual_shape import VisualShape, hex_color
from dynid.robot.xmlfile import numbers

__all__ = ["mjcf_visuals"]

Array = NDArray[np.float64]

# Groups of geoms that MuJoCo's viewer shows at first; shapes for collisions are in others by custom.
_SHOWN = (0, 1, 2)
# What has no body of its own: the ground and terrain.
_TERRAIN = ("plane", "hfield")


def mjcf_visuals(root: ET.Element, path: Path, robot: Robot) -> list[VisualShape]:
    """The shown geoms of the bodies of an MJCF file, its includes resolved."""
    include_files(root, path, {path.resolve()})
    check_requests(root, path)
    for element in root.iter():
        if element.tag in MACROS:
            raise ModelError(
                f"bodies of <{element.tag}> are made by MuJoCo's compiler and are not drawn", code="unsupported"
            )
    settings, known = read_settings(root), carriers(robot)
    meshes = mesh_files(root, settings, Path())
    colors = _colors(root, settings)
    out = []
    for name, item in _geoms(root, settings, floating=robot.base == "floating"):
        if name not in known:
            continue
        given = settings.attributes(item.element, item.childclass)
        where = f"body '{name}', geom '{given.get('name', '')}'"
        if _is_shown(given, where):
            link, place = known[name]
            out.append(_shape(settings, given, link, place @ item.pose, meshes, colors, where))
    return out


def _geoms(root: ET.Element, settings: Settings, floating: bool) -> Iterator[tuple[str, Item]]:
    """Every geom with the name of its body, depth first; bodies without a name are counted as the readers do."""
    count, todo = 0, []
    for world in root.findall("worldbody"):
        items = list(body_items(settings, world, None))
        yield from (("world", item) for item in items if item.element.tag == "geom")
        todo += [item for item in items if item.element.tag == "body"]
    if floating:  # what stands in the world is no part of the robot
        todo = [item for item in todo if any(e.tag in ("joint", "freejoint") for e in item.element.iter())]
    while todo:
        body = todo.pop(0)
        count += 1
        name = body.element.get("name") or f"body{count}"
        items = list(body_items(settings, body.element, body.childclass))
        yield from ((name, item) for item in items if item.element.tag == "geom")
        todo = [item for item in items if item.element.tag == "body"] + todo


def _is_shown(given: Mapping[str, str], where: str) -> bool:
    group = numbers(given.get("group", "0"), 1, f"{where}, group")[0]
    opacity = numbers(given["rgba"], 4, f"{where}, rgba")[3] if "rgba" in given else 1.0
    return group in _SHOWN and opacity > 0 and given.get("type") not in _TERRAIN


def _shape(
    settings: Settings,
    given: Mapping[str, str],
    link: int,
    on: Array,
    meshes: Mapping[str, MeshAsset],
    colors: Mapping[str, str | None],
    where: str,
) -> VisualShape:
    color = hex_color(given["rgba"], f"{where}, rgba") if "rgba" in given else colors.get(given.get("material", ""))
    kind, named = given.get("type", "sphere"), given.get("mesh", "")
    if named:  # also that of a primitive which MuJoCo fits to it
        if named not in meshes:
            raise ModelError(
                f"mesh '{named}' has no file, or a place that depends on its scale", code="unsupported", where=where
            )
        asset = meshes[named]
        pose = settings.pose(given, where) @ asset.reference
        return VisualShape(link, on @ pose, "mesh", np.zeros(0), asset.file.as_posix(), asset.scale, color)
    if kind not in SHAPE_SIZES:
        raise ModelError(
            f"shape '{kind}' is unknown, use {', '.join(SHAPE_SIZES)} or mesh", code="unsupported", where=where
        )
    place, size = settings.shape(given, kind, where)
    if np.any(size <= 0):
        raise ModelError(f"{where}, size: must be positive, found '{given.get('size', '')}'")
    # MuJoCo's sizes are radii and half lengths.
    if kind == "box":
        size = 2 * size
    elif kind in ("cylinder", "capsule"):
        size = size * [1.0, 2.0]
    return VisualShape(link, on @ place, kind, size, "", np.ones(3), color)


def _colors(root: ET.Element, settings: Settings) -> dict[str, str | None]:
    """Colors of the materials by name; None for those that a texture paints."""
    out: dict[str, str | None] = {}
    for material in root.iterfind("asset/material"):
        given = settings.attributes(material, None)
        painted = "texture" in given or "rgba" not in given
        out[given.get("name", "")] = None if painted else hex_color(given["rgba"], "material, rgba")
    return out
