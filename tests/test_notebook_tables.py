"""Estimates, recordings and motions show themselves as tables in notebooks."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.markup import html_table


def cells(page: str) -> list[str]:
    """Text of all cells; a page that is no well-formed markup fails."""
    root = ET.fromstring(f"<body>{page}</body>")
    return ["".join(cell.itertext()) for row in root.iter("tr") for cell in row]


def test_names_cannot_break_out_of_a_table() -> None:
    page = html_table("<b>", ("x", "y"), [("<script>", 1)], "a & b")
    assert "<script>" not in page and cells(page) == ["x", "y", "<script>", "1"]


def test_objects_show_what_they_hold() -> None:
    """Every joint, every combination, every run."""
    robot = dynid.load_robot("twolink").with_drives("viscous")
    recording = synthetic_recording(robot, seed=0, duration=4.0)
    shown = cells(recording._repr_html_())
    assert "4000" in shown and "q, torque" in shown
    estimate = dynid.identify(robot, recording, "wls")
    shown = cells(estimate._repr_html_())
    assert all(expression in shown for expression in estimate.base.expressions)
    assert f"{estimate.beta[0]:.5g}" in shown and set(robot.coordinates) <= set(shown)
    limits = {"joint*": {"lower": -1.0, "upper": 1.0, "velocity": 2.0}}
    motion = dynid.design_excitation(robot, duration=4.0, limits=limits, budget=60, seed=0)
    shown = cells(motion._repr_html_())
    assert set(robot.coordinates) <= set(shown) and any(x.endswith("%") for x in shown)
    assert np.isfinite(motion.condition_number)
