"""Estimate: identified parameters with their uncertainty, and what one does with them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.files import write_text
from dynid.identification.estimators.solution import Iteration
from dynid.markup import html_table
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

if TYPE_CHECKING:
    from dynid.feasibility.constraints import Constraints
    from dynid.feasibility.queries import Verdict
    from dynid.identification.validation import Validation
    from dynid.parameters.base_model import BaseModel
    from dynid.recording.recording import Recording

__all__ = ["Estimate"]

Array = NDArray[np.float64]

_FORMAT = "dynid estimate 3"


@dataclass(frozen=True, eq=False)
class Estimate:
    """Base parameters (b,) with covariance (b, b), residual figures a channel, and how they were found.

    `standard` (p,) are the standard parameters where the method finds them too, as the feasible one does, with
    `standard_covariance` (p, p). `history` holds the rounds of a method that simulates the closed loop.
    """

    base: BaseParameters
    method: str
    beta: Array
    covariance: Array
    noise: Array
    rows: tuple[int, ...]
    rms: Array
    relative_error: Array
    condition_number: float
    status: str
    seconds: float
    signals: Signals = field(default_factory=Signals)
    cutoffs: tuple[float | None, ...] = ()
    notes: tuple[str, ...] = ()
    standard: Array | None = None
    standard_covariance: Array | None = None
    history: tuple[Iteration, ...] = ()

    @property
    def converged(self) -> bool:
        """Whether the method came to its end: not aborted, stalled or out of rounds."""
        return self.status in ("solved", "converged", "one iteration")

    @property
    def robot(self) -> Robot:
        """The robot that was identified, with its a-priori values."""
        return self.base.robot

    @property
    def std(self) -> Array:
        """Standard deviation of each base parameter (b,)."""
        # Of a value that constraints hold rounding may leave a variance below zero.
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def relative_std(self) -> Array:
        """Standard deviation in percent of the value (b,); infinite for a value of zero."""
        with np.errstate(divide="ignore"):
            return 100.0 * self.std / np.abs(self.beta)

    def confidence_intervals(self, level: float = 0.95) -> Array:
        """Lower and upper bounds (b, 2) of each base parameter, by Student's t."""
        if not 0 < level < 1:
            raise DataError(f"a confidence level lies between 0 and 1, got {level}")
        reach = scipy.stats.t.ppf(0.5 + level / 2, max(sum(self.rows) - self.beta.size, 1))
        return np.column_stack([self.beta - reach * self.std, self.beta + reach * self.std])

    @cached_property
    def parameters(self) -> Array:
        """Standard parameters (p,): those of the method, or those that move least from the a-priori ones.

        Only the base values are identified; the rest is the prior's, and unless the method is a feasible one the set
        need not be physically possible.
        """
        return self.standard if self.standard is not None else self.base.standard(self.beta)

    @cached_property
    def identified_robot(self) -> Robot:
        """The robot with the identified parameters."""
        return self.robot.with_parameters(self.parameters)

    def base_model(self) -> BaseModel:
        """Inverse and forward dynamics, M, C and g of the base parameters alone, with their uncertainty."""
        from dynid.parameters.base_model import BaseModel

        return BaseModel(self.base, self.beta, self.covariance)

    def feasibility(self, constraints: Constraints = "full") -> Verdict:
        """Whether some possible robot has these base parameters, with a witness or a proof."""
        from dynid.feasibility.queries import is_feasible

        return is_feasible(self.base, self.beta, constraints)

    def validate(self, recording: Recording, signals: Signals | None = None) -> Validation:
        """Prediction errors on a recording, cleaned as the one that was identified from unless `signals` is given."""
        from dynid.identification.validation import validate

        return validate(self, recording, signals)

    def summary(self) -> str:
        """A table worth reading."""
        from dynid.identification.summary import estimate_text

        return estimate_text(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything of the estimate as plain data."""
        return {
            "format": _FORMAT,
            "robot": self.robot.name,
            "method": self.method,
            "status": self.status,
            "channels": list(self.base.channels),
            "rows": list(self.rows),
            "condition_number": self.condition_number,
            "seconds": self.seconds,
            "signals": self.signals.to_dict(),
            "cutoffs": list(self.cutoffs),
            "notes": list(self.notes),
            "noise": self.noise.tolist(),
            "rms": self.rms.tolist(),
            "relative_error_percent": (100 * self.relative_error).tolist(),
            "base_parameters": [
                {"name": n, "expression": e, "value": float(b), "std": float(s)}
                for n, e, b, s in zip(self.base.names, self.base.expressions, self.beta, self.std, strict=True)
            ],
            "iterations": [asdict(x) | {"beta": x.beta.tolist()} for x in self.history],
            "standard_from_method": self.standard is not None,
            "standard_parameters": dict(zip(self.robot.parameter_names, self.parameters.tolist(), strict=True)),
            "covariance": self.covariance.tolist(),
        }

    def save(self, path: str | Path) -> None:
        """Write the estimate into one JSON file that people can read too."""
        data = self.to_dict()
        covariance = data.pop("covariance")
        text = json.dumps(data, indent=2)
        rows = ",\n    ".join(json.dumps(row) for row in covariance)
        text = f'{text[:-2]},\n  "covariance": [\n    {rows}\n  ]\n}}\n'
        write_text(path, text)

    @staticmethod
    def load(path: str | Path, robot: Robot) -> Estimate:
        """Read an estimate back; `robot` must be the one it was made for."""
        try:
            data = json.loads(Path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise DataError(f"there is no file '{path}'") from None
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise DataError(f"'{path}' is not a saved estimate: {error}") from None
        if not isinstance(data, dict) or data.get("format") != _FORMAT:
            raise DataError(f"'{path}' is not a saved estimate")
        base = base_parameters(robot, channels=data["channels"])
        expressions = tuple(p["expression"] for p in data["base_parameters"])
        if expressions != base.expressions:
            raise DataError(f"'{path}' was made for another robot or other drive terms than '{robot.name}'")
        return Estimate(
            base=base,
            method=data["method"],
            beta=np.array([p["value"] for p in data["base_parameters"]]),
            covariance=np.array(data["covariance"]),
            noise=np.array(data["noise"]),
            rows=tuple(data["rows"]),
            rms=np.array(data["rms"]),
            relative_error=np.array(data["relative_error_percent"]) / 100.0,
            condition_number=data["condition_number"],
            status=data["status"],
            seconds=data["seconds"],
            signals=Signals.from_dict(data["signals"]),
            cutoffs=tuple(data["cutoffs"]),
            notes=tuple(data["notes"]),
            standard=np.array(list(data["standard_parameters"].values())) if data["standard_from_method"] else None,
            history=tuple(Iteration(**x | {"beta": np.array(x["beta"])}) for x in data["iterations"]),
        )

    def __repr__(self) -> str:
        return f"Estimate('{self.robot.name}', {self.method}, {self.beta.size} base parameters, {self.status})"

    def _repr_html_(self) -> str:
        priors, deviations = self.base.values(), self.relative_std
        parameters = [
            (
                expression,
                f"{prior:.5g}",
                f"{value:.5g}",
                f"{sigma:.2g}",
                f"{share:.1f} %" if share < 1000 else "unknown",
            )
            for expression, prior, value, sigma, share in zip(
                self.base.expressions, priors, self.beta, self.std, deviations, strict=True
            )
        ]
        fit = [
            (name, count, f"{rms:.4g}", f"{error:.2%}")
            for name, count, rms, error in zip(
                self.base.channels, self.rows, self.rms, self.relative_error, strict=True
            )
        ]
        title = f"{self.robot.name}: {self.beta.size} base parameters by {self.method} ({self.status})"
        condition = f"condition number {self.condition_number:.4g}"
        return html_table(title, ("combination", "a priori", "estimate", "sigma", "sigma %"), parameters) + html_table(
            "fit", ("channel", "rows", "RMS", "relative error"), fit, condition
        )
