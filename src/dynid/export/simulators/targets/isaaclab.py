"""Actuator configuration of Isaac Lab, as a Python file with one entry per group of joints."""

from __future__ import annotations

import numpy as np

from dynid.export.simulators.properties import ActuatorProperty, Loss, Lost
from dynid.export.simulators.target import (
    SimulatorTarget,
    Written,
    brake_limit,
    expression,
    grouped,
    head,
    literal,
    python_comment,
    whole_steps,
)
from dynid.export.simulators.values import Actuators, JointActuator

__all__ = ["ISAACLAB"]

_PLACES = {
    ActuatorProperty.KP: "stiffness",
    ActuatorProperty.KD: "damping",
    ActuatorProperty.DELAY: "min_delay and max_delay of DelayedPDActuatorCfg, in steps",
    ActuatorProperty.TORQUE_LIMIT: "effort_limit or effort_limit_sim",
    ActuatorProperty.MOTOR_LINE: "saturation_effort and velocity_limit of DCMotorCfg",
    ActuatorProperty.BACK_EMF: "viscous_friction, added",
    ActuatorProperty.ARMATURE: "armature",
    ActuatorProperty.VISCOUS: "viscous_friction",
    ActuatorProperty.COULOMB: "friction and dynamic_friction",
    ActuatorProperty.STRIBECK: "friction, added",
}
_NOTES = (
    "friction and dynamic_friction are torques (N m or N) from Isaac Sim 5.0 on. Isaac Sim 4.5 takes them for "
    "coefficients without unit, which multiply the load of the joint: there, leave them out. friction is that of a "
    "joint at rest (Coulomb and Stribeck friction together), dynamic_friction that of a joint that moves.",
    "damping is the gain of the controller; the friction of the joint is in viscous_friction.",
    "ImplicitActuatorCfg is for a law that acts continuously; a law with a rate is computed in every physics step by "
    "IdealPDActuatorCfg. Use SimulationCfg(dt=PHYSICS_STEP).",
    "A DC motor without a torque limit has twice its stall torque as effort_limit, with which it brakes at most.",
)


def _class(joint: JointActuator, actuators: Actuators) -> str:
    if joint.has_line:
        return "DCMotorCfg"
    if whole_steps(joint, actuators.step):
        return "DelayedPDActuatorCfg"
    return "ImplicitActuatorCfg" if actuators.law.rate is None else "IdealPDActuatorCfg"


def _write(actuators: Actuators) -> Written:
    lost = (*actuators.losses(_PLACES), *_losses(actuators))

    def key(joint: JointActuator) -> tuple[object, ...]:
        kind = _class(joint, actuators)
        steps = whole_steps(joint, actuators.step) if kind == "DelayedPDActuatorCfg" else 0
        return kind, steps, joint.stall_torque if kind == "DCMotorCfg" else 0.0

    groups = grouped(actuators.joints, key)
    kinds = sorted({_class(group[0], actuators) for group in groups})
    lines = [python_comment(head(actuators, "Isaac Lab", _PLACES, lost, _NOTES))]
    lines += [
        f"from isaaclab.actuators import {', '.join(kinds)}\n",
        f"PHYSICS_STEP = {literal(actuators.step)}  # s\n",
    ]
    lines.append("ACTUATORS = {")
    for count, group in enumerate(groups, start=1):
        lines.append(f"    {literal('joints' if len(groups) == 1 else f'joints_{count}')}: {_call(group, actuators)},")
    return Written("\n".join([*lines, "}", ""]), lost)


def _call(group: list[JointActuator], actuators: Actuators) -> str:
    kind = _class(group[0], actuators)
    rows = {"joint_names_expr": literal([expression(j.name) for j in group])}
    rows["stiffness"] = _shared(group, [j.kp for j in group])
    rows["damping"] = _shared(group, [j.kd for j in group])
    rows["armature"] = _shared(group, [j.armature for j in group])
    rows["friction"] = _shared(group, [j.coulomb + j.stribeck for j in group])
    rows["dynamic_friction"] = _shared(group, [j.coulomb for j in group])
    rows["viscous_friction"] = _shared(group, [j.damping for j in group])
    limits = [brake_limit(j) for j in group]
    if np.isfinite(limits).any():
        rows["effort_limit_sim" if kind == "ImplicitActuatorCfg" else "effort_limit"] = _shared(group, limits)
    if kind == "DCMotorCfg":
        rows["saturation_effort"] = literal(group[0].stall_torque)
        rows["velocity_limit"] = _shared(group, [j.no_load_velocity for j in group])
    if kind == "DelayedPDActuatorCfg":
        rows["min_delay"] = rows["max_delay"] = str(whole_steps(group[0], actuators.step))
    inside = "".join(f"        {name}={value},\n" for name, value in rows.items())
    return f"{kind}(\n{inside}    )"


def _shared(group: list[JointActuator], values: list[float]) -> str:
    """One number where all joints have the same, else one per joint name."""
    if len(set(values)) == 1:
        return literal(float(values[0]))
    pairs = zip(group, values, strict=True)
    return "{" + ", ".join(f"{literal(expression(j.name))}: {literal(float(x))}" for j, x in pairs) + "}"


def _losses(actuators: Actuators) -> list[Loss]:
    out = []
    for joint in actuators.joints:
        if joint.has_line and joint.delay:
            out.append(Loss(Lost.DELAY, joint.name, joint.delay, "s"))
        rest = joint.delay - whole_steps(joint, actuators.step) * actuators.step
        if not joint.has_line and abs(rest) > 1e-9:
            out.append(Loss(Lost.DELAY_PART, joint.name, rest, "s"))
        if joint.stribeck:
            unit = "m/s" if joint.linear else "rad/s"
            out.append(Loss(Lost.STRIBECK_VELOCITY, joint.name, joint.stribeck_velocity, unit))
        if joint.has_line and joint.back_emf:
            out.append(Loss(Lost.LIMIT_ORDER, joint.name, joint.back_emf, joint.unit(ActuatorProperty.BACK_EMF)))
    return [*out, *actuators.rate_loss()]


ISAACLAB = SimulatorTarget(
    name="isaaclab",
    words="Isaac Lab",
    about="A configuration of actuators, with an entry per group of joints.",
    ending=".py",
    places=_PLACES,
    write=_write,
)
