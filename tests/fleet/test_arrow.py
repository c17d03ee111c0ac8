"""Arrow-shaped least squares against one dense problem."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.fleet.arrow import solve_arrow

Array = NDArray[np.float64]

SHARED, OWN, DATED = np.array([0, 3]), np.array([1, 4]), np.array([2])
UNITS = [0, 0, 1, 1, 2]


def problem(seed: int = 0) -> tuple[list[Array], list[Array]]:
    """Rows and targets of five entries of three units."""
    random = np.random.default_rng(seed)
    rows = [random.normal(size=(9, 5)) for _ in UNITS]
    return rows, [random.normal(size=9) for _ in UNITS]


def dense(rows: list[Array], targets: list[Array]) -> tuple[Array, Array]:
    """Values and standard deviations (entry, 5) from the whole matrix with a block of columns for each level."""
    place = []
    for k, unit in enumerate(UNITS):
        names = {0: "s0", 3: "s3", 1: f"u1-{unit}", 4: f"u4-{unit}", 2: f"d2-{k}"}
        place.append([names[j] for j in range(5)])
    every = sorted({n for names in place for n in names})
    A = np.zeros((sum(len(r) for r in rows), len(every)))
    start = 0
    for r, names in zip(rows, place, strict=True):
        A[start : start + len(r), [every.index(n) for n in names]] = r
        start += len(r)
    x = np.linalg.lstsq(A, np.concatenate(targets), rcond=None)[0]
    std = np.sqrt(np.diag(np.linalg.inv(A.T @ A)))
    index = [[every.index(n) for n in names] for names in place]
    return x[index], std[index]


def test_values_and_standard_deviations_are_those_of_the_dense_problem() -> None:
    rows, targets = problem()
    found = solve_arrow(rows, targets, UNITS, SHARED, OWN, DATED)
    values, std = dense(rows, targets)
    np.testing.assert_allclose(found.values, values, rtol=1e-9)
    np.testing.assert_allclose(found.std, std, rtol=1e-9)
    np.testing.assert_allclose(found.shared, values[0, SHARED], rtol=1e-9)


def test_a_unit_without_a_channel_takes_part_with_the_rest() -> None:
    """Its own parameter of that channel is unknown; everything else is that of the dense problem without it."""
    rows, targets = problem(1)
    for k in (2, 3):  # both entries of unit 1 are without column 4
        rows[k][:, 4] = 0.0
    found = solve_arrow(rows, targets, UNITS, SHARED, OWN, DATED)
    assert np.all(np.isnan(found.values[2:4, 4])) and np.all(np.isinf(found.std[2:4, 4]))
    whole = np.delete(np.hstack([found.values, found.std]), [2, 3], axis=0)
    assert np.all(np.isfinite(whole))
    # The unknown of the empty column does not matter: with any rows for it alone, the others stay.
    for k in (2, 3):
        rows[k] = np.vstack([rows[k], [0, 0, 0, 0, 1.0]])
        targets[k] = np.append(targets[k], 7.0)
    values, _ = dense(rows, targets)
    values[2:4, 4] = np.nan
    np.testing.assert_allclose(found.values, values, rtol=1e-9)
