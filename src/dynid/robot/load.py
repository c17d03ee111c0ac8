"""Load a robot from a file, a Pinocchio model or the name of a built-in robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from dynid.errors import ModelError, did_you_mean
from dynid.robot.drives import FileDrives, carried_value
from dynid.robot.model import BASE_KINDS, BaseKind, Robot

if TYPE_CHECKING:
    import pinocchio as pin

__all__ = ["builtin_robots", "load_robot"]


def builtin_robots() -> dict[str, str]:
    """Built-in robots.

    Returns
    -------
    dict of str to str
        Name and one-line description of each robot, sorted by name.

    Examples
    --------
    >>> import dynid
    >>> list(dynid.builtin_robots())
    ['box2', 'iiwa14', 'puma560', 'rv2sq', 'twolink', 'tx40', 'wam7']
    """
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
    """Load a robot from a URDF, MJCF, SDF or TOML file, a Pinocchio model, or the name of a built-in robot.

    Parameters
    ----------
    source : str, Path or pinocchio.Model
        Path of a .urdf, .xml (MJCF), .sdf or .toml file, name of a built-in robot (see `builtin_robots`), or model.
    friction : str or mapping, optional
        Friction model of all joints, or a mapping from joint name to model: "none", or any of "viscous",
        "viscous-asymmetric", "coulomb", "coulomb-asymmetric" and "offset", joined by "+". Values start from those of
        the file. If neither `friction` nor `rotor_inertia` is given, TOML and built-in robots keep the drive terms of
        their file and other robots have none.
    rotor_inertia : bool or sequence of str, optional
        Whether joints have a rotor inertia parameter, or the names of those that do.
    base : {"fixed", "floating", "instrumented"}, optional
        Type of base; that of the file if not given. See `Robot`.
    gravity : array_like, shape (3,), optional
        Gravity in the base frame (m/s2).
    limits : mapping, optional
        Joint limits that replace those of the file, as for `Robot.with_limits`.

    Returns
    -------
    Robot

    Raises
    ------
    ModelError
        If the file does not exist, is not valid, or holds something that is not supported; the message names it.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("tx40")
    >>> robot.n, len(robot.parameters)
    (6, 87)
    """
    if base is not None and base not in BASE_KINDS:
        raise ModelError(f"base '{base}' is unknown: use {', '.join(BASE_KINDS)}")
    robot, known = _read(source)
    if not robot.source and isinstance(source, str | Path):
        robot = replace(robot, source=Path(source).name)
    if friction is not None or rotor_inertia is not None:
        robot = robot.with_drives(friction, rotor_inertia=rotor_inertia)
        if known is not None:
            robot = _with_file_values(robot, known)
    if base is not None and base != robot.base:
        robot = robot.with_base(base)
    if gravity is not None:
        robot = robot.with_gravity(gravity)
    if limits is not None:
        robot = robot.with_limits(limits)
    return robot


def _with_file_values(robot: Robot, known: FileDrives) -> Robot:
    """Drive terms with the values of the file; those of a mimic joint are added to the joint that it follows."""
    total = {name: {"Ia": 0.0, "fv": 0.0, "fc": 0.0} for name in robot.coordinates}
    for joint in robot.joints:
        leader, ratio = (joint.mimic.leader, joint.mimic.ratio) if joint.mimic else (joint.name, 1.0)
        for symbol, value in known.get(joint.name, {}).items():
            total[leader][symbol] += value * (abs(ratio) if symbol == "fc" else ratio**2)
    drives = tuple(replace(t, value=carried_value(total[t.shaft], t.symbol)) for t in robot.drives)
    return replace(robot, drives=drives)


def _read(source: Any) -> tuple[Robot, FileDrives | None]:
    """The robot of the source, and the drive values of the file."""
    if not isinstance(source, str | Path):
        import pinocchio as pin

        if not isinstance(source, pin.Model):
            raise ModelError(f"a robot is loaded from a file, a built-in name or a Pinocchio model, got {source!r:.60}")
        from dynid.robot.pinocchio import file_drives, robot_from_model

        return robot_from_model(source), file_drives(source)
    text = str(source)
    path = Path(text)
    suffix = path.suffix.lower()
    if suffix in (".urdf", ".xml", ".mjcf", ".sdf", ".toml"):
        if not _there(path.is_file):
            raise ModelError(f"there is no file '{text}'")
        if suffix == ".toml":
            from dynid.robot.dh import read_toml

            return read_toml(path), None
        from dynid.robot.xmlfile import read_xml

        root = read_xml(path)
        if suffix == ".urdf" or root.tag == "robot":
            from dynid.robot.urdf import read_urdf

            return read_urdf(root, path)
        if suffix == ".sdf" or root.tag == "sdf":
            from dynid.robot.sdf import read_sdf

            return read_sdf(root, path)
        from dynid.robot.mjcf import read_mjcf

        return read_mjcf(root, path)
    names = builtin_robots()
    if text not in names:
        if _there(path.exists):
            raise ModelError(f"'{text}' is not a robot file: use .urdf, .xml (MJCF), .sdf or .toml")
        hint = did_you_mean(text, names, closeness=0.4) or f"; the built-in robots are {', '.join(names)}"
        raise ModelError(f"no file and no built-in robot '{text}'{hint}")
    from dynid.robot.dh import read_toml

    with resources.as_file(resources.files("dynid.robot.builtin") / f"{text}.toml") as file:
        return read_toml(file), None


def _there(look: Callable[[], bool]) -> bool:
    """Whether a path exists; False where the system cannot look it up."""
    try:
        return look()
    except OSError:
        return False
