"""Series-elastic joints joint by joint: the torque of a spring follows from its motor, whatever moves the link.

    theta - q + d/k (theta - q)' = (torque - Ia theta'' - motor friction) / k + offset

The equation holds for a robot with a moving base, with unknown contact forces, and without a model of its bodies. With
the torques of the springs the link side is a rigid robot, which `identify` and `identify_legs` know.

Source: Pratt and Williamson, Series Elastic Actuators (1995), for the torque of a spring; the regression is our own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import MissingData, NotApplicable, NotIdentifiable
from dynid.flexible.rows import FlexibleModel, TwoSided, link_encoders, padded_segments, two_sided
from dynid.identification.jackknife import block_jackknife
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.filters import derivative
from dynid.signals.settings import Signals, prepare

__all__ = ["SeriesSprings", "identify_springs"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SeriesSprings:
    """Springs and motors of series-elastic joints, on the joint side.

    Attributes
    ----------
    robot : Robot
        The robot.
    joints : tuple of str
        The joints with link encoders.
    stiffness, stiffness_std : ndarray, shape (joint,)
        Stiffness in N m/rad or N/m, and its standard deviation.
    damping, damping_std : ndarray, shape (joint,)
        Damping in N m s/rad or N s/m, and its standard deviation.
    motors, motor_std : mapping of str to float
        Rotor inertia and friction of the motors by name, and their standard deviations.
    signals : Signals
        How the runs were filtered.
    """

    robot: Robot
    joints: tuple[str, ...]
    stiffness: Array
    stiffness_std: Array
    damping: Array
    damping_std: Array
    motors: Mapping[str, float]
    motor_std: Mapping[str, float]
    signals: Signals = field(repr=False)

    @property
    def links(self) -> Robot:
        """The robot of the link side: without friction and rotor inertia of the motors behind springs."""
        return replace(self.robot, drives=_model(self.robot, self.joints).links.drives)

    def link_recording(self, recording: Recording) -> Recording:
        """The recording that a rigid robot `links` would give: positions of links, torques of springs.

        Parameters
        ----------
        recording : Recording
            Runs with motor positions, torques and link positions.

        Returns
        -------
        Recording
            Errors of the motor parameters are not part of what is identified from it.
        """
        model = _model(self.robot, self.joints)
        values = np.array([self.motors[name] for name in model.motor_names])
        return replace(recording, runs=tuple(self._link_run(model, values, run) for run in recording.runs))

    def _link_run(self, model: FlexibleModel, values: Array, run: Run) -> Run:
        if run.link_q is None or run.torque is None:
            raise MissingData(f"run '{run.name}' needs torques and link positions")
        motion = prepare(
            Run(run.t, run.q, name=run.name),
            replace(self.signals, trim=0.0, measured_velocity=False, measured_acceleration=False),
        )
        if len(motion.t) != len(run.t):
            raise NotApplicable(f"run '{run.name}' has an uneven clock: resample it first")
        torque = run.torque - model.motor_rows(motion.q, motion.v, motion.a) @ values
        q = np.where(np.isnan(run.link_q), run.q, run.link_q)
        return replace(run, q=q, v=None, a=None, torque=torque, link_q=None)


def identify_springs(
    robot: Robot, recording: Recording, *, joints: Sequence[str] | None = None, signals: Signals | None = None
) -> SeriesSprings:
    """Identify springs and motors of series-elastic joints without a model of what they move.

    Each joint is fitted by itself: its deflection is linear in compliance and motor parameters. Contact forces and the
    motion of a base do not occur. Deflections must be much larger than the steps of the encoders, as those of
    series-elastic actuators are; for gears use `identify_flexible`.

    Parameters
    ----------
    robot : Robot
        The robot, with a fixed or floating base; its rotor inertia and friction are those of the motors.
    recording : Recording
        Runs with torques, motor positions (q) and link positions (link_q).
    joints : sequence of str, optional
        The elastic joints, by default those with link encoders.
    signals : Signals, optional
        How runs are filtered.

    Returns
    -------
    SeriesSprings

    Raises
    ------
    DataError
        If link encoders are missing, constant or identical to those of the motors, or a spring is not seen.
    """
    settings = signals or Signals()
    names = link_encoders(robot, recording, joints)
    model = _model(robot, names)
    motions = [two_sided(robot, run, names, settings) for run in recording.runs]
    owner = {p.name: p.owner for p in model.motors.layout}
    found = [_fit(model, motions, settings, name, [owner[m] == name for m in model.motor_names]) for name in names]
    springs = np.array([spring for spring, _ in found])
    motors = {name: pair for _, own in found for name, pair in own.items()}
    return SeriesSprings(
        robot=robot,
        joints=names,
        stiffness=springs[:, 0],
        stiffness_std=springs[:, 1],
        damping=springs[:, 2],
        damping_std=springs[:, 3],
        motors={name: pair[0] for name, pair in motors.items()},
        motor_std={name: pair[1] for name, pair in motors.items()},
        signals=settings,
    )


def _model(robot: Robot, joints: Sequence[str]) -> FlexibleModel:
    return FlexibleModel(robot.with_base("fixed"), tuple(joints), "none")


def _fit(
    model: FlexibleModel, motions: Sequence[TwoSided], signals: Signals, joint: str, own: Sequence[bool]
) -> tuple[tuple[float, float, float, float], dict[str, tuple[float, float]]]:
    """Stiffness and damping of a joint with their standard deviations, and the same of its motor parameters by name.

    The unknowns are c = 1/k, c times the motor parameters, T = d/k, and an offset per run.
    """
    i = model.robot.coordinates.index(joint)
    names = [m for m, mine in zip(model.motor_names, own, strict=True) if mine]
    blocks, first = [], 0
    for run, motion in enumerate(motions):
        offsets = np.eye(len(motions))[run]
        for part in padded_segments(motion.motors):
            motors, at = motion.motors, part.whole
            assert motors.torque is not None
            Z = model.motor_rows(motors.q[at], motors.v[at], motors.a[at])[:, i, own]
            bent = motion.deflection[at, i]
            rate = derivative(bent[:, None], motors.rate, "central5")
            rows = part.thinned(np.column_stack([motors.torque[at, i], -Z, -rate, bent, motors.v[at, i]]))
            kept = np.abs(rows[:, -1]) >= signals.velocity_limits(motors.v)[i]
            wide = np.column_stack([rows[:, :-2], np.tile(offsets, (len(rows), 1)), rows[:, -2]])
            blocks.append((wide[kept], first + part.start + part.step * np.flatnonzero(kept)))
        first += len(motion.motors.t)
    stacked = np.vstack([wide for wide, _ in blocks])
    W, y = stacked[:, :-1], stacked[:, -1]
    scale = np.linalg.norm(W, axis=0)
    scale = np.where(scale > 0, scale, 1.0)
    x, _, rank, _ = np.linalg.lstsq(W / scale, y, rcond=1e-10)
    noise = float(np.sqrt(np.mean((y - W / scale @ x) ** 2))) + 1e-300
    inverse = np.linalg.pinv(W / scale, rcond=1e-10) / scale[:, None]
    x = x / scale

    def stream() -> Iterator[tuple[int, Array, Array, NDArray[np.int64]]]:
        for wide, index in blocks:
            yield 0, wide[:, :-1] / noise, wide / noise, index

    ratio = block_jackknife(stream, x, 1)
    if rank < W.shape[1] or ratio is None or not x[0] > 0:
        raise NotIdentifiable(f"the motion does not show the spring of '{joint}': load it and move it faster")
    covariance = np.asarray(noise**2 * (inverse @ inverse.T) * np.outer(ratio.ratio, ratio.ratio), dtype=float)

    def over_compliance(k: int) -> tuple[float, float]:
        """x[k] / c with its standard deviation."""
        slope = np.zeros(len(x))
        slope[k], slope[0] = 1 / x[0], -x[k] / x[0] ** 2
        return float(x[k] / x[0]), float(np.sqrt(max(float(slope @ covariance @ slope), 0.0)))

    stiffness = float(1 / x[0]), float(np.sqrt(float(covariance[0, 0])) / x[0] ** 2)
    own_values = {name: over_compliance(k) for k, name in enumerate(names, 1)}
    return (*stiffness, *over_compliance(len(names) + 1)), own_values
