"""Change detection: false alarms stay below the stated rate, changes are found where they are."""

from __future__ import annotations

import numpy as np

from dynid.online.change import Change, ChangeDetector

PRIOR = np.array([100.0, 30.0])


def stream(rng: np.random.Generator, rows: int, steps: dict[int, np.ndarray]) -> list[tuple[np.ndarray, np.ndarray]]:
    """Whitened rows of three channels whose two parameters change at some instants."""
    x = np.zeros(2)
    out = []
    for k in range(rows):
        x = x + steps.get(k, 0.0)
        X = rng.normal(size=(3, 2))
        out.append((X, X @ x + rng.normal(size=3)))
    return out


def first(detector: ChangeDetector, rows: list[tuple[np.ndarray, np.ndarray]]) -> tuple[int, Change] | None:
    for k, row in enumerate(rows):
        change = detector.add(*row)
        if change is not None:
            return k, change
    return None


def test_a_change_is_found_with_its_time_and_the_parameters_before() -> None:
    rng = np.random.default_rng(0)
    rows = stream(rng, 300, {0: np.array([1.0, -2.0]), 200: np.array([3.0, 0.0])})
    found = first(ChangeDetector(PRIOR, window=20, level=1e-8), rows)
    assert found is not None
    at, change = found
    assert 200 <= at <= 210 and abs(at - change.rows + 1 - 200) <= 1
    assert np.all(np.abs(change.before - [1.0, -2.0]) < 4 * np.sqrt(np.diag(change.covariance)))


def test_false_alarms_stay_below_their_rate() -> None:
    """By Bonferroni's inequality at most level times tests; not far below, or nothing would ever be found."""
    rng = np.random.default_rng(1)
    level, window, rows, alarms = 1e-3, 10, 4000, 0
    detector = ChangeDetector(PRIOR, window=window, level=level)
    zero = np.zeros((2, 2)), np.zeros(2)
    for row in stream(rng, rows, {}):
        if detector.add(*row) is not None:
            alarms += 1
            detector.restart(*zero)
    bound = level * rows * window
    assert 0.02 * bound < alarms <= bound + 3 * np.sqrt(bound)


def test_rows_of_one_direction_are_no_singular_matrix() -> None:
    """A joint that moves slowly repeats nearly the same row: the suffixes show one combination of the parameters."""
    rng = np.random.default_rng(0)
    for seed in range(20):
        direction = np.random.default_rng(seed).normal(size=(1, 4)) * 10.0 ** (seed % 5)
        detector = ChangeDetector(np.array([10.0, 5.0, 5.0, 5.0]), window=8, level=1e-6)
        for _ in range(30):
            assert detector.add(direction, rng.normal(size=1)) is None
        changes = [detector.add(direction, rng.normal(size=1) + 30.0) for _ in range(4)]
        assert any(c is not None for c in changes)
