"""Recordings of the demonstration, for any robot and duration."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.identification import observe


@pytest.mark.parametrize("seed", [0, 1])
def test_a_short_motion_skips_candidates_in_which_a_joint_moves_in_one_direction_only(seed: int) -> None:
    """Within 5 s of a period of 20 s some candidates never reverse a joint: a friction column of these is zero."""
    robot = dynid.load_robot("twolink")
    recording = synthetic_recording(robot, seed, duration=5.0)
    run = recording.runs[0]
    assert run.t[-1] == pytest.approx(5.0, abs=2e-3) and np.all(np.isfinite(run.q))
    factors = np.vstack([factor[:, :-1] for factor in observe(robot, recording).factors])
    assert np.all(np.linalg.norm(factors, axis=0) > 0)
    assert np.linalg.matrix_rank(factors) == dynid.base_parameters(robot).count
