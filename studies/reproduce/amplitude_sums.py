"""Designs under the limits of the theses themselves: sums of amplitudes, which bound the motion for any phases."""

from __future__ import annotations

import numpy as np
import scipy
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from dynid.excitation.basis import Narrowed
from dynid.excitation.criteria import make_criterion
from dynid.excitation.excitation import Excitation
from dynid.excitation.limits import MotionLimits
from dynid.excitation.problem import Limit, Problem
from dynid.excitation.search import shrunk
from dynid.parameters.base import base_parameters
from dynid.robot.model import Robot

__all__ = ["AmplitudeSums", "design_within_sums"]

Array = NDArray[np.float64]

# Smooths the square root at zero (rad/s): amplitudes are overestimated, never underestimated.
_SMOOTHING = 1e-3
_CANDIDATES, _REFINED = 60, 3
_MAX_ITERATIONS = 150


class AmplitudeSums(Problem):
    """Limits on |offset| + sum A_l / (l w), on sum A_l and on w sum l A_l, with A_l = hypot(a_l, b_l)."""

    def slacks(self, X: Array) -> list[Limit]:
        offset, _, amplitude = self._amplitudes(X)
        out = []
        for kind, (weight, bound) in self._bounds(amplitude.shape[1]).items():
            used = amplitude @ weight + (np.abs(offset) if kind == "position" else 0.0)
            out.append(Limit(kind, (1.0 - used / bound)[None]))
        return out

    def slack_gradients(self, X: Array, kind: str, sample: NDArray[np.intp], column: NDArray[np.intp]) -> Array:
        offset, waves, amplitude = self._amplitudes(X)
        weight, bound = self._bounds(amplitude.shape[1])[kind]
        first = np.sign(offset)[:, None] if kind == "position" else np.zeros((len(X), 1))
        slope = np.hstack([first, np.tile(weight, 2) * waves / np.tile(amplitude, 2)]) @ self._series.directions
        out = np.zeros((len(column), *X.shape))
        out[np.arange(len(column)), column] = -(slope / bound[:, None])[column]
        return out

    @property
    def _series(self) -> Narrowed:
        assert isinstance(self.basis, Narrowed)
        return self.basis

    def _amplitudes(self, X: Array) -> tuple[Array, Array, Array]:
        """Offset (n,), a and b (n, 2 L), and amplitudes (n, L)."""
        series = X @ self._series.directions.T
        waves = series[:, 1:]
        half = waves.shape[1] // 2
        return series[:, 0], waves, np.sqrt(waves[:, :half] ** 2 + waves[:, half:] ** 2 + _SMOOTHING**2)

    def _bounds(self, harmonics: int) -> dict[str, tuple[Array, Array]]:
        """Weight per amplitude (L,) and limit (n,), per kind of limit."""
        lw = np.asarray(2 * np.pi / self.basis.duration * np.arange(1, harmonics + 1), dtype=float)
        lim = self.limits
        out: dict[str, tuple[Array, Array]] = {
            "position": (1.0 / lw, np.minimum(lim.upper, -lim.lower)),
            "velocity": (np.ones(harmonics), lim.velocity),
        }
        if np.any(np.isfinite(lim.acceleration)):
            out["acceleration"] = (lw, lim.acceleration)
        return out


def design_within_sums(robot: Robot, basis: Narrowed, limits: MotionLimits, seed: int = 0) -> tuple[Excitation, float]:
    """The motion of least condition number from rest at zero with bounded sums of amplitudes, and its slack."""
    goal = make_criterion(base_parameters(robot, channels="torque"), "cond")
    samples = max(100, 10 * basis.size)
    problem = AmplitudeSums(basis, goal, limits, samples, start=np.zeros(robot.n))
    rng = np.random.default_rng(seed)
    with threadpool_limits(1, "blas"):
        drawn = [shrunk(problem, problem.unit * rng.normal(size=problem.unit.shape), 0.02) for _ in range(_CANDIDATES)]
        starts = sorted((X for X in drawn if X is not None), key=problem.value)[:_REFINED]
        best = min((_local_optimum(problem, X) for X in starts), key=problem.value)
    return Excitation(robot, basis, best, limits, goal, samples=samples), problem.worst(best)


def _local_optimum(problem: AmplitudeSums, X: Array) -> Array:
    """Optimum from X by SLSQP, shrunk into the limits if it ends outside.

    `refine` keeps every iterate within the limits, which is slow for these curved ones; SLSQP may leave them meanwhile.
    """
    free = problem.unit > 0
    unit = problem.unit[free]
    columns = np.arange(len(X))

    def there(step: Array) -> Array:
        out = X.copy()
        out[free] += unit * step
        return out

    def objective(step: Array) -> tuple[float, Array]:
        value, slope = problem.gradient(there(step))
        return (value if np.isfinite(value) else 1e10), slope[free] * unit

    def slack(step: Array) -> Array:
        return np.concatenate([limit.slack[0] for limit in problem.slacks(there(step))])

    def slopes(step: Array) -> Array:
        Z = there(step)
        kinds = [limit.kind for limit in problem.slacks(Z)]
        rows = [problem.slack_gradients(Z, kind, 0 * columns, columns)[:, free] * unit for kind in kinds]
        return np.vstack(rows)

    found = scipy.optimize.minimize(
        objective,
        np.zeros(len(unit)),
        jac=True,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": slack, "jac": slopes}],
        options={"maxiter": _MAX_ITERATIONS, "ftol": 1e-5},
    )
    kept = shrunk(problem, there(found.x))
    return X if kept is None or problem.value(kept) > problem.value(X) else kept
