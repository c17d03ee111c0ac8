"""Friction of a joint fitted with several models, and the model that the data ask for."""

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
from dynid.friction.rows import FrictionRows, LoadKind, friction_rows, joint_index
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
# A column with less than this share of the torque has nothing to act on.
_NO_EFFECT = 1e-9
# A column of which all others leave less than this share cannot be told from them; decimation leaves about 1e-5 of one
# that depends on them.
_HIDDEN = 2e-4


def fit_friction(
    robot: Robot,
    data: Recording | FrictionMap,
    joint: str | int | None = None,
    models: Sequence[str] | None = None,
    criterion: Criterion = "f-test",
    *,
    estimate: Estimate | None = None,
    signals: Signals | None = None,
    temperature: ArrayLike | Sequence[ArrayLike] | None = None,
    load: LoadKind = "rigid",
    offset: bool = True,
    level: float = 0.05,
) -> FrictionFit:
    """Fit friction models to a joint and choose one.

    `models` are names of words joined by "+": coulomb, viscous, asymmetric, stribeck, stribeck-shaped, load,
    load-directional, temperature, temperature-exponential, tanh, sigmoid, power, quadratic. With an `estimate` the
    torques of its robot are taken off first; without one all base parameters are estimated with the friction, and the
    friction terms that the robot has for this joint are left out. A FrictionMap is fitted as it is. `load` says which
    torque load-dependent friction grows with: that of the moving bodies, or that of gravity alone. `temperature`
    (deg C) is a number or one column a run. `offset` puts a constant torque into every model.
    """
    if criterion not in CRITERIA:
        raise DataError(f"criterion '{criterion}' is unknown: use {', '.join(CRITERIA)}")
    if not 0 < level < 1:
        raise DataError(f"a significance level lies between 0 and 1, got {level}")
    if isinstance(models, str):
        models = (models,)
    place = joint_index(robot, data.joint if isinstance(data, FrictionMap) and joint is None else joint)
    if isinstance(data, FrictionMap):
        wanted = [friction_model(m) for m in models or ("coulomb+viscous", "stribeck", "power")]
        rows = map_rows(data, wanted)
    elif isinstance(data, Recording):
        wanted = [friction_model(m, offset) for m in models or DEFAULT_MODELS]
        _refuse_missing(wanted, temperature)
        kind: LoadKind | None = load if any(m.needs("load") for m in wanted) else None
        rows = friction_rows(
            robot,
            data,
            place,
            estimate=estimate,
            signals=signals,
            temperature=temperature,
            load=kind,
            directional=any("load-directional" in m.names for m in wanted),
        )
    else:
        raise DataError(f"friction is fitted to a recording or to a friction map, got {data!r:.60}")
    names = [m.names for m in wanted]
    if len(set(names)) != len(names):
        raise DataError("two of the friction models are the same")
    with threadpool_limits(1, "blas"):
        return _fitted(robot.coordinates[place], rows, wanted, criterion, level, data, load)


def fit_every_friction(robot: Robot, recording: Recording, **options: object) -> dict[str, FrictionFit]:
    """`fit_friction` of every joint by name."""
    return {joint: fit_friction(robot, recording, joint, **options) for joint in robot.coordinates}  # type: ignore[arg-type]


def _refuse_missing(models: list[FrictionModel], temperature: object) -> None:
    for model in models:
        if model.needs("temperature") and temperature is None:
            raise DataError(
                f"friction model '{model.name}' needs temperatures: give temperature=, one column of deg C a run"
            )


def _fitted(
    joint: str,
    rows: FrictionRows,
    models: list[FrictionModel],
    criterion: Criterion,
    level: float,
    data: Recording | FrictionMap,
    load: LoadKind,
) -> FrictionFit:
    notes: list[str] = []
    usable = []
    for model in models:
        if model.needs("load") and _unloaded(rows):
            notes.append(f"'{model.name}' was left out: the joint carries no load")
            continue
        hidden = _hidden(rows, model)
        if hidden:
            notes.append(f"'{model.name}' was left out: the motion does not show '{hidden}' apart from other torques")
            continue
        usable.append(model)
    if not usable:
        raise DataError(f"no friction model can be fitted to joint '{joint}': {notes[0]}")
    largest = max(usable, key=lambda m: m.count)
    solved = {m.name: solve(rows, m) for m in usable}
    fullest = min(usable, key=lambda m: (solved[m.name].rss, -m.count))
    if rows.noise:
        # The first weights knew plain friction only; those of the best model are the noise itself.
        own = solved[fullest.name].residual[: rows.own]
        rows = rows.with_noise(max(float(np.sqrt(np.mean(own**2))), 1e-12 * float(np.linalg.norm(rows.y))))
        solved = {m.name: solve(rows, m, solved[m.name].theta) for m in usable}
    effective = effective_rows(rows, solved[fullest.name].residual)
    if effective - rows.W.shape[1] - largest.count < 1:
        raise DataError(
            f"{effective:.0f} independent rows are too few for {rows.W.shape[1] + largest.count} parameters of the "
            f"friction model '{largest.name}': record more motion or more speeds, or ask for smaller models"
        )
    fits = [_model_fit(rows, m, solved[m.name], effective) for m in usable]
    ranked, chosen = _ranked(rows, fits, solved, effective, criterion, level)
    friction = _friction_points(rows, solved[chosen.model.name])
    f = rows.features
    return FrictionFit(
        joint,
        tuple(ranked),
        chosen,
        criterion,
        level,
        rows.speed,
        friction,
        rows.samples,
        effective,
        rows.fastest,
        from_map=isinstance(data, FrictionMap),
        load=load,
        mean_load=0.0 if f.load is None else float(np.mean(np.abs(f.load))),
        mean_temperature=REFERENCE_TEMPERATURE if f.temperature is None else float(np.mean(f.temperature)),
        notes=tuple(notes),
    )


def solve(rows: FrictionRows, model: FrictionModel, start: Array | None = None) -> SeparableFit:
    """Separable least squares of one model, from inner parameters `start` (m,) or from all over their range."""
    f = rows.features
    problem = Separable(
        np.hstack([rows.W, rows.rows_of(model.fixed(f))]),
        rows.y,
        lambda theta: rows.rows_of(model.curved(f, theta)),
        lambda theta: np.array([rows.rows_of(s) for s in model.slopes(f, theta)]),
    )
    low, high = model.bounds(rows.fastest)
    grids = (
        [x.grid(rows.fastest) for x in model.inner] if start is None else [start[k : k + 1] for k in range(len(start))]
    )
    return problem.solve(low, high, grids, [x.log for x in model.inner])


def _hidden(rows: FrictionRows, model: FrictionModel) -> str:
    """The first linear parameter whose column the other columns explain; "" where there is none."""
    columns = rows.rows_of(model.fixed(rows.features))
    if not columns.shape[1]:
        return ""
    whole = np.hstack([rows.W, columns])
    norms = np.linalg.norm(whole, axis=0)
    if not np.all(norms > 0):
        raise DataError("a column of the friction problem is zero: the motion does not show all base parameters")
    r = np.linalg.qr(whole / norms, mode="r")
    if np.abs(np.diag(r)).min() < np.finfo(float).eps:
        r = r + np.finfo(float).eps * np.eye(len(r))
    left = 1.0 / np.linalg.norm(np.linalg.inv(r), axis=1)[rows.W.shape[1] :]
    names = [s for p in model.ordered if not p.inner for s in p.symbols]
    return next((n for n, x in zip(names, left, strict=True) if x < _HIDDEN), "")


def _unloaded(rows: FrictionRows) -> bool:
    load = rows.features.load
    return load is None or float(np.abs(load).max()) <= _NO_EFFECT * float(np.abs(rows.y).max())


def _model_fit(rows: FrictionRows, model: FrictionModel, found: SeparableFit, effective: float) -> ModelFit:
    b = rows.W.shape[1]
    parameters = b + model.count
    variance = found.rss / (effective - parameters)
    names = (*model.symbols, *(x.name for x in model.inner))
    values = np.concatenate([found.linear[b:], found.theta])
    covariance = variance * found.unscaled_covariance[b:, b:]
    # Under white noise that is known up to its size; n counts the rows that speak on their own.
    fit = effective * np.log(max(found.rss / rows.samples, np.finfo(float).tiny))
    own = found.residual[: rows.own]
    notes = [
        f"{x.name} of '{model.name}' lies at the edge of its range: the data do not show it"
        for x, edge in zip(model.inner, found.at_bound, strict=True)
        if edge
    ]
    named = dict(zip(names, values, strict=True))
    if named.get("fs", 0.0) < 0:
        notes.append("fs is negative: friction falls towards rest, as with a soft reversal; compare the model 'tanh'")
    if not found.converged:
        notes.append(f"the search for '{model.name}' ran out of steps")
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
    )


def _ranked(
    rows: FrictionRows,
    fits: list[ModelFit],
    solved: dict[str, SeparableFit],
    effective: float,
    criterion: Criterion,
    level: float,
) -> tuple[list[ModelFit], ModelFit]:
    """The fits in order, each with the test against the largest fitted model that it contains, and the chosen one."""

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
    # Chains that have no model in common cannot be told apart by nested tests.
    chosen = min(ends, key=lambda f: f.bic)
    rest = sorted((f for f in tested if f is not chosen), key=lambda f: f.bic)
    return [chosen, *rest], chosen


def _climbed(root: ModelFit, fits: list[ModelFit], test: object, level: float) -> ModelFit:
    """From a smallest model upwards to the larger one that speaks loudest against it, until none does."""
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
        # The smallest of the models that speak about as loudly: larger ones are asked for again from there.
        here = _next(steps)


def _next(steps: list[tuple[float, ModelFit]]) -> ModelFit:
    by_size = sorted({f.parameter_count for _, f in steps})
    for size in by_size:
        own = [(p, f) for p, f in steps if f.parameter_count == size]
        best = min(own, key=lambda x: x[0])[1]
        # A step to a model that a larger one contains loses nothing; any other must be the loudest itself.
        loudest = min(steps, key=lambda x: x[0])[1]
        if best is loudest or best.model in loudest.model:
            return best
    return min(steps, key=lambda x: x[0])[1]


def _friction_points(rows: FrictionRows, found: SeparableFit) -> Array:
    """Friction torque (own,) of every row: its torque less what the other columns explain."""
    b = rows.W.shape[1]
    own = rows.y[: rows.own] - rows.W[: rows.own] @ found.linear[:b]
    return np.asarray(own if rows.weight is None else own / rows.weight)
