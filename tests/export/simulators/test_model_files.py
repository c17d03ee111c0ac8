"""Model files with actuators: read back by MuJoCo, by our readers, and as XML and YAML."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import numpy as np
import pytest
import yaml

import dynid
from dynid import ModelError, Robot
from dynid.errors import InvalidValue, NotApplicable, UnknownName
from dynid.export import ActuatorProperty, Lost, actuator_text, list_simulators, write_actuators
from dynid.export.simulators.registry import simulator_names, simulator_target
from dynid.robot import ActuatorLaw
from tests.support.errors import expect_error

INF = float("inf")
TEMPLATE = """<mujoco model="pair">
  <!-- kept -->
  <option gravity="0 0 -9.81"/>
  <default><joint damping="9" frictionloss="9"/></default>
  <worldbody>
    <body name="upper"><joint name="shoulder" axis="0 1 0" actuatorfrcrange="-1 1"/>
      <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.03"/>
      <body name="lower" pos="0.3 0 0"><joint name="elbow" axis="0 1 0" armature="0.5"/>
        <geom type="capsule" fromto="0 0 0 0.3 0 0" size="0.02"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="shoulder"/></actuator>
</mujoco>
"""


def arm() -> tuple[Robot, ActuatorLaw]:
    robot = dynid.load_robot("twolink").without("*")
    terms = [robot.joint_term(j, s, x) for j in robot.coordinates for s, x in (("Ia", 0.1), ("fv", 0.2), ("fc", 0.3))]
    law = ActuatorLaw(
        robot.coordinates,
        kp=[20.0, 30.0],
        kd=0.5,
        gain=[1.0, 1.1],
        torque_limit=[5.0, INF],
        back_emf=0.05,
        bias=[0.0, 0.1],
    )
    return robot.with_terms(*terms), law


def test_mujoco_compiles_what_the_law_says(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    robot, law = arm()
    file = write_actuators(robot, law, tmp_path / "arm.xml", "mujoco", step=0.002)
    model = mujoco.MjModel.from_xml_path(str(file.path))
    assert model.opt.timestep == 0.002 and model.opt.integrator == mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    assert model.dof_armature == pytest.approx(0.1) and model.dof_frictionloss == pytest.approx(0.3)
    assert model.dof_damping == pytest.approx(0.25)  # viscous friction and back-EMF, not the gain
    assert model.actuator_gainprm[:, 0] == pytest.approx([20.0, 33.0])
    assert model.actuator_biasprm[0, :3] == pytest.approx([0, -20, -0.5])
    assert model.actuator_biasprm[1, :3] == pytest.approx([-3.3, -33, -0.55])
    assert list(model.actuator_forcelimited) == [1, 0] and model.actuator_forcerange[0] == pytest.approx([-5, 5])
    assert not model.jnt_actfrclimited.any()
    assert {k.what for k in file.kept} == {*ActuatorProperty} - {
        *(
            ActuatorProperty.DELAY,
            ActuatorProperty.MOTOR_LINE,
            ActuatorProperty.STRIBECK,
            ActuatorProperty.LOAD_FRICTION,
            ActuatorProperty.BACKLASH,
        ),
        *(ActuatorProperty.OFFSET, ActuatorProperty.SPRING),
    }
    assert file.lost == () and "nothing" in file.summary() and "joint armature" in file.summary()


def test_mujoco_actuators_without_gains_take_torques() -> None:
    mujoco = pytest.importorskip("mujoco")
    robot, _ = arm()
    law = ActuatorLaw(robot.coordinates, gain=[0.8, 1.0], torque_limit=3.0)
    model = mujoco.MjModel.from_xml_string(actuator_text(robot, law, "mujoco")[0])
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.ctrl[:] = [0.3, 0.2], [0.1, -0.2], [2.0, -7.0]
    mujoco.mj_forward(model, data)
    assert data.actuator_force == pytest.approx([1.6, -3.0])


def test_mujoco_template_keeps_its_text(tmp_path: Path) -> None:
    mujoco = pytest.importorskip("mujoco")
    path = tmp_path / "pair.xml"
    path.write_text(TEMPLATE)
    robot = dynid.load_robot(path, friction="viscous+coulomb", rotor_inertia=True)
    law = ActuatorLaw(("elbow",), kp=12.0, kd=0.4, delay=0.004)
    file = write_actuators(robot, law, tmp_path / "new.xml", "mujoco", template=path)
    text = file.path.read_text()
    assert "<!-- kept -->" in text and "geom" in text and "<motor" not in text
    model = mujoco.MjModel.from_xml_path(str(file.path))
    assert model.nu == 1 and model.actuator(0).name == "elbow" and model.actuator_delay[0] == 0.004
    assert model.joint("elbow").armature == 0.5 and model.joint("elbow").damping[0] == 9.0
    softer = robot.with_parameters(robot.parameters * np.where([p.symbol == "fv" for p in robot.layout], 0.5, 1.0))
    write_actuators(softer, law, tmp_path / "new.xml", "mujoco", template=path)
    assert mujoco.MjModel.from_xml_path(str(file.path)).joint("elbow").damping[0] == 4.5
    with expect_error(NotApplicable, "template"):
        actuator_text(robot, law, "drake", template=path)


def test_template_without_the_name_of_a_joint(tmp_path: Path) -> None:
    path = tmp_path / "pair.xml"
    path.write_text(TEMPLATE.replace('name="elbow" ', ""))
    robot = dynid.load_robot(path)
    with expect_error(ModelError, "template", code="missing_data"):
        actuator_text(robot, ActuatorLaw(robot.coordinates, kp=1.0), "mujoco", template=path)


def test_gazebo_joints_and_controllers(tmp_path: Path) -> None:
    robot, law = arm()
    file = write_actuators(robot, law, tmp_path / "arm.urdf", "gazebo")
    root = ET.parse(file.path).getroot()
    plugins = {p.findtext("joint_name"): p for p in root.findall("gazebo/plugin")}
    assert list(plugins) == ["joint1", "joint2"]
    second = {e.tag: e.text for e in plugins["joint2"]}
    assert float(second["p_gain"] or 0) == pytest.approx(33.0) and float(second["d_gain"] or 0) == pytest.approx(0.55)
    assert second["i_gain"] == "0" and float(second["cmd_offset"] or 0) == pytest.approx(-3.3)
    assert plugins["joint1"].findtext("cmd_max") == "5" and float(second["cmd_max"] or 0) == 1e9
    back = dynid.load_robot(file.path, friction="viscous+coulomb")
    values = {t.name: t.value for t in back.drives}
    assert values["fv_joint1"] == pytest.approx(0.25) and values["fc_joint2"] == pytest.approx(0.3)
    assert back.limits["joint1"].effort == 5.0
    assert {x.code for x in file.lost} == {Lost.ARMATURE} and file.warnings == ()


def test_ros2_control_interfaces_and_gains(tmp_path: Path) -> None:
    robot, law = arm()
    file = write_actuators(robot, law, tmp_path / "arm.urdf", "ros2_control")
    block = ET.parse(file.path).getroot().find("ros2_control")
    assert block is not None and block.get("type") == "system" and block.findtext("hardware/plugin")
    first, second = block.findall("joint")
    assert {p.get("name"): p.text for p in first.findall("command_interface/param")} == {"min": "-5", "max": "5"}
    assert second.find("command_interface/param") is None
    assert [s.get("name") for s in first.findall("state_interface")] == ["position", "velocity", "effort"]
    assert {x.code for x in file.lost} == {Lost.KP, Lost.KD, Lost.BIAS, Lost.ARMATURE}
    text, lost = actuator_text(robot, law, "ros2_controllers")
    page = yaml.safe_load(text)
    assert page["controller_manager"]["ros__parameters"]["update_rate"] == 1000
    own = page["actuators"]["ros__parameters"]
    assert own["dof_names"] == list(robot.coordinates) and own["command_interface"] == "effort"
    assert own["gains"]["joint1"] == {"p": 20.0, "i": 0.0, "d": 0.5, "u_clamp_max": 5.0, "u_clamp_min": -5.0}
    assert {Lost.VISCOUS, Lost.COULOMB, Lost.ARMATURE, Lost.BACK_EMF, Lost.BIAS} == {x.code for x in lost}


@pytest.mark.parametrize("simulator", list_simulators())
def test_law_of_some_joints_and_names_that_xml_minds(simulator: str) -> None:
    robot, law = arm()
    text, _ = actuator_text(robot, law.of(["joint2"]), simulator)
    tail = text.split("cannot hold", 1)[1]
    assert "joint2" in tail
    if simulator == "mujoco":
        assert len(ET.fromstring(text.encode()).findall("actuator/*")) == 1


@pytest.mark.parametrize("simulator", list_simulators())
def test_every_quantity_is_kept_or_lost(simulator: str) -> None:
    """A law with everything: each quantity is in one of both lists, and in the comment at the top."""
    robot, _ = arm()
    robot = robot.with_terms(
        robot.joint_term("joint1", "fs", 0.1, velocity=0.1),
        robot.joint_term("joint1", "off", 0.2),
        robot.joint_term("joint1", "k", 3.0, rest=0.1),
    )
    law = ActuatorLaw(
        robot.coordinates,
        kp=20.0,
        kd=1.0,
        gain=0.9,
        delay=0.004,
        torque_limit=5.0,
        back_emf=0.1,
        stall_torque=6.0,
        no_load_velocity=9.0,
        backlash=0.01,
        load_friction=0.1,
        bias=0.02,
        rate=1000.0,
    )
    text, lost = actuator_text(robot, law, simulator)
    places = simulator_target(simulator).places
    codes = {x.code.name for x in lost}
    for quantity in ActuatorProperty:
        assert (quantity in places) or quantity.name in codes
    words = " ".join(text.replace("\n# ", "\n").split())
    assert all(place in words for place in places.values())


def test_every_simulator_is_listed_with_the_ending_of_its_file() -> None:
    """Its name without loading it is that of its record."""
    assert tuple(list_simulators()) == simulator_names()
    assert {".xml", ".py", ".urdf", ".yaml"} == set(list_simulators().values())


def test_bad_input() -> None:
    robot, law = arm()
    with expect_error(UnknownName, "simulator"):
        actuator_text(robot, law, "mujocco")
    with expect_error(UnknownName):
        actuator_text(robot, ActuatorLaw(("knee",)), "mujoco")
    for step in (0.0, -1.0, INF, "fast"):
        with expect_error(InvalidValue, "step"):
            actuator_text(robot, law, "mujoco", step=step)  # type: ignore[arg-type]
    light = robot.with_parameters(np.where([p.symbol == "fv" for p in robot.layout], -1.0, robot.parameters))
    with expect_error(ModelError, "allow_infeasible", code="untrusted"):
        actuator_text(light, law, "mujoco")


def test_springs_and_terms_of_several_joints(tmp_path: Path) -> None:
    robot, law = arm()
    sprung = robot.with_terms(
        robot.joint_term("joint1", "k", 3.0, rest=0.2),
        robot.custom_term("ripple", "joint2", lambda q, v, a: np.sin(q), value=0.4, unit="N m"),
    )
    text, lost = actuator_text(sprung, law, "mujoco")
    assert 'stiffness="3"' in text and [(x.code, x.joint) for x in lost] == [(Lost.OTHER_TERM, "ripple_joint2")]
    assert (Lost.SPRING, 3.0) in [(x.code, x.value) for x in actuator_text(sprung, law, "drake")[1]]


@pytest.mark.parametrize("simulator", ["mujoco", "isaaclab", "mjlab", "drake", "genesis", "ros2_controllers"])
def test_the_velocity_of_the_command_must_be_commanded(simulator: str) -> None:
    """Gazebo differentiates the position error; other simulators take velocities as commands, or have none."""
    robot = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    law = ActuatorLaw(robot.coordinates, kp=20.0, kd=0.5, velocity_target="command")
    lost = [(x.code, x.value) for x in actuator_text(robot, law, simulator)[1]]
    assert lost.count((Lost.VELOCITY_TARGET, 0.5)) == 2
    text, lost_in_gazebo = actuator_text(robot, law, "gazebo")
    assert Lost.VELOCITY_TARGET not in {x.code for x in lost_in_gazebo} and "makes a pulse" not in text
