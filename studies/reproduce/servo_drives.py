"""Drive and motor values of hobby servos with standard deviations, as the library of drives holds them.

`python -m studies.reproduce.servo_drives DATE` prints them in the form of src/dynid/robot/drives_library. Coulomb and
viscous friction, armature, torque constant and resistance are fitted to all runs of a servo by output error (model m1
of the servo study). Standard deviations are those of the jackknife: the fit is made again without each run in turn, so
that they hold what differs between trajectories, gains and temperatures, not the noise within a run alone. A servo
whose standard deviations exceed half of its values is not put into the library: the four runs of the STS3250 do not
determine it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from studies.reproduce.servo_friction_fit import FEETECH, XL330, Bench, fit_kinds, refitted
from studies.reproduce.servo_friction_model import ServoRun, load_runs
from studies.reproduce.study import data_folder

__all__ = ["SERVOS", "Figures", "Servo", "library_text", "servo_figures"]

Array = NDArray[np.float64]


class Servo(NamedTuple):
    """A servo of the library: its recordings, the control law of its firmware, and words about both."""

    folder: str
    bench: Bench
    description: str


class Figures(NamedTuple):
    """Value and standard deviation of each parameter by name, and the number of runs they come from."""

    values: dict[str, tuple[float, float]]
    runs: int


SERVOS = {
    "xl330-m288": Servo("xl330_raw", XL330, "Dynamixel XL330-M288 position servo at 7.4 V"),
    "sts3250": Servo("feetech_raw", FEETECH, "Feetech STS3250 position servo at 12 V"),
}
_SOURCE = """\
Recordings of Duclusaud, Passault, Padois and Ly (2025), of a servo that moves a known pendulum: {} runs.
Coulomb and viscous friction, armature, torque constant and resistance by output error; standard deviations by the
jackknife over runs. Values are those at the output shaft.
"""
_DRIVE = {"Ia": ("armature", "kg m2"), "fv": ("friction_viscous", "N m s/rad"), "fc": ("friction_base", "N m")}
_MOTOR = {
    "torque_constant": ("kt", "N m/A"),
    "resistance": ("R", "Ohm"),
    "back_emf": ("back_emf", "N m s/rad"),
    "stall_torque": ("stall_torque", "N m"),
}


def servo_figures(name: str) -> Figures:
    """Fitted values of a servo of the library, with jackknife standard deviations."""
    servo = SERVOS[name]
    runs = load_runs(data_folder() / "servo-pendulum-bam" / servo.folder)
    fit = fit_kinds(runs, servo.bench, ("m1",))["m1"]
    whole = _with_motor(fit.values, runs)
    parts = []
    for k in range(len(runs)):
        rest = runs[:k] + runs[k + 1 :]
        parts.append(_with_motor(refitted(rest, servo.bench, fit).values, rest))
    return Figures({key: (value, _jackknife([p[key] for p in parts])) for key, value in whole.items()}, len(runs))


def _with_motor(values: dict[str, float], runs: Sequence[ServoRun]) -> dict[str, float]:
    """The values, and what motor and supply make of them: back-EMF and stall torque."""
    volts = float(np.mean([run.volts for run in runs]))
    slope = values["kt"] / values["R"]
    return values | {"back_emf": slope * values["kt"], "stall_torque": slope * volts}


def _jackknife(values: Sequence[float]) -> float:
    x = np.asarray(values)
    return float(np.sqrt((len(x) - 1) / len(x) * ((x - x.mean()) ** 2).sum()))


def library_text(name: str, date: str) -> str:
    """The file of a servo."""
    servo, figures = SERVOS[name], servo_figures(name)
    lines = [f'name = "{name}"', f'description = "{servo.description}"', f"date = {date}", 'study = "servo_drives"']
    lines += [f'source = """\n{_SOURCE.format(figures.runs)}"""']
    for table, keys in (("drive", _DRIVE), ("motor", _MOTOR)):
        lines += ["", f"[{table}]"]
        for key, (parameter, unit) in keys.items():
            value, std = figures.values[parameter]
            lines.append(f'{key} = {{ value = {value:.4g}, std = {std:.2g}, unit = "{unit}" }}')
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import sys

    for servo_name in SERVOS:
        print(f"# -- {servo_name}.toml")
        print(library_text(servo_name, sys.argv[1]))
