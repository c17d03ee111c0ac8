"""Saved estimates: JSON files that hold an estimate completely, with its robot, checked before anything is built."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import model_validator

from dynid import reading
from dynid.errors import (
    DamagedFile,
    Mismatch,
    MissingArgument,
    MissingFile,
    ModelError,
    WrongFormat,
    WrongVersion,
)
from dynid.feasibility.box import Quantity, Wall
from dynid.feasibility.prior import KnownMasses
from dynid.files import write_text
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.solution import Iteration, Outcome
from dynid.identification.judgement import Grade, Judgement
from dynid.parameters.base import BaseParameters
from dynid.recording.log_format import LogFormat
from dynid.robot.model import Robot
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from dynid.schema import Count, Finite, Flag, Matrix, Number, Stored, checked, is_square
from dynid.signals.domain import Domain
from dynid.signals.fingerprint import Fingerprint
from dynid.signals.settings import Signals

__all__ = [
    "StoredBaseParameter",
    "StoredEstimate",
    "StoredIteration",
    "StoredJudgement",
    "StoredMasses",
    "StoredStructure",
    "StoredWall",
    "estimate_from_dict",
    "estimate_to_dict",
    "json_text",
    "plain_data",
    "read_estimate",
    "read_json",
    "stored_robot",
    "write_estimate",
]


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


class StoredWall(Stored):
    """One side of the plausible box against which the data push."""

    link: str
    what: Quantity
    value: Number
    limit: Number
    force: Number


class StoredMasses(Stored):
    """Masses that were given, in kg."""

    total: Finite | None
    links: dict[str, Finite]


class StoredJudgement(Stored):
    """The verdict on an estimate in short."""

    grade: Grade
    reasons: list[str]
    checked: Flag


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
    noise_model: Literal["autocorrelated", "white", "repetitions"]
    freedom: Number
    independent_rows: list[Number]
    walls: list[StoredWall]
    fingerprint: dict[str, Any] | None
    known_masses: StoredMasses
    box: Flag | None
    judgement: StoredJudgement | None
    domain: dict[str, Any] | None

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


Array = NDArray[np.float64]

_NAME = "dynid estimate"
_FORMAT = f"{_NAME} 9"


def estimate_to_dict(estimate: Estimate) -> dict[str, Any]:
    """The complete estimate as plain data that JSON can hold; numbers that are not finite are the words nan and inf."""
    base, robot = estimate.base, estimate.robot
    names = robot.parameter_names
    data = {
        "format": _FORMAT,
        "method": estimate.method,
        "status": estimate.status,
        "outcome": estimate.outcome.value,
        "channels": base.channels,
        "rows": estimate.rows,
        "noise": estimate.noise,
        "rms": estimate.rms,
        "relative_error": estimate.relative_error,
        "condition_number": estimate.condition_number,
        "seconds": estimate.seconds,
        "notes": estimate.notes,
        "base_parameters": [
            {
                "name": base.names[i],
                "representative": names[base.kept[i]],
                "expression": base.expressions[i],
                "unit": base.units[i],
                "value": estimate.beta[i],
                "std": estimate.std[i],
                "combination": {names[j]: base.matrix[i, j] for j in _combined(base, i)},
            }
            for i in range(base.count)
        ],
        "standard_parameters": dict(zip(names, estimate.parameters, strict=True)),
        "parameter_classes": {name: kind.value for name, kind in estimate.parameter_classes.items()},
        "standard_parameters_from_method": estimate.standard is not None,
        "structure": {
            "method": base.method,
            "dependent": [names[j] for j in base.dependent],
            "without_effect": [names[j] for j in base.without_effect],
            "singular_values": base.singular_values,
            "gap": base.gap,
        },
        "signals": estimate.signals.to_dict(),
        "cutoffs": estimate.cutoffs,
        "log_format": None if estimate.log_format is None else estimate.log_format.model_dump(mode="json"),
        "robot": robot_to_dict(robot),
        "history": [{x.name: getattr(step, x.name) for x in fields(step)} for step in estimate.history],
        "covariance": estimate.covariance,
        "standard_covariance": estimate.standard_covariance,
        "noise_model": estimate.noise_model,
        "freedom": estimate.freedom,
        "independent_rows": estimate.independent_rows,
        "walls": [{**vars(wall)} for wall in estimate.walls],
        "fingerprint": None if estimate.fingerprint is None else estimate.fingerprint.to_dict(),
        "known_masses": asdict(estimate.known_masses),
        "box": estimate.box,
        "judgement": None if estimate.judgement is None else asdict(estimate.judgement),
        "domain": None if estimate.domain is None else estimate.domain.to_dict(),
    }
    plain: dict[str, Any] = plain_data(data)
    return plain


def estimate_from_dict(data: Mapping[str, Any], robot: Robot | None = None, where: str = "the data") -> Estimate:
    """Rebuild an estimate from what `estimate_to_dict` returned; `where` is the origin that messages name."""
    found = data.get("format") if isinstance(data, Mapping) else None
    if found != _FORMAT:
        if isinstance(found, str) and found.startswith(_NAME):
            raise WrongVersion(
                f"{where} is a saved estimate of another version ('{found}', needed is '{_FORMAT}'): identify again "
                "from the recording and save the new estimate"
            )
        raise WrongFormat(f"{where} is not a saved estimate")
    stored = checked(StoredEstimate, data, f"{where} is a damaged estimate")
    robot = stored_robot(stored.robot, robot, where, "Estimate.load")
    names = robot.parameter_names
    if set(stored.standard_parameters) != set(names):
        raise DamagedFile(f"{where} is a damaged estimate: its standard parameters are not those of its robot")
    try:
        return Estimate(
            base=_base(robot, stored),
            method=stored.method,
            beta=_array([x.value for x in stored.base_parameters]),
            covariance=_array(stored.covariance),
            noise=_array(stored.noise),
            rows=tuple(stored.rows),
            rms=_array(stored.rms),
            relative_error=_array(stored.relative_error),
            condition_number=stored.condition_number,
            status=stored.status,
            seconds=stored.seconds,
            outcome=stored.outcome,
            signals=Signals.from_dict(stored.signals),
            cutoffs=tuple(stored.cutoffs),
            notes=tuple(stored.notes),
            standard=_standard(stored, names),
            standard_covariance=None if stored.standard_covariance is None else _array(stored.standard_covariance),
            history=tuple(Iteration(**{**dict(x), "beta": _array(x.beta)}) for x in stored.history),
            log_format=None if stored.log_format is None else LogFormat.model_validate(stored.log_format),
            noise_model=stored.noise_model,
            freedom=stored.freedom,
            independent_rows=tuple(stored.independent_rows),
            walls=tuple(Wall(**dict(x)) for x in stored.walls),
            fingerprint=None if stored.fingerprint is None else Fingerprint.from_dict(stored.fingerprint),
            known_masses=KnownMasses(stored.known_masses.total, stored.known_masses.links),
            box=stored.box,
            judgement=_judgement(stored),
            domain=None if stored.domain is None else Domain.from_dict(stored.domain),
        )
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
        raise DamagedFile(f"{where} is a damaged estimate: {type(error).__name__} {error}") from None


def write_estimate(estimate: Estimate, path: str | Path) -> None:
    """Write an estimate into a JSON file, with one line per list of numbers."""
    write_text(path, json_text(estimate_to_dict(estimate)) + "\n")


def read_estimate(path: str | Path, robot: Robot | None = None) -> Estimate:
    """Read an estimate from a JSON file."""
    return estimate_from_dict(read_json(path, "a saved estimate"), robot, f"'{path}'")


def read_json(path: str | Path, what: str) -> Any:
    """The content of a JSON file, which should be `what`."""
    try:
        return reading.read_json(path)
    except FileNotFoundError:
        raise MissingFile(f"there is no file '{path}'") from None
    except OSError as error:
        raise MissingFile(f"cannot read '{path}': {error.strerror or error}") from None
    except ValueError as error:
        raise DamagedFile(f"'{path}' is not {what}: {error}") from None


def stored_robot(data: Mapping[str, Any], given: Robot | None, where: str, loader: str) -> Robot:
    """The stored robot, with the Python functions of custom drive terms of the given one; `loader` reads the file."""
    functions = {} if given is None else {t.name: t.function for t in given.drives if t.function is not None}
    try:
        stored = robot_from_dict(data, functions)
    except ModelError as error:
        if given is None:
            raise MissingArgument(f"{where} cannot be loaded alone: {error}, {loader}(path, robot=...)") from None
        raise Mismatch(f"{where} was made for another robot or other drive terms than '{given.name}'") from None
    if given is not None and not _same_structure(stored, given):
        raise Mismatch(f"{where} was made for another robot or other drive terms than '{given.name}'")
    return stored


def _same_structure(one: Robot, other: Robot) -> bool:
    """Whether two robots have the same kinematics and the same parameters, whatever their values."""
    if one.parameter_names != other.parameter_names or one.channels != other.channels:
        return False
    return len(one.joints) == len(other.joints) and all(
        a.kind == b.kind
        and a.parent == b.parent
        and np.allclose(a.placement, b.placement, atol=1e-9)
        and np.allclose(a.mount, b.mount, atol=1e-9)
        and np.allclose(a.axis, b.axis, atol=1e-9)
        for a, b in zip(one.joints, other.joints, strict=True)
    )


def _base(robot: Robot, stored: StoredEstimate) -> BaseParameters:
    """The stored base parameters of the robot."""
    place = {name: j for j, name in enumerate(robot.parameter_names)}
    matrix = np.zeros((len(stored.base_parameters), len(place)))
    for row, entry in zip(matrix, stored.base_parameters, strict=True):
        for name, weight in entry.combination.items():
            row[place[name]] = weight
        if row[place[entry.representative]] != 1.0:
            raise ValueError(f"base parameter '{entry.name}' does not have its representative '{entry.representative}'")
    matrix.flags.writeable = False
    kept = tuple(place[entry.representative] for entry in stored.base_parameters)
    dependent = tuple(place[name] for name in stored.structure.dependent)
    if sorted((*kept, *dependent)) != list(range(len(place))):
        raise ValueError("representatives and dependent parameters are not the parameters of the robot, each once")
    if not np.array_equal(matrix[:, list(kept)], np.eye(len(kept))):
        raise ValueError("a base parameter contains the representative of another one")
    unknown = sorted(set(stored.channels) - set(robot.channels))
    if unknown:
        raise ValueError(f"the robot has no channel '{unknown[0]}'")
    return BaseParameters(
        robot=robot,
        channels=tuple(stored.channels),
        method=stored.structure.method,
        matrix=matrix,
        kept=kept,
        dependent=dependent,
        singular_values=_array(stored.structure.singular_values),
        gap=stored.structure.gap,
        without_effect=tuple(place[name] for name in stored.structure.without_effect),
    )


def _standard(stored: StoredEstimate, names: Sequence[str]) -> Array | None:
    """The standard parameters in the order of the robot, if the method estimated them."""
    if not stored.standard_parameters_from_method:
        return None
    return _array([stored.standard_parameters[name] for name in names])


def _judgement(stored: StoredEstimate) -> Judgement | None:
    """The verdict that the file holds, if the estimate was assessed."""
    found = stored.judgement
    return None if found is None else Judgement(found.grade, tuple(found.reasons), found.checked)


def _combined(base: BaseParameters, i: int) -> list[int]:
    """Columns of a combination, its representative first."""
    return [base.kept[i], *(int(j) for j in np.flatnonzero(base.matrix[i]) if j != base.kept[i])]


def _array(values: Any) -> Array:
    """Stored numbers, words for those that are not finite included."""
    return np.array(values, dtype=float)


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
