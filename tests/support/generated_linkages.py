"""Linkages with every kind of loop, joint and base, to compare generated code on."""

from __future__ import annotations

import numpy as np

import dynid
from dynid import Robot
from tests.support.linkages import parallelogram

# A share of the largest number. Python and generated code stop at gaps that differ by rounding.
WITHIN = 1e-10
BODY = {"mass": 1.3, "com": [0.1, 0.02, 0.01], "tensor": [0.02, 0.001, 0.002, 0.03, 0.001, 0.04]}
Y = [0, 1, 0]
CHAIN = [
    {"name": "a", "axis": Y, "inertia": BODY},
    {"name": "b", "axis": Y, "xyz": [0.2, 0, 0], "inertia": BODY},
    {"name": "c", "axis": Y, "xyz": [0.3, 0, 0], "inertia": BODY},
]


def slider() -> Robot:
    """A planar chain of three joints, welded to a carriage that slides along x, and a joint before them."""
    rows = [
        {"name": "turn", "axis": [0, 0, 1], "inertia": BODY},
        {**CHAIN[0], "xyz": [0.1, 0.2, 0.3], "rpy": [0.2, 0, 0.3]},
        *CHAIN[1:],
        {
            "name": "slide",
            "kind": "prismatic",
            "axis": [1, 0, 0],
            "parent": "link1",
            "xyz": [0.1, 0.2, 0.3],
            "rpy": [0.2, 0, 0.3],
            "inertia": BODY,
        },
    ]
    weld = {"kind": "weld", "first": {"link": "link4"}, "second": {"link": "link5", "xyz": [0.1, 0, -0.1]}}
    start = {"a": 0.9, "b": -0.6, "c": -0.3, "slide": 0.3}
    return Robot.from_dh(rows, "origin", name="slider", loop=[weld], posture=start, passive=["b", "c", "slide"])


def rod() -> Robot:
    """Two cranks on skew axes with a rod between their ends."""
    rows = [
        {"name": "a", "axis": Y, "inertia": BODY},
        {"name": "c", "axis": [0.6, 0.8, 0], "xyz": [0.4, 0.1, 0], "parent": "base", "inertia": BODY},
    ]
    ends = {"first": {"link": "link1", "xyz": [0.15, 0, 0]}, "second": {"link": "link2", "xyz": [0, 0, 0.3]}}
    loop = {"kind": "rod", "length": 0.45, **ends}
    return Robot.from_dh(rows, "origin", name="rod", loop=[loop], posture={"a": -1.0, "c": 0.3}, passive=["c"])


def pinned(coupler: float, **row: object) -> Robot:
    """A four-bar linkage whose coupler consists of two bars; they are one unless `row` makes the joint between move."""
    rows = [
        *CHAIN[:2],
        {"name": "d", "axis": Y, "xyz": [coupler / 2, 0, 0], "inertia": BODY, **row},
        {"name": "c", "axis": Y, "xyz": [0.4, 0, 0], "parent": "base", "inertia": BODY},
    ]
    pin = {
        "kind": "connect",
        "first": {"link": "link3", "xyz": [coupler / 2, 0, 0]},
        "second": {"link": "link4", "xyz": [0.3, 0, 0]},
    }
    start = {"a": -1.0, "b": 0.5, "c": -1.2}
    return Robot.from_dh(rows, "origin", name="pinned", loop=[pin], posture=start, passive=["b", "c"])


def followed() -> Robot:
    """A joint inside the loop turns with the crank."""
    return pinned(0.4, mimic={"joint": "a", "multiplier": -0.3, "offset": 0.1})


def short() -> Robot:
    """The crank cannot make a full turn."""
    return pinned(0.25, mimic={"joint": "a", "multiplier": 0.0, "offset": 0.0})


def rubbing(robot: Robot) -> Robot:
    """Friction and rotors at all joints of the tree."""
    names = robot.tree_coordinates
    out = robot.with_drives(dict.fromkeys(names, "viscous+coulomb+offset"), rotor_inertia=list(names))
    return out.with_parameters(np.where([p.inertial for p in out.layout], out.parameters, 0.2))


MAKERS = {
    "slider": lambda: rubbing(slider()),
    "rod": lambda: rubbing(rod()),
    "mimic": lambda: rubbing(followed()),
    "parallelogram": parallelogram,
    "floating": lambda: rubbing(dynid.load_robot("fourbar")).with_base("floating"),
    "instrumented": lambda: rubbing(dynid.load_robot("fourbar")).with_base("instrumented"),
}
