"""Geometry and dynamics in one estimate: measurements of links and torques of a recording.

Torques depend on where the joints are: gravity sees zeros of encoders, lengths of links and the tilt of axes, that of
the base too. Geometry depends on the bodies: they bend the joints, which moves the links of the recording as well. With
torque rows weighted by their independent information, and D the derivative of the torques in the unknowns x of joints,

    minimise  |y - W beta - D (x - x_k)|^2  +  (x - x_g)' C_g^-1 (x - x_g)

over x and beta, where x_g and C_g come from the measurements with the bodies of the last step; D and the robot are
renewed until x stays. Both have one covariance, which the solution of the linear problem gives.

Source: Khalil and Dombre, Modeling, Identification and Control of Robots (2002), chapters 11 and 12, for the two
problems; the rest is a Gauss-Newton step on their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause_rows import CauseRows, cause_rows
from dynid.dynamics.functions import inverse_dynamics
from dynid.geometry.calibrate import calibrate_geometry
from dynid.geometry.corrected import corrected_robot
from dynid.geometry.estimate import GeometryEstimate
from dynid.geometry.kinematics import ALONG
from dynid.geometry.measurements.measurement import Measurement
from dynid.geometry.real import HELD
from dynid.geometry.unknowns import GeometryModel, Unknown
from dynid.identification.estimate import Estimate
from dynid.identification.observing import observe
from dynid.identification.pipeline import identify
from dynid.markup import HtmlSummary
from dynid.progress import Progress, ProgressCallback
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

__all__ = ["WholeEstimate", "identify_whole"]

Array = NDArray[np.float64]

# Step of the central differences (m and rad): torques are nearly quadratic in it.
_STEP = 1e-5
# Steps at most, and the change of all unknowns, in their standard deviations, at which they end.
_STEPS, _STILL = 6, 0.05


@dataclass(frozen=True, eq=False)
class WholeEstimate(HtmlSummary):
    """Geometry and dynamics of one robot, with one covariance.

    Attributes
    ----------
    geometry : GeometryEstimate
        Where the joints are, by measurements and torques.
    dynamics : Estimate
        Bodies and drives of the robot with this geometry.
    robot : Robot
        The robot with both: corrected placements, identified bodies and drives.
    covariance : ndarray, shape (K + b, K + b)
        Of the unknowns of the joints and of the base parameters.
    gained : ndarray, shape (K,)
        Share of the variance of each unknown of the joints that the torques take away.
    """

    geometry: GeometryEstimate
    dynamics: Estimate
    robot: Robot
    covariance: Array
    gained: Array

    def summary(self) -> str:
        """Both estimates as text, and what torques say about the geometry."""
        unknowns = self.geometry.unknowns[: len(self.gained)]
        best = [k for k in np.argsort(-self.gained, kind="stable")[:3] if self.gained[k] > 0.01]
        told = ", ".join(f"{unknowns[k].name} ({100 * self.gained[k]:.0f} %)" for k in best)
        line = f"torques take away of the variance: {told}" if told else "torques say nothing new about the geometry"
        return "\n".join([self.geometry.summary().rstrip(), line, self.dynamics.summary()])


def identify_whole(
    robot: Robot,
    measurements: Measurement | Sequence[Measurement],
    recording: Recording,
    model: GeometryModel | None = None,
    *,
    method: str = "auto",
    signals: Signals | None = None,
    progress: ProgressCallback | None = None,
    **keywords: Any,
) -> WholeEstimate:
    """Identify geometry and dynamics of a robot together.

    Parameters
    ----------
    robot : Robot
        The robot of the file, with the drive terms that are to be identified.
    measurements : Measurement or sequence of Measurement
        What was measured of its links.
    recording : Recording
        Measured motion and torques.
    model : GeometryModel, optional
        What may differ from the file.
    method : str
        Method that identifies the dynamics.
    signals : Signals, optional
        How the runs are filtered and differentiated.
    progress : callable, optional
        Called with a `Progress` after each step.
    **keywords
        Further arguments of `dynid.identify`.

    Returns
    -------
    WholeEstimate

    Raises
    ------
    NotApplicable
        For robots with closed loops, and torques other than those of joints.
    """
    geometry = calibrate_geometry(robot, measurements, model, held_out=False)
    count = geometry.joint_count
    unknowns, x, moved = geometry.unknowns[:count], geometry.values[:count], recording
    for step in range(_STEPS):
        found = identify(corrected_robot(robot, unknowns, x), moved, method, signals=signals, **keywords)
        bodies = replace(found.identified_robot, joints=robot.joints)
        geometry = calibrate_geometry(robot, measurements, model, bodies=bodies, held_out=False)
        new, covariance = _joined(geometry, found, moved, bodies, x)
        change = np.abs(new - x) / np.sqrt(np.diag(covariance)[:count])
        x, moved = new, _as_moved(recording, geometry, new)
        if progress is not None:
            progress(Progress(f"step {step + 1}: largest change {change.max():.2g} standard deviations"))
        if change.max() < _STILL:
            break
    found = identify(corrected_robot(robot, unknowns, x), moved, method, signals=signals, **keywords)
    measured = np.diag(geometry.covariance)[:count]
    return WholeEstimate(
        _with_joints(geometry, x, covariance[:count, :count]),
        found,
        found.identified_robot,
        covariance,
        1 - np.diag(covariance)[:count] / measured,
    )


def _as_moved(recording: Recording, geometry: GeometryEstimate, x: Array) -> Recording:
    """The recording with positions as the links had them: bent by gravity, with the eccentricity of the encoders."""
    place = geometry.geometry
    robot = place.robot
    number = {name: k for k, name in enumerate(robot.coordinates)}
    runs = []
    for run in recording.runs:
        postures, q = place.postures(run.q, geometry.values), run.q.copy()
        for u, value, column in zip(geometry.unknowns, x, place.columns, strict=False):
            if column.symbol != "zero" and column.form == ALONG and u.owner in number:
                q[:, number[u.owner]] += value * postures.slope(column.joint, column.symbol)
        runs.append(replace(run, q=q))
    return replace(recording, runs=tuple(runs))


def _with_joints(geometry: GeometryEstimate, x: Array, covariance: Array) -> GeometryEstimate:
    """The estimate with other values of the joints' unknowns; those of the sensors follow as these move them."""
    count, C = len(x), geometry.covariance
    follow = C[count:, :count] @ np.linalg.pinv(C[:count, :count], hermitian=True)
    values = np.concatenate([x, geometry.values[count:] + follow @ (x - geometry.values[:count])])
    own = C[count:, count:] + follow @ (covariance - C[:count, :count]) @ follow.T
    across = follow @ covariance
    return replace(geometry, values=values, covariance=np.block([[covariance, across.T], [across, own]]))


def _joined(
    geometry: GeometryEstimate, found: Estimate, recording: Recording, bodies: Robot, x: Array
) -> tuple[Array, Array]:
    """Unknowns of the joints after one step, and the covariance of them and of the base parameters."""
    count, b = len(x), found.base.count
    rows = cause_rows([observe(found.robot, recording, base=found.base, signals=found.signals)])
    slopes = _slopes(rows, bodies, geometry.unknowns[:count], x)
    precision = np.linalg.pinv(geometry.covariance[:count, :count], hermitian=True)
    A, right = np.zeros((count + b, count + b)), np.zeros(count + b)
    A[:count, :count] = precision
    right[:count] = precision @ (geometry.values[:count] - x)
    shares = np.array(found.independent_rows or found.rows) / np.maximum([len(y) for y in rows.y], 1)
    for W, y, D, noise, share in zip(rows.W, rows.y, slopes, found.noise, shares, strict=True):
        J = np.hstack([D, W]) * np.sqrt(min(share, 1.0)) / noise
        r = (y - W @ found.beta) * np.sqrt(min(share, 1.0)) / noise
        A += J.T @ J
        right += J.T @ r
    scale = 1 / np.sqrt(np.maximum(np.diag(A), 1e-300))
    covariance = np.linalg.pinv(A * np.outer(scale, scale), hermitian=True) * np.outer(scale, scale)
    return x + (covariance @ right)[:count], covariance


def _slopes(rows: CauseRows, bodies: Robot, unknowns: Sequence[Unknown], x: Array) -> list[Array]:
    """Derivatives (m, K) of the torque of each channel in the unknowns that placements hold, zero for the others."""
    moving = [k for k, u in enumerate(unknowns) if u.kind in HELD]
    robots = [
        [corrected_robot(bodies, unknowns, x + s * _STEP * (np.arange(len(x)) == k)) for s in (1, -1)] for k in moving
    ]

    def columns(q: Array, v: Array, a: Array) -> Array:
        out = np.zeros((*q.shape, len(unknowns)))
        for k, (plus, minus) in zip(moving, robots, strict=True):
            out[..., k] = (inverse_dynamics(plus, q, v, a) - inverse_dynamics(minus, q, v, a)) / (2 * _STEP)
        return out

    return rows.sampled(columns)
