"""Run: the measured signals of one uninterrupted motion."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import InvalidShape, InvalidValue, NotFinite, TooFew, UnknownName
from dynid.recording.wrench import WrenchSensor

__all__ = ["NAMED_CONTACT", "NAMED_WRENCH", "PARTS", "SIGNALS", "WIDTH", "Run", "column_names", "mended_poses"]

Array = NDArray[np.float64]

# Signals of a run other than t, and their width where it is not the number of joints.
SIGNALS = ("q", "v", "a", "torque", "current", "reference", "link_q", "wrench", "base", "base_v", "base_a", "imu")
WIDTH = {"wrench": 6, "base": 7, "base_v": 6, "base_a": 6, "imu": 6}
# Prefixes of the signals that are wrenches of named sensors, and contacts of named frames.
NAMED_WRENCH = "wrench:"
NAMED_CONTACT = "contact:"
PARTS = {
    "wrench": ("fx", "fy", "fz", "mx", "my", "mz"),
    "base": ("x", "y", "z", "qx", "qy", "qz", "qw"),
    "base_v": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "base_a": ("vx", "vy", "vz", "wx", "wy", "wz"),
    "imu": ("fx", "fy", "fz", "wx", "wy", "wz"),
}


@dataclass(frozen=True, eq=False)
class Run:
    """One uninterrupted run of samples, on the joint side, in SI units.

    Attributes
    ----------
    t : ndarray (N,)
        Time in s.
    q, v, a : ndarray (N, joint)
        Position (rad, m), velocity and acceleration of the joints; v and a are None where they are not measured.
    torque : ndarray (N, joint) or None
        Torque (N m) or force (N) that the drives deliver on the joint side.
    current : ndarray (N, joint) or None
        Motor current in A.
    reference : ndarray (N, joint) or None
        Positions that the controller follows (rad, m).
    link_q : ndarray (N, joint) or None
        Positions of the links behind elastic gears (rad, m), where `q` are those of the motors on the joint side. NaN
        for a joint without an encoder on its link.
    wrench : ndarray (N, 6) or None
        Force (N) and moment (N m) on the base at its origin.
    base : ndarray (N, 7) or None
        Position (m) and quaternion (x, y, z, w) of the base. Quaternions are normalised and their sign is made
        continuous.
    base_v, base_a : ndarray (N, 6) or None
        Body twist of the base (linear m/s, angular rad/s) and its time derivative, where they are measured.
    imu : ndarray (N, 6) or None
        Specific force (m/s2) and angular velocity (rad/s) of an inertial unit on the robot, in the axes of the unit.
    contacts : mapping of str to ndarray (N,)
        Whether the link or frame of this name touches the surroundings: 0 or 1, or the probability of it.
    wrenches : mapping of str to ndarray (N, 6)
        Force and moment that the surroundings exert on the robot, by the name of the sensor.
    sensors : mapping of str to WrenchSensor
        Where each of these sensors is; one that is left out sits in the robot's frame of its own name.
    name : str
        Name of the run in messages and tables.

    Raises
    ------
    DataError
        If a signal has the wrong shape or a value that is not finite.
    """

    t: Array
    q: Array
    v: Array | None = None
    a: Array | None = None
    torque: Array | None = None
    current: Array | None = None
    reference: Array | None = None
    link_q: Array | None = None
    wrench: Array | None = None
    base: Array | None = None
    base_v: Array | None = None
    base_a: Array | None = None
    imu: Array | None = None
    contacts: Mapping[str, Array] = field(default_factory=dict)
    wrenches: Mapping[str, Array] = field(default_factory=dict)
    sensors: Mapping[str, WrenchSensor] = field(default_factory=dict)
    name: str = "run"

    def __post_init__(self) -> None:
        t = np.ascontiguousarray(self.t, dtype=float)
        object.__setattr__(self, "t", t)
        if t.ndim != 1 or t.size < 2:
            raise TooFew(f"run '{self.name}' has {t.size} samples; at least two are needed")
        for signal in SIGNALS:
            value = getattr(self, signal)
            if value is not None:
                width = WIDTH[signal] if signal in WIDTH else np.shape(self.q)[-1]
                object.__setattr__(self, signal, self._checked(signal, value, width))
        unused = sorted(set(self.sensors) - set(self.wrenches))
        if unused:
            raise UnknownName(f"sensor '{unused[0]}' has no wrench", "sensors", where=f"run '{self.name}'")
        named = {n: self._checked(NAMED_WRENCH + n, w, 6) for n, w in self.wrenches.items()}
        object.__setattr__(self, "wrenches", named)
        touching = {n: self._checked(NAMED_CONTACT + n, np.reshape(c, (-1, 1)), 1) for n, c in self.contacts.items()}
        for foot, share in touching.items():
            if np.any((share < 0.0) | (share > 1.0)):
                raise InvalidValue(
                    f"the contact of '{foot}' must be between 0 and 1", "contact", where=f"run '{self.name}'"
                )
        object.__setattr__(self, "contacts", {n: c[:, 0] for n, c in touching.items()})
        object.__setattr__(self, "sensors", {n: self.sensors.get(n, WrenchSensor(n)) for n in named})
        if self.base is not None:
            object.__setattr__(self, "base", mended_poses(self.base, f"run '{self.name}'"))
        if not np.all(np.isfinite(t)):
            raise NotFinite(
                f"the time is not a finite number at row {np.argmin(np.isfinite(t))}", where=f"run '{self.name}'"
            )

    def _checked(self, signal: str, value: Array, width: int) -> Array:
        """A signal as a contiguous array (N, width) of finite numbers."""
        array = np.ascontiguousarray(value, dtype=float)
        if array.ndim != 2 or len(array) != self.t.size:
            raise InvalidShape(
                f"{signal} has shape {array.shape}, expected {self.t.size} rows as the time has",
                where=f"run '{self.name}'",
            )
        if array.shape[1] != width:
            raise InvalidShape(f"{signal} has {array.shape[1]} columns, expected {width}", where=f"run '{self.name}'")
        absent = np.isnan(array).all(axis=0) if signal == "link_q" else np.zeros(width, dtype=bool)
        bad = np.argwhere(~np.isfinite(array) & ~absent)
        if len(bad):
            raise NotFinite(
                f"{signal} is not a finite number at row {bad[0][0]}, column {bad[0][1]}", where=f"run '{self.name}'"
            )
        return array

    def __len__(self) -> int:
        return self.t.size

    @property
    def step(self) -> float:
        """Median time between samples in s."""
        return float(np.median(np.diff(self.t)))

    def rows(self, start: int, stop: int) -> Run:
        """Part of the run.

        Parameters
        ----------
        start, stop : int
            First row, counted from 0, and the row after the last; negative numbers count from the end.

        Returns
        -------
        Run
            The samples in between, under the same name.
        """
        cut = {s: getattr(self, s)[start:stop] for s in ("t", *SIGNALS) if getattr(self, s) is not None}
        wrenches = {n: w[start:stop] for n, w in self.wrenches.items()}
        return replace(self, **cut, wrenches=wrenches, contacts={n: c[start:stop] for n, c in self.contacts.items()})


def column_names(signal: str, joints: Sequence[str]) -> list[str]:
    """Names of the columns of a signal in the files that `Recording.to_csv` writes."""
    if signal.startswith(NAMED_CONTACT):
        return [signal]
    kind = "wrench" if signal.startswith(NAMED_WRENCH) else signal
    return [f"{signal}_{x}" for x in PARTS.get(kind, joints)]


def mended_poses(poses: Array, where: str) -> Array:
    """Poses (N, 7) with unit quaternions of continuous sign: a quaternion and its opposite are the same rotation."""
    quaternion = poses[:, 3:]
    length = np.linalg.norm(quaternion, axis=1)
    # Printed with few digits a quaternion is off by a percent; a much shorter one is a gap filled with zeros.
    if length.min(initial=1.0) < 1e-3:
        row = int(np.argmin(length))
        raise InvalidValue(
            f"the quaternion of the base is zero at row {row}, which is not a rotation", "base", where=where
        )
    if np.abs(length - 1.0).max(initial=0.0) > 1e-12:
        quaternion = quaternion / length[:, None]
    flips = np.cumprod(np.where(np.sum(quaternion[1:] * quaternion[:-1], axis=1) < 0, -1.0, 1.0))
    if np.any(flips < 0):
        quaternion = np.concatenate([quaternion[:1], quaternion[1:] * flips[:, None]])
    return np.hstack([poses[:, :3], quaternion])
