"""Equalities between joints: sums over joints and polynomials of such sums."""

import json

import numpy as np
import pytest

import dynid
from dynid.dynamics import assemble
from dynid.errors import ModelError
from dynid.robot import JointEquality
from dynid.robot.equalities import with_equalities
from dynid.robot.model import Robot
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from tests.support.errors import Error, expect_error

BODY = {"mass": 1.0, "com": [0.1, 0.02, 0.03], "tensor": [0.02, 0, 0, 0.02, 0, 0.02]}
ROWS = [{"name": name, "axis": [0, 1, 0], "xyz": [0.2, 0, 0.1 * k], "inertia": BODY} for k, name in enumerate("abcd")]
CURVE = {"weights": {"d": 2.0}, "leaders": {"b": 1.0, "c": -0.5}, "polynomial": [0.1, 0.4, 0.7, -0.2]}
SUM = {"weights": {"a": 1.0, "b": 1.0, "c": 1.0}, "polynomial": [0.3]}


def _arm(*equalities, **options):
    return Robot.from_dh(ROWS, "origin", name="arm", equality=list(equalities), **options)


def test_motion_follows_the_polynomial():
    """Position, velocity and acceleration of the follower are those of the polynomial, differentiated by hand."""
    robot = _arm(CURVE)
    assert (robot.coordinates, robot.passive) == (("a", "b", "c"), ("d",))
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 20, 3))
    motion = assemble(robot, q, v, a)
    law = np.polynomial.Polynomial(CURVE["polynomial"])
    s, ds, dds = (x[:, 1] - 0.5 * x[:, 2] for x in (q, v, a))
    slope, bend = law.deriv()(s), law.deriv(2)(s)
    np.testing.assert_allclose(motion.q[:, 3], law(s) / 2, atol=1e-12)
    np.testing.assert_allclose(motion.v[:, 3], slope * ds / 2, atol=1e-12)
    np.testing.assert_allclose(motion.a[:, 3], (slope * dds + bend * ds**2) / 2, atol=1e-12)


def test_torques_are_those_of_a_mimic_joint():
    """An equality of two joints as a constraint, and as a mimic joint: the same torques and base parameters."""
    line = JointEquality({"d": 1.0}, (0.2, -1.5), {"a": 1.0})
    tree = Robot.from_dh(ROWS, "origin", name="arm")
    constrained, (mimic, held, left) = tree.with_loops(line), with_equalities(tree, [line])
    assert (held, left, mimic.coordinates) == ({}, [], constrained.coordinates)
    q, v, a = np.random.default_rng(0).uniform(-1, 1, (3, 20, 3))
    expected = dynid.inverse_dynamics(mimic, q, v, a)
    np.testing.assert_allclose(dynid.inverse_dynamics(constrained, q, v, a), expected, atol=1e-11)
    assert len(dynid.base_parameters(constrained).expressions) == len(dynid.base_parameters(mimic).expressions)


def test_equalities_are_reduced_to_independent_joints():
    """A sum over three joints becomes a mimic joint where one of them is locked, whatever the order."""
    tree = Robot.from_dh(ROWS, "origin", name="arm")
    three = JointEquality({"a": 1.0, "b": 2.0, "c": 4.0}, (1.0,))
    robot, held, left = with_equalities(tree, [three, JointEquality({"c": 2.0}, (0.5,))])
    assert (held, left) == ({"c": 0.25}, [])
    mimic = robot.joints[0].mimic
    assert (mimic.leader, mimic.ratio, mimic.offset) == ("b", -2.0, 0.0)
    _, _, (left,) = with_equalities(
        tree, [JointEquality({"d": 1.0}, (0, 0, 1), {"a": 1.0}), JointEquality({"a": 1, "b": 1})]
    )
    assert (left.weights, left.polynomial, left.leaders) == ({"d": 1.0}, (0, 0, 1), {"b": -1.0})
    with expect_error(ModelError):
        with_equalities(tree, [JointEquality({"c": 1.0}, (0.5,)), JointEquality({"c": 1.0}, (0.6,))])


def test_stored_locked_and_written_robots_are_the_same(tmp_path):
    robot = _arm(CURVE, SUM, posture={"a": 0.1, "b": 0.2})
    assert robot.passive == ("a", "d")
    q, v, a = np.random.default_rng(0).uniform(-0.3, 0.3, (3, 5, 2))
    torque = dynid.inverse_dynamics(robot, q, v, a)
    again = robot_from_dict(json.loads(json.dumps(robot_to_dict(robot))))
    assert np.array_equal(dynid.inverse_dynamics(again, q, v, a), torque)
    name = robot.coordinates[0]
    v[:, 0] = a[:, 0] = 0.0
    q[:, 0] = 0.2
    locked = robot.locked({name: 0.2})
    expected = dynid.inverse_dynamics(robot, q, v, a)[:, 1:]
    np.testing.assert_allclose(dynid.inverse_dynamics(locked, q[:, 1:], v[:, 1:], a[:, 1:]), expected, atol=1e-11)
    pytest.importorskip("mujoco")
    dynid.export.write(robot, tmp_path / "robot.xml")
    read = dynid.load_robot(tmp_path / "robot.xml", friction="none", rotor_inertia=False)
    assert read.passive == robot.passive
    np.testing.assert_allclose(
        dynid.inverse_dynamics(read, q, v, a), dynid.inverse_dynamics(robot, q, v, a), atol=1e-10
    )


def test_motors_may_drive_coupled_joints_at_constant_ratios():
    """The sum of three joints is constant, so a motor on the passive one pulls at both others."""
    motors = [{"name": name, "ratio": 10.0} for name in ("m1", "m2", "m3")]
    coupling = [[1, 0, 0], [0, 1, 0], [0, 0.5, 0], [0, 0, 1]]
    robot = _arm(SUM, motor=motors, coupling=coupling)
    assert robot.passive == ("c",)
    np.testing.assert_allclose(robot.transmission.coupling, [[1, -0.5, 0], [0, 0.5, 0], [0, 0, 1]], atol=1e-12)
    with expect_error(ModelError, "passive", code="conflicting"):
        _arm(CURVE, motor=motors, coupling=coupling, passive=["d"])


@pytest.mark.parametrize(
    ("table", "error"),
    [
        ({"weights": {}}, (ModelError, "", "invalid_value")),
        ({"weights": {"a": 0.0}}, (ModelError, "", "invalid_value")),
        ({"weights": {"a": 1.0}, "polynomial": [0, 1]}, (ModelError, "", "invalid_value")),
        ({"weights": {"a": float("nan")}}, (ModelError, "")),
        ({"weights": {"a": 1.0, "z": 1.0}}, (ModelError, "", "unknown_name")),
        ({"weights": {}, "leaders": {"b": 1.0}, "polynomial": [5, 0, 1]}, (ModelError, "posture", "infeasible")),
    ],
)
def test_bad_equalities(table, error: Error):
    with expect_error(*error):
        _arm(table)
