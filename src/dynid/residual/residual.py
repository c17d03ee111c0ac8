"""Residual: a rigid model with what it misses learned on top, and where that may be trusted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import DataError
from dynid.parameters.base import base_parameters
from dynid.residual.blend import Blend
from dynid.residual.features import Features
from dynid.residual.posterior import Posterior
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

if TYPE_CHECKING:
    from pathlib import Path

    from dynid.recording.recording import Recording
    from dynid.residual.comparison import Comparison
    from dynid.residual.predictor import Predictor
    from dynid.residual.rigid_prior import RigidPosterior
    from dynid.residual.rows import TorqueRows
    from dynid.residual.selection import Score

__all__ = ["JointResidual", "Prediction", "Residual"]

Array = NDArray[np.float64]

_CHUNK = 1024


@dataclass(frozen=True, eq=False)
class JointResidual:
    """The learned torque of one joint: `trust` times the posterior's mean, faded, and never beyond `bound` (N m).

    The posterior's variance is taken times `spread`, which made it fit held-out errors.
    """

    posterior: Posterior
    trust: float
    bound: float
    spread: float = 1.0


@dataclass(frozen=True, eq=False)
class Prediction:
    """Torques (N, n): `torque` = `rigid` + `learned`; `deviation` of a measurement about it (1 sigma).

    `share` (N, n) is how much of the learned part was used. `valid` (N,) is false where a query was not finite: the
    torque is then the rigid one alone, with missing speeds and accelerations taken as zero and missing positions as
    the last ones before.
    """

    torque: Array
    rigid: Array
    learned: Array
    deviation: Array
    share: Array
    valid: NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Residual:
    """A robot with identified parameters and a learned torque for each of its joints, None where none helps.

    With `has_rigid` false there is no rigid part (a plain Gaussian process). `home` (n,) stands for a position that is
    missing before any was given. `channels` are the joints whose torques were measured (empty: all), `signals` how they
    were cleaned. `rigid_posterior` is there where rigid parameters were estimated together with the residual. `notes`
    say what was found while fitting, `scores` how the kernels did, by joint.
    """

    robot: Robot
    features: Features
    joints: tuple[JointResidual | None, ...]
    home: Array
    blend: Blend = field(default_factory=Blend)
    has_rigid: bool = True
    channels: tuple[str, ...] = ()
    signals: Signals = field(default_factory=Signals)
    rigid_posterior: RigidPosterior | None = None
    notes: tuple[str, ...] = ()
    scores: Mapping[str, tuple[Score, ...]] = field(default_factory=dict)

    def torques(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Array:
        """Rigid and learned torque (N, n) along a motion; what controllers feed forward."""
        return self.predict(q, v, a).torque

    def predict(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Prediction:
        """Torques of a motion, (N, n) each, with their deviation."""
        motion, valid = mended(self.robot.n, self.home, q, v, a)
        N, n = motion[0].shape
        rigid = inverse_dynamics(self.robot, *motion) if self.has_rigid else np.zeros((N, n))
        learned, share, variance = np.zeros((N, n)), np.zeros((N, n)), np.zeros((N, n))
        W = self._base_rows(motion)
        for rows in _chunks(N):
            x = self.features(*(m[rows] for m in motion))
            for j, joint in self._learned():
                fitted = joint.posterior
                mean, left = fitted.predict(x)
                inside = self.features.inside(x, self.features.edges(fitted.kernel.columns, self.blend.reach))
                share[rows, j] = joint.trust * inside * self.blend(left / fitted.prior_variance)
                learned[rows, j] = np.clip(share[rows, j] * mean, -joint.bound, joint.bound)
                total = left + fitted.noise_variance(fitted.reversal(self.features, x))
                if self.rigid_posterior is not None:
                    total = total + self.rigid_posterior.variance(j, fitted, x, W[j][rows])
                variance[rows, j] = joint.spread * total
        learned[~valid], share[~valid] = 0.0, 0.0
        return Prediction(rigid + learned, rigid, learned, np.sqrt(variance), share, valid)

    def predictor(self, variance: bool = True, rank: int = 100) -> Predictor:
        """The compiled form for control; with `variance` it fades as this one does, from `rank` directions a joint."""
        from dynid.residual.predictor import Predictor

        return Predictor.of(self, variance, rank)

    def evaluate(self, recording: Recording, signals: Signals | None = None) -> Comparison:
        """Torque errors on a recording with and without the learned part, joint by joint."""
        from dynid.residual.comparison import compare

        return compare(self, self.rows(recording, signals))

    def rows(self, recording: Recording, signals: Signals | None = None) -> TorqueRows:
        """What a recording says of the torques, cleaned as the one that was learned from unless `signals` is given."""
        from dynid.residual.rows import RigidPart, TorqueRows

        return TorqueRows.of(RigidPart.of(self.robot, self.channels, self.signals), recording, signals)

    def updated(self, data: Recording | TorqueRows, most: int = 2000) -> Residual:
        """The residual with more data; kernels and hyper-parameters stay. Exact ones keep at most `most` points."""
        from dynid.residual.streaming import updated

        return updated(self, data, most)

    def save(self, path: str | Path) -> None:
        """Write the residual into one .npz file."""
        from dynid.residual.files import save_residual

        save_residual(self, path)

    @staticmethod
    def load(path: str | Path, robot: Robot) -> Residual:
        """Read a residual back; `robot` must be the one it was made for."""
        from dynid.residual.files import load_residual

        return load_residual(path, robot)

    def summary(self) -> str:
        """Kernel, points, trust and bound of every joint, and what was found while fitting."""
        names = self.robot.coordinates
        width = max(map(len, names))
        lines = [f"{'':<{width}}  kernel        points  trust  noise N m  bound N m"]
        for name, joint in zip(names, self.joints, strict=True):
            if joint is None:
                lines.append(f"{name:<{width}}  none")
                continue
            p = joint.posterior
            noise = p.scale * np.exp(p.noise_theta[0])
            start = f"{name:<{width}}  {p.kernel.name:<12}  {p.points:6d}  {joint.trust:5.2f}"
            lines.append(f"{start}  {noise:9.3g}  {joint.bound:9.3g}")
        return "\n".join([*lines, *self.notes])

    def __repr__(self) -> str:
        count = sum(joint is not None for joint in self.joints)
        return f"Residual('{self.robot.name}', {count} of {len(self.joints)} joints learned)"

    def _base_rows(self, motion: Sequence[Array]) -> dict[int, Array]:
        """Base regressor rows (N, b) of every measured joint, none where rigid parameters are certain."""
        if self.rigid_posterior is None:
            return {}
        base = base_parameters(self.robot, channels=self.channels or "torque")
        W = base.regressor(*motion)
        return {self.robot.coordinates.index(c): W[:, k] for k, c in enumerate(base.channels)}

    def _learned(self) -> Iterator[tuple[int, JointResidual]]:
        return ((j, joint) for j, joint in enumerate(self.joints) if joint is not None)


def mended(n: int, home: Array, *given: ArrayLike) -> tuple[list[Array], NDArray[np.bool_]]:
    """q, v, a (N, n) without gaps, and which rows (N,) had none."""
    arrays = [np.atleast_2d(np.array(x, dtype=float)) for x in given]
    shape = (len(arrays[0]), n)
    if any(x.shape != shape for x in arrays):
        raise DataError(f"q, v and a must each be (N, {n}), got {', '.join(str(x.shape) for x in arrays)}")
    finite = [np.isfinite(x) for x in arrays]
    valid = np.all(finite, axis=(0, 2))
    if not valid.all():
        q = np.vstack([home, arrays[0]])
        known = np.vstack([np.ones(n, bool), finite[0]])
        last = np.maximum.accumulate(np.where(known, np.arange(len(q))[:, None], 0), axis=0)
        arrays[0] = np.take_along_axis(q, last, axis=0)[1:]
        arrays[1:] = [np.where(f, x, 0.0) for x, f in zip(arrays[1:], finite[1:], strict=True)]
    return arrays, np.asarray(valid)


def _chunks(samples: int) -> Iterator[slice]:
    return (slice(i, min(i + _CHUNK, samples)) for i in range(0, samples, _CHUNK))
