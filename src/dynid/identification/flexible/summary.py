"""Tables of identified flexible joints and of their validation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid.hypothesis import probability
from dynid.identification.summary import validation_text
from dynid.markup import html_table
from dynid.terminal import rendered, table_of

if TYPE_CHECKING:
    from dynid.identification.flexible.estimate import FlexibleEstimate
    from dynid.identification.flexible.validation import FlexibleValidation

__all__ = ["flexible_html", "flexible_text", "validation_tables"]

_SPRINGS = ("joint", "stiffness", "sigma %", "unit", "damping", "sigma", "unit ", "motor inertia", "sigma  ", "unit  ")
_OTHERS = ("parameter", "unit", "estimate", "sigma", "sigma %")
_TESTS = ("joint", "kind", "size", "sigma", "p")


def flexible_text(estimate: FlexibleEstimate) -> str:
    """Springs, then the other parameters, tests of linear stiffness and notes."""
    title = f"{estimate.robot.name}: {len(estimate.joints)} flexible joints, encoders of {_encoders(estimate)}"
    springs = table_of(title, *_SPRINGS, text=("joint", "unit", "unit ", "unit  "))
    for row in _spring_rows(estimate):
        springs.add_row(*row)
    others = table_of("links and motors", *_OTHERS, text=("parameter", "unit"))
    for row in _other_rows(estimate):
        others.add_row(*row)
    tables: list[object] = [springs, others]
    if estimate.tests:
        table = table_of("nonlinear stiffness", *_TESTS, text=("joint", "kind"))
        for test in estimate.tests:
            shown = ("-", "-", "not excited") if np.isnan(test.p_value) else (f"{test.size:.2g}", f"{test.std:.2g}")
            table.add_row(test.joint, test.kind.value, *shown, *([] if len(shown) > 2 else [probability(test.p_value)]))
        tables.append(table)
    state = "converged" if estimate.converged else "not converged"
    closing = (
        f"{state} in {estimate.iterations} iterations; standard deviations from {estimate.freedom + 1:.0f} blocks of "
        "time; damping that is negative is not significant"
    )
    return rendered(*tables, closing, *estimate.notes)


def flexible_html(estimate: FlexibleEstimate) -> str:
    """The tables of springs and other parameters for a notebook."""
    return html_table("flexible joints", _SPRINGS, _spring_rows(estimate), "; ".join(estimate.notes)) + html_table(
        "links and motors", _OTHERS, _other_rows(estimate)
    )


def validation_tables(validation: FlexibleValidation) -> str:
    """Errors of torques, then of link positions."""
    text = validation_text(validation.torque)
    if validation.links is None:
        return text
    links = validation.links
    names = ("joint", "flexible", "rigid, encoder errors", "rigid", "unit")
    table = table_of("link positions from motor positions, RMS error", *names, text=("joint", "unit"))
    for joint, f, e, r, unit in zip(links.joints, links.flexible, links.encoder, links.rigid, links.units, strict=True):
        table.add_row(joint, f"{f:.3g}", f"{e:.3g}", f"{r:.3g}", unit)
    return text + rendered(table)


def _encoders(estimate: FlexibleEstimate) -> str:
    return "motors and links" if estimate.sides == "both" else "motors only"


def _spring_rows(estimate: FlexibleEstimate) -> list[tuple[str, ...]]:
    out: list[tuple[str, ...]] = []
    for k, joint in enumerate(estimate.joints):
        linear = estimate.robot.channel_units[joint] == "N"
        units = ("N/m", "N s/m", "kg") if linear else ("N m/rad", "N m s/rad", "kg m2")
        if estimate.seen[k]:
            share = 100 * estimate.stiffness_std[k] / estimate.stiffness[k]
            spring = (f"{estimate.stiffness[k]:.4g}", f"{share:.2g}", units[0])
            damper = (f"{estimate.damping[k]:.3g}", f"{estimate.damping_std[k]:.2g}", units[1])
        else:
            spring = (f"> {estimate.interval(joint)[0]:.3g}", "-", units[0])
            damper = ("-", "-", units[1])
        inertia = (f"{estimate.motor_inertia[k]:.4g}", f"{estimate.motor_inertia_std[k]:.2g}", units[2])
        out.append((joint, *spring, *damper, *inertia))
    return out


def _other_rows(estimate: FlexibleEstimate) -> list[tuple[str, ...]]:
    base, model = estimate.base, estimate.model
    rows = list(zip(base.expressions, base.units, estimate.beta, estimate.beta_std, strict=True))
    units = {p.name: p.unit for p in model.motors.layout}
    rows += [
        (f"{name} (motor)", units[name], x, estimate.motor_std[name])
        for name, x in estimate.motor_parameters.items()
        if not name.startswith("Ia_")
    ]
    return [(name, unit, f"{x:.5g}", f"{s:.2g}", f"{100 * s / abs(x):.2g}" if x else "-") for name, unit, x, s in rows]
