"""Tests of residuals: against statsmodels where rows are whole, by Monte Carlo where they are not."""

from __future__ import annotations

import json

import numpy as np
import pytest
import scipy

import dynid
from dynid.assessment.causes.residuals import (
    correlogram,
    homoscedasticity,
    independent_rows,
    normality,
    residual_tests,
    residuals_of,
    whiteness,
)
from dynid.errors import InvalidShape, InvalidValue, NotApplicable, NotFinite, NotIdentifiable, TooFew
from dynid.identification.observation import Observation
from dynid.signals.filters import decimate
from dynid.signals.noise_color import decimated_noise, independent_share
from tests.support.errors import Error, expect_error
from tests.support.synthetic import arm, record

DRAWS = 400
# Three deviations of a rate of 0.05 over 400 draws.
NOMINAL = pytest.approx(0.05, abs=0.033)


def rate(test, draws: int = DRAWS) -> float:  # type: ignore[no-untyped-def]
    return float(np.mean([test(np.random.default_rng(seed)).rejected for seed in range(draws)]))


def coloured(rng: np.random.Generator, rows: int, correlation: float) -> np.ndarray:
    return np.asarray(scipy.signal.lfilter([1.0], [1.0, -correlation], rng.normal(size=rows + 200))[200:])


def test_whole_rows_agree_with_statsmodels() -> None:
    from statsmodels.stats.diagnostic import acorr_ljungbox
    from statsmodels.tsa.stattools import acf, pacf

    e = coloured(np.random.default_rng(0), 300, 0.3)
    page = correlogram(e, lags=12)
    np.testing.assert_allclose(page.autocorrelation, acf(e, nlags=12, adjusted=True)[1:], atol=1e-12)
    np.testing.assert_allclose(page.partial, pacf(e, nlags=12, method="ld")[1:], atol=1e-12)
    # The pair means differ from Ljung and Box's sums by (N - k) / N squared; their weights make up for it once.
    pairs = 300 - np.arange(1, 13)
    expected = 300 * 302 * np.sum((acf(e, nlags=12)[1:]) ** 2 / pairs)
    assert acorr_ljungbox(e, lags=[12])["lb_stat"].iloc[0] == pytest.approx(expected)
    assert whiteness(e, lags=12).statistic == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(page.limits, 1.96 / np.sqrt(pairs), rtol=1e-4)


def test_gaps_pair_only_rows_that_are_apart_by_that_many_steps() -> None:
    """An alternating residual has correlations of -1 and 1, also where an odd number of rows was dropped."""
    index = 5 * np.arange(400)
    e = (-1.0) ** np.arange(400)
    keep = np.ones(400, dtype=bool)
    keep[50:63] = keep[100:101] = keep[200:277] = False
    page = correlogram(e[keep], index[keep], lags=4, decimated=False)
    # The mean of what is left is 1/300 or so, which the correlations feel.
    np.testing.assert_allclose(page.autocorrelation, [-1, 1, -1, 1], atol=1e-3)
    assert page.pairs[0] == keep[1:] @ keep[:-1].astype(int)
    naive = correlogram(e[keep], lags=4)
    assert naive.autocorrelation[0] > -0.99


def test_runs_that_begin_anew_or_off_the_step_are_not_paired() -> None:
    """Sample numbers that fall, or that miss the grid of the decimation, begin another run."""
    run = 4 * np.arange(30)
    e = np.random.default_rng(1).normal(size=60)
    for second in (run, run + 4 * 29 + 3):
        page = correlogram(e, np.concatenate([run, second]), lags=3)
        np.testing.assert_array_equal(page.pairs, [58, 56, 54])


def test_whiteness_with_gaps_holds_its_size_and_sees_autocorrelation() -> None:
    keep = np.random.default_rng(7).random(500) > 0.4
    index = np.flatnonzero(keep)
    assert rate(lambda rng: whiteness(rng.normal(size=500)[keep], index, lags=10)) == NOMINAL
    assert rate(lambda rng: whiteness(coloured(rng, 500, 0.4)[keep], index, lags=10), 50) > 0.9


def test_decimated_noise_is_white_noise_to_the_test() -> None:
    """Plain Ljung-Box takes the decimation filter for autocorrelation of the residual; here it is expected."""

    def noise(rng: np.random.Generator) -> np.ndarray:
        return decimate(rng.normal(size=(4000, 1)), (2, 5))[:, 0]

    index = 10 * np.arange(400)
    assert rate(lambda rng: whiteness(noise(rng), index)) == NOMINAL
    assert rate(lambda rng: whiteness(noise(rng), index, decimated=False), 50) > 0.9
    assert rate(lambda rng: whiteness(coloured(rng, 400, 0.4), index), 50) > 0.9


def test_expected_colour_is_that_of_simulated_noise() -> None:
    x = decimate(np.random.default_rng(0).normal(size=(400_000, 1)), (10,))[:, 0]
    page = correlogram(x, lags=8, decimated=True)
    # Deviation of a correlation over 40,000 rows is about 0.006.
    np.testing.assert_allclose(page.autocorrelation, decimated_noise()[1:9], atol=0.02)
    means = x.reshape(-1, 200).mean(axis=1)
    assert np.var(x) / (200 * np.var(means)) == pytest.approx(independent_share(), abs=0.2)


def test_normality_holds_its_size_and_sees_outliers() -> None:
    assert rate(lambda rng: normality(rng.normal(size=1500))) == NOMINAL
    assert rate(lambda rng: normality(rng.standard_t(4, size=500)), 50) > 0.9
    e = np.random.default_rng(3).normal(size=200)
    assert normality(e).statistic == pytest.approx(scipy.stats.jarque_bera(e).statistic)


def test_constant_spread_holds_its_size_and_sees_load() -> None:
    load = np.linspace(-1, 2, 400)
    assert rate(lambda rng: homoscedasticity(rng.normal(size=400), load)) == NOMINAL
    # The studentised form keeps its size where normality fails.
    assert rate(lambda rng: homoscedasticity(rng.laplace(size=400), load)) == NOMINAL
    assert rate(lambda rng: homoscedasticity(rng.normal(size=400) * (1 + load**2), load**2), 50) > 0.9


def simple() -> tuple[Observation, np.ndarray]:
    robot = arm()
    observation = dynid.identification.observe(
        robot, record(robot, (0, 1), noise=0.3), signals=dynid.Signals(cutoff=20.0, decimate=())
    )
    return observation, dynid.identify(robot, observation, "wls").beta


def test_residuals_of_an_observation_are_its_rows_over_their_noise() -> None:
    observation, beta = simple()
    rows = residuals_of(observation, beta)
    assert rows.channels == observation.base.channels
    assert tuple(map(len, rows.values)) == observation.rows
    np.testing.assert_allclose([np.std(e) for e in rows.values], 1.0, atol=0.05)
    wide = residuals_of(observation, beta, np.full(3, 10.0))
    np.testing.assert_allclose(
        [10 * np.linalg.norm(e) for e in wide.values], observation.residual_norms(beta), rtol=1e-10
    )


def test_good_model_passes_and_a_missing_term_is_seen() -> None:
    observation, beta = simple()
    tests = residual_tests(observation, beta)
    assert not tests.whiteness.rejected and not tests.normality.rejected and not tests.homoscedasticity.rejected
    assert set(tests.correlograms) == set(observation.base.channels)
    assert json.dumps(tests.to_dict()) and "Breusch-Pagan" in tests.summary()
    wrong = beta.copy()
    wrong[observation.base.names.index("fv_joint2")] = 0.0
    bad = residual_tests(observation, wrong)
    assert bad.whiteness.rejected_names == ("joint2",)
    assert bad.correlograms["joint2"].outside and bad.correlograms["joint2"].partial_outside


def test_independent_rows_know_of_decimation() -> None:
    observation, _ = simple()
    assert independent_rows(observation) == observation.total_rows
    robot = arm()
    thinned = dynid.identification.observe(
        robot, record(robot, (0,), noise=0.1), signals=dynid.Signals(cutoff=None, decimate=(5,))
    )
    assert independent_rows(thinned) == pytest.approx(0.85 * thinned.total_rows, rel=0.01)


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda: whiteness(np.zeros((5, 2))), (InvalidShape, "residual")),
        (lambda: whiteness(np.full(20, 3.0)), (NotApplicable, "residual")),
        (lambda: whiteness(np.r_[np.arange(20.0), np.nan]), (NotFinite, "residual")),
        (lambda: correlogram(np.arange(20.0), lags=30), (TooFew, "lags")),
        (lambda: correlogram(np.arange(20.0), np.arange(19)), (InvalidShape, "index")),
        (lambda: correlogram(np.arange(20.0), np.r_[np.arange(18), 100, 200][::-1].copy(), lags=19), (TooFew, "lags")),
        (lambda: homoscedasticity(np.arange(20.0), np.ones(20)), (NotIdentifiable, "columns")),
        (lambda: homoscedasticity(np.arange(20.0), np.ones(19)), (InvalidShape, "columns")),
        (lambda: residuals_of(simple()[0], np.zeros(2)), (InvalidShape, "beta")),
        (lambda: residuals_of(simple()[0], simple()[1], [1.0]), (InvalidValue, "noise")),
    ],
)
def test_bad_input_is_named(call, error: Error) -> None:  # type: ignore[no-untyped-def]
    with expect_error(*error):
        call()
