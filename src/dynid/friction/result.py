"""What a friction fit found: models in order, their parameters with deviations, the curve, and its way onto a robot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.friction.models import FrictionModel
from dynid.friction.pieces import Features
from dynid.robot.model import Robot
from dynid.simulation.unmodeled import UnmodeledEffects

__all__ = ["FrictionFit", "ModelFit"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ModelFit:
    """One model with the values of its parameters and their covariance, in the order of `parameters`.

    `rms` is what it leaves of the joint's torque (N m). `statistic` and `p_value` are of the test against the model
    `against`, the largest that it contains. AIC and BIC count rows that speak on their own.
    """

    model: FrictionModel
    parameters: dict[str, float]
    covariance: Array
    rss: float
    rms: float
    parameter_count: int
    aic: float
    bic: float
    against: str = ""
    statistic: float = np.nan
    p_value: float = np.nan
    notes: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return self.model.name

    @property
    def std(self) -> dict[str, float]:
        """Standard deviations by name; infinite for a parameter that the data do not show."""
        with np.errstate(invalid="ignore"):
            sigma = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return dict(zip(self.parameters, map(float, sigma), strict=True))

    def curve(self, v: ArrayLike, load: ArrayLike = 0.0, temperature: ArrayLike = 20.0) -> Array:
        """Friction torque (N,) at speeds (N,) for a load (N m) and temperature (deg C), numbers or (N,)."""
        speed = np.atleast_1d(np.asarray(v, dtype=float))
        full = [np.broadcast_to(np.asarray(x, dtype=float), speed.shape) for x in (load, temperature)]
        return self.model.torque(Features(speed, *full), self.parameters)

    def to_dict(self) -> dict[str, Any]:
        return {
            "model": self.name,
            "parameters": self.parameters,
            "std": {k: v if np.isfinite(v) else None for k, v in self.std.items()},
            "units": self.model.units,
            "rms": self.rms,
            "aic": self.aic,
            "bic": self.bic,
            "against": self.against or None,
            "statistic": self.statistic if np.isfinite(self.statistic) else None,
            "p_value": self.p_value if np.isfinite(self.p_value) else None,
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class FrictionFit:
    """Friction of a joint: all models in `ranking`, the chosen one first, and the points (speed, friction) behind.

    `mean_load` (N m, its size) and `mean_temperature` (deg C) are those under which the points were measured.
    """

    joint: str
    ranking: tuple[ModelFit, ...]
    best: ModelFit
    criterion: str
    level: float
    speed: Array
    friction: Array
    rows: int
    effective_rows: float
    fastest: float
    from_map: bool = False
    load: str = "rigid"
    mean_load: float = 0.0
    mean_temperature: float = 20.0
    notes: tuple[str, ...] = field(default=())

    @property
    def parameters(self) -> dict[str, float]:
        return self.best.parameters

    @property
    def std(self) -> dict[str, float]:
        return self.best.std

    def __getitem__(self, name: str) -> ModelFit:
        """The fit of a model by name."""
        for fit in self.ranking:
            if fit.name == name:
                return fit
        raise DataError(f"no friction model '{name}' was fitted, there are {', '.join(f.name for f in self.ranking)}")

    def curve(self, v: ArrayLike, load: ArrayLike = 0.0, temperature: ArrayLike = 20.0) -> Array:
        """Friction torque (N,) of the chosen model at speeds (N,)."""
        return self.best.curve(v, load, temperature)

    def apply(self, robot: Robot, model: str | None = None, temperature: float | None = None) -> Robot:
        """The robot with the chosen (or a named) model as its friction of this joint."""
        from dynid.friction.apply import with_friction

        fit = self.best if model is None else self[model]
        return with_friction(robot, self.joint, fit, temperature, self.load)

    def for_simulation(self, robot: Robot, model: str | None = None) -> tuple[Robot, UnmodeledEffects]:
        """The robot and the effects that `simulate` needs to move with the chosen (or a named) model."""
        from dynid.friction.apply import for_simulation

        return for_simulation(robot, self.joint, self.best if model is None else self[model])

    def summary(self) -> str:
        """The models in order and the parameters of the chosen one."""
        width = max(len("model"), *(len(f.name) for f in self.ranking))
        lines = [
            f"friction of {self.joint}: {self.best.name} (by {self.criterion})",
            f"  {self.rows} rows, worth {self.effective_rows:.0f} independent ones",
            f"  {'model':{width}}  parameters   rms N m        AIC        BIC  p-value, against",
        ]
        for f in self.ranking:
            test = f"{f.p_value:.2g}, {f.against}" if f.against else "-"
            mark = "*" if f is self.best else " "
            shown = f"{f.model.count:10d}  {f.rms:8.4g}  {f.aic:9.1f}  {f.bic:9.1f}"
            lines.append(f"{mark} {f.name:{width}}  {shown}  {test}")
        lines.append("  parameter        value   deviation  unit")
        for name, value in self.parameters.items():
            unit = self.best.model.units[name]
            lines.append(f"  {name:9}  {value:11.5g} {self.std[name]:11.2g}  {unit}")
        lines += [f"  note: {note}" for note in (*self.notes, *self.best.notes)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything but the points as plain data."""
        return {
            "joint": self.joint,
            "criterion": self.criterion,
            "level": self.level,
            "best": self.best.name,
            "rows": self.rows,
            "effective_rows": self.effective_rows,
            "ranking": [f.to_dict() for f in self.ranking],
            "notes": list(self.notes),
        }
