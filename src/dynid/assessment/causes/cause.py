"""Causes of a residual: what is wrong with the data, the model or the robot, by name, with its size."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from dynid.assessment.causes.cause_code import UNKNOWN, CauseCode
from dynid.hypothesis import probability
from dynid.markup import HtmlFrame

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Cause", "Causes", "Trial"]


# Share of the error that a correction takes away at least where it is advised with its effect.
_WORTH = 0.05
# A cause whose correction leaves this share of the error is right in half of all cases, and how fast that changes with
# the logarithm of the share. Fitted to 281 first causes of `dynid reproduce verdicts` (four seeds, three plants), with
# every case searched once without the right candidate; the two pairs of seeds alone give 0.56, 1.7 and 0.52, 1.3.
_EVEN, _STEEPNESS = 0.54, 1.5


@dataclass(frozen=True)
class Trial:
    """What correcting a cause does to the error of motion that is not in the fit.

    `before` and `after` are errors of predicted torques relative to the torque, in the joint that gains most. `unseen`
    says whether they are those of an unseen recording, or of parts that are left out of the fit. Where they are those
    of bodies near the file, `strain` is the share of what these leave beyond free ones that remains with the cause.
    """

    joint: str
    before: float
    after: float
    unseen: bool
    strain: float | None = None

    def __str__(self) -> str:
        """Return the trial as part of a sentence."""
        where = "unseen motion" if self.unseen else "motion left out of the fit"
        before, after = 100 * self.before, max(100 * self.after, 1e-3)
        digits = max(0, 1 - math.floor(math.log10(after)))
        sizes = f"from {before:.{digits}f} to {after:.{digits}f} % of its torque"
        whose = ", with bodies near those of the file," if self.strain is not None else ""
        return f"the error of '{self.joint}' on {where}{whose} then falls {sizes}"

    @property
    def left(self) -> float:
        """Share of the error, or of the strain, that the correction leaves."""
        if self.strain is not None:
            return self.strain
        return self.after / self.before if self.before > 0 else 1.0

    @property
    def gains(self) -> bool:
        """Whether the correction lowers the error by an amount that is worth it."""
        return self.after < (1.0 - _WORTH) * self.before


@dataclass(frozen=True)
class Cause:
    """A cause of the residual.

    Attributes
    ----------
    code : CauseCode
        Stable code of the cause.
    joints : tuple of str
        Joints at which it acts; () where it concerns all of them.
    words : str
        The cause in words, with its size.
    size, std : float
        Size in `unit` and its standard deviation, which holds with autocorrelated residuals.
    unit : str
        Unit of the size.
    share : float
        Share of the residual power that it explains, in the joint where that share is largest.
    unexplained : float
        What it adds to the torques beyond what the parameters can imitate, relative to the torque of the joint, in the
        joint where that is largest.
    effect : float
        Its whole torque relative to the torque of the joint, in the joint where that is largest.
    p_value : float
        p-value, corrected for the number of candidates.
    alternatives : tuple of Cause
        Other causes that explain the same part of the residual nearly as well: these data cannot tell which it is.
    trial : Trial or None
        What correcting it, after the causes before it, does to the error of motion that is not in the fit; None where
        that cannot be tried on the rows of the recording.
    option : str
        Effect that adds it to the model, for `--effect`, `[robot] effects` and `Robot.with_effects`; "" where no effect
        does.
    """

    code: CauseCode
    joints: tuple[str, ...]
    words: str
    size: float
    std: float
    unit: str
    share: float
    unexplained: float
    effect: float
    p_value: float
    alternatives: tuple[Cause, ...] = ()
    trial: Trial | None = None
    option: str = ""

    @property
    def probability(self) -> float:
        """Probability that it, or one of its alternatives, is right, where in half of all cases no candidate is.

        It follows from the share of the error that its correction leaves on motion that is not in the fit.
        """
        if self.code == UNKNOWN:
            return 1.0
        left = math.sqrt(max(1.0 - self.share, 0.0)) if self.trial is None else self.trial.left
        return 1.0 / (1.0 + (left / _EVEN) ** _STEEPNESS)

    @property
    def advice(self) -> str:
        """Recommended remedy, and what it gains."""
        words = "; or ".join(dict.fromkeys(c._remedy for c in (self, *self.alternatives)))
        return f"{words}: {self.trial}" if self.trial is not None and self.trial.gains else words

    @property
    def _remedy(self) -> str:
        """Recommended remedy of this cause."""
        return self.code.advice + (f" (--effect {self.option})" if self.option else "")

    def __str__(self) -> str:
        """Return the cause in one line."""
        which = "; these data cannot tell which" if self.alternatives else ""
        words = ", or ".join(c.words for c in (self, *self.alternatives))
        if self.probability < 0.5:
            words = f"perhaps {words}, or something that is none of the candidates"
        return f"{words} (explains {max(100 * self.share, 0.0):.0f} % of the residual{which})"


@dataclass(frozen=True, eq=False)
class Causes(HtmlFrame):
    """Causes of the residual of an estimate.

    Attributes
    ----------
    causes : tuple of Cause
        Causes in the order in which they were found; each explains what those before it leave.
    tested : int
        Number of candidates that were tested.
    level : float
        Significance level of all tests together.
    visible_gain : dict of str to float
        Smallest relative error of the torque gain of each joint that would be named; infinite where parameters of the
        model imitate any gain. Empty where the search ended before gains were tested.
    """

    causes: tuple[Cause, ...]
    tested: int
    level: float
    visible_gain: dict[str, float] = field(default_factory=dict)

    @property
    def verdict(self) -> str:
        """The result in one line."""
        if not self.causes:
            return f"none of {self.tested} candidate causes explains the residual"
        return f"{self.causes[0].words}" + (f", and {len(self.causes) - 1} more" if len(self.causes) > 1 else "")

    def to_frame(self) -> pl.DataFrame:
        """The causes as a table.

        Returns
        -------
        polars.DataFrame
            One row per cause: code, joints, words, size, std, unit, share, probability, p_value and advice.
        """
        import polars as pl

        rows = [
            (
                *(str(c.code), ", ".join(c.joints), c.words, c.size, c.std, c.unit),
                *(c.share, c.probability, c.p_value, c.advice),
            )
            for c in self.causes
        ]
        schema = {"code": str, "joints": str, "words": str, "size": float, "std": float, "unit": str}
        schema |= {"share": float, "probability": float, "p_value": float, "advice": str}
        return pl.DataFrame(rows, schema=schema, orient="row")

    def summary(self) -> str:
        """Return the causes as text, in the order in which they were found."""
        lines = ["causes of the residual (stepwise score tests)", f"  verdict:   {self.verdict}"]
        for i, cause in enumerate(self.causes, 1):
            numbers = f"probability {100 * cause.probability:.0f} %, p-value {probability(cause.p_value)}"
            lines += [f"    {i}. {cause}, {numbers}", f"       {cause.advice}"]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return all attributes as plain data for JSON."""
        causes = [
            {
                **asdict(c),
                "code": str(c.code),
                "joints": list(c.joints),
                "probability": c.probability,
                "advice": c.advice,
            }
            for c in self.causes
        ]
        return {
            "verdict": self.verdict,
            "level": self.level,
            "tested": self.tested,
            "causes": causes,
            "visible_gain": {joint: x if math.isfinite(x) else None for joint, x in self.visible_gain.items()},
        }
