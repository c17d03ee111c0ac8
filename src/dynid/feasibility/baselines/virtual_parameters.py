"""A search for standard parameters that have given base values, link by link from the tip (Yoshida, Khalil 2000).

The base values of the last link leave a few of its standard parameters free. Choose them so that the link is feasible
and the previous link can be, subtract their contribution from the base values of the previous links, and continue
there; where no choice is left, backtrack. A result proves that the base values are feasible. No result proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from dynid.errors import DataError, NotApplicable
from dynid.feasibility.baselines.result import body_columns, signed_columns
from dynid.feasibility.constraints import Inertia, Notion, Signs
from dynid.feasibility.sets import feasible_set
from dynid.robot.inertia import inertia_to_pseudo, inertia_to_spatial
from dynid.robot.parts import checked

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["VirtualParameters", "virtual_parameters_test"]

Array = NDArray[np.float64]
Columns = list[int]

# Bound on free parameters, in units of their typical size.
_REACH = 1e4
# A choice is the end of a random walk of this many steps through the feasible region. Walks differ in how strongly they
# prefer choices that leave much mass and inertia to the links nearer the base.
_STEPS = 40
_ASCENT = 200
_PULLS = (10.0, 100.0, 1.0, 0.1)
# Drive parameters may be zero: this value, in units of their typical size, counts as zero.
_ZERO = 1e-9


@dataclass(frozen=True, eq=False)
class VirtualParameters:
    """Result of the search from the tip. It is true if feasible standard parameters were found.

    Attributes
    ----------
    found : bool
        Whether feasible standard parameters were found. If not, the base values may be feasible nevertheless.
    parameters : ndarray, shape (p,), or None
        Standard parameters with the given base values.
    tried : int
        Number of choices that were tried.
    stuck : str
        The link nearest to the base for which no choice was feasible.
    """

    found: bool
    parameters: Array | None
    tried: int
    stuck: str = ""

    def __bool__(self) -> bool:
        return self.found


def virtual_parameters_test(
    base: BaseParameters,
    beta: ArrayLike,
    *,
    notion: Notion = "semi",
    branches: int = 8,
    tries: int = 400,
    seed: int = 0,
) -> VirtualParameters:
    """Search for feasible standard parameters with given base values, link by link (Yoshida and Khalil 2000).

    A result proves that the base values are feasible, no result proves nothing: `dynid.feasibility.is_feasible` decides
    both.

    Parameters
    ----------
    base : BaseParameters
        Base parameters, grouped towards the base, as by left-to-right scanning in textbook or layout order.
    beta : array_like, shape (b,)
        Their values.
    notion : {"semi", "full"}
        Physical consistency of a link; the authors use "semi".
    branches : int
        Largest number of choices per link.
    tries : int
        Largest number of choices in total.
    seed : int
        Seed of the choices.

    Returns
    -------
    VirtualParameters

    Raises
    ------
    DataError
        For wrong shapes, and base parameters that are not grouped towards the base.

    Examples
    --------
    >>> import dynid
    >>> from dynid.feasibility.baselines import virtual_parameters_test
    >>> base = dynid.base_parameters(dynid.load_robot("twolink"))
    >>> bool(virtual_parameters_test(base, base.values()))
    True
    """
    given = checked(beta, (base.count,), f"base parameters of robot '{base.robot.name}'", DataError)
    search = _Search(base, notion, branches, tries, np.random.default_rng(seed))
    free = np.zeros(len(base.robot.layout))
    if search.descend(len(search.groups) - 1, given, free):
        pi = base.join(given, free[list(base.dependent)])
        broken = feasible_set(base.robot, (Inertia(notion, margin=0.0), Signs())).violations(pi, 10 * _ZERO)
        assert not broken, broken
        return VirtualParameters(True, pi, search.tried)
    owner = base.robot.layout[search.groups[search.deepest][0]].owner
    return VirtualParameters(False, None, search.tried, owner)


class _Search:
    """The search from tip to base: one group of columns per link, with its drive."""

    def __init__(self, base: BaseParameters, notion: Notion, branches: int, tries: int, rng: np.random.Generator):
        self.base, self.notion, self.branches, self.tries, self.rng = base, notion, branches, tries, rng
        self.tried = 0
        self.scale = feasible_set(base.robot).scale
        starts = [0, *body_columns(base.robot)[1:], len(base.robot.layout)]
        self.groups = [list(range(a, b)) for a, b in pairwise(starts)]
        self.deepest = len(self.groups) - 1
        self.bodies = set(body_columns(base.robot))
        self.signed = set(signed_columns(base.robot))
        self.row = {c: i for i, c in enumerate(base.kept)}
        dependent = set(base.dependent)
        self.free = [[c for c in group if c in dependent] for group in self.groups]
        for group in self.groups:
            rows = [self.row[c] for c in group if c in self.row]
            earlier = [c for c in base.dependent if c < group[0]]
            if np.any(base.matrix[np.ix_(rows, earlier)]):
                raise NotApplicable(
                    "the base parameters are not grouped towards the base: use left-to-right scanning", "base"
                )

    def descend(self, g: int, beta: Array, free: Array) -> bool:
        """Choose the free parameters of groups 0 to g; beta is the remainder after the groups beyond g."""
        if g < 0:
            return True
        self.deepest = min(self.deepest, g)
        region = self._region(g, beta)
        own = self.free[g]
        for choice in self._choices(region):
            self.tried += 1
            free[own] = choice[len(choice) - len(own) :] * self.scale[own]
            if self.descend(g - 1, beta - self.base.matrix[:, own] @ free[own], free):
                return True
            if self.tried >= self.tries:
                break
        return False

    def _region(self, g: int, beta: Array) -> _Region:
        """Feasible region of groups g and g - 1 over their free parameters, in units of their typical size."""
        near = range(max(g - 1, 0), g + 1)
        group, own = [c for i in near for c in self.groups[i]], [c for i in near for c in self.free[i]]
        constant, slopes = np.zeros(len(group)), np.zeros((len(own), len(group)))
        for k, c in enumerate(group):
            if c in self.row:
                constant[k] = beta[self.row[c]]
                slopes[:, k] = -self.base.matrix[self.row[c], own] * self.scale[own]
            else:
                slopes[own.index(c), k] = self.scale[c]
        first = group[0]
        before = [c for c in self.base.kept if c < first and self._heavy(c)]
        shares = self.base.matrix[np.ix_([self.row[c] for c in before], own)] * self.scale[own]
        prices = shares / self.scale[before][:, None]
        drives = np.array([_ZERO * self.scale[c] if c in self.signed else 0.0 for c in group])
        matrices = np.array([self._matrix(group, s) for s in slopes])
        return _Region(self._matrix(group, constant + drives), matrices, prices)

    def _heavy(self, c: int) -> bool:
        """Whether a column is a mass or a moment of inertia."""
        return self.base.robot.layout[c].symbol in ("m", "Ixx", "Iyy", "Izz")

    def _matrix(self, group: Columns, values: Array) -> Array:
        """Matrix that must be positive definite: inertia of the links and, on the diagonal, signed drive parameters."""
        parts: list[Array] = []
        for k, c in enumerate(group):
            if c in self.bodies:
                mass, length = self.scale[c], self.scale[c + 1] / self.scale[c]
                if self.notion == "full":
                    matrix, root = inertia_to_pseudo(values[k : k + 10]), np.array([length] * 3 + [1.0])
                else:
                    matrix, root = inertia_to_spatial(values[k : k + 10]), np.array([1.0] * 3 + [length] * 3)
                parts.append(matrix / (mass * np.outer(root, root)))
            elif c in self.signed:
                parts.append(np.array([[values[k] / self.scale[c]]]))
        return np.asarray(linalg.block_diag(*parts))

    def _choices(self, region: _Region) -> Iterator[Array]:
        """Points of a region (f,), up to `branches` of them."""
        start = region.centre()
        if start is None:
            return
        yield start
        for k in range(self.branches - 1 if len(start) else 0):
            weights = self.rng.exponential(size=len(region.prices))
            start = region.walk(start, _PULLS[k % len(_PULLS)] * weights @ region.prices, self.rng)
            yield start


@dataclass(frozen=True, eq=False)
class _Region:
    """Region of d (f,) where constant + sum of d_i slopes_i is positive definite and |d_i| is bounded.

    `prices` (h, f): how much a unit of each free parameter reduces the masses and inertias nearer the base.
    """

    constant: Array
    slopes: Array
    prices: Array

    def at(self, d: Array) -> Array:
        return np.asarray(self.constant + np.tensordot(d, self.slopes, 1)) if len(d) else self.constant

    def centre(self) -> Array | None:
        """An interior point, found by increasing a smoothed smallest eigenvalue up to one; None if none is found."""
        d = np.zeros(len(self.slopes))
        smallest = np.linalg.eigvalsh(self.at(d))[0]
        for blur in (1.0, 0.1, 0.01, 1e-3, 1e-4) if len(d) else ():

            def height(x: Array, blur: float = blur) -> tuple[float, Array]:
                values, vectors = np.linalg.eigh(self.at(x))
                weights = np.exp((values[0] - values) / blur)
                total = weights.sum()
                pull = np.einsum("ik,k,jk,fij->f", vectors, weights / total, vectors, self.slopes)
                missing = max(1.0 + blur * np.log(total) - values[0], 0.0)
                return 0.5 * missing**2, -missing * pull

            reach = [(-0.9 * _REACH, 0.9 * _REACH)] * len(d)
            options = {"maxiter": _ASCENT}
            d = optimize.minimize(height, d, jac=True, method="L-BFGS-B", bounds=reach, options=options).x
            smallest = np.linalg.eigvalsh(self.at(d))[0]
            if smallest > blur:
                break
        return d if smallest > 0 else None

    def walk(self, d: Array, price: Array, rng: np.random.Generator) -> Array:
        """A random point by steps along random lines inside the region; points of low price are more likely."""
        for _ in range(_STEPS):
            direction = rng.normal(size=len(d))
            direction /= np.linalg.norm(direction)
            if price @ direction < 0:
                direction = -direction
            low, high = self._within(d, direction)
            rate = max(float(price @ direction), 1e-12 / (high - low))
            u = rng.uniform(0.001, 0.999)
            step = low - np.log1p(-u * -np.expm1(-rate * (high - low))) / rate
            d = d + min(max(step, low + 1e-6 * (high - low)), high - 1e-6 * (high - low)) * direction
        return d

    def _within(self, d: Array, direction: Array) -> tuple[float, float]:
        """Range of steps along a line that stay inside the region, slightly reduced."""
        change = np.tensordot(direction, self.slopes, 1)
        values = linalg.eigh(change, self.at(d), eigvals_only=True)
        with np.errstate(divide="ignore"):
            sides = np.concatenate([(-_REACH - d) / direction, (_REACH - d) / direction])
        low = max(-1.0 / values[-1] if values[-1] > 0 else -np.inf, sides[sides <= 0].max(initial=-1e9))
        high = min(-1.0 / values[0] if values[0] < 0 else np.inf, sides[sides >= 0].min(initial=1e9))
        return 0.999 * low, 0.999 * high
