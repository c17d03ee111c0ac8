"""Steps and drift of a series: against an independent regression, and the rate of false alarms under the null."""

from __future__ import annotations

import numpy as np
import pytest
import statsmodels.api as sm

from dynid.fleet.scatter import Track, variation_of
from dynid.fleet.series import Series, fit_line, robust_variance, segments_of, strongest

DAYS = np.array([0.0, 7.0, 14.0, 25.0, 30.0, 41.0, 50.0, 52.0])


def series(seed: int, change: np.ndarray | float = 0.0) -> Series:
    random = np.random.default_rng(seed)
    std = random.uniform(0.5, 2.0, len(DAYS))
    warm = random.normal(size=len(DAYS))
    values = 3.0 + 0.4 * warm + std * random.normal(size=len(DAYS)) + change
    return Series(DAYS, values, np.diag(std**2), warm[:, None])


def test_the_statistic_is_that_of_a_weighted_regression() -> None:
    one = series(0)
    found = strongest(one, np.inf)
    assert found is not None
    z = {}
    for k in range(1, len(DAYS)):
        z["step", k] = (DAYS[k] <= DAYS).astype(float)
    for k in range(len(DAYS) - 2):
        ramp = np.maximum(DAYS - DAYS[k], 0.0)
        z["drift", k] = ramp / ramp[-1]
    best = (0.0, ("", 0), 0.0)
    for key, column in z.items():
        design = np.column_stack([np.ones(len(DAYS)), one.nuisance, column])
        fit = sm.WLS(one.values, design, weights=1.0 / np.diag(one.covariance)).fit(cov_type="fixed scale")
        best = max(best, (abs(float(fit.tvalues[-1])), key, float(fit.params[-1])))
    assert (found.statistic, found.change) == (pytest.approx(best[0]), pytest.approx(best[2]))
    assert (("drift" if found.drifts else "step"), found.at) == best[1]
    line = fit_line(one)
    design = np.column_stack([np.ones(len(DAYS)), one.nuisance, DAYS])
    fit = sm.WLS(one.values, design, weights=1.0 / np.diag(one.covariance)).fit(cov_type="fixed scale")
    assert line is not None and line.slope == pytest.approx(fit.params[-1])


def test_false_alarms_stay_below_the_stated_rate() -> None:
    """The bound holds and is not void: between a fifth of the rate and the rate."""
    found = [strongest(series(seed), np.inf) for seed in range(600)]
    alarms = np.mean([f is not None and f.p_value < 0.1 for f in found])
    assert 0.02 < alarms <= 0.1


def test_two_steps_are_measured_between_each_other() -> None:
    change = np.where((DAYS >= 14) & (DAYS < 41), 40.0, 0.0)
    found = segments_of(series(1, change), 1e-3, np.inf)
    assert [f.at for f in found] == [2, 5] and not any(f.drifts for f in found)
    assert abs(found[0].change - 40.0) < 4 * found[0].std and abs(found[1].change + 40.0) < 4 * found[1].std


def test_a_drift_starts_where_it_starts() -> None:
    found = segments_of(series(2, 2.0 * np.maximum(DAYS - 14.0, 0.0)), 1e-3, np.inf)
    assert len(found) == 1 and found[0].drifts and found[0].at == 2
    assert abs(found[0].change - 76.0) < 4 * found[0].std


def test_scatter_is_found_whatever_a_few_units_do() -> None:
    random = np.random.default_rng(3)
    d = 1.5 * random.normal(size=800)
    assert robust_variance(d, np.ones(800)) == pytest.approx(1.25, rel=0.15)
    d[:4] += 50.0
    assert robust_variance(d, np.ones(800)) == pytest.approx(1.25, rel=0.25)
    assert robust_variance(0.5 * random.normal(size=800), np.ones(800)) == 0.0


def test_temperature_is_separated_from_wear() -> None:
    """Units with slopes of their own: mean, variation and scatter come out, and warm days are no change."""
    random = np.random.default_rng(5)
    tracks = []
    for _ in range(60):
        warm = 20.0 + 8.0 * np.sin(np.arange(8) + random.uniform(0, 6)) + random.normal(size=8)
        slope = -0.3 + 0.06 * random.normal()
        values = 10.0 + slope * warm + np.hypot(0.2, 0.3) * random.normal(size=8)
        tracks.append(Track(DAYS, values, np.full(8, 0.2**2), warm))
    found = variation_of(tracks)
    assert found.temperature is not None
    assert found.temperature.slope == pytest.approx(-0.3, abs=4 * found.temperature.std)
    assert found.temperature.between == pytest.approx(0.06, rel=0.4)
    assert np.sqrt(found.scatter) == pytest.approx(0.3, rel=0.2)
    alarms = sum(bool(segments_of(found.series(t), 0.05 / len(tracks), found.freedom)) for t in tracks)
    assert alarms == 0
    worn = Track(DAYS, tracks[0].values + np.where(DAYS > 20, 4.0, 0.0), tracks[0].variances, tracks[0].temperature)
    assert [f.at for f in segments_of(found.series(worn), 0.05 / len(tracks), found.freedom)] == [3]


def test_few_units_have_slopes_of_their_own() -> None:
    random = np.random.default_rng(6)
    warm = 20.0 + 5.0 * random.normal(size=8)
    found = variation_of([Track(DAYS, 2.0 - 0.5 * warm + 0.1 * random.normal(size=8), np.full(8, 0.01), warm)])
    assert found.temperature is not None and np.isinf(found.temperature.between)
    assert found.series(Track(DAYS, warm, np.full(8, 0.01), warm)).nuisance.shape == (8, 1)
