"""Flexible joints from motor encoders alone: the deflections are not measured, but change the torques.

For given bodies, stiffness and damping the deflections follow from the motion of the motors (see `springs`), and with
them the torques. All parameters are fitted to the measured torques by Gauss-Newton iterations with the sensitivities of
the springs: output error with the torque as the output and the motor position, which has little noise, as the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.functions import mass_matrix
from dynid.errors import DataError
from dynid.identification.flexible.consistent import consistent_links
from dynid.identification.flexible.estimate import FlexibleEstimate, Sides
from dynid.identification.flexible.motion import TwoSided, two_sided
from dynid.identification.flexible.response import frequency_response
from dynid.identification.flexible.rows import padded_segments
from dynid.identification.flexible.sides import FlexibleModel
from dynid.identification.flexible.solve import least_squares
from dynid.identification.flexible.springs import SpringMotion, spring_motion
from dynid.identification.flexible.unknowns import Unknowns
from dynid.identification.jackknife import block_jackknife
from dynid.identification.loads import no_torques
from dynid.identification.observation import fold
from dynid.recording.recording import Recording
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot
from dynid.signals.settings import Motion, Signals

__all__ = ["identify_motor_side"]

Array = NDArray[np.float64]

_MAX_ITERATIONS = 40
_CONVERGED = 1e-3
# Root mean square deflections (rad or m) from which the start is taken, and its damping ratio.
_DEFLECTIONS, _RATIO = np.geomspace(0.02, 2e-5, 7), 0.05
# Seconds at the start of a run on which the unknown initial motion of the springs decays.
_SETTLING = 1.0
# Half the length of the low-pass before rows are thinned, in kept rows.
_HALF_TAPS = 10
# Share of the inertia of a joint that is that of its motor, at the start.
_MOTOR_SHARE = 0.5
# Weight of friction of links that is held at zero, at the start.
_HELD = 1e4
_SEVERAL = (
    "several flexible joints without link encoders: the fit may end far from the truth; compare it with runs in which "
    "one joint moves, named alone as flexible"
)
# Largest change of a logarithm per iteration.
_LARGEST = 1.0
_HALVINGS = 8
# Penalty on a step with columns of unit norm, at the start and at least: stiffness and the division of inertia between
# motor and link are weakly determined together, and a larger penalty would hold them at their start.
_DAMPING, _LEAST_DAMPING = 1e-9, 1e-16
# Starts that are tried, relative to the best stiffness, and the iterations of a trial.
_STARTS, _TRIAL_ITERATIONS = (1.0, 0.6, 1.7), 4
# Singular values of scaled columns below this share of the largest are not determined.
_RANK = 1e-9


@dataclass(frozen=True, eq=False)
class _Point:
    """Base parameters, motor parameters, and logarithms of stiffness and damping."""

    beta: Array
    motors: Array
    k: Array
    d: Array

    def moved(self, step: Array, share: float) -> _Point:
        b, m, f = self.beta.size, self.motors.size, self.k.size
        s = share * step
        return _Point(
            self.beta + s[:b],
            self.motors + s[b : b + m],
            self.k + s[b + m : b + m + f],
            self.d + s[b + m + f : b + m + 2 * f],
        )


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

    def springs(self, point: _Point) -> list[SpringMotion]:
        k, d = np.exp(point.k), np.exp(point.d)
        return [spring_motion(self.model, point.beta, k, d, m.motors) for m in self.motions]

    def blocks(self, point: _Point, sensitivities: bool = True) -> list[_Block]:
        """Residuals at a point, with the columns of a step if asked for."""
        out: list[_Block] = []
        first = 0
        for motion, springs in zip(self.motions, self.springs(point), strict=True):
            out += self._run(motion.motors, springs, point, first, sensitivities)
            first += len(motion.motors.t)
        return out

    def _run(
        self, motors: Motion, springs: SpringMotion, point: _Point, first: int, sensitivities: bool
    ) -> Iterator[_Block]:
        model = self.model
        links = springs.bent(motors).links
        Y = model.link_rows(links.q, links.v, links.a)
        Z = model.motor_rows(motors.q, motors.v, motors.a)
        assert motors.torque is not None
        rest = motors.torque - Y @ point.beta - Z @ point.motors
        at = springs.at
        # The torque of a flexible joint is that of its spring, which the integration satisfies exactly.
        rest[:, at] += (Y @ point.beta)[:, at] - springs.stiffness * springs.x - springs.damping * springs.v
        wide = np.zeros((len(motors.t), model.robot.n, 0))
        if sensitivities:
            wide = np.concatenate([self._columns(springs, Y), Z, self._spring_columns(springs)], axis=2)
        limits = self.signals.velocity_limits(motors.v)
        decayed = round(_SETTLING * motors.rate)
        for i in range(model.robot.n):
            rows, index = _thinned(np.column_stack([wide[:, i], rest[:, i], motors.v[:, i]]), motors.decimate)
            kept = (np.abs(rows[:, -1]) >= limits[i]) & (index >= decayed)
            yield _Block(i, rows[kept, :-2], rows[kept, -2], first + index[kept])

    def _columns(self, springs: SpringMotion, Y: Array) -> Array:
        """Torques (N, joint, b) per base parameter, through the springs."""
        x, v, a = springs.responses(Y[:, springs.at])
        out = Y - np.einsum("nis,nsb->nib", springs.mass, a)
        out[:, springs.at] = springs.stiffness[:, None] * x + springs.damping[:, None] * v
        return np.asarray(out)

    def _spring_columns(self, springs: SpringMotion) -> Array:
        """Torques (N, joint, 2 spring) per logarithm of stiffness and of damping."""
        f, n = len(springs.at), self.model.robot.n
        own = np.zeros((len(springs.x), f, 2 * f))
        for s in range(f):
            own[:, s, s] = springs.stiffness[s] * springs.x[:, s]
            own[:, s, f + s] = springs.damping[s] * springs.v[:, s]
        x, v, a = springs.responses(-own)
        out = np.zeros((len(springs.x), n, 2 * f))
        out -= np.einsum("nis,nsc->nic", springs.mass, a)
        out[:, springs.at] = springs.stiffness[:, None] * x + springs.damping[:, None] * v + own
        return out


def identify_motor_side(
    robot: Robot, recording: Recording, joints: Sequence[str] | None, link_friction: str, signals: Signals
) -> FlexibleEstimate:
    """Identify flexible joints, by default all of them, from torques and motor encoders; as `identify_flexible`."""
    for run in recording.runs:
        if run.torque is None:
            raise no_torques(run)
    model = FlexibleModel(robot, tuple(joints or robot.coordinates), link_friction)
    if not any(name.startswith("Ia_") for name in model.motor_names):
        raise DataError("motors without rotor inertia have no resonance: give the robot a rotor inertia")
    bare = [replace(run, link_q=None) for run in recording.runs]
    motions = tuple(two_sided(robot, run, (), signals) for run in bare)
    problem = _Problem(model, motions, signals)
    starts, noise = _starts(problem, recording)
    point = min((_tried(problem, start, noise) for start in starts), key=lambda found: found[0])[1]
    point, noise, stacked, blocks, iterations, converged = _gauss_newton(problem, point, noise)
    return _estimate(problem, point, noise, stacked, blocks, iterations, converged)


def _thinned(rows: Array, factors: Sequence[int]) -> tuple[Array, NDArray[np.int64]]:
    """Every n-th row after a symmetric low-pass, and its sample number.

    Only the rows that are kept are computed: with a hundred columns per joint this takes a tenth of the time of the
    recursive filters of `dynid.signals.filters.decimate`.
    """
    step = int(np.prod(factors)) if factors else 1
    if step == 1:
        return rows, np.arange(len(rows))
    taps = scipy.signal.firwin(2 * _HALF_TAPS * step + 1, 0.8 / step)
    thin = scipy.signal.upfirdn(taps, rows, 1, step, axis=0)
    # Row k is centred on sample (k - _HALF_TAPS) step; rows whose filter reaches beyond the run are left out.
    last = (len(rows) - 1) // step - _HALF_TAPS
    return thin[2 * _HALF_TAPS : last + _HALF_TAPS + 1], step * np.arange(_HALF_TAPS, last + 1)


def _tried(problem: _Problem, start: _Point, noise: Array) -> tuple[float, _Point]:
    """Weighted residual and point after a few iterations from a start; infinite where there are none."""
    try:
        point, _, _, blocks, _, _ = _gauss_newton(problem, start, noise, _TRIAL_ITERATIONS)
    except DataError:
        return np.inf, start
    return float(np.sum((_residual(blocks, len(noise))[0] / noise) ** 2)), point


def _starts(problem: _Problem, recording: Recording) -> tuple[list[_Point], Array]:
    """Rigid joints give the bodies; the frequency response, or trials of several frequencies, the stiffness."""
    model = problem.model
    f = len(model.flexible)
    noise, factors = _rigid(problem)
    stacked = fold(np.asfortranarray(np.vstack([x / s for x, s in zip(factors, noise, strict=True)])))
    beta, motors, inertia = _divided(problem, stacked)
    names = [model.robot.coordinates[i] for i in model.flexible]
    seen = np.array([frequency_response(recording, name).antiresonance for name in names])
    motors_0 = problem.motions[0].motors
    load = model.link_rows(motors_0.q, motors_0.v, motors_0.a)[:, model.flexible] @ beta
    size = np.sqrt(np.mean(load**2, axis=0)) + 1e-300
    best, chosen = np.full(f, np.inf), size / _DEFLECTIONS[-1]
    for deflection in _DEFLECTIONS:
        try:
            _, residual = _linear(problem, _springs(beta, motors, inertia, size / deflection), noise)
        except DataError:
            continue
        cost = residual[model.flexible]
        chosen = np.where(cost < best, size / deflection, chosen)
        best = np.minimum(cost, best)
    response = (2 * np.pi * seen) ** 2 * inertia
    # A notch of the response is that of the joint itself only if its deflections have a usual size.
    used = np.isfinite(seen) & (response > size / _DEFLECTIONS[0]) & (response < size / _DEFLECTIONS[-1])
    k = np.where(used, response, chosen)
    return [_springs(beta, motors, inertia, x * k) for x in _STARTS], noise


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


def _springs(beta: Array, motors: Array, inertia: Array, k: Array) -> _Point:
    return _Point(beta, motors, np.log(k), np.log(2 * _RATIO * np.sqrt(k * inertia)))


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


def _factor(blocks: list[_Block], noise: Array) -> Array:
    rows = [np.column_stack([x.W, x.residual]) / noise[x.channel] for x in blocks]
    return fold(np.asfortranarray(np.vstack(rows)))


def _residual(blocks: list[_Block], channels: int) -> tuple[Array, Array]:
    """Norm of the residual and number of rows per joint."""
    squares, counts = np.zeros(channels), np.zeros(channels)
    for x in blocks:
        squares[x.channel] += float(x.residual @ x.residual)
        counts[x.channel] += len(x.residual)
    return np.sqrt(squares), counts


def _linear(problem: _Problem, point: _Point, noise: Array) -> tuple[_Point, Array]:
    """The point after one step of bodies and motors with fixed springs, and its residual norms per joint."""
    b, m = point.beta.size, point.motors.size
    blocks = problem.blocks(point)
    stacked = _factor(blocks, noise)
    step = np.zeros(stacked.shape[1] - 1)
    step[: b + m] = _damped(np.column_stack([stacked[:, : b + m], stacked[:, -1]]), 0.0)
    left = np.zeros(len(noise))
    for x in blocks:
        left[x.channel] += float(np.sum((x.residual - x.W @ step) ** 2))
    return point.moved(step, 1.0), np.sqrt(left)


def _damped(stacked: Array, damping: float) -> Array:
    """Least squares of columns of unit norm with a penalty on the step."""
    scale = np.linalg.norm(stacked[:, :-1], axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    W = stacked[:, :-1] / scale
    wide = np.vstack([W, np.sqrt(damping) * np.eye(W.shape[1])])
    y = np.concatenate([stacked[:, -1], np.zeros(W.shape[1])])
    return np.asarray(np.linalg.lstsq(wide, y, rcond=_RANK)[0] / scale)


def _gauss_newton(
    problem: _Problem, point: _Point, noise: Array, most: int = _MAX_ITERATIONS
) -> tuple[_Point, Array, Array, list[_Block], int, bool]:
    """Levenberg-Marquardt iterations from a start; steps are halved until the residual decreases."""
    n = problem.model.robot.n
    b, m, f = point.beta.size, point.motors.size, point.k.size
    damping, converged = _DAMPING, False
    for iteration in range(1, most + 1):  # noqa: B007
        blocks = problem.blocks(point)
        norms, counts = _residual(blocks, n)
        noise = norms / np.sqrt(np.maximum(counts - (b + m + 2 * f) / n, 1.0)) + 1e-300
        stacked = _factor(blocks, noise)
        cost = float(np.sum((norms / noise) ** 2))
        for _ in range(_HALVINGS):
            step = _damped(stacked, damping)
            largest = float(np.abs(step[b + m :]).max(initial=0.0))
            share = min(1.0, _LARGEST / max(largest, 1e-300))
            trial = point.moved(step, share)
            try:
                after = _residual(problem.blocks(trial, sensitivities=False), n)[0]
            except DataError:
                after = np.full(n, np.inf)
            if float(np.sum((after / noise) ** 2)) < cost:
                damping = max(0.03 * damping, _LEAST_DAMPING)
                break
            damping *= 30.0
        else:
            converged = True  # no step decreases the residual
            break
        change = float(np.linalg.norm(stacked[:, :-1] @ (share * step)) / np.sqrt(counts.sum()))
        point = trial
        if change < _CONVERGED and share == 1.0 and damping <= _DAMPING:
            converged = True
            break
    blocks = problem.blocks(point)
    norms, counts = _residual(blocks, n)
    noise = norms / np.sqrt(np.maximum(counts - (b + m + 2 * f) / n, 1.0)) + 1e-300
    return point, noise, _factor(blocks, noise), blocks, iteration, converged


def _estimate(
    problem: _Problem,
    point: _Point,
    noise: Array,
    stacked: Array,
    blocks: list[_Block],
    iterations: int,
    converged: bool,
) -> FlexibleEstimate:
    """The estimate in the unknowns of both sides, with the covariance from blocks of time."""
    model = problem.model
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
        raise DataError("the motion does not determine the stiffness of the joints from the motor side")
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
        iterations=iterations,
        converged=converged,
        signals=problem.signals,
    )
    unseen = [name for name, seen in zip(model.joints, estimate.seen, strict=True) if not seen]
    notes = tuple(
        f"no elasticity of '{name}' is seen from the motor side: excite it near its resonance or add a link encoder"
        for name in unseen
    )
    if f > 1:
        notes = (*notes, _SEVERAL)
    return replace(estimate, notes=notes)


def _consistent(model: FlexibleModel, stacked: Array, point: _Point) -> Array:
    """Physically consistent standard parameters near the base parameters, weighted by their information."""
    b = point.beta.size
    shifted = stacked.copy()
    shifted[:, -1] += stacked[:, :b] @ point.beta
    return consistent_links(model, shifted)
