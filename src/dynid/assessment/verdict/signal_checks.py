"""Checks of the signals behind an estimate: the cut-off of their low-pass, and joints that stand still.

An error on unseen motion cannot show that a low-pass removed a part of the motion, because the same filter removes it
from the unseen motion too. A fit to less filtered signals shows it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.assessment import Check, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked
from dynid.errors import DynidError
from dynid.identification.observation import Observation
from dynid.identification.observing import observe_motions
from dynid.signals.settings import prepare

__all__ = ["check_cutoff", "check_standstill"]

Array = NDArray[np.float64]

# Change of predicted torques with twice the cut-off, as a share of the torque. An inertia that is wrong by more than
# this changes predictions by as much at high accelerations.
_CHANGE, _LARGE_CHANGE = 0.02, 0.1
# Standard errors beyond which a change is significant.
_SIGNIFICANT = 3.0
# Largest cut-off as a share of the sampling rate.
_HIGHEST = 0.45
# Singular values of a fit, relative to the largest, that noise decides.
_RANK = 1e-6


def check_cutoff(evidence: Evidence) -> Check:
    """Check whether signals with twice the cut-off give other parameters: then the low-pass removed motion."""
    code = CheckCode.CUTOFF
    if evidence.recording is None or not evidence.motions or evidence.fitted is None:
        return unchecked(code, "the fitted recording was not given")
    if not any(motion.cutoff for motion in evidence.motions):
        return unchecked(code, "the positions were not filtered")
    try:
        change = _change(evidence)
    except DynidError as error:
        return unchecked(code, f"there is no fit to signals with twice the cut-off: {error}")
    share = np.where(change[0] > _SIGNIFICANT * change[1], change[0], 0.0)
    worst = int(np.argmax(share))
    words = (
        "signals with twice the cut-off give the same parameters"
        if share[worst] <= _CHANGE
        else f"with twice the cut-off the predicted torque of '{evidence.estimate.base.channels[worst]}' changes by "
        f"{100 * share[worst]:.2g} %: the low-pass of the positions removes a part of the motion"
    )
    advice = "give a higher cut-off to the signal settings (cutoff), or choose it automatically"
    return graded(code, float(share[worst]), _CHANGE, _LARGE_CHANGE, "of the torque", words, advice)


def _change(evidence: Evidence) -> tuple[Array, Array]:
    """Change of predicted torques (channel,) with twice the cut-off and its standard error, as shares of the torque."""
    estimate, fitted = evidence.estimate, evidence.fitted
    assert evidence.recording is not None and fitted is not None
    wider = []
    for run, motion in zip(evidence.recording.runs, evidence.motions, strict=True):
        # Torques and rows stay as they were: only the positions are filtered less.
        cutoff = None if motion.cutoff is None else min(2.0 * motion.cutoff, _HIGHEST * motion.rate)
        wider.append(prepare(run, replace(estimate.signals, cutoff=cutoff, decimate=motion.decimate)))
    other = observe_motions(estimate.base, wider, estimate.signals)
    own, _ = _fit(fitted, evidence.noise)
    changed, root = _fit(other, evidence.noise)
    torque = np.maximum(fitted.torque_norms(), 1e-300)
    rows = np.maximum(np.array(other.rows, dtype=float), 1.0)
    # Noise of the torques is what is left of them with the wider signals; correlated rows count less.
    noise = float(np.max(other.residual_norms(changed) / np.sqrt(rows) / evidence.noise))
    alone = np.array(estimate.independent_rows) if estimate.independent_rows else rows
    noise *= float(np.sqrt(np.max(rows / np.maximum(np.minimum(alone, rows), 1.0))))

    def size(change: Array) -> Array:
        """Norm of the change of predicted torques (channel,), on the motion that changes more."""
        both = (np.array([np.linalg.norm(f[:, :-1] @ change) for f in seen.factors]) for seen in (fitted, other))
        return np.asarray(np.maximum(*both))

    return size(changed - own) / torque, noise * size(root) / torque


def _fit(seen: Observation, noise: Array) -> tuple[Array, Array]:
    """Least squares (b,) in the directions that the rows determine, and a root (b, r) of its covariance."""
    factor = seen.stacked(1.0 / noise)
    scale = np.linalg.norm(factor[:, :-1], axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    u, s, vt = np.linalg.svd(factor[:, :-1] / scale, full_matrices=False)
    kept = s > _RANK * s[0]
    root = (vt[kept] / s[kept, None] / scale).T
    return np.asarray(root @ (u[:, kept].T @ factor[:, -1])), np.asarray(root)


def check_standstill(evidence: Evidence) -> Check:
    """Check that every joint moves; parameters of a joint that stands still are unknown."""
    code, estimate = CheckCode.STANDSTILL, evidence.estimate
    unknown = [n for n, s in zip(estimate.base.names, estimate.std, strict=True) if np.isposinf(s)]
    still = [c for c, rows in zip(estimate.base.channels, estimate.rows, strict=True) if not rows]
    unit = "unknown base parameters"
    if not unknown and not still:
        return Check(code, "passed", "every joint moves", 0, 0, None, unit)
    joints = ", ".join(f"'{c}'" for c in still) or "a joint"
    more = ", ..." if len(unknown) > 4 else ""
    words = (
        f"{joints} stands still: {len(unknown)} base parameters are unknown and keep their a-priori values "
        f"({', '.join(unknown[:4])}{more})"
    )
    return Check(code, "warned", words, float(len(unknown)), 0, None, unit, "record a motion of all joints")
