"""How much of the robot the recorded motion can show."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Context
from dynid.assessment.finding import Finding
from dynid.errors import DynidError
from dynid.identification.observation import fold
from dynid.parameters.base import BaseParameters

__all__ = ["check_excitation"]

# Independent rows a parameter below which estimates hang on single samples.
_ROWS_A_PARAMETER = 10.0
# Unit columns: up to about a hundred is a designed motion, beyond a thousand a percent of noise decides the estimate.
_WELL_CONDITIONED, _BADLY_CONDITIONED = 100.0, 1000.0
# Own part of a column, what the others cannot mimic, below which its parameter is lost among them.
_INVISIBLE = 1e-3
# Rows of the regressor that are looked at.
_ROWS = 8_000
_NAMED = 12


def check_excitation(context: Context) -> Iterator[Finding]:
    """Rank and condition number of the unit-column base regressor of all runs together, and what they hide."""
    robot, recording = context.robot, context.recording
    name = recording.runs[0].name if len(recording.runs) == 1 else "all runs"
    motions = [m for m in (context.cleaned(run) for run in recording.runs) if m is not None]
    if robot.base == "floating" or not motions:
        return
    try:
        base = context.base
    except DynidError:
        return  # a robot without any effect on its torques has nothing to excite
    samples = sum(len(m.q) for m in motions)
    thin = max(1, samples * robot.n // _ROWS)
    state = (np.vstack([getattr(m, x)[::thin] for m in motions]) for x in ("q", "v", "a"))
    rows = base.regressor(*state).reshape(-1, base.count)
    # Two rows a period of the cut-off are independent; cleaned runs keep more.
    independent = sum(len(m.q) * 2 * m.cutoff * m.step for m in motions) * robot.n
    if independent < _ROWS_A_PARAMETER * base.count:
        yield Finding(
            "warning",
            name,
            "",
            "The recording is short for the number of parameters.",
            f"{independent / base.count:.3g} independent rows a base parameter",
            "Record longer, or identify with fewer friction terms.",
        )
    norms = np.linalg.norm(rows, axis=0)
    shown = norms > 1e-9 * norms.max(initial=0.0)
    if not shown.any():
        return
    factor = fold(rows[:, shown] / norms[shown])
    _, singular, directions = np.linalg.svd(factor)
    rank = int(np.count_nonzero(singular > _INVISIBLE * singular[0]))
    condition = float(singular[0] / max(singular[-1], 1e-15))
    # Own part of each unit column: 1 / sqrt of the diagonal of the inverse Gram matrix.
    own = 1.0 / np.linalg.norm(directions[: len(singular)].T / np.maximum(singular, 1e-12), axis=1)
    hidden = ~shown
    hidden[shown] = own < _INVISIBLE
    if hidden.any():
        yield Finding(
            "warning",
            name,
            "",
            f"The motion cannot show these base parameters: {_listed(base, hidden)}.",
            f"{int(hidden.sum())} of {base.count} base parameters (rank {rank}, condition number {condition:.2g})",
            "Move all joints at once, faster and over a wider range, or accept a-priori values for these.",
        )
    elif condition > _WELL_CONDITIONED:
        yield Finding(
            "warning" if condition > _BADLY_CONDITIONED else "info",
            name,
            "",
            "The motion shows some combinations of parameters far worse than others.",
            f"{condition:.3g} condition number of the base regressor with unit columns (rank {rank} of {base.count})",
            "Run a designed excitation; regularise or drop what the estimate reports as uncertain.",
        )


def _listed(base: BaseParameters, chosen: NDArray[np.bool_]) -> str:
    names = [base.names[i] for i in np.flatnonzero(chosen)]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
