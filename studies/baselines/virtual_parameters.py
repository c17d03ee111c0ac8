"""A search for standard parameters that have given base values, link by link from the tip (Yoshida, Khalil 2000).

The base values of the last link leave a few of its standard numbers open. Choose them so that the link is possible and
the one before it can be, take what they contribute off the base values of the links before it, and go on there; where
nothing is left to choose, come back and choose otherwise. A robot that is found proves that the base values are
possible. Nothing found proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg, optimize

from dynid.errors import DataError
from dynid.feasibility.constraints import Inertia, Notion, Signs
from dynid.feasibility.sets import feasible_set
from dynid.robot.inertia import inertia_to_pseudo, inertia_to_spatial
from dynid.robot.parts import checked
from studies.baselines.result import body_columns, signed_columns

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["VirtualParameters", "virtual_parameters_test"]

Array = NDArray[np.float64]
Columns = list[int]

# Open numbers are looked for within this many typical sizes.
_REACH = 1e4
# A choice is where a random walk through the possible ones stands after this many steps; walks differ in how strongly
# they are drawn to choices that leave much to the links nearer the base.
_STEPS = 40
_ASCENT = 200
_PULLS = (10.0, 100.0, 1.0, 0.1)
# Drive parameters may be zero; in units of their typical size, this is.
_ZERO = 1e-9


@dataclass(frozen=True, eq=False)
class VirtualParameters:
    """Whether possible standard parameters were found, them (p,), and how many choices for a link were tried.

    `stuck` is the link nearest to the base that no choice got past.
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
    notion: Notion = "semi",
    branches: int = 8,
    tries: int = 400,
    seed: int = 0,
) -> VirtualParameters:
    """Search for possible standard parameters with base values beta (b,); "semi" is the notion of the authors.

    For every link up to `branches` choices are tried, `tries` in all. The base parameters must be grouped towards the
    base, as left-to-right scanning in textbook or layout order does.
    """
    given = checked(beta, (base.count,), f"base parameters of robot '{base.robot.name}'", DataError)
    search = _Search(base, notion, branches, tries, np.random.default_rng(seed))
    open_numbers = np.zeros(len(base.robot.layout))
    if search.descend(len(search.groups) - 1, given, open_numbers):
        pi = base.join(given, open_numbers[list(base.dependent)])
        broken = feasible_set(base.robot, (Inertia(notion, margin=0.0), Signs())).violations(pi, 10 * _ZERO)
        assert not broken, broken
        return VirtualParameters(True, pi, search.tried)
    owner = base.robot.layout[search.groups[search.deepest][0]].owner
    return VirtualParameters(False, None, search.tried, owner)


class _Search:
    """The walk from tip to base: one group of columns a link with its drive."""

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
        self.opened = [[c for c in group if c in dependent] for group in self.groups]
        for group in self.groups:
            rows = [self.row[c] for c in group if c in self.row]
            earlier = [c for c in base.dependent if c < group[0]]
            if np.any(base.matrix[np.ix_(rows, earlier)]):
                raise DataError("the base parameters are not grouped towards the base: use left-to-right scanning")

    def descend(self, g: int, beta: Array, open_numbers: Array) -> bool:
        """Choose the open numbers of group g and of all before it; beta is what the groups beyond have left."""
        if g < 0:
            return True
        self.deepest = min(self.deepest, g)
        region = self._region(g, beta)
        opened = self.opened[g]
        for choice in self._choices(region):
            self.tried += 1
            open_numbers[opened] = choice[len(choice) - len(opened) :] * self.scale[opened]
            if self.descend(g - 1, beta - self.base.matrix[:, opened] @ open_numbers[opened], open_numbers):
                return True
            if self.tried >= self.tries:
                break
        return False

    def _region(self, g: int, beta: Array) -> _Region:
        """Where group g and the one before it are possible, over their open numbers in units of their typical size."""
        near = range(max(g - 1, 0), g + 1)
        group, opened = [c for i in near for c in self.groups[i]], [c for i in near for c in self.opened[i]]
        constant, slopes = np.zeros(len(group)), np.zeros((len(opened), len(group)))
        for k, c in enumerate(group):
            if c in self.row:
                constant[k] = beta[self.row[c]]
                slopes[:, k] = -self.base.matrix[self.row[c], opened] * self.scale[opened]
            else:
                slopes[opened.index(c), k] = self.scale[c]
        first = group[0]
        before = [c for c in self.base.kept if c < first and self._heavy(c)]
        shares = self.base.matrix[np.ix_([self.row[c] for c in before], opened)] * self.scale[opened]
        prices = shares / self.scale[before][:, None]
        drives = np.array([_ZERO * self.scale[c] if c in self.signed else 0.0 for c in group])
        matrices = np.array([self._matrix(group, s) for s in slopes])
        return _Region(self._matrix(group, constant + drives), matrices, prices)

    def _heavy(self, c: int) -> bool:
        """Whether a column is a mass or a moment of inertia."""
        return self.base.robot.layout[c].symbol in ("m", "Ixx", "Iyy", "Izz")

    def _matrix(self, group: Columns, values: Array) -> Array:
        """What has to be positive definite: the link's matrix and, on the diagonal, signed numbers of its drive."""
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
    """constant + sum of d_i slopes_i positive definite, |d_i| within reach.

    `prices` (h, f) are what a unit of each open number takes off the masses and inertias nearer the base.
    """

    constant: Array
    slopes: Array
    prices: Array

    def at(self, d: Array) -> Array:
        return np.asarray(self.constant + np.tensordot(d, self.slopes, 1)) if len(d) else self.constant

    def centre(self) -> Array | None:
        """A point inside, by raising a smoothed smallest eigenvalue up to one; None where none is found."""
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
        """A random point: steps along random lines, each to a point of the line within, cheap ones more likely."""
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
        """How far a line may be followed back and forth (slightly less)."""
        change = np.tensordot(direction, self.slopes, 1)
        values = linalg.eigh(change, self.at(d), eigvals_only=True)
        with np.errstate(divide="ignore"):
            sides = np.concatenate([(-_REACH - d) / direction, (_REACH - d) / direction])
        low = max(-1.0 / values[-1] if values[-1] > 0 else -np.inf, sides[sides <= 0].max(initial=-1e9))
        high = min(-1.0 / values[0] if values[0] < 0 else np.inf, sides[sides >= 0].min(initial=1e9))
        return 0.999 * low, 0.999 * high
