"""Short forms of trigonometric expressions, found by a few fast rewritings."""

from __future__ import annotations

from typing import Any

__all__ = ["collected", "readable"]

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
