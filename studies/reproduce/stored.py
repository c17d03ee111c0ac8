"""Stored outputs of studies, from which the documentation takes its figures.

A comment of Markdown before a block of text, `<!-- NAME [--full]: TEXT | TEXT -->`, names figures of a stored output:
those whose section or name contains a TEXT. Every number of their outputs must stand in the block, rounded.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from dynid.errors import DataError
from dynid.files import writing
from studies.reproduce.study import Figure

__all__ = ["STORED", "differences", "plain", "read_output", "store_output", "stored_count"]

STORED = Path(__file__).parents[2] / "docs" / "studies"
_MARKER = re.compile(r"<!-- (?P<study>[a-z0-9-]+)(?P<full> --full)?: (?P<names>.+?) -->")
_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")
# A figure in a text has its digits rounded, and enough of them to be within this share of the output.
_ROUNDING = 0.06


def plain(study: str, figure: Figure) -> dict[str, object]:
    """A figure as JSON, which has no infinity: a figure without a tolerance has none."""
    values = {k: None if isinstance(v, float) and not math.isfinite(v) else v for k, v in vars(figure).items()}
    return {"study": study, **values, "ok": figure.ok}


def _path(folder: Path, study: str, full: bool) -> Path:
    return folder / f"{study}{'-full' if full else ''}.json"


def store_output(folder: Path, study: str, full: bool, figures: Iterable[Figure]) -> Path:
    """Write the figures of a study into the folder, one per line."""
    folder.mkdir(parents=True, exist_ok=True)
    path = _path(folder, study, full)
    lines = [json.dumps(plain(study, figure), ensure_ascii=False) for figure in figures]
    with writing(path) as part:
        part.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    return path


def read_output(folder: Path, study: str, full: bool = False) -> list[Figure]:
    """The stored figures of a study."""
    path = _path(folder, study, full)
    if not path.is_file():
        raise DataError(f"no output of '{study}' is stored in '{folder}'")
    return [_figure(row) for row in json.loads(path.read_text(encoding="utf-8"))]


def _figure(row: dict[str, Any]) -> Figure:
    """The figure of one line of a stored output."""
    infinite = {name: math.inf for name in ("difference", "tolerance") if row[name] is None}
    return Figure(**{name: value for name, value in (row | infinite).items() if name not in ("study", "ok")})


def stored_count(study: str, full: bool) -> int:
    """How many figures the stored output of a study has; 0 where none is stored."""
    return len(read_output(STORED, study, full)) if _path(STORED, study, full).is_file() else 0


def differences(text: str, folder: Path) -> Iterator[str]:
    """Every stored figure that a page names and does not state, in a sentence."""
    for marker in _MARKER.finditer(text):
        figures = read_output(folder, marker["study"], bool(marker["full"]))
        block = re.split(r"\n\s*\n", _MARKER.sub("", text[marker.end() :]).lstrip(), maxsplit=1)[0]
        for name in marker["names"].split(" | "):
            named = [f for f in figures if name in f"{f.section}: {f.name}"]
            if not named:
                yield f"{marker['study']} has no figure '{name}'"
            for figure in named:
                if not _states(block, figure.ours):
                    yield f"{marker['study']}, {figure.section}: {figure.name} is {figure.ours}, the text has another"


def _states(block: str, ours: str) -> bool:
    """Whether a text has every number of an output, rounded, as it is or in per cent."""
    values = [float(found[0]) for found in _NUMBER.finditer(ours)]
    stated = [found[0] for found in _NUMBER.finditer(block)]
    if not values:
        return ours in block
    return all(any(_rounded(text, scale * value) for text in stated for scale in (1.0, 100.0)) for value in values)


def _rounded(text: str, value: float) -> bool:
    number, mantissa = float(text), text.split("e")[0]
    exponent = int(text.split("e")[1]) if "e" in text else 0
    unit = 10.0 ** (exponent - len(mantissa.partition(".")[2]))
    return abs(number - value) <= 0.5001 * unit and abs(number - value) <= _ROUNDING * abs(value)
