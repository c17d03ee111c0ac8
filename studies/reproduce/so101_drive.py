"""Friction of the STS3215 servos of the SO-101 arm with standard deviations, as the library of drives holds it.

`python -m studies.reproduce.so101_drive DATE` prints it in the form of src/dynid/robot/drives_library. The servos are
identified from all fitted runs of the SO-101 study, and again without each run in turn. Viscous friction is the mean of
the five joints, Coulomb friction that of the joints that gravity does not load. Standard deviations hold the jackknife
over runs and what differs between joints. The armature is shared by all joints; its standard deviation exceeds half of
its value, since armature and delay take each other's place with the choice of runs, so the file does not have it.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.estimate import ActuatorEstimate
from dynid.dynamics.functions import inverse_dynamics
from dynid.recording.recording import Recording
from studies.reproduce.servo_drives import file_text, jackknife
from studies.reproduce.so101 import CANDIDATES, CHOSEN, fitted_to, identified
from studies.reproduce.so101_data import JOINTS, fitted_recording, so101_robot

__all__ = ["drive_figures", "library_text"]

Array = NDArray[np.float64]

_NAME = "sts3215"
_SOURCE = """\
Recordings of isaac-sim2real/sage of an SO-101 arm with five of these servos: multisine, chirp, binary sequence, 50 Hz.
By output error from commands and positions, with the masses of the model file, which set the scale of all torques.
Viscous friction: mean of five joints; it holds the back-EMF of the driven motor. Coulomb friction: mean of the two
joints that gravity does not load; {loaded}.
Standard deviations: jackknife over runs and differences between joints. Armature {armature:.2g} +- {std:.1g} kg m2, not
determined; delay {delay:.0f} +- {delay_std:.0f} ms. Supply voltage and gear are not known.
"""
# A joint is loaded if gravity exerts more than this share of its friction.
_LOADED = 0.1
# Values with a larger relative standard deviation are not put into the library.
_DETERMINED = 0.5


def drive_figures() -> dict[str, tuple[float, float]]:
    """Value and standard deviation of armature, viscous and Coulomb friction, by symbol, and of the delay."""
    runs = fitted_recording().runs
    rests = [Recording(JOINTS, runs[:k] + runs[k + 1 :]) for k in range(len(runs))]
    whole, parts = identified(), [fitted_to(x, CANDIDATES[CHOSEN]) for x in rests]
    free = ~loaded_joints(whole)
    out = {}
    for symbol, quantity, joints in (
        ("Ia", "armature", np.ones(1, bool)),
        ("fv", "damping", np.ones(len(JOINTS), bool)),
        ("fc", "friction", free),
        ("delay", "delay", np.ones(1, bool)),
    ):
        own = _values(whole, quantity)[joints]
        between = float(np.std(own, ddof=1)) if len(own) > 1 else 0.0
        runs_std = float(jackknife([_values(x, quantity)[joints].mean() for x in parts]))
        out[symbol] = (float(own.mean()), float(np.hypot(between, runs_std)))
    return out


def loaded_joints(found: ActuatorEstimate) -> NDArray[np.bool_]:
    """Joints (n,) on which gravity exerts a torque that counts against their friction."""
    q = np.concatenate([run.q for run in fitted_recording().runs])
    weight = np.abs(inverse_dynamics(so101_robot(), q, np.zeros_like(q), np.zeros_like(q))).max(axis=0)
    return np.asarray(weight > _LOADED * _values(found, "friction"))


def _values(found: ActuatorEstimate, quantity: str) -> Array:
    return found.values[[x.quantity == quantity for x in found.unknowns]]


def library_text(date: str) -> str:
    """The file of the servo."""
    figures, friction = drive_figures(), _values(identified(), "friction")
    more = ", ".join(f"{x:.2g}" for x in friction[loaded_joints(identified())])
    source = _SOURCE.format(
        loaded=f"those that it loads have {more} N m",
        armature=figures["Ia"][0],
        std=figures["Ia"][1],
        delay=1e3 * figures["delay"][0],
        delay_std=1e3 * figures["delay"][1],
    )
    units = {"Ia": "kg m2", "fv": "N m s/rad", "fc": "N m"}
    rows = {s: (*figures[s], unit) for s, unit in units.items() if figures[s][1] <= _DETERMINED * figures[s][0]}
    texts = {"name": _NAME, "description": "Feetech STS3215 position servo", "study": "so101_drive"}
    return file_text(texts, date, source, {"drive": rows})


if __name__ == "__main__":
    import sys

    print(library_text(sys.argv[1]))
