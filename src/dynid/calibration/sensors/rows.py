"""Triangular factors per channel of [W, known load, 1, torque rate, derivatives by inner unknowns, y]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.calibration.sensors.unknowns import Unknown, Unknowns, corrected_run
from dynid.dynamics.functions import inverse_dynamics, regressor
from dynid.identification.loads import measured, state
from dynid.identification.observation import fold
from dynid.identification.row_stream import segments, velocity_limits
from dynid.parameters.base import BaseParameters
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.robot.posture import tilted_gravity
from dynid.signals.settings import Motion, Signals, prepare
from dynid.threads import one_blas_thread

__all__ = ["KNOWN", "LEADING", "ONE", "RATE", "Folded", "Problem", "inner_unknowns"]

Array = NDArray[np.float64]

# Columns between W and those of the inner unknowns.
KNOWN, ONE, RATE, LEADING = 0, 1, 2, 3
_STEP = 1e-5


@dataclass(frozen=True, eq=False)
class Folded:
    """Factors (k, b + 3 + inner + 1) per channel, row counts, and the cut-offs of the runs."""

    factors: tuple[Array, ...]
    rows: tuple[int, ...]
    cutoffs: tuple[float | None, ...]


@dataclass(frozen=True, eq=False)
class Problem:
    """Runs, signal settings, known load per run, and the unknowns of the sensors."""

    base: BaseParameters
    recording: Recording
    settings: Signals
    unknowns: Unknowns
    loads: Mapping[str, Array]

    @property
    def robot(self) -> Robot:
        return self.unknowns.robot

    def fold(self, theta: Array, beta: Array | None = None) -> Folded:
        """Fold all runs at these unknowns; derivatives by inner unknowns are taken at base parameters `beta`."""
        values = self.unknowns.values(theta)
        inner = inner_unknowns(self.unknowns)
        width = self.base.count + LEADING + len(inner) + 1
        factors = [np.zeros((0, width)) for _ in self.base.channels]
        rows = [0] * len(factors)
        cutoffs = []
        leans = any(e.word == "tilt" for e in inner)
        robot = self._leaning(values["tilt"]) if leans else self.robot
        turned = [[self._leaning(values["tilt"] + s * x) for s in (-_STEP, _STEP)] for x in np.eye(2)] if leans else []
        periodic = self.settings.derivative == "fourier"
        with one_blas_thread():
            for run in self.recording.runs:
                motion = prepare(corrected_run(run, values, periodic, scaled=False), self.settings)
                cutoffs.append(motion.cutoff)
                extra = self._extra(robot, turned, motion, inner, beta, self.loads.get(run.name))
                for channel, block in _blocks(robot, self.base, motion, extra, self.settings):
                    factors[channel] = fold(np.asfortranarray(np.vstack([factors[channel], block])))
                    rows[channel] += len(block)
        return Folded(tuple(factors), tuple(rows), tuple(cutoffs))

    def _leaning(self, tilt: Array) -> Robot:
        return self.robot.with_gravity(tilted_gravity(self.robot, tilt))

    def _extra(
        self,
        robot: Robot,
        turned: Sequence[Sequence[Robot]],
        motion: Motion,
        inner: Sequence[Unknown],
        beta: Array | None,
        load: Array | None,
    ) -> Array:
        """Columns (N, channel, 3 + inner) beside the regressor, of all channels of the robot."""
        q, v, a = state(robot, motion)
        out = np.zeros((len(q), len(robot.channels), LEADING + len(inner)))
        out[..., ONE] = 1.0
        if load is not None:
            out[..., KNOWN] = inverse_dynamics(robot, q, v, a, load)
        if beta is None:
            return out
        pi = self.base.join(beta) + (0.0 if load is None else load)
        torque = inverse_dynamics(robot, q, v, a, pi)
        out[..., RATE] = np.gradient(torque, 1.0 / motion.rate, axis=0)
        first = q.shape[1] - robot.n
        for k, unknown in enumerate(inner):
            if unknown.word == "encoder_offset":
                move = np.zeros(q.shape[1])
                move[first + unknown.members[0]] = _STEP
                less, more = (inverse_dynamics(robot, x, v, a, pi) for x in (q + move, q - move))
            else:
                less, more = (inverse_dynamics(x, q, v, a, pi) for x in turned[unknown.members[0]])
            out[..., LEADING + k] = (more - less) / (2 * _STEP)
        return out


def inner_unknowns(unknowns: Unknowns) -> list[Unknown]:
    """Unknowns that change the regressor itself."""
    return [e for e in unknowns.entries if e.word in ("encoder_offset", "tilt")]


def _blocks(
    robot: Robot, base: BaseParameters, motion: Motion, extra: Array, settings: Signals
) -> Iterator[tuple[int, Array]]:
    """Rows of every channel, decimated as those of an observation are and without stand-still samples."""
    here = replace(base, robot=robot)
    limits = velocity_limits(here, motion, settings)
    joint = {name: j for j, name in enumerate(robot.coordinates)}
    row = [robot.channels.index(c) for c in base.channels]
    kept = list(base.kept)
    for part in segments(motion):
        q, v, a = state(robot, motion, part.whole)
        Y = regressor(robot, q, v, a)
        y = measured(robot, motion, q, part.whole)
        for k, channel in enumerate(base.channels):
            velocity = motion.v[part.whole, joint[channel]] if channel in joint else np.zeros(len(y))
            rows = part.thinned(
                np.column_stack([Y[:, row[k], kept], extra[part.whole, row[k]], y[:, row[k]], velocity])
            )
            moving = np.abs(rows[:, -1]) >= limits[k]
            if moving.any():
                yield k, rows[moving, :-1]
