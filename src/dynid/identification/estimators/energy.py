"""Least squares on the energy balance of the motion: from positions, velocities and torques, without accelerations.

The equations and their noise are those of `dynid.identification.balance`. How noisy the torque of each joint is, and
how noisy the energies are, follows from the residuals. Their squares are fitted by variances that are not negative, one
per joint times its share and one for the ends of the windows. The covariance that results whitens the equations.

With the rows W beta = y of the balance, the shares c_ij of the joints in equation i and the variance v_j of each joint:

    var_ii = sum of c_ij v_j + 2 end,    var_i,i-1 = -end for neighbours,    beta = argmin e' var^-1 e,
    (v, end) = argmin of sum of (e_i e_k - var_ik)^2 / var(e_i e_k) over v, end >= 0.

Sources: Gautier, Dynamic Identification of Robots with Power Model (1997), for the power model; Gautier and Khalil,
Direct Calculation of Minimum Set of Inertial Parameters of Serial Robots (1990), for the energy functions. Variances by
nonnegative least squares on products of residuals are our own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import InvalidValue, named
from dynid.identification.balance import Balance, check_balance, energy_balance, power_balance
from dynid.identification.estimators.least_squares import joint_noise, wls
from dynid.identification.estimators.method import Method
from dynid.identification.estimators.options import MethodOptions, check_at_least_one
from dynid.identification.estimators.solution import Solution, solve_factor
from dynid.identification.observation import Observation, fold

__all__ = ["ENERGY", "POWER", "EnergyOptions", "PowerOptions", "Variances", "energy", "power"]

Array = NDArray[np.float64]
# Whitens rows (m, k) that are in the order of the equations.
Whitening = Callable[[Array], Array]

# Least variance of an equation, relative to the mean: that of a window at rest, which shows next to nothing, must not
# rest on an extrapolation to zero.
_LEAST_VARIANCE = 0.01
# How often the variances are fitted with weights that follow from them.
_REWEIGHTED = 4
# Rounding error of the work, relative to its size.
_ROUNDING = 1e-13


@dataclass(frozen=True, eq=False, kw_only=True)
class PowerOptions(MethodOptions):
    """Options of method "power".

    Attributes
    ----------
    iterations : int, default 3
        How often the variances are estimated from the residuals and the fit repeated.
    """

    iterations: int = 3

    def __post_init__(self) -> None:
        check_at_least_one("iterations", self.iterations)


@dataclass(frozen=True, eq=False, kw_only=True)
class EnergyOptions(MethodOptions):
    """Options of method "energy".

    Attributes
    ----------
    window : float, optional
        Seconds over which work is added up. By default a window is as long as a row of the decimation, or 0.4 periods
        of the highest frequency of the motion where nothing is decimated.
    iterations : int, default 3
        How often the variances are estimated from the residuals and the fit repeated.
    """

    window: float | None = None
    iterations: int = 3

    def __post_init__(self) -> None:
        check_at_least_one("iterations", self.iterations)
        if self.window is not None and not (np.ndim(self.window) == 0 and 0 < self.window < np.inf):
            raise InvalidValue(f"{named('window')} must be a positive number of seconds, got {self.window!r:.40}")


def power(observation: Observation, options: PowerOptions | None = None) -> Solution:
    """Fit the balance of power: the numerical derivative of the energies and the power of friction."""
    options = options or PowerOptions()
    check_balance("power", observation)
    balance = power_balance(observation)
    note = f"{len(balance.y)} equations of power, each of all joints together"
    return _solved(observation, balance, options.iterations, note)


POWER = Method(
    name="power",
    sentence="Least squares on the balance of power, without accelerations.",
    options=PowerOptions,
    function=power,
    needs_runs=True,
)


def energy(observation: Observation, options: EnergyOptions | None = None) -> Solution:
    """Fit the balance of energy: its change over windows of time, and the work of friction and of the torques."""
    options = options or EnergyOptions()
    check_balance("energy", observation)
    balance = energy_balance(observation, options.window)
    note = f"{len(balance.y)} equations of energy, each of a window of time and of all joints together"
    return _solved(observation, balance, options.iterations, note)


ENERGY = Method(
    name="energy",
    sentence="Least squares on the balance of energy over windows of time, without accelerations.",
    options=EnergyOptions,
    function=energy,
    needs_runs=True,
)


def _solved(observation: Observation, balance: Balance, iterations: int, note: str) -> Solution:
    """Weighted least squares of a balance whose variances are estimated from the residuals."""
    rows = np.column_stack([balance.W, balance.y])
    whitened = Variances.equal(balance).whitened(rows)
    beta, inverse = _fit(observation, whitened)
    for _ in range(iterations):
        variances = Variances.of_residuals(balance, balance.y - balance.W @ beta)
        whitened = variances.whitened(rows)
        beta, inverse = _fit(observation, whitened)

    def stream() -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
        yield 0, whitened[:, :-1], whitened, balance.index

    direct = np.sqrt(np.diag(wls(observation).covariance))
    ratio = float(np.median(np.linalg.norm(inverse, axis=1) / direct))
    worse = f"standard deviations are {ratio:.2g} times those of one equation per joint (wls, white noise, median)"
    return Solution(
        beta,
        inverse @ inverse.T,
        joint_noise(observation, beta),
        iterations=iterations,
        notes=(f"{note}; {worse}",),
        rows=stream,
        equations=len(balance.y),
    )


def _fit(observation: Observation, whitened: Array) -> tuple[Array, Array]:
    """Base parameters and R^-1 of whitened rows; what joints at rest leave unknown keeps its a-priori values."""
    size = np.sqrt(len(whitened) / max(max(observation.rows), 1))
    known = observation.known_rows(np.full(len(observation.rows), size))
    return solve_factor(fold(np.vstack([whitened, known])), observation.base)


def _at_least(variances: Array, floor: float) -> Array:
    """Variances that are not below a share of their mean, and not below a floor."""
    return np.maximum(variances, max(_LEAST_VARIANCE * float(np.mean(variances)), floor, 1e-300))


@dataclass(frozen=True, eq=False)
class Variances:
    """Variances (m,) of the equations, apart from that of the ends of the windows, which neighbours share."""

    own: Array
    end: float
    joined: NDArray[np.bool_]

    @classmethod
    def equal(cls, balance: Balance) -> Variances:
        """All joints equally noisy: a first guess."""
        return cls(_at_least(balance.shares.sum(axis=1), 0.0), 0.0, balance.joined)

    @classmethod
    def of_residuals(cls, balance: Balance, residual: Array) -> Variances:
        """The variances that explain squares and products of neighbours, each weighted by how well it is known."""
        m, joints = balance.shares.shape
        squares = m / max(m - balance.W.shape[1], 1) * np.column_stack([residual**2, np.roll(residual, 1) * residual])
        # An end adds its variance to both windows that it separates, and minus its variance to their product.
        pair = np.flatnonzero(balance.joined)
        own = np.column_stack([balance.shares, np.full(m, 2.0)])
        shared = np.zeros((len(pair), joints + 1))
        shared[:, joints] = 1.0
        columns, target = np.vstack([own, shared]), np.concatenate([squares[:, 0], -squares[pair, 1]])
        size = np.linalg.norm(columns, axis=0)
        size = np.where(size > 0, size, 1.0)
        floor = (_ROUNDING * float(np.linalg.norm(balance.y))) ** 2 / m
        unit = max(float(np.mean(squares[:, 0])), floor, 1e-300)
        expected = np.ones(m)
        for _ in range(_REWEIGHTED):
            known = np.concatenate([np.sqrt(2.0) * expected, np.sqrt(expected[pair] * expected[pair - 1])])
            found, _ = scipy.optimize.nnls(columns / size / known[:, None], target / unit / known)
            found /= size
            expected = _at_least(own @ found, floor / unit)
        end = unit * float(found[joints])
        return cls(unit * expected - 2.0 * end, end, balance.joined)

    def whitened(self, rows: Array) -> Array:
        """Rows (m, k) with equal, uncorrelated noise: L^-1 rows with the covariance L L' of the equations."""
        band = np.zeros((2, len(rows)))
        band[0] = self.own + 2.0 * self.end
        band[1, :-1] = np.where(self.joined[1:], -self.end, 0.0)
        lower = scipy.linalg.cholesky_banded(band, lower=True)
        return np.asarray(scipy.linalg.solve_banded((1, 0), lower, rows))
