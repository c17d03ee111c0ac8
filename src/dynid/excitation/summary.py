"""Text summaries of excitations and plans."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rich.table import Table

from dynid.excitation.excitation import Excitation
from dynid.excitation.plan import MOST_PERIODS, Plan
from dynid.excitation.stacking import ExcitationStack
from dynid.terminal import rendered

__all__ = ["excitation_text", "plan_text", "stack_text"]

# Share of the largest torque of a parameter that another one moves at least, to be listed.
_SHOWN = 0.01
_WORST = 5
_COUNTS = (1, 2, 5, 10, 20, 50, 100)


def _table(title: str, columns: Sequence[str]) -> Table:
    table = Table(title=title)
    for k, name in enumerate(columns):
        table.add_column(name, justify="right" if k else "left", overflow="fold")
    return table


def excitation_text(motion: Excitation) -> str:
    """Use of every limit by joint, active limits, and the parameters with the largest relative error."""
    table = _table(f"{motion.robot.name}: motion of {motion.duration:g} s, use of limits in %", ["joint", *motion.use])
    for j, name in enumerate(motion.robot.coordinates):
        shares = [share[j] for share in motion.use.values()]
        table.add_row(name, *(f"{100 * x:.1f}" if np.isfinite(x) else "-" for x in shares))
    lines = [f"{c.label}: smallest clearance {motion.slacks[c.label]:.3g}" for c in motion.clearances]
    close = motion.active_limits
    lines.append(f"active limits: {', '.join(close) or 'none'}")
    lines.append(
        f"criterion {motion.criterion.name}: {motion.value:.4f}; condition number {motion.condition_number:.4g}; "
        f"{motion.seconds:.1f} s"
    )
    return rendered(table, *lines, _worst(motion), *motion.notes)


def _worst(motion: Excitation) -> str:
    """Parameters with the largest relative standard deviation, for the noise of the criterion.

    A parameter that is nearly zero has a huge relative error and no meaning: those that move no torque are left out.
    """
    found = motion.plan(motion.criterion.noise)
    relative = found.relative_std
    torque = np.divide(
        found.effect, relative, out=np.zeros(len(relative)), where=np.isfinite(relative) & (relative > 0)
    )
    usable = [i for i in np.argsort(-relative) if found.prior[i] != 0 and torque[i] > _SHOWN * torque.max()]
    if not usable:
        return "relative errors: not available, all a-priori values are zero"
    shown = ", ".join(f"{found.base.names[i]} ({_percent(relative[i] / 100)})" for i in usable[:_WORST])
    effect = ", ".join(found.base.names[i] for i in np.argsort(-found.effect)[:_WORST])
    return (
        f"largest relative errors after one period, torque noise {_noise(found)}: {shown}; largest in torques: {effect}"
    )


def _noise(plan: Plan) -> str:
    return ", ".join(f"{x:g}" for x in dict.fromkeys(plan.noise.tolist()))


def plan_text(plan: Plan) -> str:
    """Every base parameter with its standard deviation and the periods it needs, and the effect of more periods."""
    goal = f"{100 * plan.target:g} %"
    table = _table(
        f"{plan.base.robot.name}: one period of {plan.duration:g} s at {plan.rate:g} Hz, torque noise {_noise(plan)}",
        ("combination", "a priori", "std", "std %", "torque error / noise", f"periods to {goal}"),
    )
    columns = (plan.base.expressions, plan.prior, plan.std, plan.relative_std, plan.effect, plan.periods)
    rows = list(zip(*columns, strict=True))
    for i in np.argsort(plan.periods, kind="stable"):
        expression, prior, sigma, relative, effect, periods = rows[i]
        often = "never" if np.isinf(periods) else f"{periods:.0f}"
        table.add_row(expression, f"{prior:.5g}", f"{sigma:.2g}", _percent(relative / 100), f"{effect:.2g}", often)
    lines = []
    for count in _COUNTS:
        known = int(np.count_nonzero(plan.periods <= count))
        often = "1 period" if count == 1 else f"{count} periods"
        lines.append(
            f"{often} ({count * plan.duration:g} s): {known} of {len(rows)} with a relative error below {goal}"
        )
        if known == np.count_nonzero(np.isfinite(plan.periods)):
            break
    without = [n for n, prior in zip(plan.base.names, plan.prior, strict=True) if prior == 0]
    if without:
        lines.append(f"zero a priori, so without a relative error: {', '.join(without)}")
    far = [n for n in plan.unknown if n not in without]
    if far:
        lines.append(f"relative error not below {goal} within {MOST_PERIODS} periods: {', '.join(far)}")
    return rendered(table, *lines)


def stack_text(stack: ExcitationStack) -> str:
    """What every motion adds to what is known, and why no further one was designed."""
    base = stack.before.base
    table = _table(
        f"{base.robot.name}: motions one after another, std as a share of the typical size",
        ("motion", "seconds", "condition number", "gain", "largest std", "median std", "least known"),
    )
    for k, relative in enumerate(stack.relative_std / 100):
        seconds = f"{stack.motions[k - 1].duration:g}" if k else "-"
        gain = _percent(stack.gains[k - 1]) if k else "-"
        condition = stack.condition_numbers[k]
        table.add_row(
            str(k) if k else "before",
            seconds,
            f"{condition:.4g}" if np.isfinite(condition) else "-",
            gain,
            _percent(relative.max()),
            _percent(float(np.median(relative))),
            base.names[int(np.argmax(relative))] if np.any(np.isfinite(relative)) else "-",
        )
    return rendered(table, stack.reason)


def _percent(share: float) -> str:
    if not np.isfinite(share):
        return "-"
    return f"{100 * share:.2f} %" if share < 10 else f"{100 * share:.0e} %"
