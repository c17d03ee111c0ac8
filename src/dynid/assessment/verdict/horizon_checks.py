"""Check of simulated motion: the estimate must not simulate worse than the a-priori model."""

from __future__ import annotations

from dynid.assessment.verdict.assessment import Check, CheckCode
from dynid.assessment.verdict.evidence import Evidence
from dynid.assessment.verdict.grade import graded, unchecked

__all__ = ["check_simulation"]

_HORIZON = 0.5  # s; later, errors of open-loop simulations depend more on gravity than on the model
# Errors of the estimate over those of the a-priori model, as for predicted torques.
_WORSE, _MUCH_WORSE = 1.05, 1.3
# Errors relative to those of a constant velocity are the unexplained share of all accelerations. Up to a fifth, the
# limit for predicted torques, an a-priori model that is even better is no reason against the estimate.
_MATERIAL = 0.2
_MOST = 0.5


def check_simulation(evidence: Evidence) -> Check:
    """Check the error of simulated motion, half a second after measured states, against the a-priori model."""
    code, found = CheckCode.SIMULATION_ERROR, evidence.simulation
    if found is None:
        return unchecked(code, "the recording of unseen motion was not given")
    if found.identified is None:
        return unchecked(code, f"the unseen motion was not simulated: {found.reason}")
    comparison = found.compare(_HORIZON)
    if comparison is None:
        why = found.reason or f"too few starts are followed by {_HORIZON:g} s of motion"
        return unchecked(code, f"simulated motion was not compared with the a-priori model: {why}")
    # Where both models are worse than a constant velocity, offsets and noise of the torques move them, not the model.
    # A model most of whose simulations end early is another matter.
    prior_share = comparison.share / comparison.ratio
    if min(comparison.share, prior_share) > 1.0 and found.identified.failed() <= _MOST:
        why = "neither model follows this motion better than a constant velocity does"
        return unchecked(code, f"simulated motion says little here: {why} ({comparison.words})")
    # The lower end of the interval: what is worse by chance is not called worse.
    figure = comparison.low if comparison.share > _MATERIAL else min(comparison.low, 1.0)
    words = f"errors of positions that are simulated {_HORIZON:g} s ahead of measured states are {comparison.words}"
    failed = sum(count for ending, count in found.identified.counts().items() if ending.ended_early)
    if failed:
        words += f"; {failed} of {len(found.identified.endings)} simulations ended early"
    return graded(
        code,
        figure,
        _WORSE,
        _MUCH_WORSE,
        "times the a-priori error",
        words,
        "do not simulate with this model; look for wrong friction, gains or gravity, or keep the a-priori model",
    )
