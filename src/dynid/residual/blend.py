"""How far a learned torque is used, by how uncertain it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError

__all__ = ["Blend"]

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Blend:
    """How the learned part fades: whole up to the share `whole` of the prior variance, 0 from `gone`.

    It fades too where a position that the kernel sees leaves the range that was learned from, to 0 at the share `reach`
    of that range beyond it. `Blend.everywhere()` trusts it everywhere.
    """

    whole: float = 0.5
    gone: float = 1.0
    reach: float = 0.2

    def __post_init__(self) -> None:
        if not 0 <= self.whole <= self.gone <= 1 or self.gone == 0:
            raise DataError(f"a blend needs 0 <= whole <= gone <= 1, got {self.whole:g} and {self.gone:g}")
        if not self.reach > 0:
            raise DataError(f"a blend's reach must be positive, got {self.reach:g}")

    @staticmethod
    def everywhere() -> Blend:
        return Blend(1.0, 1.0, np.inf)

    def __call__(self, uncertainty: Array) -> Array:
        """Share of the learned part that is used, for shares of the prior variance."""
        if self.whole == self.gone:
            return np.where(uncertainty <= self.whole, 1.0, 0.0)
        return np.asarray(np.clip((self.gone - uncertainty) / (self.gone - self.whole), 0.0, 1.0))
