"""Dynamics of closed loops against closed forms derived with SymPy, against MuJoCo, and their own laws."""

from functools import cache

import numpy as np
import pytest

import dynid
from dynid.dynamics import assemble, check_gradient, regressor_adjoint
from dynid.errors import ModelError, NotApplicable
from dynid.parameters.base import random_states
from tests.support.errors import expect_error
from tests.support.linkages import InMujoco, leg, parallelogram

MAKERS = {
    "fourbar": lambda: dynid.load_robot("fourbar"),
    "parallelogram": parallelogram,
    "palletizer": lambda: dynid.load_robot("palletizer"),
    "leg": leg,
}


@cache
def _robot(name):
    return MAKERS[name]()


def _planar(inertia):
    """Mass, first moments along x and z, and moment of inertia about y of a body."""
    return inertia[0], inertia[1], inertia[3], inertia[6]


def _lagrangian_torque(robot, passive_of):
    """Torque of the crank of a planar linkage as a function of (q, v, a), by Lagrange's equation of one coordinate.

    With the kinetic energy m(q) v^2 / 2 and the potential energy V(q), it is m a + m' v^2 / 2 + V'. `passive_of` gives
    the absolute angles of coupler and rocker as expressions of the crank angle. A rotation about y by an angle takes
    (x, z) to (x cos + z sin, z cos - x sin).
    """
    sp = pytest.importorskip("sympy")
    q, v, a = sp.symbols("q v a")
    angles = (q, *passive_of(sp, q))
    crank, ground = robot.joints[1].placement[0, 3], robot.joints[2].placement[0, 3]
    starts = [(sp.Integer(0), sp.Integer(0)), (crank * sp.cos(q), -crank * sp.sin(q)), (ground, sp.Integer(0))]
    inertia = potential = 0
    for link, (x, z), angle in zip(robot.links[1:], starts, angles, strict=True):
        m, mx, mz, iyy = _planar(link.inertia)
        # Velocity of the link origin per velocity of the crank, and the first moment in base axes.
        vx, vz, w = sp.diff(x, q), sp.diff(z, q), sp.diff(angle, q)
        hx, hz = mx * sp.cos(angle) + mz * sp.sin(angle), mz * sp.cos(angle) - mx * sp.sin(angle)
        inertia += m * (vx**2 + vz**2) + 2 * w * (vx * hz - vz * hx) + iyy * w**2
        potential += 9.81 * (m * z + hz)
    torque = inertia * a + sp.diff(inertia, q) * v**2 / 2 + sp.diff(potential, q)
    return sp.lambdify((q, v, a), torque, "numpy", cse=True)


def _four_bar_angles(robot):
    """Absolute angles of coupler and rocker by the law of cosines, on the branch of the built-in robot."""
    ground, crank_length = robot.joints[2].placement[0, 3], robot.joints[1].placement[0, 3]
    coupler, rocker = (f.placement[0, 3] for f in (robot.loops[0].first, robot.loops[0].second))

    def angles(sp, crank):
        # From the end of the crank to the pivot of the rocker.
        dx, dz = ground - crank_length * sp.cos(crank), crank_length * sp.sin(crank)
        d = sp.sqrt(dx**2 + dz**2)
        along = sp.atan2(-dz, dx)
        first = along - sp.acos((coupler**2 + d**2 - rocker**2) / (2 * coupler * d))
        ex = crank_length * sp.cos(crank) + coupler * sp.cos(first) - ground
        ez = -crank_length * sp.sin(crank) - coupler * sp.sin(first)
        return first, sp.atan2(-ez, ex)

    return angles


@pytest.mark.parametrize("name", ["fourbar", "parallelogram"])
def test_torques_equal_the_closed_form(name):
    robot = _robot(name)
    bare = robot.without("*") if robot.drives else robot
    passive = _four_bar_angles(robot) if name == "fourbar" else lambda sp, crank: (0 * crank, crank)
    closed_form = _lagrangian_torque(robot, passive)
    rng = np.random.default_rng(0)
    q = rng.uniform(0.3, 2.8, (50, 1))
    v, a = rng.uniform(-3, 3, (2, 50, 1))
    expected = closed_form(q, v, a)
    torque = dynid.inverse_dynamics(bare, q, v, a)
    assert torque == pytest.approx(expected, rel=1e-10, abs=1e-10)
    assert dynid.regressor(bare, q, v, a) @ bare.parameters == pytest.approx(expected, rel=1e-10, abs=1e-10)


@pytest.mark.parametrize("name", list(MAKERS))
def test_equals_constrained_dynamics_of_mujoco(name, tmp_path):
    pytest.importorskip("mujoco")
    robot = _robot(name)
    bare = robot.without("f*") if any(t.symbol.startswith("f") for t in robot.drives) else robot
    mujoco = InMujoco(robot, tmp_path)
    q, v, a = random_states(robot, 8, 1)
    motion = assemble(robot, q, v, a)
    passive = np.array([x in robot.passive for x in robot.tree_coordinates])
    torque, mass = dynid.inverse_dynamics(bare, q, v, a), dynid.mass_matrix(bare, q)
    for k in range(len(q)):
        velocity, expected, matrix = mujoco.solve(q[k], v[k], a[k], motion.q[k, passive])
        assert motion.v[k] == pytest.approx(velocity, abs=1e-11)
        assert torque[k] == pytest.approx(expected, abs=1e-8 * np.abs(torque).max())
        assert mass[k] == pytest.approx(matrix, abs=1e-11 * np.abs(matrix).max())


@pytest.mark.parametrize("base", ["fixed", "instrumented", "floating"])
@pytest.mark.parametrize("name", list(MAKERS))
def test_functions_agree_with_each_other(name, base):
    robot = _robot(name).with_drives("viscous").with_base(base)
    q, v, a = random_states(robot, 5, 2)
    bare = robot.without("fv*")
    torque = dynid.inverse_dynamics(bare, q, v, a)[:, -robot.nv :]
    size = np.abs(torque).max()
    M, bias = dynid.mass_matrix(bare, q), dynid.dynamics.bias_torque(bare, q, v)[:, -robot.nv :]
    assert np.einsum("nij,nj->ni", M, a) + bias == pytest.approx(torque, abs=1e-11 * size)
    if base == "fixed":
        C = dynid.dynamics.coriolis_matrix(bare, q, v)
        moving = np.einsum("nij,nj->ni", C, v)
        assert moving == pytest.approx(dynid.dynamics.coriolis_torque(bare, q, v), abs=1e-11 * size)
        h = 1e-5
        rate = (dynid.mass_matrix(bare, q + h * v) - dynid.mass_matrix(bare, q - h * v)) / (2 * h)
        assert C + np.swapaxes(C, 1, 2) == pytest.approx(rate, abs=1e-8 * np.abs(M).max())
        power = dynid.dynamics.kinetic_energy_regressor(bare, q + h * v, v + h * a)
        power = power - dynid.dynamics.kinetic_energy_regressor(bare, q - h * v, v - h * a)
        power = (power + dynid.dynamics.potential_energy_regressor(bare, q + h * v)) @ bare.parameters
        power = (power - dynid.dynamics.potential_energy(bare, q - h * v)) / (2 * h)
        assert power == pytest.approx(np.sum(torque * v, axis=1), abs=1e-7 * size)
    if base != "instrumented":
        friction = dynid.inverse_dynamics(robot, q, v, a)
        assert dynid.forward_dynamics(robot, q, v, friction) == pytest.approx(a, abs=1e-8)


@pytest.mark.parametrize("base", ["fixed", "floating"])
@pytest.mark.parametrize("name", ["fourbar", "leg"])
def test_gradient_of_the_regressor(name, base):
    robot = _robot(name).with_base(base)
    q, v, a = random_states(robot, 3, 3)
    G = np.random.default_rng(1).normal(size=(3, len(robot.channels), len(robot.layout)))
    dq, dv, da = regressor_adjoint(robot, G, q, v, a)
    pose = q[:, : robot.nq - robot.n]

    def total(x, y, z):
        return float(np.sum(G * dynid.regressor(robot, x, y, z)))

    joints = q[:, robot.nq - robot.n :]
    assert check_gradient(lambda x: total(np.hstack([pose, x]), v, a), dq[:, robot.nv - robot.n :], joints) < 1e-6
    assert check_gradient(lambda x: total(q, x, a), dv, v) < 1e-6
    assert check_gradient(lambda x: total(q, v, x), da, a) < 1e-6


def test_frames_follow_the_loops():
    robot = _robot("palletizer")
    q = np.array([[0.3, 0.4, -0.2, 0.5]])
    plate = dynid.dynamics.frame_placement(robot, q, "plate")[0]
    assert plate[:3, 2] == pytest.approx([0, 0, 1], abs=1e-12)  # the levelling rods keep the plate horizontal
    J = dynid.dynamics.frame_jacobian(robot, q, "gripper")[0]
    assert J[3:5] == pytest.approx(np.zeros((2, 4)), abs=1e-12)
    h = 1e-6
    for j in range(4):
        ends = [dynid.dynamics.frame_placement(robot, q + s * np.eye(4)[j], "gripper")[0, :3, 3] for s in (h, -h)]
        assert J[:3, j] == pytest.approx((ends[0] - ends[1]) / (2 * h), abs=1e-8)
    from dynid.dynamics.frames import frame_drift

    v = np.array([[1.0, -2.0, 1.5, 0.5]])
    rates = [dynid.dynamics.frame_jacobian(robot, q + s * v, "gripper")[0] @ v[0] for s in (h, -h)]
    assert frame_drift(robot, q, v, "gripper")[0] == pytest.approx((rates[0] - rates[1]) / (2 * h), abs=1e-6)


def test_branch_is_kept_through_any_order_of_samples():
    robot = _robot("fourbar")
    q = np.linspace(-10.0, 10.0, 2000)[:, None]
    there = assemble(robot, q).q
    shuffled = np.random.default_rng(0).permutation(len(q))
    turned = assemble(robot, q[shuffled]).q[np.argsort(shuffled)] - there
    assert turned == pytest.approx(np.round(turned / (2 * np.pi)) * 2 * np.pi, abs=1e-9)


def test_threads_change_nothing(monkeypatch):
    robot = _robot("leg")
    q, v, a = (np.tile(x, (200, 1)) for x in random_states(robot, 10, 5))
    one = dynid.regressor(robot, q, v, a)
    monkeypatch.setenv("DYNID_THREADS", "2")
    assert np.array_equal(one, dynid.regressor(robot, q, v, a))


def test_recursive_method_and_kernels_of_trees_are_refused():
    robot = _robot("fourbar")
    with expect_error(NotApplicable, "method"):
        dynid.base_parameters(robot, method="recursive")
    with expect_error(ModelError, "independent", code="unsupported"):
        robot.to_pinocchio()
    assert robot.to_pinocchio(independent=True).nv == 3
