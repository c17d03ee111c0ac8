"""A studio that runs as a person starts it, and the hands that use its page."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import Browser, Page, expect
from playwright.sync_api import Error as PlaywrightError

from tests.support.watched_pages import Watch

LONG = 300_000


@dataclass(frozen=True)
class Studio:
    """A running page: its address with the token, and its workspace."""

    address: str
    folder: Path

    @property
    def home(self) -> str:
        return self.address.split("/?")[0]


@contextmanager
def running(folder: Path, *robot: str) -> Iterator[Studio]:
    """The studio of a workspace until the block ends."""
    command = [sys.executable, "-m", "dynid", "studio", *robot, str(folder), "--no-browser"]
    # nicegui serves nothing where it finds traces of pytest.
    outside = {k: v for k, v in os.environ.items() if "PYTEST" not in k}
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=outside)
    assert server.stdout is not None
    try:
        address = server.stdout.readline().strip()
        assert address.startswith("http://127.0.0.1:") and "token=" in address
        yield Studio(address, folder)
    finally:
        server.terminate()
        server.wait(10)


def opened(browser: Browser, studio: Studio, width: int) -> tuple[Page, Watch]:
    """The page once its first visit has been let in; the server may still be starting."""
    page = browser.new_page(viewport={"width": width, "height": 900}, accept_downloads=True)
    watch = Watch(studio.home)
    for _ in range(60):
        try:
            page.goto(studio.address)
            break
        except Exception:
            page.wait_for_timeout(500)
    watch.listen(page)
    page.reload()
    expect(page.get_by_role("tab", name="Robot")).to_be_visible(timeout=60_000)
    return page, watch


def choose(page: Page, label: str, *options: str) -> None:
    """Pick entries of a select by what it is called; a menu that closes as the page moves is opened again."""
    first = page.get_by_role("option", name=options[0], exact=True)
    for _ in range(10):
        page.get_by_label(label, exact=True).click()
        try:
            expect(first).to_be_visible(timeout=3000)
            break
        except AssertionError:
            page.keyboard.press("Escape")
    for option in options:
        page.get_by_role("option", name=option, exact=True).click()
    page.keyboard.press("Escape")
    expect(page.get_by_role("option")).to_have_count(0)


def choose_robot(page: Page, name: str) -> None:
    """Pick a robot by typing, which narrows the long list."""
    field, option = page.get_by_label("robot", exact=True), page.get_by_role("option", name=name, exact=True)
    for _ in range(10):
        field.click()
        field.fill("")
        field.press_sequentially(name)
        try:
            option.click(timeout=5000)
            break
        except PlaywrightError:
            page.keyboard.press("Escape")
    expect(page.get_by_role("option")).to_have_count(0)
