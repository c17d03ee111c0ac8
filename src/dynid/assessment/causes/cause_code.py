"""Codes of causes: what each means, what to do about it, and from where on it counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["DRIVE_EFFECT", "UNKNOWN", "CauseCheck", "CauseCode", "Relevance"]

# Effects in one drive must be larger: where a joint reverses, good models of friction leave up to this share.
DRIVE_EFFECT = 0.02
# Check of the verdict that names a cause.
CauseCheck = Literal["geometry", "torque_scale", "delay", "flexibility", "change", "residual"]


@dataclass(frozen=True)
class Relevance:
    """From where on a candidate counts as a cause.

    Attributes
    ----------
    share : float
        Share of the residual that it explains in a joint.
    agreement : float
        The same in most joints, of what acts in all of them.
    unexplained : float
        Its part in a joint that parameters cannot imitate, relative to the torque of the joint.
    effect : float
        Its whole torque, relative to the torque of the joint.
    sigmas : float
        Standard deviations from zero. The amplitude of an oscillation scatters over the blocks of time, because its
        phase leaves that of the model: fewer are asked for.
    positive : bool
        Whether only a positive size has a meaning.
    imitated : bool
        Whether parameters imitate most of it, so that its share of the residual is small however large it is.
    clear : bool
        Whether it counts from a smaller share of a noisy residual where it is very clear.
    """

    share: float = 0.1
    agreement: float = 0.0
    unexplained: float = 0.003
    effect: float = 0.01
    sigmas: float = 4.0
    positive: bool = False
    imitated: bool = False
    clear: bool = False


class CauseCode(str):
    """Stable code of a cause; descriptions may be reworded, codes are not.

    Parameters
    ----------
    code : str
        The code itself, in small letters.
    meaning : str
        What it is, in a few words for a table.
    advice : str
        What to do about it.
    named_from : str
        From which size on it is named, for a table.
    check : str, default "residual"
        Check of the verdict that names it.
    relevance : Relevance
        From where on a candidate counts.
    fatal : bool, default False
        Whether nothing else can be found, or trusted, before it is corrected.
    between : bool, default False
        Whether it may differ between recordings.
    """

    meaning: str
    advice: str
    named_from: str
    check: CauseCheck
    relevance: Relevance
    fatal: bool
    between: bool

    def __new__(
        cls,
        code: str,
        meaning: str = "",
        advice: str = "",
        named_from: str = "",
        *,
        check: CauseCheck = "residual",
        relevance: Relevance | None = None,
        fatal: bool = False,
        between: bool = False,
    ) -> CauseCode:
        """Make a code with what is known of it."""
        self = super().__new__(cls, code)
        self.meaning, self.advice, self.named_from, self.check = meaning, advice, named_from, check
        self.relevance = Relevance() if relevance is None else relevance
        self.fatal, self.between = fatal, between
        return self


# What no candidate explains.
UNKNOWN = CauseCode(
    "unknown",
    "none of these: a residual that follows the state of its joint and returns on motion that was not fitted",
    "look at the residual of the joint over this quantity, search drive, cables and sensor for what does that, or "
    "learn it (dynid compensate)",
    "1 % of the torque, a fifth of the residual",
)
