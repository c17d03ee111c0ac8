"""Formulas as MathML, which browsers draw by themselves: no script, no font and no network."""

from __future__ import annotations

import html
import re
import unicodedata
from typing import Any

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

# Brackets around a matrix stretch only in fonts made for formulas; static/mathml.css draws them in any.
_BRACKETS = re.compile(r"<mo>&#x0005B;</mo><mtable>(.*?)</mtable><mo>&#x0005D;</mo>", re.DOTALL)


def setup(app: Sphinx) -> dict[str, Any]:
    """Offer Sphinx the renderer `mathml`."""
    app.add_html_math_renderer("mathml", (_inline, _nothing), (_block, _nothing))
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def mathml(formula: str, *, block: bool = False) -> str:
    """A LaTeX formula as a <math> element."""
    try:
        text = convert(formula, display="block" if block else "inline")
    except Exception as error:
        raise ExtensionError(f"this formula cannot be drawn: {formula.strip()}") from error
    # What the converter does not know it prints as it stands.
    if "\\" in text:
        raise ExtensionError(f"this formula holds a command that cannot be drawn: {formula.strip()}")
    text = re.sub(r"<mi>(&#x[0-9A-F]+;)</mi>", _sign, text)
    return _BRACKETS.sub(r'<mtable class="bracketed">\1</mtable>', text)


def _sign(found: re.Match[str]) -> str:
    """The converter takes some relations for variables; they are operators, with room on both sides."""
    char = html.unescape(found[1])
    char = "\N{TILDE OPERATOR}" if char == "~" else char
    return f"<mo>{char}</mo>" if unicodedata.category(char) == "Sm" else found[0]


def _inline(writer: Any, node: nodes.math) -> None:
    writer.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def _block(writer: Any, node: nodes.math_block) -> None:
    writer.body.append(writer.starttag(node, "div", CLASS="math notranslate"))
    writer.body.append(mathml(node.astext(), block=True))
    writer.body.append("</div>\n")
    raise nodes.SkipNode


def _nothing(writer: Any, node: nodes.Element) -> None:
    return None
