"""Criteria of a design: values against plain formulas, gradients against differences, and designs with them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import NotApplicable, UnknownName
from dynid.excitation.criteria import make_criterion
from tests.support.errors import expect_error

Array = NDArray[np.float64]

ARM = dynid.load_robot("twolink").with_drives("viscous+coulomb", rotor_inertia=True)
PUMA = dynid.load_robot("puma560").with_drives("viscous+coulomb", rotor_inertia=True)
STATIC, DYNAMIC = ("m", "mx", "my", "mz"), ("Ixx", "Ixy", "Ixz", "Iyy", "Iyz", "Izz")
NEW = ("hadamard", "frobenius", "mass-static", "mass-dynamic")


def regressor(robot: dynid.Robot, seed: int = 0, rows: int = 120) -> Array:
    """Base regressor at random states."""
    q, v, a = np.random.default_rng(seed).normal(size=(3, rows, robot.n))
    return np.asarray(dynid.base_parameters(robot).regressor(q, v, a))


def scaled(W: Array, noise: Array, sizes: Array) -> Array:
    """Rows over their noise, columns times their size."""
    return np.asarray((W / noise[:, None] * sizes).reshape(-1, W.shape[2]))


@pytest.fixture(scope="module")
def settings() -> tuple[Array, Array]:
    """Noise of the channels and sizes of the parameters of the PUMA."""
    rng = np.random.default_rng(2)
    return rng.uniform(0.2, 2.0, 6), rng.uniform(0.5, 2.0, dynid.base_parameters(PUMA).count)


def test_hadamard_is_the_determinant_of_the_diagonal(settings: tuple[Array, Array]) -> None:
    """Half the mean logarithm of the diagonal of the information, a bound of d; equal for orthogonal columns."""
    base, W = dynid.base_parameters(PUMA), regressor(PUMA)
    criterion = make_criterion(base, "hadamard", noise=settings[0], sizes=settings[1])
    A = scaled(W, *settings)
    diagonal = np.diag(np.diag(A.T @ A))
    assert criterion(W)[0] == pytest.approx(-0.5 * np.linalg.slogdet(diagonal)[1] / base.count, rel=1e-12)
    assert criterion(W)[0] < make_criterion(base, "d", noise=settings[0], sizes=settings[1])(W)[0] - 0.1
    plain, volume = (make_criterion(base, name) for name in ("hadamard", "d"))
    apart = (np.linalg.qr(A)[0] * np.arange(1, base.count + 1)).reshape(W.shape)
    assert plain(apart)[0] == pytest.approx(volume(apart)[0], rel=1e-12)


def test_frobenius_is_the_condition_number_of_numpy(settings: tuple[Array, Array]) -> None:
    """norm(A) norm(pinv(A)), with information of earlier recordings among the rows."""
    base, W = dynid.base_parameters(PUMA), regressor(PUMA)
    known = np.random.default_rng(3).normal(size=(4, base.count))
    criterion = make_criterion(base, "frobenius", noise=settings[0], sizes=settings[1], known=known)
    A = np.vstack([scaled(W, *settings), known * settings[1]])
    assert criterion(W)[0] == pytest.approx(np.log(np.linalg.norm(A) * np.linalg.norm(np.linalg.pinv(A))), rel=1e-9)
    assert np.exp(criterion(W)[0]) > np.linalg.cond(A)


@pytest.mark.parametrize(("name", "symbols"), [("mass-static", STATIC), ("mass-dynamic", DYNAMIC)])
def test_links_are_weighed_by_mass(name: str, symbols: tuple[str, ...]) -> None:
    """The sum of mass times condition number over links, of some columns only; twice the masses, twice the sum."""
    base, W = dynid.base_parameters(PUMA), regressor(PUMA)
    criterion = make_criterion(base, name)
    exact, links = 0.0, set()
    for link in PUMA.links:
        own = [
            i for i, j in enumerate(base.kept) if PUMA.layout[j].owner == link.name and PUMA.layout[j].symbol in symbols
        ]
        if own:
            links.add(link.name)
            exact += float(link.inertia[0]) * np.linalg.cond(W[:, :, own].reshape(-1, len(own)))
    assert len(links) == len(criterion.parts) >= 5
    assert exact <= criterion(W)[0] <= exact * max(len(c) for _, c in criterion.parts) ** (2 / 24)
    assert criterion.shares == tuple(float(link.inertia[0]) for link in PUMA.links if link.name in links)


@pytest.mark.parametrize("name", NEW)
def test_gradients_are_exact(name: str, settings: tuple[Array, Array]) -> None:
    """Against central differences in a random direction, on the arm and on six joints."""
    for robot in (ARM, PUMA):
        base, W = dynid.base_parameters(robot), regressor(robot)
        criterion = make_criterion(base, name, noise=settings[0][: robot.n], sizes=settings[1][: base.count])
        slope = criterion(W)[1]
        for seed in range(3):
            step = np.random.default_rng(seed).normal(size=W.shape) * np.abs(W).max(axis=(0, 1))
            ahead, behind = (criterion(W + h * step)[0] for h in (1e-5, -1e-5))
            assert np.sum(slope * step) == pytest.approx((ahead - behind) / 2e-5, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("name", NEW)
def test_a_design_lowers_what_it_was_asked_for(name: str) -> None:
    """Within the limits, and by the designed motion more than by one for another criterion."""
    robot = PUMA if name == "mass-dynamic" else ARM  # the inertias of each link of the arm are one parameter

    def design(criterion: str) -> dynid.Excitation:
        limits = {"*": {"acceleration": 10.0, "velocity": 3.0}}
        return dynid.design_excitation(robot, 4.0, size=3, limits=limits, criterion=criterion, budget=20)

    found, other = design(name), design("e" if name == "hadamard" else "d")
    assert found.value < found.criterion(other.base_regressor(25.0)[:-1])[0]
    assert found.problem(1000).worst(found.coefficients) >= 0


def test_what_cannot_be_weighed_is_refused() -> None:
    """A robot without masses, and columns that say nothing."""
    bare = ARM.with_parameters(np.where([p.inertial for p in ARM.layout], 0.0, ARM.parameters))
    with expect_error(NotApplicable, "criterion"):
        make_criterion(dynid.base_parameters(bare), "mass-static")
    with expect_error(UnknownName, "criterion"):
        make_criterion(dynid.base_parameters(ARM), "mass")
    W = regressor(ARM)
    W[:, :, 0] = 0.0
    for name in ("hadamard", "frobenius"):
        assert make_criterion(dynid.base_parameters(ARM), name)(W)[0] == np.inf
