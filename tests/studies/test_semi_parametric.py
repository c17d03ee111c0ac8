"""The semi-parametric study: its exact parts, the simulated loop it stands on, and verdicts that can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dynid.errors import DataError
from dynid.excitation.basis import Fourier
from dynid.parameters.base import base_parameters
from dynid.robot.load import load_robot
from dynid.simulation.torque_models import RigidModel
from studies.reproduce import semi_parametric, semi_parametric_cases, semi_parametric_control, semi_parametric_learned
from studies.reproduce.registry import find_study
from studies.reproduce.regrouping import printed_regrouping, random_arm, regrouping
from studies.reproduce.semi_parametric_cases import (
    correction_values,
    friction_figures,
    not_above,
    overlay_figures,
    rigid_model,
    tracking,
    training_log,
)
from studies.reproduce.semi_parametric_control import (
    CLEAN,
    IDENTIFICATION,
    TEST,
    Gains,
    follow,
    followed,
    friction_free,
    identified,
    least_squares,
    thesis_model,
    tracking_error,
)
from studies.reproduce.semi_parametric_designs import TRAINING, high_frequency, random_motion, unseen_motions
from studies.reproduce.semi_parametric_learned import STATEMENTS, below, learned, own
from studies.reproduce.study import Figure, finished_rows, published


def _bad(figures: list[Figure]) -> list[Figure]:
    return [f for f in figures if not f.ok]


def test_the_study_is_registered() -> None:
    """By name, without recordings, with a longer form that can be continued and no halves."""
    study = find_study("semi-parametric")
    assert study.run is semi_parametric.figures and not study.needs_data
    assert [option for option in ("full", "half", "folder") if study.takes(option)] == ["full", "folder"]


def test_the_longer_form_has_both_arms_and_twenty_motions(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The short one is the two-link alone; rows of the table go where they are asked to."""
    asked: list[Any] = []

    def noted(name: str) -> Callable[..., Iterator[Figure]]:
        return lambda *arguments: asked.append((name, *arguments)) or iter(())

    parts = ["_structures", "_theorem", "_printed_conditions", "_sizes", "_hyperparameters", "_bandwidth", "_motions"]
    parts += ["semiparametric_design_figures", "friction_figures", "table_figures", "tracking_figures"]
    for name in [*parts, "kernel_figures", "overlay_figures", "fallback_figures"]:
        monkeypatch.setattr(semi_parametric, name, noted(name))
    assert not list(semi_parametric.figures())
    assert ("friction_figures", ["twolink"]) in asked and not any(a[0] == "table_figures" for a in asked)
    assert not list(semi_parametric.figures(True, tmp_path))
    assert ("table_figures", 20, tmp_path) in asked and ("friction_figures", ["puma560", "twolink"]) in asked


def test_rows_of_the_table_are_kept_and_read_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A second call makes none of them, another number of motions makes its own."""
    made: list[str] = []

    def errors(name: str, log: Any, variant: str, motions: int) -> dict[str, Any]:
        made.append(variant)
        return {"errors": [[0.1 * (k + len(made))] * 6 for k in range(motions)]}

    monkeypatch.setattr(semi_parametric_learned, "training_log", lambda *_: SimpleNamespace(joined=lambda _: None))
    monkeypatch.setattr(semi_parametric_learned, "_errors", errors)
    monkeypatch.setattr(semi_parametric_learned, "finished_rows", partial(_in_this_process, semi_parametric_learned))
    first = list(semi_parametric_learned.table_figures(2, tmp_path))
    assert len(made) == 4 * 8 + 1
    assert list(semi_parametric_learned.table_figures(2, tmp_path)) == first and len(made) == 33
    orders = [f for f in first if "order" in f.section and "below" in f.name]
    assert len(orders) == 9 and all("of 2 motions" in f.ours for f in orders)
    list(semi_parametric_learned.table_figures(3, tmp_path))
    assert len(made) == 66


def _in_this_process(module: Any, what: str, work: Any, tasks: Any, path: Path, workers: int) -> Any:
    return finished_rows(what, work, tasks, path, 1)


def test_more_motions_begin_with_the_same_ones() -> None:
    few, many = unseen_motions("twolink"), unseen_motions("twolink", 5)
    assert all(np.array_equal(a.coefficients, b.coefficients) for a, b in zip(few, many, strict=False))
    assert len({m.coefficients.tobytes() for m in many}) == 5


def test_structures_sizes_and_bandwidth_are_the_published_ones() -> None:
    """T1 to T5 and T7 to T9, each of them there."""
    parts = (
        semi_parametric._structures,
        semi_parametric._theorem,
        semi_parametric._printed_conditions,
        semi_parametric._sizes,
        semi_parametric._hyperparameters,
        semi_parametric._bandwidth,
    )
    figures = [f for part in parts for f in part()]
    assert not _bad(figures)
    assert {f.section.split()[0] for f in figures} == {"T1", "T2", "T3", "T4", "T5", "T7", "T8", "T9"}
    assert sum(f.section.startswith("T4") for f in figures) >= 36 + 4


@pytest.mark.parametrize("seed", range(3))
def test_the_theorem_predicts_torques_and_the_printed_one_does_not(seed: int) -> None:
    """Torques from the kept columns alone, for parameters drawn at random."""
    robot, table = random_arm(seed, joints=4)
    rng = np.random.default_rng(seed)
    q, v, a = rng.normal(size=(3, 20, robot.n))
    pi = rng.normal(size=len(robot.layout))
    from dynid.dynamics.functions import regressor

    Y = regressor(robot, q, v, a)
    for rows, exact in ((regrouping(robot, table), True), (printed_regrouping(robot, table), False)):
        kept = [robot.parameter_labels.index(label) for label in rows]
        apart = np.abs(Y[:, :, kept] @ (np.array(list(rows.values())) @ pi) - Y @ pi).max()
        assert (apart < 1e-10) if exact else (apart > 1e-3)


def test_motions_rest_at_both_ends_within_their_limits() -> None:
    """High-frequency series and test motions; the series has its band and no more."""
    for name in ("puma560", "twolink"):
        motions = [high_frequency(name), *unseen_motions(name)]
        for motion in motions:
            assert min(motion.slacks.values()) >= 0
            assert max(np.abs(x).max() for x in motion.at([0.0, motion.duration])) < 1e-9
        q = motions[0].sample(100.0)[1][:-1]
        power = np.abs(np.fft.rfft(q - q.mean(axis=0), axis=0))
        first = published("semi_parametric")[name]["harmonics"]
        outside = np.concatenate([power[1:first], power[51:]])
        assert outside.max() < 1e-9 * power.max() < power[first : first + 3].max()


def test_random_motions_differ_by_seed_alone() -> None:
    """The same seed gives the same motion."""
    one, again, other = (random_motion("twolink", Fourier(10.0, 5), seed) for seed in (1, 1, 2))
    assert np.array_equal(one.coefficients, again.coefficients)
    assert np.abs(one.coefficients - other.coefficients).max() > 0.01


def test_rows_are_those_of_the_table() -> None:
    """Eight sets of training data, named alike in data and code."""
    assert list(published("semi_parametric")["table_5_8"]) == list(TRAINING)


def test_an_exact_model_follows_the_motion_and_its_law_is_found() -> None:
    """At the soft gains its own torques leave nothing to the PD law; least squares on its run gives them back."""
    plant, motion = load_robot("twolink"), unseen_motions("twolink")[0]
    log = follow(plant, motion, plant, TEST)
    assert len(log) == 101 and tracking_error([followed(plant, motion, plant, TEST)]).max() < 1e-3
    base = base_parameters(plant)
    beta = least_squares(base, log.true, log.torque, CLEAN.slowest)
    assert np.abs(beta - base.values()).max() < 1e-2


def test_a_log_knows_feedback_and_derivatives() -> None:
    """Total torque is that of the model and of the PD law; differences are close to the simulated speeds."""
    plant, model, motion = load_robot("twolink"), friction_free("twolink"), unseen_motions("twolink")[1]
    log = follow(plant, motion, model, IDENTIFICATION, rate=100.0)
    ahead = RigidModel(model).torques(*log.desired)
    assert np.abs(log.torque - ahead - log.feedback).max() < 1e-9
    q, v, _ = log.measured("differences")
    assert q is log.true[0] and np.sqrt(np.mean((v - log.true[1]) ** 2)) < 0.02
    twice = log.joined(log)
    assert twice.starts == (0, len(log)) and np.array_equal(twice.measured("differences")[1], np.vstack([v, v]))


def test_base_values_become_a_robot_with_the_same_torques() -> None:
    """Even where no such robot could be built."""
    base = thesis_model("puma560")
    rng = np.random.default_rng(0)
    beta = rng.normal(size=base.count)
    q, v, a = rng.normal(size=(3, 10, 6))
    ours = RigidModel(identified(base, beta)).torques(q, v, a)
    assert np.abs(ours - base.regressor(q, v, a) @ beta).max() < 1e-9


@pytest.mark.slow
def test_a_series_is_joined_to_its_row() -> None:
    """1001 samples a run; a row with a series has both."""
    alone, both = training_log("twolink", "Cond(W_fe)"), training_log("twolink", "HFS + Cond(W_fe)")
    assert (len(alone), len(both), both.starts) == (1001, 2002, (0, 1001))
    assert np.array_equal(both.torque[:1001], alone.torque)


@pytest.mark.slow
def test_periods_are_averaged_run_by_run() -> None:
    """A hundred samples a run, along the same desired motion; a single period has no mean."""
    log = training_log("twolink", "HFS + Cond(W_fe)")
    mean = log.period_mean(10.0)
    assert len(mean) == 200 and mean.starts == (0, 100) and list(np.unique(mean.runs)) == [0, 1]
    assert np.abs(mean.desired[0] - log.desired[0][np.r_[0:100, 1001:1101]]).max() < 1e-9
    assert np.abs(mean.torque[30] - np.mean(log.torque[130:1000:100], axis=0)).max() < 1e-12
    with pytest.raises(DataError, match="second period"):
        mean.period_mean(10.0)


def test_clean_data_track_better_than_those_of_the_thesis() -> None:
    """Rows that stick spoil the estimate of the two-link."""
    motions = unseen_motions("twolink")
    plain, thesis, clean = (
        tracking("twolink", model, motions).sum()
        for model in (friction_free("twolink"), rigid_model("twolink"), rigid_model("twolink", derivatives=CLEAN))
    )
    assert clean < 0.7 * thesis and thesis < 0.7 * plain


def test_a_correction_is_laid_over_a_model_that_stays_on() -> None:
    """With an exact error model the arm follows as with the exact model; torques are not counted twice."""
    plant, motion = load_robot("twolink"), unseen_motions("twolink")[0]
    internal = friction_free("twolink", [1.0, -1.0, 1.0, 1.0])

    class Rest:
        def torques(self, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
            smooth = plant.with_smooth_coulomb(200.0)
            return RigidModel(smooth).torques(q, v, a) - RigidModel(internal).torques(q, v, a)

    assert tracking_error([followed(plant, motion, internal, TEST)]).sum() > 0.1
    assert tracking_error([followed(plant, motion, internal, TEST, correction=Rest())]).max() < 1e-3


@pytest.mark.slow
def test_iterations_and_tight_gains_find_the_error_of_the_internal_model() -> None:
    """Case 2 on the two-link: loose tracking with measured regressors does not."""
    figures = list(overlay_figures())
    assert not _bad(figures)
    ideal = -np.array(published("semi_parametric")["twolink"]["internal_offset"])
    loose, _ = correction_values("exact")
    tight, _ = correction_values("exact", Gains(5000.0, 100.0))
    # Rows that stick decide the third digit: 0.27 on x86-64, 0.276 on aarch64.
    assert np.abs(loose - ideal).max() > 1.0 and np.abs(tight - ideal).max() < 0.3


def test_friction_of_the_two_link_is_near_the_plant(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the verdict can fail: with the rows that stick it does."""
    figures = list(friction_figures(["twolink"]))
    assert len(figures) == 5 and not _bad(figures)
    every_row = semi_parametric_control.Differentiation("exact", 0.0)
    monkeypatch.setattr(semi_parametric_cases, "CLEAN", every_row)
    assert _bad(list(friction_figures(["twolink"])))


def test_a_worse_sum_is_out() -> None:
    """The comparison of errors can fail; equal ones pass."""
    better, worse = np.array([0.1, 0.2]), np.array([0.1, 0.21])
    assert not_above("s", "n", worse, better, "IDM").ok and not_above("s", "n", better, better, "IDM").ok
    assert not not_above("s", "n", better, worse, "IDM").ok


def test_statements_are_those_of_the_published_table() -> None:
    """Every one is true of the printed numbers, and out once a row is moved or two are equal."""
    rows = list(TRAINING)
    table = {row: np.sum(errors) for row, errors in published("semi_parametric")["table_5_8"].items()}
    one = {row: np.array([x]) for row, x in table.items()}
    assert len(STATEMENTS) == 9
    for label, good, bad in STATEMENTS:
        names = [rows[k - 1] for k in good], [rows[k - 1] for k in bad]
        assert below("s", label, *names, table, one).ok
        assert not below("s", label, *names, table, one | {names[0][-1]: np.array([9.0])}).ok
        assert not below("s", label, *names, table, one | {names[0][-1]: one[names[1][0]]}).ok


def test_an_order_tells_how_many_motions_agree() -> None:
    """The mean decides."""
    ours = {"a": np.array([1.0, 1.0, 1.0]), "b": np.array([0.9, 2.0, 2.0])}
    figure = below("s", "n", ["a"], ["b"], {}, ours)
    assert figure.ok and figure.ours == "1.000 < 1.633; holds in 2 of 3 motions, 67 %"
    assert not below("s", "n", ["b"], ["a"], {}, ours).ok


def test_ranks_of_a_table_with_itself() -> None:
    """One, and minus one against its opposite."""
    table = {row: float(k) for k, row in enumerate(TRAINING)}
    assert "Spearman 1.00, Kendall 1.00" in semi_parametric_learned._ranks("s", "x", table, table).ours
    opposite = {row: -x for row, x in table.items()}
    assert "Spearman -1.00, Kendall -1.00" in semi_parametric_learned._ranks("s", "x", table, opposite).ours


def test_a_process_learns_what_is_missed_along_the_desired_motion() -> None:
    """Torques at the samples come closer than those of the rigid model, those far from them are the rigid ones."""
    log, rigid = training_log("twolink").period_mean(10.0), rigid_model("twolink")
    model, before = learned(rigid, log), RigidModel(rigid)
    left = np.std(log.torque - model.torques(*log.desired)) / np.std(log.torque - before.torques(*log.desired))
    assert left < 0.8
    q, v, a = (x + 30.0 * x.std(axis=0) for x in log.desired)
    assert np.abs(model.torques(q, v, a) - before.torques(q, v, a)).max() < 1e-6


def test_far_from_the_data_only_the_rigid_model_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the verdict can fail: at the samples themselves something is left."""
    figures = list(semi_parametric_learned.fallback_figures())
    assert len(figures) == 2 and not _bad(figures)
    monkeypatch.setattr(semi_parametric_learned, "_FAR", (0.0, 0.01))
    assert len(_bad(list(semi_parametric_learned.fallback_figures()))) == 2


@pytest.mark.slow
def test_what_is_learned_from_clean_data_beats_their_rigid_model() -> None:
    """Two-link, on motions that were not learned from."""
    motions, rigid = unseen_motions("twolink"), rigid_model("twolink", derivatives=CLEAN)
    model = own(rigid, training_log("twolink"))
    assert tracking("twolink", model, motions).sum() < 0.6 * tracking("twolink", rigid, motions).sum()


@pytest.mark.slow
def test_a_process_on_top_of_the_error_model_beats_the_wrong_model() -> None:
    """Case 2: on both sets of motions, from the means of the periods."""
    figures = [
        f for f in overlay_figures(lambda robot, log: learned(robot, log.period_mean(10.0))) if "Gaussian" in f.name
    ]
    assert len(figures) == 4
    assert all(f.ok for f in figures if "without" not in f.name)


# Statements of the thesis that do not come out; docs/study-reports/semi-parametric.md says why.
MISSED = {
    "rows 5, 4, 1, 8 below rows 7, 3",
    "row 4 below row 2: series helps",
    "trajectory 1, Cond(W_fe), below trajectory 3, Cond(W_nfe) + sum Cond(W_nfe)",
    "PUMA, training motion, RBD-LS, thesis' data",
    "PUMA, training motion, SGPR, thesis' data",
    "PUMA, three other motions, SGPR, thesis' data",
    "Cond(W_fe), training motion, ARD",
    "sum Cond(W_fe), training motion, ARD",
    "sum Cond(W_fe), three other motions, ARD",
}
# Sums within a few percent of each other, or of the PUMA with kernels that are chosen: either may come out.
CLOSE = {
    "rows 7, 3 below rows 6, 2",
    "row 6 below row 2: sum over links",
    "row 8 below row 6: series helps",
    "row 1 below row 3: series harms",
    "trajectory 1, Cond(W_fe), below trajectory 2, Cond(W_nfe)",
    "two-link, training motion, SGPR, thesis' data",
    "two-link, three other motions, SGPR, thesis' data",
    "PUMA, training motion, dynid's own, clean data",
    "PUMA, three other motions, dynid's own, clean data",
    "Cond(W_fe), three other motions, ARD",
    "three other motions, overlay, desired regressors and Gaussian process, rad, against the overlay without it",
}


@pytest.mark.slow
def test_figures_of_the_study_are_met_but_for_known_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    """Five minutes, with three motions: designs, runs of the PUMA, Gaussian processes of a thousand samples."""
    monkeypatch.setattr(semi_parametric, "MOTIONS", 3)
    out = {f.name for f in _bad(list(semi_parametric.figures(full=True)))}
    assert MISSED <= out <= MISSED | CLOSE
