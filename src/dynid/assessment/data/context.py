"""What checks share: a run on an even clock, filtered alike, with the a-priori torque of its motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.finding import Finding, Severity
from dynid.dynamics.functions import inverse_dynamics
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording, Run
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot
from dynid.signals.filters import derivative, lowpass

__all__ = ["LARGEST_NUMBER", "SMALLEST_MOTION", "Cleaned", "Context", "longest_true", "plausible"]

Array = NDArray[np.float64]
T = TypeVar("T")

# Rigid-body motion of arms lies below this; what is above is noise or elasticity and would only blur the comparison.
# Fixed, not found from the data: a fault must not move the filter that is to show it.
_CUTOFF, _RELATIVE_CUTOFF = 10.0, 0.2
# Rows kept a period of the cut-off: enough to find delays by interpolation, no more than that.
_ROWS_A_PERIOD = 5.0
# Periods of the cut-off left out at both ends, where a zero-phase filter has to guess what came before and after.
_EDGE_PERIODS = 3.0
# Fewer rows than this after cleaning tell nothing of gains and delays.
_FEWEST_ROWS = 40
# Longer breaks (s) are not bridged by interpolation: arms change their acceleration within a tenth of a second.
_LONGEST_BRIDGE = 0.1
# No joint position, speed or torque in SI units is larger; beyond, squares and products of signals lose all digits.
LARGEST_NUMBER = 1e6
# A joint moves if it covers this much (rad or m): less is a few counts of an encoder, or play, and shows nothing.
SMALLEST_MOTION = 0.01
# Drive terms that the torque checks fit themselves, whatever the robot says of them a priori.
_FITTED = frozenset(TermKind) - {TermKind.SPRING, TermKind.CUSTOM}


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A run on an even clock, everything low-passed alike and thinned out: arrays (N, joint).

    direction is the low-passed sign of the velocity; model the torque that the robot's a-priori bodies and springs need
    for the motion (None where unknown); `*_noise` (joint,) is what the low-pass took away (root mean square).
    """

    q: Array
    v: Array
    a: Array
    direction: Array
    measured_v: Array | None
    torque: Array | None
    model: Array | None
    q_noise: Array
    v_noise: Array | None
    torque_noise: Array | None
    cutoff: float
    step: float
    raw_step: float

    @property
    def moving(self) -> NDArray[np.bool_]:
        """Which joints move at all (joint,)."""
        return np.ptp(self.q, axis=0) > SMALLEST_MOTION


class Context:
    """The recording under check, its robot, and what is worked out once for several checks."""

    def __init__(self, recording: Recording, robot: Robot) -> None:
        self.recording = recording
        self.robot = robot
        self._known: dict[tuple[str, int], Any] = {}

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters that joint torques can show."""
        return base_parameters(self.robot, channels="torque")

    @cached_property
    def bodies(self) -> Robot:
        """The robot with springs and the user's own terms, but without friction, offsets and rotors."""
        return replace(self.robot, drives=tuple(t for t in self.robot.drives if t.kind not in _FITTED))

    @cached_property
    def angular(self) -> tuple[bool, ...]:
        """Whether each coordinate is an angle."""
        return tuple(j.kind == "revolute" for j in self.robot.joints if j.mimic is None)

    def unit(self, joint: int) -> str:
        return "radians" if self.angular[joint] else "metres"

    def force_unit(self, joint: int) -> str:
        return "newton metres" if self.angular[joint] else "newtons"

    def found(
        self, severity: Severity, run: Run, joint: int | None, what: str, how_much: str, what_to_do: str
    ) -> Finding:
        """A finding on a joint by its number, or on the whole run."""
        name = "" if joint is None else self.recording.joints[joint]
        return Finding(severity, run.name, name, what, how_much, what_to_do)

    def joints(self) -> Iterator[tuple[int, str]]:
        return enumerate(self.recording.joints)

    def model_torque(self, q: Array, v: Array, a: Array) -> Array | None:
        """Torque (N, joint) that the a-priori bodies need; None for floating bases, whose motion is not recorded."""
        if self.robot.base == "floating" or not np.any(self.robot.parameters):
            return None
        return inverse_dynamics(self.bodies, q, v, a)[:, -self.robot.n :]

    def cleaned(self, run: Run) -> Cleaned | None:
        """The run made comparable; None where it is too short or its clock or positions are unusable."""
        return self.once("cleaned", run, self._clean)

    def once(self, what: str, run: Run, work: Callable[[Run], T]) -> T:
        """The result of work(run), done only the first time it is asked for."""
        key = (what, id(run))
        if key not in self._known:
            self._known[key] = work(run)
        return self._known[key]

    def _clean(self, run: Run) -> Cleaned | None:
        if not plausible(run.q):
            return None
        rows = longest_stretch(run.t)
        if len(rows) < _FEWEST_ROWS:
            return None
        t = run.t[rows]
        # Stamps in bunches would make the median step tiny and the even clock endless.
        step = max(float(np.median(np.diff(t))), float(t[-1] - t[0]) / (4 * len(t)))
        rate = 1.0 / step
        clock = t[0] + step * np.arange(int((t[-1] - t[0]) / step + 1e-6) + 1)
        clock = np.minimum(clock, t[-1])

        def even(x: Array | None) -> Array | None:
            usable = x is not None and plausible(x)
            return np.asarray(scipy.interpolate.Akima1DInterpolator(t, x[rows], axis=0)(clock)) if usable else None  # type: ignore[index]

        q, v, torque = even(run.q), even(run.v), even(run.torque)
        assert q is not None
        cutoff = min(_CUTOFF, _RELATIVE_CUTOFF * rate)
        edge = min(int(_EDGE_PERIODS * rate / cutoff) + 1, len(q) // 8)
        thin = slice(edge, len(q) - edge, max(1, int(rate / (_ROWS_A_PERIOD * cutoff))))
        if len(q[thin]) < _FEWEST_ROWS:
            return None

        def smooth(x: Array) -> Array:
            return lowpass(x, cutoff, rate)

        def noise(x: Array | None) -> Array | None:
            return None if x is None else np.asarray((x - smooth(x))[edge : len(x) - edge].std(axis=0))

        calm = smooth(q)
        speed = derivative(calm, rate)
        acceleration = derivative(speed, rate)
        positions, speeds, accelerations = calm[thin], speed[thin], acceleration[thin]
        q_noise = noise(q)
        assert q_noise is not None
        return Cleaned(
            positions,
            speeds,
            accelerations,
            smooth(np.sign(speed))[thin],
            None if v is None else smooth(v)[thin],
            None if torque is None else smooth(torque)[thin],
            self.model_torque(positions, speeds, accelerations),
            q_noise,
            noise(v),
            noise(torque),
            cutoff,
            step * (thin.step or 1),
            step,
        )


def plausible(x: Array) -> bool:
    """Whether all numbers are of a size that a machine can have."""
    return bool(np.abs(x).max() < LARGEST_NUMBER)


def longest_stretch(t: Array) -> NDArray[np.int64]:
    """Rows of the longest part of the run whose time goes forward without a long break."""
    forward = np.flatnonzero(np.concatenate([[True], t[1:] > np.maximum.accumulate(t)[:-1]]))
    steps = np.diff(t[forward])
    if not len(steps):
        return forward
    breaks = np.flatnonzero(steps > max(_LONGEST_BRIDGE, 5.0 * float(np.median(steps))))
    edges = np.concatenate([[0], breaks + 1, [len(forward)]])
    longest = int(np.argmax(np.diff(edges)))
    return forward[edges[longest] : edges[longest + 1]]


def longest_true(flags: NDArray[np.bool_]) -> int:
    """Length of the longest stretch of true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return int((edges[1::2] - edges[::2]).max()) if edges.size else 0
