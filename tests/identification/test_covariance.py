"""Covariances of standard parameters: identities, curvature by differences, and Monte Carlo of what they forecast."""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid import DataError, Robot
from dynid.errors import Infeasible, NotIdentifiable
from dynid.identification.covariance import barrier_covariance, barrier_hessian, base_covariance, shortest_covariance
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot import Joint, Link
from dynid.robot.inertia import inertia_to_pseudo
from tests.support.errors import expect_error
from tests.support.synthetic import arm

Array = NDArray[np.float64]


@cache
def rows() -> tuple[Robot, BaseParameters, Array]:
    """A robot, offsets that nothing constrains among its drives, and whitened rows R (b, p) with two noise levels."""
    robot = arm()
    base = base_parameters(robot)
    q, v, a = np.random.default_rng(0).uniform(-2, 2, (3, 200, robot.n))
    W = base.regressor(q, v, a) / np.array([0.1, 0.5, 0.1])[:, None]
    return robot, base, np.linalg.qr(W.reshape(-1, base.count), mode="r") @ base.matrix


def of_base() -> Array:
    """Covariance of the base values from those rows alone."""
    _, base, R = rows()
    inverse = np.linalg.inv(R[:, list(base.kept)])
    return inverse @ inverse.T


def apart(a: Array, b: Array) -> float:
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def test_shortest_covariance_is_the_pseudo_inverse() -> None:
    """(53): R^+ R^+' without forming R'R, which would square the condition number."""
    _, _, R = rows()
    pinv = np.linalg.pinv(R, rcond=1e-11)
    assert apart(shortest_covariance(R), pinv @ pinv.T) < 1e-10


def test_shortest_covariance_projects_to_that_of_the_base() -> None:
    """Base values scatter as the data say, whatever picks the standard ones."""
    _, base, R = rows()
    assert apart(base_covariance(base, shortest_covariance(R)), of_base()) < 1e-10


def test_barrier_covariance_falls_onto_that_of_the_base() -> None:
    """(56): the error falls in step with the barrier until rounding stops it."""
    robot, base, R = rows()
    errors = [
        apart(base_covariance(base, barrier_covariance(robot, robot.parameters, R, barrier=barrier)), of_base())
        for barrier in (1e-3, 1e-6, 1e-9)
    ]
    assert errors[0] > 30 * errors[1] > 900 * errors[2]
    assert errors[2] < 1e-3


def test_barrier_covariance_settles_for_all_standard_parameters() -> None:
    """Also where only the constraints decide the barrier's height no longer matters; (53) is something else there."""
    robot, _, R = rows()
    high, low = (np.sqrt(np.diag(barrier_covariance(robot, robot.parameters, R, barrier=b))) for b in (1e-9, 1e-11))
    np.testing.assert_allclose(high, low, rtol=0.01, atol=1e-9)  # zero by symmetry, but for rounding
    ratio = np.sqrt(np.diag(shortest_covariance(R))) / low
    assert ratio.min() < 0.5 or ratio.max() > 2


# -- one link ------------------------------------------------------------------------------------------


def one_link() -> Robot:
    """Thirteen parameters, the smallest robot that has all kinds of constraints."""
    inertia = dynid.inertia.inertia_from_com(2.0, np.array([0.1, -0.05, 0.08]), np.diag([0.03, 0.04, 0.05]))
    joint = Joint("j1", "revolute", 0, np.eye(4), np.array([0.0, 0.0, 1.0]))
    robot = Robot(
        "one", (Link("base", np.zeros(10)), Link("arm", inertia)), (joint,), gravity=np.array([0.0, -9.81, 0.0])
    )
    return robot.with_terms(*(robot.joint_term(0, s, x) for s, x in {"Ia": 0.1, "fv": 0.5, "fc": 0.3}.items()))


def barrier(pi: Array) -> float:
    """-log det of the pseudo-inertia and of the drive values; infinite outside."""
    sign, log = np.linalg.slogdet(inertia_to_pseudo(pi[:10]))
    inside = sign > 0 and np.all(np.linalg.eigvalsh(inertia_to_pseudo(pi[:10])) > 0) and np.all(pi[10:] > 0)
    return float(-log - np.log(pi[10:]).sum()) if inside else np.inf


def gradient(pi: Array) -> Array:
    inverse = np.linalg.inv(inertia_to_pseudo(pi[:10]))
    links = [-np.trace(inverse @ inertia_to_pseudo(unit)) for unit in np.eye(10)]
    return np.concatenate([links, -1 / pi[10:]])


def test_barrier_hessian_against_differences() -> None:
    """Central differences of the gradient, which are those of the barrier itself."""
    robot = one_link()
    pi = robot.parameters
    assert dynid.dynamics.check_gradient(lambda x: barrier(x), gradient(pi), pi, step=1e-6) < 1e-6
    H, step = barrier_hessian(robot, pi), 1e-6
    moved = np.array([gradient(pi + step * e) - gradient(pi - step * e) for e in np.eye(13)])
    # Second-order differences: (step / smallest eigenvalue of 0.01)^2.
    assert apart(moved / (2 * step), H) < 1e-6


def test_hessian_leaves_offsets_and_other_links_alone() -> None:
    """Offsets may have any sign; links do not share a barrier."""
    robot = arm()
    H = barrier_hessian(robot, robot.parameters)
    names = robot.parameter_names
    assert not H[[i for i, n in enumerate(names) if n.startswith("off_")]].any()
    assert not H[names.index("m_link1"), names.index("m_link2")]
    assert H[names.index("fv_joint1"), names.index("fv_joint1")] == 1.0  # a friction of one


def test_coupled_terms_share_a_barrier_and_springs_have_none() -> None:
    """Viscous friction of the TX40's wrist: the coupling alone has no sign, its matrix with the joints has."""
    bare = dynid.load_robot("tx40")
    robot = bare.with_terms(bare.joint_term(0, "k", -2.0))
    pi, names = robot.parameters.copy(), robot.parameter_names
    at = [names.index(n) for n in ("fv_joint5", "fv_joint6", "fv_motor6")]
    pi[at[2]] *= -1
    H = barrier_hessian(robot, pi)
    assert not H[names.index("k_joint1")].any()

    def wrist(x: Array) -> float:
        five, six, shared = x
        return float(-np.log(five) - np.log(six) - np.log(five * six - shared**2))

    step, unit = 1e-4, np.eye(3)
    differences = [
        [
            sum(i * j * wrist(pi[at] + step * (i * unit[a] + j * unit[b])) for i in (1, -1) for j in (1, -1))
            for b in range(3)
        ]
        for a in range(3)
    ]
    np.testing.assert_allclose(H[np.ix_(at, at)], np.array(differences) / (4 * step**2), rtol=1e-3, atol=1e-6)


def central(robot: Robot, R: Array, z: Array, height: float, start: Array) -> Array:
    """argmin |R pi - z|^2 / 2 + height * barrier, by damped Newton steps."""
    pi = start.copy()
    for _ in range(200):
        g = R.T @ (R @ pi - z) + height * gradient(pi)
        step = -np.linalg.solve(R.T @ R + height * barrier_hessian(robot, pi), g)
        if -g @ step < 1e-9:  # of a deviation squared
            break
        length = 1.0
        while not np.isfinite(barrier(pi + length * step)):
            length *= 0.5
        pi = pi + length * step
    return pi


def test_monte_carlo_of_the_constrained_estimate() -> None:
    """13 parameters, rank 8, 300 draws; the sandwich forecasts all 13, (53) does not."""
    robot, rng = one_link(), np.random.default_rng(1)
    pi = robot.parameters
    K = rng.normal(size=(8, 13))
    # Mass, sum of moments and drive values are seen, so what fits is bounded.
    K[:2] = 0.0
    K[0, 0] = K[1, [4, 6, 9]] = 1.0
    K[2:5] = np.eye(13)[10:]
    R = 3000.0 * np.linalg.qr(rng.normal(size=(400, 8)))[0] @ K
    height = 1e-3  # the prior of one thousandth of a sample; the data know everything to 1e-3
    centre = central(robot, R, R @ pi, height, pi)
    assert np.abs(centre - pi).max() > 0.005  # another robot, that fits as well
    found = np.array([central(robot, R, R @ pi + rng.normal(size=400), height, centre) for _ in range(300)])
    scatter = found.std(axis=0, ddof=1)
    forecast = np.sqrt(np.diag(barrier_covariance(robot, centre, R)))
    # Errors of a deviation of 300 draws: 4 %; three of them.
    np.testing.assert_allclose(forecast, scatter, rtol=0.12)
    shortest = np.sqrt(np.diag(shortest_covariance(R))) / scatter
    assert shortest.min() < 0.7 or shortest.max() > 1.4


def test_impossible_parameters_have_no_barrier() -> None:
    """Named by link or by drive value."""
    robot, _, R = rows()
    heavy, loose = robot.parameters.copy(), robot.parameters.copy()
    heavy[robot.parameter_names.index("m_link2")] = 1e-3  # its first moments ask for more
    with expect_error(Infeasible):
        barrier_hessian(robot, heavy)
    loose[robot.parameter_names.index("fv_joint3")] = 0.0
    with expect_error(Infeasible):
        barrier_covariance(robot, loose, R)
    with expect_error(DataError):
        barrier_hessian(robot, robot.parameters[:-1])


def test_an_offset_that_no_data_show_is_named() -> None:
    """Nothing holds it: neither rows nor a constraint."""
    robot = arm()
    R = np.zeros((1, len(robot.layout)))
    R[0, 0] = 1.0
    with expect_error(NotIdentifiable):
        barrier_covariance(robot, robot.parameters, R)
