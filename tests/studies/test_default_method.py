"""The studies that judge the default: regret, intervals by design, refusals, and the plants they stand on."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path as FilePath
from typing import Any, get_args

import numpy as np
import pytest

from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError
from dynid.identification.pipeline import identify
from studies.reproduce import between_runs, intervals, refusals, regret
from studies.reproduce.analytic_plants import MOTIONS, PRIORS, moved, prior_of, recorded, tree, with_typical_drives
from studies.reproduce.registry import find_study
from studies.reproduce.study import finished_rows
from tests.support.errors import expect_error

BRANCHED = ((0, 1, 1, 3), "rprr")


@pytest.mark.parametrize("kind", MOTIONS)
def test_torques_and_derivatives_of_an_analytic_motion(kind: Any) -> None:
    truth = with_typical_drives(tree(*BRANCHED, seed=2), 0)
    path = moved(truth, kind, 3.0, 1000.0, 1)
    np.testing.assert_allclose(path.torque(truth), inverse_dynamics(truth, path.q, path.v, path.a), atol=1e-9)
    for x, rate in ((path.q, path.v), (path.v, path.a)):
        central = (x[2:] - x[:-2]) * 500.0
        np.testing.assert_allclose(central, rate[1:-1], atol=0.02 * np.abs(path.a).max())  # jumps of the jerk at points
    assert np.any(path.v != 0.0, axis=0).sum() == (2 if kind == "few joints" else 4)


def test_noise_is_a_share_of_the_torque() -> None:
    truth = with_typical_drives(tree(*BRANCHED, seed=2), 0)
    path = moved(truth, "rich", 60.0, 100.0, 1)
    torque = path.torque(truth)
    for corner in (None, 2.0):
        (run,) = recorded(truth, path, torque, 0.1, corner, 3).runs
        assert run.torque is not None
        share = np.std(run.torque - torque, axis=0) / np.sqrt(np.mean(torque**2, axis=0))
        np.testing.assert_allclose(share, 0.1, rtol=0.2)  # few independent rows behind 2 Hz


def test_priors_are_as_wrong_as_they_say() -> None:
    truth = with_typical_drives(tree(*BRANCHED, seed=2), 0)
    masses = {p: np.array([x.inertia[0] for x in prior_of(truth, p, 0).links[1:]]) for p in PRIORS}
    np.testing.assert_allclose(masses["x2"], 2 * masses["exact"])
    assert not masses["none"].any()
    assert 0.02 < np.abs(masses["20 %"] / masses["exact"] - 1).mean() < 0.5
    assert all(term.value == 0.0 for term in prior_of(truth, "exact", 0).drives)


def test_any_two_factors_of_the_regret_meet_in_all_combinations() -> None:
    cases = [factors[:-1] for factors in regret.designed().values()]
    assert len(cases) == 49
    for a, b in combinations(range(6), 2):
        seen = {(case[a], case[b]) for case in cases}
        assert len(seen) == len({case[a] for case in cases}) * len({case[b] for case in cases})
    assert 20 <= sum(regret.half_of(name) == "held back" for name in regret.designed()) <= 29


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ({"auto": 0.20, "wls": 0.10, "ols": 0.3}, 2.0),
        ({"auto": 0.1004, "wls": 0.10}, 1.0),  # 0.04 % of torque
        ({"auto": 0.05, "wls": 0.10}, 0.5),
        ({"wls": 0.10}, np.inf),  # refused
    ],
)
def test_regret_of_errors(errors: dict[str, float], expected: float) -> None:
    assert regret.regret({"errors": errors}) == pytest.approx(expected)


def test_the_errors_of_a_case_are_those_on_unseen_motion(monkeypatch: pytest.MonkeyPatch) -> None:
    """The robot with the true parameters makes no error; the prior, twice as heavy, a large one."""
    case = regret.simulated("two joints", 0.01, "white", "rich", "x2", 3.0, 1)
    assert not case.given.drives and case.right.drives
    fitted = identify(case.right, case.training, "wls")
    assert case.error(fitted) < 0.02
    monkeypatch.setattr(regret, "OTHERS", {"wls": {"method": "wls"}, "tls": {"method": "none such"}})
    row = regret.compared(lambda: case)
    assert row["errors"]["wls"] == pytest.approx(case.error(fitted))
    assert set(row["refusals"]) == {"tls"} and row["errors"]["auto"] < 0.1


def test_the_design_of_the_intervals_has_the_runs_that_are_asked_for() -> None:
    runs = {robot: sum(cell.robot == robot for cell in intervals.CELLS) * n for robot, n in intervals.RUNS.items()}
    assert runs["two joints"] >= 2000 and min(runs.values()) >= 300
    for robot in intervals.ROBOTS:
        mine = [cell for cell in intervals.CELLS if cell.robot == robot]
        assert {(c.length, c.noise) for c in mine} == {(x, y) for x in intervals.LENGTHS for y in intervals.CORNERS}
        assert {c.visible for c in mine} == set(intervals.VISIBLE)


def test_weak_terms_are_as_visible_as_the_cell_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """The mean z of least squares against a truth of zero is that of the cell, and its intervals hold."""
    monkeypatch.setattr(intervals, "METHODS", ("wls",))
    cell = next(c for c in intervals.CELLS if (c.robot, c.length, c.noise, c.visible) == ("two joints", 5, "white", 4))
    truth, path, torque = intervals._plant(cell)
    offset = next(term for term in truth.drives if term.name == "off_joint2")
    found = identify(truth, recorded(truth, path, torque, 0.03, None, 5), "wls", signals=intervals.SIGNALS)
    std = found.std[found.base.names.index("off_joint2")]
    assert 2.0 < abs(offset.value) / std < 8.0  # standard deviations of 5 s scatter
    rows = [intervals.one_run(cell, k) for k in range(10)]
    z, covered = intervals._pooled(rows, "wls")
    assert z.size >= 100 and covered.mean() > 0.85 and 0.6 < np.sqrt(np.mean(z**2)) < 1.5


def test_what_a_recording_does_not_show_is_not_decided() -> None:
    truth = with_typical_drives(tree((0, 1), "rr", 3), 0)
    path = moved(truth, "few joints", 5.0, 200.0, 0)
    recording = recorded(truth, path, path.torque(truth), 0.01, None, 0)
    found = identify(truth, recording, "wls")
    kept = dict(zip(found.base.names, intervals.decided(found, recording, found.beta), strict=True))
    assert kept["fv_joint2"] and kept["fc_joint2"]
    assert not kept["fv_joint1"] and not kept["fc_joint1"]


def test_differences_of_two_runs() -> None:
    one, two = {"a": [1.0, 0.3, 0.6], "b": [0.0, 1.0, 2.0]}, {"a": [2.0, 0.4, 0.7]}
    z, covered = between_runs.differences([(one, two), (one, {"refused": "too short"})])
    np.testing.assert_allclose(z, [-2.0])
    assert not covered.any()


def test_recordings_of_the_refusals_have_every_condition() -> None:
    made = [refusals.make(seed) for seed in range(19)]
    assert {robot.n for robot, _, _ in made} >= {1, 2, 3, 6, 7, 10}
    assert {c for c in get_args(refusals.Condition) if any(c in words for _, _, words in made)} == set(
        get_args(refusals.Condition)
    )
    assert all(len(data.runs) == (2 if ", gap," in words else 1) for _, data, words in made)
    assert max(refusals.JOINTS) == 30


def test_a_refusal_is_counted_with_its_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(robot: Any, recording: Any, method: str) -> Any:
        if method == "auto":
            raise DataError("no, thank you")
        return identify(robot, recording, method)

    monkeypatch.setattr(refusals, "identify", refuse)
    monkeypatch.setattr(refusals, "FEW", 2)
    found = {figure.name: figure for figure in refusals.figures()}
    assert not found["refused by auto"].ok and found["refused by auto"].ours == "2"
    assert sum(figure.ours == "no, thank you" for figure in found.values()) == 2


def test_the_default_fits_a_small_recording() -> None:
    row = refusals.judged(0)
    assert row["wls"] is None and row["auto"] is None


def test_finished_rows_are_not_made_again(tmp_path: FilePath) -> None:
    calls: list[int] = []

    def work(x: int) -> dict[str, Any]:
        calls.append(x)
        return {"square": x * x}

    path = tmp_path / "kept" / "rows.jsonl"
    first = finished_rows("squares", work, {"two": (2,)}, path, 1)
    again = finished_rows("squares", work, {"three": (3,), "two": (2,)}, path, 1)
    assert calls == [2, 3] and first == [{"name": "two", "square": 4}]
    assert [row["square"] for row in again] == [9, 4]


@pytest.mark.parametrize("name", ["regret", "intervals", "between-runs", "refusals"])
def test_the_studies_are_registered(name: str) -> None:
    study = find_study(name)
    assert study.takes("full") and study.takes("folder") and study.takes("half") == (name == "regret")


def test_an_unknown_half_is_refused() -> None:
    with expect_error(DataError):
        next(find_study("regret").figures(full=False, half="worse", folder=None))
