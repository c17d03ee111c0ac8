"""Which rows the search for causes looks at."""

from __future__ import annotations

import numpy as np

from dynid.assessment.causes.cause_rows import away_from_reversals
from dynid.signals.settings import Motion


def test_a_joint_that_reverses_all_the_time_keeps_its_fast_rows() -> None:
    """The reversals of a slow joint are left out with their neighbours; of a fast one nothing would be left."""
    t = np.arange(2000) / 1000.0
    v = np.column_stack([np.sin(2 * np.pi * f * t) for f in (1.0, 40.0)])
    motion = Motion(
        t, -np.cumsum(v, axis=0) / 1000, v, np.gradient(v, t, axis=0), None, 1000.0, None, (5,), "run", np.zeros(2)
    )
    (kept,) = away_from_reversals([motion])
    slow, fast = (np.abs(v) > 0.05).T
    assert 0.8 < kept[:, 0].sum() / slow.sum() < 1.0
    assert np.array_equal(kept[:, 1], fast)
    turn = int(np.argmin(np.abs(t - 0.5)))
    assert not kept[turn - 10 : turn + 10, 0].any()
