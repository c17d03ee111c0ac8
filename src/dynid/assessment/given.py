"""Whether an observation that a caller passes on belongs to an estimate."""

from __future__ import annotations

from dynid.errors import Mismatch
from dynid.identification.estimate import Estimate
from dynid.identification.observation import Observation

__all__ = ["check_observation"]


def check_observation(estimate: Estimate, observation: Observation) -> Observation:
    """Return an observation of the estimate's base parameters and signal settings; refuse any other."""
    base = estimate.base
    if observation.base.names != base.names or observation.base.channels != base.channels:
        raise Mismatch("the observation is of other base parameters or channels than the estimate")
    if observation.signals != estimate.signals:
        raise Mismatch("the observation was cleaned with other signal settings than the estimate's")
    return observation
