"""Verdicts on what is identified beside the model of an arm: payloads, drive gains, friction, fleets and actuators."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.estimate import ActuatorEstimate
from dynid.assessment.verdict.actuators import assess_actuators
from dynid.assessment.verdict.assessment import Assessment, Check, CheckCode
from dynid.assessment.verdict.error_checks import check_repeated
from dynid.assessment.verdict.grade import check_held_out, graded, listed, unchecked
from dynid.calibration.drive_gains import DriveGains
from dynid.calibration.payload import MassSource, Payload
from dynid.errors import InvalidType
from dynid.fleet.health import TemperatureCode, UnitCode
from dynid.fleet.result import FleetEstimate
from dynid.friction.result import FrictionFit
from dynid.friction.selection import FrictionSelection
from dynid.identification.validation_errors import Validation
from dynid.robot.inertia import inertia_violations

__all__ = ["assess_result"]

Array = NDArray[np.float64]

# What a single source may add to the standard deviation of a mass, as a share of it.
_SOURCE, _SOURCE_FAILS = 0.03, 0.3
# Relative standard deviation of a mass or a gain; beyond the second a payload is hardly told from none.
_STD, _STD_FAILS = 0.05, 1 / 3
# Relative difference of what parts of the recordings give, where noise does not explain it.
_DIFFERENCE, _DIFFERENCE_FAILS, _SIGNIFICANT = 0.05, 0.3, 3.0
# Scatter of five parts relative to their noise, which by chance is larger in one of sixteen cases.
_SCATTERED = 1.5
# Share of the torque or current that is not explained, as for an arm: median over the joints.
_ERROR, _ERROR_FAILS = 0.2, 0.5
# A payload that changes no residual by this share explains nothing.
_EXPLAINS = 0.02
# Distance of the centre of mass from the origin of the link, m.
_REACH, _REACH_FAILS = 0.5, 1.0
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
# Dates of a unit from which a drift and a step can be told apart.
_DATES = 4
_OF_MASS, _OF_FRICTION = "of the mass", "of the friction"


@singledispatch
def assess_result(result: object, unseen: Any = None, prior: Any = None) -> Assessment:
    """Assess a payload, drive gains, friction, a fleet or identified actuators.

    Parameters
    ----------
    result : Payload, DriveGains, FrictionSelection, FleetEstimate or ActuatorEstimate
        What was identified.
    unseen : Validation or PositionErrors, optional
        Errors on motion that was not fitted, of friction and of actuators.
    prior : PositionErrors, optional
        The same with the a-priori robot and law, of actuators.

    Returns
    -------
    Assessment
        The verdict and its checks.

    Raises
    ------
    DataError
        If there is no verdict on results of this kind.
    """
    raise InvalidType(f"there is no verdict on a result of type {type(result).__name__}", "result")


assess_result.register(ActuatorEstimate, assess_actuators)


@assess_result.register
def _assess_payload(result: Payload, unseen: None = None, prior: None = None) -> Assessment:
    return Assessment(
        result.robot,
        "payload",
        (
            _gains_of_mass(result),
            _arm_model(result),
            _channels_agree(result),
            _parts_agree(result),
            _mass_uncertainty(result),
            _payload_shown(result),
            _payload_residual(result),
            _consistent(result),
            _within_reach(result),
        ),
    )


def _gains_of_mass(found: Payload) -> Check:
    """How far the gains of the drives decide the mass."""
    code = CheckCode.GAINS
    if found.gain_std == 0:
        return unchecked(code, "the gains of the logged torques count as exact, and an error of 1 % is 1 % of the mass")
    share = found.mass_sources[MassSource.GAINS] / max(abs(found.mass), 1e-12)
    known = "their measured uncertainty" if found.gains_known else "typed gains that nobody measured"
    words = (
        f"the gains of the drives decide the mass of {found.mass:.3g} kg: with {known} ({100 * found.gain_std:.2g} %) "
        f"they make {found.mass_sources[MassSource.GAINS]:.2g} of its standard deviation of {found.mass_std:.2g} kg"
    )
    if share <= _SOURCE:
        words = f"the gains of the drives add {100 * share:.2g} % to the standard deviation of the mass"
    advice = "identify the gains with a known mass (dynid gains), and state what is left of their error (gain_std)"
    return graded(code, share, _SOURCE, _SOURCE_FAILS, _OF_MASS, words, advice)


def _arm_model(found: Payload) -> Check:
    """Whether the known model of the arm agrees with the loaded runs."""
    code = CheckCode.ARM_MODEL
    if np.isnan(found.arm_scale):
        return Check(code, "passed", "the arm is identified from runs without the payload")
    std = found.mass_sources[MassSource.ARM]
    share = std / max(abs(found.mass), 1e-12)
    words = f"errors of the known arm make {std:.2g} kg of the standard deviation of the mass"
    if found.arm_scale > 0 and share > _SOURCE:
        words = f"the loaded runs contradict the known model of the arm, whose errors make {std:.2g} kg of the mass"
    advice = "give runs without the payload, of the same day and motion"
    return graded(code, share, _SOURCE, _SOURCE_FAILS, _OF_MASS, words, advice)


def _channels_agree(found: Payload) -> Check:
    """Whether all joints give the same mass."""
    known = np.isfinite(found.channel_mass) & (found.channel_mass_std < abs(found.mass))
    if known.sum() < 2:
        return unchecked(CheckCode.TORQUE_SCALE, "fewer than two joints show the mass")
    low, high = found.channel_mass[known].min(), found.channel_mass[known].max()
    beyond = f"{100 * found.scatter:.2g} % beyond their noise"
    words = f"single joints give {low:.3g} to {high:.3g} kg, which scatter by {beyond}"
    advice = "compare gains, friction and the model of the arm joint by joint"
    return graded(CheckCode.TORQUE_SCALE, found.scatter, _DIFFERENCE, _DIFFERENCE_FAILS, _OF_MASS, words, advice)


def _parts_agree(found: Payload) -> Check:
    """Whether parts of the runs give the same mass."""
    scatter = float(found.repeatability[0])
    share = scatter / max(abs(found.mass), 1e-12) if found.parts_ratio > _SCATTERED else 0.0
    words = f"{len(found.parts)} parts of the runs give masses that scatter by {scatter:.2g} kg"
    advice = "look for a payload that moved, friction that warmed up, or contact in a part of the runs"
    return graded(CheckCode.PARAMETER_AGREEMENT, share, _DIFFERENCE, _DIFFERENCE_FAILS, _OF_MASS, words, advice)


def _mass_uncertainty(found: Payload) -> Check:
    source = max(found.mass_sources, key=lambda x: found.mass_sources[x])
    share = found.mass_std / max(abs(found.mass), 1e-12)
    words = (
        f"the mass is {found.mass:.3g} kg with a standard deviation of {found.mass_std:.2g} kg, "
        f"most of it from the {source.value}"
    )
    advice = "record more motion, with larger changes of the posture"
    return graded(CheckCode.UNCERTAINTY, share, _STD, _STD_FAILS, _OF_MASS, words, advice)


def _payload_shown(found: Payload) -> Check:
    """Whether the motion shows mass and centre; the inertia of a small body hardly matters."""
    advice = "turn the joints that carry the payload through other postures"
    if not found.shown[0]:
        return Check(CheckCode.EXCITATION, "failed", "the motion does not show the mass of the payload", advice=advice)
    if found.form == "full" and not all(found.shown[1:4]):
        words = "the motion does not show the whole centre of mass of the payload"
        return Check(CheckCode.EXCITATION, "warned", words, advice=advice)
    inertia = found.form != "full" or all(found.shown[4:])
    words = "the motion shows mass and centre" + ("" if inertia else ", and not the whole inertia of the payload")
    return Check(CheckCode.EXCITATION, "passed", words)


def _payload_residual(found: Payload) -> Check:
    """What is left unexplained with the payload, and without it."""
    code, unit = CheckCode.RESIDUAL, "of the torque, median over the joints"
    median = float(np.median(found.unexplained))
    words = (
        f"{100 * median:.2g} % of the torque stay unexplained with the payload and "
        f"{100 * float(np.median(found.bare)):.2g} % without it"
    )
    if np.all(found.unexplained > (1 - _EXPLAINS) * found.bare):
        words = "without a payload the loaded runs are explained as well"
        advice = "give runs without the payload, and move more with it"
        return Check(code, "warned", words, median, _ERROR, _ERROR_FAILS, unit, advice)
    return graded(code, median, _ERROR, _ERROR_FAILS, unit, words, "check signs, units and drive terms of the arm")


def _consistent(found: Payload) -> Check:
    code = CheckCode.PHYSICALLY_CONSISTENT
    broken = ["its mass is not positive"] if found.mass <= 0 else []
    if not broken and not found.feasible and found.form == "full":
        broken = inertia_violations(found.inertial)
    if broken:
        words = f"the payload is not physically consistent: {broken[0]}"
        return Check(code, "failed", words, advice="leave the constraint of physical consistency on")
    return Check(code, "passed", "the payload is physically consistent")


def _within_reach(found: Payload) -> Check:
    """Whether the centre of mass is near the link that carries the payload."""
    code = CheckCode.PLAUSIBLE_BODIES
    if found.mass <= 0 or not np.isfinite(found.centre_std).all():
        return unchecked(code, "the centre of mass is not known")
    distance = float(np.linalg.norm(found.centre))
    words = f"the centre of mass lies {distance:.2g} m from the origin of {found.link}"
    advice = "check --link and the torques of the joints before it"
    return graded(code, distance, _REACH, _REACH_FAILS, "m", words, advice)


@assess_result.register
def _assess_gains(result: DriveGains, unseen: None = None, prior: None = None) -> Assessment:
    return Assessment(
        "" if result.base is None else result.base.robot.name,
        "drive gains",
        (
            _separable(result),
            _gain_uncertainty(result),
            _halves_agree(result),
            _gain_signs(result),
            _within_bounds(result),
            _current_residual(result),
        ),
    )


def _separable(found: DriveGains) -> Check:
    """Whether the data tell the gains from the bodies."""
    code, advice = CheckCode.EXCITATION, "use a heavier known mass further out, or share the gain with an equal motor"
    hidden = [f"'{j}'" for j, shown in zip(found.joints, found.shown, strict=True) if not shown]
    scale = "measured torque" if found.payload is None else f"known mass of {found.payload[0]:.3g} kg"
    if not hidden:
        return Check(code, "passed", f"the {scale} tells every gain from the bodies of the arm")
    words = f"the {scale} does not tell the gain of {listed(hidden)} from the bodies of the arm"
    return Check(code, "failed" if len(hidden) == len(found.joints) else "warned", words, advice=advice)


def _gain_uncertainty(found: DriveGains) -> Check:
    share = found.std / np.maximum(np.abs(found.gains), 1e-300)
    worst = int(np.argmax(share))
    words = f"the gain of '{found.joints[worst]}' is known to {100 * share[worst]:.2g} %, the others better"
    advice = "record more motion with a heavier known mass"
    unit = "of the gain, one standard deviation"
    return graded(CheckCode.UNCERTAINTY, float(share[worst]), _STD, _STD_FAILS, unit, words, advice)


def _halves_agree(found: DriveGains) -> Check:
    """Whether both halves of the runs give the same gains."""
    code = CheckCode.PARAMETER_AGREEMENT
    if found.halves is None:
        return unchecked(code, "half of the runs does not show the gains")
    change = np.abs(found.halves[0] - found.halves[1])
    # Each half has twice the variance, and their difference four times.
    count = np.where(change > 2 * _SIGNIFICANT * found.std, change / np.maximum(np.abs(found.gains), 1e-300), 0.0)
    worst = int(np.argmax(count))
    words = "both halves of the runs give the same gains"
    if count[worst] > 0:
        first, second = found.halves[:, worst]
        both = f"{first:.3g} in the first half of the runs and {second:.3g} in the second"
        words = f"the gain of '{found.joints[worst]}' is {both}"
    advice = "look for friction that warmed up, or for an offset that changed between the runs (free)"
    return graded(code, float(count[worst]), _DIFFERENCE, _DIFFERENCE_FAILS, "of the gain", words, advice)


def _gain_signs(found: DriveGains) -> Check:
    wrong = [f"'{j}'" for j, g in zip(found.joints, found.gains, strict=True) if g <= 0]
    if not wrong:
        return Check(CheckCode.SIGNS, "passed", "every gain is positive")
    words = f"the gain of {listed(wrong)} is not positive"
    return Check(CheckCode.SIGNS, "failed", words, advice="turn the sign of that current when the log is read")


def _within_bounds(found: DriveGains) -> Check:
    if not found.at_bounds:
        return Check(CheckCode.BOUNDS, "passed", "no gain is at a bound")
    held = [f"'{j}'" for j in found.at_bounds]
    words = f"the gain of {listed(held)} is at its bound, which decides it"
    return Check(CheckCode.BOUNDS, "warned", words, advice="widen the bounds, or use a heavier known mass")


def _current_residual(found: DriveGains) -> Check:
    median = float(np.median(found.relative_error))
    words = f"{100 * median:.2g} % of the currents stay unexplained"
    unit = "of the current, median over the joints"
    return graded(CheckCode.RESIDUAL, median, _ERROR, _ERROR_FAILS, unit, words, "check friction terms and signs")


@assess_result.register
def _assess_friction(result: FrictionSelection, unseen: Validation | None = None, prior: None = None) -> Assessment:
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


@assess_result.register
def _assess_fleet(result: FleetEstimate, unseen: None = None, prior: None = None) -> Assessment:
    return Assessment(
        result.base.robot.name,
        "fleet",
        (
            _judged(result),
            _unlike(result),
            _dates(result),
            _left_out(result),
            _temperature(result),
            _shared_known(result),
            _unit_scatter(result),
        ),
    )


def _judged(found: FleetEstimate) -> Check:
    """Units with too few dates to tell a change."""
    short = [u.unit for u in found.health.units if u.code is UnitCode.TOO_SHORT]
    share = len(short) / len(found.units)
    words = "every unit can be judged"
    if short:
        words = f"{len(short)} of {len(found.units)} units have too few dates to be judged: {listed(short)}"
    return graded(CheckCode.UNITS, share, 0.0, 0.99, "of the units", words, "record these units on more dates")


def _unlike(found: FleetEstimate) -> Check:
    """Units whose bodies are not those of the others, which take no part in the common model."""
    code = CheckCode.PARAMETER_AGREEMENT
    if len(found.units) < 3:
        return unchecked(code, "a unit is compared with the others from three units on")
    unlike = [u.unit for u in found.health.units if u.unlike is not None]
    words = "the units are alike"
    if unlike:
        words = f"{len(unlike)} of {len(found.units)} units are unlike the others: {listed(unlike)}"
    advice = "compare joint order, units, gains and payload of these units"
    return graded(code, len(unlike) / len(found.units), 0.0, 0.5, "of the units", words, advice)


def _dates(found: FleetEstimate) -> Check:
    """The number of recordings behind a verdict on a unit."""
    dates = float(np.median([u.dates for u in found.health.units]))
    words = f"half of the units have {dates:g} dates or fewer, from {len(found.entries)} recordings"
    code, unit = CheckCode.RECORDING_LENGTH, "dates, median over the units"
    if dates >= _DATES:
        return Check(code, "passed", words, dates, _DATES, None, unit)
    advice = f"record each unit on {_DATES} dates or more: with fewer, a drift is not told from a step"
    return Check(code, "warned", words, dates, _DATES, None, unit, advice)


def _left_out(found: FleetEstimate) -> Check:
    share = found.left_out / max(found.left_out + len(found.entries), 1)
    words = "every recording was used"
    if found.left_out:
        words = f"{found.left_out} of {found.left_out + len(found.entries)} recordings could not be used"
    return graded(CheckCode.DATA, share, 0.0, 0.5, "of the recordings", words, "mend or remove these recordings")


def _temperature(found: FleetEstimate) -> Check:
    """Changes of friction that may be warmth."""
    vague = (TemperatureCode.NOT_LOGGED, TemperatureCode.NOT_SEPARATED)
    doubted = [c.unit for c in found.health.changes if c.temperature in vague]
    doubted = list(dict.fromkeys([*doubted, *(u.unit for u in found.health.units if u.untested)]))
    if not doubted:
        return Check(CheckCode.TEMPERATURE, "passed", "no change of friction may be temperature")
    words = f"friction of {listed(doubted)} may have changed with temperature only"
    advice = "log the temperature of the joints (temperature_JOINT), warm and cold"
    return Check(CheckCode.TEMPERATURE, "warned", words, advice=advice)


def _shared_known(found: FleetEstimate) -> Check:
    """Whether the recordings determine what all units share."""
    code, unit = CheckCode.UNCERTAINTY, "of the common parameters"
    if not found.shared_names:
        return unchecked(code, "the units share no parameter")
    lost = [
        n
        for n, x in zip(found.shared_names, np.diag(found.shared.shared_covariance), strict=True)
        if not np.isfinite(x)
    ]
    words = "the recordings determine every common parameter"
    if lost:
        words = f"no recording determines {listed(lost)}"
    return graded(code, len(lost) / len(found.shared_names), 0.0, 0.99, unit, words, "record motion of all joints")


def _unit_scatter(found: FleetEstimate) -> Check:
    """How far units differ by nature, and what decides on them: their own recordings or the fleet."""
    code = CheckCode.FLEET_SCATTER
    if found.pooled is None:
        return unchecked(code, "a fleet of one unit has no scatter")
    variance = np.diagonal(found.pooled.covariance, axis1=1, axis2=2)
    between = found.pooled.variance
    share = float(np.median(np.clip(1.0 - variance / np.maximum(between, 1e-300), 0.0, 1.0)))
    who = "their own recordings decide" if share > 0.5 else "the mean of the fleet decides"
    words = f"{who} on the parameters of single units, which are told apart for {100 * share:.0f} % of their scatter"
    return Check(code, "passed", words, share, None, None, "of the variance between units")
