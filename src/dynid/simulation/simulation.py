"""Result of a simulation: true signals, measured signals, and the recording they make."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynid.attached import attached
from dynid.markup import html_table
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.simulation.unmodeled import UnmodeledEffects

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

__all__ = ["Simulation"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Simulation:
    """Result of `dynid.simulate`.

    Attributes
    ----------
    robot : Robot
        The simulated robot.
    t : array of shape (N,)
        Time (s).
    q, v, a : array of shape (N, n)
        True link positions (rad or m), velocities and accelerations.
    torque : array of shape (N, n)
        Torque of the drives (N m or N).
    measured_q, measured_v, measured_torque : array of shape (N, n)
        Signals of the sensors.
    reference : array of shape (N, n)
        Reference positions.
    completed : bool
        Whether the whole reference was simulated. Otherwise the arrays end where the simulation stopped.
    outcome : str
        "completed", or the time and the reason of the stop.
    seconds : float
        Computation time (s).
    motor_q, motor_v : array of shape (N, n)
        True positions and velocities of the motors; those of the links unless a joint is flexible.
    periods : int
        Control periods per sample.
    unmodeled : UnmodeledEffects or None
        Effects that were simulated beyond the rigid model.
    parameters : array of shape (p,) or None
        Standard parameters that replaced those of the robot.
    disturbance : array of shape (N, n) or None
        Unmeasured joint torques (N m or N).
    """

    robot: Robot
    t: Array
    q: Array
    v: Array
    a: Array
    torque: Array
    measured_q: Array
    measured_v: Array
    measured_torque: Array
    reference: Array
    completed: bool
    outcome: str
    seconds: float
    motor_q: Array
    motor_v: Array
    periods: int = 1
    unmodeled: UnmodeledEffects | None = None
    parameters: Array | None = None
    disturbance: Array | None = None

    @property
    def tracking_rmse(self) -> Array:
        """Root mean square of each joint's tracking error (n,), reference minus true link position, in rad or m."""
        return np.asarray(np.sqrt(np.sum((self.reference - self.q) ** 2, axis=0) / max(len(self.t), 1)))

    def run(self, name: str = "simulated") -> Run:
        """The measured signals as a run with this name."""
        return Run(
            self.t,
            self.measured_q,
            v=self.measured_v,
            torque=self.measured_torque,
            reference=self.reference,
            name=name,
        )

    def recording(self, name: str = "simulated") -> Recording:
        """The measured signals as a recording of one run."""
        return Recording(self.robot.coordinates, (self.run(name),))

    def to_frame(self) -> pl.DataFrame:
        """All signals as a table.

        Returns
        -------
        polars.DataFrame
            t in s, then q, v, a, torque, measured_q, measured_v, measured_torque and reference of every joint
            (q_joint1, ...), in SI units.
        """
        import polars as pl

        signals = ("q", "v", "a", "torque", "measured_q", "measured_v", "measured_torque", "reference")
        names = self.robot.coordinates
        return pl.DataFrame(
            {"t": self.t, **{f"{s}_{n}": getattr(self, s)[:, j] for s in signals for j, n in enumerate(names)}}
        )

    def plot(
        self, *, joints: str | Sequence[str] | None = None, ax: Axes | Sequence[Axes] | None = None
    ) -> NDArray[Any]:
        """Draw positions with their references, tracking errors and torques of the drives.

        Parameters
        ----------
        joints : str or sequence of str, optional
            Names or patterns of the joints to draw; all by default.
        ax : Axes or sequence of Axes, optional
            Where to draw: as many axes as are returned, or one, whose place is divided. By default a new figure.

        Returns
        -------
        ndarray of Axes, shape (panel,)
            Positions, tracking errors and torques, one per unit, from the top.

        Raises
        ------
        DataError
            If no joint matches.
        DynidError
            If matplotlib is not installed.
        """
        axes: NDArray[Any] = attached(self, "plot")(self, joints, ax)
        return axes

    def to_dict(self) -> dict[str, Any]:
        """Outcome, and the tracking error (its largest magnitude and its RMS) and largest torque per joint."""
        return {
            "outcome": self.outcome,
            "completed": self.completed,
            "samples": len(self.t),
            "seconds": self.seconds,
            "joints": {
                name: {"tracking": float(error), "tracking_rmse": float(rmse), "torque": float(torque)}
                for name, error, rmse, torque in zip(
                    self.robot.coordinates,
                    np.abs(self.q - self.reference).max(axis=0, initial=0.0),
                    self.tracking_rmse,
                    np.abs(self.torque).max(axis=0, initial=0.0),
                    strict=True,
                )
            },
        }

    def summary(self) -> str:
        """Outcome, and a table of the tracking error and the largest torque per joint."""
        page = self.to_dict()
        lines = [f"{self.robot.name}: {self.outcome}, {len(self.t)} samples in {self.seconds:.2f} s"]
        width = max(map(len, page["joints"]))
        lines.append(f"{'':<{width}}  largest error   RMS error  largest torque")
        lines += [
            f"{k:<{width}}  {x['tracking']:13.4g}  {x['tracking_rmse']:10.4g}  {x['torque']:14.4g}"
            for k, x in page["joints"].items()
        ]
        effort = {name: limit.effort for name, limit in self.robot.limits.items()}
        beyond = [k for k, x in page["joints"].items() if x["torque"] > effort.get(k, np.inf)]
        if beyond:
            lines.append(f"effort limit exceeded: {', '.join(beyond)}; lower the gains or set torque_limits")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        """Tracking error and largest torque per joint as an HTML table."""
        kinds = {"N": ("m", "N"), "N m": ("rad", "N m")}
        rows = []
        for name, figures in self.to_dict()["joints"].items():
            length, force = kinds[self.robot.channel_units[name]]
            errors = (f"{figures[error]:.4g} {length}" for error in ("tracking", "tracking_rmse"))
            rows.append((name, *errors, f"{figures['torque']:.4g} {force}"))
        title = f"{self.robot.name}: {self.outcome}, {len(self.t)} samples"
        return html_table(title, ("joint", "largest error", "RMS error", "largest torque"), rows)

    def __repr__(self) -> str:
        return f"Simulation('{self.robot.name}', {len(self.t)} samples, {self.outcome})"
