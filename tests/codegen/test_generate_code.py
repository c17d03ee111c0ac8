"""generate_code: files, heads, and what it refuses."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.codegen.graph import evaluate
from dynid.errors import (
    DataError,
    InvalidShape,
    InvalidType,
    InvalidValue,
    MissingArgument,
    MissingPackage,
    ModelError,
    NotApplicable,
    UnknownName,
)
from dynid.export.urdf import write_urdf
from tests.support.errors import Error, expect_error
from tests.support.generated import difference, expected, needs_compiler, states
from tests.support.random_robots import random_robot, with_custom_terms


def test_same_call_same_files(tmp_path: Path) -> None:
    """Nothing of the clock, the machine or the order of a set gets into the files."""
    robot = dynid.load_robot("tx40")
    one, two = (dynid.generate_code(robot, "all", date="2026-01-31") for _ in range(2))
    assert one.files == two.files
    paths = one.write(tmp_path / "new" / "folder")
    assert [p.name for p in paths] == ["tx40.h", "tx40.c"]
    assert paths[1].read_text(encoding="utf-8") == one.files["tx40.c"]


def test_head_names_parameters_units_and_date() -> None:
    robot = dynid.load_robot("twolink")
    code = dynid.generate_code(robot, date="2026-01-31", notes=("From arm.urdf.",), name="arm")
    head = code.files["arm.h"]
    for text in (
        "Date: 2026-01-31",
        "From arm.urdf.",
        f"0: {robot.parameter_names[0]} = ",
        "kg m2",
        "arm_inverse_dynamics",
    ):
        assert text in head
    assert str(code.operations["inverse_dynamics"]) in head


def test_head_names_the_file_of_the_robot(tmp_path: Path) -> None:
    """The name alone, as the same file in another folder is the same source; what a file says of itself comes first."""
    write_urdf(dynid.load_robot("twolink"), tmp_path / "arm.urdf")
    robot = dynid.load_robot(tmp_path / "arm.urdf")
    files = {"c": ("two.h", "two.c"), "python": ("two.py",), "julia": ("two.jl",)}
    files["matlab"] = ("two_model.m", "two_inverse_dynamics.m")
    for language, file in ((x, y) for x, names in files.items() for y in names):
        text = dynid.generate_code(robot, language=language, name="two").files[file]
        assert "Source: arm.urdf" in text and str(tmp_path) not in text
    said = dynid.load_robot("tx40").source
    assert said and said != "tx40"


def test_only_math_h_is_needed() -> None:
    code = dynid.generate_code(dynid.load_robot("tx40"), "all")
    included = [line for line in code.files["tx40.c"].splitlines() if line.startswith("#include")]
    assert included == ['#include "tx40.h"', "#include <math.h>"]
    assert "alloc" not in code.files["tx40.c"]


@needs_compiler
def test_names_cannot_break_out_of_a_comment() -> None:
    robot = dynid.load_robot("twolink")
    joints = (replace(robot.joints[0], name="*/ int x; /*"), *robot.joints[1:])
    code = dynid.generate_code(replace(robot, joints=joints, drives=()), name="arm")
    assert "*/ int" not in code.files["arm.h"]
    code.compile()


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"functions": ("inverse",)}, (UnknownName, "functions")),
        ({"functions": ()}, (MissingArgument, "functions")),
        ({"language": "cobol"}, (UnknownName, "language")),
        ({"parameters": "all"}, (UnknownName, "parameters")),
        ({"sines": "table"}, (UnknownName, "sines")),
        ({"name": "my robot"}, (InvalidValue, "name")),
        ({"values": [1.0, 2.0]}, (InvalidShape, "")),
        ({"values": [np.nan] * 28}, (InvalidValue, "")),
        ({"values": "many"}, (InvalidType, "")),
        ({"values": [1.0], "parameters": "base"}, (InvalidShape, "")),
    ],
)
def test_bad_input_is_one_sentence(options: dict, error: Error) -> None:
    with expect_error(*error):
        dynid.generate_code(dynid.load_robot("twolink"), **options)


def test_impossible_parameters_are_refused_with_the_reason() -> None:
    robot = dynid.load_robot("tx40")
    values = robot.parameters.copy()
    values[robot.parameter_names.index("Izz_link6")] = -1.0
    with expect_error(DataError, "allow_infeasible", code="untrusted"):
        dynid.generate_code(robot, values=values)
    allowed = dynid.generate_code(robot, values=values, allow_infeasible=True)
    assert "Beware: no physical robot has these parameters" in allowed.files["tx40.h"]
    base = dynid.base_parameters(robot)
    with expect_error(DataError, "allow_infeasible", code="untrusted"):
        dynid.generate_code(robot, parameters="base", values=base.values(values))


def test_a_users_python_function_is_refused_by_name() -> None:
    robot = with_custom_terms(random_robot(1, 3))
    with expect_error(ModelError, code="unsupported"):
        dynid.generate_code(robot, allow_infeasible=True)
    assert dynid.generate_code(robot.without("wave_*", "coupled_*")).files


def test_base_parameters_that_mix_drives_and_bodies_cannot_give_the_drives() -> None:
    """Ia_1 and Izz_1 of a first joint are one base parameter."""
    robot = dynid.load_robot("tx40")
    with expect_error(NotApplicable, "parameters"):
        dynid.generate_code(robot, ("drive_torque",), parameters="base")
    whole = dynid.generate_code(robot, "all", parameters="base")
    assert "inverse_dynamics" in whole.operations and "drive_torque" not in whole.operations


def test_without_a_compiler_the_code_is_still_written(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    code = dynid.generate_code(dynid.load_robot("twolink"))
    assert len(code.write(tmp_path)) == 2
    with expect_error(MissingPackage):
        code.compile()


def estimate_of(base: dynid.parameters.BaseParameters) -> dynid.Estimate:
    """An estimate with the robot's own base values and made-up figures of the fit."""
    channels = len(base.channels)
    return dynid.Estimate(
        base=base,
        method="ols",
        beta=base.values(),
        covariance=np.eye(base.count),
        noise=np.ones(channels),
        rows=(400,) * channels,
        rms=np.zeros(channels),
        relative_error=np.linspace(0.012, 0.034, channels),
        condition_number=10.0,
        status="solved",
        seconds=0.0,
    )


@needs_compiler
def test_an_estimate_goes_straight_to_code() -> None:
    """Identified base values into the code, the figures of the fit into its head."""
    robot = dynid.load_robot("twolink")
    q, v, a = np.random.default_rng(0).uniform(-2, 2, (3, 400, 2))
    code = dynid.generate_code(estimate_of(dynid.base_parameters(robot)), parameters="base")
    assert "Identified by ols (solved) from 800 rows." in code.files["twolink.h"]
    assert "1.2 %" in code.files["twolink.h"] and "3.4 %" in code.files["twolink.h"]
    torque = dynid.inverse_dynamics(robot, q, v, a)
    ours = code.compile().call("inverse_dynamics", q, v, a)
    np.testing.assert_allclose(ours, torque, rtol=0, atol=1e-10 * np.abs(torque).max())


def test_base_parameters_of_some_channels_cannot_stand_for_all() -> None:
    """Joint torques alone do not show what the wrench of a measuring base needs."""
    robot = random_robot(3, 3, base="instrumented")
    seen = dynid.base_parameters(robot, channels="torque")
    with expect_error(NotApplicable, "parameters"):
        dynid.generate_code(estimate_of(seen), parameters="base")
    assert dynid.generate_code(estimate_of(seen), parameters="standard").files


def test_base_parameters_of_a_floating_robot() -> None:
    """Wrench rows too come from base values alone."""
    robot = random_robot(8, 4, base="floating")
    at = states(robot, 50)
    code = dynid.generate_code(robot, parameters="base")
    ours = np.stack(evaluate(code.program.functions[0].entries, at), axis=-1)
    assert difference(ours, expected(robot, "inverse_dynamics", at)) < 1e-11
