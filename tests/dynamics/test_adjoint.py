"""The adjoint of the regressor against central differences, and the tool that compares them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.errors import InvalidShape, NotFinite
from tests.support.compare import difference
from tests.support.errors import expect_error
from tests.support.random_robots import displaced, random_motion, random_robot, robots, with_custom_terms

Array = NDArray[np.float64]

# Central differences with step 1e-5 lose 1e-10 by truncation and 1e-11 by rounding, each times the ratio of the
# function and its higher derivatives to the gradient, which reaches some thousand.
EXACT = 1e-6
STEP = 1e-5

examples = settings(max_examples=15, deadline=None, derandomize=True)
seeds = st.integers(0, 2**16)


def largest_error(robot: Robot, seed: int, factor: float = 1.0) -> float:
    """Largest relative error over q, v and a of the gradient of sum(G * Y), `factor` times the computed one."""
    q, v, a = random_motion(robot, seed, samples=2)
    G = np.random.default_rng(seed).normal(size=(len(q), len(robot.channels), len(robot.layout)))
    gradients = dynid.dynamics.regressor_adjoint(robot, G, q, v, a)

    def value(x: Array) -> float:
        return float(np.sum(G * dynid.regressor(robot, displaced(robot, q, x[0]), v + x[1], a + x[2])))

    return dynid.dynamics.check_gradient(value, factor * np.stack(gradients), np.zeros((3, *v.shape)), step=STEP)


@examples
@given(robots(most=8), seeds)
def test_adjoint_of_inertial_columns(robot: Robot, seed: int) -> None:
    """Revolute and prismatic joints on every kind of base; a floating base moves on its group."""
    assert largest_error(robot, seed) < EXACT


@examples
@given(robots(most=8, mimics=3), seeds)
def test_adjoint_with_mimic_joints(robot: Robot, seed: int) -> None:
    """Followers hand their share of the gradient to their leader."""
    assert largest_error(robot, seed) < EXACT


@examples
@given(robots(most=4, drives=True), seeds)
def test_adjoint_with_all_drives(robot: Robot, seed: int) -> None:
    """Every kind of drive term on joint and motor side, cross-only ones too."""
    assert largest_error(robot, seed) < EXACT


@pytest.mark.parametrize("base", ["fixed", "floating", "instrumented"])
def test_adjoint_with_custom_terms(base: str) -> None:
    """A user's own columns take part, behind a floating base and a measured wrench too."""
    assert largest_error(with_custom_terms(random_robot(17, 4, base=base)), 18) < EXACT


@pytest.mark.parametrize("which", ["Ia", "fv", "fvp", "fvn", "k"])
def test_each_drive_term_has_its_own_gradient(which: str) -> None:
    """With weight on one drive column alone, nothing larger hides an error in it."""
    bare = random_robot(4, 3)
    robot = bare.with_terms(bare.joint_term(1, which, 0.2, rest=0.3))
    q, v, a = random_motion(robot, 5, samples=2)
    v[:, 1] = [0.7, -0.4]  # both sides of the one-sided terms
    G = np.zeros((2, robot.n, len(robot.layout)))
    G[:, :, robot.parameter_names.index(f"{which}_{robot.coordinates[1]}")] = [[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]
    gradients = dict(zip("qva", dynid.dynamics.regressor_adjoint(robot, G, q, v, a), strict=True))
    slope = {"fvp": [2.0, 0.0], "fvn": [0.0, 5.0]}.get(which, [2.0, 5.0])
    of = {"Ia": "a", "k": "q"}.get(which, "v")
    for name, gradient in gradients.items():
        expected = np.zeros((2, robot.n))
        if name == of:
            expected[:, 1] = slope
        assert np.array_equal(gradient, expected)


def test_adjoint_with_smooth_coulomb_friction() -> None:
    """On joints and coupled motors, two-sided and one-sided; with weight on its columns alone too."""
    bare = dynid.load_robot("tx40")
    robot = bare.with_terms(bare.joint_term(0, "fcp", 0.4), bare.joint_term(1, "fcn", 0.3)).with_smooth_coulomb(2.0)
    assert largest_error(robot, 19) < EXACT
    q, v, a = random_motion(robot, 20, samples=2)
    G = np.zeros((2, robot.n, len(robot.layout)))
    dry = [i for i, name in enumerate(robot.parameter_names) if name.startswith("fc")]
    G[:, :, dry] = np.random.default_rng(2).normal(size=(2, robot.n, len(dry)))

    def value(x: Array) -> float:
        return float(np.sum(G * dynid.regressor(robot, q, x, a)))

    gq, gv, ga = dynid.dynamics.regressor_adjoint(robot, G, q, v, a)
    assert dynid.dynamics.check_gradient(value, gv, v, step=STEP) < EXACT
    assert np.abs(gv).max() > 0.1 and not gq.any() and not ga.any()


def test_gradient_of_a_nonlinear_function_of_the_regressor() -> None:
    """Chained with df/dY, the adjoint gives the gradient of log det(W'W), the criterion of D-optimal motions."""
    robot = random_robot(9, 2, kinds="rr", parents=[0, 1])
    q, v, a = random_motion(robot, 10, samples=12)
    columns = slice(10, 14)  # a well-conditioned few

    def criterion(x: Array) -> float:
        W = dynid.regressor(robot, x, v, a)[:, :, columns].reshape(-1, 4)
        return float(np.linalg.slogdet(W.T @ W)[1])

    Y = dynid.regressor(robot, q, v, a)
    W = Y[:, :, columns].reshape(-1, 4)
    G = np.zeros_like(Y)
    G[:, :, columns] = 2 * (W @ np.linalg.inv(W.T @ W)).reshape(*Y.shape[:2], 4)
    assert (
        dynid.dynamics.check_gradient(criterion, dynid.dynamics.regressor_adjoint(robot, G, q, v, a)[0], q, step=STEP)
        < EXACT
    )


def test_one_sample_needs_no_batch_axis() -> None:
    """The adjoint of a single sample is the first of a batch of one."""
    robot = random_robot(12, 3, drives=True)
    (q,), (v,), (a,) = random_motion(robot, 13, samples=1)
    G = np.random.default_rng(1).normal(size=(len(robot.channels), len(robot.layout)))
    single = dynid.dynamics.regressor_adjoint(robot, G, q, v, a)
    batch = dynid.dynamics.regressor_adjoint(robot, G[None], q[None], v[None], a[None])
    for one, many in zip(single, batch, strict=True):
        assert one.shape == (robot.nv,)
        assert np.array_equal(one, many[0])


def test_weights_of_another_shape_or_not_finite_are_refused() -> None:
    """G must have the shape of the regressor and hold numbers."""
    robot = random_robot(12, 3)
    q, v, a = random_motion(robot, 13)
    G = np.ones((len(q), robot.n, len(robot.layout)))
    with expect_error(InvalidShape, "G"):
        dynid.dynamics.regressor_adjoint(robot, G[:, :, :-1], q, v, a)
    G[1, 0, 0] = np.nan
    with expect_error(NotFinite, "G"):
        dynid.dynamics.regressor_adjoint(robot, G, q, v, a)


def test_check_gradient_catches_a_wrong_gradient() -> None:
    """A gradient off by one part in a thousand, or wrong in one entry, stands out far above the tolerance."""
    robot = random_robot(14, 4)
    assert largest_error(robot, 15) < EXACT
    assert largest_error(robot, 15, factor=1.001) > 5e-4
    x = np.array([1.0, 2.0, 3.0])
    wrong = np.array([2.0, 4.0, 6.01])
    found = dynid.dynamics.check_gradient(lambda y: float(np.sum(y**2)), wrong, x)
    assert difference(found, 0.01 / 6.01) < 1e-6  # the differences of a parabola are exact up to rounding


def test_check_gradient_leaves_the_point_alone() -> None:
    """The caller's point is not moved, and a gradient of another shape is refused."""
    x = np.array([[1.0, 2.0]])
    dynid.dynamics.check_gradient(lambda y: float(y.sum()), np.ones((1, 2)), x)
    assert np.array_equal(x, [[1.0, 2.0]])
    with expect_error(InvalidShape, "gradient"):
        dynid.dynamics.check_gradient(lambda y: float(y.sum()), np.ones(2), x)
