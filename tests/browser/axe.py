"""Accessibility of a page by axe-core: contrast, names of controls, alternative texts, order of headings.

axe-core is no part of the repository. It is read from the file that DYNID_AXE names, or from build/node_modules, where
`make test-browser` installs it; nothing is asked of a network while a page is tested.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

from tests.support.watched_pages import in_colors

_INSTALLED = Path(__file__).parents[2] / "build" / "node_modules" / "axe-core" / "axe.min.js"
_RUN = """() => axe.run(document, {resultTypes: ['violations'], iframes: false}).then(found => found.violations
    .filter(v => v.impact === 'serious' || v.impact === 'critical')
    .flatMap(v => v.nodes.map(n => `${v.id}: ${v.help} [${n.target.join(' ')}] ${n.any.concat(n.all, n.none)
        .map(c => c.message).join('; ')}`)))"""


def serious_findings(page: Page) -> list[str]:
    """Serious and critical findings of axe-core on a page, one sentence each; skip where axe-core is not installed."""
    script = Path(os.environ.get("DYNID_AXE", _INSTALLED))
    if not script.is_file():
        pytest.skip(f"axe-core is not installed in {script}: `make test-browser` installs it where npm is")
    page.evaluate(script.read_text(encoding="utf-8") + "\n;undefined")
    found: list[str] = page.evaluate(_RUN)
    return found


def accessible(page: Page) -> None:
    """No serious finding, light and dark; the page is light afterwards."""
    for scheme in ("dark", "light"):
        in_colors(page, scheme)
        assert [f"{scheme}: {x}" for x in serious_findings(page)] == []
