"""Replay of recorded torques, against Pinocchio, MuJoCo and closed formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import dynid
from dynid.export.mjcf import write_mjcf
from dynid.robot.parts import Joint, Link
from dynid.simulation.replay import Ending, Starts, replay
from tests.support.gantry import gantry
from tests.support.humanoids import humanoid
from tests.support.random_robots import random_robot

Array = NDArray[np.float64]
PERIOD = 1e-3


def one_start(q: Array, v: Array, marks: list[int], rows: int, period: float = PERIOD) -> Starts:
    return Starts(q[None], v[None], np.array([0]), np.array([rows - 1]), np.array([period]), np.array([marks]))


def smooth_torque(robot: dynid.Robot, rows: int, seed: int = 0, size: float = 1.0) -> Array:
    """Torques about those that carry the robot in its zero pose."""
    rng = np.random.default_rng(seed)
    t = np.arange(rows)[:, None] * PERIOD
    phases, rates = rng.uniform(0, 2 * np.pi, robot.nv), rng.uniform(2, 9, robot.nv)
    return size * rng.uniform(1, 4, robot.nv) * np.sin(rates * t + phases)


def by_runge_kutta(
    acceleration: Callable[[Array, Array, Array], Array],
    add: Callable[[Array, Array], Array],
    q: Array,
    v: Array,
    torque: Array,
    parts: int,
) -> Array:
    """Positions at every row under interpolated torques; fourth order, with its own steps."""
    out, h = [q], PERIOD / parts
    for row in range(len(torque) - 1):
        for part in range(parts):
            tau = [torque[row] + (part + x) / parts * (torque[row + 1] - torque[row]) for x in (0.0, 0.5, 1.0)]
            a1 = acceleration(q, v, tau[0])
            v2 = v + 0.5 * h * a1
            a2 = acceleration(add(q, 0.5 * h * v), v2, tau[1])
            v3 = v + 0.5 * h * a2
            a3 = acceleration(add(q, 0.5 * h * v2), v3, tau[1])
            v4 = v + h * a3
            a4 = acceleration(add(q, h * v3), v4, tau[2])
            q = add(q, h / 6 * (v + 2 * v2 + 2 * v3 + v4))
            v = v + h / 6 * (a1 + 2 * a2 + 2 * a3 + a4)
        out.append(q)
    return np.array(out)


def arm() -> dynid.Robot:
    """A six-joint arm with viscous friction and rotor inertia."""
    bodies = replace(dynid.load_robot("rv2sq"), drives=(), transmission=None)
    robot = bodies.with_drives("viscous", rotor_inertia=True)
    values = {"Ia": 0.1, "fv": 1.5}
    return replace(robot, drives=tuple(replace(t, value=values[t.symbol]) for t in robot.drives))


@pytest.mark.parametrize("stribeck", [0.0, 3.0])
def test_an_arm_moves_as_in_pinocchio(stribeck: float) -> None:
    """Another forward dynamics and another integrator: 0.5 s of motion to a few microradians."""
    robot, rows = arm(), 501
    robot = robot.with_terms(*(robot.joint_term(j, "fs", stribeck, velocity=0.4) for j in range(robot.n)))
    robot = robot.with_smooth_coulomb(5.0)
    limits = {c: {"position": (-50.0, 50.0)} for c in robot.coordinates}
    model = replace(robot, drives=()).with_limits(limits).to_pinocchio()
    model.armature = np.full(robot.n, 0.1)
    data = model.createData()
    q, v = np.linspace(-0.5, 0.7, robot.n), np.linspace(1.0, -0.5, robot.n)
    torque = smooth_torque(robot, rows) + pin.rnea(model, data, q, 0 * v, 0 * v)

    def acceleration(q: Array, v: Array, tau: Array) -> Array:
        friction = 1.5 * v + stribeck * np.tanh(5.0 * v) * np.exp(-((v / 0.4) ** 2))
        return np.array(pin.aba(model, data, q, v, tau - friction))

    theirs = by_runge_kutta(acceleration, np.add, q, v, torque, 1)
    found = replay(robot, None, torque, one_start(q, v, [100, 500], rows), 4)
    assert found.endings == (Ending.COMPLETED,)
    assert np.abs(theirs[500] - q).max() > 0.3
    # The Stribeck factor is that of a predicted velocity in the middle of the step.
    np.testing.assert_allclose(found.q[0], theirs[[100, 500]], atol=1e-5 if stribeck else 2e-6)


def test_half_the_step_has_a_quarter_of_the_error() -> None:
    robot, rows = arm(), 501
    q, v = np.linspace(-0.5, 0.7, robot.n), np.linspace(1.0, -0.5, robot.n)
    torque = smooth_torque(robot, rows)
    at = [replay(robot, None, torque, one_start(q, v, [500], rows), parts).q[0, 0] for parts in (1, 2, 4, 32)]
    errors = [np.abs(x - at[-1]).max() for x in at[:-1]]
    assert errors[0] / errors[1] == pytest.approx(4, rel=0.2) and errors[1] / errors[2] == pytest.approx(4, rel=0.2)


def test_an_arm_moves_as_in_mujoco(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    robot, rows = arm(), 301
    write_mjcf(replace(robot, drives=()), tmp_path / "arm.xml")
    model = mujoco.MjModel.from_xml_path(str(tmp_path / "arm.xml"))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    model.dof_armature[:] = 0.1
    data = mujoco.MjData(model)

    def acceleration(q: Array, v: Array, tau: Array) -> Array:
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = q, v, tau - 1.5 * v
        mujoco.mj_forward(model, data)
        return np.array(data.qacc)

    q, v, torque = np.full(robot.n, 0.2), np.full(robot.n, -0.4), smooth_torque(robot, rows, 1)
    theirs = by_runge_kutta(acceleration, np.add, q, v, torque, 1)
    found = replay(robot, None, torque, one_start(q, v, [300], rows), 4)
    np.testing.assert_allclose(found.q[0, 0], theirs[300], atol=2e-6)


def test_a_floating_base_moves_as_in_pinocchio() -> None:
    """Wrench on the base and joint torques; the base turns and the joints swing."""
    robot, rows = humanoid(limbs="A").with_gravity([0.0, 0.0, 0.0]), 201
    model = robot.to_pinocchio()
    data = model.createData()
    rng = np.random.default_rng(3)
    q = np.concatenate([[0.1, 0.2, 0.3], [0, 0, 0, 1.0], rng.uniform(-0.5, 0.5, robot.n)])
    v = rng.uniform(-1, 1, robot.nv)
    torque = smooth_torque(robot, rows, 2, 0.3)

    def acceleration(q: Array, v: Array, tau: Array) -> Array:
        return np.array(pin.aba(model, data, q, v, tau))

    def add(q: Array, dv: Array) -> Array:
        return np.array(pin.integrate(model, q, dv))

    # Lie-group steps of an explicit method are of second order here; small ones serve as the truth.
    theirs = by_runge_kutta(acceleration, add, q, v, torque, 8)
    found = replay(robot, None, torque, one_start(q, v, [200], rows), 8).q[0, 0]
    assert np.abs(theirs[200, :3] - q[:3]).max() > 0.05
    np.testing.assert_allclose(found, theirs[200], atol=2e-5)


@pytest.mark.parametrize("seed", range(4))
def test_trees_with_mimic_and_prismatic_joints_follow_their_forward_dynamics(seed: int) -> None:
    """The integrator with every kind of joint; the forward dynamics have their own oracles."""
    robot = random_robot(seed, joints=5, mimics=1, rotors=True)
    assert robot.base == "fixed"
    rows = 101
    q, v = np.zeros(robot.n), np.full(robot.n, 0.3)
    torque = smooth_torque(robot, rows, seed) + dynid.inverse_dynamics(robot, q, 0 * v, 0 * v)

    def acceleration(q: Array, v: Array, tau: Array) -> Array:
        return dynid.forward_dynamics(robot, q, v, tau)

    theirs = by_runge_kutta(acceleration, np.add, q, v, torque, 2)
    found = replay(robot, None, torque, one_start(q, v, [100], rows), 8).q[0, 0]
    np.testing.assert_allclose(found, theirs[100], rtol=1e-4, atol=1e-5)


def block(mass: float, coulomb: float, viscous: float = 0.0) -> dynid.Robot:
    """A block on a horizontal slide."""
    joint = Joint("slide", "prismatic", 0, np.eye(4), np.array([1.0, 0, 0]))
    inertia = np.array([mass, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1])
    robot = dynid.Robot("block", (Link("base", np.zeros(10)), Link("block", inertia)), (joint,))
    robot = robot.with_drives("viscous+coulomb")
    values = {"fc": coulomb, "fv": viscous}
    return replace(robot, drives=tuple(replace(t, value=values[t.symbol]) for t in robot.drives))


def test_dry_friction_stops_a_block_where_it_should() -> None:
    """v0^2 m / (2 fc) of sliding, then rest, under a force below friction; a larger force starts it again."""
    robot = block(2.0, 3.0)
    force = np.zeros((2001, 1))
    force[1200:1500] = 2.9
    force[1500:] = 5.0
    found = replay(robot, None, force, one_start(np.zeros(1), np.array([0.9]), [1000, 1490, 2000], 2001)).q[0, :, 0]
    assert found[0] == pytest.approx(0.9**2 * 2.0 / (2 * 3.0), abs=1e-6)
    assert found[1] == found[0]
    assert found[2] - found[0] == pytest.approx(0.5 * (5.0 - 3.0) / 2.0 * 0.5**2, rel=5e-3)


def test_viscous_friction_decays_exactly_enough() -> None:
    robot = block(1.0, 0.0, 50.0)
    start = one_start(np.zeros(1), np.ones(1), [100], 101)
    found = replay(robot, None, np.zeros((101, 1)), start).q[0, 0, 0]
    assert found == pytest.approx((1 - np.exp(-5.0)) / 50.0, rel=1e-3)


def test_stiff_friction_stays_stable() -> None:
    """A decay within a fiftieth of a step."""
    found = replay(block(1.0, 0.0, 5e4), None, np.zeros((101, 1)), one_start(np.zeros(1), np.ones(1), [100], 101))
    assert found.endings == (Ending.COMPLETED,) and abs(found.q[0, 0, 0]) < 1e-3


def test_early_ends_are_counted_not_raised() -> None:
    robot = gantry()
    names = list(robot.parameter_names)
    lighter, growing = robot.parameters.copy(), robot.parameters.copy()
    lighter[names.index(next(n for n in names if n.startswith("m_")))] = -20.0
    growing[names.index("fv_joint1")] = -1e4
    start = one_start(np.zeros(2), np.full(2, 0.1), [100], 501)
    for parameters, ending in ((lighter, Ending.NOT_POSITIVE), (growing, Ending.DIVERGED)):
        found = replay(robot, parameters, np.zeros((501, 2)), start)
        assert found.endings == (ending,) and np.isnan(found.q).all() and ending.ended_early


def test_starts_are_independent_of_each_other() -> None:
    """All at once or one by one, to the bit; marks behind the end of a run stay unknown."""
    robot, rows = arm().with_drives("viscous+coulomb"), 400
    torque = smooth_torque(robot, rows)
    rng = np.random.default_rng(0)
    q, v = rng.uniform(-0.5, 0.5, (7, robot.n)), rng.uniform(-1, 1, (7, robot.n))
    first, last = np.arange(7) * 40, np.full(7, rows - 1)
    every = Starts(q, v, first, last, np.full(7, PERIOD), np.tile([50, 200], (7, 1)))
    together = replay(robot, None, torque, every)
    assert np.isnan(together.q[5:, 1]).all() and np.isfinite(together.q[:5]).all()
    for s in range(7):
        alone = Starts(*(x[s : s + 1] for x in (q, v, first, last, every.period, every.marks)))
        np.testing.assert_array_equal(replay(robot, None, torque, alone).q[0], together.q[s])
