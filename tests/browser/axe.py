"""Accessibility of a page by axe-core: contrast, names of controls, alternative texts, order of headings.

axe-core is no part of the repository. It is read from the file that DYNID_AXE names, or from build/node_modules, where
`make test-browser` installs it; nothing is asked of a network while a page is tested.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from playwright.sync_api import Page

_INSTALLED = Path(__file__).parents[2] / "build" / "node_modules" / "axe-core" / "axe.min.js"
# Parts of the toolkit that have no name for a screen reader, and take none: the links and the hidden input of an
# upload, the bar of a loading page.
_QUASAR = ("[a]", "[a:nth-child", ".q-uploader", ".q-loading-bar")
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


def own_findings(page: Page) -> list[str]:
    """Serious findings on a page of the studio, without those on the toolkit itself."""
    return [found for found in serious_findings(page) if not any(part in found for part in _QUASAR)]
