"""Causes in the verdict: those that follow from a wrong sign or from spikes are not told beside it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import cast

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.assessment import Assessment
from dynid.assessment.causes.cause import Cause, Causes, Trial
from dynid.assessment.causes.kinds.geometry import PLACEMENT
from dynid.assessment.data.battery import finding_codes
from dynid.assessment.verdict.cause_checks import check_geometry
from dynid.assessment.verdict.evidence import Evidence
from tests.support.check_data import recorded, spoiled, times
from tests.support.synthetic import arm

Array = NDArray[np.float64]
CAUSES = ("torque_scale", "residual", "flexibility")


def judged(change: Callable[[Array], Array]) -> Assessment:
    """Assessment of an estimate without friction below zero, from recordings with spoiled torques."""
    robot = arm()
    train, test = (spoiled(recorded(robot, seed), torque=change) for seed in (0, 1))
    estimate = dynid.identify(robot, train, "feasible")
    return dynid.assess(estimate, recording=train, validation=test)


@pytest.fixture(scope="module")
def name() -> str:
    return arm().coordinates[1]


def test_a_wrong_sign_is_told_once(name: str) -> None:
    found = judged(times(1, -1.0))
    assert found.verdict == "do not use" and name in found.check("signs").words
    assert not any(f"'{name}'" in found.check(code).words for code in CAUSES if found.check(code).result != "passed")


def test_spikes_are_told_without_what_they_look_like(name: str) -> None:
    def with_spikes(torque: Array) -> Array:
        rows = np.random.default_rng(0).random(len(torque)) < 0.01
        torque[rows, 1] = 10.0 * torque[:, 1].max()
        return torque

    found = judged(with_spikes)
    assert found.verdict != "trusted" and "spikes" in found.check("data").words
    assert not any(f"'{name}'" in found.check(code).words for code in CAUSES if found.check(code).result != "passed")


def test_missing_friction_of_another_joint_is_still_told() -> None:
    """Only the joint with the wrong sign is left out."""
    robot = arm()
    first, second = robot.coordinates[:2]

    def change(torque: Array, v: Array) -> Array:
        torque = torque.copy()
        torque[:, 1] *= -1.0
        torque[:, 0] += 2.0 * v[:, 0] * np.abs(v[:, 0])
        return torque

    recordings = []
    for seed in (0, 1):
        run = recorded(robot, seed).runs[0]
        assert run.torque is not None and run.v is not None
        recordings.append(spoiled(recorded(robot, seed), torque=change(run.torque, run.v)))
    found = dynid.assess(
        dynid.identify(robot, recordings[0], "feasible"), recording=recordings[0], validation=recordings[1]
    )
    assert f"'{first}'" in found.check("residual").words and f"'{second}'" not in found.check("residual").words


@pytest.mark.parametrize(
    ("unexplained", "left", "result"),
    [(0.002, 0.98, "passed"), (0.02, 0.98, "warned"), (0.002, 0.3, "warned")],
    ids=["improbable and small", "improbable", "probable"],
)
def test_an_improbable_cause_without_torque_is_told_and_does_not_warn(
    unexplained: float, left: float, result: str
) -> None:
    """A link that is perhaps 16 mm too long, and makes 0.2 % of a torque, is no reason to distrust an arm."""
    cause = Cause(
        code=PLACEMENT,
        joints=("joint2",),
        words="the link before 'joint2' is 16 mm too long in the model",
        size=16.0,
        std=3.0,
        unit="mm",
        share=-0.001,
        unexplained=unexplained,
        effect=0.03,
        p_value=1e-4,
        trial=Trial("joint2", 0.01, 0.01 * left, unseen=True),
    )
    given = SimpleNamespace(
        other_joints=False,
        causes=Causes((cause,), 100, 0.01),
        told_causes=(cause,),
        torques=SimpleNamespace(size=np.ones(2), floor=np.zeros(2), channels=("joint1", "joint2")),
    )
    found = check_geometry(cast("Evidence", given))
    assert found.result == result and "16 mm" in found.words and "-0 %" not in found.words


@pytest.mark.parametrize(
    ("findings", "told"),
    [
        ([], ["joint1", "joint2", ""]),
        ([("position_resolution", "warning", "joint2")], ["joint1", ""]),
        ([("position_resolution", "info", "joint2")], ["joint1", "joint2", ""]),
        ([("position_resolution", "warning", "joint1"), ("torque_sign", "error", "joint2")], []),
        ([("torque_computed", "warning", "")], []),
    ],
)
def test_causes_that_follow_from_findings_are_not_told(findings: list[tuple[str, str, str]], told: list[str]) -> None:
    """Those in a joint that is spoiled, and those in all joints where all are."""
    codes = finding_codes()
    made = [SimpleNamespace(joints=(name,) if name else ()) for name in ("joint1", "joint2", "")]
    given = SimpleNamespace(
        other_joints=False,
        causes=SimpleNamespace(causes=tuple(made)),
        estimate=SimpleNamespace(base=SimpleNamespace(channels=("joint1", "joint2"))),
        findings=[SimpleNamespace(code=codes[c], severity=severity, joint=joint) for c, severity, joint in findings],
    )
    given.spoiled_joints = Evidence.spoiled_joints.func(given)  # type: ignore[attr-defined]
    assert [c.joints for c in Evidence.told_causes.func(given)] == [(x,) if x else () for x in told]  # type: ignore[attr-defined]
