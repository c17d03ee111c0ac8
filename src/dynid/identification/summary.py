"""Tables and figures of estimates and validations, for the terminal and for notebooks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue, MissingData, UnknownName
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.registry import is_posterior
from dynid.identification.validation_errors import REPEATED, Validation
from dynid.patterns import matching_names
from dynid.plotting.points import Interval, draw_intervals
from dynid.plotting.traces import Pair, chosen_joints, draw_pairs
from dynid.results import text_tables
from dynid.terminal import rendered, table_of

__all__ = [
    "NO_BOX",
    "body_lines",
    "draw_estimate",
    "draw_validation",
    "estimate_text",
    "truth_text",
    "validation_text",
]

Array = NDArray[np.float64]

NO_BOX = "the plausible box of the bodies is switched off"


def estimate_text(estimate: Estimate) -> str:
    """Base parameters with standard deviations, then the fit per channel."""
    used = sorted({c for c in estimate.cutoffs if c is not None})
    filters = f"cut-off {', '.join(f'{c:.3g}' for c in used)} Hz" if used else "no low-pass"
    closing = f"{estimate.status}; {_condition(estimate)}; {filters}; {estimate.seconds:.2f} s"
    weighed = estimate.known_masses.words()
    bodies = (*([f"the robot {weighed}"] if weighed else []), *body_lines(estimate))
    notes = (*_smooth_friction(estimate), *bodies, *estimate.notes)
    return rendered(*text_tables(estimate), closing, _noise(estimate), *notes, _feasible(estimate))


def body_lines(estimate: Estimate) -> list[str]:
    """A sentence for each link whose mass was given, and one where the plausible box of the bodies is off."""
    given = estimate.known_masses
    lines = [f"{link} {given.words(link)}" for link in given.links]
    return lines if estimate.box is not False else [*lines, NO_BOX]


def _noise(estimate: Estimate) -> str:
    """What the standard deviations rest on."""
    if estimate.noise_model == "white":
        return "standard deviations assume white noise"
    if estimate.noise_model == "repetitions":
        return f"standard deviations from the scatter of repetitions, {estimate.freedom:.0f} degrees of freedom"
    rows, worth = sum(estimate.rows), sum(estimate.independent_rows)
    source = "of the posterior" if is_posterior(estimate.method) else f"from {estimate.freedom + 1:.0f} blocks of time"
    return f"standard deviations {source}; {rows} rows are worth {worth:.0f} independent ones"


def _condition(estimate: Estimate) -> str:
    return f"condition number {estimate.condition_number:.4g}"


def _smooth_friction(estimate: Estimate) -> list[str]:
    """The slopes of smooth Coulomb friction, if there are any."""
    groups: dict[str, list[str]] = {}
    for term in estimate.robot.drives:
        if term.slope:
            groups.setdefault(f"{term.slope:g} {'s/m' if term.linear else 's/rad'}", []).append(term.name)
    shown = "; ".join(f"{', '.join(names)} {slope}" for slope, names in groups.items())
    return [f"Coulomb friction is tanh(slope * velocity): {shown}"] if groups else []


def _feasible(estimate: Estimate) -> str:
    """Whether the values are physically consistent; those of a method with constraints are by construction."""
    if estimate.standard is not None:
        return "physically consistent: yes, the method estimates standard parameters under constraints"
    verdict = estimate.feasibility()
    if verdict.status != "infeasible":
        return f"physically consistent: {'yes' if verdict else 'undecided'} (margin {verdict.margin:.2g})"
    shown = "; ".join(verdict.reasons[:3]) + ("; ..." if len(verdict.reasons) > 3 else "")
    return f"physically consistent: no, against {shown}. Method 'feasible' finds the best consistent parameters"


def truth_text(estimate: Estimate, truth: Array) -> str:
    """Known true base parameters beside the a-priori and the estimated ones, with the errors in standard deviations."""
    title = f"{estimate.robot.name}: truth against estimate ({estimate.method})"
    names = ("combination", "unit", "a priori", "truth", "estimate", "sigma", "error / sigma")
    table = table_of(title, *names, text=("combination", "unit"))
    error = (estimate.beta - truth) / estimate.std
    base = estimate.base
    columns = (base.expressions, base.units, base.values(), truth, estimate.beta, estimate.std, error)
    for row in zip(*columns, strict=True):
        table.add_row(*row[:2], *(f"{x:.5g}" for x in row[2:5]), f"{row[5]:.2g}", f"{row[6]:+.1f}")
    inside = float(np.mean(np.abs(error) < 2))
    closing = (
        f"{100 * inside:.0f} % of {len(truth)} base parameters lie within two standard deviations of the truth "
        "(95 % expected)"
    )
    return rendered(table, closing)


def validation_text(validation: Validation) -> str:
    """Prediction errors per channel."""
    names = ("channel", "rows", "RMSE", "largest", "unit", "relative %", "NRMSE %", "R2")
    table = table_of("prediction of measured torques", *names, text=("channel", "unit"))
    for i, channel in enumerate(validation.channels):
        if not validation.rows[i]:
            table.add_row(channel, "0", "-", "-", validation.units[i], "-", "-", "-")
            continue
        table.add_row(
            channel,
            str(validation.rows[i]),
            f"{validation.rmse[i]:.4g}",
            f"{validation.largest[i]:.4g}",
            validation.units[i],
            f"{100 * validation.relative[i]:.2f}",
            f"{100 * validation.nrmse[i]:.2f}",
            f"{validation.r2[i]:.4f}" if np.isfinite(validation.r2[i]) else "-",
        )
    if validation.repeated >= REPEATED:
        table.caption = f"{100 * validation.repeated:.0f} % of this motion repeats the fitted motion: it is not unseen"
    still = [c for c, rows in zip(validation.channels, validation.rows, strict=True) if not rows]
    closing = [f"not checked, because they stand still: {', '.join(still)}"] if still else []
    if validation.left_out:
        from dynid.recording.partition_map import left_out_note

        closing.append(left_out_note(validation.left_out, validation.partitions))
    return rendered(table, *closing)


def draw_estimate(
    estimate: Estimate, parameters: str | Sequence[str] | None, level: float, largest: int | None, ax: Any
) -> NDArray[Any]:
    """As `Estimate.plot`."""
    base = estimate.base
    names, labels = base.names, base.robot.parameter_labels
    chosen = set(range(base.count))
    if parameters is not None:
        chosen = set()
        for pattern in [parameters] if isinstance(parameters, str) else parameters:
            found = matching_names(pattern, names)
            if not found:
                raise UnknownName(f"no base parameter matches '{pattern}', such as '{names[0]}'", "pattern")
            chosen |= {names.index(name) for name in found}
    bounds, prior = estimate.confidence_intervals(level), base.values()
    if largest is not None:
        # Those that the data move most, in standard deviations.
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.nan_to_num(np.abs(estimate.beta - prior) / estimate.std)
        chosen = set(sorted(chosen, key=lambda k: -moved[k])[:largest])
    if not chosen:
        raise MissingData("no parameter is left to be drawn")
    grouped = [np.count_nonzero(row) > 1 for row in base.matrix]
    shown = [labels[j] + ("R" if more else "") for j, more in zip(base.kept, grouped, strict=True)]
    return draw_intervals(
        [
            Interval(
                name=shown[k],
                unit=base.units[k],
                value=float(estimate.beta[k]),
                low=float(bounds[k, 0]),
                high=float(bounds[k, 1]),
                prior=float(prior[k]),
            )
            for k in sorted(chosen)
        ],
        ax,
    )


def draw_validation(
    validation: Validation, joints: str | Sequence[str] | None, ax: Any, band: float | None
) -> NDArray[Any]:
    """As `Validation.plot`."""
    if band is not None and not (np.isfinite(band) and band > 0):
        raise InvalidValue(f"the band is a positive share of the range of the torque, not {band!r:.60}", "band")
    pairs = [
        Pair(
            validation.channels[k],
            validation.units[k],
            validation.time[k],
            validation.measured[k],
            validation.predicted[k],
        )
        for k in chosen_joints(joints, validation.channels)
    ]
    return draw_pairs(pairs, ax, band=band)
