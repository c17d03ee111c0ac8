"""Generated code against Sousa (2014): formulas of the example robot, and numbers of operations."""

from __future__ import annotations

import ctypes
import subprocess
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.codegen.compiled import STRICT, find_compiler
from dynid.codegen.generate import generate_code
from dynid.dynamics.frames import frame_jacobian, frame_placement
from dynid.errors import DataError
from dynid.parameters.base import base_parameters, random_states
from dynid.robot.inertia import TEXTBOOK_SYMBOLS
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from studies.reproduce.structure import form_row
from studies.reproduce.study import Figure, number, published

__all__ = ["example_robot", "figures"]

Array = NDArray[np.float64]

_SAMPLES = 1000
_ROUNDING = "rounding"


def figures() -> Iterator[Figure]:
    """Every figure of sections 7.1.2 to 7.1.4 that can be recomputed."""
    table = published("codegen")
    robot = example_robot(table["example"])
    yield from _kinematics(robot)
    yield from _base(robot, table["example"])
    yield _torques(robot)
    yield from _operations(table["operations"])


def example_robot(table: dict[str, Any]) -> Robot:
    """The robot of two joints with random parameters: the thesis prints its formulas but no values."""
    rows = [(alpha * np.pi, a, d, theta * np.pi) for alpha, a, d, theta in table["rows"]]
    robot = Robot.from_dh(rows, "standard", name="example").with_drives(table["friction"])
    return robot.with_parameters(np.random.default_rng(7).uniform(0.1, 1.0, len(robot.layout)))


def _kinematics(robot: Robot) -> Iterator[Figure]:
    section = "Example robot, kinematics (Sousa 2014, section 7.1.2)"
    q, _, _ = random_states(robot, _SAMPLES, 1)
    s1, s2, c1, c2 = *np.sin(q).T, *np.cos(q).T
    zero, one = np.zeros(_SAMPLES), np.ones(_SAMPLES)
    end = robot.links[-1].name
    rows = [
        [-s1 * s2, -c1, s1 * c2, zero],
        [s2 * c1, -s1, -c1 * c2, zero],
        [c2, zero, s2, zero],
        [zero, zero, zero, one],
    ]
    placement = np.moveaxis(np.array(rows), -1, 0)
    yield _largest(section, "placement of the end", placement, frame_placement(robot, q, end))
    jacobian = np.zeros((_SAMPLES, 6, 2))
    jacobian[:, 3, 1], jacobian[:, 4, 1], jacobian[:, 5, 0] = -c1, -s1, 1.0
    yield _largest(section, "Jacobian of the end", jacobian, frame_jacobian(robot, q, end))


def _largest(section: str, name: str, printed: Array, ours: Array) -> Figure:
    difference = float(np.abs(printed - ours).max())
    return Figure(section, name, "formulas", f"within {difference:.1e}", difference, 1e-12, _ROUNDING)


def _base(robot: Robot, table: dict[str, Any]) -> Iterator[Figure]:
    section = "Example robot, base parameters (Sousa 2014, section 7.1.2)"
    base = base_parameters(robot)
    yield number(section, "count", table["base"], base.count, 0.0, "a count is exact")
    for text in table["expressions"]:
        row = form_row(table, robot, text)
        distances = np.abs(base.matrix - row).max(axis=1)
        k = int(np.argmin(distances))
        yield Figure(section, text, text, base.expressions[k], float(distances[k]), table["tolerance"], table["reason"])


def _torques(robot: Robot) -> Figure:
    """Generated C with symbolic parameters against the printed formulas, both compiled by the same compiler."""
    section, name = "Example robot, inverse dynamics in C (Sousa 2014, section 7.1.3)", "largest difference, N m"
    try:
        compiler = find_compiler()
    except DataError as error:
        return Figure(section, name, "0", str(error), np.inf, 1e-12, _ROUNDING)
    q, v, a = random_states(robot, _SAMPLES, 2)
    ours = generate_code(robot, ("inverse_dynamics",), parameters="symbolic").compile()
    torque = ours.call("inverse_dynamics", q, v, a, robot.parameters)
    order = [robot.parameter_names.index(f"{s}_{link.name}") for link in robot.links[1:] for s in TEXTBOOK_SYMBOLS]
    drives = [[robot.parameter_labels.index(f"{s}_{j}") for s in ("fv", "fc")] for j in (1, 2)]
    values = robot.parameters[[*order[:10], *drives[0], *order[10:], *drives[1]]]
    difference = float(np.abs(torque - _printed(compiler, q, v, a, values)).max())
    return Figure(section, name, "0", f"{difference:.1e}", difference, 1e-12, _ROUNDING)


def _printed(compiler: str, q: Array, v: Array, a: Array, values: Array) -> Array:
    source = resources.files("studies.reproduce") / "data" / "example_robot.c"
    out = np.empty_like(q)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "printed.c"
        path.write_text(source.read_text(encoding="utf-8"), encoding="utf-8")
        library = path.with_suffix(".so")
        command = [compiler, *STRICT, "-O2", "-shared", "-fPIC", str(path), "-o", str(library), "-lm"]
        subprocess.run(command, check=True, capture_output=True)
        entry = ctypes.CDLL(str(library)).printed_inverse_dynamics
        entry.restype, entry.argtypes = None, [ctypes.c_void_p] * 5
        for k in range(len(q)):
            entry(*(x[k].ctypes.data for x in (q, v, a)), values.ctypes.data, out[k].ctypes.data)
    return out


def _operations(table: dict[str, list[int]]) -> Iterator[Figure]:
    section = "Operations of generated inverse dynamics (Sousa 2014, Table 7.1)"
    reason = "at most as many; the table does not state which friction is included"
    unsure = "for the record: the table's geometry and friction are not printed"
    for name, expected in table.items():
        robot = load_robot(name)
        cases = {
            "all drives, parms standard": (robot, "symbolic"),
            "all drives, parms base": (robot, "symbolic-base"),
            "all drives, folded values": (robot, "standard"),
            "joint friction, parms standard": (robot.without("*").with_drives("viscous+coulomb"), "symbolic"),
            "no drives, parms standard": (robot.without("*"), "symbolic"),
            "no drives, folded values": (robot.without("*"), "standard"),
        }
        tolerance, why = (0.0, reason) if name == "wam7" else (np.inf, unsure)
        for case, (model, parameters) in cases.items():
            code = generate_code(model, ("inverse_dynamics",), parameters=parameters, allow_infeasible=True)
            counts = code.operations["inverse_dynamics"]
            # Sign changes are counted as additions, which is not in our favour.
            ours = {"additions": counts.additions + counts.negations, "multiplications": counts.multiplications}
            for (what, count), most in zip(ours.items(), expected, strict=True):
                over = float(max(0, count - most))
                yield Figure(section, f"{name}, {case}, {what}", f"{most}", f"{count}", over, tolerance, why)
