"""`PayloadMonitor`: mass and centre of a payload while a known robot runs, and when it is picked up and released.

    innovation = torque - Y_b beta = Y_b K_L p + noise,    p = (m, h, I) of the payload in the frame of its link

Sources: Atkeson, An and Hollerbach, Estimation of Inertial Parameters of Manipulator Loads and Links (1986); `change`
for the test and `noise` for the whitening.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.kernels.stream import PLACE
from dynid.errors import InvalidValue, MissingData
from dynid.feasibility.body_fit import fit_body
from dynid.identification.estimate import Estimate
from dynid.identification.observation import fold
from dynid.online.change import Change, ChangeDetector
from dynid.online.filters import CausalFilters, causal_filters
from dynid.online.payload_state import EventKind, PayloadEvent, PayloadState
from dynid.online.rows import CausalRows
from dynid.parameters.base import base_parameters
from dynid.parameters.loads import link_mass, load_columns
from dynid.robot.inertia import inertia_to_com
from dynid.robot.model import Robot
from dynid.signals.settings import STANDSTILL

__all__ = ["PRIOR", "WHOLE_PRIOR", "Candidate", "PayloadMonitor", "Rows", "Segment", "StreamNoise", "stream_noise"]

Array = NDArray[np.float64]


# Size and correlation over time of the innovations of a stream, per channel, and rows that are whitened by them.
#
#     e_i = r e_i-1 + n_i,    row_i <- (row_i - r row_i-1) / (std sqrt(1 - r^2)),    freedom = N (1 - r) / (1 + r)
#
# Source: Cochrane and Orcutt, Application of Least Squares Regression to Relationships Containing Auto-Correlated Error
# Terms (1949).


# Largest correlation of neighbouring rows that is taken out: beyond it, little would be left of a constant payload.
_LARGEST = 0.95
# Least noise relative to the innovations: the model of a simulated robot may be exact.
_LEAST = 1e-9
_FEWEST = 8
# Probability that the limit of the standard deviation of some channel is too low.
_CONFIDENCE = 1e-3


class StreamNoise:
    """Noise of the innovations: a process of first order per channel.

    Attributes
    ----------
    std : ndarray, shape (channel,)
        Standard deviation of an innovation, N m or N.
    correlation : ndarray, shape (channel,)
        Correlation of neighbouring rows.
    freedom : ndarray, shape (channel,)
        Number of independent rows from which they were learned.
    safety : ndarray, shape (channel,)
        Upper confidence limit of the standard deviation over its estimate.
    """

    def __init__(self, std: Array, correlation: Array, freedom: Array) -> None:
        self.std, self.correlation, self.freedom = std, correlation, freedom
        count = np.maximum(freedom, 1.0)
        self.safety = np.sqrt(count / scipy.stats.chi2.ppf(_CONFIDENCE / len(std), count))
        self._before: tuple[Array, Array, NDArray[np.bool_]] | None = None

    def whitened(self, X: Array, W: Array, moving: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Rows X (channel, k) and W (channel, b) of one instant less their part from that before, over the noise.

        Those of channels that do not move are left out; after a standstill a row has none before it.
        """
        r = np.zeros(len(self.std))
        if self._before is not None:
            r = np.where(self._before[2], self.correlation, 0.0)
        known = r > 0
        scale = 1.0 / (self.std * np.sqrt(1.0 - r**2))
        x, w = X, W
        if known.any():
            assert self._before is not None
            x, w = X - r[:, None] * self._before[0], W - r[:, None] * self._before[1]
        self._before = X.copy(), W.copy(), moving.copy()
        return (x * scale[:, None])[moving], (w * scale[:, None])[moving]


def stream_noise(X: Array, y: Array, moving: NDArray[np.bool_]) -> StreamNoise:
    """The noise of y (N, channel) about its fit by X (N, channel, k), where channels move (N, channel)."""
    channels = y.shape[1]
    size = np.sqrt(_mean_square(y, moving))
    std = np.where(size > 0, size, 1.0)
    for _ in range(3):
        weight = moving / std
        rows = (X * weight[:, :, None]).reshape(-1, X.shape[2])
        x = np.linalg.lstsq(rows, (y * weight).ravel(), rcond=1e-8)[0]
        left = y - X @ x
        std = np.maximum(np.sqrt(_mean_square(left, moving)), _LEAST * size)
    correlation, freedom = np.zeros(channels), np.zeros(channels)
    for c in range(channels):
        both = moving[1:, c] & moving[:-1, c]
        if not np.isfinite(std[c]):
            continue
        if both.sum() >= _FEWEST:
            product = np.mean(left[1:, c][both] * left[:-1, c][both]) / max(std[c] ** 2, 1e-300)
            correlation[c] = float(np.clip(product, 0.0, _LARGEST))
        freedom[c] = moving[:, c].sum() * (1 - correlation[c]) / (1 + correlation[c])
    if not freedom.any():
        raise MissingData("no joint moved while the noise was learned")
    return StreamNoise(std, correlation, freedom)


def _mean_square(x: Array, moving: NDArray[np.bool_]) -> Array:
    """Mean square (channel,) of the rows that move; infinite without any."""
    count = moving.sum(axis=0)
    return np.where(count > 0, np.sum(np.where(moving, x, 0.0) ** 2, axis=0) / np.maximum(count, 1), np.inf)


# Whitened rows of a payload between two changes: the last ones as they are, older ones folded.
#
#     p = (X'X + diag(1 / PRIOR^2))^-1 X'y of the first four columns,    R'R = [X y]'[X y] of all rows
#
# Source: Golub and Van Loan, Matrix Computations (4th edition 2013), for least squares from a factor of stacked rows.


# Standard deviations of mass (kg) and first moments (kg m) before any data: larger than any payload.
PRIOR = np.array([100.0, 30.0, 30.0, 30.0])
# The same with the inertia (kg m2). A heavy payload on a fast arm has torques of its inertia far above the noise.
WHOLE_PRIOR = np.r_[PRIOR, np.full(6, 10.0)]


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one instant: time, [X y] (m, 11) of the ten inertial parameters, and those of the arm (m, b)."""

    time: float
    own: Array
    arm: Array


class Segment:
    """Rows between two changes of the payload.

    Parameters
    ----------
    parameters : int
        Number of base parameters of the arm.
    window : int
        Number of instants that can be taken back.
    """

    def __init__(self, parameters: int, window: int) -> None:
        self.window = window
        self.since = np.nan
        self.recent: deque[Rows] = deque()
        self._factor = np.zeros((0, 11))
        self._carried = np.zeros((10, parameters))
        self._folded = 0

    @property
    def count(self) -> int:
        """Number of rows of all channels."""
        return self._folded + sum(len(x.own) for x in self.recent)

    def add(self, rows: Rows) -> None:
        """Take the rows of one instant."""
        if np.isnan(self.since):
            self.since = rows.time
        self.recent.append(rows)
        if len(self.recent) > self.window:
            old = self.recent.popleft()
            self._factor = fold(np.asfortranarray(np.vstack([self._factor, old.own])))
            self._carried += old.own[:, :10].T @ old.arm
            self._folded += len(old.own)

    def take_back(self, count: int) -> list[Rows]:
        """Remove and return the rows of the last instants."""
        out = [self.recent.pop() for _ in range(min(count, len(self.recent)))]
        return out[::-1]

    def factor(self) -> Array:
        """Triangular factor (<= 11, 11) of all rows [X y]."""
        return fold(np.asfortranarray(np.vstack([self._factor, *(x.own for x in self.recent)])))

    def carried(self) -> Array:
        """X'W (10, b) of all rows: how errors of the arm reach the payload."""
        out = self._carried.copy()
        for x in self.recent:
            out += x.own[:, :10].T @ x.arm
        return out

    def information(self, count: int = 10) -> tuple[Array, Array]:
        """Information and scores of the first `count` inertial parameters."""
        R = self.factor()
        return R[:, :count].T @ R[:, :count], R[:, :count].T @ R[:, 10]

    def moments(self) -> tuple[Array, Array]:
        """Mass and first moments (4,) with their covariance (4, 4), the inertia left out."""
        information, scores = self.information(len(PRIOR))
        covariance = np.asarray(np.linalg.inv(information + np.diag(1.0 / PRIOR**2)))
        return covariance @ scores, covariance


@dataclass(eq=False)
class Candidate:
    """A change that is to be confirmed: what the test found, when, the rows before it, and instants since then."""

    change: Change
    time: float
    old: Segment
    seen: int = 0


# Seconds of rows that are tested for a change.
_WINDOW = 1.0
# Share of a step of the payload that the shared low-pass may not have passed on yet in rows that are used.
_UNSETTLED = 0.01
# Standard deviations of the change of mass from which it is one.
_SIGNIFICANT = 4.0
# Share of the largest velocity so far below which a joint stands still.
_SLOW = 0.01


class PayloadMonitor:
    """Payload of a known robot while it runs.

    The torques less those of the robot model are the innovations. What a body on the link would add to them is linear
    in its mass and first moments. Rows of joints that stand still are left out, since their stiction is unknown: a
    payload that is picked up at rest is found once the arm moves.

    The size and the correlation over time of the innovations are learned during the first seconds of motion; then
    changes are tested, see `dynid.online.change`. A payload that is already there is no change: it is in `payload`.

    Parameters
    ----------
    model : Estimate or Robot
        The identified robot without the payload: an estimate, whose covariance is propagated, or a robot that is taken
        as exact.
    link : str
        Link that carries the payload.
    rate : float
        Samples per second, Hz.
    cutoff : float, optional
        Cut-off frequency in Hz, as for `OnlineIdentification`.
    training : float, default 5.0
        Seconds of motion from which the noise is learned. The motion should be like that which follows, and the
        payload must not change.
    false_alarms : float, default 0.1
        Expected number of false alarms per hour that is not exceeded, if the innovations are normal with the size and
        the correlation that were learned.
    smallest : float, default 0.1
        Changes of mass below this many kg are not reported.
    measured_velocity : bool, default False
        Velocities come with every sample.

    Attributes
    ----------
    link : str
        Link that carries the payload.
    events : tuple of PayloadEvent
        All events so far.
    disturbances : int
        Changes of the torques that were no change of mass, such as a push.

    Raises
    ------
    DataError
        If a setting cannot be used, the link carries nothing, or the robot cannot be followed sample by sample.
    """

    def __init__(
        self,
        model: Estimate | Robot,
        link: str,
        *,
        rate: float,
        cutoff: float | None = None,
        training: float = 5.0,
        false_alarms: float = 0.1,
        smallest: float = 0.1,
        measured_velocity: bool = False,
    ) -> None:
        for name, value in (("training", training), ("false_alarms", false_alarms)):
            if not value > 0:
                raise InvalidValue(f"{name} must be positive, got {value}")
        if smallest < 0:
            raise InvalidValue(f"smallest must not be negative, got {smallest}", "smallest")
        if isinstance(model, Estimate):
            base, beta = model.base, model.beta
            # Infinite where joints at rest left parameters unknown: these have no effect without their motion.
            covariance = np.where(np.isfinite(model.covariance), model.covariance, 0.0)
        else:
            base = base_parameters(model, channels="torque")
            beta, covariance = base.values(), np.zeros((base.count, base.count))
        self.link, self.smallest, self.false_alarms = link, float(smallest), float(false_alarms)
        self._covariance = covariance
        self._rows = CausalRows(base, causal_filters(rate, cutoff), measured_velocity=measured_velocity)
        columns = load_columns(base, link)
        self._lightest = link_mass(base.robot, link)
        self._known = [beta[own] for own in self._rows.touched]
        self._load = [columns[own] for own in self._rows.touched]
        filters = self._rows.filters
        self._wanted = max(2 * len(PRIOR), round(training * filters.row_rate))
        self._settling = _settling_rows(filters)
        self._training: list[tuple[float, Array, Array, NDArray[np.bool_]]] = []
        self._noise: StreamNoise | None = None
        self._detector: ChangeDetector | None = None
        self._window = max(2, round(_WINDOW * filters.row_rate))
        self._segment = Segment(base.count, self._window)
        self._candidate: Candidate | None = None
        self.events: tuple[PayloadEvent, ...] = ()
        self.disturbances = 0
        self._dead = np.zeros(len(base.channels), dtype=int)

    @property
    def filters(self) -> CausalFilters:
        """The filters of the samples, with their delay."""
        return self._rows.filters

    @property
    def trained(self) -> bool:
        """Whether the noise is known, so that changes are tested."""
        return self._noise is not None

    @property
    def noise(self) -> StreamNoise | None:
        """Size and correlation of the innovations; None while they are learned."""
        return self._noise

    def update(self, t: float, q: ArrayLike, torque: ArrayLike, v: ArrayLike | None = None) -> PayloadEvent | None:
        """Take one sample.

        Parameters
        ----------
        t : float
            Time in s.
        q, torque, v : array_like, shape (joint,)
            Positions, torques and, with `measured_velocity`, velocities.

        Returns
        -------
        PayloadEvent or None
            The event that this sample reveals.
        """
        if not self._rows.push(t, q, torque, v):
            return None
        return self._row(t, self._rows.out[0])

    def update_block(
        self, t: ArrayLike, q: ArrayLike, torque: ArrayLike, v: ArrayLike | None = None
    ) -> list[PayloadEvent]:
        """Take samples t (N,), q, torque, v (N, joint) one by one; returns the events that they reveal."""
        velocities: Sequence[ArrayLike | None] = [None] * len(np.asarray(t)) if v is None else list(np.asarray(v))
        samples = zip(np.asarray(t, dtype=float).tolist(), np.asarray(q), np.asarray(torque), velocities, strict=True)
        found = (self.update(*sample) for sample in samples)
        return [event for event in found if event is not None]

    def _row(self, t: float, row: Array) -> PayloadEvent | None:
        """Use the rows of one instant: [X y] (channel, 11), of the joints that move."""
        stream = self._rows.stream
        channels = len(self._known)
        X, W = np.empty((channels, 11)), np.zeros((channels, self._covariance.shape[0]))
        for c in range(channels):
            own = row[self._rows.start_of(c)]
            X[c, :10] = own[:-1] @ self._load[c]
            X[c, 10] = own[-1] - own[:-1] @ self._known[c]
            W[c, self._rows.touched[c]] = own[:-1]
        velocity = np.abs(row[stream.start[-1] :])
        moving = velocity > np.maximum(_SLOW * stream.fastest[stream.joint], STANDSTILL)
        self._count_dead(moving)
        moving &= self._dead == 0
        if self._noise is None:
            if moving.any():
                self._training.append((t, X, W, moving))
            if len(self._training) >= self._wanted:
                self._learn()
            return None
        return self._use(t, X, W, moving)

    def _count_dead(self, moving: NDArray[np.bool_]) -> None:
        """Rows per channel that the shared low-pass needs to forget a torque that does not vary although it should."""
        stream = self._rows.stream
        past = np.roll(stream.past_torque, -1 - int(stream.state[PLACE]), axis=0)
        half = len(past) // 2 + 1
        # The torques up to that of this row, and those from it on.
        constant = (np.ptp(past[:half], axis=0) == 0.0) | (np.ptp(past[-half:], axis=0) == 0.0)
        left = np.where(moving, np.maximum(self._dead - 1, 0), self._dead)
        self._dead = np.where(moving & constant[stream.joint], self._settling + 1, left)

    @property
    def dead(self) -> tuple[str, ...]:
        """Joints whose torque does not vary at present although they move; their rows are left out."""
        return tuple(c for c, left in zip(self._rows.base.channels, self._dead, strict=True) if left)

    def _learn(self) -> None:
        """Noise of the innovations from the rows of the training, which then are the first rows of the estimate."""
        rows = np.array([x for _, x, _, _ in self._training])
        moving = np.array([m for _, _, _, m in self._training])
        self._noise = stream_noise(rows[:, :, :4], rows[:, :, 10], moving)
        row_rate = self.filters.row_rate
        level = self.false_alarms / (3600.0 * row_rate * self._window)
        self._detector = ChangeDetector(WHOLE_PRIOR, window=self._window, level=level)
        self._training, training = [], self._training
        for t, X, W, used in training:
            white, arm = self._noise.whitened(X, W, used)
            self._segment.add(Rows(t, white, arm))
            # The payload is not to change during the training, so what the test says of it does not count.
            self._detector.add(*self._tested(white, used))

    def _tested(self, white: Array, moving: NDArray[np.bool_]) -> tuple[Array, Array]:
        """Rows for the test: over the upper limit of the noise, not its estimate."""
        assert self._noise is not None
        rows = white / self._noise.safety[moving][:, None]
        return rows[:, :10], rows[:, 10]

    def _use(self, t: float, X: Array, W: Array, moving: NDArray[np.bool_]) -> PayloadEvent | None:
        assert self._noise is not None and self._detector is not None
        white, arm = self._noise.whitened(X, W, moving)
        if not len(white):
            return None
        return self._take(Rows(t, white, arm), *self._tested(white, moving))

    def _take(self, rows: Rows, X: Array, y: Array) -> PayloadEvent | None:
        """Confirm a change with the rows of one instant, or test for one."""
        assert self._detector is not None
        if self._candidate is not None:
            return self._confirm(rows)
        self._segment.add(rows)
        change = self._detector.add(X, y)
        if change is None:
            return None
        since = self._segment.take_back(change.rows)
        self._candidate = Candidate(change, since[0].time, self._segment)
        self._segment = Segment(self._covariance.shape[0], self._window)
        found = None
        for each in since:
            # Once the change is confirmed, the rows after it are rows of the new payload.
            if self._candidate is None:
                self._segment.add(each)
            else:
                found = self._confirm(each)
        if self._candidate is None:
            self._resume()
        return found

    def _confirm(self, rows: Rows) -> PayloadEvent | None:
        """Wait until the shared low-pass has passed the change on, then compare the masses before and after it."""
        candidate = self._candidate
        assert candidate is not None and self._detector is not None
        candidate.seen += 1
        if candidate.seen <= self._settling:
            return None
        self._segment.add(rows)
        if self._segment.count < 2 * len(PRIOR):
            return None
        after, own = self._segment.moments()
        before, other = candidate.old.moments()
        step = float(after[0] - before[0])
        std = float(np.sqrt(own[0, 0] + other[0, 0]))
        # No arm becomes lighter than without the link that carries the payload.
        possible = float(after[0]) > -self._lightest - _SIGNIFICANT * std
        if possible and abs(step) >= max(self.smallest, _SIGNIFICANT * std):
            event = PayloadEvent(
                kind=EventKind.PICK_UP if step > 0 else EventKind.RELEASE,
                time=candidate.time - self.filters.delay,
                detected=rows.time,
                mass_change=step,
                mass_change_std=std,
                statistic=candidate.change.statistic,
                threshold=self._detector.threshold,
            )
            self.events = (*self.events, event)
            self._resume()
            return event
        if candidate.seen > self._settling + self._window:
            # Something happened, such as a push, but the mass is as before.
            self.disturbances += 1
            since, self._segment = self._segment.take_back(self._window), candidate.old
            for each in since:
                self._segment.add(each)
            self._resume()
        return None

    def _resume(self) -> None:
        """Test again for changes, against the rows of the segment."""
        assert self._detector is not None and self._noise is not None
        self._candidate = None
        information, scores = self._segment.information()
        least = float(self._noise.safety.max()) ** 2
        self._detector.restart(information / least, scores / least)

    def payload(self) -> PayloadState | None:
        """The payload from the rows since the last event, as a point mass.

        Returns
        -------
        PayloadState or None
            None as long as there are too few rows. Standard deviations contain the noise of the innovations, with their
            correlation over time, and the covariance of the model.
        """
        segment = self._segment
        if self._noise is None or segment.count < 11:
            return None
        rows, carried = segment.factor(), segment.carried()
        R, z = rows[:, :10], rows[:, 10]
        # Mass and first moments alone: linear, so that a mass near zero has its standard deviation.
        inertial, own = np.zeros(10), np.zeros((10, 10))
        inertial[:4], own[:4, :4] = segment.moments()
        centre, centre_std = np.full(3, np.nan), np.full(3, np.nan)
        if significant := abs(inertial[0]) > _SIGNIFICANT * np.sqrt(own[0, 0]):
            found = fit_body(R, z, "mass-centre", feasible=False)
            inertial, own = found.inertial, found.covariance
        gain = own @ carried
        covariance = own + gain @ self._covariance @ gain.T
        mass = float(inertial[0])
        if significant:
            centre = np.asarray(inertia_to_com(inertial)[1])
            slope = np.hstack([-centre[:, None], np.eye(3)]) / mass
            centre_std = np.sqrt(np.diag(slope @ covariance[:4, :4] @ slope.T))
        mass_std = float(np.sqrt(covariance[0, 0]))
        return PayloadState(self.link, segment.since, segment.count, mass, mass_std, centre, centre_std)


def _settling_rows(filters: CausalFilters) -> int:
    """Rows after a step until the shared low-pass has passed it on."""
    samples = max(1000, 20 * filters.step)
    passed = scipy.signal.sosfilt(filters.sections, np.ones(samples))
    late = np.flatnonzero(np.abs(passed - 1.0) > _UNSETTLED)
    return int(np.ceil((late[-1] + 1) / filters.step)) if late.size else 0
