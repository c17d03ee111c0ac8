"""From measurements to an identified geometry, with the errors at postures that were left out."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.geometry.base import base_geometry
from dynid.geometry.estimate import GeometryEstimate, HeldOut, Sensor
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.problem import Problem
from dynid.geometry.solve import Solution, solve
from dynid.geometry.units import check_radians
from dynid.geometry.unknowns import GeometryModel, UnknownKind
from dynid.progress import Progress, ProgressCallback
from dynid.robot.model import Robot

__all__ = ["calibrate_geometry", "errors_left_out", "fitted_sensors"]

Array = NDArray[np.float64]

# Parts of the postures that are left out in turn where no places are told, and steps that fit sensors to a new place.
_PARTS, _STEPS = 5, 20
# Change of residuals, in units of their expected standard deviations, at which sensors are fitted.
_SMALL = 1e-6


def calibrate_geometry(
    robot: Robot,
    measurements: Measurement | Sequence[Measurement],
    model: GeometryModel | None = None,
    *,
    bodies: Robot | None = None,
    robust: bool = True,
    held_out: bool = True,
    progress: ProgressCallback | None = None,
) -> GeometryEstimate:
    """Identify where the joints of a robot really are.

    Parameters
    ----------
    robot : Robot
        The robot of the file, on a fixed base and without closed loops.
    measurements : Measurement or sequence of Measurement
        What was measured, of any mixture of sensors.
    model : GeometryModel, optional
        What may differ from the file, and how much one expects it to; the default serves arms from the table to the
        factory.
    bodies : Robot, optional
        Robot with joints of the same names whose bodies load the joints: an identified model, or one with masses where
        the file has none.
    robust : bool
        Set postures aside whose errors chance does not explain.
    held_out : bool
        Fit again without each place, or each fifth of the postures, and keep the errors there.
    progress : callable, optional
        Called with a `Progress` as parts are left out.

    Returns
    -------
    GeometryEstimate

    Raises
    ------
    NotApplicable
        For a robot with closed loops.
    TooFew
        If there are fewer measured values than unknowns of the sensors alone.
    InvalidValue
        If joint positions are in degrees.

    Examples
    --------
    >>> import dynid, numpy as np
    >>> from dynid.geometry import Points, calibrate_geometry
    >>> robot, rng = dynid.load_robot("tx40"), np.random.default_rng(0)
    >>> q = rng.uniform(-1.5, 1.5, (60, 6))
    >>> tip = dynid.dynamics.frame_placement(robot, q, robot.links[-1].name)
    >>> seen = (tip @ [0.1, 0, 0.05, 1])[:, :3] + [0.3, 0, 0] + 1e-4 * rng.normal(size=(60, 3))
    >>> found = calibrate_geometry(robot, Points(q, robot.links[-1].name, points=seen), held_out=False)
    >>> bool(found.sensors[0].after < 3e-4)
    True
    """
    given = (measurements,) if isinstance(measurements, Measurement) else tuple(measurements)
    check_radians(robot, given)
    problem = Problem.of(robot, given, model or GeometryModel(), bodies)
    found = solve(problem, robust=robust)
    loaded = problem.loaded(found.x)
    shown = base_geometry(loaded, found.x)
    return GeometryEstimate(
        robot=robot,
        frames=problem.geometry.frames,
        model=problem.geometry.model,
        unknowns=problem.unknowns,
        values=found.x,
        covariance=found.covariance,
        prior_std=found.prior_std,
        sensors=tuple(_sensors(problem, loaded, found)),
        rank=shown.count,
        hidden=tuple(shown.unknowns[k].name for k in shown.without_effect),
        heavy_tails=found.heavy,
        converged=found.converged,
        iterations=found.iterations,
        held_out=errors_left_out(problem, robust=robust, progress=progress) if held_out else None,
        bodies=bodies,
    )


def _sensors(problem: Problem, loaded: Problem, found: Solution) -> Iterator[Sensor]:
    nominal = problem.rows(fitted_sensors(problem, np.zeros(len(found.x))))
    fitted = loaded.rows(found.x)
    for k, m in enumerate(problem.measurements):
        before, after = (m.distances(r.residual * m.std) for r in (nominal[k], fitted[k]))
        noise = found.noise[k]
        yield Sensor(
            name=m.name,
            kind=m.kind,
            postures=len(m.q),
            frame=m.frame,
            before=float(np.sqrt(np.nanmean(before**2))),
            after=float(np.sqrt(np.nanmean(after**2))),
            noise=noise.sensor,
            position=noise.position,
            direction=noise.direction,
            set_aside=tuple(int(i) for i in np.flatnonzero(found.weights[k] == 0)),
        )


# -- errors at postures left out ----------------------------------------------------------------------


def errors_left_out(
    problem: Problem, *, robust: bool = True, progress: ProgressCallback | None = None
) -> HeldOut | None:
    """Errors of every posture, predicted from the postures of other places; None with too few of them.

    What belongs to a place alone, such as the position of a socket, is fitted there with the geometry of the others.
    Without places, every fifth posture is left out, so that neighbours on a path are not all in one part.
    """
    places = [p for m in problem.measurements for p in set(m.place.tolist())]
    by = "places" if len(set(places)) > 1 else "parts"
    groups = [_groups(m, by) for m in problem.measurements]
    rows: list[tuple[str, int, str, float, float]] = []
    parts = sorted({g for group in groups for g in group.tolist()})
    started = time.perf_counter()
    for k, part in enumerate(parts):
        kept, left = [], []
        for m, group in zip(problem.measurements, groups, strict=True):
            if (group != part).any():
                kept.append(m.some(group != part))
            if (group == part).any():
                left.append((m, np.flatnonzero(group == part)))
        if not kept:
            return None
        rows += _predicted(problem, kept, left, str(part), robust)
        if progress is not None:
            left_to_do = (time.perf_counter() - started) * (len(parts) - k - 1) / (k + 1)
            progress(Progress(f"left out {part}", (k + 1) / len(parts), left_to_do))
    names, numbers, out_of, before, after = zip(*rows, strict=True)
    return HeldOut(by, names, np.array(numbers), out_of, np.array(before), np.array(after))


def _groups(m: Measurement, by: str) -> Array:
    if by == "places":
        return np.asarray(m.place)
    return np.array([f"part {i % _PARTS + 1}" for i in range(len(m.q))])


def _predicted(
    problem: Problem, kept: list[Measurement], left: list[tuple[Measurement, NDArray[np.intp]]], part: str, robust: bool
) -> Iterator[tuple[str, int, str, float, float]]:
    geometry = problem.geometry
    # Starts of the sensors are those of all postures, so that their unknowns mean the same.
    fitted = Problem(geometry, tuple(kept))
    both = fitted_sensors(fitted, np.zeros(len(fitted.unknowns))), solve(fitted, robust=robust).x
    for m, rows in left:
        there = Problem(geometry, (m.some(rows),))
        errors = []
        for x in both:
            start = np.zeros(len(there.unknowns))
            values = {u.name: v for u, v in zip(fitted.unknowns, x, strict=True)}
            known = np.array([u.name in values for u in there.unknowns])
            start[known] = [values[u.name] for u in there.unknowns if u.name in values]
            there = there.loaded(start)
            at = fitted_sensors(there, start, known)
            errors.append(m.distances(there.rows(at)[0].residual * m.std))
        yield from ((m.name, int(i), part, float(b), float(a)) for i, b, a in zip(rows, *errors, strict=True))


def fitted_sensors(problem: Problem, x: Array, known: NDArray[np.bool_] | None = None) -> Array:
    """Unknowns with those of the sensors fitted to their measurements, but for known ones, by Gauss and Newton."""
    free = np.array([u.kind is UnknownKind.SENSOR for u in problem.unknowns])
    if known is not None:
        free &= ~known
    weak = np.array([u.std for u in problem.unknowns])[free] ** -2.0
    for _ in range(_STEPS if free.any() else 0):
        value, slope = problem.ties(x)
        rows = problem.rows(x)
        r = np.concatenate([value, *(q.residual.ravel() for q in rows)])
        J = np.vstack([slope, *(q.slope.reshape(-1, len(x)) for q in rows)])[:, free]
        step = -np.linalg.lstsq(J.T @ J + np.diag(weak), J.T @ r + weak * x[free], rcond=None)[0]
        x = x.copy()
        x[free] += step
        if np.abs(J @ step).max(initial=0.0) < _SMALL:
            break
    return x
