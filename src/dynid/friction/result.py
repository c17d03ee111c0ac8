"""Result of a friction fit: ranked models, parameters with standard deviations, and their use on a robot."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.attached import attached
from dynid.errors import UnknownName
from dynid.friction.models import FrictionModel, friction_model
from dynid.friction.pieces import Features, unit_of
from dynid.hypothesis import probability
from dynid.markup import frame_html
from dynid.results import Codec, Finite, Reading, Result, about
from dynid.robot.model import Robot

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

__all__ = ["FrictionFit", "ModelFit"]

Array = NDArray[np.float64]


def _read_model(data: dict[str, Any], reading: Reading) -> FrictionModel:
    return friction_model(data["name"], offset=data["offset"])


def _read_parameters(data: dict[str, float], reading: Reading) -> dict[str, float]:
    """The parameters in the order of the model, as the covariance has them, whatever their order in a file."""
    model: FrictionModel = reading.found["model"]
    names = list(model.units())
    if set(data) != set(names):
        raise ValueError(f"the parameters of friction model '{model.name}' are {', '.join(names)}")
    return {name: data[name] for name in names}


# A model is its name, and whether it has an offset.
_MODEL = Codec(dict[str, Any], lambda model: {"name": model.name, "offset": "offset" in model.names}, _read_model)


@dataclass(frozen=True, eq=False)
class ModelFit(Result):
    """One fitted friction model."""

    sizes = MappingProxyType({"k": ("parameters", "parameters")})

    model: FrictionModel = field(metadata=about("The model.", codec=_MODEL))
    parameters: dict[str, float] = field(
        metadata=about("Parameter values by name.", codec=Codec(dict[str, Finite], dict, _read_parameters))
    )
    covariance: Array = field(
        metadata=about(
            "Covariance in the order of `parameters`, with the autocorrelation of the residual: the number of "
            "independent rows takes the place of the number of rows. A coefficient at zero has that of the fit without "
            "the bound.",
            size=("k", "k"),
        )
    )
    rss: float = field(metadata=about("Residual sum of squares."))
    rms: float = field(metadata=about("Root mean square of the residual torque (N m or N)."))
    parameter_count: int = field(metadata=about("Number of parameters, with the base parameters of the robot."))
    aic: float = field(metadata=about("Akaike's information criterion with the number of independent rows."))
    bic: float = field(metadata=about("Bayes' information criterion with the number of independent rows."))
    against: str = field(
        default="", metadata=about('The largest fitted model that this one contains; "" if there is none.')
    )
    statistic: float = field(default=np.nan, metadata=about("F test against that model."))
    p_value: float = field(default=np.nan, metadata=about("Its p-value."))
    held_out_rms: float = field(
        default=np.nan,
        metadata=about(
            "Root mean square error on blocks of time that were held out (N m or N); NaN without cross-validation."
        ),
    )
    at_zero: tuple[str, ...] = field(
        default=(), metadata=about("Coefficients that the bound holds at zero: without it they would be negative.")
    )
    body_parameters: Array | None = field(
        default=None,
        metadata=about(
            "Parameters (p,) of the robot without the friction of this joint, fitted with this model; None for a "
            "friction map."
        ),
    )
    notes: tuple[str, ...] = field(default=(), metadata=about("Warnings."))
    prismatic: bool = field(default=False, metadata=about("Whether the joint is prismatic, with units N and N s/m."))

    @property
    def name(self) -> str:
        """Name of the model."""
        return self.model.name

    @property
    def units(self) -> dict[str, str]:
        """Units by parameter name."""
        return self.model.units(prismatic=self.prismatic)

    @property
    def std(self) -> dict[str, float]:
        """The standard deviation by name; infinite for a parameter that is not identifiable."""
        with np.errstate(invalid="ignore"):
            sigma = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        return dict(zip(self.parameters, map(float, sigma), strict=True))

    def curve(self, v: ArrayLike, *, load: ArrayLike = 0.0, temperature: ArrayLike = 20.0) -> Array:
        """Friction torque of the model.

        Parameters
        ----------
        v : float or array of shape (N,)
            Velocity (rad/s or m/s).
        load : float or array of shape (N,)
            Load of the gear (N m or N).
        temperature : float or array of shape (N,)
            Temperature (deg C).

        Returns
        -------
        array of shape (N,)
            Friction torque (N m or N).
        """
        velocity = np.atleast_1d(np.asarray(v, dtype=float))
        full = [np.broadcast_to(np.asarray(x, dtype=float), velocity.shape) for x in (load, temperature)]
        return self.model.torque(Features(velocity, *full), self.parameters)

    def to_dict(self) -> dict[str, Any]:
        """The fit as plain data."""
        return {
            "model": self.name,
            "parameters": self.parameters,
            "std": {k: v if np.isfinite(v) else None for k, v in self.std.items()},
            "units": self.units,
            "rms": self.rms,
            "aic": self.aic,
            "bic": self.bic,
            "against": self.against or None,
            "statistic": self.statistic if np.isfinite(self.statistic) else None,
            "p_value": self.p_value if np.isfinite(self.p_value) else None,
            "held_out_rms": self.held_out_rms if np.isfinite(self.held_out_rms) else None,
            "at_zero": list(self.at_zero),
            "notes": list(self.notes),
        }


@dataclass(frozen=True, eq=False)
class FrictionFit(Result):
    """Friction of a joint: the fitted models, the selected one, and the data."""

    sizes = MappingProxyType({"N": ("velocity", "velocities")})

    joint: str = field(metadata=about("Name of the joint."))
    ranking: tuple[ModelFit, ...] = field(
        metadata=about("All fitted models in order, the selected one first.", least=1)
    )
    criterion: str = field(metadata=about("Selection criterion."))
    level: float = field(metadata=about("Significance level of the F tests."))
    velocity: Array = field(metadata=about("Velocity (rad/s or m/s) per row.", size=("N",)))
    friction: Array = field(metadata=about("Friction torque (N m or N) per row.", size=("N",)))
    rows: int = field(metadata=about("Number of rows of the fit."))
    effective_rows: float = field(
        metadata=about("Number of independent rows, fewer if the residual is autocorrelated.")
    )
    max_velocity: float = field(metadata=about("Largest velocity magnitude of the motion (rad/s or m/s)."))
    from_map: bool = field(default=False, metadata=about("Whether the data are a friction map."))
    load: str = field(default="rigid", metadata=about('Load of load-dependent friction, "rigid" or "gravity".'))
    mean_load: float = field(default=0.0, metadata=about("Mean load magnitude (N m or N)."))
    mean_temperature: float = field(default=20.0, metadata=about("Mean temperature.", unit="deg C"))
    notes: tuple[str, ...] = field(default=(), metadata=about("Models that were left out, with the reason."))
    prismatic: bool = field(default=False, metadata=about("Whether the joint is prismatic, with units N and N s/m."))

    @property
    def best(self) -> ModelFit:
        """The selected model."""
        return self.ranking[0]

    @property
    def parameters(self) -> dict[str, float]:
        """Parameter values of the selected model."""
        return self.best.parameters

    @property
    def std(self) -> dict[str, float]:
        """The standard deviation by name, of the selected model."""
        return self.best.std

    def __getitem__(self, name: str) -> ModelFit:
        """The fit of a model by name."""
        for fit in self.ranking:
            if fit.name == name:
                return fit
        raise UnknownName(
            f"no friction model '{name}' was fitted, there are {', '.join(f.name for f in self.ranking)}", "name"
        )

    def curve(self, v: ArrayLike, *, load: ArrayLike = 0.0, temperature: ArrayLike = 20.0) -> Array:
        """Friction torque (N,) of the selected model, see `ModelFit.curve`."""
        return self.best.curve(v, load=load, temperature=temperature)

    def apply(self, robot: Robot, *, model: str | None = None, temperature: float | None = None) -> Robot:
        """The robot with a fitted model as friction of this joint.

        Parameters
        ----------
        robot : Robot
            Its own friction terms of the joint are replaced.
        model : str, optional
            Name of a fitted model; the selected one by default.
        temperature : float, optional
            Temperature (deg C), required for a temperature-dependent model.

        Returns
        -------
        Robot

        Raises
        ------
        ModelError
            If the temperature is missing, or drive terms cannot express the load.
        """
        fit = self.best if model is None else self[model]
        found: Robot = attached(self, "apply")(robot, self.joint, fit, temperature, self.load)
        return found

    def to_frame(self) -> pl.DataFrame:
        """All models and their parameters as a table.

        Returns
        -------
        polars.DataFrame
            One row per model and parameter, the selected model first: joint, model, selected, parameter, value, std,
            unit, rms, aic, bic and held_out_rms (of the model, NaN without cross-validation).
        """
        import polars as pl

        fit = ("rms", "aic", "bic", "held_out_rms")
        rows = [
            (self.joint, f.name, f is self.best, name, value, f.std[name], f.units[name], *(getattr(f, x) for x in fit))
            for f in self.ranking
            for name, value in f.parameters.items()
        ]
        words = {
            "joint": str,
            "model": str,
            "selected": bool,
            "parameter": str,
            "value": float,
            "std": float,
            "unit": str,
        }
        return pl.DataFrame(rows, schema=words | dict.fromkeys(fit, float), orient="row")

    def plot(self, *, models: int = 1, ax: Axes | None = None) -> Axes:
        """Draw the friction over the velocity: measured points, their means, and the curves of fitted models.

        Friction that depends on load or temperature is drawn for the mean load and temperature of the points.

        Parameters
        ----------
        models : int, default 1
            Number of models, in the order of the ranking.
        ax : Axes, optional
            Where to draw; by default a new figure.

        Returns
        -------
        Axes

        Raises
        ------
        DataError
            If the fit has no points.
        DynidError
            If matplotlib is not installed.
        """
        axes: Axes = attached(self, "plot")([self], models, ax)[0]
        return axes

    def _repr_html_(self) -> str:
        return frame_html(f"friction of {self.joint}: {self.best.name}", self.to_frame())

    def summary(self) -> str:
        """Tables of the models and of the parameters of the selected one."""
        width = max(len("model"), *(len(f.name) for f in self.ranking))
        torque = unit_of("N m", prismatic=self.prismatic)
        decided = "p-value, against" if self.criterion != "cross-validation" else f"held-out rms {torque}"
        lines = [
            f"friction of {self.joint}: {self.best.name} (by {self.criterion})",
            f"  {self.rows} rows, {self.effective_rows:.0f} of them independent",
            f"  {'model':{width}}  parameters  {'rms ' + torque:>8}        AIC        BIC  {decided}",
        ]
        for f in self.ranking:
            test = f"{probability(f.p_value)}, {f.against}" if f.against else "-"
            test = test if np.isnan(f.held_out_rms) else f"{f.held_out_rms:.4g}"
            mark = "*" if f is self.best else " "
            shown = f"{f.model.count:10d}  {f.rms:8.4g}  {f.aic:9.1f}  {f.bic:9.1f}"
            lines.append(f"{mark} {f.name:{width}}  {shown}  {test}")
        lines.append("  parameter        value         std  unit")
        for name, value in self.parameters.items():
            unit = self.best.units[name]
            lines.append(f"  {name:9}  {value:11.5g} {self.std[name]:11.2g}  {unit}")
        lines += [f"  note: {note}" for note in (*self.notes, *self.best.notes)]
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """The result as plain data, without the rows."""
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
