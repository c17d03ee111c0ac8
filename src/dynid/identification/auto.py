"""Method "auto": friction terms, weight of the prior, signals and estimator, chosen by cross-validation.

The recording is cut into parts of consecutive time. A model is judged by how well each part is predicted from the
others: the relative torque error, mean over the joints. Nothing outside the recording is looked at, and the search is
the same every time. The estimate is always physically consistent, and stays as close to the prior as the errors allow.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, DynidError
from dynid.feasibility.constraints import Constraints, constraint_set
from dynid.feasibility.prior import consistent_prior
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimators.feasible import (
    Preference,
    allowed_excess,
    correlation,
    feasible_fit,
    feasible_solution,
)
from dynid.identification.estimators.irls import robust_scale, weighted_rows
from dynid.identification.estimators.options import MethodOptions, check_choice
from dynid.identification.estimators.solution import Choice, Solution, solve_factor
from dynid.identification.loads import default_channels
from dynid.identification.observation import Observation, fold, observe, time_parts
from dynid.identification.parts import Parts, parts_of
from dynid.parameters.base import base_parameters
from dynid.progress import Progress, ProgressCallback
from dynid.recording.recording import Recording
from dynid.robot.drives import parse_friction
from dynid.robot.model import Robot
from dynid.robot.parts import checked
from dynid.signals.settings import Signals

__all__ = ["AutoOptions", "auto"]

Array = NDArray[np.float64]

# Weights of the prior from least squares to the prior itself.
_WEIGHTS = 10.0 ** np.arange(-6.0, 7.0)
# Friction of a joint: what the command line and `Robot.with_drives` call it.
_FRICTIONS = (
    "none",
    "offset",
    "viscous",
    "coulomb",
    "viscous+coulomb",
    "coulomb+offset",
    "viscous+coulomb+offset",
    "viscous-asymmetric+coulomb+offset",
)
_RICH = "viscous-asymmetric+coulomb+offset"
# A model with more terms, another delay or another cut-off must lower the error by this share of it.
_WORTH, _WORTH_OF_SIGNALS = 0.002, 0.03
# Among weights whose errors differ by no more than this share the largest is taken: it stays closest to the prior.
_EQUAL = 0.01
# Delays that are tried in turn, later first and then earlier, as long as the error decreases, in s.
_DELAYS = (0.004, 0.008, 0.016, 0.032)
_CUTOFFS = (0.5, 2.0)  # times the automatic one
_SWEEPS = 3
# A total mass further from the prior than this factor is worth a remark.
_FAR = 3.0
_WEIGHTED, _NEAREST, _ROBUST = "feasible, weighted prior", "feasible, nearest to the prior", "feasible, Huber weights"


@dataclass(frozen=True, eq=False, kw_only=True)
class AutoOptions(MethodOptions):
    """Options of method "auto".

    Attributes
    ----------
    friction : {"choose", "given"}, default "choose"
        Whether friction terms and rotor inertia of each joint are chosen, or are those of the robot.
    filters : {"choose", "given"}, default "choose"
        Whether delay and cut-off frequency are chosen, or are those of the signals.
    prior : array_like, shape (p,), optional
        A-priori standard parameters of the robot; by default its own.
    constraints : str or sequence of constraints, default "full"
        What makes a robot physically consistent, as for method "feasible".
    parts : int, default 5
        Number of parts of the time, each of which is predicted from the others.
    """

    friction: Literal["choose", "given"] = "choose"
    filters: Literal["choose", "given"] = "choose"
    prior: ArrayLike | None = None
    constraints: Constraints = "full"
    parts: int = 5

    def __post_init__(self) -> None:
        check_choice("friction", self.friction, ("choose", "given"))
        check_choice("filters", self.filters, ("choose", "given"))
        constraint_set(self.constraints)
        if isinstance(self.parts, bool) or not isinstance(self.parts, int) or self.parts < 2:
            raise DataError(f"parts must be a whole number of at least two, got {self.parts!r:.40}")


@dataclass(frozen=True)
class _Drives:
    """Friction of each joint by name and whether it has a rotor inertia; None where the robot's own terms stay."""

    friction: tuple[str | None, ...]
    rotor: tuple[bool | None, ...]

    def changed(self, joint: int, friction: str, rotor: bool) -> _Drives:
        return _Drives(
            (*self.friction[:joint], friction, *self.friction[joint + 1 :]),
            (*self.rotor[:joint], rotor, *self.rotor[joint + 1 :]),
        )

    def words(self, joint: int) -> str:
        name = self.friction[joint]
        return "as given" if name is None else name + (" + rotor inertia" if self.rotor[joint] else "")


def auto(
    robot: Robot,
    data: Recording | Observation,
    options: AutoOptions,
    *,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    progress: ProgressCallback | None = None,
) -> tuple[Solution, Observation, tuple[Choice, ...]]:
    """Choose a model by cross-validation and fit it; an observation keeps its drive terms and signals."""
    report = _Steps(progress)
    free: tuple[int, ...] = ()
    if options.friction == "choose" and isinstance(data, Recording):
        measured = base_parameters(robot, channels=default_channels(robot, data) if channels is None else channels)
        free = _free_joints(robot, measured.channels)
    rich = _with(robot, _start(robot, free, _RICH, True))
    settings = signals or Signals()
    report("reading the motion", 0.05)
    seen = data if isinstance(data, Observation) else observe(rich, data, signals=settings, channels=channels)
    prior = None if options.prior is None else _carried(robot, rich, options.prior)
    parts = parts_of(seen, options.parts, prior)
    choices: list[Choice] = []
    report("friction", 0.2)
    drives, weight = _choose_drives(parts, robot, free, choices, lambda share: report("friction", 0.2 + 0.4 * share))
    chosen = _with(robot, drives)
    if isinstance(data, Recording):
        if options.filters == "choose":
            terms = _terms(rich, drives)
            settings = _choose_signals(
                parts, data, settings, terms, weight, choices, lambda share: report("filters", 0.6 + 0.2 * share)
            )
        seen = observe(chosen, data, signals=settings, channels=channels)
    report("estimator", 0.85)
    prior = None if options.prior is None else _carried(robot, chosen, options.prior)
    solution = _choose_estimator(parts_of(seen, options.parts, prior), options, weight, choices)
    return solution, seen, tuple(choices)


class _Steps:
    """Progress of the search; the time left follows from the share that is done."""

    def __init__(self, progress: ProgressCallback | None) -> None:
        self._progress, self._started = progress, time.perf_counter()

    def __call__(self, what: str, share: float) -> None:
        if self._progress is None:
            return
        spent = time.perf_counter() - self._started
        left = spent * (1 - share) / share if share > 0.1 else None
        self._progress(Progress(f"choosing a model: {what}", share, left))


# -- drive terms ------------------------------------------------------------------------------------------------------


def _free_joints(robot: Robot, channels: Sequence[str]) -> tuple[int, ...]:
    """Joints whose torque is measured and whose friction is not modelled on the motor side."""
    held = np.array([name not in channels for name in robot.coordinates])
    for term in robot.drives:
        if term.motor and not term.cross_only and term.symbol != "Ia":
            held |= np.abs(term.direction) > 0.5
    return tuple(int(j) for j in np.flatnonzero(~held))


def _start(robot: Robot, free: Sequence[int], friction: str, rotor: bool) -> _Drives:
    """The same friction and rotor inertia on all joints that are free to choose."""
    return _Drives(
        tuple(friction if j in free else None for j in range(robot.n)),
        tuple(rotor if j in free else None for j in range(robot.n)),
    )


def _with(robot: Robot, drives: _Drives) -> Robot:
    """The robot with chosen drive terms; joints that are not free to choose keep theirs."""
    free = [j for j, name in enumerate(drives.friction) if name is not None]
    if not free:
        return robot
    names = robot.coordinates
    kept = [t for t in robot.drives if not t.motor and t.function is None and t.owner not in free and t.symbol != "k"]
    friction = {names[j]: str(drives.friction[j]) for j in free}
    rotors = [names[j] for j in free if drives.rotor[j]]
    return robot.with_drives(friction, rotor_inertia=rotors).with_terms(*kept)


def _terms(rich: Robot, drives: _Drives) -> Array:
    """Matrix (p, k) from the parameters of a model with chosen drive terms to those of the robot with all terms."""
    columns = []
    for i, parameter in enumerate(rich.layout):
        unit = np.zeros(len(rich.layout))
        unit[i] = 1.0
        joint = rich.coordinates.index(parameter.owner) if parameter.owner in rich.coordinates else -1
        name = None if parameter.inertial or joint < 0 else drives.friction[joint]
        if name is None or parameter.symbol == "k":
            columns.append(unit)
        elif parameter.symbol == "Ia":
            if drives.rotor[joint]:
                columns.append(unit)
        elif parameter.symbol == "fvp":
            other = rich.parameter_names.index(f"fvn_{parameter.owner}")
            if "viscous-asymmetric" in name:
                columns += [unit, np.eye(len(unit))[other]]
            elif "viscous" in name:
                unit[other] = 1.0
                columns.append(unit)
        elif (
            (parameter.symbol == "fc" and "coulomb" in name)
            or (parameter.symbol == "off" and "offset" in name)
            or parameter.symbol not in ("fvn", "fc", "off")
        ):
            columns.append(unit)
    return np.array(columns).T


def _choose_drives(
    parts: Parts, robot: Robot, free: Sequence[int], choices: list[Choice], report: Callable[[float], None]
) -> tuple[_Drives, float]:
    """Drive terms of each joint and the weight of the prior with the smallest error."""
    rich = parts.robot

    def error(drives: _Drives, weight: float) -> float:
        return float(np.mean(parts.cross_validated(weight, _terms(rich, drives))))

    options = [(name, rotor) for name in _FRICTIONS for rotor in (False, True)]
    same = [_start(robot, free, name, rotor) for name in (_FRICTIONS if free else ("",)) for rotor in (False, True)]
    table = [[error(drives, weight) for weight in _WEIGHTS] for drives in (same if free else same[:1])]
    drives = same[int(np.argmin(np.min(table, axis=1)))]
    errors = np.min(table, axis=0)
    weight, best = _WEIGHTS[int(np.argmin(errors))], float(np.min(errors))
    for sweep in range(_SWEEPS if free else 0):
        before = drives
        for k, joint in enumerate(free):
            report((sweep + k / len(free)) / _SWEEPS)
            trials = {option: error(drives.changed(joint, *option), weight) for option in options}
            least = min(trials, key=lambda option: trials[option])
            if trials[least] < (1 - _WORTH) * best:
                drives, best = drives.changed(joint, *least), trials[least]
        errors = np.array([error(drives, w) for w in _WEIGHTS])
        weight, best = _WEIGHTS[int(np.argmin(errors))], float(np.min(errors))
        if drives == before:
            break
    # The simplest terms of each joint that predict as well.
    current, limit = best, (1 + _EQUAL) * best
    for joint in free:
        trials = {option: error(drives.changed(joint, *option), weight) for option in options}
        simplest = min(
            (option for option, loss in trials.items() if loss <= min((1 + _WORTH) * current, limit)), key=_terms_of
        )
        drives, current = drives.changed(joint, *simplest), trials[simplest]
        what = f"friction of {robot.coordinates[joint]}"
        choices += [
            Choice(what, drives.changed(joint, *option).words(joint), loss, option == simplest)
            for option, loss in trials.items()
        ]
    errors = np.array([error(drives, w) for w in _WEIGHTS])
    best = float(np.min(errors))
    weight = float(_WEIGHTS[np.flatnonzero(errors <= (1 + _EQUAL) * best)[-1]])
    choices += [
        Choice("weight of the prior (without constraints)", f"{w:g}", float(e), bool(w == weight))
        for w, e in zip(_WEIGHTS, errors, strict=True)
    ]
    return drives, weight


def _terms_of(option: tuple[str, bool]) -> int:
    """Number of parameters of a friction model and a rotor inertia."""
    return len(parse_friction(option[0])) + option[1]


def _carried(robot: Robot, other: Robot, prior: ArrayLike) -> Array:
    """A-priori parameters of a robot as those of the same robot with other drive terms."""
    given = checked(prior, (len(robot.layout),), "prior", DataError)
    values = dict(zip(robot.parameter_names, given, strict=True))
    own = dict(zip(other.parameter_names, other.with_drives().parameters, strict=True))
    return np.array([values.get(name, own[name]) for name in other.parameter_names])


# -- signals ----------------------------------------------------------------------------------------------------------


def _choose_signals(
    parts: Parts,
    recording: Recording,
    settings: Signals,
    terms: Array,
    weight: float,
    choices: list[Choice],
    report: Callable[[float], None],
) -> Signals:
    """Delay and cut-off frequency with the smallest error; those given unless another is clearly better."""

    def trial(signals: Signals) -> Parts:
        seen = observe(parts.robot, recording, signals=signals, base=parts.observation.base)
        return replace(parts, observation=seen, factors=tuple(time_parts(seen, len(parts.factors))))

    best, chosen = float(np.mean(parts.cross_validated(weight, terms))), settings
    trials = [Choice("delay", _delay(settings), best, True)]
    for direction in (1.0, -1.0):
        for delay in _DELAYS:
            report(0.1 * len(trials))
            other = replace(settings, delay=settings.delay + direction * delay)
            shifted = trial(other)
            loss = float(np.mean(shifted.cross_validated(weight, terms)))
            trials.append(Choice("delay", _delay(other), loss, False))
            if loss >= (1 - _WORTH_OF_SIGNALS) * best:
                break
            chosen, best, parts = other, loss, shifted
        if chosen is not settings:
            break
    choices += [replace(c, chosen=c.option == _delay(chosen)) for c in trials]
    cutoffs = [c for c in parts.observation.cutoffs if c is not None]
    if settings.cutoff != "auto" or not cutoffs:
        return chosen
    # A fit to more or less filtered signals is judged by the same torques.
    automatic, filtered = float(np.median(cutoffs)), chosen
    trials = [Choice("cut-off", _cutoff(chosen, automatic), best, True)]
    for k, factor in enumerate(_CUTOFFS):
        report(0.7 + 0.3 * k / len(_CUTOFFS))
        other = replace(filtered, cutoff=factor * automatic)
        try:
            loss = float(np.mean(trial(other).cross_validated(weight, terms, parts)))
        except DataError:  # above half of the sampling rate, or too low for the length of a run
            continue
        trials.append(Choice("cut-off", _cutoff(other, automatic), loss, False))
        if loss < (1 - _WORTH_OF_SIGNALS) * best:
            chosen, best = other, loss
    choices += [replace(c, chosen=c.option == _cutoff(chosen, automatic)) for c in trials]
    return chosen


def _delay(signals: Signals) -> str:
    return f"{1000 * signals.delay:g} ms"


def _cutoff(signals: Signals, automatic: float) -> str:
    return f"{automatic:.3g} Hz (automatic)" if signals.cutoff == "auto" else f"{signals.cutoff:.3g} Hz"


# -- estimator --------------------------------------------------------------------------------------------------------


def _choose_estimator(parts: Parts, options: AutoOptions, weight: float, choices: list[Choice]) -> Solution:
    """The feasible estimate that predicts best, beside estimates without constraints."""
    seen = parts.observation
    base, noise = seen.base, parts.noise
    allowed = feasible_set(base.robot, options.constraints)
    whole = seen.stacked(1.0 / noise)
    nearest = replace(parts.preference, excess=allowed_excess(None, base) * correlation(seen, noise))
    found = feasible_fit(base, allowed, whole, nearest)
    nearest = replace(nearest, weight=found.weight)
    # With less weight than the nearest one, the fit would only follow the noise.
    weighted = replace(parts.preference, weight=max(weight, found.weight))

    def error(fitted: Callable[[Array], Array], factors: Sequence[tuple[Array, ...]], scale: Array) -> float:
        stacks = [np.vstack([f / n for f, n in zip(part, scale, strict=True)]) for part in factors]
        betas = []
        for k in range(len(stacks)):
            betas.append(fitted(fold(np.vstack([x for i, x in enumerate(stacks) if i != k]))))
        return float(np.mean(parts.errors(betas)))

    def consistent(wanted: Preference) -> Callable[[Array], Array]:
        return lambda factor: base.matrix @ feasible_fit(base, allowed, factor, wanted).parameters

    def unconstrained(factor: Array) -> Array:
        return solve_factor(factor, base)[0]

    start = base.matrix @ found.parameters
    robust = time_parts(seen, len(parts.factors), weighted_rows(seen, start, robust_scale(seen, start), "huber"))
    one = np.ones(len(noise))
    trials: list[tuple[str, Callable[[Array], Array], Sequence[tuple[Array, ...]], Array]] = [
        (_WEIGHTED, consistent(weighted), parts.factors, noise),
        (_NEAREST, consistent(nearest), parts.factors, noise),
        (_ROBUST, consistent(weighted), robust, one),
        ("wls", unconstrained, parts.factors, noise),
        ("ols", unconstrained, parts.factors, one),
        ("irls", unconstrained, robust, one),
    ]
    losses: dict[str, float] = {}
    for name, fitted, factors, scale in trials:
        try:
            losses[name] = error(fitted, factors, scale)
        except DynidError:  # without a prior, some part does not show all parameters
            losses[name] = float("inf")
    best = min((_WEIGHTED, _NEAREST, _ROBUST), key=lambda name: losses[name])
    if losses[_WEIGHTED] <= (1 + _WORTH) * losses[best]:
        best = _WEIGHTED
    choices += [Choice("estimator", name, loss, name == best) for name, loss in losses.items()]
    wanted = nearest if best == _NEAREST else weighted
    rows, factor = None, whole
    if best == _ROBUST:
        rows = weighted_rows(seen, start, robust_scale(seen, start), "huber")
        factor = np.vstack([np.vstack(part) for part in robust])
    solution = feasible_solution(base, allowed, fold(factor), noise, wanted)
    assert found.best is not None
    solution = replace(solution, shift=solution.beta - base.matrix @ found.best)
    assert wanted.weight is not None
    notes = [*parts.notes, *_remarks(choices, losses, best, wanted.weight, parts, solution), *solution.notes]
    return replace(solution, notes=tuple(notes), rows=rows)


def _remarks(
    choices: list[Choice], losses: dict[str, float], best: str, weight: float, parts: Parts, solution: Solution
) -> Iterator[str]:
    """What was chosen, and what the recording does not show."""
    seen = parts.observation
    settings = [f"{c.what} {c.option}" for c in choices if c.chosen and c.what in ("delay", "cut-off")]
    yield f"chosen by cross-validation: {', '.join([best, f'weight {weight:.2g}', *settings])}"
    free = min(losses[name] for name in ("wls", "ols", "irls"))
    if free < 0.95 * losses[best]:
        yield (
            f"estimates without constraints predict better ({100 * free:.3g} % against {100 * losses[best]:.3g} %): "
            "the robot has effects that rigid bodies and these drive terms do not describe"
        )
    yield from _mass_remark(parts, solution)
    assert solution.prior_rows is not None
    K, prior = seen.base.matrix, solution.prior_rows
    data = seen.stacked(1.0 / solution.noise)[:, :-1] @ K
    before = np.diag(K @ np.linalg.pinv(prior.T @ prior) @ K.T)
    after = np.diag(K @ np.linalg.pinv(prior.T @ prior + data.T @ data) @ K.T)
    left = [name for name, b, a in zip(seen.base.names, before, after, strict=True) if a > 0.5 * b]
    if left:
        shown = ", ".join(left[:6]) + (", ..." if len(left) > 6 else "")
        yield f"{len(left)} of {len(before)} base parameters stay near the prior, the motion shows too little: {shown}"


def _mass_remark(parts: Parts, solution: Solution) -> Iterator[str]:
    """A remark if the total mass is far from that of the robot's own bodies."""
    robot = parts.robot
    if consistent_prior(robot).complete or solution.parameters is None:
        return
    masses = [i for i, p in enumerate(robot.layout) if p.inertial and p.symbol == "m"]
    total, expected = solution.parameters[masses].sum(), parts.preference.prior[masses].sum()
    if not 1 / _FAR < total / expected < _FAR:
        yield (
            f"the identified robot has {total:.3g} kg, its a-priori bodies {expected:.3g} kg: "
            "check units, signs and gains of the torques"
        )
