"""Axes of charts: every one has at least two labelled positions."""

from __future__ import annotations

import numpy as np

from dynid.report.charts import ticks


def test_every_axis_has_two_ticks() -> None:
    """A range from -49 to 45 with four ticks had the label 0 alone."""
    rng = np.random.default_rng(0)
    for low, size, count in zip(
        rng.uniform(-50, 50, 500), 10 ** rng.uniform(-3, 3, 500), rng.integers(2, 9, 500), strict=True
    ):
        found = ticks(low, low + size, int(count))
        assert len(found) >= 2 and low - 1e-6 * size <= found[0] and found[-1] <= low + 1.000001 * size
    assert len(ticks(-49.0, 45.0, 4)) >= 2
