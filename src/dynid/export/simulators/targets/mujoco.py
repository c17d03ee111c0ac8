"""MJCF with joint armature, damping and frictionloss, and one position actuator per joint."""

from __future__ import annotations

import math

import numpy as np

from dynid.errors import ModelError
from dynid.export.contents import number, numbers_text
from dynid.export.mjcf import missing_meshes, mjcf_content
from dynid.export.simulators.properties import ActuatorProperty, Loss, Lost
from dynid.export.simulators.target import SimulatorTarget, Written, head, utf8_text, xml_comment
from dynid.export.simulators.values import Actuators, JointActuator
from dynid.export.xmltext import XmlText, open_tag, unmarked

__all__ = ["MUJOCO"]

_PLACES = {
    ActuatorProperty.KP: "actuator kp, gainprm or controller",
    ActuatorProperty.KD: "actuator kv, biasprm or controller",
    ActuatorProperty.BIAS: "biasprm of a general actuator",
    ActuatorProperty.DELAY: "actuator delay and nsample",
    ActuatorProperty.TORQUE_LIMIT: "actuator forcerange or saturation",
    ActuatorProperty.MOTOR_LINE: "dcmotor nominal",
    ActuatorProperty.BACK_EMF: "joint damping, added",
    ActuatorProperty.ARMATURE: "joint armature",
    ActuatorProperty.VISCOUS: "joint damping",
    ActuatorProperty.COULOMB: "joint frictionloss",
    ActuatorProperty.SPRING: "joint stiffness",
}
# Friction is a soft constraint in MuJoCo. With its defaults a joint that should stick creeps under load: the constraint
# takes 20 ms and leaves a tenth of the acceleration. Four steps and a thousandth keep it at rest.
_FRICTION_STEPS, _FRICTION_SOLIMP = 4, "0.999 0.999 0.001 0.5 2"
_NOTES = (
    "Control is the commanded position (rad or m), of an actuator without gains the torque (N m or N). A delayed "
    "actuator reads zero until its history is filled: call mujoco.mj_initCtrlHistory with the first command after each "
    "reset.",
    "solreffriction and solimpfriction make joints stick; with the defaults of MuJoCo they creep under load.",
)


def _write(actuators: Actuators) -> Written:
    content, warnings = mjcf_content(
        actuators.plain_robot(), template=actuators.template, allow_infeasible=actuators.allow_infeasible
    )
    lost = (*actuators.losses(_PLACES), *_losses(actuators))
    file = XmlText(unmarked(content))
    joints = {e.get("name"): e for e in file.root.iter("joint")}
    friction = {"solreffriction": f"{number(_FRICTION_STEPS * actuators.step)} 1", "solimpfriction": _FRICTION_SOLIMP}
    for joint in actuators.joints:
        if joint.name not in joints:
            raise ModelError(
                f"the template gives joint '{joint.name}' no name, so that no actuator can act on it",
                "template",
                code="missing_data",
            )
        # The law limits its own torque; a limit of the joint would cut it a second time.
        file.set(joints[joint.name], friction if joint.coulomb > 0 else {}, drop=["actuatorfrcrange"])
    settings = {"timestep": number(actuators.step)}
    if actuators.law.rate is None:
        settings["integrator"] = "implicitfast"
    blocks = []
    option = file.root.find("option")
    if option is not None:
        file.set(option, settings)
    else:
        blocks.append(open_tag("option", settings))
    for old in file.root.findall("actuator"):
        file.remove(old)
    lines = [f"  {_element(joint, actuators.step)}" for joint in actuators.joints]
    file.insert(file.root, [*blocks, "\n".join(["<actuator>", *lines, "</actuator>"])])
    comment = xml_comment(head(actuators, "MuJoCo", _PLACES, lost, _notes(actuators, warnings)))
    file.replace(file.root.start, file.root.start, comment)
    return Written(utf8_text(file), lost, tuple(warnings))


def _notes(actuators: Actuators, warnings: list[str]) -> list[str]:
    needed = ["MuJoCo 3.5 or later is needed for delays."] if any(j.delay for j in actuators.joints) else []
    if any(j.has_line for j in actuators.joints):
        needed.append("MuJoCo 3.12 or later is needed for the controller of a dcmotor.")
    return [*_NOTES, *needed, *(f"Of the model: {w}." for w in warnings)]


def _delay(joint: JointActuator, step: float) -> float:
    """The delay that MuJoCo can have: none, or at least one step."""
    if joint.delay >= step:
        return joint.delay
    return step if joint.delay > 0.5 * step else 0.0


def _losses(actuators: Actuators) -> list[Loss]:
    out = []
    for joint in actuators.joints:
        rest = joint.delay - _delay(joint, actuators.step)
        if rest:
            out.append(Loss(Lost.DELAY_PART, joint.name, rest, "s"))
        if joint.has_line and joint.bias:
            out.append(Loss(Lost.BIAS, joint.name, joint.bias, joint.unit(ActuatorProperty.BIAS)))
        if joint.has_line and joint.back_emf:
            out.append(Loss(Lost.LIMIT_ORDER, joint.name, joint.back_emf, joint.unit(ActuatorProperty.BACK_EMF)))
    return [*out, *actuators.rate_loss()]


def _element(joint: JointActuator, step: float) -> str:
    """The actuator of a joint, its gains in torque per position and per velocity."""
    values = {"name": joint.name, "joint": joint.name}
    delay = _delay(joint, step)
    if delay:
        # A little less than a whole number of steps, as rounding may make it, needs no further sample.
        samples = max(1, math.ceil(delay / step - 1e-9))
        values |= {"delay": number(delay), "nsample": str(samples), "interp": "linear"}
    if joint.has_line:
        # With one volt at the terminals: the voltage limit makes the line, exactly.
        values["nominal"] = numbers_text([1.0, joint.stall_torque, joint.no_load_velocity])
        values["controller"] = numbers_text([joint.kp, 0.0, joint.kd, 0.0, 0.0, 1.0])
        values["input"] = "pos"
        if np.isfinite(joint.limit):
            values["saturation"] = numbers_text([joint.limit, 0.0, 0.0])
        return open_tag("dcmotor", values)
    if np.isfinite(joint.limit):
        values["forcerange"] = numbers_text([-joint.limit, joint.limit])
    if not (joint.kp or joint.kd):
        return open_tag("general", values | {"gaintype": "fixed", "gainprm": number(joint.gain), "biastype": "none"})
    if joint.bias:
        values |= {"gaintype": "fixed", "gainprm": number(joint.kp), "biastype": "affine"}
        values["biasprm"] = numbers_text([-joint.kp * joint.bias, -joint.kp, -joint.kd])
        return open_tag("general", values)
    return open_tag("position", values | {"kp": number(joint.kp), "kv": number(joint.kd)})


MUJOCO = SimulatorTarget(
    name="mujoco",
    words="MuJoCo",
    about="An MJCF model with armature, damping and friction of the joints, and an actuator per joint.",
    ending=".xml",
    places=_PLACES,
    write=_write,
    template="MJCF",
    missing=missing_meshes,
)
