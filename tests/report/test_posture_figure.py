"""The posture in color: where its links are, and which color says what."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from itertools import pairwise

import numpy as np
import pytest

import dynid
from dynid.excitation.live import LiveExcitation
from dynid.excitation.live_colors import color_of, score_table
from dynid.report.posture import posture_figure
from tests.support.humanoids import dance, humanoid

SVG = "{http://www.w3.org/2000/svg}"


def drawn(live: LiveExcitation) -> dict[str, ET.Element]:
    """The last line of each link, by its name."""
    page = ET.fromstring(posture_figure(live))
    return {(line.findtext(f"{SVG}title") or "").rpartition(": ")[0]: line for line in page.iter(f"{SVG}line")}


def test_colors_go_from_the_target_to_nothing_known() -> None:
    """Blue up to the target, red only close to 1, and never back on the path between."""
    shades = [color_of(share, 0.1) for share in np.geomspace(0.01, 1.0, 50)]
    assert color_of(0.1, 0.1) == color_of(0.001, 0.1) == shades[0] and shades[-1] == color_of(1.0, 0.1)
    assert len(set(shades)) == 5 and sum(a != b for a, b in pairwise(shades)) == 4


def test_a_joint_that_stands_still_leaves_its_link_red() -> None:
    """The link that moves changes its color, in the drawing and in the table."""
    robot = dynid.load_robot("twolink")
    live = LiveExcitation(robot, noise=0.01)
    before = {name: line.get("stroke") for name, line in drawn(live).items()}
    assert set(before.values()) == {color_of(1.0, live.target)}
    t = np.arange(0.0, 6.0, 0.01)
    still = np.column_stack([np.sin(3 * t) + 0.5 * np.sin(7 * t), np.zeros_like(t)])
    live.update(t, still)
    left = {s.name: s.relative_std / 100 for s in live.score().segments}
    assert left["link1"] < left["link2"]
    colors = {name: line.get("stroke") for name, line in drawn(live).items()}
    assert colors == {name: color_of(left[name], live.target) for name in colors}
    assert colors["link1"] != before["link1"]
    styles = [str(text.style) for text in score_table(live.score()).columns[-1].cells]
    assert styles == [color_of(s.relative_std / 100, live.target) for s in live.score().segments]
    assert "\u2588" in live.score().summary()


def test_links_are_where_forward_kinematics_puts_them() -> None:
    """Of an arm that turns about the vertical by half a turn, the sideways coordinates change sign about the base."""
    robot = dynid.load_robot("tx40")
    live = LiveExcitation(robot)
    q = np.array([0.0, 0.5, 0.6, 0.0, 0.3, 0.0])
    rise = []
    for k, turn in enumerate((0.0, np.pi)):
        rest = np.zeros((1, 6))
        live.update([float(k)], (q + turn * np.eye(6)[0])[None], rest, rest)
        np.testing.assert_array_equal(live.posture, q + turn * np.eye(6)[0])
        rise.append({n: [float(line.get(x) or 0) for x in ("x1", "y1", "x2", "y2")] for n, line in drawn(live).items()})
    assert rise[0].keys() == rise[1].keys() and rise[0] != rise[1]
    assert all(0 <= x <= 420 for points in (*rise[0].values(), *rise[1].values()) for x in points)


@pytest.mark.parametrize("seed", [0, 1])
def test_a_person_is_drawn_in_the_posture_of_the_base(seed: int) -> None:
    """A floating body goes through the same code: every body with a line or a row, each joined to another."""
    robot = humanoid(seed, limbs="HA")
    moved = dance(robot, samples=60)
    live = LiveExcitation(robot)
    live.update(moved.t, moved.q, moved.v, moved.a)
    page = ET.fromstring(posture_figure(live))
    rows = [text.text or "" for text in page.iter(f"{SVG}text")]
    assert [row.rpartition(": ")[0] for row in rows] == [s.name for s in live.score().segments]
    assert len(drawn(live)) > 2
