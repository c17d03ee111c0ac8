"""Reading of XML files and of the numbers in them; errors name the element at fault."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError

__all__ = ["attribute", "choice", "numbers", "read_xml"]

Array = NDArray[np.float64]


def read_xml(path: Path) -> ET.Element:
    """Root element of an XML file, tags without their namespaces."""
    try:
        root = ET.parse(path).getroot()
    except (ET.ParseError, UnicodeError, LookupError) as error:
        raise ModelError(f"{path.name} is not well-formed XML: {error}") from None
    except OSError as error:
        raise ModelError(f"{path.name} cannot be read: {error.strerror}") from None
    for element in root.iter():
        space, _, tag = element.tag.rpartition("}")
        if "xacro" in space:
            raise ModelError(f"{path.name} holds xacro's <{tag}>: run xacro first ('xacro {path.name} > robot.urdf')")
        element.tag = tag
    return root


def numbers(text: str | None, count: int, where: str) -> Array:
    """Read `count` finite numbers from the text of an attribute."""
    try:
        values = np.array([float(x) for x in (text or "").split()])
    except ValueError:
        values = np.zeros(0)
    if values.shape != (count,) or not np.all(np.isfinite(values)):
        raise ModelError(f"{where}: expected {count} finite number{'s'[: count > 1]}, found '{text or ''}'")
    return values


def attribute(element: ET.Element | None, key: str, where: str) -> str:
    """A required attribute that must not be empty."""
    value = element.get(key) if element is not None else None
    if not value:
        raise ModelError(f"{where} has no '{key}'")
    return value


def choice(text: str, words: Sequence[str], where: str) -> str:
    """A word that must be one of `words`."""
    if text not in words:
        raise ModelError(f"{where}: '{text}' is unknown, use {', '.join(words)}")
    return text
