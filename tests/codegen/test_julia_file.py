"""The Julia module gives our numbers: run by Julia where there is one, and line by line in Python."""

from __future__ import annotations

import math
import re
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.codegen.generate import GeneratedCode, generate_code
from dynid.errors import InvalidValue
from tests.support.errors import expect_error
from tests.support.generated import difference, expected
from tests.support.generated_robots import ROBOTS, motions

Array = np.ndarray
needs_julia = pytest.mark.skipif(shutil.which("julia") is None, reason="no Julia on this machine")
# Of the largest number; sums run in another order than in the kernels.
WITHIN = 1e-12
BASE = {
    **{name: getattr(math, name) for name in ("sin", "cos", "tanh", "exp")},
    "sign": np.sign,
    "max": max,
    "ifelse": lambda chosen, yes, no: yes if chosen else no,
}


@pytest.fixture(scope="module", params=list(ROBOTS))
def made(request: pytest.FixtureRequest) -> tuple[Robot, GeneratedCode]:
    robot = ROBOTS[request.param]()
    return robot, generate_code(robot, "all", language="julia", name="generated")


def evaluated(text: str, function: str, shape: tuple[int, ...], given: Mapping[str, Array]) -> Array:
    """The result of one sample: assignments are the same in Python, but for places, which count from zero."""
    match = re.search(rf"^function {function}!\((\w+),.*?\n    @inbounds begin\n(.*?)\n    end\n", text, re.S | re.M)
    assert match is not None
    result, body = match.groups()
    lines = []
    for line in body.splitlines():
        line = re.sub(r"\[([\d, ]+)\]", lambda m: f"[{', '.join(str(int(x) - 1) for x in m[1].split(','))}]", line)
        kept, _, _ = line.strip().partition(" || throw(")
        lines.append(kept if kept == line.strip() else f"assert {kept}")
    names = {**BASE, **given, result: np.full(shape, np.nan)}
    exec("\n".join(lines), names)
    return np.asarray(names[result])


def test_every_line_gives_our_numbers(made: tuple[Robot, GeneratedCode]) -> None:
    robot, code = made
    motion = motions(robot, 2)
    (text,) = code.files.values()
    for function in code.program.functions:
        given = [{x.name: motion[x.name][k] for x in function.arguments} for k in range(2)]
        ours = np.array([evaluated(text, function.name, function.shape, x) for x in given])
        assert difference(ours, expected(robot, function.name, motion)) < WITHIN, function.name


def test_parameters_are_an_argument() -> None:
    robot = dynid.load_robot("tx40")
    code = generate_code(robot, language="julia", parameters="symbolic", name="generated")
    (text,) = code.files.values()
    motion = motions(robot, 1)
    shape = code.program.functions[0].shape
    ours = evaluated(text, "inverse_dynamics", shape, {x: y if x == "parms" else y[0] for x, y in motion.items()})
    assert difference(ours[None], expected(robot, "inverse_dynamics", motion)) < WITHIN


def test_blocks_are_closed(made: tuple[Robot, GeneratedCode]) -> None:
    """As many ends as there are openings, and none before its opening."""
    (text,) = made[1].files.values()
    depth = 0
    for line in re.sub(r'"[^"]*"', "", re.sub("#.*", "", text)).splitlines():
        words = re.findall(r"\w+", line)
        depth += sum(x in ("module", "function", "begin") for x in words) - words.count("end")
        assert depth >= 0
    assert depth == 0


def julia(folder: Path, script: str) -> str:
    (folder / "script.jl").write_text(script)
    words = ["julia", "--startup-file=no", "--compile=min", "script.jl"]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def literal(x: Array) -> str:
    return "[" + ", ".join(repr(float(y)) for y in x) + "]"


@needs_julia
def test_julia_gives_our_numbers(made: tuple[Robot, GeneratedCode], tmp_path: Path) -> None:
    """All functions of one sample, printed row by row, and what is written in place."""
    robot, code = made
    motion = motions(robot, 1)
    code.write(tmp_path)
    script = ['include("generated.jl")', "using .generated"]
    script += [f"const {name} = {literal(x[0])}" for name, x in motion.items() if name != "parms"]
    script += ["show_all(x) = println(join(ndims(x) == 2 ? permutedims(x)[:] : x, ' '))"]
    for f in code.program.functions:
        given = ", ".join(x.name for x in f.arguments)
        script += [f"show_all({f.name}({given}))"]
        script += [f"out = fill(NaN, {', '.join(map(str, f.shape))}); {f.name}!(out, {given})"]
        script += [f"out == {f.name}({given}) || error()"]
    lines = julia(tmp_path, "\n".join(script)).splitlines()
    for f, line in zip(code.program.functions, lines, strict=True):
        ours = np.array(line.split(), dtype=float).reshape(1, *f.shape)
        assert difference(ours, expected(robot, f.name, motion)) < WITHIN, f.name


@needs_julia
def test_julia_keeps_types_and_tells_of_bad_input(tmp_path: Path) -> None:
    robot = dynid.load_robot("twolink")
    odd = replace(robot, joints=(replace(robot.joints[0], name='a"$(error())\\'), *robot.joints[1:]), drives=())
    generate_code(odd, "all", language="julia", name="odd").write(tmp_path)
    bad = robot.with_parameters(-robot.parameters)
    generate_code(bad, ("forward_dynamics",), language="julia", name="bad", allow_infeasible=True).write(tmp_path)
    script = """
    include("odd.jl"); include("bad.jl")
    message(f) = try f() catch e; sprint(showerror, e) end
    println(odd.JOINTS[1])
    println(eltype(odd.gravity_torque(Float32[0, 0])), " ", eltype(odd.mass_matrix(BigFloat[1, 2])))
    println(message(() -> odd.gravity_torque([0.0, 0.0, 0.0])))
    println(message(() -> bad.forward_dynamics([0.0, 0.0], [0.0, 0.0], [1.0, 1.0])))
    """
    name, types, size, *mass = julia(tmp_path, script).splitlines()
    assert name == "a??(error())?"
    assert types == "Float32 BigFloat"
    assert "q must have size (2,), got (3,)" in size
    assert "not positive definite" in "".join(mass)


@pytest.mark.parametrize("name", ["end", "sin", "inverse_dynamics", "VALUES", "__"])
def test_names_with_another_meaning_are_refused(name: str) -> None:
    with expect_error(InvalidValue, "name"):
        generate_code(dynid.load_robot("twolink"), language="julia", name=name)


def test_a_joint_may_be_named_as_the_module() -> None:
    robot = dynid.load_robot("twolink")
    assert "module joint1\n" in generate_code(robot, language="julia", name="joint1").files["joint1.jl"]
