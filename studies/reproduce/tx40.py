"""The identified parameters of the Staubli TX40 from its raw motor-side files."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.identification.known import essential_parameters
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.load import load_robot
from dynid.signals.settings import Signals
from studies.reproduce.study import Figure, data_folder, number, published

__all__ = ["figures", "tx40_recording", "tx40_signals"]

_RATE = 5000.0
_EDGE = 20  # samples dropped at both ends


def tx40_signals() -> Signals:
    """Signal settings of the published tables: median of 3, 100 Hz, decimation by 100, 1 % of the maximum velocity."""
    slowest = (0.05009095, 0.05009095, 0.07504916, 0.0715585, 0.05585054, 0.12217305)
    return Signals(
        median=3,
        cutoff=100.0,
        order=4,
        torque_cutoff=None,
        derivative="central",
        trim=_EDGE / _RATE,
        decimate=(10, 10),
        min_velocity=slowest,
    )


def figures() -> Iterator[Figure]:
    section = "TX40 from its motor-side files (Nguyen 2021, Figs A.1, A.2, A.3)"
    table = published("tx40_base_values")
    robot = load_robot("tx40")
    recording = tx40_recording()
    observation = observe(robot, recording, signals=tx40_signals())
    for joint, (expected, ours) in enumerate(zip(table["rows"], observation.rows, strict=True), start=1):
        yield number(section, f"rows of joint {joint}", expected, ours, 0.0, "a count is exact")
    repaired = set(table["repaired"])
    estimates = {
        "ols": estimate_from(observation, "ols", noise_model="white"),
        "wls": estimate_from(observation, "wls", freedom="none", noise_model="white"),
    }
    plain = observation.stacked()[:, :-1]
    condition = float(np.linalg.cond(plain))
    yield number(section, "cond(W_b)", table["condition_number"], condition, 0.05, "quoted as 1031.4")
    for method, estimate in estimates.items():
        values, sigmas = np.array(table[method]), np.array(table[f"{method}_sigma"])
        for i, name in enumerate(table["names"]):
            if i + 1 in repaired:
                continue
            label = f"{method.upper()} {name}"
            if sigmas[i] < 10:
                tolerance, reason = 1e-4 * abs(values[i]), "1e-4 of the value where sigma is below 10 %"
            else:
                tolerance, reason = 0.01 * estimate.std[i], "a hundredth of its own std; printed digits"
            yield number(section, label, values[i], estimate.beta[i], float(tolerance), reason)
            if sigmas[i] < 10:
                share = float(estimate.relative_std[i])
                yield number(section, f"{label}, sigma %", sigmas[i], share, 0.02, "printed to two decimals")
    essential = essential_parameters(observation, estimates["wls"])
    names = {table["names"][i] for i in essential.kept}
    missing = names ^ set(table["essential"])
    shown = f"{len(names)} names, {len(missing)} differ"
    yield Figure(section, "essential parameters", "27 names", shown, float(len(missing)), 0.0, "names are exact")
    reason = "the thesis' bound"
    change = 100 * essential.change
    yield Figure(section, "model change by leaving out the rest", "< 2 %", f"{change:.2f} %", change, 2.0, reason)
    reason, condition = "printed to two decimals", float(np.linalg.cond(plain[:, list(essential.kept)]))
    yield number(section, "cond of the essential columns", table["essential_condition_number"], condition, 0.01, reason)


def tx40_recording() -> Recording:
    """The raw files on the joint side."""
    folder = data_folder() / "staubli-tx40-figaroh"
    files = {"q": folder / "pos_read_data.csv.gz", "torque": folder / "curr_data.csv.gz"}
    columns = {"q": "Joint_{i}", "torque": "Joint_{i}"}
    return load_recording(files, load_robot("tx40"), columns=columns, rate=_RATE, time=None, motor_side=True)
