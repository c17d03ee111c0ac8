"""Symbolic equations of small robots: M, C, g and the torques as SymPy matrices, and as LaTeX.

Lagrange's equations: M from the kinetic energy of the links, each in its own frame, g from their height, C from the
Christoffel symbols of M. All are linear in the parameters: for base parameters, their representatives take the base
values and the other parameters are zero.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    ConflictingArguments,
    InvalidShape,
    Mismatch,
    MissingPackage,
    ModelError,
    NotApplicable,
    TooLarge,
    Unsupported,
)
from dynid.parameters.base import BaseParameters
from dynid.robot.drives import DRIVE_LAWS, DriveTerm, TermKind
from dynid.robot.inertia import INERTIAL_SYMBOLS
from dynid.robot.model import Robot

if TYPE_CHECKING:
    import sympy as sp

__all__ = ["Equations", "collected", "equations", "readable"]


# Short forms of trigonometric expressions, found by a few fast rewritings.

_SMALL = 60  # operations; trying every form of more takes seconds and seldom finds a shorter one
_ROUNDING = 1e-14  # what cancels among numbers of the geometry leaves less


def readable(expression: Any) -> Any:
    """Of the products of sines and of the sums of angles the shorter form, its terms collected."""
    import sympy as sp

    products = _without_rounding(sp.expand(expression))
    if not products.has(sp.sin, sp.cos):
        return collected(products)
    forms = sorted([products, sums_of_angles(products)], key=lambda form: int(form.count_ops()))
    return _shortest([collected(form) for form in forms if form is forms[0] or form.count_ops() < _SMALL])


def collected(expression: Any) -> Any:
    """Terms put together by their sines and cosines or by a symbol, or factors taken out, where that is shorter."""
    import sympy as sp

    calls = sorted(expression.atoms(sp.sin, sp.cos), key=str)
    forms = [expression, sp.factor_terms(expression)]
    if calls:
        forms.append(sp.collect(expression, calls))
    if expression.count_ops() < _SMALL and not expression.has(sp.Float):
        forms.append(sp.factor(expression))
        symbols = sorted(expression.free_symbols, key=str)
        forms += [sp.factor_terms(sp.collect(expression, x), sign=False) for x in symbols]
    return _shortest(forms)


def sums_of_angles(expression: Any) -> Any:
    """Every product of sines and cosines as a sum of sines and cosines of sums of angles."""
    import sympy as sp

    total: dict[tuple[bool, Any], Any] = {}
    for term in sp.Add.make_args(sp.expand(expression)):
        factor = sp.Integer(1)
        waves: list[tuple[Any, bool, Any]] = [(sp.Integer(1), False, sp.Integer(0))]  # weight, is a sine, angle
        for part in sp.Mul.make_args(term):
            call, power = part.as_base_exp()
            if not isinstance(call, sp.sin | sp.cos) or not (power.is_Integer and power > 0):
                factor *= part
                continue
            for _ in range(int(power)):
                waves = [x for w in waves for x in _product(w, isinstance(call, sp.sin), call.args[0])]
        for weight, sine, angle in waves:
            if angle.could_extract_minus_sign():
                weight, angle = (-weight if sine else weight), -angle
            total[sine, angle] = total.get((sine, angle), sp.Integer(0)) + weight * factor
    out = sp.Integer(0)
    for (sine, angle), factor in total.items():
        out += _without_rounding(sp.expand(factor)) * (sp.sin(angle) if sine else sp.cos(angle))
    return out


def _product(wave: tuple[Any, bool, Any], sine: bool, angle: Any) -> list[tuple[Any, bool, Any]]:
    """A wave times the sine or cosine of an angle, as two waves."""
    weight, other, x = wave
    half, plus, minus = weight / 2, x + angle, x - angle
    if other and sine:
        return [(half, False, minus), (-half, False, plus)]
    if other:
        return [(half, True, plus), (half, True, minus)]
    if sine:
        return [(half, True, plus), (-half, True, minus)]
    return [(half, False, plus), (half, False, minus)]


def _without_rounding(expression: Any) -> Any:
    """The sum without terms whose number is what cancelling numbers leave."""
    import sympy as sp

    kept = [t for t in sp.Add.make_args(expression) if abs(t.as_coeff_Mul()[0]) > _ROUNDING]
    return sp.Add(*kept)


def _shortest(forms: list[Any]) -> Any:
    return min(forms, key=lambda form: (form.count_ops(), str(form)))


Array = NDArray[np.float64]

# With more joints the equations fill pages and take minutes to derive.
MAX_JOINTS = 4
_WORDS = (("M", "mass matrix"), ("C", "Coriolis matrix"), ("g", "gravity"), ("drives", "drives"))


@dataclass(frozen=True, eq=False)
class Equations:
    """Equations of motion tau = M(q) a + C(q, v) v + g(q) + drives(q, v, a) as SymPy matrices.

    Attributes
    ----------
    robot : Robot
        The robot.
    q, v, a : tuple of sympy.Symbol
        Positions, velocities and accelerations of the joints.
    parameters : dict of str to sympy.Symbol
        Symbol of each standard or base parameter by its name.
    constants : dict of sympy.Symbol to float
        Symbols of gravity and lengths with their values in SI units.
    M, C : sympy.Matrix
        Mass matrix and Coriolis matrix, (n, n).
    g, drives : sympy.Matrix
        Gravity torque and torque of the drives, (n, 1).
    """

    robot: Robot
    q: tuple[sp.Symbol, ...]
    v: tuple[sp.Symbol, ...]
    a: tuple[sp.Symbol, ...]
    parameters: dict[str, sp.Symbol]
    constants: dict[sp.Symbol, float]
    M: sp.Matrix
    C: sp.Matrix
    g: sp.Matrix
    drives: sp.Matrix

    @cached_property
    def tau(self) -> sp.Matrix:
        """Joint torques, a SymPy matrix (n, 1)."""
        import sympy as sp

        return self.M * sp.Matrix(self.a) + self.C * sp.Matrix(self.v) + self.g + self.drives

    def numbers(
        self, part: str, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None, *, values: ArrayLike
    ) -> Array:
        """Evaluate one part of the equations numerically.

        Parameters
        ----------
        part : {"M", "C", "g", "drives", "tau"}
            What to evaluate.
        q, v, a : array_like, shape (n,)
            Position, velocity and acceleration; zero if left out. rad or m, and their derivatives.
        values : array_like, shape (p,)
            Values of `parameters`, in that order, in SI units.

        Returns
        -------
        ndarray
            The matrix (n, n) or column (n, 1).
        """
        import sympy as sp

        zero = np.zeros(len(self.q))
        given: dict[Any, float] = dict(self.constants)
        for symbols, numbers in (
            (self.q, q),
            (self.v, zero if v is None else v),
            (self.a, zero if a is None else a),
            (tuple(self.parameters.values()), values),
        ):
            numbers = np.asarray(numbers, dtype=float)
            if numbers.shape != (len(symbols),):
                raise InvalidShape(
                    f"expected {len(symbols)} numbers for {symbols[0]} and so on, got shape {numbers.shape}"
                )
            given |= dict(zip(symbols, numbers.tolist(), strict=True))
        symbols = tuple(given)
        return np.asarray(sp.lambdify(symbols, getattr(self, part), "numpy")(*given.values()), dtype=float)

    def text(self) -> str:
        """All equations as plain text, with s1, c12 for sines and cosines."""
        return _plain_text(self)

    def latex(self) -> str:
        """All equations as LaTeX, one `align*` environment per part."""
        return _latex_text(self)


def equations(
    robot: Robot,
    base: BaseParameters | None = None,
    *,
    gravity: bool = True,
    lengths: bool = False,
    simplify: bool = True,
) -> Equations:
    """Derive the equations of motion of a robot with up to four joints on a fixed base.

    Parameters
    ----------
    robot : Robot
        The robot.
    base : BaseParameters, optional
        Write the equations in these base parameters; by default in the standard parameters.
    gravity : bool, default True
        Write the magnitude of gravity as the symbol g instead of a number.
    lengths : bool, default False
        Write distances between joints as symbols (x2: joint 2 along x of its parent link). Needs standard parameters,
        because base parameters contain the geometry as numbers.
    simplify : bool, default True
        Simplify sines and cosines.

    Returns
    -------
    Equations
        The equations as SymPy matrices.

    Raises
    ------
    DataError
        If SymPy is not installed (`pip install dynid[symbolic]`), or the robot is too large.
    """
    try:
        import sympy as sp
    except ImportError:
        raise MissingPackage("equations need SymPy: pip install dynid[symbolic]") from None

    _check(robot, base, lengths)
    n = robot.n
    numbered = [str(i + 1) for i in range(n)]
    q, v, a = (tuple(sp.Symbol(f"{x}{i}", real=True) for i in numbered) for x in ("q", "v", "a"))
    standard = [sp.Symbol(label, real=True) for label in robot.parameter_labels]
    constants: dict[Any, float] = {}
    size = float(np.linalg.norm(robot.gravity))
    pull = sp.Matrix([_exact(x) for x in robot.gravity])
    if gravity and size:
        g = sp.Symbol("g", positive=True)
        constants[g] = size
        pull = g * sp.Matrix([_exact(x / size) for x in robot.gravity])
    known = dict(zip(robot.parameter_names, standard, strict=True))
    kinetic, potential = _energies(robot, q, v, known, pull, constants if lengths else None)
    tidy: Callable[[Any], Any] = readable if simplify else (lambda x: x)
    if base is not None:
        chosen, rename = _base_symbols(base, standard)
        kinetic, potential = kinetic.xreplace(rename), potential.xreplace(rename)
    else:
        chosen, rename = known, {}
    half = {(i, j): tidy(sp.diff(kinetic, v[i], v[j])) for i in range(n) for j in range(i + 1)}
    M = sp.Matrix(n, n, lambda i, j: half[max(i, j), min(i, j)])
    C = sp.Matrix(n, n, lambda i, j: sum(_christoffel(M, q, i, j, k) * v[k] for k in range(n))).applyfunc(tidy)
    pulled = sp.Matrix([tidy(sp.diff(potential, x)) for x in q])
    rotors, other = _drives(robot, q, v, known)
    M = (M + rotors.xreplace(rename)).applyfunc(lambda x: collected(x) if simplify else x)
    return Equations(robot, q, v, a, chosen, constants, M, C, pulled, other.xreplace(rename))


def _check(robot: Robot, base: BaseParameters | None, lengths: bool) -> None:
    if robot.base != "fixed":
        raise NotApplicable(f"equations are written of robots on a fixed base; '{robot.name}' has a {robot.base} one")
    if robot.loops:
        raise NotApplicable(
            f"equations are written of robots without closed loops; '{robot.name}' has {len(robot.loops)}"
        )
    if robot.n > MAX_JOINTS:
        raise TooLarge(
            f"'{robot.name}' has {robot.n} joints; equations are written of up to {MAX_JOINTS}, for more of them "
            "take C, Python or CasADi code"
        )
    own = [t.name for t in robot.drives if t.kind == TermKind.CUSTOM]
    if own:
        raise Unsupported(f"term '{own[0]}' is a function of the user's own, which has no equation")
    if base is not None and (base.robot.parameter_names != robot.parameter_names or base.channels != robot.channels):
        raise Mismatch("these base parameters belong to another robot or to only some of its channels", "base")
    if base is not None and lengths:
        raise ConflictingArguments("base parameters hold numbers of the geometry: leave lengths out", "lengths")


def _base_symbols(base: BaseParameters, standard: list[Any]) -> tuple[dict[str, Any], dict[Any, Any]]:
    """Symbols of the base parameters, and what each standard symbol becomes."""
    import sympy as sp

    rename: dict[Any, Any] = {standard[j]: sp.Integer(0) for j in base.dependent}
    chosen = {}
    for j, name in zip(base.kept, base.names, strict=True):
        grouped = name != base.robot.parameter_names[j]
        symbol = sp.Symbol(base.robot.parameter_labels[j] + ("R" if grouped else ""), real=True)
        rename[standard[j]] = chosen[name] = symbol
    return chosen, rename


def _exact(value: float) -> Any:
    """The number as a fraction or a root where it is one to rounding, else as it is."""
    import sympy as sp

    if abs(value) < 1e-12:
        return sp.Integer(0)
    for square in (1, 2, 3):
        found = sp.Rational(float(value / np.sqrt(square))).limit_denominator(1000)
        if abs(float(found) * np.sqrt(square) - value) < 1e-14 * max(1.0, abs(value)):
            return found * sp.sqrt(square)
    return sp.Float(value, 17)


def _energies(
    robot: Robot,
    q: tuple[Any, ...],
    v: tuple[Any, ...],
    parameters: Mapping[str, Any],
    pull: Any,
    lengths: dict[Any, float] | None,
) -> tuple[Any, Any]:
    """Kinetic and potential energy, link by link in the link's own frame."""
    import sympy as sp

    zero = sp.zeros(3, 1)
    # Per link: rotation of its frame into the base, its origin there, its velocities along its own axes.
    R, p, linear, angular = [sp.eye(3)], [zero], [zero], [zero]
    kinetic, potential = sp.Integer(0), sp.Integer(0)
    for j, joint in enumerate(robot.joints):
        leader = joint.name if joint.mimic is None else joint.mimic.leader
        i = robot.coordinates.index(leader)
        ratio, offset = (1, 0) if joint.mimic is None else (_exact(joint.mimic.ratio), _exact(joint.mimic.offset))
        axis = sp.Matrix([_exact(x) for x in joint.axis])
        before, after = (_placement(h) for h in (joint.placement, joint.mount))
        if lengths is not None:
            before = before[0], _named(before[1], joint.placement[:3, 3], f"{j + 1}", lengths)
            after = after[0], _named(after[1], joint.mount[:3, 3], f"{j + 1}e", lengths)
        angle, rate = ratio * q[i] + offset, ratio * v[i]
        turn, shift, spin, slide = sp.eye(3), zero, zero, zero
        if joint.kind == "revolute":
            k = _skew(axis)
            turn, spin = sp.eye(3) + sp.sin(angle) * k + (1 - sp.cos(angle)) * k * k, axis * rate
        else:
            shift, slide = axis * angle, axis * rate
        # The link frame in its parent's: turned by `rotation`, its origin at `place`.
        rotation = before[0] * turn * after[0]
        place = before[1] + before[0] * (shift + turn * after[1])
        b = joint.parent
        moving = (before[0] * turn).T
        own = moving * angular[b] + spin
        at_joint = moving * (linear[b] + angular[b].cross(before[1] + before[0] * shift)) + slide
        angular.append((after[0].T * own).applyfunc(sp.expand))
        linear.append((after[0].T * (at_joint + own.cross(after[1]))).applyfunc(sp.expand))
        R.append(R[b] * rotation)
        p.append(p[b] + R[b] * place)
        link = robot.links[j + 1]
        if link.virtual:
            continue
        m, mx, my, mz, xx, xy, yy, xz, yz, zz = (parameters[f"{s}_{link.name}"] for s in INERTIAL_SYMBOLS)
        u, w, h = linear[-1], angular[-1], sp.Matrix([mx, my, mz])
        inertia = sp.Matrix([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        kinetic += sp.expand(m * u.dot(u) / 2 + h.dot(u.cross(w)) + w.dot(inertia * w) / 2)
        potential -= sp.expand(m * pull.dot(p[-1]) + pull.dot(R[-1] * h))
    return kinetic, potential


def _placement(h: Array) -> tuple[Any, Any]:
    import sympy as sp

    return sp.Matrix(3, 3, lambda i, j: _exact(float(h[i, j]))), sp.Matrix([_exact(float(x)) for x in h[:3, 3]])


def _named(vector: Any, values: Array, tail: str, lengths: dict[Any, float]) -> Any:
    """The vector with a symbol in place of every number that is not zero."""
    import sympy as sp

    out = vector.copy()
    for k, letter in enumerate("xyz"):
        if vector[k] != 0:
            out[k] = sp.Symbol(letter + tail, real=True)
            lengths[out[k]] = float(values[k])
    return out


def _skew(x: Any) -> Any:
    import sympy as sp

    return sp.Matrix([[0, -x[2], x[1]], [x[2], 0, -x[0]], [-x[1], x[0], 0]])


def _christoffel(M: Any, q: tuple[Any, ...], i: int, j: int, k: int) -> Any:
    return (M[i, j].diff(q[k]) + M[i, k].diff(q[j]) - M[j, k].diff(q[i])) / 2


def _drives(robot: Robot, q: tuple[Any, ...], v: tuple[Any, ...], parameters: Mapping[str, Any]) -> tuple[Any, Any]:
    """Rotor inertias as a matrix and all other drive terms as torques."""
    import sympy as sp

    rotors, torque = sp.zeros(robot.n, robot.n), sp.zeros(robot.n, 1)
    for term in robot.drives:
        d = sp.Matrix([_exact(float(x)) for x in term.direction])
        value = parameters[term.name]
        if term.kind == TermKind.INERTIA:
            own = sp.diag(*(x**2 for x in d)) if term.cross_only else sp.zeros(robot.n, robot.n)
            rotors += value * (d * d.T - own)
            continue
        if term.function is not None:
            raise ModelError(f"drive term '{term.name}' has no equation", code="unsupported")
        law = DRIVE_LAWS[term.symbol]
        motion = q if law.motion == "q" else v
        effort = d * law.effort(SymbolicEffort(term, d.dot(sp.Matrix(motion)) - _exact(term.rest)))
        if term.cross_only and law.linear:
            effort -= sp.Matrix([d[i] ** 2 * motion[i] for i in range(robot.n)])
        torque += value * effort
    return rotors, torque


@dataclass(frozen=True)
class SymbolicEffort:
    """What the effort of a term is made of, in symbols: `s` is the motion of its shaft."""

    term: DriveTerm
    s: Any

    @property
    def one(self) -> Any:
        """1."""
        import sympy as sp

        return sp.Integer(1)

    def positive(self) -> Any:
        """The motion where it is positive, else 0."""
        import sympy as sp

        return sp.Max(self.s, 0)

    def negative(self) -> Any:
        """The motion where it is negative, else 0."""
        import sympy as sp

        return sp.Min(self.s, 0)

    def step(self, low: float, high: float) -> Any:
        """A step at zero velocity."""
        import sympy as sp

        down, up = int(low), int(high)
        if self.term.slope:
            return sp.Rational(up + down, 2) + sp.Rational(up - down, 2) * sp.tanh(_exact(self.term.slope) * self.s)
        if down < 0 < up:
            return sp.sign(self.s)
        return sp.Piecewise((up, self.s > 0), (down, self.s < 0), (0, True))

    def fading(self) -> Any:
        """exp(-(s / velocity)^2)."""
        import sympy as sp

        return sp.exp(-((self.s / _exact(self.term.velocity)) ** 2))


def _short_trigonometry(expression: Any, q: tuple[Any, ...]) -> Any:
    """sin(q1 + q2) as the symbol s12, cos(q1) as c1; other angles stay as they are."""
    import sympy as sp

    number = {symbol: i + 1 for i, symbol in enumerate(q)}
    names = {}
    for call in expression.atoms(sp.sin, sp.cos):
        angles = sp.Add.make_args(call.args[0])
        if all(x in number for x in angles):
            digits = sorted(number[x] for x in angles)
            names[call] = sp.Symbol(("s" if isinstance(call, sp.sin) else "c") + "".join(map(str, digits)), real=True)
    return expression.xreplace(names)


def _plain_text(found: Equations) -> str:
    """Every entry that is not zero on a line of its own, with what the symbols are."""
    import sympy as sp

    lines = [f"{found.robot.name}: tau = M(q) a + C(q, v) v + g(q) + drives", ""]
    for part, words in _WORDS:
        entries = _entries(getattr(found, part))
        lines.append(f"{words}:" if entries else f"{words}: none")
        lines += [f"  {_entry(part, k)} = {sp.sstr(_short_trigonometry(x, found.q))}" for k, x in entries]
        lines.append("")
    lines.append("symbols:")
    lines += [f"  {symbol} = {value:.12g}" for symbol, value in found.constants.items() if _used(found, symbol)]
    lines += [f"  {symbol}: {name}" for name, symbol in found.parameters.items() if _used(found, symbol)]
    return "\n".join(lines) + "\n"


def _latex_text(found: Equations) -> str:
    """Every part as an `align*` of its entries, ready to be put into a document that loads amsmath."""
    import sympy as sp

    words = {symbol: _latex_name(str(symbol)) for symbol in found.parameters.values()}
    words |= {symbol: _latex_name(str(symbol)) for symbol in found.constants}
    for i in range(len(found.q)):
        words |= {found.q[i]: f"q_{{{i + 1}}}", found.v[i]: f"\\dot{{q}}_{{{i + 1}}}"}
        words[found.a[i]] = f"\\ddot{{q}}_{{{i + 1}}}"
    lines = [
        f"% {found.robot.name}: M(q) \\ddot q + C(q, \\dot q) \\dot q + g(q) + drives",
        "% s_{12} = sin(q_1 + q_2), c_{12} = cos(q_1 + q_2)",
    ]
    for part, title in _WORDS:
        entries = _entries(getattr(found, part))
        if not entries:
            continue
        lines += [f"% {title}", "\\begin{align*}"]
        rows = []
        for k, expression in entries:
            short = _short_trigonometry(expression, found.q)
            trigonometry = {
                s: f"{str(s)[0]}_{{{str(s)[1:]}}}" for s in short.free_symbols if _is_trigonometry(s, words)
            }
            index = "".join(str(i + 1) for i in k)
            name = "d" if part == "drives" else part
            rows.append(f"  {name}_{{{index}}} &= {sp.latex(short, symbol_names=words | trigonometry)}")
        lines += [" \\\\\n".join(rows), "\\end{align*}"]
    return "\n".join(lines) + "\n"


def _is_trigonometry(symbol: Any, words: dict[Any, str]) -> bool:
    return symbol not in words and re.fullmatch(r"[sc]\d+", str(symbol)) is not None


def _entries(matrix: Any) -> list[tuple[tuple[int, ...], Any]]:
    """Entries that are not zero with their indices; one index for a column."""
    rows, columns = matrix.shape
    found = [((i, j) if columns > 1 else (i,), matrix[i, j]) for i in range(rows) for j in range(columns)]
    return [(k, x) for k, x in found if x != 0]


def _entry(part: str, index: tuple[int, ...]) -> str:
    return f"{part}[{', '.join(str(i + 1) for i in index)}]"


def _used(found: Equations, symbol: Any) -> bool:
    return any(getattr(found, part).has(symbol) for part, _ in _WORDS)


def _latex_name(name: str) -> str:
    """I_{zz,1}, mx_{2}, tau_{off,1}, an m for motors and a superscript R where parameters are regrouped."""
    plain = re.fullmatch(r"([A-Za-z]+?)m?_(\d+)(R?)", name)
    if plain is None:
        letter = re.fullmatch(r"([a-z])(\d+)(e?)", name)
        return f"{letter[1]}_{{{letter[2]}{letter[3]}}}" if letter else name.replace("_", r"\_")
    symbol, number, grouped = plain.groups()
    motor = "m" if name.startswith(symbol + "m_") and not name.startswith("m_") else ""
    tail = "^{R}" if grouped else ""
    if re.fullmatch(r"I[xyz]{2}", symbol):
        return f"I_{{{symbol[1:]},{number}}}{tail}"
    if symbol in ("m", "k"):
        return f"{symbol}_{{{motor}{number}}}{tail}"
    if re.fullmatch(r"m[xyz]", symbol):
        return f"{{{symbol}}}_{{{number}}}{tail}"
    head, rest = (r"\tau", symbol) if symbol == "off" else (symbol[0], symbol[1:])
    return f"{head}_{{\\mathrm{{{rest}}},{motor}{number}}}{tail}"
