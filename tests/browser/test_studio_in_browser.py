"""The studio as a person uses it: from a robot to its identified file, in a real browser."""

from __future__ import annotations

import http.client
import json
import os
import re
import subprocess
import sys
import time
import tomllib
import urllib.error
import urllib.request
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from urllib.parse import urlsplit

import pinocchio as pin
import pytest
from playwright.sync_api import Browser, expect

from tests.browser.axe import serious_findings
from tests.support.keyboard import tab_stops
from tests.support.running_studio import LONG, Studio, choose_robot, opened, running
from tests.support.watched_pages import in_colors, keep, keep_all_forms, overflow

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with running(tmp_path_factory.mktemp("studio") / "work", "twolink") as found:
        yield found


def test_from_a_robot_to_its_identified_file(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    """Load TX40, design ten seconds, run them in simulation, identify, read the report, take the URDF away."""
    page, watch = opened(browser, studio, 1280)
    assert "token" not in page.url
    choose_robot(page, "tx40")
    page.get_by_role("button", name="Load").click()
    expect(page.get_by_text("tx40: 6 joints")).to_be_visible()
    page.get_by_role("checkbox", name="inertias").click()
    keep(page, "studio-robot-1280")

    page.get_by_role("tab", name="Motion").click()
    page.get_by_label("seconds").fill("10")
    page.get_by_role("button", name="Design").click()
    live = page.get_by_role("dialog").get_by_role("img", name="criterion (less is better) over time of the search in s")
    expect(live).to_be_visible(timeout=LONG)  # while the search runs
    keep_all_forms(page, "studio-search")
    expect(page.get_by_text(re.compile(r"condition number [0-9.]+ over 10 s"))).to_be_visible(timeout=LONG)
    expect(page.get_by_text("of motion")).to_be_visible(timeout=LONG)
    expect(
        page.get_by_text(re.compile(r"How the search went: criterion from -?[0-9.]+ to -?[0-9.]+ in"))
    ).to_be_visible()
    page.locator(".q-tab-panel:visible").get_by_role("button", name="Play", exact=True).click()  # on the robot
    expect(page.get_by_label("time of the motion")).to_have_attribute(
        "aria-valuenow", re.compile(r"^0\."), timeout=LONG
    )
    keep(page, "studio-motion-1280")

    page.get_by_role("tab", name="Recording").click()
    page.get_by_role("button", name="Run simulated experiment").click()
    expect(page.get_by_text("simulated.csv is recorded")).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Check").click()
    expect(page.get_by_text(re.compile("Nothing was found wrong|severity"))).to_be_visible(timeout=LONG)
    keep(page, "studio-recording-1280")

    page.get_by_role("tab", name="Estimate").click()
    expect(page.get_by_text("validated on the last 25%; friction auto.")).to_be_visible()
    page.get_by_role("button", name="Identify").click()
    badge = page.locator(".q-badge").filter(has_text=re.compile("trusted|use with care|do not use"))
    expect(badge).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Play against simulation").click()
    expect(page.get_by_text("orange: simulated")).to_be_visible(timeout=LONG)
    keep(page, "studio-estimate-1280")
    verdict = json.loads((studio.folder / "verdict.json").read_text())
    assert verdict["verdict"] == badge.inner_text()

    page.get_by_role("tab", name="Report").click()
    report = page.frame_locator("iframe[title=report]")
    expect(report.get_by_role("heading").first).to_be_visible(timeout=LONG)
    keep(page, "studio-report-1280")

    page.get_by_role("tab", name="Export").click()
    with page.expect_download(timeout=LONG) as awaited:
        page.get_by_role("button", name="Export and download").click()
    awaited.value.save_as(tmp_path / "identified.urdf")
    model = pin.buildModelFromUrdf(str(tmp_path / "identified.urdf"))
    assert model.nv == 6 and all(i.mass >= 0 for i in model.inertias)
    watch.clean()
    page.close()


def test_the_mass_of_the_robot_is_kept(browser: Browser, tmp_path: Path) -> None:
    """What is typed is in the project file once Identify is pressed, and in the field when the page is opened again."""
    with running(tmp_path / "work", "twolink") as own:
        page, watch = opened(browser, own, 1280)
        page.get_by_role("tab", name="Estimate").click()
        page.get_by_label("Mass of the robot (kg)").fill("16")
        page.get_by_role("button", name="Identify").click()
        expect(page.get_by_role("alert").filter(has_text="choose a recording first")).to_be_visible()
        assert tomllib.loads((own.folder / "dynid.toml").read_text())["robot"] == {"file": "twolink", "mass": 16}
        page.reload()
        page.get_by_role("tab", name="Estimate").click()
        expect(page.get_by_label("Mass of the robot (kg)")).to_have_value("16")
        page.get_by_role("tab", name="Robot").click()
        choose_robot(page, "rv2sq")
        page.get_by_role("button", name="Load").click()
        expect(page.get_by_text("rv2sq: 6 joints")).to_be_visible()
        page.get_by_role("tab", name="Estimate").click()
        expect(page.get_by_label("Mass of the robot (kg)")).to_have_value("")
        watch.clean()
        page.close()


def test_the_page_fits_a_phone(browser: Browser, studio: Studio) -> None:
    page, watch = opened(browser, studio, 390)
    for tab in page.get_by_role("tab").all_inner_texts():
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(300)
        assert overflow(page) <= 0, tab
    keep(page, "studio-390")
    watch.clean()
    page.close()


def test_a_malformed_upload_is_told_in_a_sentence(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    """A file that is no robot, and the page goes on."""
    bad = tmp_path / "broken.urdf"
    bad.write_text("<robot name='x'><link")
    page, watch = opened(browser, studio, 1280)
    page.locator("input[type=file]").first.set_input_files(bad)
    expect(page.get_by_text("broken.urdf is in the workspace")).to_be_visible()
    choose_robot(page, "broken.urdf")
    page.get_by_role("button", name="Load").click()
    expect(page.get_by_role("alert").filter(has_text="broken.urdf is not well-formed")).to_be_visible()
    watch.clean()
    page.close()


def test_two_tabs_show_the_same_robot(browser: Browser, studio: Studio) -> None:
    """A robot that is loaded in one tab is that of the other: no step is taken for a robot that is not shown."""
    first, _ = opened(browser, studio, 1280)
    second, watch = opened(browser, studio, 1280)
    choose_robot(first, "rv2sq")
    first.get_by_role("button", name="Load").click()
    for page in (first, second):
        expect(page.get_by_text("rv2sq: 6 joints")).to_be_visible()
    watch.clean()
    first.close()
    second.close()


def test_an_upload_asks_before_it_replaces(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    log = tmp_path / "asked.csv"
    page, watch = opened(browser, studio, 1280)
    page.get_by_role("tab", name="Recording").click()
    field = page.locator("input[type=file]").last
    for content, button, expected in (
        ("first", None, {"asked.csv": "first"}),
        ("second", "Cancel", {"asked.csv": "first"}),
        ("third", "Keep both", {"asked.csv": "first", "asked-2.csv": "third"}),
        ("fourth", "Replace", {"asked.csv": "fourth", "asked-2.csv": "third"}),
    ):
        log.write_text(content)
        field.set_input_files(log)
        if button is not None:
            page.get_by_role("button", name=button).click()
        if button != "Cancel":
            expect(page.get_by_text("is in the workspace").last).to_be_visible()
        page.wait_for_timeout(500)
        assert {p.name: p.read_text() for p in studio.folder.glob("asked*.csv")} == expected
    watch.clean()
    page.close()


def test_the_browser_is_started_at_an_address_that_works_once(tmp_path: Path) -> None:
    script, told = tmp_path / "browser.sh", tmp_path / "address.txt"
    script.write_text(f'#!/bin/sh\necho "$1" > {told}.part && mv {told}.part {told}\n')
    script.chmod(0o755)
    outside = {k: v for k, v in os.environ.items() if "PYTEST" not in k} | {"BROWSER": str(script)}
    command = [sys.executable, "-m", "dynid", "studio", "twolink", str(tmp_path / "work")]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=outside)
    try:
        assert server.stdout is not None
        printed = server.stdout.readline().strip()
        for _ in range(600):
            if told.exists():
                break
            time.sleep(0.1)
        address = told.read_text().strip()
        assert "token=" in address and address != printed
        assert [_visited(address), _visited(address), _visited(printed)] == [303, 403, 303]
    finally:
        server.terminate()
        server.wait(10)


def _visited(address: str) -> int:
    """The status of a first visit, which is not followed further."""
    place = urlsplit(address)
    connection = http.client.HTTPConnection(place.netloc, timeout=30)
    connection.request("GET", f"{place.path}?{place.query}")
    return connection.getresponse().status


def refused(studio: Studio, path: str, **headers: str) -> int:
    request = urllib.request.Request(studio.home + path, headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code


def test_the_running_server_refuses_strangers(browser: Browser, studio: Studio) -> None:
    """Over the wire: no token, a wrong one, a foreign origin, a path out of the workspace, too much at once."""
    page, _ = opened(browser, studio, 1280)
    (cookie,) = [f"{c['name']}={c['value']}" for c in page.context.cookies() if c["name"].startswith("dynid_")]
    page.close()
    assert refused(studio, "/") == 403
    assert refused(studio, "/?token=wrong") == 403
    assert refused(studio, "/", Cookie=cookie) == 200
    assert refused(studio, "/", Cookie=cookie, Origin="http://evil.example") == 403
    assert refused(studio, "/", Cookie=cookie, Host="evil.example") == 421
    for path in ("/files/..%2f..%2fetc%2fpasswd", "/files/%2e%2e", "/files/.hidden", "/files/none.csv"):
        assert refused(studio, path, Cookie=cookie) == 404
    assert refused(studio, "/", Cookie=cookie, **{"Content-Length": str(2**31)}) == 413


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_step_is_accessible(browser: Browser, studio: Studio, scheme: str) -> None:
    """Contrast, names of controls and the order of headings, step by step."""
    page, _ = opened(browser, studio, 1280)
    in_colors(page, scheme)
    found = {}
    for tab in page.get_by_role("tab").all_inner_texts():
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(1000)
        serious = serious_findings(page)
        if serious:
            found[tab] = serious
    assert "\n".join(f"{tab}: {x}" for tab, all_of in found.items() for x in all_of) == ""


def test_the_keyboard_reaches_every_control_of_a_step(browser: Browser, studio: Studio) -> None:
    """First the head, then the view from top to bottom, then the step; one sees where one is."""
    page, _ = opened(browser, studio, 1280)
    page.get_by_role("tab", name="Recording").click()
    expect(page.locator(".q-tab-panel:visible")).to_have_count(1)  # once the old panel has slid out
    page.wait_for_timeout(500)
    page.evaluate("document.activeElement.blur()")
    page.mouse.click(1, 1)  # from the top
    stops = tab_stops(page, 60)
    names = [s.name for s in stops]
    middle = page.locator(".dynid-view").evaluate("x => x.getBoundingClientRect().right")
    view = [s for s in stops[1:] if s.left < middle]
    step = [s for s in stops[1:] if s.left >= middle]
    assert names[0] == "light or dark" and stops[1:] == view + step
    for column in (view, step):
        assert [f"{a.name!r} -> {b.name!r}" for a, b in pairwise(column) if not b.after(a)] == []
    wanted = [
        "inertias",
        "recording",
        "choose files",
        "bandwidth, hz",
        "run simulated experiment",
        "identify from",
        "check",
    ]
    found = [next((k for k, name in enumerate(names) if name.lower().startswith(x)), None) for x in wanted]
    assert None not in found and found == sorted(found), (found, names)
    assert [f"{s.tag} {s.name!r}" for s in stops if not s.seen] == []
    with page.expect_file_chooser():
        page.get_by_role("button", name="Choose files").locator("visible=true").press("Enter")
    page.close()


def test_the_view_is_dark_where_the_page_is(browser: Browser, studio: Studio) -> None:
    """As the browser asks, and as the switch says; the first press changes what is seen."""
    page, watch = opened(browser, studio, 1280)
    view = page.locator(".dynid-view")

    def shade() -> float:
        corner = page.evaluate(
            """() => { const v = getElement(document.querySelector('.dynid-view'));
                 v.renderer.render(v.scene, v.camera);
                 const gl = v.renderer.getContext(), p = new Uint8Array(4);
                 gl.readPixels(2, gl.drawingBufferHeight - 3, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, p);
                 return [...p] }"""
        )
        return sum(corner[:3]) / 3

    expect(view).to_have_attribute("data-ground", "#eef1f5")
    assert shade() > 200
    page.emulate_media(color_scheme="dark")
    expect(view).to_have_attribute("data-ground", "#1c232d")
    assert shade() < 60
    page.get_by_role("button", name="light or dark").click()
    expect(view).to_have_attribute("data-ground", "#eef1f5")
    expect(page.locator("body.body--light")).to_have_count(1)
    page.get_by_role("button", name="light or dark").click()
    expect(view).to_have_attribute("data-ground", "#1c232d")
    watch.clean()
    page.close()
