"""The study of bodies: its simulated arms, its machines, and the lines that it flags."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import DataError
from studies.reproduce import bodies, cases
from studies.reproduce.arms import ARMS, Conditions, Variant
from studies.reproduce.bodies import Body, BodyResult, Flag, case_keys, figures, judged, table
from studies.reproduce.cases import MACHINES, BodyCase, arm, moving_mass
from tests.support.errors import expect_error

pytest.importorskip("pinocchio")

SHORT = Conditions(duration=4.0)
GOOD = Body("link1", 2.0, 2.0, math.nan, 0.4, 0.29, math.nan, wall=False, found=False)
RESULT = BodyResult(
    name="ur3", variant="tool", method="auto", held_back=False, mass=2.0, source="scales", gain_known=True, total=2.1,
    prior=2.0, error=3.0, verdict="trusted", seconds=1.0, bodies=(GOOD,),
)  # fmt: skip


def torque_of(case: BodyCase) -> np.ndarray:
    (run,) = case.train.runs
    assert run.torque is not None
    return run.torque


@pytest.mark.parametrize("name", ARMS)
def test_bodies_of_the_truth_are_those_of_the_plant(name: str) -> None:
    """Our reader and inverse dynamics against Pinocchio's, and a file and a plant that are the same arm."""
    chosen = ARMS[name]
    q, v, a, torque = chosen._plain
    truth = replace(arm(name, conditions=SHORT).truth or chosen.robot, drives=())
    assert np.allclose(dynid.inverse_dynamics(truth, q, v, a), torque, atol=1e-9)
    assert np.allclose(dynid.inverse_dynamics(replace(chosen.robot, drives=()), q, v, a), torque, atol=1e-9)


def test_recorded_torques_are_those_of_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without noise and Stribeck friction, the truth with its drives explains what is recorded."""
    chosen = ARMS["ur3"]
    monkeypatch.setitem(chosen.__dict__, "drives", replace(chosen.drives, stribeck=0.0))
    case = arm("ur3", Variant.TOOL, replace(SHORT, noise=0.0))
    t = case.train.runs[0].t
    q, v, a = chosen._motion(t, 1.0, chosen._rng("motion", 0, "training"))
    moving = np.abs(v) > 0.01
    assert case.truth is not None
    off = np.abs(dynid.inverse_dynamics(case.truth, q, v, a) - torque_of(case))[moving]
    assert off.max() < 1e-3 * np.abs(torque_of(case)).max()
    assert np.abs(case.train.runs[0].q - q).max() <= np.pi / 2**18 * 1.001


def test_the_tool_is_in_the_truth_alone() -> None:
    """Between one and two kilograms, at the last link."""
    case = arm("panda", Variant.TOOL, SHORT)
    assert case.truth is not None
    extra = [t.inertia[0] - p.inertia[0] for t, p in zip(case.truth.links, case.robot.links, strict=True)]
    assert np.allclose(extra[1:-1], 0.0) and 1.0 <= extra[-1] <= 2.0
    assert case.mass == pytest.approx(moving_mass(case.robot) + extra[-1])


@pytest.mark.parametrize(
    ("variant", "low", "high"), [(Variant.DOUBLE, 2, 2), (Variant.RANDOM, 0.8, 1.2), (Variant.NONE, 0, 0)]
)
def test_wrong_priors_scale_bodies(variant: Variant, low: float, high: float) -> None:
    case = arm("z1", variant, SHORT)
    assert case.truth is not None
    pairs = [(p.inertia, t.inertia) for p, t in zip(case.robot.links[1:], case.truth.links[1:], strict=True)]
    factors = np.array([prior[0] / true[0] for prior, true in pairs])
    assert np.all((low <= factors) & (factors <= high))
    assert all(np.allclose(prior, f * true) for f, (prior, true) in zip(factors, pairs, strict=True))
    assert variant is not Variant.RANDOM or np.ptp(factors) > 0.05


@pytest.mark.parametrize("variant", [Variant.ELASTIC, Variant.LOAD_FRICTION, Variant.COGGING])
def test_missing_effects_change_the_recording_alone(variant: Variant) -> None:
    """The prior is right, and the torques or the positions of the rotors are not those of the rigid arm."""
    quiet = replace(SHORT, noise=0.0)
    good, case = arm("ur5", Variant.HONEST, quiet), arm("ur5", variant, quiet)
    assert all(np.array_equal(a.inertia, b.inertia) for a, b in zip(good.robot.links, case.robot.links, strict=True))
    changed = np.sqrt(np.mean((torque_of(case) - torque_of(good)) ** 2, axis=0) / np.mean(torque_of(good) ** 2, axis=0))
    twist = np.abs(case.train.runs[0].q - good.train.runs[0].q).max(axis=0)
    if variant is Variant.ELASTIC:
        assert np.all((twist > 0.004) & (twist < 0.0051))
    else:
        assert np.all(changed > 0.01) and np.all(twist < 1e-4)


@pytest.mark.parametrize("name", ARMS)
def test_motions_respect_limits_and_runs_differ(name: str) -> None:
    case = arm(name, conditions=replace(SHORT, duration=10.0))
    assert case.test is not None
    (train,), (test,) = case.train.runs, case.test.runs
    for j, limit in enumerate(case.robot.limits[c] for c in case.robot.coordinates):
        assert limit.lower <= train.q[:, j].min() and train.q[:, j].max() <= limit.upper
        assert np.abs(np.diff(train.q[:, j])).max() * 200 < 1.05 * min(limit.velocity, 2.0)
    assert np.all(np.ptp(train.q, axis=0) > 0.2) and np.abs(train.q - test.q).max() > 0.5


def test_an_arm_is_judged_by_any_method() -> None:
    """An honest file: total and bodies near the truth, nothing flagged, and all of it written as JSON."""
    result = judged(arm("ur10", Variant.HONEST, replace(SHORT, duration=10.0)), "feasible")
    assert result.total == pytest.approx(result.mass, rel=0.1) and result.error < 10
    assert [b.link for b in result.bodies][:2] == ["shoulder_link", "upper_arm_link"]
    assert all(b.truth == pytest.approx(b.prior) and 0.1 < b.true_gyration < 1.0 for b in result.bodies)
    assert Flag.TOTAL not in result.flags
    rows = json.loads(json.dumps(result.to_dict(), allow_nan=False))["bodies"]
    assert len(rows) == 6 and {"ratio", "flags", "gyration"} <= set(rows[0])


def test_a_method_that_refuses_is_a_flagged_line() -> None:
    result = judged(arm("ur3", Variant.HONEST, replace(SHORT, duration=0.05)), "wls")
    assert result.refused and result.flags == (Flag.REFUSED,) and result.verdict == "refused"
    assert "refused" in table([result])


@pytest.mark.parametrize(
    ("body", "flags"),
    [
        (GOOD, ()),
        (replace(GOOD, mass=8.5), (Flag.BOX,)),
        (replace(GOOD, mass=0.3), (Flag.BOX,)),
        (replace(GOOD, mass=-1.0), (Flag.BOX,)),
        (replace(GOOD, mass=8.0, wall=True), (Flag.WALL,)),
        (replace(GOOD, mass=8.0, wall=True, found=True), ()),
        (replace(GOOD, gyration=0.1), (Flag.COMPACT,)),
        (replace(GOOD, gyration=0.1, found=True), ()),
        (replace(GOOD, gyration=0.1, truth=2.0, true_gyration=0.1), ()),
        (replace(GOOD, mass=9.0, truth=9.5), ()),  # the true body is outside the box too
        (replace(GOOD, mass=9.0, prior=0.0, truth=2.0), (Flag.BOX,)),
    ],
)
def test_implausible_bodies_are_flagged(body: Body, flags: tuple[Flag, ...]) -> None:
    assert body.flags == flags


def test_totals_are_flagged_where_gains_are_known() -> None:
    heavy = replace(RESULT, total=2.6)
    assert RESULT.flags == () and heavy.flags == (Flag.TOTAL,)
    assert replace(heavy, gain_known=False).flags == () and replace(heavy, mass=math.nan).flags == ()


def test_flagged_lines_are_out_of_tolerance(monkeypatch: pytest.MonkeyPatch) -> None:
    light = replace(RESULT, total=1.0)
    monkeypatch.setattr(bodies, "results", lambda keys, folder: [RESULT, light])
    assert [f.ok for f in figures() if ":" not in f.name] == [True, False]
    assert "total mass" in table([light]) and "0.50" in table([light])


def test_finished_cases_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second call identifies nothing; another method is another case."""
    asked: list[str] = []

    def answer(case: BodyCase, method: str) -> BodyResult:
        asked.append(method)
        return replace(RESULT, method=method, mass=math.nan)

    monkeypatch.setattr(bodies, "judged", answer)
    first, again = (bodies.results([("ur3", "tool")], folder=tmp_path) for _ in range(2))
    bodies.results([("ur3", "tool")], "wls", tmp_path)
    assert asked == ["auto", "wls"] and first[0].to_dict() == again[0].to_dict()


def test_cases_are_chosen_by_name_variant_and_half() -> None:
    every, halves = case_keys(), [case_keys(half=half) for half in ("development", "held back")]
    assert sorted(every) == sorted(halves[0] + halves[1]) and len(every) == len(MACHINES) + len(ARMS) * len(Variant)
    assert sum(ARMS[n].held_back for n in ARMS) == len(ARMS) // 2 == 5
    assert case_keys(["ur3", "lwr4"], ["tool", "recorded"]) == [("lwr4", "recorded"), ("ur3", "tool")]
    with expect_error(DataError):
        case_keys(["ur4"])
    with expect_error(DataError):
        cases.arm("ur33")


@pytest.mark.real
def test_machines_have_known_masses(data: Path) -> None:
    """The mass of the file's moving links, or that of the table, with its source."""
    lwr4, kr300 = cases.machine("lwr4"), cases.machine("kr300")
    assert lwr4.mass == pytest.approx(14.4) and len(lwr4.train.runs) == 2 and lwr4.test is not None
    assert kr300.mass == 1062.5 and moving_mass(kr300.robot) == pytest.approx(1124.8, abs=0.1)
    assert all(known.source for known in MACHINES.values())
