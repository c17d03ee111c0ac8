"""Fit friction models to a joint and select one.

    y = W b + F f + C(theta) c + e,    f and c not negative,    covariance = |e|^2 / (n - k) (J'J)^-1

for n independent rows and k parameters, with the columns J of all linear and inner parameters.

Sources: `separable` for the fit, `nested` and `ranking` for the selection.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    Duplicate,
    Infeasible,
    InvalidType,
    InvalidValue,
    MissingArgument,
    NotApplicable,
    NotIdentifiable,
    TooFew,
    UnknownName,
    keyword,
    named,
)
from dynid.friction.map import FrictionMap, map_rows
from dynid.friction.models import FrictionModel, friction_model
from dynid.friction.nested import NestedTest, effective_rows, nested_test
from dynid.friction.pieces import REFERENCE_TEMPERATURE
from dynid.friction.result import FrictionFit, ModelFit
from dynid.friction.rows import FrictionRows, LoadKind, friction_rows, is_prismatic, joint_index
from dynid.friction.separable import SeparableFit
from dynid.friction.solve import held_out_errors, solve
from dynid.hypothesis import corrected
from dynid.identification.estimate import Estimate
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.threads import one_blas_thread

__all__ = ["BUILT_IN_MODELS", "CRITERIA", "DEFAULT_MODELS", "Criterion", "fit_friction", "ranked"]

Array = NDArray[np.float64]


# The order of fitted friction models, the selected one first.
#
#     aic = n log(RSS / N) + 2 k,    bic = n log(RSS / N) + k log n
#
# for N rows, of which n are independent, and k parameters.
#
# Sources: Akaike, A New Look at the Statistical Model Identification (1974); Schwarz, Estimating the Dimension of a
# Model
# (1978); Holm, A Simple Sequentially Rejective Multiple Test Procedure (1979), for the p-values of several larger
# models;
# Hastie, Tibshirani and Friedman, The Elements of Statistical Learning (2009), chapter 7, for one standard error.

Criterion = Literal["f-test", "aic", "bic", "cross-validation"]
Test = Callable[[ModelFit, ModelFit], NestedTest]

CRITERIA = ("f-test", "aic", "bic", "cross-validation")


def ranked(
    rows: FrictionRows,
    fits: list[ModelFit],
    solved: Mapping[str, SeparableFit],
    effective: float,
    criterion: Criterion,
    level: float,
) -> list[ModelFit]:
    """The fits in order, the selected one first, each with its test against the largest fitted model it contains."""

    def test(small: ModelFit, large: ModelFit) -> NestedTest:
        sums = (small.rss, min(large.rss, small.rss))
        counts = (small.parameter_count, large.parameter_count)
        theta = solved[small.model.name].theta
        return nested_test(rows, small.model, large.model, sums, counts, effective, theta)

    tested = [_tested(fit, fits, test) for fit in fits]
    if criterion == "cross-validation":
        errors = {f.name: held_out_errors(rows, f.model, solved[f.name].theta) for f in tested}
        tested = [replace(f, held_out_rms=float(np.sqrt(np.mean(errors[f.name])))) for f in tested]
        return _first(_simplest(tested, errors), sorted(tested, key=lambda f: f.held_out_rms))
    if criterion != "f-test":
        return sorted(tested, key=lambda f: getattr(f, criterion))
    ends = [_climbed(root, tested, test, level) for root in tested if not any(f.model in root.model for f in tested)]
    # Nested tests cannot compare chains without a common model.
    return _first(min(ends, key=lambda f: f.bic), sorted(tested, key=lambda f: f.bic))


def _first(chosen: ModelFit, order: list[ModelFit]) -> list[ModelFit]:
    """The order with the chosen fit in front."""
    return [chosen, *(f for f in order if f is not chosen)]


def _tested(fit: ModelFit, fits: list[ModelFit], test: Test) -> ModelFit:
    """The fit with its test against the largest fitted model that it contains."""
    inside = [f for f in fits if f.model in fit.model]
    if not inside:
        return fit
    before = max(inside, key=lambda f: (f.parameter_count, -f.rss))
    found = test(before, fit)
    return replace(fit, against=before.model.name, statistic=found.statistic, p_value=found.p_value)


def _simplest(fits: list[ModelFit], errors: Mapping[str, Array]) -> ModelFit:
    """The smallest model whose held-out error is larger than the smallest one by at most its standard error.

    A t test of 5 % in place of one standard error left out terms that other motion of two of three real arms needs.
    """
    best = min(fits, key=lambda f: f.held_out_rms)

    def close(fit: ModelFit) -> bool:
        excess = errors[fit.name] - errors[best.name]
        return bool(excess.mean() <= excess.std(ddof=1) / np.sqrt(len(excess)))

    return min((f for f in fits if close(f)), key=lambda f: (f.parameter_count, f.held_out_rms))


def _climbed(root: ModelFit, fits: list[ModelFit], test: Test, level: float) -> ModelFit:
    """From a smallest model, move to the most significant larger one until none is significant."""
    here = root
    while True:
        larger = [f for f in fits if here.model in f.model]
        if not larger:
            return here
        found = [test(here, f) for f in larger]
        adjusted = corrected([min(1.0, max(0.0, t.p_value)) for t in found])
        steps = [(t.log_p, f) for t, f, p in zip(found, larger, adjusted, strict=True) if p < level]
        if not steps:
            return here
        # The smallest model on the path to the most significant one; larger ones are tested again from there.
        here = _next(steps)


def _next(steps: list[tuple[float, ModelFit]]) -> ModelFit:
    """The smallest significant model that is, or is contained in, the most significant one."""
    by_size = sorted({f.parameter_count for _, f in steps})
    for size in by_size:
        own = [(p, f) for p, f in steps if f.parameter_count == size]
        best = min(own, key=lambda x: x[0])[1]
        strongest = min(steps, key=lambda x: x[0])[1]
        if best is strongest or best.model in strongest.model:
            return best
    return min(steps, key=lambda x: x[0])[1]


DEFAULT_MODELS = ("coulomb+viscous", "asymmetric", "tanh", "sigmoid", "stribeck", "power", "load", "stribeck+load")
# Models of built-in drive terms, for offset=False: a saved estimate of a robot with one of these needs nothing else.
BUILT_IN_MODELS = (
    *("viscous", "coulomb", "coulomb+viscous", "coulomb+viscous+offset", "asymmetric", "tanh", "tanh+offset"),
)
# Friction that returns less than this share of its largest power counts as dissipative: rounding.
_RETURNED = 1e-9
# A load below this share of the torque counts as zero.
_NO_EFFECT = 1e-9
# A column counts as dependent if less than this share is orthogonal to the others; decimation leaves about 1e-5 of a
# dependent one.
_HIDDEN = 2e-4


def fit_friction(
    robot: Robot,
    recording: Recording | FrictionMap,
    joint: str | int | None = None,
    *,
    models: Sequence[str] | None = None,
    criterion: Criterion = "f-test",
    estimate: Estimate | None = None,
    signals: Signals | None = None,
    temperature: ArrayLike | Sequence[ArrayLike] | None = None,
    load: LoadKind = "rigid",
    offset: bool = True,
    level: float = 0.05,
) -> FrictionFit:
    """Fit friction models to a joint and select one.

    Coefficients of friction are not negative: a model that would return energy somewhere has them at zero, and says so.
    Standard deviations, F tests and information criteria use the number of independent rows of the residual.

    Parameters
    ----------
    robot : Robot
        Robot with a fixed base. Its own friction terms of this joint are not used.
    recording : Recording or FrictionMap
        Motion of the robot with torques, or friction from `friction_map`.
    joint : str or int, optional
        Name or index of the joint; optional for a friction map and for a robot with one joint.
    models : sequence of str, optional
        Model names, words joined by "+": coulomb, viscous, offset, asymmetric, stribeck, stribeck-shaped, load,
        load-directional, temperature, temperature-exponential, tanh, sigmoid, power, quadratic.
    criterion : {"f-test", "aic", "bic", "cross-validation"}
        Nested F tests with Holm's correction, an information criterion, or the error on blocks of time that are held
        out in turn: the smallest model within one standard error of the best one.
    estimate : Estimate, optional
        Subtract the torques of this estimate. Without it, all base parameters are estimated with the friction.
    signals : Signals, optional
        Signal processing; by default that of the estimate, or the default settings.
    temperature : float or sequence of arrays of shape (N,), optional
        Temperature (deg C), one number or one array per run.
    load : {"rigid", "gravity"}
        Load of load-dependent friction: rigid-body torque, or gravity torque only.
    offset : bool
        Add a constant torque to every model of a recording.
    level : float
        Significance level of the F tests.

    Returns
    -------
    FrictionFit

    Raises
    ------
    DataError
        If the motion does not make friction identifiable, or an argument is not valid.
    ModelError
        If a model name is unknown.

    Examples
    --------
    >>> import numpy as np, dynid
    >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb+offset")
    >>> sweep = dynid.friction.velocity_sweep(robot, 1, [0.1, 0.3, 1.0], between=(-0.5, 0.5))
    >>> t, q, v, a = sweep.sample(500.0)
    >>> torque = dynid.inverse_dynamics(robot, q, v, a) + 0.7 * v
    >>> run = dynid.Run(t, q, torque=torque)
    >>> signals = dynid.Signals(cutoff=None, decimate=(), trim=0.0)
    >>> measured = dynid.friction.friction_map(robot, dynid.Recording(robot.coordinates, (run,)), 1, signals=signals)
    >>> dynid.friction.fit_friction(robot, measured, models=["viscous"]).best.name
    'viscous'
    """
    if criterion not in CRITERIA:
        raise UnknownName(f"{named('criterion')} '{criterion}' is unknown: use {', '.join(CRITERIA)}")
    if not 0 < level < 1:
        raise InvalidValue(f"a significance level lies between 0 and 1, got {level}", "level")
    if criterion == "cross-validation" and isinstance(recording, FrictionMap):
        raise NotApplicable(
            "a friction map has no blocks of time to hold out: cross-validation needs a recording", "criterion"
        )
    if isinstance(models, str):
        models = (models,)
    place = joint_index(robot, recording.joint if isinstance(recording, FrictionMap) and joint is None else joint)
    if isinstance(recording, FrictionMap):
        wanted = [friction_model(m) for m in models or ("coulomb+viscous", "stribeck", "power")]
        rows = map_rows(recording, wanted)
    elif isinstance(recording, Recording):
        wanted = [friction_model(m, offset=offset) for m in models or DEFAULT_MODELS]
        _refuse_missing(wanted, temperature)
        kind: LoadKind | None = load if any(m.needs("load") for m in wanted) else None
        rows = friction_rows(
            robot,
            recording,
            place,
            estimate=estimate,
            signals=signals,
            temperature=temperature,
            load=kind,
            directional=any("load-directional" in m.names for m in wanted),
        )
    else:
        raise InvalidType(f"friction is fitted to a recording or to a friction map, got {recording!r:.60}")
    names = [m.names for m in wanted]
    if len(set(names)) != len(names):
        raise Duplicate("two of the friction models are identical", "models")
    with one_blas_thread():
        return _fitted(robot, place, rows, wanted, criterion, level, recording, load)


def _refuse_missing(models: list[FrictionModel], temperature: object) -> None:
    """Refuse temperature-dependent models without temperatures."""
    for model in models:
        if model.needs("temperature") and temperature is None:
            raise MissingArgument(
                f"friction model '{model.name}' needs temperatures: give {keyword('temperature')} in deg C, "
                "one column per run"
            )


def _fitted(
    robot: Robot,
    place: int,
    rows: FrictionRows,
    models: list[FrictionModel],
    criterion: Criterion,
    level: float,
    recording: Recording | FrictionMap,
    load: LoadKind,
) -> FrictionFit:
    """Fit all models to the rows, rank them and build the result."""
    joint, prismatic = robot.coordinates[place], is_prismatic(robot, place)
    notes: list[str] = []
    usable = []
    for model in models:
        if model.needs("load") and _unloaded(rows):
            notes.append(f"'{model.name}' was left out: the load of the joint is zero")
            continue
        hidden = _hidden(rows, model)
        if hidden:
            notes.append(f"'{model.name}' was left out: '{hidden}' is not identifiable from the motion")
            continue
        usable.append(model)
    if not usable:
        raise NotIdentifiable(f"no friction model can be fitted to joint '{joint}': {notes[0]}")
    solved = {m.name: solve(rows, m) for m in usable}
    if rows.noise:
        # The first weights are those of Coulomb and viscous friction; repeat with those of the best model.
        own = min(solved.values(), key=lambda s: s.rss).residual[: rows.own]
        rows = rows.with_noise(max(float(np.sqrt(np.mean(own**2))), 1e-12 * float(np.linalg.norm(rows.y))))
        solved = {m.name: solve(rows, m, solved[m.name].theta) for m in usable}
    negative = [m for m in usable if not _dissipates(rows, m, solved[m.name])]
    notes += [f"'{m.name}' was left out: its friction returns energy at some of the measured states" for m in negative]
    usable = [m for m in usable if m not in negative]
    if not usable:
        raise Infeasible(f"no friction model can be fitted to joint '{joint}': {notes[-1]}")
    largest = max(usable, key=lambda m: m.count)
    effective = effective_rows(rows, min((solved[m.name] for m in usable), key=lambda s: s.rss).residual)
    if effective - rows.W.shape[1] - largest.count < 1:
        raise TooFew(
            f"{effective:.0f} independent rows are too few for {rows.W.shape[1] + largest.count} parameters of the "
            f"friction model '{largest.name}': record more motion or more velocities, or choose smaller models",
            "models",
        )
    fits = [_model_fit(rows, m, solved[m.name], effective, prismatic) for m in usable]
    order = ranked(rows, fits, solved, effective, criterion, level)
    friction = _friction_points(rows, solved[order[0].name])
    f = rows.features
    return FrictionFit(
        joint=joint,
        ranking=tuple(order),
        criterion=criterion,
        level=level,
        velocity=rows.velocity,
        friction=friction,
        rows=rows.samples,
        effective_rows=effective,
        max_velocity=rows.max_velocity,
        prismatic=prismatic,
        from_map=isinstance(recording, FrictionMap),
        load=load,
        mean_load=0.0 if f.load is None else float(np.mean(np.abs(f.load))),
        mean_temperature=REFERENCE_TEMPERATURE if f.temperature is None else float(np.mean(f.temperature)),
        notes=tuple(notes),
    )


def _hidden(rows: FrictionRows, model: FrictionModel) -> str:
    """The first linear parameter whose column depends on the others; "" if there is none."""
    columns = rows.rows_of(model.fixed(rows.features))
    if not columns.shape[1]:
        return ""
    whole = np.hstack([rows.W, columns])
    norms = np.linalg.norm(whole, axis=0)
    if not np.all(norms > 0):
        raise NotIdentifiable(
            "a column of the friction problem is zero: not all base parameters are identifiable from the motion"
        )
    r = np.linalg.qr(whole / norms, mode="r")
    if np.abs(np.diag(r)).min() < np.finfo(float).eps:
        r = r + np.finfo(float).eps * np.eye(len(r))
    left = 1.0 / np.linalg.norm(np.linalg.inv(r), axis=1)[rows.W.shape[1] :]
    names = [s for p in model.ordered if not p.inner for s in p.symbols]
    return next((n for n, x in zip(names, left, strict=True) if x < _HIDDEN), "")


def _unloaded(rows: FrictionRows) -> bool:
    """Whether the load of the joint is zero."""
    load = rows.features.load
    return load is None or float(np.abs(load).max()) <= _NO_EFFECT * float(np.abs(rows.y).max())


def _model_fit(
    rows: FrictionRows, model: FrictionModel, found: SeparableFit, effective: float, prismatic: bool
) -> ModelFit:
    """Parameters, covariance and information criteria of one model."""
    b = rows.W.shape[1]
    parameters = b + model.count
    variance = found.rss / (effective - parameters)
    names = (*model.symbols, *(x.name for x in model.inner))
    values = np.concatenate([found.linear[b:], found.theta])
    covariance = variance * found.unscaled_covariance[b:, b:]
    # Log likelihood of white noise with unknown variance; n is the number of independent rows.
    fit = effective * np.log(max(found.rss / rows.samples, np.finfo(float).tiny))
    own = found.residual[: rows.own]
    notes = [
        f"{x.name} of '{model.name}' lies at the edge of its range: it is not identifiable from the data"
        for x, edge in zip(model.inner, found.at_bound, strict=True)
        if edge
    ]
    bounded = model.symbols[model.signed :]
    at_zero = tuple(name for name, held in zip(bounded, found.at_zero, strict=True) if held)
    notes += [f"{name} of '{model.name}' is held at zero: without the bound it would be negative" for name in at_zero]
    if at_zero and "fs" in model.symbols:
        notes.append("friction may fall towards zero velocity, as with a smooth reversal: compare the model 'tanh'")
    if not found.converged:
        notes.append(f"the fit of '{model.name}' did not converge")
    return ModelFit(
        model,
        {name: float(x) for name, x in zip(names, values, strict=True)},
        covariance,
        rss=found.rss,
        rms=float(np.sqrt(np.mean((own if rows.weight is None else own / rows.weight) ** 2))),
        parameter_count=parameters,
        aic=float(fit + 2 * parameters),
        bic=float(fit + np.log(effective) * parameters),
        at_zero=at_zero,
        body_parameters=rows.known if rows.base is None else rows.base.standard(found.linear[:b]),
        notes=tuple(notes),
        prismatic=prismatic,
    )


def _dissipates(rows: FrictionRows, model: FrictionModel, found: SeparableFit) -> bool:
    """Whether the friction of a fit returns no energy at the measured states; a constant torque is not friction."""
    first = rows.W.shape[1]
    linear = dict(zip(model.symbols, found.linear[first:], strict=True)) | {"off": 0.0}
    inner = {x.name: value for x, value in zip(model.inner, found.theta, strict=True)}
    power = rows.features.v * model.torque(rows.features, linear | inner)
    return bool(power.min() >= -_RETURNED * np.abs(power).max())


def _friction_points(rows: FrictionRows, found: SeparableFit) -> Array:
    """Friction torque (own,) per row: measured torque minus that of the other parameters."""
    b = rows.W.shape[1]
    own = rows.y[: rows.own] - rows.W[: rows.own] @ found.linear[:b]
    return np.asarray(own if rows.weight is None else own / rows.weight)
