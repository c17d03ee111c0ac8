"""ros2_control: a URDF whose joints take efforts, and the gains of the PID controller that commands them."""

from __future__ import annotations

import numpy as np

from dynid.export.contents import number
from dynid.export.simulators.properties import ActuatorProperty
from dynid.export.simulators.simulator import Simulator, Written, head, python_comment, utf8_text, xml_comment
from dynid.export.simulators.values import Actuators, JointActuator
from dynid.export.urdf import urdf_content
from dynid.export.xmltext import XmlText, open_tag, unmarked
from dynid.quoting import yaml_string

__all__ = ["ROS2_CONTROL", "ROS2_CONTROLLERS"]

_URDF_PLACES = {
    ActuatorProperty.TORQUE_LIMIT: "min and max of the command interface; effort of limit",
    ActuatorProperty.BACK_EMF: "damping of dynamics, added",
    ActuatorProperty.VISCOUS: "damping of dynamics",
    ActuatorProperty.COULOMB: "friction of dynamics",
}
_YAML_PLACES = {
    ActuatorProperty.KP: "p of pid_controller",
    ActuatorProperty.KD: "d of pid_controller",
    ActuatorProperty.TORQUE_LIMIT: "u_clamp_max and u_clamp_min of pid_controller",
}
_URDF_NOTES = (
    "The joints take efforts. The gains are in the YAML file of the controllers, which dynid writes for the simulator "
    "'ros2_controllers'.",
    "gz_ros2_control/GazeboSimSystem is the hardware of Gazebo; put that of your simulator there.",
)
_YAML_NOTES = (
    "Armature and friction are of the joints: they belong into the model file (simulator 'ros2_control').",
    "References are positions and velocities of the joints. u_clamp needs ros2_controllers of Jazzy or later.",
)


def _write_urdf(actuators: Actuators) -> Written:
    content, warnings = urdf_content(
        actuators.plain_robot(("fv", "fc")), template=actuators.template, allow_infeasible=actuators.allow_infeasible
    )
    lost = actuators.losses(_URDF_PLACES)
    file = XmlText(unmarked(content))
    for old in file.root.findall("ros2_control"):
        file.remove(old)
    tag = open_tag("ros2_control", {"name": actuators.robot.name, "type": "system"}, closed=False)
    hardware = ["  <hardware>", "    <plugin>gz_ros2_control/GazeboSimSystem</plugin>", "  </hardware>"]
    rows = [row for joint in actuators.joints for row in _joint_rows(joint)]
    file.insert(file.root, ["\n".join([tag, *hardware, *rows, "</ros2_control>"])])
    notes = [*_URDF_NOTES, *(f"Of the model: {w}." for w in warnings)]
    comment = xml_comment(head(actuators, "ros2_control", _URDF_PLACES, lost, notes))
    file.replace(file.root.start, file.root.start, comment)
    return Written(utf8_text(file), lost, tuple(warnings))


def _joint_rows(joint: JointActuator) -> list[str]:
    limit = joint.constant_limit
    rows = [f"  {open_tag('joint', {'name': joint.name}, closed=False)}"]
    if np.isfinite(limit):
        bounds = {"min": -limit, "max": limit}
        params = [f'      <param name="{name}">{number(value)}</param>' for name, value in bounds.items()]
        rows += ['    <command_interface name="effort">', *params, "    </command_interface>"]
    else:
        rows.append('    <command_interface name="effort"/>')
    states = ("position", "velocity", "effort")
    return [*rows, *(f'    <state_interface name="{state}"/>' for state in states), "  </joint>"]


def _write_yaml(actuators: Actuators) -> Written:
    lost = (*actuators.losses(_YAML_PLACES), *actuators.rate_loss())
    rate = round(1.0 / actuators.step)
    lines = [python_comment(head(actuators, "ros2_controllers", _YAML_PLACES, lost, _YAML_NOTES))]
    lines += ["controller_manager:", "  ros__parameters:", f"    update_rate: {rate}  # Hz"]
    lines += ["    actuators:", "      type: pid_controller/PidController", "", "actuators:", "  ros__parameters:"]
    lines.append(f"    dof_names: [{', '.join(yaml_string(j.name) for j in actuators.joints)}]")
    lines += ["    command_interface: effort", "    reference_and_state_interfaces: [position, velocity]", "    gains:"]
    for joint in actuators.joints:
        limit = joint.constant_limit
        values = {"p": joint.kp, "i": 0.0, "d": joint.kd}
        if np.isfinite(limit):
            values |= {"u_clamp_max": limit, "u_clamp_min": -limit}
        inside = ", ".join(f"{name}: {_float(value)}" for name, value in values.items())
        lines.append(f"      {yaml_string(joint.name)}: {{{inside}}}")
    return Written("\n".join([*lines, ""]), lost)


def _float(value: float) -> str:
    """A number that ROS takes for one with a fraction."""
    text = repr(float(value) + 0.0)
    mantissa, sign, power = text.partition("e")
    return text if "." in mantissa else f"{mantissa}.0{sign}{power}"


ROS2_CONTROL = Simulator("ros2_control", _URDF_PLACES, _write_urdf, templates=True)
ROS2_CONTROLLERS = Simulator("ros2_controllers", _YAML_PLACES, _write_yaml)
