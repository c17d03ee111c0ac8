"""The robot with its meshes, and columns that are dragged onto signals."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect

from dynid.robot.visuals import stl_bytes
from tests.browser.axe import serious_findings
from tests.support.meshes import CUBE_DAE, CUBE_OBJ, SHAPED_ARM, SHAPED_MJCF, SHAPED_SDF, cube
from tests.support.running_studio import LONG, Studio, choose, choose_robot, opened, running
from tests.support.watched_pages import keep_all_forms

pytestmark = pytest.mark.browser
# Meshes and visible cylinders of the scene.
_COUNT = """() => {
  const scene = Object.entries(window).find(([k]) => k.startsWith('scene_'))[1];
  const seen = {triangles: 0, bars: 0};
  scene.traverseVisible(x => {
    if (!x.isMesh || !x.geometry) return;
    if (x.parent && x.parent.type === 'Group' && x.parent.object_id && !x.object_id)
      seen.triangles += x.geometry.attributes.position.count / 3;
    else if (x.geometry.type === 'CylinderGeometry' && x.geometry.parameters.radialSegments === 8) seen.bars += 1;
  });
  return seen;
}"""


@pytest.fixture
def studio(tmp_path: Path) -> Iterator[Studio]:
    with running(tmp_path / "work", "twolink") as found:
        yield found


def seen(page: Page, triangles: int) -> dict[str, int]:
    """What the scene shows, once it shows so many triangles of meshes."""
    page.wait_for_function(f"() => ({_COUNT})().triangles === {triangles}", timeout=LONG)
    return page.evaluate(_COUNT)  # type: ignore[no-any-return]


def test_dropped_meshes_are_drawn(browser: Browser, studio: Studio, tmp_path: Path) -> None:
    """Bars first; then the meshes that are dropped, three formats; what is missing is named, a damaged one too."""
    arm = SHAPED_ARM.replace(
        '<cylinder radius="0.05" length="0.3"/>', '<mesh filename="package://arm/fore.dae" scale="0.1 0.1 0.3"/>'
    )
    for name, content in (
        ("arm.urdf", arm.encode()),
        ("base.stl", stl_bytes(cube())),
        ("upper.obj", CUBE_OBJ),
        ("fore.dae", b"<COLLADA"),
    ):
        (tmp_path / name).write_bytes(content)
    page, watch = opened(browser, studio, 1280)
    page.locator("input[type=file]").first.set_input_files(tmp_path / "arm.urdf")
    expect(page.get_by_text("arm.urdf is in the workspace")).to_be_visible()
    choose_robot(page, "arm.urdf")
    page.get_by_role("button", name="Load").click()
    expect(page.get_by_text("Drop these files to see the shapes: base.stl, upper.obj, fore.dae")).to_be_visible()
    bare = seen(page, 0)
    assert bare["bars"] > 0
    page.locator("input[type=file]").first.set_input_files(
        [tmp_path / n for n in ("base.stl", "upper.obj", "fore.dae")]
    )
    expect(page.get_by_text("fore.dae cannot be read")).to_be_visible(timeout=LONG)
    assert seen(page, 24)["bars"] < bare["bars"]
    (tmp_path / "fore.dae").write_bytes(CUBE_DAE)
    page.locator("input[type=file]").first.set_input_files(tmp_path / "fore.dae")
    page.get_by_role("button", name="Replace").click()
    assert seen(page, 36)["bars"] == 0
    expect(page.get_by_text("cannot be read")).to_be_hidden()
    page.wait_for_timeout(1000)
    keep_all_forms(page, "studio-shapes")
    page.get_by_role("checkbox", name="inertias").click()
    page.wait_for_timeout(500)
    keep_all_forms(page, "studio-shapes-inertias")
    page.get_by_role("checkbox", name="shapes").click()
    assert seen(page, 0)["bars"] > bare["bars"]  # also that of the link with a box
    page.get_by_role("checkbox", name="shapes").click()

    second, other = opened(browser, studio, 1280)  # served to those with the token, read once
    seen(second, 36)
    other.clean()
    second.close()
    assert "\n".join(serious_findings(page)) == ""
    watch.clean()
    page.close()


@pytest.mark.parametrize(("name", "text"), [("arm.xml", SHAPED_MJCF), ("arm.sdf", SHAPED_SDF)])
def test_meshes_of_other_formats_are_drawn(
    browser: Browser, studio: Studio, tmp_path: Path, name: str, text: str
) -> None:
    """MuJoCo's and Gazebo's files: a damaged mesh leaves the bars and a sentence, a whole one is drawn."""
    files = {name: text.encode(), "base.stl": stl_bytes(cube()), "upper.obj": b"v 1 2\nf 1 2 3"}
    for file, content in files.items():
        (tmp_path / file).write_bytes(content)
    page, watch = opened(browser, studio, 1280)
    page.locator("input[type=file]").first.set_input_files(tmp_path / name)
    expect(page.get_by_text(f"{name} is in the workspace")).to_be_visible()
    choose_robot(page, name)
    page.get_by_role("button", name="Load").click()
    expect(page.get_by_text("Drop these files to see the shapes: base.stl, upper.obj")).to_be_visible()
    bare = seen(page, 0)
    page.locator("input[type=file]").first.set_input_files([tmp_path / n for n in ("base.stl", "upper.obj")])
    expect(page.get_by_text("upper.obj cannot be read")).to_be_visible(timeout=LONG)
    assert 0 < seen(page, 12)["bars"] < bare["bars"]
    (tmp_path / "upper.obj").write_bytes(CUBE_OBJ)
    page.locator("input[type=file]").first.set_input_files(tmp_path / "upper.obj")
    page.get_by_role("button", name="Replace").click()
    assert seen(page, 24)["bars"] == 0
    expect(page.get_by_text("cannot be read")).to_be_hidden()
    page.wait_for_timeout(1000)
    keep_all_forms(page, f"studio-shapes-{name.partition('.')[2]}")
    watch.clean()
    page.close()


def test_columns_are_dragged_onto_signals(browser: Browser, studio: Studio) -> None:
    """One column, a block of chosen rows, a chip from cell to cell, and one that is not used any more."""
    t = np.arange(400) / 100.0
    q = np.column_stack([np.sin(t), np.cos(2 * t)])
    np.savetxt(studio.folder / "bare.csv", np.column_stack([t, q, 3 * q, q]), delimiter=",")
    page, watch = opened(browser, studio, 1280)
    page.set_viewport_size({"width": 1280, "height": 1500})
    page.get_by_role("tab", name="Recording", exact=True).click()
    choose(page, "identify from", "bare.csv")
    page.get_by_role("button", name="Use these logs").click()
    expect(page.get_by_text("from bare.csv; validated on the last 25%").first).to_be_visible(timeout=LONG)
    page.get_by_role("tab", name="Columns", exact=True).click()
    rows = page.locator(".dynid-columns tbody tr")
    expect(rows).to_have_count(7)
    grip = page.locator(".dynid-columns td.dynid-grip")

    def cell(signal: str, joint: str) -> str:
        return f'.dynid-board td[data-signal="{signal}"][data-channel="{joint}"]'

    expect(page.locator(cell("t", ""))).to_have_text("0")
    page.wait_for_timeout(1000)  # a table that is drawn anew ends a drag
    grip.nth(1).drag_to(page.locator(cell("q", "joint1")))
    expect(page.locator(cell("q", "joint1"))).to_have_text("1")
    expect(page.get_by_text("q has no column for 'joint2'")).to_be_visible()
    grip.nth(2).drag_to(page.locator(cell("q", "joint2")))
    expect(page.get_by_text("Reads 400 samples")).to_be_visible()
    rows.nth(3).locator("td").nth(3).click()
    rows.nth(4).locator("td").nth(3).click(modifiers=["Shift"])
    expect(page.get_by_label("columns, such as 1-6")).to_have_value("3-4")
    grip.nth(3).drag_to(page.locator(cell("torque", "joint1")))
    expect(page.locator(cell("torque", "joint2"))).to_have_text("4")
    grip.nth(5).drag_to(page.locator(cell("v", "joint1")))
    page.locator(cell("v", "joint1")).locator(".dynid-chip").drag_to(page.locator(cell("reference", "joint2")))
    expect(page.locator(cell("reference", "joint2"))).to_have_text("5")
    expect(page.locator(cell("v", "joint1"))).to_have_text("")
    keep_all_forms(page, "studio-dragged")
    page.locator(cell("reference", "joint2")).locator(".dynid-chip").drag_to(page.get_by_text("drop here: not used"))
    expect(page.get_by_text("q, torque of 2 joints")).to_be_visible()
    assert "\n".join(serious_findings(page)) == ""
    page.get_by_role("button", name="Save and check").click()
    expect(page.get_by_text("severity")).to_be_visible(timeout=LONG)
    text = (studio.folder / "dynid.toml").read_text()
    assert "q = [1, 2]" in text and "torque = [3, 4]" in text
    watch.clean()
    page.close()
