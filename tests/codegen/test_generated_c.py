"""Generated C compiles without a warning and gives the Python result on ten thousand states."""

from __future__ import annotations

import ctypes
import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.codegen.c import SINE_COSINE
from dynid.codegen.compiled import STRICT, find_compiler
from dynid.codegen.functions import FUNCTIONS
from dynid.errors import DynidError
from tests.support.errors import expect_error
from tests.support.generated import difference, expected, needs_compiler, states
from tests.support.humanoids import humanoid

pytestmark = needs_compiler

SAMPLES = 10_000


def check(
    robot: Robot,
    functions: object = "all",
    parameters: str = "standard",
    flags: tuple[str, ...] = ("-O1",),
    within: float = 1e-12,
) -> None:
    """Compile with -std=c99 -Wall -Wextra -Werror and compare every function."""
    at = states(robot, SAMPLES)
    # Some published sets of the built-in robots are not possible ones; the code must hold for them as well.
    code = dynid.generate_code(robot, functions, parameters=parameters, allow_infeasible=True)  # type: ignore[arg-type]
    library = code.compile(flags)
    for function in code.program.functions:
        ours = library.call(function.name, *(at[x.name] for x in function.arguments))
        assert difference(ours, expected(robot, function.name, at)) < within, function.name


@pytest.mark.parametrize("name", ["tx40", *(pytest.param(x, marks=pytest.mark.slow) for x in ("wam7", "iiwa14"))])
def test_built_in_robots_with_numbers(name: str) -> None:
    check(dynid.load_robot(name))


def test_parameters_as_an_argument() -> None:
    """Without optimisation, which takes the compiler longer than all other robots."""
    check(dynid.load_robot("wam7"), [f for f in FUNCTIONS if f != "regressor"], "symbolic", ("-O0",))


def test_smooth_friction_in_c() -> None:
    robot = dynid.load_robot("puma560").with_smooth_coulomb(20.0)
    check(robot, ("inverse_dynamics", "drive_torque", "forward_dynamics"))


def test_humanoid_of_thirty_joints() -> None:
    """Straight-line code of a floating tree; without optimisation, as compiling thousands of lines takes long."""
    check(humanoid(), ("inverse_dynamics", "gravity_torque", "mass_matrix"), flags=("-O0",))


@pytest.mark.slow
def test_humanoid_of_thirty_joints_all_functions() -> None:
    check(humanoid(), flags=("-O0",))


def tiago() -> Robot:
    """A mobile manipulator: casters, a lift, an arm, a gripper whose fingers follow one another."""
    given = os.environ.get("DYNID_DATA")
    folder = Path(given) if given else Path(__file__).parents[3] / "shared" / "data"
    file = folder / "tiago-figaroh" / "tiago_48_schunk.urdf"
    if not file.is_file():
        pytest.skip("no real robot files: set DYNID_DATA to their folder")
    robot = dynid.load_robot(file, friction="viscous+coulomb+offset", rotor_inertia=True)
    numbers = np.where([p.inertial for p in robot.layout], robot.parameters, 0.2)
    return robot.with_parameters(numbers)


@pytest.mark.slow
@pytest.mark.real
def test_tiago() -> None:
    check(tiago(), flags=("-O0",))


@pytest.mark.real
def test_tiago_from_base_parameters() -> None:
    """The file has pi/2 to twelve digits, 4.9e-12 off: axes are parallel to that, and groupings hold to that."""
    check(tiago(), ("inverse_dynamics", "coriolis_torque", "mass_matrix"), "base", ("-O0",), within=5e-12)


def test_base_parameters_are_enough() -> None:
    """Standard vectors with the same base values give the same torques from code that saw the base values alone."""
    robot = dynid.load_robot("tx40")
    base = dynid.base_parameters(robot)
    at = states(robot, SAMPLES)
    code = dynid.generate_code(robot, ("inverse_dynamics", "mass_matrix"), parameters="base", values=base.values())
    library = code.compile()
    rest = np.random.default_rng(0).normal(size=len(base.dependent))
    other = robot.with_parameters(base.join(base.values(), rest))
    for machine in (robot, other):
        for function, arguments in (("inverse_dynamics", "qva"), ("mass_matrix", "q")):
            ours = library.call(function, *(at[x] for x in arguments))
            assert difference(ours, expected(machine, function, at)) < 1e-12


def test_base_regressor_has_the_columns_of_the_base() -> None:
    robot = dynid.load_robot("tx40")
    base = dynid.base_parameters(robot)
    at = states(robot, 100)
    code = dynid.generate_code(robot, ("regressor",), parameters="base")
    ours = code.compile().call("regressor", at["q"], at["v"], at["a"])
    assert difference(ours, base.regressor(at["q"], at["v"], at["a"])) < 1e-12


def test_sines_of_the_library() -> None:
    at = states(dynid.load_robot("tx40"), 100)
    code = dynid.generate_code(dynid.load_robot("tx40"), sines="library")
    assert "sine_cosine" not in code.files["tx40.c"] and " sin(" in code.files["tx40.c"]
    ours = code.compile().call("inverse_dynamics", at["q"], at["v"], at["a"])
    assert difference(ours, expected(dynid.load_robot("tx40"), "inverse_dynamics", at)) < 1e-12


def test_inline_sines_are_exact_to_rounding(tmp_path: Path) -> None:
    """Against long double: small and large angles of both signs, edges of quadrants, and what is no number."""
    text = f"#include <math.h>\n{SINE_COSINE}\nvoid both(double x, double *out);\n"
    text += "void both(double x, double *out)\n{\n    sine_cosine(x, out, out + 1);\n}\n"
    (tmp_path / "sines.c").write_text(text)
    library = tmp_path / "sines.so"
    command = [
        find_compiler(),
        *STRICT,
        "-O2",
        "-shared",
        "-fPIC",
        str(tmp_path / "sines.c"),
        "-o",
        str(library),
        "-lm",
    ]
    subprocess.run(command, check=True)
    both = ctypes.CDLL(str(library)).both
    both.restype, both.argtypes = None, [ctypes.c_double, ctypes.c_void_p]
    rng = np.random.default_rng(0)
    edges = np.arange(-40, 41) * np.pi / 4
    x = np.concatenate(
        [rng.uniform(-7, 7, 20_000), rng.uniform(-1e5, 1e5, 20_000), edges, edges + 1e-9, [0.0, 1e-300, 3e8]]
    )
    out = np.empty((len(x), 2))
    for k, angle in enumerate(x):
        both(angle, out[k].ctypes.data)
    exact = np.column_stack([np.sin(x.astype(np.longdouble)), np.cos(x.astype(np.longdouble))])
    assert np.abs(out - exact).max() < 2e-16
    both(np.inf, out[0].ctypes.data)
    both(np.nan, out[1].ctypes.data)
    assert np.all(np.isnan(out[:2]))


def test_forward_dynamics_reports_a_mass_matrix_that_cannot_be() -> None:
    robot = dynid.load_robot("twolink")
    code = dynid.generate_code(robot, ("forward_dynamics",), values=-robot.parameters, allow_infeasible=True)
    with expect_error(DynidError, code="infeasible"):
        code.compile().call("forward_dynamics", [[0.0, 0.0]], [[0.0, 0.0]], [[0.0, 0.0]])
