"""Unmodeled effects of identified actuators are named, and good logs get no cause; MuJoCo is the plant."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from dynid.actuators import (
    ActuatorCauses,
    ActuatorEstimate,
    PositionErrors,
    actuator_causes,
    assess_actuators,
    identify_actuators,
    load_actuators,
    position_errors,
)
from dynid.errors import DataError, TooFew
from dynid.progress import Progress
from studies.reproduce.actuator_faults import ActuatorFault, FaultyActuators, faulty_actuators
from studies.reproduce.actuator_plants import soft_plant
from tests.support.errors import expect_error
from tests.support.log_files import refused


@cache
def identified(fault: str, seed: int) -> tuple[FaultyActuators, ActuatorEstimate, PositionErrors, PositionErrors]:
    """A case, what is identified from it without its fault, and errors of unseen motion with it and as given."""
    case = faulty_actuators(ActuatorFault(fault), seed)
    found = identify_actuators(case.robot, case.fitted, case.law, unknown=case.unknown)
    after = position_errors(found.robot, found.law, case.unseen, fitted=found.fingerprint)
    return case, found, after, position_errors(case.robot, case.law, case.unseen)


@cache
def explained(fault: str, seed: int) -> ActuatorCauses:
    case, found, _, _ = identified(fault, seed)
    return actuator_causes(found, case.fitted, case.unseen)


@pytest.mark.parametrize(
    ("fault", "seed", "code", "option", "size"),
    [
        ("backlash", 0, "backlash", "backlash", 0.01),
        ("load friction", 1, "load_friction", "load_friction", 0.05),
        ("saturation", 1, "saturation", "torque_limit", None),
        ("motor line", 1, "motor_line", "stall_torque,no_load_velocity", None),
        ("delay", 1, "delay", "delay", 0.012),
        ("delay of the torque", 1, "feedback_delay", "", 0.003),
        ("velocity target", 1, "velocity_target", "", None),
        ("encoder offset", 1, "encoder_offset", "bias", 0.02),
    ],
)
def test_an_untold_effect_is_the_first_reason(
    fault: str, seed: int, code: str, option: str, size: float | None
) -> None:
    """It has its size, it lowers the error on unseen motion, and the advice says what adds it."""
    _, found, after, prior = identified(fault, seed)
    causes = explained(fault, seed)
    assert causes.code == code and causes.unseen
    first = causes.causes[0]
    assert first.option == option and first.trial.after < 0.9 * first.trial.before
    if size is not None:
        assert list(first.sizes.values()) == pytest.approx([size] * len(first.sizes), rel=0.1)
    verdict = assess_actuators(found.with_causes(causes), after, prior)
    assert verdict.verdict != "trusted" and verdict.reasons[0].startswith(first.words)
    advice = verdict.check("residual").advice
    assert first.remedy in advice and f"{first.trial.before:.2g} to {first.trial.after:.2g}" in advice


def test_backlash_that_looked_like_friction_is_of_no_use() -> None:
    """Friction came out four times as large; what the cause does to it is told."""
    case, found, after, prior = identified("backlash", 0)
    assert found.value("friction of j0")[0] > 3.0 * case.true[0, 2]
    causes = explained("backlash", 0)
    assert causes.causes[0].value_after == pytest.approx(case.true[0, 2], rel=0.1)
    check = assess_actuators(found.with_causes(causes), after, prior).check("residual")
    assert check.result == "failed" and "with it, friction of j0 is" in check.words


@pytest.mark.parametrize("fault", ["backlash", "saturation"])
def test_the_advice_can_be_followed(fault: str) -> None:
    """The quantities of its option, unknown from the start, give the true values."""
    seed = 0 if fault == "backlash" else 1
    case, _, _, _ = identified(fault, seed)
    option = explained(fault, seed).causes[0].option
    found = identify_actuators(case.robot, case.fitted, case.law, unknown=(*case.unknown, *option.split(",")))
    n = case.law.n
    np.testing.assert_allclose(found.values[:n], case.true[:, 0], rtol=0.05)
    np.testing.assert_allclose(found.values[2 * n : 3 * n], case.true[:, 2], rtol=0.1)


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_good_log_gets_no_cause(seed: int) -> None:
    """Chains of one to three joints with other gains, encoders and delays."""
    _, found, after, prior = identified("none", seed)
    causes = explained("none", seed)
    assert causes.code is None and not causes.causes and not causes.unexplained
    verdict = assess_actuators(found.with_causes(causes), after, prior)
    assert verdict.check("residual").result == "passed"


def test_soft_friction_of_a_simulator_is_no_cause() -> None:
    """Without unseen motion, blocks of time are left out of the fits."""
    plant = soft_plant(2)
    found = identify_actuators(plant.robot, plant.log, plant.law)
    causes = actuator_causes(found, plant.log)
    assert causes.code is None and not causes.unseen


def test_blocks_of_time_that_are_left_out_name_it_too() -> None:
    case, found, _, _ = identified("backlash", 0)
    assert actuator_causes(found, case.fitted).code == "backlash"
    with expect_error(TooFew):
        actuator_causes(found, replace(case.fitted, runs=(case.fitted.runs[0].rows(0, 150),)))


def test_friction_that_doubles_is_never_trusted_without_an_explanation() -> None:
    """A spring that the robot does not have makes friction; none of the candidates is one."""
    _, found, after, prior = identified("none", 1)
    causes = explained("none", 1)
    friction = np.array([x.quantity == "friction" for x in found.unknowns])
    doubled = replace(found, prior_values=np.where(friction, found.values / 3.0, found.values))
    without = assess_actuators(doubled, after, prior).check("residual")
    assert without.result == "warned" and "3 times the given one, and no cause was searched" in without.words
    assert assess_actuators(doubled.with_causes(causes), after, prior).check("residual").result == "passed"
    unexplained = replace(causes, structure=20.0, share=0.02)
    check = assess_actuators(doubled.with_causes(unexplained), after, prior).check("residual")
    assert check.result == "warned" and "something that none of" in check.words


def test_what_is_no_effect_of_the_law_is_something_else() -> None:
    causes = explained("spring", 1)
    assert causes.code == "unknown" and causes.unexplained


def test_progress_is_told_in_order() -> None:
    told: list[Progress] = []
    case, found, _, _ = identified("backlash", 0)
    actuator_causes(found, case.fitted, case.unseen, progress=told.append)
    shares = [x.share or 0.0 for x in told]
    assert shares == sorted(shares) and shares[-1] == 1.0 and any("backlash" in x.message for x in told)


def test_causes_survive_saving(tmp_path: Path) -> None:
    _, found, after, prior = identified("backlash", 0)
    named = found.with_causes(explained("backlash", 0))
    named.save(tmp_path / "a.json")
    again = load_actuators(tmp_path / "a.json")
    assert again.causes is not None and again.causes.to_dict() == explained("backlash", 0).to_dict()
    assert assess_actuators(again, after, prior).reasons == assess_actuators(named, after, prior).reasons
    assert again.causes.to_frame().filter(again.causes.to_frame()["named"])["code"].to_list() == ["backlash"]
    whole = json.loads((tmp_path / "a.json").read_text())
    for field, value in {"tested": "many", "joint": 3, "causes": [{}], "added": 1}.items():
        (tmp_path / "b.json").write_text(json.dumps(whole | {"causes": whole["causes"] | {field: value}}))
        with refused("damaged estimate of actuators: causes", field):
            load_actuators(tmp_path / "b.json")
    assert issubclass(TooFew, DataError)
