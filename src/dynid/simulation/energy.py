"""Where the energy of a simulated motion went."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import kinetic_energy, potential_energy
from dynid.errors import DataError
from dynid.robot.drives import TermKind
from dynid.robot.model import Robot
from dynid.simulation.plant import bolted
from dynid.simulation.simulation import Simulation
from dynid.simulation.unmodeled import UnmodeledEffects, rotor_inertia

__all__ = ["EnergyAudit", "energy_audit"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EnergyAudit:
    """Energies (J) at every sample (N,): kinetic, potential (gravity, springs, constant torques), of flexible joints.

    `work` is what drives and disturbances have done since the start, `lost` what friction has taken of it.
    """

    t: Array
    kinetic: Array
    potential: Array
    elastic: Array
    work: Array

    @property
    def total(self) -> Array:
        """All energy that the machine holds (J)."""
        return self.kinetic + self.potential + self.elastic

    @property
    def lost(self) -> Array:
        """Work done so far less the energy gained (J); friction makes it grow and nothing makes it shrink."""
        return self.work - (self.total - self.total[0])

    @property
    def rise(self) -> float:
        """The most energy that ever came from nowhere (J): how far `lost` falls below its largest value so far."""
        return float((np.maximum.accumulate(self.lost) - self.lost).max())

    def passive(self, tolerance: float = 1e-6) -> bool:
        """Whether the machine made no energy, to a share of the largest energy that was moved."""
        moved = max(float(np.ptp(x)) for x in (self.kinetic, self.potential, self.elastic, self.work, self.lost))
        return self.rise <= tolerance * moved


def energy_audit(simulation: Simulation) -> EnergyAudit:
    """Balance the energy of a simulation that keeps every control period.

    Torques are held over a period, so their work is exact; friction, stiction and damping are what is left.
    """
    if simulation.periods != 1:
        raise DataError(
            f"the simulation keeps one control period in {simulation.periods}; an energy audit needs all of them"
        )
    if len(simulation.t) < 2:
        raise DataError("an energy audit needs at least two samples")
    robot = bolted(simulation.robot, simulation.parameters)
    if any(t.kind == TermKind.CUSTOM for t in robot.drives):
        raise DataError(f"robot '{robot.name}' has a term of the user's, whose energy is not known")
    q, v, motor_q, motor_v = simulation.q, simulation.v, simulation.motor_q, simulation.motor_v
    effects = simulation.unmodeled or UnmodeledEffects()
    springs = replace(robot, drives=tuple(t for t in robot.drives if t.kind == TermKind.SPRING))
    rotors = rotor_inertia(robot, effects)
    work = np.sum(simulation.torque[:-1] * np.diff(motor_q, axis=0), axis=1)
    if simulation.disturbance is not None:
        work += np.sum(simulation.disturbance[:-1] * np.diff(q, axis=0), axis=1)
    return EnergyAudit(
        simulation.t,
        kinetic_energy(springs, q, v) + 0.5 * np.einsum("ki,ij,kj->k", motor_v, rotors, motor_v),
        potential_energy(springs, q) + _offsets(robot, motor_q) + _ripple(effects, motor_q),
        _stretch(effects, motor_q - q),
        np.append(0.0, np.cumsum(work)),
    )


def _offsets(robot: Robot, q: Array) -> Array:
    """Potential of constant torques."""
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    offsets = (value[t.name] * t.direction for t in robot.drives if t.kind == TermKind.OFFSET)
    return q @ sum(offsets, np.zeros(robot.n))


def _ripple(effects: UnmodeledEffects, q: Array) -> Array:
    """Potential of amplitude sin(k q + phase): -amplitude cos(k q + phase) / k."""
    n = q.shape[1]
    amplitude, k, phase = (effects.of_joints(name, n) for name in ("ripple", "harmonics", "phase"))
    turning = k != 0
    waves = -np.divide(amplitude, k, out=np.zeros(n), where=turning) * np.cos(k * q + phase)
    return np.sum(np.where(turning, waves, amplitude * np.sin(phase) * q), axis=1)


def _stretch(effects: UnmodeledEffects, twist: Array) -> Array:
    """Energy of flexible joints twisted by so much."""
    n = twist.shape[1]
    stiffness = np.where(effects.flexible(n), effects.of_joints("stiffness", n), 0.0)
    return 0.5 * np.sum(stiffness * twist**2, axis=1)
