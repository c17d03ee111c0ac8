"""Drive and motor values of hobby servos with standard deviations, as the library of drives holds them.

`python -m studies.reproduce.servo_drives DATE` prints them in the form of src/dynid/robot/drives_library. Coulomb and
viscous friction, armature, torque constant and resistance are fitted to all runs of a servo by output error (model m1
of the servo study). Standard deviations are those of the jackknife: the fit is made again without each run in turn, so
that they hold what differs between trajectories, gains and temperatures, not the noise within a run alone. A servo
whose standard deviations exceed half of its values is not put into the library: the four runs of the STS3250 do not
determine it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from studies.reproduce.servo_friction_fit import FEETECH, XL330, Bench, fit_kinds, refitted
from studies.reproduce.servo_friction_model import ServoRun, load_runs
from studies.reproduce.study import data_folder

__all__ = ["SERVOS", "Figures", "Servo", "file_text", "jackknife", "library_text", "servo_figures"]

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
    std = {key: float(jackknife([p[key] for p in parts])) for key in whole}
    return Figures({key: (value, std[key]) for key, value in whole.items()}, len(runs))


def _with_motor(values: dict[str, float], runs: Sequence[ServoRun]) -> dict[str, float]:
    """The values, and what motor and supply make of them: back-EMF and stall torque."""
    volts = float(np.mean([run.volts for run in runs]))
    slope = values["kt"] / values["R"]
    return values | {"back_emf": slope * values["kt"], "stall_torque": slope * volts}


def jackknife(values: ArrayLike) -> Array:
    """Standard deviations from estimates, one per row, that leave out one run each."""
    x = np.asarray(values, dtype=float)
    return np.asarray(np.sqrt((len(x) - 1) / len(x) * ((x - x.mean(axis=0)) ** 2).sum(axis=0)))


def library_text(name: str, date: str) -> str:
    """The file of a servo."""
    servo, figures = SERVOS[name], servo_figures(name)
    tables = {
        table: {key: (*figures.values[parameter], unit) for key, (parameter, unit) in keys.items()}
        for table, keys in (("drive", _DRIVE), ("motor", _MOTOR))
    }
    texts = {"name": name, "description": servo.description, "study": "servo_drives"}
    return file_text(texts, date, _SOURCE.format(figures.runs), tables)


def file_text(
    texts: Mapping[str, str], date: str, source: str, tables: Mapping[str, Mapping[str, tuple[float, float, str]]]
) -> str:
    """A file of the library: texts, then tables of value, standard deviation and unit by key."""
    lines = [f'{key} = "{text}"' for key, text in texts.items()]
    lines += [f"date = {date}", f'source = """\n{source}"""']
    for table, rows in tables.items():
        lines += ["", f"[{table}]"]
        lines += [
            f'{k} = {{ value = {x:.4g}, std = {std:.2g}, unit = "{unit}" }}' for k, (x, std, unit) in rows.items()
        ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    import sys

    for servo_name in SERVOS:
        print(f"# -- {servo_name}.toml")
        print(library_text(servo_name, sys.argv[1]))
