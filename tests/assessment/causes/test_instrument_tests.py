"""Tests of instruments: sizes and powers by Monte Carlo, and the same numbers as textbook regressions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
import scipy

import dynid
from dynid.assessment.causes.hausman import hausman, hausman_test
from dynid.assessment.causes.instruments import (
    Segment,
    exogeneity_f,
    exogeneity_robust,
    exogeneity_test,
    hansen,
    instrument_test,
    sargan,
    segment,
    validity_f,
    validity_robust,
)
from dynid.errors import (
    InvalidShape,
    InvalidValue,
    Mismatch,
    NotApplicable,
    NotFinite,
    NotIdentifiable,
    TooFew,
)
from dynid.hypothesis import HypothesisTest
from dynid.identification.experiment import Paired, PairedBlock
from dynid.identification.observation import fold
from dynid.signals.filters import decimate
from tests.support.errors import Error, expect_error
from tests.support.synthetic import EXACT, arm, base_of, record

DRAWS = 400
BETA = np.array([2.0, -1.0, 0.5, 1.0])
# Three deviations of a rate of 0.05 over 400 draws.
NOMINAL = pytest.approx(0.05, abs=0.033)


def rate(test: Callable[[np.random.Generator], HypothesisTest], draws: int = DRAWS) -> float:
    return float(np.mean([test(np.random.default_rng(seed)).rejected for seed in range(draws)]))


def smooth(rng: np.random.Generator, rows: int, columns: int = 4) -> np.ndarray:
    """Columns of a motion: each sample is much like the one before."""
    return np.asarray(scipy.signal.lfilter([1.0], [1.0, -0.9], rng.normal(size=(rows + 100, columns)), axis=0)[100:])


def rows(
    rng: np.random.Generator,
    samples: int = 300,
    joints: int = 1,
    missed: float = 0.0,
    feedback: float = 0.0,
    uneven: bool = False,
    noise: Callable[[np.random.Generator, tuple[int, ...]], np.ndarray] = lambda rng, shape: rng.normal(size=shape),
) -> Segment:
    """y = (X - V) beta + e with X = Z + V; joints of one sample share half the noise of X.

    `missed` is an effect that the simulation lacks, `feedback` couples e to V, `uneven` noise grows with joint and Z.
    """
    Z = smooth(rng, samples * joints).reshape(samples, joints, 4)
    V = noise(rng, (samples, joints * 4)).reshape(samples, joints, 4)
    if joints > 1:
        V = (V + V[:, :1]) / np.sqrt(2)
    if uneven:
        V = V * (1 + 3 * np.arange(joints))[None, :, None] * (1 + np.abs(Z[:, :, :1]))
    truth = Z + missed * np.roll(Z, 1, axis=2)
    X = truth + 0.1 * V
    e = noise(rng, (samples, joints)) + feedback * V[:, :, 0] - 0.1 * V @ BETA * (feedback == 0)
    y = X @ BETA + e
    index = np.repeat(3 * np.arange(samples), joints)
    return Segment(Z.reshape(-1, 4), X.reshape(-1, 4), y.ravel(), index)


def whole(part: Segment) -> np.ndarray:
    return np.column_stack([part.Z, part.X, part.y])


def robust(part: Segment, correlated_samples: int = 1) -> HypothesisTest:
    return validity_robust([part], whole(part), part.Z.shape[1], correlated_samples=correlated_samples)


def test_plain_validity_holds_its_size_column_by_column() -> None:
    """Holm bounds any false rejection; alone, one column in twenty is rejected."""
    tests = [validity_f(whole(rows(np.random.default_rng(s))), 4, 300) for s in range(DRAWS)]
    assert np.mean([t.rejected for t in tests]) == NOMINAL
    alone = np.mean([[d.p_value < 0.05 for d in t.details] for t in tests])
    # Three deviations over 1600 columns.
    assert alone == pytest.approx(0.05, abs=0.017)


def test_validity_sees_an_effect_that_the_simulation_misses() -> None:
    part = rows(np.random.default_rng(0), missed=0.05)
    for test in (validity_f(whole(part), 4, 300, list("abcd")), robust(part)):
        assert test.rejected and len(test.rejected_names) == 4
        assert "misses an effect" in test.advice
    assert rate(lambda rng: robust(rows(rng, missed=0.02)), 50) > 0.9


def test_validity_statistic_is_that_of_a_regression() -> None:
    """H0: x_i on Z gives e_i; the F test of statsmodels on tall rows, ours from the triangular factor."""
    import statsmodels.api as sm

    part = rows(np.random.default_rng(5), missed=0.01)
    ours = validity_f(fold(whole(part).copy(order="F")), 4, 300)
    for i in range(4):
        reference = sm.OLS(part.X[:, i], part.Z).fit().f_test((np.eye(4), np.eye(4)[i]))
        assert ours.details[i].statistic == pytest.approx(float(reference.fvalue), rel=1e-8)
        assert ours.details[i].p_value == pytest.approx(float(reference.pvalue), rel=1e-6)


@pytest.mark.slow
def test_robust_validity_holds_its_size_where_noise_differs_by_joint_and_motion() -> None:
    """Whitening by torque noise does not whiten V: the plain form rejects far too often, the robust one does not."""

    def uneven(rng: np.random.Generator) -> Segment:
        return rows(rng, 200, joints=3, uneven=True)

    assert rate(lambda rng: robust(uneven(rng))) <= 0.07
    assert rate(lambda rng: validity_f(whole(uneven(rng)), 4, 600), 100) > 0.3


@pytest.mark.slow
def test_autocorrelated_noise_is_allowed_for() -> None:
    """Decimated noise with the default `correlated_samples`, strongly autocorrelated noise with twice its length."""

    def decimated(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return decimate(rng.normal(size=(5 * shape[0], shape[1])), (5,))

    def slow(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        return np.asarray(scipy.signal.lfilter([1.0], [1.0, -0.8], rng.normal(size=shape), axis=0))

    assert rate(lambda rng: robust(rows(rng, noise=decimated), 10), 200) <= 0.09
    assert rate(lambda rng: robust(rows(rng, noise=slow), 1), 100) > 0.5
    assert rate(lambda rng: robust(rows(rng, 1000, noise=slow), 30), 200) <= 0.12


def test_exogeneity_is_the_augmented_regression() -> None:
    import statsmodels.api as sm

    part = rows(np.random.default_rng(3), feedback=0.3)
    V = part.X - part.Z @ np.linalg.lstsq(part.Z, part.X, rcond=None)[0]
    full = sm.OLS(part.y, np.hstack([part.X, V])).fit()
    statistic, p, _ = full.compare_f_test(sm.OLS(part.y, part.X).fit())
    for factor in (whole(part), fold(whole(part).copy(order="F"))):
        test = exogeneity_f(factor, 4, 300)
        assert test.statistic == pytest.approx(statistic, rel=1e-8) and test.p_value == pytest.approx(p, rel=1e-6)
        assert test.distribution == "F(4, 292)"


def exact(rng: np.random.Generator, feedback: float, uneven: bool = False) -> Segment:
    """X is what the torque follows; with `feedback` the error does too."""
    Z = smooth(rng, 300)
    V = rng.normal(size=Z.shape)
    e = rng.normal(size=300) * (1 + 2 * np.abs(V[:, 0]) if uneven else 1.0) + feedback * V[:, 0]
    return segment(Z, Z + V, (Z + V) @ BETA + e)


@pytest.mark.slow
def test_exogeneity_holds_its_size_and_sees_feedback() -> None:
    assert rate(lambda rng: exogeneity_f(whole(exact(rng, 0.0)), 4, 300)) == NOMINAL
    assert rate(lambda rng: exogeneity_f(whole(exact(rng, 0.5)), 4, 300), 50) > 0.9

    def fair(rng: np.random.Generator, feedback: float) -> HypothesisTest:
        part = exact(rng, feedback, uneven=True)
        return exogeneity_robust([part], whole(part), 4)

    assert rate(lambda rng: fair(rng, 0.0)) <= 0.07
    assert rate(lambda rng: exogeneity_f(whole(exact(rng, 0.0, uneven=True)), 4, 300)) > 0.1
    assert rate(lambda rng: fair(rng, 1.5), 50) > 0.9


def test_columns_without_noise_are_left_out() -> None:
    """A measured column equal to its instrument says nothing about exogeneity and is a valid instrument."""
    part = rows(np.random.default_rng(1))
    X = part.X.copy()
    X[:, 2] = part.Z[:, 2]
    part = segment(part.Z, X, part.y)
    assert exogeneity_f(whole(part), 4, 300).distribution == "F(3, 293)"
    assert exogeneity_robust([part], whole(part), 4).distribution.startswith("F(3,")
    for test in (robust(part), validity_f(whole(part), 4, 300)):
        assert test.details[2].p_value == 1.0
    with expect_error(NotApplicable):
        exogeneity_f(np.column_stack([part.Z, part.Z, part.y]), 4, 300)


def paired_arm(missed: float = 0.0) -> tuple[Paired, np.ndarray]:
    base = base_of(arm())
    rng = np.random.default_rng(4)
    noise = np.array([1.0, 2.0, 0.5])
    blocks = []
    for start in (0, 200):
        for k in range(3):
            Z = smooth(rng, 200, base.count)
            Z[:, : 3 * k] = 0.0
            X = np.where(Z != 0, (1 + missed) * Z + 0.1 * (1 + k) * rng.normal(size=Z.shape), 0.0)
            y = X @ np.ones(base.count) + noise[k] * rng.normal(size=200)
            blocks.append(PairedBlock(k, Z, X, y, 7 * np.arange(start, start + 200)))
    factors = tuple(
        fold(np.vstack([np.column_stack([b.Z, b.X, b.y]) for b in blocks if b.channel == k])) for k in range(3)
    )
    return Paired(base, factors, (400,) * 3, lambda: iter(blocks)), noise


def test_paired_rows_go_through_all_joints_of_a_sample() -> None:
    """Streamed blocks give what all rows at once give, and name the columns by their base parameters."""
    paired, noise = paired_arm()
    everything = list(paired.blocks())
    part = Segment(
        np.vstack([b.Z / noise[b.channel] for b in everything]),
        np.vstack([b.X / noise[b.channel] for b in everything]),
        np.concatenate([b.y / noise[b.channel] for b in everything]),
        np.concatenate([b.index for b in everything]),
    )
    test = instrument_test(paired, noise, correlated_samples=1)
    reference = robust(part)
    np.testing.assert_allclose([d.statistic for d in test.details], [d.statistic for d in reference.details], rtol=1e-6)
    assert tuple(d.name for d in test.details) == paired.base.names
    assert not test.rejected and not exogeneity_test(paired, noise).rejected
    assert instrument_test(paired_arm(missed=0.05)[0], noise).rejected


def test_hausman_matches_its_formula_and_holds_its_size() -> None:
    """One parameter: the square of the difference over the difference of the variances."""
    test = hausman([1.5], [[0.5]], [1.0], [[0.25]])
    assert test.statistic == pytest.approx(1.0) and test.distribution == "chi2(1)"

    def estimators(rng: np.random.Generator, feedback: float) -> HypothesisTest:
        part = exact(rng, feedback)
        efficient = np.linalg.inv(part.X.T @ part.X)
        projected = part.Z @ np.linalg.lstsq(part.Z, part.X, rcond=None)[0]
        consistent = np.linalg.inv(projected.T @ projected)
        return hausman(consistent @ projected.T @ part.y, consistent, efficient @ part.X.T @ part.y, efficient)

    assert rate(lambda rng: estimators(rng, 0.0)) == NOMINAL
    assert rate(lambda rng: estimators(rng, 0.5), 50) > 0.9


def test_hausman_of_two_estimates() -> None:
    """Plain and weighted least squares of good data agree; estimates of different robots cannot be compared."""
    robot = arm()
    recording = record(robot, noise=0.3)
    first, second = (dynid.identify(robot, recording, method, signals=EXACT) for method in ("ols", "wls"))
    test = hausman_test(replace(first, covariance=4 * first.covariance), second)
    assert not test.rejected and test.distribution == f"chi2({first.base.count})"
    with expect_error(Mismatch):
        hausman_test(first, dynid.identify(robot.without("off_*"), recording, "wls", signals=EXACT))


def test_hausman_says_where_the_difference_is_not_semidefinite() -> None:
    test = hausman([1.0, 5.0], np.diag([1.0, 1.0]), [0.0, 0.0], np.diag([0.5, 2.0]))
    assert test.distribution == "chi2(1)" and test.statistic == pytest.approx(2.0)
    assert "not positive semidefinite: in 1 of 2" in test.notes[0] and test.notes[0] in test.summary()
    scaled = hausman([1e6, 5.0], np.diag([1e12, 1.0]), [0.0, 0.0], np.diag([0.5e12, 2.0]))
    assert scaled.statistic == pytest.approx(2.0)


def over(rng: np.random.Generator, bad: float = 0.0, uneven: bool = False) -> Segment:
    """Two columns, four instruments; with `bad` the last one is correlated with the error."""
    Z = smooth(rng, 400)
    e = rng.normal(size=400) * (0.3 + np.abs(Z[:, 3]) if uneven else 1.0) + bad * Z[:, 3]
    X = Z[:, :2] + Z[:, 2:] + rng.normal(size=(400, 2)) + 0.3 * e[:, None]
    return segment(Z, X, X @ BETA[:2] + e)


def test_sargan_is_rows_times_r_squared_and_holds_its_size() -> None:
    import statsmodels.api as sm
    from statsmodels.sandbox.regression.gmm import IV2SLS

    part = over(np.random.default_rng(0), bad=0.05)
    residual = IV2SLS(part.y, part.X, part.Z).fit().resid
    r2 = 1 - sm.OLS(residual, part.Z).fit().ssr / float(residual @ residual)
    assert sargan(whole(part), 4, 400).statistic == pytest.approx(400 * r2, rel=1e-8)
    assert rate(lambda rng: sargan(whole(over(rng)), 4, 400)) == NOMINAL
    assert rate(lambda rng: sargan(whole(over(rng, 0.3)), 4, 400), 50) > 0.9


def test_hansen_is_statsmodels_two_step_j_and_holds_its_size_with_uneven_noise() -> None:
    from statsmodels.sandbox.regression.gmm import IVGMM

    part = over(np.random.default_rng(0), bad=0.05)
    reference = IVGMM(part.y, part.X, part.Z).fit(
        start_params=np.zeros(2), maxiter=2, inv_weights=part.Z.T @ part.Z / 400, optim_args={"disp": 0, "gtol": 1e-9}
    )
    # statsmodels minimises where we solve, and takes the covariance about the mean.
    assert hansen(part).statistic == pytest.approx(float(reference.jtest()[0]), rel=0.05)
    assert rate(lambda rng: hansen(over(rng, uneven=True))) == NOMINAL
    assert rate(lambda rng: sargan(whole(over(rng, uneven=True)), 4, 400)) > 0.1
    assert rate(lambda rng: hansen(over(rng, 1.0, uneven=True)), 50) > 0.9


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda p: validity_f(whole(p), 8, 300), (TooFew, "instruments")),
        (lambda p: validity_f(whole(p)[:, 3:], 1, 300), (TooFew, "instruments")),
        (lambda p: validity_f(whole(p), 4, 300, ["a"]), (InvalidShape, "names")),
        (lambda p: validity_f(whole(p), 4, 4), (TooFew, "")),
        (lambda p: validity_f(np.full((20, 9), np.nan), 4, 300), (NotFinite, "")),
        (lambda p: validity_f(whole(p)[:3], 4, 300), (TooFew, "")),
        (lambda p: validity_f(np.ones((20, 9)), 4, 300), (NotIdentifiable, "")),
        (lambda p: sargan(whole(p), 4, 300), (TooFew, "instruments")),
        (lambda p: robust(p, 0), (InvalidValue, "correlated_samples")),
        (lambda p: robust(Segment(p.Z[:9], p.X[:9], p.y[:9], p.index[:9] * 0)), (TooFew, "")),
        (lambda p: segment(p.Z, p.X[:5], p.y), (InvalidShape, "")),
        (lambda p: segment(p.Z, p.X, p.y, np.zeros(3, int)), (InvalidShape, "index")),
        (lambda p: instrument_test(paired_arm()[0], [1.0]), (InvalidValue, "noise")),
        (lambda p: hausman([1.0], [[0.0]], [1.0], [[0.0]]), (InvalidValue, "covariance")),
        (lambda p: hausman([1.0], [[1.0]], [1.0], [[2.0]]), (NotApplicable, "")),
        (lambda p: hausman([1.0, 2.0], [[1.0]], [1.0], [[2.0]]), (InvalidShape, "covariance")),
    ],
)
def test_bad_input_is_named(call: Callable[[Segment], object], error: Error) -> None:
    with expect_error(*error):
        call(rows(np.random.default_rng(0)))
