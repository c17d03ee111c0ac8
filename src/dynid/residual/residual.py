"""Residual: a rigid model with a learned torque per joint, which fades where the data do not support it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.attached import attached
from dynid.dynamics.functions import inverse_dynamics
from dynid.markup import frame_html
from dynid.parameters.base import base_parameters
from dynid.residual.blend import Blend
from dynid.residual.features import Features
from dynid.residual.posterior import Posterior
from dynid.residual.prediction import Prediction, fill_missing
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

if TYPE_CHECKING:
    from pathlib import Path

    import polars as pl
    from matplotlib.axes import Axes

    from dynid.recording.recording import Recording
    from dynid.residual.comparison import Comparison
    from dynid.residual.predictor import Predictor
    from dynid.residual.rigid_prior import RigidPosterior
    from dynid.residual.rows import TorqueRows
    from dynid.residual.selection import Score

__all__ = ["JointResidual", "Residual"]

Array = NDArray[np.float64]

_CHUNK = 1024


@dataclass(frozen=True, eq=False)
class JointResidual:
    """The learned torque of one joint: the faded posterior mean times `trust`, limited to +-`bound` (N m or N).

    The predictive variance is multiplied by `variance_factor`, which fits it to held-out errors.
    """

    posterior: Posterior
    trust: float
    bound: float
    variance_factor: float = 1.0


@dataclass(frozen=True, eq=False)
class Residual:
    """A rigid model and a learned torque per joint, as `fit_residual` returns it.

    Attributes
    ----------
    robot : Robot
        Robot with the identified parameters.
    features : Features
        Inputs of the Gaussian processes.
    joints : tuple of JointResidual or None
        Learned torque of every joint; None where none helps.
    home : array, shape (n,)
        Position that replaces a missing one before any finite position was given.
    blend : Blend
        How the learned torque fades.
    has_rigid : bool
        False for a Gaussian process without a rigid model.
    channels : tuple of str
        Joints whose torques were measured; empty for all.
    signals : Signals
        Signal settings of the training data.
    rigid_posterior : RigidPosterior or None
        Rigid parameters estimated together with the residual (rigid="prior").
    notes : tuple of str
        Remarks of the fit.
    scores : mapping of str to tuple of Score
        Cross-validation of every kernel, by joint.
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
        """Rigid plus learned torque (N, n) along a motion q, v, a (N, n), for feed-forward control."""
        return self.predict(q, v, a).torque

    def predict(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Prediction:
        """Predict torques and their standard deviation along a motion.

        Parameters
        ----------
        q, v, a : array, shape (N, n) or (n,)
            Positions, velocities and accelerations, SI units. Rows may contain NaN.

        Returns
        -------
        Prediction

        Raises
        ------
        DataError
            If a shape is wrong.
        """
        motion, valid = fill_missing(self.robot.n, self.home, q, v, a)
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
                variance[rows, j] = joint.variance_factor * total
        learned[~valid], share[~valid] = 0.0, 0.0
        return Prediction(rigid + learned, rigid, learned, np.sqrt(variance), share, valid)

    def predictor(self, *, variance: bool = True, rank: int = 100, notes: Sequence[str] = ()) -> Predictor:
        """Compile the residual for control rate.

        Parameters
        ----------
        variance : bool
            Whether variances are computed. Without them the learned torque does not fade with its uncertainty.
        rank : int
            Largest rank of the variance of a block. A lower rank is faster and never gives a smaller variance.
        notes : sequence of str
            Lines for the heads of its files, such as the label of the estimate.

        Returns
        -------
        Predictor

        Raises
        ------
        DataError
            If the base is not fixed, or a drive term is a Python function.
        """
        found: Predictor = attached(self, "predictor")(self, variance, rank, notes)
        return found

    def evaluate(self, recording: Recording, *, signals: Signals | None = None) -> Comparison:
        """Torque errors on a recording with and without the learned torque.

        Parameters
        ----------
        recording : Recording
            Runs that the residual was not fitted to.
        signals : Signals, optional
            Signal settings. Default: those of the training data.

        Returns
        -------
        Comparison
        """
        found: Comparison = attached(self, "evaluate")(self, self.rows(recording, signals=signals))
        return found

    def rows(self, recording: Recording, *, signals: Signals | None = None) -> TorqueRows:
        """Rows of a recording, with the signal settings of the training data unless `signals` is given."""
        from dynid.residual.rows import RigidPart, TorqueRows

        return TorqueRows.of(RigidPart.of(self.robot, self.channels, self.signals), recording, signals=signals)

    def updated(self, data: Recording | TorqueRows, *, max_points: int = 2000) -> Residual:
        """Add data at fixed kernels and hyper-parameters.

        Parameters
        ----------
        data : Recording or TorqueRows
            Additional data.
        max_points : int
            Most points of an exact or local block. Sparse residuals keep their inducing points.

        Returns
        -------
        Residual
        """
        found: Residual = attached(self, "updated")(self, data, max_points)
        return found

    def save(self, path: str | Path) -> None:
        """Save the residual to one .npz file."""
        attached(self, "save")(self, path)

    @staticmethod
    def load(path: str | Path, robot: Robot | None = None) -> Residual:
        """Load a residual.

        Parameters
        ----------
        path : str or Path
            File written by `save`.
        robot : Robot, optional
            The robot that the residual was fitted for. The file stores the robot completely except for the Python
            functions of custom drive terms, which are then taken from here.

        Returns
        -------
        Residual

        Raises
        ------
        DataError
            If the file is not a residual, belongs to a robot with other parameters, or has custom drive terms and no
            robot is given.
        """
        found: Residual = attached(Residual, "load")(path, robot)
        return found

    def to_frame(self) -> pl.DataFrame:
        """Kernel, points, trust, noise and bound of every joint as a table.

        Returns
        -------
        polars.DataFrame
            One row per joint: joint, unit, kernel, points, trust, noise and bound; null where nothing was learned.
        """
        import polars as pl

        rows = []
        for name, joint in zip(self.robot.coordinates, self.joints, strict=True):
            learned: tuple[Any, ...] = (None,) * 5
            if joint is not None:
                p = joint.posterior
                learned = (p.kernel.name, p.points, joint.trust, float(p.scale * np.exp(p.noise_theta[0])), joint.bound)
            rows.append((name, self.robot.channel_units[name], *learned))
        words = {
            "joint": str,
            "unit": str,
            "kernel": str,
            "points": int,
            "trust": float,
            "noise": float,
            "bound": float,
        }
        return pl.DataFrame(rows, schema=words, orient="row")

    def plot(
        self,
        recording: Recording,
        *,
        joints: str | Sequence[str] | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> NDArray[Any]:
        """Draw the torque that the rigid model leaves unexplained, and the learned torque with its 95 % interval.

        Parameters
        ----------
        recording : Recording
            Runs with torques, if possible not those that the residual was fitted to.
        joints : str or sequence of str, optional
            Names or patterns of the joints to draw; all by default.
        ax : Axes or sequence of Axes, optional
            Where to draw: as many axes as are returned, or one, whose place is divided. By default a new figure.

        Returns
        -------
        ndarray of Axes, shape (joint,)

        Raises
        ------
        DataError
            If no joint matches, or the recording is of another robot or has no torques.
        DynidError
            If matplotlib is not installed.
        """
        axes: NDArray[Any] = attached(self, "plot")(self, recording, joints, ax)
        return axes

    def _repr_html_(self) -> str:
        return frame_html(repr(self), self.to_frame(), "; ".join(self.notes))

    def summary(self) -> str:
        """A table with kernel, points, trust, noise and bound of every joint, and the notes of the fit."""
        names = self.robot.coordinates
        width = max(map(len, names))
        lines = [f"{'':<{width}}  kernel        points  trust      noise      bound  unit"]
        for name, joint in zip(names, self.joints, strict=True):
            if joint is None:
                lines.append(f"{name:<{width}}  none")
                continue
            p = joint.posterior
            noise = p.scale * np.exp(p.noise_theta[0])
            start = f"{name:<{width}}  {p.kernel.name:<12}  {p.points:6d}  {joint.trust:5.2f}"
            lines.append(f"{start}  {noise:9.3g}  {joint.bound:9.3g}  {self.robot.channel_units[name]}")
        return "\n".join([*lines, *self.notes])

    def __repr__(self) -> str:
        count = sum(joint is not None for joint in self.joints)
        return f"Residual('{self.robot.name}', {count} of {len(self.joints)} joints learned)"

    def _base_rows(self, motion: Sequence[Array]) -> dict[int, Array]:
        """Base regressor rows (N, b) of every measured joint; empty if rigid parameters are certain."""
        if self.rigid_posterior is None:
            return {}
        base = base_parameters(self.robot, channels=self.channels or "torque")
        W = base.regressor(*motion)
        return {self.robot.coordinates.index(c): W[:, k] for k, c in enumerate(base.channels)}

    def _learned(self) -> Iterator[tuple[int, JointResidual]]:
        return ((j, joint) for j, joint in enumerate(self.joints) if joint is not None)


def _chunks(samples: int) -> Iterator[slice]:
    return (slice(i, min(i + _CHUNK, samples)) for i in range(0, samples, _CHUNK))
