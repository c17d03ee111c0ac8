"""Rows of a robot with flexible joints: torques of the drives, and deflections as measured outputs.

The equations of motor and link are combined so that each measurement with noise stands alone on the left:

    torque     = Ia theta'' + motor friction + Y(q) beta                     one row per joint and sample
    theta - q  = encoder errors + c / (1 + T p) Y(q) beta                    one more per flexible joint

with the compliance c = 1/k, the lag T = d/k and the differential operator p. Encoder errors are an offset and, where
asked for, a delay of the link encoder (times q') and an eccentric mounting (times cos q and sin q).

The sum of both equations of the joint does not contain the deflection. The deflection is small and carries the noise of
two encoders; as a regressor it would make the stiffness too small (errors in variables), as an output it does not. The
regressors are those of rigid-body identification, of which the noise is small. The second row is linear in beta for
given c and T, and is linearised in c and T (Gauss-Newton).

The robot is divided into what moves with the links and what moves with the motors. With the motor position theta and
the link position q of a flexible joint, both on the joint side,

    Y(q, q', q'') pi + link friction = k (theta - q) + d (theta' - q')
    torque = Ia theta'' + motor friction + k (theta - q) + d (theta' - q').

Bodies, springs, force elements and the friction of the link are terms of the link side; rotor inertia, friction and
offset of the drive are terms of the motor side. A rigid joint has both on one side.

Without encoders of links the deflections follow from the motion of the motors. With theta measured, q = theta - x and
the deflection x, the equation of the links is

    M(q) x'' + d x' + k x = Y(q, q', theta'') beta,

a damped oscillator at the frequency of the link behind the held motor, driven by the load of the motion. The load
depends on x through friction of the link, and weakly through q: it is solved again with the deflections found.

Source: Spong, Modeling and Control of Elastic Joint Robots (1987), for motor and link without kinetic coupling; rows in
which each noisy measurement stands alone are our own arrangement.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property, partial

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.dynamics.functions import inverse_dynamics, mass_matrix, regressor
from dynid.dynamics.kernels.deflection import spring_responses
from dynid.errors import Infeasible, Mismatch, MissingData, ModelError, NotIdentifiable, UnknownName
from dynid.identification.loads import no_torques
from dynid.identification.row_stream import Segment, segments, touched_columns
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.drives import DriveTerm, TermKind, parse_friction
from dynid.robot.model import Robot
from dynid.signals.filters import derivative
from dynid.signals.settings import Motion, Signals, prepare

__all__ = [
    "ENCODER_COLUMNS",
    "EncoderError",
    "FlexibleModel",
    "FlexibleRows",
    "Rows",
    "SpringMotion",
    "TwoSided",
    "Unknowns",
    "advanced",
    "link_encoders",
    "spring_motion",
    "two_sided",
]

Array = NDArray[np.float64]

# Terms that act on the links, whatever the joint: springs and force elements.
_ON_LINKS = (TermKind.SPRING, TermKind.CUSTOM)


@dataclass(frozen=True, eq=False)
class FlexibleModel:
    """A robot some of whose joints are flexible.

    Attributes
    ----------
    robot : Robot
        The robot. Its rotor inertias, friction and offsets act on the motors of flexible joints.
    joints : tuple of str
        The flexible joints, which are put into the order of the robot.
    link_friction : str
        Friction of the links of flexible joints, as for `Robot.with_drives`; "none" for none.

    Raises
    ------
    ModelError
        If the robot has a moving base or closed loops, or a joint is unknown.
    """

    robot: Robot
    joints: tuple[str, ...]
    link_friction: str = "viscous+coulomb"

    def __post_init__(self) -> None:
        if self.robot.base != "fixed" or self.robot.loops:
            raise ModelError(
                f"flexible joints need a fixed base and no closed loops; see robot '{self.robot.name}'",
                code="not_applicable",
            )
        unknown = [joint for joint in self.joints if joint not in self.robot.coordinates]
        if unknown:
            raise ModelError(
                f"no joint named '{unknown[0]}', the joints are {', '.join(self.robot.coordinates)}",
                "joints",
                code="unknown_name",
            )
        object.__setattr__(self, "joints", tuple(name for name in self.robot.coordinates if name in self.joints))
        if "off" in parse_friction(self.link_friction):
            raise ModelError(
                "an offset of the link side is that of the two encoders: leave it out of link_friction",
                "link_friction",
                code="not_applicable",
            )

    @cached_property
    def flexible(self) -> NDArray[np.intp]:
        """Indices of the flexible joints, in the order of the robot."""
        return np.array([k for k, name in enumerate(self.robot.coordinates) if name in self.joints], dtype=np.intp)

    @cached_property
    def links(self) -> Robot:
        """The link side: bodies, springs, force elements, link friction, and all terms of rigid joints."""
        slopes = [max((t.slope for t in self.robot.drives if t.owner == i), default=0.0) for i in range(self.robot.n)]
        own: list[DriveTerm] = []
        for i in self.flexible:
            for symbol in parse_friction(self.link_friction):
                term = self.robot.joint_term(int(i), symbol)
                own.append(replace(term, slope=slopes[i]) if term.is_coulomb else term)
        kept = tuple(t for t in self.robot.drives if not self._of_motors(t))
        return replace(self.robot, drives=(*kept, *own))

    @cached_property
    def motors(self) -> Robot:
        """The terms of the motors of flexible joints; the bodies of this robot are not used."""
        return replace(self.robot, drives=tuple(t for t in self.robot.drives if self._of_motors(t)))

    def _of_motors(self, term: DriveTerm) -> bool:
        """Whether a term acts on the motor of a flexible joint."""
        return term.kind not in _ON_LINKS and bool(np.any(term.direction[self.flexible]))

    @cached_property
    def motor_columns(self) -> NDArray[np.intp]:
        """Columns of the regressor of `motors` that are terms of motors."""
        return np.array([k for k, p in enumerate(self.motors.layout) if not p.inertial], dtype=np.intp)

    @cached_property
    def motor_names(self) -> tuple[str, ...]:
        """Names of the parameters of motors."""
        return tuple(self.motors.parameter_names[k] for k in self.motor_columns)

    @cached_property
    def base(self) -> BaseParameters:
        """Base parameters of the link side: the rotor inertia of a flexible joint is not grouped with its link."""
        return base_parameters(self.links, channels="torque")

    @cached_property
    def link_friction_columns(self) -> tuple[int, ...]:
        """Base parameters that are friction of the links of flexible joints."""
        own = {f"{symbol}_{name}" for symbol in parse_friction(self.link_friction) for name in self.joints}
        names = self.links.parameter_names
        return tuple(k for k, column in enumerate(self.base.kept) if names[column] in own)

    def link_friction_slopes(self, beta: Array, v: Array) -> Array:
        """Slopes (N, flexible joint) of the link friction at velocities (N, joint), at least zero where it jumps."""
        terms = {t.name: t for t in self.links.drives}
        slopes = np.zeros_like(v)
        for k in self.link_friction_columns:
            term = terms[self.links.parameter_names[self.base.kept[k]]]
            if term.kind == TermKind.VISCOUS:
                slopes[:, term.owner] += beta[k]
            elif term.kind == TermKind.COULOMB:
                slopes[:, term.owner] += beta[k] * term.slope * (1.0 - np.tanh(term.slope * v[:, term.owner]) ** 2)
        return np.maximum(slopes[:, self.flexible], 0.0)

    def link_rows(self, q: Array, v: Array, a: Array) -> Array:
        """Regressor (N, joint, b) of the torques of the link side, for the base parameters."""
        return self.base.regressor(q, v, a)

    def motor_rows(self, q: Array, v: Array, a: Array) -> Array:
        """Regressor (N, joint, m) of the torques of motors, at their positions, velocities and accelerations."""
        return np.ascontiguousarray(regressor(self.motors, q, v, a)[..., self.motor_columns])


# A link encoder stands still if its range is below this share of that of the motor.
_CONSTANT = 1e-3


@dataclass(frozen=True, eq=False)
class TwoSided:
    """A filtered run: the motion of the motors and that of the links on the same clock.

    The link of a joint without link encoder moves as its motor.
    """

    motors: Motion
    links: Motion

    @property
    def deflection(self) -> Array:
        """Motor minus link positions (N, joint), in rad or m."""
        return self.motors.q - self.links.q


def link_encoders(robot: Robot, recording: Recording, joints: Sequence[str] | None = None) -> tuple[str, ...]:
    """The joints whose links have encoders in all runs, or those that are asked for.

    Raises
    ------
    DataError
        If a joint that is asked for has no link encoder, or no joint has one; if a link encoder stands still while its
        motor moves; if both encoders of a joint give identical positions.
    """
    for run in recording.runs:
        if run.q.shape[1] != robot.n:
            raise Mismatch(f"the recording has {run.q.shape[1]} joints, robot '{robot.name}' has {robot.n}")
        if run.torque is None:
            raise no_torques(run)
    unknown = [name for name in joints or () if name not in robot.coordinates]
    if unknown:
        raise UnknownName(f"no joint named '{unknown[0]}', the joints are {', '.join(robot.coordinates)}", "joints")
    found = []
    for i, name in enumerate(robot.coordinates):
        if joints is not None and name not in joints:
            continue
        missing = [run for run in recording.runs if run.link_q is None or np.isnan(run.link_q[0, i])]
        if not missing:
            _check_encoder(recording.runs, i, name)
            found.append(name)
        elif joints is not None or len(missing) < len(recording.runs):
            raise MissingData(f"the link encoder of '{name}' is missing", where=f"run '{missing[0].name}'")
    if not found:
        raise MissingData(
            "no joint has a link encoder (signal link_q): stiffness can only be identified from the motor side"
        )
    return tuple(found)


def _check_encoder(runs: Sequence[Run], i: int, name: str) -> None:
    """Refuse a link encoder that stands still, or that repeats the motor encoder."""
    links = [np.asarray(run.link_q)[:, i] for run in runs]
    motors = [run.q[:, i] for run in runs]
    moved = max(float(np.ptp(x)) for x in motors)
    if max(float(np.ptp(x)) for x in links) <= _CONSTANT * moved:
        raise MissingData(f"the link encoder of '{name}' is constant while its motor moves: leave the joint out")
    bent = np.concatenate([motor - link for motor, link in zip(motors, links, strict=True)])
    if np.ptp(bent) <= 1e-9 * moved:
        raise NotIdentifiable(f"both encoders of '{name}' are identical: there is no elasticity to see")


def two_sided(robot: Robot, run: Run, joints: Sequence[str], signals: Signals) -> TwoSided:
    """Filter one run: positions of motors and links, and torques, with the same settings."""
    n = robot.n
    flexible = [name in joints for name in robot.coordinates]
    link_q = np.where(flexible, run.q if run.link_q is None else run.link_q, run.q)
    assert run.torque is not None
    # The positions of both sides pass the same clock, filter and derivatives as one wide run.
    wide = Run(run.t, np.hstack([run.q, link_q]), torque=np.hstack([run.torque, run.torque]), name=run.name)
    both = prepare(wide, replace(signals, measured_velocity=False, measured_acceleration=False))
    assert both.torque is not None
    sides = []
    for at in (slice(0, n), slice(n, 2 * n)):
        q, v, a, torque = (np.ascontiguousarray(x[:, at]) for x in (both.q, both.v, both.a, both.torque))
        sides.append(replace(both, q=q, v=v, a=a, torque=torque, q_noise=both.q_noise[at]))
    return TwoSided(*sides)


def advanced(motion: TwoSided, delays: Array) -> TwoSided:
    """The run with the links of all joints (n,) advanced by the delays of their encoders in s."""
    if not np.any(delays):
        return motion
    links = motion.links
    moved = {}
    for signal in ("q", "v", "a"):
        values = getattr(links, signal).copy()
        for i in np.flatnonzero(delays):
            values[:, i] = scipy.interpolate.CubicSpline(links.t, values[:, i])(links.t + delays[i])
        moved[signal] = values
    return TwoSided(motion.motors, replace(links, **moved))


# Passes over the dependence on the deflection, until velocities change by less than this share.
_PASSES, _CHANGE = 8, 1e-3
# Newmark's method is of fourth order with 1/12, and stable up to (frequency * step)^2 = 6; 1/4 is always stable.
_ACCURATE, _STABLE, _LARGEST_STEP = 1.0 / 12.0, 0.25, 3.0


@dataclass(frozen=True, eq=False)
class SpringMotion:
    """Deflections (N, spring) with velocities and accelerations, of the flexible joints in `at`.

    `inverse` (N, spring, spring), `mass` (N, joint, spring) and `resistance` (N, spring), the damping of springs and
    link friction together, serve to compute responses to other loads.
    """

    at: NDArray[np.intp]
    x: Array
    v: Array
    a: Array
    inverse: Array
    mass: Array
    stiffness: Array
    damping: Array
    resistance: Array
    newmark: float
    step: float

    def bent(self, motors: Motion) -> TwoSided:
        """The run with the links where the springs put them."""
        moved = {}
        for signal, change in (("q", self.x), ("v", self.v), ("a", self.a)):
            values = getattr(motors, signal).copy()
            values[:, self.at] -= change
            moved[signal] = values
        return TwoSided(motors, replace(motors, **moved))

    def responses(self, load: Array) -> tuple[Array, Array, Array]:
        """Deflections (N, spring, c) under loads (N, spring, c), with velocities and accelerations."""
        x, v, a = (np.empty_like(load) for _ in range(3))
        S, given = np.ascontiguousarray(self.inverse), np.ascontiguousarray(load)
        spring_responses(S, given, self.stiffness, self.resistance, self.newmark, self.step, x, v, a)
        return x, v, a

    def torques(self, load: Array, direct: Array) -> Array:
        """Torques (N, joint, c) under loads (N, spring, c) on the springs, whose causes give `direct` to all joints."""
        x, v, a = self.responses(load)
        out = direct.copy()
        rigid = np.setdiff1d(np.arange(direct.shape[1]), self.at)
        out[:, rigid] -= np.einsum("nis,nsc->nic", self.mass[:, rigid], a)
        out[:, self.at] = self.stiffness[:, None] * x + self.damping[:, None] * v
        return out


def spring_motion(
    model: FlexibleModel, beta: Array, stiffness: Array, damping: Array, motors: Motion, bodies: Robot | None = None
) -> SpringMotion:
    """Deflections of all flexible joints of finite stiffness (flexible joint,) under the motion of the motors.

    The mass matrix is that of `bodies`, by default that of the base parameters, which need not be physically
    consistent.

    Raises
    ------
    DataError
        If the mass matrix of the links is not positive definite.
    """
    seen = np.isfinite(stiffness)
    at, k, d = model.flexible[seen], stiffness[seen], np.maximum(damping[seen], 0.0)
    fitted = model.links.with_parameters(model.base.standard(beta))
    links = fitted if bodies is None else bodies
    h, last = 1.0 / motors.rate, np.inf
    zero = np.zeros((len(motors.t), len(at)))
    found = SpringMotion(at, zero, zero, zero, zero[:, :, None], zero, k, d, zero, _STABLE, h)
    for _ in range(_PASSES if len(at) else 0):
        q, w = motors.q.copy(), motors.v.copy()
        q[:, at] -= found.x
        w[:, at] -= found.v
        mass = mass_matrix(links, q)[:, :, at]
        newmark = _newmark(mass[:, at][:: max(1, len(q) // 200)], k, h)
        # Friction of the links is linearised at the motion of the last pass: it may be much larger than the damping.
        friction = model.link_friction_slopes(beta, w)[:, seen]
        resistance = friction + d
        inner = mass[:, at] + np.eye(len(at)) * (0.5 * h * resistance + newmark * h * h * k)[:, :, None]
        inverse = np.asarray(np.linalg.inv(inner), dtype=float)
        moving = replace(found, inverse=inverse, mass=mass, resistance=resistance, newmark=newmark)
        load = inverse_dynamics(fitted, q, w, motors.a)[:, at] + friction * found.v
        x, v, a = (y[:, :, 0] for y in moving.responses(load[:, :, None]))
        change = float(np.linalg.norm(v - found.v))
        if not change < last:  # springs so soft that the loads depend on them strongly
            break
        found, last = replace(moving, x=x, v=v, a=a), change
        if change < _CHANGE * np.linalg.norm(v):
            break
    return found


def _newmark(mass: Array, k: Array, h: float) -> float:
    """The accurate parameter of Newmark's method if it is stable for mass matrices (N, spring, spring)."""
    values, turns = np.linalg.eigh(mass)
    if values.min() <= 0:
        raise Infeasible("the mass matrix of the links is not positive definite")
    scaled = np.sqrt(k)[:, None] * turns / np.sqrt(values)[:, None, :]
    fastest = float(np.linalg.norm(scaled, ord=2, axis=(1, 2)).max())
    return _ACCURATE if (fastest * h) ** 2 < _LARGEST_STEP else _STABLE


# Samples at the start of a segment on which the lag of the damper decays where nothing is decimated.
_SETTLING = 256


class EncoderError(StrEnum):
    """Errors of link encoders, beside their offset, that look like a deflection."""

    DELAY = "delay"
    ECCENTRICITY = "eccentricity"


ENCODER_COLUMNS = {EncoderError.DELAY: 1, EncoderError.ECCENTRICITY: 2}


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows of one channel of one segment.

    Attributes
    ----------
    channel : int
        0 to n - 1 are the torques of the joints, the following ones the deflections of the flexible joints.
    spring : int
        Number of the flexible joint whose deflections these are; -1 for torques.
    run : int
        Number of the run.
    columns : ndarray of int (k,)
        Base parameters that can have an effect on the channel.
    links : ndarray (m, k)
        Their torques on the link side; of deflections behind the lag of the damper.
    slopes : ndarray (m, k)
        Derivatives of `links` with respect to the lag; none for torques.
    motors : ndarray (m, motor parameter)
        Torques of the motor parameters; none for deflections.
    encoder : ndarray (m, encoder error)
        Columns of the encoder errors other than offsets; none for torques.
    y : ndarray (m,)
        Measured torques or deflections.
    index : ndarray of int (m,)
        Numbers of the samples.
    """

    channel: int
    spring: int
    run: int
    columns: NDArray[np.intp]
    links: Array
    slopes: Array
    motors: Array
    encoder: Array
    y: Array
    index: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class FlexibleRows:
    """All rows of filtered runs: torques once, deflections for given lags of the dampers."""

    model: FlexibleModel
    motions: tuple[TwoSided, ...]
    signals: Signals
    errors: tuple[EncoderError, ...] = ()

    @property
    def channels(self) -> int:
        """Number of channels: one per joint, one more per flexible joint."""
        return self.model.robot.n + len(self.model.flexible)

    @cached_property
    def _touched(self) -> list[NDArray[np.intp]]:
        return touched_columns(self.model.base)

    @cached_property
    def torques(self) -> tuple[Rows, ...]:
        """Rows of the torques of all joints and runs."""
        return tuple(self._rows(self._torque_rows))

    def deflections(self, lags: Array) -> tuple[Rows, ...]:
        """Rows of the deflections of flexible joints, for the lags T (flexible joint,) of their dampers in s."""
        return tuple(self._rows(partial(self._deflection_rows, lags)))

    def _rows(self, of: Callable[[int, TwoSided, Segment, int, Array], Iterator[Rows]]) -> Iterator[Rows]:
        first = 0
        for number, motion in enumerate(self.motions):
            for part in padded_segments(motion.motors):
                at, links = part.whole, motion.links
                Y = self.model.link_rows(links.q[at], links.v[at], links.a[at])
                yield from of(number, motion, part, first, Y)
            first += len(motion.motors.t)

    def _moving(self, motion: TwoSided, part: Segment, i: int) -> NDArray[np.bool_]:
        """Rows of a joint whose velocity is not too low for its friction to be known."""
        limit = self.signals.velocity_limits(motion.motors.v)[i]
        return np.asarray(np.abs(part.thinned(motion.motors.v[part.whole, i])) >= limit)

    def _torque_rows(self, run: int, motion: TwoSided, part: Segment, first: int, Y: Array) -> Iterator[Rows]:
        motors, at = motion.motors, part.whole
        Z = self.model.motor_rows(motors.q[at], motors.v[at], motors.a[at])
        assert motors.torque is not None
        for i in range(self.model.robot.n):
            columns, moving = self._touched[i], self._moving(motion, part, i)
            wide = part.thinned(np.column_stack([Y[:, i, columns], Z[:, i], motors.torque[at, i]]))[moving]
            index = first + part.start + part.step * np.flatnonzero(moving)
            k = len(columns)
            yield Rows(i, -1, run, columns, wide[:, :k], wide[:, :0], wide[:, k:-1], wide[:, :0], wide[:, -1], index)

    def _deflection_rows(
        self, lags: Array, run: int, motion: TwoSided, part: Segment, first: int, Y: Array
    ) -> Iterator[Rows]:
        rate = motion.motors.rate
        for number, i in enumerate(self.model.flexible):
            columns, moving = self._touched[i], self._moving(motion, part, i)
            behind = lag(Y[:, i, columns], lags[number], rate)
            slopes = -derivative(lag(behind, lags[number], rate), rate, "central5")
            bent = motion.deflection[part.whole, i]
            wrong = self.encoder_columns(motion.links, part.whole, int(i))
            wide = part.thinned(np.column_stack([behind, slopes, *wrong, bent]))[moving]
            index = first + part.start + part.step * np.flatnonzero(moving)
            k, channel = len(columns), self.model.robot.n + number
            parts = wide[:, :k], wide[:, k : 2 * k], wide[:, :0], wide[:, 2 * k : -1], wide[:, -1]
            yield Rows(channel, number, run, columns, *parts, index)

    def encoder_columns(self, links: Motion, at: slice, i: int) -> list[Array]:
        """Deflections (N,) that the encoder errors of joint i feign per unit."""
        out = []
        if EncoderError.DELAY in self.errors:
            out.append(links.v[at, i])
        if EncoderError.ECCENTRICITY in self.errors:
            out += [np.cos(links.q[at, i]), np.sin(links.q[at, i])]
        return out


def lag(x: Array, time: float, rate: float) -> Array:
    """Columns of x behind a first-order lag 1 / (1 + T p), T >= 0 in s, by the trapezoidal rule."""
    if time <= 0.0:
        return x
    ratio = 2.0 * time * rate
    b, a = np.array([1.0, 1.0]) / (1.0 + ratio), np.array([1.0, (1.0 - ratio) / (1.0 + ratio)])
    state = scipy.signal.lfilter_zi(b, a)[:, None] * x[0]
    return np.asarray(scipy.signal.lfilter(b, a, x, axis=0, zi=state)[0])


def padded_segments(motion: Motion) -> Iterator[Segment]:
    """Segments of a run that fit in memory, with samples before and after them for filters."""
    for part in segments(motion):
        if part.step > 1:
            yield part
            continue
        lo, hi = max(0, part.start - _SETTLING), min(len(motion.t), part.stop + _SETTLING)
        yield PaddedSegment(part.start, part.stop, lo, hi, part.factors)


class PaddedSegment(Segment):
    """A segment without decimation whose margins are cut off again."""

    def thinned(self, rows: Array) -> Array:
        """Rows of `start` to `stop`, from rows over `whole`."""
        return rows[self.start - self.lo : self.stop - self.lo]


# Lags of dampers in s beyond which rows are not computed; those of gears are a few milliseconds.
_LONGEST_LAG = 0.02


@dataclass(frozen=True)
class Unknowns:
    """Places of the unknowns in their vector: link base parameters, motor parameters, springs, encoder errors.

    A spring has the compliance c = 1/k and e = d/k^2: to first order, the deflection is c s - e s' under the torque s.
    Both are zero for a rigid joint, and both columns are defined there.
    """

    links: int
    motors: int
    flexible: int
    runs: int
    errors: int = 0

    @staticmethod
    def of(model: FlexibleModel, runs: int, errors: Sequence[EncoderError]) -> Unknowns:
        """The unknowns of a robot, with some encoder offsets per joint and other errors of the link encoders."""
        columns = sum(ENCODER_COLUMNS[error] for error in errors)
        return Unknowns(model.base.count, len(model.motor_names), len(model.flexible), runs, columns)

    @property
    def size(self) -> int:
        """Number of unknowns."""
        return self.links + self.motors + self.flexible * (2 + self.runs + self.errors)

    @property
    def compliance(self) -> slice:
        """Compliances c = 1/k of the flexible joints, rad/(N m) or m/N."""
        start = self.links + self.motors
        return slice(start, start + self.flexible)

    @property
    def lagging(self) -> slice:
        """e = d/k^2 = c T of the flexible joints, rad s/(N m) or m s/N."""
        return slice(self.compliance.stop, self.compliance.stop + self.flexible)

    def lags(self, x: Array) -> Array:
        """Lags T = d/k (flexible joint,) in s that rows can be computed with."""
        c, e = x[self.compliance], x[self.lagging]
        return np.clip(np.where(c > 0, e / np.where(c > 0, c, 1.0), 0.0), 0.0, _LONGEST_LAG)

    def offset(self, joint: int, run: int) -> int:
        """Offset of the encoders of a flexible joint, the same for all runs or one per run."""
        return self.lagging.stop + joint * self.runs + (run if self.runs > 1 else 0)

    def encoder(self, joint: int) -> slice:
        """Other encoder errors of a flexible joint, in the order of `EncoderError`."""
        start = self.lagging.stop + self.flexible * self.runs + joint * self.errors
        return slice(start, start + self.errors)
