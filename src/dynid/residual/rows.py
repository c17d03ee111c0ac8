"""Training data of a residual: motion, measured torque and rigid torque, by joint and run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidShape, InvalidType, Mismatch, MissingData, NotApplicable, NotFinite
from dynid.identification.estimate import Estimate
from dynid.identification.row_stream import motion_blocks
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals, prepare

__all__ = ["JointRows", "RigidPart", "TorqueRows"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class RigidPart:
    """The rigid model: base parameters, their values (b,) and covariance (b, b), the robot and its signal settings."""

    base: BaseParameters
    beta: Array
    covariance: Array
    robot: Robot
    signals: Signals

    @staticmethod
    def of(
        model: Estimate | Robot | RigidPart, channels: Sequence[str] = (), signals: Signals | None = None
    ) -> RigidPart:
        """The rigid part of an estimate, or of a robot whose own parameters are taken as exact."""
        if isinstance(model, RigidPart):
            return model
        if isinstance(model, Estimate):
            return RigidPart(model.base, model.beta, model.covariance, model.identified_robot, model.signals)
        if not isinstance(model, Robot):
            raise InvalidType(f"a residual needs an estimate or a robot, got {model!r:.60}", "model")
        base = base_parameters(model, channels=channels or "torque")
        return RigidPart(base, base.values(), np.zeros((base.count, base.count)), model, signals or Signals())


@dataclass(frozen=True, eq=False)
class JointRows:
    """Rows of one joint.

    Attributes
    ----------
    joint : int
        Index of the joint coordinate.
    q, v, a : array, shape (N, n)
        Motion of all joints.
    torque, rigid : array, shape (N,)
        Measured torque of this joint and that of the rigid model, N m (N for a prismatic joint).
    W : array, shape (N, b)
        Base regressor of this joint.
    run : array of int, shape (N,)
        Index of the run that each row comes from.
    t : array, shape (N,)
        Time within the run, s.
    """

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
        """q, v and a."""
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
        """Torque error (N,) of the rigid model."""
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
    """Training or validation data of a residual: rows of every measured joint, and the names of their runs.

    Made with `TorqueRows.of(model, recording)` or `TorqueRows.of_motion(model, q, v, a, torque)`.

    Attributes
    ----------
    joints : tuple of JointRows
        One per measured joint.
    runs : tuple of str
    """

    joints: tuple[JointRows, ...]
    runs: tuple[str, ...]

    @staticmethod
    def of(model: Estimate | Robot | RigidPart, recording: Recording, *, signals: Signals | None = None) -> TorqueRows:
        """Rows of a recording.

        Parameters
        ----------
        model : Estimate, Robot or RigidPart
            The rigid model.
        recording : Recording
            Runs with positions and torques.
        signals : Signals, optional
            Signal settings. Default: those that the model was identified with.

        Returns
        -------
        TorqueRows

        Raises
        ------
        DataError
            If the base is not fixed, the joints do not match, torques are missing or a joint never moves.
        """
        rigid = RigidPart.of(model)
        base, settings = rigid.base, signals or rigid.signals
        robot = base.robot
        if robot.base != "fixed":
            raise NotApplicable(f"a residual needs a fixed base, that of '{robot.name}' is {robot.base}")
        if len(recording.joints) != robot.n:
            raise Mismatch(f"the recording has {len(recording.joints)} joints, robot '{robot.name}' {robot.n}")
        joints = [robot.coordinates.index(c) for c in base.channels]
        pieces: list[list[JointRows]] = [[] for _ in joints]
        for number, run in enumerate(recording.runs):
            if run.torque is None:
                raise MissingData(f"run '{run.name}' has no torques")
            motion = prepare(run, settings)
            for block in motion_blocks(base, motion, settings):
                i, W = block.index, block.W
                state = motion.q[i], motion.v[i], motion.a[i]
                run_number = np.full(len(i), number, np.intp)
                rows = JointRows(joints[block.channel], *state, block.y, W @ rigid.beta, W, run_number, motion.t[i])
                pieces[block.channel].append(rows)
        missing = [c for c, p in zip(base.channels, pieces, strict=True) if not p]
        if missing:
            raise MissingData(
                f"joint '{missing[0]}' never moves faster than min_velocity in this recording", "min_velocity"
            )
        return TorqueRows(tuple(JointRows.joined(p) for p in pieces), tuple(r.name for r in recording.runs))

    @staticmethod
    def of_motion(
        model: Estimate | Robot | RigidPart,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        torque: ArrayLike,
        *,
        runs: Sequence[int] | NDArray[np.intp] | None = None,
    ) -> TorqueRows:
        """Rows of a motion that needs no filtering.

        Parameters
        ----------
        model : Estimate, Robot or RigidPart
            The rigid model.
        q, v, a : array, shape (N, n)
            Positions, velocities and accelerations, SI units.
        torque : array, shape (N, n)
            Joint torques in N m (N for prismatic joints).
        runs : sequence of int, shape (N,), optional
            Index of the run that each row belongs to. Default: one run.

        Returns
        -------
        TorqueRows

        Raises
        ------
        DataError
            If a shape is wrong or a value is not finite.
        """
        rigid = RigidPart.of(model)
        n = rigid.robot.n
        arrays = [np.asarray(x, dtype=float) for x in (q, v, a, torque)]
        if any(x.shape != (len(arrays[0]), n) for x in arrays) or len(arrays[0]) == 0:
            raise InvalidShape(
                f"q, v, a and torque must each be (N, {n}), got {', '.join(str(x.shape) for x in arrays)}"
            )
        if not all(np.all(np.isfinite(x)) for x in arrays):
            raise NotFinite("q, v, a and torque must be finite")
        q, v, a, tau = arrays
        number = np.zeros(len(q), np.intp) if runs is None else np.asarray(runs, np.intp)
        if number.shape != (len(q),):
            raise InvalidShape(f"runs needs one number per row ({len(q)}), got shape {number.shape}")
        W, clock = rigid.base.regressor(q, v, a), np.arange(len(q), dtype=float)
        joints = [rigid.robot.coordinates.index(c) for c in rigid.base.channels]
        rows = tuple(
            JointRows(j, q, v, a, tau[:, j], W[:, k] @ rigid.beta, W[:, k], number, clock) for k, j in enumerate(joints)
        )
        return TorqueRows(rows, tuple(str(i) for i in np.unique(number)))
