"""Live score of a motion: the remaining uncertainty of each parameter, and which body to move next.

Each sample's regressor rows are rotated into one triangular factor. The prior standard deviation of every parameter is
its typical size, that of a body of its mass and extent. Factor and prior together give the posterior standard
deviation of every parameter, also of those that were not excited at all.

    std = sqrt(diag((R'R + diag(1 / prior^2))^-1)) with the factor R of all rows so far

Source: Golub and Van Loan, Matrix Computations (4th edition 2013), for factors with new rows; Pukelsheim, Optimal
Design of Experiments (1993), for information matrices.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.attached import attached
from dynid.dynamics.functions import regressor
from dynid.errors import (
    ConflictingArguments,
    InvalidShape,
    InvalidValue,
    Mismatch,
    MissingArgument,
    NotFinite,
    UnknownName,
    named,
)
from dynid.excitation.sizes import typical_sizes
from dynid.markup import HtmlFrame
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.mechanism import WRENCH_CHANNELS
from dynid.robot.model import Robot
from dynid.terminal import rendered
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    import polars as pl

__all__ = ["METHODS", "Advice", "LiveExcitation", "LiveScore", "RunningDerivatives", "SegmentScore"]

Array = NDArray[np.float64]


# Velocities and accelerations of samples as they arrive, with a delay of some samples.


# A time step this many times the last one is a gap; derivatives do not extend over it.
_GAP = 3.0
# Weights of a window of samples, one second apart, for the derivative at its middle.
METHODS: dict[str, Callable[[], Array]] = {
    "savgol": lambda: np.asarray(scipy.signal.savgol_coeffs(9, 3, deriv=1, use="dot")),
    "central5": lambda: np.array([1.0, -8.0, 0.0, 8.0, -1.0]) / 12.0,
    "central": lambda: np.array([-0.5, 0.0, 0.5]),
}


class RunningDerivatives:
    """Derivatives over sliding windows of positions and of velocities: with windows of N the delay is N - 1 samples.

    A floating base comes first in q: its position is differentiated in the world frame, its rotation relative to the
    middle of the window.
    """

    def __init__(self, floating: bool, method: str = "savgol") -> None:
        if method not in METHODS:
            raise UnknownName(f"derivative '{method}' is unknown: use {', '.join(METHODS)}", "derivative")
        self._floating, self._weights = floating, METHODS[method]()
        self._first: deque[tuple[float, Array]] = deque(maxlen=len(self._weights))
        self._second: deque[tuple[float, Array, Array]] = deque(maxlen=len(self._weights))

    def push(self, t: float, q: Array) -> tuple[float, Array, Array, Array] | None:
        """Add a sample; returns the delayed sample t, q, v, a, or None while the windows fill."""
        first, second, middle = self._first, self._second, len(self._weights) // 2
        if len(first) > 1 and t - first[-1][0] > _GAP * (first[-1][0] - first[-2][0]):
            first.clear()
            second.clear()
        if self._floating:
            q = q.copy()
            size = np.linalg.norm(q[3:7])
            if not size > 0:
                raise InvalidValue(f"the quaternion of the base at {t:g} s is zero")
            q[3:7] /= size
        first.append((t, q))
        if len(first) < len(self._weights):
            return None
        window = np.array([x for _, x in first])
        second.append((first[middle][0], window[middle], self._slope(window, first[-1][0] - first[0][0])))
        if len(second) < len(self._weights):
            return None
        at, posture, velocity = second[middle]
        rate = (len(second) - 1) / (second[-1][0] - second[0][0])
        a = rate * (self._weights @ np.array([x for _, _, x in second]))
        if not self._floating:
            return at, posture, velocity, a
        v = velocity.copy()
        turn = _matrix(posture[3:7])
        v[:3], a[:3] = velocity[:3] @ turn, a[:3] @ turn
        a[:3] -= _cross(v[3:6], v[:3])
        return at, posture, v, a

    def _slope(self, window: Array, seconds: float) -> Array:
        """Velocity in the middle of a window; of a floating base linear in the world, angular in the base frame."""
        rate = (len(window) - 1) / seconds
        if not self._floating:
            return np.asarray(rate * (self._weights @ window))
        out = np.empty(window.shape[1] - 1)
        out[:3] = self._weights @ window[:, :3]
        out[3:6] = self._weights @ _seen_from(window[len(window) // 2, 3:7], window[:, 3:7])
        out[6:] = self._weights @ window[:, 7:]
        return np.asarray(rate * out)


def _seen_from(own: Array, others: Array) -> Array:
    """Rotation vectors (N, 3) from one unit quaternion (x, y, z, w) to others (N, 4)."""
    x, y, z, w = own
    # conj(own) * other, written as a matrix.
    back = np.array([[w, z, -y, -x], [-z, w, x, -y], [y, -x, w, -z], [x, y, z, w]])
    p = others @ back.T
    p = np.where(p[:, 3:] < 0, -p, p)
    sine = np.sqrt(np.sum(p[:, :3] ** 2, axis=1))
    small = sine < 1e-9
    angle = 2.0 * np.arctan2(sine, p[:, 3])
    return np.asarray(p[:, :3] * np.where(small, 2.0, angle / np.where(small, 1.0, sine))[:, None])


def _matrix(quaternion: Array) -> Array:
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def _cross(a: Array, b: Array) -> Array:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


# The standard deviations of a good force plate (N, N m) and of joint torques (N m or N).
_NOISE = {"force": 3.0, "moment": 1.0, "torque": 1.0}
# The trial motion: half a radian or ten centimetres at 1 Hz, for so many samples. A body is advised if the trial motion
# removes this share of its variance; parameters below the noise are not.
_TRIED = 300
_WORTH = 0.1
_AMPLITUDE = {"revolute": 0.5, "prismatic": 0.1}
_PHASES = 12
# A link with less than this share of the mass only separates joints and is never advised.
_NO_BODY = 2e-3
_RANK = 1e-12


@dataclass(frozen=True)
class SegmentScore:
    """Score of one body.

    Attributes
    ----------
    name : str
    known : int
        Parameters whose relative standard deviation is below the target.
    count : int
        Parameters of the body.
    relative_std : float
        Rms over its parameters of the posterior standard deviation, in percent of the prior one.
    """

    name: str
    known: int
    count: int
    relative_std: float


@dataclass(frozen=True)
class Advice:
    """The body to move next, the joint to move it with (None: the base itself), and how, in words."""

    segment: str
    joint: str | None
    how: str

    def __str__(self) -> str:
        return f"move {self.segment}: {self.how}"


@dataclass(frozen=True, eq=False)
class LiveScore(HtmlFrame):
    """Score of a motion so far.

    Attributes
    ----------
    time : float
        Time of the last sample, s.
    samples : int
    known : int
        Base parameters whose relative standard deviation is below the target.
    count : int
        Base parameters.
    condition_number : float
        Of the rows over their noise, with columns scaled by typical sizes; infinite while a parameter is not excited.
    relative_std : array, shape (b,)
        Posterior standard deviation of each base parameter in percent of the prior one, from 100 down to 0.
    segments : tuple of SegmentScore
        Bodies, the least known first.
    advice : Advice
        What to move next.
    target : float
        Relative standard deviation below which a parameter is known.
    """

    time: float
    samples: int
    known: int
    count: int
    condition_number: float
    relative_std: Array
    segments: tuple[SegmentScore, ...]
    advice: Advice
    target: float = 0.1

    @property
    def share(self) -> float:
        """Share of the base parameters whose relative standard deviation is below the target."""
        return self.known / self.count

    @property
    def progress(self) -> float:
        """Reduction of the standard deviation, averaged over all parameters, 0 to 1; never decreases."""
        return float(np.mean(1.0 - self.relative_std / 100))

    def to_frame(self) -> pl.DataFrame:
        """The bodies as a table.

        Returns
        -------
        polars.DataFrame
            One row per body, the least known first: segment, known, count and relative_std.
        """
        import polars as pl

        rows = [(x.name, x.known, x.count, x.relative_std) for x in self.segments]
        return pl.DataFrame(
            rows, schema={"segment": str, "known": int, "count": int, "relative_std": float}, orient="row"
        )

    def line(self) -> str:
        """The score in one line."""
        condition = f"{self.condition_number:.3g}" if np.isfinite(self.condition_number) else "-"
        return (
            f"{self.time:6.1f} s  {100 * self.progress:3.0f} %  {self.known} of {self.count} known  "
            f"condition {condition}  next: {self.advice}"
        )

    def summary(self) -> str:
        """A table of the bodies, the least known first, and the score in one line."""
        return f"{rendered(attached(self, 'table')(self))}{self.line().strip()}"

    def to_dict(self) -> dict[str, Any]:
        """The score as plain data; None for an infinite condition number."""
        return {
            "time": self.time,
            "samples": self.samples,
            "known": self.known,
            "count": self.count,
            "share": self.share,
            "progress": self.progress,
            "condition_number": self.condition_number if np.isfinite(self.condition_number) else None,
            "segments": {
                s.name: {"known": s.known, "count": s.count, "relative_std": s.relative_std} for s in self.segments
            },
            "advice": {
                "segment": self.advice.segment,
                "joint": self.advice.joint,
                "text": str(self.advice),
            },
        }


class LiveExcitation:
    """A score of the excitation that is updated with every sample of a motion.

    Parameters
    ----------
    robot : Robot
    channels : str or sequence of str, optional
        Channels that will be measured. Default: the base wrench if there is one, else joint torques.
    base : BaseParameters, optional
        Instead of `channels`.
    target : float
        A parameter is known if its posterior standard deviation is below this share of the prior one, 0 to 1.
    noise : float or array, shape (channel,), optional
        The standard deviation of the channels. Default: 3 N and 1 N m.
    derivative : {"savgol", "central5", "central"}
        Differentiation of positions that come without velocities; delays a sample by 8, 4 or 2 samples.

    Examples
    --------
    >>> import numpy as np
    >>> import dynid
    >>> live = dynid.excitation.LiveExcitation(dynid.load_robot("twolink"))
    >>> t = np.arange(0, 2, 0.01)
    >>> live.update(t, np.column_stack([np.sin(3 * t), np.cos(2 * t)]))
    >>> live.score().samples
    184
    """

    def __init__(
        self,
        robot: Robot,
        *,
        channels: str | Sequence[str] | None = None,
        base: BaseParameters | None = None,
        target: float = 0.1,
        noise: ArrayLike | None = None,
        derivative: str = "savgol",
    ) -> None:
        if not 0 < target < 1:
            raise InvalidValue(f"the target is a share between 0 and 1, got {target}", "target")
        if base is None:
            base = base_parameters(robot, channels=channels or ("torque" if robot.base == "fixed" else "wrench"))
        elif channels is not None:
            raise ConflictingArguments("give either base parameters or channels, not both", "base")
        elif base.robot.parameter_names != robot.parameter_names:
            raise Mismatch(f"the base parameters are of another robot than '{robot.name}'", "base")
        self.robot, self.base, self.target = robot, base, target
        self.noise = _channel_std(base, noise)
        self.sizes = typical_sizes(base)
        self.samples, self.time = 0, 0.0
        self._factor = np.zeros((base.count, base.count))
        self._rows = [robot.channels.index(c) for c in base.channels]
        self._kept = np.array(base.kept)
        self._weights = 1.0 / self.noise[:, None]
        self._running = RunningDerivatives(robot.base == "floating", derivative)
        self._clock = -np.inf
        self._posture: Array | None = None
        self._score: LiveScore | None = None
        self._owner = _owners(base)

    @property
    def posture(self) -> Array:
        """The last posture (nq,), with the pose of a floating base first; at rest before the first sample."""
        return (_at_rest(self.robot) if self._posture is None else self._posture).copy()

    @property
    def factor(self) -> Array:
        """Triangular factor (b, b) of all rows so far, each divided by its channel's noise."""
        return self._factor.copy()

    def update(self, t: ArrayLike, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None) -> None:
        """Add one sample or several.

        Parameters
        ----------
        t : float or array, shape (N,)
            Time, s.
        q : array, shape (nq,) or (N, nq)
            Positions. A floating base comes first, its pose as position and quaternion x, y, z, w.
        v, a : array, shape (nv,) or (N, nv), optional
            Velocities and accelerations; both or neither.

        Raises
        ------
        DataError
            If a shape is wrong, a value is not finite or time does not increase.
        """
        times = np.atleast_1d(np.asarray(t, dtype=float))
        positions = np.atleast_2d(np.asarray(q, dtype=float))
        if times.ndim != 1 or positions.shape != (times.size, self.robot.nq):
            raise InvalidShape(
                f"q has shape {np.shape(q)} for {times.size} times; robot '{self.robot.name}' has {self.robot.nq} "
                "coordinates"
            )
        if not np.all(np.isfinite(times)):
            raise NotFinite("a time is not a finite number")
        if times[0] <= self._clock or np.any(np.diff(times) <= 0):
            raise InvalidValue(f"time does not increase after {self._clock:g} s")
        if (v is None) != (a is None):
            raise MissingArgument("give velocities and accelerations together, or neither")
        if v is not None and a is not None:
            self._fold(positions, np.atleast_2d(np.asarray(v, float)), np.atleast_2d(np.asarray(a, float)))
            self._clock = self.time = float(times[-1])
            return
        for moment, posture in zip(times, positions, strict=True):
            self._differentiated(float(moment), posture)

    def _differentiated(self, t: float, q: Array) -> None:
        if not np.all(np.isfinite(q)):
            raise NotFinite(f"a position at {t:g} s is not a finite number")
        self._clock = t
        done = self._running.push(t, q)
        if done is not None:
            self.time, *state = done
            self._fold(*(x[None] for x in state))

    def _fold(self, q: Array, v: Array, a: Array) -> None:
        from dynid.dynamics.kernels.rotations import rotate_in

        Y = regressor(self.robot, q, v, a)[:, self._rows][:, :, self._kept] * self._weights
        rotate_in(self._factor, np.ascontiguousarray(Y.reshape(-1, self.base.count)))
        self.samples += len(q)
        self._posture = q[-1]
        self._score = None

    def score(self) -> LiveScore:
        """The score now; takes some milliseconds."""
        if self._score is None:
            with one_blas_thread():
                self._score = self._scored()
        return self._score

    def line(self) -> str:
        """The score now in one line."""
        return self.score().line()

    def _scored(self) -> LiveScore:
        b = self.base.count
        scaled = self._factor * self.sizes
        triangle = scipy.linalg.qr(np.vstack([scaled, np.eye(b)]), mode="r", check_finite=False)[0][:b]
        root = scipy.linalg.solve_triangular(triangle, np.eye(b), check_finite=False)
        left = np.linalg.norm(root, axis=1)
        s = np.linalg.svd(scaled, compute_uv=False)
        segments = []
        for name in dict.fromkeys(self._owner):
            own = left[[i for i, x in enumerate(self._owner) if x == name]]
            known = int(np.count_nonzero(own <= self.target))
            segments.append(SegmentScore(name, known, own.size, float(100 * np.sqrt(np.mean(own**2)))))
        segments.sort(key=lambda x: -x.relative_std)
        return LiveScore(
            time=self.time,
            samples=self.samples,
            known=int(np.count_nonzero(left <= self.target)),
            count=b,
            condition_number=float(s[0] / s[-1]) if s[-1] > _RANK * s[0] else np.inf,
            relative_std=100 * left,
            segments=tuple(segments),
            advice=self._advice(segments, root, left),
            target=self.target,
        )

    def _advice(self, segments: Sequence[SegmentScore], root: Array, left: Array) -> Advice:
        """The least known body that a trial motion improves, and the joint that improves it most."""
        masses = {link.name: abs(float(link.inertia[0])) for link in self.robot.links}
        least = _NO_BODY * sum(masses.values())
        q = self.posture
        seen: dict[str, Array] = {}
        best: tuple[float, str, str] | None = None
        for segment in (s for s in segments if masses[s.name] >= least):
            joints = _joints_that_carry(self.robot, segment.name)
            own = [i for i, name in enumerate(self._owner) if name == segment.name]
            if not joints:
                if self.robot.base == "floating":
                    how = ", faster" if self._needs_inertia(own, left) else " into other postures"
                    return Advice(segment.name, None, f"turn and tilt it{how}")
                continue
            for joint in joints:
                if joint not in seen:
                    seen[joint] = self._trial(joint, q) @ root
            gains = [_gain(seen[joint], root[own]) for joint in joints]
            share = max(gains) / float(np.sum(left[own] ** 2))
            joint = joints[int(np.argmax(gains))]
            if best is None or share > best[0]:
                best = share, segment.name, joint
            if share >= _WORTH:
                best = share, segment.name, joint
                break
        if best is None:
            return Advice(segments[0].name, None, "hold other postures")
        _, name, joint = best
        own = [i for i, x in enumerate(self._owner) if x == name]
        needs = self._needs_inertia(own, left)
        return Advice(name, joint, f"move {joint} faster" if needs else f"hold {joint} at other angles")

    def _needs_inertia(self, own: Sequence[int], left: Array) -> bool:
        """Whether a body's inertias are less certain than its mass and first moments."""
        inertial = np.array([self.robot.layout[self.base.kept[i]].group == "kg m2" for i in own])
        return float(np.sum(left[own][inertial] ** 2)) >= float(np.sum(left[own][~inertial] ** 2))

    def _trial(self, joint: str, q: Array) -> Array:
        """Rows (m, b), in units of typical sizes, of an oscillation of one joint about a posture."""
        robot = self.robot
        i = robot.coordinates.index(joint)
        kind = next(j.kind for j in robot.joints if j.name == joint)
        first, limits = robot.nq - robot.n, robot.limits[joint]
        low, high = (
            max(limits.lower, q[first + i] - _AMPLITUDE[kind]),
            min(limits.upper, q[first + i] + _AMPLITUDE[kind]),
        )
        phase = 2 * np.pi * np.arange(_PHASES) / _PHASES
        reach = 0.5 * max(high - low, 0.0)
        states = np.tile(q, (_PHASES, 1))
        v, a = np.zeros((2, _PHASES, robot.nv))
        states[:, first + i] = 0.5 * (low + high) + reach * np.sin(phase)
        v[:, robot.nv - robot.n + i] = reach * 2 * np.pi * np.cos(phase)
        a[:, robot.nv - robot.n + i] = -reach * (2 * np.pi) ** 2 * np.sin(phase)
        Y = regressor(robot, states, v, a)[:, self._rows][:, :, self._kept] * self._weights
        return np.asarray(Y.reshape(-1, self.base.count) * (self.sizes * np.sqrt(_TRIED / _PHASES)))


def _gain(seen: Array, own: Array) -> float:
    """Variance of the parameters with rows `own` of the covariance root that the rows `seen` (m, b) remove."""
    inner = scipy.linalg.cho_factor(np.eye(len(seen)) + seen @ seen.T, lower=True)
    part = seen @ own.T
    return float(np.sum(part * scipy.linalg.cho_solve(inner, part)))


def _channel_std(base: BaseParameters, noise: ArrayLike | None) -> Array:
    """The standard deviation (channel,) of the noise."""
    if noise is None:
        kinds = [("force" if "f" in c[5:] else "moment") if c in WRENCH_CHANNELS else "torque" for c in base.channels]
        return np.array([_NOISE[k] for k in kinds])
    given = np.asarray(noise, dtype=float)
    if given.shape not in ((), (len(base.channels),)) or not np.all(np.isfinite(given)) or not np.all(given > 0):
        raise InvalidValue(f"{named('noise')} must be positive numbers, one or {len(base.channels)}")
    return np.broadcast_to(given, (len(base.channels),)).copy()


def _owners(base: BaseParameters) -> list[str]:
    """The body of each base parameter: its own, or the one that its drive moves."""
    robot = base.robot
    carried = {joint.name: robot.links[i].name for i, joint in enumerate(robot.joints, start=1)}
    driven = {term.name: carried[robot.tree_coordinates[term.owner]] for term in robot.drives}
    return [p.owner if p.inertial else driven[p.name] for p in (robot.layout[j] for j in base.kept)]


def _joints_that_carry(robot: Robot, link: str) -> list[str]:
    """Independent joints between a link and the base, the nearest to the link first."""
    body, out = robot.link_index(link), list[str]()
    while body:
        joint = robot.joints[body - 1]
        name = joint.name if joint.mimic is None else joint.mimic.leader
        if name not in out:
            out.append(name)
        body = joint.parent
    return out


def _at_rest(robot: Robot) -> Array:
    q = np.zeros(robot.nq)
    q[robot.nq - robot.n :] = robot.home
    if robot.base == "floating":
        q[6] = 1.0
    return q
