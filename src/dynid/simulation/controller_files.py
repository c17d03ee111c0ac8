"""Controllers as TOML files: kind, rate and gains."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
from numpy.typing import NDArray

from dynid.errors import (
    DamagedFile,
    DynidError,
    InvalidShape,
    InvalidType,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingFile,
    NotApplicable,
    UnknownName,
    Unsupported,
    named,
)
from dynid.files import write_text
from dynid.quoting import toml_value
from dynid.reading import read_toml
from dynid.robot.model import Robot
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from dynid.simulation import laws, model_laws
from dynid.simulation.gains import bandwidth_gains
from dynid.simulation.laws import Controller, LinearController

__all__ = ["load_controller", "save_controller"]

Array = NDArray[np.float64]

# Keys that a kind needs beside its rate.
_NEEDS = {
    "cascade": ("kp", "kv"),
    "pd": ("kp", "kd"),
    "pid": ("kp", "ki", "kd"),
    "computed-torque": ("kp", "kd"),
    "impedance": ("stiffness", "damping"),
    "transfer-function": ("numerators", "denominators"),
    "state-space": ("A", "B", "C", "D"),
}
_WITH_FEEDFORWARD = ("cascade", "pd", "pid", "transfer-function", "state-space")
_MODEL_USES = get_args(laws.ModelUse)
_BANDWIDTH = ("cascade", "pd")
_DEPTH = {"numerators": 2, "denominators": 2, "A": 3, "B": 3, "C": 2, "D": 2}


def load_controller(path: str | Path | Mapping[str, Any], robot: Robot) -> LinearController:
    """Read a controller from a TOML file.

    Keys: `kind` (cascade, pd, pid, computed-torque, impedance, transfer-function, state-space); `rate` (Hz); the gains
    of the kind, one number or one per joint. Cascade and pd take `bandwidth` (Hz) and `damping_ratio` instead of gains.
    All kinds but computed-torque and impedance take `feedforward` (none, gravity, full).

    Parameters
    ----------
    path : str, Path or mapping
        TOML file, or the table that it would hold.
    robot : Robot
        The controlled robot. It is also the robot model of the controller, unless the file stores one, and supplies
        the Python functions of custom drive terms to a stored one.

    Returns
    -------
    LinearController

    Raises
    ------
    DataError
        If the file cannot be read, a key is unknown or missing, or the number of joints differs.
    """
    if isinstance(path, Mapping):
        return _controller(path, robot)
    try:
        data = read_toml(path)
    except FileNotFoundError:
        raise MissingFile(f"there is no controller file '{path}'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise MissingFile(f"cannot read the controller file '{path}': {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise DamagedFile(f"the controller file '{path}' is not TOML: {error}") from None
    try:
        return _controller(data, robot)
    except DynidError as error:
        raise error.at(f"controller file '{path}'") from None


def save_controller(controller: Controller, path: str | Path) -> None:
    """Write a linear controller as a state-space TOML file for `load_controller`, without loss of precision.

    The robot model of the controller is stored too, as JSON in the key `model`.

    Parameters
    ----------
    controller : LinearController
        A controller without a torque model as feed-forward.
    path : str or Path
        TOML file to write.

    Raises
    ------
    DataError
        If a file cannot represent the controller.
    """
    if not isinstance(controller, LinearController):
        raise Unsupported(
            f"{named('controller')} '{controller.name}' is a Python function, which cannot be written to a file"
        )
    if controller.corrections or not isinstance(controller.feedforward, str):
        raise Unsupported(
            f"controller '{controller.name}' has a torque model as feed-forward, which cannot be written to a file",
            "controller",
        )
    matrices = "ABCD" if controller.A.size else "D"
    lines = [
        'kind = "state-space"',
        f"name = {toml_value(controller.name)}",
        f"rate = {float(controller.rate)!r}",
        f'feedforward = "{controller.feedforward}"',
        f'model_use = "{controller.model_use}"',
        *(f"{name} = {toml_value(getattr(controller, name).tolist())}" for name in matrices),
    ]
    if controller.model is not None:
        model = json.dumps(robot_to_dict(controller.model), ensure_ascii=False)
        lines.append(f"model = {toml_value(model)}")
    write_text(path, "\n".join([*lines, ""]))


def _controller(data: Mapping[str, Any], robot: Robot) -> LinearController:
    """The controller of a parsed file."""
    kind = data.get("kind")
    if not isinstance(kind, str) or kind not in _NEEDS:
        raise UnknownName(f"kind = {kind!r} is unknown: use {', '.join(_NEEDS)}", "kind")
    by_bandwidth = kind in _BANDWIDTH and "bandwidth" in data
    names = ("bandwidth",) if by_bandwidth else _NEEDS[kind]
    if kind == "state-space" and "A" not in data:  # no states
        names = ("D",)
    known = {"kind", "rate", *names}
    known |= {"damping_ratio"} if by_bandwidth else set()
    known |= {"feedforward"} if kind in _WITH_FEEDFORWARD else set()
    known |= {"name", "model_use", "model"} if kind == "state-space" else set()
    for key in data:
        if key not in known:
            raise NotApplicable(
                f"key '{key}' is not allowed with kind = '{kind}', which takes {', '.join(sorted(known))}", "kind"
            )
    rate = float(_numbers(data, "rate", 0))
    given = [_numbers(data, name, _DEPTH.get(name, 1)) for name in names]
    if by_bandwidth:
        ratio = float(_numbers(data, "damping_ratio", 0)) if "damping_ratio" in data else 1.0
        kp, kv = bandwidth_gains(robot, given[0], damping=ratio)
        given = [kp, kv] if kind == "cascade" else [kp * kv, kv]
    elif kind not in ("transfer-function", "state-space"):
        given = [np.full(robot.n, g) if g.size == 1 else g for g in given]
    law = _MAKERS[kind](rate, robot, *given)
    if law.n != robot.n:
        raise Mismatch(f"the controller has {law.n} joints, robot '{robot.name}' {robot.n}")
    if kind == "state-space":
        if data.get("model_use", "none") not in _MODEL_USES:
            raise UnknownName(f"'model_use' is one of {', '.join(_MODEL_USES)}, not {data['model_use']!r}", "model_use")
        use, name = data.get("model_use", "none"), str(data.get("name", law.name))
        if "model" in data:
            model = _model(data["model"], robot)
            return replace(law, name=name, model_use=use, model=model, feedforward=data.get("feedforward", "none"))
        law = replace(law, name=name, model_use=use, model=None if use == "none" else robot)
    return law.with_feedforward(data["feedforward"], robot) if data.get("feedforward", "none") != "none" else law


def _model(text: Any, robot: Robot) -> Robot:
    """The stored robot model of a controller."""
    try:
        data = json.loads(text)
    except (TypeError, ValueError):
        raise InvalidType("'model' is not a stored robot", "model") from None
    return robot_from_dict(data, {t.name: t.function for t in robot.drives if t.function is not None})


def _numbers(data: Mapping[str, Any], name: str, depth: int) -> Array:
    """An array with `depth` axes; one number may replace a list."""
    if name not in data:
        raise MissingArgument(f"'{name}' is missing")
    try:
        values = np.array(data[name], dtype=float)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.ndim != depth and not (depth == 1 and values.ndim == 0):
        raise InvalidShape(f"'{name}' needs numbers nested {depth} deep")
    if not np.all(np.isfinite(values)):
        raise InvalidValue(f"'{name}' must be finite numbers, in lists of one length")
    return values


_MAKERS: dict[str, Callable[..., LinearController]] = {
    "cascade": lambda rate, _, *gains: laws.cascade(rate, *gains),
    "pd": lambda rate, _, *gains: laws.pd(rate, *gains),
    "pid": lambda rate, _, *gains: laws.pid(rate, *gains),
    "computed-torque": model_laws.computed_torque,
    "impedance": model_laws.impedance,
    "transfer-function": lambda rate, _, *rows: laws.transfer_function(rate, *rows),
    "state-space": lambda rate, _, *given: (laws.static if len(given) == 1 else laws.state_space)(rate, *given),
}
