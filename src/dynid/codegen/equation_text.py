"""Equations as text: short names for sines and cosines, in plain text and in LaTeX."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynid.codegen.symbolic import Equations

__all__ = ["latex_text", "plain_text"]

_PARTS = (("M", "mass matrix"), ("C", "Coriolis matrix"), ("g", "gravity"), ("drives", "drives"))


def short_trigonometry(expression: Any, q: tuple[Any, ...]) -> Any:
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


def plain_text(found: Equations) -> str:
    """Every entry that is not zero on a line of its own, with what the symbols are."""
    import sympy as sp

    lines = [f"{found.robot.name}: tau = M(q) a + C(q, v) v + g(q) + drives", ""]
    for part, words in _PARTS:
        entries = _entries(getattr(found, part))
        lines.append(f"{words}:" if entries else f"{words}: none")
        lines += [f"  {_entry(part, k)} = {sp.sstr(short_trigonometry(x, found.q))}" for k, x in entries]
        lines.append("")
    lines.append("symbols:")
    lines += [f"  {symbol} = {value:.12g}" for symbol, value in found.constants.items() if _used(found, symbol)]
    lines += [f"  {symbol}: {name}" for name, symbol in found.parameters.items() if _used(found, symbol)]
    return "\n".join(lines) + "\n"


def latex_text(found: Equations) -> str:
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
    for part, title in _PARTS:
        entries = _entries(getattr(found, part))
        if not entries:
            continue
        lines += [f"% {title}", "\\begin{align*}"]
        rows = []
        for k, expression in entries:
            short = short_trigonometry(expression, found.q)
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
    return any(getattr(found, part).has(symbol) for part, _ in _PARTS)


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
