"""Causes of what identified actuators do not explain: effects that the law does not have, tried on unseen motion."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

import numpy as np

from dynid.results import Result, about

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ActuatorCause", "ActuatorCauseCode", "ActuatorCauses", "ActuatorTrial"]


# An error is more than noise where its smooth part is this many times the rest, and this share of the range.
_STRUCTURE, _SHARE = 3.0, 0.005
# It is large, whatever its cause, where both are this many times as large.
_LARGE = 2.0


class ActuatorCauseCode(StrEnum):
    """Stable code of a cause; words may change, codes do not. Those of `CauseCode` mean the same."""

    BACKLASH = "backlash"
    LOAD_FRICTION = "load_friction"
    SATURATION = "saturation"
    MOTOR_LINE = "motor_line"
    STRIBECK = "stribeck"
    DELAY = "delay"
    FEEDBACK_DELAY = "feedback_delay"
    VELOCITY_TARGET = "velocity_target"
    ENCODER_OFFSET = "encoder_offset"
    GAIN = "gain"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class ActuatorTrial:
    """An effect that was added to the law and fitted again from the estimate.

    Attributes
    ----------
    code : ActuatorCauseCode
    joint : str
        The joint that gains most.
    before, after : float
        Its error (rad or m, root mean square) on motion that is not in the fit, without and with the effect.
    fitted_before, fitted_after : float
        The same on the fitted motion.
    total : float
        Sum over all joints of the logarithm of the error with the effect over that without, on motion that is not in
        the fit.
    better : float
        Share of the time in which the error of that joint decreases.
    sensible : bool
        Whether its size is physically sensible.
    """

    code: ActuatorCauseCode
    joint: str
    before: float
    after: float
    fitted_before: float
    fitted_after: float
    total: float
    better: float
    sensible: bool

    @property
    def left(self) -> float:
        """Share of the error that the effect leaves."""
        return self.after / self.before if self.before > 0 else 1.0


@dataclass(frozen=True)
class ActuatorCause:
    """A cause that explains motion that is not in the fit.

    Attributes
    ----------
    code : ActuatorCauseCode
    joints : tuple of str
        Joints at which it acts; () where it concerns all of them.
    words : str
        The cause with its size.
    sizes : dict of str to float
        Sizes by joint; by quantity where it has one for all joints; empty for another kind of law.
    unit : str
    remedy : str
        What adds it to the law.
    option : str
        Quantities, separated by commas, that `unknown` (`--unknown`) contains to find it; "" where the law changes.
    trial : ActuatorTrial
        What adding it does to the error.
    changed : str
        Label of the armature or friction that it changes most; "" where neither is unknown.
    value_before, value_after : float
        That value without and with it, in SI units.
    """

    code: ActuatorCauseCode
    joints: tuple[str, ...]
    words: str
    sizes: dict[str, float]
    unit: str
    remedy: str
    option: str
    trial: ActuatorTrial
    changed: str = ""
    value_before: float = 0.0
    value_after: float = 0.0

    @property
    def change(self) -> float:
        """Factor by which it changes an armature or friction, one or more; infinite where one of the values is zero."""
        low, high = sorted((self.value_before, self.value_after))
        return 1.0 if high <= 0 else high / low if low > 0 else np.inf


@dataclass(frozen=True, eq=False)
class ActuatorCauses(Result):
    """What explains the error of simulated motion: named causes, noise alone, or something else."""

    causes: tuple[ActuatorCause, ...] = field(
        metadata=about(
            "The best explanation first, then those that explain as much: the log does not tell which of them it is."
        )
    )
    trials: tuple[ActuatorTrial, ...] = field(metadata=about("Everything that was fitted."))
    tested: int = field(
        metadata=about(
            "Number of effects that were compared; those that explain nothing of the torques are not fitted."
        )
    )
    joint: str = field(metadata=about("The joint whose error is the largest share of its noise."))
    structure: float = field(
        metadata=about(
            "The part of its error that is smooth in time over the part that is noise, of the best explanation.",
            finite=True,
        )
    )
    share: float = field(metadata=about("The smooth part over the range of the joint.", finite=True))
    unseen: bool = field(
        metadata=about(
            "Whether the errors are those of a recording that was not fitted, or of blocks of time that were left out."
        )
    )

    @property
    def code(self) -> ActuatorCauseCode | None:
        """The best explanation; None where nothing is wrong, "unknown" where none of the candidates explains it."""
        if self.causes:
            return self.causes[0].code
        return ActuatorCauseCode.UNKNOWN if self.unexplained else None

    @property
    def unexplained(self) -> bool:
        """Whether an error is left that is no noise."""
        return self._beyond(1.0)

    @property
    def large(self) -> bool:
        """Whether the error that is left is so large that armature and friction stand for something else."""
        return self._beyond(_LARGE)

    def _beyond(self, times: float) -> bool:
        return self.structure > times * _STRUCTURE and self.share > times * _SHARE

    @property
    def words(self) -> str:
        """The result in a sentence without its full stop."""
        if not self.causes:
            if self.unexplained:
                return (
                    f"something that none of {self.tested} candidates explains moves '{self.joint}' by "
                    f"{100 * self.share:.2g} % of its range, {self.structure:.2g} times its noise"
                )
            return f"none of {self.tested} unmodeled effects explains unseen motion better"
        words = ", or ".join(x.words for x in self.causes)
        if self.unexplained:
            return f"perhaps {words}, or something that is none of the candidates"
        return words + ("; the log does not tell which" if len(self.causes) > 1 else "")

    @property
    def effect(self) -> str:
        """What the best explanation does to armature and friction, as part of a sentence; "" if nothing."""
        if not self.causes or not self.causes[0].changed:
            return ""
        first = self.causes[0]
        return f"with it, {first.changed} is {first.value_after:.2g} instead of {first.value_before:.2g}"

    @property
    def advice(self) -> str:
        """What adds the causes to the law, and what the error then is."""
        return "; or ".join(f"{x.remedy}: {self._gained(x.trial)}" for x in self.causes)

    def _gained(self, trial: ActuatorTrial) -> str:
        where = "unseen motion" if self.unseen else "motion left out of the fit"
        return f"the error of '{trial.joint}' on {where} falls from {trial.before:.2g} to {trial.after:.2g}"

    def to_frame(self) -> pl.DataFrame:
        """Everything that was tried as a table.

        Returns
        -------
        polars.DataFrame
            One row per effect: code, named, joint, before and after (errors in rad or m on motion that is not in the
            fit), total, better and sensible.
        """
        import polars as pl

        named = {x.code for x in self.causes}
        rows = [
            (x.code.value, x.code in named, x.joint, x.before, x.after, x.total, x.better, x.sensible)
            for x in self.trials
        ]
        schema = {"code": str, "named": bool, "joint": str, "before": float, "after": float, "total": float}
        return pl.DataFrame(rows, schema=schema | {"better": float, "sensible": bool}, orient="row")
