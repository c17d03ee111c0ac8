"""Saved friction selections: JSON files that hold every field, with the robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np

from dynid.errors import DataError, ModelError
from dynid.files import write_text
from dynid.friction.models import friction_model
from dynid.friction.result import FrictionFit, ModelFit
from dynid.friction.selection import FrictionSelection
from dynid.identification.estimate_file import json_text, plain_data, read_json, stored_robot
from dynid.recording.log_format import LogFormat
from dynid.robot.model import Robot
from dynid.robot.serialize import robot_to_dict
from dynid.signals.settings import Signals

__all__ = ["read_selection", "selection_from_dict", "selection_to_dict", "write_selection"]

_FORMAT = "dynid friction 1"
_ARRAYS = ("covariance", "body_parameters", "velocity", "friction")
_TUPLES = ("at_zero", "notes")
_NUMBERS = ("rss", "rms", "aic", "bic", "statistic", "p_value", "held_out_rms", "effective_rows", "max_velocity")


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
        raise DataError(f"{where} is not a saved friction selection ('{_FORMAT}')")
    try:
        stored = stored_robot(data["robot"], robot, where, "FrictionSelection.load")
        fits = tuple(_fit(x) for x in data["joints"])
        missing = [fit.joint for fit in fits if fit.joint not in stored.coordinates]
        if missing or not fits:
            raise DataError(f"{where} is damaged: robot '{stored.name}' has no joint '{', '.join(missing)}'")
        log_format = data["log_format"]
        return FrictionSelection(
            robot=stored,
            fits=fits,
            signals=Signals.from_dict(data["signals"]),
            log_format=None if log_format is None else LogFormat.model_validate(log_format),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, ModelError) as error:
        raise DataError(f"{where} is a damaged friction selection: {type(error).__name__} {error}") from None


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


def _fit(data: Mapping[str, Any]) -> FrictionFit:
    return FrictionFit(**_values(data) | {"ranking": tuple(_model(x) for x in data["ranking"])})


def _model(data: Mapping[str, Any]) -> ModelFit:
    values = _values(data)
    model = friction_model(values.pop("model"), offset=values.pop("offset"))
    given = values.pop("parameters")
    if set(given) != set(model.units()):
        raise DataError(f"the parameters of friction model '{model.name}' are {', '.join(given)}")
    # In the order of the covariance, whatever order the file has.
    parameters = {name: float(given[name]) for name in model.units()}
    found = ModelFit(model=model, parameters=parameters, **values)
    if found.covariance.shape != (len(parameters), len(parameters)):
        raise DataError(f"the covariance of friction model '{model.name}' has shape {found.covariance.shape}")
    return found


def _values(data: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with their types: arrays, tuples, numbers that are not finite."""
    out = dict(data)
    for name in out:
        if name in _ARRAYS and out[name] is not None:
            out[name] = np.array(out[name], dtype=float)
        elif name in _TUPLES:
            out[name] = tuple(out[name])
        elif name in _NUMBERS:
            out[name] = float(out[name])
    return out
