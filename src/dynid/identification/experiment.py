"""A recording made under a known controller, which can be simulated again with other parameters.

Feedback brings the noise of measured positions into the torques, so a regressor computed from measurements is
correlated with the torque errors. A regressor computed from a noise-free simulation of the same loop is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import Mismatch, MissingArgument, NotApplicable
from dynid.identification.loads import no_torques
from dynid.identification.observation import Block, Observation, fold, too_few_rows
from dynid.identification.observing import observe_motions
from dynid.identification.row_stream import channel_rows, velocity_limits
from dynid.identification.stops import without_stops
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.signals.filters import derivative
from dynid.signals.settings import Motion, Signals, prepare
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.laws import Controller
from dynid.simulation.reference import Reference, as_reference, whole_ratio
from dynid.simulation.simulation import Simulation

__all__ = ["Experiment", "Paired", "PairedBlock"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PairedBlock:
    """Rows of one channel: instruments Z (m, bz), measured regressor X (m, b), torque y (m,), sample numbers."""

    channel: int
    Z: Array
    X: Array
    y: Array
    index: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Paired:
    """Factors of [Z X y] per channel, from instruments Z, measured regressor X and torque y.

    Attributes
    ----------
    base : BaseParameters
        The base parameters that are the unknowns.
    factors : tuple of ndarray, shape (k, bz + b + 1)
        Triangular factor of [Z X y] per channel.
    rows : tuple of int
        Number of rows per channel.
    blocks : callable
        Streams the rows again.
    signals : Signals
        How the runs were filtered.
    cutoffs : tuple of float or None
        Cut-off frequency per run in Hz.
    """

    base: BaseParameters
    factors: tuple[Array, ...]
    rows: tuple[int, ...]
    blocks: Callable[[], Iterator[PairedBlock]] = field(repr=False)
    signals: Signals = field(default_factory=Signals)
    cutoffs: tuple[float | None, ...] = ()

    @property
    def total_rows(self) -> int:
        """Number of rows of all channels."""
        return sum(self.rows)

    def stacked(self, weights: Sequence[float] | Array | None = None) -> Array:
        """One factor of [Z X y] of all channels, the rows of each channel multiplied by its weight."""
        w = np.ones(len(self.factors)) if weights is None else np.asarray(weights, dtype=float)
        return fold(np.vstack([x * f for x, f in zip(w, self.factors, strict=True)]))

    def projected(self, weights: Sequence[float] | Array) -> Array:
        """Rows [X y] projected onto the instruments: Q'[X y] with Q their orthonormal basis, channels weighted."""
        factor = self.stacked(weights)
        instruments = factor.shape[1] - self.base.count - 1
        return factor[:instruments, instruments:]

    @cached_property
    def measured(self) -> Observation:
        """The observation of the measured regressor alone."""
        first = self.factors[0].shape[1] - self.base.count - 1

        def blocks() -> Iterator[Block]:
            for block in self.blocks():
                yield Block(block.channel, block.X, block.y, block.index)

        factors = tuple(fold(np.asfortranarray(f[:, first:])) for f in self.factors)
        return Observation(self.base, factors, self.rows, blocks, self.signals, self.cutoffs)


def pair(
    base: BaseParameters, blocks: list[PairedBlock], signals: Signals, cutoffs: tuple[float | None, ...]
) -> Paired:
    """Fold the blocks of all channels."""
    factors, rows = [], []
    for k in range(len(base.channels)):
        mine = [block for block in blocks if block.channel == k]
        stack = np.vstack([np.column_stack([x.Z, x.X, x.y]) for x in mine])
        factors.append(fold(np.asfortranarray(stack)))
        rows.append(sum(len(x.y) for x in mine))
    if sum(rows) <= base.count:
        raise too_few_rows(sum(rows), base)
    return Paired(base, tuple(factors), tuple(rows), lambda: iter(blocks), signals, cutoffs)


@dataclass(frozen=True, eq=False)
class Experiment:
    """A recording with the closed loop that made it: the data of methods that simulate.

    Parameters
    ----------
    robot : Robot
        The robot to be identified, with a base that does not float. Its Coulomb friction is made smooth as `loop` says,
        in the simulations and in the regressors; the attribute is that robot.
    recording : Recording
        Runs with joint torques and, for methods that simulate, references.
    loop : ClosedLoop
        Controller, sensors and integrator settings. The sensors define the velocity signal and the delay of the
        controller; simulations leave their noise out. A controller that uses a model of the robot keeps that model
        whatever parameters are simulated.
    signals : Signals, optional
        How measured and simulated signals are filtered and differentiated.
    channels : str or sequence of str, optional
        Joints whose torques are fitted; by default all.

    Raises
    ------
    DataError
        If the base floats, if the recording has another number of joints, if a run has no torques, or if the signals
        average over periods.
    """

    robot: Robot
    recording: Recording
    loop: ClosedLoop = field(default_factory=ClosedLoop)
    signals: Signals = field(default_factory=Signals)
    channels: str | Sequence[str] | None = None

    def __post_init__(self) -> None:
        if self.signals.period is not None:
            raise NotApplicable(
                "closed-loop methods cannot average runs over periods: leave the signal setting period out", "period"
            )
        if self.robot.base == "floating":
            raise NotApplicable(
                f"closed-loop methods need a base that does not float; that of '{self.robot.name}' does"
            )
        count, n = len(self.recording.joints), self.robot.n
        if count != n:
            raise Mismatch(f"the recording has {count} joints, robot '{self.robot.name}' has {n}")
        for run in self.recording.runs:
            if run.torque is None:
                raise no_torques(run)
        # One smooth robot for all simulations and regressors, so that all have the same friction.
        object.__setattr__(self, "robot", self.loop.regularized(self.robot, self._velocity()))

    def _velocity(self) -> Array:
        """Joint velocities (N, n) of all runs: those of the reference, or the measured ones of a run without one."""
        parts = []
        for i, run in enumerate(self.recording.runs):
            if run.reference is None:
                parts.append(self.motions[i].v)
            else:
                parts.append(derivative(run.reference, (len(run) - 1) / (run.t[-1] - run.t[0])))
        return np.vstack(parts)

    @cached_property
    def base(self) -> BaseParameters:
        """The base parameters that are the unknowns."""
        base = base_parameters(self.robot, channels=self.channels if self.channels is not None else "torque")
        wrench = [c for c in base.channels if c not in self.robot.coordinates]
        if wrench:
            raise NotApplicable(f"closed-loop methods fit joint torques only, not '{wrench[0]}'", "channels")
        return base

    @cached_property
    def references(self) -> tuple[Reference, ...]:
        """The reference of every run, at the rate of the controller."""
        return tuple(as_reference(run, self.robot, self.law.rate) for run in self.recording.runs)

    @cached_property
    def motions(self) -> tuple[Motion, ...]:
        """The measured runs, filtered, with their samples at mechanical stops marked."""
        return self._filtered(self.signals)

    @cached_property
    def centred_motions(self) -> tuple[Motion, ...]:
        """The measured runs with torques shifted by half a control period.

        A torque is recorded at the start of the period during which it is held, so it acts half a period later on
        average. Simulations include this delay; measured states do not.
        """
        if self.loop.controller is None:
            return self.motions
        centred = replace(self.signals, delay=self.signals.delay - 0.5 / self.loop.controller.rate)
        return self._filtered(centred)

    def _filtered(self, signals: Signals) -> tuple[Motion, ...]:
        motions, _ = without_stops(self.base, [prepare(run, signals) for run in self.recording.runs], signals)
        return tuple(motions)

    @cached_property
    def measured(self) -> Observation:
        """Measured torques and the regressor of the measured motion: the data of least squares."""
        return observe_motions(self.base, self.centred_motions, self.signals)

    @property
    def law(self) -> Controller:
        """The controller; a DataError if there is none."""
        if self.loop.controller is None:
            raise MissingArgument(
                "the closed loop cannot be simulated without the controller that made the recording", "controller"
            )
        return self.loop.controller

    def simulate(self, parameters: ArrayLike) -> tuple[Simulation, ...]:
        """Simulate the runs without noise, with these standard parameters (p,), up to the first that stops early."""
        quiet = replace(self.loop, sensors=self.loop.sensors.noise_free())
        out: list[Simulation] = []
        for run, reference in zip(self.recording.runs, self.references, strict=True):
            rate = (len(run) - 1) / (run.t[-1] - run.t[0])
            whole_ratio(self.law.rate, rate, f"run '{run.name}': controller and record")
            out.append(simulate(self.robot, quiet, reference, rate=rate, parameters=parameters))
            if not out[-1].completed:
                break
        return tuple(out)

    def simulated_motions(self, simulations: Sequence[Simulation]) -> tuple[Motion, ...]:
        """Simulated states at the samples of the filtered runs, with the measured torques."""
        out = []
        for run, motion, simulation in zip(self.recording.runs, self.motions, simulations, strict=True):
            at = (motion.t - run.t[0]) * (len(simulation.t) - 1) / (simulation.t[-1] - simulation.t[0])
            row = np.rint(at).astype(int)
            if np.abs(at - row).max() > 0.01:
                raise NotApplicable(
                    f"run '{run.name}' is unevenly sampled; resample it to the controller's clock first"
                )
            out.append(replace(motion, q=simulation.q[row], v=simulation.v[row], a=simulation.a[row]))
        return tuple(out)

    def observe(self, simulations: Sequence[Simulation]) -> Observation:
        """Measured torques and the regressor of the simulated motion: the data of DIDIM."""
        return observe_motions(self.base, self.simulated_motions(simulations), self.signals)

    def pair(self, simulations: Sequence[Simulation]) -> Paired:
        """Measured regressors with simulated ones as instruments, with the same filters: only noise differs."""
        blocks, first = [], 0
        for motion, simulated in zip(self.centred_motions, self.simulated_motions(simulations), strict=True):
            simulated = self._cleaned(motion, simulated)
            limits = velocity_limits(self.base, simulated, self.signals)
            rows = zip(channel_rows(self.base, simulated, first), channel_rows(self.base, motion), strict=True)
            for (z, velocity), (x, _) in rows:
                moving = np.abs(velocity) >= limits[z.channel]
                blocks.append(PairedBlock(z.channel, z.W[moving], x.W[moving], x.y[moving], z.index[moving]))
            first += len(motion.t)
        return pair(self.base, blocks, self.signals, tuple(m.cutoff for m in self.motions))

    def _cleaned(self, motion: Motion, simulated: Motion) -> Motion:
        """Simulated positions through the filters of the measured ones."""
        settings = replace(self.signals, cutoff=motion.cutoff, median=0, delay=0.0, trim=0.0, resample=None)
        run = Run(simulated.t, simulated.q, v=simulated.v)
        clean = prepare(run, settings)
        return replace(simulated, q=clean.q, v=clean.v, a=clean.a)
