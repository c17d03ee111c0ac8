"""Signs and zeros of logged joints, from how far gravity pulls them away from their commands.

A position servo holds a weight with an error: kp times the command minus the position is the torque. Where a logged
joint turns in the other direction than that of the model, or has another zero, gravity pulls it to the wrong side or
too far. A joint that gravity does not load, such as one about the vertical, tells nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from dynid.actuators.logs import Log, read_logs
from dynid.dynamics.functions import gravity_torque
from dynid.errors import InvalidValue, NotApplicable, NotIdentifiable
from dynid.recording.recording import Recording
from dynid.results import Result, Table, about, framed
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot
from dynid.signals.autocorrelation import independent_rows

__all__ = ["JointSigns", "SignResult", "check_signs"]

Array = NDArray[np.float64]

# Difference of the log-likelihoods of both signs from which a sign is certain: odds of 400 to 1.
_EVIDENCE = 6.0
# A zero is shown if the log reduces its standard deviation below this share of what was assumed.
_SHOWN = 0.7
_ROWS = 3000
_STEPS = 30
_DIFFERENCE = 1e-5  # rad or m, for derivatives of the gravity torque
# A joint that moves by fewer steps of its encoder than this, up or down, is held by stiction, which hides its load.
_MOVED = 10
_SMOOTH = 0.1  # share of the usual velocity below which dry friction has no direction


class SignResult(StrEnum):
    """What the log says about the sign of a joint."""

    SAME = "as the model"
    REVERSED = "reversed"
    UNKNOWN = "cannot tell"


@dataclass(frozen=True, eq=False)
class JointSigns(Result):
    """Signs and zeros: the position of the model is sign times the logged one plus the zero."""

    tables = (
        Table(
            "joint signs",
            "n",
            framed(
                joint="joints",
                result=lambda s: [str(x) for x in s.results],
                sign="signs",
                evidence="evidence",
                zero="zeros",
                zero_std="zeros_std",
            ),
        ),
    )

    joints: tuple[str, ...] = field(metadata=about("Joints."))
    results: tuple[SignResult, ...] = field(metadata=about("Results."))
    signs: NDArray[np.int64] = field(
        metadata=about("1 or -1, the more likely one; 1 for a joint whose sign makes no difference.", size=("n",))
    )
    evidence: Array = field(
        metadata=about(
            "Log-likelihood of this sign minus that of the other one, with everything else fitted again.", size=("n",)
        )
    )
    zeros: Array = field(
        metadata=about(
            "Zeros (rad or m) and their standard deviations; infinite where the log does not show the zero.",
            size=("n",),
        )
    )
    zeros_std: Array = field(
        metadata=about(
            "Zeros (rad or m) and their standard deviations; infinite where the log does not show the zero.",
            size=("n",),
        )
    )
    gain: float = field(
        metadata=about("Factor of the proportional gains of the law that fits the weight of the model.")
    )
    gain_std: float = field(
        metadata=about("Factor of the proportional gains of the law that fits the weight of the model.")
    )
    rows: int = field(metadata=about("Rows that were used."))

    def table(self) -> str:
        """Signs and zeros as text."""
        width = max(len(x) for x in self.joints)
        lines = []
        for name, result, zero, std in zip(self.joints, self.results, self.zeros, self.zeros_std, strict=True):
            shown = f"zero {zero:+.3f} +- {std:.2g}" if np.isfinite(std) else "zero not shown by the log"
            lines.append(f"{name:<{width}}  sign {result:<12}  {shown}")
        return "\n".join(lines)


def check_signs(robot: Robot, law: ActuatorLaw, recording: Recording, *, zero_std: float = 0.2) -> JointSigns:
    """Test the sign and estimate the zero of every joint of a log against the model.

    The motion is slow, in both directions of every joint: at rest, stiction hides a part of the load. A mirrored arm
    hangs as the arm itself does: reversed signs with zeros that are half a turn away fit as well. What decides is that
    the zeros of the log are roughly those of the model.

    Parameters
    ----------
    robot : Robot
        With its masses.
    law : ActuatorLaw
        Proportional gains; a common factor of them is estimated.
    recording : Recording
        Positions and commanded positions.
    zero_std : float, optional
        Standard deviation (rad or m) of the zeros before the log is seen.

    Returns
    -------
    JointSigns

    Raises
    ------
    DataError
        If commands are missing, a gain is zero, or the model has no weight.
    """
    if not (np.isfinite(zero_std) and zero_std > 0):
        raise InvalidValue(f"zero_std is a positive number, got {zero_std:g}", "zero_std")
    if np.any(law.kp == 0):
        joint = law.joints[int(np.argmin(law.kp))]
        raise NotApplicable(f"joint '{joint}' has no proportional gain: it cannot hold a weight")
    robot = robot.with_base("fixed")
    problem = _Deflections(robot, law, read_logs(robot, law, recording), zero_std)
    if not problem.loaded.any():
        raise NotIdentifiable(f"gravity does not load any joint of robot '{robot.name}' in this log")
    return problem.solve()


@dataclass(frozen=True, eq=False)
class _Fit:
    signs: NDArray[np.int64]
    zeros: Array
    gain: float  # logarithm of the torque over the weight of the model
    residual: Array
    slopes: Array
    likelihood: float


class _Deflections:
    """Position errors of a log as weight over stiffness, without what friction, velocity and acceleration explain."""

    def __init__(self, robot: Robot, law: ActuatorLaw, logs: Sequence[Log], zero_std: float) -> None:
        self.robot, self.law, self.zero_std = robot, law, zero_std
        stride = max(1, sum(len(x) for x in logs) // _ROWS)
        self.q = np.concatenate([x.q[::stride] for x in logs])
        self.error = np.concatenate([_error(x)[::stride] for x in logs])
        v, a = (np.concatenate([getattr(x, name)[::stride] for x in logs]) for name in ("v", "a"))
        usual = np.sqrt(np.mean(v**2, axis=0))
        direction = v / np.hypot(v, np.where(usual > 0, _SMOOTH * usual, 1.0))
        self.bases = [_basis(np.column_stack([direction[:, j], v[:, j], a[:, j]])) for j in range(law.n)]
        self.error = self._rest(self.error)
        self.moved = np.array([_steps(np.concatenate([x.measured[:, j] for x in logs])) for j in range(law.n)]) > _MOVED
        # Rows that count, per joint; known after a first fit.
        self.independent = np.where(self.moved, float(len(self.q)), 0.0)
        weight, slopes = self._weight(np.ones(law.n, np.int64), np.zeros(law.n))
        largest = np.abs(weight).max()
        self.loaded = np.abs(slopes).max(axis=(0, 1)) > 1e-6 * largest if largest > 0 else np.zeros(law.n, bool)

    def solve(self) -> JointSigns:
        """The likeliest signs, and the evidence of each."""
        n = self.law.n
        best = self._fit(np.ones(n, np.int64))
        self.independent = np.where(self.moved, [independent_rows(x) for x in best.residual.T], 0.0)
        tried: dict[tuple[int, ...], _Fit] = {}

        def at(signs: NDArray[np.int64]) -> _Fit:
            key = tuple(signs.tolist())
            if key not in tried:
                tried[key] = self._fit(signs)
            return tried[key]

        best, improved = at(np.ones(n, np.int64)), True
        free = np.flatnonzero(self.loaded).tolist()
        while improved:
            start, improved = best, False
            for flipped in [(i,) for i in free] + list(combinations(free, 2)):
                signs = start.signs.copy()
                signs[list(flipped)] *= -1
                trial = at(signs)
                if trial.likelihood > best.likelihood:
                    best, improved = trial, True
        evidence = np.zeros(n)
        for i in free:
            evidence[i] = best.likelihood - max(x.likelihood for x in tried.values() if x.signs[i] != best.signs[i])
        covariance = np.linalg.inv(self._information(best))
        std = np.sqrt(np.diag(covariance))
        zeros_std = np.where(std[:n] < _SHOWN * self.zero_std, std[:n], np.inf)
        sure = {1: SignResult.SAME, -1: SignResult.REVERSED}
        gain = float(np.exp(-best.gain))
        return JointSigns(
            joints=self.law.joints,
            results=tuple(
                sure[int(s)] if e > _EVIDENCE else SignResult.UNKNOWN for s, e in zip(best.signs, evidence, strict=True)
            ),
            signs=best.signs,
            evidence=evidence,
            zeros=np.where(np.isfinite(zeros_std), best.zeros, 0.0),
            zeros_std=zeros_std,
            gain=gain,
            gain_std=gain * float(std[n]),
            rows=len(self.q),
        )

    def _weight(self, signs: NDArray[np.int64], zeros: Array) -> tuple[Array, Array]:
        """Deflection (K, n) by the weight of the model with the gains of the law, and its slopes (K, n, n)."""
        q = signs * self.q + zeros
        scale = signs / self.law.kp
        slopes = np.empty((*q.shape, len(zeros)))
        for j, step in enumerate(_DIFFERENCE * np.eye(len(zeros))):
            change = gravity_torque(self.robot, q + step) - gravity_torque(self.robot, q - step)
            slopes[..., j] = self._rest(scale * change) / (2 * _DIFFERENCE)
        return self._rest(scale * gravity_torque(self.robot, q)), slopes

    def _rest(self, x: Array) -> Array:
        """What friction, velocity and acceleration of its own joint do not explain."""
        return np.column_stack([x[:, j] - b @ (b.T @ x[:, j]) for j, b in enumerate(self.bases)])

    def _fit(self, signs: NDArray[np.int64]) -> _Fit:
        """Zeros and gain for these signs, by Gauss-Newton steps that reweight the joints."""
        n = self.law.n
        zeros = np.zeros(n)
        weight, _ = self._weight(signs, zeros)
        gain = np.log(max(float(np.sum(weight * self.error)) / float(np.sum(weight**2)), 1e-3))
        point = self._point(signs, zeros, gain)
        damping = 1e-3
        for _ in range(_STEPS):
            information = self._information(point)
            scale = self._scale(point)
            gradient = np.einsum("kj,kjc->c", point.residual * scale, point.slopes)
            gradient[:n] -= point.zeros / self.zero_std**2
            change = np.linalg.solve(information + damping * np.diag(np.diag(information)), gradient)
            trial = self._point(signs, point.zeros + change[:n], point.gain + float(np.clip(change[n], -1.0, 1.0)))
            if trial.likelihood > point.likelihood:
                gained, point, damping = trial.likelihood - point.likelihood, trial, 0.2 * damping
                if gained < 1e-4:
                    break
            else:
                damping *= 10.0
                if damping > 1e6:
                    break
        return point

    def _point(self, signs: NDArray[np.int64], zeros: Array, gain: float) -> _Fit:
        weight, slopes = self._weight(signs, zeros)
        weight, slopes = np.exp(gain) * weight, np.exp(gain) * slopes
        residual = self.error - weight
        power = np.maximum(np.mean(residual**2, axis=0), 1e-12)
        likelihood = -0.5 * float(self.independent @ np.log(power) + np.sum((zeros / self.zero_std) ** 2))
        return _Fit(signs, zeros, gain, residual, np.concatenate([slopes, weight[..., None]], axis=2), likelihood)

    def _scale(self, point: _Fit) -> Array:
        """Weight of a row of each joint: independent rows over all rows, over the variance of the residual."""
        return self.independent / len(self.q) / np.maximum(np.mean(point.residual**2, axis=0), 1e-12)

    def _information(self, point: _Fit) -> Array:
        """Inverse covariance (n + 1, n + 1) of zeros and logarithm of the gain."""
        n = self.law.n
        out = np.einsum("kjc,j,kjd->cd", point.slopes, self._scale(point), point.slopes)
        out[:n, :n] += np.eye(n) / self.zero_std**2
        out[n, n] += 1e-6  # a gain that no joint shows stays where it is
        return np.asarray(out)


def _error(log: Log) -> Array:
    """Commanded minus measured positions."""
    assert log.commands.position is not None  # the law has gains
    return np.asarray(log.commands.position - log.measured)


def _steps(x: Array) -> float:
    """Travel of a measured position upwards and downwards, the lesser of both, in steps of its encoder."""
    steps = np.abs(np.diff(x))
    up, down = (np.max(y - np.minimum.accumulate(y)) for y in (x, -x))
    return float(min(up, down) / steps[steps > 1e-9].min(initial=np.inf))


def _basis(columns: Array) -> Array:
    """Orthonormal basis of columns, of which some may be zero."""
    u, s, _ = np.linalg.svd(columns, full_matrices=False)
    return np.asarray(u[:, s > 1e-9 * max(s.max(), 1e-30)])
