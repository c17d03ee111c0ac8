"""Flexible joints of known stiffness, damping and motor inertia: a two-mass joint and a 6-joint arm.

The plants are integrated with Pinocchio's forward dynamics, not by dynid. Motors have 4096 counts behind a gear of 100,
links 17 bits, torques 2 % of white noise, at 1 kHz.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.flexible import FlexibleEstimate, identify_flexible
from dynid.recording.recording import Recording
from studies.reproduce.flexible_plant import LINK_COUNTS, FlexibleDrives, arm, recorded, two_mass
from studies.reproduce.study import Figure, kept_figures

__all__ = ["figures"]

Array = NDArray[np.float64]

_SECONDS = 20.0
_STIFFNESS, _DAMPING, _INERTIA, _MOTOR_SIDE = 2.0, 20.0, 2.0, 10.0  # %
_COARSE = 2**14  # counts per revolution: steps of 0.4 mrad, a third of the deflections
_REASON = "the aim of the study, largest error over all runs and joints"
_RECORD = "for the record"


@dataclass(frozen=True, eq=False)
class _Errors:
    """Relative errors (run, joint) of stiffness, damping and motor inertia in %, and intervals that hold."""

    stiffness: Array
    damping: Array
    inertia: Array
    inside: Array

    @staticmethod
    def of(pairs: list[tuple[FlexibleDrives, FlexibleEstimate]]) -> _Errors:
        """Errors of estimates against their truth."""

        def relative(name: str) -> Array:
            return np.array([100 * (getattr(e, name) / getattr(t, name) - 1) for t, e in pairs])

        inside = []
        for truth, e in pairs:
            limit = float(scipy.stats.t.ppf(0.975, e.freedom))
            inside.append(
                [
                    np.abs(1 / truth.stiffness - e.compliance) < limit * e.compliance_std,
                    np.abs(truth.damping - e.damping) < limit * e.damping_std,
                    np.abs(truth.motor_inertia - e.motor_inertia) < limit * e.motor_inertia_std,
                ]
            )
        return _Errors(relative("stiffness"), relative("damping"), relative("motor_inertia"), np.array(inside))


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """A few runs of each case, or fifty, and ten of the arm from motor encoders alone, which take a minute each."""
    joints, arms, long = (50, 50, 10) if full else (4, 2, 2)
    cases: tuple[tuple[str, int, Callable[[str, int], Iterator[Figure]]], ...] = (
        ("Two-mass joint, both encoders", joints, partial(_both, two_mass)),
        ("6-joint arm, both encoders", arms, partial(_both, arm)),
        ("Two-mass joint, link encoder of 14 bits", joints, _coarse),
        ("Two-mass joint, motor encoder alone", joints, partial(_motor, two_mass)),
        ("6-joint arm, motor encoders alone", long, partial(_motor, arm)),
    )
    sections = {f"{section}, {count} runs": partial(make, section, count) for section, count, make in cases}
    yield from kept_figures("flexible", sections, folder)


def _cases(
    plant: Callable[[np.random.Generator], FlexibleDrives], count: int, link_counts: int = LINK_COUNTS
) -> Iterator[tuple[FlexibleDrives, Recording]]:
    for seed in range(count):
        rng = np.random.default_rng(seed)
        truth = plant(rng)
        yield truth, recorded(truth, _SECONDS, rng, link_counts=link_counts)


def _both(plant: Callable[[np.random.Generator], FlexibleDrives], section: str, count: int) -> Iterator[Figure]:
    pairs = [(truth, identify_flexible(truth.robot, run, tests=False)) for truth, run in _cases(plant, count)]
    found = _Errors.of(pairs)
    yield _largest(section, "stiffness", found.stiffness, _STIFFNESS)
    yield _largest(section, "damping", found.damping, _DAMPING)
    yield _largest(section, "motor inertia", found.inertia, _INERTIA)
    yield _bias(section, found.stiffness)
    yield _coverage(section, found)


def _coarse(section: str, count: int) -> Iterator[Figure]:
    """A link encoder whose steps are a third of the deflections."""
    pairs, plain = [], []
    for truth, run in _cases(two_mass, count, _COARSE):
        pairs.append((truth, identify_flexible(truth.robot, run, tests=False)))
        plain.append(100 * (_least_squares(pairs[-1][1], run) / truth.stiffness - 1))
    found = _Errors.of(pairs)
    yield _largest(section, "stiffness", found.stiffness, _STIFFNESS)
    yield _bias(section, found.stiffness)
    ours = f"{np.mean(plain):.2f} % on average"
    name = "stiffness by least squares on the equation of the motor"
    yield Figure(section, name, "too small: errors in variables", ours, 0.0, 0.0, _RECORD)


def _least_squares(estimate: FlexibleEstimate, recording: Recording) -> Array:
    """Stiffness with the measured deflection as a regressor."""
    from dynid.flexible.rows import FlexibleRows, two_sided
    from dynid.flexible.solve import motor_stiffness

    motions = tuple(two_sided(estimate.robot, run, estimate.joints, estimate.signals) for run in recording.runs)
    rows = FlexibleRows(estimate.model, motions, estimate.signals)
    parts = (*rows.torques, *rows.deflections(np.zeros(len(estimate.joints))))
    return np.array([motor_stiffness(rows, parts, k) for k in range(len(estimate.joints))])


def _motor(plant: Callable[[np.random.Generator], FlexibleDrives], section: str, count: int) -> Iterator[Figure]:
    identified = partial(identify_flexible, sides="motor")
    found = _Errors.of([(truth, identified(truth.robot, run)) for truth, run in _cases(plant, count)])
    yield _largest(section, "stiffness", found.stiffness, _MOTOR_SIDE)
    for name, errors in (("damping", found.damping), ("motor inertia", found.inertia)):
        yield Figure(section, name, "0 %", f"largest error {np.abs(errors).max():.1f} %", 0.0, 0.0, _RECORD)
    yield _coverage(section, found)


def _largest(section: str, name: str, errors: Array, aim: float) -> Figure:
    largest = float(np.abs(errors).max()) if np.all(np.isfinite(errors)) else np.inf
    ours = f"largest error {largest:.2f} %, root mean square {np.sqrt(np.mean(errors**2)):.2f} %"
    return Figure(section, f"{name}, {len(errors)} runs", f"within {aim:g} %", ours, largest, aim, _REASON)


def _bias(section: str, errors: Array) -> Figure:
    flat = errors.ravel()
    error = flat.std(ddof=1) / np.sqrt(len(flat))
    ours = f"{flat.mean():.3f} % with a standard error of {error:.3f} %"
    return Figure(section, "mean error of stiffness", "0 %", ours, 0.0, 0.0, _RECORD)


def _coverage(section: str, found: _Errors) -> Figure:
    share = 100 * found.inside.mean(axis=(0, 2))
    ours = ", ".join(f"{name} {x:.0f} %" for name, x in zip(("stiffness", "damping", "inertia"), share, strict=True))
    return Figure(section, "coverage of the 95 % intervals", "95 %", ours, 0.0, 0.0, _RECORD)
