"""Can identified friction be trusted?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Assessment, Check, CheckCode
from dynid.assessment.verdict.error_checks import check_repeated
from dynid.assessment.verdict.grade import check_held_out, graded, listed, unchecked
from dynid.friction.result import FrictionFit
from dynid.friction.selection import FrictionSelection
from dynid.identification.validation import Validation

__all__ = ["assess_friction"]

Array = NDArray[np.float64]

# Relative difference of what parts of the recordings give, where noise does not explain it.
_DIFFERENCE, _DIFFERENCE_FAILS, _SIGNIFICANT = 0.05, 0.3, 3.0
# Share of the torque or current that is not explained, as for an arm: median over the joints.
_ERROR, _ERROR_FAILS = 0.2, 0.5
# Friction: share of its own torque that is not explained; growth on other motion; relative standard deviation.
_FRICTION, _FRICTION_FAILS = 0.5, 1.0
_GROWTH, _GROWTH_FAILS = 2.5, 5.0
_VAGUE, _VERY_VAGUE = 0.5, np.inf
# Laws whose information criterion differs by less are as good as the selected one; by how much they may differ.
_AS_GOOD, _LAWS, _LAWS_FAIL = 4.0, 0.15, 1.0
# Slow motion is below this share of the largest velocity; rows in each direction, and slow ones.
_SLOW, _DIRECTION, _SLOW_ROWS = 0.2, 0.05, 0.02
# Change of the friction from the first to the last quarter, as a share of it.
_DRIFT, _DRIFT_FAILS = 0.1, 0.5
_OF_MASS, _OF_FRICTION = "of the mass", "of the friction"


def assess_friction(result: FrictionSelection, unseen: Validation | None = None) -> Assessment:
    """Assess identified friction.

    Parameters
    ----------
    result : FrictionSelection
        What was identified.
    unseen : Validation, optional
        Errors on motion that was not fitted.

    Returns
    -------
    Assessment
        The verdict and its checks.
    """
    return Assessment(
        result.robot.name,
        "friction",
        (
            check_held_out(unseen is not None),
            check_repeated(np.nan if unseen is None else unseen.repeated),
            _friction_error(unseen),
            _friction_growth(result, unseen),
            _friction_residual(result),
            _velocities(result),
            _laws(result),
            _friction_uncertainty(result),
            _warm_up(result),
        ),
    )


def _friction_error(unseen: Validation | None) -> Check:
    code, unit = CheckCode.VALIDATION_ERROR, "of the torque"
    if unseen is None:
        return unchecked(code, "no motion was held out")
    share = np.nan_to_num(unseen.relative, nan=0.0)
    worst = int(np.argmax(share))
    words = f"on other motion the torque of '{unseen.channels[worst]}' is off by {100 * share[worst]:.2g} %"
    return graded(code, float(share[worst]), _ERROR, _ERROR_FAILS, unit, words, "fit more kinds of motion")


def _friction_growth(found: FrictionSelection, unseen: Validation | None) -> Check:
    code, unit = CheckCode.ERROR_GROWTH, "times the error of the fitted motion"
    if unseen is None:
        return unchecked(code, "no motion was held out")
    fitted = np.array([found[joint].best.rms for joint in unseen.channels])
    growth = np.nan_to_num(unseen.rmse / np.maximum(fitted, 1e-12), nan=0.0)
    # Errors that are small beside the torque may grow.
    growth = np.where(unseen.relative > _ERROR / 4, growth, np.minimum(growth, 1.0))
    worst = int(np.argmax(growth))
    words = f"'{unseen.channels[worst]}' has {growth[worst]:.2g} times the error of the fitted motion"
    return graded(code, float(growth[worst]), _GROWTH, _GROWTH_FAILS, unit, words, "fit more kinds of motion")


def _friction_residual(found: FrictionSelection) -> Check:
    """What of the friction the selected law leaves."""
    code, unit = CheckCode.RESIDUAL, _OF_FRICTION
    size = [float(np.sqrt(np.mean(fit.friction**2))) if len(fit.friction) else np.nan for fit in found.fits]
    share = np.array([fit.best.rms / max(x, 1e-300) for fit, x in zip(found.fits, size, strict=True)])
    if np.isnan(share).all():
        return unchecked(code, "the measured friction is not known")
    worst = int(np.nanargmax(share))
    words = f"{100 * share[worst]:.2g} % of the friction of '{found.joints[worst]}' stay unexplained"
    advice = "compare other models, with load and temperature, and check the bodies of the arm"
    return graded(code, float(share[worst]), _FRICTION, _FRICTION_FAILS, unit, words, advice)


def _velocities(found: FrictionSelection) -> Check:
    """Whether each joint moves in both directions, and slowly too."""
    code = CheckCode.EXCITATION
    for fit in (x for x in found.fits if not x.from_map and len(x.velocity)):
        forward = float(np.mean(fit.velocity > 0))
        if min(forward, 1 - forward) < _DIRECTION:
            words = f"'{fit.joint}' moves in one direction only, so that friction cannot be told from an offset"
            return Check(code, "failed", words, advice="record motion in both directions")
    for fit in (x for x in found.fits if len(x.velocity)):
        slow = np.abs(fit.velocity) < _SLOW * fit.max_velocity
        if np.mean(slow) < _SLOW_ROWS:
            limit = f"{_SLOW * fit.max_velocity:.2g} {_rate(fit)}"
            words = f"'{fit.joint}' has no slow motion below {limit}, where laws differ most"
            return Check(code, "warned", words, advice="record slow motion with reversals")
    reach = ", ".join(f"'{fit.joint}' up to {fit.max_velocity:.2g} {_rate(fit)}" for fit in found.fits[:3])
    return Check(code, "passed", f"slow and fast motion in both directions, of {reach}")


def _rate(fit: FrictionFit) -> str:
    return "m/s" if fit.prismatic else "rad/s"


def _laws(found: FrictionSelection) -> Check:
    """Whether laws that fit as well as the selected one give the same friction."""
    held = [f"{name} of '{fit.joint}'" for fit in found.fits for name in fit.best.at_zero]
    if held:
        words = f"{listed(held)} is held at zero, because it would be negative"
        return Check(CheckCode.LAW, "warned", words, advice="compare other models, and check the sign of the torque")
    worst, where, other = 0.0, "", ""
    for fit in found.fits:
        v = np.linspace(-1, 1, 80) * fit.max_velocity
        curve = fit.curve(v, load=fit.mean_load, temperature=fit.mean_temperature)
        for model in fit.ranking[1:]:
            if model.aic > fit.best.aic + _AS_GOOD:
                continue
            change = model.curve(v, load=fit.mean_load, temperature=fit.mean_temperature) - curve
            share = float(np.linalg.norm(change) / max(float(np.linalg.norm(curve)), 1e-300))
            worst, where, other = max((worst, where, other), (share, fit.joint, model.name))
    words = "laws that fit as well give the same friction"
    if worst > _LAWS:
        words = f"the law '{other}' fits '{where}' as well and differs from the selected one by {100 * worst:.2g} %"
    advice = "record slow and fast motion, or a longer log, to tell the laws apart"
    return graded(CheckCode.LAW, worst, _LAWS, _LAWS_FAIL, _OF_FRICTION, words, advice)


def _friction_uncertainty(found: FrictionSelection) -> Check:
    """Standard deviations of the coefficients that are a torque at one velocity, relative to the friction."""
    shares = {}
    for fit in found.fits:
        for name, value in fit.parameters.items():
            if value and name not in fit.best.at_zero and name != "off":
                shares[f"{name} of '{fit.joint}'"] = fit.std[name] / abs(value)
    if not shares:
        return unchecked(CheckCode.UNCERTAINTY, "there is no coefficient of friction")
    worst = max(shares, key=lambda x: shares[x])
    words = f"{worst} has a standard deviation of {100 * shares[worst]:.2g} %"
    if not np.isfinite(shares[worst]):
        words = f"{worst} is not identifiable from the motion"
    advice = "record more motion at the velocities where it matters, or choose a law with fewer coefficients"
    return graded(CheckCode.UNCERTAINTY, shares[worst], _VAGUE, _VERY_VAGUE, "of the coefficient", words, advice)


def _warm_up(found: FrictionSelection) -> Check:
    """Whether friction changes from the first to the last quarter of the rows."""
    code = CheckCode.CHANGE
    drifts = {fit.joint: _drift(fit) for fit in found.fits}
    drifts = {joint: x for joint, x in drifts.items() if np.isfinite(x)}
    if not drifts:
        return unchecked(code, "the friction over time is not known, or follows load or temperature")
    worst = max(drifts, key=lambda x: abs(drifts[x]))
    words = "friction is the same at the beginning and at the end"
    if abs(drifts[worst]) > _DRIFT:
        trend = "falls" if drifts[worst] < 0 else "grows"
        words = f"friction of '{worst}' {trend} by {100 * abs(drifts[worst]):.2g} % from the first to the last quarter"
    advice = "warm the joints up before the recording, or log the temperature and fit a model with it"
    return graded(code, abs(drifts[worst]), _DRIFT, _DRIFT_FAILS, _OF_FRICTION, words, advice)


def _drift(fit: FrictionFit) -> float:
    """Change of the friction over the rows as a share of it; zero where noise suffices, NaN where it is not known."""
    model = fit.best.model
    if fit.from_map or len(fit.velocity) < 20 or model.needs("load") or model.needs("temperature"):
        return float("nan")
    along = np.sign(fit.velocity) * (fit.friction - fit.curve(fit.velocity))
    quarter = len(along) // 4
    change = float(along[-quarter:].mean() - along[:quarter].mean())
    noise = float(np.std(along)) * np.sqrt(2 * fit.rows / (quarter * max(fit.effective_rows, 1.0)))
    size = float(np.sqrt(np.mean(fit.friction**2)))
    return change / max(size, 1e-300) if abs(change) > _SIGNIFICANT * noise else 0.0
