"""The MATLAB files, run by GNU Octave, give our numbers for many samples at once."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.io

import dynid
from dynid.codegen.functions import FUNCTIONS
from dynid.codegen.generate import GeneratedCode, generate_code
from dynid.errors import InvalidValue, TooLarge
from tests.support.errors import expect_error
from tests.support.generated import difference, expected
from tests.support.generated_robots import ROBOTS, motions

Array = np.ndarray
OCTAVE = next((x for x in ("octave-cli", "octave") if shutil.which(x)), None)
needs_octave = pytest.mark.skipif(OCTAVE is None, reason="no GNU Octave on this machine")
# Of the largest number; sums run in another order than in the kernels.
WITHIN = 1e-12


def octave(folder: Path, script: str, given: Mapping[str, object]) -> dict[str, Array]:
    """What the script leaves in `out`, given variables by name."""
    assert OCTAVE is not None
    scipy.io.savemat(folder / "given.mat", dict(given))
    (folder / "script.m").write_text(f"load('given.mat');\n{script}\nsave('-v7', 'out.mat', '-struct', 'out');\n")
    words = [OCTAVE, "--no-gui", "--no-init-file", "--quiet", "script.m"]
    ended = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return dict(scipy.io.loadmat(folder / "out.mat"))


def calls(code: GeneratedCode) -> str:
    """Calls of all functions, their results in fields of their names."""
    return "\n".join(
        f"out.{code.program.name}_{f.name} = {code.program.name}_{f.name}("
        + ", ".join(f"{code.program.name}.{x.name}" for x in f.arguments)
        + ");"
        for f in code.program.functions
    )


def columns(motion: Mapping[str, Array]) -> dict[str, Array]:
    """A column for each sample, as MATLAB stores them; one column of parameters for all."""
    return {name: np.atleast_2d(x).T for name, x in motion.items()}


def samples_first(found: Array) -> Array:
    return np.moveaxis(found, -1, 0)


@needs_octave
def test_every_function_of_every_robot_gives_our_numbers(tmp_path: Path) -> None:
    robots, given, script = {name: make() for name, make in ROBOTS.items()}, {}, []
    for name, robot in robots.items():
        code = generate_code(robot, "all", language="matlab", name=name)
        code.write(tmp_path)
        given[name] = columns(motions(robot))
        script.append(calls(code))
    found = octave(tmp_path, "\n".join(script), given)
    for name, robot in robots.items():
        for function in FUNCTIONS:
            theirs = expected(robot, function, motions(robot))
            assert difference(samples_first(found[f"{name}_{function}"]), theirs) < WITHIN, (name, function)


@needs_octave
@pytest.mark.parametrize("parameters", ["symbolic", "base", "symbolic-base"])
def test_parameters_of_all_kinds(tmp_path: Path, parameters: str) -> None:
    """One column of parameters for all samples, or one each; one sample is one column."""
    robot = dynid.load_robot("tx40")
    base, motion = dynid.base_parameters(robot), motions(robot)
    code = generate_code(robot, ("inverse_dynamics", "regressor"), language="matlab", parameters=parameters)
    code.write(tmp_path)
    script = [
        calls(code),
        "out.values = tx40_model().values; out.names = tx40_model().parameters;",
        "p = {}; if nargin('tx40_inverse_dynamics') == 4, p = {tx40.parms(:, ones(1, 5))}; end",
        "out.each = tx40_inverse_dynamics(tx40.q, tx40.v, tx40.a, p{:});",
        "if numel(p), p = {tx40.parms}; end",
        "out.first = tx40_inverse_dynamics(tx40.q(:, 1), tx40.v(:, 1), tx40.a(:, 1), p{:});",
    ]
    values = robot.parameters if parameters == "symbolic" else base.values()
    names = robot.parameter_names if parameters == "symbolic" else base.names
    found = octave(tmp_path, "\n".join(script), {"tx40": columns(motion | {"parms": values})})
    torque = dynid.inverse_dynamics(robot, *(motion[x] for x in "qva"))
    for name in ("tx40_inverse_dynamics", "each", "first"):
        ours = samples_first(found[name])
        # Groupings hold for exactly parallel axes, and those of the file are parallel to 1e-11.
        assert difference(ours, torque[: len(ours)]) < (WITHIN if parameters == "symbolic" else 1e-10)
    rows = samples_first(found["tx40_regressor"])
    assert difference(rows @ values, torque) < (WITHIN if parameters == "symbolic" else 1e-10)
    np.testing.assert_array_equal(found["values"][:, 0], values)
    assert [x[0][0] for x in found["names"]] == list(names)


@needs_octave
def test_wrong_sizes_and_impossible_masses_are_told(tmp_path: Path) -> None:
    robot = dynid.load_robot("twolink")
    bad = robot.with_parameters(-robot.parameters)
    names = ("gravity_torque", "forward_dynamics")
    generate_code(bad, names, language="matlab", name="bad", allow_infeasible=True).write(tmp_path)
    script = """
    try, bad_gravity_torque(zeros(3, 1)), catch e, out.size = e.message; end
    try, bad_forward_dynamics(zeros(2, 4), zeros(2, 4), ones(2, 4)), catch e, out.mass = e.message; end
    """
    found = octave(tmp_path, script, {})
    assert found["size"] == "q must have 2 rows, got 3"
    assert "not positive definite" in found["mass"][0]


def test_names_that_matlab_does_not_take_are_refused() -> None:
    robot = dynid.load_robot("twolink")
    with expect_error(InvalidValue, "name"):
        generate_code(robot, language="matlab", name="_arm")
    with expect_error(TooLarge, "name"):
        generate_code(robot, language="matlab", name="a" * 47)
    longest = generate_code(robot, language="matlab", name="a" * 46).files
    assert max(len(x) for x in longest) == 63 + len(".m")


@needs_octave
def test_odd_names_do_no_harm(tmp_path: Path) -> None:
    """A name with quotes and line breaks stays a name."""
    robot = dynid.load_robot("twolink")
    robot = replace(robot, joints=(replace(robot.joints[0], name="a'); error('b"), *robot.joints[1:]), drives=())
    generate_code(robot, language="matlab", name="odd", notes=("%{", "...")).write(tmp_path)
    found = octave(tmp_path, "out.joints = odd_model().joints;", {})
    assert found["joints"][0][0][0] == "a?); error(?b"
