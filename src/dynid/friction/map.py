"""Friction as a function of velocity, from motion at constant velocities in both directions: gravity cancels.

    friction(|v|) = mean of (torque(q, v) - torque(q, -v)) / 2,    load = mean of |torque(q, v) + torque(q, -v)| / 2

Source: Armstrong-Helouvry, Dupont and Canudas de Wit (1994), for friction at constant velocities; bins of position in
which both directions are paired are our own.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dynid.errors import Mismatch, MissingData, NotIdentifiable, TooFew
from dynid.friction.models import FrictionModel
from dynid.friction.pieces import Features, unit_of
from dynid.friction.rows import FrictionRows, is_prismatic, joint_index
from dynid.recording.recording import Recording
from dynid.results import Result, Table, about, framed
from dynid.robot.model import Robot
from dynid.signals.settings import Motion, Signals, prepare

__all__ = ["FrictionMap", "friction_map", "map_rows"]

Array = NDArray[np.float64]

# A velocity within this share of its plateau is constant; velocities closer than _SAME belong to one plateau.
_STEADY = 0.05
_SAME = 0.12
_BINS = 20
_FEWEST_BINS = 4


@dataclass(frozen=True, eq=False)
class FrictionMap(Result):
    """Friction of a joint at constant velocities.

    Friction is half the difference of the torques in both directions. Its even part, such as an offset or an
    asymmetry, cannot be separated from gravity.
    """

    tables = (
        Table(
            "friction map",
            "m",
            framed(
                joint=lambda m: [m.joint] * len(m.velocity),
                velocity="velocity",
                friction="friction",
                std="std",
                load="load",
                pairs="pairs",
            ),
        ),
    )

    joint: str = field(metadata=about("Name of the joint."))
    velocity: Array = field(metadata=about("Velocity magnitudes (rad/s or m/s).", size=("m",)))
    friction: Array = field(metadata=about("Friction torque (N m or N).", size=("m",)))
    std: Array = field(metadata=about("Its standard deviation.", size=("m",)))
    load: Array = field(
        metadata=about("Magnitude of the torque common to both directions (N m or N), mostly gravity.", size=("m",))
    )
    pairs: tuple[int, ...] = field(metadata=about("Number of position bins that were passed in both directions."))
    prismatic: bool = field(default=False, metadata=about("Whether the joint is prismatic, with units m/s and N."))

    def summary(self) -> str:
        """A table of velocity, friction, standard deviation and number of position bins."""
        rate, torque = (unit_of(u, prismatic=self.prismatic) for u in ("rad/s", "N m"))
        lines = [
            f"friction of {self.joint} at {len(self.velocity)} velocities",
            f"  {rate:9}  {torque:11}  {'std':9}  bins",
        ]
        for v, f, s, n in zip(self.velocity, self.friction, self.std, self.pairs, strict=True):
            lines.append(f"  {v:<9.4g}  {f:<11.5g}  {s:<9.2g}  {n}")
        return "\n".join(lines)


def friction_map(
    robot: Robot, recording: Recording, joint: str | int | None = None, *, signals: Signals | None = None
) -> FrictionMap:
    """Friction of a joint at every constant velocity that was held over the same positions in both directions.

    Parameters
    ----------
    robot : Robot
        The recorded robot; its model is not used.
    recording : Recording
        Motion such as that of `velocity_sweep`, with torques.
    joint : str or int, optional
        Name or index of the joint; optional for a robot with one joint.
    signals : Signals, optional
        Signal processing.

    Returns
    -------
    FrictionMap

    Raises
    ------
    DataError
        If torques are missing, or no velocity was held in both directions.
    """
    place = joint_index(robot, joint)
    names = recording.joints
    if names != robot.coordinates:
        raise Mismatch(f"the recording has joints {', '.join(names)}, robot '{robot.name}' has other ones")
    settings = signals or Signals()
    motions = []
    for run in recording.runs:
        if run.torque is None:
            raise MissingData(f"run '{run.name}' has no torques")
        motions.append(prepare(run, settings))
    q, v, torque = _steady(motions, place)
    levels = _plateaus(np.abs(v))
    found = []
    for low, high in levels:
        chosen = (np.abs(v) >= low) & (np.abs(v) <= high)
        point = _paired(q[chosen], v[chosen], torque[chosen])
        if point is not None:
            found.append(point)
    if not found:
        single = not (np.any(v > 0) and np.any(v < 0))
        why = (
            "it does not move in both directions"
            if single
            else "no velocity is held over the same positions in both directions"
        )
        raise NotIdentifiable(f"no steady friction of '{names[place]}' is identifiable: {why}")
    table = np.array([p[:4] for p in found])
    order = np.argsort(table[:, 0])
    pairs = tuple(int(found[i][4]) for i in order)
    velocity, friction, std, load = table[order].T
    return FrictionMap(names[place], velocity, friction, std, load, pairs, is_prismatic(robot, place))


def _steady(motions: list[Motion], place: int) -> tuple[Array, Array, Array]:
    """Positions, velocities and torques of the samples at constant velocity with the other joints at rest."""
    parts = []
    for motion in motions:
        assert motion.torque is not None
        v = motion.v[:, place]
        width = max(3, int(0.05 * motion.rate) | 1)
        held = np.abs(_mean(np.abs(v), width) - np.abs(v)) <= _STEADY * np.abs(v)
        slow = np.abs(motion.a[:, place]) * width / motion.rate <= _STEADY * np.abs(v)
        others = np.abs(np.delete(motion.v, place, axis=1)).max(axis=1, initial=0.0)
        rest = others <= _STEADY * np.abs(v) + 1e-6
        inside = np.zeros(len(v), bool)
        inside[motion.lead : len(v) - motion.lead] = True
        ok = held & slow & rest & inside & (np.abs(v) > 1e-6)
        parts.append((motion.q[ok, place], v[ok], motion.torque[ok, place]))
    q, v, torque = (np.concatenate(x) for x in zip(*parts, strict=True))
    return q, v, torque


def _mean(x: Array, width: int) -> Array:
    """Moving average."""
    return np.convolve(np.pad(x, width // 2, mode="edge"), np.full(width, 1 / width), mode="valid")


def _plateaus(velocity: Array) -> list[tuple[float, float]]:
    """Ranges of velocity magnitude with many samples, in ascending order."""
    if not velocity.size:
        return []
    bins = np.arange(np.log(velocity.min()) - 1e-9, np.log(velocity.max()) + 0.02, 0.01)
    counts, edges = np.histogram(np.log(velocity), np.append(bins, bins[-1] + 0.01))
    out: list[tuple[float, float]] = []
    left = counts.astype(float)
    while left.max() > 0 and len(out) < 200:
        peak = float(edges[int(np.argmax(left))]) + 0.005
        window = np.abs(edges[:-1] + 0.005 - peak) <= _SAME / 2
        if counts[window].sum() < 0.01 * len(velocity) / max(len(out) + 1, 1):
            break
        out.append((float(np.exp(peak - _SAME / 2)), float(np.exp(peak + _SAME / 2))))
        left[np.abs(edges[:-1] + 0.005 - peak) <= _SAME] = 0.0
    return sorted(out)


def _paired(q: Array, v: Array, torque: Array) -> tuple[float, float, float, float, int] | None:
    """Velocity, friction, its standard deviation, load and number of position bins passed in both directions."""
    up, down = v > 0, v < 0
    if up.sum() < _FEWEST_BINS or down.sum() < _FEWEST_BINS:
        return None
    low, high = max(q[up].min(), q[down].min()), min(q[up].max(), q[down].max())
    if not high > low:
        return None
    edges = np.linspace(low, high, _BINS + 1)
    there, back = (_binned(q[s], torque[s], edges) for s in (up, down))
    both = np.isfinite(there) & np.isfinite(back)
    if both.sum() < _FEWEST_BINS:
        return None
    half = 0.5 * (there - back)[both]
    load = float(np.mean(np.abs(0.5 * (there + back)[both])))
    n = int(both.sum())
    return float(np.mean(np.abs(v))), float(half.mean()), float(half.std(ddof=1) / np.sqrt(n)), load, n


def _binned(q: Array, torque: Array, edges: Array) -> Array:
    """Mean torque per position bin; NaN in empty bins."""
    label = np.clip(np.searchsorted(edges, q, side="right") - 1, 0, _BINS - 1)
    inside = (q >= edges[0]) & (q <= edges[-1])
    count = np.bincount(label[inside], minlength=_BINS)
    total = np.bincount(label[inside], torque[inside], minlength=_BINS)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(count > 0, total / count, np.nan))


def map_rows(found: FrictionMap, models: list[FrictionModel]) -> FrictionRows:
    """The map as rows of a friction fit, each divided by its standard deviation."""
    for model in models:
        bad = [p.name for p in model.pieces if not p.odd or p.needs == "temperature"]
        if bad:
            raise NotIdentifiable(
                f"friction model '{model.name}' cannot be fitted to a friction map: '{bad[0]}' is not identifiable "
                "from motion pairs in both directions; fit it to a recording"
            )
    largest = max(models, key=lambda m: m.count)
    if len(found.velocity) <= largest.count:
        raise TooFew(
            f"{len(found.velocity)} velocities are too few for the {largest.count} parameters of the friction model "
            f"'{largest.name}': measure at more velocities, or choose smaller models",
            "models",
        )
    std = np.maximum(found.std, 1e-3 * np.abs(found.friction).max())
    weight = std.min() / std
    count = len(found.velocity)
    kept = np.arange(count)
    return FrictionRows(
        found.joint,
        np.zeros((count, 0)),
        found.friction * weight,
        Features(found.velocity, found.load),
        ((count, (), kept),),
        found.velocity,
        # Falling sample numbers: no row is adjacent to another in time.
        -kept,
        count,
        float(count),
        weight=weight,
    )
