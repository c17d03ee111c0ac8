"""The law of the actuators as Python functions over tensors, the same lines for PyTorch and JAX."""

from __future__ import annotations

import numpy as np

from dynid.codegen.program import Program
from dynid.codegen.tensor_library import numbers
from dynid.robot.model import Robot

__all__ = ["LAW_FIELDS", "law_text"]

# What the torque of an instant depends on. The delay is what the caller keeps of the commands.
LAW_FIELDS = (
    *("kp", "kd", "gain", "bias", "backlash", "torque_limit", "back_emf", "stall_torque", "no_load_velocity"),
    "load_friction",
)

_TORQUE = '''

def actuator_torque(command, q, v, command_velocity=0.0, feedforward=0.0, law=LAW):
    """Torque of the actuators: tau (..., {n}) of command (..., {n}), q (..., {nq}), v (..., {nv}).

    The command is the one that is in effect, DELAY seconds old, and so are its velocity and the torque that is fed
    forward. `law` holds the values of LAW that differ, one number per joint each.
    """
    command, q, v = _same(command=(command, {n}), q=(q, {nq}), v=(v, {nv}))
    law = _law_values(law, q)
    command_velocity, feedforward = _array(command_velocity, q), _array(feedforward, q)
    q, v = q[..., {nq} - {n} :], v[..., {nv} - {n} :]
    error = command - (q + law["bias"])
    error = error - _within(error, -0.5 * law["backlash"], 0.5 * law["backlash"])
    torque = law["gain"] * (law["kp"] * error + law["kd"] * (command_velocity - v) + feedforward)
    torque = _within(torque, -law["torque_limit"], law["torque_limit"]) - law["back_emf"] * v
    # The line of a DC motor. Joints without one have infinite ends, which no product may see: inf * 0 is NaN.
    limited = law["stall_torque"] < float("inf")
    stall = np.where(limited, law["stall_torque"], 0.0)
    ratio = v / law["no_load_velocity"]
    low = np.where(limited, -stall * (1.0 + ratio), -float("inf"))
    high = np.where(limited, stall * (1.0 - ratio), float("inf"))
    return _within(torque, low, high)


def _same(**given):
    """Arrays of one type, from their values and sizes by name."""
    first = _array(next(iter(given.values()))[0])
    return tuple(_sized(name, _array(x, first), size) for name, (x, size) in given.items())


def _law_values(given, like):
    """All values of the law, those of LAW where others are not given."""
    for name in given:
        if name not in LAW:
            raise ValueError(f"the law has no '{{name}}', only {{', '.join(LAW)}}")
    return {{name: _array(x, like) for name, x in {{**LAW, **given}}.items()}}


def _within(x, low, high):
    return np.minimum(np.maximum(x, low), high)
'''
_DYNAMICS = '''

def forward_dynamics_under_law(command, q, v, command_velocity=0.0, feedforward=0.0, law=LAW, parms=VALUES):
    """Acceleration under a command: a (..., {nv}) of command (..., {n}), q (..., {nq}), v (..., {nv}).

    The actuators deliver `actuator_torque`, less the friction load_friction |tau| sign(v).
    """
    command, q, v = _same(command=(command, {n}), q=(q, {nq}), v=(v, {nv}))
    torque = actuator_torque(command, q, v, command_velocity, feedforward, law)
    slope, rate = _array(SLOPES, q), v[..., {nv} - {n} :]
    side = np.where(slope > 0.0, np.tanh(slope * rate), np.sign(rate))
    torque = torque - _law_values(law, q)["load_friction"] * np.abs(torque) * side{base}
    return forward_dynamics(q, v, torque, parms)
'''
_BASE = """
    none = np.zeros_like(v[..., :6]) + 0.0 * torque[..., :1]
    torque = np.concatenate((none, torque), -1)"""


def law_text(program: Program) -> str:
    """Values of the law, its torque, and the forward dynamics under it."""
    law, robot = program.law, program.robot
    assert law is not None
    text = "\n\n# The law of the actuators, one number per joint; see actuator_torque.\nLAW = {\n"
    text += "".join(f'    "{name}": {numbers(getattr(law, name))},\n' for name in LAW_FIELDS)
    text += f"}}\n# Seconds between a command and its effect; what is delayed is the {law.delayed}.\n"
    text += f"DELAY = {numbers(law.delay)}\n"
    if law.velocity_target == "command":
        text += "# command_velocity is the derivative of the command.\n"
    text += "# Slope (s/rad or s/m) of tanh in place of the sign of a velocity; 0 for the sign itself.\n"
    text += f"SLOPES = {numbers(_slopes(robot))}\n"
    sizes = {"n": robot.n, "nq": robot.nq, "nv": robot.nv}
    return text + (_TORQUE + _DYNAMICS).format(**sizes, base=_BASE if robot.nv > robot.n else "")


def _slopes(robot: Robot) -> np.ndarray:
    """Slope of the Coulomb friction of each joint, which the friction under load shares."""
    out = np.zeros(robot.n)
    for term in robot.drives:
        if term.is_coulomb and np.count_nonzero(term.direction) == 1:
            out[np.flatnonzero(term.direction)] = term.slope
    return out
