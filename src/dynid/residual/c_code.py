"""Predictors as plain C99 for controllers: tables and the code that reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.files import make_folder, write_text
from dynid.residual.posterior import NEIGHBOURS
from dynid.residual.tables import INTEGERS, NUMBERS, Fields

__all__ = ["write_c"]

_WIDTH = 118


def write_c(fields: Fields, coordinates: Sequence[str], folder: Path, name: str) -> tuple[Path, Path]:
    """Write name.c and name.h into a folder, which is made where it is missing; both paths."""
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise DataError(f"'{name}' cannot be a name in C: use letters, digits and underscores")
    words = _words(fields, coordinates, name)
    written = []
    make_folder(folder)
    for ending in ("c", "h"):
        text = resources.files("dynid.export").joinpath("c", f"predictor.{ending}").read_text()
        path = folder / f"{name}.{ending}"
        write_text(path, re.sub("@([A-Z_]+)@", lambda found: words[found[1]], text))
        written.append(path)
    return written[0], written[1]


def _words(fields: Fields, coordinates: Sequence[str], name: str) -> dict[str, str]:
    """What stands for every placeholder of the templates."""
    sizes = {"N": "home", "D": "centre", "JOINTS": "parent", "TERMS": "kind", "SETS": "set_size", "BLOCKS": "rows"}
    plain = [re.sub(r"[^\x20-\x7e]|/\*|\*/|\\", "?", coordinate) for coordinate in coordinates]
    return {
        "NAME": name,
        "GUARD": f"{name.upper()}_H",
        "COORDINATES": ", ".join(plain),
        "NEIGHBOURS": str(NEIGHBOURS),
        "WEIGHTS": str(fields["weights"].size),
        "HOME": ", ".join(map(_number, fields["home"])),
        "TABLES": "".join(_table(field, fields[field]) for field in (*INTEGERS, *NUMBERS)),
        **{word: str(fields[field].size) for word, field in sizes.items()},
    }


def _table(name: str, values: NDArray[Any]) -> str:
    """One constant array; C has no empty ones, so what is empty holds a zero."""
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
    """The shortest text that reads back as the same number."""
    if np.isinf(x):
        return "INFINITY" if x > 0 else "-INFINITY"
    return repr(float(x))
