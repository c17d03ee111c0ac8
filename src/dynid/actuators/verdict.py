"""Can identified actuators be trusted? A verdict from the fit, the law and the motion that was not fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Assessment, Check, CheckCode
from dynid.assessment.verdict.error_checks import check_repeated
from dynid.assessment.verdict.grade import check_held_out, graded, listed, unchecked

if TYPE_CHECKING:
    from dynid.actuators.estimate import ActuatorEstimate
    from dynid.actuators.validation import PositionErrors

__all__ = ["assess_actuators"]

# Position error of a simulated run, as a share of the range of the joint.
_ERROR, _ERROR_FAILS = 0.05, 0.2
# Error on unseen motion over the fitted one.
_GROWTH, _GROWTH_FAILS = 1.5, 4.0
# Share of the range of a joint below which errors do not count as growth.
_SMALL = 0.005
# Relative change of a proportional gain, and standard deviations from zero, from which the law is in doubt.
_KP, _KP_FAILS, _KP_SIGNIFICANT = 0.05, 0.3, 4.0
# Armature that is certain, over that of the given robot.
_ARMATURE, _ARMATURE_FAILS, _CERTAIN = 5.0, 10.0, 2.0
# Friction that is certain, over that of the given robot, from which a search for causes is asked for; and the factor by
# which a cause that is named changes an armature or friction, from which the values are of no use.
_FRICTION, _HARM = 2.0, 2.0
_KD_ADVICE = (
    "check kd, kp, the order and the units of the joints; where kd acts on the velocity of the command too, give the "
    'law velocity_target = "command"'
)


def assess_actuators(
    estimate: ActuatorEstimate, unseen: PositionErrors | None = None, prior: PositionErrors | None = None
) -> Assessment:
    """Assess identified actuators.

    Parameters
    ----------
    estimate : ActuatorEstimate
    unseen : PositionErrors, optional
        Errors of simulated motion that was not fitted.
    prior : PositionErrors, optional
        The same with the a-priori robot and law.

    Returns
    -------
    Assessment
    """
    others = (
        _solver(estimate),
        check_held_out(unseen is not None),
        check_repeated(np.nan if unseen is None else unseen.repeated),
        _error(unseen),
        _growth(estimate, unseen),
        _better(estimate, unseen, prior),
        _law(estimate),
        _armature(estimate),
        _shown(estimate),
    )
    failed = any(x.result == "failed" for x in others)
    return Assessment(estimate.robot.name, "actuators", (_unmodeled(estimate, failed), _delay(estimate), *others))


def _unmodeled(estimate: ActuatorEstimate, failed: bool) -> Check:
    """Unmodeled effects; friction that is a multiple of the given one needs a search that finds none."""
    code, found = CheckCode.RESIDUAL, estimate.causes
    if found is not None and found.causes:
        harm = failed or max(x.change for x in found.causes) > _HARM
        words = ", and ".join(x for x in (found.words, found.effect) if x)
        return Check(code, "failed" if harm else "warned", words, advice=found.advice)
    doubled = _doubled(estimate)
    if found is not None and not found.large and not (doubled and found.unexplained):
        return Check(code, "passed", found.words)
    if found is None and not doubled:
        return unchecked(code, "nobody searched for unmodeled effects")
    told = "no cause was searched" if found is None else found.words
    words = ", and ".join(x for x in (doubled, told) if x)
    advice = (
        "search for unmodeled effects (actuator_causes)"
        if found is None
        else "look for cables, springs, bodies and gears that differ from the model of this joint; do not rely on its "
        "armature and friction"
    )
    return Check(code, "warned", words, advice=advice)


def _doubled(estimate: ActuatorEstimate) -> str:
    """The friction that certainly is the largest multiple of the given one, if it has doubled; "" otherwise."""
    found = [
        (float((value - _CERTAIN * std) / prior), f"{x.label} is {value / prior:.2g} times the given one")
        for x, value, std, prior in zip(
            estimate.unknowns, estimate.values, estimate.std, estimate.prior_values, strict=True
        )
        if x.quantity == "friction" and not x.expression and np.isfinite(std) and prior > 0
    ]
    ratio, words = max(found, default=(0.0, ""))
    return words if ratio > _FRICTION else ""


def _solver(estimate: ActuatorEstimate) -> Check:
    whole = f"after {estimate.iterations} steps, over {estimate.horizon:.3g} s"
    if estimate.converged:
        return Check(CheckCode.SOLVER, "passed", f"the fit converged {whole}")
    advice = "give better start values in the law, or fewer unknowns"
    return Check(CheckCode.SOLVER, "warned", f"the fit did not converge {whole}", advice=advice)


def _error(unseen: PositionErrors | None) -> Check:
    if unseen is None:
        return unchecked(CheckCode.VALIDATION_ERROR, "no motion was held out")
    if not np.isfinite(unseen.rms).all():
        words, advice = "the simulation of the other motion diverges", "compare law, units and masses with the robot"
        return Check(CheckCode.VALIDATION_ERROR, "failed", words, advice=advice)
    share = unseen.rms / np.where(_moves(unseen), unseen.range, np.inf)
    worst = int(np.argmax(share))
    return graded(
        CheckCode.VALIDATION_ERROR,
        float(share[worst]),
        _ERROR,
        _ERROR_FAILS,
        "of the range of the joint",
        f"the simulated motion is off by {unseen.rms[worst]:.2g} (root mean square) on '{unseen.joints[worst]}', "
        f"{100 * share[worst]:.2g} % of its range",
        "compare the command, the law and the delay with the robot; a joint that is worse than the others may have "
        "another sign, zero or gear",
    )


def _moves(unseen: PositionErrors) -> NDArray[np.bool_]:
    """Joints that move, unlike one that shows the steps of its encoder only."""
    return np.asarray(unseen.range > _SMALL * unseen.range.max())


def _growth(estimate: ActuatorEstimate, unseen: PositionErrors | None) -> Check:
    if unseen is None:
        return unchecked(CheckCode.ERROR_GROWTH, "no motion was held out")
    if not np.isfinite(unseen.rms).all():
        return unchecked(CheckCode.ERROR_GROWTH, "the simulation of the other motion diverges")
    floor = _SMALL * unseen.range
    growth = np.where(_moves(unseen), unseen.rms, 0.0) / np.maximum(np.maximum(estimate.rms, floor), 1e-12)
    worst = int(np.argmax(growth))
    if unseen.rms[worst] <= floor[worst]:
        words = f"no error of other motion exceeds {100 * _SMALL:g} % of the range of its joint"
    else:
        small = estimate.rms[worst] < floor[worst]
        than = f"{100 * _SMALL:g} % of its range" if small else "the error of the fitted motion"
        words = f"'{unseen.joints[worst]}' has {growth[worst]:.2g} times {than}"
    return graded(
        CheckCode.ERROR_GROWTH,
        float(growth[worst]),
        _GROWTH,
        _GROWTH_FAILS,
        f"times the error of the fitted motion, or {100 * _SMALL:g} % of the range where that is less",
        words,
        "fit more kinds of motion, or fewer unknowns",
    )


def _better(estimate: ActuatorEstimate, unseen: PositionErrors | None, prior: PositionErrors | None) -> Check:
    found, given = (estimate.rms, estimate.prior_rms) if unseen is None or prior is None else (unseen.rms, prior.rms)
    ratio = float(np.mean(found) / np.mean(given)) if np.all(np.isfinite(given)) and np.any(given > 0) else np.nan
    if not np.all(np.isfinite(given)):
        return Check(CheckCode.PRIOR, "passed", "the given robot and law do not simulate this motion at all")
    return graded(
        CheckCode.PRIOR,
        ratio,
        1.0,
        1.2,
        "times the error of the given robot",
        f"the mean position error is {ratio:.2g} times that of the given robot and law",
        "the given values are better: keep them",
    )


def _law(estimate: ActuatorEstimate) -> Check:
    """Whether most joints want other gains, or no friction at all; else whether a single joint does."""
    kp, kd = _Gains.of(estimate, "kp"), _Gains.of(estimate, "kd")
    if not kp.known.any() and not kd.known.any():
        return unchecked(CheckCode.LAW, "the log does not show the gains of the law, or they are unknown")
    worse, name = max((kp, "proportional"), (kd, "derivative"), key=lambda x: abs(x[0].typical))
    typical, unit = abs(worse.typical), "relative change of a gain"
    without = _without_friction(estimate)
    if typical > _KP:
        side = "above" if worse.typical > 0 else "below"
        words = f"the motion fits a {name} gain {100 * typical:.0f} % {side} that of the law"
        advice = "check kp and kd, the torque constant and the masses of the model; or let --unknown contain kp or gain"
        advice = _KD_ADVICE if worse is kd else advice
        return graded(CheckCode.LAW, typical, _KP, _KP_FAILS, unit, words, advice)
    if without.mean() > 0.5:
        words = f"damping and friction of {listed(_named(estimate, without))} would be negative"
        return Check(CheckCode.LAW, "failed", words, advice=_KD_ADVICE)
    single = kp.wrong | kd.wrong | without
    if single.any():
        words = f"the gains of the law do not agree with the motion of {listed(_named(estimate, single))}"
        advice = (
            "compare kp, kd, gear and masses of such a joint with the robot; or let --unknown contain offset or bias"
        )
        return Check(CheckCode.LAW, "warned", words, advice=advice)
    words = "the gains of the law agree with the motion"
    return graded(CheckCode.LAW, typical, _KP, _KP_FAILS, unit, words)


class _Gains(NamedTuple):
    """Gains that are known, those that are wrong, and the change that most joints ask for, zero if there is none."""

    known: NDArray[np.bool_]
    wrong: NDArray[np.bool_]
    typical: float

    @staticmethod
    def of(estimate: ActuatorEstimate, gain: str) -> _Gains:
        change, std = getattr(estimate, f"{gain}_change"), getattr(estimate, f"{gain}_change_std")
        known = np.isfinite(change) & np.isfinite(std)
        significant = known & (np.abs(np.where(known, change, 0.0)) > _KP_SIGNIFICANT * std)
        # One joint may be explained by its own friction or gear; a law is one for all of them.
        joints = known.sum() if gain == "kp" else np.count_nonzero(estimate.law.kd)
        typical = float(np.median(change[significant])) if significant.sum() > 0.5 * joints else 0.0
        return _Gains(known, significant & (np.abs(np.where(known, change, 0.0)) > _KP_FAILS), typical)


def _without_friction(estimate: ActuatorEstimate) -> NDArray[np.bool_]:
    """Joints whose damping and friction were both unknown and are both zero, because they would be negative."""
    at = [
        {
            j
            for x, bound in zip(estimate.unknowns, estimate.at_bound, strict=True)
            if x.quantity == q and bound
            for j in x.joints
        }
        for q in ("damping", "friction")
    ]
    return np.array([j in at[0] and j in at[1] for j in estimate.law.joints])


def _named(estimate: ActuatorEstimate, which: NDArray[np.bool_]) -> list[str]:
    """Names of joints, in quotes."""
    return [f"'{name}'" for name, one in zip(estimate.law.joints, which, strict=True) if one]


def _delay(estimate: ActuatorEstimate) -> Check:
    early = -1e3 * estimate.negative_delay
    if not any(x.quantity == "delay" for x in estimate.unknowns):
        return unchecked(CheckCode.DELAY, "the delay was given")
    if early == 0.0:
        return Check(CheckCode.DELAY, "passed", "commands act after they are logged")
    words = f"commands act before they are logged: a delay of about -{early:.2g} ms fits better"
    advice = "log commands when they are sent, or move them to one row earlier; a wrong law can look like this, too"
    return Check(CheckCode.DELAY, "warned", words, advice=advice)


def _armature(estimate: ActuatorEstimate) -> Check:
    """Whether an armature is many times that of the given robot: it then stands for something else."""
    code = CheckCode.PLAUSIBLE_BODIES
    found = [
        (float((value - _CERTAIN * std) / prior), x, value, prior)
        for x, value, std, prior in zip(
            estimate.unknowns, estimate.values, estimate.std, estimate.prior_values, strict=True
        )
        if x.quantity == "armature" and not x.expression and np.isfinite(std) and prior > 0
    ]
    if not found:
        return unchecked(code, "no armature was given and found")
    ratio, x, value, prior = max(found, key=lambda one: one[0])
    words = f"{x.label} is {value:.3g} {x.unit}, {value / prior:.2g} times the given {prior:.3g} {x.unit}"
    return graded(
        code,
        max(ratio, 0.0),
        _ARMATURE,
        _ARMATURE_FAILS,
        "times the given armature, less two standard deviations",
        words,
        "check the law, the delay, the unit and the gear of this joint, and the masses of the robot; if the file only "
        "guesses the armature, give it a better guess",
    )


def _shown(estimate: ActuatorEstimate) -> Check:
    lost = [x.label for x, std in zip(estimate.unknowns, estimate.std, strict=True) if np.isinf(std)]
    pairs = estimate.confounded
    if lost:
        words = f"the log does not show {listed(lost)}"
    elif pairs:
        words = "the log does not tell apart " + listed(
            [f"{x.first} and {x.second} (correlation {x.correlation:.3f})" for x in pairs]
        )
    else:
        return Check(CheckCode.EXCITATION, "passed", "the log shows every unknown")
    advice = "command motion with more frequencies and larger accelerations, or leave unknowns out"
    return Check(CheckCode.EXCITATION, "warned", words, advice=advice)
