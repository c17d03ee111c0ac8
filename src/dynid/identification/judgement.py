"""Judgement: the verdict on an estimate in short, which its file and every file made of it hold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["REASONS", "Grade", "Judgement"]

Grade = Literal["trusted", "use with care", "do not use", "not assessed"]
# From the best to the worst. "not assessed" stands for the absence of a verdict.
_ORDER: tuple[Grade, ...] = ("trusted", "use with care", "do not use")
REASONS = 3


@dataclass(frozen=True)
class Judgement:
    """The verdict on an estimate and its first reasons.

    Attributes
    ----------
    grade : {"trusted", "use with care", "do not use", "not assessed"}
        The verdict.
    reasons : tuple of str
        Up to three reasons, the most important first.
    checked : bool
        Whether the verdict rests on motion that was not used for the fit.
    """

    grade: Grade = "not assessed"
    reasons: tuple[str, ...] = ()
    checked: bool = False

    def after(self, earlier: Judgement | None) -> Judgement:
        """The judgement that holds after an earlier one: without unseen motion a verdict can only get worse.

        Parameters
        ----------
        earlier : Judgement or None
            What the estimate held before.

        Returns
        -------
        Judgement
            This one, or the earlier one where this one saw less and is not worse.
        """
        if earlier is None or earlier.grade == "not assessed" or self.checked:
            return self
        worse = self.grade in _ORDER and _ORDER.index(self.grade) > _ORDER.index(earlier.grade)
        return self if worse else earlier
