"""Recordings whose torques Pinocchio computes, for methods that balance energy."""

from __future__ import annotations

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.excitation.basis import random_fourier
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot

Array = NDArray[np.float64]

RATE, PERIOD = 500.0, 10.0
VISCOUS, COULOMB, OFFSET, ROTOR = 1.5, 0.8, 0.2, 0.3


class Plant:
    """An arm of Pinocchio with friction and rotors of its own, and the motions that it follows.

    Parameters
    ----------
    joints : int
        The first joints of Pinocchio's sample manipulator, at most six; the others are locked.
    motions : int
        Number of motions.
    """

    def __init__(self, joints: int, motions: int) -> None:
        whole = pin.buildSampleModelManipulator()
        self.model = pin.buildReducedModel(whole, list(range(joints + 1, whole.njoints)), pin.neutral(whole))
        rng = np.random.default_rng(7)
        for body in self.model.inertias:
            body.lever = body.lever + 0.1 * rng.normal(size=3)
        n = self.model.nv
        drives = {"fv": VISCOUS, "fc": COULOMB, "off": OFFSET, "Ia": ROTOR}
        bare = Robot.from_pinocchio(self.model)
        full = bare.with_drives("viscous+coulomb+offset", rotor_inertia=True)
        values = full.parameters.copy()
        for k, name in enumerate(full.parameter_names):
            symbol = name.split("_")[0]
            if symbol in drives and not full.layout[k].inertial:
                values[k] = drives[symbol]
        self.robot = full.with_parameters(values)
        self.t = np.arange(int(RATE * PERIOD)) / RATE
        ones = np.ones(n)
        self.motions = [
            random_fourier(-1.5 * ones, 1.5 * ones, 3.0 * ones, PERIOD, self.t, seed) for seed in range(motions)
        ]
        self.torques = [self._torque(*one) for one in self.motions]

    def _torque(self, q: Array, v: Array, a: Array) -> Array:
        data = self.model.createData()
        rigid = np.array([pin.rnea(self.model, data, *x).copy() for x in zip(q, v, a, strict=True)])
        return np.asarray(rigid + ROTOR * a + VISCOUS * v + COULOMB * np.sign(v) + OFFSET)

    def energy(self, motion: int) -> Array:
        """Kinetic and potential energy (N,) of a motion, with the rotors."""
        data = self.model.createData()
        q, v, _ = self.motions[motion]
        out = [
            pin.computeKineticEnergy(self.model, data, *x) + pin.computePotentialEnergy(self.model, data, x[0])
            for x in zip(q, v, strict=True)
        ]
        return np.array(out) + 0.5 * ROTOR * np.sum(v**2, axis=1)

    def recording(self, seed: int | None = None, torque: float = 0.0, position: float = 0.0) -> Recording:
        """The motions with noise of the torques, relative to their size per joint, and of the positions in rad."""
        rng = np.random.default_rng(seed)
        runs = []
        for (q, _, _), tau in zip(self.motions, self.torques, strict=True):
            noise = torque * np.sqrt(np.mean(tau**2, axis=0)) * rng.normal(size=q.shape)
            runs.append(Run(self.t, q + position * rng.normal(size=q.shape), torque=tau + noise))
        return Recording(self.robot.coordinates, tuple(runs))
