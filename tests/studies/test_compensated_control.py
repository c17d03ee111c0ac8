"""Soft arms that stick, ripple and give: the residual halves their errors and does no harm where it was not learned."""

from __future__ import annotations

import numpy as np
import pytest

from studies.reproduce.compensated_control import CompliantArm, figures


@pytest.mark.slow
def test_a_two_link_arm_tracks_better_and_far_away_no_worse() -> None:
    arm = CompliantArm("twolink")
    rigid, both = arm.errors([arm.motion(11)])
    assert np.linalg.norm(both) < 0.5 * np.linalg.norm(rigid)
    rigid, both = arm.errors([arm.motion(31, 0.55, 0.95)])
    assert np.all(both < 1.02 * rigid)


@pytest.mark.slow
def test_every_machine() -> None:
    assert all(figure.ok for figure in figures())
