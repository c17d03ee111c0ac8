"""A robot under an actuator law, integrated with Pinocchio alone: joints that stick, delays, limits."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid import Robot
from dynid.robot import ActuatorLaw

Array = NDArray[np.float64]


def drive_values(robot: Robot, symbol: str) -> Array:
    """Values of the drive terms with this symbol, zero for joints without one."""
    found = {t.shaft: t.value for t in robot.drives if t.symbol == symbol}
    return np.array([found.get(name, 0.0) for name in robot.coordinates])


def law_torque(law: ActuatorLaw, error: Array, held: Array, v: Array) -> Array:
    """Torque of the motors, for a position error and a velocity at which the law was computed, and a velocity now."""
    u = np.clip(law.gain * (law.kp * error - law.kd * held), -law.torque_limit, law.torque_limit)
    line = v / law.no_load_velocity
    with np.errstate(invalid="ignore"):
        low, high = -law.stall_torque * (1 + line), law.stall_torque * (1 - line)
    return np.clip(u - law.back_emf * v, low, high)


def simulated_positions(robot: Robot, law: ActuatorLaw, commands: Array, rate: float, substeps: int = 5) -> Array:
    """Positions (N, n) under commands (N, n) that are held for a period of 1 / rate, from rest at the first command.

    The law is computed at that rate. Coulomb friction acts at the level of velocities: in every substep a joint stops
    if its friction can stop it, all joints together (projected Gauss-Seidel).
    """
    model = robot.to_pinocchio()
    data = model.createData()
    model.armature = drive_values(robot, "Ia")
    viscous, coulomb = drive_values(robot, "fv"), drive_values(robot, "fc")
    h = 1.0 / (rate * substeps)
    q, v = commands[0] - law.bias, np.zeros(robot.n)
    out = np.empty_like(commands)
    impulse = np.zeros(robot.n)
    each = np.arange(robot.n)
    for k in range(len(commands)):
        out[k] = q
        # A delay of a whole number of periods is that number, whatever rounding says.
        late = np.maximum(np.floor(k - law.delay * rate + 1e-6).astype(int), 0)
        error, held = commands[late, each] - q - law.bias, v
        for _ in range(substeps):
            torque = law_torque(law, error, held, v)
            minv = pin.computeMinverse(model, data, q)
            minv = np.triu(minv) + np.triu(minv, 1).T
            free = v + h * minv @ (torque - viscous * v - pin.nonLinearEffects(model, data, q, v))
            v, impulse = stopped(free, minv, h * coulomb, impulse)
            q = q + h * v
    return out


def stopped(free: Array, minv: Array, bound: Array, impulse: Array) -> tuple[Array, Array]:
    """Velocities after friction impulses within +-bound that bring each joint to rest where they can."""
    impulse = impulse.copy()
    v = free - minv @ impulse
    for _ in range(200):
        change = 0.0
        for j in range(len(v)):
            new = min(max(impulse[j] + v[j] / minv[j, j], -bound[j]), bound[j])
            step = new - impulse[j]
            if step:
                impulse[j] = new
                v = v - minv[:, j] * step
                change = max(change, abs(step * minv[j, j]))
        if change < 1e-9:
            break
    return v, impulse
