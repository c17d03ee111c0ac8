"""Commands for the real robot as C99 code: tables of the chain, its errors and bodies, and the solver of `command`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from importlib import resources
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.frames import frame_on_link
from dynid.errors import InvalidValue, NotApplicable
from dynid.files import make_folder, write_text
from dynid.geometry.command import CLOSE, DAMPING, LONGEST, SLACK, STEPS, Command
from dynid.geometry.real import JointErrors, RealRobot, joint_errors
from dynid.geometry.tangents import rotations
from dynid.geometry.unknowns import Unknown, joint_axes
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.robot.spatial import placement

__all__ = ["write_command_c"]

Array = NDArray[np.float64]

_WIDTH = 118


def write_command_c(
    folder: str | Path,
    robot: Robot,
    unknowns: Sequence[Unknown],
    values: ArrayLike,
    frame: str,
    *,
    bodies: Robot | None = None,
    name: str = "command",
) -> tuple[Path, Path]:
    """Write `command_for` as C99 code without dependencies, allocations or state, with a fixed number of steps.

    Parameters
    ----------
    folder : str or Path
        Created if it does not exist.
    robot : Robot
        The robot of the file.
    unknowns : sequence of Unknown
        What differs.
    values : array_like, shape (K,)
        By how much.
    frame : str
        Link or frame that is the tool.
    bodies : Robot, optional
        Robot whose bodies load the joints, the payload among them; the same by default.
    name : str
        Name of the files and prefix of the C functions: name(q, command), name_pose(wanted, start, command) and
        name_place(q, tool).

    Returns
    -------
    tuple of Path
        Paths of name.c and name.h.

    Raises
    ------
    InvalidValue
        If the name cannot be one in C.
    NotApplicable
        If no joint moves the frame.

    Examples
    --------
    >>> import dynid, tempfile
    >>> from dynid.geometry import Unknown, write_command_c
    >>> robot = dynid.load_robot("puma560")
    >>> zero = Unknown("zero", "joint2", "zero", "rad")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     source, header = write_command_c(folder, robot, [zero], [0.01], "link6", name="arm")
    ...     print("int arm(const double q[6], double command[6]);" in header.read_text())
    True
    """
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise InvalidValue(f"'{name}' cannot be a name in C: use letters, digits and underscores", "name")
    command = Command(RealRobot(robot, tuple(unknowns), np.asarray(values, dtype=float), bodies), frame)
    if not command.chain:
        raise NotApplicable(f"no joint of robot '{robot.name}' moves '{frame}'", "frame")
    tables, count = _tables(command)
    words = {
        "NAME": name,
        "GUARD": f"{name.upper()}_H",
        "ROBOT": _plain(robot.name),
        "FRAME": _plain(frame),
        "COORDINATES": ", ".join(map(_plain, robot.coordinates)),
        "N": str(robot.n),
        "CHAIN": str(len(command.chain)),
        "BODIES": str(count),
        "STEPS": str(STEPS),
        "WHOLE": str(int(command.whole)),
        "DAMPING": repr(DAMPING),
        "SLACK": repr(SLACK),
        "LONGEST": repr(LONGEST),
        "CLOSE": repr(CLOSE),
        "TABLES": tables,
    }
    written = []
    make_folder(folder)
    for ending in ("c", "h"):
        text = resources.files("dynid.geometry").joinpath("c", f"command.{ending}").read_text()
        path = Path(folder) / f"{name}.{ending}"
        write_text(path, re.sub("@([A-Z]+)@", lambda found: words[found[1]], text))
        written.append(path)
    return written[0], written[1]


def _tables(command: Command) -> tuple[str, int]:
    """Constants of chain and bodies, and the number of joints of the bodies; none where nothing bends."""
    real, robot = command.real, command.real.robot
    errors = joint_errors(robot, real.unknowns, real.values)
    bends = any(errors[i].compliance or np.any(errors[i].bending) for i in command.chain)
    bodies = robot if real.bodies is None else real.bodies
    loaded = bodies.joints if bends else ()
    place_of = {j.name: k for k, j in enumerate(loaded)}
    chain = [(robot.joints[i], errors[i]) for i in command.chain]
    of_joint = {j.name: e for j, e in chain}
    columns, ratios, offsets = zip(*command.leaders, strict=True)
    whole: dict[str, Sequence[int]] = {
        "slides": [int(j.kind == "prismatic") for j, _ in chain],
        "coordinate": columns,
        "carried": [place_of.get(j.name, -1) for j, _ in chain],
        "body_parent": [j.parent for j in loaded],
        "body_slides": [int(j.kind == "prismatic") for j in loaded],
    }
    body_columns, body_ratios, body_offsets = [], [], []
    for joint in loaded:
        leader = joint.name if joint.mimic is None else joint.mimic.leader
        body_columns.append(robot.coordinates.index(leader) if leader in robot.coordinates else -1)
        body_ratios.append(1.0 if joint.mimic is None else joint.mimic.ratio)
        body_offsets.append(0.0 if joint.mimic is None else joint.mimic.offset)
    whole["body_coordinate"] = body_columns
    links = bodies.links if bends else bodies.links[:1]
    real_numbers: dict[str, Sequence[ArrayLike]] = {
        "ratio": ratios,
        "offset": offsets,
        "placement": [j.placement[:3] for j, _ in chain],
        "mount": [j.mount[:3] for j, _ in chain],
        "axes": [_axes(j) for j, _ in chain],
        "shift": [e.shift for _, e in chain],
        "turn": [e.turn for _, e in chain],
        "zero": [e.zero for _, e in chain],
        "gear": [e.gear for _, e in chain],
        "waves": [e.waves for _, e in chain],
        "compliance": [e.compliance for _, e in chain],
        "bending": [e.bending for _, e in chain],
        "on_link": [frame_on_link(robot, command.frame)[1][:3]],
        "gravity": [bodies.gravity],
        "body_ratio": body_ratios,
        "body_offset": body_offsets,
        "body_placement": [_moved(j.placement, of_joint.get(j.name))[:3] for j in loaded],
        "body_mount": [j.mount[:3] for j in loaded],
        "body_axes": [_axes(j) for j in loaded],
        "body_mass": [x.inertia[0] for x in links],
        "body_first": [x.inertia[1:4] for x in links],
    }
    text = "".join(_table(name, "int", [str(v) for v in entries]) for name, entries in whole.items())
    for name, rows in real_numbers.items():
        flat = np.concatenate([np.ravel(r) for r in rows]) if len(rows) else np.zeros(0)
        text += _table(name, "double", [repr(float(v)) for v in flat])
    return text, len(loaded)


def _moved(frame: Array, errors: JointErrors | None) -> Array:
    """Placement (4, 4) of a joint with its errors."""
    if errors is None:
        return frame
    return np.asarray(frame @ placement(rotations(errors.turn), errors.shift))


def _axes(joint: Joint) -> Array:
    """The two axes across a joint, and its own, as rows."""
    return np.vstack([joint_axes(joint).T[:2], joint.axis])


def _table(name: str, kind: str, entries: list[str]) -> str:
    """One constant array; C has no empty arrays, so an empty one holds a zero."""
    lines, line = [], "   "
    for entry in entries or ["0"]:
        if len(line) + len(entry) + 2 > _WIDTH:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    return "\n".join([f"static const {kind} {name}[] = {{", *lines, line, "};\n"])


def _plain(text: str) -> str:
    """Text for a comment in C."""
    return re.sub(r"[^\x20-\x7e]|/\*|\*/|\\", "?", text)
