"""Hobby servos on a known pendulum: the simulator, the published parameters, and ours on runs held out."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from dynid.errors import DataError
from studies.reproduce.friction_robots import chosen_friction
from studies.reproduce.registry import find_study
from studies.reproduce.robot_cases import CASES
from studies.reproduce.servo_friction import pendulum_friction, published_errors
from studies.reproduce.servo_friction_fit import XL330, fit_kinds
from studies.reproduce.servo_friction_model import KINDS, Drive, ServoRun, load_runs, mean_error, packed, simulate_runs
from tests.support.errors import expect_error

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def servo_runs(data: Path) -> list[ServoRun]:
    return load_runs(data / "servo-pendulum-bam" / "xl330_raw")


def test_the_study_is_listed_as_one_that_reads_recordings(data: Path) -> None:
    study = find_study("servo-friction")
    assert study.needs_data and study.takes("full")


def test_runs_are_read_on_an_even_clock(servo_runs: list[ServoRun]) -> None:
    assert len(servo_runs) == 16 and {s.kp for s in servo_runs} == {100, 200, 400, 800}
    assert sum(not s.on.all() for s in servo_runs) == 4  # those that lift and drop
    assert all(20 < s.temperature < 50 for s in servo_runs)


def test_every_published_parameter_has_its_place(data: Path) -> None:
    """A name that the simulator does not know would silently be without effect."""
    for file in (data / "servo-pendulum-bam" / "published_params").glob("*.json"):
        given = json.loads(file.read_text())
        assert set(given) - {"model", "actuator"} == set(KINDS[given["model"]])


def test_published_parameters_follow_the_runs(servo_runs: list[ServoRun]) -> None:
    """Within 0.1 rad on average for motions of one to two radians; finer steps change the error by a few percent."""
    for kind in ("m1", "m6"):
        errors = published_errors(kind, servo_runs)
        assert set(errors) == {"2026-02", "later"} and max(errors.values()) < 0.1
        fine = published_errors(kind, servo_runs, steps=20)
        for name, error in errors.items():
            assert fine[name] == pytest.approx(error, rel=0.03)


def test_load_dependent_friction_beats_coulomb_on_a_gain_held_out(servo_runs: list[ServoRun]) -> None:
    """And ours of both kinds beat the published sets there: 0.062 and 0.046 against 0.067 and 0.073 rad."""
    train, test = ([s for s in servo_runs if (s.kp == 400) == held] for held in (False, True))
    fits = fit_kinds(train, XL330, ("m1", "m3"), random_starts=0)
    error = {k: float(f.errors(test, XL330.drive).mean()) for k, f in fits.items()}
    assert error["m3"] < 0.85 * error["m1"]
    for kind in ("m1", "m3"):
        assert error[kind] <= min(published_errors(kind, test).values())


def test_known_parameters_are_found_again_in_simulated_runs(servo_runs: list[ServoRun]) -> None:
    """The fit of runs that the simulator itself made, with the encoder's rounding: within a twentieth."""
    truth = {
        "kt": 0.37, "R": 3.6, "armature": 0.0017, "q_offset": 0.02,
        "friction_base": 0.008, "friction_viscous": 0.004, "load_friction_base": 0.2,
    }  # fmt: skip
    runs = servo_runs[::5]
    made = simulate_runs(runs, packed(truth), XL330.drive, 2)
    count = 2 * np.pi / 4096
    runs = [s._replace(q=np.round(q / count) * count) for s, q in zip(runs, made, strict=True)]
    found = fit_kinds(runs, XL330, ("m1", "m3"), random_starts=0)["m3"].values
    assert found["kt"] / found["R"] == pytest.approx(truth["kt"] / truth["R"], rel=0.05)
    assert found["load_friction_base"] == pytest.approx(0.2, rel=0.05)


def test_a_stuck_pendulum_stays_where_it_is(servo_runs: list[ServoRun]) -> None:
    """Friction beyond the weight holds a released pendulum exactly."""
    still = servo_runs[0]._replace(q=np.full(50, 0.5), v=np.zeros(50), goal=np.zeros(50), on=np.zeros(50, bool))
    values = packed({"kt": 0.4, "R": 4.0, "armature": 0.002, "friction_base": 1.0})
    assert np.all(simulate_runs([still], values, Drive(1.0, 1.0))[0] == 0.5)
    free = simulate_runs([still], packed({"kt": 0.4, "R": 4.0, "armature": 0.002}), Drive(1.0, 1.0))
    assert mean_error([still], free)[0] > 0.1


def test_the_voltage_asks_for_friction_that_grows_with_load(data: Path) -> None:
    fit = pendulum_friction()
    assert fit.best.name.split("+")[0] == "load" or "load" in fit.best.name
    assert fit["load"].p_value < 1e-4
    # The residual remembers its past: far fewer rows speak on their own than there are.
    assert fit.effective_rows < 0.5 * fit.rows


def test_a_folder_without_recordings_is_refused(tmp_path: Path) -> None:
    with expect_error(DataError):
        load_runs(tmp_path)


@pytest.mark.slow
def test_chosen_friction_predicts_a_real_arm_better(data: Path) -> None:
    """Shoulder and elbow of the UR10e ask for friction that grows with load: a third of their error goes."""
    chosen, plain, ours = chosen_friction(CASES["ur10e"]())
    assert "load" in chosen["shoulder_lift_joint"] and "load" in chosen["elbow_joint"]
    assert np.all(ours[1:3] < 0.75 * plain[1:3]) and ours.mean() < plain.mean()
