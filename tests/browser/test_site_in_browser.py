"""The documentation as people see it: home page and tutorial, wide and narrow, light and dark."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Browser, Page

from tests.browser.axe import serious_findings
from tests.support.watched_pages import Watch, keep, overflow

pytestmark = pytest.mark.browser
DOCS = Path(__file__).parents[2] / "docs"
# Pages with many command lines.
COMMANDS = ("index", "tutorial", "walk-through", "friction", "calibration", "stability")


class Quiet(SimpleHTTPRequestHandler):
    """A server that prints nothing."""

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the site, built without running the notebooks; DYNID_SITE names one that was built before."""
    built = os.environ.get("DYNID_SITE")
    folder = Path(built) if built else tmp_path_factory.mktemp("site")
    if not built:
        settings = ["-q", "-D", "nb_execution_mode=off", "-D", "plot_gallery=0"]
        subprocess.run([sys.executable, "-m", "sphinx", *settings, "-b", "html", str(DOCS), str(folder)], check=True)
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


def opened(browser: Browser, site: str, name: str, width: int, scheme: Literal["light", "dark"]) -> tuple[Page, Watch]:
    """A page of the site in a window of this width."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    watch = Watch(site)
    watch.listen(page)
    page.goto(f"{site}/{name}.html", wait_until="networkidle")
    return page, watch


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["index", "plots", "tutorial", "study-reports/comparison"])
def test_pages_fit_and_ask_for_nothing(
    browser: Browser, site: str, name: str, width: int, scheme: Literal["light", "dark"]
) -> None:
    page, watch = opened(browser, site, name, width, scheme)
    keep(page, f"docs-{name.replace('/', '-')}-{width}-{scheme}")
    assert overflow(page) <= 0
    watch.clean()
    broken = page.evaluate("[...document.images].filter(x => !x.complete || !x.naturalWidth).map(x => x.src)")
    assert broken == []
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["index", "tutorial"])
def test_no_serious_accessibility_findings(
    browser: Browser, site: str, name: str, scheme: Literal["light", "dark"]
) -> None:
    page, _ = opened(browser, site, name, 1280, scheme)
    assert serious_findings(page) == []
    page.close()


def test_home_page_has_a_picture_three_cards_and_copy_buttons(browser: Browser, site: str) -> None:
    page, _ = opened(browser, site, "index", 1280, "light")
    assert page.title().startswith("dynid 0")
    cards = page.locator(".sd-card")
    assert [cards.nth(k).locator(".sd-card-title").inner_text() for k in range(cards.count())] == [
        "Engineer",
        "Researcher",
        "Biomechanist",
    ]
    assert page.locator("img.front-picture").get_attribute("alt")
    assert page.locator("button.copybtn").count() == page.locator("article div.highlight pre").count() >= 2
    page.close()


def test_command_lines_fit_the_page(browser: Browser, site: str) -> None:
    """No block that calls dynid, pip or make is wider than its place on a page of 1280 pixels."""
    for name in COMMANDS:
        page, _ = opened(browser, site, name, 1280, "light")
        wide = page.evaluate("""[...document.querySelectorAll('article pre')]
            .filter(x => /^(dynid|pip|make|python -m) /m.test(x.innerText) && x.scrollWidth > x.clientWidth + 1)
            .map(x => x.innerText.slice(0, 100))""")
        assert wide == [], name
        page.close()


def test_search_finds_a_page_without_a_server(browser: Browser, site: str) -> None:
    page, watch = opened(browser, site, "search", 1280, "light")
    page.goto(f"{site}/search.html?q=payload")
    page.locator("#search-results li a", has_text="Payload").first.wait_for(timeout=20_000)
    watch.clean()
    page.close()
