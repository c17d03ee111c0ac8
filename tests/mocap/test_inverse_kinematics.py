"""Poses from markers: exact without noise, as good as the covariance says with it, the same as a general solver's."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.optimize import least_squares
from scipy.spatial.transform import Rotation

import dynid
from dynid import Robot
from dynid.errors import UnknownName
from dynid.mocap import Capture, Plate
from dynid.mocap.marker_model import MarkerModel, checked_attachments
from dynid.robot import Limits
from tests.support.capture_files import puppet, puppet_markers, puppet_motion, seen_markers
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot

Array = NDArray[np.float64]


def _noisy(capture: Capture, rng: np.random.Generator, noise: float = 1e-3) -> Capture:
    return replace(capture, positions=capture.positions + noise * rng.normal(size=capture.positions.shape))


def _apart(q: Array, truth: Array) -> Array:
    """Differences in the order of velocities: body-frame position and rotation of the base, then joints."""
    turn = Rotation.from_quat(truth[:, 3:7])
    shift = turn.inv().apply(q[:, :3] - truth[:, :3])
    return np.hstack([shift, (turn.inv() * Rotation.from_quat(q[:, 3:7])).as_rotvec(), q[:, 7:] - truth[:, 7:]])


@pytest.mark.parametrize("seed", range(3))
def test_noise_free_markers_give_the_pose_back(seed: int) -> None:
    """From an unknown start, through a whole turn of the base; the quaternion stays unit and does not leap."""
    rng = np.random.default_rng(seed)
    robot = puppet()
    q = puppet_motion(rng, robot, 200)
    attachments = puppet_markers(rng)
    found = dynid.mocap.inverse_kinematics(robot, seen_markers(robot, q, attachments), attachments)
    assert set(found.status) == {"ok"}
    # The tolerance of the last step is 1e-6; Gauss-Newton at a perfect fit ends far below.
    assert np.abs(_apart(found.q, q)).max() < 1e-8
    assert found.residuals.max() < 1e-8
    np.testing.assert_allclose(np.linalg.norm(found.q[:, 3:7], axis=1), 1.0, atol=1e-12)
    assert np.abs(np.diff(found.q[:, 3:7], axis=0)).max() < 0.2


def test_errors_are_what_the_covariance_says() -> None:
    """A millimetre of noise: standardised errors have unit spread, and the noise is found from the residuals."""
    rng = np.random.default_rng(3)
    robot = puppet()
    q = puppet_motion(rng, robot, 400)
    attachments = puppet_markers(rng)
    found = dynid.mocap.inverse_kinematics(robot, _noisy(seen_markers(robot, q, attachments), rng), attachments)
    scores = _apart(found.q, q) / found.std(1e-3)
    # 400 frames of 14 coordinates: the spread of unit scores is known to 1 %.
    assert np.sqrt(np.mean(scores**2)) == pytest.approx(1.0, abs=0.04)
    assert np.mean(np.abs(scores) < 3) > 0.995
    assert found.noise == pytest.approx(1e-3, rel=0.02)
    np.testing.assert_allclose(found.std(), found.std(found.noise))


@pytest.mark.parametrize("missing", [0, 5])
def test_one_frame_agrees_with_a_general_solver(missing: int) -> None:
    """scipy's least squares over the same markers, weights and missing ones, with differences for a Jacobian."""
    rng = np.random.default_rng(4)
    robot = puppet()
    q = puppet_motion(rng, robot, 1)
    attachments = puppet_markers(rng)
    capture = _noisy(seen_markers(robot, q, attachments), rng, 0.01)
    capture.positions[0, rng.permutation(len(attachments))[:missing]] = np.nan
    weights = {name: rng.uniform(0.2, 3.0) for name in attachments}
    found = dynid.mocap.inverse_kinematics(robot, capture, attachments, weights=weights)
    model = MarkerModel(robot, checked_attachments(attachments))
    scale = np.sqrt(list(weights.values()))[:, None]

    def off(step: Array) -> Array:
        return np.nan_to_num(scale * (model.positions(model.moved(found.q[0], step)) - capture.positions[0])).ravel()

    start = np.concatenate([np.full(6, 0.01), np.full(robot.n, 0.05)])
    theirs = least_squares(off, start, xtol=1e-14, ftol=1e-14, gtol=1e-14, jac="3-point")
    # Both minimise the same sum; theirs ends at a step of zero from ours.
    assert np.abs(theirs.x).max() < 1e-5
    assert off(np.zeros(robot.nv)) @ off(np.zeros(robot.nv)) <= 2 * theirs.cost * (1 + 1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_marker_jacobians_of_any_robot(seed: int) -> None:
    """Against central differences along the exponential map: any tree, mimic joints, prismatic joints, either base."""
    rng = np.random.default_rng(seed)
    robot = random_robot(seed, joints=6, base="floating" if seed % 2 else "fixed", mimics=1)
    frames = [link.name for link in robot.links] + [frame.name for frame in robot.frames]
    attachments = {f"m{k}": (name, rng.uniform(-0.3, 0.3, 3)) for k, name in enumerate(frames)}
    model = MarkerModel(robot, checked_attachments(attachments))
    q = rng.uniform(-1, 1, robot.nq)
    if robot.base == "floating":
        q[3:7] /= np.linalg.norm(q[3:7])
    p, jacobian = model.jacobians(q)
    expected = [
        dynid.dynamics.frame_placement(robot, q, name) @ [*offset, 1.0] for name, offset in attachments.values()
    ]
    np.testing.assert_allclose(p, np.array(expected)[:, :3], atol=1e-12)
    for k in range(robot.nv):
        step = 1e-6 * np.eye(robot.nv)[k]
        slope = (model.positions(model.moved(q, step)) - model.positions(model.moved(q, -step))) / 2e-6
        np.testing.assert_allclose(jacobian[:, :, k], slope, atol=1e-7)


def test_joint_limits_hold() -> None:
    """As bounds to the last digit, at the constrained optimum; as soft walls nearly; left out not at all."""
    rng = np.random.default_rng(5)
    free = puppet()
    q = puppet_motion(rng, free, 60)
    q[:, 9] = 0.9 + 0.2 * np.sin(np.linspace(0, 6, 60))
    attachments = puppet_markers(rng)
    capture = _noisy(seen_markers(free, q, attachments), rng)
    robot = free.with_limits({"knee_l": {"position": (-1.0, 0.8)}})
    bound = dynid.mocap.inverse_kinematics(robot, capture, attachments)
    soft = dynid.mocap.inverse_kinematics(robot, capture, attachments, limits="soft")
    loose = dynid.mocap.inverse_kinematics(robot, capture, attachments, limits="none")
    assert bound.q[:, 9].max() == 0.8 and np.all(bound.status == "ok")
    assert 0.8 < soft.q[:, 9].max() < loose.q[:, 9].max()
    assert np.abs((loose.q[:, 9] - q[:, 9]) / loose.std(1e-3)[:, 8]).max() < 5
    worst = int(np.argmax(loose.q[:, 9]))
    model = MarkerModel(robot, checked_attachments(attachments))

    def off(step: Array) -> Array:
        return (model.positions(model.moved(bound.q[worst], step)) - capture.positions[worst]).ravel()

    upper = np.full(robot.nv, np.inf)
    upper[6 + 2] = 0.0
    start = np.full(robot.nv, -0.01)
    theirs = least_squares(off, start, bounds=(-np.inf, upper), xtol=1e-14, ftol=1e-14, gtol=1e-14, jac="3-point")
    assert np.sum(off(np.zeros(robot.nv)) ** 2) <= 2 * theirs.cost * (1 + 1e-6)


def test_missing_markers_and_empty_frames() -> None:
    """Frames go on with what is seen; what nothing tells keeps its value and is said to be undetermined."""
    rng = np.random.default_rng(6)
    robot = puppet()
    q = puppet_motion(rng, robot, 120)
    attachments = puppet_markers(rng)
    capture = seen_markers(robot, q, attachments)
    hidden = capture.positions.copy()
    elbow = [k for k, name in enumerate(attachments) if name.startswith("elbow")]
    hidden[40:50, elbow] = np.nan
    hidden[70:75] = np.nan
    hidden[90:, elbow[0]] = np.nan
    found = dynid.mocap.inverse_kinematics(robot, replace(capture, positions=hidden), attachments)
    assert set(found.status[40:50]) == {"undetermined"} and set(found.status[70:75]) == {"unseen"}
    assert np.all(np.delete(found.status, [*range(40, 50), *range(70, 75)]) == "ok")
    assert found.undetermined()[-1] == "elbow"
    assert np.ptp(found.q[39:50, -1]) < 1e-9
    good = np.delete(np.arange(120), [*range(40, 50), *range(70, 75)])
    assert np.abs(_apart(found.q[good], q[good])).max() < 1e-7
    assert np.isnan(found.residuals[95, elbow[0]]) and "elbow" in found.summary()


def test_a_marker_that_is_off_is_left_out_on_request() -> None:
    """A spike drags the pose along unless `reject` is given."""
    rng = np.random.default_rng(7)
    robot = puppet()
    q = puppet_motion(rng, robot, 30)
    attachments = puppet_markers(rng)
    capture = _noisy(seen_markers(robot, q, attachments), rng)
    capture.positions[10:20, 7] += [0.1, 0.0, 0.05]
    dragged = dynid.mocap.inverse_kinematics(robot, capture, attachments)
    clean = dynid.mocap.inverse_kinematics(robot, capture, attachments, reject=0.02)
    assert np.abs(_apart(dragged.q, q)).max() > 0.05
    assert np.isnan(clean.residuals[10:20, 7]).all() and np.isfinite(clean.residuals[:10, 7]).all()
    scores = _apart(clean.q, q) / clean.std(1e-3)
    assert np.abs(scores).max() < 6


def test_fixed_robots_and_a_given_start() -> None:
    """An arm on a table, from a pose that is told."""
    rng = np.random.default_rng(8)
    robot = puppet().with_base("fixed")
    attachments = puppet_markers(rng)
    q = puppet_motion(rng, puppet(), 50)[:, 7:]
    capture = seen_markers(robot, q, attachments)
    found = dynid.mocap.inverse_kinematics(robot, capture, attachments, start=q[0])
    assert np.abs(found.q - q).max() < 1e-8
    recording = found.recording()
    assert recording.joints == robot.coordinates and recording.runs[0].base is None


def test_the_recording_holds_base_joints_and_plates() -> None:
    """Plates at the camera frames, as sensors of the world with the foot that stands on them."""
    rng = np.random.default_rng(9)
    robot = puppet()
    q = puppet_motion(rng, robot, 100)
    attachments = puppet_markers(rng)
    capture = seen_markers(robot, q, attachments)
    place = np.eye(4)
    place[:3, 3] = [0.3, 0.1, 0.0]
    plate = Plate("plate1", 1000.0, np.tile([1.0, 2.0, 700.0, 5.0, 6.0, 7.0], (950, 1)), place)
    found = dynid.mocap.inverse_kinematics(robot, capture, attachments)
    recording = found.recording(replace(capture, plates=(plate,)), feet={"plate1": "knee_l_link"})
    run = recording.runs[0]
    assert len(run) == 95 and run.sensors["plate1"].frame == "world" and run.sensors["plate1"].link == "knee_l_link"
    np.testing.assert_allclose(run.wrenches["plate1"], plate.in_laboratory()[:95], atol=1e-9)
    np.testing.assert_allclose(run.base, found.q[:95, :7], atol=1e-12)
    np.testing.assert_allclose(run.q, found.q[:95, 7:])
    with expect_error(UnknownName, "feet"):
        found.recording(replace(capture, plates=(plate,)), feet={"plate7": "knee_l_link"})


def test_input_that_cannot_be_used_says_why() -> None:
    """Unknown markers, links, options; a start of the wrong length; nothing to see."""
    rng = np.random.default_rng(10)
    robot: Robot = puppet(Limits(-2, 2))
    attachments = puppet_markers(rng)
    capture = seen_markers(robot, puppet_motion(rng, robot, 3), attachments)

    def refused(words: str, error: type[Exception] = dynid.DataError, **options: object) -> None:
        given = {"markers": capture, "attachments": attachments} | options
        with pytest.raises(error, match=words):
            dynid.mocap.inverse_kinematics(robot, **given)  # type: ignore[arg-type]

    refused("no marker 'X'", attachments={"X": ("trunk", [0, 0, 0])})
    refused("no link or frame named 'tail'", dynid.ModelError, attachments={"trunk.0": ("tail", [0, 0, 0])})
    refused("position of three numbers", attachments={"trunk.0": ("trunk", [0, 0])})
    refused("no marker is attached", attachments={})
    refused("limits 'hard' is unknown", limits="hard")
    refused("start has shape", start=np.zeros(3))
    refused("length zero", start=np.zeros(robot.nq))
    refused("which is not attached", weights={"nose": 1.0})
    refused("not negative", weights={"trunk.0": -1.0})
    refused("positive distance", reject=-1.0)
    refused("shows none", markers=replace(capture, positions=np.full_like(capture.positions, np.nan)))
