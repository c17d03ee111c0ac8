"""Values as text of TOML and YAML, names of any letters included."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["one_line", "toml_key", "toml_value", "yaml_string"]

# What JSON leaves as it is and TOML or YAML does not: a line ends at some of them.
_RAW = re.compile("[\x7f-\x9f\u2028\u2029\ufeff]")


def yaml_string(text: str) -> str:
    """A text in quotation marks, as YAML and TOML read it.

    Parameters
    ----------
    text : str

    Returns
    -------
    str
    """
    # Not the escapes of JSON: letters beyond U+FFFF are two of them there, which YAML and TOML take for two letters.
    return _RAW.sub(lambda c: f"\\u{ord(c[0]):04x}", json.dumps(text, ensure_ascii=False))


def toml_value(value: Any) -> str:
    """A value as TOML: text, numbers, flags, lists and inline tables.

    Parameters
    ----------
    value : str, Path, bool, int, float, list, tuple or mapping
        The value; None has no form in TOML.

    Returns
    -------
    str
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str | Path):
        return yaml_string(str(value))
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(k)} = {toml_value(x)}" for k, x in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return repr(value)


def toml_key(name: str) -> str:
    """A key of TOML, in quotation marks where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else yaml_string(name)


def one_line(text: str) -> str:
    """A text for a comment: "?" for every sign that ends a line, or that changes the direction of writing."""
    return "".join(c if c.isprintable() else "?" for c in text)
