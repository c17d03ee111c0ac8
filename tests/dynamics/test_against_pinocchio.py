"""Every kernel against the same quantity from Pinocchio, on random trees."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dynid
from dynid import Robot
from tests.support.by_pinocchio import each, regressor_in_link_frames
from tests.support.compare import difference
from tests.support.random_robots import displaced, mimic_map, random_motion, random_robot, robots

Array = NDArray[np.float64]

# Two algorithms in double precision: rounding errors of 1e-16 along chains of up to twelve joints, whose
# intermediate terms can exceed the result a thousandfold.
SAME = 1e-10

examples = settings(max_examples=20, deadline=None, derandomize=True)
seeds = st.integers(0, 2**16)
moving = ("fixed", "floating")


def mass_matrices(model: pin.Model, q: Array) -> Array:
    """M (N, nv, nv) by crba, which fills the upper triangle only."""
    upper = np.triu(each(pin.crba, model, q).reshape(len(q), model.nv, model.nv))
    return upper + np.triu(upper, 1).swapaxes(1, 2)


@examples
@given(robots(bases=moving), seeds)
def test_regressor_matches_pinocchio(robot: Robot, seed: int) -> None:
    """Y equals Pinocchio's joint torque regressor, also where link frames stand off the joint frames."""
    q, v, a = random_motion(robot, seed)
    theirs = regressor_in_link_frames(robot, robot.to_pinocchio(), q, v, a)
    assert difference(dynid.regressor(robot, q, v, a), theirs) < SAME


@examples
@given(robots(bases=moving, rotors=True), seeds)
def test_inverse_dynamics_matches_rnea(robot: Robot, seed: int) -> None:
    """Torques equal rnea's, with rotor inertia as armature."""
    q, v, a = random_motion(robot, seed)
    model = robot.to_pinocchio()
    assert np.all(model.armature[-robot.n :] > 0)
    assert difference(dynid.inverse_dynamics(robot, q, v, a), each(pin.rnea, model, q, v, a)) < SAME


@examples
@given(robots(bases=moving, rotors=True), seeds)
def test_mass_matrix_matches_crba(robot: Robot, seed: int) -> None:
    """M equals crba's, with rotor inertia as armature."""
    q, _, _ = random_motion(robot, seed)
    assert difference(dynid.mass_matrix(robot, q), mass_matrices(robot.to_pinocchio(), q)) < SAME


@examples
@given(robots(bases=moving, rotors=True), seeds)
def test_forward_dynamics_matches_aba(robot: Robot, seed: int) -> None:
    """Accelerations equal aba's, with rotor inertia as armature."""
    q, v, tau = random_motion(robot, seed)
    theirs = each(pin.aba, robot.to_pinocchio(), q, v, 30 * tau)
    # Solving loses what the mass matrix is conditioned by: light bodies beside heavy trees reach 1e3 to 1e4.
    condition = np.linalg.cond(dynid.mass_matrix(robot, q)).max()
    assert difference(dynid.forward_dynamics(robot, q, v, 30 * tau), theirs) < max(SAME, 1e-15 * condition)


@examples
@given(robots(bases=moving), seeds)
def test_gravity_torque_matches_pinocchio(robot: Robot, seed: int) -> None:
    """The holding torque equals computeGeneralizedGravity's, for gravity in any direction."""
    q, _, _ = random_motion(robot, seed)
    theirs = each(pin.computeGeneralizedGravity, robot.to_pinocchio(), q)
    assert difference(dynid.dynamics.gravity_torque(robot, q), theirs) < SAME


@examples
@given(robots(bases=moving), seeds)
def test_bias_torque_matches_pinocchio(robot: Robot, seed: int) -> None:
    """The bias torque equals nonLinearEffects', and is gravity plus Coriolis torque."""
    q, v, _ = random_motion(robot, seed)
    bias = dynid.dynamics.bias_torque(robot, q, v)
    assert difference(bias, each(pin.nonLinearEffects, robot.to_pinocchio(), q, v)) < SAME
    assert (
        difference(dynid.dynamics.gravity_torque(robot, q) + dynid.dynamics.coriolis_torque(robot, q, v), bias) < SAME
    )


@examples
@given(robots(bases=moving), seeds)
def test_coriolis_matrix_times_speed_is_the_coriolis_torque(robot: Robot, seed: int) -> None:
    """C v equals the Coriolis torque, ours and Pinocchio's without gravity."""
    q, v, _ = random_motion(robot, seed)
    product = np.einsum("kij,kj->ki", dynid.dynamics.coriolis_matrix(robot, q, v), v)
    assert difference(product, dynid.dynamics.coriolis_torque(robot, q, v)) < SAME
    model = robot.to_pinocchio()
    model.gravity.linear = np.zeros(3)
    assert difference(product, each(pin.nonLinearEffects, model, q, v)) < SAME


@examples
@given(robots(bases=moving, mimics=3), seeds)
def test_mass_rate_minus_twice_coriolis_is_skew(robot: Robot, seed: int) -> None:
    """dM/dt along the motion, by central differences, equals C + C'."""
    q, v, _ = random_motion(robot, seed)
    step = 1e-5  # truncation h^2 = 1e-10 and rounding 1e-16 / h = 1e-11, times derivatives of some hundred
    ahead, behind = (dynid.mass_matrix(robot, displaced(robot, q, s * step * v)) for s in (1.0, -1.0))
    C = dynid.dynamics.coriolis_matrix(robot, q, v)
    assert difference(C + C.swapaxes(1, 2), (ahead - behind) / (2 * step)) < 1e-6


def test_coriolis_matrix_is_the_one_of_christoffel_symbols() -> None:
    """On a fixed base C_ij = sum_k (dM_ij/dq_k + dM_ik/dq_j - dM_jk/dq_i) v_k / 2, derivatives by differences."""
    robot = random_robot(5, 5, kinds="rprrp", mimics=1)
    q, v, _ = random_motion(robot, 6, samples=1)
    step = 1e-5
    slope = np.stack(
        [
            (dynid.mass_matrix(robot, q + step * e) - dynid.mass_matrix(robot, q - step * e))[0] / (2 * step)
            for e in np.eye(robot.n)
        ],
        axis=2,
    )
    christoffel = (slope + slope.transpose(0, 2, 1) - slope.transpose(2, 1, 0)) / 2
    # Central differences as above: truncation 1e-10 times derivatives of some hundred.
    assert difference(dynid.dynamics.coriolis_matrix(robot, q, v)[0], christoffel @ v[0]) < 1e-7


@examples
@given(robots(bases=moving, rotors=True), seeds)
def test_energies_match_pinocchio(robot: Robot, seed: int) -> None:
    """Kinetic and potential energy equal Pinocchio's, rotors counted on both sides."""
    q, v, _ = random_motion(robot, seed)
    model = robot.to_pinocchio()
    rotors = 0.5 * v**2 @ model.armature
    model.armature = np.zeros(model.nv)  # counted for some kinds of joints only (seen in 4.1): added by hand
    kinetic = each(pin.computeKineticEnergy, model, q, v) + rotors
    assert difference(dynid.dynamics.kinetic_energy(robot, q, v), kinetic) < SAME
    assert difference(dynid.dynamics.potential_energy(robot, q), each(pin.computePotentialEnergy, model, q)) < SAME


@examples
@given(robots(bases=("instrumented",), rotors=True), seeds)
def test_base_wrench_matches_a_free_flyer_at_rest(robot: Robot, seed: int) -> None:
    """The wrench under an instrumented base is what rnea asks of a free-flyer root that stands still."""
    q, v, a = random_motion(robot, seed)
    still = np.zeros((len(q), 6))
    origin = np.tile([0, 0, 0, 0, 0, 0, 1.0], (len(q), 1))
    flying = (np.hstack([origin, q]), np.hstack([still, v]), np.hstack([still, a]))
    model = robot.with_base("floating").to_pinocchio()
    assert difference(dynid.inverse_dynamics(robot, q, v, a), each(pin.rnea, model, *flying)) < SAME
    Y = dynid.regressor(robot.without("Ia_*"), q, v, a)
    assert difference(Y, regressor_in_link_frames(robot.with_base("floating"), model, *flying)) < SAME


@examples
@given(robots(bases=("instrumented",), rotors=True), seeds)
def test_an_instrumented_base_moves_like_a_fixed_one(robot: Robot, seed: int) -> None:
    """Mass matrix, Coriolis matrix and accelerations of an instrumented robot are the fixed robot's."""
    q, v, tau = random_motion(robot, seed)
    fixed = robot.with_base("fixed")
    assert np.array_equal(dynid.mass_matrix(robot, q), dynid.mass_matrix(fixed, q))
    assert np.array_equal(dynid.dynamics.coriolis_matrix(robot, q, v), dynid.dynamics.coriolis_matrix(fixed, q, v))
    assert np.array_equal(dynid.forward_dynamics(robot, q, v, tau), dynid.forward_dynamics(fixed, q, v, tau))


@examples
@given(robots(bases=moving, mimics=4), seeds)
def test_mimic_joints_match_the_projected_free_model(robot: Robot, seed: int) -> None:
    """A robot with mimic joints is Pinocchio's model of all its joints, projected on the independent ones."""
    q, v, a = random_motion(robot, seed)
    model = robot.to_pinocchio(independent=True)
    G, offset = mimic_map(robot)
    first = robot.nv - robot.n
    project = np.zeros((first + len(G), robot.nv))
    project[:first, :first], project[first:, first:] = np.eye(first), G
    all_q = np.hstack([q[:, : robot.nq - robot.n], q[:, robot.nq - robot.n :] @ G.T + offset])
    all_v, all_a = v @ project.T, a @ project.T
    tau = each(pin.rnea, model, all_q, all_v, all_a) @ project
    assert difference(dynid.inverse_dynamics(robot, q, v, a), tau) < SAME
    M = project.T @ mass_matrices(model, all_q) @ project
    assert difference(dynid.mass_matrix(robot, q), M) < SAME
    Y = project.T @ regressor_in_link_frames(robot, model, all_q, all_v, all_a)
    assert difference(dynid.regressor(robot, q, v, a), Y) < SAME
    assert (
        difference(dynid.dynamics.kinetic_energy(robot, q, v), each(pin.computeKineticEnergy, model, all_q, all_v))
        < SAME
    )
    assert difference(dynid.dynamics.potential_energy(robot, q), each(pin.computePotentialEnergy, model, all_q)) < SAME
