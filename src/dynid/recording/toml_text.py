"""Values as TOML text, for log formats and project files."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

__all__ = ["toml_key", "toml_value"]


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
        # JSON leaves the delete character as it is, which TOML does not accept.
        return json.dumps(str(value), ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml_key(k)} = {toml_value(x)}" for k, x in value.items()) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    return repr(value)


def toml_key(name: str) -> str:
    """A key of TOML, in quotation marks where it needs them."""
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name, ensure_ascii=False)
