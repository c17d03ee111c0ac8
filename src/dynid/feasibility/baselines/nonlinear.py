"""Feasibility as nonlinear inequalities, solved by sequential quadratic programming.

`nonlinear_fit` works on the standard parameters with Sylvester's minors (Mata 2005, Farhat 2008), `physical_fit` on
mass, centre of mass and tensor about it with bounds and rules of thumb (Halper 2024). Neither is a convex problem: the
result depends on the start and on the number of iterations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import optimize
from threadpoolctl import threadpool_limits

from dynid.errors import DataError, InvalidShape, InvalidValue, UnknownName
from dynid.feasibility.baselines.base_rows import physical_of, standard_of, tensor_of
from dynid.feasibility.baselines.result import BaselineFit, body_columns, checked_problem, signed_columns
from dynid.feasibility.sets import feasible_set
from dynid.robot.inertia_slopes import com_jacobian
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = ["Rule", "RuleViolation", "nonlinear_fit", "physical_fit", "rule_list", "sanity_rules", "violated_rules"]

Array = NDArray[np.float64]


# Rules of thumb for a link's inertia, from Halper 2024 (3.53), who took them from robot-simulator tutorials.
#
# All are linear in the six entries of the tensor about the centre of mass. Only (a) is a law of physics, and that only
# in principal axes; positive definiteness must be required in addition.

Axis = Literal["x", "y", "z"]

# Columns Ixx, Ixy, Iyy, Ixz, Iyz, Izz: indices of the diagonal and of the other entries.
_DIAGONAL, _REST = (0, 2, 5), (1, 3, 4)
_NAMES = ("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
_SMALLEST = 1e-4
_RATIO, _SKEW, _SLENDER = 100.0, 0.1, 3.0


@dataclass(frozen=True, eq=False)
class Rule:
    """The rule rows (k, 6) @ (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) >= bound, with its letter and description."""

    letter: str
    words: str
    rows: Array
    bound: float = 0.0

    def slacks(self, entries: Array) -> Array:
        """Slack per row (k,), kg m2; negative where the rule is violated."""
        return np.asarray(self.rows @ entries - self.bound)

    def rounding(self, digits: float) -> Array:
        """Largest error of each slack (k,) if every entry has a rounding error of up to `digits`."""
        return digits * np.abs(self.rows).sum(axis=1)


@dataclass(frozen=True)
class RuleViolation:
    """A rule that a link violates.

    Attributes
    ----------
    code : str
        Letter of the rule, "mass" or "definite".
    message : str
        The rule and by how much it is violated, in words.
    """

    code: str
    message: str


def rule_list(slender: Axis | None = None) -> tuple[Rule, ...]:
    """Rules (a) to (d) for every link, and (e/f) for a link that is slender along an axis of its frame."""
    unit = np.eye(6)
    x, y, z = (unit[i] for i in _DIAGONAL)
    pairs = list(permutations(_DIAGONAL, 2))
    rules = [
        Rule("a", "triangle inequality of the diagonal", np.array([y + z - x, x + z - y, x + y - z])),
        Rule("b", "diagonal entries within a factor 100", np.array([_RATIO * unit[i] - unit[j] for i, j in pairs])),
        Rule(
            "c",
            "no other entry above a tenth of the diagonal",
            np.array([_SKEW * unit[i] - sign * unit[j] for i in _DIAGONAL for j in _REST for sign in (1, -1)]),
        ),
        Rule("d", "diagonal entries of at least 1e-4 kg m2", np.array([x, y, z]), _SMALLEST),
    ]
    if slender is not None:
        if slender not in ("x", "y", "z"):
            raise UnknownName(f"slender axis '{slender}' is unknown: use x, y or z", "slender")
        own = _DIAGONAL["xyz".index(slender)]
        others = [i for i in _DIAGONAL if i != own]
        words = f"slender along {slender}: the other diagonal entries at least three times {_NAMES[own]}"
        letter = "f" if slender == "y" else "e"
        rules.append(Rule(letter, words, np.array([unit[i] - _SLENDER * unit[own] for i in others])))
    return tuple(rules)


def tensor_entries(inertia: ArrayLike) -> Array:
    """Ixx, Ixy, Iyy, Ixz, Iyz, Izz (6,) of a tensor (3, 3)."""
    tensor = checked(inertia, (3, 3), "inertia", DataError)
    if not np.allclose(tensor, tensor.T, atol=1e-12, rtol=1e-9):
        raise InvalidValue("inertia must be symmetric", "inertia")
    return np.array([tensor[0, 0], tensor[0, 1], tensor[1, 1], tensor[0, 2], tensor[1, 2], tensor[2, 2]])


def sanity_rules(mass: float, inertia: ArrayLike, slender: Axis | None = None, digits: float = 0.0) -> list[str]:
    """Rules of thumb that a link violates, in words (Halper 2024).

    Parameters
    ----------
    mass : float
        Mass of the link (kg).
    inertia : array_like, shape (3, 3)
        Its tensor about the centre of mass (kg m2).
    slender : {"x", "y", "z"}, optional
        Axis along which the link is slender.
    digits : float
        Rounding error of the entries, half of the last printed digit; violations within it are ignored.

    Returns
    -------
    list of str
        One message per violated rule, see `violated_rules`.

    Raises
    ------
    DataError
        For a tensor that is not symmetric, or an unknown axis.

    Examples
    --------
    >>> from dynid.feasibility.baselines import sanity_rules
    >>> sanity_rules(1.0, [[1.0, 0, 0], [0, 0.3, 0], [0, 0, 0.3]])
    ['(a) triangle inequality of the diagonal: violated by 0.4 kg m2']
    """
    return [violation.message for violation in violated_rules(mass, inertia, slender, digits)]


def violated_rules(
    mass: float, inertia: ArrayLike, slender: Axis | None = None, digits: float = 0.0
) -> list[RuleViolation]:
    """Rules of thumb that a link violates, with their codes (Halper 2024).

    Parameters
    ----------
    mass : float
        Mass of the link (kg).
    inertia : array_like, shape (3, 3)
        Its tensor about the centre of mass (kg m2).
    slender : {"x", "y", "z"}, optional
        Axis along which the link is slender.
    digits : float
        Rounding error of the entries, half of the last printed digit; violations within it are ignored.

    Returns
    -------
    list of RuleViolation

    Raises
    ------
    DataError
        For a tensor that is not symmetric, or an unknown axis.
    """
    found = [] if mass > digits else [RuleViolation("mass", f"mass {mass:.4g} kg is not positive")]
    entries = tensor_entries(inertia)
    for rule in rule_list(slender):
        slacks = rule.slacks(entries)
        worst = int(np.argmin(slacks + rule.rounding(digits)))
        if slacks[worst] < -rule.rounding(digits)[worst]:
            message = f"({rule.letter}) {rule.words}: violated by {-slacks[worst]:.3g} kg m2"
            found.append(RuleViolation(rule.letter, message))
    smallest = float(np.linalg.eigvalsh(np.asarray(inertia, dtype=float))[0])
    # Errors of `digits` in the entries change an eigenvalue by at most three times that.
    if smallest <= -3 * digits:
        message = f"inertia not positive definite: smallest principal value {smallest:.3g} kg m2"
        found.append(RuleViolation("definite", message))
    return found


Inequality = tuple[Callable[[Array], Array], Callable[[Array], Array]]


def nonlinear_fit(
    robot: Robot,
    R: ArrayLike,
    z: ArrayLike,
    *,
    start: ArrayLike | None = None,
    max_iterations: int = 300,
    margin: float = 1e-6,
) -> BaselineFit:
    """Least squares where masses and Sylvester's minors are positive, by sequential quadratic programming.

    Mata (2005) and Farhat (2008): minimise the sum of squares of R pi - z where masses and the leading minors of m
    I are at least `margin`; I is the tensor about the centre of mass, so that links are "semi"-consistent. Unknowns
    and margin are in units of their typical size. A prior can be added as further rows of R and z. The problem is
    not convex: the result depends on the start, and constraints may be violated where the method stops early.

    Parameters
    ----------
    robot : Robot
        The robot.
    R : array_like, shape (k, p)
        Rows over the standard parameters, divided by the noise: a regressor, or its triangular factor.
    z : array_like, shape (k,)
        Their targets.
    start : array_like, shape (p,), optional
        Standard parameters to start from; `robot.parameters` if not given.
    max_iterations : int
        Largest number of iterations.
    margin : float
        Smallest mass and minor, in units of their typical size.

    Returns
    -------
    BaselineFit

    Raises
    ------
    DataError
        For wrong shapes.

    Examples
    --------
    >>> import dynid
    >>> from dynid.feasibility.baselines import nonlinear_fit
    >>> from dynid.parameters.base import random_states
    >>> robot = dynid.load_robot("box2")
    >>> rows = dynid.regressor(robot, *random_states(robot, 50, 0)).reshape(-1, len(robot.layout))
    >>> found = nonlinear_fit(robot, rows, rows @ robot.parameters)
    >>> found.converged, found.cost < 1e-9
    (True, True)
    """
    R, z = checked_problem(robot, R, z)
    started = time.perf_counter()
    scale = feasible_set(robot).scale
    bodies = body_columns(robot)
    first = _start(robot, start)
    A, size = R * scale, max(float(z @ z), 1e-300)
    # m I = m L - S(l)'S(l) is quadratic in the ten parameters, and is determined by its values at a few points.
    one = np.array([_mass_times_tensor(e) for e in np.eye(10)])
    pairs = np.array([[_mass_times_tensor(a + b) for b in np.eye(10)] for a in np.eye(10)])
    quadratic = 0.5 * (pairs - one[:, None] - one[None])

    def cost(u: Array) -> tuple[float, Array]:
        r = A @ u - z
        return float(r @ r) / size, 2.0 * (A.T @ r) / size

    def tensors(u: Array) -> tuple[Array, Array]:
        x = np.array([u[c : c + 10] for c in bodies])
        slopes = 2.0 * np.einsum("abij,lb->laij", quadratic, x)
        return 0.5 * np.einsum("la,laij->lij", x, slopes), slopes

    def minors(u: Array) -> Array:
        return _minors(tensors(u)[0]).ravel() - margin

    def slopes(u: Array) -> Array:
        matrices, change = tensors(u)
        return _per_link_rows(np.einsum("lkij,laij->lka", _cofactors(matrices), change), bodies, len(u))

    lower = np.full(len(scale), -np.inf)
    lower[bodies], lower[signed_columns(robot)] = margin, 0.0
    found = _solve(cost, first / scale, lower, None, [(minors, slopes)], max_iterations)
    return _result(R, z, scale * found.x, found, started)


def physical_fit(
    robot: Robot,
    R: ArrayLike,
    z: ArrayLike,
    *,
    start: ArrayLike | None = None,
    bounds: tuple[ArrayLike, ArrayLike] | None = None,
    slender: Mapping[str, Axis] | None = None,
    rules: bool = True,
    max_iterations: int = 300,
    margin: float = 1e-6,
) -> BaselineFit:
    """Least squares over mass, centre of mass and tensor about it, with bounds and rules of thumb (Halper 2024).

    Minimise the sum of squares of R pi(mu) - z over mu, in the order of pi, by sequential quadratic programming.
    Minors of the tensor are at least `margin`, in units of its typical size. The cost is evaluated through R'R, as
    published, which loses half of the digits.

    Parameters
    ----------
    robot : Robot
        The robot.
    R : array_like, shape (k, p)
        Rows over the standard parameters, divided by the noise: a regressor, or its triangular factor.
    z : array_like, shape (k,)
        Their targets.
    start : array_like, shape (p,), optional
        Standard parameters to start from; `robot.parameters` if not given.
    bounds : tuple of array_like, shape (p,), optional
        Lower and upper bounds on mu: kg, m and kg m2 instead of the standard parameters of each link.
    slender : mapping, optional
        Link name to the axis, "x", "y" or "z", along which it is slender.
    rules : bool
        Whether the rules of thumb hold, see `sanity_rules`.
    max_iterations : int
        Largest number of iterations.
    margin : float
        Smallest mass and minor, in units of their typical size.

    Returns
    -------
    BaselineFit

    Raises
    ------
    DataError
        For wrong shapes, unknown links, and bounds that leave no room.
    """
    R, z = checked_problem(robot, R, z)
    started = time.perf_counter()
    bodies = body_columns(robot)
    scale = feasible_set(robot).scale.copy()
    names = [robot.layout[c].owner for c in bodies]
    for c in bodies:
        scale[c + 1 : c + 4] = scale[c + 1 : c + 4] / scale[c]
    unknown = set(slender or ()) - set(names)
    if unknown:
        raise UnknownName(f"robot '{robot.name}' has no link '{min(unknown)}' that could be slender", "slender")
    G, h, size = R.T @ R, R.T @ z, max(float(z @ z), 1e-300)

    def cost(u: Array) -> tuple[float, Array]:
        mu = scale * u
        pi = standard_of(mu, bodies)
        slope = G @ pi - h
        for c in bodies:
            slope[c : c + 10] = com_jacobian(mu[c], mu[c + 1 : c + 4]).T @ slope[c : c + 10]
        return float(pi @ (G @ pi) - 2.0 * (h @ pi)) / size + 1.0, 2.0 * scale * slope / size

    unit = scale[[c + 4 for c in bodies]]

    def tensors(u: Array) -> Array:
        return np.array([tensor_of(u[c + 4 : c + 10]) for c in bodies])

    def minors(u: Array) -> Array:
        return _minors(tensors(u)).ravel() - margin

    entries = np.array([tensor_of(e) for e in np.eye(6)])

    def slopes(u: Array) -> Array:
        local = np.einsum("lkij,aij->lka", _cofactors(tensors(u)), entries)
        return _per_link_rows(local, [c + 4 for c in bodies], len(u))

    inequalities: list[Inequality] = [(minors, slopes)]
    if rules:
        rows, constant = [], []
        for c, name, one in zip(bodies, names, unit, strict=True):
            for rule in rule_list((slender or {}).get(name)):
                wide = np.zeros((len(rule.rows), len(scale)))
                wide[:, c + 4 : c + 10] = rule.rows
                rows.append(wide)
                constant.append(np.full(len(rule.rows), rule.bound / one))
        linear, floor = np.vstack(rows), np.concatenate(constant)
        inequalities.append((lambda u: linear @ u - floor, lambda u: linear))
    low = np.full(len(scale), -np.inf)
    low[bodies], low[signed_columns(robot)] = margin, 0.0
    high = None
    if bounds is not None:
        sides = [np.asarray(b, dtype=float) for b in bounds]
        if any(side.shape != scale.shape or np.isnan(side).any() for side in sides):
            raise InvalidShape(f"bounds need {len(scale)} lower and upper values each", "bounds")
        low, high = np.maximum(low, sides[0] / scale), sides[1] / scale
        if np.any(low > high):
            raise InvalidValue(
                f"the bounds of '{robot.parameter_names[int(np.argmax(low > high))]}' leave no room", "bounds"
            )
    first = physical_of(_start(robot, start), bodies) / scale
    found = _solve(cost, first, low, high, inequalities, max_iterations)
    return _result(R, z, standard_of(scale * found.x, bodies), found, started)


def _solve(
    cost: Callable[[Array], tuple[float, Array]],
    first: Array,
    lower: Array,
    upper: Array | None,
    inequalities: list[Inequality],
    max_iterations: int,
) -> Any:
    high = np.full(len(lower), np.inf) if upper is None else upper
    with threadpool_limits(1, "blas"):  # more threads slow down small matrices
        return optimize.minimize(
            cost,
            np.clip(first, lower, high),
            jac=True,
            method="SLSQP",
            bounds=optimize.Bounds(lower, high),
            constraints=[{"type": "ineq", "fun": f, "jac": g} for f, g in inequalities],
            options={"maxiter": max_iterations, "ftol": 1e-12},
        )


def _result(R: Array, z: Array, pi: Array, found: Any, started: float) -> BaselineFit:
    cost = 0.5 * float(np.sum((R @ pi - z) ** 2))
    seconds = time.perf_counter() - started
    return BaselineFit(pi, cost, bool(found.success), int(found.nit), seconds, str(found.message))


def _start(robot: Robot, start: ArrayLike | None) -> Array:
    return robot.parameters if start is None else checked(start, (len(robot.layout),), "start", DataError)


def _mass_times_tensor(pi: Array) -> Array:
    """m L - S(l)'S(l), the mass times the tensor about the centre of mass (3, 3)."""
    moment = pi[1:4]
    return pi[0] * tensor_of(pi[4:10]) - (moment @ moment) * np.eye(3) + np.outer(moment, moment)


def _minors(matrices: Array) -> Array:
    """Leading minors (l, 3) of matrices (l, 3, 3)."""
    return np.stack([np.linalg.det(matrices[:, :k, :k]) for k in (1, 2, 3)], axis=1)


def _cofactors(matrices: Array) -> Array:
    """Gradient (l, 3, 3, 3) of each leading minor with respect to the entries of its matrix."""
    out = np.zeros((len(matrices), 3, 3, 3))
    out[:, 0, 0, 0] = 1.0
    out[:, 1, 0, 0], out[:, 1, 1, 1] = matrices[:, 1, 1], matrices[:, 0, 0]
    out[:, 1, 0, 1], out[:, 1, 1, 0] = -matrices[:, 1, 0], -matrices[:, 0, 1]
    for i in range(3):
        out[:, 2, i] = np.cross(matrices[:, (i + 1) % 3], matrices[:, (i + 2) % 3])
    return out


def _per_link_rows(local: Array, columns: list[int], width: int) -> Array:
    """Gradients (l, k, a) with respect to each link's own parameters as rows (l k, width)."""
    links, count, own = local.shape
    out = np.zeros((links, count, width))
    for link, c in enumerate(columns):
        out[link, :, c : c + own] = local[link]
    return out.reshape(links * count, width)
