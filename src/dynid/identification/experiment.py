"""A recording made under a known controller, and the means to run it again with other parameters.

Noise of measured positions travels through the feedback into the torques, so regressors made from measurements are
correlated with the errors. Those made from a simulation of the same loop, free of noise, are not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError
from dynid.identification.observation import Observation, channel_rows, observe_motions, speed_limits
from dynid.identification.paired import Paired, PairedBlock, pair
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording, Run
from dynid.robot.model import Robot
from dynid.signals.settings import Motion, Signals, prepare
from dynid.simulation.engine import Loop, Simulation, simulate
from dynid.simulation.laws import Controller
from dynid.simulation.reference import Reference, as_reference, whole_ratio
from dynid.simulation.sensors import Sensors

__all__ = ["Experiment"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Experiment:
    """Runs with torques, the controller that made them along their references, and how loop and signals are computed.

    `sensors` says how the controller gets its speeds and how late it is; their noise is left out of simulations.
    Controllers that know a model of the robot keep that model whatever parameters are simulated.
    """

    robot: Robot
    recording: Recording
    controller: Controller | None = None
    signals: Signals = field(default_factory=Signals)
    loop: Loop = field(default_factory=lambda: Loop("auto"))
    sensors: Sensors = field(default_factory=Sensors)
    channels: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.signals.period is not None:
            raise DataError("closed-loop methods need the runs as they are, not averaged over periods")
        if self.robot.base == "floating":
            raise DataError(f"closed-loop methods need a base that is bolted down, that of '{self.robot.name}' floats")
        # One smooth robot for good: its compiled form is kept with it.
        object.__setattr__(self, "robot", self.loop.robot(self.robot))
        for run in self.recording.runs:
            if run.torque is None:
                raise DataError(f"run '{run.name}' has no torques")

    @cached_property
    def base(self) -> BaseParameters:
        base = base_parameters(self.robot, channels=self.channels if self.channels is not None else "torque")
        wrench = [c for c in base.channels if c not in self.robot.coordinates]
        if wrench:
            raise DataError(f"closed-loop methods know joint torques only, not '{wrench[0]}'")
        return base

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """What every run was asked to follow, at the controller's rate."""
        return tuple(as_reference(run, self.robot, self.law.rate) for run in self.recording.runs)

    @cached_property
    def motions(self) -> tuple[Motion, ...]:
        """The measured runs, cleaned."""
        return tuple(prepare(run, self.signals) for run in self.recording.runs)

    @cached_property
    def centred_motions(self) -> tuple[Motion, ...]:
        """The measured runs with torques half a control period earlier.

        A torque is recorded when it begins to be held, and acts half a period later on average. Simulated states know
        that; measured ones are compared with the torque of their own time.
        """
        if self.controller is None:
            return self.motions
        centred = replace(self.signals, delay=self.signals.delay - 0.5 / self.controller.rate)
        return tuple(prepare(run, centred) for run in self.recording.runs)

    @cached_property
    def measured(self) -> Observation:
        """Torques against the regressor of the measured motion: what least squares sees."""
        return observe_motions(self.base, self.centred_motions, self.signals)

    @property
    def law(self) -> Controller:
        """The controller, which must be there for the loop to run."""
        if self.controller is None:
            raise DataError("the closed loop cannot be simulated without the controller that made the recording")
        return self.controller

    def simulate(self, parameters: ArrayLike) -> tuple[Simulation, ...]:
        """Every run again without noise, with these standard parameters (p,); ends with the first that stops early."""
        quiet = replace(self.sensors, noise=0.0, counts=0.0, torque_noise=0.0)
        out: list[Simulation] = []
        for run, reference in zip(self.recording.runs, self.references, strict=True):
            rate = (len(run) - 1) / (run.t[-1] - run.t[0])
            whole_ratio(self.law.rate, rate, f"run '{run.name}': controller and record")
            given = {"rate": rate, "parameters": parameters, "sensors": quiet, "loop": self.loop}
            out.append(simulate(self.robot, self.law, reference, **given))
            if not out[-1].finished:
                break
        return tuple(out)

    def simulated_motions(self, simulations: Sequence[Simulation]) -> tuple[Motion, ...]:
        """Simulated states at the samples of the cleaned runs, with the measured torques."""
        out = []
        for run, motion, simulation in zip(self.recording.runs, self.motions, simulations, strict=True):
            at = (motion.t - run.t[0]) * (len(simulation.t) - 1) / (simulation.t[-1] - simulation.t[0])
            row = np.rint(at).astype(int)
            if np.abs(at - row).max() > 0.01:
                raise DataError(f"run '{run.name}' is unevenly sampled; resample it to the controller's clock first")
            out.append(replace(motion, q=simulation.q[row], v=simulation.v[row], a=simulation.a[row]))
        return tuple(out)

    def observe(self, simulations: Sequence[Simulation]) -> Observation:
        """Measured torques against the regressor of simulated motion: what DIDIM sees."""
        return observe_motions(self.base, self.simulated_motions(simulations), self.signals)

    def pair(self, simulations: Sequence[Simulation]) -> Paired:
        """Measured regressors with simulated ones as instruments, both cleaned alike: they differ by noise alone."""
        blocks, first = [], 0
        for motion, simulated in zip(self.centred_motions, self.simulated_motions(simulations), strict=True):
            simulated = self._cleaned(motion, simulated)
            limits = speed_limits(self.base, simulated, self.signals)
            rows = zip(channel_rows(self.base, simulated, first), channel_rows(self.base, motion), strict=True)
            for (z, speed), (x, _) in rows:
                moving = np.abs(speed) >= limits[z.channel]
                blocks.append(PairedBlock(z.channel, z.W[moving], x.W[moving], x.y[moving], z.index[moving]))
            first += len(motion.t)
        return pair(self.base, blocks, self.signals, tuple(m.cutoff for m in self.motions))

    def _cleaned(self, motion: Motion, simulated: Motion) -> Motion:
        """Simulated positions through the filters of the measured ones."""
        settings = replace(self.signals, cutoff=motion.cutoff, median=0, delay=0.0, trim=0.0, resample=None)
        run = Run(simulated.t, simulated.q, v=simulated.v)
        clean = prepare(run, settings)
        return replace(simulated, q=clean.q, v=clean.v, a=clean.a)
