"""Simulated legs and a servo arm with known actuators, integrated by MuJoCo, identified from their encoders."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dynid
from dynid.actuators import (
    ActuatorCauseCode,
    ActuatorEstimate,
    actuator_causes,
    assess_actuators,
    identify_actuators,
    position_errors,
)
from dynid.robot import ActuatorLaw
from studies.reproduce.actuator_faults import ActuatorFault, faulty_actuators
from studies.reproduce.actuator_plants import CONTROL, chirps, given_robot, legs, logged, servo_arm, soft_plant, truth
from studies.reproduce.study import Figure, finished_rows, rows_file

__all__ = ["figures"]

Array = NDArray[np.float64]

_FEW, _MANY = range(2), range(20)
# Soft plants: those by which the settings were chosen, and those that were held back until they stood.
_SOFT_FEW, _SOFT_MANY = {"held back": range(48, 51)}, {"chosen by": range(24), "held back": range(48, 72)}
# Share of the true values that intervals of 95 % must cover, and the error that half of the armatures keep below.
_COVERED, _ARMATURE = 0.9, 0.01
# Actuators with a fault that nobody told: seeds by which limits were chosen, and those that were held back.
_FAULTY_FEW, _FAULTY_MANY = {"held back": range(5, 6)}, {"chosen by": range(4), "held back": range(4, 8)}
# Codes that are right for a fault; those of the last three are not among the effects of the law, or there is none.
_RIGHT = {
    ActuatorFault.BACKLASH: ActuatorCauseCode.BACKLASH,
    ActuatorFault.LOAD_FRICTION: ActuatorCauseCode.LOAD_FRICTION,
    ActuatorFault.SATURATION: ActuatorCauseCode.SATURATION,
    ActuatorFault.MOTOR_LINE: ActuatorCauseCode.MOTOR_LINE,
    ActuatorFault.STRIBECK: ActuatorCauseCode.STRIBECK,
    ActuatorFault.DELAY: ActuatorCauseCode.DELAY,
    ActuatorFault.FEEDBACK_DELAY: ActuatorCauseCode.FEEDBACK_DELAY,
    ActuatorFault.VELOCITY_TARGET: ActuatorCauseCode.VELOCITY_TARGET,
    ActuatorFault.ENCODER_OFFSET: ActuatorCauseCode.ENCODER_OFFSET,
    ActuatorFault.GAIN: ActuatorCauseCode.GAIN,
    ActuatorFault.RIPPLE: ActuatorCauseCode.UNKNOWN,
    ActuatorFault.SPRING: ActuatorCauseCode.UNKNOWN,
    ActuatorFault.NONE: None,
}
# Cases per half that no log shows, although they change an armature or friction by half.
_HIDDEN = {ActuatorFault.FEEDBACK_DELAY: 1}
_DELAY = 5e-4  # s, the accuracy that is asked for
_WITHIN = 0.95  # of the values within three standard deviations; nominal 0.997
_REASON = "nominal 0.997"


@dataclass(frozen=True, eq=False)
class _Case:
    """An estimate and the true values of its unknowns; the delay is one of them."""

    found: ActuatorEstimate
    true: Array
    delay: int

    def to_row(self) -> dict[str, Any]:
        """Errors over their standard deviations, the error of the delay, and whether the fit stalled."""
        z = (self.found.values - self.true) / self.found.std
        away = abs(self.found.values[self.delay] - self.true[self.delay])
        return {"z": z.tolist(), "away": float(away), "stalled": not self.found.converged}


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """Two seeds of each robot, or twenty, and some soft plants, or all."""
    path = rows_file("actuators", folder)
    yield from _figures(_MANY if full else _FEW, path)
    yield from _soft_figures(_SOFT_MANY if full else _SOFT_FEW, path)
    yield from _fault_figures(_FAULTY_MANY if full else _FAULTY_FEW, path)


def _figures(seeds: range, path: Path | None) -> Iterator[Figure]:
    kinds = {
        "legs, PD law known": _legs,
        "legs, DC motors at their limit": _motors,
        "arm of six servos, gains unknown": _servos,
    }
    for kind, make in kinds.items():
        rows = finished_rows(kind, _row, {f"{kind}, seed {seed}": (make, seed) for seed in seeds}, path, workers=1)
        z = np.concatenate([row["z"] for row in rows])
        away = max(row["away"] for row in rows)
        stalled = sum(row["stalled"] for row in rows)
        share = float(np.mean(np.abs(z) < 3.0))
        narrow = float(np.mean(np.abs(z) < 1.96))
        yield Figure(kind, "within 1.96 std", "0.95", f"{narrow:.3f}", abs(narrow - 0.95), np.inf, "for the record")
        yield Figure(
            kind, "within 3 std", f">= {_WITHIN:g}", f"{share:.3f} of {len(z)}", max(0.0, _WITHIN - share), 0.0, _REASON
        )
        shown = f"{1e3 * away:.3f} ms"
        yield Figure(kind, "largest error of the delay", f"<= {1e3 * _DELAY:g} ms", shown, away, _DELAY, "asked for")
        yield Figure(kind, "fits that stall", "0", str(stalled), stalled, 0.0, "none may")


def _row(make: Callable[[int], _Case], seed: int) -> dict[str, Any]:
    return make(seed).to_row()


def _soft_figures(halves: dict[str, range], path: Path | None) -> Iterator[Figure]:
    """Coverage and errors on plants with MuJoCo's own soft friction."""
    for half, seeds in halves.items():
        kind = f"soft friction of MuJoCo, {half}"
        rows = finished_rows(kind, _soft_row, {f"soft friction, seed {k}": (k,) for k in seeds}, path, workers=1)
        all_z, away = (np.concatenate([row[key] for row in rows]) for key in ("z", "errors"))
        covered = float(np.mean(np.abs(all_z) < 1.96))
        short = max(0.0, _COVERED - covered)
        shown = f"{covered:.3f} of {len(all_z)}"
        yield Figure(kind, "armature, damping, friction within 1.96 std", ">= 0.9", shown, short, 0.0, "nominal 0.95")
        least, most = f"{100 * np.median(away):.2f} %", f"{100 * away.max():.2f} %"
        high = max(0.0, float(np.median(away)) - _ARMATURE)
        shown = f"{least}, largest {most}"
        yield Figure(kind, "median error of the armatures", "<= 1 %", shown, high, 0.0, "asked for")


def _soft_row(seed: int) -> dict[str, Any]:
    """Errors over their standard deviations of a soft plant, and relative errors of its armatures."""
    plant = soft_plant(seed)
    n, found = plant.law.n, identify_actuators(plant.robot, plant.log, plant.law)
    z = ((found.values - plant.true) / found.std)[: 3 * n]
    return {"z": z.tolist(), "errors": np.abs(found.values[:n] / plant.true[:n] - 1.0).tolist()}


def _fault_figures(halves: dict[str, range], path: Path | None) -> Iterator[Figure]:
    """Causes that are named for actuators with a fault, and verdicts without and with the search for causes."""
    for half, seeds in halves.items():
        section = f"causes, {half}"
        for fault in ActuatorFault:
            tasks = {f"{fault}, seed {seed}": (fault, seed) for seed in seeds}
            rows = finished_rows(section, _fault_row, tasks, path, workers=1)
            right = sum(row["right"] for row in rows)
            before, after = (sum(row[key] == "trusted" for row in rows) for key in ("before", "after"))
            shown = (
                f"{right} of {len(rows)}; trusted {before} before, {after} after; {', '.join(_sized(x) for x in rows)}"
            )
            good = fault is ActuatorFault.NONE
            wrong = (
                float(len(rows) - right) if good else float(sum(x["after"] == "trusted" and x["harmed"] for x in rows))
            )
            name, asked = (
                ("none: no cause is named", "all")
                if good
                else (f"{fault}: named", "none trusted whose values are off by half")
            )
            hidden = _HIDDEN.get(fault, 0)
            reason = "armature imitates a short one without an error" if hidden else "asked for"
            yield Figure(section, name, asked, shown, wrong, hidden, reason)


def _sized(row: dict[str, Any]) -> str:
    """Size of the fault of a case, and what was said if that is not right."""
    return f"{row['size']}{'' if row['right'] else ' (' + row['said'] + ')'}"


def _fault_row(fault: ActuatorFault, seed: int) -> dict[str, Any]:
    """What is said of one case, and the verdicts without and with the search for causes.

    It is harmed where an armature or friction is off by a factor of 1.5.
    """
    case = faulty_actuators(fault, seed)
    found = identify_actuators(case.robot, case.fitted, case.law, unknown=case.unknown)
    after = position_errors(found.robot, found.law, case.unseen, fitted=found.fingerprint)
    prior = position_errors(case.robot, case.law, case.unseen)
    causes = actuator_causes(found, case.fitted, case.unseen)
    told = {causes.code, *(x.code for x in causes.causes)}
    without = [x.result for x in assess_actuators(found, after, prior).checks if x.code != "residual"]
    n = case.law.n
    ratio = np.maximum(found.values[[*range(n), *range(2 * n, 3 * n)]], 1e-6) / case.true[:, [0, 2]].T.ravel()
    return {
        "right": _RIGHT[fault] in told,
        "said": str(causes.code or "nothing"),
        "size": case.size,
        "harmed": bool(np.exp(np.abs(np.log(ratio))).max() > 1.5),
        "before": "trusted" if not {"failed", "warned"}.intersection(without) else "less",
        "after": assess_actuators(found.with_causes(causes), after, prior).verdict,
    }


def _robot() -> dynid.Robot:
    with tempfile.TemporaryDirectory() as folder:
        return given_robot(str(Path(folder) / "legs.xml"))


def _delay(seed: int) -> float:
    """Whole control periods up to 15 ms."""
    return float(np.random.default_rng(1000 + seed).integers(0, 16)) / CONTROL


def _legs(seed: int) -> _Case:
    robot, delay = _robot(), _delay(seed)
    law = ActuatorLaw(robot.coordinates, kp=20.0, kd=1.5, rate=CONTROL)
    log = logged(legs(truth(seed)), law.changed(delay=delay), chirps(10.0, seed), ratio=100)
    return _Case(identify_actuators(robot, log, law), np.append(truth(seed).T.ravel(), delay), 18)


def _motors(seed: int) -> _Case:
    robot, delay = _robot(), _delay(seed)
    law = ActuatorLaw(robot.coordinates, kp=40.0, kd=1.0, rate=CONTROL, no_load_velocity=12.0)
    stall = np.random.default_rng(2000 + seed).uniform(4.0, 7.0, 6)
    plant = law.changed(delay=delay, stall_torque=stall)
    log = logged(legs(truth(seed)), plant, chirps(8.0, seed, amplitude=0.8), ratio=100)
    unknown = ("armature", "damping", "friction", "delay", "stall_torque")
    found = identify_actuators(robot, log, law, unknown=unknown)
    return _Case(found, np.concatenate([truth(seed).T.ravel(), [delay], stall]), 18)


def _servos(seed: int) -> _Case:
    robot, log, law, true = servo_arm(seed, _delay(seed))
    unknown = ("armature", "damping", "friction", "delay", "gain")
    found = identify_actuators(robot, log, law, unknown=unknown)
    return _Case(found, true, 18)
