"""What a residual is learned from: motion, measured torque and rigid torque, joint by joint and run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.identification.estimate import Estimate
from dynid.identification.observation import motion_blocks
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals, prepare

__all__ = ["JointRows", "RigidPart", "TorqueRows"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RigidPart:
    """Base parameters with their values (b,) and covariance (b, b), a robot that has them, how signals are cleaned."""

    base: BaseParameters
    beta: Array
    covariance: Array
    robot: Robot
    signals: Signals

    @staticmethod
    def of(
        model: Estimate | Robot | RigidPart, channels: Sequence[str] = (), signals: Signals | None = None
    ) -> RigidPart:
        """Of an estimate, or of a robot with its own values, which are then taken as exact."""
        if isinstance(model, RigidPart):
            return model
        if isinstance(model, Estimate):
            return RigidPart(model.base, model.beta, model.covariance, model.identified_robot, model.signals)
        if not isinstance(model, Robot):
            raise DataError(f"a residual stands on an estimate or a robot, got {model!r:.60}")
        base = base_parameters(model, channels=channels or "torque")
        return RigidPart(base, base.values(), np.zeros((base.count, base.count)), model, signals or Signals())


@dataclass(frozen=True, eq=False)
class JointRows:
    """Rows of one joint: motion q, v, a (N, n), measured and rigid torque (N,), base regressor W (N, b), run, time."""

    joint: int
    q: Array
    v: Array
    a: Array
    torque: Array
    rigid: Array
    W: Array
    run: NDArray[np.intp]
    t: Array

    def __len__(self) -> int:
        return len(self.torque)

    @property
    def motion(self) -> tuple[Array, Array, Array]:
        return self.q, self.v, self.a

    @property
    def clock(self) -> Array:
        """Times (N,) with the runs one after the other."""
        starts = np.flatnonzero(np.diff(self.run, prepend=-1))
        lengths = [self.t[b - 1] - self.t[a] for a, b in pairwise([*starts, len(self)])]
        shift = np.concatenate([[0.0], np.cumsum(lengths)[:-1]]) - self.t[starts]
        return np.asarray(self.t + np.repeat(shift, np.diff([*starts, len(self)])))

    @property
    def error(self) -> Array:
        """What the rigid model misses (N,)."""
        return self.torque - self.rigid

    def rows(self, index: NDArray[np.intp]) -> JointRows:
        """Some of the rows."""
        return JointRows(self.joint, *(x[index] for x in self._arrays()))

    def _arrays(self) -> tuple[NDArray[Any], ...]:
        return self.q, self.v, self.a, self.torque, self.rigid, self.W, self.run, self.t

    @staticmethod
    def joined(pieces: Sequence[JointRows]) -> JointRows:
        """Rows of one joint, one piece after the other."""
        columns = zip(*(p._arrays() for p in pieces), strict=True)
        return JointRows(pieces[0].joint, *(np.concatenate(x) for x in columns))


@dataclass(frozen=True, eq=False)
class TorqueRows:
    """Rows of every measured joint, and the runs they come from."""

    joints: tuple[JointRows, ...]
    runs: tuple[str, ...]

    @staticmethod
    def of(model: Estimate | Robot | RigidPart, recording: Recording, signals: Signals | None = None) -> TorqueRows:
        """Rows of a recording, cleaned as the one the model was identified from unless `signals` is given."""
        rigid = RigidPart.of(model)
        base, settings = rigid.base, signals or rigid.signals
        robot = base.robot
        if robot.base != "fixed":
            raise DataError(f"a residual needs a fixed base, that of '{robot.name}' is {robot.base}")
        if len(recording.joints) != robot.n:
            raise DataError(f"the recording has {len(recording.joints)} joints, robot '{robot.name}' {robot.n}")
        joints = [robot.coordinates.index(c) for c in base.channels]
        pieces: list[list[JointRows]] = [[] for _ in joints]
        for number, run in enumerate(recording.runs):
            if run.torque is None:
                raise DataError(f"run '{run.name}' has no torques to learn from")
            motion = prepare(run, settings)
            for block in motion_blocks(base, motion, settings):
                i, W = block.index, block.W
                state = motion.q[i], motion.v[i], motion.a[i]
                run_number = np.full(len(i), number, np.intp)
                rows = JointRows(joints[block.channel], *state, block.y, W @ rigid.beta, W, run_number, motion.t[i])
                pieces[block.channel].append(rows)
        missing = [c for c, p in zip(base.channels, pieces, strict=True) if not p]
        if missing:
            raise DataError(f"joint '{missing[0]}' never moves faster than min_velocity in this recording")
        return TorqueRows(tuple(JointRows.joined(p) for p in pieces), tuple(r.name for r in recording.runs))

    @staticmethod
    def of_motion(
        model: Estimate | Robot | RigidPart,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        torque: ArrayLike,
        runs: Sequence[int] | NDArray[np.intp] | None = None,
    ) -> TorqueRows:
        """Rows of a motion q, v, a (N, n) that needs no cleaning, with its torques (N, n) and the run of each row."""
        rigid = RigidPart.of(model)
        n = rigid.robot.n
        arrays = [np.asarray(x, dtype=float) for x in (q, v, a, torque)]
        if any(x.shape != (len(arrays[0]), n) for x in arrays) or len(arrays[0]) == 0:
            raise DataError(f"q, v, a and torque must each be (N, {n}), got {', '.join(str(x.shape) for x in arrays)}")
        if not all(np.all(np.isfinite(x)) for x in arrays):
            raise DataError("the motion or its torques hold values that are not finite")
        q, v, a, tau = arrays
        number = np.zeros(len(q), np.intp) if runs is None else np.asarray(runs, np.intp)
        if number.shape != (len(q),):
            raise DataError(f"runs needs one number a row ({len(q)}), got shape {number.shape}")
        W, clock = rigid.base.regressor(q, v, a), np.arange(len(q), dtype=float)
        joints = [rigid.robot.coordinates.index(c) for c in rigid.base.channels]
        rows = tuple(
            JointRows(j, q, v, a, tau[:, j], W[:, k] @ rigid.beta, W[:, k], number, clock) for k, j in enumerate(joints)
        )
        return TorqueRows(rows, tuple(str(i) for i in np.unique(number)))
