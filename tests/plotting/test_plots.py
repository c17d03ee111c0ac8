"""Figures of results: size, labels with units, number of artists, and axes that are given."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.assessment import Finding, FindingCode, SimulationError
from dynid.assessment.data.channels import STANDSTILL, TORQUE_ZERO
from dynid.assessment.data.clock import SAMPLES_MISSING
from dynid.assessment.data.excitation import ILL_CONDITIONED
from dynid.assessment.data.limits import TORQUE_LIMIT
from dynid.assessment.data.velocity import VELOCITY_SIGN
from dynid.errors import (
    DynidError,
    InvalidShape,
    InvalidValue,
    Mismatch,
    MissingData,
    NotApplicable,
    SimulationFailed,
    UnknownName,
)
from dynid.friction.selection import FrictionSelection
from dynid.identification.validation_errors import Validation
from dynid.plotting.labels import axis_label, signal_label
from dynid.plotting.style import PALETTE, look_of, styled
from dynid.plotting.traces import with_gaps
from dynid.simulation.simulation import Simulation
from tests.plotting.conftest import Learned
from tests.support.errors import expect_error

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402


@pytest.fixture(autouse=True)
def no_figures_left() -> Iterator[None]:
    yield
    plt.close("all")


def labels(axes: Any) -> list[str]:
    return [ax.get_ylabel() for ax in np.ravel(axes)]


def pixels(figure: Any) -> tuple[int, int]:
    """Size of the image in pixels, after it was drawn without a warning."""
    figure.canvas.draw()
    width, height = figure.canvas.get_width_height()
    image = np.asarray(figure.canvas.buffer_rgba())
    assert image.shape == (height, width, 4) and image[..., :3].min() < 100
    return width, height


def inches(figure: Any) -> tuple[float, float]:
    width, height = pixels(figure)
    return width / figure.dpi, height / figure.dpi


def test_a_recording_has_one_panel_per_signal_and_unit(robot: dynid.Robot, recording: dynid.Recording) -> None:
    axes = recording.plot(robot=robot)
    assert labels(axes) == [
        *("position (rad)", "position (m)", "velocity (rad/s)", "velocity (m/s)", "torque (N m)", "force (N)"),
    ]
    assert [len(ax.lines) for ax in axes] == [1] * 6
    assert axes[-1].get_xlabel() == "time (s)" and not axes[0].get_xlabel()
    width, height = inches(axes[0].figure)
    assert width == pytest.approx(7.0, abs=0.02) and height == pytest.approx(10.0, abs=0.05)


def test_units_are_open_without_a_robot_and_runs_follow_each_other(recording: dynid.Recording) -> None:
    twice = recording + replace(recording, runs=(replace(recording.runs[0], v=None, name="second"),))
    axes = twice.plot(["q", "torque"])
    assert labels(axes) == ["position (rad or m)", "torque or force (N m or N)"]
    assert [len(ax.lines) for ax in axes] == [3, 3]  # two joints, and the line between the runs
    assert axes[0].get_legend().get_texts()[0].get_text() == recording.joints[0]
    assert axes[0].lines[0].get_xdata()[-2] == pytest.approx(2 * 3.99 + 0.01)
    one = twice.plot("v", joints=recording.joints[1])
    assert len(one) == 1 and np.isnan(one[0].lines[0].get_ydata()[402:-1]).all()
    with expect_error(MissingData, "signals"):
        twice.plot("current")
    with expect_error(UnknownName, "joints"):
        twice.plot(joints="elbow")


def test_given_axes_are_drawn_into(robot: dynid.Robot, recording: dynid.Recording) -> None:
    """As many as are needed, one whose place is divided, or the wrong number."""
    figure, given = plt.subplots(2, 1)
    axes = recording.plot("q", robot=robot, ax=given)
    assert list(axes) == list(given) and axes[0].figure is figure
    figure, (left, right) = plt.subplots(1, 2)
    axes = recording.plot(["q", "torque"], robot=robot, ax=right)
    figure.canvas.draw()
    assert len(axes) == 4 and all(ax.get_position().x0 > 0.5 for ax in axes) and not right.axison and left.axison
    free = plt.figure().add_axes((0.2, 0.2, 0.3, 0.6))
    assert all(ax.get_position().x1 < 0.51 for ax in recording.plot("q", robot=robot, ax=free))
    with expect_error(InvalidShape, "ax"):
        recording.plot("q", robot=robot, ax=plt.subplots(3, 1)[1])


def test_an_estimate_is_drawn_by_unit_beside_its_prior(estimate: dynid.Estimate) -> None:
    axes = estimate.plot()
    units = list(dict.fromkeys(estimate.base.units))
    assert {ax.get_xlabel() for ax in axes} == {axis_label("value", unit) for unit in units}
    shown = [text.get_text() for ax in axes for text in ax.get_yticklabels()]
    assert len(shown) == estimate.base.count
    for ax in axes:
        (points,) = [c for c in ax.containers if c.get_label() == "estimate"]
        (prior,) = [c for c in ax.collections if c.get_label() == "a priori"]
        assert len(points[0].get_xdata()) == len(prior.get_offsets()) == len(ax.get_yticks())
    assert inches(axes[0].figure)[0] == pytest.approx(7.0, abs=0.02)
    some = estimate.plot("fc_*")
    assert sorted(ax.get_xlabel() for ax in some) == ["value (N m)", "value (N)"]
    assert sum(len(ax.get_yticks()) for ax in estimate.plot(largest=3)) == 3
    with expect_error(UnknownName, "pattern"):
        estimate.plot("stiffness_*")


def test_a_validation_has_the_residual_on_its_own_axis(validation: Validation) -> None:
    axes = validation.plot()
    assert axes.shape == (2, 2)
    assert labels(axes) == ["torque (N m)", "residual (N m)", "force (N)", "residual (N)"]
    top, below = axes[0]
    assert [line.get_label() for line in top.lines] == ["measured", "predicted"]
    assert below.lines[0].get_ydata() == pytest.approx(-0.1)
    assert top.get_shared_x_axes().joined(top, below) and below.get_xlabel() == "time (s)"
    assert inches(top.figure)[1] == pytest.approx(3.0, abs=0.05)
    assert validation.plot(joints=validation.channels[1]).shape == (1, 2)


def test_a_band_beside_the_residual_is_a_share_of_the_range_of_the_torque(validation: Validation) -> None:
    for (_, below), measured in zip(validation.plot(band=0.1), validation.measured, strict=True):
        levels = [line.get_ydata()[0] for line in below.lines if line.get_linestyle() == "--"]
        span = measured.max() - measured.min()
        assert span > 0 and levels == pytest.approx([-0.1 * span, 0.1 * span])
    assert not [line for line in validation.plot()[0, 1].lines if line.get_linestyle() == "--"]
    for band in (0.0, -0.1, np.nan):
        with expect_error(InvalidValue, "band"):
            validation.plot(band=band)


def test_a_standing_joint_is_said_to_stand_still(validation: Validation) -> None:
    none = np.zeros(0)
    still = replace(validation, rows=(0, *validation.rows[1:]))
    still = replace(still, **{k: (none, getattr(validation, k)[1]) for k in ("time", "measured", "predicted")})
    assert still.plot(band=0.1)[0, 0].get_title(loc="left").endswith("stands still")


def test_an_excitation_shows_the_limits_it_comes_near_to(excitation: dynid.Excitation) -> None:
    motion = excitation
    axes = motion.plot()
    assert labels(axes)[:2] == ["position (rad)", "position (m)"]
    assert labels(axes)[4:6] == ["acceleration (rad/s²)", "acceleration (m/s²)"]
    assert motion.use["velocity"] == pytest.approx(0.97, abs=0.01) and motion.use["position"].max() < 0.9
    assert [len(ax.lines) for ax in axes[:2]] == [1, 1]
    for ax, limit in zip(axes[2:4], (0.3, 0.2), strict=True):
        levels = [abs(line.get_ydata()[0]) for line in ax.lines[1:]]
        assert 1 <= len(levels) <= 2 and levels == pytest.approx([limit] * len(levels))
    pixels(axes[0].figure)


def test_a_simulation_shows_references_errors_and_torques(simulation: Simulation) -> None:
    run = simulation
    axes = run.plot()
    expected = ["position (rad)\nreference dotted", "position (m)\nreference dotted", "tracking error (rad)"]
    assert labels(axes) == [*expected, "tracking error (m)", "torque (N m)", "force (N)"]
    assert [len(ax.lines) for ax in axes] == [2, 2, 1, 1, 1, 1]
    assert run.to_frame().columns[:2] == ["t", "q_joint1"] and run.to_frame().height == len(run.t)
    assert "largest torque" in run._repr_html_()


def test_friction_is_drawn_over_velocity(robot: dynid.Robot, selection: FrictionSelection) -> None:
    found = selection
    axes = found.plot(models=2)
    assert [(ax.get_xlabel(), ax.get_ylabel()) for ax in axes] == [
        *(("velocity (rad/s)", "friction (N m)"), ("velocity (m/s)", "friction (N)")),
    ]
    names = [text.get_text() for text in axes[0].get_legend().get_texts()]
    assert len(names) == 4 and any(n.startswith("coulomb+viscous (rms") for n in names)
    ax = found.fits[0].plot()
    assert len([line for line in ax.lines if "rms" in str(line.get_label())]) == 1
    assert np.isnan(ax.lines[-1].get_ydata()).sum() == 1  # friction jumps at rest
    assert found.to_frame()["joint"].unique().sort().to_list() == list(robot.coordinates)
    assert "rms" in found.fits[0]._repr_html_()


def test_a_residual_shows_what_is_learned(robot: dynid.Robot, learned: Learned) -> None:
    residual, data = learned.residual, learned.data
    axes = residual.plot(data)
    assert labels(axes) == ["residual torque (N m)", "residual force (N)"]
    assert all(len(ax.lines) == 2 for ax in axes) and len(axes[0].figure.legends) == 1
    assert axes[0].get_xlabel() == "time (s)"
    assert residual.to_frame()["joint"].to_list() == list(robot.coordinates)
    assert "kernel" in residual._repr_html_()


def other_finding(code: FindingCode, joint: str = "joint2", **more: Any) -> Finding:
    return Finding(code, "warning", "first", joint, "What it is.", "3 of them", "What to do.", **more)


def test_a_finding_shows_its_trace_and_where_it_applies(
    robot: dynid.Robot, recording: dynid.Recording, finding: Finding
) -> None:
    ax = finding.plot(recording, robot=robot)
    assert ax.get_ylabel() == "force (N)" and ax.get_xlabel() == "time (s)"
    assert len(ax.patches) == 2 and "What it is." in ax.get_title(loc="left")
    assert inches(ax.figure) == pytest.approx((7.0, 2.8), abs=0.05)
    ax = other_finding(VELOCITY_SIGN).plot(recording)
    assert ax.get_ylabel() == "velocity (rad/s or m/s)" and len(ax.lines) == 2
    ax = other_finding(SAMPLES_MISSING, "").plot(recording)
    assert ax.get_ylabel() == "sampling step (ms)" and np.allclose(ax.lines[0].get_ydata(), 10.0)
    ax = other_finding(STANDSTILL, "").plot(recording, robot=robot)
    assert ax.get_ylabel() == "position (rad or m)" and len(ax.lines) == 2
    limited = replace(robot, joints=tuple(replace(j, limits=replace(j.limits, effort=5.0)) for j in robot.joints))
    assert len(other_finding(TORQUE_LIMIT).plot(recording, robot=limited).lines) == 3
    with expect_error(NotApplicable, "finding"):
        other_finding(ILL_CONDITIONED, "").plot(recording)
    with expect_error(Mismatch, "finding"):
        other_finding(TORQUE_ZERO).plot(dynid.Recording(recording.joints, (replace(recording.runs[0], name="x"),)))


def test_simulation_errors_are_drawn_by_horizon(horizons: SimulationError) -> None:
    error = horizons
    axes = error.plot()
    assert labels(axes) == ["error (rad)", "error (m)"] and axes[0].get_xlabel() == "horizon (s)"
    assert [line.get_label() for line in axes[0].lines] == ["identified", "identified, 90 % of starts", "a-priori"]
    assert error.to_frame().height == 2 * 2 * 3
    with expect_error(SimulationFailed):
        replace(error, identified=None, reason="too short").plot()


def test_without_matplotlib_one_sentence_names_the_extra(
    recording: dynid.Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with expect_error(DynidError, code="missing_package"):
        recording.plot()


def test_the_style_of_the_user_is_not_changed() -> None:
    before = dict(plt.rcParams)
    with styled():
        assert plt.rcParams["axes.spines.top"] is False
    assert dict(plt.rcParams) == before


def test_lines_beyond_the_palette_differ_by_dashes() -> None:
    looks = [look_of(k) for k in range(3 * len(PALETTE))]
    assert len(set(looks)) == len(looks)


def test_colors_differ_in_lightness_or_hue_for_color_blindness() -> None:
    """Seen with deuteranopia and protanopia (Machado 2009), any two colors of the palette stay apart."""
    seen = {
        "deuteranopia": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
        "protanopia": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    }
    rgb = np.array([[int(c[i : i + 2], 16) / 255 for i in (1, 3, 5)] for c in PALETTE])
    linear = np.where(rgb > 0.04045, ((rgb + 0.055) / 1.055) ** 2.4, rgb / 12.92)
    for matrix in seen.values():
        view = np.clip(linear @ np.array(matrix).T, 0.0, 1.0) ** (1 / 2.2)
        distance = np.linalg.norm(view[:, None] - view, axis=2) + 2.0 * np.eye(len(view))
        assert distance.min() > 0.15


def test_labels_carry_units() -> None:
    assert axis_label("inertia", "kg m2") == "inertia (kg m²)" and axis_label("gain", "") == "gain (-)"
    assert signal_label("current", None) == "current (A)"
    assert signal_label("a", True) == "acceleration (m/s²)"


def test_no_line_is_drawn_over_a_gap() -> None:
    t, y = with_gaps(np.array([0.0, 0.1, 0.2, 5.0, 5.1, 0.0]), np.arange(6.0))
    assert np.isnan(y).sum() == 2 and len(t) == 8
