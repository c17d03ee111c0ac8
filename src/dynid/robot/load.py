"""One door for every robot: a file, a Pinocchio model or a built-in name."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.errors import ModelError
from dynid.robot.model import BASE_KINDS, BaseKind, Robot

if TYPE_CHECKING:
    import pinocchio as pin

__all__ = ["builtin_robots", "load_robot"]


def builtin_robots() -> dict[str, str]:
    """Names of the built-in robots and one line on each."""
    import tomllib

    out = {}
    for entry in sorted(resources.files("dynid.robot.builtin").iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".toml"):
            data = tomllib.loads(entry.read_text(encoding="utf-8"))
            out[entry.name.removesuffix(".toml")] = data.get("description", "")
    return out


def load_robot(
    source: str | Path | pin.Model,
    *,
    friction: str | Mapping[str, str] | None = None,
    rotor_inertia: bool | Sequence[str] | None = None,
    base: BaseKind | None = None,
    gravity: ArrayLike | None = None,
    limits: Mapping[str, Mapping[str, Any]] | None = None,
) -> Robot:
    """Robot from a URDF, MJCF (.xml) or TOML file, a Pinocchio model, or a built-in name.

    `friction` is a law such as "viscous+coulomb+offset" for all joints, or a mapping from joint to law;
    `rotor_inertia` a flag or the joints that have one. Left out, a TOML or built-in robot keeps what its
    file says, other files have no drive terms. `base`, `gravity` (m/s2, base frame) and `limits`
    override the file.

    >>> robot = load_robot("tx40")
    >>> robot.n, len(robot.parameters)
    (6, 87)
    """
    if base is not None and base not in BASE_KINDS:
        raise ModelError(f"base '{base}' is unknown: use {', '.join(BASE_KINDS)}")
    robot, model = _read(source)
    if friction is not None or rotor_inertia is not None:
        robot = robot.with_drives(friction, rotor_inertia)
        if model is not None:
            from dynid.robot.pinocchio import apply_file_drives

            robot = apply_file_drives(robot, model)
    if base is not None and base != robot.base:
        robot = robot.with_base(base)
    if gravity is not None:
        robot = robot.with_gravity(np.asarray(gravity, dtype=float))
    if limits is not None:
        robot = robot.with_limits(limits)
    return robot


def _read(source: Any) -> tuple[Robot, Any]:
    """The robot as the source has it, and the Pinocchio model where there was one."""
    if not isinstance(source, str | Path):
        return Robot.from_pinocchio(source), source
    text = str(source)
    path = Path(text)
    suffix = path.suffix.lower()
    if suffix in (".urdf", ".xml", ".mjcf", ".toml"):
        if not path.is_file():
            raise ModelError(f"there is no file '{text}'")
        if suffix == ".toml":
            from dynid.robot.dh import read_toml

            return read_toml(path), None
        if suffix == ".urdf" or _root_tag(path) == "robot":
            from dynid.robot.urdf import read_urdf

            return read_urdf(path)
        from dynid.robot.mjcf import read_mjcf

        return read_mjcf(path)
    names = builtin_robots()
    if text not in names:
        if path.exists():
            raise ModelError(f"'{text}' is no robot file: use .urdf, .xml (MJCF) or .toml")
        close = difflib.get_close_matches(text, names, n=3, cutoff=0.4)
        hint = f"did you mean {' or '.join(close)}?" if close else f"the built-in ones are {', '.join(names)}"
        raise ModelError(f"no file and no built-in robot '{text}'; {hint}")
    from dynid.robot.dh import read_toml

    with resources.as_file(resources.files("dynid.robot.builtin") / f"{text}.toml") as file:
        return read_toml(file), None


def _root_tag(path: Path) -> str:
    """Root element of an XML file, to tell a URDF that is called .xml from an MJCF."""
    import xml.etree.ElementTree as ET

    try:
        for _, element in ET.iterparse(path, events=("start",)):
            return str(element.tag)
    except ET.ParseError as error:
        raise ModelError(f"{path.name} is not well-formed XML: {error}") from None
    return ""
