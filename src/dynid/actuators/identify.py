"""Identification of actuators from commanded and measured positions."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.bodies import consistent_robot
from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.fit import Fitted, fit, refit
from dynid.actuators.following import check_followed
from dynid.actuators.logs import Log, read_logs, still_joints
from dynid.actuators.rollouts import with_steep_friction
from dynid.actuators.start import first_values
from dynid.actuators.unknowns import (
    DEFAULT_UNKNOWN,
    ParameterSpace,
    Quantity,
    Spec,
    parameter_space,
    with_soft_friction,
)
from dynid.actuators.validation import simulated_errors
from dynid.errors import NotIdentifiable
from dynid.progress import Progress, ProgressCallback
from dynid.recording.recording import Recording
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.signals.autocorrelation import independent_rows
from dynid.signals.fingerprint import fingerprint
from dynid.signals.settings import Signals, prepare
from dynid.simulation.closed_loop import ClosedLoop
from dynid.threads import one_blas_thread

__all__ = ["identify_actuators"]

Array = NDArray[np.float64]

# How often structure in the residual counts against noise: half of the plants of `studies.reproduce.actuators` (soft
# friction of MuJoCo) chose it, the other half confirms it.
_STRUCTURE = 3.0
# Standard deviation, in ticks, of a moment that is somewhere within one.
_TICK = 12**-0.5


def identify_actuators(
    robot: Robot,
    recording: Recording,
    law: ActuatorLaw,
    *,
    unknown: Spec = DEFAULT_UNKNOWN,
    step: float | None = None,
    progress: ProgressCallback | None = None,
) -> ActuatorEstimate:
    """Identify armature, friction, delay and other quantities of actuators from encoders alone.

    The torque is not measured: it follows from the law, and the unknowns are those with which the simulated motion
    meets the measured one. Start values come from least squares on the torques of the law, with the delay found by
    search; then the simulation is fitted by Gauss-Newton steps with exact sensitivities, over short stretches first and
    over whole runs at the end.

    Parameters
    ----------
    robot : Robot
        The robot. Its bodies are held at their values unless "bodies" is unknown. A floating base is held fixed.
    recording : Recording
        Positions and commanded positions ("reference"). With a law without gains, positions and torques.
    law : ActuatorLaw
        The known part of the law, and start values of the unknown limits.
    unknown : sequence of str, or mapping of str to str or sequence of str
        Quantities: "armature", "damping", "friction", "stribeck", "offset", "bodies", "kp", "kd", "gain",
        "delay", "torque_limit", "back_emf", "stall_torque", "no_load_velocity", "backlash", "load_friction",
        "bias", "friction_lead", "friction_width". The last two are found with friction, too, where nobody asks
        for them, and are then in the law of the result. A mapping says which joints share one: "joint" (none),
        "shared" (all), or regular expressions, one per group. Without it, the delay is shared and everything
        else is per joint.
    step : float, optional
        Largest integration step in s. 1 ms by default.
    progress : callable, optional
        Called with a `Progress`.

    Returns
    -------
    ActuatorEstimate

    Raises
    ------
    DataError
        If commands are missing, positions do not follow them, the law does not fit the robot or the log, or every
        simulation diverges.
    """
    started = time.perf_counter()
    notes = []
    if robot.base != "fixed":
        robot = robot.with_base("fixed")
        notes.append("the base is held fixed: it must not move in the log")
    logs = read_logs(robot, law, recording)
    if len(logs) > len(recording.runs):
        notes.append(f"the log has gaps: its {len(logs)} stretches between them are simulated apart")
    still = still_joints(law, logs)
    if len(still) == law.n:
        raise NotIdentifiable("no joint moves in the log: command motion that shows the actuators, see dynid chirp")
    notes += [f"joint '{x}' does not move in the log: its own unknowns keep the given values" for x in sorted(still)]
    check_followed(robot, law, logs)
    velocity = np.concatenate([x.v for x in logs])
    space = parameter_space(robot, law, unknown, velocity)
    steep = with_steep_friction(space.robot, velocity)
    shown = np.array([not x.joints or not still.issuperset(x.joints) for x in space.unknowns])
    whole, given = space, space.values + space.rest
    space = replace(
        space,
        robot=ClosedLoop().regularized(space.robot, velocity),
        unknowns=tuple(x for x, one in zip(space.unknowns, shown, strict=True) if one),
    )
    asked = len(space.unknowns)
    space = with_soft_friction(space, velocity)

    def report(what: str, share: float) -> None:
        if progress is not None:
            spent = time.perf_counter() - started
            progress(Progress(f"fitting simulated motion over {what}", share, spent * (1 / max(share, 0.05) - 1)))

    with one_blas_thread():  # small matrices: several threads are slower
        fitted = fit(space, logs, first_values(space, logs), steep=steep, step=step, report=report)
        wanted = _law_test(fitted.space, logs, fitted, step, still)
    final = replace(space, robot=steep) if fitted.corrected else fitted.space
    found, actuated = final.applied(fitted.values)
    covariance, effective = _colored(fitted)
    tick = _within_tick(space, fitted.values)[:asked]
    covariance = (covariance + np.diag(_within_step(space, fitted.values) ** 2))[:asked, :asked] + np.outer(tick, tick)
    effective = effective[:asked]
    values = (fitted.values + space.rest)[:asked]
    if space.base is not None:
        base = replace(space.base, robot=final.robot)  # with the slopes of friction
        found = consistent_robot(base, space.unknowns[:asked], values, covariance)
    if any(x.quantity is Quantity.STRIBECK for x in whole.unknowns):
        fades = ", ".join(f"{t.velocity:.2g} for '{t.shaft}'" for t in found.drives if t.symbol == "fs")
        notes.append(f"Stribeck friction is taken to fade at the velocity (rad/s or m/s) {fades}")
    notes += [f"shown in combination only: {x.label} = {x.expression}" for x in space.unknowns if x.expression]
    std = np.where(fitted.lost[:asked], np.inf, np.sqrt(np.diag(covariance)))
    late = float(actuated.delay.max() * logs[0].rate)
    if late >= 1.0:
        notes.append(
            f"the delay of {1e3 * actuated.delay.max():.3g} ms is {late:.2g} rows of the log: if the robot is not that "
            "slow, commands are stamped before they are sent, or positions after they are read"
        )
    return ActuatorEstimate(
        robot=found,
        law=actuated,
        unknowns=whole.unknowns,
        values=_filled(whole.values + whole.rest, shown, values),
        std=_filled(np.full(len(shown), np.inf), shown, std),
        prior_values=given,
        covariance=_filled(np.zeros((len(shown), len(shown))), np.outer(shown, shown), covariance.ravel()),
        within_tick=_filled(np.zeros(len(shown)), shown, tick),
        at_bound=_filled(np.zeros(len(shown), bool), shown, fitted.at_bound[:asked]),
        rms=np.sqrt(np.nanmean(np.concatenate(fitted.residuals) ** 2, axis=0)),
        prior_rms=simulated_errors(with_steep_friction(robot, velocity), law, logs, step),
        kp_change=wanted["kp_change"],
        kp_change_std=wanted["kp_change_std"],
        kd_change=wanted["kd_change"],
        kd_change_std=wanted["kd_change_std"],
        negative_delay=fitted.negative_delay,
        rate=logs[0].rate,
        rows=sum(len(x) for x in logs),
        effective_rows=_filled(np.zeros(len(shown)), shown, effective),
        horizon=fitted.horizon,
        iterations=fitted.iterations,
        converged=fitted.converged,
        seconds=time.perf_counter() - started,
        fingerprint=fingerprint([prepare(run, Signals()) for run in recording.runs]),
        notes=tuple(notes),
    )


def _filled(out: NDArray[Any], places: NDArray[np.bool_], values: NDArray[Any]) -> NDArray[Any]:
    """An array with these values at these places."""
    out[places] = values
    return out


def _colored(fitted: Fitted) -> tuple[Array, Array]:
    """Covariance with the autocorrelation and the structure of the residual, and the effective rows of every value.

    The error of a value is the sum of its influence over all rows. Its variance is that of independent rows times the
    number of rows over the number of independent ones. What is left of the motion itself is no noise: it comes back
    with the motion and does not average out, so the share of it that is smooth counts _STRUCTURE times. Correlations
    are those of white noise: what the motion does not tell apart, whatever the noise.
    """
    g = fitted.influence
    effective = np.array([independent_rows(x) for x in g.T])
    std = np.sqrt(np.sum(g**2, axis=0) * len(g) / np.maximum(effective, 1.0) * (1.0 + _STRUCTURE * _smooth_share(g)))
    white = np.sqrt(np.diag(fitted.covariance))
    scale = std / np.where(white > 0, white, np.inf)
    return np.asarray(fitted.covariance * np.outer(scale, scale)), effective


def _smooth_share(x: Array) -> Array:
    """Share of the power of columns (K, C) that is not white: second differences of white noise have six times its."""
    power = np.sum(x**2, axis=0)
    white = np.sum(np.diff(x, 2, axis=0) ** 2, axis=0) / 6.0
    return np.asarray(np.clip(1.0 - white / np.where(power > 0, power, np.inf), 0.0, 1.0) * (power > 0))


def _within_tick(space: ParameterSpace, values: Array) -> Array:
    """Change (C,) of the values by one standard deviation of the moment within a tick at which positions are read.

    Positions that are read p seconds later than the law assumes are p times the velocity ahead: the law has kp p more
    damping, and the delay is p less. Within the step of a simulator, damping acts later as well, which is armature. The
    motion does not show p. A law that is continuous has no ticks, and the timestep of a simulator says when it reads.
    """
    law = space.applied(values)[1]
    if law.rate is None or law.timestep is not None:
        return np.zeros(len(values))
    damping = _by_joint(space, values, Quantity.DAMPING)
    by = {Quantity.ARMATURE: damping, Quantity.DAMPING: law.gain * law.kp, Quantity.DELAY: -np.ones(law.n)}
    return _by_unknown(space, by) * _TICK / law.rate


def _within_step(space: ParameterSpace, values: Array) -> Array:
    """Standard deviations (C,) by the steps of a simulator, zero without them.

    Its solvers differ by errors of second order in the share of the velocity that damping takes in a step.
    """
    timestep = space.law.timestep or 0.0
    armature, damping = (_by_joint(space, values, q) for q in (Quantity.ARMATURE, Quantity.DAMPING))
    lost = np.divide(timestep * damping, armature, out=np.zeros(space.law.n), where=armature > 0)
    share = np.minimum(lost, 1.0) ** 2
    drives = (Quantity.ARMATURE, Quantity.DAMPING, Quantity.FRICTION)
    return np.asarray(values * _by_unknown(space, dict.fromkeys(drives, share)))


def _by_joint(space: ParameterSpace, values: Array, quantity: Quantity) -> Array:
    """An unknown drive term of every joint, zero where it is known."""
    out = np.zeros(space.law.n)
    for x, value in zip(space.unknowns, values, strict=True):
        if x.quantity is quantity:
            out[[space.law.joints.index(j) for j in x.joints]] = value
    return out


def _by_unknown(space: ParameterSpace, figures: dict[Quantity, Array]) -> Array:
    """The mean figure of the joints of every unknown, zero for other quantities."""
    out = np.zeros(len(space.unknowns))
    for k, x in enumerate(space.unknowns):
        if x.quantity in figures:
            out[k] = figures[x.quantity][[space.law.joints.index(j) for j in x.joints]].mean()
    return out


def _law_test(
    space: ParameterSpace, logs: Sequence[Log], fitted: Fitted, step: float | None, still: set[str]
) -> dict[str, Array]:
    """Relative changes of the gains that fit better, and their standard deviations, by the fields of the estimate.

    A derivative gain acts as damping does. It is tested where the damping that was found is zero: only a smaller gain
    explains what would be negative damping.
    """
    law, n = space.law, space.law.n
    found = list(zip(space.unknowns, fitted.at_bound, strict=True))
    stopped = {j for x, bound in found if x.quantity is Quantity.DAMPING and bound for j in x.joints}
    tested: dict[str, list[str]] = {}
    for quantity, gains, joints in ((Quantity.KP, law.kp, set(law.joints) - still), (Quantity.KD, law.kd, stopped)):
        given = {j for x in space.unknowns if x.quantity in (quantity, Quantity.GAIN) for j in x.joints}
        names = [j for j, k in zip(law.joints, gains, strict=True) if k > 0 and j in joints and j not in given]
        if names:
            tested[quantity] = [re.escape(j) for j in names]
    out = {f"{q}_change{end}": np.full(n, np.nan) for q in (Quantity.KP, Quantity.KD) for end in ("", "_std")}
    if not tested:
        return out
    robot, law = space.applied(fitted.values)
    extra = parameter_space(robot, law, tested, logs[0].v).unknowns
    kept = [x for x, bound in found if not (bound and x.quantity is Quantity.DAMPING)]
    wider = ParameterSpace(robot, law, (*kept, *extra))
    wider_fit = refit(wider, logs, wider.values, fitted, step)
    covariance, _ = _colored(wider_fit)
    for k, x in enumerate(extra, len(kept)):
        gains, i = getattr(law, x.quantity), law.joints.index(x.joints[0])
        out[f"{x.quantity}_change"][i] = wider_fit.values[k] / gains[i] - 1.0
        std = np.sqrt(covariance[k, k]) / gains[i]
        out[f"{x.quantity}_change_std"][i] = np.inf if wider_fit.lost[k] else std
    return out
