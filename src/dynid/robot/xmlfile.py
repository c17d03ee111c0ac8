"""Reading of XML files and of the numbers in them; errors name the element at fault."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.limits import exceeded, file_limits
from dynid.reading import check_regular, parse_xml, read_regular

__all__ = ["attribute", "choice", "numbers", "read_xml"]

Array = NDArray[np.float64]
# Elements of URDF, SDF and MJCF that become links.
_BODIES = ("link", "body")


def read_xml(path: Path) -> ET.Element:
    """Root element of an XML file within the limits of `dynid.limits`, tags without their namespaces."""
    limits, bodies = file_limits(), 0
    try:
        size = check_regular(path)
        if size > limits.text_bytes:
            exceeded(path.name, f"{size} bytes", "text_bytes", ModelError)
        root = parse_xml(read_regular(path), path.name)
    except OSError as error:
        raise ModelError(f"{path.name} cannot be read: {error.strerror}", code="file_missing") from None
    for element in root.iter():
        space, _, tag = element.tag.rpartition("}")
        if "xacro" in space:
            raise ModelError(
                f"{path.name} holds xacro's <{tag}>: run xacro first ('xacro {path.name} > robot.urdf')",
                code="file_format",
            )
        element.tag = tag
        bodies += tag in _BODIES
    if bodies > limits.links:
        exceeded(path.name, f"{bodies} links", "links", ModelError)
    return root


def numbers(text: str | None, count: int, where: str) -> Array:
    """Read `count` finite numbers from the text of an attribute."""
    try:
        values = np.array([float(x) for x in (text or "").split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (count,) or not np.all(np.isfinite(values)):
        raise ModelError(
            f"expected {count} finite number{'s'[: count > 1]}, found '{text or ''}'", code="file_damaged", where=where
        )
    return values


def attribute(element: ET.Element | None, key: str, where: str) -> str:
    """A required attribute that must not be empty."""
    value = element.get(key) if element is not None else None
    if not value:
        raise ModelError(f"{where} has no '{key}'", code="missing_data")
    return value


def choice(text: str, words: Sequence[str], where: str) -> str:
    """A word that must be one of `words`."""
    if text not in words:
        raise ModelError(f"'{text}' is unknown, use {', '.join(words)}", code="unknown_name", where=where)
    return text
