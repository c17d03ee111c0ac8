"""The report as a person sees it: every plot drawn, nothing asked of a network, wide and narrow, light and dark."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

import dynid
from dynid.cli.demo import run_demo
from studies.reproduce import robot_cases
from tests.browser.axe import serious_findings
from tests.support.keyboard import tab_stops
from tests.support.watched_pages import Watch, keep, overflow

pytestmark = pytest.mark.browser


@pytest.fixture(scope="session")
def demo_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of `dynid demo`."""
    path = tmp_path_factory.mktemp("report") / "tx40.html"
    run_demo().report(path)
    return path


@pytest.fixture(scope="session")
def real_report(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a real UR10e: currents of one motion, validated on another."""
    path = tmp_path_factory.mktemp("report") / "ur10e.html"
    case = robot_cases.ur10e()
    dynid.report.write(dynid.identify(case.robot, case.train, "feasible"), path, case.test, recording=case.train)
    return path


@pytest.fixture(params=["demo_report", "real_report"])
def report(request: pytest.FixtureRequest) -> Path:
    """Each report in turn."""
    found: Path = request.getfixturevalue(request.param)
    return found


def opened(browser: Browser, report: Path, width: int = 1280, scheme: str = "light") -> tuple[Page, Watch]:
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)  # type: ignore[arg-type]
    watch = Watch("file://")
    watch.listen(page)
    page.goto(report.as_uri())
    expect(page.get_by_role("heading", name="can its model be trusted")).to_be_visible()
    page.wait_for_timeout(500)
    return page, watch


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_is_whole(browser: Browser, report: Path, width: int, scheme: str) -> None:
    """No error, no request, no plot without lines, no sideways scrolling."""
    page, watch = opened(browser, report, width, scheme)
    figures = page.evaluate(
        """() => [...document.querySelectorAll('figure svg, svg.chart')].map(s => ({
             marks: s.querySelectorAll('path, polyline, rect, circle, line').length,
             ticks: s.querySelectorAll('.tick').length,
             width: s.getBoundingClientRect().width}))"""
    )
    assert len(figures) > 10
    assert all(f["marks"] > 2 and f["ticks"] >= 4 for f in figures)
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
    keep(page, f"report-{report.stem}-{width}-{scheme}")
    watch.clean()
    page.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_the_report_is_accessible(browser: Browser, report: Path, width: int, scheme: str) -> None:
    """Contrast, names of controls and alternative texts, with everything unfolded."""
    page, _ = opened(browser, report, width, scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert serious_findings(page) == []
    names = page.evaluate("[...document.querySelectorAll('svg.chart')].map(s => s.getAttribute('aria-label') || '')")
    assert all(" over " in name for name in names) and len(set(names)) == len(names)
    page.close()


def test_the_keyboard_goes_from_top_to_bottom(browser: Browser, demo_report: Path) -> None:
    """Tab never jumps back up, reaches navigation, switches, data, search and parameters, and is seen everywhere."""
    page, _ = opened(browser, demo_report)
    # The navigation is above everything that is scrolled.
    page.add_style_tag(content="nav { position: static !important }")
    stops = tab_stops(page, 250)
    assert 20 < len(stops) < 250
    jumps = [f"{a.name!r} -> {b.name!r}" for a, b in pairwise(stops) if not b.after(a)]
    assert jumps == []
    assert {"A", "BUTTON", "INPUT", "SUMMARY", "CANVAS"} <= {s.tag for s in stops}
    assert [f"{s.tag} {s.name!r}" for s in stops if not s.seen] == []
    page.close()


def test_series_are_switched_without_a_script(browser: Browser, demo_report: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(demo_report.as_uri())
    line = page.locator("#torques svg .line.measured").first
    expect(line).to_be_visible()
    page.locator("#torques .legend").get_by_label("measured", exact=True).uncheck()
    expect(line).to_be_hidden()
    expect(page.locator("#torques svg .line.predicted").first).to_be_visible()
    # Without a script there is no search; links unfold all the same.
    expect(page.locator("#parameters .search").first).to_be_hidden()
    page.locator("#parameters summary").first.click()
    expect(page.locator("#parameters td").first).to_be_visible()
    context.close()


def test_parameters_are_searched(browser: Browser, demo_report: Path) -> None:
    page, watch = opened(browser, demo_report)
    block = page.locator("#parameters .groups").last
    expect(block.locator("tbody tr").first).to_be_hidden()
    block.get_by_label("Search").fill("fc_joint3")
    expect(block.get_by_role("status")).to_have_text("1 row")
    expect(block.get_by_role("cell", name="fc_joint3", exact=True)).to_be_visible()
    expect(block.locator("details:visible")).to_have_count(1)
    block.get_by_label("Search").fill("link2")
    expect(block.get_by_role("status")).to_have_text("14 rows")
    block.get_by_label("Search").fill("")
    expect(block.locator("details:visible")).to_have_count(7)
    expect(block.locator("tbody tr").first).to_be_hidden()
    block.get_by_role("button", name="Open all").click()
    expect(block.locator("tbody tr").first).to_be_visible()
    watch.clean()
    page.close()


def test_both_charts_of_a_joint_zoom_together(browser: Browser, demo_report: Path) -> None:
    page, watch = opened(browser, demo_report)
    figure = page.locator("#torques figure").first
    figure.scroll_into_view_if_needed()
    lines = figure.locator(".line")
    before = [lines.nth(k).get_attribute("d") for k in range(3)]
    box = figure.locator("svg").first.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + 0.4 * box["width"], y)
    expect(figure.locator(".readout").first).to_contain_text("measured")
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], y, steps=4)
    page.mouse.up()
    after = [lines.nth(k).get_attribute("d") for k in range(3)]
    assert all(a != b and a for a, b in zip(before, after, strict=True))
    page.mouse.dblclick(box["x"] + 0.5 * box["width"], y)
    assert [lines.nth(k).get_attribute("d") for k in range(3)] == before
    watch.clean()
    page.close()


def test_data_are_downloaded_from_the_sandbox_of_the_studio(browser: Browser, demo_report: Path) -> None:
    """The studio shows the report in a frame that has neither its origin nor its storage."""
    frame = demo_report.with_name("frame.html")
    rights = "allow-scripts allow-downloads"
    frame.write_text(f'<iframe title="report" sandbox="{rights}" src="{demo_report.name}" width=1200 height=800>')
    page = browser.new_page(accept_downloads=True)
    watch = Watch("file://")
    watch.listen(page)
    page.goto(frame.as_uri())
    with page.expect_download() as awaited:
        page.frame_locator("iframe").locator("#torques a.data").first.click()
    assert awaited.value.suggested_filename == "torque-of-joint1-measured-and-predicted.csv"
    text = awaited.value.path().read_text(encoding="utf-8")
    assert text.startswith("time in s,measured: torque in N m,") and text.count("\n") > 300
    watch.clean()
    page.close()


def test_paper_shows_what_is_folded(browser: Browser, demo_report: Path) -> None:
    page, _ = opened(browser, demo_report)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("#parameters td").first).to_be_visible()
    expect(page.locator("nav")).to_be_hidden()
    expect(page.locator("#residuals .panel").last).to_be_visible()
    assert page.locator("a.data:visible").count() == 0
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0
    page.close()
