"""Rows of a friction fit: torques of one joint, the columns of the other parameters, and the motion of the joint.

Either the torques of the rest of the robot are known from an estimate and subtracted, or its base parameters stay in
the problem as linear columns. The rows of the other joints do not depend on this joint's friction and are folded into
one triangular factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import gravity_torque, inverse_dynamics
from dynid.errors import (
    InvalidShape,
    InvalidValue,
    MissingArgument,
    NotApplicable,
    NotFinite,
    NotIdentifiable,
    UnknownName,
    keyword,
    named,
)
from dynid.friction.pieces import Features
from dynid.identification.estimate import Estimate
from dynid.identification.loads import check_run
from dynid.identification.observation import fold
from dynid.identification.observing import observe_motions
from dynid.identification.row_stream import motion_blocks
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.robot.drives import FRICTION_SYMBOLS
from dynid.robot.model import Robot
from dynid.signals.filters import decimate
from dynid.signals.noise_color import independent_share
from dynid.signals.settings import Motion, Signals, prepare

__all__ = [
    "FrictionRows",
    "LoadKind",
    "binned_friction",
    "friction_rows",
    "friction_symbols",
    "is_prismatic",
    "joint_index",
    "own_rows",
    "temperatures_of",
    "without_friction",
]

Array = NDArray[np.float64]


Index = NDArray[np.int64]
LoadKind = Literal["rigid", "gravity"]

_OWN = ("fl", "fld", "flb", "fq", "fp", "fvt", "fc_sigmoid", "fv_viscous-exponential")
_LOAD_TOLERANCE = 1e-4
_MAX_ITERATIONS = 10
_RCOND = 1e-4


@dataclass(frozen=True, eq=False)
class FrictionRows:
    """Rows of one joint (own,), followed by the folded rows of the others: W (N, b), y (N,) in N m or N.

    `features` hold all samples of all runs before decimation; `rows_of` turns columns of them into rows (N, k).
    `velocity` (own,) and `weight` (own,) belong to the rows of the joint. `samples` counts the rows before folding,
    `independent` the independent ones under white noise. The folded rows are scaled to the `noise` (N m or N) of this
    joint. `known` (p,) are the parameters of the robot without the friction of this joint where an estimate gives them.
    """

    joint: str
    W: Array
    y: Array
    features: Features
    segments: tuple[tuple[int, tuple[int, ...], Index], ...]
    velocity: Array
    index: Index
    samples: int
    independent: float
    base: BaseParameters | None = None
    weight: Array | None = None
    noise: float = 0.0
    known: Array | None = None

    def with_noise(self, noise: float) -> FrictionRows:
        """The rows with the folded part rescaled for another torque noise (N m or N) of this joint."""
        if not self.noise or len(self.y) == self.own:
            return self
        factor = np.ones(len(self.y))
        factor[self.own :] = noise / self.noise
        return replace(self, W=self.W * factor[:, None], y=self.y * factor, noise=noise)

    @property
    def own(self) -> int:
        """Number of rows of this joint."""
        return len(self.velocity)

    @property
    def max_velocity(self) -> float:
        """Largest velocity magnitude of the joint (rad/s or m/s)."""
        return float(np.abs(self.features.v).max())

    def rows_of(self, columns: Array) -> Array:
        """Columns (samples, k) of the motion as rows (N, k), decimated run by run like the torques."""
        out = np.zeros((len(self.y), columns.shape[1]))
        first = row = 0
        for length, factors, kept in self.segments:
            part = decimate(columns[first : first + length], factors)[kept]
            out[row : row + len(kept)] = part
            first, row = first + length, row + len(kept)
        if self.weight is not None:
            out[: self.own] *= self.weight[:, None]
        return out


def joint_index(robot: Robot, joint: str | int | None) -> int:
    """Index of a joint; optional where there is only one."""
    if joint is None:
        if robot.n != 1:
            raise MissingArgument(f"robot '{robot.name}' has {robot.n} joints: give {keyword('joint')}")
        return 0
    if isinstance(joint, str):
        if joint not in robot.coordinates:
            raise UnknownName(f"no joint named '{joint}', the joints are {', '.join(robot.coordinates)}", "joint")
        return robot.coordinates.index(joint)
    if joint not in range(robot.n):
        raise InvalidValue(f"joint {joint} is out of range, robot '{robot.name}' has {robot.n}", "joint")
    return int(joint)


def is_prismatic(robot: Robot, joint: int) -> bool:
    """Whether a joint slides, so that its friction is a force (N)."""
    name = robot.coordinates[joint]
    return any(j.name == name and j.kind == "prismatic" for j in robot.joints)


def friction_symbols() -> tuple[str, ...]:
    """Symbols of the drive terms that are joint friction."""
    return FRICTION_SYMBOLS + _OWN


def without_friction(robot: Robot, joint: int) -> Robot:
    """The robot without friction and offset of this joint on the joint side."""
    symbols, owner = friction_symbols(), robot.tree_coordinates.index(robot.coordinates[joint])
    kept = tuple(t for t in robot.drives if t.owner != owner or t.motor or t.symbol not in symbols)
    return replace(robot, drives=kept)


def friction_rows(
    robot: Robot,
    recording: Recording,
    joint: int,
    *,
    estimate: Estimate | None = None,
    signals: Signals | None = None,
    temperature: ArrayLike | Sequence[ArrayLike] | None = None,
    load: LoadKind | None = "rigid",
    directional: bool = False,
) -> FrictionRows:
    """Rows of a joint from a recording. `load=None` omits the load feature, which saves a first solution.

    `directional` allows for load-dependent friction that differs between driving and driven loads.
    """
    if robot.base == "floating":
        raise NotApplicable(f"friction is fitted to robots with a fixed base, the base of '{robot.name}' floats")
    if load not in (None, "rigid", "gravity"):
        raise UnknownName(f"{named('load')} '{load}' is unknown: use rigid or gravity")
    settings = signals or (estimate.signals if estimate is not None else Signals())
    name = robot.coordinates[joint]
    for run in recording.runs:
        check_run(robot, run, robot.coordinates)
    motions = [prepare(run, settings) for run in recording.runs]
    celsius = temperatures_of(recording, motions, temperature)
    velocity = np.concatenate([m.v[:, joint] for m in motions])
    features = Features(velocity, None, celsius)
    if estimate is not None:
        rows = _residual_rows(estimate, motions, joint, settings, features)
    else:
        rows = _joint_rows(robot, motions, joint, settings, features)
    moving = rows.velocity
    for side, words in ((moving > 0, "forwards"), (moving < 0, "backwards")):
        if np.count_nonzero(side) < 10:
            raise NotIdentifiable(
                f"joint '{name}' never moves {words} for long enough: friction cannot be separated from constant "
                "torques; record motion in both directions"
            )
    return rows if load is None else _with_load(rows, robot, motions, joint, estimate, load, directional)


def _residual_rows(
    estimate: Estimate, motions: list[Motion], joint: int, settings: Signals, features: Features
) -> FrictionRows:
    """Measured torques minus those of an estimate without the friction of this joint."""
    robot = without_friction(estimate.identified_robot, joint)
    base = base_parameters(robot, channels=[robot.coordinates[joint]])
    y, segments, velocity, index, independent = [], [], [], [], 0.0
    first = 0
    for motion in motions:
        assert motion.torque is not None
        own, kept = own_rows(base, motion, settings)
        rest = motion.torque[:, joint] - inverse_dynamics(robot, motion.q, motion.v, motion.a)[:, -robot.n :][:, joint]
        y.append(decimate(rest[:, None], motion.decimate)[kept, 0])
        velocity.append(decimate(motion.v[:, joint, None], motion.decimate)[kept, 0])
        segments.append((len(motion.t), motion.decimate, kept))
        index.append(own.astype(np.int64) + first)
        independent += len(kept) * _share(motion)
        first += len(motion.t)
    values = np.concatenate(y)
    return FrictionRows(
        robot.coordinates[joint],
        np.zeros((len(values), 0)),
        values,
        features,
        tuple(segments),
        np.concatenate(velocity),
        np.concatenate(index),
        len(values),
        independent,
        known=robot.parameters,
    )


def _joint_rows(robot: Robot, motions: list[Motion], joint: int, settings: Signals, features: Features) -> FrictionRows:
    """Measured torques against all base parameters; other joints keep the friction terms of the robot."""
    name = robot.coordinates[joint]
    base = base_parameters(without_friction(robot, joint), channels="torque")
    observation = observe_motions(base, motions, settings)
    place = base.channels.index(name)
    W, y, segments, velocity, index = [], [], [], [], []
    independent = 0.0
    first = 0
    for motion in motions:
        blocks = [b for b in motion_blocks(base, motion, settings) if b.channel == place]
        step = int(np.prod(motion.decimate)) if motion.decimate else 1
        numbers = np.concatenate([b.index for b in blocks]) if blocks else np.zeros(0, np.int64)
        kept = numbers // step
        W += [b.W for b in blocks]
        y += [b.y for b in blocks]
        velocity.append(decimate(motion.v[:, joint, None], motion.decimate)[kept, 0])
        segments.append((len(motion.t), motion.decimate, kept))
        index.append(numbers + first)
        independent += len(kept) * _share(motion)
        first += len(motion.t)
    if not y:
        raise NotIdentifiable(f"joint '{name}' never moves faster than min_velocity in this recording", "min_velocity")
    own_W, own_y, own_velocity = np.vstack(W), np.concatenate(y), np.concatenate(velocity)
    others = [f for k, f in enumerate(observation.factors) if k != place]
    counts = [n for k, n in enumerate(observation.rows) if k != place]
    noise, rest = _noise(own_W, own_y, own_velocity, others, counts)
    factor = np.zeros((0, base.count + 1))
    if others:
        factor = fold(np.vstack([f * (noise / max(r, 1e-6 * noise)) for f, r in zip(others, rest, strict=True)]))
    whole = np.vstack([own_W, factor[:, :-1]])
    share = independent / len(own_y)
    return FrictionRows(
        name,
        whole,
        np.concatenate([own_y, factor[:, -1]]),
        features,
        tuple(segments),
        own_velocity,
        np.concatenate(index),
        len(own_y) + sum(counts),
        independent + share * sum(counts),
        base,
        noise=noise,
    )


def _noise(W: Array, y: Array, velocity: Array, others: list[Array], counts: list[int]) -> tuple[float, list[float]]:
    """Torque noise of this joint and of the others, with Coulomb and viscous friction."""
    plain = np.column_stack([np.sign(velocity), velocity, np.ones_like(velocity)])
    columns = W.shape[1] + plain.shape[1]
    stack = [np.column_stack([W, plain, y])]
    stack += [np.column_stack([f[:, :-1], np.zeros((len(f), plain.shape[1])), f[:, -1]]) for f in others]
    whole = np.vstack(stack)
    norms = np.linalg.norm(whole[:, :-1], axis=0)
    scale = np.where(norms > 0, norms, 1.0)
    beta = np.linalg.lstsq(whole[:, :-1] / scale, whole[:, -1], rcond=1e-12)[0] / scale
    own = np.linalg.norm(stack[0][:, -1] - stack[0][:, :-1] @ beta)
    noise = max(float(own / np.sqrt(max(len(y) - columns, 1))), 1e-12 * float(np.linalg.norm(y)))
    rest = [
        float(np.linalg.norm(f[:, -1] - f[:, :-1] @ beta) / np.sqrt(max(n, 1)))
        for f, n in zip(stack[1:], counts, strict=True)
    ]
    return noise, rest


def _with_load(
    rows: FrictionRows,
    robot: Robot,
    motions: list[Motion],
    joint: int,
    estimate: Estimate | None,
    kind: LoadKind,
    directional: bool,
) -> FrictionRows:
    """The rows with the load torque of the gear: known, or found iteratively together with the friction."""
    q, v, a = (np.concatenate([getattr(m, x) for m in motions]) for x in ("q", "v", "a"))
    bare = without_friction(robot if estimate is None else estimate.identified_robot, joint)

    def carried(parameters: Array | None) -> Array:
        if kind == "gravity":
            return gravity_torque(bare, q, parameters)[:, -bare.n :][:, joint]
        return inverse_dynamics(bare, q, v, a, parameters)[:, -bare.n :][:, joint]

    if rows.base is None:
        return replace(rows, features=rows.features._replace(load=carried(None)))
    velocity = rows.features.v
    load = np.zeros_like(velocity)
    for _ in range(_MAX_ITERATIONS):
        columns = [np.sign(velocity), velocity, np.ones_like(velocity)]
        if load.any():
            grown = np.sign(velocity) * np.abs(load)
            driven = velocity * load > 0
            columns += [np.where(driven, grown, 0.0), np.where(driven, 0.0, grown)] if directional else [grown]
        whole = np.hstack([rows.W, rows.rows_of(np.column_stack(columns))])
        norms = np.linalg.norm(whole, axis=0)
        scale = np.where(norms > 0, norms, 1.0)
        # Poorly identifiable directions, such as the scale of a load with directional friction, are left unchanged.
        beta = np.linalg.lstsq(whole / scale, rows.y, rcond=_RCOND)[0] / scale
        before, load = load, carried(rows.base.standard(beta[: rows.base.count]))
        if np.abs(load - before).max() <= _LOAD_TOLERANCE * np.abs(load).max():
            break
    return replace(rows, features=rows.features._replace(load=load))


def own_rows(base: BaseParameters, motion: Motion, settings: Signals) -> tuple[Index, Index]:
    """Sample indices of the rows in which the joint moves, and their indices after decimation."""
    blocks = list(motion_blocks(base, motion, settings))
    step = int(np.prod(motion.decimate)) if motion.decimate else 1
    numbers = np.concatenate([b.index for b in blocks]) if blocks else np.zeros(0, np.int64)
    return numbers, numbers // step


def _share(motion: Motion) -> float:
    """Share of the rows that are independent under white noise."""
    return independent_share() if motion.decimate and int(np.prod(motion.decimate)) > 1 else 1.0


def temperatures_of(
    recording: Recording, motions: list[Motion], given: ArrayLike | Sequence[ArrayLike] | None
) -> Array | None:
    """Temperatures at the samples of the processed runs, from one array (N,) per run or a single number."""
    if given is None:
        return None
    raw: Any = given
    if not hasattr(raw, "__len__"):
        values = [np.full(len(run), raw, dtype=float) for run in recording.runs]
    else:
        values = [raw] if len(recording.runs) == 1 and not hasattr(raw[0], "__len__") else list(raw)
    if len(values) != len(recording.runs):
        raise InvalidShape(
            f"temperature needs one column per run: {len(recording.runs)} runs, {len(values)} columns", "temperature"
        )
    out = []
    for run, motion, column in zip(recording.runs, motions, values, strict=True):
        x = np.asarray(column, dtype=float)
        if x.shape != (len(run),):
            raise InvalidShape(
                f"{named('temperature')} has shape {x.shape}, expected {len(run)} rows", where=f"run '{run.name}'"
            )
        if not np.all(np.isfinite(x)):
            row = int(np.argmin(np.isfinite(x)))
            raise NotFinite(
                f"temperature is not a finite number at row {row}", "temperature", where=f"run '{run.name}'"
            )
        out.append(np.interp(motion.t, run.t, x))
    return np.concatenate(out)


# Measured friction over velocity, averaged in bins of velocity.


_BINS = 40


def binned_friction(velocity: Array, torque: Array) -> tuple[Array, Array, Array]:
    """Mean velocity, mean friction and its standard deviation per bin of velocity; the points themselves if few."""
    if len(velocity) <= 2 * _BINS:
        return velocity, torque, np.zeros_like(torque)
    edges = np.linspace(velocity.min(), velocity.max() * (1 + 1e-12), _BINS + 1)
    label = np.clip(np.searchsorted(edges, velocity, side="right") - 1, 0, _BINS - 1)
    found = []
    for k in range(_BINS):
        own = label == k
        # Both signs in one bin would average out.
        if own.sum() >= 5 and not (edges[k] < 0 < edges[k + 1]):
            found.append((velocity[own].mean(), torque[own].mean(), torque[own].std(ddof=1) / np.sqrt(own.sum())))
    table = np.array(found).reshape(-1, 3)
    return table[:, 0], table[:, 1], table[:, 2]
