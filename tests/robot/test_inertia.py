"""Forms of the ten inertial parameters: conversions and their inverses, against Pinocchio."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid.errors import InvalidShape
from tests.support.errors import expect_error
from tests.support.robot_files import Array, motion

# Bodies differ by orders of magnitude; errors are measured against the largest number of the body itself.
ROUNDING = 1e-12


@st.composite
def bodies(draw: st.DrawFn) -> Array:
    """Parameters of a physically consistent body: grams to tonnes, centimetres to metres, not thinner than 1 : 30."""
    number = st.floats(-1, 1, width=32)
    mass = 10.0 ** draw(st.floats(-3, 3))
    com = np.array([draw(number) for _ in range(3)])
    lengths = [10.0 ** draw(st.floats(-1.5, 0)) for _ in range(3)]
    axes = pin.exp3(np.pi * np.array([draw(number) for _ in range(3)]))
    second = axes @ np.diag(np.square(lengths)) @ axes.T
    return dynid.inertia.inertia_from_com(mass, com, mass * (np.trace(second) * np.eye(3) - second))


@st.composite
def placements(draw: st.DrawFn) -> Array:
    number = st.floats(-1, 1, width=32)
    out = np.eye(4)
    out[:3, :3] = pin.exp3(np.pi * np.array([draw(number) for _ in range(3)]))
    out[:3, 3] = [draw(number) for _ in range(3)]
    return out


def assert_same_body(ours: Array, theirs: Array) -> None:
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=ROUNDING * np.abs(theirs).max())


@given(bodies())
@settings(deadline=None)
def test_centre_of_mass_form_comes_back(pi: Array) -> None:
    """Mass, centre of mass and tensor about it, there and back, as Pinocchio holds them."""
    mass, com, tensor = dynid.inertia.inertia_to_com(pi)
    assert_same_body(dynid.inertia.inertia_from_com(mass, com, tensor), pi)
    theirs = pin.Inertia(float(mass), com, tensor)
    assert_same_body(theirs.toDynamicParameters(), pi)


def test_jacobian_of_the_centre_of_mass_form_is_exact() -> None:
    """Central differences of a stack of bodies; no coordinate enters with more than its square, so they are exact."""
    rng = np.random.default_rng(0)
    mu, step = rng.normal(size=(4, 10)), 1e-3

    def standard(x: Array) -> Array:
        tensor = x[..., [[4, 5, 7], [5, 6, 8], [7, 8, 9]]]
        return dynid.inertia.inertia_from_com(x[..., 0], x[..., 1:4], tensor)

    ours = dynid.inertia.com_jacobian(mu[:, 0], mu[:, 1:4])
    assert ours.shape == (4, 10, 10)
    for k, unit in enumerate(np.eye(10)):
        slope = (standard(mu + step * unit) - standard(mu - step * unit)) / (2 * step)
        np.testing.assert_allclose(ours[..., k], slope, atol=1e-11)
    np.testing.assert_array_equal(dynid.inertia.com_jacobian(mu[2, 0], mu[2, 1:4]), ours[2])
    with expect_error(InvalidShape, "mass"):
        dynid.inertia.com_jacobian([1.0, 2.0], [0.0, 0.0, 0.0])


@given(bodies())
@settings(deadline=None)
def test_pseudo_inertia_comes_back(pi: Array) -> None:
    """The 4x4 pseudo-inertia is Pinocchio's, positive definite, and gives the same body back."""
    pseudo = dynid.inertia.inertia_to_pseudo(pi)
    theirs = pin.Inertia.FromDynamicParameters(pi).toPseudoInertia().toMatrix()
    np.testing.assert_allclose(pseudo, theirs, rtol=0, atol=ROUNDING * np.abs(pseudo).max())
    assert np.linalg.eigvalsh(pseudo)[0] > 0
    assert_same_body(dynid.inertia.inertia_from_pseudo(pseudo), pi)


@given(bodies())
@settings(deadline=None)
def test_spatial_inertia_comes_back(pi: Array) -> None:
    """The 6x6 matrix is Pinocchio's, and gives the same body back."""
    spatial = dynid.inertia.inertia_to_spatial(pi)
    theirs = pin.Inertia.FromDynamicParameters(pi).matrix()
    np.testing.assert_allclose(spatial, theirs, rtol=0, atol=ROUNDING * np.abs(spatial).max())
    assert_same_body(dynid.inertia.inertia_from_spatial(spatial), pi)


@given(bodies())
@settings(deadline=None)
def test_log_cholesky_form_comes_back(pi: Array) -> None:
    """The ten free numbers rebuild the body, in our code and in Pinocchio's."""
    theta = dynid.inertia.inertia_to_log_cholesky(pi)
    # The factor of a thin body (second moments 1 : 1000) loses three digits.
    loose = 1e3 * ROUNDING * np.abs(pi).max()
    np.testing.assert_allclose(dynid.inertia.inertia_from_log_cholesky(theta), pi, rtol=0, atol=loose)
    theirs = pin.Inertia.FromLogCholeskyParameters(pin.LogCholeskyParameters(theta))
    np.testing.assert_allclose(theirs.toDynamicParameters(), pi, rtol=0, atol=loose)


@given(st.lists(st.floats(-2, 2), min_size=10, max_size=10))
@settings(deadline=None)
def test_any_log_cholesky_numbers_are_a_possible_body(theta: list[float]) -> None:
    """Any log-Cholesky vector gives a physically consistent body."""
    assert dynid.inertia.inertia_violations(dynid.inertia.inertia_from_log_cholesky(theta)) == []


@given(bodies(), placements())
@settings(deadline=None)
def test_moving_a_body_is_pinocchios_action(pi: Array, h: Array) -> None:
    """The parallel-axis rule with rotation: as Pinocchio moves inertias, and back by the inverse placement."""
    moved = dynid.inertia.move_inertia(pi, h)
    theirs = pin.SE3(h).act(pin.Inertia.FromDynamicParameters(pi)).toDynamicParameters()
    assert_same_body(moved, theirs)
    back = dynid.inertia.move_inertia(moved, np.linalg.inv(h))
    np.testing.assert_allclose(back, pi, rtol=0, atol=ROUNDING * max(np.abs(moved).max(), np.abs(pi).max()))


def test_parallel_axis_rule_of_a_point_mass() -> None:
    """Two kilograms three metres away along x: inertia m d^2 about y and z, nothing about x."""
    h = np.eye(4)
    h[0, 3] = 3.0
    np.testing.assert_array_equal(dynid.inertia.move_inertia([2.0, *[0.0] * 9], h), [2, 6, 0, 0, 0, 0, 18, 0, 0, 18])


def test_stacks_of_bodies_convert_at_once() -> None:
    """A stack (2, 3, 10) gives what each body gives alone."""
    rng = np.random.default_rng(0)
    stack = dynid.inertia.inertia_from_log_cholesky(rng.uniform(-1, 1, (2, 3, 10)))
    for convert in (
        dynid.inertia.inertia_to_pseudo,
        dynid.inertia.inertia_to_spatial,
        dynid.inertia.inertia_to_log_cholesky,
    ):
        together = convert(stack)
        np.testing.assert_allclose(together[1, 2], convert(stack[1, 2]), atol=1e-15)
    com = dynid.inertia.inertia_to_com(stack)
    assert [x.shape for x in com] == [(2, 3), (2, 3, 3), (2, 3, 3, 3)]
    np.testing.assert_allclose(dynid.inertia.inertia_from_com(*com), stack, atol=1e-12)


ORDERS = {
    "pinocchio": "m mx my mz Ixx Ixy Iyy Ixz Iyz Izz",
    "khalil": "m mx my mz Ixx Ixy Ixz Iyy Iyz Izz",
    "sympybotics": "Ixx Ixy Ixz Iyy Iyz Izz mx my mz m",
}


@pytest.mark.parametrize("source", ORDERS)
@pytest.mark.parametrize("target", ORDERS)
def test_orders_of_the_field_convert_into_each_other(source: str, target: str) -> None:
    """Each number lands where the other order writes it, and comes back."""
    code = {symbol: float(k) for k, symbol in enumerate(ORDERS["pinocchio"].split())}
    given, expected = ([code[s] for s in ORDERS[name].split()] for name in (source, target))
    converted = dynid.inertia.reorder_inertia(given, source, target)
    np.testing.assert_array_equal(converted, expected)
    np.testing.assert_array_equal(dynid.inertia.reorder_inertia(converted, target, source), given)


# -- what is physically possible -------------------------------------------------------------------


@given(bodies())
@settings(deadline=None)
def test_possible_bodies_break_no_law(pi: Array) -> None:
    """Nothing is reported for a body with positive mass distributed over a volume."""
    assert dynid.inertia.inertia_violations(pi) == []


def diagonal(mass: float, *principal: float) -> Array:
    """A body with these principal inertias about its centre of mass, which is off the origin."""
    return dynid.inertia.inertia_from_com(mass, [0.3, -0.2, 0.1], np.diag(principal))


def test_triangle_inequality_is_seen_behind_a_positive_definite_tensor() -> None:
    """Positive principal inertias are not enough: 1 + 1 < 3 belongs to no mass distribution."""
    pi = diagonal(2.0, 1.0, 3.0, 1.0)
    assert np.linalg.eigvalsh(dynid.inertia.inertia_to_spatial(pi))[0] > 0
    assert np.linalg.eigvalsh(dynid.inertia.inertia_to_pseudo(pi))[0] < 0
    assert dynid.inertia.inertia_violations(pi) == ["triangle inequality broken: principal inertias 1 + 1 < 3 kg m2"]


def test_flat_and_thin_bodies_on_the_boundary_are_possible() -> None:
    """A plate (1 + 2 = 3), a rod (0 + 1 = 1) and a point mass are limits of real bodies, rounding or not."""
    assert dynid.inertia.inertia_violations(diagonal(1.0, 1.0, 2.0, 3.0)) == []
    assert dynid.inertia.inertia_violations(diagonal(1.0, 0.0, 1.0, 1.0)) == []
    assert dynid.inertia.inertia_violations(diagonal(1.0, 0.0, 0.0, 0.0)) == []


def test_words_name_the_law_and_the_number() -> None:
    """Mass, tensor and first moment each have their own sentence."""
    assert dynid.inertia.inertia_violations(diagonal(-1.5, 1, 1, 1))[0] == "mass -1.5 kg is not positive"
    negative = dynid.inertia.inertia_violations(diagonal(1.0, -0.25, 1, 1))
    assert negative == ["inertia about the centre of mass has the negative principal value -0.25 kg m2"]
    massless = dynid.inertia.inertia_violations([0, 1, 0, 0, 1, 0, 1, 0, 0, 1])
    assert massless == ["mass 0 kg is not positive", "first moment without mass"]


# -- bodies on robots ------------------------------------------------------------------------------


def test_payload_changes_the_dynamics_as_pinocchio_says() -> None:
    """Bolting a body to the hand equals appendBodyToJoint on the same joint of Pinocchio's model."""
    robot = dynid.load_robot("wam7").without("*")
    load = dynid.inertia.inertia_from_com(3.0, [0.02, -0.05, 0.1], np.diag([0.02, 0.03, 0.04]))
    h = np.eye(4)
    h[:3, :3], h[:3, 3] = pin.rpy.rpyToMatrix(0.3, -0.5, 1.0), [0.1, 0.2, 0.3]
    loaded = robot.with_payload("link7", load, h)
    model = robot.to_pinocchio()
    hand = pin.SE3(np.asarray(robot.joints[-1].mount)) * pin.SE3(h)
    model.appendBodyToJoint(model.getJointId("joint7"), pin.Inertia.FromDynamicParameters(load), hand)
    data = model.createData()
    for q, v, a in zip(*motion(robot), strict=True):
        theirs = pin.rnea(model, data, q, v, a)
        np.testing.assert_allclose(dynid.inverse_dynamics(loaded, q, v, a), theirs, atol=1e-11)  # up to 100 N m
        assert np.abs(theirs - dynid.inverse_dynamics(robot, q, v, a)).max() > 1  # the load is felt


def test_payload_sits_in_the_link_frame_unless_placed() -> None:
    """Without a placement the ten numbers are added as they are, and the robot before is untouched."""
    robot = dynid.load_robot("box2")
    before = robot.links[2].inertia.copy()
    pi = dynid.inertia.inertia_from_com(2.0, [0.1, 0.0, 0.0], 0.01 * np.eye(3))
    np.testing.assert_allclose(robot.with_payload("link2", pi).links[2].inertia, before + pi, atol=1e-15)
    np.testing.assert_array_equal(robot.links[2].inertia, before)
