"""Learned torques on top of identified robots, judged on real runs held out."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.identification.pipeline import identify
from dynid.residual.fit import held_out_errors
from dynid.residual.rows import TorqueRows
from studies.reproduce.registry import find_study
from studies.reproduce.residual_robots import SPLITS, errors
from studies.reproduce.sarcos import left_out, sarcos_rows

pytestmark = pytest.mark.real


@pytest.mark.slow
def test_kr300_learns_the_friction_of_joint_3_and_harms_no_other(data: Path) -> None:
    """Run C of the KR300: joint 3, the worst predicted drive, gains a tenth at least, none loses 5 %."""
    split = next(s for s in SPLITS["kr300"]() if s.name.endswith("run C"))
    found = errors(split, plain=False)
    assert found.ratio.max() < 1.05
    assert found.ratio[2] < 0.9


def test_splits_hold_out_whole_recordings(data: Path) -> None:
    """No run is on both sides; where one run was cut, its parts do not overlap."""
    for make in ("ur10e", "lwr4", "kr300", "med7"):
        for split in SPLITS[make]():
            for known in split.train.runs:
                for unseen in split.test.runs:
                    same = known.q.shape == unseen.q.shape and np.array_equal(known.q, unseen.q)
                    assert not same, split.name


def test_errors_without_a_fold_on_a_real_robot(data: Path) -> None:
    """Errors without the first of two runs agree with those of a robot identified without it.

    The weights of the joints then come from one run instead of two, which moves the errors by less than a fifth.
    """
    split = next(s for s in SPLITS["lwr4"]() if s.name.endswith("run 3"))
    rows = TorqueRows.of(identify(split.robot, split.train, "wls"), split.train)
    by_run = [r.run.copy() for r in rows.joints]
    found = held_out_errors(rows.joints, by_run)
    alone = type(split.train)(split.train.joints, split.train.runs[1:])
    other = TorqueRows.of(identify(split.robot, alone, "wls"), split.train)
    for errors_j, r in zip(found, other.joints, strict=True):
        there = r.error[r.run == 0]
        away = errors_j[0][r.run == 0] - there
        assert np.sqrt(np.mean(away**2)) < 0.2 * np.sqrt(np.mean(there**2))


def test_fold_errors_are_those_of_predictions_from_the_other_folds() -> None:
    """The closed form against each fold predicted by hand; no recording is needed."""
    rng = np.random.default_rng(0)
    G = rng.normal(size=(60, 60))
    K, y, fold = G @ G.T + 30 * np.eye(60), rng.normal(size=60), rng.permutation(np.arange(60) % 3)
    found = left_out(K.copy(), y, (fold, np.arange(60) // 20), 2.0)
    for errors_of, groups in zip(found, (fold, np.arange(60) // 20), strict=True):
        for k in range(3):
            b, rest = groups == k, groups != k
            mean = K[np.ix_(b, rest)] @ np.linalg.solve(K[np.ix_(rest, rest)], y[rest])
            np.testing.assert_allclose(errors_of[b], 2.0 * (y[b] - mean), atol=1e-10)


def test_sarcos_rows_are_the_test_part(data: Path) -> None:
    """Its size, and that neighbouring rows are neighbours in time: folds of them are the harder ones."""
    motion, torque = sarcos_rows()
    assert motion.shape == (4449, 21) and torque.shape == (4449, 7)
    assert np.corrcoef(motion[:-1, 0], motion[1:, 0])[0, 1] > 0.9


@pytest.mark.slow
def test_most_joints_gain_and_none_loses_more_than_a_twentieth(data: Path) -> None:
    """The whole study: every line holds, and the SARCOS arm is there with its seven joints."""
    figures = list(find_study("residual-robots").run())
    assert not [f"{f.section}: {f.name} {f.ours}" for f in figures if not f.ok]
    assert sum(f.section.startswith("SARCOS") for f in figures) == 7
