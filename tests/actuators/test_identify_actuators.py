"""Armature, friction and delay from encoders alone, on legs that MuJoCo integrates."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from threadpoolctl import threadpool_info, threadpool_limits

import dynid
from dynid.actuators import (
    ActuatorEstimate,
    actuator_causes,
    identify_actuators,
    load_actuators,
    position_errors,
)
from dynid.actuators.verdict import assess_actuators
from dynid.errors import (
    ConflictingArguments,
    DamagedFile,
    DataError,
    Duplicate,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingData,
    NotApplicable,
    SimulationFailed,
    UnknownName,
    WrongFormat,
)
from dynid.recording.recording import Recording
from dynid.robot import ActuatorLaw
from studies.reproduce.actuator_plants import CONTROL, chirps, given_robot, legs, logged, recording, soft_plant, truth
from tests.support.errors import expect_error
from tests.support.log_files import refused

Array = NDArray[np.float64]

JOINTS = tuple(f"{side}_{joint}" for side in "LR" for joint in ("hip", "thigh", "calf"))
DELAY = 0.004


def law(**changes: Any) -> ActuatorLaw:
    return ActuatorLaw(JOINTS, **({"kp": 20.0, "kd": 1.5, "rate": CONTROL} | changes))


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> dynid.Robot:
    return given_robot(str(tmp_path_factory.mktemp("legs") / "legs.xml"))


@pytest.fixture(scope="module")
def log() -> Recording:
    return logged(legs(truth(1)), law(delay=DELAY), chirps(6.0, 1))


@pytest.fixture(scope="module")
def found(robot: dynid.Robot, log: Recording) -> ActuatorEstimate:
    return identify_actuators(robot, log, law())


def test_armature_friction_and_delay_are_those_of_the_plant(found: ActuatorEstimate) -> None:
    expected = np.append(truth(1).T.ravel(), DELAY)
    assert found.converged
    assert abs(found.values[-1] - DELAY) < 5e-5
    np.testing.assert_allclose(found.values[:6], expected[:6], rtol=0.01)
    np.testing.assert_allclose(found.values[6:12], expected[6:12], atol=0.01)
    np.testing.assert_allclose(found.values[12:18], expected[12:18], atol=0.01)
    # MuJoCo is late by half of its step, which is several standard deviations of the delay and shifts what correlates.
    z = (found.values - expected)[:-1] / found.std[:-1]
    assert np.mean(np.abs(z) < 3.0) > 0.8
    assert np.all(found.rms < 6e-4)  # a step of the encoder is 1.5e-3 rad
    assert np.all(found.prior_rms > 5 * found.rms)


def test_robot_and_law_hold_the_values(found: ActuatorEstimate) -> None:
    terms = {(t.symbol, t.shaft): t.value for t in found.robot.drives}
    assert terms["Ia", "L_hip"] == found.value("armature of L_hip")[0]
    assert terms["fc", "R_calf"] == found.value("friction of R_calf")[0]
    assert np.all(found.law.delay == found.value("delay of all joints")[0])


@pytest.mark.slow
def test_other_motion_is_simulated_better_than_by_the_file(
    robot: dynid.Robot, log: Recording, found: ActuatorEstimate
) -> None:
    other = logged(legs(truth(1)), law(delay=DELAY), chirps(3.0, 7, amplitude=0.25), ratio=10)
    after = position_errors(found.robot, found.law, other)
    prior = position_errors(robot, law(), other)
    assert np.all(after.rms < 0.2 * prior.rms)
    assert np.all(after.by_horizon[0] < 1e-3)
    after = position_errors(found.robot, found.law, other, fitted=found.fingerprint)
    assert after.repeated < 0.1
    searched = found.with_causes(actuator_causes(found, log, other))
    verdict = assess_actuators(searched, after, prior)
    assert verdict.verdict == "trusted", verdict.reasons
    assert verdict.reasons  # a trusted result says why
    assert assess_actuators(found).verdict == "use with care"  # nothing was held out


def test_the_fitted_log_is_not_other_motion(found: ActuatorEstimate, log: Recording) -> None:
    """Under another name, cut and shifted, it is known again."""
    run = log.runs[0].rows(37, 1100)
    again = Recording(log.joints, (replace(run, t=run.t + 5.0, name="other"),))
    errors = position_errors(found.robot, found.law, again, fitted=found.fingerprint)
    assert errors.repeated > 0.9
    assert assess_actuators(found, errors).check("unseen_motion").result == "warned"


def test_a_wrong_gain_of_the_law_is_named(robot: dynid.Robot) -> None:
    log = logged(legs(truth(2)), law(delay=DELAY, kp=24.0), chirps(4.0, 2), ratio=10)
    found = identify_actuators(robot, log, law())
    np.testing.assert_allclose(found.kp_change, 0.2, atol=0.03)
    check = assess_actuators(found).check("law")
    assert check.result != "passed"
    assert "20 % above" in check.words


def test_every_field_survives_saving(found: ActuatorEstimate, tmp_path: Path) -> None:
    found.save(tmp_path / "a.json")
    again = load_actuators(tmp_path / "a.json")
    for name, value in vars(found).items():
        if isinstance(value, np.ndarray):
            np.testing.assert_array_equal(getattr(again, name), value)
    assert again.unknowns == found.unknowns
    assert again.robot.parameter_names == found.robot.parameter_names
    np.testing.assert_array_equal(again.robot.parameters, found.robot.parameters)
    np.testing.assert_array_equal(again.law.delay, found.law.delay)
    np.testing.assert_array_equal(again.fingerprint.runs[0], found.fingerprint.runs[0])
    assert [t.slope for t in again.robot.drives] == [t.slope for t in found.robot.drives]
    found.save(tmp_path / "a.toml")
    assert dynid.actuators.load_law(str(tmp_path / "a.toml"), JOINTS).kp.tolist() == [20.0] * 6
    with expect_error(WrongFormat):
        (tmp_path / "b.json").write_text("{}")
        load_actuators(tmp_path / "b.json")


def test_damaged_files_of_actuators_are_refused_by_field(found: ActuatorEstimate, tmp_path: Path) -> None:
    """Every field has its type and size; the order of the names in the file has no meaning."""
    path = tmp_path / "a.json"
    found.save(path)
    whole = json.loads(path.read_text())
    wrong: dict[str, Any] = {
        "values": 1.0,
        "std": whole["std"][1:],
        "covariance": whole["covariance"][1:],
        "at_bound": ["no"] * len(whole["at_bound"]),
        "kp_change": [0.1],
        "rows": "many",
        "converged": 1,
        "unknowns": [whole["unknowns"][0] | {"joints": [], "parameters": []}, *whole["unknowns"][1:]],
        "notes": [3],
        "law": {},
        "added": 1,
    }
    for name, value in wrong.items():
        path.write_text(json.dumps(whole | {name: value}))
        with expect_error(DamagedFile) as error:
            load_actuators(path)
        assert name in str(error.value) or name == "law", str(error.value)
    others: dict[str, Any] = {
        "law": whole["law"] | {"joints": ["other"] * 6},
        "unknowns": [x | {"joints": ["other"]} for x in whole["unknowns"]],
    }
    for name, value in others.items():
        path.write_text(json.dumps(whole | {name: value}))
        with expect_error(DamagedFile):
            load_actuators(path)
    path.write_text(json.dumps(whole, sort_keys=True))
    assert load_actuators(path).table() == found.table()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("law = 5", "a law is a table"),
        ("joints = 5\nkp = 1", "list of names"),
        ("joints = [1, 2]\nkp = 1", "list of names"),
        ('kp = { ".*" = "a" }', "kp of '.*' is a number"),
        ('kp = { ".*" = [1] }', "kp of '.*' is a number"),
        ('kp = { ".*" = true }', "kp of '.*' is a number"),
        ('kp = { "(" = 1 }', "not a regular expression: unclosed group"),
        ('kp = { "(?!FL).*" = 1 }', "not a regular expression: look-around"),
        ('kp = 1\nvelocity_target = "yes"', "velocity_target of an actuator law is 'zero' or 'command', not 'yes'"),
        ("kp = 1e308", "cannot be 1e"),
        (f"kp = 1{'0' * 400}", "too many digits"),
        ("kp = 1\nrate = 1e9", "at most 100000"),
        ("kp = 1\ndelay = 1e6", "longer than 10 s"),
        ("kp = 1\nstall_torque = 1\nno_load_velocity = 0", "cannot be 0"),
    ],
)
def test_law_files_with_wrong_values_are_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "law.toml").write_text(text)
    with refused(said):
        dynid.actuators.load_law(tmp_path / "law.toml", JOINTS)


def test_stamps_that_are_late_by_a_row_are_noted(robot: dynid.Robot, log: Recording, found: ActuatorEstimate) -> None:
    run = log.runs[0]
    assert run.reference is not None
    early = replace(run, t=run.t[1:401], q=run.q[1:401], reference=run.reference[2:402])  # commands one row too early
    shifted = identify_actuators(robot, Recording(log.joints, (early,)), law(), unknown=["friction", "delay"])
    assert any("rows of the log" in x for x in shifted.notes)
    assert not any("rows of the log" in x for x in found.notes)


@pytest.mark.parametrize("seed", [2, 3])
def test_the_soft_friction_of_mujoco_is_no_armature(seed: int) -> None:
    """Taken for hard friction, it gave armatures that are 1 to 4 % off, and further than ten standard deviations."""
    plant = soft_plant(seed)
    found = identify_actuators(plant.robot, plant.log, plant.law)
    n = plant.law.n
    np.testing.assert_allclose(found.values[:n], plant.true[:n], rtol=3e-3)
    assert np.all(np.abs(found.values - plant.true) < 3.5 * found.std)
    untold = identify_actuators(plant.robot, plant.log, plant.law.changed(timestep=None))
    assert np.all(np.abs(untold.values - plant.true) < 3.5 * untold.std)
    assert np.all(untold.std[: 2 * n] > found.std[: 2 * n])  # armature and damping pay for what is not known


def test_timesteps_that_no_simulator_has() -> None:
    for timestep, rate, error in (
        (0.0, 500.0, (InvalidValue, "timestep")),
        (1e-3, None, (MissingArgument, "rate")),
        (3e-3, 500.0, (ConflictingArguments, "timestep")),
    ):
        with expect_error(*error):
            law(timestep=timestep, rate=rate)
    with expect_error(InvalidValue, "friction_lead"):
        law(friction_lead=-1e-3)


def test_an_absurd_armature_is_named(found: ActuatorEstimate) -> None:
    """Ten times the armature of the file is no armature: the verdict says which one."""
    check = assess_actuators(found).check("plausible_bodies")
    assert check.result in ("passed", "warned")
    absurd = replace(found, prior_values=np.where(np.arange(len(found.values)) == 1, found.values / 20, found.values))
    named = assess_actuators(absurd)
    assert named.check("plausible_bodies").result == "failed" and named.verdict == "do not use"
    assert "armature of L_thigh" in named.check("plausible_bodies").words


def test_small_matrices_are_worked_on_by_one_thread(
    robot: dynid.Robot, log: Recording, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Several threads make the fit slower, on a busy computer by four times."""
    threads: list[int] = []

    def watched(*given: Any, **settings: Any) -> Any:
        threads.extend(x["num_threads"] for x in threadpool_info() if x["user_api"] == "blas")
        raise DataError("seen")

    monkeypatch.setattr("dynid.actuators.identify.fit", watched)
    with threadpool_limits(2, "blas"), expect_error(DataError):
        identify_actuators(robot, log, law())
    assert threads and set(threads) == {1}


def test_groups_share_a_value(robot: dynid.Robot, log: Recording) -> None:
    unknown = {"armature": ["._hip", "._thigh", "._calf"], "friction": "shared", "delay": "joint"}
    found = identify_actuators(robot, Recording(log.joints, (log.runs[0].rows(0, 400),)), law(), unknown=unknown)
    assert len(found.values) == 3 + 1 + 6
    assert found.labels[0] == "armature of ._hip"
    terms = {(t.symbol, t.shaft): t.value for t in found.robot.drives}
    assert terms["Ia", "L_thigh"] == terms["Ia", "R_thigh"]
    assert terms["fv", "L_hip"] == 0.3  # not unknown: the file's


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "unknown"),
    [
        ({"torque_limit": 4.0}, "torque_limit"),
        ({"stall_torque": 6.0, "no_load_velocity": 12.0}, "stall_torque"),
        ({"backlash": 0.02}, "backlash"),
        ({"bias": [0.02, -0.01, 0.03, 0.0, 0.01, -0.02]}, "bias"),
        ({"gain": 1.15}, "gain"),
    ],
)
def test_other_quantities_are_found_too(robot: dynid.Robot, changes: dict[str, Any], unknown: str) -> None:
    real = law(delay=DELAY, kp=40.0, kd=1.0, **changes)
    log = logged(legs(truth(3)), real, chirps(10.0, 3, amplitude=0.8), ratio=20)
    start = {"no_load_velocity": 12.0} if unknown == "stall_torque" else {}
    quantities = ("armature", "damping", "friction", "delay", unknown)
    found = identify_actuators(robot, log, law(kp=40.0, kd=1.0, **start), unknown=quantities)
    values = np.array([v for x, v in zip(found.unknowns, found.values, strict=True) if x.quantity == unknown])
    np.testing.assert_allclose(values, getattr(real, unknown), rtol=0.05, atol=1e-3)
    np.testing.assert_allclose(found.values[:6], truth(3)[:, 0], rtol=0.01)
    np.testing.assert_allclose(found.values[12:18], truth(3)[:, 2], atol=0.02)


def test_bad_input_gets_one_sentence(robot: dynid.Robot, log: Recording) -> None:
    run = log.runs[0]
    bare = Recording(log.joints, (type(run)(t=run.t, q=run.q),))
    with expect_error(MissingData, "columns"):
        identify_actuators(robot, bare, law())
    looks = Recording(log.joints, (type(run)(t=run.t, q=run.q, v=run.reference),))
    with expect_error(MissingData, "columns"):
        identify_actuators(robot, looks, law())
    with expect_error(MissingArgument, "kp"):
        identify_actuators(robot, log, ActuatorLaw(JOINTS))
    magnitudes = Recording(log.joints, (type(run)(t=run.t, q=run.q, torque=np.abs(run.q)),))
    with expect_error(NotApplicable):
        identify_actuators(robot, magnitudes, ActuatorLaw(JOINTS))
    with expect_error(Mismatch):
        identify_actuators(robot, log, ActuatorLaw(JOINTS[::-1], kp=20.0))
    with expect_error(Mismatch, "rate"):
        identify_actuators(robot, log, law(rate=330.0))
    with expect_error(UnknownName, "unknown"):
        identify_actuators(robot, log, law(), unknown=["armatur"])
    with expect_error(UnknownName, "friction"):
        identify_actuators(robot, log, law(), unknown={"friction": ["x"]})
    with expect_error(Duplicate, "friction"):
        identify_actuators(robot, log, law(), unknown={"friction": ["L_.*", ".*_hip"]})


def test_an_unstable_law_is_named(robot: dynid.Robot) -> None:
    command = chirps(2.0, 4)
    with expect_error(SimulationFailed):
        identify_actuators(robot, recording(command, command), law(kp=2e5, kd=0.0), unknown=["friction"])


@pytest.mark.slow
def test_steps_and_rounded_friction_do_not_shift_the_values(robot: dynid.Robot) -> None:
    """Encoders without steps show the errors of the simulation: 55 to 110 microradians before the correction."""
    log = logged(legs(truth(3)), law(delay=DELAY), chirps(4.0, 3), counts=None)
    found = identify_actuators(robot, log, law())
    assert np.all(found.rms < 3e-5)
    np.testing.assert_allclose(found.values[:6], truth(3)[:, 0], rtol=1e-3)
