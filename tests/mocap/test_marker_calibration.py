"""Marker positions on segments from a static trial or from a motion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.errors import InvalidShape, InvalidValue, MissingData
from tests.support.capture_files import puppet, puppet_markers, puppet_motion, seen_markers
from tests.support.errors import expect_error


def test_a_known_pose_gives_the_positions() -> None:
    """Means in the frames of the links, gaps left out; a millimetre of noise over 100 frames averages to a tenth."""
    rng = np.random.default_rng(0)
    robot = puppet()
    q = np.repeat(puppet_motion(rng, robot, 1), 100, axis=0)
    truth = puppet_markers(rng)
    capture = seen_markers(robot, q, truth)
    capture = replace(capture, positions=capture.positions + 1e-3 * rng.normal(size=capture.positions.shape))
    capture.positions[:30, 4] = np.nan
    guess = {name: (frame, np.zeros(3)) for name, (frame, _) in truth.items()}
    found = dynid.mocap.calibrate_markers(robot, capture, guess, q=q[0])
    for name, (frame, offset) in truth.items():
        assert found.attachments[name][0] == frame
        np.testing.assert_allclose(found.attachments[name][1], offset, atol=6e-4)
    assert found.rms == pytest.approx(1e-3 * np.sqrt(3), rel=0.05)


@pytest.mark.slow
def test_a_motion_corrects_a_guess() -> None:
    """Positions that are off by two centimetres are found from a motion; poses come out better for it."""
    rng = np.random.default_rng(1)
    robot = puppet()
    q = puppet_motion(rng, robot, 200)
    truth = puppet_markers(rng, 4)
    capture = seen_markers(robot, q, truth)
    capture = replace(capture, positions=capture.positions + 1e-3 * rng.normal(size=capture.positions.shape))
    off = {name: 0.02 * rng.normal(size=3) for name in truth}
    guess = {name: (frame, x + off[name]) for name, (frame, x) in truth.items()}
    found = dynid.mocap.calibrate_markers(robot, capture, guess, prior_std=0.02, frames=60)
    assert found.converged

    def wrong(attachments: dict) -> float:
        """Distances between markers of a segment do not depend on where its frame is said to be."""
        worst = [
            np.linalg.norm(attachments[a][1] - attachments[b][1]) - np.linalg.norm(truth[a][1] - truth[b][1])
            for a in truth
            for b in truth
            if truth[a][0] == truth[b][0]
        ]
        return float(np.sqrt(np.mean(np.square(worst))))

    # 60 frames of a millimetre leave about 0.2 mm on a distance.
    assert wrong(found.attachments) < 5e-4 < 0.1 * wrong(guess)
    before = dynid.mocap.inverse_kinematics(robot, capture, guess)
    after = dynid.mocap.inverse_kinematics(robot, capture, found.attachments)
    assert after.noise < 1.1e-3 < 5e-3 < before.noise
    error = [np.sqrt(np.mean(np.var(x.q[:, 7:] - q[:, 7:], axis=0))) for x in (before, after)]
    assert error[1] < 0.3 * error[0]


def test_markers_that_are_certain_stay() -> None:
    """A spread of zero keeps a marker where it is; the others move."""
    rng = np.random.default_rng(2)
    robot = puppet()
    truth = puppet_markers(rng)
    capture = seen_markers(robot, puppet_motion(rng, robot, 40), truth)
    names = list(truth)
    guess = {n: (f, x if n == names[0] else x + 0.01 * rng.normal(size=3)) for n, (f, x) in truth.items()}
    found = dynid.mocap.calibrate_markers(robot, capture, guess, prior_std={names[0]: 0.0})
    assert found.moved[names[0]] == 0.0 and found.moved[names[1]] > 1e-3
    assert found.converged and found.rms < 2e-3


def test_what_cannot_be_calibrated_says_why() -> None:
    """Unseen markers, poses of the wrong length, negative spreads."""
    rng = np.random.default_rng(3)
    robot = puppet()
    truth = puppet_markers(rng)
    capture = seen_markers(robot, puppet_motion(rng, robot, 5), truth)
    hidden = capture.positions.copy()
    hidden[:, 2] = np.nan
    with expect_error(MissingData):
        dynid.mocap.calibrate_markers(robot, replace(capture, positions=hidden), truth)
    with expect_error(InvalidShape):
        dynid.mocap.calibrate_markers(robot, capture, truth, q=np.zeros(3))
    with expect_error(InvalidValue, "prior_std"):
        dynid.mocap.calibrate_markers(robot, capture, truth, prior_std=-1.0)
    with expect_error(InvalidValue, "noise"):
        dynid.mocap.calibrate_markers(robot, capture, truth, noise=0.0)
