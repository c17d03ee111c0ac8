"""Controllers as TOML files: what kind, at which rate, with which gains."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError, DynidError
from dynid.files import write_text
from dynid.robot.model import Robot
from dynid.simulation import laws, model_laws
from dynid.simulation.laws import Controller, LinearController

__all__ = ["load_controller", "save_controller"]

Array = NDArray[np.float64]

# Numbers a kind needs beside its rate.
_NEEDS = {
    "cascade": ("kp", "kv"),
    "pd": ("kp", "kd"),
    "pid": ("kp", "ki", "kd"),
    "computed-torque": ("kp", "kd"),
    "impedance": ("stiffness", "damping"),
    "transfer-function": ("numerators", "denominators"),
    "state-space": ("A", "B", "C", "D"),
}
_FED = ("cascade", "pd", "pid", "transfer-function", "state-space")
_KNOWN = ("none", "gravity", "computed torque")
_BANDWIDTH = ("cascade", "pd")
_DEPTH = {"numerators": 2, "denominators": 2, "A": 3, "B": 3, "C": 2, "D": 2}


def load_controller(path: str | Path, robot: Robot) -> LinearController:
    """The controller of a TOML file, for this robot, which is also the model it knows.

    Keys: kind (cascade, pd, pid, computed-torque, impedance, transfer-function, state-space), rate (Hz), its gains, one
    number or one a joint, or for cascade and pd `bandwidth` (Hz) instead, with `damping_ratio`; and for all but
    computed-torque and impedance `feedforward` (none, gravity, full).
    """
    try:
        data = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"there is no controller file '{path}'") from None
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read the controller file '{path}': {error}") from None
    except tomllib.TOMLDecodeError as error:
        raise DataError(f"the controller file '{path}' is not TOML: {error}") from None
    try:
        return _controller(data, robot)
    except DynidError as error:
        raise DataError(f"controller file '{path}': {error}") from None


def save_controller(controller: Controller, path: str | Path) -> None:
    """Write a linear controller as a state-space file that `load_controller` reads back, number by number."""
    if not isinstance(controller, LinearController):
        raise DataError(f"controller '{controller.name}' is a function, which no file can hold")
    if controller.corrections or not isinstance(controller.feedforward, str):
        raise DataError(f"controller '{controller.name}' feeds a torque model forward, which no file can hold")
    if controller.knows not in _KNOWN:
        raise DataError(f"controller '{controller.name}' has a model of its own, which no file can hold")
    matrices = "ABCD" if controller.A.size else "D"
    lines = [
        'kind = "state-space"',
        f"name = {json.dumps(controller.name, ensure_ascii=False)}",
        f"rate = {float(controller.rate)!r}",
        f'feedforward = "{controller.feedforward}"',
        f'knows = "{controller.knows}"',
        *(f"{name} = {json.dumps(getattr(controller, name).tolist())}" for name in matrices),
    ]
    write_text(path, "\n".join([*lines, ""]))


def _controller(data: Mapping[str, Any], robot: Robot) -> LinearController:
    kind = data.get("kind")
    if kind not in _NEEDS:
        raise DataError(f"kind = {kind!r} is unknown: use {', '.join(_NEEDS)}")
    by_bandwidth = kind in _BANDWIDTH and "bandwidth" in data
    names = ("bandwidth",) if by_bandwidth else _NEEDS[kind]
    if kind == "state-space" and "A" not in data:  # no memory
        names = ("D",)
    known = {"kind", "rate", *names}
    known |= {"damping_ratio"} if by_bandwidth else set()
    known |= {"feedforward"} if kind in _FED else set()
    known |= {"name", "knows"} if kind == "state-space" else set()
    for key in data:
        if key not in known:
            raise DataError(f"'{key}' has no place beside kind = '{kind}', which takes {', '.join(sorted(known))}")
    rate = float(_numbers(data, "rate", 0))
    given = [_numbers(data, name, _DEPTH.get(name, 1)) for name in names]
    if by_bandwidth:
        ratio = float(_numbers(data, "damping_ratio", 0)) if "damping_ratio" in data else 1.0
        kp, kv = laws.bandwidth_gains(robot, given[0], ratio)
        given = [kp, kv] if kind == "cascade" else [kp * kv, kv]
    elif kind not in ("transfer-function", "state-space"):
        given = [np.full(robot.n, g) if g.size == 1 else g for g in given]
    law = _MAKERS[kind](rate, robot, *given)
    if law.n != robot.n:
        raise DataError(f"it has {law.n} joints, robot '{robot.name}' {robot.n}")
    if kind == "state-space":
        if data.get("knows", "none") not in _KNOWN:
            raise DataError(f"'knows' is one of {', '.join(_KNOWN)}, not {data['knows']!r}")
        law = replace(law, name=str(data.get("name", law.name)), knows=data.get("knows", "none"), model=robot)
    return law.with_feedforward(data["feedforward"], robot) if "feedforward" in data else law


def _numbers(data: Mapping[str, Any], name: str, depth: int) -> Array:
    """An array of `depth` axes; a single number may stand for a list."""
    if name not in data:
        raise DataError(f"'{name}' is missing")
    try:
        values = np.array(data[name], dtype=float)
    except (TypeError, ValueError):
        values = np.array(np.nan)
    if values.ndim != depth and not (depth == 1 and values.ndim == 0):
        raise DataError(f"'{name}' needs numbers nested {depth} deep")
    if not np.all(np.isfinite(values)):
        raise DataError(f"'{name}' must be finite numbers, in lists of one length")
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
