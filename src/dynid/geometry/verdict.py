"""Can an identified geometry be trusted? A verdict from the fit, from places left out, and from named causes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Assessment, Check, CheckCode, Result
from dynid.assessment.verdict.grade import graded, listed, unchecked
from dynid.geometry.causes import GeometryCauses, find_geometry_causes, workspace
from dynid.geometry.estimate import GeometryEstimate, aligned_variance
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.suspects import GeometryCauseCode
from dynid.geometry.unknowns import UnknownKind

__all__ = ["assess_geometry"]

Array = NDArray[np.float64]

# Error at places left out over that with the robot's file.
_BETTER, _BETTER_FAILS = 0.9, 1.2
# The same over what noise and the uncertainty of the tool explain, and over the error of the fit.
_EXPLAINED, _EXPLAINED_FAILS = 2.0, 6.0
# Scatter of a sensor over the expected one.
_NOISE, _NOISE_FAILS = 3.0, 30.0
# Share of postures set aside.
_ASIDE, _ASIDE_FAILS = 0.05, 0.2
# Values over their stated standard deviations, less two of their own.
_ABSURD, _ABSURD_FAILS, _CERTAIN = 6.0, 25.0, 2.0
# Uncertainty of the tool over the workspace, over that before any measurement.
_SHOWN, _SHOWN_FAILS = 1 / 3, 0.8
# The same over the error at places left out: how much worse the tool may be elsewhere.
_ELSEWHERE, _ELSEWHERE_FAILS = 5.0, 20.0
# Numbers measured for each combination that they show.
_NUMBERS, _NUMBERS_FAIL = 1.5, 1.0
# Probability from which a cause is told without "perhaps", and motion of the tool by correcting it over its standard
# deviation from which the geometry is of no use.
_SURE, _HARM = 0.95, 5.0
_NOT_GIVEN = "the measurements are not given"


def assess_geometry(
    estimate: GeometryEstimate,
    measurements: Measurement | Sequence[Measurement] = (),
    causes: GeometryCauses | None = None,
) -> Assessment:
    """Assess an identified geometry.

    Parameters
    ----------
    estimate : GeometryEstimate
        What was identified.
    measurements : Measurement or sequence of Measurement, optional
        What it was identified from, postures in the order in which they were measured. Without them no cause is
        searched, and what depends on postures is not checked.
    causes : GeometryCauses, optional
        Causes that were found in them; searched by default.

    Returns
    -------
    Assessment

    Examples
    --------
    >>> import dynid, numpy as np
    >>> from dynid.geometry import Points, assess_geometry, calibrate_geometry
    >>> robot, rng = dynid.load_robot("tx40"), np.random.default_rng(0)
    >>> q = rng.uniform(-2, 2, (40, 6))
    >>> tip = dynid.dynamics.frame_placement(robot, q + 0.01, robot.links[-1].name)
    >>> seen = (tip @ [0.1, 0, 0.05, 1])[:, :3] + 2e-4 * rng.normal(size=(40, 3))
    >>> points = Points(q, robot.links[-1].name, points=seen)
    >>> assess_geometry(calibrate_geometry(robot, points), points).verdict
    'trusted'
    """
    given = (measurements,) if isinstance(measurements, Measurement) else tuple(measurements)
    if causes is None and given:
        causes = find_geometry_causes(estimate.robot, given, estimate.model, bodies=estimate.bodies)
    checks = (
        _cause(causes),
        _solver(estimate),
        _better(estimate),
        _explained(estimate),
        _noise(estimate),
        _outliers(estimate),
        _absurd(estimate),
        *_postures(estimate, given),
    )
    return Assessment(estimate.robot.name, "geometry", checks)


def _cause(causes: GeometryCauses | None) -> Check:
    code = CheckCode.RESIDUAL
    if causes is None:
        return unchecked(code, _NOT_GIVEN)
    if not causes.causes:
        return Check(code, "passed", "no cause makes the measurements more probable")
    first = causes.causes[0]
    if first.code is GeometryCauseCode.UNKNOWN:
        return Check(code, "warned", causes.words, advice=first.advice)
    harm = max(c.tool for c in causes.causes) / max(causes.tool_std, 1e-12)
    perhaps = "" if len(causes.causes) == 1 and first.probability >= _SURE else "perhaps "
    words = (
        f"{perhaps}{causes.words}: correcting it moves the tool by {1e3 * max(c.tool for c in causes.causes):.2g} mm, "
        f"and errors at postures left out go from {1e3 * first.before:.2g} to {1e3 * first.after:.2g} mm"
    )
    gross = first.after < 0.5 * first.before
    failed = gross or (harm > _HARM and not perhaps)
    result: Result = "failed" if failed else "warned"
    return Check(code, result, words, first.probability, unit="probability", advice=first.advice)


def _solver(estimate: GeometryEstimate) -> Check:
    if estimate.converged:
        return Check(CheckCode.SOLVER, "passed", f"the fit converged after {estimate.iterations} steps")
    words = f"the fit did not converge after {estimate.iterations} steps"
    return Check(CheckCode.SOLVER, "failed", words, advice="check the joints' order, signs and units, or measure more")


def _better(estimate: GeometryEstimate) -> Check:
    held = estimate.held_out
    if held is None:
        return Check(
            CheckCode.PRIOR, "warned", "no posture was left out", advice="calibrate with postures left out (held_out)"
        )
    before, after = held.rms
    # Where the file is right to the noise, nothing is there to be gained.
    ratio = np.sqrt(max(after**2 - _expected(estimate) ** 2, 0.0)) / max(before, 1e-12)
    return graded(
        CheckCode.PRIOR,
        ratio,
        _BETTER,
        _BETTER_FAILS,
        "times the error with the robot's file, without the sensor's noise",
        f"the error at {held.by} left out goes from {1e3 * before:.3g} to {1e3 * after:.3g} mm",
        "keep the robot's file, and measure more postures",
    )


def _expected(estimate: GeometryEstimate) -> float:
    """Error (m) that the fit itself leaves, root mean square over sensors without postures set aside."""
    return float(np.sqrt(np.mean([s.after**2 for s in estimate.sensors])))


def _explained(estimate: GeometryEstimate) -> Check:
    """Errors at places left out against what the fit leaves; medians, so that single outliers do not decide."""
    held = estimate.held_out
    if held is None:
        return unchecked(CheckCode.ERROR_GROWTH, "no posture was left out")
    after = float(np.nanmedian(held.after))
    fit = _expected(estimate)
    ratio = after / max(fit, 1e-12)
    return graded(
        CheckCode.ERROR_GROWTH,
        ratio,
        _EXPLAINED,
        _EXPLAINED_FAILS,
        "times the error of the fit",
        f"the median error at {held.by} left out is {1e3 * after:.3g} mm, that of the fit {1e3 * fit:.3g} mm",
        "measure more postures, in more places",
    )


def _noise(estimate: GeometryEstimate) -> Check:
    worst = max(estimate.sensors, key=lambda s: s.noise)
    return graded(
        CheckCode.NOISE,
        worst.noise,
        _NOISE,
        _NOISE_FAILS,
        "times the expected noise",
        f"{worst.name} scatters {worst.noise:.2g} times as much as was expected of it",
        "state the noise of the sensor if it is known to be larger; else look for what moves, slips or is read wrongly",
    )


def _outliers(estimate: GeometryEstimate) -> Check:
    code = CheckCode.OUTLIERS
    aside = sum(len(s.set_aside) for s in estimate.sensors)
    share = aside / sum(s.postures for s in estimate.sensors)
    advice = "look at these postures: a ball not seated, a marker mistaken, a robot not at rest"
    if estimate.heavy_tails:
        words = "more than a tenth of the postures have errors that chance does not explain"
        return Check(code, "warned", words, advice=advice)
    named = [str(i) for s in estimate.sensors for i in s.set_aside]
    words = f"postures {listed(named)} are set aside" if named else "no posture is set aside"
    return graded(code, share, _ASIDE, _ASIDE_FAILS, "of the postures", words, advice)


def _absurd(estimate: GeometryEstimate) -> Check:
    """Unknowns of joints that are certainly many times what one expects of them."""
    count = estimate.joint_count
    size = np.maximum(np.abs(estimate.values[:count]) - _CERTAIN * estimate.std[:count], 0.0)
    ratio = size / np.array([u.std for u in estimate.unknowns[:count]])
    k = int(np.argmax(ratio))
    one = estimate.unknowns[k]
    shown = {"m": (1e3, "mm"), "rad": (180 / np.pi, "degrees")}
    scale, unit = shown.get(one.unit, (1.0, one.unit))
    words = (
        f"{one.name} differs by {scale * estimate.values[k]:.3g} {unit} from the file, where {scale * one.std:.2g} "
        f"{unit} are expected"
    )
    return graded(
        CheckCode.PLAUSIBLE_GEOMETRY,
        float(ratio[k]),
        _ABSURD,
        _ABSURD_FAILS,
        "times what is expected, less two standard deviations",
        words,
        "compare zeros, signs, order and units of joints and lengths with the robot; or expect more in the model",
    )


def _postures(estimate: GeometryEstimate, given: Sequence[Measurement]) -> tuple[Check, ...]:
    """Checks of the postures: whether they are enough, and whether they show the tool over the workspace."""
    if not given:
        codes = (CheckCode.EXCITATION, CheckCode.PREDICTION_UNCERTAINTY, CheckCode.DOMAIN)
        return tuple(unchecked(code, _NOT_GIVEN) for code in codes)
    std, stated = _tool_std(estimate, workspace(estimate.robot, given))
    return _enough(estimate, given), _over_workspace(estimate, std, stated), _elsewhere(estimate, std)


def _enough(estimate: GeometryEstimate, given: Sequence[Measurement]) -> Check:
    """Numbers that were measured for each unknown that they have to show."""
    sensors = sum(u.kind is UnknownKind.SENSOR for u in estimate.unknowns)
    numbers = sum(len(m.q) * len(m.std) for m in given)
    least = (estimate.rank + sensors) / numbers
    postures = sum(len(m.q) for m in given)
    words = f"{postures} postures give {numbers} numbers for {estimate.rank + sensors} combinations that they show"
    advice = "measure more postures, spread over the workspace"
    return graded(CheckCode.EXCITATION, least, 1 / _NUMBERS, 1 / _NUMBERS_FAIL, "unknowns per number", words, advice)


def _tool_std(estimate: GeometryEstimate, q: Array) -> tuple[float, float]:
    """Standard deviation (m) of the tool over the workspace, root mean square, and that before any measurement."""
    width = estimate.joint_count
    found = estimate.geometry.place(estimate.geometry.postures(q), estimate.values[:width], width)[estimate.frames[0]]
    before = np.diag(estimate.prior_std[:width] ** 2)
    both = (estimate.covariance[:width, :width], before)
    now, then = (float(np.sqrt(aligned_variance(found.origin, found.shift, c).mean())) for c in both)
    return now, then


def _over_workspace(estimate: GeometryEstimate, std: float, stated: float) -> Check:
    return graded(
        CheckCode.PREDICTION_UNCERTAINTY,
        std / max(stated, 1e-12),
        _SHOWN,
        _SHOWN_FAILS,
        "times the standard deviation before any measurement",
        f"over the workspace the tool is known to {1e3 * std:.2g} mm, without measurements to {1e3 * stated:.2g} mm",
        "measure more postures, spread over the workspace and over the turns of each joint",
    )


def _elsewhere(estimate: GeometryEstimate, std: float) -> Check:
    code, held = CheckCode.DOMAIN, estimate.held_out
    if held is None:
        return unchecked(code, "no posture was left out")
    there = float(np.nanmedian(held.after))
    return graded(
        code,
        std / max(there, 1e-12),
        _ELSEWHERE,
        _ELSEWHERE_FAILS,
        "times the error at places left out",
        f"the tool is known to {1e3 * std:.2g} mm over the workspace, and errors left out are {1e3 * there:.2g} mm",
        "postures are too similar: spread them over the workspace and over the turns of each joint",
    )
