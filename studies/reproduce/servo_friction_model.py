"""A position-controlled servo with a known pendulum: motor, friction models m1 to m6, and simulation.

The equations are those of Duclusaud, Passault, Padois and Ly (2025): a voltage-driven motor with a proportional
controller, and a friction torque with an upper bound that depends on load and velocity; beyond it the joint slips.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, sin
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.kernels.compiler import kernel, step
from dynid.errors import DataError

__all__ = ["KINDS", "NAMES", "Drive", "ServoRun", "load_runs", "mean_error", "packed", "simulate_runs"]

Array = NDArray[np.float64]

_GRAVITY = 9.80665
# Runs are resampled to this period (s), as in the published fits, and simulated with this many steps per period.
_CLOCK, _STEPS = 0.005, 5

NAMES = (
    *("kt", "R", "armature", "q_offset", "gain", "friction_base", "friction_viscous"),
    *("friction_stribeck", "dtheta_stribeck", "alpha", "load_friction_motor", "load_friction_external"),
    *("load_friction_motor_stribeck", "load_friction_external_stribeck"),
    *("load_friction_motor_quad", "load_friction_external_quad", "warming", "thinning"),
)
_WARM = ("warming", "thinning")
# Casing temperature (deg C) at which resistance and friction have their nominal values.
_TEMPERATURE = 30.0
_MOTOR = ("kt", "R", "armature", "q_offset", "friction_base", "friction_viscous")
_STRIBECK = ("friction_stribeck", "dtheta_stribeck", "alpha")
_DIRECTIONAL = ("load_friction_motor", "load_friction_external")
_DIRECTIONAL_STRIBECK = ("load_friction_motor_stribeck", "load_friction_external_stribeck")
_QUADRATIC = ("load_friction_motor_quad", "load_friction_external_quad")

# The free parameters of each model; "load_friction_base" and "load_friction_stribeck" apply to both directions.
KINDS = {
    "m1": _MOTOR,
    "m2": _MOTOR + _STRIBECK,
    "m3": (*_MOTOR, "load_friction_base"),
    "m4": (*_MOTOR, *_STRIBECK, "load_friction_base", "load_friction_stribeck"),
    "m5": _MOTOR + _STRIBECK + _DIRECTIONAL + _DIRECTIONAL_STRIBECK,
    "m6": _MOTOR + _STRIBECK + _DIRECTIONAL + _DIRECTIONAL_STRIBECK + _QUADRATIC,
    # Our extension: per degree of the casing, resistance increases by `warming` and friction decreases by `thinning`.
    "m1 warm": _MOTOR + _WARM,
    "m3 warm": (*_MOTOR, "load_friction_base", *_WARM),
    "m6 warm": _MOTOR + _STRIBECK + _DIRECTIONAL + _DIRECTIONAL_STRIBECK + _QUADRATIC + _WARM,
}


class ServoRun(NamedTuple):
    """One run, evenly sampled: goal, measured position and velocity, whether the motor is on, each (N,)."""

    name: str
    trajectory: str
    kp: float
    volts: float
    mass: float
    length: float
    temperature: float
    goal: Array
    q: Array
    v: Array
    on: NDArray[np.bool_]


def load_runs(folder: Path, clock: float = _CLOCK) -> list[ServoRun]:
    """The runs in a folder of recordings, in the order of recording."""
    files = sorted(folder.glob("*.json.gz"))
    if not files:
        raise DataError(f"no recording of a servo in '{folder}'")
    return [_load(file, clock) for file in files]


def _load(file: Path, clock: float) -> ServoRun:
    with gzip.open(file) as stream:
        data = json.load(stream)
    entries = data["entries"]
    when = np.array([e["timestamp"] for e in entries])
    t = np.arange(when[0], when[-1], clock)
    goal, q, v, on = (
        np.interp(t, when, np.array([float(e[key]) for e in entries]))
        for key in ("goal_position", "position", "speed", "torque_enable")
    )
    name = file.name.removesuffix(".json.gz")
    kp, volts, mass, length = (float(data[key]) for key in ("kp", "vin", "mass", "length"))
    warmth = float(np.mean([e["temp"] for e in entries]))
    return ServoRun(name, data["trajectory"], kp, volts, mass, length, warmth, goal, q, v, on > 0.5)


def packed(values: Mapping[str, float]) -> Array:
    """The parameter vector of the kernels from values by name; others have no effect."""
    full = dict.fromkeys(NAMES, 0.0) | {"dtheta_stribeck": 1.0, "alpha": 1.0, "gain": 1.0}
    for name, value in values.items():
        if name == "load_friction_base":
            full["load_friction_motor"] = full["load_friction_external"] = float(value)
        elif name == "load_friction_stribeck":
            full["load_friction_motor_stribeck"] = full["load_friction_external_stribeck"] = float(value)
        elif name in full:
            full[name] = float(value)
    return np.array([full[name] for name in NAMES])


@dataclass(frozen=True)
class Drive:
    """Control law of the firmware: duty = gain kp (goal - q), between -limit and limit."""

    gain: float
    limit: float


def simulate_runs(
    runs: Sequence[ServoRun], values: Array, drive: Drive, steps: int = _STEPS, clock: float = _CLOCK
) -> list[Array]:
    """Positions (N,) of every run, simulated from its first sample along its goals.

    One step per period is the published scheme, which holds the voltage over the period.
    """
    out = []
    for run in runs:
        q = np.empty(len(run.goal))
        inertia = run.mass * run.length**2 + values[2]
        weight = run.mass * _GRAVITY * run.length
        p = _at_temperature(values, run.temperature)
        stiffness = drive.gain * run.kp
        motion = (run.goal, run.on, run.q[0], run.v[0], clock, steps)
        _simulate(p, stiffness, drive.limit, run.volts, inertia, weight, *motion, q)
        out.append(q)
    return out


def _at_temperature(values: Array, temperature: float) -> Array:
    """The parameters at this temperature."""
    if not values[-2:].any():
        return values
    out = values.copy()
    warmth = temperature - _TEMPERATURE
    out[1] *= 1.0 + values[-2] * warmth
    out[[5, 6, 7, 10, 11, 12, 13]] *= np.exp(-values[-1] * warmth)
    return out


def mean_error(runs: Sequence[ServoRun], positions: Sequence[Array]) -> Array:
    """Mean absolute position error (run,) in rad."""
    return np.array([np.mean(np.abs(q - run.q)) for run, q in zip(runs, positions, strict=True)])


@step
def _budget(p, motor, load, v):  # type: ignore[no-untyped-def]
    """Largest friction torque without its viscous part, for motor and load torques on the joint."""
    out = p[5] + abs(load * p[11] - motor * p[10])
    if p[7] == 0.0 and p[12] == 0.0 and p[13] == 0.0 and p[14] == 0.0 and p[15] == 0.0:
        return out
    stribeck = exp(-((abs(v) / p[8]) ** p[9]))
    out += stribeck * (p[7] + abs(load * p[13] - motor * p[12]))
    if load * motor < 0.0 and abs(load) < abs(motor):
        out += stribeck * p[15] * load * load
    elif load * motor < 0.0 and abs(load) > abs(motor):
        out += stribeck * p[14] * motor * motor
    return out


@kernel
def _simulate(p, stiffness, limit, volts, inertia, weight, goal, on, q0, v0, clock, steps, out):  # type: ignore[no-untyped-def]
    q, v = q0, v0
    h = clock / steps
    for k in range(goal.shape[0]):
        out[k] = q
        for _ in range(steps):
            motor = 0.0
            if on[k]:
                duty = min(max(p[4] * stiffness * (goal[k] - q), -limit), limit)
                motor = p[0] * (duty * volts - p[0] * v) / p[1]
            load = -weight * sin(q + p[3])
            most = _budget(p, motor, load, v) + p[6] * abs(v)
            # Friction stops the joint within the step if its bound allows, and then holds it.
            stop = inertia / h * v + motor + load
            friction = min(max(stop, -most), most)
            a = (motor + load - friction) / inertia
            v = min(max(v + a * h, -100.0), 100.0)
            q += v * h
            if steps == 1:
                q += 0.5 * a * h * h
