"""Replay of recorded torques of linkages, against constrained dynamics of MuJoCo and Pinocchio."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import dynid
from dynid.dynamics import assemble
from dynid.simulation.replay import Ending, Starts, replay
from tests.simulation.test_replay import by_runge_kutta, one_start, smooth_torque
from tests.support.linkages import InMujoco, leg, parallelogram, stuck

Array = NDArray[np.float64]

# Compiling the simulation of linkages takes a minute.
pytestmark = pytest.mark.slow


def rubbing() -> dynid.Robot:
    """A four-bar linkage with friction in its crank and in a passive joint."""
    robot = dynid.load_robot("fourbar").with_drives({"crank": "viscous", "rocker": "viscous+coulomb"})
    values = {"fv_crank": 0.05, "fv_rocker": 0.1, "fc_rocker": 0.2}
    pairs = zip(robot.parameter_names, robot.parameters, strict=True)
    return robot.with_parameters([values.get(name, x) for name, x in pairs]).with_smooth_coulomb(20.0)


def friction(robot: dynid.Robot, v: Array) -> Array:
    """Friction torques (tree,) by formula, for shafts that are joints."""
    out = np.zeros(len(v))
    for term in robot.drives:
        i = int(np.flatnonzero(term.direction)[0])
        if term.symbol == "fv":
            out[i] += term.value * v[i]
        elif term.symbol == "fc":
            out[i] += term.value * np.tanh(term.slope * v[i])
    return out


@pytest.mark.parametrize(
    "make",
    [rubbing, parallelogram, lambda: dynid.load_robot("palletizer").with_smooth_coulomb(20.0), leg],
    ids=["fourbar", "parallelogram", "palletizer", "leg"],
)
def test_a_linkage_moves_as_in_mujoco(make: Callable[[], dynid.Robot], tmp_path: Path) -> None:
    """The whole tree moves there under multipliers of its loops, with another integrator: 0.2 s to microradians."""
    pytest.importorskip("mujoco")
    robot, rows = make().with_smooth_coulomb(20.0), 201
    other = InMujoco(robot, tmp_path)
    free = [robot.tree_coordinates.index(name) for name in robot.coordinates]
    rng = np.random.default_rng(3)
    q, v = robot.home, 0.5 * rng.uniform(-1, 1, robot.n)
    torque = smooth_torque(robot, rows) + dynid.dynamics.gravity_torque(robot, q)
    start = assemble(robot, q, v)

    def acceleration(x: Array, speed: Array, tau: Array) -> Array:
        full = -friction(robot, speed)
        full[free] += tau
        return other.accelerate(x, speed, full)

    theirs = by_runge_kutta(acceleration, np.add, start.q[0], start.v[0], torque, 1)[:, free]
    found = replay(robot, None, torque, one_start(q, v, [100, 200], rows), 4)
    assert found.endings == (Ending.COMPLETED,) and np.abs(theirs[-1] - q).max() > 0.05
    np.testing.assert_allclose(found.q[0], theirs[[100, 200]], atol=5e-6)


def test_a_floating_linkage_moves_as_in_pinocchio() -> None:
    """Wrench on the base and torque on the crank; multipliers of the pin from Pinocchio's Jacobians."""
    robot, rows = dynid.load_robot("fourbar").without("*").with_base("floating").with_gravity([0, 0, -1.0]), 201
    tree = robot.tree
    model = tree.with_limits({c: {"position": (-50.0, 50.0)} for c in tree.coordinates}).to_pinocchio()
    pins = []
    for f in robot.loops[0].frames:
        joint = model.getJointId(robot.joints[f.link - 1].name)
        place = robot.joints[f.link - 1].mount @ f.placement
        pins.append(model.addFrame(pin.Frame(f.name, joint, pin.SE3(place), pin.OP_FRAME)))
    data, world = model.createData(), pin.LOCAL_WORLD_ALIGNED

    def acceleration(q: Array, v: Array, tau: Array) -> Array:
        pin.computeAllTerms(model, data, q, v)
        pin.forwardKinematics(model, data, q, v, 0 * v)
        pin.updateFramePlacements(model, data)
        J, drift = np.zeros((3, model.nv)), np.zeros(3)
        for sign, frame in zip((1, -1), pins, strict=True):
            J += sign * pin.computeFrameJacobian(model, data, q, frame, world)[:3]
            drift += sign * pin.getFrameClassicalAcceleration(model, data, frame, world).linear
        system = np.block([[data.M, -J.T], [J, np.zeros((3, 3))]])
        full = np.concatenate([tau, [0.0, 0.0]]) - data.nle
        return np.linalg.lstsq(system, np.concatenate([full, -drift]), rcond=1e-10)[0][: model.nv]

    q = np.concatenate([[0.1, 0.2, 0.3], [0.0, 0.6, 0.0, 0.8], [-1.0]])
    v = np.array([0.1, -0.2, 0.1, 0.3, -0.4, 0.2, 2.5])
    torque = smooth_torque(robot, rows, size=0.2)
    start = assemble(robot, q, v)
    add = lambda x, d: np.array(pin.integrate(model, x, d))  # noqa: E731
    theirs = by_runge_kutta(acceleration, add, start.q[0], start.v[0], torque, 1)[:, :8]
    found = replay(robot, None, torque, one_start(q, v, [100, 200], rows), 4)
    assert found.endings == (Ending.COMPLETED,) and np.abs(np.ptp(theirs, axis=0)).min() > 0.01
    np.testing.assert_allclose(found.q[0], theirs[[100, 200]], atol=5e-6)


def test_dry_friction_of_a_passive_joint_holds_a_linkage() -> None:
    robot = dynid.load_robot("fourbar").with_drives({"rocker": "coulomb"})
    parameters = robot.parameters.copy()
    parameters[robot.parameter_names.index("fc_rocker")] = 100.0
    q = np.array([-0.6])
    found = replay(robot, parameters, np.zeros((501, 1)), one_start(q, np.zeros(1), [500], 501))
    assert found.q[0, 0] == pytest.approx(q, abs=1e-9)


def test_singular_postures_are_counted() -> None:
    """One start reaches a singular posture, one begins beyond it, one is held at rest."""
    robot, rows = stuck(), 1001
    hold = dynid.dynamics.gravity_torque(robot, [0.2])
    torque = np.vstack([np.tile(hold + 5.0, (rows, 1)), np.tile(hold, (rows, 1))])
    starts = Starts(
        np.array([[0.2], [2.5], [0.2]]),
        np.zeros((3, 1)),
        np.array([0, 0, rows]),
        np.array([rows - 1, rows - 1, 2 * rows - 1]),
        np.full(3, 1e-3),
        np.tile([500, 1000], (3, 1)),
    )
    found = replay(robot, None, torque, starts)
    assert found.endings[:2] == (Ending.OPEN, Ending.OPEN) and found.endings[2] == Ending.COMPLETED
    assert np.isnan(found.q[1]).all() and np.isnan(found.q[0, 1]).all() and np.isfinite(found.q[2]).all()
    nowhere = Starts(*(x[1:2] for x in (starts.q, starts.v, starts.first, starts.last, starts.period, starts.marks)))
    assert replay(robot, None, torque, nowhere).endings == (Ending.OPEN,)


def test_models_that_cannot_move_are_counted() -> None:
    robot = rubbing()
    lighter, growing = robot.parameters.copy(), robot.parameters.copy()
    lighter[robot.parameter_names.index("m_coupler_link")] = -30.0
    growing[robot.parameter_names.index("fv_crank")] = -1e4
    for parameters, ending in ((lighter, Ending.NOT_POSITIVE), (growing, Ending.DIVERGED)):
        start = one_start(np.array([-0.6]), np.ones(1), [500], 501)
        assert replay(robot, parameters, np.zeros((501, 1)), start).endings == (ending,)


def test_starts_do_not_change_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same bits for one start alone, together with others, and on two threads."""
    robot, rows, count = dynid.load_robot("palletizer").with_smooth_coulomb(20.0), 301, 5
    rng = np.random.default_rng(0)
    torque = smooth_torque(robot, rows) + dynid.dynamics.gravity_torque(robot, robot.home)
    q, v = robot.home + 0.1 * rng.uniform(-1, 1, (count, robot.n)), rng.uniform(-1, 1, (count, robot.n))
    first = np.arange(count) * 20
    starts = Starts(q, v, first, np.full(count, rows - 1), np.full(count, 1e-3), np.tile([50, 200], (count, 1)))
    together = replay(robot, None, torque, starts)
    monkeypatch.setenv("DYNID_THREADS", "2")
    np.testing.assert_array_equal(replay(robot, None, torque, starts).q, together.q)
    for s in range(count):
        alone = Starts(*(getattr(starts, x)[s : s + 1] for x in ("q", "v", "first", "last", "period", "marks")))
        np.testing.assert_array_equal(replay(robot, None, torque, alone).q[0], together.q[s])
