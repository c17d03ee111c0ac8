"""Hobby servos on a known pendulum: friction models m1 to m6 on held-out runs, ours against published parameters."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.friction.fit import fit_friction
from dynid.friction.result import FrictionFit
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from studies.reproduce.servo_friction_fit import FEETECH, XL330, ServoFit, fit_kinds
from studies.reproduce.servo_friction_model import KINDS, ServoRun, load_runs, mean_error, packed, simulate_runs
from studies.reproduce.study import Figure, data_folder, finished_rows, kept_figures, rows_file

__all__ = ["figures", "pendulum_friction", "published_errors"]

Array = NDArray[np.float64]

_FOLDER = "servo-pendulum-bam"
_GAINS = (100.0, 200.0, 400.0, 800.0)
_HELD_OUT = 400.0
_FEETECH_KINDS = ("m1", "m2", "m3", "m4")
_SETS = {"2026-02": "xl330_2026-02_{}.json", "later": "xl330_head_{}.json"}
_RECORD = "for the record"
_PWM_COUNTS = 885
_MODELS = (
    "coulomb+viscous",
    "asymmetric",
    "stribeck",
    "quadratic",
    "load",
    "load-directional",
    "stribeck+load",
    "load+temperature",
)
# Below this velocity (rad/s) the sign of the velocity from a 12-bit encoder is uncertain.
_SLOWEST = 0.1
_FEETECH_RUNS = 4


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """One gain held out, friction models fitted to the voltage, and the second servo; `full`: every gain in turn."""
    if full:
        yield from _all_gains(rows_file("servo-friction", folder))
    sections: dict[str, Callable[[], Iterator[Figure]]] = {}
    if not full:
        sections["one gain held out"] = lambda: _held_out(_runs(), _HELD_OUT)
    sections["voltage"] = lambda: _regression_figures(fit_of_kind(_runs()))
    sections |= {f"Feetech, run {k}": partial(_feetech, k) for k in range(_FEETECH_RUNS)}
    yield from kept_figures("servo-friction", sections, folder)


def _all_gains(path: Path | None) -> Iterator[Figure]:
    """Every gain held out in turn."""
    runs = _runs()
    tasks = {f"gain {gain:g} held out": (gain,) for gain in _GAINS}
    rows = finished_rows("servo-friction", _gain, tasks, path, workers=1)
    for gain, row in zip(_GAINS, rows, strict=True):
        for kind in KINDS:
            there = _shown(published_errors(kind, [s for s in runs if s.kp == gain]))
            yield Figure(f"XL330, gain {gain:g} held out", kind, there, _rad(row[kind]), 0.0, 0.0, _RECORD)
    section = "XL330, mean over all gains held out in turn (rad)"
    for kind in KINDS:
        there = _shown(published_errors(kind, runs))
        mean = float(np.mean([row[kind] for row in rows]))
        yield Figure(section, kind, there, _rad(mean), 0.0, 0.0, _RECORD)


def _gain(gain: float) -> dict[str, float]:
    return dict(_errors(_runs(), gain))


def published_errors(kind: str, runs: Sequence[ServoRun], steps: int | None = None) -> dict[str, float]:
    """Mean absolute position error (rad) of the published parameter sets of a model on these runs."""
    out = {}
    for name, pattern in _SETS.items():
        file = data_folder() / _FOLDER / "published_params" / pattern.format(kind)
        if file.is_file():
            values = packed(json.loads(file.read_text(encoding="utf-8")))
            given = {} if steps is None else {"steps": steps}
            out[name] = float(mean_error(runs, simulate_runs(runs, values, XL330.drive, **given)).mean())
    return out


def fit_of_kind(runs: Sequence[ServoRun], kind: str = "m3") -> ServoFit:
    """A friction model fitted to all runs."""
    return fit_kinds(runs, XL330, ("m1", kind))[kind]


def pendulum_friction() -> FrictionFit:
    """Friction models fitted to the voltage of the XL330 together with the base parameters, in volts.

    The reported duty times the supply voltage is, up to the factor R / kt, the torque including back-EMF.
    """
    robot = Robot.from_dh(
        [
            {
                "alpha": "-pi/2",
                "inertia": {"mass": 0.49, "com": [0.1, 0, 0], "tensor": [1e-6, 0, 0, 1e-6, 0, 1e-6]},
                "drive": {"Ia": 0.002, "fv": 0.0, "fc": 0.0, "off": 0.0},
            }
        ],
        "modified",
        name="pendulum",
    )
    runs, warmth = [], []
    for file in sorted((data_folder() / _FOLDER / "xl330_raw").glob("*.json.gz")):
        with gzip.open(file) as stream:
            data = json.load(stream)
        if data["trajectory"] == "lift_and_drop":  # the motor is switched off in the middle
            continue
        t, q, pwm, temperature = (
            np.array([float(e[key]) for e in data["entries"]]) for key in ("timestamp", "position", "load", "temp")
        )
        pwm = np.where(pwm > 2**15 - 1, pwm - 2**16, pwm)
        volts = data["vin"] * pwm / _PWM_COUNTS
        # The robot's zero is along its x axis, the pendulum's zero is hanging down.
        runs.append(Run(t, (q + np.pi / 2)[:, None], torque=volts[:, None], name=file.name))
        warmth.append(temperature)
    recording = Recording(robot.coordinates, tuple(runs))
    signals = Signals(min_velocity=_SLOWEST)
    return fit_friction(robot, recording, models=_MODELS, temperature=warmth, signals=signals)


def _runs() -> list[ServoRun]:
    return load_runs(data_folder() / _FOLDER / "xl330_raw")


def _errors(runs: Sequence[ServoRun], gain: float) -> Iterator[tuple[str, float]]:
    """Every model fitted to the runs of other gains, and its error on those of this gain."""
    test = [s for s in runs if s.kp == gain]
    fits = fit_kinds([s for s in runs if s.kp != gain], XL330, tuple(KINDS))
    for kind, fit in fits.items():
        yield kind, float(fit.errors(test, XL330.drive).mean())


def _held_out(runs: Sequence[ServoRun], gain: float) -> Iterator[Figure]:
    section = f"XL330, four runs of gain {gain:g} held out: mean absolute position error (rad)"
    test = [s for s in runs if s.kp == gain]
    errors: dict[str, float] = {}
    for kind, error in _errors(runs, gain):
        errors[kind] = error
        there = published_errors(kind, test)
        if there:
            best = min(there.values())
            reason = "not worse than the best published set of this model, which may have been fitted to these runs"
            yield Figure(section, kind, _shown(there), _rad(error), max(error - best, 0.0), 0.0, reason)
        else:
            yield Figure(section, kind, "-", _rad(error), 0.0, 0.0, _RECORD)
    order = sorted(errors, key=lambda k: errors[k])
    yield Figure(section, "models, the best first", "m6 best (2025)", ", ".join(order), 0.0, 0.0, _RECORD)
    coarse = published_errors("m6", test, steps=1)
    name = "published m6, voltage held for 5 ms as in its own simulator"
    yield Figure(section, name, _shown(published_errors("m6", test)), _shown(coarse), 0.0, 0.0, _RECORD)


def _regression_figures(simulated: ServoFit) -> Iterator[Figure]:
    section = "XL330, friction models in the voltage of 12 runs (F tests)"
    fit = pendulum_friction()
    for model in fit.ranking:
        shown = f"{model.rms:.3f} V, BIC {model.bic:.1f}"
        against = f"p {model.p_value:.2g} against {model.against}" if model.against else "-"
        yield Figure(section, model.name, against, shown, 0.0, 0.0, _RECORD)
    grows = float("load" not in fit.best.name)
    reason = "friction increases with load, as the output errors show too"
    yield Figure(section, "selected model", "one with load", fit.best.name, grows, 0.0, reason)
    # While the joint moves slowly the motor balances gravity: |gravity - motor| is twice the load.
    twice = 2.0 * simulated.values["load_friction_base"]
    found, sigma = fit["load"].parameters["fl"], fit["load"].std["fl"]
    away = abs(found - twice) / sigma
    shown = f"{found:.3f} +- {sigma:.3f}"
    reason = "three standard deviations; two methods for the same coefficient"
    yield Figure(section, "friction per load", f"{twice:.3f} by output error", shown, away, 3.0, reason)


def _feetech(k: int) -> Iterator[Figure]:
    """Errors on one run of the second servo, fitted to the others."""
    runs = load_runs(data_folder() / _FOLDER / "feetech_raw")
    section = "Feetech STS3250, each of four runs held out: mean absolute position error (rad)"
    others, run = runs[:k] + runs[k + 1 :], runs[k]
    fits = fit_kinds(others, FEETECH, _FEETECH_KINDS, random_starts=0)
    seen = [f"{f.errors(others, FEETECH.drive).mean():.4f}" for f in fits.values()]
    held = [f"{f.errors([run], FEETECH.drive)[0]:.4f}" for f in fits.values()]
    words = f"{run.trajectory}: {', '.join(_FEETECH_KINDS)}"
    yield Figure(section, words, f"on the other three {', '.join(seen)}", ", ".join(held), 0.0, 0.0, _RECORD)


def _shown(errors: dict[str, float]) -> str:
    return ", ".join(f"{name} {x:.4f}" for name, x in errors.items()) or "-"


def _rad(error: float) -> str:
    return f"{error:.4f}"
