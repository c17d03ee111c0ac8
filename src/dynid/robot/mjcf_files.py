"""What an MJCF file asks MuJoCo's compiler for, checked before: files that it opens, bodies that its macros make."""

from __future__ import annotations

import math
import xml.etree.ElementTree as ET
from pathlib import Path

from dynid.errors import ModelError
from dynid.limits import exceeded, file_limits
from dynid.robot.inside import check_inside
from dynid.robot.xmlfile import attribute, read_xml

__all__ = ["check_mjcf", "check_requests", "include_files", "included_files"]

_FOLDERS = ("meshdir", "texturedir", "assetdir")
_FILES = ("file", "fileright", "fileleft", "fileup", "filedown", "filefront", "fileback")
# Elements that stand for as many bodies as their count says.
_GRIDS = ("composite", "flexcomp")
# MuJoCo chooses these itself when dynid compiles a file.
_OWN_CHOICE = frozenset({"memory", "nstack"})
# Sizes that MuJoCo allocates as they are; larger ones than these are wrong.
_LARGEST_SIZE, _LARGEST_FIELD = 10**6, 10**8


def include_files(element: ET.Element, path: Path, seen: set[Path], top: Path | None = None, depth: int = 0) -> None:
    """Replace <include> elements by the content of their files.

    A file is searched beside the file that includes it, `path`, and then beside `top`, the main file. It must lie in
    the folder of the main file.
    """
    top, content, limits = top or path, [], file_limits()
    if depth > limits.xml_depth:
        exceeded(top.name, f"elements and includes nested more than {limits.xml_depth} deep", "xml_depth", ModelError)
    for child in element:
        if child.tag != "include":
            include_files(child, path, seen, top, depth + 1)
            content.append(child)
            continue
        name = attribute(child, "file", "an include")
        found = _included(name, path, top)
        if found in seen:
            raise ModelError(f"'{name}' is included twice", code="duplicate")
        seen.add(found)
        if len(seen) > limits.includes + 1:
            exceeded(top.name, f"more than {limits.includes} included files", "includes", ModelError)
        inner = read_xml(found)
        include_files(inner, found, seen, top, depth + 1)
        content += list(inner)
    element[:] = content


def included_files(path: Path) -> list[Path]:
    """The files that an MJCF file includes, those of included files too; none for files of other formats."""
    root, seen = read_xml(path), {path.resolve()}
    if root.tag == "mujoco":
        include_files(root, path, seen)
    return sorted(seen - {path.resolve()})


def _included(name: str, path: Path, top: Path) -> Path:
    """The path of an included file, which exists and lies in the folder of the main file."""
    candidates = [path.parent / name, top.parent / name]
    for candidate in candidates:
        check_inside(name, candidate, top, above=0)
    found = next((p for p in candidates if p.is_file()), None)
    if found is None:
        raise ModelError(f"the included file '{name}' does not exist", code="file_missing")
    return found.resolve()


def check_mjcf(path: Path) -> None:
    """Read a file and those that it includes, and refuse what `check_requests` refuses."""
    root = read_xml(path)
    include_files(root, path, {path.resolve()})
    check_requests(root, path)


def check_requests(root: ET.Element, path: Path) -> None:
    """Refuse files outside the folder, more bodies than the limit, and sizes without bound; includes are resolved."""
    folders = {""}
    for compiler in root.iter("compiler"):
        folders |= {compiler.get(key, "") for key in _FOLDERS}
    for element in root.iter():
        for key in _FILES:
            if key in element.attrib:
                for folder in folders:
                    check_inside(element.attrib[key], path.parent / folder / element.attrib[key], path)
        if element.tag == "hfield":
            _check_size(element, ("nrow", "ncol"), _LARGEST_FIELD, path)
        if element.tag == "size":
            for key in set(element.attrib) - _OWN_CHOICE:
                _check_size(element, (key,), _LARGEST_SIZE, path)
    _check_bodies(root, path)


def _check_size(element: ET.Element, keys: tuple[str, ...], most: int, path: Path) -> None:
    try:
        size = math.prod(max(float(element.get(key, "1")), 1.0) for key in keys)
    except ValueError:
        return  # whoever reads it says what is wrong
    if not size <= most:
        raise ModelError(
            f"<{element.tag}> asks for {' times '.join(keys)} = {size:g}, more than {most}",
            code="too_large",
            where=path.name,
        )


def _check_bodies(root: ET.Element, path: Path) -> None:
    """Count bodies and elements, those that macros repeat as often as they do."""
    limits, todo, bodies, elements = file_limits(), [(root, 1.0)], 0.0, 0.0
    while todo:
        element, times = todo.pop()
        elements += times
        if element.tag == "replicate":
            times *= _count(element)
        elif element.tag in _GRIDS:
            bodies += times * _count(element)
        elif element.tag == "body":
            bodies += times
        if bodies > limits.links:
            exceeded(path.name, f"more than {limits.links} bodies, those of its macros counted", "links", ModelError)
        if elements > limits.xml_elements:
            exceeded(path.name, f"more than {limits.xml_elements} elements", "xml_elements", ModelError)
        todo += [(child, times) for child in element]


def _count(element: ET.Element) -> float:
    try:
        return math.prod(max(float(x), 1.0) for x in element.get("count", "1").split()[:3])
    except ValueError:
        return 1.0
