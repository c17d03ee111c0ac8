"""Parameters as JSON, TOML and ROS 2 YAML, read back onto the robot; and the model of Pinocchio."""

from __future__ import annotations

import json
import tomllib
from dataclasses import replace
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest
import yaml

import dynid
from dynid import Estimate, Robot
from dynid.errors import (
    DamagedFile,
    DataError,
    Duplicate,
    DynidError,
    Mismatch,
    MissingData,
    MissingFile,
    ModelError,
    UnknownName,
    WrongFormat,
)
from dynid.export.pinocchio import pinocchio_model
from dynid.identification.judgement import Judgement
from dynid.robot import Link
from tests.support.compare import difference
from tests.support.errors import Error, expect_error
from tests.support.gantry import gantry
from tests.support.random_robots import random_motion, random_robot, with_custom_terms
from tests.support.synthetic import EXACT, arm, record

SAME = 1e-9  # torques relative to the largest of them

ROBOTS = {
    **{name: dynid.load_robot(name) for name in dynid.builtin_robots()},
    "every drive": random_robot(8, 5, drives=True, mimics=1),
    "smooth": random_robot(8, 5, drives=True).with_smooth_coulomb(20.0),
    "custom terms": with_custom_terms(random_robot(8, 3, drives=True)),
    "floating": random_robot(3, 7, base="floating", rotors=True),
    "instrumented": random_robot(4, 5, base="instrumented"),
}
ENDINGS = ("json", "toml", "yaml", "yml")


def stripped(robot: Robot) -> Robot:
    """The robot with other values, and without the drive terms that a file can bring."""
    own = tuple(replace(t, value=7.0) for t in robot.drives if t.function is not None)
    return replace(robot, links=tuple(Link(x.name, np.ones(10), x.virtual) for x in robot.links), drives=own)


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("name", ROBOTS)
def test_every_robot_comes_back(tmp_path: Path, name: str, ending: str) -> None:
    """All parameters and drive terms, rest of springs and slope of friction included."""
    robot, path = ROBOTS[name], tmp_path / f"robot.{ending}"
    dynid.export.write_parameters(robot, path, allow_infeasible=True)
    back = dynid.export.load_parameters(path, stripped(robot))
    assert back.parameter_names == robot.parameter_names
    np.testing.assert_allclose(back.parameters, robot.parameters, rtol=1e-13, atol=1e-14)
    motion = random_motion(robot, 0, 10)
    assert difference(dynid.inverse_dynamics(back, *motion), dynid.inverse_dynamics(robot, *motion)) < SAME


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    return dynid.identify(arm(), record(arm()), "feasible", signals=EXACT)


def test_an_estimate_has_deviations_and_expressions(tmp_path: Path, estimate: Estimate) -> None:
    """JSON and TOML hold the same; base parameters are there with what they stand for."""
    dynid.export.write(estimate, tmp_path / "arm.json")
    dynid.export.write(estimate, tmp_path / "arm.toml")
    one = json.loads((tmp_path / "arm.json").read_text())
    two = tomllib.loads((tmp_path / "arm.toml").read_text())
    assert one == two
    assert [p["name"] for p in one["parameters"]] == list(estimate.robot.parameter_names)
    assert [p["unit"] for p in one["parameters"]] == [p.unit for p in estimate.robot.layout]
    assert [p["expression"] for p in one["base_parameters"]] == list(estimate.base.expressions)
    assert [p["value"] for p in one["base_parameters"]] == estimate.beta.tolist()
    assert [p["std"] for p in one["base_parameters"]] == estimate.std.tolist()
    assert estimate.standard_std is not None
    assert [p["std"] for p in one["parameters"]] == estimate.standard_std.tolist()
    assert {p["name"]: p["class"] for p in one["parameters"]} == estimate.parameter_classes
    q, v, a = random_motion(arm(), 0, 10)
    for name in ("arm.json", "arm.toml"):
        back = dynid.export.load_parameters(tmp_path / name, arm())
        theirs = dynid.inverse_dynamics(estimate.identified_robot, q, v, a)
        assert difference(dynid.inverse_dynamics(back, q, v, a), theirs) < SAME


def test_every_format_of_an_estimate_predicts_its_torques(tmp_path: Path, estimate: Estimate) -> None:
    """With the drive terms that each holds; the others are named."""
    identified = estimate.identified_robot
    motion = random_motion(identified, 0, 10)
    friction, held = "viscous+coulomb", identified.without("Ia_*", "off_*")
    for name, rotors, robot in (
        ("arm.urdf", None, held),
        ("arm.sdf", None, held),
        ("arm.xml", True, identified.without("off_*")),
    ):
        warnings = dynid.export.write(estimate, tmp_path / name)
        assert any("off of joint1, joint2, joint3" in w for w in warnings)
        assert any("Ia of joint1, joint2, joint3" in w for w in warnings) == (rotors is None)
        back = dynid.load_robot(tmp_path / name, friction=friction, rotor_inertia=rotors)
        assert difference(dynid.inverse_dynamics(back, *motion), dynid.inverse_dynamics(robot, *motion)) < SAME
    trusted = estimate.with_judgement(Judgement("trusted"))
    assert dynid.export.write(trusted, tmp_path / "arm.yaml") == []
    back = dynid.export.load_parameters(tmp_path / "arm.yaml", arm())
    assert difference(dynid.inverse_dynamics(back, *motion), dynid.inverse_dynamics(identified, *motion)) < SAME


def test_the_yaml_has_the_units_of_its_joints(tmp_path: Path) -> None:
    for robot, units in ((dynid.load_robot("tx40"), "N m, rad, s"), (gantry(), "N m, rad, s and N, m, s (prismatic)")):
        dynid.export.write_parameters(robot, tmp_path / "robot.yaml")
        assert f"    # {units}\n    joints:" in (tmp_path / "robot.yaml").read_text()


def test_the_yaml_is_what_a_ros_node_takes(tmp_path: Path) -> None:
    """Numbers are all fractions, lists of one kind, names quoted where YAML would read them otherwise."""
    robot = random_robot(2, 2).with_drives("viscous+coulomb", rotor_inertia=True)
    robot = replace(robot, links=(robot.links[0], Link("no", 1e-7 * robot.links[1].inertia), robot.links[2]))
    robot = replace(robot, drives=tuple(replace(t, value=1e-5) for t in robot.drives))
    path = tmp_path / "robot.yaml"
    dynid.export.write_parameters(robot, path)
    given = yaml.safe_load(path.read_text())["/**"]["ros__parameters"]
    assert given["joint_names"] == ["j1", "j2"]
    assert set(given["links"]) == {"no", "l2"}
    mass, com, tensor = dynid.inertia.inertia_to_com(robot.links[2].inertia)
    assert given["links"]["l2"]["mass"] == pytest.approx(float(mass), rel=1e-15)
    np.testing.assert_allclose(given["links"]["l2"]["com"], com)
    np.testing.assert_allclose(given["links"]["l2"]["inertia"], tensor[np.triu_indices(3)])
    assert given["joints"]["j1"] == {"rotor_inertia": 1e-5, "viscous_friction": 1e-5, "coulomb_friction": 1e-5}

    def leaves(x: object) -> list[object]:
        if isinstance(x, dict):
            return [y for value in x.values() for y in leaves(value)]
        return [y for value in x for y in leaves(value)] if isinstance(x, list) else [x]

    assert all(isinstance(x, float) for part in ("links", "joints") for x in leaves(given[part]))


def test_what_does_not_fit_is_named(tmp_path: Path) -> None:
    """Other links, terms the robot cannot have, broken files."""
    robot = random_robot(2, 3, drives=True)
    bare = replace(robot, drives=(), transmission=None)
    path = tmp_path / "robot.json"
    warnings = dynid.export.write_parameters(with_custom_terms(robot), path)
    assert any("wave_j1" in w and "functions" in w for w in warnings)
    assert any("coupling of motor1, motor2, motor3" in w for w in warnings)
    with expect_error(Mismatch):
        dynid.export.load_parameters(path, robot)
    dynid.export.write_parameters(robot, path)
    with expect_error(Mismatch):
        dynid.export.load_parameters(path, bare)
    dynid.export.write_parameters(bare, path)
    with expect_error(Mismatch):
        dynid.export.load_parameters(path, robot)
    other = replace(bare, links=(*bare.links[:3], replace(bare.links[3], name="else")))
    with expect_error(Mismatch):
        dynid.export.load_parameters(path, other)
    with expect_error(WrongFormat):
        dynid.export.write_parameters(bare, tmp_path / "robot.txt")
    with expect_error(UnknownName, "form"):
        dynid.export.write_parameters(bare, path, form="xml")
    with expect_error(DynidError, code="not_writable"):
        dynid.export.write_parameters(bare, tmp_path / "no" / "robot.json")
    with expect_error(MissingFile):
        dynid.export.load_parameters(tmp_path / "none.json", bare)


@pytest.mark.parametrize(
    ("name", "text", "error"),
    [
        ("a.json", "{", (DamagedFile, "")),
        ("a.json", "[]", (WrongFormat, "")),
        (
            "a.json",
            '{"dynid": "parameters", "version": 1, "parameters": [{"name": "m_l1"}]}',
            (DamagedFile, ""),
        ),
        (
            "a.json",
            '{"dynid": "parameters", "version": 1, '
            '"parameters": [{"name": "a", "value": 1}, {"name": "a", "value": 2}]}',
            (Duplicate, ""),
        ),
        ("a.toml", "= 3", (DamagedFile, "")),
        ("a.yaml", "a: [", (DamagedFile, "")),
        ("a.yaml", "a: 3", (DamagedFile, "")),
        ("a.yaml", "a: {ros__parameters: {links: 3}}", (DamagedFile, "")),
        ("a.yaml", "a: {ros__parameters: {links: {l1: {mass: 1.0}}}}", (MissingData, "")),
        ("a.yaml", "a: {ros__parameters: {links: {l1: {mass: x, com: [0.0, 0.0, 0.0]}}}}", (DataError, "")),
        ("a.yaml", "a: {ros__parameters: {links: {}, joints: {j1: 3}}}", (DamagedFile, "")),
    ],
)
def test_broken_files_are_plain_errors(tmp_path: Path, name: str, text: str, error: Error) -> None:
    """One sentence that names the file or the place in it."""
    (tmp_path / name).write_text(text)
    with expect_error(*error):
        dynid.export.load_parameters(tmp_path / name, random_robot(2, 3))


@pytest.mark.parametrize("ending", ["json", "yaml"])
def test_impossible_parameters_are_written_only_if_asked(tmp_path: Path, ending: str) -> None:
    """As in model files."""
    robot = random_robot(0, 2)
    broken = robot.with_parameters(-robot.parameters)
    with expect_error(ModelError, "allow_infeasible", code="untrusted"):
        dynid.export.write_parameters(broken, tmp_path / f"robot.{ending}")
    warnings = dynid.export.write_parameters(broken, tmp_path / f"robot.{ending}", allow_infeasible=True)
    assert [w.split("'")[1] for w in warnings] == ["l1", "l2"]
    back = dynid.export.load_parameters(tmp_path / f"robot.{ending}", robot)
    np.testing.assert_allclose(back.parameters, broken.parameters, rtol=1e-13, atol=1e-14)


# -- Pinocchio ------------------------------------------------------------------------------------------


def test_a_pinocchio_model_has_friction_on_both_sides() -> None:
    """Damping, dry friction of each side and rotor inertia; what has no place is named."""
    robot = random_robot(1, 3).with_gravity((0, 0, -9.81))
    terms = {"j1": {"fc": 0.3, "fv": 0.2, "Ia": 0.1}, "j2": {"fcp": 0.4, "fcn": 0.6}, "j3": {"off": 1.0, "k": 2.0}}
    robot = robot.with_terms(*(robot.joint_term(j, s, x) for j, t in terms.items() for s, x in t.items()))
    model, warnings = pinocchio_model(robot)
    at = {n: model.joints[model.getJointId(n)].idx_v for n in robot.coordinates}
    np.testing.assert_array_equal(model.upperDryFrictionLimit[[at["j1"], at["j2"], at["j3"]]], [0.3, 0.4, 0])
    np.testing.assert_array_equal(model.lowerDryFrictionLimit[[at["j1"], at["j2"], at["j3"]]], [-0.3, -0.6, 0])
    assert (model.damping[at["j1"]], model.armature[at["j1"]]) == (0.2, 0.1)
    assert warnings == ["a Pinocchio model has no place for the drive terms off of j3; k of j3"]
    back = dynid.load_robot(model, friction="viscous+coulomb", rotor_inertia=True)
    values = dict(zip(back.parameter_names, back.parameters, strict=True))
    assert (values["fc_j1"], values["fv_j1"], values["Ia_j1"], values["fc_j2"]) == (0.3, 0.2, 0.1, 0.5)
    q, v, a = (x[0] for x in random_motion(robot, 0, 1))
    order = [at[n] for n in robot.coordinates]
    x, speed, acceleration = np.zeros((3, 3))
    x[order], speed[order], acceleration[order] = q, v, a
    torque = pin.rnea(model, model.createData(), x, speed, acceleration)[order]
    rigid = robot.without("f*", "off_*", "k_*")
    assert difference(dynid.inverse_dynamics(rigid, q, v, a), torque) < SAME
    with expect_error(ModelError, "allow_infeasible", code="untrusted"):
        pinocchio_model(robot.with_parameters(-robot.parameters))
