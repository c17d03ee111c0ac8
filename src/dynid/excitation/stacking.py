"""Motions designed one after another, each for what the earlier ones leave uncertain.

Only the coefficients of the newest motion are unknown; the rows of the earlier ones are stacked below its own, folded
into a triangle. A large design becomes a sequence of small ones.

    x_k = argmin of the criterion of [W(x_k); R_k-1],    R_k'R_k = W(x_k)'W(x_k) + R_k-1'R_k-1

Source: Nguyen (2021), Algorithm 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.attached import attached
from dynid.errors import DataError, DynidError, InvalidValue, NotApplicable
from dynid.excitation.basis import Basis
from dynid.excitation.criteria import Criterion
from dynid.excitation.design import design_excitation, make_family
from dynid.excitation.excitation import Excitation
from dynid.excitation.information import Earlier, Information, earlier_information
from dynid.excitation.problem import begins_at_posture
from dynid.excitation.sequencing import Joined, sequence
from dynid.excitation.sizes import typical_sizes
from dynid.markup import HtmlFrame
from dynid.parameters.base import base_parameters
from dynid.progress import Progress, ProgressCallback
from dynid.robot.model import Robot

if TYPE_CHECKING:
    import polars as pl

__all__ = ["ExcitationStack", "StackEnd", "stack_excitations"]

Array = NDArray[np.float64]

_RANK = 1e-14


class StackEnd(StrEnum):
    """Why no further motion was designed."""

    TARGET = "target"
    NO_GAIN = "no gain"
    MOST = "most"
    NO_MOTION = "no motion"


@dataclass(frozen=True, eq=False)
class ExcitationStack(HtmlFrame):
    """Motions that were designed one after another.

    Attributes
    ----------
    motions : tuple of Excitation
        In the order in which they are to be recorded; empty if the target was reached before.
    before : Information
        What the earlier recordings tell.
    std : array, shape (k + 1, b)
        Standard deviation of each base parameter before, and after each of the k motions; infinite where unknown.
    sizes : array, shape (b,)
        Typical size of each base parameter, to which the target refers.
    gains : array, shape (k,)
        Relative improvement of the criterion by each motion: of the condition number, of the mean standard deviation.
    condition_numbers : array, shape (k + 1,)
        Of all rows so far over their noise, with columns divided by the criterion's sizes; infinite while parameters
        are unknown.
    end : StackEnd
        Why no further motion was designed.
    reason : str
        The same in words.
    """

    motions: tuple[Excitation, ...]
    before: Information
    std: Array
    sizes: Array
    gains: Array
    condition_numbers: Array
    end: StackEnd
    reason: str

    @property
    def relative_std(self) -> Array:
        """The standard deviations in percent of the typical sizes (k + 1, b)."""
        return np.asarray(100.0 * self.std / self.sizes)

    @cached_property
    def motion(self) -> Joined:
        """All motions in one, with moves between those that do not join.

        Raises
        ------
        DataError
            If there is none, or one does not end at rest.
        """
        return sequence(self.motions)

    def to_frame(self) -> pl.DataFrame:
        """One row before the first motion, one per motion: motion, condition_number, gain, largest_std, median_std (%).

        Returns
        -------
        polars.DataFrame
        """
        import polars as pl

        return pl.DataFrame(
            {
                "motion": range(len(self.motions) + 1),
                "condition_number": self.condition_numbers,
                "gain": [None, *self.gains],
                "largest_std": self.relative_std.max(axis=1),
                "median_std": np.median(self.relative_std, axis=1),
            }
        )

    def summary(self) -> str:
        """A line per motion, and why no further one was designed."""
        return str(attached(self, "summary")(self))

    def to_dict(self) -> dict[str, Any]:
        """The course of the design as plain data; None for infinite values."""

        def finite(values: Array) -> list[float | None]:
            return [float(x) if np.isfinite(x) else None for x in values]

        return {
            "motions": [motion.to_dict() for motion in self.motions],
            "rate": float(self.before.rate),
            "noise": self.before.noise.tolist(),
            "base_parameters": list(self.before.base.names),
            "std": [finite(row) for row in self.std],
            "relative_std": [finite(row) for row in self.relative_std],
            "gains": finite(self.gains),
            "condition_numbers": finite(self.condition_numbers),
            "end": self.end.value,
            "reason": self.reason,
        }


def stack_excitations(
    robot: Robot,
    duration: float = 10.0,
    *,
    after: Earlier | Sequence[Earlier] = (),
    target: float | None = None,
    least_gain: float = 0.05,
    most: int = 20,
    joined: bool = True,
    family: str | Basis = "fourier",
    size: int = 5,
    start: ArrayLike | None = None,
    noise: ArrayLike | None = None,
    rate: float | None = None,
    channels: str | Sequence[str] | None = None,
    seed: int = 0,
    progress: ProgressCallback | None = None,
    **design: Any,
) -> ExcitationStack:
    """Design motions one after another, each for what earlier recordings and motions leave uncertain.

    It ends when the target is reached, when a motion gains less than `least_gain`, or after `most` motions.

    Parameters
    ----------
    robot : Robot
        Its base must not float.
    duration : float
        Duration of each motion, s.
    after : Recording, DataSet, Observation, Estimate, Information, or a sequence of them
        What is known already, see `earlier_information`.
    target : float, optional
        Largest standard deviation that is wanted, as a share of the typical size of each base parameter: that of a body
        follows from its mass and extent, that of a drive term is its value, or 1 without one.
    least_gain : float
        The motion that improves the criterion by less than this share is the last one. The improvement is that of the
        condition number, or of the mean standard deviation.
    most : int
        Largest number of motions.
    joined : bool
        Whether each motion begins where the one before it ends. Where limits leave no room there, it begins elsewhere,
        and `ExcitationStack.motion` has a move in between.
    family : str or Basis
    size : int
        As for `design_excitation`.
    start : array, shape (n,), optional
        Posture at which the first motion starts, rad or m.
    noise : array, shape (channel,) or (), optional
        The standard deviation of each channel, N m (N for forces). Default: what `after` shows, or 1.
    rate : float, optional
        Rows per second of the recordings, Hz. Default: that of the earlier ones, or 100.
    progress : callable, optional
        Called with a `dynid.progress.Progress` during every search.
    channels : str or sequence of str, optional
        Channels that will be measured, as for `design_excitation`.
    seed : int
        Seed of the first motion; it grows by one from one to the next.
    **design
        Further options of `design_excitation`, such as criterion, limits, clearances and budget; the budget is that of
        each motion.

    Returns
    -------
    ExcitationStack

    Raises
    ------
    DataError
        If a setting is unknown or contradicts the robot.
    DynidError
        If no first motion within the limits was found.

    Examples
    --------
    >>> import dynid
    >>> from dynid.excitation import stack_excitations
    >>> robot = dynid.load_robot("twolink")
    >>> limits = {"*": {"acceleration": 10.0}}
    >>> stack = stack_excitations(robot, 2.0, family="cubic", limits=limits, budget=20, most=2, noise=0.1)
    >>> len(stack.motions), stack.end.value
    (2, 'most')
    """
    basis = make_family(family, duration, size)
    _check(basis, target, least_gain, most, joined)
    base = base_parameters(robot, channels=channels or ("torque" if robot.base == "fixed" else "wrench"))
    before = earlier_information(base, after, noise=noise, rate=rate)
    work = _Stacking(before, typical_sizes(base), target, least_gain, most)
    while work.end is None:
        k = len(work.motions)
        settings = {"family": basis, "after": work.known, "channels": channels, "seed": seed + k, **design}
        try:
            motion = _next(robot, start, k > 0, settings, _numbered(progress, k + 1, most))
        except DynidError as error:
            if not k or isinstance(error, DataError):
                raise
            work.end, work.reason = StackEnd.NO_MOTION, f"no further motion was found: {error}"
            break
        work.add(motion)
        if joined:
            start = motion.at(motion.duration)[0][0]
    return work.result()


def _next(
    robot: Robot, start: ArrayLike | None, free: bool, settings: dict[str, Any], progress: ProgressCallback | None
) -> Excitation:
    """The next motion from a posture or, where limits leave no room there and it is free to, from another one."""
    try:
        return design_excitation(robot, start=start, progress=progress, **settings)
    except DynidError as error:
        if not free or start is None or isinstance(error, DataError):
            raise
    return design_excitation(robot, progress=progress, **settings)


def _check(basis: Basis, target: float | None, least_gain: float, most: int, joined: bool) -> None:
    if target is not None and not (np.isfinite(target) and target > 0):
        raise InvalidValue(f"the target must be a positive share, such as 0.02, got {target!r:.40}", "target")
    if not 0 <= least_gain < 1:
        raise InvalidValue(f"the least gain is a share from 0 up to 1, got {least_gain!r:.40}", "least_gain")
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise InvalidValue(f"the number of motions is a whole number, at least 1, got {most!r:.40}", "most")
    if joined and not begins_at_posture(basis):
        raise NotApplicable(
            "motions of this family cannot begin where the one before ends: use fourier, a spline or waypoints, or "
            "motions that do not join",
            "family",
        )


class _Stacking:
    """The course of a design: what is known, and whether that is enough."""

    def __init__(self, before: Information, sizes: Array, target: float | None, least_gain: float, most: int) -> None:
        self.before = self.known = before
        self.motions: list[Excitation] = []
        self.end: StackEnd | None = None
        self.reason = ""
        self._sizes, self._target, self._least, self._most = sizes, target, least_gain, most
        self._std, self._gains, self._conditions = [before.std], list[float](), [np.inf]
        self._reached()

    def add(self, motion: Excitation) -> None:
        """Stack a motion, and stop if a rule says so."""
        goal, earlier = motion.criterion, self.known
        self.motions.append(motion)
        self.known = earlier.with_motion(motion)
        if len(self._std) == 1:
            self._conditions = [_condition_number(goal, earlier)]
        self._std.append(self.known.std)
        self._conditions.append(_condition_number(goal, self.known))
        self._gains.append(_improvement(goal, earlier, self.known))
        count, gain = len(self.motions), self._gains[-1]
        self._reached()
        if self.end is None and gain < self._least:
            self.end = StackEnd.NO_GAIN
            share, least = 100 * max(gain, 0.0), 100 * self._least
            self.reason = f"motion {count} improved the criterion by {share:.2g} %, less than {least:g} %"
        elif self.end is None and count >= self._most:
            self.end = StackEnd.MOST
            self.reason = f"{count} motions are the most that were asked for; the last gained {100 * gain:.2g} %"

    def _reached(self) -> None:
        """Whether every parameter is as certain as wanted."""
        worst = float(np.max(self._std[-1] / self._sizes))
        if self._target is not None and worst <= self._target:
            count = len(self.motions)
            when = f"after {count} motion{'s' * (count != 1)}" if count else "by the earlier recordings alone"
            self.end = StackEnd.TARGET
            self.reason = (
                f"the target is reached {when}: every standard deviation is at most {100 * worst:.3g} % of its size"
            )

    def result(self) -> ExcitationStack:
        """What was designed."""
        assert self.end is not None
        return ExcitationStack(
            motions=tuple(self.motions),
            before=self.before,
            std=np.array(self._std),
            sizes=self._sizes,
            gains=np.array(self._gains),
            condition_numbers=np.array(self._conditions),
            end=self.end,
            reason=self.reason,
        )


def _improvement(goal: Criterion, before: Information, now: Information) -> float:
    """Relative improvement of the criterion; infinite where it was infinite before."""
    nothing = np.zeros((0, len(goal.base.channels), goal.base.count))
    first, last = (replace(goal, known=_square(known))(nothing)[0] for known in (before, now))
    if not np.isfinite(first):
        return np.inf
    # All criteria but the sum over links are logarithms.
    return float((first / last if goal.name == "sum-cond" else np.exp(first - last)) - 1.0)


def _condition_number(goal: Criterion, known: Information) -> float:
    """Condition number of the columns that count, over the sizes of the criterion."""
    columns = sorted({i for _, part in goal.parts for i in part})
    s = np.linalg.svd((_square(known) * goal.size)[:, columns], compute_uv=False)
    return float(s[0] / s[-1]) if s[-1] > _RANK * s[0] else np.inf


def _square(known: Information) -> Array:
    """The rows with rows of zeros below, as many as there are parameters."""
    count = known.base.count
    return np.vstack([known.rows, np.zeros((count - len(known.rows), count))])


def _numbered(progress: ProgressCallback | None, number: int, most: int) -> ProgressCallback | None:
    """Reports that say which motion is being designed."""
    if progress is None:
        return None

    def report(now: Progress) -> None:
        share = None if now.share is None else (number - 1 + now.share) / most
        words = f"motion {number} of at most {most}, {now.message}"
        # The time that is left is that of one motion.
        progress(replace(now, message=words, share=share, seconds_left=None))

    return report
