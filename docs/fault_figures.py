"""Draws the figures of docs/faults.md from cases of the verdict study: `python docs/fault_figures.py [NAME...]`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, partial
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

sys.path.insert(0, str(Path(__file__).parents[1]))

from figures import standalone

import dynid
from dynid.report.charts import Chart
from dynid.signals.settings import prepare
from studies.reproduce.verdict_faults import Case, Fault, make_case
from studies.reproduce.verdict_plants import PLANTS
from studies.reproduce.verdict_setup import Setup

Array = NDArray[np.float64]

FOLDER = Path(__file__).parent / "figures" / "faults"
PLANT = "ur10"
_LINE, _DOTS = 240, 220  # points
# Kinds that concern a joint that turns.
_TURNING = (
    *(Fault.ENCODER_OFFSET, Fault.DEGREES, Fault.COGGING, Fault.POSITION_SIGN, Fault.JOINT_REVERSED, Fault.GEAR_RATIO),
    Fault.POSITION_WRAPPED,
)
_TORQUE, _POSITION, _TIME = "torque, N m", "position, rad", "time, s"


def drawn(chart: Chart, **legend: str) -> str:
    """SVG of a chart with a legend of color and words."""
    return standalone(chart, {words: look for look, words in legend.items()})


@cache
def case(fault: Fault, seed: int) -> Case:
    return make_case(PLANT, seed, fault)


def joint_of(fault: Fault, seed: int) -> int:
    """The joint that a fault concerns."""
    setup = Setup(PLANTS[PLANT], seed, fault)
    if fault in _TURNING:
        return setup.turning_joint
    return setup.large_joint if fault in (Fault.ELASTICITY, Fault.BACKLASH, Fault.DRIVE_SATURATED) else setup.joint


def thinned(x: Array, count: int) -> Array:
    return x[:: max(1, len(x) // count)]


def log(fault: Fault, seed: int = 0, joint: int | None = None, span: tuple[float, float] = (2.0, 8.0)) -> str:
    """The torque of one joint as it is, and as it is logged."""
    j = joint_of(fault, seed) if joint is None else joint
    chart = Chart(_TIME, f"{_TORQUE}, joint {j + 1}", height=200)
    for kind, look in ((Fault.NONE, "grey"), (fault, "two")):
        (run,) = case(kind, seed).training.runs
        assert run.torque is not None
        inside = (run.t >= span[0]) & (run.t < span[1])
        count = len(run.t) if fault is Fault.TORQUE_SPIKES else _LINE
        chart.line(thinned(run.t[inside], count), thinned(run.torque[inside, j], count), look)
    return drawn(chart, grey="torque", two="log")


def positions(fault: Fault, seed: int = 0, span: tuple[float, float] = (0.0, 20.0), joint: int | None = None) -> str:
    """The position of one joint as it is, and as it is logged."""
    j = joint_of(fault, seed) if joint is None else joint
    chart = Chart(_TIME, f"position, joint {j + 1}", height=200)
    for kind, look in ((Fault.NONE, "grey"), (fault, "two")):
        (run,) = case(kind, seed).training.runs
        inside = (run.t >= span[0]) & (run.t < span[1])
        chart.line(thinned(run.t[inside], _LINE), thinned(run.q[inside, j], _LINE), look)
    return drawn(chart, grey="position", two="log")


def rows(fault: Fault, seed: int = 0) -> str:
    """Rows of a log over a few periods of its source."""
    j = 2
    (good,), (read,) = case(Fault.NONE, seed).training.runs, case(fault, seed).training.runs
    chart = Chart(_TIME, f"{_POSITION}, joint {j + 1}", height=200)
    for run, look in ((good, "grey"), (read, "two")):
        inside = (run.t >= 1.0) & (run.t < 1.1)
        chart.dots(run.t[inside], run.q[inside, j], look)
    return drawn(chart, grey="source", two="log")


def stamps(fault: Fault, seed: int = 0) -> str:
    """Differences of time stamps."""
    (run,) = case(fault, seed).training.runs
    step = 1e3 * np.diff(run.t)[: 2 * _DOTS]
    chart = Chart(_TIME, "difference of time stamps, ms", height=200).level(float(np.median(step)), "grey")
    return drawn(chart.dots(run.t[: len(step)], step, "two"), grey="median", two="log")


def _times(states: Array) -> Array:
    """Times of the states of a case."""
    return 0.5 + 0.01 * np.arange(len(states))


@cache
def residual(fault: Fault, seed: int) -> tuple[tuple[Array, Array, Array], Array, Array]:
    """States of the unseen motion, true torques, and errors of the torques that the estimate predicts."""
    made = case(fault, seed)
    estimate = dynid.identify(made.robot, made.training)
    error = made.torque - dynid.inverse_dynamics(estimate.identified_robot, *made.states)
    return made.states, made.torque, error


def errors(fault: Fault, against: str, seed: int = 0, joint: int | None = None) -> str:
    """Errors of predicted torques of one joint, over time, position, velocity or torque, beside those without fault."""
    j = joint_of(fault, seed) if joint is None else joint
    words = {"time": _TIME, "position": _POSITION, "velocity": "velocity, rad/s", "torque": _TORQUE}[against]
    chart = Chart(words, f"error, N m, joint {j + 1}", height=200)
    for kind, look in ((fault, "two"), (Fault.NONE, "grey")):
        (q, v, _), torque, error = residual(kind, seed)
        x = {"time": _times(q), "position": q[:, j], "velocity": v[:, j], "torque": torque[:, j]}[against]
        known = np.isfinite(error[:, j])
        low, high = np.nanpercentile(error[:, j], (0.5, 99.5))
        known &= (error[:, j] >= low) & (error[:, j] <= high)
        chart.dots(thinned(x[known], _DOTS), thinned(error[known, j], _DOTS), f"{look} small")
    return drawn(chart, two="with the fault", grey="without")


def drift(seed: int = 0, joint: int = 1) -> str:
    """Viscous friction beyond the estimate over the time of the training run, in windows."""
    chart = Chart(_TIME, f"viscous friction, N m s/rad, joint {joint + 1}", height=200)
    made = case(Fault.THERMAL_DRIFT, seed)
    estimate = dynid.identify(made.robot, made.training)
    motion = prepare(made.training.runs[0], estimate.signals)
    error = motion.torque - dynid.inverse_dynamics(estimate.identified_robot, motion.q, motion.v, motion.a)
    edges = np.linspace(motion.t[0], motion.t[-1], 11)
    found = []
    for low, high in pairwise(edges):
        inside = (motion.t >= low) & (motion.t < high) & (np.abs(motion.v[:, joint]) > 0.1)
        found.append(np.polyfit(motion.v[inside, joint], error[inside, joint], 1)[0])
    chart.dots(0.5 * (edges[:-1] + edges[1:]), found, "two").level(0.0, "grey")
    return drawn(chart, two="windows of two seconds", grey="estimate")


def predicted(fault: Fault, seed: int = 0, joint: int = 1) -> str:
    """Torques of the unseen run and those that the estimate predicts."""
    _, torque, error = residual(fault, seed)
    known = np.isfinite(torque[:, joint])
    t, measured, model = (x[known] for x in (_times(torque), torque[:, joint], (torque - error)[:, joint]))
    chart = Chart(_TIME, f"{_TORQUE}, joint {joint + 1}", height=200)
    chart.line(thinned(t, _LINE), thinned(measured, _LINE), "grey")
    chart.line(thinned(t, _LINE), thinned(model, _LINE), "two")
    return drawn(chart, grey="measured", two="predicted")


def saturated(seed: int = 0) -> str:
    """The torque that was asked for and the one that the drive delivers."""
    fault = Fault.DRIVE_SATURATED
    made, j = case(fault, seed), joint_of(fault, seed)
    (run,) = made.unseen.runs
    assert run.torque is not None
    t = _times(made.torque)
    known = np.isfinite(made.torque[:, j])
    chart = Chart(_TIME, f"{_TORQUE}, joint {j + 1}", height=200)
    chart.line(thinned(run.t, 3 * _LINE), thinned(run.torque[:, j], 3 * _LINE), "two")
    chart.line(thinned(t[known], _LINE), thinned(made.torque[known, j], _LINE), "grey")
    return drawn(chart, grey="delivered", two="log")


def clock_jump(seed: int = 0, joint: int = 1) -> str:
    """Positions over the time of the log."""
    chart = Chart(_TIME, f"{_POSITION}, joint {joint + 1}", height=200)
    for kind, look in ((Fault.NONE, "grey"), (Fault.CLOCK_JUMP, "two")):
        (run,) = case(kind, seed).training.runs
        chart.line(thinned(run.t, 2 * _LINE), thinned(run.q[:, joint], 2 * _LINE), look)
    return drawn(chart, grey="true time", two="log")


def of_the_model(fault: Fault, seed: int = 0, joint: int = 1) -> str:
    """Torques of the a-priori model with wrong gravity beside the measured ones."""
    made = case(fault, seed)
    model = dynid.inverse_dynamics(made.robot, *made.states)[:, joint]
    t = _times(made.torque)
    known = np.isfinite(made.torque[:, joint])
    chart = Chart(_TIME, f"{_TORQUE}, joint {joint + 1}", height=200)
    chart.line(thinned(t[known], _LINE), thinned(made.torque[known, joint], _LINE), "grey")
    chart.line(thinned(t, _LINE), thinned(model, _LINE), "two")
    return drawn(chart, grey="measured", two="a-priori model")


def reused(seed: int = 6, joint: int = 1) -> str:
    """Torques of the fitted run and of the run that is called unseen."""
    made = case(Fault.REUSED_RECORDING, seed)
    chart = Chart(_TIME, f"{_TORQUE}, joint {joint + 1}", height=200)
    for recording, look in ((made.training, "grey"), (made.unseen, "two")):
        (run,) = recording.runs
        assert run.torque is not None
        inside = run.t < 6.0
        chart.line(thinned(run.t[inside], _LINE), thinned(run.torque[inside, joint], _LINE), look)
    return drawn(chart, grey="fitted run", two="'unseen' run")


FIGURES: dict[Fault, Callable[[], str]] = {
    Fault.TORQUE_GAIN: partial(log, Fault.TORQUE_GAIN),
    Fault.TORQUE_SIGN: partial(log, Fault.TORQUE_SIGN),
    Fault.TORQUE_DELAY: partial(log, Fault.TORQUE_DELAY, joint=1, span=(2.0, 3.0)),
    Fault.TORQUE_LOW_PASS: partial(log, Fault.TORQUE_LOW_PASS, joint=0, span=(2.0, 5.0)),
    Fault.TORQUE_CLIPPED: partial(log, Fault.TORQUE_CLIPPED, span=(0.0, 20.0)),
    Fault.TORQUE_QUANTIZED: partial(log, Fault.TORQUE_QUANTIZED, joint=3, span=(2.0, 4.0)),
    Fault.TORQUE_SPIKES: partial(log, Fault.TORQUE_SPIKES, joint=2, span=(2.0, 4.0)),
    Fault.GRAVITY_COMPENSATED: partial(log, Fault.GRAVITY_COMPENSATED, joint=1),
    Fault.COMPUTED_TORQUE: partial(log, Fault.COMPUTED_TORQUE, joint=2),
    Fault.ENCODER_OFFSET: partial(positions, Fault.ENCODER_OFFSET, span=(2.0, 4.0)),
    Fault.DEGREES: partial(positions, Fault.DEGREES),
    Fault.JOINTS_SWAPPED: partial(positions, Fault.JOINTS_SWAPPED, joint=5),
    Fault.TORQUE_ASYMMETRIC: partial(log, Fault.TORQUE_ASYMMETRIC),
    Fault.TORQUE_RECTIFIED: partial(log, Fault.TORQUE_RECTIFIED, seed=6, span=(2.0, 5.0)),
    Fault.TORQUE_NONLINEAR: partial(log, Fault.TORQUE_NONLINEAR),
    Fault.CROSSTALK: partial(log, Fault.CROSSTALK, span=(2.0, 5.0)),
    Fault.CLOCK_RATE: partial(positions, Fault.CLOCK_RATE, span=(0.0, 8.0), joint=1),
    Fault.ZEROS_TURNED: partial(positions, Fault.ZEROS_TURNED, joint=1),
    Fault.STAMP_JITTER: partial(stamps, Fault.STAMP_JITTER),
    Fault.SAMPLES_LOST: partial(stamps, Fault.SAMPLES_LOST),
    Fault.ROWS_REPEATED: partial(rows, Fault.ROWS_REPEATED),
    Fault.REUSED_RECORDING: reused,
    Fault.LINK_LENGTH: partial(errors, Fault.LINK_LENGTH, "position", joint=1),
    Fault.GRAVITY_SIGN: partial(of_the_model, Fault.GRAVITY_SIGN),
    Fault.BASE_TILT: partial(errors, Fault.BASE_TILT, "position", joint=0),
    Fault.ELASTICITY: partial(errors, Fault.ELASTICITY, "time"),
    Fault.SWINGING_BASE: partial(errors, Fault.SWINGING_BASE, "time", joint=1),
    Fault.BACKLASH: partial(errors, Fault.BACKLASH, "time"),
    Fault.THERMAL_DRIFT: drift,
    Fault.DRIVE_SATURATED: saturated,
    Fault.PRESLIDING: partial(log, Fault.PRESLIDING, joint=1, span=(2.0, 5.0)),
    Fault.CONTACT: partial(log, Fault.CONTACT, joint=1, span=(0.0, 20.0)),
    Fault.COGGING: partial(errors, Fault.COGGING, "position"),
    Fault.STRIBECK: partial(errors, Fault.STRIBECK, "velocity", joint=1),
    Fault.LOAD_FRICTION: partial(errors, Fault.LOAD_FRICTION, "torque", joint=1),
    Fault.PAYLOAD: partial(predicted, Fault.PAYLOAD),
    Fault.JOINT_STILL: partial(positions, Fault.JOINT_STILL),
    Fault.POSITION_SIGN: partial(positions, Fault.POSITION_SIGN),
    Fault.JOINT_REVERSED: partial(positions, Fault.JOINT_REVERSED),
    Fault.GEAR_RATIO: partial(positions, Fault.GEAR_RATIO),
    Fault.POSITION_COARSE: partial(positions, Fault.POSITION_COARSE, span=(2.0, 2.3)),
    Fault.POSITION_STUCK: partial(positions, Fault.POSITION_STUCK),
    Fault.POSITION_WRAPPED: partial(positions, Fault.POSITION_WRAPPED),
    Fault.POSITION_COMMANDED: partial(positions, Fault.POSITION_COMMANDED, span=(2.0, 4.0), joint=1),
    Fault.CLOCK_JUMP: clock_jump,
    Fault.TORQUE_UNIT: partial(log, Fault.TORQUE_UNIT, joint=1),
    Fault.TORQUE_ZERO: partial(log, Fault.TORQUE_ZERO),
    Fault.TORQUE_HELD: partial(log, Fault.TORQUE_HELD, joint=1, span=(2.0, 4.0)),
    Fault.TORQUE_DRIFT: partial(log, Fault.TORQUE_DRIFT, span=(0.0, 20.0)),
    Fault.TORQUE_TONE: partial(log, Fault.TORQUE_TONE, span=(2.0, 5.0)),
    Fault.ONE_TORQUE_LATE: partial(log, Fault.ONE_TORQUE_LATE, span=(2.0, 3.0)),
    Fault.SPRING: partial(log, Fault.SPRING, joint=1, span=(0.0, 20.0)),
    Fault.COUNTERBALANCE: partial(log, Fault.COUNTERBALANCE, joint=1, span=(0.0, 20.0)),
    Fault.CABLE: partial(log, Fault.CABLE),
    Fault.COUPLED_FRICTION: partial(log, Fault.COUPLED_FRICTION, joint=4),
    Fault.PAYLOAD_CHANGED: partial(log, Fault.PAYLOAD_CHANGED, joint=1, span=(0.0, 20.0)),
    Fault.OTHER_ROBOT: partial(predicted, Fault.OTHER_ROBOT),
    Fault.GRAVITY_MISSING: partial(of_the_model, Fault.GRAVITY_MISSING),
}


def main(names: Sequence[str]) -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    for fault in [Fault(name) for name in names] or FIGURES:
        (FOLDER / f"{fault}.svg").write_text(FIGURES[fault](), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
