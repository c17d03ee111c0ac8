"""The NumPy file alone gives our numbers, over any number of samples, without dynid."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.codegen.functions import FUNCTIONS
from dynid.codegen.generate import generate_code
from tests.support.compare import difference
from tests.support.generated import expected
from tests.support.generated_robots import ROBOTS, motions


def loaded(text: str) -> ModuleType:
    module = ModuleType("generated")
    exec(compile(text, "generated.py", "exec"), module.__dict__)
    return module


def module_of(robot: Any, **options: Any) -> ModuleType:
    (text,) = generate_code(robot, "all", language="python", **options).files.values()
    return loaded(text)


@pytest.fixture(scope="module", params=list(ROBOTS))
def robot(request: pytest.FixtureRequest) -> Robot:
    return ROBOTS[request.param]()


def test_every_function_gives_our_numbers(robot: Robot) -> None:
    """To rounding: sums run in another order than in the kernels."""
    module, motion = module_of(robot), motions(robot)
    for function, (arguments, _) in FUNCTIONS.items():
        given = [motion[x] for x in arguments]
        ours = getattr(module, function)(*given)
        assert difference(ours, expected(robot, function, motion)) < 1e-11, function
        assert np.array_equal(getattr(module, function)(*(x[0] for x in given)), ours[0])


def test_parameters_as_an_argument(robot: Robot) -> None:
    """One file for every value of them, for one vector or one a sample."""
    module, motion = module_of(robot, parameters="symbolic"), motions(robot)
    other = robot.with_parameters(robot.parameters * 1.1)
    given = [motion[x] for x in ("q", "v", "a")]
    expect = dynid.inverse_dynamics(other, *given)
    assert difference(module.inverse_dynamics(*given, other.parameters), expect) < 1e-11
    each = np.tile(other.parameters, (len(given[0]), 1))
    assert difference(module.inverse_dynamics(*given, each), expect) < 1e-11


def test_base_parameters_give_the_same_torques(robot: Robot) -> None:
    """Fewer columns, fewer numbers, the same motion."""
    module, motion = module_of(robot, parameters="base"), motions(robot)
    base = dynid.base_parameters(robot)
    given = [motion[x] for x in ("q", "v", "a")]
    assert difference(module.inverse_dynamics(*given), dynid.inverse_dynamics(robot, *given)) < 1e-10
    assert difference(module.regressor(*given), base.regressor(*given)) < 1e-10
    np.testing.assert_allclose(module.VALUES, base.values())
    assert base.names == module.PARAMETERS


def test_file_needs_numpy_alone(tmp_path: Path) -> None:
    """In a Python that cannot find dynid; the head names source, date, fit and every parameter with its unit."""
    robot = dynid.load_robot("twolink")
    code = generate_code(robot, "all", language="python", date="2026-01-31", notes=("Made for a test.",))
    (path,) = code.write(tmp_path)
    head = path.read_text().split('"""')[1]
    assert "Date: 2026-01-31" in head and "Made for a test." in head
    assert all(name in head for name in robot.parameter_names) and "kg m2" in head
    check = "import sys; sys.modules['dynid'] = None; import twolink; print(twolink.gravity_torque([[0.1, 0.2]]).shape)"
    done = subprocess.run([sys.executable, "-c", check], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "(1, 2)"
    assert [line for line in path.read_text().splitlines() if "import" in line] == ["import numpy as np"]


def test_wrong_shapes_and_impossible_masses_are_told() -> None:
    """By plain sentences of the file itself."""
    robot = dynid.load_robot("twolink")
    module = module_of(robot)
    with pytest.raises(ValueError, match=r"q must have shape \(\.\.\., 2\)"):
        module.gravity_torque([0.0, 0.0, 0.0])
    bad = robot.with_parameters(-robot.parameters)
    module = module_of(bad, allow_infeasible=True)
    with pytest.raises(ValueError, match="not positive definite"):
        module.forward_dynamics([[0.1, 0.2]], [[0.0, 0.0]], [[1.0, 1.0]])


def test_odd_names_do_no_harm() -> None:
    """A name with quotes and line breaks stays a name."""
    from dataclasses import replace

    odd = replace(dynid.load_robot("twolink"), name='a""" + exec("raise SystemExit") + """\n\\')
    assert module_of(odd).gravity_torque([[0.0, 0.0]]).shape == (1, 2)
