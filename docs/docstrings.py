"""Docstrings of the package are plain text with code in single backticks; Sphinx reads reStructuredText."""

from __future__ import annotations

import re
from typing import Any

_CODE = re.compile(r"(``[^`]+``|`[^`]+`)")
# A line that explains one name; several of them in a paragraph are a list.
_FIELD = re.compile(r"^`?[A-Za-z]\w*`?: ", re.MULTILINE)
# What reStructuredText would take for emphasis, a substitution, a reference or an escape.
_MARKUP = re.compile(r"[\\*|]|_(?![A-Za-z0-9])")


def plain_docstring(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Sphinx's hook: rewrite `lines` in place."""
    lines[:] = as_restructured("\n".join(lines)).split("\n")


def as_restructured(text: str) -> str:
    """Plain text as reStructuredText that prints the same: backticks as code, everything else as it stands."""
    return "\n\n".join(_paragraph(one) for one in re.split(r"\n\s*\n", text))


def _paragraph(text: str) -> str:
    if text.lstrip().startswith(">>>"):
        return text
    parts = _CODE.split(text)
    parts[0::2] = [_MARKUP.sub(lambda found: "\\" + found[0], part) for part in parts[0::2]]
    parts[1::2] = [f"``{part.strip('`')}``" for part in parts[1::2]]
    return _listed("".join(parts)) if len(_FIELD.findall(text)) > 1 and _FIELD.match(text) else "".join(parts)


def _listed(text: str) -> str:
    """Lines that begin with a name and a colon as items, with the lines that follow them."""
    lines = text.split("\n")
    starts = [bool(re.match(r"(``)?[A-Za-z]\w*(``)?: ", line)) for line in lines]
    return "\n".join(("- " if start else "  ") + line.strip() for line, start in zip(lines, starts, strict=True))
