"""Passive joints in closed form: parallelograms and two bars in a plane, against the iteration."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.codegen import c_linkage
from dynid.codegen.closed_form import Ratios, TwoBars, closed_form
from dynid.codegen.compiled import CompiledCode
from dynid.dynamics import assemble
from dynid.dynamics.assembly import reachable_postures
from tests.support.generated import needs_compiler
from tests.support.generated_linkages import BODY, CHAIN, Y, followed, rod, short, slider
from tests.support.linkages import leg, parallelogram

Array = NDArray[np.float64]

CLOSED, SINGULAR, BROKEN, *_ = (number for number, _ in c_linkage.STATUS.values())
HOME = {"crank": -1.0, "coupler": 0.4, "rocker": -1.2}


def other_branch() -> Robot:
    """The four-bar linkage with its coupler and rocker folded to the other side."""
    robot = dynid.load_robot("fourbar")
    a, b = _ends(robot)
    d = b - a
    angle = lambda x: -np.arctan2(x[1], x[0])  # noqa: E731  # about y, in the plane of x and z
    flip = 2 * angle(d)
    start = dict(zip(robot.tree_coordinates, np.array(robot.assembled), strict=True))
    along = start["crank"] + start["coupler"]
    posture = {"crank": start["crank"], "coupler": flip - along - start["crank"], "rocker": flip - start["rocker"]}
    return robot.tree.with_loops(*robot.loops, passive=robot.passive, posture=posture)


def _ends(robot: Robot) -> tuple[Array, Array]:
    """Axes of coupler and rocker in the plane of x and z."""
    q = assemble(robot, robot.home).q[0]
    tree = robot.tree
    places = (dynid.dynamics.frame_placement(tree, q, f"{x}_link")[[0, 2], 3] for x in ("coupler", "rocker"))
    first, second = places
    return first, second


def serial() -> Robot:
    """Both passive joints between the crank and a pin on the base; axes of both directions, and a tilted base joint."""
    rows = [
        {"name": "turn", "axis": [0, 0, 1], "rpy": [0.3, 0.1, 0], "inertia": BODY},
        {**CHAIN[0], "parent": "link1", "xyz": [0.1, 0.05, 0.2]},
        {**CHAIN[1], "axis": [0, -1, 0]},
        {**CHAIN[2], "rpy": [0, 0.4, 0]},
    ]
    pin = {
        "kind": "connect",
        "first": {"link": "link4", "xyz": [0.25, 0, 0.05]},
        "second": {"link": "link1", "xyz": [0.5, 0.05, 0.15]},
    }
    start = {"a": -0.9, "b": -0.8, "c": 1.0}
    return Robot.from_dh(rows, "origin", name="serial", loop=[pin], posture=start, passive=["b", "c"])


def chained() -> Robot:
    """A second four-bar linkage that the rocker of the first one drives."""
    rows = [
        *CHAIN[:2],
        {"name": "c", "axis": [0, -1, 0], "xyz": [0.4, 0, 0], "parent": "base", "inertia": BODY},
        {"name": "d", "axis": Y, "xyz": [0.2, 0, 0.1], "parent": "link3", "inertia": BODY},
        {"name": "e", "axis": Y, "xyz": [0.8, 0, 0.05], "parent": "base", "inertia": BODY},
    ]
    pins = [
        {
            "kind": "connect",
            "first": {"link": "link2", "xyz": [0.4, 0, 0]},
            "second": {"link": "link3", "xyz": [0.3, 0, 0]},
        },
        {
            "kind": "connect",
            "first": {"link": "link4", "xyz": [0.45, 0, 0]},
            "second": {"link": "link5", "xyz": [0.3, 0, 0]},
        },
    ]
    start = {"a": -1.0, "b": 0.5, "c": 1.2, "d": 1.0, "e": -1.2}
    return Robot.from_dh(rows, "origin", name="chained", loop=pins, posture=start, passive=["b", "c", "d", "e"])


MAKERS: dict[str, Callable[[], Robot]] = {
    "fourbar": lambda: dynid.load_robot("fourbar"),
    "other branch": other_branch,
    "serial": serial,
    "chained": chained,
    "mimic": followed,
    "short": short,
    "parallelogram": parallelogram,
    "palletizer": lambda: dynid.load_robot("palletizer"),
    "psm": lambda: dynid.load_robot("psm"),
    "floating": lambda: dynid.load_robot("fourbar").with_base("floating"),
}


def postures(robot: Robot, samples: int = 300) -> Array:
    """A path of the independent joints through reachable postures."""
    rng = np.random.default_rng(1)
    return reachable_postures(robot.with_base("fixed"), 1.5 * rng.uniform(-1, 1, (samples, robot.n)))


def closed_by_c(code: CompiledCode, q: Array, posture: Array) -> int:
    """Move the posture to q by the generated function; its status."""
    robot = code.program.robot
    v, a, slopes = np.zeros(posture.size), np.zeros(posture.size), np.zeros((len(robot.passive), robot.n))
    zero = np.zeros(robot.nv)
    entry = getattr(code.library, f"{code.program.name}_assemble")
    entry.restype, entry.argtypes = ctypes.c_int, [ctypes.c_void_p] * 7
    return int(entry(*(x.ctypes.data for x in (q, zero, zero, posture, v, a, slopes))))


@needs_compiler
@pytest.mark.parametrize("name", list(MAKERS))
def test_closed_form_equals_the_iteration(name: str, tmp_path: Path) -> None:
    """Positions of all joints in C and in NumPy, to 1e-12 rad of `dynid.dynamics.assemble`."""
    robot = MAKERS[name]()
    steps = closed_form(robot)
    assert len(steps) > 0
    q = postures(robot)
    theirs = assemble(robot.with_base("fixed"), q).q
    base = np.zeros(robot.nq - robot.n)
    base[6:] = 1.0
    given = np.hstack([np.tile(base, (len(q), 1)), q])
    code = dynid.generate_code(robot, ("gravity_torque",), name="x", allow_infeasible=True)
    assert "STRIDES" not in code.files["x.h"] and "newton" not in code.files["x.c"]
    library, posture = code.compile(("-O0",)), np.array(robot.assembled)
    for k in range(len(q)):
        assert closed_by_c(library, given[k].copy(), posture) == CLOSED
        turns = np.round((posture - theirs[k]) / (2 * np.pi))
        np.testing.assert_allclose(posture - 2 * np.pi * turns, theirs[k], atol=1e-12)
    module: dict[str, object] = {}
    text = dynid.generate_code(robot, ("gravity_torque",), name="y", language="python", allow_infeasible=True)
    exec(compile(text.files["y.py"], "y.py", "exec"), module)
    still = np.zeros((len(q), robot.nv))
    joints = module["assemble"](given, still, still)[0]  # type: ignore[operator]
    joints = joints - 2 * np.pi * np.round((joints - theirs) / (2 * np.pi))
    np.testing.assert_allclose(joints, theirs, atol=1e-12)


def test_what_is_found() -> None:
    """Parallelograms are sums of joints, triangles are two bars; both sides of the four-bar linkage are branches."""
    ratios = {x.joint: x for x in closed_form(dynid.load_robot("palletizer")) if isinstance(x, Ratios)}
    assert ratios[3].terms == ((1, 1.0), (2, -1.0)) and ratios[4].terms == ((1, -1.0), (2, 1.0))
    sides = []
    for make in (MAKERS["fourbar"], other_branch):
        (step,) = closed_form(make())
        assert isinstance(step, TwoBars) and not step.serial
        sides.append(step.branch)
    assert sorted(sides) == [-1.0, 1.0]
    (step,) = closed_form(serial())
    assert isinstance(step, TwoBars) and step.serial and step.signs == (-1.0, 1.0)
    assert [x.joints for x in closed_form(chained()) if isinstance(x, TwoBars)] == [(1, 2), (3, 4)]


@pytest.mark.parametrize("make", [rod, slider, leg], ids=["rod", "slider", "leg"])
def test_other_linkages_keep_the_iteration(make: Callable[[], Robot]) -> None:
    """A rod between skew axes, a slide, and a leg of which one loop is spatial."""
    robot = make()
    assert closed_form(robot) == ()
    code = dynid.generate_code(robot, ("gravity_torque",), name="x", allow_infeasible=True)
    assert "STRIDES" in code.files["x.h"] and "newton" in code.files["x.c"]


def test_a_nearly_planar_loop_keeps_the_iteration() -> None:
    robot = parallelogram()
    joints = list(robot.tree.joints)
    axis = np.array([0.0, 1.0, 1e-7])
    joints[1] = replace(joints[1], axis=axis / np.linalg.norm(axis))
    tilted = replace(robot.tree, joints=tuple(joints)).with_loops(
        *robot.loops, passive=robot.passive, posture={"first": 1.0, "bar": -1.0, "second": 1.0}
    )
    assert not any(isinstance(x, TwoBars) for x in closed_form(tilted))


@needs_compiler
def test_near_a_singular_posture() -> None:
    """Up to 1e-5 rad before it the angles are right; at it and beyond it there is a status and nothing moves."""
    robot = short()
    code = dynid.generate_code(robot, ("gravity_torque",), name="x", allow_infeasible=True).compile(("-O0",))
    low, high = float(robot.home[0]), 3.0
    posture = np.array(robot.assembled)
    for _ in range(60):  # the singular posture, by bisection
        middle = 0.5 * (low + high)
        kept = posture.copy()
        if closed_by_c(code, np.array([middle]), kept) == CLOSED:
            low = middle
        else:
            high = middle
    for before in (1e-2, 1e-3, 1e-4, 1e-5):
        moved = posture.copy()
        assert closed_by_c(code, np.array([low - before]), moved) == CLOSED
        theirs = assemble(robot, np.linspace([robot.home[0]], [low - before], 50)).q[-1]
        # A rounding of the lengths moves the passive joints by its share of the distance from the singular posture.
        np.testing.assert_allclose(moved, theirs, atol=1e-14 / before)
    for beyond, status in ((0.0, (SINGULAR, BROKEN)), (1e-3, (BROKEN,)), (0.5, (BROKEN,))):
        moved = posture.copy()
        assert closed_by_c(code, np.array([high + beyond]), moved) in status
        assert np.array_equal(moved, posture)
    bars = dynid.generate_code(parallelogram(), ("gravity_torque",), name="x").compile(("-O0",))
    moved = np.array(parallelogram().assembled)
    assert closed_by_c(bars, np.array([1e-9]), moved) == SINGULAR
