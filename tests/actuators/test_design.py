"""Chirps that show actuators: predicted standard deviations are those of repeated experiments."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.actuators import design_chirps, identify_actuators, predict_std
from dynid.actuators.prediction import predict, resting
from dynid.errors import Infeasible, InvalidShape, InvalidValue, NotApplicable, SimulationFailed, UnknownName
from dynid.progress import Progress
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot import ActuatorLaw
from studies.reproduce.actuator_plants import given_robot, legs, logged, recording, truth
from tests.actuators.test_posterior import NOISE, chirp, law, measured, robot
from tests.support.errors import Error, expect_error
from tests.support.saved_fields import survived


def limited(**limits: Any) -> dynid.Robot:
    return robot().with_limits(dict.fromkeys(robot().coordinates, limits))


@pytest.mark.slow
def test_predicted_std_is_that_of_repeated_experiments() -> None:
    plant, command = robot(), chirp(2.0, 2)
    unknown = ("armature", "damping", "friction")
    _, predicted = predict_std(plant, law(plant), command, unknown=unknown, noise=NOISE)
    values = [
        identify_actuators(plant, measured(plant, command, 50 + k), law(plant), unknown=unknown).values
        for k in range(16)
    ]
    # Sixteen experiments know a standard deviation to 18 %; the mean over six is known better.
    ratio = np.std(values, axis=0, ddof=1) / predicted
    assert 0.8 < np.sqrt(np.mean(ratio**2)) < 1.25
    assert np.all((ratio > 0.5) & (ratio < 1.6))


def test_the_best_chirp_shows_more_than_a_slow_one() -> None:
    plant = limited(position=(-3.0, 3.0), velocity=8.0)
    seen: list[Progress] = []
    design = design_chirps(plant, law(plant), 0.4, seconds=3.0, progress=seen.append)
    assert design.command.shape == (600, 2) and design.joints == plant.coordinates
    slow = next(x for x in design.tried if (x.highest, x.share) == (1.0, 0.25))
    best = next(x for x in design.tried if (x.highest, x.share) == (design.highest, design.share))
    assert best.worst == min(x.worst for x in design.tried) < 0.3 * slow.worst
    np.testing.assert_array_equal(design.std, best.std)
    assert np.all(np.isfinite(design.std)) and not best.problem
    assert [x.share for x in seen] == pytest.approx(np.arange(1, len(design.tried) + 1) / len(design.tried))


def test_limits_that_leave_next_to_no_motion_are_told() -> None:
    """0.01 rad/s leaves a milliradian of the 0.4 rad that were wanted."""
    plant = limited(velocity=0.01)
    design = design_chirps(plant, law(plant), 0.4, seconds=3.0)
    assert sum("of the amplitude of 0.4 for" in x for x in design.remarks) == 2
    assert any("times the noise of its positions" in x for x in design.remarks)
    assert all(f"note: {x[:30]}" in design.summary() for x in design.remarks)
    assert design.to_dict()["remarks"] == list(design.remarks)
    assert not design_chirps(limited(velocity=8.0), law(plant), 0.4, seconds=3.0).remarks


def test_commands_begin_and_end_at_rest_and_keep_to_the_limits() -> None:
    plant = limited(velocity=4.0, effort=30.0)
    design = design_chirps(plant, law(plant), 0.4, seconds=3.0, acceleration=60.0)
    assert np.all(design.command[[0, -1]] == plant.home)
    velocity = np.gradient(design.command, 1 / design.rate, axis=0)
    assert np.abs(velocity).max() <= 4.0 and np.abs(velocity[[0, -1]]).max() < 0.05
    assert np.abs(np.gradient(velocity, 1 / design.rate, axis=0)).max() <= 60.0
    start = resting(plant, law(plant), design.command[0], design.rate)
    moved = predict(plant, law(plant), design.command, design.rate, ("friction",), np.ones(2), start)
    assert np.abs(moved.v).max() <= 4.0 and np.abs(moved.torque).max() <= 30.0
    # Without limits the best chirp exceeds these: they are what makes the difference.
    free = design_chirps(limited(velocity=100.0, effort=1e3), law(plant), 0.4, seconds=3.0)
    assert np.abs(np.gradient(free.command, 1 / free.rate, axis=0)).max() > 4.0


def test_the_robot_sags_before_the_log_begins() -> None:
    """At rest under the law, its torque holds the arm against gravity, up to friction."""
    plant, posture = replace(robot(), gravity=np.array([0.0, -9.81, 0.0])), np.array([0.7, 0.3])
    at = resting(plant, law(plant), posture, 200.0)
    bodies = np.where([p.inertial for p in plant.layout], plant.parameters, 0.0)
    rest = np.zeros((1, 2))
    weight = dynid.inverse_dynamics(plant, at[None], rest, rest, bodies)[0]
    assert np.abs(weight).max() > 5 * 0.5  # of friction
    assert np.abs(60.0 * (posture - at) - weight).max() <= 1.01 * 0.5


def test_a_joint_that_cannot_be_at_zero_moves_about_the_middle_of_its_range() -> None:
    plant = robot().with_limits({"joint2": {"position": (-2.7, -0.8)}})
    design = design_chirps(plant, law(plant), 0.3, seconds=2.0)
    np.testing.assert_allclose(design.command[0], [0.0, -1.75])
    stop = robot().with_limits({"joint2": {"position": (0.1, np.inf)}})
    np.testing.assert_allclose(design_chirps(stop, law(stop), 0.3, seconds=2.0).command[0], [0.0, 0.7])
    given = design_chirps(plant, law(plant), 0.3, seconds=2.0, start=[0.5, -1.2])
    np.testing.assert_allclose(given.command[0], [0.5, -1.2])


def test_a_floating_base_is_held() -> None:
    """As of a legged robot that hangs from a frame."""
    held, free = (design_chirps(x, law(x), 0.3, seconds=2.0) for x in (robot(), robot().with_base("floating")))
    np.testing.assert_array_equal(held.std, free.std)
    np.testing.assert_array_equal(held.command, free.command)


def test_a_log_of_the_design_has_the_predicted_scatter(tmp_path: Path) -> None:
    """Legs whose true values are not those of the file, integrated by MuJoCo, and positions with noise."""
    joints = [f"{side}_{joint}" for side in "LR" for joint in ("hip", "thigh", "calf")]
    given, values = given_robot(str(tmp_path / "legs.xml")), truth(1)
    pd = ActuatorLaw(joints, kp=20.0, kd=1.5, rate=1000.0)
    design = design_chirps(given, pd, 0.35, seconds=3.0, noise=NOISE)
    slow = 0.35 * np.sin(2 * np.pi * np.outer(np.arange(600) / 200.0, np.linspace(0.4, 0.5, 6)))
    errors = []
    for command, seeds in ((design.command, 2), (slow, 1)):
        q = logged(legs(values), pd.changed(delay=0.004), command, counts=None, ratio=10).runs[0].q
        noisy = [q + np.random.default_rng(k).normal(0.0, NOISE, q.shape) for k in range(seeds)]
        found = [identify_actuators(given, recording(x, command, joints), pd).values for x in noisy]
        errors.append(np.array(found) - [*values.T.ravel(), 0.004])
    # Two logs of 19 unknowns know the root mean square to about a tenth; the file's values are not the true ones.
    assert 0.5 < np.sqrt(np.mean((errors[0] / design.std) ** 2)) < 2.0
    # Armatures from a slow motion are several times as wrong.
    fast, slowly = (np.sqrt(np.mean(x[:, :6] ** 2)) for x in errors)
    assert fast < 0.5 * slowly


def test_the_design_is_told_as_text_and_as_plain_data(tmp_path: Path) -> None:
    plant = limited(velocity=1.0)
    design = design_chirps(plant, law(plant), 0.4, seconds=2.0, unknown={"armature": "joint", "delay": "shared"})
    text = design.summary()
    assert "chosen" in text and "velocity of joint" in text and "delay of all joints" in text and "ms" in text
    frame = design.to_frame()
    assert frame["unknown"].to_list() == [x.label for x in design.unknowns] and frame["std"].to_list() == list(
        design.std
    )
    assert survived(design, tmp_path).summary() == text
    page = json.loads(json.dumps(design.to_dict()))
    assert [x["unit"] for x in page["unknowns"]] == ["kg m2", "kg m2", "s"]
    assert [x["std"] for x in page["unknowns"]] == pytest.approx(design.std)
    assert len(page["tried"]) == len(design.tried) == 18
    design.to_csv(tmp_path / "command.csv")
    run = Run(np.arange(400) / 200.0, np.zeros((400, 2)), name="log")
    Recording(plant.coordinates, (run,)).to_csv(tmp_path / "log.csv")
    files = {"q": tmp_path / "log.csv", "reference": tmp_path / "command.csv"}
    np.testing.assert_array_equal(dynid.load_recording(files, plant).runs[0].reference, design.command)


def test_values_that_the_file_does_not_have_are_designed_for_too() -> None:
    """With armature and friction of zero, relative standard deviations have no meaning."""
    bare = robot().with_parameters(np.where([p.inertial for p in robot().layout], robot().parameters, 0.0))
    design = design_chirps(bare, law(bare), 0.3, seconds=3.0)
    assert not design.values.any() and np.all(np.isfinite(design.std))
    assert 0 < min(x.worst for x in design.tried) < 0.1


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"amplitude": 0.0}, (InvalidValue, "amplitude")),
        ({"amplitude": np.nan}, (InvalidValue, "amplitude")),
        ({"amplitude": np.inf}, (InvalidValue, "amplitude")),
        ({"amplitude": [1.0, 1.0, 1.0]}, (InvalidShape, "amplitude")),
        ({"acceleration": -1.0}, (InvalidValue, "acceleration")),
        ({"seconds": 0.0}, (InvalidValue, "seconds")),
        ({"seconds": np.nan}, (InvalidValue, "seconds")),
        ({"seconds": 1e9}, (InvalidValue, "seconds")),
        ({"rate": 4.0}, (InvalidValue, "rate")),
        ({"noise": 0.0}, (InvalidValue, "noise")),
        ({"noise": [1e-3] * 3}, (InvalidShape, "noise")),
        ({"start": [0.0]}, (InvalidShape, "start")),
        ({"start": [9.0, 0.0]}, (InvalidValue, "start")),
        ({"start": [np.nan, 0.0]}, (InvalidValue, "start")),
        ({"unknown": ["armatur"]}, (UnknownName, "unknown")),
    ],
)
def test_bad_settings_of_a_design(change: dict[str, Any], error: Error) -> None:
    settings: dict[str, Any] = {"amplitude": 0.3} | change
    with expect_error(*error):
        design_chirps(robot(), law(robot()), **settings)


def test_limits_and_bad_commands() -> None:
    sagging = limited(effort=1.0)
    with expect_error(Infeasible, "amplitude"):
        design_chirps(sagging, law(sagging), 0.4, seconds=2.0)
    with expect_error(NotApplicable):
        design_chirps(robot(), ActuatorLaw(robot().coordinates), 0.4)
    with expect_error(InvalidShape, "command"):
        predict_std(robot(), law(robot()), np.zeros((10, 3)))
    unstable = ActuatorLaw(robot().coordinates, kp=1e6, rate=200.0)
    with expect_error(SimulationFailed):
        predict_std(robot(), unstable, chirp(1.0, 2))
    with expect_error(SimulationFailed):
        design_chirps(robot(), unstable, 0.4, seconds=2.0)


def test_a_gain_and_what_it_multiplies_are_not_shown_together() -> None:
    """With bodies and friction unknown as well, a factor of all torques has no effect."""
    plant = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    unknown = {"gain": "shared", "bodies": "", "armature": "joint", "damping": "joint", "friction": "joint"}
    unknowns, std = predict_std(plant, law(plant), chirp(2.0, 2), unknown=unknown)
    assert np.isinf(std[[x.quantity == "gain" for x in unknowns]]).all()
