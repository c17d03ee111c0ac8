"""Logs of real robots in the studio, from upload to verdict and URDF, without the command line."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pinocchio as pin
import pytest
from playwright.sync_api import Browser, Page, expect

from tests.browser.axe import accessible
from tests.support.running_studio import LONG, Studio, choose, choose_robot, opened, running
from tests.support.watched_pages import keep_all_forms

pytestmark = [pytest.mark.browser, pytest.mark.real]
VERDICTS = re.compile("^(trusted|use with care|do not use)$")


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    """An empty workspace."""
    with running(tmp_path / "work", "twolink") as found:
        yield found


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()
    expect(page.locator(".q-tab-panel:visible")).to_have_count(1)  # once the old panel has slid out
    page.wait_for_timeout(300)


def upload(page: Page, *files: Path) -> None:
    """Drop files on the panel that is open."""
    for file in files:
        page.locator(".q-tab-panel:visible input[type=file]").first.set_input_files(file)
        expect(page.get_by_text(f"{file.name} is in the workspace")).to_be_visible(timeout=LONG)


def load_robot(page: Page, file: Path) -> None:
    upload(page, file)
    choose_robot(page, file.name)
    page.get_by_role("button", name="Load").click()


def assign(page: Page, columns: str, signal: str, gain: str = "") -> None:
    """A block of columns, one joint after the other."""
    page.get_by_label("columns, such as 1-6").fill(columns)
    choose(page, "signal", signal)
    page.get_by_label("gain, one or one per column").fill(gain)
    page.get_by_role("button", name="Assign").click()
    expect(page.get_by_label("columns, such as 1-6")).to_have_value("")


def summary(page: Page) -> str:
    return page.get_by_text(re.compile("^(Reads|Not read yet)")).inner_text()


def identify(page: Page, name: str, method: str) -> str:
    """The verdict of an estimate of this name."""
    tab(page, "Estimate")
    choose(page, "method", method)
    page.get_by_label("name of the estimate").fill(name)
    page.get_by_role("button", name="Identify").click()
    cancel = page.get_by_role("button", name="cancel")
    expect(cancel).to_be_visible(timeout=LONG)
    expect(cancel).to_be_hidden(timeout=LONG)
    badge = page.locator(".q-badge").filter(has_text=VERDICTS)
    expect(badge).to_be_visible(timeout=LONG)
    expect(page.get_by_text("What to do next")).to_be_visible()
    return badge.inner_text()


def take_away(page: Page, kind: str, target: Path) -> pin.Model:
    """The model of the exported and downloaded file."""
    tab(page, "Export")
    choose(page, "format", kind)
    with page.expect_download(timeout=LONG) as awaited:
        page.get_by_role("button", name="Export and download").click()
    awaited.value.save_as(target)
    return pin.buildModelFromUrdf(str(target)) if kind == "urdf" else pin.buildModelFromMJCF(str(target))


def test_ur10e_from_upload_to_urdf(browser: Browser, studio: Studio, data: Path, tmp_path: Path) -> None:
    """No header, the clock in column 0, currents with drive gains; other motion for validation; two estimates."""
    folder = data / "ur10e-mamedov"
    fit, other = "ur-20_02_10-30sec_12harm.csv.gz", "ur-20_01_17-ptp_10_points.csv.gz"
    page, watch = opened(browser, studio, 1280)
    load_robot(page, folder / "ur10e.urdf")
    expect(page.get_by_text("ur10e: 6 joints")).to_be_visible()
    keep_all_forms(page, "studio-ur10e-1-robot")
    accessible(page)

    tab(page, "Recording")
    upload(page, folder / "identification" / fit, folder / "validation" / other)
    choose(page, "identify from", fit)
    choose(page, "validate on", "other logs")
    choose(page, "other logs", other)
    page.get_by_label("rows to validate on, START:STOP").fill("699:4200")
    page.get_by_role("button", name="Use these logs").click()
    expect(page.get_by_text(f"validated on {other}, rows 699:4200").first).to_be_visible(timeout=LONG)
    keep_all_forms(page, "studio-ur10e-2-recording")
    accessible(page)

    tab(page, "Columns")
    expect(page.get_by_text(f"{fit} has no header: assign its columns")).to_be_visible(timeout=LONG)
    expect(page.locator(".dynid-columns tbody tr")).to_have_count(31)
    assert summary(page) == "Not read yet: no column is assigned to q: positions are needed."
    expect(page.locator(".dynid-columns tbody tr").first).to_contain_text("clock")  # its values rise
    keep_all_forms(page, "studio-ur10e-3-columns-before")
    accessible(page)
    page.get_by_label("columns, such as 1-6").fill("1-7")
    page.get_by_role("button", name="Assign").click()
    expect(page.get_by_text("7 columns for 6 joints or components of q")).to_be_visible()
    page.get_by_role("button", name="Close").last.click()
    assign(page, "1-6", "q: position")
    assign(page, "7-12", "v: velocity")
    rows = page.locator(".dynid-columns tbody tr")
    rows.nth(13).locator("td").nth(1).click()
    rows.nth(18).locator("td").nth(1).click(modifiers=["Shift"])
    expect(page.get_by_label("columns, such as 1-6")).to_have_value("13-18")
    assign(page, "13-18", "current", "10, 10.6956, 8.4566, 9.0029, 9.48, 10.1232")
    page.get_by_label("rows to identify from, START:STOP").fill("634:3510")
    page.get_by_role("button", name="Preview").click()
    expect(
        page.get_by_text(re.compile("^Reads 2876 samples, 30.. s .*q, v, torque, current of 6 joints"))
    ).to_be_visible()
    page.reload()  # what is not saved yet is kept
    tab(page, "Columns")
    expect(page.get_by_text(re.compile("^Reads 2876 samples"))).to_be_visible(timeout=LONG)
    page.get_by_role("button", name="Save and check").click()
    expect(page.get_by_text("severity")).to_be_visible(timeout=LONG)
    keep_all_forms(page, "studio-ur10e-4-columns-saved")
    accessible(page)
    project = tomllib.loads((studio.folder / "dynid.toml").read_text())
    assert project["log"]["time"] == 0 and project["log"]["columns"]["current"] == [13, 14, 15, 16, 17, 18]
    assert project["log"]["gain"][1] == 10.6956 and project["log"]["rows"] == "634:3510"
    assert project["runs"] == {"identify": [fit], "validate": [other], "validate_rows": "699:4200"}

    verdict = identify(page, "estimate", "auto")
    saved = json.loads((studio.folder / "verdict.json").read_text())
    assert saved["verdict"] == verdict == "use with care"
    keep_all_forms(page, "studio-ur10e-5-estimate")
    accessible(page)
    identify(page, "plain", "wls")
    tab(page, "Compare")
    table = page.locator(".q-tab-panel:visible table")
    for words in ("estimate", "plain", "total mass", "shoulder_pan_joint", "unseen motion", "use with care"):
        expect(table.get_by_text(words).first).to_be_visible()
    keep_all_forms(page, "studio-ur10e-6-compare")
    accessible(page)
    choose(page, "look at", "estimate")
    tab(page, "Report")
    report = page.frame_locator("iframe[title=report]")
    expect(report.get_by_role("heading").first).to_be_visible(timeout=LONG)
    keep_all_forms(page, "studio-ur10e-7-report")
    accessible(page)
    model = take_away(page, "urdf", tmp_path / "identified.urdf")
    assert model.nv == 6 and all(i.mass > 0 for i in model.inertias[1:])
    keep_all_forms(page, "studio-ur10e-8-export")
    accessible(page)
    assert take_away(page, "mjcf", tmp_path / "identified.xml").nv == 6
    watch.clean()
    page.close()


def test_tiago_from_upload_to_urdf(browser: Browser, studio: Studio, data: Path, tmp_path: Path) -> None:
    """One file per signal, 15 of 23 joints not in the log, factors per joint, rows held out; a second tab follows."""
    folder = data / "tiago-figaroh"
    page, watch = opened(browser, studio, 1280)
    load_robot(page, folder / "tiago_48_schunk.urdf")
    expect(page.get_by_text("23 joints")).to_be_visible()
    choose(page, "friction", "viscous+coulomb+offset")
    choose(page, "rotor inertia", "yes")
    page.get_by_role("button", name="Load").click()
    second, _ = opened(browser, studio, 1280)
    tab(page, "Recording")
    names = ["tiago_position.csv.gz", "tiago_effort.csv.gz"]
    upload(page, *(folder / name for name in names))
    choose(page, "identify from", *names)
    page.get_by_role("switch", name="one file per signal").click()
    expect(page.get_by_label("signal of tiago_effort.csv.gz")).to_have_value("torque")
    choose(page, "validate on", "rows of the log")
    page.get_by_label("rows to validate on, START:STOP").fill("4736:6791")
    page.get_by_role("button", name="Use these logs").click()
    expect(page.get_by_text("validated on rows 4736:6791").first).to_be_visible(timeout=LONG)
    keep_all_forms(page, "studio-tiago-1-recording")

    tab(page, "Columns")
    expect(page.get_by_text(re.compile("^Reads 8022 samples.* of 8 joints"))).to_be_visible(timeout=LONG)
    gains = [1.0, *[13.6] * 2, *[-8.7] * 2, *[-20.5968] * 3]
    assign(page, "10-17", "torque", ", ".join(map(str, gains)))
    page.get_by_label("rows to identify from, START:STOP").fill("921:4149")
    page.get_by_role("button", name="Save and check").click()
    expect(page.get_by_text("severity")).to_be_visible(timeout=LONG)
    expect(page.get_by_text("tiago: 8 joints")).to_be_visible()
    keep_all_forms(page, "studio-tiago-2-columns")
    project = tomllib.loads((studio.folder / "dynid.toml").read_text())
    assert len(project["robot"]["lock"]) == 15 and "wheel_left_joint" in project["robot"]["lock"]
    assert project["runs"]["identify"] == [{"q": names[0], "torque": names[1]}]
    assert project["log"]["scale"]["torque"] == gains
    tab(second, "Estimate")
    expect(second.get_by_text("15 joints locked; friction viscous+coulomb+offset")).to_be_visible(timeout=LONG)
    second.close()

    identify(page, "estimate", "auto")
    keep_all_forms(page, "studio-tiago-3-estimate")
    model = take_away(page, "urdf", tmp_path / "identified.urdf")
    assert model.nv == 8 and all(i.mass >= 0 for i in model.inertias)
    watch.clean()
    page.close()
