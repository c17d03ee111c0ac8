"""The report as a person sees it: every plot drawn, nothing asked of a network, wide and narrow, light and dark."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

import dynid
from dynid.cli.demo import synthetic_recording
from tests.support.watched_pages import Watch, keep, overflow

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "report.html"
    robot = dynid.load_robot("tx40")
    first, second = (synthetic_recording(robot, seed, duration=8.0) for seed in (0, 1))
    dynid.report.write(dynid.identify(robot, first, "feasible"), path, second, recording=first)
    return path


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_is_whole(browser: Browser, report: Path, width: int, scheme: str) -> None:
    """No error, no request, no plot without lines, no sideways scrolling."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    watch = Watch("file://")
    watch.listen(page)
    page.goto(report.as_uri())
    expect(page.get_by_role("heading", name="can its model be trusted")).to_be_visible()
    page.wait_for_timeout(500)
    figures = page.evaluate(
        """() => [...document.querySelectorAll('figure svg, svg.chart')].map(s => ({
             marks: s.querySelectorAll('path, polyline, rect, circle, line').length,
             width: s.getBoundingClientRect().width}))"""
    )
    assert len(figures) > 10
    assert all(f["marks"] > 2 for f in figures)
    drawn = page.evaluate(
        """() => [...document.querySelectorAll('canvas')].map(c => {
             const pixels = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;
             return new Set(pixels).size > 4})"""
    )
    assert drawn and all(drawn)
    assert overflow(page) <= 0
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    shade = sum(int(x) for x in background[background.index("(") + 1 : -1].split(",")[:3]) / 3
    assert (shade > 128) == (scheme == "light")
    keep(page, f"report-{width}-{scheme}")
    watch.clean()
    page.close()
