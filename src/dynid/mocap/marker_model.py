"""Markers on the links of a robot: positions and Jacobians of all of them for one pose."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidType, MissingArgument, ModelError
from dynid.robot.model import Robot

__all__ = ["Attachments", "MarkerModel", "checked_attachments"]

Array = NDArray[np.float64]
# Marker to the link or frame that carries it and its position there, m.
Attachments = Mapping[str, tuple[str, ArrayLike]]


def checked_attachments(attachments: Attachments) -> dict[str, tuple[str, Array]]:
    """Marker to frame and position (3,), or a plain sentence on what is wrong."""
    if not attachments:
        raise MissingArgument("no marker is attached to the robot", "attachments")
    out = {}
    for marker, given in attachments.items():
        try:
            frame, offset = given
            position = np.asarray(offset, dtype=float)
        except (TypeError, ValueError):
            raise InvalidType(
                f"marker '{marker}' needs (link or frame, position of three numbers)", "attachments"
            ) from None
        if not isinstance(frame, str) or position.shape != (3,) or not np.all(np.isfinite(position)):
            raise InvalidType(
                f"marker '{marker}' needs (link or frame, position of three numbers), got {given!r:.80}", "attachments"
            )
        out[marker] = (frame, position)
    return out


class MarkerModel:
    """Where the markers of a robot are, and how they move with its coordinates (velocities as dynid orders them)."""

    def __init__(self, robot: Robot, attachments: Mapping[str, tuple[str, Array]]) -> None:
        import pinocchio as pin

        self.robot, self.markers = robot, tuple(attachments)
        self._pin = pin
        self._model = robot.to_pinocchio(independent=True)
        self._data = self._model.createData()
        self._first = 6 if robot.base == "floating" else 0
        joints = [self._model.joints[self._model.getJointId(j.name)] for j in robot.joints]
        leaders = [robot.coordinates.index(j.mimic.leader if j.mimic else j.name) for j in robot.joints]
        self._ratio = np.array([j.mimic.ratio if j.mimic else 1.0 for j in robot.joints])
        self._offset = np.array([j.mimic.offset if j.mimic else 0.0 for j in robot.joints])
        self._leaders = np.array(leaders, dtype=int)
        self._rows = np.array([j.idx_q for j in joints], dtype=int)
        # Pinocchio's velocities from ours: joints in another order, mimic joints with their leaders.
        reduction = np.zeros((self._model.nv, robot.nv))
        reduction[: self._first, : self._first] = np.eye(self._first)
        for joint, leader, ratio in zip(joints, leaders, self._ratio, strict=True):
            reduction[joint.idx_v, self._first + leader] = ratio
        self._reduction = None if np.array_equal(reduction, np.eye(len(reduction))) else reduction
        places = [self._place(frame) for frame, _ in attachments.values()]
        self._body = np.array([body for body, _ in places], dtype=int)
        self._frame = np.array([np.asarray(h) for _, h in places])
        self._bodies, self._which = np.unique(self._body, return_inverse=True)
        moved = np.zeros((len(places), self._model.nv))
        for m, body in enumerate(self._body):
            for j in self._model.supports[int(body)]:
                joint = self._model.joints[j]
                if j:
                    moved[m, joint.idx_v : joint.idx_v + joint.nv] = 1.0
        self._moved = moved[:, None, :]
        self.set_offsets(np.array([offset for _, offset in attachments.values()]))

    def _place(self, name: str) -> tuple[int, Array]:
        for frame in self._model.frames:
            if frame.name == name and frame.type in (self._pin.FrameType.BODY, self._pin.FrameType.OP_FRAME):
                return int(frame.parentJoint), frame.placement.homogeneous
        known = ", ".join([x.name for x in self.robot.links] + [x.name for x in self.robot.frames])
        raise ModelError(
            f"no link or frame named '{name}' to carry a marker, known: {known}", "attachments", code="unknown_name"
        )

    def set_offsets(self, offsets: Array) -> None:
        """Other positions (M, 3) of the markers in the frames that carry them."""
        self.offsets = offsets
        self._local = np.einsum("mij,mj->mi", self._frame[:, :3, :3], offsets) + self._frame[:, :3, 3]

    def _configuration(self, q: Array) -> Array:
        out = np.empty(self._model.nq)
        if self._first:
            out[:7] = q[:7]
        out[self._rows] = self._ratio * q[len(q) - self.robot.n :][self._leaders] + self._offset
        return out

    def _bodies_at(self) -> tuple[Array, Array]:
        placements = [self._data.oMi[int(b)] for b in self._bodies]
        turn = np.array([h.rotation for h in placements])[self._which]
        return turn, np.array([h.translation for h in placements])[self._which]

    def positions(self, q: Array) -> Array:
        """Positions (M, 3) of the markers in the laboratory."""
        self._pin.forwardKinematics(self._model, self._data, self._configuration(q))
        turn, at = self._bodies_at()
        return np.asarray((turn @ self._local[:, :, None])[:, :, 0] + at)

    def rotations(self, q: Array) -> tuple[Array, Array]:
        """Rotations (M, 3, 3) and origins (M, 3) of the frames that carry the markers."""
        self._pin.forwardKinematics(self._model, self._data, self._configuration(q))
        turn, at = self._bodies_at()
        return turn @ self._frame[:, :3, :3], (turn @ self._frame[:, :3, 3:])[:, :, 0] + at

    def jacobians(self, q: Array) -> tuple[Array, Array]:
        """Positions (M, 3) and their Jacobians (M, 3, nv)."""
        motion = self._pin.computeJointJacobians(self._model, self._data, self._configuration(q))
        turn, at = self._bodies_at()
        p = (turn @ self._local[:, :, None])[:, :, 0] + at
        x, y, z = p[:, :1], p[:, 1:2], p[:, 2:]
        v, w = motion[:3], motion[3:]
        out = np.empty((len(p), 3, motion.shape[1]))
        # Twists at the laboratory's origin: u = v + w x p.
        out[:, 0] = v[0] + w[1] * z - w[2] * y
        out[:, 1] = v[1] + w[2] * x - w[0] * z
        out[:, 2] = v[2] + w[0] * y - w[1] * x
        out *= self._moved
        return p, out if self._reduction is None else out @ self._reduction

    def moved(self, q: Array, step: Array) -> Array:
        """The pose a step (nv,) further; a floating base along the exponential map, its quaternion kept unit."""
        out = q.copy()
        out[len(q) - self.robot.n :] += step[self._first :]
        if self._first:
            base = self._pin.XYZQUATToSE3(q[:7]) * self._pin.exp6(step[:6])
            out[:7] = self._pin.SE3ToXYZQUAT(base)
            out[3:7] /= np.linalg.norm(out[3:7])
            if out[3:7] @ q[3:7] < 0:
                out[3:7] *= -1
        return out
