"""Checks of the bodies of an estimate: whether they are plausible, and how much of their mass the data do not show."""

from __future__ import annotations

import numpy as np

from dynid.assessment.model.plausible import implausible_bodies
from dynid.assessment.verdict.assessment import Check, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import unchecked
from dynid.parameters.base import ParameterClass

__all__ = ["check_bodies", "check_unidentified_mass"]

_UNIT = "implausible figures"
# Reduction of the sum of squares by which a wall of the plausible box holds more than noise: 99.9 % of chi-squared with
# one degree of freedom.
_PUSHED = 10.8
_WALL_ADVICE = "check tools, gains and units of the torques, and link lengths: a body imitates what is missing"


def check_bodies(evidence: Evidence) -> Check:
    """Check mass, centre of mass, radius of gyration and density of every body against the size of its link."""
    estimate, code = evidence.estimate, CheckCode.PLAUSIBLE_BODIES
    if estimate.standard is None:
        return unchecked(code, f"method '{estimate.method}' estimates combinations, not bodies")
    if estimate.standard_covariance is None:
        return unchecked(code, "the standard deviations of the bodies are not known")
    found = implausible_bodies(
        estimate.robot,
        estimate.standard,
        covariance=estimate.standard_covariance,
        prior=estimate.robot.parameters,
    )
    pushed = [wall for wall in estimate.walls if wall.gain > _PUSHED]
    if pushed and not any(f.severity == "error" and f.origin != "prior" for f in found):
        more = f", and {len(pushed) - 1} more" if len(pushed) > 1 else ""
        words = f"{pushed[0]}: something is not in the model{more}"
        return Check(code, "warned", words, float(len(pushed)), 0, None, "walls", _WALL_ADVICE)
    if not found:
        return Check(code, "passed", "every body is plausible for the size of its link", 0, 0, 0, _UNIT)
    first, more = found[0], f", and {len(found) - 1} more" if len(found) > 1 else ""
    own = [f for f in found if f.origin != "prior"]
    if not own and first.severity == "warning":
        words = f"every body that the recording determines is plausible; a priori, {first.what}{more}"
        return Check(code, "passed", words, 0, 0, 0, _UNIT)
    return Check(
        code=code,
        result="failed" if own and first.severity == "error" else "warned",
        words=first.what + more,
        figure=float(len(found)),
        limit=0,
        failure=None,
        unit=_UNIT,
        advice=first.what_to_do,
    )


def check_unidentified_mass(evidence: Evidence) -> Check:
    """Give the share of the total mass that the recording does not determine.

    The torques of this motion do not show it, so that it is no reason for distrust; bodies taken one by one need it.
    """
    estimate, code = evidence.estimate, CheckCode.UNIDENTIFIED_MASS
    layout, classes = estimate.robot.layout, estimate.parameter_classes
    masses = [j for j, p in enumerate(layout) if p.inertial and p.symbol == "m"]
    values = np.maximum(estimate.parameters[masses], 0.0)
    total = float(values.sum())
    if not total > 0:
        return unchecked(code, "the bodies of this robot have no mass")
    open_masses = np.array([classes[layout[j].name] == ParameterClass.UNIDENTIFIABLE for j in masses])
    share = float(values[open_masses].sum()) / total
    links = [layout[j].owner for j, is_open in zip(masses, open_masses, strict=True) if is_open]
    named = ", ".join(links[:4]) + (" and more" if len(links) > 4 else "")
    if links:
        words = (
            f"{100 * share:.0f} % of the total mass of {total:.3g} kg is not identifiable from this recording ({named})"
        )
    else:
        words = f"the total mass of {total:.3g} kg is identified, by itself or in combinations"
    return Check(code, "passed", words, share, None, None, "of the total mass")
