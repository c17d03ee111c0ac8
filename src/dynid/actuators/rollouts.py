"""Simulation of a robot under the law of its actuators from many starts, with exact derivatives of the motion."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.actuators.chains import Chain, independent_chains
from dynid.dynamics.batch import as_parameters, for_kernel, run_each, thread_count
from dynid.dynamics.tree import compile_robot
from dynid.errors import (
    InvalidShape,
    InvalidValue,
    Mismatch,
    MissingArgument,
    NotApplicable,
    NotFinite,
    UnknownName,
)
from dynid.robot.actuator_law import PER_JOINT, ActuatorLaw
from dynid.robot.model import Robot
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.replay import Ending

__all__ = ["STEP", "Commands", "Directions", "Rollout", "Segments", "rollout", "touched", "with_steep_friction"]

Array = NDArray[np.float64]
Index = NDArray[np.int64]

STEP = 1e-3  # s
# Dry friction is steeper than in `ClosedLoop`, whose slopes shift armature and friction by up to two of the standard
# deviations that good encoders give (docs/actuators.md); the implicit steps allow it.
_STEEPER = 10.0
_WHOLE = 1e-6  # relative distance of a ratio from a whole number that rounding may explain


@dataclass(frozen=True, eq=False)
class Commands:
    """What the actuators are told, one row per sample of a log.

    Attributes
    ----------
    rate : float
        Frequency (Hz) of the log.
    position : ndarray, shape (K, n), or None
        Commanded positions (rad or m). None for a law without them; its kp has no effect.
    velocity : ndarray, shape (K, n), or None
        Commanded velocities (rad/s or m/s); if not given, zero or what the law says.
    torque : ndarray, shape (K, n), or None
        Torques (N m or N) that are fed forward, zero if not given.
    """

    rate: float
    position: Array | None = None
    velocity: Array | None = None
    torque: Array | None = None

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Number of rows and of joints."""
        given = [x for x in (self.position, self.velocity, self.torque) if x is not None]
        if not given:
            raise MissingArgument("commands need positions, velocities or torques", "commands")
        shapes = {np.shape(x) for x in given}
        if len(shapes) > 1 or len(given[0].shape) != 2:
            raise InvalidShape(
                f"commands need arrays of one shape (K, n), got {', '.join(map(str, sorted(shapes)))}", "commands"
            )
        return int(given[0].shape[0]), int(given[0].shape[1])

    @cached_property
    def moving(self) -> Array:
        """Velocities (K, n) that are commanded, or those of the commanded positions; zero where there are neither."""
        if self.velocity is not None:
            return self.velocity
        if self.position is None or self.shape[0] < 2:
            return np.zeros(self.shape)
        return np.asarray(np.gradient(self.position, axis=0) * self.rate)

    def velocities(self, law: ActuatorLaw) -> Array | None:
        """Velocities (K, n) that the derivative gain of a law aims at; None for zero."""
        return self.moving if law.velocity_target == "command" else self.velocity

    @cached_property
    def slopes(self) -> Array:
        """Slope (n,) of the tanh that replaces the sign of the velocity of each joint."""
        return _slopes(self.moving)


@dataclass(frozen=True, eq=False)
class Segments:
    """Where simulations start, in rows of the commands.

    Attributes
    ----------
    first : ndarray of int, shape (S,)
        Row of the start.
    length : int
        Rows that are kept after the start.
    q, v : ndarray, shape (S, n)
        True positions (without the bias of the law) and velocities at the start.
    """

    first: Index
    length: int
    q: Array
    v: Array


@dataclass(frozen=True, eq=False)
class Directions:
    """Changes of the parameters, one per row, along which a simulation is differentiated.

    Attributes
    ----------
    parameters : ndarray, shape (C, p)
        Changes of the standard parameters.
    law : mapping of str to ndarray, shape (C, n)
        Changes of fields of the actuator law, by their names.
    """

    parameters: Array
    law: Mapping[str, Array]


@dataclass(frozen=True, eq=False)
class Rollout:
    """Simulated motion; NaN after the end of the log and after a simulation that ended early.

    Attributes
    ----------
    q, v : ndarray, shape (S, length + 1, n)
        True positions and velocities at the rows of the log.
    torque : ndarray, shape (S, length + 1, n)
        Torques of the actuators there, within their limits, before friction.
    dq : ndarray, shape (S, length + 1, n, C + 2 n), or None
        Derivatives of the positions: along the directions, then by the initial positions, then by the initial
        velocities.
    endings : tuple of Ending
        How the simulation of each start ended.
    """

    q: Array
    v: Array
    torque: Array
    dq: Array | None
    endings: tuple[Ending, ...]


def rollout(
    robot: Robot,
    law: ActuatorLaw,
    commands: Commands,
    segments: Segments,
    *,
    directions: Directions | None = None,
    parameters: ArrayLike | None = None,
    step: float | None = None,
) -> Rollout:
    """Simulate a robot under the law of its actuators, and differentiate the motion.

    Steps follow the implicit midpoint rule, or semi-implicit Euler with the timestep of the law; dry friction acts
    with the velocity at the end of a step. Derivatives are those of these steps, without finite differences. Dry
    friction is a tanh of the velocity: a drive term without a slope has ten times that of `ClosedLoop.slopes` for
    the commanded motion, 4000 s/rad where no motion is commanded; friction by load has the steepest slope of its
    joint. Soft friction, as of the law, is the mean of that over its width. A commanded or fed-forward value before
    the first row is that of the first row.

    Parameters
    ----------
    robot : Robot
        A robot without closed loops. A floating or instrumented base is fixed.
    law : ActuatorLaw
        Law of the joints of the robot. Its rate is a whole multiple of that of the log.
    commands : Commands
        Commands at the rows of the log.
    segments : Segments
        Initial states and their rows.
    directions : Directions, optional
        Where given, the motion is differentiated along them and with respect to the initial states.
    parameters : array_like, shape (p,), optional
        Standard parameters that replace those of the robot.
    step : float, optional
        Largest integration step (s), 1 ms by default. The step divides the period of the law, or that of the log if
        the law is continuous.

    Returns
    -------
    Rollout

    Raises
    ------
    DataError
        If arrays do not fit together, if the rates do not, if the robot has closed loops or custom drive terms, or if
        the law does not have its joints.
    """
    from dynid.dynamics.kernels import actuated as kernels
    from dynid.dynamics.kernels import integrate

    law = _law_of(robot, law)
    pi = as_parameters(robot, parameters)
    first, q, v = _checked(robot, commands, segments)
    clock, ring = _clock(law, commands, step)
    velocity = commands.velocities(law)
    signals = [_signal(x, commands.shape) for x in (commands.position, velocity, commands.torque)]
    changes = _checked_directions(robot, directions)
    count, rows, columns = len(first), segments.length + 1, len(changes[0]) + 2 * robot.n
    moved, moving, torque = np.full((3, count, rows, robot.n), np.nan)
    dq = np.zeros((count, rows, robot.n, columns) if directions is not None else (0, 0, 0, 0))
    calls, codes = [], []
    edges = np.unique(np.linspace(0, count, min(count, thread_count()) + 1).astype(int))
    for chain in independent_chains(robot):
        j = chain.joints
        plant, slope = _plant(chain, pi[chain.parameters], commands)
        entries, active = _entries(chain, directions, changes)
        own = np.concatenate([active, columns - 2 * robot.n + j, columns - robot.n + j]).astype(np.int64)
        codes.append(np.zeros(count, np.int64))
        given = (
            plant,
            _kernel_law(law, j, slope),
            _kernel_commands(signals, j, commands.position is not None),
            clock,
            kernels.Starts(first, for_kernel(q[:, j]), for_kernel(v[:, j]), segments.length),
            entries,
            ring,
        )
        after = kernels.Out(moved, moving, torque, dq, j, own, codes[-1])
        calls += [(*given, int(lo), int(hi), after) for lo, hi in pairwise(edges)]
    run_each(kernels.actuated, calls)
    names = {
        integrate.DONE: Ending.COMPLETED,
        integrate.NOT_POSITIVE: Ending.NOT_POSITIVE,
        integrate.DIVERGED: Ending.DIVERGED,
    }
    endings = tuple(names[int(c)] for c in np.max(codes, axis=0))
    if directions is not None:
        dq[np.isnan(moved)] = np.nan
    return Rollout(moved, moving, torque, dq if directions is not None else None, endings)


def _law_of(robot: Robot, law: ActuatorLaw) -> ActuatorLaw:
    """The law of the joints of the robot, in their order."""
    if robot.loops:
        raise NotApplicable(f"robot '{robot.name}' has closed loops: its actuators cannot be simulated as a tree")
    custom = [t.name for t in robot.drives if t.function is not None]
    if custom:
        raise NotApplicable(
            f"drive term '{custom[0]}' is a custom one, which has no derivatives; remove it with robot.without"
        )
    return law if law.joints == robot.coordinates else law.of(robot.coordinates)


def _checked(robot: Robot, commands: Commands, segments: Segments) -> tuple[Index, Array, Array]:
    """Starts, with shapes that fit the robot and the commands."""
    rows, joints = commands.shape
    if joints != robot.n:
        raise Mismatch(f"commands have {joints} joints, robot '{robot.name}' has {robot.n}", "commands")
    first = np.ascontiguousarray(segments.first, dtype=np.int64)
    q, v = for_kernel(segments.q), for_kernel(segments.v)
    if first.ndim != 1 or not first.size or q.shape != (first.size, robot.n) or v.shape != q.shape:
        raise InvalidShape(
            f"segments need rows (S,) and states (S, {robot.n}), got {first.shape}, {q.shape}, {v.shape}", "segments"
        )
    if segments.length < 1 or first.min() < 0 or first.max() >= rows:
        raise InvalidValue(
            f"segments need at least one row after their start and starts within the {rows} rows of the log", "segments"
        )
    if not (np.isfinite(q).all() and np.isfinite(v).all()):
        raise NotFinite(
            f"segment {int(np.argmin(np.isfinite(q + v).all(axis=1)))} starts from a state that is not finite",
            "segments",
        )
    return first, q, v


def _clock(law: ActuatorLaw, commands: Commands, step: float | None) -> tuple[Any, int]:
    """Ticks and steps for the kernels, and the number of ticks of which torques are kept."""
    from dynid.dynamics.kernels.actuated_law import Clock

    longest = STEP if step is None else step
    if not (0 < longest < np.inf and 0 < commands.rate < np.inf):
        raise InvalidValue(
            f"a rate and a step are positive numbers, got {commands.rate:g} Hz and {longest:g} s", "rate"
        )
    if law.rate is None:
        ticks, parts = int(np.ceil(1 / (commands.rate * longest) - _WHOLE)), 1
    else:
        ratio = law.rate / commands.rate
        ticks, parts = round(ratio), int(np.ceil(1 / (law.rate * longest) - _WHOLE))
        if ticks < 1 or abs(ratio - ticks) > _WHOLE * ratio:
            raise Mismatch(
                f"the law is computed at {law.rate:g} Hz, which is not a whole multiple of the {commands.rate:g} Hz of "
                "the log",
                "rate",
            )
    if law.timestep is not None:
        parts = round(1 / ((law.rate or commands.rate) * law.timestep))
    ticks, parts = max(ticks, 1), max(parts, 1)
    period = 1.0 / (commands.rate * ticks)
    ring = int(law.delay.max() / period) + 3 if law.delayed == "torque" else 1
    return Clock(ticks, parts, period, period / parts, 0.5 if law.timestep is None else 0.0), ring


def _signal(x: Array | None, shape: tuple[int, int]) -> Array:
    """A command signal, zero if not given."""
    if x is None:
        return np.zeros(shape)
    out = for_kernel(x)
    if not np.isfinite(out).all():
        raise NotFinite(
            f"a command is not finite, first in row {int(np.argmin(np.isfinite(out).all(axis=1)))}", "commands"
        )
    return out


def _kernel_law(law: ActuatorLaw, joints: Index, slope: Array) -> Any:
    from dynid.dynamics.kernels.actuated_law import Law

    values = np.ascontiguousarray([getattr(law, field)[joints] for field in PER_JOINT])
    return Law(values, slope, int(law.rate is None), int(law.hold == "linear"), int(law.delayed == "torque"))


def _kernel_commands(signals: list[Array], joints: Index, aimed: bool) -> Any:
    from dynid.dynamics.kernels.actuated_law import Commands as KernelCommands

    return KernelCommands(np.ascontiguousarray([x[:, joints] for x in signals]), int(aimed))


def _plant(chain: Chain, pi: Array, commands: Commands) -> tuple[Any, Array]:
    """Arrays of a chain, with a slope for every dry friction term; and the slopes (n,) of friction by load."""
    from dynid.dynamics.kernels.actuated_step import Plant
    from dynid.dynamics.kernels.drives import is_dry

    model = compile_robot(chain.robot)
    drives, joints = model.drives, chain.joints
    steepest, slope = np.zeros(len(joints)), drives.slope.copy()
    for t in range(len(drives.kind)):
        if not is_dry.py_func(drives.kind[t]):
            continue
        shaft = slice(drives.start[t], drives.start[t + 1])
        on, weight = drives.joint[shaft], drives.weight[shaft]
        if slope[t] == 0.0:
            if len(on) == 1:
                slope[t] = commands.slopes[joints[on[0]]] / abs(weight[0])
            else:
                slope[t] = _slopes(commands.moving[:, joints[on]] @ weight[:, None])[0]
        if len(on) == 1:
            steepest[on[0]] = max(steepest[on[0]], slope[t] * abs(weight[0]))
    inertia, values = model.inertias(chain.robot, pi), np.ascontiguousarray(pi[model.drive_columns])
    plant = Plant(model.tree, inertia, drives._replace(slope=slope), values)
    return plant, np.where(steepest > 0, steepest, commands.slopes[joints])


def _checked_directions(robot: Robot, directions: Directions | None) -> tuple[Array, dict[str, Array]]:
    """Directions as arrays (C, p) and, per field, (C, n)."""
    if directions is None:
        return np.zeros((0, robot.parameters.size)), {}
    parameters = np.asarray(directions.parameters, dtype=float)
    if parameters.ndim != 2 or parameters.shape[1] != robot.parameters.size:
        raise InvalidShape(
            f"directions need {robot.parameters.size} columns of parameters, got shape {parameters.shape}", "directions"
        )
    fields = {name: np.asarray(x, dtype=float) for name, x in directions.law.items()}
    for name, x in fields.items():
        if name not in PER_JOINT:
            raise UnknownName(
                f"an actuator law has no field '{name}' per joint: use one of {', '.join(PER_JOINT)}", "directions"
            )
        if x.shape != (len(parameters), robot.n):
            raise InvalidShape(
                f"changes of {name} need the shape {(len(parameters), robot.n)}, got {x.shape}", "directions"
            )
    return parameters, fields


def with_steep_friction(robot: Robot, velocity: Array) -> Robot:
    """The robot with a slope on every dry friction term that has none, for velocities (K, n) of its joints."""
    return ClosedLoop().regularized(robot, velocity / _STEEPER)


def _slopes(velocity: Array) -> Array:
    return ClosedLoop().slopes(velocity / _STEEPER)


def touched(chain: Chain, parameters: Array, law: Mapping[str, Array]) -> Index:
    """The directions, among changes of parameters (C, p) and of the law (C, n), that touch a chain."""
    out = parameters[:, chain.parameters].any(axis=1)
    for x in law.values():
        out |= x[:, chain.joints].any(axis=1)
    return np.flatnonzero(out).astype(np.int64)


def _entries(chain: Chain, directions: Directions | None, changes: tuple[Array, dict[str, Array]]) -> tuple[Any, Index]:
    """Entries of the directions that touch a chain, and the columns that have any."""
    from dynid.dynamics.kernels.actuated_columns import BodyEntries, Changes, DriveEntries
    from dynid.dynamics.kernels.actuated_law import FRICTION_FIELDS, MOTOR_FIELDS

    parameters, fields = changes[0][:, chain.parameters], {x: y[:, chain.joints] for x, y in changes[1].items()}
    active = touched(chain, changes[0], changes[1])
    model = compile_robot(chain.robot)
    bodies: list[tuple[int, int]] = []
    for b, start in enumerate(model.tree.column):
        if start >= 0:
            bodies += [(b, int(c)) for c in np.flatnonzero(parameters[active, start : start + 10].any(axis=1))]
    blocks = [parameters[active[c], model.tree.column[b] : model.tree.column[b] + 10] for b, c in bodies]
    c, t = np.nonzero(parameters[np.ix_(active, model.drive_columns)])
    entries = [
        (k, PER_JOINT.index(name), i, x[active[k], i]) for name, x in fields.items() for k, i in np.argwhere(x[active])
    ]
    of_motor = [e for e in entries if e[1] in MOTOR_FIELDS]
    of_friction = [e for e in entries if e[1] in FRICTION_FIELDS]
    of_law = [e for e in entries if e[1] not in (*MOTOR_FIELDS, *FRICTION_FIELDS)]
    body = BodyEntries(
        np.array([c for _, c in bodies], np.int64),
        np.array([b for b, _ in bodies], np.int64),
        np.array(blocks, float).reshape(-1, 10),
    )
    drive = DriveEntries(
        c.astype(np.int64), t.astype(np.int64), np.ascontiguousarray(parameters[active[c], model.drive_columns[t]])
    )
    wanted = int(directions is not None)
    return Changes(wanted, len(active), body, drive, *map(_field_entries, (of_law, of_motor, of_friction))), active


def _field_entries(entries: list[tuple[int, int, int, float]]) -> Any:
    """Entries (column, field, joint, change) for the kernels."""
    from dynid.dynamics.kernels.actuated_columns import FieldEntries

    index = np.array([e[:3] for e in entries], np.int64).reshape(-1, 3)
    column, field, joint = (np.ascontiguousarray(x) for x in index.T)
    return FieldEntries(column, field, joint, np.array([e[3] for e in entries], float))
