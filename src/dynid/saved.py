"""Saved results: one envelope for every file of results, one reader, and one set of errors.

A file starts with what it holds and the version of the envelope, {"dynid": "estimate", "version": 1}, followed by the
fields of the result. JSON, TOML and the header of an NPZ file have the same two entries.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynid import reading
from dynid.errors import DamagedFile, MissingFile, WrongFormat, WrongVersion
from dynid.files import write_text

__all__ = ["KINDS", "VERSION", "Kind", "envelope", "json_text", "opened", "plain_data", "read_saved", "write_saved"]

VERSION = 1
_KIND, _VERSION = "dynid", "version"


@dataclass(frozen=True)
class Kind:
    """What a file holds.

    Attributes
    ----------
    name : str
        The word in the file.
    words : str
        What it is called in messages, after "a saved" or "a damaged".
    reader : str
        The function that reads it, from the package `dynid`; "" for files that only other programs read.
    command : str
        The command that reads it; "" where there is none.
    """

    name: str
    words: str
    reader: str
    command: str = ""

    @property
    def how(self) -> str:
        """How a file of this kind is read, for messages."""
        command = f" or `dynid {self.command}`" if self.command else ""
        return f": read it with dynid.{self.reader}{command}" if self.reader else ""


KINDS = {
    kind.name: kind
    for kind in (
        Kind("estimate", "estimate", "Estimate.load", "validate"),
        Kind("actuators", "estimate of actuators", "actuators.load_actuators"),
        Kind("geometry", "geometric calibration", "geometry.GeometryEstimate.load", "geometry check"),
        Kind("flexible", "estimate of flexible joints", "flexible.load_flexible"),
        Kind("friction", "friction selection", "friction.FrictionSelection.load", "friction"),
        Kind("payload", "payload", "calibration.Payload.load"),
        Kind("gains", "set of drive gains", "calibration.DriveGains.load"),
        Kind("sensors", "sensor calibration", "calibration.SensorCalibration.load"),
        Kind("plan", "plan of an experiment", "excitation.plan.Plan.load"),
        Kind("legs", "estimate of legs", ""),
        Kind("fleet", "estimate of a fleet", "fleet.FleetEstimate.load"),
        Kind("chirps", "design of chirps", "actuators.ChirpDesign.load"),
        Kind("assessment", "assessment", "Assessment.load"),
        Kind("excitation", "motion", "Excitation.from_toml"),
        Kind("parameters", "table of parameters", "export.load_parameters"),
        Kind("ranges", "table of ranges", ""),
        Kind("residual", "residual", "residual.Residual.load"),
        Kind("predictor", "predictor", "residual.Predictor.load"),
        Kind("monte carlo", "Monte Carlo study", "montecarlo.monte_carlo"),
    )
}


def envelope(kind: str) -> dict[str, Any]:
    """The first entries of a file of this kind."""
    return {_KIND: KINDS[kind].name, _VERSION: VERSION}


def opened(data: Any, kind: str, where: str = "the data") -> dict[str, Any]:
    """The fields of a saved result, without its envelope.

    Parameters
    ----------
    data : object
        Content of a file.
    kind : str
        What it should hold, one of `KINDS`.
    where : str
        Origin of the data, for messages.

    Raises
    ------
    DataError
        If the data are something else, or of another version.
    """
    wanted = KINDS[kind]
    found = data.get(_KIND) if isinstance(data, Mapping) else None
    if found is None:
        old = data.get("format") if isinstance(data, Mapping) else None
        if isinstance(old, str) and old.startswith("dynid "):
            raise WrongVersion(
                f"{where} has the format '{old:.40}' of a version before the first release: make it again, from the "
                "recording or the design, and save it"
            )
        raise WrongFormat(f"{where} is not a saved {wanted.words}")
    if found != kind:
        other = KINDS.get(found) if isinstance(found, str) else None
        if other is None:
            raise WrongVersion(f"{where} holds {found!r:.40}, which this version of dynid does not know: update dynid")
        raise WrongFormat(f"{where} holds a saved {other.words}, not a saved {wanted.words}{other.how}")
    version = data.get(_VERSION)
    if isinstance(version, bool) or not isinstance(version, int):
        raise DamagedFile(f"{where} is a damaged {wanted.words}: {_VERSION}: it must be a whole number")
    if version > VERSION:
        raise WrongVersion(f"{where} was saved by a newer dynid, as version {version}, not {VERSION}: update dynid")
    if version < VERSION:
        raise WrongVersion(f"{where} was saved by an older dynid, as version {version}, not {VERSION}: make it again")
    return {key: value for key, value in data.items() if key not in (_KIND, _VERSION)}


def read_saved(path: str | Path, kind: str) -> dict[str, Any]:
    """The fields of a saved result in a JSON file; a DataError where it cannot be read or holds something else."""
    words = KINDS[kind].words
    try:
        data = reading.read_json(path)
    except FileNotFoundError:
        raise MissingFile(f"there is no file '{path}'") from None
    except OSError as error:
        raise MissingFile(f"cannot read '{path}': {error.strerror or error}") from None
    except ValueError as error:
        raise DamagedFile(f"'{path}' is not a saved {words}: {error}") from None
    return opened(data, kind, f"'{path}'")


def write_saved(path: str | Path, data: Mapping[str, Any]) -> None:
    """Write plain data with their envelope into a JSON file, with one line per list of numbers."""
    write_text(path, json_text(data) + "\n")


def plain_data(data: Any) -> Any:
    """Arrays and tuples as lists; numbers that are not finite as words, which JSON can hold."""
    if isinstance(data, Mapping):
        return {key: plain_data(value) for key, value in data.items()}
    if isinstance(data, np.ndarray):
        return plain_data(data.tolist())
    if isinstance(data, list | tuple):
        return [plain_data(x) for x in data]
    if isinstance(data, float):  # numpy's too
        return float(data) if math.isfinite(data) else str(float(data))
    return data


def json_text(data: Any, indent: str = "") -> str:
    """JSON with one line per list of numbers or words."""
    deeper = indent + "  "
    if isinstance(data, Mapping) and data:
        lines = [f"{deeper}{json.dumps(key)}: {json_text(value, deeper)}" for key, value in data.items()]
        return "{\n" + ",\n".join(lines) + f"\n{indent}}}"
    if isinstance(data, list) and any(isinstance(x, Mapping | list) for x in data):
        return "[\n" + ",\n".join(deeper + json_text(x, deeper) for x in data) + f"\n{indent}]"
    return json.dumps(data, allow_nan=False)
