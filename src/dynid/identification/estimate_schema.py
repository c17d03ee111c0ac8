"""Schema of saved estimates: the name and the type of every field, checked before anything is built from them."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import model_validator

from dynid.identification.estimators.solution import Outcome
from dynid.schema import Count, Finite, Flag, Matrix, Number, Stored, is_square

__all__ = ["StoredBaseParameter", "StoredChoice", "StoredEstimate", "StoredIteration", "StoredStructure"]


class StoredBaseParameter(Stored):
    """One base parameter: its value, and the standard parameters it combines by name."""

    name: str
    representative: str
    expression: str
    unit: str
    value: Finite
    std: Number
    combination: dict[str, Finite]


class StoredStructure(Stored):
    """How the base parameters were found."""

    method: str
    dependent: list[str]
    without_effect: list[str]
    singular_values: list[Number]
    gap: Number


class StoredIteration(Stored):
    """One iteration of a method that simulates or filters."""

    beta: list[Number]
    step: Number
    residual: Number
    smallest: Number
    simulation_seconds: Number
    solver_seconds: Number


class StoredChoice(Stored):
    """One alternative of a decision of method "auto"."""

    what: str
    option: str
    error: Number
    chosen: Flag


class StoredEstimate(Stored):
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
    standard_parameters_from_method: Flag
    structure: StoredStructure
    signals: dict[str, Any]
    cutoffs: list[Number | None]
    log_format: dict[str, Any] | None
    robot: dict[str, Any]
    history: list[StoredIteration]
    covariance: Matrix
    standard_covariance: Matrix | None
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
            if matrix is not None and not is_square(matrix, size):
                raise ValueError(f"{name} is not a {size} x {size} matrix")
        if any(len(step.beta) != count for step in self.history):
            raise ValueError(f"an iteration of the history does not have {count} base parameters")
        return self
