"""Physical consistency as polynomial inequalities, and their elimination for planar robots.

Sousa (2014), section 3.1: feasible standard parameters form a semialgebraic set, by Sylvester's criterion, and so does
its projection, the feasible base parameters. The thesis states that the inequalities of the projection exist. Here they
are computed for planar robots: a link then has a mass, two first moments and one moment of inertia with an effect, and
exists if I m > |l|^2. The dependent parameters are eliminated one after the other by Fourier and Motzkin: every
inequality that is linear in one of them bounds it from below or above, and it exists if all lower bounds are below all
upper ones. Where the sign of a coefficient is open, both cases are followed.

    I m > |l|^2, m > 0,    a + b x >= 0 and c - d x >= 0 (b, d > 0) for some x if and only if a d + b c >= 0

Sources: Sousa (2014), section 3.1; Ziegler, Lectures on Polytopes (1995), chapter 1, for the elimination of Fourier and
Motzkin.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, DynidError, NotApplicable, UnknownName
from dynid.feasibility.constraints import Notion, Signs
from dynid.robot.inertia import INERTIAL_SYMBOLS, inertia_to_pseudo
from dynid.robot.model import Robot
from dynid.robot.parts import checked

if TYPE_CHECKING:
    from dynid.parameters.base import BaseParameters

__all__ = ["BaseInequalities", "base_inequalities", "feasibility_polynomials"]

Array = NDArray[np.float64]
Branch = tuple[Any, ...]

_DIGITS = 12
# More cases and inequalities than this are not followed.
_BRANCHES, _MOST = 64, 400
_AXES: tuple[tuple[str, str, str], ...] = (("Ixx", "my", "mz"), ("Iyy", "mx", "mz"), ("Izz", "mx", "my"))


def feasibility_polynomials(robot: Robot, notion: Notion = "semi") -> dict[str, Any]:
    """Polynomials in the standard parameters that are positive for physically consistent robots, and only for them.

    Parameters
    ----------
    robot : Robot
        The robot.
    notion : {"semi", "full"}
        "semi": mass and the leading minors of the tensor about the centre of mass, times m^2 (Sousa 2014, section
        3.1.1). "full": the leading minors of the pseudo-inertia.

    Returns
    -------
    dict of str to sympy.Expr
        By label; symbols have the names of the parameters. Drive parameters with a sign are polynomials of their own.

    Raises
    ------
    DataError
        For an unknown notion.
    DynidError
        If SymPy is not installed.

    Examples
    --------
    >>> import dynid
    >>> from dynid.feasibility import feasibility_polynomials
    >>> found = feasibility_polynomials(dynid.load_robot("box2"))
    >>> found["link1: minor 1"]
    Ixx_link1*m_link1**2 - m_link1*my_link1**2 - m_link1*mz_link1**2
    """
    sp = _sympy()
    if notion not in ("semi", "full"):
        raise UnknownName(f"inertia notion '{notion}' is unknown: use semi or full", "notion")
    symbols = sp.symbols(robot.parameter_names, real=True)
    out = {}
    for i, parameter in enumerate(robot.layout):
        if not parameter.inertial or parameter.symbol != "m":
            continue
        own, link = symbols[i : i + 10], parameter.owner
        out[f"{link}: mass"] = own[0]
        matrix, factor = _central(sp, own) if notion == "semi" else (_pseudo(sp, own), 1)
        for k in range(1, matrix.rows + 1):
            out[f"{link}: minor {k}"] = sp.expand(factor * sp.expand(matrix[:k, :k].det(method="berkowitz")))
    for column in _signed(robot):
        out[robot.parameter_names[column]] = symbols[column]
    return out


@dataclass(frozen=True, eq=False)
class BaseInequalities:
    """Inequalities of feasible base parameters, without any other unknown. Made by `base_inequalities`.

    Attributes
    ----------
    names : tuple of str
        Names of the base parameters, which are the names of the symbols.
    branches : tuple of tuple of sympy.Expr
        Base parameters are feasible if all polynomials of at least one branch are positive.
    """

    names: tuple[str, ...]
    branches: tuple[Branch, ...]

    def slack(self, beta: ArrayLike) -> float:
        """Smallest value of the polynomials of the best branch: positive if feasible, negative if not.

        Parameters
        ----------
        beta : array_like, shape (b,)
            Base parameters.

        Returns
        -------
        float
            In mixed units: only its sign has a meaning.
        """
        values = checked(beta, (len(self.names),), "base parameters", DataError)
        return float(max(min(float(p) for p in branch(*values)) for branch in self._functions))

    @cached_property
    def _functions(self) -> list[Any]:
        """One compiled function per branch."""
        sp = _sympy()
        symbols = sp.symbols(self.names, real=True)
        return [sp.lambdify(symbols, list(branch)) for branch in self.branches]


def base_inequalities(base: BaseParameters) -> BaseInequalities:
    """Inequalities of the feasible base parameters of a planar robot, by elimination of all other parameters.

    Parameters
    ----------
    base : BaseParameters
        Base parameters of a robot whose links move in parallel planes, perpendicular to an axis of their frames, with
        the frame of each link at its own joint.

    Returns
    -------
    BaseInequalities
        "semi" and "full" are the same for planar robots. The boundary is not part of the set.

    Raises
    ------
    DataError
        If the robot is not planar.
    DynidError
        If the elimination is too large, or SymPy is not installed.

    Examples
    --------
    >>> import dynid
    >>> from dynid.feasibility import base_inequalities
    >>> base = dynid.base_parameters(dynid.load_robot("box2"))
    >>> found = base_inequalities(base)
    >>> found.branches[0][-1]
    Iyy_link1R*Iyy_link2 - 5*mx_link2**2/16 - 5*mz_link2**2/16
    >>> found.slack(base.values()) > 0
    True
    """
    sp = _sympy()
    names = tuple(base.names)
    beta = sp.symbols(names, real=True)
    free = sp.symbols([f"free_{base.robot.parameter_names[c]}" for c in base.dependent], real=True)
    standard = _standard(sp, base, beta, free)
    start = tuple(sp.expand(p) for p in _planar(base, standard))
    branches: list[tuple[Branch, frozenset[Any]]] = [(start, frozenset(free))]
    done: list[Branch] = []
    while branches:
        if len(branches) + len(done) > _BRANCHES:
            raise DynidError(f"the elimination was given up: more than {_BRANCHES} cases", code="too_large")
        inequalities, left = branches.pop()
        left = frozenset(v for v in left if any(p.has(v) for p in inequalities))
        if not left:
            done.append(inequalities)
            continue
        branches += _eliminated(sp, inequalities, left)
    return BaseInequalities(names, tuple(done))


def _sympy() -> Any:
    try:
        import sympy
    except ImportError:
        raise DynidError("polynomials need SymPy: pip install dynid[symbolic]", code="missing_package") from None
    return sympy


def _central(sp: Any, own: Any) -> tuple[Any, Any]:
    """Tensor about the centre of mass of ten symbols, and m^2."""
    m, x, y, z, xx, xy, yy, xz, yz, zz = own
    tensor = sp.Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    skew = sp.Matrix([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return tensor - skew.T * skew / m, m**2


def _pseudo(sp: Any, own: Any) -> Any:
    """Pseudo-inertia of ten symbols."""
    parts = [sp.Matrix(4, 4, [sp.nsimplify(x) for x in inertia_to_pseudo(e).ravel()]) for e in np.eye(10)]
    return sum((p * s for p, s in zip(parts, own, strict=True)), sp.zeros(4, 4))


def _signed(robot: Robot) -> list[int]:
    """Columns of drive parameters that are not negative; coupled ones have no sign of their own."""
    blocks = Signs().blocks(robot)
    if any(b.cone == "psd" for b in blocks):
        raise NotApplicable("drives that are coupled by cross-only terms have no polynomials of single parameters")
    return [int(b.matrix.indices[0]) for b in blocks]


def _standard(sp: Any, base: BaseParameters, beta: Any, free: Any) -> list[Any]:
    """Standard parameters as linear expressions in base parameters and dependent ones."""
    standard: list[Any] = [sp.Integer(0)] * len(base.robot.layout)
    for column, symbol in zip(base.dependent, free, strict=True):
        standard[column] = symbol
    for row, column in enumerate(base.kept):
        grouped = [(c, round(float(base.matrix[row, c]), _DIGITS)) for c in base.dependent]
        standard[column] = beta[row] - sum(sp.Rational(str(k)) * standard[c] for c, k in grouped if k)
    return standard


def _planar(base: BaseParameters, standard: list[Any]) -> list[Any]:
    """Inequalities of links in a plane and of signs, over base parameters and dependent ones."""
    robot, effective = base.robot, np.any(np.abs(base.matrix) > 10.0**-_DIGITS, axis=0)
    out = [standard[c] for c in _signed(robot)]
    for i, parameter in enumerate(robot.layout):
        if not parameter.inertial or parameter.symbol != "m":
            continue
        used = {s for s, e in zip(INERTIAL_SYMBOLS, effective[i : i + 10], strict=True) if e}
        plane = next((axis for axis in _AXES if used <= {"m", *axis}), None)
        if plane is None:
            raise NotApplicable(
                f"robot '{robot.name}' is not planar: '{parameter.owner}' has an effect by {sorted(used)}"
            )
        if not used:
            continue
        inertia, *moments = (standard[i + INERTIAL_SYMBOLS.index(s)] for s in plane)
        shown = [x for x, s in zip(moments, plane[1:], strict=True) if s in used]
        out += [standard[i], inertia, inertia * standard[i] - sum(x**2 for x in shown)]
    return out


def _eliminated(sp: Any, inequalities: Branch, left: frozenset[Any]) -> list[tuple[Branch, frozenset[Any]]]:
    """One or two branches with one variable less, or with one more known sign."""
    unknown, known = None, _known(sp, inequalities)
    for v in sorted(left, key=str):
        polys = [sp.Poly(p, v) for p in inequalities if p.has(v)]
        if any(p.degree() > 1 for p in polys):
            continue
        signs = [_sign(sp, p.nth(1), known) for p in polys]
        if None not in signs:
            rest = [p for p in inequalities if not p.has(v)]
            lower = [(p.nth(1), p.nth(0)) for p, s in zip(polys, signs, strict=True) if s == 1]
            upper = [(-p.nth(1), p.nth(0)) for p, s in zip(polys, signs, strict=True) if s == -1]
            rest += [sp.expand(a * d + c * b) for a, b in lower for c, d in upper]
            if len(rest) > _MOST:
                raise DynidError(f"the elimination was given up: more than {_MOST} inequalities", code="too_large")
            return [(tuple(dict.fromkeys(rest)), left - {v})]
        coefficient = polys[signs.index(None)].nth(1)
        unknown = unknown if unknown is not None else coefficient
    if unknown is None:
        raise DynidError(
            "the elimination was given up: no parameter is left that is linear in all inequalities",
            code="not_converged",
        )
    return [((*inequalities, sp.expand(sign * unknown)), left) for sign in (1, -1)]


def _sign(sp: Any, value: Any, known: dict[Any, int]) -> Literal[1, -1] | None:
    """Sign of a polynomial as far as the signs of its factors are known."""
    constant, factors = sp.factor_list(value)
    sign = 1 if constant > 0 else -1
    for factor, power in factors:
        if power % 2 == 0:
            continue
        if factor not in known:
            return None
        sign *= known[factor]
    return 1 if sign > 0 else -1


def _known(sp: Any, positive: Branch) -> dict[Any, int]:
    """Signs of the factors that positive polynomials with one factor of odd power have."""
    found = {}
    for polynomial in positive:
        constant, factors = sp.factor_list(polynomial)
        if len(factors) == 1 and factors[0][1] % 2 == 1:
            found[factors[0][0]] = 1 if constant > 0 else -1
    return found
