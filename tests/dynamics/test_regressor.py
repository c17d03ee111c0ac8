"""The regressor: linear in the parameters, complete in its drive columns, indifferent to the order of joints."""

from __future__ import annotations

from itertools import chain, combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dynid
import dynid.robot
from dynid import Robot
from dynid.errors import InvalidShape
from dynid.robot import DriveTerm
from dynid.robot.drives import DRIVE_SYMBOLS
from tests.support.compare import difference
from tests.support.errors import expect_error
from tests.support.random_robots import VELOCITY, random_motion, random_robot, reordered, robots, with_custom_terms

Array = NDArray[np.float64]

# The same sums in another order, some hundred terms: rounding of 1e-16 each.
SAME_SUM = 1e-12

examples = settings(max_examples=30, deadline=None, derandomize=True)
seeds = st.integers(0, 2**16)


@examples
@given(robots(drives=True, mimics=3), seeds)
def test_regressor_times_parameters_is_inverse_dynamics(robot: Robot, seed: int) -> None:
    """Y pi equals the torques with every kind of drive term, for the robot's own vector and for any other."""
    robot = with_custom_terms(robot)
    q, v, a = random_motion(robot, seed)
    Y = dynid.regressor(robot, q, v, a)
    assert Y.shape == (len(q), len(robot.channels), len(robot.layout))
    assert difference(Y @ robot.parameters, dynid.inverse_dynamics(robot, q, v, a)) < SAME_SUM
    other = np.random.default_rng(seed).normal(size=len(robot.layout))
    assert difference(Y @ other, dynid.inverse_dynamics(robot, q, v, a, other)) < SAME_SUM
    assert difference(Y @ other, dynid.inverse_dynamics(robot.with_parameters(other), q, v, a)) < SAME_SUM


def term_column(term: DriveTerm, q: Array, v: Array, a: Array) -> Array:
    """Column (N, n) of a drive term written from its definition, one formula a kind."""
    d = term.direction
    effort = {
        "Ia": a @ d,
        "fv": v @ d,
        "fvp": np.maximum(v @ d, 0),
        "fvn": np.minimum(v @ d, 0),
        "fc": np.sign(v @ d),
        "fcp": np.where(v @ d > 0, 1.0, 0.0),
        "fcn": np.where(v @ d < 0, -1.0, 0.0),
        "fs": np.sign(v @ d) * np.exp(-((v @ d / VELOCITY["fs"]) ** 2)),
        "off": np.ones(len(v)),
        "k": q @ d - term.rest,
    }[term.symbol]
    column = effort[:, None] * d
    linear = {"Ia": a, "fv": v, "k": q}
    if term.cross_only and term.symbol in linear:
        column = column - d**2 * linear[term.symbol]
    return column


@examples
@given(robots(drives=True), seeds)
def test_drive_columns_follow_their_definition(robot: Robot, seed: int) -> None:
    """A drive column is direction times effort; cross-only ones leave out the joint itself; base rows are zero."""
    q, v, a = random_motion(robot, seed)
    v[0] = 0.0  # standing still: no Coulomb friction of either sign
    Y = dynid.regressor(robot, q, v, a)
    rows = len(robot.channels) - robot.n
    joint_q, joint_v, joint_a = q[:, robot.nq - robot.n :], v[:, robot.nv - robot.n :], a[:, robot.nv - robot.n :]
    for term in robot.drives:
        column = Y[:, :, robot.parameter_names.index(term.name)]
        assert difference(column[:, rows:], term_column(term, joint_q, joint_v, joint_a)) < SAME_SUM
        assert not column[:, :rows].any()


def test_every_combination_of_drive_terms_keeps_its_columns() -> None:
    """Whatever subset of the ten terms is modelled, each column is the one of the full model, found by name."""
    bare = random_robot(3, 2)
    terms = [
        bare.joint_term(i, s, 0.3, rest=0.1, velocity=VELOCITY.get(s, 0.0))
        for i in range(bare.n)
        for s in DRIVE_SYMBOLS
    ]
    full = bare.with_terms(*terms)
    q, v, a = random_motion(full, 4)
    everything = dynid.regressor(full, q, v, a)
    subsets = chain.from_iterable(combinations(DRIVE_SYMBOLS, size) for size in range(len(DRIVE_SYMBOLS) + 1))
    for subset in subsets:
        robot = bare.with_terms(*(t for t in terms if t.symbol in subset))
        Y = dynid.regressor(robot, q, v, a)
        columns = [full.parameter_names.index(name) for name in robot.parameter_names]
        assert np.array_equal(Y, everything[:, :, columns])
        assert difference(Y @ robot.parameters, dynid.inverse_dynamics(robot, q, v, a)) < SAME_SUM


def test_custom_columns_stand_where_their_names_say() -> None:
    """A user's column is his function of q, v and a of the joints alone, also behind a floating base."""
    robot = with_custom_terms(random_robot(8, 3, base="floating"))
    q, v, a = random_motion(robot, 1)
    Y = dynid.regressor(robot, q, v, a)
    first = robot.coordinates[0]
    column = Y[:, :, robot.parameter_names.index(f"wave_{first}")]
    assert np.array_equal(column[:, 6:], np.sin(q[:, 7:]) * np.cumsum(v[:, 6:], axis=1))
    assert not column[:, :6].any()


def test_a_custom_column_of_wrong_shape_is_refused() -> None:
    """A function that gives something else than (N, n) on real data is named in the error."""
    robot = random_robot(8, 3)

    def shrinks(q: Array, v: Array, a: Array) -> Array:
        return v if len(v) == 4 else v[:1]

    robot = robot.with_terms(robot.custom_term("shrinks", 0, shrinks, 1.0))
    q, v, a = random_motion(robot, 1, samples=7)
    with expect_error(InvalidShape):
        dynid.regressor(robot, q, v, a)


@examples
@given(robots(bases=("fixed", "floating")), seeds)
def test_the_order_of_joints_does_not_matter(robot: Robot, seed: int) -> None:
    """A tree listed in any order with parents first has the same dynamics, rows and columns permuted."""
    turned, order = reordered(robot, seed)
    q, v, a = random_motion(robot, seed)
    rows, extra = robot.nv - robot.n, robot.nq - robot.n
    row = np.concatenate([np.arange(rows), rows + order])
    position = np.concatenate([np.arange(extra), extra + order])
    column = [robot.parameter_names.index(name) for name in turned.parameter_names]
    state = (q[:, position], v[:, row], a[:, row])
    assert difference(dynid.regressor(turned, *state), dynid.regressor(robot, q, v, a)[:, row][:, :, column]) < 1e-12
    assert difference(dynid.mass_matrix(turned, state[0]), dynid.mass_matrix(robot, q)[:, row][:, :, row]) < 1e-12
    ours, theirs = dynid.dynamics.coriolis_matrix(turned, *state[:2]), dynid.dynamics.coriolis_matrix(robot, q, v)
    assert difference(ours, theirs[:, row][:, :, row]) < 1e-12


@examples
@given(robots(mimics=2), seeds)
def test_rows_of_a_joint_touch_only_what_it_carries(robot: Robot, seed: int) -> None:
    """The inertial columns of a link are exactly zero in rows of joints that do not carry it."""
    q, v, a = random_motion(robot, seed)
    Y = dynid.regressor(robot, q, v, a)
    rows = len(robot.channels) - robot.n
    for b in robot.parameter_links:
        carriers, link = set(), b
        while link > 0:
            joint = robot.joints[link - 1]
            carriers.add(robot.coordinates.index(joint.mimic.leader if joint.mimic else joint.name))
            link = joint.parent
        column = robot.parameter_names.index(f"m_{robot.links[b].name}")
        others = [rows + i for i in range(robot.n) if i not in carriers]
        assert not Y[:, others, column : column + 10].any()


def test_a_virtual_link_has_no_columns_and_no_weight() -> None:
    """A massless link between two joints of one body adds neither parameters nor torque."""
    robot = random_robot(2, 3, parents=[0, 1, 2])
    links = list(robot.links)
    links[2] = dynid.robot.Link("between", np.zeros(10), virtual=True)
    virtual = Robot(robot.name, tuple(links), robot.joints, gravity=robot.gravity)
    links[2] = dynid.robot.Link("between", np.zeros(10))
    empty = Robot(robot.name, tuple(links), robot.joints, gravity=robot.gravity)
    q, v, a = random_motion(robot, 2)
    assert len(virtual.layout) == 20
    keep = [i for i, p in enumerate(empty.layout) if p.owner != "between"]
    assert np.array_equal(dynid.regressor(virtual, q, v, a), dynid.regressor(empty, q, v, a)[:, :, keep])
    assert np.array_equal(dynid.inverse_dynamics(virtual, q, v, a), dynid.inverse_dynamics(empty, q, v, a))
    assert np.array_equal(dynid.mass_matrix(virtual, q), dynid.mass_matrix(empty, q))
