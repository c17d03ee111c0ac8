"""Method auto: a posterior over all drive terms and plausible bodies, the same for the same recording."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import DataError, TooFew
from dynid.feasibility import consistent_prior, feasible_set
from dynid.feasibility.box import plausible_box
from dynid.identification import AutoOptions
from dynid.progress import Progress
from tests.support.errors import expect_error
from tests.support.synthetic import arm, record

# Friction and rotor inertia of the truth, per joint.
LAWS = {"joint1": "viscous+coulomb", "joint2": "viscous", "joint3": "none"}
ROTORS = ["joint1"]


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


def true_values(robot: dynid.Robot, like: dynid.Robot) -> np.ndarray:
    """The parameters of a robot with symmetric friction in the order of one with all drive terms."""
    values = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    names = [(n, n.replace("fvp_", "fv_").replace("fvn_", "fv_")) for n in like.parameter_names]
    return np.array([values.get(n, values.get(other, 0.0)) for n, other in names])


def test_it_is_the_default_and_has_every_term(estimate: dynid.Estimate) -> None:
    assert estimate.method == "auto"
    for joint in estimate.robot.coordinates:
        assert {f"{s}_{joint}" for s in ("Ia", "fvp", "fvn", "fc", "off")} <= set(estimate.robot.parameter_names)


def test_terms_that_are_not_there_shrink_to_zero_within_their_interval(estimate: dynid.Estimate) -> None:
    """No term is dropped: those of the truth and those that it lacks are within four standard deviations."""
    expected = estimate.base.matrix @ true_values(truth(), estimate.robot)
    z = (estimate.beta - expected) / estimate.std
    assert np.abs(z).max() < 4.0
    absent = [i for i, n in enumerate(estimate.base.names) if n.endswith("joint3") and n[:2] in ("fv", "fc")]
    assert np.abs(estimate.beta[absent]).max() < 0.05


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
    shares = [p.share for p in seen]
    assert len(seen) > 3 and shares == sorted(shares)


def test_it_is_saved_with_its_independent_rows(estimate: dynid.Estimate, tmp_path: Path) -> None:
    estimate.save(tmp_path / "estimate.json")
    loaded = dynid.Estimate.load(tmp_path / "estimate.json")
    assert loaded.freedom == estimate.freedom and loaded.walls == estimate.walls
    assert loaded.independent_rows == estimate.independent_rows
    assert "rows are worth" in estimate.summary()


def test_stribeck_friction_is_found_where_it_is(runs: tuple[dynid.Recording, dynid.Recording], tmp_path: Path) -> None:
    """A joint whose friction doubles at standstill gets the law, the others do not; the estimate is saved with it."""
    robot = truth()
    true = robot.with_terms(robot.joint_term("joint1", "fs", 0.7, velocity=0.3))
    estimate = dynid.identify(robot, record(true, (0, 1), noise=0.05, samples=5000))
    assert [n for n in estimate.robot.parameter_names if n.startswith("fs_")] == ["fs_joint1"]
    term = next(t for t in estimate.identified_robot.drives if t.name == "fs_joint1")
    assert 0.3 < term.value < 1.2
    assert 0.3 / 1.6 < term.velocity < 0.3 * 1.6
    estimate.save(tmp_path / "estimate.json")
    loaded = dynid.Estimate.load(tmp_path / "estimate.json")
    np.testing.assert_array_equal(loaded.validate(runs[1]).relative, estimate.validate(runs[1]).relative)


def test_no_stribeck_friction_where_there_is_none(estimate: dynid.Estimate) -> None:
    assert not any(name.startswith("fs_") for name in estimate.robot.parameter_names)


def test_a_step_that_the_recording_blurs_stays_a_step_of_the_robot() -> None:
    """Near rest the recorded Coulomb friction is smooth: its size is found, and the robot keeps the step."""
    robot = truth()
    drives = [replace(t, slope=1 / 0.04) if t.name == "fc_joint1" else t for t in robot.drives]
    found = dynid.identify(robot, record(replace(robot, drives=tuple(drives)), (0, 1), noise=0.05, samples=5000))
    assert any(note.startswith("joint1: the recording blurs the step of Coulomb friction") for note in found.notes)
    assert all(term.slope == 0.0 for term in found.identified_robot.drives)
    dry = next(t.value for t in found.identified_robot.drives if t.name == "fc_joint1")
    assert dry == pytest.approx(0.7, rel=0.05)


@pytest.mark.parametrize("factor", [0.1, 10.0])
def test_assumed_bodies_have_the_size_of_the_torques(factor: float) -> None:
    """A file without masses: the bodies of the prior are as heavy as the torques ask for."""
    true = truth().with_parameters(factor * truth().parameters)
    empty = true.with_drives("none", rotor_inertia=False)
    empty = empty.with_parameters(np.zeros(len(empty.parameters)))
    found = dynid.identify(empty, record(true, (0, 1), noise=0.05 * factor, samples=5000))
    masses = [dict(zip(r.parameter_names, r.parameters, strict=True)) for r in (found.identified_robot, true)]
    total, known = (sum(x for name, x in one.items() if name.startswith("m_")) for one in masses)
    assert 0.5 < total / known < 2.0


@pytest.mark.parametrize("rotor", [0.004, 0.0])
def test_a_rotor_inertia_is_more_likely_than_a_body_of_forty_times_its_inertia(rotor: float) -> None:
    """A vertical axis shows only the sum of both: the sum is right, and the body stays near the file."""
    body = {"mass": 0.2, "com": [0, 0, 0], "tensor": [1e-4, 0, 0, 1e-4, 0, 1e-4]}
    drive = {"Ia": rotor, "fv": 0.01, "fc": 0.02}
    truth = dynid.Robot.from_dh([{"alpha": 0.0, "inertia": body, "drive": drive}], "modified", name="wheel")
    bare = truth.with_drives("none", rotor_inertia=False)
    found = dynid.identify(bare, record(truth, (0, 1), noise=1e-4, samples=5000), box=False)
    values = dict(zip(found.robot.parameter_names, found.parameters, strict=True))
    assert values["Izz_link1"] + values["Ia_joint1"] == pytest.approx(rotor + 1e-4, rel=0.05)
    assert values["Izz_link1"] < 5e-4


def test_given_friction_stays(runs: tuple[dynid.Recording, dynid.Recording]) -> None:
    robot = arm().with_drives("viscous", rotor_inertia=False)
    kept = dynid.identify(robot, runs[0], friction="given")
    assert kept.robot.parameter_names == robot.parameter_names
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


def test_a_wrong_unit_of_torque_meets_the_walls(
    estimate: dynid.Estimate, bare: dynid.Robot, runs: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """Torques in mN m: the data want a thousand times the mass, the bodies stay in their box, and it is said."""
    scaled = tuple(replace(run, torque=1000 * run.torque) for run in runs[0].runs if run.torque is not None)
    found = dynid.identify(bare, replace(runs[0], runs=scaled))
    masses = [i for i, n in enumerate(found.robot.parameter_names) if n.startswith("m_")]
    prior = consistent_prior(found.robot).parameters[masses]
    assert np.all(found.parameters[masses] <= 4.0 * prior * (1 + 1e-6))
    assert any(wall.what == "total mass" and wall.value > 100.0 * wall.limit for wall in found.walls)
    assert any("the data want a total mass" in note for note in found.notes)
    assert not any("mass" in wall.what for wall in estimate.walls)


def test_a_smooth_unmodelled_torque_buys_no_body(
    bare: dynid.Robot, runs: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """A torque of 5 % that follows the positions: bodies stay in their box, and the deviations grow."""
    clean = dynid.identify(bare, runs[0])
    bent = tuple(
        replace(run, torque=run.torque + 0.05 * run.torque.std(axis=0) * np.sin(5 * run.q))
        for run in runs[0].runs
        if run.torque is not None
    )
    found = dynid.identify(bare, replace(runs[0], runs=bent))
    box = plausible_box(found.robot, consistent_prior(found.robot))
    assert all(side.block.slack(found.parameters) > -1e-6 for side in box.sides)
    assert np.median(found.std / clean.std) > 1.5


def test_few_rows_are_no_reason_to_refuse(runs: tuple[dynid.Recording, dynid.Recording]) -> None:
    """Half a second of motion, less than all drive terms need: the prior decides the rest."""
    robot = truth()
    short = runs[0].between(0.0, 1.2)
    assert dynid.identify(robot, short, "wls").converged
    found = dynid.identify(robot, short)
    assert found.converged and np.all(np.isfinite(found.std))


def test_a_recording_in_which_nothing_moves_says_so(bare: dynid.Robot) -> None:
    t = np.arange(2000) / 1000.0
    torque = np.random.default_rng(0).normal(size=(len(t), 3))
    still = dynid.Recording(bare.coordinates, (dynid.Run(t, np.zeros((len(t), 3)), torque=torque),))
    with expect_error(TooFew):
        dynid.identify(bare, still)


def test_bad_options_are_refused_before_any_work() -> None:
    for wrong in ({"friction": "choose"}, {"mass": -1.0}, {"box": "on"}, {"constraints": "none"}):
        with pytest.raises(DataError):
            AutoOptions(**wrong)  # type: ignore[arg-type]
