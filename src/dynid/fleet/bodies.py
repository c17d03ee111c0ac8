"""Changes of the bodies of a unit: along the directions of a payload on a link, and along all others.

A body fixed to a link changes the base parameters by K_L p, where p are its ten inertial parameters. A step of the body
parameters at an unknown date is split into the part in the span of K_L and the rest, whose statistics are independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import NotApplicable
from dynid.feasibility.body_fit import fit_body
from dynid.fleet.arrow import eliminate
from dynid.robot.inertia import inertia_to_com

__all__ = [
    "BodySeries",
    "BodyStep",
    "Dispersion",
    "PayloadChange",
    "between",
    "body_steps",
    "dispersion_of",
    "fit_payload",
    "payload_basis",
]

Array = NDArray[np.float64]

# Singular values, relative to the largest, below which a direction is not determined.
_WEAKEST = 1e-6
# Standard deviation of a coordinate of a centre, m, from which it is not known: about the size of a payload.
_UNKNOWN = 0.2


@dataclass(frozen=True, eq=False)
class PayloadChange:
    """A payload that appeared on a link, or left it.

    Attributes
    ----------
    link : str
        Link that carries it.
    mass, mass_std : float
        Change of the mass and its standard deviation, kg; negative for a payload that was removed.
    centre, centre_std : ndarray, shape (3,)
        Centre of mass of the payload in the frame of the link and its standard deviation, m.
    inertial : ndarray, shape (10,)
        Inertial parameters of the body that appeared or left, in the frame of the link.
    """

    link: str
    mass: float
    mass_std: float
    centre: Array
    centre_std: Array
    inertial: Array

    @property
    def words(self) -> str:
        """Mass, link and centre in words, each with its standard deviation."""
        return f"{self.mass:+.3g} kg (std {self.mass_std:.2g}) on {self.link}, {self.centre_words}"

    @property
    def centre_words(self) -> str:
        """The centre in words; what the motion does not show is not given a value."""
        parts = [
            f"{axis} {round(float(c), 3) + 0.0:.3f} (std {s:.1g})" if s < _UNKNOWN else f"{axis} not known"
            for axis, c, s in zip("xyz", self.centre, self.centre_std, strict=True)
        ]
        return f"centre {', '.join(parts)} m"


@dataclass(frozen=True, eq=False)
class BodySeries:
    """What each date says about the body parameters of one unit: information (n, k, k) and scores (n, k).

    Nothing is inverted, so that a date may leave directions undetermined, such as those of a joint that never moved.
    """

    information: Array
    scores: Array

    @classmethod
    def of_rows(cls, rows: Sequence[Array], targets: Sequence[Array], bodies: NDArray[np.intp]) -> BodySeries:
        """From the rows (m, b) and targets (m,) of every date, with the columns beside `bodies` eliminated."""
        others = np.setdiff1d(np.arange(rows[0].shape[1]), bodies)
        left = [
            eliminate(np.column_stack([A[:, others], A[:, bodies], z]), len(others))[1]
            for A, z in zip(rows, targets, strict=True)
        ]
        return cls(np.array([x[:, :-1].T @ x[:, :-1] for x in left]), np.array([x[:, :-1].T @ x[:, -1] for x in left]))

    @cached_property
    def _sums(self) -> tuple[Array, Array]:
        first = np.zeros_like(self.information[:1]), np.zeros_like(self.scores[:1])
        pairs = zip(first, (self.information, self.scores), strict=True)
        information, scores = (np.concatenate(x).cumsum(axis=0) for x in pairs)
        return information, scores

    def over(self, start: int, stop: int) -> tuple[Array, Array]:
        """Information and scores of a range of dates."""
        information, scores = self._sums
        return information[stop] - information[start], scores[stop] - scores[start]

    def part(self, start: int, stop: int) -> BodySeries:
        """The dates from `start` to `stop`."""
        return BodySeries(self.information[start:stop], self.scores[start:stop])


@dataclass(frozen=True)
class Dispersion:
    """Mean square of whitened differences relative to its expectation, at least one, along payloads and the rest.

    `freedom` are the degrees of freedom behind the figures.
    """

    payload: float
    rest: float
    payload_freedom: float
    rest_freedom: float


@dataclass(frozen=True, eq=False)
class BodyStep:
    """A step of the body parameters.

    Attributes
    ----------
    at : int
        First date after the step.
    root, whitened : ndarray, shapes (r, k) and (r,)
        Root of the inverse covariance of the change of the body parameters, and this root times the change.
    payload_p, rest_p : float
        p-values of the parts along and beyond the directions of a payload, corrected for the number of dates.
    is_payload : bool
        Whether the part along the directions of a payload is the stronger one.
    strength : float
        Mean square of the stronger part; p-values of strong changes are all zero in floating point.
    """

    at: int
    root: Array
    whitened: Array
    payload_p: float
    rest_p: float
    is_payload: bool
    strength: float


def payload_basis(columns: Array) -> Array:
    """Orthonormal basis (k, r) of the directions of a payload, from the columns of the base matrix (k, 10)."""
    size = np.linalg.norm(columns, axis=0)
    u, s, _ = np.linalg.svd(columns[:, size > 0] / size[size > 0], full_matrices=False)
    return np.asarray(u[:, s > _WEAKEST * s[0]])


def _along_and_beyond(root: Array, whitened: Array, basis: Array) -> tuple[float, float]:
    """Squares of the whitened change along the basis and beyond it."""
    u, s, _ = np.linalg.svd(root @ basis, full_matrices=False)
    along = float(np.sum((u[:, s > _WEAKEST * max(s[0], 1e-300)].T @ whitened) ** 2)) if len(s) else 0.0
    return along, max(float(whitened @ whitened) - along, 0.0)


def dispersion_of(units: Sequence[BodySeries], basis: Array) -> Dispersion:
    """How much more the body parameters vary between successive dates than their covariances say."""
    squares = [
        _along_and_beyond(*between(u.over(i, i + 1), u.over(i + 1, i + 2)), basis)
        for u in units
        for i in range(len(u.scores) - 1)
    ]
    size, along = basis.shape
    if not squares:
        return Dispersion(1.0, 1.0, 1.0, 1.0)
    table = np.array(squares)
    ratios = [
        float(np.median(table[:, k])) / scipy.stats.chi2.ppf(0.5, n) if n else 1.0
        for k, n in enumerate((along, size - along))
    ]
    # The median of a chi-square variable has about 60 % of the efficiency of its mean.
    worth = 0.6 * len(table)
    return Dispersion(
        max(ratios[0], 1.0), max(ratios[1], 1.0), max(worth * along, 1.0), max(worth * (size - along), 1.0)
    )


def body_steps(unit: BodySeries, basis: Array, dispersion: Dispersion, limit: float) -> list[BodyStep]:
    """All steps of the body parameters whose p-value is below a limit, in order of time.

    Each is measured between the dates since the step before and those until the next one.
    """
    cuts = _cuts(unit, basis, dispersion, limit, 0)
    edges = [0, *cuts, len(unit.scores)]
    return [
        _step(unit, basis, dispersion, edges[k], edges[k + 1], edges[k + 2], len(unit.scores)) for k in range(len(cuts))
    ]


def between(first: tuple[Array, Array], second: tuple[Array, Array]) -> tuple[Array, Array]:
    """Body parameters of the second information and scores less those of the first.

    The inverse covariance of the difference is M = N1 (N1 + N2)^+ N2. The results are a root (r, k) of it, and this
    root times the difference (r,). Directions that either side leaves undetermined are not among the rows.
    """
    (N1, s1), (N2, s2) = first, second
    size = np.sqrt(np.diag(N1 + N2))
    scale = np.where(size > 0, size, 1.0)
    N1, N2 = N1 / np.outer(scale, scale), N2 / np.outer(scale, scale)
    shared = np.linalg.pinv(N1 + N2, rcond=_WEAKEST**2, hermitian=True)
    both = N1 @ shared @ N2
    pulled = N1 @ (shared @ (s2 / scale)) - N2 @ (shared @ (s1 / scale))
    values, vectors = np.linalg.eigh(0.5 * (both + both.T))
    strong = values > _WEAKEST**2 * max(float(values[-1]), 1e-300)
    roots = np.sqrt(values[strong])
    return roots[:, None] * vectors[:, strong].T * scale, (vectors[:, strong].T @ pulled) / roots


def _cuts(unit: BodySeries, basis: Array, dispersion: Dispersion, limit: float, start: int) -> list[int]:
    """First dates after each step, by splitting at the strongest one and searching both parts again."""
    n = len(unit.scores)
    if n < 2:
        return []
    steps = [_step(unit, basis, dispersion, 0, k, n, n) for k in range(1, n)]
    best = min(steps, key=lambda s: (min(s.payload_p, s.rest_p), -s.strength))
    if min(best.payload_p, best.rest_p) >= limit:
        return []
    before = _cuts(unit.part(0, best.at), basis, dispersion, limit, start)
    after = _cuts(unit.part(best.at, n), basis, dispersion, limit, start + best.at)
    return [*before, start + best.at, *after]


def _step(
    unit: BodySeries, basis: Array, dispersion: Dispersion, start: int, at: int, stop: int, dates: int
) -> BodyStep:
    """The step between the dates from `start` to `at` and those from `at` to `stop`."""
    size, along = basis.shape
    root, whitened = between(unit.over(start, at), unit.over(at, stop))
    squares = _along_and_beyond(root, whitened, basis)
    narrower = 1.0 / np.sqrt(dispersion.payload)
    first, second = squares[0] / dispersion.payload / along, squares[1] / dispersion.rest / max(size - along, 1)
    return BodyStep(
        at=at,
        root=root * narrower,
        whitened=whitened * narrower,
        payload_p=min(1.0, (dates - 1) * _tail(first, along, dispersion.payload_freedom)),
        rest_p=min(1.0, (dates - 1) * _tail(second, size - along, dispersion.rest_freedom)),
        is_payload=first >= second,
        strength=max(first, second),
    )


def _tail(ratio: float, count: int, freedom: float) -> float:
    """p-value of a mean square with `count` degrees of freedom."""
    return float(scipy.stats.f.sf(ratio, count, freedom)) if count else 1.0


def fit_payload(rows: Array, target: Array, link: str) -> PayloadChange:
    """The physically consistent payload that explains a change of the body parameters best.

    Parameters
    ----------
    rows, target : ndarray, shapes (m, 10) and (m,)
        Rows of the inertial parameters of a body on the link, and the change, both with unit noise.
    link : str
        Name of the link.

    Returns
    -------
    PayloadChange

    Raises
    ------
    DataError
        If a body on the link has no effect on the parameters.
    """
    R, z = rows, target
    if not np.any(R):
        raise NotApplicable(f"a body on link '{link}' has no effect on the base parameters")
    fits = [(sign, fit_body(R, sign * z, "full", feasible=True)) for sign in (1.0, -1.0)]
    sign, body = min(fits, key=lambda x: float(np.sum((R @ x[1].inertial - x[0] * z) ** 2)))
    mass, centre, _ = inertia_to_com(body.inertial)
    slope = np.hstack([-np.asarray(centre)[:, None], np.eye(3)]) / max(float(mass), 1e-12)
    covariance = body.covariance[:4, :4]
    finite = np.where(np.isfinite(covariance), covariance, 0.0)
    centre_std = np.sqrt(np.maximum(np.diag(slope @ finite @ slope.T), 0.0))
    lost = ~np.isfinite(np.diag(covariance))
    centre_std = np.where(lost[1:] | lost[0], np.inf, centre_std)
    mass_std = float(np.sqrt(max(covariance[0, 0], 0.0)))
    return PayloadChange(link, sign * float(mass), mass_std, np.asarray(centre), centre_std, sign * body.inertial)
