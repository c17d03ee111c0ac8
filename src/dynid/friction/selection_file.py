"""Saved friction selections: JSON files that hold every field, with the robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, model_validator

from dynid.errors import DamagedFile, ModelError, WrongFormat
from dynid.files import write_text
from dynid.friction.models import friction_model
from dynid.friction.result import FrictionFit, ModelFit
from dynid.friction.selection import FrictionSelection
from dynid.identification.estimate_file import json_text, plain_data, read_json, stored_robot
from dynid.recording.log_format import LogFormat
from dynid.robot.model import Robot
from dynid.robot.serialize import robot_to_dict
from dynid.schema import Count, Finite, Flag, Matrix, Number, Stored, checked, is_square
from dynid.signals.settings import Signals

__all__ = ["read_selection", "selection_from_dict", "selection_to_dict", "write_selection"]

_FORMAT = "dynid friction 1"
_ARRAYS = ("covariance", "body_parameters", "velocity", "friction")


class _StoredModel(Stored):
    """A fitted model; the names are those of `ModelFit`, the model is its name and whether it has an offset."""

    model: str
    offset: Flag
    parameters: dict[str, Finite]
    covariance: Matrix
    rss: Number
    rms: Number
    parameter_count: Count
    aic: Number
    bic: Number
    against: str
    statistic: Number
    p_value: Number
    held_out_rms: Number
    at_zero: list[str]
    body_parameters: list[Number] | None
    notes: list[str]
    prismatic: Flag

    @model_validator(mode="after")
    def _sizes_agree(self) -> _StoredModel:
        if not is_square(self.covariance, len(self.parameters)):
            raise ValueError(f"covariance is not a matrix of {len(self.parameters)} parameters")
        return self


class _StoredFit(Stored):
    """The fit of a joint; the names are those of `FrictionFit`."""

    joint: str
    ranking: Annotated[list[_StoredModel], Field(min_length=1)]
    criterion: str
    level: Number
    velocity: list[Number]
    friction: list[Number]
    rows: Count
    effective_rows: Number
    max_velocity: Number
    from_map: Flag
    load: str
    mean_load: Number
    mean_temperature: Number
    notes: list[str]
    prismatic: Flag

    @model_validator(mode="after")
    def _sizes_agree(self) -> _StoredFit:
        if len(self.velocity) != len(self.friction):
            raise ValueError(f"{len(self.velocity)} velocities and {len(self.friction)} frictions")
        return self


class _StoredSelection(Stored):
    """Everything that the file holds."""

    format: str
    joints: Annotated[list[_StoredFit], Field(min_length=1)]
    signals: dict[str, Any]
    log_format: dict[str, Any] | None
    robot: dict[str, Any]


def selection_to_dict(selection: FrictionSelection) -> dict[str, Any]:
    """The complete selection as plain data that JSON can hold; numbers that are not finite are words."""
    log_format = selection.log_format
    plain: dict[str, Any] = plain_data(
        {
            "format": _FORMAT,
            "joints": [_fit_data(fit) for fit in selection.fits],
            "signals": selection.signals.to_dict(),
            "log_format": None if log_format is None else log_format.model_dump(mode="json"),
            "robot": robot_to_dict(selection.robot),
        }
    )
    return plain


def selection_from_dict(
    data: Mapping[str, Any], robot: Robot | None = None, where: str = "the data"
) -> FrictionSelection:
    """Rebuild a selection from what `selection_to_dict` returned; `where` is the origin that messages name."""
    if not isinstance(data, Mapping) or data.get("format") != _FORMAT:
        raise WrongFormat(f"{where} is not a saved friction selection ('{_FORMAT}')")
    stored = checked(_StoredSelection, data, f"{where} is a damaged friction selection")
    owner = stored_robot(stored.robot, robot, where, "FrictionSelection.load")
    missing = [fit.joint for fit in stored.joints if fit.joint not in owner.coordinates]
    if missing:
        raise DamagedFile(f"{where} is damaged: robot '{owner.name}' has no joint '{', '.join(missing)}'")
    try:
        return FrictionSelection(
            robot=owner,
            fits=tuple(_fit(x) for x in stored.joints),
            signals=Signals.from_dict(stored.signals),
            log_format=None if stored.log_format is None else LogFormat.model_validate(stored.log_format),
        )
    except (KeyError, TypeError, ValueError, AttributeError, ModelError) as error:
        raise DamagedFile(f"{where} is a damaged friction selection: {type(error).__name__} {error}") from None


def write_selection(selection: FrictionSelection, path: str | Path) -> None:
    """Write a selection into a JSON file, with one line per list of numbers."""
    write_text(path, json_text(selection_to_dict(selection)) + "\n")


def read_selection(path: str | Path, robot: Robot | None = None) -> FrictionSelection:
    """Read a selection from a JSON file."""
    return selection_from_dict(read_json(path, "a saved friction selection"), robot, f"'{path}'")


def _fit_data(fit: FrictionFit) -> dict[str, Any]:
    """Every field of the fit of a joint."""
    out = {x.name: getattr(fit, x.name) for x in fields(fit)}
    return out | {"ranking": [_model_data(model) for model in fit.ranking]}


def _model_data(model: ModelFit) -> dict[str, Any]:
    """Every field of a fitted model; the model itself is its name and whether it has an offset."""
    out = {x.name: getattr(model, x.name) for x in fields(model)}
    return out | {"model": model.name, "offset": "offset" in model.model.names}


def _fit(stored: _StoredFit) -> FrictionFit:
    return FrictionFit(**_values(stored) | {"ranking": tuple(_model(x) for x in stored.ranking)})


def _model(stored: _StoredModel) -> ModelFit:
    values = _values(stored)
    model = friction_model(values.pop("model"), offset=values.pop("offset"))
    names = list(model.units())
    if set(stored.parameters) != set(names):
        raise DamagedFile(f"the parameters of friction model '{model.name}' are {', '.join(stored.parameters)}")
    # The covariance is in the order of the model, whatever the order of the names in the file.
    return ModelFit(model=model, **values | {"parameters": {name: stored.parameters[name] for name in names}})


def _values(stored: Stored) -> dict[str, Any]:
    """The fields with their types: arrays and tuples in place of lists."""
    out = dict(stored)
    for name, value in stored:
        if name in _ARRAYS and value is not None:
            out[name] = np.array(value, dtype=float)
        elif isinstance(value, list):
            out[name] = tuple(value)
    return out
