"""Torque errors of the two arms of the da Vinci Research Kit per joint, beside the published ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics import frame_placement
from dynid.identification.estimate import Estimate
from dynid.identification.pipeline import identify
from dynid.parameters.base import base_parameters
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.inertia import inertia_from_com
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from studies.reproduce.dvrk_arms import Form, mtm, psm
from studies.reproduce.study import Figure, data_folder, number, published

__all__ = ["arm_figures", "arm_recordings", "arm_signals", "cable", "identified", "published_robot"]

Array = NDArray[np.float64]

ARMS = {"psm": psm, "mtm": mtm}
RUNS = {"training": "one_results", "test": "two_results"}
METHOD = "irls"
_RECORDED = "recorded: the published errors are of rows that are not known"
_METHODS = {
    "wls": "recorded: without robust weights, joint 6 of the master arm is above the published error",
    "feasible": "recorded: the published motor inertias of joints 5 to 7 of the patient side are negative",
}


def arm_recordings(arm: str, robot: Robot) -> dict[str, Recording]:
    """Training and test run, in motor positions and motor torques; that of the cable is subtracted."""
    folder = data_folder() / "dvrk-wpi" / arm
    columns = {"q": "0:7", "v": "7:14", "torque": "14:21"}
    out = {
        name: load_recording(folder / f"{file}.csv.xz", robot, columns=columns, time=None, rate=200.0)
        for name, file in RUNS.items()
    }
    known = published("dvrk")[arm].get("cable")
    if known is None:
        return out
    share = np.array([known["shares"].get(joint, 0.0) for joint in robot.coordinates])
    torque = cable()
    return {name: _without(recording, share, torque) for name, recording in out.items()}


def cable() -> Array:
    """Polynomial of the cable's torque in the position of joint 4, highest power first, from a test of that joint."""
    rows = np.loadtxt(data_folder() / "dvrk-wpi" / "mtm" / "joint_test_cable.csv.xz", delimiter=",")
    q, v, torque = rows.T
    order = published("dvrk")["mtm"]["cable"]["order"]
    moving = np.abs(v) > 0.01 * np.abs(v).max()
    columns = np.column_stack([np.vander(q, order + 1), np.sign(v), v])[moving]
    return np.asarray(np.linalg.lstsq(columns, torque[moving], rcond=None)[0][: order + 1])


def _without(recording: Recording, share: Array, torque: Array) -> Recording:
    runs = tuple(
        replace(run, torque=run.torque - np.polyval(torque, run.q @ share)[:, None] * share)
        for run in recording.runs
        if run.torque is not None
    )
    return Recording(recording.joints, runs)


def arm_signals(arm: str, *, as_published: bool = False) -> Signals:
    """The published cut-off and measured velocities; as published, torques pass it alone and every row counts."""
    cutoff = published("dvrk")[arm]["cutoff"]
    if as_published:
        return Signals(cutoff=cutoff, torque_cutoff="same", decimate=(), min_velocity=0.0, measured_velocity=True)
    return Signals(cutoff=cutoff, measured_velocity=True)


def identified(robot: Robot, arm: str, method: str = METHOD) -> Estimate:
    """The arm from its training run."""
    return identify(robot, arm_recordings(arm, robot)["training"], method, signals=arm_signals(arm))


def published_robot(arm: str, robot: Robot) -> Robot:
    """The robot with the published parameters: centres and tensors are along the axes of the base at q = 0."""
    values: dict[str, float] = {}
    given = json.loads((data_folder() / "dvrk-wpi" / arm / "published_params.json").read_text())
    for i, name in enumerate(published("dvrk")[arm]["order"], start=1):
        if (row := given.get(str(i))) is None:
            continue
        if name in (link.name for link in robot.links):
            xx, xy, xz, yy, yz, zz = row["I"]
            turn = frame_placement(robot, np.zeros((1, robot.n)), name)[0, :3, :3].T
            tensor = turn @ np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]) @ turn.T
            inertia = inertia_from_com(row["m"], turn @ np.array(row["r"]), tensor)
            values |= dict(zip([p.name for p in robot.layout if p.inertial and p.owner == name], inertia, strict=True))
        values |= {f"fc_{name}": row["Fc"], f"fv_{name}": row["Fv"], f"off_{name}": row["Fo"], f"Ia_{name}": row["Im"]}
        if row["K"]:
            values[published("dvrk")[arm]["stiffness"]] = row["K"]
    return robot.with_parameters([values.get(name, 0.0) for name in robot.parameter_names])


def arm_figures() -> Iterator[Figure]:
    """Both arms: loops against couplings, and errors per joint."""
    for arm in ARMS:
        yield from _same_dynamics(arm)
        yield from _errors(arm)


def _same_dynamics(arm: str) -> Iterator[Figure]:
    """Base parameters of both forms, and the largest difference of their predicted torques."""
    section = f"dVRK {arm.upper()}, parallelograms as closed loops and as couplings by hand"
    robots = {form: ARMS[arm](form) for form in Form}
    count = published("dvrk")[arm].get("base_parameters")
    for form, robot in robots.items():
        ours = base_parameters(robot).count
        expected, tolerance = (ours, np.inf) if count is None else (count, 0.0)
        yield number(section, f"base parameters, {form}", expected, ours, tolerance, "structure")
    recording = arm_recordings(arm, robots[Form.LOOPS])["test"]
    torques = [np.hstack(identified(robot, arm).validate(recording).predicted) for robot in robots.values()]
    apart = float(np.abs(torques[0] - torques[1]).max())
    yield Figure(section, "predicted torques, loops less couplings", "0", f"{apart:.1e} N m", apart, 1e-6, "rounding")


def _errors(arm: str) -> Iterator[Figure]:
    known = published("dvrk")[arm]["errors"]
    robots = {form: ARMS[arm](form) for form in Form}
    recordings = arm_recordings(arm, robots[Form.LOOPS])
    found = {method: identified(robots[Form.LOOPS], arm, method) for method in (METHOD, *_METHODS)}
    by_hand = identified(robots[Form.COUPLINGS], arm)
    base = found[METHOD].base
    theirs = replace(found[METHOD], beta=base.values(published_robot(arm, robots[Form.LOOPS]).parameters))
    full = arm_signals(arm, as_published=True)
    reestimated = identify(robots[Form.LOOPS], recordings["training"], METHOD, signals=full)
    for run, recording in recordings.items():
        section = f"dVRK {arm.upper()}, relative torque error per joint, {run} run (Wang et al. 2019)"
        best = np.min(list(known[run].values()), axis=0)
        lines = {
            f"{METHOD}, loops": (
                found[METHOD].validate(recording).relative,
                0.0,
                "not above the best published method",
            ),
            f"{METHOD}, couplings": (by_hand.validate(recording).relative, 0.0, "as with loops"),
            **{f"{m}, loops": (found[m].validate(recording).relative, np.inf, why) for m, why in _METHODS.items()},
            "published parameters, same rows": (theirs.validate(recording).relative, np.inf, _RECORDED),
            f"{METHOD}, loops, every row up to the cut-off": (
                reestimated.validate(recording, signals=full).relative,
                np.inf,
                _RECORDED,
            ),
            "published parameters, every row up to the cut-off": (
                theirs.validate(recording, signals=full).relative,
                np.inf,
                _RECORDED,
            ),
        }
        for name, (ours, tolerance, reason) in lines.items():
            for joint, error, there in zip(recording.joints, ours, best, strict=True):
                over = max(float(error - there), 0.0)
                yield Figure(section, f"{name}, {joint}", f"{there:.3f}", f"{error:.3f}", over, tolerance, reason)
