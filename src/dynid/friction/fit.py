"""Fit friction models to a joint and select one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from threadpoolctl import threadpool_limits

from dynid.errors import DataError
from dynid.friction.map import FrictionMap, map_rows
from dynid.friction.models import FrictionModel, friction_model
from dynid.friction.pieces import REFERENCE_TEMPERATURE
from dynid.friction.result import FrictionFit, ModelFit
from dynid.friction.rows import FrictionRows, LoadKind, friction_rows, is_prismatic, joint_index
from dynid.friction.selection import NestedTest, effective_rows, nested_test
from dynid.friction.separable import Separable, SeparableFit
from dynid.hypothesis import corrected
from dynid.identification.estimate import Estimate
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

__all__ = ["CRITERIA", "DEFAULT_MODELS", "fit_every_friction", "fit_friction"]

Array = NDArray[np.float64]
Criterion = Literal["f-test", "aic", "bic"]

CRITERIA = ("f-test", "aic", "bic")
DEFAULT_MODELS = ("coulomb+viscous", "asymmetric", "stribeck", "power", "load", "stribeck+load")
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

    Parameters
    ----------
    robot : Robot
        Robot with a fixed base. Its own friction terms of this joint are not used.
    recording : Recording or FrictionMap
        Motion of the robot with torques, or friction from `friction_map`.
    joint : str or int, optional
        Name or index of the joint; optional for a friction map and for a robot with one joint.
    models : sequence of str, optional
        Model names, words joined by "+": coulomb, viscous, asymmetric, stribeck, stribeck-shaped, load,
        load-directional, temperature, temperature-exponential, tanh, sigmoid, power, quadratic.
    criterion : {"f-test", "aic", "bic"}
        Nested F tests with Holm's correction, or an information criterion.
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
        raise DataError(f"criterion '{criterion}' is unknown: use {', '.join(CRITERIA)}")
    if not 0 < level < 1:
        raise DataError(f"a significance level lies between 0 and 1, got {level}")
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
        raise DataError(f"friction is fitted to a recording or to a friction map, got {recording!r:.60}")
    names = [m.names for m in wanted]
    if len(set(names)) != len(names):
        raise DataError("two of the friction models are identical")
    with threadpool_limits(1, "blas"):
        return _fitted(robot, place, rows, wanted, criterion, level, recording, load)


def fit_every_friction(robot: Robot, recording: Recording, **options: object) -> dict[str, FrictionFit]:
    """Fit and select friction models for every joint.

    Parameters
    ----------
    robot : Robot
        Robot with a fixed base.
    recording : Recording
        Motion of all joints with torques.
    **options
        Settings of `fit_friction`.

    Returns
    -------
    dict of str to FrictionFit
        Results by joint name.
    """
    return {joint: fit_friction(robot, recording, joint, **options) for joint in robot.coordinates}  # type: ignore[arg-type]


def _refuse_missing(models: list[FrictionModel], temperature: object) -> None:
    """Refuse temperature-dependent models without temperatures."""
    for model in models:
        if model.needs("temperature") and temperature is None:
            raise DataError(
                f"friction model '{model.name}' needs temperatures: give temperature= in deg C, one column per run"
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
        raise DataError(f"no friction model can be fitted to joint '{joint}': {notes[0]}")
    largest = max(usable, key=lambda m: m.count)
    solved = {m.name: solve(rows, m) for m in usable}
    fullest = min(usable, key=lambda m: (solved[m.name].rss, -m.count))
    if rows.noise:
        # The first weights are those of Coulomb and viscous friction; repeat with those of the best model.
        own = solved[fullest.name].residual[: rows.own]
        rows = rows.with_noise(max(float(np.sqrt(np.mean(own**2))), 1e-12 * float(np.linalg.norm(rows.y))))
        solved = {m.name: solve(rows, m, solved[m.name].theta) for m in usable}
    effective = effective_rows(rows, solved[fullest.name].residual)
    if effective - rows.W.shape[1] - largest.count < 1:
        raise DataError(
            f"{effective:.0f} independent rows are too few for {rows.W.shape[1] + largest.count} parameters of the "
            f"friction model '{largest.name}': record more motion or more velocities, or choose smaller models"
        )
    fits = [_model_fit(rows, m, solved[m.name], effective, prismatic) for m in usable]
    ranked, chosen = _ranked(rows, fits, solved, effective, criterion, level)
    friction = _friction_points(rows, solved[chosen.model.name])
    f = rows.features
    return FrictionFit(
        joint=joint,
        ranking=tuple(ranked),
        best=chosen,
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


def solve(rows: FrictionRows, model: FrictionModel, start: Array | None = None) -> SeparableFit:
    """Separable least squares of one model, from inner parameters `start` (m,) or from a grid over their range."""
    f = rows.features
    problem = Separable(
        np.hstack([rows.W, rows.rows_of(model.fixed(f))]),
        rows.y,
        lambda theta: rows.rows_of(model.curved(f, theta)),
        lambda theta: np.array([rows.rows_of(s) for s in model.slopes(f, theta)]),
    )
    low, high = model.bounds(rows.max_velocity)
    grids = (
        [x.grid(rows.max_velocity) for x in model.inner]
        if start is None
        else [start[k : k + 1] for k in range(len(start))]
    )
    return problem.solve(low, high, grids, [x.log for x in model.inner])


def _hidden(rows: FrictionRows, model: FrictionModel) -> str:
    """The first linear parameter whose column depends on the others; "" if there is none."""
    columns = rows.rows_of(model.fixed(rows.features))
    if not columns.shape[1]:
        return ""
    whole = np.hstack([rows.W, columns])
    norms = np.linalg.norm(whole, axis=0)
    if not np.all(norms > 0):
        raise DataError(
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
    named = dict(zip(names, values, strict=True))
    if named.get("fs", 0.0) < 0:
        notes.append(
            "fs is negative: friction falls towards zero velocity, as with a smooth reversal; compare the model 'tanh'"
        )
    if not found.converged:
        notes.append(f"the fit of '{model.name}' did not converge")
    return ModelFit(
        model,
        {name: float(x) for name, x in named.items()},
        covariance,
        rss=found.rss,
        rms=float(np.sqrt(np.mean((own if rows.weight is None else own / rows.weight) ** 2))),
        parameter_count=parameters,
        aic=float(fit + 2 * parameters),
        bic=float(fit + np.log(effective) * parameters),
        notes=tuple(notes),
        prismatic=prismatic,
    )


def _ranked(
    rows: FrictionRows,
    fits: list[ModelFit],
    solved: dict[str, SeparableFit],
    effective: float,
    criterion: Criterion,
    level: float,
) -> tuple[list[ModelFit], ModelFit]:
    """The fits in order, each with its test against the largest fitted model it contains, and the selected one."""

    def test(small: ModelFit, large: ModelFit) -> NestedTest:
        sums = (small.rss, min(large.rss, small.rss))
        counts = (small.parameter_count, large.parameter_count)
        theta = solved[small.model.name].theta
        return nested_test(rows, small.model, large.model, sums, counts, effective, theta)

    tested = []
    for fit in fits:
        inside = [f for f in fits if f.model in fit.model]
        if inside:
            before = max(inside, key=lambda f: (f.parameter_count, -f.rss))
            found = test(before, fit)
            fit = replace(fit, against=before.model.name, statistic=found.statistic, p_value=found.p_value)
        tested.append(fit)
    if criterion != "f-test":
        order = sorted(tested, key=lambda f: getattr(f, criterion))
        return order, order[0]
    ends = [_climbed(root, tested, test, level) for root in tested if not any(f.model in root.model for f in tested)]
    # Nested tests cannot compare chains without a common model.
    chosen = min(ends, key=lambda f: f.bic)
    rest = sorted((f for f in tested if f is not chosen), key=lambda f: f.bic)
    return [chosen, *rest], chosen


def _climbed(root: ModelFit, fits: list[ModelFit], test: object, level: float) -> ModelFit:
    """From a smallest model, move to the most significant larger one until none is significant."""
    assert callable(test)
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


def _friction_points(rows: FrictionRows, found: SeparableFit) -> Array:
    """Friction torque (own,) per row: measured torque minus that of the other parameters."""
    b = rows.W.shape[1]
    own = rows.y[: rows.own] - rows.W[: rows.own] @ found.linear[:b]
    return np.asarray(own if rows.weight is None else own / rows.weight)
