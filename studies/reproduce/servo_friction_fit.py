"""Servo models fitted by output error: simulated against measured positions, from several starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import NDArray

from studies.reproduce.servo_friction_model import KINDS, Drive, ServoRun, mean_error, packed, simulate_runs

__all__ = ["FEETECH", "XL330", "Bench", "ServoFit", "fit_kinds", "refitted"]

Array = NDArray[np.float64]

# Steps per period and stride of the samples during the search; errors are reported with the finer simulation.
_STEPS, _EVERY = 2, 4
# Scale (rad) of the robust loss: larger errors count linearly, as in the mean absolute error.
_SCALE = 0.02
_RANDOM_STARTS = 2
_SCATTER = 0.5
_MAX_EVALUATIONS = 60

# Models whose fits serve as starting values of a model, besides its own first guess.
_FROM = {
    "m1": (),
    "m2": ("m1",),
    "m3": ("m1",),
    "m4": ("m2", "m3"),
    "m5": ("m4",),
    "m6": ("m5",),
    "m1 warm": ("m1",),
    "m3 warm": ("m3",),
    "m6 warm": ("m6", "m3 warm"),
}


@dataclass(frozen=True)
class Bench:
    """Control law of a servo's firmware, and first guess, size and bounds of each of its parameters."""

    drive: Drive
    start: Mapping[str, float]
    bounds: Mapping[str, tuple[float, float]]
    free: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class ServoFit:
    """Parameters of a friction model by name, and their robust cost."""

    kind: str
    values: dict[str, float]
    cost: float

    def errors(self, runs: Sequence[ServoRun], drive: Drive) -> Array:
        """Mean absolute position error of every run (rad)."""
        return mean_error(runs, simulate_runs(runs, packed(self.values), drive))


_LOADS = {
    "load_friction_base": 0.1,
    "load_friction_stribeck": 0.05,
    "load_friction_motor": 0.1,
    "load_friction_external": 0.1,
    "load_friction_motor_stribeck": 0.05,
    "load_friction_external_stribeck": 0.05,
    "load_friction_motor_quad": 0.05,
    "load_friction_external_quad": 0.05,
}
_SHARED_START = {"q_offset": 0.0, "dtheta_stribeck": 1.0, "alpha": 1.5, "gain": 1.0, "warming": 0.01, "thinning": 0.01}
_SHARED_BOUNDS = {
    "q_offset": (-0.1, 0.1),
    "dtheta_stribeck": (0.05, 10.0),
    "alpha": (0.3, 10.0),
    "gain": (0.05, 10.0),
    "warming": (-0.02, 0.15),
    "thinning": (-0.1, 0.1),
    **{name: (0.0, 2.0 if name.endswith("quad") else 1.0) for name in _LOADS},
}
# Values from data sheets of such servos: stall torque, no-load velocity, and a few percent of friction.
XL330 = Bench(
    # P gain in 1/256 duty counts per position count; 4096 position counts per revolution, 885 duty counts full scale.
    Drive(4096 / (2 * np.pi) / (256 * 885), 1.0),
    _SHARED_START
    | _LOADS
    | {
        "kt": 0.4,
        "R": 4.0,
        "armature": 0.002,
        "friction_base": 0.01,
        "friction_viscous": 0.005,
        "friction_stribeck": 0.005,
    },
    _SHARED_BOUNDS
    | {
        "kt": (0.05, 3.0),
        "R": (0.3, 20.0),
        "armature": (1e-5, 0.05),
        **dict.fromkeys(("friction_base", "friction_viscous", "friction_stribeck"), (0.0, 0.2)),
    },
)
# The gain of this firmware is unknown: it is estimated, starting from that of a smaller servo of the series.
FEETECH = Bench(
    Drive(0.166, 0.97),
    _SHARED_START
    | _LOADS
    | {
        "kt": 1.0,
        "R": 2.0,
        "armature": 0.01,
        "friction_base": 0.1,
        "friction_viscous": 0.05,
        "friction_stribeck": 0.05,
    },
    _SHARED_BOUNDS
    | {
        "kt": (0.1, 5.0),
        "R": (0.1, 40.0),
        "armature": (1e-4, 0.2),
        **dict.fromkeys(("friction_base", "friction_viscous", "friction_stribeck"), (0.0, 2.0)),
    },
    free=("gain",),
)


def fit_kinds(
    runs: Sequence[ServoRun], bench: Bench, kinds: Sequence[str], seed: int = 0, random_starts: int = _RANDOM_STARTS
) -> dict[str, ServoFit]:
    """Fit every friction model to runs, each from a first guess, from simpler models and from random starts."""
    rng = np.random.default_rng(seed)
    found: dict[str, ServoFit] = {}
    for kind in kinds:
        names = (*KINDS[kind], *bench.free)
        starts = [_widened(found[k].values) for k in _FROM[kind] if k in found]
        best = starts[-1] if starts else {}
        for _ in range(random_starts):
            factor = np.exp(_SCATTER * rng.normal(size=len(names)))
            starts.append({n: best.get(n, bench.start[n]) * f for n, f in zip(names, factor, strict=True)})
        fits = [_fit(runs, bench, kind, names, start) for start in ({}, *starts)]
        found[kind] = min(fits, key=lambda f: f.cost)
    return found


def refitted(runs: Sequence[ServoRun], bench: Bench, fit: ServoFit) -> ServoFit:
    """The same model fitted to other runs, started from a fit."""
    return _fit(runs, bench, fit.kind, (*KINDS[fit.kind], *bench.free), fit.values)


def _fit(
    runs: Sequence[ServoRun], bench: Bench, kind: str, names: tuple[str, ...], start: Mapping[str, float]
) -> ServoFit:
    size = np.array([bench.start[n] or _SCALE for n in names])
    low, high = (np.array([bench.bounds[n][k] for n in names]) / size for k in (0, 1))
    margin = 1e-6 * (high - low)
    x0 = np.clip(np.array([start.get(n, bench.start[n]) for n in names]) / size, low + margin, high - margin)

    def error(x: Array) -> Array:
        values = packed(dict(zip(names, x * size, strict=True)))
        positions = simulate_runs(runs, values, bench.drive, _STEPS)
        return np.concatenate([(q - run.q)[::_EVERY] for q, run in zip(positions, runs, strict=True)])

    # Sticking makes the error nonsmooth; a long difference step averages over the kinks.
    found = scipy.optimize.least_squares(
        error, x0, bounds=(low, high), loss="soft_l1", f_scale=_SCALE, diff_step=1e-3, max_nfev=_MAX_EVALUATIONS
    )
    return ServoFit(kind, dict(zip(names, map(float, found.x * size), strict=True)), float(found.cost))


def _widened(values: Mapping[str, float]) -> dict[str, float]:
    """Values of a model in the parameters of a larger one: a load coefficient becomes one per direction."""
    out = dict(values)
    for tail, both in (("base", ""), ("stribeck", "_stribeck")):
        if f"load_friction_{tail}" in values:
            for side in ("motor", "external"):
                out[f"load_friction_{side}{both}"] = values[f"load_friction_{tail}"]
    return out
