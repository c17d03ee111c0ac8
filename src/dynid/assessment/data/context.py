"""Data that several checks share: a run on a uniform clock, filtered, with the a-priori torque of its motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.assessment.finding import Finding, FindingCode, Severity
from dynid.dynamics.functions import inverse_dynamics
from dynid.identification.stops import smallest_motions
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot
from dynid.signals.clock import fit_clock
from dynid.signals.filters import derivative, lowpass
from dynid.signals.motion_band import moving_columns
from dynid.signals.presliding import PRESLIDING_DISTANCES, friction_state

__all__ = ["LARGEST_NUMBER", "Cleaned", "Context", "longest_true", "plausible", "stretches"]

Array = NDArray[np.float64]


T = TypeVar("T")

# Rigid-body motion of arms lies below this frequency (Hz); above are noise and elasticity. It is fixed, not found from
# the data, because a fault must not change the filter that is used to detect it.
_CUTOFF, _RELATIVE_CUTOFF = 10.0, 0.2
# Rows per period of the cut-off: enough to find delays by interpolation.
_ROWS_PER_PERIOD = 5.0
# Periods of the cut-off left out at both ends, where the zero-phase filter extrapolates.
_EDGE_PERIODS = 3.0
# With fewer rows than this, gains and delays cannot be determined.
_FEWEST_ROWS = 40
# Longer gaps (s) are not interpolated: arms change their acceleration within a tenth of a second.
_LONGEST_GAP = 0.1
# No joint position, velocity or torque in SI units is larger; squares of larger values lose all digits.
LARGEST_NUMBER = 1e6
# Stretches of rows that a finding lists; near ones are joined until there are no more than this.
_STRETCHES = 200
# Drive terms that the torque checks fit, independent of their a-priori values.
_FITTED = frozenset(TermKind) - {TermKind.SPRING, TermKind.CUSTOM}


@dataclass(frozen=True, eq=False)
class Cleaned:
    """A run on a uniform clock, all signals low-pass filtered alike and decimated: arrays (N, joint).

    `t` (N,) is the time of the run; `direction` is the low-passed sign of the velocity, `building` that of friction
    which builds up over some distances after each reversal; `model` the torque of the
    a-priori bodies and springs for this motion (None where unknown); `*_noise` (joint,) is the root mean square of what
    the low-pass removed; `moving` (joint,) tells which joints move.
    """

    t: Array
    q: Array
    v: Array
    a: Array
    direction: Array
    building: tuple[Array, ...]
    measured_v: Array | None
    torque: Array | None
    model: Array | None
    q_noise: Array
    v_noise: Array | None
    torque_noise: Array | None
    cutoff: float
    step: float
    raw_step: float
    moving: NDArray[np.bool_]


class Context:
    """The robot, its recording, and results that several checks share."""

    def __init__(self, robot: Robot, recording: Recording) -> None:
        self.robot = robot
        self.recording = recording
        self._known: dict[tuple[str, int], Any] = {}

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters for measured joint torques."""
        return base_parameters(self.robot, channels="torque")

    @cached_property
    def bodies(self) -> Robot:
        """The robot with springs and custom terms, but without friction, offsets and rotor inertias."""
        return replace(self.robot, drives=tuple(t for t in self.robot.drives if t.kind not in _FITTED))

    @cached_property
    def angular(self) -> tuple[bool, ...]:
        """Whether each coordinate is an angle."""
        return tuple(j.kind == "revolute" for j in self.robot.joints if j.name in self.robot.coordinates)

    def moving(self, run: Run) -> NDArray[np.bool_]:
        """Which joints (joint,) of a run move."""
        return moving_columns(run.q, smallest_motions(self.robot))

    def unit(self, joint: int) -> str:
        """Unit of a joint's position, in words."""
        return "radians" if self.angular[joint] else "metres"

    def force_unit(self, joint: int) -> str:
        """Unit of a joint's torque or force, in words."""
        return "newton metres" if self.angular[joint] else "newtons"

    def found(
        self,
        code: FindingCode,
        run: Run,
        joint: int | None,
        what: str,
        how_much: str,
        what_to_do: str,
        where: NDArray[np.bool_] | None = None,
        severity: Severity | None = None,
    ) -> Finding:
        """Return a finding on a joint by its number, or on the whole run, as severe as its code by default.

        `where` marks the rows that it applies to, either those of the run or those of the cleaned run.
        """
        severity = code.severities[0] if severity is None else severity
        assert severity in code.severities
        name = "" if joint is None else self.recording.joints[joint]
        rows = () if where is None else self.rows(run, where)
        return Finding(code, severity, run.name, name, what, how_much, what_to_do, rows)

    def rows(self, run: Run, where: NDArray[np.bool_]) -> tuple[tuple[int, int], ...]:
        """Stretches of rows of the run that are marked."""
        if len(where) == len(run):
            return stretches(where)
        cleaned = self.cleaned(run)
        assert cleaned is not None and len(where) == len(cleaned.t)
        # A row of the cleaned run stands for the time around it. Stamps that run backwards are not searched.
        times = np.maximum.accumulate(run.t)
        near = [
            np.searchsorted(times, cleaned.t[[a, b - 1]] + np.array([-0.5, 0.5]) * cleaned.step)
            for a, b in stretches(where)
        ]
        return tuple((int(a), int(b)) for a, b in near if b > a)

    def joints(self) -> Iterator[tuple[int, str]]:
        """Numbers and names of the joints."""
        return enumerate(self.recording.joints)

    def model_torque(self, q: Array, v: Array, a: Array) -> Array | None:
        """Torque (N, joint) of the a-priori bodies; None for floating bases, whose motion is not recorded."""
        if self.robot.base == "floating" or not np.any(self.robot.parameters):
            return None
        return inverse_dynamics(self.bodies, q, v, a)[:, -self.robot.n :]

    def cleaned(self, run: Run) -> Cleaned | None:
        """The cleaned run; None where it is too short, or its clock or positions are unusable."""
        return self.once("cleaned", run, self._clean)

    def once(self, what: str, run: Run, work: Callable[[Run], T]) -> T:
        """The result of work(run), computed at the first call only."""
        key = (what, id(run))
        if key not in self._known:
            self._known[key] = work(run)
        return self._known[key]

    def _clean(self, run: Run) -> Cleaned | None:
        """Resample, filter, differentiate and decimate a run."""
        if not plausible(run.q):
            return None
        rows = longest_stretch(run.t)
        if len(rows) < _FEWEST_ROWS:
            return None
        stretch = Run(run.t[rows], run.q[rows], torque=None if run.torque is None else run.torque[rows])
        clock = fit_clock(stretch)
        rows, t = rows[clock.rows], clock.times
        if len(rows) < _FEWEST_ROWS:
            return None
        # Time stamps in bursts would make the median step tiny and the uniform clock endless.
        step = max(float(np.median(np.diff(t))), float(t[-1] - t[0]) / (4 * len(t)))
        rate = 1.0 / step
        uniform = t[0] + step * np.arange(int((t[-1] - t[0]) / step + 1e-6) + 1)
        uniform = np.minimum(uniform, t[-1])

        def even(x: Array | None) -> Array | None:
            usable = x is not None and plausible(x)
            return np.asarray(scipy.interpolate.Akima1DInterpolator(t, x[rows], axis=0)(uniform)) if usable else None  # type: ignore[index]

        q, v, torque = even(run.q), even(run.v), even(run.torque)
        assert q is not None
        cutoff = min(_CUTOFF, _RELATIVE_CUTOFF * rate)
        edge = min(int(_EDGE_PERIODS * rate / cutoff) + 1, len(q) // 8)
        thin = slice(edge, len(q) - edge, max(1, int(rate / (_ROWS_PER_PERIOD * cutoff))))
        if len(q[thin]) < _FEWEST_ROWS:
            return None

        def smooth(x: Array) -> Array:
            return lowpass(x, cutoff, rate)

        def noise(x: Array | None) -> Array | None:
            return None if x is None else np.asarray((x - smooth(x))[edge : len(x) - edge].std(axis=0))

        calm = smooth(q)
        velocity = derivative(calm, rate)
        acceleration = derivative(velocity, rate)
        positions, velocities, accelerations = calm[thin], velocity[thin], acceleration[thin]
        q_noise = noise(q)
        assert q_noise is not None
        return Cleaned(
            uniform[thin],
            positions,
            velocities,
            accelerations,
            smooth(np.sign(velocity))[thin],
            tuple(smooth(friction_state(calm, velocity, x))[thin] for x in PRESLIDING_DISTANCES[1::2]),
            None if v is None else smooth(v)[thin],
            None if torque is None else smooth(torque)[thin],
            self.model_torque(positions, velocities, accelerations),
            q_noise,
            noise(v),
            noise(torque),
            cutoff,
            step * (thin.step or 1),
            step,
            self.moving(run),
        )


def plausible(x: Array) -> bool:
    """Whether all values have a plausible size."""
    return bool(np.abs(x).max() < LARGEST_NUMBER)


def longest_stretch(t: Array) -> NDArray[np.int64]:
    """Rows of the longest part of the run whose time increases without a long gap."""
    forward = np.flatnonzero(np.concatenate([[True], t[1:] > np.maximum.accumulate(t)[:-1]]))
    steps = np.diff(t[forward])
    if not len(steps):
        return forward
    breaks = np.flatnonzero(steps > max(_LONGEST_GAP, 5.0 * float(np.median(steps))))
    edges = np.concatenate([[0], breaks + 1, [len(forward)]])
    longest = int(np.argmax(np.diff(edges)))
    return forward[edges[longest] : edges[longest + 1]]


def longest_true(flags: NDArray[np.bool_]) -> int:
    """Length of the longest stretch of true entries."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(int), [0]])))
    return int((edges[1::2] - edges[::2]).max()) if edges.size else 0


def stretches(flags: NDArray[np.bool_], most: int = _STRETCHES) -> tuple[tuple[int, int], ...]:
    """First row and the row after the last of each stretch of true entries; the nearest are joined beyond `most`."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    starts, stops = edges[::2], edges[1::2]
    if len(starts) > most:
        gaps = starts[1:] - stops[:-1]
        kept = np.sort(np.argsort(gaps, kind="stable")[len(gaps) - (most - 1) :])
        starts, stops = starts[np.concatenate([[0], kept + 1])], stops[np.concatenate([kept, [len(stops) - 1]])]
    return tuple((int(a), int(b)) for a, b in zip(starts, stops, strict=True))
