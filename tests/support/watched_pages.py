"""Pages that are watched: what they log, what they ask for, how wide they are, and what they look like."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from playwright.sync_api import ConsoleMessage, Page, Request

SCREENSHOTS = Path(os.environ.get("DYNID_SCREENSHOTS") or Path(__file__).parents[2] / "build" / "screenshots")
# Pixels of one picture of a long page.
_PART = 4000


@dataclass
class Watch:
    """What a page did that it should not have done."""

    home: str
    errors: list[str] = field(default_factory=list)
    outside: list[str] = field(default_factory=list)

    def listen(self, page: Page) -> None:
        page.on("console", self._said)
        page.on("pageerror", lambda error: self.errors.append(str(error)))
        page.on("request", self._asked)

    def _said(self, message: ConsoleMessage) -> None:
        if message.type == "error":
            self.errors.append(message.text)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.home, self.home.replace("http", "ws"), "data:", "blob:", "about:")):
            self.outside.append(request.url)

    def clean(self) -> None:
        assert self.errors == []
        assert self.outside == []


def keep(page: Page, name: str) -> None:
    """A screenshot of the whole page, to be looked at; a long page in parts, because chromium repeats itself beyond."""
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    width, height = page.evaluate("[innerWidth, document.documentElement.scrollHeight]")
    if height <= _PART:
        page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True, timeout=120_000)
        return
    for part, top in enumerate(range(0, height, _PART), start=1):
        clip = {"x": 0, "y": top, "width": width, "height": min(_PART, height - top)}
        path = SCREENSHOTS / f"{name}-{part}.png"
        page.screenshot(path=path, full_page=True, clip=clip, timeout=120_000)  # type: ignore[arg-type]


def in_colors(page: Page, scheme: str) -> None:
    """Make a page light or dark, and wait for the last color, which takes seconds on a busy computer."""
    page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
    page.wait_for_timeout(300)
    page.wait_for_function(
        """scheme => {
          const told = document.body.className.match(/body--(light|dark)/);
          const view = document.querySelector('.dynid-view');
          return (!told || told[1] === scheme) && (!view || (view.dataset.ground === '#1c232d') === (scheme === 'dark'))
            && !document.getAnimations().some(x => x instanceof CSSTransition && x.playState === 'running') }""",
        arg=scheme,
        timeout=60_000,
    )


def keep_all_forms(page: Page, name: str) -> None:
    """Screenshots wide and narrow, light and dark; the page is as wide and as light afterwards as before.

    Nothing may stand out to the right of a window.
    """
    before = page.viewport_size
    for width in (1280, 390):
        page.set_viewport_size({"width": width, "height": 900})
        for scheme in ("light", "dark"):
            in_colors(page, scheme)
            page.evaluate("window.scrollTo(0, 0)")
            page.wait_for_timeout(400)
            keep(page, f"{name}-{width}-{scheme}")
        assert overflow(page) <= 0, (name, width)
    in_colors(page, "light")
    if before is not None:
        page.set_viewport_size(before)


def overflow(page: Page) -> float:
    """Pixels by which the page is wider than its window."""
    return float(page.evaluate("document.documentElement.scrollWidth - window.innerWidth"))
