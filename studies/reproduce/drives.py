"""Drive gains and payloads of real robots: a UR10e from its motor currents, a surgical arm with small weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.calibration.drive_gains import DriveGains, identify_drive_gains
from dynid.calibration.gain_fit import Method
from dynid.calibration.payload import Payload, identify_payload
from dynid.identification.pipeline import identify
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from studies.reproduce.dvrk import psm_figures
from studies.reproduce.dvrk_errors import arm_figures
from studies.reproduce.study import Figure, data_folder, kept_figures, published

__all__ = ["calibrate", "figures", "held_out_error", "payload_mass", "ur10e", "ur10e_run"]

Array = NDArray[np.float64]

TOOL = "wrist_3_link"
SIGNALS = Signals(measured_velocity=True)
_IDENTIFICATION = "identification/ur-"
PAIRS = {
    "14 harmonics": ("20_02_19_14harm50sec", "20_02_19_14harm50secLoad"),
    "15 harmonics": ("20_02_19_15harm50sec", "20_02_19_15harm50secLoad"),
}


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Gains, held-out errors and payloads of the UR10e, then the weights and the torque errors of the surgical arms."""
    sections = {"UR10e": ur10e_figures, "weights": psm_figures, "torque errors": arm_figures}
    yield from kept_figures("drives", sections, folder)


def ur10e() -> Robot:
    folder = data_folder() / "ur10e-mamedov"
    return load_robot(folder / "ur10e.urdf", friction="viscous+coulomb+offset", rotor_inertia=True)


def ur10e_run(robot: Robot, name: str) -> Recording:
    """Usable rows of a run, with currents."""
    first, last = published("drives")["ur10e"]["rows"][name]
    columns = {"q": "1:7", "v": "7:13", "current": "13:19"}
    path = data_folder() / "ur10e-mamedov" / f"{name}.csv.gz"
    return load_recording(path, robot, columns=columns, time=0, rows=(first - 1, last or None), bad_rows="split")


def pair(robot: Robot, name: str) -> tuple[Recording, Recording]:
    """Runs without and with the payload."""
    before, after = (ur10e_run(robot, _IDENTIFICATION + file) for file in PAIRS[name])
    return before, after


def calibrate(robot: Robot, name: str, method: Method = "output", share: bool = False) -> DriveGains:
    """Gains from one pair of runs and the known mass."""
    known = published("drives")["ur10e"]
    shared = known["same_motors"] if share else ()
    return identify_drive_gains(
        robot, *pair(robot, name), payload=known["payload"], link=TOOL, method=method, shared=shared, signals=SIGNALS
    )


def with_gains(recording: Recording, gains: ArrayLike) -> Recording:
    factors = np.asarray(gains, dtype=float)
    runs = tuple(replace(run, torque=None if run.current is None else run.current * factors) for run in recording.runs)
    return Recording(recording.joints, runs)


def held_out_error(robot: Robot, gains: ArrayLike) -> Array:
    """Relative torque error (joint,) on ptp_10_points, identified from 30sec_12harm; independent of a common scale."""
    train, test = (
        with_gains(ur10e_run(robot, name), gains)
        for name in ("identification/ur-20_02_10-30sec_12harm", "validation/ur-20_01_17-ptp_10_points")
    )
    return identify(robot, train, "wls", signals=SIGNALS).validate(test).relative


def payload_mass(robot: Robot, gains: ArrayLike, unloaded: Recording, loaded: Recording) -> Payload:
    """The payload of a pair of runs, with given gains."""
    return identify_payload(robot, with_gains(loaded, gains), with_gains(unloaded, gains), link=TOOL, signals=SIGNALS)


def ur10e_figures() -> Iterator[Figure]:
    known = published("drives")["ur10e"]
    robot = ur10e()
    there = np.array(known["gains"])
    found = {name: calibrate(robot, name) for name in PAIRS}
    yield from _gains(robot, there, found)
    yield from _errors(robot, there, {name: x.gains for name, x in found.items()})
    yield from _masses(robot, there, {name: x.gains for name, x in found.items()})


def _gains(robot: Robot, there: Array, found: dict[str, DriveGains]) -> Iterator[Figure]:
    section = "UR10e, drive gains in N m/A from currents and a payload of 2.805 kg (Mamedov and Mikhel 2020)"
    why = "recorded: published gains miss the payload by 10 to 18 %, see the masses below"
    for name, ours in found.items():
        for j, g, s, p in zip(robot.coordinates, ours.gains, ours.std, there, strict=True):
            shown = f"{g:.2f}, std {s:.2f}, {100 * (g / p - 1):+.0f} %"
            yield Figure(section, f"{name}, {j}", f"{p:.4g}", shown, abs(g / p - 1), np.inf, why)
        lowest = float(ours.gains.min())
        yield Figure(section, f"{name}, all positive", "> 0", f"{lowest:.2f}", max(-lowest, 0.0), 0.0, "positive")
        hidden = [j for j, s in zip(robot.coordinates, ours.shown, strict=True) if not s]
        shown = "all" if not hidden else f"all but {', '.join(hidden)}"
        yield Figure(section, f"{name}, identifiable gains", "none", shown, 0.0, np.inf, "std below 10 %")
    both = [x.gains for x in found.values()]
    apart = np.abs(both[0] / both[1] - 1)
    ratios = np.abs(both[0] - both[1]) / np.hypot(*(x.std for x in found.values()))
    for j, a, d in zip(robot.coordinates, apart, ratios, strict=True):
        shown = f"{100 * a:.1f} %, {d:.1f} std"
        yield Figure(section, f"difference of pairs, {j}", "none", shown, float(d), 3.0, "two calibrations, three std")
    for method in ("wls", "tls"):
        ours = calibrate(robot, "14 harmonics", method)
        shown = ", ".join(f"{g:.2f}" for g in ours.gains)
        reason = "recorded: errors of the currents bias these towards zero"
        yield Figure(
            section, f"14 harmonics, {method}", ", ".join(f"{p:.2f}" for p in there), shown, 0.0, np.inf, reason
        )
    ours = calibrate(robot, "14 harmonics", share=True)
    shown = ", ".join(f"{g:.2f}" for g in ours.gains)
    yield Figure(
        section, "14 harmonics, equal motors share", "none", shown, 0.0, np.inf, "recorded: three sizes of joint"
    )


def _errors(robot: Robot, there: Array, found: dict[str, Array]) -> Iterator[Figure]:
    section = "UR10e, relative torque error on ptp_10_points, identified from 30sec_12harm, by gains"
    theirs = 100 * held_out_error(robot, there)
    for name, gains in found.items():
        ours = 100 * held_out_error(robot, gains)
        for j, a, b in zip(robot.coordinates, theirs, ours, strict=True):
            yield Figure(section, f"{name}, {j}", f"{a:.2f} %", f"{b:.2f} %", max(b - a, 0.0), np.inf, "recorded")
        over = max(float(ours.mean() - theirs.mean()), 0.0)
        reason = "not worse than with the published gains"
        yield Figure(section, f"{name}, mean", f"{theirs.mean():.2f} %", f"{ours.mean():.2f} %", over, 0.0, reason)


def _masses(robot: Robot, there: Array, found: dict[str, Array]) -> Iterator[Figure]:
    section = "UR10e, mass of the payload in kg, gains from other runs than those with the payload"
    known = published("drives")["ur10e"]
    mass = known["payload"]
    other = {"14 harmonics": "15 harmonics", "15 harmonics": "14 harmonics"}
    show = partial(_mass, section)
    for name, gains in found.items():
        pays = payload_mass(robot, gains, *pair(robot, other[name]))
        yield show(f"{other[name]}, gains from {name}", mass, pays, 0.03 * mass, "3 %; held out")
    for name in PAIRS:
        pays = payload_mass(robot, there, *pair(robot, name))
        yield show(f"{name}, published gains", mass, pays, np.inf, "recorded")
        pays = payload_mass(robot, known["other_gains"], *pair(robot, name))
        yield show(f"{name}, De Luca's gains", mass, pays, np.inf, "recorded")
    before = ur10e_run(robot, _IDENTIFICATION + "19_12_23_free")
    after = ur10e_run(robot, _IDENTIFICATION + "20_01_13-load_2600")
    for name, gains in (*found.items(), ("the publication", there)):
        pays = payload_mass(robot, gains, before, after)
        reason = "recorded: mass by the file's name, unloaded run three weeks older"
        yield show(f"load_2600, gains from {name}", known["named_payload"], pays, np.inf, reason)


def _mass(section: str, name: str, true: float, found: Payload, tolerance: float, reason: str) -> Figure:
    shown = f"{found.mass:.3f}, std {found.mass_std:.3f}, {100 * (found.mass / true - 1):+.1f} %"
    return Figure(section, name, f"{true:.3f}", shown, abs(found.mass - true), tolerance, reason)
