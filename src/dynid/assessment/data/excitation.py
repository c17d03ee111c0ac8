"""Check of the excitation: which base parameters are identifiable from the recorded motion."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.data.context import Context
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.finding import Finding, FindingCode
from dynid.errors import DynidError
from dynid.identification.observation import fold
from dynid.parameters.base import BaseParameters

__all__ = ["EXCITATION"]

ROWS_FEW = FindingCode("rows_few", "there are few independent rows per base parameter", "warning")
PARAMETERS_NOT_EXCITED = FindingCode(
    "parameters_not_excited", "the motion does not excite some base parameters", "warning"
)
ILL_CONDITIONED = FindingCode("ill_conditioned", "the base regressor is ill conditioned", ("warning", "info"))

# Independent rows per parameter below which estimates depend on single samples.
_ROWS_PER_PARAMETER = 10.0
# With unit columns, designed motions reach about a hundred; beyond a thousand a percent of noise dominates.
_WELL_CONDITIONED, _BADLY_CONDITIONED = 100.0, 1000.0
# A parameter is not excited if the norm of its unit column, projected off all others, is below this.
_INVISIBLE = 1e-3
# Rows of the regressor that are used.
_ROWS = 8_000
_NAMED = 12


def check_excitation(context: Context) -> Iterator[Finding]:
    """Check rank and condition number of the base regressor with unit columns over all runs."""
    robot, recording = context.robot, context.recording
    name = recording.runs[0].name if len(recording.runs) == 1 else "all runs"
    motions = [m for m in (context.cleaned(run) for run in recording.runs) if m is not None]
    if robot.base == "floating" or not motions:
        return
    try:
        base = context.base
    except DynidError:
        return  # a robot without parameters has nothing to excite
    samples = sum(len(m.q) for m in motions)
    thin = max(1, samples * robot.n // _ROWS)
    state = (np.vstack([getattr(m, x)[::thin] for m in motions]) for x in ("q", "v", "a"))
    rows = base.regressor(*state).reshape(-1, base.count)
    # Two rows per period of the cut-off are independent; cleaned runs keep more.
    independent = sum(len(m.q) * 2 * m.cutoff * m.step for m in motions) * robot.n
    if independent < _ROWS_PER_PARAMETER * base.count:
        yield Finding(
            ROWS_FEW,
            "warning",
            name,
            "",
            "The recording is short for the number of parameters.",
            f"{independent / base.count:.3g} independent rows per base parameter",
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
    # Norm of each unit column projected off the others: 1 / sqrt of the diagonal of the inverse Gram matrix.
    own = 1.0 / np.linalg.norm(directions[: len(singular)].T / np.maximum(singular, 1e-12), axis=1)
    hidden = ~shown
    hidden[shown] = own < _INVISIBLE
    if hidden.any():
        yield Finding(
            PARAMETERS_NOT_EXCITED,
            "warning",
            name,
            "",
            f"The motion does not excite these base parameters: {_listed(base, hidden)}.",
            f"{int(hidden.sum())} of {base.count} base parameters (rank {rank}, condition number {condition:.2g})",
            "Move all joints at once, faster and over a wider range, or use a-priori values for these.",
        )
    elif condition > _WELL_CONDITIONED:
        yield Finding(
            ILL_CONDITIONED,
            "warning" if condition > _BADLY_CONDITIONED else "info",
            name,
            "",
            "The motion excites some combinations of parameters far less than others.",
            f"{condition:.3g} condition number of the base regressor with unit columns (rank {rank} of {base.count})",
            "Run a designed excitation; regularise or remove uncertain parameters.",
        )


def _listed(base: BaseParameters, chosen: NDArray[np.bool_]) -> str:
    """Names of the chosen base parameters, at most a dozen."""
    names = [base.names[i] for i in np.flatnonzero(chosen)]
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


EXCITATION = RecordingCheck(
    name="excitation",
    finds="rank and condition number of the base regressor with unit columns, base parameters that the motion does "
    "not excite, too few rows per parameter; for all runs together",
    advice="move all joints at once, faster and wider; record longer",
    codes=(
        ROWS_FEW,
        PARAMETERS_NOT_EXCITED,
        ILL_CONDITIONED,
    ),
    of_recording=check_excitation,
)
