"""Energy balance of a simulation.

    lost = work - (T + U + elastic - that at the start),    T = v' M v / 2

Source: Siciliano, Sciavicco, Villani and Oriolo, Robotics: Modelling, Planning and Control (2009), chapter 7 (principle
of conservation of energy).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.assembly import assemble
from dynid.dynamics.functions import kinetic_energy, potential_energy
from dynid.errors import NotApplicable, TooFew
from dynid.robot.drives import TermKind
from dynid.robot.elements import LineForce
from dynid.robot.model import Robot
from dynid.simulation.plant import bolted
from dynid.simulation.simulation import Simulation
from dynid.simulation.unmodeled import UnmodeledEffects, rotor_inertia

__all__ = ["EnergyAudit", "energy_audit"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class EnergyAudit:
    """Energy balance of a simulation.

    Attributes
    ----------
    t : array of shape (N,)
        Time (s).
    kinetic : array of shape (N,)
        Kinetic energy of links and motors (J).
    potential : array of shape (N,)
        Potential energy (J) of gravity, springs, constant torques and torque ripple.
    elastic : array of shape (N,)
        Energy stored in flexible joints (J).
    work : array of shape (N,)
        Work of drives and disturbances since the start (J).
    """

    t: Array
    kinetic: Array
    potential: Array
    elastic: Array
    work: Array

    @property
    def total(self) -> Array:
        """Total energy of the robot (J), shape (N,)."""
        return self.kinetic + self.potential + self.elastic

    @property
    def lost(self) -> Array:
        """Dissipated energy (J), shape (N,): work minus the gain in total energy. Friction can only increase it."""
        return self.work - (self.total - self.total[0])

    @property
    def rise(self) -> float:
        """Largest energy gain without work (J): how far `lost` falls below its previous maximum."""
        return float((np.maximum.accumulate(self.lost) - self.lost).max())

    def passive(self, tolerance: float = 1e-6) -> bool:
        """Whether the simulated robot created no energy.

        Parameters
        ----------
        tolerance : float
            Allowed `rise`, relative to the largest change of any energy.

        Returns
        -------
        bool
        """
        moved = max(float(np.ptp(x)) for x in (self.kinetic, self.potential, self.elastic, self.work, self.lost))
        return self.rise <= tolerance * moved


def energy_audit(simulation: Simulation) -> EnergyAudit:
    """Energy balance of a simulation.

    Torques are constant over a control period, so their work is exact. The remainder of the balance is the energy that
    friction, stiction and damping dissipate.

    Parameters
    ----------
    simulation : Simulation
        With one sample per control period (`rate` not set).

    Returns
    -------
    EnergyAudit

    Raises
    ------
    DataError
        If control periods are missing, or the robot has custom drive terms, whose energy is unknown.

    Examples
    --------
    >>> import numpy as np, dynid
    >>> robot = dynid.load_robot("twolink")
    >>> gains = dynid.controllers.bandwidth_gains(robot, 5.0)
    >>> loop = dynid.ClosedLoop(controller=dynid.controllers.cascade(1000.0, *gains))
    >>> done = dynid.simulate(robot, loop, 0.5 * np.sin(np.arange(500) / 200.0)[:, None] * np.ones(2))
    >>> dynid.simulation.energy_audit(done).passive(1e-3)
    True
    """
    if simulation.periods != 1:
        raise NotApplicable(
            f"the simulation has one sample per {simulation.periods} control periods; "
            "an energy audit needs all of them",
            "simulation",
        )
    if len(simulation.t) < 2:
        raise TooFew("an energy audit needs at least two samples")
    robot = bolted(simulation.robot, simulation.parameters)
    if any(t.kind == TermKind.CUSTOM and not isinstance(t.function, LineForce) for t in robot.drives):
        raise NotApplicable(f"robot '{robot.name}' has a custom drive term, whose energy is not known")
    q, v, motor_q, motor_v = simulation.q, simulation.v, simulation.motor_q, simulation.motor_v
    effects = simulation.unmodeled or UnmodeledEffects()
    work = np.sum(simulation.torque[:-1] * np.diff(motor_q, axis=0), axis=1)
    if simulation.disturbance is not None:
        work += np.sum(simulation.disturbance[:-1] * np.diff(q, axis=0), axis=1)
    if robot.loops:  # the energy of the whole tree, whose passive joints do no work on each other
        motion = assemble(robot, q, v)
        robot, q, v = robot.tree, motion.q, motion.v
        motor_q, motor_v = q, v
    springs = replace(robot, drives=tuple(t for t in robot.drives if t.kind in (TermKind.SPRING, TermKind.CUSTOM)))
    rotors = rotor_inertia(robot, effects)
    return EnergyAudit(
        simulation.t,
        kinetic_energy(springs, q, v) + 0.5 * np.einsum("ki,ij,kj->k", motor_v, rotors, motor_v),
        potential_energy(springs, q) + _offsets(robot, motor_q) + _ripple(effects, motor_q),
        _stretch(effects, motor_q - q),
        np.append(0.0, np.cumsum(work)),
    )


def _offsets(robot: Robot, q: Array) -> Array:
    """Potential energy of constant torques."""
    value = dict(zip(robot.parameter_names, robot.parameters, strict=True))
    offsets = (value[t.name] * t.direction for t in robot.drives if t.kind == TermKind.OFFSET)
    return q @ sum(offsets, np.zeros(robot.n))


def _ripple(effects: UnmodeledEffects, q: Array) -> Array:
    """Potential energy of a ripple amplitude sin(k q + phase): -amplitude cos(k q + phase) / k."""
    n = q.shape[1]
    amplitude, k, phase = (effects.of_joints(name, n) for name in ("ripple", "harmonics", "phase"))
    turning = k != 0
    waves = -np.divide(amplitude, k, out=np.zeros(n), where=turning) * np.cos(k * q + phase)
    return np.sum(np.where(turning, waves, amplitude * np.sin(phase) * q), axis=1)


def _stretch(effects: UnmodeledEffects, twist: Array) -> Array:
    """Elastic energy of flexible joints (N,) at deflections (N, n)."""
    n = twist.shape[1]
    stiffness = np.where(effects.flexible(n), effects.of_joints("stiffness", n), 0.0)
    return 0.5 * np.sum(stiffness * twist**2, axis=1)
