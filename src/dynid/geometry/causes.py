"""Causes of wrong measurements of geometry: hypotheses in competition, each fitted and tried.

    p(H | y) = p(y | H) p(H) / sum over all H,    half of p(H) for "nothing is wrong", the rest shared among kinds

where p(y | H) charges a hypothesis for what it adapts (see `evidence`). A cause is told with its probability, and alone
where it holds nearly all of that of a fault, and where correcting it does not make the errors at postures left out
worse. Two that the measurements do not tell apart are named together.

Source: MacKay, Bayesian Interpolation (1992), on the comparison of models.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from dynid.errors import DynidError
from dynid.geometry.estimate import aligned_variance, rigid_columns
from dynid.geometry.evidence import Fit, densities, fitted, linear_gains
from dynid.geometry.kinematics import Geometry
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.problem import Problem
from dynid.geometry.suspects import (
    Family,
    GeometryCauseCode,
    Suspect,
    changed_positions,
    families,
    relabelled,
    rescaled,
    swapped_markers,
)
from dynid.geometry.unknowns import GeometryModel
from dynid.results import Result, about
from dynid.robot.model import Robot

__all__ = ["GeometryCause", "GeometryCauses", "find_geometry_causes", "workspace"]

Array = NDArray[np.float64]

# Probability of a fault from which causes are told, and share of it from which one is told from its competitors.
_PERHAPS, _ALONE = 0.5, 0.9
# Log of the prior chance of one kind of fault, where half of all measurements have none.
_KIND = float(np.log(0.5 / (len(GeometryCauseCode) - 1)))
# Postures over the workspace at which the tool is compared, and members of a family that are fitted.
_TOOL, _MEMBERS, _DISCRETE = 100, 2, 3
# Steps that search what is far from linear, and the size (rad) at which they end.
_ROUNDS, _STILL = 8, 1e-3
# Scatter over the expected one from which no search is too slow.
_POOR = 10.0
# Errors at postures left out may grow by this share by chance.
_WORSE = 1.05
# Scatter over the expected one that needs an explanation.
_UNEXPLAINED = 3.0
# Least scatter over the expected one.
_LEAST = 1e-2
# Mean size of errors of joints, over what one expects of them, beyond which a correction is none.
_ABSURD = 5.0
# Share of postures and ratio of scatters from which there are many outliers.
_MANY, _FAR, _TURNS = 0.1, 5.0, 50


@dataclass(frozen=True, eq=False)
class GeometryCause(Result):
    """What is wrong with measurements of geometry."""

    code: GeometryCauseCode = field(metadata=about("Stable code of the cause."))
    words: str = field(metadata=about("The cause in words, with its size."))
    probability: float = field(metadata=about("Probability that it is right, among all that were tried."))
    gain: float = field(metadata=about("Log of how much more probable the measurements are with it."))
    before: float = field(metadata=about("Median error at postures left out.", unit="m"))
    after: float = field(metadata=about("The same with the cause corrected.", unit="m"))
    tool: float = field(metadata=about("How far correcting it moves the tool, root mean square.", unit="m"))
    advice: str = field(metadata=about("What to do."))
    corrected: tuple[Measurement, ...] | None = field(
        default=None, metadata=about("The measurements without it, where they can be corrected.")
    )


@dataclass(frozen=True, eq=False)
class GeometryCauses(Result):
    """Causes that were found, and what none of them explains."""

    causes: tuple[GeometryCause, ...] = field(
        metadata=about("The cause; two where they cannot be told apart; none where nothing is wrong.")
    )
    wrong: float = field(metadata=about("Probability that something is wrong."))
    scatter: float = field(metadata=about("Scatter that is left, over the expected one, of the worst sensor."))
    tool_std: float = field(metadata=about("Standard deviation of the tool over the workspace.", unit="m"))

    @property
    def words(self) -> str:
        """All of it as one sentence."""
        if not self.causes:
            return "nothing is wrong with the measurements that can be named"
        return ", or ".join(c.words for c in self.causes)


@dataclass(frozen=True, eq=False)
class _Tried:
    """A hypothesis that was fitted."""

    suspect: Suspect | None
    fit: Fit
    score: float


def find_geometry_causes(
    robot: Robot,
    measurements: Measurement | Sequence[Measurement],
    model: GeometryModel | None = None,
    *,
    bodies: Robot | None = None,
) -> GeometryCauses:
    """Find what is wrong with measurements of geometry.

    Parameters
    ----------
    robot : Robot
        The robot of the file.
    measurements : Measurement or sequence of Measurement
        What was measured, postures in the order in which they were measured.
    model : GeometryModel, optional
        What may differ from the file.
    bodies : Robot, optional
        Robot whose bodies load the joints.

    Returns
    -------
    GeometryCauses

    Examples
    --------
    >>> import dynid, numpy as np
    >>> from dynid.geometry import Points, find_geometry_causes
    >>> robot, rng = dynid.load_robot("tx40"), np.random.default_rng(0)
    >>> q = rng.uniform(-1.5, 1.5, (40, 6))
    >>> tip = dynid.dynamics.frame_placement(robot, q, robot.links[-1].name)
    >>> seen = (tip @ [0.1, 0, 0.05, 1])[:, :3] + 1e-4 * rng.normal(size=(40, 3))
    >>> read = q * [1, 1, -1, 1, 1, 1]
    >>> find_geometry_causes(robot, Points(read, robot.links[-1].name, points=seen)).words
    "'joint3' has the wrong sign"
    """
    given = (measurements,) if isinstance(measurements, Measurement) else tuple(measurements)
    problem = Problem.of(robot, given, model or GeometryModel(), bodies)
    nothing = _Tried(None, fitted(problem), float(np.log(0.5)))
    nothing = replace(nothing, score=nothing.score + nothing.fit.score)
    tried = [nothing, *_tried(problem, given, nothing.fit)]
    outliers = _outliers(nothing.fit)
    if outliers is not None:
        tried.append(outliers)
    return _judged(tried, problem)


def _tried(problem: Problem, given: tuple[Measurement, ...], fit: Fit) -> Iterator[_Tried]:
    robot = problem.geometry.robot
    discrete = [
        *changed_positions(robot, given, _DISCRETE, slowly=max(fit.scatter) > _POOR),
        *swapped_markers(robot, given),
        *rescaled(robot, given),
    ]
    for suspect in discrete:
        found = _fresh(problem, suspect)
        if found is not None:
            yield found
    labels = list(relabelled(fit))
    # A wrong name pulls the sockets; with the first ones corrected, others stand out.
    for suspect in labels:
        found = _fresh(problem, suspect)
        if found is None:
            continue
        yield found
        again = list(relabelled(found.fit))
        for other in again:
            words = _relabelled_words(given, other.measurements)
            more = _fresh(problem, replace(other, words=words, chance=suspect.chance + other.chance))
            if more is not None:
                yield more
    for family in families(fit):
        for suspect in _best(fit, family):
            there = fitted(fit.problem, fit.x, suspect.make, suspect.std)
            for _ in range(_ROUNDS if suspect.moved is not None else 0):
                assert suspect.moved is not None
                moved = suspect.moved(there.extra, there.problem.measurements)
                there = fitted(Problem(problem.geometry, moved), there.x, suspect.make, suspect.std)
                if np.abs(there.extra).max() < _STILL:
                    break
            yield _Tried(suspect, there, there.score + _KIND - suspect.chance)


def _relabelled_words(given: Sequence[Measurement], changed: Sequence[Measurement] | None) -> str:
    from dynid.geometry.measurements.sockets import Sockets

    rows = [
        str(i)
        for a, b in zip(given, changed or (), strict=True)
        if isinstance(a, Sockets) and isinstance(b, Sockets)
        for i in np.flatnonzero(a.socket != b.socket)
    ]
    more = " and others" if len(rows) > 5 else ""
    return f"the ball rests in another socket than postures {', '.join(rows[:5])}{more} say"


def _fresh(problem: Problem, suspect: Suspect) -> _Tried | None:
    """A discrete change, fitted from the registration."""
    assert suspect.measurements is not None
    geometry = problem.geometry
    try:
        there = Problem.of(geometry.robot, suspect.measurements, geometry.model, geometry.bodies)
        fit = fitted(there)
    except (DynidError, np.linalg.LinAlgError):
        return None
    # Another unit of a measurement is another unit of its density.
    return _Tried(suspect, fit, fit.score + _KIND - suspect.chance + _density(problem, there))


def _density(problem: Problem, there: Problem) -> float:
    """Log of the change of volume by a change of the unit of points."""
    from dynid.geometry.measurements.points import Points

    total = 0.0
    for a, b in zip(problem.measurements, there.measurements, strict=True):
        if isinstance(a, Points) and isinstance(b, Points):
            seen = np.isfinite(a.points).all(2)
            count = float(np.minimum(3 * seen.sum(1), 3).sum())
            ratio = np.nanmedian(np.abs(b.points)) / np.nanmedian(np.abs(a.points))
            total += count * float(np.log(ratio))
    return total


def _best(fit: Fit, family: Family) -> list[Suspect]:
    """Members of a family that gain most by one linear step, with and without weights of postures."""
    if len(family.members) <= _MEMBERS:
        return list(family.members)
    columns = [s.make(fit.rows, fit.ties[1]) for s in family.members if s.make is not None]
    std = family.members[0].std
    best = [int(np.argmax(linear_gains(fit, columns, std, plain))) for plain in (False, True)]
    return [family.members[i] for i in dict.fromkeys(best)]


def _outliers(fit: Fit) -> _Tried | None:
    """The same fit with residuals of two scatters, if more than a tenth of the postures have the larger one."""
    gain, dropped = 0.0, [np.zeros(len(m.q), dtype=bool) for m in fit.problem.measurements]
    for block, scatter in zip(fit.blocks, fit.scatter, strict=True):
        far, total, ratio = _two_scatters(block.count, block.squares)
        if far.mean() >= _MANY and ratio > _FAR:
            gain += float((total - densities(block.count, block.squares, scatter)).sum())
            dropped[block.sensor] |= far > 0.5
    if not any(d.any() for d in dropped):
        return None
    number = sum(int(d.sum()) for d in dropped)
    kept = tuple(m.some(~d) for m, d in zip(fit.problem.measurements, dropped, strict=True) if not d.all())
    share = number / sum(len(d) for d in dropped)
    suspect = Suspect(
        GeometryCauseCode.OUTLIERS,
        f"{number} postures ({100 * share:.0f} %) are gross errors of the sensor",
        float(np.log(4)),
        "find out why the sensor fails so often, and leave these postures out",
        measurements=kept,
    )
    return _Tried(suspect, fit, fit.score + gain + _KIND - suspect.chance)


def _two_scatters(count: Array, squares: Array) -> tuple[Array, Array, float]:
    """Probability (N,) that a posture has the larger scatter, log density of all (N,), and the ratio of scatters."""
    small = max(float(np.median(squares / np.maximum(count, 1))), _LEAST**2)
    large, share = max(float(squares.max() / count.max()), _FAR**2 * small), 0.2
    for _ in range(_TURNS):
        logs = np.stack(
            [
                np.log(p) - 0.5 * count * np.log(2 * np.pi * s) - 0.5 * squares / s
                for p, s in ((1 - share, small), (share, large))
            ]
        )
        total = np.asarray(logsumexp(logs, axis=0))
        far = np.exp(logs[1] - total)
        small = max(float(((1 - far) * squares).sum() / max(float(((1 - far) * count).sum()), 1e-9)), _LEAST**2)
        large = max(float((far * squares).sum() / max(float((far * count).sum()), 1e-9)), small)
        share = float(np.clip(far.mean(), 1e-3, 0.5))
    return far, total, float(np.sqrt(large / max(small, 1e-12)))


# -- the competition ----------------------------------------------------------------------------------


def _believable(one: _Tried, problem: Problem) -> bool:
    """Whether the joints of a correction are near their file: a search that ended far away explains nothing."""
    unknowns = problem.geometry.unknowns
    size = one.fit.x[: len(unknowns)] / np.array([u.std for u in unknowns])
    return bool(np.mean(size**2) <= _ABSURD**2)


def _judged(tried: list[_Tried], problem: Problem) -> GeometryCauses:
    tried = [tried[0], *(t for t in tried[1:] if _believable(t, problem))]
    nothing, others = tried[0], tried[1:]
    q = workspace(problem.geometry.robot, problem.measurements)
    std = _tool_std(problem.geometry, nothing.fit, q)
    scores = np.array([t.score for t in tried])
    chance = np.exp(scores - logsumexp(scores))
    wrong = float(1 - chance[0])
    by_code: dict[GeometryCauseCode, float] = {}
    best: dict[GeometryCauseCode, _Tried] = {}
    for t, p in zip(others, chance[1:], strict=True):
        assert t.suspect is not None
        by_code[t.suspect.code] = by_code.get(t.suspect.code, 0.0) + float(p)
        if t.suspect.code not in best or best[t.suspect.code].score < t.score:
            best[t.suspect.code] = t
    ranked = sorted(best, key=lambda code: -by_code[code])
    found: list[GeometryCause] = []
    left = nothing.fit
    if wrong >= _PERHAPS:
        named = ranked[:1] if by_code[ranked[0]] >= _ALONE * wrong else ranked[:2]
        causes = [_cause(best[code], by_code[code], nothing, problem, q) for code in named]
        found = [c for c in causes if c.after <= _WORSE * c.before]
        if found:
            left = best[found[0].code].fit
    if not found and (wrong >= _PERHAPS or max(left.scatter) > _UNEXPLAINED):
        found = [_unexplained(left)]
    return GeometryCauses(tuple(found), wrong, max(left.scatter), std)


def _unexplained(fit: Fit) -> GeometryCause:
    words = (
        f"errors at postures left out are {1e3 * fit.typical:.2g} mm, {max(fit.scatter):.2g} times what is expected of "
        "the sensor, and no cause that was tried explains them"
    )
    advice = "state the noise of the sensor if it is known to be larger; else look for what slips, bends or is misread"
    return GeometryCause(GeometryCauseCode.UNKNOWN, words, 1.0, 0.0, fit.typical, fit.typical, 0.0, advice)


def _cause(one: _Tried, probability: float, nothing: _Tried, problem: Problem, q: Array) -> GeometryCause:
    assert one.suspect is not None
    suspect, fit = one.suspect, one.fit
    words = suspect.words if isinstance(suspect.words, str) else suspect.words(fit.extra)
    corrected = suspect.measurements
    if corrected is None and suspect.repair is not None:
        corrected = suspect.repair(fit.extra)
    there = fit
    if suspect.code is GeometryCauseCode.OUTLIERS and corrected is not None:
        geometry = problem.geometry
        there = fitted(Problem.of(geometry.robot, corrected, geometry.model, geometry.bodies))
    return GeometryCause(
        code=suspect.code,
        words=words,
        probability=probability,
        gain=one.score - nothing.score,
        before=nothing.fit.typical,
        after=there.typical,
        tool=_between(problem.geometry, nothing.fit.x, there.x, q),
        advice=suspect.advice,
        corrected=corrected,
    )


def workspace(robot: Robot, measurements: Sequence[Measurement]) -> Array:
    """Postures (N, n) over the workspace: joints between their limits, or over what was measured without limits."""
    q = np.concatenate([m.q for m in measurements])
    limits = {j.name: j.limits for j in robot.joints}
    low = np.array([limits[name].lower for name in robot.coordinates])
    high = np.array([limits[name].upper for name in robot.coordinates])
    low, high = np.where(np.isfinite(low), low, q.min(0)), np.where(np.isfinite(high), high, q.max(0))
    return np.asarray(np.random.default_rng(0).uniform(low, high, (_TOOL, q.shape[1])))


def _tool(geometry: Geometry, x: Array, q: Array) -> tuple[Array, Array]:
    width = len(geometry.unknowns)
    found = geometry.place(geometry.postures(q), x[:width], width)[geometry.frames[0]]
    return found.origin, found.shift


def _tool_std(geometry: Geometry, fit: Fit, q: Array) -> float:
    width = len(geometry.unknowns)
    origin, shift = _tool(geometry, fit.x, q)
    return float(np.sqrt(aligned_variance(origin, shift, fit.covariance[:width, :width]).mean()))


def _between(geometry: Geometry, a: Array, b: Array, q: Array) -> float:
    """Distance (m) of the tool by two geometries, root mean square, without a common rigid motion."""
    first, second = _tool(geometry, a, q)[0], _tool(geometry, b, q)[0]
    basis = np.linalg.qr(rigid_columns(first - first.mean(0)))[0]
    away = (second - first).ravel()
    away = away - basis @ (basis.T @ away)
    return float(np.sqrt((away**2).sum() / len(first)))
