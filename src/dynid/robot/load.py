"""Load a robot from a file, a Pinocchio model or the name of a built-in robot."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from numpy.typing import ArrayLike

from dynid.errors import ModelError, NoJointsError, Sentence, did_you_mean, keyword, named
from dynid.reading import check_regular
from dynid.robot.drives import FileDrives, TermKind, carried_value
from dynid.robot.mechanism import BASE_KINDS, BaseKind
from dynid.robot.model import Robot
from dynid.robot.notes import quoted

if TYPE_CHECKING:
    import pinocchio as pin

    from dynid.robot.shape_inertia import ShapeInertia

__all__ = ["USUAL_FRICTION", "builtin_robots", "load_robot"]

# The friction of joints whose file says nothing.
USUAL_FRICTION = "viscous+coulomb+offset"


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
    ['box2', 'fourbar', 'iiwa14', 'leg12', 'palletizer', 'psm', 'puma560', 'rv2sq', 'twolink', 'tx40', 'wam7']
    """
    return dict(_described())


@cache
def _described() -> tuple[tuple[str, str], ...]:
    """Name and description of every built-in robot; the files of the package do not change."""
    import tomllib

    out = {}
    for entry in sorted(resources.files("dynid.robot.builtin").iterdir(), key=lambda e: e.name):
        if entry.name.endswith(".toml"):
            data = tomllib.loads(entry.read_text(encoding="utf-8"))
            out[entry.name.removesuffix(".toml")] = data.get("description", "")
    return tuple(out.items())


def load_robot(
    source: str | Path | pin.Model,
    *,
    friction: str | Mapping[str, str] | None = None,
    rotor_inertia: bool | Sequence[str] | None = None,
    base: BaseKind | None = None,
    gravity: ArrayLike | None = None,
    limits: Mapping[str, Mapping[str, Any]] | None = None,
    snap_angles: bool = False,
    lock: Mapping[str, float] | None = None,
    ignore_loops: bool = False,
    inertia_from: Literal["collision", "visual"] | None = None,
    density: float | None = None,
    shape_mass: float | None = None,
    drives: str | Path | Mapping[str, str | Path] | None = None,
    effects: Sequence[str] = (),
) -> Robot:
    """Load a robot from a URDF, MJCF, SDF or TOML file, a Pinocchio model, or the name of a built-in robot.

    Parameters
    ----------
    source : str, Path or pinocchio.Model
        Path of a .urdf, .xml (MJCF), .sdf, .usd or .toml file, name of a built-in robot (`builtin_robots`), or model.
    friction : str or mapping, optional
        Friction model of all joints, or a mapping from joint name to model: "none", or any of "viscous",
        "viscous-asymmetric", "coulomb", "coulomb-asymmetric" and "offset", joined by "+". Values start from those of
        the file. "auto" keeps the friction of the file, or is viscous+coulomb+offset where it has none; method "auto"
        of `identify` chooses the terms in any case. If neither `friction` nor `rotor_inertia` is given, TOML and
        built-in robots keep the drive terms of their file and other robots have none.
    rotor_inertia : bool or sequence of str, optional
        Whether joints have a rotor inertia parameter, or the names of those that do.
    base : {"fixed", "floating", "instrumented"}, optional
        Type of base; that of the file if not given. See `Robot`.
    gravity : array_like, shape (3,), optional
        Gravity in the base frame (m/s2).
    limits : mapping, optional
        Joint limits that replace those of the file, as for `Robot.with_limits`.
    snap_angles : bool, default False
        Set angles of a URDF, SDF or TOML file that are multiples of pi/2 to their printed digits, such as 1.5708, to
        the exact multiples. Without it they are kept and named in `Robot.notes`.
    lock : mapping, optional
        Joints to be fixed, name to position (rad or m), as for `Robot.locked`.
    ignore_loops : bool
        Read the tree of a file with closed loops and leave out the constraints that close them; `Robot.notes` names
        them.
    inertia_from : {"collision", "visual"}, optional
        Compute the inertia of links of a URDF or SDF file that have none from these shapes. An MJCF file states itself
        where inertias come from.
    density : float, optional
        Density of these shapes (kg/m3), 1000 if neither it nor `shape_mass` is given.
    shape_mass : float, optional
        Mass (kg) of all links whose inertia is computed, together.
    drives : str, Path or mapping, optional
        Servo or motor of the library (`dynid.robot.known_drives`) whose armature and friction all joints have, or a
        mapping from regular expressions of joint names to such names. They replace those of the file.
    effects : sequence of str
        Effects beside bodies and plain friction, as for `Robot.with_effects`: "load-friction", "ripple=joint2:30".

    Returns
    -------
    Robot
        Its `notes` list what the file holds and the robot does not.

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
        raise ModelError(f"{named('base')} '{base}' is unknown: use {', '.join(BASE_KINDS)}", code="unknown_name")
    shapes = None
    if inertia_from is not None:
        from dynid.robot.shape_inertia import ShapeInertia

        shapes = ShapeInertia(inertia_from, density, shape_mass)
    elif density is not None or shape_mass is not None:
        raise ModelError(
            "density and shape_mass are for inertias from shapes: give inertia_from as well",
            "inertia_from",
            code="missing_argument",
        )
    robot, known = _read(source, snap_angles, ignore_loops, shapes)
    if not robot.nv and base in (None, "fixed"):
        raise NoJointsError(f"robot '{robot.name}' has no joint that moves, so there is nothing to identify")
    if not robot.source and isinstance(source, str | Path):
        robot = replace(robot, source=Path(source).name)
    if friction == "auto":
        friction = None if robot.drives else USUAL_FRICTION
    if friction is not None or rotor_inertia is not None:
        robot = robot.with_drives(friction, rotor_inertia=rotor_inertia)
        if known is not None:
            robot = _with_file_values(robot, known)
    if drives is not None:
        from dynid.robot.library import with_known_drives

        robot = with_known_drives(robot, drives)
    if known is not None:
        robot = replace(robot, notes=(*robot.notes, *_unused(robot, known)))
    if base is not None and base != robot.base:
        robot = robot.with_base(base)
    if gravity is not None:
        robot = robot.with_gravity(gravity)
    if limits is not None:
        robot = robot.with_limits(limits)
    robot = robot.locked(lock) if lock else robot
    return robot.with_effects(*effects) if effects else robot


def _unused(robot: Robot, known: FileDrives) -> list[str]:
    """A sentence on drive values of the file for which the robot has no term, if there are any."""
    found: dict[str, list[str]] = {}
    leader = {j.name: j.mimic.leader if j.mimic else j.name for j in robot.joints}
    for symbols in (("fv", "fvp"), ("fc", "fcp"), ("Ia",)):
        have = {term.shaft for term in robot.drives if term.symbol in symbols}
        lost = [n for n, x in known.items() if n in leader and x.get(symbols[0]) and leader[n] not in have]
        found |= {symbols[0]: lost} if lost else {}
    if not found:
        return []
    kinds = {"fv": "damping", "fc": "Coulomb friction", "Ia": "rotor inertia (armature)"}
    laws = [law for symbol, law in (("fv", "viscous"), ("fc", "coulomb")) if symbol in found]
    options = [keyword("friction", "+".join(laws))] * bool(laws) + [keyword("rotor_inertia", True)] * ("Ia" in found)
    joints = list(dict.fromkeys(name for lost in found.values() for name in lost))
    passive = " (passive joints by name)" if any(name in robot.passive for name in joints) else ""
    *first, last = (kinds[symbol] for symbol in found)
    what = f"{' and '.join([', '.join(first), last] if first else [last])} of {quoted('joint', joints, most=3)}"
    return [
        Sentence(
            f"{what} in the file {'are' if first else 'is'} not modeled: load it with "
            f"{' and '.join(options)}{passive}; method auto chooses what the recording shows"
        )
    ]


def _with_file_values(robot: Robot, known: FileDrives) -> Robot:
    """Drive terms with the values of the file; those of a mimic joint are added to the joint that it follows."""
    total = {name: {"Ia": 0.0, "fv": 0.0, "fc": 0.0} for name in robot.tree_coordinates}
    for joint in robot.joints:
        leader, ratio = (joint.mimic.leader, joint.mimic.ratio) if joint.mimic else (joint.name, 1.0)
        for symbol, value in known.get(joint.name, {}).items():
            total[leader][symbol] += value * (abs(ratio) if symbol == "fc" else ratio**2)
    drives = []
    for term in robot.drives:
        own = term.shaft in total and term.kind not in (TermKind.SPRING, TermKind.CUSTOM)
        drives.append(replace(term, value=carried_value(total[term.shaft], term.symbol)) if own else term)
    return replace(robot, drives=tuple(drives))


def _read(
    source: Any, snap_angles: bool, ignore_loops: bool, shapes: ShapeInertia | None
) -> tuple[Robot, FileDrives | None]:
    """The robot of the source, and the drive values of the file."""
    if not isinstance(source, str | Path):
        if snap_angles:
            raise ModelError(
                "snap_angles is for URDF, SDF and TOML files, not for a model in memory",
                "snap_angles",
                code="not_applicable",
            )
        import pinocchio as pin

        if not isinstance(source, pin.Model):
            raise ModelError(
                f"a robot is loaded from a file, a built-in name or a Pinocchio model, got {source!r:.60}",
                "source",
                code="invalid_type",
            )
        from dynid.robot.pinocchio import file_drives

        return Robot.from_pinocchio(source), file_drives(source)
    text = str(source)
    path = Path(text)
    suffix = path.suffix.lower()
    if suffix in (".usd", ".usda", ".usdc", ".usdz") and _there(path.is_file):
        from dynid.robot.usd import read_usd

        return read_usd(path, ignore_loops=ignore_loops)
    if suffix in (".urdf", ".xml", ".mjcf", ".sdf", ".toml"):
        _check_file(path, text)
        if suffix == ".toml":
            from dynid.robot.dh import read_toml

            return read_toml(Robot, path, snap_angles), None
        from dynid.robot.xmlfile import read_xml

        root = read_xml(path)
        if suffix == ".urdf" or root.tag == "robot":
            from dynid.robot.urdf import read_urdf

            return _with_angles(partial(read_urdf, shapes=shapes), root, path, snap_angles)
        if suffix == ".sdf" or root.tag == "sdf":
            from dynid.robot.sdf import read_sdf

            return _with_angles(partial(read_sdf, ignore_loops=ignore_loops, shapes=shapes), root, path, snap_angles)
        if snap_angles:
            raise ModelError(
                f"snap_angles is for URDF, SDF and TOML files, and '{path.name}' is an MJCF file",
                "snap_angles",
                code="not_applicable",
            )
        if shapes is not None:
            raise ModelError(
                f"inertia_from is for URDF and SDF files: {path.name} says itself where inertias come from",
                "inertia_from",
                code="not_applicable",
            )
        from dynid.robot.mjcf import read_mjcf

        return read_mjcf(root, path, ignore_loops=ignore_loops)
    if suffix == ".xacro":
        raise ModelError(
            f"{path.name} is a xacro file: run xacro ('xacro {path.name} > robot.urdf') and load the URDF",
            code="file_format",
        )
    names = builtin_robots()
    if text not in names:
        if _there(path.exists):
            raise ModelError(
                f"'{text}' is not a robot file: use .urdf, .xml (MJCF), .sdf, .usd or .toml",
                "source",
                code="file_format",
            )
        hint = did_you_mean(text, names, closeness=0.4) or f"; the built-in robots are {', '.join(names)}"
        raise ModelError(f"no file and no built-in robot '{text}'{hint}", "source", code="unknown_name")
    from dynid.robot.dh import read_toml

    with resources.as_file(resources.files("dynid.robot.builtin") / f"{text}.toml") as file:
        return read_toml(Robot, file, snap_angles), None


def _with_angles(
    read: Callable[[ET.Element, Path], tuple[Robot, FileDrives]], root: ET.Element, path: Path, snap: bool
) -> tuple[Robot, FileDrives]:
    """What the reader makes of the file, with its rounded angles named and, on request, made exact."""
    from dynid.robot.angles import note_on_angles, snap_file_angles

    found = snap_file_angles(root, snap)
    robot, drives = read(root, path)
    return (replace(robot, notes=(*robot.notes, note_on_angles(found, snap))) if found else robot), drives


def _check_file(path: Path, text: str) -> None:
    """Refuse what is no regular file, before it is opened."""
    try:
        check_regular(path)
    except FileNotFoundError:
        raise ModelError(f"there is no file '{text}'", "source", code="file_missing") from None
    except OSError as error:
        raise ModelError(f"'{text}' cannot be read: {error.strerror}", "source", code="file_missing") from None


def _there(look: Callable[[], bool]) -> bool:
    """Whether a path exists; False where the system cannot look it up."""
    try:
        return look()
    except OSError:
        return False
