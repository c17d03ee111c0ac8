"""ros2_control: a URDF whose joints take efforts."""

from __future__ import annotations

import numpy as np

from dynid.export.contents import number
from dynid.export.simulators.properties import ActuatorProperty
from dynid.export.simulators.target import SimulatorTarget, Written, head, utf8_text, xml_comment
from dynid.export.simulators.values import Actuators, JointActuator
from dynid.export.urdf import urdf_content
from dynid.export.xmltext import XmlText, open_tag, unmarked

__all__ = ["ROS2_CONTROL"]

_PLACES = {
    ActuatorProperty.TORQUE_LIMIT: "min and max of the command interface; effort of limit",
    ActuatorProperty.BACK_EMF: "damping of dynamics, added",
    ActuatorProperty.VISCOUS: "damping of dynamics",
    ActuatorProperty.COULOMB: "friction of dynamics",
}
_NOTES = (
    "The joints take efforts. The gains are in the YAML file of the controllers, which dynid writes for the simulator "
    "'ros2_controllers'.",
    "gz_ros2_control/GazeboSimSystem is the hardware of Gazebo; put that of your simulator there.",
)


def _write(actuators: Actuators) -> Written:
    content, warnings = urdf_content(
        actuators.plain_robot(("fv", "fc")), template=actuators.template, allow_infeasible=actuators.allow_infeasible
    )
    lost = actuators.losses(_PLACES)
    file = XmlText(unmarked(content))
    for old in file.root.findall("ros2_control"):
        file.remove(old)
    tag = open_tag("ros2_control", {"name": actuators.robot.name, "type": "system"}, closed=False)
    hardware = ["  <hardware>", "    <plugin>gz_ros2_control/GazeboSimSystem</plugin>", "  </hardware>"]
    rows = [row for joint in actuators.joints for row in _joint_rows(joint)]
    file.insert(file.root, ["\n".join([tag, *hardware, *rows, "</ros2_control>"])])
    notes = [*_NOTES, *(f"Of the model: {w}." for w in warnings)]
    comment = xml_comment(head(actuators, "ros2_control", _PLACES, lost, notes))
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


ROS2_CONTROL = SimulatorTarget(
    name="ros2_control",
    words="ros2_control",
    about="A URDF whose joints take efforts, for the hardware of ros2_control.",
    ending=".urdf",
    places=_PLACES,
    write=_write,
    template="URDF",
)
