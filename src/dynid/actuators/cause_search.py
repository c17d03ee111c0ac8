"""Search for unmodeled effects of identified actuators, judged by motion that is not in the fit.

Every candidate is an extension of the law. The torque balance orders them and gives start values; the best ones are
fitted together with everything that was unknown before, in a few steps from the estimate. A candidate is named if it
lowers the error on motion that is not in the fit, most of the time, and if its size is physically sensible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.balance import Balance, Start
from dynid.actuators.causes import ActuatorCause, ActuatorCauses, ActuatorTrial
from dynid.actuators.causes import ActuatorCauseCode as Code
from dynid.actuators.estimate import ActuatorEstimate
from dynid.actuators.fit import Continued, continued
from dynid.actuators.logs import Log, read_logs, still_joints
from dynid.actuators.rollouts import Segments, rollout
from dynid.actuators.unknowns import SYMBOLS, ParameterSpace, Quantity, Unknown, parameter_space, with_soft_friction
from dynid.errors import TooFew
from dynid.progress import Progress, ProgressCallback
from dynid.recording.recording import Recording
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.threads import one_blas_thread

__all__ = ["actuator_causes"]

Array = NDArray[np.float64]

# Effects that are fitted, at most, and the steps of each over short segments (s) and over the fitted horizon.
_FITTED, _SHORT, _SHORT_STEPS, _STEPS = 4, 0.5, 2, 6
# An effect is left if it has not lowered the sum of squares over short segments by this share after those steps, or
# its logarithm by this share of what the best effect has.
_PROMISING, _SHARE_OF_BEST = 0.005, 0.5
# The effect that explains most of the torque balance is fitted anyway, if its residual falls by this share per joint.
_BALANCE = 0.03
# Steps that the best effect goes on for.
_POLISHING = 10
# Without unseen motion: blocks of time, of which every third is left out of the fit, and their fewest rows.
_BLOCKS, _EVERY, _FEWEST = 6, 3, 60
# Seconds after the start of a simulation that are not judged: its filtered initial state is not exact.
_SETTLED = 0.3
_TINY = 1e-12
# Blocks of time in which errors are compared.
_COMPARED = 10
# A cause leaves at most this share of the error of the joint that gains most, in this share of the time.
_LEFT, _BETTER = 0.9, 0.7
# Armature and friction below this share of the largest count as that.
_SMALL_VALUE = 0.05
# Least friction by load and least change of a gain: smaller ones are errors of simulations (soft friction, long steps).
_LEAST_SHARE = 0.02
# Another cause explains as much if its sum of logarithms reaches this share of that of the best.
_ALIKE = 0.85
# A joint has a cause if its error falls too, and its size is this share of the largest.
_OWN_LEFT, _OWN_SIZE = 0.95, 0.1


@dataclass(frozen=True, eq=False)
class _Effect:
    """A candidate: quantities that are unknown too, or another kind of law."""

    code: Code
    quantities: tuple[Quantity, ...] = ()
    law: Mapping[str, Any] = field(default_factory=dict)
    shared: bool = False


_EFFECTS = (
    _Effect(Code.BACKLASH, (Quantity.BACKLASH,)),
    _Effect(Code.LOAD_FRICTION, (Quantity.LOAD_FRICTION,)),
    _Effect(Code.SATURATION, (Quantity.TORQUE_LIMIT,)),
    _Effect(Code.MOTOR_LINE, (Quantity.STALL_TORQUE, Quantity.NO_LOAD_VELOCITY)),
    _Effect(Code.STRIBECK, (Quantity.STRIBECK,)),
    _Effect(Code.DELAY, (Quantity.DELAY,), shared=True),
    _Effect(Code.FEEDBACK_DELAY, law={"delayed": "torque"}),
    _Effect(Code.VELOCITY_TARGET, law={"velocity_target": "command"}),
    _Effect(Code.ENCODER_OFFSET, (Quantity.BIAS,)),
    _Effect(Code.GAIN, (Quantity.KP,)),
)


@dataclass(frozen=True, eq=False)
class _Errors:
    """Residuals (K, n) of all logs, one after the other, and the range (n,) of the measured positions."""

    residual: Array
    range: Array

    @property
    def rms(self) -> Array:
        return np.asarray(np.sqrt(np.mean(self.residual**2, axis=0)))

    @property
    def noise(self) -> Array:
        """Standard deviation (n,) of the part that is white: second differences have six times its variance."""
        return np.asarray(np.sqrt(np.mean(np.diff(self.residual, 2, axis=0) ** 2, axis=0) / 6.0))


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Robot and law with an effect, and the errors on motion that is not in the fit and in it."""

    effect: _Effect | None
    robot: Robot
    law: ActuatorLaw
    unseen: _Errors
    fitted: _Errors
    begun: _Begun | None = None


@dataclass(frozen=True, eq=False)
class _Begun:
    """An effect after its first steps."""

    effect: _Effect
    space: ParameterSpace
    values: Array
    cost: float
    score: float


def actuator_causes(
    estimate: ActuatorEstimate,
    recording: Recording,
    unseen: Recording | None = None,
    *,
    step: float | None = None,
    progress: ProgressCallback | None = None,
) -> ActuatorCauses:
    """Search for unmodeled effects of identified actuators.

    Backlash, friction by load, a torque limit, the line of a DC motor, Stribeck friction, a delay that was given,
    a delay of the torque instead of the command, a velocity target, an offset of the encoders and another
    proportional gain compete with each other, with noise alone, and with something else.

    Parameters
    ----------
    estimate : ActuatorEstimate
    recording : Recording
        The recording that was fitted.
    unseen : Recording, optional
        Other motion, by which the effects are judged. Without it, blocks of time are left out of the fits.
    step : float, optional
        Largest integration step in s, as in `identify_actuators`.
    progress : callable, optional
        Called with a `Progress`.

    Returns
    -------
    ActuatorCauses
        For `ActuatorEstimate.with_causes`, which lets `assess_actuators` name them.

    Raises
    ------
    DataError
        If the recordings do not fit the robot, or are too short to leave blocks of time out.
    """
    fit_logs, judge_logs = _logs(estimate, recording, unseen)
    search = _Search(estimate, fit_logs, judge_logs, step, progress)
    with one_blas_thread():
        before = search.baseline()
        starts = search.starts()
        begun = [b for effect, start in starts[:_FITTED] if (b := search.begun(effect, start)) is not None]
        promising = search.promising(begun)
        tried = [x for one in promising if (x := search.finished(one, len(promising))) is not None]
        tried = search.polished(before, tried)
    search.told("compared effects", 1.0)
    return _compared(search, before, tried, unseen is not None)


def _logs(estimate: ActuatorEstimate, recording: Recording, unseen: Recording | None) -> tuple[list[Log], list[Log]]:
    """Logs to fit, and logs to judge by."""
    logs = read_logs(estimate.robot, estimate.law, recording)
    if unseen is not None:
        return logs, read_logs(estimate.robot, estimate.law, unseen)
    parts = []
    for log in logs:
        count = min(_BLOCKS, len(log) // _FEWEST)
        edges = np.linspace(0, len(log), count + 1).astype(int)
        parts += [log.rows(int(a), int(b)) for a, b in pairwise(edges)]
    if len(parts) < _EVERY:
        raise TooFew(f"{len(logs[0])} rows are too few to leave any out: give a recording that was not fitted")
    left_out = [k % _EVERY == 1 for k in range(len(parts))]
    return (
        [x for x, out in zip(parts, left_out, strict=True) if not out],
        [x for x, out in zip(parts, left_out, strict=True) if out],
    )


class _Search:
    """The estimate, the logs, and the fits of effects."""

    def __init__(
        self,
        estimate: ActuatorEstimate,
        logs: list[Log],
        judged: list[Log],
        step: float | None,
        progress: ProgressCallback | None,
    ) -> None:
        self.robot, self.law, self.logs, self.judged, self.step = estimate.robot, estimate.law, logs, judged, step
        self.horizon, self.progress, self.done, self.short = estimate.horizon, progress, 0, np.inf
        self.velocity = np.concatenate([x.v for x in logs])
        self.still = still_joints(self.law, logs)
        self.unknowns = tuple(x for x in estimate.unknowns if not x.joints or not self.still.issuperset(x.joints))
        self.sigma = np.maximum(estimate.rms, 1e-5 * np.max([np.ptp(x.measured, axis=0) for x in logs], axis=0))

    def told(self, what: str, share: float) -> None:
        """Report progress."""
        if self.progress is not None:
            self.progress(Progress(what, share))

    def baseline(self) -> _Fitted:
        """The estimate, fitted again as every effect is."""
        self.told("judging the estimate", 0.0)
        space = self._space(_Effect(Code.UNKNOWN), self.robot, self.law)
        found = self._continued(space, [space.values], self.horizon, self.sigma, _STEPS)
        if found is not None:
            self.robot, self.law = space.applied(found.values)
            space = replace(space, robot=self.robot, law=self.law)
        short = self._continued(space, [space.values], _SHORT, self.sigma, _SHORT_STEPS + 1)
        self.short = np.inf if short is None else short.cost
        robot, law = self.robot, self.law
        return _Fitted(None, robot, law, self._errors(robot, law, self.judged), self._errors(robot, law, self.logs))

    def starts(self) -> list[tuple[_Effect, Start]]:
        """Effects with what the torque balance says about them, the best first."""
        self.told("torque balance", 0.1)
        balance = Balance(self.robot, self.law, self.unknowns, self.logs)
        none = balance.start("")
        found = []
        for effect in self.effects():
            start = balance.start(str(effect.code), self.law.changed(**effect.law))
            found.append((effect, replace(start, score=start.score - none.score)))
        return sorted(found, key=lambda x: x[1].score)

    def effects(self) -> Iterator[_Effect]:
        """Effects that the law does not have, and that the log could show."""
        have = {x.quantity for x in self.unknowns}
        law = self.law
        gains = bool(np.any(law.kp > 0)) and self.logs[0].commands.position is not None
        for effect in _EFFECTS:
            if have.intersection(effect.quantities) or (effect.code is Code.GAIN and Quantity.GAIN in have):
                continue
            if effect.code in (Code.SATURATION, Code.MOTOR_LINE) and np.isfinite(law.torque_limit).any():
                continue
            if effect.code is Code.MOTOR_LINE and np.isfinite(law.stall_torque).any():
                continue
            if any(getattr(law, name) == value for name, value in effect.law.items()):
                continue
            if effect.code is Code.VELOCITY_TARGET and not np.any(law.kd > 0):
                continue
            if effect.code is Code.FEEDBACK_DELAY and not (Quantity.DELAY in have or np.any(law.delay > 0)):
                continue
            if not gains and effect.code not in (Code.LOAD_FRICTION, Code.STRIBECK, Code.DELAY):
                continue
            yield effect

    def begun(self, effect: _Effect, start: Start) -> _Begun | None:
        """The first steps of an effect over short segments; None if they do not explain more."""
        self.done += 1
        self.told(f"trying {_spoken(effect)}", 0.1 + 0.5 * (self.done - 1) / _FITTED)
        law = self.law.changed(**effect.law)
        own = {str(q) for q in effect.quantities}
        space = self._space(effect, self.robot, law.changed(**{k: x for k, x in start.fields.items() if k in own}))
        scanned = self._space(effect, _with_drives(self.robot, start.drives), law.changed(**start.fields))
        starts = [space.values, np.maximum(scanned.values, scanned.least)]
        if effect.quantities and not {Quantity.TORQUE_LIMIT, Quantity.STALL_TORQUE}.intersection(effect.quantities):
            starts.append(self._space(effect, self.robot, law).values)
        found = self._continued(space, starts, _SHORT, self.sigma, _SHORT_STEPS)
        return None if found is None else _Begun(effect, space, found.values, found.cost, start.score)

    def promising(self, begun: Sequence[_Begun]) -> list[_Begun]:
        """Effects that explain more after their first steps, and the first one by the torque balance."""
        least = min((x.cost for x in begun), default=np.inf)
        enough = min(self.short * (least / self.short) ** _SHARE_OF_BEST, (1.0 - _PROMISING) * self.short)
        first = min(begun, key=lambda x: x.score, default=None)
        return [x for x in begun if x.cost <= enough or (x is first and x.score < -_BALANCE * self.law.n)]

    def finished(self, begun: _Begun, count: int) -> _Fitted | None:
        """The fit of an effect over the whole horizon; None if simulations diverge."""
        self.done += 1
        self.told(f"fitting {_spoken(begun.effect)}", min(0.6 + 0.4 * (self.done - _FITTED) / (count + 1), 1.0))
        space = begun.space
        found = self._continued(space, [begun.values], _SHORT, self.sigma, _STEPS)
        if found is None:
            return None
        robot, law = space.applied(found.values)
        sigma = np.clip(self._errors(robot, law, self.logs).rms, 0.1 * self.sigma, 10.0 * self.sigma)
        found = self._continued(space, [found.values], self.horizon, sigma, _STEPS) or found
        return self._judged(replace(begun, values=found.values, cost=found.cost))

    def polished(self, before: _Fitted, tried: Sequence[_Fitted]) -> list[_Fitted]:
        """The same, with more steps for the one that explains most."""
        if not tried:
            return []
        best = min(tried, key=lambda x: float(np.sum(np.log(x.unseen.rms / np.maximum(before.unseen.rms, _TINY)))))
        assert best.begun is not None
        begun, sigma = best.begun, np.maximum(best.fitted.rms, 0.1 * self.sigma)
        found = self._continued(begun.space, [begun.values], self.horizon, sigma, _POLISHING)
        better = None if found is None else self._judged(replace(begun, values=found.values, cost=found.cost))
        return [better if x is best and better is not None else x for x in tried]

    def _judged(self, begun: _Begun) -> _Fitted | None:
        """The errors with an effect; None where a simulation diverges."""
        robot, law = begun.space.applied(begun.values)
        unseen, fitted = (self._errors(robot, law, logs) for logs in (self.judged, self.logs))
        finite = np.isfinite(unseen.rms).all() and np.isfinite(fitted.rms).all()
        return _Fitted(begun.effect, robot, law, unseen, fitted, begun) if finite else None

    def _space(self, effect: _Effect, robot: Robot, law: ActuatorLaw) -> ParameterSpace:
        """The unknowns of the estimate and those of an effect, of the joints that move."""
        extra: tuple[Unknown, ...] = ()
        if effect.quantities:
            sharing = "shared" if effect.shared else "joint"
            spec: dict[str, str | Sequence[str]] = {str(q): sharing for q in effect.quantities}
            wider = parameter_space(robot, law, spec, self.velocity)
            robot, law = wider.robot, wider.law
            extra = tuple(x for x in wider.unknowns if not self.still.issuperset(x.joints))
        return with_soft_friction(ParameterSpace(robot, law, (*self.unknowns, *extra)), self.velocity)

    def _continued(
        self, space: ParameterSpace, starts: Sequence[Array], horizon: float, sigma: Array, steps: int
    ) -> Continued | None:
        """A few steps from the best start over segments of one horizon."""
        return continued(
            space, self.logs, starts, horizon=min(horizon, self.horizon), sigma=sigma, step=self.step, steps=steps
        )

    def _errors(self, robot: Robot, law: ActuatorLaw, logs: Sequence[Log]) -> _Errors:
        """Simulate logs from their first row, or in segments of the fitted horizon."""
        out = []
        for log in logs:
            length = min(len(log) - 1, max(2, round(self.horizon * log.rate)))
            first = np.arange(0, len(log) - 1, length)
            start = Segments(first, length, log.q[first] - law.bias, log.v[first])
            found = rollout(robot, law, log.commands, start, step=self.step)
            after = min(round(_SETTLED * log.rate), length // 4) + 1
            rows = first[:, None] + np.arange(after, length + 1)
            inside = rows < len(log)
            error = log.measured[rows[inside]] - law.bias - found.q[:, after:][inside]
            out.append(np.where(np.isfinite(error), error, np.inf))
        return _Errors(np.concatenate(out), np.max([np.ptp(x.measured, axis=0) for x in logs], axis=0))


def _spoken(effect: _Effect) -> str:
    """An effect in progress messages."""
    return effect.code.replace("_", " ")


def _with_drives(robot: Robot, drives: Mapping[Quantity, Array]) -> Robot:
    """The robot with these drive terms per joint."""
    values = {
        f"{SYMBOLS[q]}_{joint}": float(x)
        for q, found in drives.items()
        for joint, x in zip(robot.coordinates, found, strict=True)
    }
    return robot.with_parameters(
        np.array([values.get(n, x) for n, x in zip(robot.parameter_names, robot.parameters, strict=True)])
    )


def _compared(search: _Search, before: _Fitted, tried: Sequence[_Fitted], unseen: bool) -> ActuatorCauses:
    """The causes that explain the judged motion best."""
    trials = [(x, _trial(search, before, x)) for x in tried]
    clear = sorted(((x, t) for x, t in trials if _is_clear(t)), key=lambda one: one[1].total)
    alike = _without_nested([one for one in clear if one[1].total <= _ALIKE * clear[0][1].total])
    causes = tuple(_cause(search, before, x, t) for x, t in alike)
    best = (alike[0][0] if alike else before).unseen
    noise = np.maximum(best.noise, _TINY)
    smooth = np.sqrt(np.maximum(best.rms**2 - noise**2, 0.0))
    moves = best.range > SMALL * best.range.max()
    worst = int(np.argmax(np.where(moves, np.minimum(smooth / noise, 1e6) * (smooth / best.range), 0.0)))
    return ActuatorCauses(
        causes,
        tuple(t for _, t in sorted(trials, key=lambda one: one[1].total)),
        sum(1 for _ in search.effects()),
        search.law.joints[worst],
        float(smooth[worst] / noise[worst]),
        float(smooth[worst] / best.range[worst]),
        unseen,
    )


def _without_nested(alike: Sequence[tuple[_Fitted, ActuatorTrial]]) -> list[tuple[_Fitted, ActuatorTrial]]:
    """Explanations without the line of a motor where a limit alone, which is one with an infinite velocity, does."""
    codes = [t.code for _, t in alike]
    simpler = Code.SATURATION in codes and Code.MOTOR_LINE in codes
    kept = [one for one in alike if not (simpler and one[1].code is Code.MOTOR_LINE)]
    return kept if simpler else list(alike)


# Share of the largest range below which a joint does not move.
SMALL = 0.005


def _is_clear(trial: ActuatorTrial) -> bool:
    """Whether an effect explains motion that is not in the fit, and could be one."""
    return trial.sensible and trial.left < _LEFT and trial.better >= _BETTER and trial.total < np.log(_LEFT)


def _trial(search: _Search, before: _Fitted, after: _Fitted) -> ActuatorTrial:
    assert after.effect is not None
    was, now = before.unseen.rms, after.unseen.rms
    size = np.maximum(was, _TINY)
    moves = before.unseen.range > SMALL * before.unseen.range.max()
    ratio = np.where(moves, np.maximum(now, _TINY) / size, 1.0)
    joint = int(np.argmin(ratio))
    blocks = np.array_split(np.arange(len(before.unseen.residual)), _COMPARED)
    better = [
        np.mean(after.unseen.residual[b, joint] ** 2) < np.mean(before.unseen.residual[b, joint] ** 2) for b in blocks
    ]
    return ActuatorTrial(
        after.effect.code,
        search.law.joints[joint],
        float(was[joint]),
        float(now[joint]),
        float(before.fitted.rms[joint]),
        float(after.fitted.rms[joint]),
        float(np.sum(np.log(ratio))),
        float(np.mean(better)),
        _sensible(search, before, after),
    )


def _sensible(search: _Search, before: _Fitted, after: _Fitted) -> bool:
    """Whether the size of an effect, where it acts, can be one."""
    assert after.effect is not None
    own = _own(search, before, after)
    if not own.any() or not np.isfinite(after.unseen.rms).all():
        return False
    low, high = _sizes_between(search, after)
    value = _value(search, after)
    return bool(np.all((value > low)[own]) and np.all((value < high)[own]))


def _value(search: _Search, after: _Fitted) -> Array:
    """Size (n,) of an effect, positive."""
    assert after.effect is not None
    law = after.law
    match after.effect.code:
        case Code.STRIBECK:
            values = {t.shaft: t.value for t in after.robot.drives if t.symbol == "fs"}
            return np.array([values.get(j, 0.0) for j in law.joints])
        case Code.ENCODER_OFFSET:
            return np.abs(law.bias - search.law.bias)
        case Code.GAIN:
            return np.abs(law.kp / np.where(search.law.kp > 0, search.law.kp, np.inf) - 1.0)
        case Code.VELOCITY_TARGET:
            return np.ones(law.n)
        case Code.DELAY | Code.FEEDBACK_DELAY:
            return np.asarray(law.delay)
        case _:
            return np.asarray(getattr(law, after.effect.quantities[0]))


def _sizes_between(search: _Search, after: _Fitted) -> tuple[Array, Array]:
    """Least and largest size (n,) that makes sense."""
    assert after.effect is not None
    n, motion = search.law.n, after.fitted.range
    largest = np.zeros(n)
    match after.effect.code:
        case Code.BACKLASH | Code.ENCODER_OFFSET:
            return largest, np.minimum(0.3, motion)
        case Code.LOAD_FRICTION:
            return largest + _LEAST_SHARE, np.ones(n)
        case Code.DELAY | Code.FEEDBACK_DELAY:
            return largest - 1.0, np.full(n, 0.1)
        case Code.GAIN:
            return largest + _LEAST_SHARE, np.full(n, 10.0)
        case _:
            return largest, np.full(n, np.inf)


def _own(search: _Search, before: _Fitted, after: _Fitted) -> NDArray[np.bool_]:
    """Joints (n,) at which an effect acts: their errors fall, and the size is no small share of the largest."""
    assert after.effect is not None
    falls = after.unseen.rms < _OWN_LEFT * before.unseen.rms
    if after.effect.code in (Code.SATURATION, Code.MOTOR_LINE):
        return np.asarray(falls & np.isfinite(_value(search, after)))
    value = _value(search, after)
    return np.asarray(falls & (value >= _OWN_SIZE * np.max(np.where(falls, value, 0.0), initial=0.0)))


def _cause(search: _Search, before: _Fitted, after: _Fitted, trial: ActuatorTrial) -> ActuatorCause:
    """A cause with its words, sizes and remedy."""
    assert after.effect is not None
    effect, law = after.effect, after.law
    own = _own(search, before, after)
    joints = tuple(j for j, one in zip(law.joints, own, strict=True) if one)
    slides = {j.name for j in search.robot.joints if j.kind == "prismatic"}
    turns = not slides.intersection(joints)
    of_all = effect.code in (Code.DELAY, Code.FEEDBACK_DELAY, Code.VELOCITY_TARGET)
    value = _value(search, after)
    sizes = {j: float(x) for j, x, one in zip(law.joints, value, own, strict=True) if one}
    unit, what, remedy = _words(effect.code, turns)
    if of_all:
        delay = float(law.delay.max())
        words = what.format(f"{1e3 * delay:.3g} ms")
        sizes = {} if effect.code is Code.VELOCITY_TARGET else {str(Quantity.DELAY): delay}
        joints = ()
    elif effect.code is Code.GAIN:
        change = law.kp / np.where(search.law.kp > 0, search.law.kp, np.inf) - 1.0
        sizes = {j: float(change[law.joints.index(j)]) for j in joints}
        words = what.format(
            _listed({j: f"{100 * abs(x):.0f} % {'above' if x > 0 else 'below'}" for j, x in sizes.items()})
        )
    else:
        words = what.format(_listed({j: f"{x:.2g}{' ' * bool(unit)}{unit}" for j, x in sizes.items()}))
    option = ",".join(effect.quantities)
    changed, was, now = _most_changed(search.unknowns, before.robot, after.robot)
    return ActuatorCause(effect.code, joints, words, sizes, unit, remedy, option, trial, changed, was, now)


def _most_changed(unknowns: Sequence[Unknown], before: Robot, after: Robot) -> tuple[str, float, float]:
    """Label and values of the armature or friction that changes most; small ones count as zero."""
    places = {name: k for k, name in enumerate(before.parameter_names)}
    others = dict(zip(after.parameter_names, after.parameters, strict=True))
    best = ("", 0.0, 0.0, 0.0)
    for quantity in (Quantity.ARMATURE, Quantity.FRICTION):
        own = [(x, x.parameters[0]) for x in unknowns if x.quantity is quantity and not x.expression]
        pairs = [(x.label, float(before.parameters[places[p]]), float(others[p])) for x, p in own]
        floor = _SMALL_VALUE * max((max(a, b) for _, a, b in pairs), default=0.0)
        for label, a, b in pairs:
            size = abs(np.log(max(a, floor) / max(b, floor))) if floor > 0 else 0.0
            best = max(best, (label, a, b, size), key=lambda x: x[3])
    return best[:3]


def _listed(sizes: Mapping[str, str]) -> str:
    """Sizes with their joints, three at most."""
    text = ", ".join(f"{x} in '{j}'" for j, x in list(sizes.items())[:3])
    return text + (f" and more in {len(sizes) - 3} others" if len(sizes) > 3 else "")


def _words(code: Code, turns: bool) -> tuple[str, str, str]:
    """Unit, words around the sizes, and the remedy."""
    angle, torque = ("rad", "N m") if turns else ("m", "N")
    free = "let --unknown contain "
    match code:
        case Code.BACKLASH:
            return angle, "backlash of {}", f"{free}backlash"
        case Code.LOAD_FRICTION:
            return "", "friction that grows with the load, per torque of the motor {}", f"{free}load_friction"
        case Code.SATURATION:
            return torque, "a torque that saturates at {}", f"{free}torque_limit, or command less torque"
        case Code.MOTOR_LINE:
            return (
                torque,
                "a motor whose torque falls with its velocity, from {}",
                f"{free}stall_torque,no_load_velocity, or command slower motion",
            )
        case Code.STRIBECK:
            return torque, "Stribeck friction of {}", f"{free}stribeck"
        case Code.DELAY:
            return "s", "a delay of {}", f"{free}delay"
        case Code.FEEDBACK_DELAY:
            return "s", "a delay of {} in the torque instead of the command", 'give the law delayed = "torque"'
        case Code.VELOCITY_TARGET:
            return "", "a kd that acts on the velocity of the command", 'give the law velocity_target = "command"'
        case Code.ENCODER_OFFSET:
            return angle, "an offset of the encoder of {}", f"{free}bias"
        case _:
            return "", "proportional gains that are not those of the law: {}", "check kp, or let --unknown contain kp"
