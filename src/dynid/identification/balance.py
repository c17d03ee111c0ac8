"""The energy balance of a motion as equations of the base parameters, from positions and velocities alone.

The kinetic and the potential energy E(q, v) are linear in the parameters, and so is the power P(q, v) that friction and
offsets take. Along any motion

    dE/dt + P = v' torque.

No acceleration appears. Integrated from one time to another, the balance is that of energy and work; its derivative,
with the energies differentiated numerically, is that of power. Either is one equation for all joints together.

The torque noise n_j of a joint adds v_j n_j to the power, so the variance of an equation is a sum over the joints, each
times its squared velocity. The noise of the velocities adds mostly through the energies at both ends of a window; two
windows that follow each other share an end, with opposite signs.

With the energies E = e(q, v) . beta and the power P = p(q, v) . beta of unit parameters, the equations are

    power: d(e)/dt + p,  v' torque,    energy: e(t1) - e(t0) + integral of p dt,  integral of v' torque dt

as rows W and y. Integrals are those of Euler and Maclaurin: the trapezoid less h^2 / 12 of the slopes at the ends.

Sources: Gautier and Khalil, Direct Calculation of Minimum Set of Inertial Parameters of Serial Robots (1990), for
linear energies; Gautier, Dynamic Identification of Robots with Power Model (1997), for the power model. The noise of an
equation is our own derivation.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.functions import kinetic_energy_regressor, potential_energy_regressor, regressor
from dynid.errors import Mismatch, NotApplicable, TooFew, keyword
from dynid.identification.loads import measured
from dynid.identification.observation import Observation
from dynid.identification.row_stream import segments
from dynid.identification.stops import moving_joints
from dynid.parameters.base import BaseParameters, random_states
from dynid.robot.drives import TermKind
from dynid.robot.elements import LineForce
from dynid.signals.filters import derivative
from dynid.signals.motion_band import motion_band
from dynid.signals.settings import Motion

__all__ = ["Balance", "check_balance", "energy_balance", "power_balance"]

Array = NDArray[np.float64]

# Samples whose regressor is computed at once.
_BATCH = 4096
# Samples beside a part of a run that its numerical derivatives reach.
_BESIDE = 2
# Windows per period of the highest frequency of the motion, as many as rows of the automatic decimation.
_WINDOWS_PER_PERIOD = 2.5
# Positions follow from velocities if their changes differ from the integral by less than this share.
_FOLLOWS = 0.5


@dataclass(frozen=True, eq=False)
class Balance:
    """Equations of the energy balance of some runs.

    Attributes
    ----------
    W : ndarray, shape (m, b)
        Energy (J) or power (W) per unit of each base parameter.
    y : ndarray, shape (m,)
        Work (J) or power (W) of the measured torques.
    shares : ndarray, shape (m, n)
        Variance of an equation per unit of variance of the torque rows of each joint.
    index : ndarray, shape (m,)
        Sample at which an equation begins, counted over all runs.
    joined : ndarray of bool, shape (m,)
        Whether an equation begins where the one before ends, so that both have the noise of this sample.
    """

    W: Array
    y: Array
    shares: Array
    index: NDArray[np.int64]
    joined: NDArray[np.bool_]


def check_balance(method: str, observation: Observation) -> None:
    """Raise a DataError unless the energy balance of an observation can be written down."""
    base = observation.base
    robot = base.robot
    if robot.base == "floating":
        raise NotApplicable(
            f"method '{method}' needs a base that does not float; that of '{robot.name}' does", "method"
        )
    if set(base.channels) != set(robot.coordinates):
        raise NotApplicable(
            f"method '{method}' adds up the work of all joints: fit the torques of all of them and nothing else, "
            f"{keyword('channels', 'torque')}"
        )
    if not observation.motions:
        raise NotApplicable(
            f"method '{method}' needs the runs themselves, which a data set, samples that arrive one by one and joined "
            "observations do not keep: give a recording",
            "method",
        )
    q, v, a = random_states(robot, 8, seed=0)
    for term, column in _dissipating(base):
        if not np.array_equal(_power(base, q, v, a, [column]), _power(base, q, v, np.zeros_like(a), [column])):
            raise NotApplicable(
                f"the torque of '{term}' depends on the acceleration, which method '{method}' does without", "method"
            )


def power_balance(observation: Observation) -> Balance:
    """The balance of power at the rows of the parallel decimation, all terms through the same filter."""
    return _of_runs(observation, lambda motion: _power_rows(observation, motion))


def energy_balance(observation: Observation, window: float | None = None) -> Balance:
    """The balance of energy over windows of `window` seconds that follow each other.

    By default a window is as long as a row of the decimation, or 0.4 periods of the highest frequency of the motion
    where nothing is decimated.
    """
    return _of_runs(observation, lambda motion: _energy_rows(observation, motion, window))


Part = tuple[Array, NDArray[np.int64]]


def _of_runs(observation: Observation, rows: Callable[[Motion], Part]) -> Balance:
    """The equations of all runs, from a function that gives [W y shares] of one and where each begins and ends."""
    base, settings = observation.base, observation.signals
    tables, starts, joined = [], [], []
    first = 0
    for motion in observation.motions:
        _check_order(motion)
        table, spans = rows(_at_rest(motion, moving_joints(base.robot, motion, settings)))
        used = _without_stops(motion, spans)
        table, spans = table[used], spans[used]
        tables.append(table)
        starts.append(first + spans[:, 0])
        joined.append(np.concatenate([[False], spans[1:, 0] == spans[:-1, 1]])[: len(spans)])
        first += len(motion.t)
    whole = np.vstack(tables)
    b = base.count
    if len(whole) <= b:
        raise TooFew(
            f"only {len(whole)} rows are left of the energy balance, for {b} base parameters; record longer, or choose "
            "shorter windows",
            "window",
        )
    return Balance(
        whole[:, :b], whole[:, b], np.maximum(whole[:, b + 1 :], 0.0), np.concatenate(starts), np.concatenate(joined)
    )


def _check_order(motion: Motion) -> None:
    """Raise a DataError unless the positions of a run follow from its velocities."""
    change = np.diff(motion.q, axis=0)
    step = 0.5 * (motion.v[1:] + motion.v[:-1]) / motion.rate
    if np.linalg.norm(change - step) > _FOLLOWS * max(np.linalg.norm(change), np.linalg.norm(step)):
        raise Mismatch(
            f"the positions of run '{motion.name}' do not follow from its velocities, so that work cannot be "
            "integrated: rows must be in order of time"
        )


def _at_rest(motion: Motion, moving: NDArray[np.bool_]) -> Motion:
    """The motion with joints that stand still exactly at rest: their noise does no work."""
    if moving.all():
        return motion
    q = np.where(moving, motion.q, motion.q.mean(axis=0))
    return replace(motion, q=q, v=np.where(moving, motion.v, 0.0))


def _without_stops(motion: Motion, spans: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which spans of samples hold none at which a joint presses against a stop."""
    if motion.stopped is None:
        return np.ones(len(spans), dtype=bool)
    count = np.concatenate([[0], np.cumsum(motion.stopped.any(axis=1))])
    return np.asarray(count[spans[:, 1] + 1] == count[spans[:, 0]])


def _dissipating(base: BaseParameters) -> Iterator[tuple[str, int]]:
    """Kept parameters that are in no energy, with their names: friction, offsets and other drive terms."""
    robot = base.robot
    stored = {
        term.name
        for term in robot.drives
        if term.kind in (TermKind.INERTIA, TermKind.SPRING) or isinstance(term.function, LineForce)
    }
    for k, column in enumerate(base.kept):
        name = robot.parameter_names[column]
        if not robot.layout[column].inertial and name not in stored:
            yield name, k


def _power(base: BaseParameters, q: Array, v: Array, a: Array, columns: list[int]) -> Array:
    """Power (N, columns) of unit base parameters."""
    robot = base.robot
    first = len(robot.channels) - robot.n
    kept = np.array(base.kept)[columns]
    return np.asarray(np.einsum("nj,njp->np", v, regressor(robot, q, v, a)[:, first:, kept]))


def _signals(base: BaseParameters, motion: Motion, rows: slice) -> tuple[Array, Array]:
    """Energies (N, b) of unit base parameters, and [power of the others, measured power, squared velocities]."""
    robot, kept = base.robot, list(base.kept)
    q, v = motion.q[rows], motion.v[rows]
    energy = (kinetic_energy_regressor(robot, q, v) + potential_energy_regressor(robot, q))[:, kept]
    lost = [k for _, k in _dissipating(base)]
    power = np.zeros((len(q), base.count + 1 + robot.n))
    for start in range(0, len(q), _BATCH):
        here = slice(start, start + _BATCH)
        power[here, lost] = _power(base, q[here], v[here], np.zeros_like(v[here]), lost)
    torque = measured(robot, motion, q, rows)[:, len(robot.channels) - robot.n :]
    power[:, base.count] = np.sum(v * torque, axis=1)
    power[:, base.count + 1 :] = v**2
    return energy, power


def _power_rows(observation: Observation, motion: Motion) -> Part:
    """[dE/dt + P, measured power, squared velocities], decimated, and the first and last sample of each row."""
    base, samples = observation.base, len(motion.t)
    tables, spans = [], []
    for part in segments(motion, _BATCH):
        low, high = max(part.lo - _BESIDE, 0), min(part.hi + _BESIDE, samples)
        energy, table = _signals(base, motion, slice(low, high))
        table[:, : base.count] += derivative(energy, motion.rate, "central5")
        rows = part.thinned(table[part.lo - low : part.hi - low])
        index = part.start + part.step * np.arange(len(rows))
        # The derivative is one-sided at the ends of the run.
        inside = (index >= _BESIDE) & (index < samples - _BESIDE)
        tables.append(rows[inside])
        spans.append(index[inside])
    index = np.concatenate(spans)
    return np.vstack(tables), np.stack([index, index], axis=1)


def _energy_rows(observation: Observation, motion: Motion, window: float | None) -> Part:
    """[change of E + work of P, work of the torques, shares of the noise] of windows; their first and last sample."""
    base, lead, samples = observation.base, motion.lead, len(motion.t)
    step, row = 1.0 / motion.rate, next(segments(motion)).step / motion.rate
    width = _width(motion, window, row)
    edges = np.arange(lead, samples - lead, width)
    if len(edges) < 2:
        raise TooFew(f"run '{motion.name}' is shorter than a window of {width * step:.3g} s", "window")
    tables = []
    each = max(_BATCH // width, 1)
    for k in range(0, len(edges) - 1, each):
        here = edges[k : k + each + 1]
        low, high = max(here[0] - 1, 0), min(here[-1] + 2, samples)
        energy, power = _signals(base, motion, slice(low, high))
        table = _integrals(power, here - low, step)
        table[:, : base.count] += np.diff(energy[here - low], axis=0)
        tables.append(table)
    table = np.vstack(tables)
    table[:, base.count + 1 :] *= row
    return table, np.stack([edges[:-1], edges[1:]], axis=1)


def _width(motion: Motion, window: float | None, row: float) -> int:
    """Number of samples from one end of a window to the other."""
    if window is not None:
        return max(round(window * motion.rate), 1)
    if row * motion.rate > 1:
        return round(row * motion.rate)
    return max(round(motion.rate / (_WINDOWS_PER_PERIOD * motion_band(motion.q, motion.rate, friction=False))), 1)


def _integrals(x: Array, edges: NDArray[np.int64], step: float) -> Array:
    """Integrals of the columns of x (N, k) between neighbouring edges, by Euler and Maclaurin to the fourth order."""
    sums = np.concatenate([np.zeros((1, x.shape[1])), np.cumsum(x, axis=0)])
    slope = np.gradient(x, axis=0)
    ends = sums[edges] + 0.5 * x[edges] - slope[edges] / 12.0
    return np.asarray(step * np.diff(ends, axis=0))
