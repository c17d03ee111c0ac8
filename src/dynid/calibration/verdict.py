"""Can an identified payload or drive gains be trusted?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Assessment, Check, CheckCode
from dynid.assessment.verdict.grade import graded, listed, unchecked
from dynid.calibration.drive_gains import DriveGains
from dynid.calibration.payload import MassSource, Payload
from dynid.robot.inertia import inertia_violations

__all__ = ["assess_gains", "assess_payload"]

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
_OF_MASS, _OF_FRICTION = "of the mass", "of the friction"


def assess_payload(result: Payload) -> Assessment:
    """Assess an identified payload.

    Parameters
    ----------
    result : Payload
        What was identified.

    Returns
    -------
    Assessment
        The verdict and its checks.
    """
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


def assess_gains(result: DriveGains) -> Assessment:
    """Assess identified drive gains.

    Parameters
    ----------
    result : DriveGains
        What was identified.

    Returns
    -------
    Assessment
        The verdict and its checks.
    """
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
