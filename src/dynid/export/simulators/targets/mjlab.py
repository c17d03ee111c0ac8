"""Actuator configuration of mjlab, as a Python file with one entry per group of equal joints."""

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

__all__ = ["MJLAB"]

_PLACES = {
    ActuatorProperty.KP: "stiffness",
    ActuatorProperty.KD: "damping",
    ActuatorProperty.DELAY: "delay_min_lag and delay_max_lag, in steps",
    ActuatorProperty.TORQUE_LIMIT: "effort_limit",
    ActuatorProperty.MOTOR_LINE: "saturation_effort and velocity_limit of DcMotorActuatorCfg",
    ActuatorProperty.BACK_EMF: "viscous_damping, added",
    ActuatorProperty.ARMATURE: "armature",
    ActuatorProperty.VISCOUS: "viscous_damping",
    ActuatorProperty.COULOMB: "frictionloss",
}
_NOTES = (
    "For mjlab 1.6 or later. damping is the gain of the controller; the friction of the joint is in viscous_damping.",
    "BuiltinPositionActuatorCfg is for a law that acts continuously; a law with a rate is computed in every physics "
    "step by IdealPdActuatorCfg. Use MujocoCfg(timestep=PHYSICS_STEP).",
    "Friction is a soft constraint: with default settings of the model a joint that should stick creeps under load. "
    "solreffriction and solimpfriction of its joints change that.",
    "A DC motor without a torque limit has twice its stall torque as effort_limit, with which it brakes at most.",
)


def _class(joint: JointActuator, actuators: Actuators) -> str:
    if joint.has_line:
        return "DcMotorActuatorCfg"
    return "BuiltinPositionActuatorCfg" if actuators.law.rate is None else "IdealPdActuatorCfg"


def _rows(joint: JointActuator, actuators: Actuators) -> dict[str, str]:
    """Fields of the configuration but for the names of the joints."""
    rows = {"stiffness": joint.kp, "damping": joint.kd, "armature": joint.armature}
    rows |= {"frictionloss": joint.coulomb, "viscous_damping": joint.damping}
    limit = brake_limit(joint)
    if np.isfinite(limit):
        rows["effort_limit"] = limit
    if joint.has_line:
        rows |= {"saturation_effort": joint.stall_torque, "velocity_limit": joint.no_load_velocity}
    out = {name: literal(float(value)) for name, value in rows.items()}
    steps = whole_steps(joint, actuators.step)
    if steps:
        out |= {"delay_min_lag": str(steps), "delay_max_lag": str(steps)}
    return out


def _write(actuators: Actuators) -> Written:
    lost = (*actuators.losses(_PLACES), *_losses(actuators))
    kinds = sorted({_class(joint, actuators) for joint in actuators.joints})
    lines = [python_comment(head(actuators, "mjlab", _PLACES, lost, _NOTES))]
    lines += [f"from mjlab.actuator import {', '.join(kinds)}", "from mjlab.entity import EntityArticulationInfoCfg\n"]
    lines += [f"PHYSICS_STEP = {literal(actuators.step)}  # s\n", "ACTUATORS = ("]
    equal = grouped(actuators.joints, lambda j: (_class(j, actuators), *_rows(j, actuators).items()))
    for group in equal:
        lines.append(f"    {_class(group[0], actuators)}(")
        names = literal(tuple(expression(j.name) for j in group))
        rows = {"target_names_expr": names, **_rows(group[0], actuators)}
        lines += [*(f"        {name}={value}," for name, value in rows.items()), "    ),"]
    lines += [")", "", "ARTICULATION = EntityArticulationInfoCfg(actuators=ACTUATORS)", ""]
    return Written("\n".join(lines), lost)


def _losses(actuators: Actuators) -> list[Loss]:
    out = []
    for joint in actuators.joints:
        rest = joint.delay - whole_steps(joint, actuators.step) * actuators.step
        if abs(rest) > 1e-9:
            out.append(Loss(Lost.DELAY_PART, joint.name, rest, "s"))
        if joint.has_line and joint.back_emf:
            out.append(Loss(Lost.LIMIT_ORDER, joint.name, joint.back_emf, joint.unit(ActuatorProperty.BACK_EMF)))
    return [*out, *actuators.rate_loss()]


MJLAB = SimulatorTarget(
    name="mjlab",
    words="mjlab",
    about="A configuration of actuators, with an entry per group of equal joints.",
    ending=".py",
    places=_PLACES,
    write=_write,
)
