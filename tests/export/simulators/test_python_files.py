"""Python files for simulators: valid against stubs of their classes, with the numbers of the law and the drives."""

from __future__ import annotations

import ast
import re

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.export import Lost, actuator_text
from dynid.robot import ActuatorLaw
from tests.support.simulator_stubs import DrakePlant, GenesisEntity, PdControllerGains, executed

INF = float("inf")
FILES = ("isaaclab", "mjlab", "drake", "genesis")


def arm() -> Robot:
    """Three joints with other armature and friction each; the last one translates in no simulator's special way."""
    robot = dynid.load_robot("tx40").locked({"joint4": 0.0, "joint5": 0.0, "joint6": 0.0}).without("f*", "Ia*", "off*")
    terms = []
    for k, joint in enumerate(robot.coordinates):
        terms += [robot.joint_term(joint, s, v * (k + 1)) for s, v in (("Ia", 0.01), ("fv", 0.2), ("fc", 0.3))]
    return robot.with_terms(*terms)


def law(robot: Robot, **values: object) -> ActuatorLaw:
    given = {"kp": [20.0, 30.0, 40.0], "kd": [0.5, 0.6, 0.7], "gain": [1.0, 1.1, 0.9], "back_emf": [0.0, 0.05, 0.0]}
    return ActuatorLaw(robot.coordinates, **(given | values))  # type: ignore[arg-type]


@pytest.mark.parametrize("simulator", FILES)
def test_files_parse_and_explain_themselves(simulator: str) -> None:
    robot = arm()
    text, _ = actuator_text(robot, law(robot, backlash=0.01, torque_limit=9.0), simulator)
    ast.parse(text)
    comments = " ".join(line.lstrip("# ") for line in text.splitlines() if line.startswith("#"))
    assert "Units: rad, s, N m" in comments and "cannot hold" in comments and "Physics step: 0.001 s" in comments
    assert "Backlash is left out (0.01 rad of joint1, joint2, joint3)." in comments
    assert max(map(len, (x for x in text.splitlines() if x.startswith("#")))) <= 120


def test_isaac_lab_by_one_number_or_by_joint() -> None:
    robot = arm()
    text, lost = actuator_text(robot, law(robot, torque_limit=9.0), "isaaclab", step=0.005)
    names = executed(text)
    (group,) = names["ACTUATORS"].values()
    assert type(group).__name__ == "ImplicitActuatorCfg" and names["PHYSICS_STEP"] == 0.005
    assert group.joint_names_expr == ["joint1", "joint2", "joint3"] and group.effort_limit_sim == 9.0
    assert group.stiffness == pytest.approx({"joint1": 20, "joint2": 33, "joint3": 36})
    assert group.damping == pytest.approx({"joint1": 0.5, "joint2": 0.66, "joint3": 0.63})
    assert group.armature == pytest.approx({"joint1": 0.01, "joint2": 0.02, "joint3": 0.03})
    assert group.friction == group.dynamic_friction == pytest.approx({"joint1": 0.3, "joint2": 0.6, "joint3": 0.9})
    assert group.viscous_friction == pytest.approx({"joint1": 0.2, "joint2": 0.45, "joint3": 0.6})
    assert lost == ()


def test_isaac_lab_groups_delays_and_motors() -> None:
    robot = arm()
    mixed = law(
        robot, delay=[0.012, 0.012, 0.004], stall_torque=[INF, INF, 8.0], no_load_velocity=[INF, INF, 20.0], rate=200.0
    )
    text, lost = actuator_text(robot, mixed, "isaaclab")
    delayed, motor = executed(text)["ACTUATORS"].values()
    assert type(delayed).__name__ == "DelayedPDActuatorCfg" and delayed.joint_names_expr == ["joint1", "joint2"]
    assert (delayed.min_delay, delayed.max_delay, delayed.effort_limit) == (2, 2, None)
    assert type(motor).__name__ == "DCMotorCfg" and (motor.saturation_effort, motor.velocity_limit) == (8.0, 20.0)
    assert motor.effort_limit == 16.0
    found = {(x.code, x.joint): x.value for x in lost}
    assert found[Lost.DELAY, "joint3"] == 0.004  # a DCMotor has no delay
    assert found[Lost.DELAY_PART, "joint1"] == pytest.approx(0.002) and len(found) == 3


def test_isaac_lab_law_with_a_rate_is_computed_in_steps() -> None:
    robot = arm()
    text, lost = actuator_text(robot, law(robot, rate=500.0), "isaaclab")
    names = executed(text)
    assert type(names["ACTUATORS"]["joints"]).__name__ == "IdealPDActuatorCfg" and names["PHYSICS_STEP"] == 0.002
    assert lost == ()
    _, lost = actuator_text(robot, law(robot, rate=500.0), "isaaclab", step=0.005)
    assert [(x.code, x.joint, x.value, x.unit) for x in lost] == [(Lost.RATE, "", 500.0, "Hz")]


def test_isaac_lab_friction_at_rest_has_the_stribeck_term() -> None:
    robot = arm()
    robot = robot.with_terms(robot.joint_term("joint2", "fs", 0.4, velocity=0.05))
    text, lost = actuator_text(robot, law(robot), "isaaclab")
    group = executed(text)["ACTUATORS"]["joints"]
    assert group.friction["joint2"] == pytest.approx(1.0) and group.dynamic_friction["joint2"] == pytest.approx(0.6)
    assert [(x.code, x.joint, x.value) for x in lost] == [(Lost.STRIBECK_VELOCITY, "joint2", 0.05)]
    for simulator in ("mjlab", "drake", "genesis", "mujoco", "gazebo"):
        found = {(x.code, x.joint): x.value for x in actuator_text(robot, law(robot), simulator)[1]}
        assert found[Lost.STRIBECK, "joint2"] == 0.4


def test_names_of_joints_are_no_patterns() -> None:
    robot = dynid.load_robot("twolink")
    joints = tuple(
        j.__class__(**{**{f: getattr(j, f) for f in j.__dataclass_fields__}, "name": n})
        for j, n in zip(robot.joints, ("arm.a", "arm_b"), strict=True)
    )
    renamed = Robot("odd", robot.links, joints, gravity=robot.gravity)
    for simulator in ("isaaclab", "mjlab"):
        text, _ = actuator_text(renamed, ActuatorLaw(("arm.a", "arm_b"), kp=[1.0, 2.0]), simulator)
        names = executed(text)["ACTUATORS"]
        groups = names.values() if isinstance(names, dict) else names
        patterns = [p for g in groups for p in getattr(g, "joint_names_expr", ()) or g.target_names_expr]
        assert patterns == [r"arm\.a", "arm_b"] and not re.fullmatch(patterns[0], "armxa")


def test_mjlab_groups_equal_joints() -> None:
    robot = arm()
    same = robot.without("*").with_terms(*(robot.joint_term(j, "fc", 0.3) for j in robot.coordinates))
    text, lost = actuator_text(same, ActuatorLaw(same.coordinates, kp=[5.0, 5.0, 7.0], delay=0.003), "mjlab")
    names = executed(text)
    first, last = names["ARTICULATION"].actuators
    assert first.target_names_expr == ("joint1", "joint2") and last.target_names_expr == ("joint3",)
    assert (first.stiffness, first.frictionloss, first.delay_min_lag, first.delay_max_lag) == (5.0, 0.3, 3, 3)
    assert type(first).__name__ == "BuiltinPositionActuatorCfg" and first.effort_limit is None and lost == ()


def test_mjlab_motor_keeps_its_delay() -> None:
    robot = arm()
    motors = law(robot, stall_torque=8.0, no_load_velocity=20.0, torque_limit=5.0, delay=0.002, rate=1000.0)
    text, lost = actuator_text(robot, motors, "mjlab")
    cfg = executed(text)["ACTUATORS"][1]
    assert type(cfg).__name__ == "DcMotorActuatorCfg"
    assert (cfg.saturation_effort, cfg.velocity_limit, cfg.effort_limit, cfg.delay_min_lag) == (8.0, 20.0, 5.0, 2)
    assert cfg.viscous_damping == pytest.approx(0.45) and cfg.damping == pytest.approx(0.66)
    assert [(x.code, x.joint) for x in lost] == [(Lost.LIMIT_ORDER, "joint2")]


def test_drake_plant_gets_gains_damping_and_rotor_inertia() -> None:
    robot = arm()
    text, lost = actuator_text(robot, law(robot, torque_limit=[9.0, 8.0, INF]), "drake")
    plant = DrakePlant(robot.coordinates)
    executed(text)["add_actuators"](plant, 0)
    by_joint = {a.joint().name(): a for a in plant.actuators}
    assert set(by_joint) == set(robot.coordinates) and len(plant.actuators) == 3
    assert [by_joint[j].effort_limit for j in robot.coordinates] == [9.0, 8.0, INF]
    assert by_joint["joint2"].values["gains"] == PdControllerGains(pytest.approx(33.0), pytest.approx(0.66))
    assert by_joint["joint3"].values["rotor_inertia"] == pytest.approx(0.03)
    assert by_joint["joint3"].values["gear_ratio"] == 1.0
    assert plant.joints["joint2"].damping == pytest.approx(0.45)
    assert {x.code for x in lost} == {Lost.COULOMB} and [x.value for x in lost] == pytest.approx([0.3, 0.6, 0.9])


def test_genesis_entity_gets_all_values_by_dof() -> None:
    robot = arm()
    text, lost = actuator_text(robot, law(robot, torque_limit=[9.0, 8.0, INF]), "genesis")
    entity = GenesisEntity(robot.coordinates)
    assert executed(text)["apply_actuators"](entity) == [6, 7, 8]
    assert entity.values["kp"] == pytest.approx({6: 20.0, 7: 33.0, 8: 36.0})
    assert entity.values["upper"] == {6: 9.0, 7: 8.0, 8: INF} and entity.values["lower"][8] == -INF
    assert entity.values["damping"] == pytest.approx({6: 0.2, 7: 0.45, 8: 0.6})
    assert entity.values["frictionloss"] == pytest.approx({6: 0.3, 7: 0.6, 8: 0.9})
    assert entity.values["armature"] == pytest.approx({6: 0.01, 7: 0.02, 8: 0.03})
    assert lost == ()


@pytest.mark.parametrize("simulator", FILES)
def test_everything_lost_is_named_with_its_value(simulator: str) -> None:
    """Each of what no simulator has, alone: its code, all joints, its value."""
    robot = arm()
    for field, code in (("backlash", Lost.BACKLASH), ("load_friction", Lost.LOAD_FRICTION), ("bias", Lost.BIAS)):
        lost = actuator_text(robot, law(robot, **{field: 0.02}), simulator)[1]
        mine = [x for x in lost if x.code == code]
        assert [x.joint for x in mine] == list(robot.coordinates) and {x.value for x in mine} == {0.02}
    off = robot.with_terms(robot.joint_term("joint1", "off", -0.3), robot.joint_term("joint1", "fcp", 0.4))
    found = {x.code: x.value for x in actuator_text(off, law(off), simulator)[1] if x.joint == "joint1"}
    assert found[Lost.OFFSET] == -0.3
    if simulator != "drake":
        assert np.isclose(found[Lost.COULOMB_ASYMMETRY], 0.2)
