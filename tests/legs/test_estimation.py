"""Legs identified without contact forces: exact data, noisy data, wrong schedules and bad input."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dynid.errors import MissingData, NotIdentifiable, UnknownName
from dynid.legs import (
    Contact,
    LegsEstimate,
    base_from_legs,
    contact_schedule,
    identify_legs,
    identify_trunk_payload,
)
from dynid.legs.contacts import as_contacts
from dynid.legs.runs import check_imu
from tests.support.errors import Error, expect_error
from tests.support.walkers import FEET, POSTURE, feet, recording, standing, walker


@pytest.fixture(scope="module")
def found() -> LegsEstimate:
    return identify_legs(walker(), recording(standing()), feet(), "wls", imu="imu")


@pytest.mark.slow
def test_parameters_are_within_their_standard_deviations(found: LegsEstimate) -> None:
    """All 130, from torques, encoders and an inertial unit with bias; more than half of them are known to 10 %."""
    z = (found.estimate.beta - found.estimate.base.values()) / found.estimate.std
    assert found.estimate.base.count == 130
    assert np.mean(np.abs(z) < 3.0) > 0.97
    assert 0.5 < np.sqrt(np.mean(z**2)) < 1.5


@pytest.mark.slow
def test_trunk(found: LegsEstimate) -> None:
    """Mass within 2 %, centre of mass within 5 mm, and total mass within its standard deviation."""
    pi = walker().parameters
    assert found.trunk.mass == pytest.approx(pi[0], rel=0.02)
    np.testing.assert_allclose(found.trunk.center, pi[1:4] / pi[0], atol=5e-3)
    mass, std = found.total_mass
    assert abs(mass - 17.8) < 3 * std < 0.3


@pytest.mark.slow
def test_bias_is_found(found: LegsEstimate) -> None:
    """Of the gyroscope about two axes to a milliradian per second, of the accelerometer within its uncertainty."""
    base = found.bases[0]
    truth = np.array([0.03, -0.02, 0.05, 0.004, -0.006, 0.002])
    assert np.all(np.abs(base.bias - truth) < 4 * base.bias_std)
    assert np.all(base.bias_std[3:5] < 1e-3) and base.bias_std[2] < 0.02


@pytest.mark.slow
def test_validation_predicts_other_motion(found: LegsEstimate) -> None:
    """Torques of lifted legs within a few percent, and the balance of forces within one percent of the weight."""
    errors = found.validate(recording(standing(seed=5)))
    assert errors.relative.max() < 0.1
    assert errors.balance[:3].max() < 0.01 * errors.weight
    assert "balance fz" in "\n".join(errors.lines())


@pytest.mark.slow
def test_wrong_schedule_is_survived_and_named(found: LegsEstimate) -> None:
    """A tenth of the samples of each foot inverted: the estimate does not move by more than its noise."""
    run = standing()
    rng = np.random.default_rng(0)
    contacts = {}
    for foot, given in run.contacts.items():
        wrong = np.repeat(rng.random(len(given) // 20 + 1) < 0.1, 20)[: len(given)]
        contacts[foot] = np.where(wrong, 1.0 - given, given)
    other = identify_legs(walker(), recording(replace(run, contacts=contacts)), feet(), "wls", imu="imu")
    moved = np.abs(other.estimate.beta - found.estimate.beta) / found.estimate.std
    assert np.quantile(moved, 0.95) < 3.0
    assert sum("contradicts its torques" in line for line in other.remarks) == 4


def test_schedule_without_any_information_comes_from_torques() -> None:
    """A run without contacts: feet that stand are found, and none that is in the air is said to stand."""
    run = standing()
    schedule = contact_schedule(walker(), replace(run, contacts={}), feet(), imu="imu")
    for foot in FEET:
        air = run.contacts[foot] < 0.5
        assert not np.any(schedule.standing[foot] & air)
        assert np.mean(schedule.standing[foot][~air]) > 0.8
        assert np.mean(schedule.touching[foot][~air]) > 0.99


@pytest.mark.slow
def test_feasible_with_the_total_mass() -> None:
    """Physically consistent, and the mass is the one given."""
    found = identify_legs(walker(), recording(standing()), feet(), "feasible", imu="imu", mass=17.8)
    masses = [v for v, p in zip(found.estimate.parameters, walker().layout, strict=True) if p.symbol == "m"]
    assert sum(masses) == pytest.approx(17.8, rel=1e-4)
    assert found.estimate.feasibility()


@pytest.mark.slow
def test_payload(found: LegsEstimate) -> None:
    """A tenth of the trunk: 5 % of its mass and 1 cm."""
    from dynid.legs import standing_run

    robot, mass, center = walker(), 0.92, np.array([0.05, 0.02, 0.1])
    pi = robot.parameters.copy()
    pi[:4] += mass * np.array([1.0, *center])
    pi[4:10] += mass * np.array(
        [
            center[1] ** 2 + center[2] ** 2,
            -center[0] * center[1],
            center[0] ** 2 + center[2] ** 2,
            -center[0] * center[2],
            -center[1] * center[2],
            center[0] ** 2 + center[1] ** 2,
        ]
    )
    loaded = standing_run(robot.with_parameters(pi), feet(), POSTURE, imu="imu", duration=16.0, seed=8)
    payload = identify_trunk_payload(found, recording(loaded))
    assert payload.mass == pytest.approx(mass, rel=0.05)
    np.testing.assert_allclose(payload.center, center, atol=0.01)
    assert abs(payload.mass - mass) < 3 * payload.mass_std


def test_slipping_foot_is_named_with_its_samples() -> None:
    """A foot whose encoder moves while it stands; the others hold the base."""
    robot, run = walker(), standing()
    q = run.q.copy()
    q[600:700, 2] += 0.4 * np.sin(np.arange(100) * 0.2)
    contacts = as_contacts(robot, feet())
    standing_feet = {f: run.contacts[f] > 0.5 for f in FEET}
    base = base_from_legs(robot, replace(run, q=q), contacts, standing_feet, imu="imu")
    slipped = np.flatnonzero(base.slips["FL_foot"])
    assert slipped.size > 20 and slipped.min() > 570 and slipped.max() < 730
    assert not any(base.slips[f].any() for f in FEET[1:])


def test_all_feet_slip() -> None:
    """Encoders that have nothing to do with the inertial unit: one sentence with the foot and the samples."""
    robot, run = walker(), standing()
    t = run.t[:, None]
    q = run.q + 0.5 * np.sin(12.0 * t + np.arange(12))
    standing_feet = {f: np.ones(len(run.t), dtype=bool) for f in FEET}
    with expect_error(NotIdentifiable):
        base_from_legs(robot, replace(run, q=q), as_contacts(robot, feet()), standing_feet, imu="imu")


def _no_imu(run: Any) -> Any:
    return replace(run, imu=None)


def _dead_axis(run: Any) -> Any:
    imu = run.imu.copy()
    imu[:, 4] = 0.0
    return replace(run, imu=imu)


def _no_torque(run: Any) -> Any:
    return replace(run, torque=None)


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (_no_imu, (MissingData, "imu")),
        (_dead_axis, (MissingData, "")),
        (_no_torque, (MissingData, "")),
    ],
)
def test_missing_sensors(change: Any, error: Error) -> None:
    """One sentence each."""
    with expect_error(*error):
        identify_legs(walker(), recording(change(standing())), feet(), "wls", imu="imu")


def test_no_stance() -> None:
    """A schedule in which no foot ever touches contradicts the torques; without weight no foot stands."""
    robot, run = walker(), standing()
    nowhere = {f: np.zeros(len(run.t), dtype=bool) for f in FEET}
    with expect_error(NotIdentifiable):
        base_from_legs(robot, run, as_contacts(robot, feet()), nowhere, imu="imu")
    with expect_error(MissingData):
        contact_schedule(robot, replace(run, contacts=dict.fromkeys(FEET, np.zeros(len(run.t)))), feet(), imu="imu")


def test_contact_of_no_foot() -> None:
    """The schedule names a frame that is none of the feet."""
    run = replace(standing(), contacts={"FL_calf": np.ones(len(standing().t))})
    with expect_error(UnknownName):
        identify_legs(walker(), recording(run), [Contact(frame=f) for f in FEET], imu="imu")


def test_imu_is_checked_by_itself() -> None:
    """A complete unit is returned as it is."""
    assert check_imu(standing()) is standing().imu
