"""Closed loops of a robot: what they determine, what is refused, files and variants."""

import json

import numpy as np
import pytest

import dynid
from dynid.dynamics import assemble
from dynid.errors import Infeasible, ModelError
from dynid.robot import Frame, Loop
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from dynid.robot.spatial import placement
from tests.support.errors import Error, expect_error
from tests.support.linkages import leg, parallelogram

Y = [0, 1, 0]
ROWS = [
    {"name": "a", "axis": Y, "inertia": {"mass": 1.0, "com": [0.1, 0, 0]}},
    {"name": "b", "axis": Y, "xyz": [0.2, 0, 0], "inertia": {"mass": 1.0, "com": [0.2, 0, 0]}},
    {"name": "c", "axis": Y, "xyz": [0.4, 0, 0], "parent": "base", "inertia": {"mass": 1.0, "com": [0.1, 0, 0]}},
]


def _linkage(coupler=0.4, **options):
    pin = {
        "kind": "connect",
        "name": "pin",
        "first": {"link": "link2", "name": "coupler_end", "xyz": [coupler, 0, 0]},
        "second": {"link": "link3", "name": "rocker_end", "xyz": [0.3, 0, 0]},
    }
    options = {"loop": [pin], "posture": {"a": -1.0, "b": 0.5, "c": -1.2}, **options}
    return Robot.from_dh(ROWS, "origin", name="linkage", **options)


def test_coordinates_are_the_independent_joints():
    robot = _linkage()
    assert robot.passive == ("b", "c")
    assert robot.coordinates == ("a",) == robot.channels
    assert (robot.n, robot.nq, robot.nv) == (1, 1, 1)
    assert robot.tree.coordinates == ("a", "b", "c")
    assert list(robot.limits) == ["a"]
    assert "1 closed loops" in repr(robot)


def test_driven_joints_stay_independent():
    rows = [dict(row) for row in ROWS]
    rows[2]["drive"] = {"fv": 0.1}
    pin = {
        "kind": "connect",
        "first": {"link": "link2", "xyz": [0.4, 0, 0]},
        "second": {"link": "link3", "xyz": [0.3, 0, 0]},
    }
    robot = Robot.from_dh(rows, "origin", name="x", loop=[pin], posture={"a": -1.0, "b": 0.5, "c": -1.2})
    assert robot.coordinates == ("c",)


def test_posture_chooses_the_branch():
    up, down = _linkage(), _linkage(posture={"a": -1.0, "b": 2.0, "c": 1.0})
    assert abs(up.assembled[1] - down.assembled[1]) > 0.5
    assert up.home == pytest.approx(down.home)


def test_drive_terms_of_passive_joints():
    robot = _linkage().with_drives({"a": "viscous", "c": "viscous+coulomb"}, rotor_inertia=["a"])
    assert {"fv_a", "Ia_a", "fv_c", "fc_c"} <= set(robot.parameter_names)
    assert _linkage().with_drives("viscous", rotor_inertia=True).parameter_names[10:12] == ("Ia_a", "fv_a")
    x = assemble(robot, [[-0.8]], [[1.3]])
    values = np.where(np.array(robot.parameter_names) == "fv_c", 2.0, 0.0)
    torque = dynid.inverse_dynamics(robot, [-0.8], [1.3], [0.0], values)
    slope = x.v[0, 2] / 1.3
    assert torque == pytest.approx([2.0 * slope * x.v[0, 2]])


@pytest.mark.parametrize("make", [_linkage, parallelogram, leg])
def test_stored_robot_is_the_same(make):
    robot = make()
    again = robot_from_dict(json.loads(json.dumps(robot_to_dict(robot))))
    q = robot.home + np.full(robot.n, 0.05)
    v = np.ones(robot.n)
    assert np.array_equal(dynid.regressor(robot, q, v, v), dynid.regressor(again, q, v, v))


def test_rod_is_a_massless_link_between_balls():
    light = [dict(row) for row in ROWS]
    light[1]["inertia"] = {"mass": 0.0}
    pin = {
        "kind": "connect",
        "first": {"link": "link2", "xyz": [0.4, 0, 0]},
        "second": {"link": "link3", "xyz": [0.3, 0, 0]},
    }
    start = {"a": -1.0, "b": 0.5, "c": -1.2}
    linkage = Robot.from_dh(light, "origin", name="x", loop=[pin], posture=start)
    rod = {
        "kind": "rod",
        "length": 0.4,
        "first": {"link": "link1", "xyz": [0.2, 0, 0]},
        "second": {"link": "link3", "xyz": [0.3, 0, 0]},
    }
    rows = [light[0], light[2]]
    rows[1] = dict(rows[1], link="link3")
    with_rod = Robot.from_dh(rows, "origin", name="x", loop=[rod], posture={"a": -1.0, "c": linkage.assembled[2]})
    q, v, a = np.array([[-0.9], [-0.7]]), np.array([[1.0], [2.0]]), np.array([[0.5], [-3.0]])
    assert dynid.inverse_dynamics(with_rod, q, v, a) == pytest.approx(
        dynid.inverse_dynamics(linkage, q, v, a), abs=1e-12
    )


def test_weld_closes_position_and_rotation():
    # A planar chain of three joints, welded to a carriage that slides along x: one joint remains.
    rows = [
        *ROWS[:2],
        {"name": "c", "axis": Y, "xyz": [0.3, 0, 0], "inertia": {"mass": 0.5}},
        {"name": "slide", "kind": "prismatic", "axis": [1, 0, 0], "parent": "base", "inertia": {"mass": 1.0}},
    ]
    weld = {"kind": "weld", "first": {"link": "link3"}, "second": {"link": "link4", "xyz": [0.1, 0, -0.1]}}
    robot = Robot.from_dh(rows, "origin", name="x", loop=[weld], posture={"a": 0.9, "b": -0.6, "c": -0.3, "slide": 0.3})
    assert robot.n == 1
    x = assemble(robot, robot.home[None], [[1.0]])
    assert abs(x.q[0, :3].sum()) < 1e-12
    assert abs(x.v[0, :3].sum()) < 1e-12


def test_locked_joint_of_a_loop():
    robot = dynid.load_robot("palletizer")
    locked = robot.locked({"turn": 0.3})
    assert locked.coordinates == ("arm", "crank", "flange")
    q, v, a = np.array([0.1, -0.1, 0.4]), np.array([1.0, -0.5, 2.0]), np.array([-1.0, 2.0, 0.5])
    whole = dynid.inverse_dynamics(robot, [0.3, *q], [0, *v], [0, *a])
    assert dynid.inverse_dynamics(locked, q, v, a) == pytest.approx(whole[1:], rel=1e-10)
    with expect_error(ModelError, code="unknown_name"):
        robot.locked({"elbow": 0.0})


def test_transmission_over_the_independent_joints():
    rows = [dict(row) for row in ROWS]
    motor = {"name": "m", "ratio": 50.0, "drive": {"Ia": 0.1}}
    robot = Robot.from_dh(
        rows,
        "origin",
        name="x",
        motor=[motor],
        coupling=[[1.0], [0.0], [0.0]],
        loop=[
            {
                "kind": "connect",
                "first": {"link": "link2", "xyz": [0.4, 0, 0]},
                "second": {"link": "link3", "xyz": [0.3, 0, 0]},
            }
        ],
        posture={"a": -1.0, "b": 0.5, "c": -1.2},
    )
    assert robot.transmission.matrix.tolist() == [[50.0]]
    assert robot.tree.transmission.coupling.shape == (3, 1)
    assert robot.with_terms(robot.motor_term("m", "fv", 0.2)).parameter_names[-1].startswith(("fv", "Izz"))


# -- bad input --------------------------------------------------------------------------------------


def test_loop_that_cannot_close():
    with expect_error(ModelError, "posture", code="infeasible"):
        _linkage(coupler=2.0)


def test_redundant_loop():
    robot = _linkage()
    twice = (*robot.loops, Loop("connect", robot.loops[0].second, robot.loops[0].first, name="again"))
    with expect_error(ModelError, "loops"):
        robot.with_loops(twice, posture=dict(zip(robot.tree.coordinates, robot.assembled, strict=True)))


def test_singular_assembled_posture():
    flat = [dict(row) for row in ROWS]
    pin = {
        "kind": "connect",
        "first": {"link": "link2", "name": "p", "xyz": [0.4, 0, 0]},
        "second": {"link": "link3", "name": "s", "xyz": [0.2, 0, 0]},
    }
    with expect_error(ModelError, "posture"):
        Robot.from_dh(flat, "origin", name="flat", loop=[pin])


@pytest.mark.parametrize(
    ("passive", "error"),
    [(["a"], (ModelError, "passive", "mismatch")), (["a", "x"], (ModelError, "passive", "unknown_name"))],
)
def test_wrong_passive_joints(passive, error: Error):
    with expect_error(*error):
        _linkage(passive=passive)


def test_no_joint_left():
    fixed = {
        "kind": "connect",
        "first": {"link": "link1", "xyz": [0.2, 0, 0]},
        "second": {"link": "base", "xyz": [0, 0, -0.2]},
    }
    with expect_error(ModelError):
        Robot.from_dh(ROWS[:1], "origin", name="x", loop=[fixed])


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"kind": "glue"}, (ModelError, "kind", "unknown_name")),
        ({"kind": "rod"}, (ModelError, "length", "invalid_value")),
        ({"length": 0.2}, (ModelError, "length", "invalid_value")),
        ({"second": Frame("y", 0, np.eye(4))}, (ModelError, "")),
        ({"length": np.nan}, (ModelError, "")),
    ],
)
def test_wrong_loop(changes, error: Error):
    first, second = Frame("x", 0, np.eye(4)), Frame("y", 1, placement(translation=[0.1, 0, 0]))
    with expect_error(*error):
        Loop(**{"kind": "connect", "first": first, "second": second, **changes})


def test_frame_on_a_link_that_does_not_exist():
    link = Link("base", np.zeros(10))
    robot = dynid.Robot("x", (link, Link("l", np.zeros(10))), (Joint("j", "revolute", 0, np.eye(4), np.array(Y)),))
    with expect_error(ModelError, "frame", code="unknown_name"):
        robot.with_loops(Loop("connect", Frame("near", 0, np.eye(4)), Frame("far", 7, np.eye(4))))
    with expect_error(ModelError, code="unknown_name"):
        Robot.from_dh(
            ROWS, "origin", name="x", loop=[{"kind": "connect", "first": {"link": "q"}, "second": {"link": "base"}}]
        )
    with expect_error(ModelError, code="missing_argument"):
        Robot.from_dh(ROWS, "origin", name="x", passive=["a"])


def test_posture_beyond_the_linkage_names_the_sample_and_the_frames():
    robot = _linkage(coupler=0.25)
    with expect_error(Infeasible):
        assemble(robot, [[-1.0], [-1.1], [3.0]])


def test_singular_posture_in_a_recording_is_named():
    # Both cranks of the parallelogram lie along the ground: the constraints depend on each other.
    robot = parallelogram()
    with expect_error(Infeasible):
        dynid.regressor(robot, [[0.5], [0.0]], np.zeros((2, 1)), np.zeros((2, 1)))


@pytest.mark.parametrize(("aside", "closes"), [(2e-6, True), (2e-5, False)])
def test_printed_digits_may_leave_a_planar_linkage_open(aside, closes):
    """The pin of a linkage in a plane is a little beside the plane; the motion in the plane is solved exactly."""
    pin = {
        "kind": "connect",
        "first": {"link": "link2", "xyz": [0.4, aside, 0]},
        "second": {"link": "link3", "xyz": [0.3, 0, 0]},
    }
    if not closes:
        with expect_error(ModelError, "posture", code="infeasible"):
            _linkage(loop=[pin])
        return
    q = np.array([[-1.1], [-0.9], [-0.7]])
    np.testing.assert_allclose(assemble(_linkage(loop=[pin]), q).q, assemble(_linkage(), q).q, atol=1e-11)
