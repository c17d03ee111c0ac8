"""Method auto: what it chooses, why, and that the same recording gives the same answer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import DataError
from dynid.feasibility import feasible_set
from dynid.identification import AutoOptions
from dynid.progress import Progress
from tests.support.synthetic import arm, record

# Friction and rotor inertia of the truth, per joint.
LAWS = {"joint1": "viscous+coulomb", "joint2": "viscous", "joint3": "none"}
ROTORS = ["joint1"]
WEIGHT = "weight of the prior (without constraints)"


def truth() -> dynid.Robot:
    robot = arm().with_drives(LAWS, rotor_inertia=ROTORS)
    return robot


@pytest.fixture(scope="module")
def runs() -> tuple[dynid.Recording, dynid.Recording]:
    """A recording to identify from and another one, both with noise of 0.05 N m at 1 kHz."""
    return record(truth(), (0, 1), noise=0.05, samples=5000), record(truth(), (2,), noise=0.05, samples=5000)


@pytest.fixture(scope="module")
def bare() -> dynid.Robot:
    """What a plain URDF says: wrong bodies and nothing of the drives."""
    robot = arm().with_drives("none", rotor_inertia=False)
    return robot.with_parameters(1.3 * robot.parameters)


@pytest.fixture(scope="module")
def estimate(bare: dynid.Robot, runs: tuple[dynid.Recording, dynid.Recording]) -> dynid.Estimate:
    return dynid.identify(bare, runs[0])


def test_it_is_the_default_and_finds_the_terms(estimate: dynid.Estimate) -> None:
    assert estimate.method == "auto"
    chosen = {c.what: c.option for c in estimate.choices if c.chosen}
    assert chosen["friction of joint1"] == "viscous+coulomb + rotor inertia"
    assert chosen["friction of joint2"] == "viscous"
    assert chosen["friction of joint3"] == "none"
    assert set(chosen) >= {WEIGHT, "delay", "cut-off", "estimator"}
    for what in chosen:
        errors = {c.option: c.error for c in estimate.choices if c.what == what}
        assert len(errors) > 1 and errors[chosen[what]] < 1.05 * min(errors.values())


def test_it_predicts_unseen_motion_and_is_consistent(
    estimate: dynid.Estimate, bare: dynid.Robot, runs: tuple[dynid.Recording, dynid.Recording]
) -> None:
    ours = estimate.validate(runs[1]).relative.mean()
    full = dynid.identify(truth(), runs[0], "wls").validate(runs[1]).relative.mean()
    plain = dynid.identify(bare, runs[0], "wls").validate(runs[1]).relative.mean()
    assert ours < 1.05 * full < 0.5 * plain
    assert feasible_set(estimate.robot).violations(estimate.parameters) == []


def test_bodies_stay_near_the_prior(estimate: dynid.Estimate, bare: dynid.Robot) -> None:
    mass = [n.startswith("m_") for n in estimate.robot.parameter_names]
    ratio = estimate.parameters[mass].sum() / bare.parameters[[n.startswith("m_") for n in bare.parameter_names]].sum()
    assert 0.3 < ratio < 3.0


def test_the_same_recording_gives_the_same_estimate(
    estimate: dynid.Estimate, bare: dynid.Robot, runs: tuple[dynid.Recording, dynid.Recording]
) -> None:
    seen: list[Progress] = []
    again = dynid.identify(bare, runs[0], progress=seen.append)
    np.testing.assert_array_equal(again.beta, estimate.beta)
    assert again.choices == estimate.choices
    shares = [p.share for p in seen]
    assert len(seen) > 3 and shares == sorted(shares) and seen[-1].seconds_left is not None


def test_choices_are_printed_and_saved(estimate: dynid.Estimate, tmp_path: Path) -> None:
    text = estimate.summary()
    assert "friction of joint1" in text and "weight of the prior" in " ".join(text.split())
    estimate.save(tmp_path / "estimate.json")
    loaded = dynid.Estimate.load(tmp_path / "estimate.json")
    assert loaded.choices == estimate.choices and loaded.freedom == estimate.freedom
    assert loaded.independent_rows == estimate.independent_rows
    assert "viscous+coulomb + rotor inertia" in text


def test_stribeck_friction_is_found_where_it_is(runs: tuple[dynid.Recording, dynid.Recording], tmp_path: Path) -> None:
    """A joint whose friction doubles at standstill gets the law, the others do not; the estimate is saved with it."""
    robot = truth()
    true = robot.with_terms(robot.joint_term("joint1", "fs", 0.7, velocity=0.3))
    estimate = dynid.identify(robot, record(true, (0, 1), noise=0.05, samples=5000), filters="given")
    chosen = {c.what: c.option for c in estimate.choices if c.chosen and c.what.startswith("velocity law")}
    assert chosen["velocity law of joint1"].startswith("Stribeck")
    assert chosen["velocity law of joint2"] == chosen["velocity law of joint3"] == "none"
    value = dict(zip(estimate.robot.parameter_names, estimate.parameters, strict=True))["fs_joint1"]
    assert 0.3 < value < 1.2
    estimate.save(tmp_path / "estimate.json")
    loaded = dynid.Estimate.load(tmp_path / "estimate.json")
    np.testing.assert_array_equal(loaded.validate(runs[1]).relative, estimate.validate(runs[1]).relative)
    again = dynid.identify(estimate.identified_robot, record(robot, (0, 1), noise=0.05, samples=5000), filters="given")
    assert "fs_joint1" not in again.robot.parameter_names


def test_the_velocity_of_a_law_is_searched_between_those_of_the_list() -> None:
    """The velocities of the list differ by a factor of three; the nearest of them is wrong by 40 % and more here."""
    robot = truth()
    true = robot.with_terms(robot.joint_term("joint1", "fs", 0.7, velocity=0.45))
    estimate = dynid.identify(robot, record(true, (0, 1), noise=0.02, samples=5000), filters="given")
    tried = {c.option for c in estimate.choices if c.what == "velocity law of joint1" and c.option.startswith("Stri")}
    nearest = min(abs(np.log(float(option.split()[1]) / 0.45)) for option in tried)
    term = next(t for t in estimate.robot.drives if t.name == "fs_joint1")
    assert nearest > np.log(1.35)
    assert term.velocity == pytest.approx(0.45, rel=0.2)
    chosen = [c for c in estimate.choices if c.what == "velocity law of joint1, finer" and c.chosen]
    assert [c.option for c in chosen] == [f"Stribeck, {term.velocity:.2g} rad/s"]


@pytest.mark.parametrize("rotor", [0.004, 0.0])
def test_a_rotor_inertia_is_more_likely_than_a_body_of_forty_times_its_inertia(rotor: float) -> None:
    """A vertical axis shows only the sum of both; with the bodies of the file right, no rotor is needed."""
    body = {"mass": 0.2, "com": [0, 0, 0], "tensor": [1e-4, 0, 0, 1e-4, 0, 1e-4]}
    drive = {"Ia": rotor, "fv": 0.01, "fc": 0.02}
    truth = dynid.Robot.from_dh([{"alpha": 0.0, "inertia": body, "drive": drive}], "modified", name="wheel")
    bare = truth.with_drives("none", rotor_inertia=False)
    found = dynid.identify(bare, record(truth, (0, 1), noise=1e-4, samples=5000))
    values = dict(zip(found.robot.parameter_names, found.parameters, strict=True))
    assert values.get("Ia_joint1", 0.0) == pytest.approx(rotor, abs=1e-4)
    assert values["Izz_link1"] == pytest.approx(1e-4, rel=0.3)
    chosen = {c.what: c.option for c in found.choices if c.chosen}
    assert ("rotor inertia" in chosen["friction of joint1"]) == (rotor > 0)


def test_given_friction_and_filters_stay(runs: tuple[dynid.Recording, dynid.Recording]) -> None:
    robot = arm().with_drives("viscous", rotor_inertia=False)
    kept = dynid.identify(robot, runs[0], friction="given", filters="given")
    assert kept.robot.parameter_names == robot.parameter_names
    assert {c.what for c in kept.choices} == {WEIGHT, "weight of the prior", "estimator"}
    observed = dynid.identification.observe(robot, runs[0])
    np.testing.assert_allclose(dynid.identify(robot, observed).beta, kept.beta, rtol=1e-9, atol=1e-12)


def test_a_recording_that_shows_little_stays_at_the_prior(bare: dynid.Robot) -> None:
    """One joint moves a little: the others keep their bodies, and the estimate says so."""
    t = np.arange(4000) / 1000.0
    q = np.zeros((len(t), 3))
    q[:, 2] = 0.3 * np.sin(2 * np.pi * t)
    true = bare.with_parameters(bare.parameters / 1.3)
    v, a = np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0)
    torque = dynid.inverse_dynamics(true, q, v, a) + 0.01 * np.random.default_rng(0).normal(size=q.shape)
    recording = dynid.Recording(bare.coordinates, (dynid.Run(t, q, torque=torque),))
    estimate = dynid.identify(bare, recording)
    assert any("stay near the prior" in note for note in estimate.notes)
    at = bare.parameter_names.index("m_link1")
    mine = estimate.robot.parameter_names.index("m_link1")
    assert abs(estimate.parameters[mine] - bare.parameters[at]) < 0.5 * bare.parameters[at]


def test_a_wrong_unit_of_torque_is_remarked(bare: dynid.Robot, runs: tuple[dynid.Recording, dynid.Recording]) -> None:
    """Torques in mN m: the robot would weigh a thousand times as much."""
    scaled = tuple(replace(run, torque=1000 * run.torque) for run in runs[0].runs if run.torque is not None)
    estimate = dynid.identify(bare, replace(runs[0], runs=scaled), friction="given", filters="given")
    assert any("check units, signs and gains" in note for note in estimate.notes)
    good = dynid.identify(bare, runs[0], friction="given", filters="given")
    assert not any("check units" in note for note in good.notes)


def test_bad_options_are_refused_before_any_work() -> None:
    for wrong in ({"friction": "all"}, {"filters": "none"}, {"parts": 1}, {"parts": True}):
        with pytest.raises(DataError):
            AutoOptions(**wrong)  # type: ignore[arg-type]
