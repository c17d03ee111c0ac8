"""A Python function that sets gains, armature and friction of an entity of Genesis."""

from __future__ import annotations

from dynid.export.simulators.properties import ActuatorProperty
from dynid.export.simulators.target import SimulatorTarget, Written, head, literal, python_comment
from dynid.export.simulators.values import Actuators

__all__ = ["GENESIS"]

_PLACES = {
    ActuatorProperty.KP: "set_dofs_kp",
    ActuatorProperty.KD: "set_dofs_kv",
    ActuatorProperty.TORQUE_LIMIT: "set_dofs_force_range",
    ActuatorProperty.BACK_EMF: "set_dofs_damping, added",
    ActuatorProperty.ARMATURE: "set_dofs_armature",
    ActuatorProperty.VISCOUS: "set_dofs_damping",
    ActuatorProperty.COULOMB: "set_dofs_frictionloss",
}
_NOTES = (
    "Call apply_actuators after scene.build(), and command by entity.control_dofs_position(commands, dofs). "
    "Use SimOptions(dt=PHYSICS_STEP).",
    "kv is the gain of the controller; the friction of the joint is in damping. Friction is a soft constraint, as in "
    "MuJoCo: a joint that should stick creeps under load.",
)
_CODE = '''

def apply_actuators(entity):
    """Set the actuators of a robot; returns the indices of its dofs, in the order of JOINTS."""
    dofs = [entity.get_joint(name).dofs_idx_local[0] for name in JOINTS]
    entity.set_dofs_kp(KP, dofs)
    entity.set_dofs_kv(KV, dofs)
    entity.set_dofs_force_range([-limit for limit in FORCE_LIMIT], FORCE_LIMIT, dofs)
    entity.set_dofs_armature(ARMATURE, dofs)
    entity.set_dofs_damping(DAMPING, dofs)
    entity.set_dofs_frictionloss(FRICTIONLOSS, dofs)
    return dofs
'''


def _write(actuators: Actuators) -> Written:
    lost = (*actuators.losses(_PLACES), *actuators.rate_loss(sampled=False))
    joints = actuators.joints
    columns = {
        "KP": [j.kp for j in joints],
        "KV": [j.kd for j in joints],
        "FORCE_LIMIT": [j.constant_limit for j in joints],
        "ARMATURE": [j.armature for j in joints],
        "DAMPING": [j.damping for j in joints],
        "FRICTIONLOSS": [j.coulomb for j in joints],
    }
    lines = [python_comment(head(actuators, "Genesis", _PLACES, lost, _NOTES))]
    lines += [f"PHYSICS_STEP = {literal(actuators.step)}  # s", f"JOINTS = {literal([j.name for j in joints])}"]
    lines += [f"{name} = {literal(values)}" for name, values in columns.items()]
    return Written("\n".join([*lines, _CODE]), lost)


GENESIS = SimulatorTarget(
    name="genesis",
    words="Genesis",
    about="A function that sets gains, armature and friction of an entity.",
    ending=".py",
    places=_PLACES,
    write=_write,
)
