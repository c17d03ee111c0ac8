"""Folds, errors without a fold, and the choice of a kernel with the trust in it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dynid.residual.features import Features
from dynid.residual.fit import fold_numbers, held_out_errors
from dynid.residual.kernel import parse_kernel
from dynid.residual.noise import Noise
from dynid.residual.problem import Problem
from dynid.residual.rows import JointRows
from dynid.residual.selection import choose
from dynid.residual.training import Training

Array = NDArray[np.float64]


def made_rows(rng: np.random.Generator, joint: int, samples: int, runs: int, size: int = 4) -> JointRows:
    """Rows of random regressors with noise, the rigid torque still that of zero values."""
    q, v, a = rng.normal(size=(3, samples, 2))
    W = rng.normal(size=(samples, size))
    torque = W @ np.arange(1.0, size + 1) + (1 + joint) * rng.normal(size=samples)
    run = np.arange(samples) * runs // samples
    return JointRows(joint, q, v, a, torque, np.zeros(samples), W, run, np.linspace(0, 10, samples))


@pytest.mark.parametrize(("runs", "folds"), [(1, 6), (2, 6), (3, 6), (4, 4), (5, 5), (6, 6), (13, 6)])
def test_runs_are_cut_or_grouped(runs: int, folds: int) -> None:
    rng = np.random.default_rng(0)
    joints = [made_rows(rng, 0, 520, runs), made_rows(rng, 1, 390, runs)]
    found = fold_numbers(joints)
    for rows, fold in zip(joints, found, strict=True):
        assert sorted(set(fold)) == list(range(folds))
        # A fold is one stretch of time, and its runs are its own unless a run was cut.
        assert np.all(np.diff(fold) >= 0)
        if runs >= 4:
            assert all(len(set(fold[rows.run == r])) == 1 for r in range(runs))
        else:
            assert all(len(set(rows.run[fold == k])) == 1 for k in range(folds))


def test_folds_of_all_joints_share_their_time() -> None:
    rng = np.random.default_rng(1)
    joints = [made_rows(rng, 0, 600, 2), made_rows(rng, 1, 600, 2).rows(np.arange(100, 600))]
    whole, part = fold_numbers(joints)
    assert np.array_equal(whole[100:], part)


def test_errors_without_a_fold_are_those_of_a_model_identified_without_it() -> None:
    rng = np.random.default_rng(2)
    joints = [made_rows(rng, j, 300, 3) for j in range(2)]
    # Least squares weighted by the errors that it leaves: a few rounds settle.
    beta = np.zeros(4)
    for _ in range(50):
        weights = [1 / np.mean((r.torque - r.W @ beta) ** 2) for r in joints]
        A = sum(w * r.W.T @ r.W for w, r in zip(weights, joints, strict=True))
        beta = np.linalg.solve(A, sum(w * r.W.T @ r.torque for w, r in zip(weights, joints, strict=True)))
    fitted = [JointRows(r.joint, r.q, r.v, r.a, r.torque, r.W @ beta, r.W, r.run, r.t) for r in joints]
    folds = fold_numbers(fitted)
    found = held_out_errors(fitted, folds)
    for k in range(6):
        W = np.vstack([np.sqrt(w) * r.W[f != k] for w, r, f in zip(weights, joints, folds, strict=True)])
        y = np.concatenate([np.sqrt(w) * r.torque[f != k] for w, r, f in zip(weights, joints, folds, strict=True)])
        without = np.linalg.lstsq(W, y, rcond=None)[0]
        for errors, r in zip(found, joints, strict=True):
            # Both solve the same normal equations: rounding only.
            np.testing.assert_allclose(errors[k], r.torque - r.W @ without, atol=1e-9)


def test_values_that_other_folds_do_not_show_stay() -> None:
    """A column that is nonzero in one fold alone is unknown without it."""
    rng = np.random.default_rng(3)
    rows = made_rows(rng, 0, 300, 6)
    rows.W[rows.run != 2, 3] = 0.0
    found = held_out_errors([rows], fold_numbers([rows]))[0]
    change = np.linalg.lstsq(rows.W[rows.run == 2], (rows.error - found[2])[rows.run == 2], rcond=None)[0]
    assert abs(change[3]) < 1e-9
    assert np.isfinite(found).all()


def made_problems(rng: np.random.Generator, y_of: Array, x: Array) -> list[Problem]:
    features = Features(np.zeros(2, bool), np.ones(2), np.zeros(8), np.ones(8), np.full(8, -3.0), np.full(8, 3.0))
    kernels = [parse_kernel(word, features, 0) for word in ("friction", "own", "ard")]
    return [Problem(k, Noise(), x, y_of, np.zeros((len(x), 0)), np.zeros(len(x))) for k in kernels]


def chosen(y: Array, x: Array) -> tuple[str | None, float]:
    folds = np.arange(len(y)) * 6 // len(y)
    problems = made_problems(np.random.default_rng(0), y, x)
    best, scores, _ = choose(problems, np.tile(y, (6, 1)), folds, Training(), -1)
    assert len(scores) == 3
    return (None, 0.0) if best is None else (best.kernel, best.trust)


def test_what_is_learned_well_is_trusted() -> None:
    """A smooth function of the own speed with little noise: chosen, and used almost whole."""
    x = np.random.default_rng(4).normal(size=(600, 8))
    y = np.sin(2 * x[:, 2]) + 0.1 * np.random.default_rng(5).normal(size=600)
    kernel, trust = chosen(y / np.std(y), x)
    assert kernel in ("friction", "own") and trust > 0.9


def test_half_explained_is_half_trusted() -> None:
    """As much noise as function: about half of the squared error can be explained."""
    x = np.random.default_rng(6).normal(size=(1200, 8))
    f = np.sin(2 * x[:, 2])
    y = f / np.std(f) + np.random.default_rng(7).normal(size=1200)
    _, trust = chosen(y / np.std(y), x)
    assert 0.3 < trust < 0.6


@pytest.mark.slow
def test_noise_is_left_alone() -> None:
    """Columns of noise are taken up by none, or with next to no trust."""
    trusts = []
    for k in range(5):
        rng = np.random.default_rng(100 + k)
        trusts.append(chosen(rng.normal(size=400), rng.normal(size=(400, 8)))[1])
    assert np.max(trusts) < 0.05


def test_what_turns_over_from_fold_to_fold_is_left_alone() -> None:
    """The same function with a sign of its own in every stretch helps in none."""
    x = np.random.default_rng(8).normal(size=(600, 8))
    sign = np.repeat([1.0, -1.0, 1.0, -1.0, 1.0, -1.0], 100)
    assert chosen(sign * np.sin(2 * x[:, 2]), x)[1] < 0.05
