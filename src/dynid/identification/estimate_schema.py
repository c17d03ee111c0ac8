"""Schema of saved estimates: the name and the type of every field, checked before anything is built from them."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, model_validator

from dynid.errors import DataError
from dynid.identification.estimators.solution import Outcome

__all__ = [
    "StoredBaseParameter",
    "StoredChoice",
    "StoredEstimate",
    "StoredIteration",
    "StoredStructure",
    "checked_data",
]

# Numbers that JSON cannot hold are written as these words.
_WORDS = ("nan", "inf", "-inf")
# No mass, inertia, friction or gain in SI units is larger; sums of squares of larger numbers overflow.
_LARGEST = 1e100


def _number(value: Any) -> Any:
    """A stored number; text other than the words for what is not finite is none."""
    if isinstance(value, bool) or (isinstance(value, str) and value not in _WORDS):
        raise ValueError("must be a number")
    return value


Number = Annotated[float, BeforeValidator(_number)]
# Numbers without which an estimate has no meaning are finite.
Finite = Annotated[float, BeforeValidator(_number), Field(ge=-_LARGEST, le=_LARGEST, allow_inf_nan=False)]
# A variance may be infinite: of what the recording does not show.
Variance = Annotated[Number, Field(ge=-math.inf)]
Count = Annotated[int, Field(strict=True, ge=0)]


class _Stored(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class StoredBaseParameter(_Stored):
    """One base parameter: its value, and the standard parameters it combines by name."""

    name: str
    representative: str
    expression: str
    unit: str
    value: Finite
    std: Number
    combination: dict[str, Finite]


class StoredStructure(_Stored):
    """How the base parameters were found."""

    method: str
    dependent: list[str]
    without_effect: list[str]
    singular_values: list[Number]
    gap: Number


class StoredIteration(_Stored):
    """One iteration of a method that simulates or filters."""

    beta: list[Number]
    step: Number
    residual: Number
    smallest: Number
    simulation_seconds: Number
    solver_seconds: Number


class StoredChoice(_Stored):
    """One alternative of a decision of method "auto"."""

    what: str
    option: str
    error: Number
    chosen: Annotated[bool, Field(strict=True)]


class StoredEstimate(_Stored):
    """Everything that the file of an estimate holds. The names are those of `Estimate`, unless they are explained here.

    Attributes
    ----------
    standard_parameters : dict
        Standard parameters of the estimate by name.
    parameter_classes : dict
        How each of them is known, by name; for readers of the file, computed again when it is loaded.
    standard_parameters_from_method : bool
        Whether the method estimated them; otherwise they follow from the base parameters and the prior.
    robot : dict
        The robot, as `dynid.robot.serialize` writes it.
    """

    format: str
    method: str
    status: str
    outcome: Outcome
    channels: list[str]
    rows: list[Count]
    noise: list[Number]
    rms: list[Number]
    relative_error: list[Number]
    condition_number: Number
    seconds: Number
    notes: list[str]
    base_parameters: list[StoredBaseParameter]
    standard_parameters: dict[str, Finite]
    parameter_classes: dict[str, str]
    standard_parameters_from_method: Annotated[bool, Field(strict=True)]
    structure: StoredStructure
    signals: dict[str, Any]
    cutoffs: list[Number | None]
    log_format: dict[str, Any] | None
    robot: dict[str, Any]
    history: list[StoredIteration]
    covariance: list[list[Variance]]
    standard_covariance: list[list[Variance]] | None
    noise_model: Literal["autocorrelated", "white"]
    freedom: Number
    independent_rows: list[Number]
    choices: list[StoredChoice]
    fingerprint: dict[str, Any] | None

    @model_validator(mode="after")
    def _sizes_agree(self) -> StoredEstimate:
        count, channels, standard = len(self.base_parameters), len(self.channels), len(self.standard_parameters)
        for name in ("rows", "noise", "rms", "relative_error"):
            if len(getattr(self, name)) != channels:
                raise ValueError(f"{name} has {len(getattr(self, name))} entries for {channels} channels")
        if self.independent_rows and len(self.independent_rows) != channels:
            raise ValueError(f"independent_rows has {len(self.independent_rows)} entries for {channels} channels")
        for name, size in (("covariance", count), ("standard_covariance", standard)):
            matrix = getattr(self, name)
            if matrix is not None and [len(row) for row in matrix] != [size] * size:
                raise ValueError(f"{name} is not a {size} x {size} matrix")
        if any(len(step.beta) != count for step in self.history):
            raise ValueError(f"an iteration of the history does not have {count} base parameters")
        return self


def checked_data(data: Any, where: str) -> StoredEstimate:
    """The stored estimate, refused with the first field that is missing, unknown, of another type or not finite."""
    try:
        return StoredEstimate.model_validate(data)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        reason = first["msg"].removeprefix("Value error, ")
        raise DataError(f"{where} is a damaged estimate: {f'{place}: ' if place else ''}{reason}") from None
