"""Actuators and fleets in the studio, from logs to values, verdicts and files, without the command line."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path

import mujoco
import pytest
from playwright.sync_api import Browser, Page, expect

import dynid
from dynid.cli.demo import synthetic_recording
from tests.browser.axe import accessible
from tests.support.encoder_logs import encoder_log
from tests.support.running_studio import LONG, Studio, choose, opened, running
from tests.support.watched_pages import SCREENSHOTS, keep_all_forms

pytestmark = pytest.mark.browser


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with running(tmp_path / "work", "twolink") as found:
        yield found


def tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()
    expect(page.locator(".q-tab-panel:visible")).to_have_count(1)  # once the old panel has slid out
    page.wait_for_timeout(300)


def finished(page: Page) -> None:
    """Wait for the end of the running command."""
    cancel = page.get_by_role("button", name="cancel")
    expect(cancel).to_be_visible(timeout=LONG)
    expect(cancel).to_be_hidden(timeout=LONG)


def test_actuators_from_an_encoder_log(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    """Law, unknowns, values with standard deviations, verdict, errors against the model file, files of simulators."""
    encoder_log(studio.folder / "encoders.csv", 8.0)
    page, watch = opened(browser, studio, 1280)
    tab(page, "Recording")
    choose(page, "identify from", "encoders.csv")
    page.get_by_role("button", name="Use these logs").click()
    expect(page.get_by_text("validated on the last 25%").first).to_be_visible(timeout=LONG)

    tab(page, "Actuators")
    expect(page.get_by_text("From encoders.csv; validated on the last 25%.")).to_be_visible()
    page.get_by_role("button", name="Identify actuators").click()
    expect(page.get_by_text("give the law first")).to_be_visible()
    page.get_by_role("button", name="Close").last.click()
    page.get_by_label("law: pd:KP,KD, torque, or a TOML file").fill("pd:60,4")
    choose(page, "files for simulators", "isaaclab")
    page.get_by_role("button", name="Identify actuators").click()
    finished(page)
    badge = page.locator(".q-tab-panel:visible .q-badge")
    expect(badge).to_be_visible(timeout=LONG)
    panel = page.locator(".q-tab-panel:visible")
    for words in (
        "armature of joint1",
        "friction of joint2",
        "delay of all joints",
        "standard deviation",
        "What to do next",
    ):
        expect(panel.get_by_text(words, exact=True).first).to_be_visible()
    expect(panel.get_by_text("Position error of unseen motion, root mean square")).to_be_visible()
    expect(panel.get_by_role("img", name="times smaller")).to_have_count(2)
    expect(panel.get_by_text("what the files cannot hold")).to_be_visible()
    keep_all_forms(page, "studio-actuators")
    accessible(page)
    with page.expect_download(timeout=LONG) as awaited:
        page.get_by_role("button", name="actuators_mujoco.xml").click()
    awaited.value.save_as(tmp_path / "arm.xml")
    found = json.loads((studio.folder / "actuators.found.json").read_text())
    values = {x["label"]: x["value"] for x in found["unknowns"]}
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    assert model.dof_armature == pytest.approx([values[f"armature of joint{k}"] for k in (1, 2)])
    assert badge.inner_text() == found["verdict"]["verdict"]
    section = tomllib.loads((studio.folder / "dynid.toml").read_text())["actuators"]
    assert section["law"] == "pd:60,4" and section["export"] == ["mujoco", "isaaclab"]

    page.reload()  # what was chosen and found is still there
    tab(page, "Actuators")
    expect(page.get_by_label("law: pd:KP,KD, torque, or a TOML file")).to_have_value("pd:60,4")
    expect(page.locator(".q-tab-panel:visible .q-badge")).to_be_visible()
    watch.clean()
    page.close()


def test_a_fleet_from_logs(browser: Browser, studio: Studio) -> None:
    """Units and dates from the names of the logs; the unit that picked up a tool comes first."""
    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    names = robot.parameter_names
    tool = robot.parameters.copy()
    tool[[names.index(x) for x in ("m_link2", "mx_link2", "Izz_link2")]] += [1.0, 0.3, 0.09]
    logs = []
    for week in range(6):
        for k, unit in enumerate("AB"):
            arm = robot.with_parameters(tool) if unit == "B" and week >= 3 else robot
            logs.append(f"{unit}_2026-03-{2 + 4 * week:02d}.csv")
            synthetic_recording(arm, 10 * week + k, 8.0).to_csv(studio.folder / logs[-1])
    page, watch = opened(browser, studio, 1280)
    choose(page, "friction", "viscous+coulomb")
    page.get_by_role("button", name="Load").click()
    tab(page, "Fleet")
    page.get_by_text("Make the folder from logs of the workspace").click()
    choose(page, "logs of the fleet", *logs)
    expect(page.get_by_label("date of B_2026-03-14.csv")).to_have_value("2026-03-14")
    page.get_by_label("unit of A_2026-03-02.csv").fill("../A")
    page.get_by_role("button", name="Make the folder", exact=True).click()
    expect(page.get_by_text("'../A' is no name of a unit")).to_be_visible()
    page.get_by_role("button", name="Close").last.click()
    page.get_by_label("unit of A_2026-03-02.csv").fill("A")
    keep_all_forms(page, "studio-fleet-logs")
    page.get_by_role("button", name="Make the folder", exact=True).click()
    expect(page.get_by_text("12 logs are in the folder fleet-logs")).to_be_visible()
    page.get_by_text("Make the folder from logs of the workspace").click()
    expect(page.get_by_text("12 recordings of 2 units; friction viscous+coulomb.")).to_be_visible()
    page.get_by_role("button", name="Identify the fleet").click()
    finished(page)
    expect(page.get_by_text("12 recordings of 2 units: 1 changed, 0 recordings left out")).to_be_visible(timeout=LONG)
    rows = page.locator(".q-tab-panel:visible tbody tr")
    expect(rows.nth(0)).to_contain_text("carries a payload")
    expect(rows.nth(1)).to_contain_text("steady")
    frame = page.frame_locator("iframe[title=fleet]")
    expect(frame.get_by_role("heading", name="What changed")).to_be_visible(timeout=LONG)
    assert "allow-same-origin" not in str(page.locator("iframe[title=fleet]").get_attribute("sandbox"))
    keep_all_forms(page, "studio-fleet")
    page.set_viewport_size({"width": 390, "height": 900})
    page.locator("iframe[title=fleet]").scroll_into_view_if_needed()
    page.wait_for_timeout(1000)
    page.screenshot(path=SCREENSHOTS / "studio-fleet-page-390-light.png")
    page.set_viewport_size({"width": 1280, "height": 900})
    accessible(page)
    section = tomllib.loads((studio.folder / "dynid.toml").read_text())["fleet"]
    assert section["folder"] == "fleet-logs" and section["false_alarms"] == 0.05
    page.reload()
    tab(page, "Fleet")
    expect(page.get_by_text("12 recordings of 2 units: 1 changed")).to_be_visible()
    watch.clean()
    page.close()
