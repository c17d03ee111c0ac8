"""Tables of estimates and validations."""

from __future__ import annotations

import io

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from dynid.identification.estimate import Estimate
from dynid.identification.validation import Validation

__all__ = ["estimate_text", "truth_text", "validation_text"]


def _text(*parts: object) -> str:
    console = Console(file=io.StringIO(), width=150, highlight=False)
    for part in parts:
        console.print(part)
    return console.file.getvalue()  # type: ignore[attr-defined]


def estimate_text(estimate: Estimate) -> str:
    """Base parameters with deviations, then the fit joint by joint."""
    table = Table(title=f"{estimate.robot.name}: {len(estimate.beta)} base parameters by {estimate.method}")
    for name in ("combination", "a priori", "estimate", "sigma", "sigma %"):
        table.add_column(name, justify="left" if name == "combination" else "right", overflow="fold")
    rows = zip(
        estimate.base.expressions,
        estimate.base.values(),
        estimate.beta,
        estimate.std,
        estimate.relative_std,
        strict=True,
    )
    for expression, prior, value, sigma, relative in rows:
        shown = f"{relative:.2f}" if relative < 1000 else f"{relative:.0e}"
        table.add_row(expression, f"{prior:.5g}", f"{value:.5g}", f"{sigma:.2g}", shown)
    fit = Table(title="fit")
    for name in ("joint", "rows", "RMS", "relative %"):
        fit.add_column(name, justify="left" if name == "joint" else "right")
    for joint, count, rms, relative in zip(
        estimate.base.channels, estimate.rows, estimate.rms, estimate.relative_error, strict=True
    ):
        fit.add_row(joint, str(count), f"{rms:.4g}", f"{100 * relative:.2f}")
    used = sorted({c for c in estimate.cutoffs if c is not None})
    filters = f"cut-off {', '.join(f'{c:.3g}' for c in used)} Hz" if used else "no low-pass"
    closing = (
        f"{estimate.status}; condition number {estimate.condition_number:.4g}; {filters}; {estimate.seconds:.2f} s"
    )
    return _text(table, fit, closing, *estimate.notes, _possible(estimate))


def _possible(estimate: Estimate) -> str:
    """Whether a robot with these values can exist; a feasible estimate is one by construction."""
    if estimate.standard is not None:
        return "possible: the standard parameters are those of a robot that can exist"
    verdict = estimate.feasibility()
    if verdict.answer != "infeasible":
        return f"possible: {'yes' if verdict else 'undecided'} (margin {verdict.margin:.2g})"
    shown = "; ".join(verdict.reasons[:3]) + ("; ..." if len(verdict.reasons) > 3 else "")
    return f"possible: no robot has these values, against {shown}. Method 'feasible' finds the best one that can exist"


def truth_text(estimate: Estimate, truth: NDArray[np.float64]) -> str:
    """Known truth, what was assumed before, and what was found, largest deviation first noted."""
    table = Table(title=f"{estimate.robot.name}: truth against estimate ({estimate.method})")
    for name in ("combination", "a priori", "truth", "estimate", "sigma", "off by (sigma)"):
        table.add_column(name, justify="left" if name == "combination" else "right", overflow="fold")
    off = (estimate.beta - truth) / estimate.std
    columns = (estimate.base.expressions, estimate.base.values(), truth, estimate.beta, estimate.std, off)
    for row in zip(*columns, strict=True):
        table.add_row(row[0], *(f"{x:.5g}" for x in row[1:4]), f"{row[4]:.2g}", f"{row[5]:+.1f}")
    inside = float(np.mean(np.abs(off) < 2))
    closing = (
        f"{100 * inside:.0f} % of {len(truth)} base parameters lie within two deviations of the truth (95 % expected)"
    )
    return _text(table, closing)


def validation_text(validation: Validation) -> str:
    """Errors joint by joint."""
    table = Table(title="prediction of measured torques")
    for name in ("joint", "rows", "RMSE", "relative %", "NRMSE %", "largest", "R2"):
        table.add_column(name, justify="left" if name == "joint" else "right")
    for i, joint in enumerate(validation.channels):
        table.add_row(
            joint,
            str(validation.rows[i]),
            f"{validation.rmse[i]:.4g}",
            f"{100 * validation.relative[i]:.2f}",
            f"{100 * validation.nrmse[i]:.2f}",
            f"{validation.largest[i]:.4g}",
            f"{validation.r2[i]:.4f}" if np.isfinite(validation.r2[i]) else "-",
        )
    return _text(table)
