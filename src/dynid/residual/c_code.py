"""Predictors as C99 code for controllers: constants and tables of `dynid.residual.layout`, and the functions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue
from dynid.files import make_folder, write_text
from dynid.residual.layout import FIELDS, c_constants
from dynid.residual.tables import Fields

__all__ = ["write_c"]

_WIDTH = 118


def write_c(
    fields: Fields, coordinates: Sequence[str], folder: Path, name: str, notes: Sequence[str]
) -> tuple[Path, Path]:
    """Write name.c and name.h into a folder, which is created if missing; the notes stand in both heads."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InvalidValue(f"'{name}' cannot be a name in C: use letters, digits and underscores", "name")
    words = _words(fields, coordinates, name, notes)
    written = []
    make_folder(folder)
    for ending in ("c", "h"):
        text = resources.files("dynid.residual").joinpath("c", f"predictor.{ending}").read_text()
        path = folder / f"{name}.{ending}"
        write_text(path, re.sub("@([A-Z_]+)@", lambda found: words[found[1]], text))
        written.append(path)
    return written[0], written[1]


def _words(fields: Fields, coordinates: Sequence[str], name: str, notes: Sequence[str]) -> dict[str, str]:
    """Text of every placeholder of the templates."""
    sizes = {"N": "home", "D": "center", "JOINTS": "parent", "TERMS": "kind", "SETS": "set_size", "BLOCKS": "rows"}
    about = "".join(f" * {_plain(line)}\n" for line in notes)
    return {
        "NAME": name,
        "GUARD": f"{name.upper()}_H",
        "COORDINATES": ", ".join(map(_plain, coordinates)),
        "NOTES": f"{about} *\n" if notes else "",
        "CONSTANTS": c_constants(),
        "WEIGHTS": str(fields["weights"].size),
        "HOME": ", ".join(map(_number, fields["home"])),
        "TABLES": "".join(_table(field, fields[field]) for field in FIELDS),
        **{word: str(fields[field].size) for word, field in sizes.items()},
    }


def _plain(text: str) -> str:
    """Text for a comment in C."""
    return re.sub(r"[^\x20-\x7e]|/\*|\*/|\\", "?", text)


def _table(name: str, values: NDArray[Any]) -> str:
    """One constant array; C has no empty arrays, so an empty field holds a zero."""
    kind = "int" if values.dtype == np.int64 else "double"
    entries = [str(x) if kind == "int" else _number(x) for x in values.tolist()] or ["0"]
    lines, line = [], "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    return "\n".join([f"static const {kind} {name}[] = {{", *lines, line, "};\n"])


def _number(x: float) -> str:
    """The shortest text that is read back as the same number."""
    if np.isinf(x):
        return "INFINITY" if x > 0 else "-INFINITY"
    return repr(float(x))
