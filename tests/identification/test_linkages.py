"""Identification of robots with closed loops that MuJoCo moves, with known truth and unmeasured passive joints."""

from itertools import pairwise

import numpy as np
import pytest

import dynid
from dynid import Recording, Run
from dynid.errors import Infeasible
from tests.support.errors import expect_error
from tests.support.linkages import leg, stuck, swung_by_mujoco

RATE, NOISE = 500, 0.01  # Hz; standard deviation of the torque sensors relative to the torques
COUNT = 2 * np.pi / 2**19  # rad, of the encoders


def _recorded(robot, q, torque, seed):
    noise = NOISE * torque.std(axis=0) * np.random.default_rng(seed).normal(size=torque.shape)
    run = Run(np.arange(len(q)) / RATE, COUNT * np.round(q / COUNT), torque=torque + noise)
    return Recording(robot.coordinates, (run,))


# Amplitudes within the limits of the joints: beyond them, parallelograms pass singular postures and fold over.
TRUTHS = {
    "palletizer": (lambda: dynid.load_robot("palletizer"), [2.0, 0.55, 0.55, 2.5]),
    "leg": (leg, [1.2, 0.7, 1.0, 1.0, 1.0, 0.7, 1.0]),
}
RUNS = 10


@pytest.mark.slow
@pytest.mark.parametrize("name", list(TRUTHS))
def test_known_truth(name, tmp_path):
    """Ten motions: base parameters within three deviations at the nominal rate, torques of unseen motion within 1 %."""
    pytest.importorskip("mujoco")
    make, amplitude = TRUTHS[name]
    robot = make().with_smooth_coulomb(100.0)
    moved = [swung_by_mujoco(robot, tmp_path, np.array(amplitude), 12.0, seed, RATE) for seed in range(1, RUNS + 2)]
    apart = {"autocorrelated": [], "white": []}
    errors = {"wls": [], "feasible": []}
    for seed, (seen, unseen) in enumerate(pairwise(moved)):
        recording = _recorded(robot, seen[0], seen[2], seed)
        assert recording.joints == robot.coordinates  # passive joints are not measured
        for noise, values in apart.items():
            wls = dynid.identify(robot, recording, method="wls", noise_model=noise)
            values.append(np.abs(wls.beta - wls.base.values(robot.parameters)) / wls.std)
        q, v, torque = (x[5:-5] for x in unseen)
        a = np.gradient(unseen[1], 1 / RATE, axis=0)[5:-5]
        for estimate in (wls, dynid.identify(robot, recording, method="feasible")):
            rest = dynid.inverse_dynamics(robot, q, v, a, estimate.parameters) - torque
            errors[estimate.method].append(np.max(np.linalg.norm(rest, axis=0) / np.linalg.norm(torque, axis=0)))
    # Nominal: 99.7 %, and 99.3 % where the standard deviations come from twenty blocks (Student's t, 19 degrees of
    # freedom). Of 340 and 930 values, those of one run are correlated.
    assert np.mean(np.array(apart["white"]) < 3) > 0.994 and np.mean(np.array(apart["autocorrelated"]) < 3) > 0.99
    assert np.mean(np.array(apart["white"]) < 1) > 0.6
    assert max(errors["feasible"]) < 0.01
    # One motion of the palletizer excites its crank badly.
    assert np.sort(errors["wls"])[-2] < 0.01 and max(errors["wls"]) < 0.015


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
    with expect_error(Infeasible):
        dynid.identify(robot, _recorded(robot, q, torque, 1), method="ols")
