"""Identification of robots with closed loops that MuJoCo moves, with known truth and unmeasured passive joints."""

import numpy as np
import pytest

import dynid
from dynid import Recording, Run
from tests.support.linkages import leg, stuck, swung_by_mujoco

RATE, NOISE = 500, 0.01  # Hz; standard deviation of the torque sensors relative to the torques
COUNT = 2 * np.pi / 2**19  # rad, of the encoders


def _recorded(robot, q, torque, seed):
    noise = NOISE * torque.std(axis=0) * np.random.default_rng(seed).normal(size=torque.shape)
    run = Run(np.arange(len(q)) / RATE, COUNT * np.round(q / COUNT), torque=torque + noise)
    return Recording(robot.coordinates, (run,))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "amplitude"),
    [
        (lambda: dynid.load_robot("palletizer"), [2.0, 0.9, 0.8, 2.5]),
        (leg, [1.2, 0.7, 1.0, 1.0, 1.0, 0.7, 1.0]),
    ],
    ids=["palletizer", "leg"],
)
def test_known_truth(make, amplitude, tmp_path):
    pytest.importorskip("mujoco")
    robot = make().with_smooth_coulomb(100.0)
    seen, unseen = (swung_by_mujoco(robot, tmp_path, np.array(amplitude), 12.0, seed, RATE) for seed in (1, 2))
    recording = _recorded(robot, seen[0], seen[2], 0)
    assert recording.joints == robot.coordinates  # passive joints are not measured
    wls = dynid.identify(robot, recording, method="wls")
    truth = wls.base.values(robot.parameters)
    apart = np.abs(wls.beta - truth) / wls.std
    assert np.mean(apart < 3) > 0.97
    assert np.mean(apart < 1) > 0.6
    feasible = dynid.identify(robot, recording, method="feasible")
    q, v, torque = unseen
    a = np.gradient(v, 1 / RATE, axis=0)
    for estimate in (wls, feasible):
        rest = dynid.inverse_dynamics(robot, q, v, a, estimate.parameters)[5:-5] - torque[5:-5]
        assert np.all(np.linalg.norm(rest, axis=0) < 0.01 * np.linalg.norm(torque[5:-5], axis=0))


def _moved(seconds=6.0, seed=0):
    """A four-bar linkage whose crank turns to and fro, and the recording of its crank alone."""
    robot = dynid.load_robot("fourbar").with_smooth_coulomb(100.0)
    t = np.arange(0, seconds, 1 / RATE)
    w = np.array([1.1, 2.3, 4.1])
    q = (np.sin(np.outer(t, w)) @ [1.2, 0.6, 0.3])[:, None] - 1.0
    v = (np.cos(np.outer(t, w)) @ (w * [1.2, 0.6, 0.3]))[:, None]
    a = -(np.sin(np.outer(t, w)) @ (w**2 * [1.2, 0.6, 0.3]))[:, None]
    return robot, q, dynid.inverse_dynamics(robot, q, v, a)


def test_report_and_files_of_a_linkage(tmp_path):
    robot, q, torque = _moved()
    recording = _recorded(robot, q, torque, 1)
    estimate = dynid.identify(robot, recording, method="feasible")
    assert not any("loop" in f.message.lower() for f in dynid.check(robot, recording) if f.severity == "error")
    dynid.report.write(estimate, tmp_path / "report.html", recording=recording)
    estimate.save(tmp_path / "estimate.json")
    again = dynid.Estimate.load(tmp_path / "estimate.json")
    assert again.robot.passive == robot.passive
    assert np.array_equal(again.parameters, estimate.parameters)


def test_recording_with_a_singular_posture_names_the_sample():
    robot = stuck()
    _, q, torque = _moved()
    with pytest.raises(dynid.DataError, match=r"sample \d+ \(crank [-\d.]+\) .*'coupler_end' and 'rocker_end'"):
        dynid.identify(robot, _recorded(robot, q, torque, 1), method="ols")
