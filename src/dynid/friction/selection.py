"""Friction of the joints of a robot: a model selected per joint, saved, validated and put on the robot."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike, NDArray

from dynid.attached import attached
from dynid.errors import InvalidValue, UnknownName
from dynid.friction.fit import fit_friction
from dynid.friction.result import FrictionFit
from dynid.friction.rows import joint_index
from dynid.identification.estimate import Estimate
from dynid.identification.validation_errors import Validation
from dynid.markup import html_table
from dynid.plotting.traces import chosen_joints
from dynid.progress import Progress
from dynid.recording.log_format import LogFormat
from dynid.recording.recording import Recording
from dynid.results import SavedResult, about
from dynid.robot.model import Robot
from dynid.robot.serialize import ROBOT
from dynid.signals.settings import Signals

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

__all__ = ["FrictionSelection", "select_friction"]


@dataclass(frozen=True, eq=False)
class FrictionSelection(SavedResult):
    """Friction of several joints of a robot, one fit per joint."""

    kind = "friction"

    robot: Robot = field(
        metadata=about(
            "The robot that the friction was fitted with; its own friction terms of these joints are not used.",
            codec=ROBOT,
        )
    )
    fits: tuple[FrictionFit, ...] = field(metadata=about("One per joint.", least=1))
    signals: Signals = field(metadata=about("Signal processing of the fits."))
    log_format: LogFormat | None = field(default=None, metadata=about("How the recording was read, if known."))

    def fault(self) -> str:
        """What is wrong with the fields together: joints that the robot does not have."""
        missing = [fit.joint for fit in self.fits if fit.joint not in self.robot.coordinates]
        return f"robot '{self.robot.name}' has no joint '{', '.join(missing)}'" if missing else ""

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of the joints."""
        return tuple(fit.joint for fit in self.fits)

    @property
    def models(self) -> dict[str, str]:
        """Name of the selected model by joint."""
        return {fit.joint: fit.best.name for fit in self.fits}

    def __getitem__(self, joint: str) -> FrictionFit:
        """The fit of a joint by name."""
        for fit in self.fits:
            if fit.joint == joint:
                return fit
        raise UnknownName(f"no friction was fitted to joint '{joint}', there are {', '.join(self.joints)}", "joint")

    def apply(self, robot: Robot | None = None, *, temperature: float | None = None) -> Robot:
        """The robot with the selected friction of every joint as drive terms.

        Parameters
        ----------
        robot : Robot, optional
            By default the robot of the selection.
        temperature : float, optional
            Temperature (deg C), required for temperature-dependent models.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            If the temperature is missing, or drive terms cannot express the load.
        """
        out = self.robot if robot is None else robot
        for fit in self.fits:
            out = fit.apply(out, temperature=temperature)
        return out

    def validate(
        self,
        recording: Recording,
        *,
        model: str | None = None,
        signals: Signals | None = None,
        temperature: ArrayLike | Sequence[ArrayLike] | None = None,
    ) -> Validation:
        """Predict the torques of other motion, each joint with the parameters fitted beside its friction.

        Parameters
        ----------
        recording : Recording
            Motion with torques that the friction was not fitted to.
        model : str, optional
            A model that was fitted to every joint; by default the selected one of each.
        signals : Signals, optional
            Signal processing; by default that of the fits.
        temperature : float or sequence of arrays of shape (N,), optional
            Temperature (deg C), one number or one array per run.

        Returns
        -------
        Validation
            Errors per joint.

        Raises
        ------
        DataError
            If the recording is of another robot or has no torques, or a model needs temperatures that are not given.
        """
        chosen = [(fit, fit.best if model is None else fit[model]) for fit in self.fits]
        found: Validation = attached(self, "validate")(
            self.robot, chosen, recording, signals or self.signals, temperature
        )
        return found

    def to_frame(self) -> pl.DataFrame:
        """The tables of all joints, one below the other, see `FrictionFit.to_frame`.

        Returns
        -------
        polars.DataFrame
        """
        import polars as pl

        return pl.concat([fit.to_frame() for fit in self.fits])

    def plot(
        self,
        *,
        joints: str | Sequence[str] | None = None,
        models: int = 1,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> NDArray[Any]:
        """Draw the friction of every joint over its velocity, see `FrictionFit.plot`.

        Parameters
        ----------
        joints : str or sequence of str, optional
            Names or patterns of the joints to draw; all by default.
        models : int, default 1
            Number of models per joint, in the order of the ranking.
        ax : Axes or sequence of Axes, optional
            Where to draw: as many axes as are returned, or one, whose place is divided. By default a new figure.

        Returns
        -------
        ndarray of Axes, shape (joint,)

        Raises
        ------
        DataError
            If no joint matches, or a fit has no points.
        DynidError
            If matplotlib is not installed.
        """
        axes: NDArray[Any] = attached(self, "plot")(
            [self.fits[k] for k in chosen_joints(joints, self.joints)], models, ax
        )
        return axes

    def summary(self) -> str:
        """The tables of every joint."""
        return "\n\n".join(fit.summary() for fit in self.fits)

    def to_dict(self) -> dict[str, Any]:
        """The results by joint as plain data, without the rows."""
        return {fit.joint: fit.to_dict() for fit in self.fits}

    def _repr_html_(self) -> str:
        rows = [
            (
                fit.joint,
                fit.best.name,
                f"{fit.best.rms:.4g}",
                f"{fit.rows}, {fit.effective_rows:.0f}",
                ", ".join(f"{k} = {v:.4g} +- {fit.std[k]:.2g} {fit.best.units[k]}" for k, v in fit.parameters.items()),
            )
            for fit in self.fits
        ]
        columns = ("joint", "model", "RMS", "rows, independent", "parameters")
        return html_table(f"{self.robot.name}: selected friction", columns, rows)


def select_friction(
    robot: Robot,
    recording: Recording,
    joints: Sequence[str | int] | None = None,
    *,
    estimate: Estimate | None = None,
    signals: Signals | None = None,
    progress: Callable[[Progress], None] | None = None,
    **options: Any,
) -> FrictionSelection:
    """Fit and select friction models, joint by joint.

    Parameters
    ----------
    robot : Robot
        Robot with a fixed base.
    recording : Recording
        Motion of the joints with torques.
    joints : sequence of str or int, optional
        Names or indices of joints; by default all of them.
    estimate : Estimate, optional
        Subtract the torques of this estimate, as `fit_friction` does.
    signals : Signals, optional
        Signal processing; by default that of the estimate, or the default settings.
    progress : callable, optional
        Called with a `Progress` before each joint.
    **options
        Other settings of `fit_friction`: models, criterion, temperature, load, offset, level.

    Returns
    -------
    FrictionSelection

    Raises
    ------
    DataError
        As `fit_friction` does, or if a joint is named twice.

    Examples
    --------
    The friction terms that each joint needs, by cross-validation:

    >>> import numpy as np, dynid
    >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    >>> t = np.arange(4000) / 200.0
    >>> q = np.column_stack([np.sin(0.9 * t) + 0.3 * np.sin(2.3 * t), np.sin(1.3 * t) + 0.3 * np.cos(3.1 * t)])
    >>> v, a = (np.gradient(q, t, axis=0), np.gradient(np.gradient(q, t, axis=0), t, axis=0))
    >>> torque = dynid.inverse_dynamics(robot, q, v, a) + 0.05 * np.random.default_rng(0).normal(size=q.shape)
    >>> recording = dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque),))
    >>> found = dynid.friction.select_friction(robot, recording, models=["viscous", "coulomb+viscous"],
    ...     criterion="cross-validation", offset=False)
    >>> sorted(set(found.models.values()))
    ['coulomb+viscous']
    """
    names = [robot.coordinates[joint_index(robot, j)] for j in (robot.coordinates if joints is None else joints)]
    if len(set(names)) != len(names) or not names:
        raise InvalidValue("name each joint once, and at least one joint", "joints")
    settings = signals or (estimate.signals if estimate is not None else Signals())
    fits = []
    for k, name in enumerate(names):
        if progress is not None:
            progress(Progress(f"friction of {name}", k / len(names)))
        fits.append(fit_friction(robot, recording, name, estimate=estimate, signals=settings, **options))
    known = robot if estimate is None else estimate.robot
    return FrictionSelection(robot=known, fits=tuple(fits), signals=settings, log_format=recording.log_format)
