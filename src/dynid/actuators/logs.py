"""Logs of encoders and commands, on an even clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.rollouts import Commands
from dynid.errors import Mismatch, MissingArgument, MissingData, NotApplicable, TooFew, keyword
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.signals.filters import derivative, lowpass
from dynid.signals.motion_band import motion_band
from dynid.signals.settings import Signals, uniform
from dynid.signals.unsigned import is_unsigned

__all__ = ["Log", "read_logs", "still_joints"]

Array = NDArray[np.float64]

# A log whose rate is within this share of a whole fraction of the rate of the law has exactly that rate.
_RATE = 0.01
_FEWEST = 50
# Stamps that are off by less than this share of a row belong to an even clock.
_STAMPS = 0.25
# A step of more than this many usual ones is a gap, and pieces between gaps have at least this share of the time.
_GAP, _PIECES = 5.0, 0.5
# Distance from the derivative of the positions, as a share of both sizes, from which columns are not velocities.
_NOT_VELOCITIES = 0.3
# A joint that travels by less than this many encoder steps is at rest; differences below the other (rad or m) are none.
_STILL, _ROUNDING = 2.5, 1e-12
# The low-pass lies this much above the band of the motion.
_ABOVE_BAND = 2.0


@dataclass(frozen=True, eq=False)
class Log:
    """One run on an even clock.

    Attributes
    ----------
    name : str
    measured : ndarray, shape (K, n)
        Measured positions (rad or m).
    commands : Commands
    q, v, a : ndarray, shape (K, n)
        Filtered positions and their derivatives.
    cutoff : float
        Cut-off of that filter (Hz).
    """

    name: str
    measured: Array
    commands: Commands
    q: Array
    v: Array
    a: Array
    cutoff: float

    def __len__(self) -> int:
        return len(self.measured)

    @property
    def rate(self) -> float:
        """Rows per second."""
        return self.commands.rate

    def rows(self, first: int, last: int) -> Log:
        """Rows first to last, the last one not included."""
        cut = slice(first, last)
        c = self.commands
        parts = [None if x is None else x[cut] for x in (c.position, c.velocity, c.torque)]
        return Log(
            self.name, self.measured[cut], Commands(c.rate, *parts), self.q[cut], self.v[cut], self.a[cut], self.cutoff
        )


def read_logs(robot: Robot, law: ActuatorLaw, recording: Recording) -> list[Log]:
    """The runs of a recording with what the law needs: commanded positions, or torques for a law without gains.

    A run with gaps is several logs: nobody knows what was commanded in between.
    """
    if law.joints != robot.coordinates:
        raise Mismatch(
            f"the law has the joints {', '.join(law.joints)}, robot '{robot.name}' has {', '.join(robot.coordinates)}: "
            "give them in the same order"
        )
    return [_log(robot, law, piece) for run in recording.runs for piece in _pieces(run)]


def still_joints(law: ActuatorLaw, logs: Sequence[Log]) -> set[str]:
    """Joints that do not move in any log: their positions change by an encoder step at most, to either side."""
    measured = [x.measured for x in logs]
    steps = np.abs(np.concatenate([np.diff(x, axis=0) for x in measured]))
    least = np.where(steps > _ROUNDING, steps, np.inf).min(axis=0)
    travel = np.max([np.ptp(x, axis=0) for x in measured], axis=0)
    still = (travel <= _ROUNDING) | (travel < _STILL * least)
    return {name for name, one in zip(law.joints, still, strict=True) if one}


def _pieces(run: Run) -> list[Run]:
    """The stretches of a run between gaps, without those that are too short to be used."""
    steps = np.diff(run.t)
    ends = [0, *(np.flatnonzero(steps > _GAP * np.median(steps)) + 1), len(run)]
    parts = [run.rows(int(a), int(b)) for a, b in pairwise(ends) if b - a >= _FEWEST]
    # Stamps that come in bursts have no gaps: their stretches would last next to no time.
    if len(ends) == 2 or sum(x.t[-1] - x.t[0] for x in parts) < _PIECES * (run.t[-1] - run.t[0]):
        return [run]
    return [replace(x, name=f"{run.name}#{k}") for k, x in enumerate(parts, 1)]


def _log(robot: Robot, law: ActuatorLaw, given: Run) -> Log:
    controlled = bool(np.any(law.kp > 0) or np.any(law.kd > 0))
    if given.q.shape[1] != robot.n:
        raise Mismatch(f"run '{given.name}' has {given.q.shape[1]} joints, robot '{robot.name}' {robot.n}")
    if controlled and given.reference is None:
        looks = "; the columns read as velocities are not the derivative of the positions and may be them"
        raise MissingData(
            f"run '{given.name}' has no commanded positions, without which no actuator can be identified: name their "
            f"columns, such as {keyword('columns', {'reference': 'cmd{i}'})}{looks if _not_velocities(given) else ''}",
        )
    if not controlled and given.torque is None:
        raise MissingArgument(
            f"the law has no gains and run '{given.name}' no torques: give kp and kd, or log the torques", "kp"
        )
    if not controlled and given.torque is not None and is_unsigned(np.gradient(given.q, axis=0), given.torque):
        raise NotApplicable(
            f"the torques of run '{given.name}' never change their sign although the joints move in both directions: "
            "they are magnitudes, such as unsigned currents; give the commands and the law of the actuators instead"
        )
    if len(given) < _FEWEST:
        raise TooFew(f"run '{given.name}' has {len(given)} rows; at least {_FEWEST} are needed")
    run, rate = _even(given)
    if law.rate is not None:
        ratio = law.rate / rate
        if round(ratio) < 1 or abs(ratio / round(ratio) - 1.0) > _RATE:
            raise Mismatch(
                f"run '{run.name}' has {rate:.5g} rows per second, the law {law.rate:g}: the rate of the law must be a "
                "whole multiple; leave it out for a law that acts continuously",
                "rate",
            )
        rate = law.rate / round(ratio)
    cutoff = min(_ABOVE_BAND * motion_band(run.q, rate), 0.4 * rate)
    q = lowpass(run.q, cutoff, rate)
    v = derivative(q, rate, "central5")
    commands = Commands(rate, run.reference if controlled else None, None, None if controlled else run.torque)
    return Log(run.name, run.q, commands, q, v, derivative(v, rate, "central5"), cutoff)


def _even(given: Run) -> tuple[Run, float]:
    """The run on an even clock, and its rate.

    Rows whose stamps have noise stay as they are, those that repeat the row before too: an encoder does so in slow
    motion while the command changes.
    """
    number = np.arange(len(given))
    step, start = np.polyfit(number, given.t, 1)
    if step > 0 and np.all(np.diff(given.t) > 0) and np.abs(given.t - start - step * number).max() < _STAMPS * step:
        return given, 1.0 / float(step)
    return uniform(given, Signals())


def _not_velocities(run: Run) -> bool:
    """Whether the columns that are read as velocities are not the derivatives of the positions."""
    if run.v is None:
        return False
    rate = np.gradient(run.q, run.t, axis=0)
    size = np.std(rate, axis=0) + np.std(run.v, axis=0)
    return bool(np.median(np.std(run.v - rate, axis=0) / np.where(size > 0, size, 1.0)) > _NOT_VELOCITIES)
