"""All real robots with dynid's default settings, against the known errors on each recording."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import identify
from dynid.identification.validation import validate
from dynid.recording.recording import Recording
from dynid.signals.settings import Signals
from studies.reproduce.robot_cases import CASES
from studies.reproduce.robot_models import model_figures
from studies.reproduce.study import Figure, kept_figures, published

__all__ = ["Known", "figures", "known_figures"]

Array = NDArray[np.float64]

_SHARE = 0.10
_REASON = "10 % of it, as filter and weights differ, and half of its last digit"
_RECORD = "for the record"


@dataclass(frozen=True)
class Known:
    """The entry of one robot in robots.toml."""

    robot: str
    source: str
    band: float
    rows: str
    missing: str
    velocity: str = "derived"
    quantity: str = "relative"
    fit: tuple[float, ...] = ()
    held_out: tuple[float, ...] = ()
    together: float | None = None
    worse: Mapping[str, str] | None = None

    @property
    def signals(self) -> Signals:
        """Signal settings of the known figure: one low-pass for all signals and no decimation."""
        slowest: float | str = "1%" if self.rows == "moving" else 0.0
        measured = self.velocity == "measured"
        return Signals(
            cutoff=self.band, torque_cutoff="same", measured_velocity=measured, decimate=(), min_velocity=slowest
        )

    def error(self, estimate: Estimate, recording: Recording) -> Array:
        """Errors (channel,) of an estimate in percent, or in N m where the known figure is."""
        found = validate(estimate, recording, signals=self.signals)
        return found.rmse if self.quantity == "rmse" else 100 * found.relative

    def shown(self, value: float) -> str:
        return f"{value:.2f} N m" if self.quantity == "rmse" else f"{value:.1f} %"

    def rounding(self, value: float) -> float:
        """Half of the last printed digit."""
        if self.quantity == "rmse":
            return 0.005
        return 0.5 if isinstance(value, int) else 0.05


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Errors of every robot, on training and held-out data, against known figures.

    The mean over the joints of a robot has a tolerance; single joints are for the record. A known figure is the optimum
    of ordinary least squares over all joints together, and no other weighting can be better on each of them.
    """
    known = known_figures()
    sections = {key: partial(_robot_figures, known[key], key) for key in CASES}
    yield from kept_figures("robots", sections, folder)


def known_figures() -> dict[str, Known]:
    """Known figures of all robots."""
    return {key: Known(**entries) for key, entries in published("robots").items()}


def _robot_figures(known: Known, key: str) -> Iterator[Figure]:
    case = CASES[key]()
    estimate = identify(case.robot, case.train, "wls")
    plain = identify(case.robot, case.train, "ols", signals=replace(known.signals, min_velocity=0.0))
    cutoffs = sorted({f"{c:.3g}" for c in estimate.cutoffs if c is not None}, key=float)
    span = cutoffs[0] if len(cutoffs) == 1 else f"{cutoffs[0]} to {cutoffs[-1]}"
    section = (
        f"{known.robot}: identified at {span} Hz (auto), errors up to {known.band:g} Hz, {known.rows} rows. "
        f"Known: {known.source}. Missing: {known.missing}"
    )
    for what, values, recording in (("fit", known.fit, case.train), ("held out", known.held_out, case.test)):
        if recording is None:
            continue
        ours, others = known.error(estimate, recording), known.error(plain, recording)
        for i, joint in enumerate(estimate.base.channels):
            name = f"{joint}, {what}"
            there = known.shown(values[i]) if values else f"none (plain OLS {known.shown(float(others[i]))})"
            over = max(float(ours[i]) - values[i], 0.0) if values else 0.0
            reason = (known.worse or {}).get(name, _RECORD)
            yield Figure(section, name, there, known.shown(float(ours[i])), over, np.inf, reason)
        if values:
            rounding = float(np.mean([known.rounding(v) for v in values]))
            yield _bounded(section, f"mean of joints, {what}", known, float(np.mean(values)), ours.mean(), rounding)
    if known.together is not None:
        assert case.divisor is not None
        errors = validate(estimate, case.train, signals=known.signals)
        square = sum(float(m @ m) for m in validate(estimate, case.divisor, signals=known.signals).measured)
        lost = sum(rows * rmse**2 for rows, rmse in zip(errors.rows, errors.rmse, strict=True))
        ours = 100 * np.sqrt(lost / square)
        yield _bounded(section, "all joints, fit", known, known.together, ours, known.rounding(known.together))
    yield from model_figures(section, case)


def _bounded(section: str, name: str, known: Known, bound: float, ours: float, rounding: float) -> Figure:
    """Ours against a known figure that it must not exceed."""
    unit = "N m" if known.quantity == "rmse" else "%"
    over, tolerance = max(float(ours) - bound, 0.0), _SHARE * bound + rounding
    return Figure(section, name, f"<= {bound:.4g} {unit}", known.shown(float(ours)), over, tolerance, _REASON)
