"""ros2_controllers: the gains of the PID controller that commands the efforts of ros2_control."""

from __future__ import annotations

import numpy as np

from dynid.export.simulators.properties import ActuatorProperty
from dynid.export.simulators.target import SimulatorTarget, Written, head, python_comment
from dynid.export.simulators.values import Actuators
from dynid.quoting import yaml_string

__all__ = ["ROS2_CONTROLLERS"]

_PLACES = {
    ActuatorProperty.KP: "p of pid_controller",
    ActuatorProperty.KD: "d of pid_controller",
    ActuatorProperty.TORQUE_LIMIT: "u_clamp_max and u_clamp_min of pid_controller",
}
_NOTES = (
    "Armature and friction are of the joints: they belong into the model file (simulator 'ros2_control').",
    "References are positions and velocities of the joints. u_clamp needs ros2_controllers of Jazzy or later.",
)


def _write(actuators: Actuators) -> Written:
    lost = (*actuators.losses(_PLACES), *actuators.rate_loss())
    rate = round(1.0 / actuators.step)
    lines = [python_comment(head(actuators, "ros2_controllers", _PLACES, lost, _NOTES))]
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


ROS2_CONTROLLERS = SimulatorTarget(
    name="ros2_controllers",
    words="ros2_controllers",
    about="Gains and limits of a PID controller, for the joints of ros2_control.",
    ending=".yaml",
    places=_PLACES,
    write=_write,
)
