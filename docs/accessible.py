"""Sphinx extension: what the templates leave out for readers who hear the page or use the keyboard alone."""

from __future__ import annotations

from typing import Any

# Captions of the lists of pages are headings of the second level; Sphinx gives them no level.
_CAPTION, _LEVELED = 'role="heading"', 'role="heading" aria-level="2"'
# Code that is wider than its place can be scrolled by the arrow keys.
_CODE, _FOCUSED = "<pre>", '<pre tabindex="0">'


def complete(text: str) -> str:
    """HTML with the level of captions, and with code that takes the focus."""
    return text.replace(_CAPTION, _LEVELED).replace(_CODE, _FOCUSED)


def _complete_page(_app: Any, _page: str, _template: str, context: dict[str, Any], _doctree: Any) -> None:
    for part in ("body", "furo_navigation_tree"):
        if isinstance(context.get(part), str):
            context[part] = complete(context[part])


def setup(app: Any) -> dict[str, bool]:
    """Change every page after the theme has prepared it."""
    app.connect("html-page-context", _complete_page, priority=900)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
