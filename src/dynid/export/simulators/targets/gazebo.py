"""URDF for Gazebo, with a joint position controller per joint."""

from __future__ import annotations

from xml.sax.saxutils import escape

import numpy as np

from dynid.export.contents import number
from dynid.export.simulators.properties import ActuatorProperty
from dynid.export.simulators.target import SimulatorTarget, Written, head, utf8_text, xml_comment
from dynid.export.simulators.values import Actuators, JointActuator
from dynid.export.urdf import urdf_content
from dynid.export.xmltext import XmlText, open_tag, unmarked

__all__ = ["GAZEBO"]

_PLACES = {
    ActuatorProperty.KP: "p_gain of JointPositionController",
    ActuatorProperty.KD: "d_gain of JointPositionController",
    ActuatorProperty.BIAS: "cmd_offset of JointPositionController, times kp",
    ActuatorProperty.TORQUE_LIMIT: "cmd_max and cmd_min; effort of limit",
    ActuatorProperty.BACK_EMF: "damping of dynamics, added",
    ActuatorProperty.VISCOUS: "damping of dynamics",
    ActuatorProperty.COULOMB: "friction of dynamics",
}
_NOTES = (
    "The derivative of JointPositionController is that of the position error: a step of the command makes a pulse of "
    "d_gain, which the law does not have. Command smoothly, or in small steps.",
)
_PLUGIN = {
    "filename": "gz-sim-joint-position-controller-system",
    "name": "gz::sim::systems::JointPositionController",
}


def _write(actuators: Actuators) -> Written:
    content, warnings = urdf_content(
        actuators.plain_robot(("fv", "fc")), template=actuators.template, allow_infeasible=actuators.allow_infeasible
    )
    lost = (*actuators.losses(_PLACES, follows_velocity=True), *actuators.rate_loss())
    file = XmlText(unmarked(content))
    blocks = [_plugin(joint) for joint in actuators.joints]
    file.insert(file.root, ["\n".join(["<gazebo>", *blocks, "</gazebo>"])])
    about = _NOTES if actuators.law.velocity_target == "zero" else ()
    notes = [*about, *(f"Of the model: {w}." for w in warnings)]
    file.replace(file.root.start, file.root.start, xml_comment(head(actuators, "Gazebo", _PLACES, lost, notes)))
    return Written(utf8_text(file), lost, tuple(warnings))


def _plugin(joint: JointActuator) -> str:
    # Gazebo has an integral gain of 0.1 and a limit of 1000 where none is given.
    limit = joint.constant_limit
    limit = limit if np.isfinite(limit) else 1e9
    values = {
        "joint_name": escape(joint.name, {"\r": "&#13;", "\n": "&#10;"}),
        "p_gain": number(joint.kp),
        "i_gain": "0",
        "d_gain": number(joint.kd),
    }
    values |= {"cmd_max": number(limit), "cmd_min": number(-limit), "cmd_offset": number(-joint.kp * joint.bias)}
    inside = [f"    <{tag}>{value}</{tag}>" for tag, value in values.items()]
    return "\n".join([f"  {open_tag('plugin', _PLUGIN, closed=False)}", *inside, "  </plugin>"])


GAZEBO = SimulatorTarget(
    name="gazebo",
    words="Gazebo",
    about="A URDF with a position controller per joint.",
    ending=".urdf",
    places=_PLACES,
    write=_write,
    template="URDF",
)
