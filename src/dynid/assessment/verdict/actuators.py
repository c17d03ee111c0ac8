"""Can identified actuators be trusted? A verdict from the fit, the law and the motion that was not fitted."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynid.assessment.verdict.assessment import Assessment, Check, CheckCode
from dynid.assessment.verdict.error_checks import check_repeated
from dynid.assessment.verdict.grade import graded, unchecked

if TYPE_CHECKING:
    from dynid.actuators.estimate import ActuatorEstimate
    from dynid.actuators.validation import PositionErrors

__all__ = ["assess_actuators"]

# Position error of a simulated run, as a share of the range of the joint.
_ERROR, _ERROR_FAILS = 0.05, 0.2
# Error on unseen motion over the fitted one.
_GROWTH, _GROWTH_FAILS = 1.5, 4.0
# Relative change of a proportional gain, and standard deviations from zero, from which the law is in doubt.
_KP, _KP_FAILS, _KP_SIGNIFICANT = 0.1, 0.3, 4.0


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
    return Assessment(
        estimate.robot.name,
        "actuators",
        (
            _solver(estimate),
            _evidence(unseen),
            check_repeated(np.nan if unseen is None else unseen.repeated),
            _error(unseen),
            _growth(estimate, unseen),
            _better(estimate, unseen, prior),
            _law(estimate),
            _shown(estimate),
        ),
    )


def _solver(estimate: ActuatorEstimate) -> Check:
    whole = f"after {estimate.iterations} steps, over {estimate.horizon:.3g} s"
    if estimate.converged:
        return Check(CheckCode.SOLVER, "passed", f"the fit converged {whole}")
    advice = "give better start values in the law, or fewer unknowns"
    return Check(CheckCode.SOLVER, "warned", f"the fit did not converge {whole}", advice=advice)


def _evidence(unseen: PositionErrors | None) -> Check:
    if unseen is not None:
        return Check(CheckCode.EVIDENCE, "passed", "simulated on motion that was not fitted")
    return Check(
        CheckCode.EVIDENCE,
        "warned",
        "no motion was held out",
        advice="hold a part of the log out, or record a second one",
    )


def _error(unseen: PositionErrors | None) -> Check:
    if unseen is None:
        return unchecked(CheckCode.VALIDATION_ERROR, "no motion was held out")
    share = unseen.rms / np.where(unseen.range > 0, unseen.range, np.inf)
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


def _growth(estimate: ActuatorEstimate, unseen: PositionErrors | None) -> Check:
    if unseen is None:
        return unchecked(CheckCode.ERROR_GROWTH, "no motion was held out")
    floor = 0.005 * unseen.range
    growth = unseen.rms / np.maximum(np.maximum(estimate.rms, floor), 1e-12)
    worst = int(np.argmax(growth))
    return graded(
        CheckCode.ERROR_GROWTH,
        float(growth[worst]),
        _GROWTH,
        _GROWTH_FAILS,
        "times the error of the fitted motion",
        f"'{unseen.joints[worst]}' has {growth[worst]:.2g} times the error of the fitted motion",
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
    change, std = estimate.kp_change, estimate.kp_change_std
    known = np.isfinite(change) & np.isfinite(std)
    if not known.any():
        return unchecked(CheckCode.LAW, "the log does not show the gains of the law, or they are unknown")
    significant = known & (np.abs(change) > _KP_SIGNIFICANT * std)
    # One joint may be explained by its own friction or gear; a law is one for all of them.
    typical = float(np.median(change[significant])) if significant.sum() > 0.5 * known.sum() else 0.0
    words = "the gains of the law agree with the motion"
    advice = ""
    if abs(typical) > _KP:
        side = "above" if typical > 0 else "below"
        words = f"the motion fits a proportional gain {abs(100 * typical):.0f} % {side} that of the law"
        advice = "check kp and kd, the torque constant and the masses of the model; or let --unknown contain kp or gain"
    return graded(
        CheckCode.LAW, abs(typical), _KP, _KP_FAILS, "relative change of the proportional gain", words, advice
    )


def _shown(estimate: ActuatorEstimate) -> Check:
    lost = [x.label for x, std in zip(estimate.unknowns, estimate.std, strict=True) if np.isinf(std)]
    pairs = estimate.confounded
    if lost:
        words = f"the log does not show {_listed(lost)}"
    elif pairs:
        words = "the log does not tell apart " + _listed(
            [f"{x.first} and {x.second} (correlation {x.correlation:.3f})" for x in pairs]
        )
    else:
        return Check(CheckCode.EXCITATION, "passed", "the log shows every unknown")
    advice = "command motion with more frequencies and larger accelerations, or leave unknowns out"
    return Check(CheckCode.EXCITATION, "warned", words, advice=advice)


def _listed(names: list[str]) -> str:
    shown = names[:3]
    return ", ".join(shown) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
