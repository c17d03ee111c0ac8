"""A Python function that gives the joints of a Drake plant their actuators."""

from __future__ import annotations

from dynid.export.simulators.properties import ActuatorProperty
from dynid.export.simulators.target import SimulatorTarget, Written, head, literal, python_comment
from dynid.export.simulators.values import Actuators

__all__ = ["DRAKE"]

_PLACES = {
    ActuatorProperty.KP: "p of PdControllerGains",
    ActuatorProperty.KD: "d of PdControllerGains",
    ActuatorProperty.TORQUE_LIMIT: "effort limit of the JointActuator",
    ActuatorProperty.BACK_EMF: "damping of the joint, added",
    ActuatorProperty.ARMATURE: "rotor inertia of the JointActuator, with a gear ratio of one",
    ActuatorProperty.VISCOUS: "damping of the joint",
}
_NOTES = (
    "Call add_actuators on a discrete plant before Finalize.",
    "Commands go to the input port desired_state of the model instance: positions, then velocities. The plant computes "
    "the gains implicitly, as a law that acts continuously. A DiscreteTimeDelay in front of that port makes a delay.",
    "The rotor inertia is that at the joint already, so that its gear ratio is one.",
)
_CODE = '''

def add_actuators(plant, model_instance):
    """Give the joints of a model instance their damping, actuators, gains and rotor inertias."""
    present = {}
    for index in plant.GetJointActuatorIndices(model_instance):
        actuator = plant.get_joint_actuator(index)
        present[actuator.joint().name()] = actuator
    for name, values in JOINTS.items():
        joint = plant.GetJointByName(name, model_instance)
        joint.set_default_damping(values["damping"])
        actuator = present.get(name)
        if actuator is None:
            actuator = plant.AddJointActuator(name, joint, values["effort_limit"])
        else:
            actuator.set_effort_limit(values["effort_limit"])
        actuator.set_default_rotor_inertia(values["rotor_inertia"])
        actuator.set_default_gear_ratio(1.0)
        actuator.set_controller_gains(PdControllerGains(p=values["p"], d=values["d"]))
'''


def _write(actuators: Actuators) -> Written:
    lost = (*actuators.losses(_PLACES), *actuators.rate_loss(sampled=False))
    lines = [python_comment(head(actuators, "Drake", _PLACES, lost, _NOTES))]
    lines += [
        "from pydrake.multibody.tree import PdControllerGains\n",
        f"PHYSICS_STEP = {literal(actuators.step)}  # s",
    ]
    lines.append("JOINTS = {")
    for joint in actuators.joints:
        values = {"p": joint.kp, "d": joint.kd, "effort_limit": joint.constant_limit}
        values |= {"rotor_inertia": joint.armature, "damping": joint.damping}
        lines.append(f"    {literal(joint.name)}: {literal(values)},")
    return Written("\n".join([*lines, "}", _CODE]), lost)


DRAKE = SimulatorTarget(
    name="drake",
    words="Drake",
    about="A function that gives the joints of a plant their actuators, gains and rotor inertias.",
    ending=".py",
    places=_PLACES,
    write=_write,
)
