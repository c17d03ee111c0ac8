"""Published combinations such as "MY2 + d3*M3 + (d3+d4)*(M4+M5)" as linear forms."""

from __future__ import annotations

import ast
from collections.abc import Mapping

from dynid.errors import DataError

__all__ = ["linear_form"]

_CONSTANT = ""


def linear_form(text: str, constants: Mapping[str, float] | None = None) -> dict[str, float]:
    """Coefficient of every name in a linear expression; `constants` are names that stand for numbers."""
    try:
        form = _form(ast.parse(text, mode="eval").body, constants or {})
    except SyntaxError:
        raise DataError(f"'{text}' is no expression") from None
    if form.pop(_CONSTANT, 0.0):
        raise DataError(f"'{text}' has a constant term")
    return form


def _form(node: ast.expr, constants: Mapping[str, float]) -> dict[str, float]:
    match node:
        case ast.Constant(value=int() | float() as value):
            return {_CONSTANT: float(value)}
        case ast.Name(id=name):
            return {_CONSTANT: constants[name]} if name in constants else {name: 1.0}
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return {k: -v for k, v in _form(inner, constants).items()}
        case ast.BinOp(left=a, op=ast.Add() | ast.Sub() as op, right=b):
            out, sign = dict(_form(a, constants)), 1.0 if isinstance(op, ast.Add) else -1.0
            for name, value in _form(b, constants).items():
                out[name] = out.get(name, 0.0) + sign * value
            return out
        case ast.BinOp(left=a, op=ast.Mult(), right=b):
            x, y = _form(a, constants), _form(b, constants)
            if set(x) - {_CONSTANT}:
                x, y = y, x
            if set(x) <= {_CONSTANT}:
                return {k: x.get(_CONSTANT, 0.0) * v for k, v in y.items()}
        case ast.BinOp(left=a, op=ast.Pow(), right=ast.Constant(value=int() as power)):
            x = _form(a, constants)
            if set(x) <= {_CONSTANT}:
                return {_CONSTANT: x.get(_CONSTANT, 0.0) ** power}
    raise DataError(f"'{ast.unparse(node)}' is not linear in the parameters")
