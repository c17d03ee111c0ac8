"""Share of a learned torque that is used, as a function of its uncertainty.

    share = clip((gone - variance / prior variance) / (gone - whole), 0, 1)

Source: own rule.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidValue

__all__ = ["Blend"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Blend:
    """How the learned torque fades to zero where the data do not support it.

    The share falls linearly with the posterior variance, and with the distance of a position from the range of the
    training data.

    Parameters
    ----------
    whole : float
        The learned torque is used whole up to this share of the prior variance, from 0 to 1.
    gone : float
        It is not used from this share of the prior variance on, `whole` to 1.
    reach : float
        It is not used where a position lies beyond the range of the training data by this share of the range.

    Examples
    --------
    >>> import numpy as np
    >>> Blend(whole=0.5, gone=1.0)(np.array([0.2, 0.75, 1.0]))
    array([1. , 0.5, 0. ])
    """

    whole: float = 0.5
    gone: float = 1.0
    reach: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.whole <= self.gone <= 1 or self.gone == 0:
            raise InvalidValue(f"a blend needs 0 <= whole <= gone <= 1, got {self.whole:g} and {self.gone:g}", "whole")
        if not self.reach > 0:
            raise InvalidValue(f"a blend's reach must be positive, got {self.reach:g}", "reach")

    @staticmethod
    def everywhere() -> Blend:
        """A blend that uses the learned torque whole everywhere."""
        return Blend(1.0, 1.0, np.inf)

    def __call__(self, uncertainty: Array) -> Array:
        """Share of the learned torque that is used, for posterior variances given as shares of the prior variance."""
        if self.whole == self.gone:
            return np.where(uncertainty <= self.whole, 1.0, 0.0)
        return np.asarray(np.clip((self.gone - uncertainty) / (self.gone - self.whole), 0.0, 1.0))
