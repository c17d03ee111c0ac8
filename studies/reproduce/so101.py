"""The SO-101 hobby arm: signs, servo and backlash from commanded and measured positions at 50 Hz.

Fitted to a multisine, a chirp and a binary sequence; simulated on steps and velocity ramps that are not fitted. The
five servos are alike, so they share stiffness, armature and delay; damping and friction are per joint.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.identify import identify_actuators
from dynid.actuators.signs import JointSigns, check_signs
from dynid.actuators.validation import position_errors
from dynid.recording.recording import Recording
from dynid.robot.actuator_law import ActuatorLaw
from studies.reproduce.so101_backlash import HALF_A_DEGREE, dead_zones, free_play
from studies.reproduce.so101_data import (
    HELD_OUT,
    JOINTS,
    STEP,
    file_law,
    fitted_recording,
    so101_recording,
    so101_robot,
)
from studies.reproduce.study import Figure, kept_figures

__all__ = ["CANDIDATES", "CHOSEN", "figures", "fitted_to", "identified", "joint_signs"]

Array = NDArray[np.float64]

_RECORD = "for the record"
_PLAIN = {"kp": "shared", "armature": "shared", "damping": "joint", "friction": "joint", "delay": "shared"}
# Unknowns that are compared by fitting two runs and simulating the third.
CANDIDATES: Mapping[str, Mapping[str, str]] = {
    "friction and delay": _PLAIN,
    "and a torque limit": _PLAIN | {"torque_limit": "shared"},
    "and friction by load": _PLAIN | {"load_friction": "shared"},
}
# The fitted runs do not show a torque limit, and do not tell friction by load from the stiffness (correlation 0.99).
CHOSEN = "friction and delay"


def figures(full: bool = False, folder: Path | None = None) -> Iterator[Figure]:
    """Signs, identified servo, errors on held-out motion, and backlash.

    `full`: also other choices of the unknowns by cross-validation over the fitted runs.
    """
    sections: dict[str, Callable[[], Iterator[Figure]]] = {
        "signs": lambda: _sign_figures(joint_signs()),
        "values": lambda: _value_figures(identified()),
        "held out": lambda: _held_out_figures(identified()),
        "backlash": lambda: _backlash_figures(identified()),
    }
    if full:
        sections |= {f"unknowns {name}": partial(_candidate, name) for name in CANDIDATES}
    yield from kept_figures("so101", sections, folder)


def _candidate(name: str) -> Iterator[Figure]:
    """Errors of each fitted run with some unknowns, which the other two runs show."""
    section = "Mean position error (mrad) of each fitted run, simulated with what the other two show"
    runs, errors = fitted_recording().runs, []
    for k, run in enumerate(runs):
        found = fitted_to(Recording(JOINTS, runs[:k] + runs[k + 1 :]), CANDIDATES[name])
        errors.append(position_errors(found.robot, found.law, Recording(JOINTS, (run,)), step=STEP).rms)
        yield Figure(section, f"{name}: {run.name}", "", f"{1e3 * errors[-1].mean():.2f}", 0.0, 0.0, _RECORD)
    mark = f"{name}{' (chosen)' if name == CHOSEN else ''}: mean"
    yield Figure(section, mark, "", f"{1e3 * np.mean(errors):.2f}", 0.0, 0.0, _RECORD)


@cache
def joint_signs() -> JointSigns:
    """Signs and zeros from the motion that holds postures and the one that is slow."""
    return check_signs(so101_robot(), file_law(), so101_recording(("hold_under_gravity", "friction_gravity")))


@cache
def identified() -> ActuatorEstimate:
    """The servo, identified from the fitted runs."""
    return fitted_to(fitted_recording(), CANDIDATES[CHOSEN])


def fitted_to(recording: Recording, unknown: Mapping[str, str]) -> ActuatorEstimate:
    """Unknowns from a recording. The stiffness starts from the weight of the arm, the limit from the model file."""
    limit = file_law().torque_limit if "torque_limit" in unknown else np.inf
    law = ActuatorLaw(JOINTS, kp=joint_signs().gain * file_law().kp, torque_limit=limit)
    return identify_actuators(so101_robot(), recording, law, unknown=unknown, step=STEP)


def _sign_figures(found: JointSigns) -> Iterator[Figure]:
    section = "Signs and zeros of the logged joints against the model, from the load of gravity"
    for i, joint in enumerate(found.joints):
        zero, std = found.zeros[i], found.zeros_std[i]
        shown = f"zero {zero:+.2f} +- {std:.2f} rad" if np.isfinite(std) else "zero not shown"
        ours = f"{found.results[i]} (log-likelihood {found.evidence[i]:.0f}), {shown}"
        reversed_ = float(found.signs[i] < 0)
        yield Figure(section, joint, "not verified", ours, reversed_, 0.0, "no sign of the log is reversed")
    kp, std = found.gain * file_law().kp[0], found.gain_std * file_law().kp[0]
    yield Figure(section, "stiffness (N m/rad)", "998", f"{kp:.1f} +- {std:.1f}", 0.0, 0.0, _RECORD)


def _value_figures(found: ActuatorEstimate) -> Iterator[Figure]:
    section = "Identified servo against the class sts3215 of the model file"
    file = {"kp": 998.22, "armature": 0.028, "damping": 0.60, "friction": 0.052, "delay": 0.0, "torque_limit": 2.94}
    for x, value, std in zip(found.unknowns, found.values, found.std, strict=True):
        spread = f"+- {std:.2g}" if np.isfinite(std) else "(not shown)"
        name = f"{x.label} ({x.unit})" if x.unit else x.label
        yield Figure(section, name, f"{file.get(str(x.quantity), 0.0):g}", f"{value:.4g} {spread}", 0.0, 0.0, _RECORD)
    yield Figure(section, "computing time (s)", "", f"{found.seconds:.0f}", 0.0, 0.0, _RECORD)


def _held_out_figures(found: ActuatorEstimate) -> Iterator[Figure]:
    """Errors of the model file's class and ours; ours must be lower on every joint."""
    for motion in HELD_OUT:
        recording = so101_recording((motion,))
        section = f"Position error (mrad, root mean square) of the simulated {motion}, which is not fitted"
        prior = position_errors(so101_robot(), file_law(), recording, step=STEP)
        ours = position_errors(found.robot, found.law, recording, step=STEP)
        for joint, a, b in zip(JOINTS, prior.rms, ours.rms, strict=True):
            reason = "ours over the model file's"
            yield Figure(section, joint, f"{1e3 * a:.2f}", f"{1e3 * b:.2f}", float(b / a), 1.0, reason)


def _backlash_figures(found: ActuatorEstimate) -> Iterator[Figure]:
    section = "Backlash (degrees), which the model file says to be about half a degree"
    for joint, play in free_play(found).items():
        shown = f"at least {np.degrees(play.width):.2f}, with {play.torque:.3f} N m against {play.friction:.2f} N m"
        yield Figure(section, f"{joint}: free play at a constant command", "0.5", shown, 0.0, 0.0, _RECORD)
    widest = max(x.width for x in free_play(found).values())
    factor = max(widest / HALF_A_DEGREE, HALF_A_DEGREE / widest)
    yield Figure(
        section, "largest free play", "0.5", f"{np.degrees(widest):.2f}", factor, 2.0, "within a factor of two"
    )
    for joint, (width, std) in dead_zones(found).items():
        ours = f"{np.degrees(width):.2f} +- {np.degrees(std):.2f}"
        yield Figure(section, f"{joint}: dead zone of the position error", "0.5", ours, 0.0, 0.0, _RECORD)
