"""`identify_flexible`: stiffness, damping, motors, frictions and bodies of a robot with flexible joints."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import UnknownName
from dynid.flexible.estimate import FlexibleEstimate, Sides
from dynid.flexible.rows import (
    EncoderError,
    FlexibleModel,
    FlexibleRows,
    TwoSided,
    advanced,
    link_encoders,
    two_sided,
)
from dynid.flexible.solve import Solution, consistent_links, solve, stiffness_tests
from dynid.recording.recording import Recording
from dynid.robot.drives import drive_kinds
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

__all__ = ["identify_flexible"]

Array = NDArray[np.float64]

# Delays of encoders are found to this accuracy in s.
_DELAY_ACCURACY, _DELAY_ITERATIONS = 1e-6, 6
# Standard deviations by which a delay exceeds what friction of the link could feign.
_BEYOND = 3.0
# An eccentric encoder is taken if it is significant over all joints and its residual decreases by this share: with
# enough data everything is significant.
_LEVEL, _LESS = 0.05, 0.1


def identify_flexible(
    robot: Robot,
    recording: Recording,
    *,
    joints: Sequence[str] | None = None,
    sides: Sides | Literal["auto", "both", "motor"] = "auto",
    link_friction: str = "viscous+coulomb",
    encoder_errors: Sequence[str] | Literal["auto"] = "auto",
    offset_per_run: bool = True,
    tests: bool = True,
    signals: Signals | None = None,
) -> FlexibleEstimate:
    """Identify stiffness, damping and motor inertia of flexible joints, together with bodies and frictions.

    With encoders on motors and links, all parameters are found at once: torques and deflections are the measured
    outputs of one weighted fit. With motor encoders only, the unmeasured deflections follow from the motion of the
    motors, and their effect on the torques gives the stiffness, in a fit over bands that become wider.

    Parameters
    ----------
    robot : Robot
        The robot to be identified. Rotor inertia, friction and offset of a flexible joint are those of its motor;
        springs and force elements act on its link.
    recording : Recording
        Runs with torques and positions of the motors (q) on the joint side and, for both sides, of the links (link_q).
    joints : sequence of str, optional
        The flexible joints. By default those with link encoders, or all joints with motor encoders only.
    sides : {"auto", "both", "motor"}
        Encoders to use; "auto" uses link encoders where the recording has some.
    link_friction : str
        Friction of the links of flexible joints: "none", "viscous", "coulomb" or both joined by "+".
    encoder_errors : "auto" or sequence of {"delay", "eccentricity"}
        Errors of link encoders to be estimated beside their offsets. A delay and viscous friction of the link have the
        same effect on deflections; with a delay there is no viscous link friction. "auto" takes a delay where friction
        of the link would have to be larger than that of the whole joint, and eccentric encoders where they are
        significant.
    offset_per_run : bool
        Whether the encoders have one offset per run, as encoders that count from the start do.
    tests : bool
        Whether nonlinear stiffness (cubic, backlash, hysteresis) is tested; for both sides only.
    signals : Signals, optional
        How runs are filtered.

    Returns
    -------
    FlexibleEstimate

    Raises
    ------
    DataError
        If link encoders are missing, constant or identical to those of the motors, or the motion does not determine
        the parameters.

    Examples
    --------
    >>> import dynid
    >>> from dynid.flexible import identify_flexible
    >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    >>> recording = dynid.load_recording("run.csv", robot)  # doctest: +SKIP
    >>> identify_flexible(robot, recording).stiffness  # doctest: +SKIP
    """
    settings = signals or Signals()
    if sides not in ("auto", *Sides):
        raise UnknownName(f"sides '{sides}' is unknown: use auto, both or motor", "sides")
    measured = any(run.link_q is not None for run in recording.runs)
    if sides == Sides.MOTOR or (sides == "auto" and not measured):
        from dynid.flexible.motor_side import identify_motor_side

        return identify_motor_side(robot, recording, joints, link_friction, settings)
    flexible = link_encoders(robot, recording, joints)
    motions = tuple(two_sided(robot, run, flexible, settings) for run in recording.runs)
    fitting = _Fitting(robot, flexible, motions, settings, offset_per_run)
    if encoder_errors == "auto":
        found = _automatic(fitting, link_friction)
    else:
        errors = tuple(EncoderError(e) for e in _known(encoder_errors))
        found = fitting.fit(link_friction, errors)
    return _estimate(found, settings, tests)


def _known(errors: Sequence[str]) -> Sequence[str]:
    wrong = [e for e in errors if e not in tuple(EncoderError)]
    if wrong:
        raise UnknownName(f"encoder error '{wrong[0]}' is unknown: use {', '.join(EncoderError)}", "errors")
    return [e for e in EncoderError if e in errors]


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A solution with its rows and the delays (n,) that the links were advanced by."""

    rows: FlexibleRows
    solution: Solution
    delays: Array
    runs: int


@dataclass(frozen=True, eq=False)
class _Fitting:
    """Filtered runs of a robot whose flexible joints can be fitted in several forms."""

    robot: Robot
    joints: tuple[str, ...]
    motions: tuple[TwoSided, ...]
    signals: Signals
    per_run: bool

    def fit(self, link_friction: str, errors: tuple[EncoderError, ...]) -> _Fitted:
        """Fit all unknowns; the links are advanced until no delay is left."""
        if EncoderError.DELAY in errors:
            link_friction = _without_viscous(link_friction)
        model = FlexibleModel(self.robot, self.joints, link_friction)
        delays = np.zeros(self.robot.n)
        for _ in range(_DELAY_ITERATIONS):
            moved = tuple(advanced(m, delays) for m in self.motions)
            rows = FlexibleRows(model, moved, self.signals, errors)
            solution = solve(rows, self.per_run)
            if EncoderError.DELAY not in errors:
                break
            left = _delays_left(solution)
            if np.abs(left).max() < _DELAY_ACCURACY:
                break
            delays[model.flexible] += left
        return _Fitted(rows, solution, delays, solution.unknowns.runs)


def _delays_left(solution: Solution) -> Array:
    u = solution.unknowns
    return np.array([solution.x[u.encoder(k).start] for k in range(u.flexible)])


def _without_viscous(link_friction: str) -> str:
    words = [w.strip() for w in link_friction.split("+") if not w.strip().startswith("viscous")]
    return "+".join(words) or "none"


def _automatic(fitting: _Fitting, link_friction: str) -> _Fitted:
    """A delay where friction cannot explain it, eccentric encoders where they are significant."""
    found = fitting.fit(link_friction, (EncoderError.DELAY,))
    errors: tuple[EncoderError, ...] = (EncoderError.DELAY,)
    if not _delayed(found):
        errors = ()
        found = fitting.fit(link_friction, errors)
    wider = fitting.fit(link_friction, (*errors, EncoderError.ECCENTRICITY))
    return wider if _eccentric(wider, found) else found


def _delayed(found: _Fitted) -> bool:
    """Whether some delay is more than viscous friction of the whole joint on its link could feign."""
    model, solution = found.rows.model, found.solution
    u, std = solution.unknowns, np.sqrt(np.diag(solution.covariance))
    for k, i in enumerate(model.flexible):
        viscous = [
            abs(float(x))
            for x, term in zip(solution.x[u.links :], model.motors.drives, strict=False)
            if term.kind in drive_kinds("viscous") and term.direction[i]
        ]
        c = u.compliance.start + k
        feigned = (abs(solution.x[c]) + 2 * std[c]) * max(viscous, default=0.0)
        at = u.encoder(k).start
        delay = found.delays[i] + solution.x[at]
        if delay > feigned + _BEYOND * std[at] or delay < -_BEYOND * std[at]:
            return True
    return False


def _eccentric(found: _Fitted, without: _Fitted) -> bool:
    """Whether the eccentricity of some link encoder matters and is significant, by F tests with blocks of time."""
    solution = found.solution
    u, n = solution.unknowns, found.rows.model.robot.n
    for k in range(u.flexible):
        if solution.noise[n + k] > (1.0 - _LESS) * without.solution.noise[n + k]:
            continue
        at = np.arange(u.encoder(k).stop - 2, u.encoder(k).stop)
        part = solution.covariance[np.ix_(at, at)]
        statistic = float(solution.x[at] @ np.linalg.pinv(part, hermitian=True) @ solution.x[at]) / 2
        if scipy.stats.f.sf(statistic, 2, solution.freedom) * u.flexible < _LEVEL:
            return True
    return False


def _estimate(found: _Fitted, signals: Signals, tests: bool) -> FlexibleEstimate:
    model, solution = found.rows.model, found.solution
    x, delays = solution.x, found.delays[model.flexible].copy()
    if EncoderError.DELAY in found.rows.errors:
        delays += _delays_left(solution)
    estimate = FlexibleEstimate(
        model=model,
        sides=Sides.BOTH,
        x=x,
        covariance=solution.covariance,
        freedom=solution.freedom,
        runs=found.runs,
        errors=found.rows.errors,
        delays=delays,
        parameters=consistent_links(model, solution.factor),
        noise=solution.noise,
        rows=solution.rows,
        iterations=solution.iterations,
        converged=solution.converged,
        signals=signals,
        tests=stiffness_tests(found.rows, solution) if tests else (),
    )
    return replace(estimate, notes=_notes(estimate))


def _notes(estimate: FlexibleEstimate) -> tuple[str, ...]:
    """What to know about an estimate: unseen elasticity, delays, negative damping."""
    out = []
    for k, joint in enumerate(estimate.joints):
        if not estimate.seen[k]:
            low = estimate.interval(joint)[0]
            out.append(f"no elasticity of '{joint}' is seen: its stiffness is above {low:.3g} with 97.5 % confidence")
        elif estimate.damping[k] < 2 * estimate.damping_std[k]:
            out.append(f"the damping of '{joint}' cannot be distinguished from zero")
    if EncoderError.DELAY in estimate.errors:
        listed = ", ".join(f"{1e3 * d:.2f}" for d in estimate.delays)
        out.append(
            f"the link encoders lag behind those of the motors by {listed} ms: most of such a difference of positions "
            "is no deflection; viscous friction of the links is left out"
        )
    return tuple(out)
