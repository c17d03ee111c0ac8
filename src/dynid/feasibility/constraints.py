"""Constraints on the standard parameters, each expressed as cones.

A constraint set is a tuple of constraints. Each gives labelled blocks (linear matrix inequalities, linear inequalities,
equalities), so that results can name the constraints that are violated or active.

A body with mass m, first moments h and inertia I about the link frame is physically consistent if::

    J = [[tr(I)/2 1 - I, h], [h', m]] > 0 ("full"),    or [[m 1, -S(h)], [S(h), I]] > 0 ("semi")

with S(h) x = h x x: the first one includes the triangle inequality of the principal moments, the second one does not.
Inside an ellipsoid with the matrix Q, tr(J Q) >= 0; inside a box, lower m <= h <= upper m.

Sources: Sousa (2014), PhD thesis, section 3.2.1, and Sousa and Cortesao (2014), for "semi"; Traversaro, Brossette,
Escande and Nori, Identification of Fully Physical Consistent Inertial Parameters Using Optimization on Manifolds
(2016), for what "full" means; Wensing, Kim and Slotine (2018), for its linear matrix inequality and the ellipsoids;
Janot and Wensing (2021), equations 19 and 20.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from typing import Literal, Protocol

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dynid.errors import DataError, InvalidShape, InvalidType, InvalidValue, MissingArgument, UnknownName
from dynid.feasibility.columns import columns_of, first_column, link_named, links_named, matching, wide
from dynid.feasibility.cone import Block, svec
from dynid.feasibility.mirror import Mirrored, Symmetry
from dynid.robot.drives import DriveTerm, TermKind
from dynid.robot.inertia import inertia_to_pseudo, inertia_to_spatial
from dynid.robot.model import Robot
from dynid.robot.parts import checked

__all__ = [
    "BaseBounds",
    "Bounds",
    "CenterOfMass",
    "Constraint",
    "Constraints",
    "Ellipsoids",
    "Fixed",
    "Inertia",
    "Linear",
    "Mass",
    "Mirrored",
    "Signs",
    "Symmetry",
    "constraint_set",
    "link_scales",
]

Array = NDArray[np.float64]
Notion = Literal["full", "semi"]

# Mass (kg) and length (m) of a link without a-priori inertia.
_MASS, _LENGTH = 1.0, 0.1


class Constraint(Protocol):
    """Interface of a constraint; `extra` is the number of its auxiliary unknowns."""

    @property
    def extra(self) -> int:
        """Number of auxiliary unknowns."""
        ...

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters (p,), followed by the auxiliary unknowns."""
        ...


Constraints = str | Constraint | Sequence["Constraint | str"]


def constraint_set(given: Constraints) -> tuple[Constraint, ...]:
    """Tuple of constraints from a name, a constraint, or a sequence of both.

    Parameters
    ----------
    given : str, constraint or sequence
        "full" and "semi" stand for `Inertia` of that kind on every link together with `Signs`.

    Returns
    -------
    tuple of constraints

    Raises
    ------
    DataError
        For an unknown name, or an object that is not a constraint.
    """
    if isinstance(given, str):
        if given not in ("full", "semi"):
            raise UnknownName(f"constraint set '{given}' is unknown: use full, semi, or constraints", "constraints")
        return (Inertia(given), Signs())  # type: ignore[arg-type]
    if isinstance(given, Sequence):
        return tuple(c for part in given for c in constraint_set(part))
    if not hasattr(given, "blocks"):
        raise InvalidType(f"{given!r} is not a constraint", "constraints")
    return (given,)


@dataclass(frozen=True)
class Inertia:
    """Physical consistency of links: a positive definite pseudo-inertia or spatial inertia.

    Attributes
    ----------
    notion : {"full", "semi"}
        "full": the 4x4 pseudo-inertia is positive definite, so that a mass distribution exists. "semi": the 6x6 spatial
        inertia is, which does not include the triangle inequality.
    links : str
        Pattern of the names of the links.
    margin : float
        Smallest eigenvalue, relative to the a-priori mass and size of each link, or in SI units.
    relative : bool
        Unit of the margin.
    """

    notion: Notion = "full"
    links: str = "*"
    margin: float = 1e-6
    relative: bool = True
    extra: int = field(default=0, init=False)

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        to_matrix = inertia_to_pseudo if self.notion == "full" else inertia_to_spatial
        if self.notion not in ("full", "semi"):
            raise UnknownName(f"inertia notion '{self.notion}' is unknown: use full or semi", "notion")
        pattern = columns_of(robot, svec(to_matrix(np.eye(10))).T, range(10))
        scales = link_scales(robot)
        out = []
        for name in links_named(robot, self.links):
            first, (mass, length) = first_column(robot, name), scales[name]
            if self.notion == "full":
                unit = svec(mass * np.diag([length**2] * 3 + [1.0]))
            else:
                unit = svec(mass * np.diag([1.0] * 3 + [length**2] * 3))
            shift = self.margin * (unit if self.relative else svec(np.eye(len(to_matrix(np.zeros(10))))))
            label = f"{name}: {'pseudo-inertia' if self.notion == 'full' else 'mass and inertia'} positive definite"
            # A shallow copy takes a twentieth of the time of a new sparse matrix.
            matrix = copy(pattern)
            matrix.indices = pattern.indices + first
            out.append(Block("psd", matrix, -shift, label, unit))
        return out


@dataclass(frozen=True)
class Signs:
    """Friction coefficients and rotor inertias are not negative; offsets and springs are free.

    Terms with `cross_only` may have either sign: together with the terms of the joints they couple, they must form a
    positive semidefinite matrix.

    Attributes
    ----------
    margin : float
        Lower bound of the parameters, SI units.
    """

    margin: float = 0.0
    extra: int = field(default=0, init=False)

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        index = {name: i for i, name in enumerate(robot.parameter_names)}
        row = columns_of(robot, np.ones((1, 1)), [0])
        out = []
        for term in robot.drives:
            if term.dissipates:
                matrix = copy(row)
                matrix.indices = np.array([index[term.name]], dtype=row.indices.dtype)
                label = f"{term.name} not negative"
                out.append(Block("nonnegative", matrix, np.array([-self.margin]), label, np.ones(1)))
        for kind in (TermKind.INERTIA, TermKind.VISCOUS):
            out += _coupled(robot, [t for t in robot.drives if t.kind == kind], index)
        return out


def _coupled(robot: Robot, terms: list[DriveTerm], index: Mapping[str, int]) -> list[Block]:
    """One matrix inequality for the joints that are coupled by cross-only terms of one kind."""
    joints = sorted({int(j) for t in terms if t.cross_only for j in np.flatnonzero(t.direction)})
    if not joints:
        return []
    columns, coefficients = [], []
    for term in terms:
        d = term.direction[joints]
        if not np.any(d):
            continue
        part = np.outer(d, d)
        coefficients.append(svec(part - np.diag(np.diag(part)) if term.cross_only else part))
        columns.append(index[term.name])
    names = ", ".join(robot.parameter_names[c] for c in columns)
    matrix = columns_of(robot, np.array(coefficients).T, columns)
    return [Block("psd", matrix, np.zeros(len(coefficients[0])), f"{names} together positive semidefinite")]


@dataclass(frozen=True)
class Bounds:
    """Bounds on standard parameters.

    Attributes
    ----------
    values : mapping
        Parameter name, wildcards allowed, to (lower, upper) in SI units; None for no bound: {"fv_*": (0.0, 5.0)}.
    """

    values: Mapping[str, tuple[float | None, float | None]]
    extra: int = field(default=0, init=False)

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        out = []
        for pattern, (lower, upper) in self.values.items():
            for name in matching(pattern, robot.parameter_names, "parameter"):
                out += _between(robot, {name: 1.0}, lower, upper, name)
        return out


@dataclass(frozen=True)
class Linear:
    """Linear constraint: lower <= sum of coefficient times parameter <= upper.

    Attributes
    ----------
    coefficients : mapping
        Parameter name to coefficient.
    lower, upper : float or None
        Bounds; equal bounds make an equality.
    label : str
        Name of the constraint in messages.
    """

    coefficients: Mapping[str, float]
    lower: float | None = None
    upper: float | None = None
    label: str = ""
    extra: int = field(default=0, init=False)

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        words = self.label or " + ".join(f"{c:g} {n}" for n, c in self.coefficients.items())
        return _between(robot, self.coefficients, self.lower, self.upper, words)


@dataclass(frozen=True)
class Fixed:
    """Parameters with known values.

    Attributes
    ----------
    values : mapping
        Parameter name to value in SI units: {"m_link7": 0.85}.
    """

    values: Mapping[str, float]
    extra: int = field(default=0, init=False)

    @staticmethod
    def body(link: str, inertia: ArrayLike) -> Fixed:
        """A link with known inertial parameters (10,)."""
        from dynid.robot.inertia import INERTIAL_SYMBOLS

        numbers = checked(inertia, (10,), f"inertia of '{link}'", DataError)
        return Fixed({f"{s}_{link}": float(x) for s, x in zip(INERTIAL_SYMBOLS, numbers, strict=True)})

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        return [b for name, value in self.values.items() for b in _between(robot, {name: 1.0}, value, value, name)]


@dataclass(frozen=True)
class Mass:
    """Bounds on the mass of a link, or on the total mass of several links.

    Attributes
    ----------
    lower, upper : float or None
        Bounds (kg); equal bounds for a weighed mass.
    links : str or sequence of str
        Patterns of the names of the links; all links by default.
    """

    lower: float | None = None
    upper: float | None = None
    links: str | Sequence[str] = "*"
    extra: int = field(default=0, init=False)

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        patterns = [self.links] if isinstance(self.links, str) else list(self.links)
        names = [n for p in patterns for n in links_named(robot, p)]
        words = "total mass" if patterns == ["*"] else f"mass of {' and '.join(names)}"
        return _between(robot, {f"m_{n}": 1.0 for n in names}, self.lower, self.upper, words)


@dataclass(frozen=True)
class CenterOfMass:
    """Centre of mass of a link inside a box or a convex hull.

    Attributes
    ----------
    link : str
        Name of the link.
    lower, upper : array_like, shape (3,), optional
        Corners of the box in the link frame (m).
    hull : array_like, shape (n, 3), optional
        Points whose convex hull contains the centre of mass, in the link frame (m), instead of a box.
    """

    link: str
    lower: ArrayLike | None = None
    upper: ArrayLike | None = None
    hull: ArrayLike | None = None
    extra: int = field(default=0, init=False)

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        corners = [side is not None for side in (self.lower, self.upper)]
        if any(corners) if self.hull is not None else not all(corners):
            raise MissingArgument(
                f"the centre of mass of '{self.link}' needs a lower and an upper corner, or hull points", "lower"
            )
        if self.hull is None:
            low = checked(self.lower, (3,), f"lower corner of '{self.link}'", DataError)  # type: ignore[arg-type]
            high = checked(self.upper, (3,), f"upper corner of '{self.link}'", DataError)  # type: ignore[arg-type]
            if np.any(low > high):
                raise InvalidValue(f"the box of '{self.link}' has its lower corner above its upper corner", "lower")
            normals = np.vstack([-np.eye(3), np.eye(3)])
            reach = np.concatenate([-low, high])
            words = f"{self.link}: centre of mass in its box"
        else:
            normals, reach = _half_spaces(np.asarray(self.hull, dtype=float), self.link)
            words = f"{self.link}: centre of mass in its hull"
        name = link_named(robot, self.link)
        first = first_column(robot, name)
        matrix = columns_of(robot, np.column_stack([reach, -normals]), range(first, first + 4))
        return [
            Block("nonnegative", matrix, np.zeros(len(reach)), words, np.full(len(reach), link_scales(robot)[name][0]))
        ]


@dataclass(frozen=True)
class Ellipsoids:
    """All mass of a link lies inside a union of ellipsoids.

    With one ellipsoid this is tr(J Q) >= 0 for the pseudo-inertia J. With several, the link is a sum of bodies, one
    inside each ellipsoid.

    Attributes
    ----------
    link : str
        Name of the link.
    matrices : sequence of array_like, shape (4, 4)
        Matrices Q with [x; 1]' Q [x; 1] >= 0 inside, in the link frame (m). See `bounding_ellipsoids`.
    """

    link: str
    matrices: Sequence[ArrayLike]

    @property
    def extra(self) -> int:
        """Number of auxiliary unknowns: the inertial parameters of the parts."""
        return 10 * len(self.matrices) if len(self.matrices) > 1 else 0

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        name = link_named(robot, self.link)
        first, p = first_column(robot, name), len(robot.layout)
        shapes = [_ellipsoid(q, name) for q in self.matrices]
        if not shapes:
            raise MissingArgument(f"'{name}' needs at least one ellipsoid", "matrices")
        mass, length = link_scales(robot)[name]
        pseudo = inertia_to_pseudo(np.eye(10))
        inside = [np.einsum("kij,ij->k", pseudo, q / np.abs(q).max()) for q in shapes]
        if len(shapes) == 1:
            matrix = columns_of(robot, inside[0][None], range(first, first + 10))
            return [Block("nonnegative", matrix, np.zeros(1), f"{name}: mass inside its ellipsoid", np.array([mass]))]
        width = p + self.extra
        parts = [range(p + 10 * k, p + 10 * k + 10) for k in range(len(shapes))]
        # The inertial parameters of the parts are unknowns of order one, in units of the link.
        sizes = mass * np.array([1.0] + [length] * 3 + [length**2] * 6)
        total = np.zeros((10, width))
        total[:, first : first + 10] = np.eye(10)
        for part in parts:
            total[:, part] = -np.diag(sizes)
        label = f"{name}: sum of the parts inside its {len(shapes)} ellipsoids"
        out = [Block("zero", sparse.csr_array(total), np.zeros(10), label)]
        unit = svec(mass * np.diag([length**2] * 3 + [1.0]))
        for k, (part, row) in enumerate(zip(parts, inside, strict=True), start=1):
            words = f"{name}: part {k} inside its ellipsoid"
            out.append(Block("psd", wide(svec(pseudo).T * sizes, part, width), np.zeros(10), words, unit))
            out.append(
                Block("nonnegative", wide((row * sizes)[None], part, width), np.zeros(1), words, np.array([mass]))
            )
        return out


@dataclass(frozen=True)
class BaseBounds:
    """Bounds on base parameters beta = K pi, such as confidence intervals of another estimate.

    Attributes
    ----------
    matrix : array_like, shape (b, p)
        K, for example `BaseParameters.matrix`.
    lower, upper : array_like, scalar or shape (b,)
        Bounds, infinite where there is none.
    names : sequence of str
        Names for messages.
    """

    matrix: ArrayLike
    lower: ArrayLike
    upper: ArrayLike
    names: Sequence[str] = ()
    extra: int = field(default=0, init=False)

    def blocks(self, robot: Robot) -> list[Block]:
        """Cones over the standard parameters."""
        K = np.asarray(self.matrix, dtype=float)
        b, p = len(K), len(robot.layout)
        if K.shape != (b, p):
            raise InvalidShape(f"base bounds need a matrix with {p} columns, got shape {K.shape}", "matrix")
        names = self.names or [f"base parameter {i + 1}" for i in range(b)]
        try:
            low, high = (np.broadcast_to(np.asarray(side, dtype=float), (b,)) for side in (self.lower, self.upper))
        except (TypeError, ValueError):
            raise InvalidShape(f"base bounds need one number or {b} numbers per side", "lower") from None
        if len(names) != b:
            raise InvalidShape(f"base bounds need {b} names, got {len(names)}", "names")
        out = []
        for i in range(b):
            row = dict(zip(robot.parameter_names, K[i], strict=True))
            sides = (None if np.isinf(low[i]) else float(low[i]), None if np.isinf(high[i]) else float(high[i]))
            out += _between(robot, {n: c for n, c in row.items() if c}, *sides, names[i])
        return out


def link_scales(robot: Robot) -> dict[str, tuple[float, float]]:
    """Typical mass and length of each link from its a-priori inertia; the geometric mean where it has none.

    Parameters
    ----------
    robot : Robot
        The robot.

    Returns
    -------
    dict of str to (float, float)
        Mass (kg) and length (m) by link name.
    """
    sizes: dict[str, tuple[float, float] | None] = {}
    for i in robot.parameter_links:
        pi = robot.links[i].inertia
        trace = pi[4] + pi[6] + pi[9]
        known = pi[0] > 0 and trace > 0
        sizes[robot.links[i].name] = (float(pi[0]), float(np.sqrt(trace / (2 * pi[0])))) if known else None
    found = np.array([s for s in sizes.values() if s is not None])
    typical = tuple(float(x) for x in np.exp(np.log(found).mean(axis=0))) if len(found) else (_MASS, _LENGTH)
    return {name: size or (typical[0], typical[1]) for name, size in sizes.items()}


def _between(
    robot: Robot, coefficients: Mapping[str, float], lower: float | None, upper: float | None, words: str
) -> list[Block]:
    """Blocks for lower <= coefficients . parameters <= upper."""
    unknown = [n for n in coefficients if n not in robot.parameter_names]
    if unknown:
        raise UnknownName(f"robot '{robot.name}' has no parameter '{unknown[0]}'", "constraints")
    for side in (lower, upper):
        if side is not None and not np.isfinite(side):
            raise InvalidValue(f"{words}: a bound must be finite, or None", "lower")
    if lower is not None and upper is not None and lower > upper:
        raise InvalidValue(f"{words}: the lower bound {lower:g} is above the upper bound {upper:g}", "lower")
    columns = [robot.parameter_names.index(n) for n in coefficients]
    row = columns_of(robot, np.array([list(coefficients.values())]), columns)
    if lower is not None and lower == upper:
        return [Block("zero", row, np.array([-lower]), f"{words} = {lower:g}")]
    out = []
    if lower is not None:
        out.append(Block("nonnegative", row, np.array([-lower]), f"{words} >= {lower:g}", np.ones(1)))
    if upper is not None:
        out.append(Block("nonnegative", -row, np.array([upper]), f"{words} <= {upper:g}", np.ones(1)))
    return out


def _ellipsoid(matrix: ArrayLike, link: str) -> Array:
    """A checked matrix (4, 4) of an ellipsoid: positive inside, negative far away."""
    q = checked(matrix, (4, 4), f"ellipsoid of '{link}'", DataError)
    if not np.allclose(q, q.T) or np.linalg.eigvalsh(q[:3, :3])[-1] >= 0 or np.linalg.eigvalsh(q)[-1] <= 0:
        raise InvalidValue(
            f"ellipsoid of '{link}': [x; 1]' Q [x; 1] must be positive inside and negative far away", "matrices"
        )
    return q


def _half_spaces(points: Array, link: str) -> tuple[Array, Array]:
    """Outward normals (k, 3) and offsets (k,) of the convex hull of points (n, 3)."""
    if points.ndim != 2 or points.shape[1] != 3 or not np.all(np.isfinite(points)):
        raise InvalidShape(f"hull points of '{link}' need shape (n, 3), got {points.shape}", "points")
    try:
        equations = scipy.spatial.ConvexHull(points).equations
    except scipy.spatial.QhullError:
        raise InvalidValue(f"hull points of '{link}' do not span a volume", "points") from None
    return equations[:, :3], -equations[:, 3]
