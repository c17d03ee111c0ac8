"""Generated C of robots with closed loops: the Python result on random reachable postures, and a status elsewhere."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.codegen.c_linkage import STATUS
from dynid.codegen.compiled import STRICT, CompiledCode, find_compiler
from dynid.dynamics import assemble
from dynid.errors import Infeasible, ModelError, NotApplicable
from dynid.robot import JointEquality
from tests.support.errors import expect_error
from tests.support.generated import difference, expected, needs_compiler, states
from tests.support.generated_linkages import MAKERS, WITHIN, rod, short
from tests.support.linkages import parallelogram

Array = NDArray[np.float64]

pytestmark = needs_compiler

CLOSED, SINGULAR, BROKEN, FAR, INDEFINITE = (number for number, _ in STATUS.values())


def check(robot: Robot, parameters: str = "standard", functions: Sequence[str] = "all") -> None:
    at = states(robot, 200)
    code = dynid.generate_code(robot, functions, parameters=parameters, name="linkage", allow_infeasible=True)
    library = code.compile(("-O0",))
    if parameters.endswith("base"):
        at["parms"] = dynid.base_parameters(robot).values()
    for function in code.program.functions:
        ours = library.call(function.name, *(at[x.name] for x in function.arguments))
        theirs = expected(robot, function.name, at)
        if function.name == "regressor" and parameters.endswith("base"):
            theirs = theirs[:, :, dynid.base_parameters(robot).kept]
        assert ours.shape == theirs.shape
        assert difference(ours, theirs) < WITHIN, function.name


@pytest.mark.parametrize("name", ["fourbar", "palletizer"])
def test_built_in_linkages(name: str) -> None:
    check(dynid.load_robot(name), functions=("inverse_dynamics", "regressor", "mass_matrix", "gravity_torque"))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["fourbar", "palletizer", "leg12"])
def test_all_functions_of_built_in_linkages(name: str) -> None:
    check(dynid.load_robot(name))


@pytest.mark.parametrize("name", list(MAKERS))
def test_kinds_of_loops_and_bases(name: str) -> None:
    check(MAKERS[name]())


@pytest.mark.parametrize("parameters", ["symbolic", "base", "symbolic-base"])
def test_parameters(parameters: str) -> None:
    check(dynid.load_robot("fourbar"), parameters)


@cache
def compiled(name: str, *flags: str) -> CompiledCode:
    robot = {"parallelogram": parallelogram, "short": short, "rod": rod}.get(name, lambda: dynid.load_robot(name))()
    functions = ("inverse_dynamics", "forward_dynamics")
    return dynid.generate_code(robot, functions).compile(("-O0", *flags))


def call(code: CompiledCode, function: str, *arrays: Array) -> int:
    entry = getattr(code.library, f"{code.program.name}_{function}")
    entry.restype, entry.argtypes = ctypes.c_int, [ctypes.c_void_p] * len(arrays)
    return int(entry(*(x.ctypes.data for x in arrays)))


def torque(code: CompiledCode, q: Array, posture: Array) -> tuple[int, Array]:
    tau, zero = np.full(code.program.robot.n, 7.0), np.zeros(code.program.robot.n)
    return call(code, "inverse_dynamics", q, zero, zero, posture, tau), tau


def test_motion_of_all_joints() -> None:
    code, robot = compiled("palletizer"), dynid.load_robot("palletizer")
    at = states(robot, 20)
    theirs = assemble(robot, at["q"], at["v"], at["a"])
    for k in range(20):
        posture, v, a, slopes = np.zeros(10), np.zeros(10), np.zeros(10), np.zeros((6, 4))
        code.library.palletizer_start(ctypes.c_void_p(posture.ctypes.data))
        assert np.array_equal(posture, robot.assembled)
        assert call(code, "assemble", at["q"][k], at["v"][k], at["a"][k], posture, v, a, slopes) == CLOSED
        for ours, other in ((posture, theirs.q), (v, theirs.v), (a, theirs.a), (slopes, theirs.slopes)):
            assert difference(ours, other[k]) < WITHIN


@pytest.mark.parametrize(
    ("name", "q", "status"),
    [
        ("parallelogram", 0.0, SINGULAR),  # both cranks along the ground
        ("short", 3.0, BROKEN),
        ("fourbar", np.nan, FAR),
        ("fourbar", np.inf, FAR),
        ("rod", np.nan, FAR),
        ("rod", 40.0, FAR),  # more than 64 steps of 0.2 rad
    ],
)
def test_status_where_the_loops_do_not_close(name: str, q: float, status: int) -> None:
    """Neither the posture nor the torque is touched."""
    code = compiled(name)
    posture = np.array(code.program.robot.assembled)
    found, tau = torque(code, np.array([q]), posture)
    assert found == status and np.array_equal(posture, code.program.robot.assembled) and np.all(tau == 7.0)


def test_posture_that_was_not_started() -> None:
    """An iteration needs the posture; a closed form knows its branch."""
    found, tau = torque(compiled("rod"), np.array([0.1]), np.zeros(2))
    assert found == BROKEN and np.all(tau == 7.0)
    found, tau = torque(compiled("fourbar"), np.array([0.1]), np.zeros(3))
    assert (
        found == CLOSED and difference(tau, dynid.dynamics.gravity_torque(dynid.load_robot("fourbar"), [0.1])) < WITHIN
    )


def test_calls_from_python_name_the_sample() -> None:
    with expect_error(Infeasible):
        compiled("parallelogram").call("inverse_dynamics", [[0.5], [0.0]], np.zeros((2, 1)), np.zeros((2, 1)))


def test_bound_on_the_steps_of_a_call() -> None:
    """A controller moves a little per call: one step is enough for 1 rad of the crank in a second, not for a jump."""
    code = compiled("rod", "-DROD_STRIDES=1")
    robot = code.program.robot
    q = robot.home[0] + np.linspace(0.0, 1.0, 1001)[:, None]
    posture = np.array(robot.assembled)
    theirs = dynid.inverse_dynamics(robot, q, np.zeros_like(q), np.zeros_like(q))
    for target, reference in zip(q, theirs, strict=True):
        found, tau = torque(code, target, posture)
        assert found == CLOSED and difference(tau, reference) < WITHIN
    assert torque(code, q[-1] - 1.0, posture)[0] == FAR


def test_mass_matrix_that_cannot_be() -> None:
    robot = dynid.load_robot("fourbar")
    code = dynid.generate_code(robot, "forward_dynamics", values=-robot.parameters, allow_infeasible=True).compile()
    a, zero = np.full(1, 7.0), np.zeros(1)
    assert call(code, "forward_dynamics", robot.home + 0.1, zero, zero, np.array(robot.assembled), a) == INDEFINITE
    assert a == 7.0


def test_c_example_of_the_documentation(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "generated-code.md").read_text(encoding="utf-8")
    (example,) = (x for x in re.findall(r"```c\n(.*?)```", page, re.DOTALL) if "posture" in x)
    robot = dynid.load_robot("palletizer")
    dynid.generate_code(robot, name="palletizer").write(tmp_path)
    signature = "int torque(const double *q, const double *v, const double *a, double *tau);\n"
    (tmp_path / "main.c").write_text(signature + example)
    words = [find_compiler(), *STRICT, "-shared", "-fPIC", "main.c", "palletizer.c", "-lm", "-o", "main.so"]
    subprocess.run(words, cwd=tmp_path, check=True)
    entry = ctypes.CDLL(str(tmp_path / "main.so")).torque
    entry.argtypes = [ctypes.c_void_p] * 4
    at, tau = states(robot, 10), np.zeros(4)
    for q, v, a in zip(at["q"], at["v"], at["a"], strict=True):
        assert entry(*(x.ctypes.data for x in (q, v, a, tau))) == CLOSED
        assert difference(tau, dynid.inverse_dynamics(robot, q, v, a)) < WITHIN


@pytest.mark.parametrize("language", ["CasADi", "Julia", "MATLAB"])
def test_other_languages_are_refused(language: str) -> None:
    with expect_error(NotApplicable, "language"):
        dynid.generate_code(dynid.load_robot("fourbar"), language=language.lower())


def test_equalities_between_joints_are_refused() -> None:
    """In one sentence that names the joints."""
    robot = dynid.load_robot("twolink").with_loops(
        JointEquality({"joint2": 1.0}, (0.0, 0.5, 0.1), {"joint1": 1.0}), passive=["joint2"]
    )
    with expect_error(ModelError, code="unsupported"):
        dynid.generate_code(robot, ["inverse_dynamics"], name="x")
