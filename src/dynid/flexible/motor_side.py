"""Flexible joints from motor encoders alone: the deflections are not measured, but change the torques.

For given bodies, stiffness and damping the deflections follow from the motion of the motors (see `rows`), and with
them the torques. All parameters are fitted to the measured torques by Gauss-Newton iterations with the sensitivities of
the springs: output error with the torque as the output and the motor position, which has little noise, as the input.

Near resonances the torques depend on the stiffness so strongly that the iterations end in the next local minimum. Far
below them a flexible joint is nearly rigid, and its compliance a small correction that is linear. So the torques are
fitted in a low band first, from rigid joints, and each fit is the start of that in a wider band.

    beta, c, T <- argmin |torque - Ia theta'' - friction - Y(theta - x, ...) beta|^2,    M x'' + d x' + k x = Y beta

Sources: Spong, Modeling and Control of Elastic Joint Robots (1987), for the model; Ljung, System Identification: Theory
for the User (1999), for output error. Growing bands of frequency are our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.functions import mass_matrix
from dynid.errors import DataError, MissingData, NotIdentifiable
from dynid.flexible.estimate import FlexibleEstimate, Sides
from dynid.flexible.rows import (
    FlexibleModel,
    SpringMotion,
    TwoSided,
    Unknowns,
    padded_segments,
    spring_motion,
    two_sided,
)
from dynid.flexible.solve import consistent_links, least_squares
from dynid.identification.jackknife import block_jackknife
from dynid.identification.loads import no_torques
from dynid.identification.observation import fold
from dynid.recording.recording import Recording
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot
from dynid.signals.settings import Motion, Signals

__all__ = ["identify_motor_side"]

Array = NDArray[np.float64]

# Bands of the fits: the widest is that of the rows, each other one is narrower by this factor.
_BANDS, _WIDER = 8, 1.5
# Least rows per unknown in a band.
_ROWS_EACH = 4
# Samples per period of the highest frequency of a band, and the lowest rate (Hz), at which springs are integrated.
_PER_PERIOD, _LOWEST_RATE = 10.0, 200.0
# Seconds at the start of a run on which the unknown initial motion of the springs decays; what is left of it is linear.
_SETTLING = 1.0
# The start: frequency of the springs relative to the lowest band, damping ratio, and share of the inertia of a joint
# that is that of its motor.
_STIFF, _RATIO, _MOTOR_SHARE = 8.0, 0.05, 0.5
# Standard deviations that hold what a narrow band does not show: logarithms of stiffness and damping, and the motor
# inertia relative to that of the start.
_STIFFNESS_KNOWN, _DAMPING_KNOWN, _SHARE_KNOWN = 1.0, 1.0, 0.5
# Iterations and change of predictions in standard deviations of their noise: of narrow bands, and of the widest.
_NARROW, _WIDEST = (8, 0.03), (40, 1e-3)
# Half the length of the low-pass before rows are thinned, in kept rows, and its band relative to half their rate.
_HALF_TAPS, _PASSED = 10, 0.8
# Weight of friction of links that is held at zero, at the start.
_HELD = 1e4
# Largest change of a logarithm per iteration.
_LARGEST = 1.0
# Penalty on a step with columns of unit norm: at the start, at least, its factors after success and failure, trials.
_PENALTY, _LEAST_PENALTY, _LESS, _MORE, _TRIALS = 1e-4, 1e-14, 0.1, 20.0, 8
# Singular values of scaled columns below this share of the largest are not determined.
_RANK = 1e-12


@dataclass(frozen=True, eq=False)
class _Point:
    """Base parameters, motor parameters, and logarithms of stiffness and damping."""

    beta: Array
    motors: Array
    k: Array
    d: Array

    @property
    def vector(self) -> Array:
        return np.concatenate([self.beta, self.motors, self.k, self.d])

    def moved(self, step: Array, share: float) -> _Point:
        ends = np.cumsum([self.beta.size, self.motors.size, self.k.size])
        return _Point(*np.split(self.vector + share * step, ends))


@dataclass(frozen=True, eq=False)
class _Block:
    """Rows of one joint of one run: columns (m, unknown) of the step, residual (m,), sample numbers."""

    channel: int
    W: Array
    residual: Array
    index: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Problem:
    """Filtered runs of motors whose torques are fitted."""

    model: FlexibleModel
    motions: tuple[TwoSided, ...]
    signals: Signals

    @property
    def band(self) -> float:
        """Highest frequency of the rows in Hz."""
        return min(_PASSED * m.motors.rate / (2 * np.prod(m.motors.decimate)) for m in self.motions)

    @property
    def seconds(self) -> float:
        return sum(len(m.motors.t) / m.motors.rate for m in self.motions)

    def within(self, band: float) -> _Problem:
        """The same runs at a lower rate, with rows up to a frequency in Hz."""
        return replace(self, motions=tuple(_within(m.motors, band) for m in self.motions))

    def blocks(self, point: _Point) -> list[_Block]:
        """Residuals at a point, with the columns of a step."""
        out: list[_Block] = []
        first = 0
        k, d = np.exp(point.k), np.exp(point.d)
        for motors in (m.motors for m in self.motions):
            springs = spring_motion(self.model, point.beta, k, d, motors)
            out += self._run(motors, springs, point, first)
            first += len(motors.t)
        return out

    def _run(self, motors: Motion, springs: SpringMotion, point: _Point, first: int) -> list[_Block]:
        model, at = self.model, springs.at
        links = springs.bent(motors).links
        Y = model.link_rows(links.q, links.v, links.a)
        Z = model.motor_rows(motors.q, motors.v, motors.a)
        assert motors.torque is not None
        rest = motors.torque - Y @ point.beta - Z @ point.motors
        # The torque of a flexible joint is that of its spring, which the integration satisfies exactly.
        rest[:, at] += (Y @ point.beta)[:, at] - springs.stiffness * springs.x - springs.damping * springs.v
        none = np.zeros((len(motors.t), model.robot.n, 2 * len(at)))
        free = springs.torques(_kicks(springs), none)
        wide = np.concatenate(
            [springs.torques(Y[:, at], Y), Z, _spring_columns(springs, none), rest[:, :, None], free], 2
        )
        limits = self.signals.velocity_limits(motors.v)
        channels = []
        for i in range(model.robot.n):
            rows, index = _thinned(np.column_stack([wide[:, i], motors.v[:, i]]), motors.decimate)
            kept = (np.abs(rows[:, -1]) >= limits[i]) & (index >= _SETTLING * motors.rate)
            channels.append((rows[kept, :-1], first + index[kept]))
        size = np.maximum(motors.torque.std(axis=0), 1e-300)
        left = _without([rows for rows, _ in channels], free.shape[2], size)
        return [_Block(i, x[:, :-1], x[:, -1], channels[i][1]) for i, x in enumerate(left)]


def _within(motors: Motion, band: float) -> TwoSided:
    """A run at a lower rate, with rows up to a frequency in Hz."""
    assert motors.torque is not None
    fewer = max(1, int(motors.rate / max(_PER_PERIOD * band, _LOWEST_RATE)))
    signals = [motors.q, motors.v, motors.a, motors.torque]
    wide, index = _thinned(np.hstack(signals), (fewer,))
    q, v, a, torque = (np.ascontiguousarray(x) for x in np.split(wide, len(signals), axis=1))
    rate = motors.rate / fewer
    step = max(1, int(_PASSED * rate / (2 * band)))
    moved = replace(motors, t=motors.t[index], q=q, v=v, a=a, torque=torque, rate=rate, decimate=(step,))
    return TwoSided(moved, moved)


def _spring_columns(springs: SpringMotion, none: Array) -> Array:
    """Torques (N, joint, 2 spring) per logarithm of stiffness and of damping."""
    f = len(springs.at)
    own = np.zeros((len(springs.x), f, 2 * f))
    for s in range(f):
        own[:, s, s] = springs.stiffness[s] * springs.x[:, s]
        own[:, s, f + s] = springs.damping[s] * springs.v[:, s]
    out = springs.torques(-own, none)
    out[:, springs.at] += own
    return out


def _kicks(springs: SpringMotion) -> Array:
    """Loads (N, spring, 2 spring) on the first samples, which start free oscillations of any phase."""
    f = len(springs.at)
    out = np.zeros((len(springs.x), f, 2 * f))
    for s in range(f):
        out[1, s, s] = out[2, s, f + s] = springs.stiffness[s]
    return out


def _without(channels: list[Array], count: int, size: Array) -> list[Array]:
    """Rows of channels without what their last columns, the unknown initial motion of the springs, explain."""
    stacked = np.vstack([rows / s for rows, s in zip(channels, size, strict=True)])
    free = stacked[:, -count:]
    scale = np.linalg.norm(free, axis=0)
    basis = np.linalg.qr(free / np.where(scale > 0, scale, 1.0))[0]
    left = stacked[:, :-count] - basis @ (basis.T @ stacked[:, :-count])
    parts = np.split(left, np.cumsum([len(rows) for rows in channels])[:-1])
    return [s * part for s, part in zip(size, parts, strict=True)]


def identify_motor_side(
    robot: Robot, recording: Recording, joints: Sequence[str] | None, link_friction: str, signals: Signals
) -> FlexibleEstimate:
    """Identify flexible joints, by default all of them, from torques and motor encoders; as `identify_flexible`."""
    for run in recording.runs:
        if run.torque is None:
            raise no_torques(run)
    model = FlexibleModel(robot, tuple(joints or robot.coordinates), link_friction)
    if not any(name.startswith("Ia_") for name in model.motor_names):
        raise MissingData("motors without rotor inertia have no resonance: give the robot a rotor inertia")
    bare = [replace(run, link_q=None) for run in recording.runs]
    motions = tuple(two_sided(robot, run, (), signals) for run in bare)
    whole = _Problem(model, motions, signals)
    bands = _bands(whole)
    start = _start(whole.within(bands[0]), bands[0])
    fitted = _Fitted(start, (), np.ones(robot.n), 0, False)
    for band in bands[:-1]:
        fitted = _fit(whole.within(band), fitted.point, _known(model, start, fitted.point), *_NARROW)
    problem = whole.within(bands[-1])
    fitted = _fit(problem, fitted.point, None, *_WIDEST)
    return _estimate(problem, fitted)


def _bands(problem: _Problem) -> list[float]:
    """Highest frequencies in Hz of the fits; the lowest has enough rows for all unknowns."""
    model = problem.model
    unknowns = model.base.count + len(model.motor_names) + 2 * len(model.flexible)
    lowest = _ROWS_EACH * unknowns * _PASSED / (2 * model.robot.n * problem.seconds)
    widest = problem.band
    bands = [widest / _WIDER**k for k in reversed(range(_BANDS))]
    return [band for band in bands if band > lowest] or [widest]


def _start(problem: _Problem, band: float) -> _Point:
    """Rigid joints with springs that are stiff in a low band."""
    noise, factors = _rigid(problem)
    stacked = fold(np.asfortranarray(np.vstack([x / s for x, s in zip(factors, noise, strict=True)])))
    beta, motors, inertia = _divided(problem, stacked)
    k = inertia * (2 * np.pi * _STIFF * band) ** 2
    return _Point(beta, motors, np.log(k), np.log(2 * _RATIO * np.sqrt(k * inertia)))


def _known(model: FlexibleModel, start: _Point, point: _Point) -> tuple[Array, Array]:
    """Expected values of all unknowns and the inverse of their standard deviations, 0 for those that are free.

    The stiffness is the present one, the damping ratio that of the start, and motors have their share of the inertia.
    """
    b, m, f = point.beta.size, point.motors.size, point.k.size
    expected, weight = point.vector, np.zeros(b + m + 2 * f)
    expected[-f:] = start.d + 0.5 * (point.k - start.k)
    weight[-2 * f : -f], weight[-f:] = 1.0 / _STIFFNESS_KNOWN, 1.0 / _DAMPING_KNOWN
    for i, term in enumerate(model.motors.drives):
        if term.kind == TermKind.INERTIA and start.motors[i] > 0:
            expected[b + i], weight[b + i] = start.motors[i], 1.0 / (_SHARE_KNOWN * start.motors[i])
    return expected, weight


def _thinned(rows: Array, factors: Sequence[int]) -> tuple[Array, NDArray[np.int64]]:
    """Every n-th row after a symmetric low-pass, and its sample number.

    Only the rows that are kept are computed: with a hundred columns per joint this takes a tenth of the time of the
    recursive filters of `dynid.signals.filters.decimate`.
    """
    step = int(np.prod(factors)) if factors else 1
    if step == 1:
        return rows, np.arange(len(rows))
    taps = scipy.signal.firwin(2 * _HALF_TAPS * step + 1, _PASSED / step)
    thin = scipy.signal.upfirdn(taps, rows, 1, step, axis=0)
    # Row k is centred on sample (k - _HALF_TAPS) step; rows whose filter reaches beyond the run are left out.
    last = (len(rows) - 1) // step - _HALF_TAPS
    return thin[2 * _HALF_TAPS : last + _HALF_TAPS + 1], step * np.arange(_HALF_TAPS, last + 1)


def _divided(problem: _Problem, stacked: Array) -> tuple[Array, Array, Array]:
    """Bodies and motors of rigid joints, whose inertia is divided between motor and link, and that of the links.

    Rigid joints show the sum of both inertias only.
    """
    model = problem.model
    b = model.base.count
    poses = problem.motions[0].motors.q[:: max(1, len(problem.motions[0].motors.q) // 50)]

    def diagonal(beta: Array) -> Array:
        links = model.links.with_parameters(model.base.standard(beta))
        return np.asarray(np.diagonal(mass_matrix(links, poses).mean(axis=0)))

    x = least_squares(stacked)
    rotors = {int(t.owner): k for k, t in enumerate(model.motors.drives) if t.kind == TermKind.INERTIA}
    whole = diagonal(x[:b])
    motors = np.zeros(len(model.motor_names))
    for i, k in rotors.items():
        motors[k] = _MOTOR_SHARE * max(whole[i] + x[b + k], 0.0)
    columns = [b + k for k in rotors.values()]
    rest = stacked.copy()
    rest[:, -1] -= stacked[:, columns] @ motors[list(rotors.values())]
    rest = np.delete(rest, columns, axis=1)
    # Friction of rigid joints is that of their motors: rows that hold the friction of links at zero.
    held = np.zeros((len(model.link_friction_columns), rest.shape[1]))
    for row, k in enumerate(model.link_friction_columns):
        held[row, k] = _HELD * np.linalg.norm(rest[:, k])
    rest = np.vstack([rest, held])
    beta = model.base.matrix @ consistent_links(model, rest)
    others = [k for k in range(len(motors)) if k not in rotors.values()]
    motors[others] = _given(rest, beta)
    return beta, motors, diagonal(beta)[model.flexible]


def _rigid(problem: _Problem) -> tuple[Array, list[Array]]:
    """Noise and factor of [W y] per joint of rigid joints."""
    model = problem.model
    n, b = model.robot.n, model.base.count
    stacks: list[list[Array]] = [[] for _ in range(n)]
    for motion in problem.motions:
        motors = motion.motors
        assert motors.torque is not None
        limits = problem.signals.velocity_limits(motors.v)
        for part in padded_segments(motors):
            at = part.whole
            Y = model.link_rows(motors.q[at], motors.v[at], motors.a[at])
            Z = model.motor_rows(motors.q[at], motors.v[at], motors.a[at])
            for i in range(n):
                rows = part.thinned(np.column_stack([Y[:, i], Z[:, i], motors.torque[at, i], motors.v[at, i]]))
                stacks[i].append(rows[np.abs(rows[:, -1]) >= limits[i], :-1])
    counts = [sum(map(len, s)) for s in stacks]
    factors = [fold(np.asfortranarray(np.vstack(s))) for s in stacks]
    noise = np.ones(n)
    for _ in range(3):
        x = least_squares(np.vstack([f / s for f, s in zip(factors, noise, strict=True)]))
        noise = np.array(
            [
                np.linalg.norm(f[:, -1] - f[:, :-1] @ x) / np.sqrt(max(c - b / n, 1.0)) + 1e-300
                for f, c in zip(factors, counts, strict=True)
            ]
        )
    return noise, factors


def _given(stacked: Array, beta: Array) -> Array:
    """Motor parameters that fit best with given base parameters."""
    b = beta.size
    rest = np.column_stack([stacked[:, b:-1], stacked[:, -1] - stacked[:, :b] @ beta])
    return least_squares(rest)


def _factor(blocks: Sequence[_Block], noise: Array) -> Array:
    rows = [np.column_stack([x.W, x.residual]) / noise[x.channel] for x in blocks]
    return fold(np.asfortranarray(np.vstack(rows)))


def _residual(blocks: Sequence[_Block], channels: int) -> tuple[Array, Array]:
    """Norm of the residual and number of rows per joint."""
    squares, counts = np.zeros(channels), np.zeros(channels)
    for x in blocks:
        squares[x.channel] += float(x.residual @ x.residual)
        counts[x.channel] += len(x.residual)
    return np.sqrt(squares), counts


@dataclass(frozen=True, eq=False)
class _Fitted:
    """A point with its rows and the noise per joint, and how it was found."""

    point: _Point
    blocks: Sequence[_Block]
    noise: Array
    iterations: int
    converged: bool


def _fit(problem: _Problem, point: _Point, known: tuple[Array, Array] | None, most: int, small: float) -> _Fitted:
    """Levenberg-Marquardt iterations from a point; the penalty on a step grows until the residual decreases.

    `known` are expected values and the inverse of their standard deviations.
    """
    expected, weight = (point.vector, np.zeros(point.vector.size)) if known is None else known
    springs = point.beta.size + point.motors.size
    penalty, converged = _PENALTY, False
    blocks = problem.blocks(point)

    def cost(blocks: Sequence[_Block], point: _Point) -> float:
        norms = _residual(blocks, noise.size)[0]
        return float(np.sum((norms / noise) ** 2) + np.sum((weight * (expected - point.vector)) ** 2))

    for iteration in range(1, most + 1):  # noqa: B007
        noise, rows = _noise(blocks, problem.model.robot.n, point.vector.size)
        held = np.column_stack([np.diag(weight), weight * (expected - point.vector)])
        stacked = np.vstack([_factor(blocks, noise), held])
        before = cost(blocks, point)
        for _ in range(_TRIALS):
            step = _damped(stacked, penalty)
            share = min(1.0, _LARGEST / max(float(np.abs(step[springs:]).max()), 1e-300))
            trial = point.moved(step, share)
            try:
                after = problem.blocks(trial)
            except DataError:
                after = None
            if after is not None and cost(after, trial) < before:
                break
            penalty *= _MORE
        else:
            converged = True  # no step decreases the residual
            break
        penalty = max(_LESS * penalty, _LEAST_PENALTY)
        point, blocks = trial, after
        change = float(np.linalg.norm(stacked[:, :-1] @ step) / np.sqrt(rows))
        if change < small and share == 1.0:
            converged = True
            break
    return _Fitted(point, blocks, _noise(blocks, problem.model.robot.n, point.vector.size)[0], iteration, converged)


def _noise(blocks: Sequence[_Block], channels: int, unknowns: int) -> tuple[Array, float]:
    """Standard deviation of the residual per joint, and the number of rows."""
    norms, counts = _residual(blocks, channels)
    return norms / np.sqrt(np.maximum(counts - unknowns / channels, 1.0)) + 1e-300, float(counts.sum())


def _damped(stacked: Array, penalty: float) -> Array:
    """Least squares of columns of unit norm with a penalty on the step."""
    scale = np.linalg.norm(stacked[:, :-1], axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    W = stacked[:, :-1] / scale
    wide = np.vstack([W, np.sqrt(penalty) * np.eye(W.shape[1])])
    y = np.concatenate([stacked[:, -1], np.zeros(W.shape[1])])
    return np.asarray(np.linalg.lstsq(wide, y, rcond=_RANK)[0] / scale)


def _estimate(problem: _Problem, fitted: _Fitted) -> FlexibleEstimate:
    """The estimate in the unknowns of both sides, with the covariance from blocks of time."""
    model, point, blocks, noise = problem.model, fitted.point, fitted.blocks, fitted.noise
    stacked = _factor(blocks, noise)
    b, m, f = point.beta.size, point.motors.size, point.k.size
    W = stacked[:, :-1]
    scale = np.linalg.norm(W, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    root = np.linalg.pinv(W / scale, rcond=1e-12) / scale[:, None]

    def stream() -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
        for x in blocks:
            wide = np.column_stack([x.W, x.residual]) / noise[x.channel]
            yield x.channel, wide[:, :-1], wide, x.index

    found = block_jackknife(stream, np.zeros(b + m + 2 * f), model.robot.n)
    if found is None:
        raise NotIdentifiable("the motion does not determine the stiffness of the joints from the motor side")
    covariance = root @ root.T * np.outer(found.ratio, found.ratio)
    u = Unknowns.of(model, 1, ())
    k, d = np.exp(point.k), np.exp(point.d)
    x = np.concatenate([point.beta, point.motors, 1.0 / k, d / k**2, np.zeros(f)])
    slope = np.zeros((u.size, b + m + 2 * f))
    slope[: b + m, : b + m] = np.eye(b + m)
    for s in range(f):
        c, e = u.compliance.start + s, u.lagging.start + s
        slope[c, b + m + s] = -x[c]
        slope[e, b + m + s], slope[e, b + m + f + s] = -2 * x[e], x[e]
    counts = _residual(blocks, model.robot.n)[1]
    estimate = FlexibleEstimate(
        model=model,
        sides=Sides.MOTOR,
        x=x,
        covariance=slope @ covariance @ slope.T,
        freedom=float(found.blocks - 1),
        runs=1,
        errors=(),
        delays=np.zeros(f),
        parameters=_consistent(model, stacked, point),
        noise=noise,
        rows=tuple(int(c) for c in counts),
        iterations=fitted.iterations,
        converged=fitted.converged,
        signals=problem.signals,
    )
    unseen = [name for name, seen in zip(model.joints, estimate.seen, strict=True) if not seen]
    notes = tuple(
        f"no elasticity of '{name}' is seen from the motor side: excite it near its resonance or add a link encoder"
        for name in unseen
    )
    return replace(estimate, notes=notes)


def _consistent(model: FlexibleModel, stacked: Array, point: _Point) -> Array:
    """Physically consistent standard parameters near the base parameters, weighted by their information."""
    b = point.beta.size
    shifted = stacked.copy()
    shifted[:, -1] += stacked[:, :b] @ point.beta
    return consistent_links(model, shifted)
