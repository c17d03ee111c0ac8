"""The identified geometry: saved and read, in words, placements and their uncertainty."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid.geometry import GeometryEstimate, calibrate_geometry
from studies.reproduce.geometry_plants import TOOL, Plant

Array = NDArray[np.float64]


@cache
def calibrated() -> tuple[Plant, GeometryEstimate]:
    """An arm with compliance, and what was found."""
    plant = Plant.drawn("6R, parallel axes", 6)
    taken = plant.taken(80, np.random.default_rng(0), noise=1e-4, outliers=0.03)
    return plant, calibrate_geometry(plant.robot, taken.measurement)


def test_saved_and_read_it_is_the_same(tmp_path: Path) -> None:
    plant, found = calibrated()
    found.save(tmp_path / "geometry.json")
    again = GeometryEstimate.load(tmp_path / "geometry.json")
    np.testing.assert_array_equal(again.values, found.values)
    np.testing.assert_array_equal(again.covariance, found.covariance)
    assert again.unknowns == found.unknowns and again.model == found.model
    assert again.sensors[0].set_aside == found.sensors[0].set_aside
    assert again.held_out is not None and found.held_out is not None
    assert again.held_out.rms == found.held_out.rms
    q = plant.readings(5, np.random.default_rng(1))
    for a, b in zip(again.place(q), found.place(q), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-14)


def test_the_summary_says_errors_before_and_after() -> None:
    found = calibrated()[1]
    assert found.held_out is not None
    text = found.summary()
    before, after = found.held_out.mean
    assert f"mean {1e3 * before:.3g} -> {1e3 * after:.3g} mm" in text
    aside = len(found.sensors[0].set_aside)
    assert aside and f"{aside} set aside" in text
    largest = np.argmax(np.abs(found.values / found.std)[: found.joint_count])
    assert found.unknowns[largest].name in text


def test_what_nothing_shows_keeps_what_was_expected() -> None:
    found = calibrated()[1]
    names = [u.name for u in found.unknowns]
    # The base's own position in the tracker cannot be told from that of the first joint.
    x = names.index("x of joint1")
    assert "x of joint1" in found.hidden and found.shown[x] < 0.05
    assert found.std[x] == pytest.approx(found.prior_std[x], rel=0.05)
    assert found.shown[names.index("zero of joint3")] > 0.5
    assert 30 < found.rank < found.joint_count


def test_covariance_of_a_placement_is_that_of_drawn_unknowns() -> None:
    plant, found = calibrated()
    q = plant.readings(3, np.random.default_rng(2))
    middle, covariance = found.place(q)
    width = found.joint_count
    root = np.linalg.cholesky(found.covariance[:width, :width] + 1e-20 * np.eye(width))
    geometry, rng, drawn = found.geometry, np.random.default_rng(3), []
    postures = geometry.postures(q, found.values[:width])
    for _ in range(1500):
        x = found.values[:width] + root @ rng.normal(size=width)
        drawn.append(geometry.place(postures, x, width)[TOOL].origin)
    np.testing.assert_allclose(np.mean(drawn, axis=0), middle[:, :3, 3], rtol=0, atol=1e-3)
    std = np.sqrt(covariance[:, range(3), range(3)])
    np.testing.assert_allclose(np.std(drawn, axis=0), std, rtol=0.12)


def test_a_common_motion_is_no_error_of_the_tool() -> None:
    plant, found = calibrated()
    q = plant.readings(40, np.random.default_rng(4))
    _, covariance = found.place(q)
    whole = np.sqrt(covariance[:, range(3), range(3)].sum(1))
    std = found.tool_std(q)
    assert (std < whole).all()
    # The first joint moves the whole robot, and its place cannot be told from that of the tracker.
    assert std.mean() < 0.7 * whole.mean()
