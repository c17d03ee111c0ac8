"""Friction against speed from motion at constant speeds, to and fro, so that gravity cancels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.friction.models import FrictionModel
from dynid.friction.pieces import Features
from dynid.friction.rows import FrictionRows
from dynid.recording.recording import Recording
from dynid.signals.settings import Motion, Signals, prepare

__all__ = ["FrictionMap", "friction_map", "map_rows"]

Array = NDArray[np.float64]

# Speed within this share of its plateau is constant; speeds closer than this share belong to one plateau.
_STEADY = 0.05
_SAME = 0.12
_BINS = 20
_FEWEST_BINS = 4


@dataclass(frozen=True, eq=False)
class FrictionMap:
    """Steady friction (m,) in N m at speeds (m,), half the difference of torques to and fro, with its deviation (m,).

    `load` (m,) is the size of the torque that both directions share, mostly gravity. Friction that differs by direction
    cannot be told from gravity this way; what is shown is the mean of both.
    """

    joint: str
    speed: Array
    friction: Array
    std: Array
    load: Array
    pairs: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        names = ("speed", "friction", "std", "load")
        return {"joint": self.joint, "pairs": list(self.pairs), **{n: getattr(self, n).tolist() for n in names}}

    def summary(self) -> str:
        lines = [f"friction of {self.joint} at {len(self.speed)} speeds", "  rad/s      N m          deviation  places"]
        for v, f, s, n in zip(self.speed, self.friction, self.std, self.pairs, strict=True):
            lines.append(f"  {v:<9.4g}  {f:<11.5g}  {s:<9.2g}  {n}")
        return "\n".join(lines)


def friction_map(recording: Recording, joint: str | int, signals: Signals | None = None) -> FrictionMap:
    """Steady friction of a joint at every speed at which it moved evenly over the same places to and fro."""
    names = recording.joints
    if isinstance(joint, str) and joint not in names:
        raise DataError(f"no joint named '{joint}', the joints are {', '.join(names)}")
    place = names.index(joint) if isinstance(joint, str) else int(joint)
    if not 0 <= place < len(names):
        raise DataError(f"joint {place} is out of range, the recording has {len(names)}")
    settings = signals or Signals()
    motions = []
    for run in recording.runs:
        if run.torque is None:
            raise DataError(f"run '{run.name}' has no torques")
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
        one_way = not (np.any(v > 0) and np.any(v < 0))
        why = "it never moves both ways" if one_way else "no speed is held over the same places to and fro"
        raise DataError(f"no steady friction of '{names[place]}' can be seen: {why}")
    table = np.array([p[:4] for p in found])
    order = np.argsort(table[:, 0])
    pairs = tuple(int(found[i][4]) for i in order)
    speed, friction, std, load = table[order].T
    return FrictionMap(names[place], speed, friction, std, load, pairs)


def _steady(motions: list[Motion], place: int) -> tuple[Array, Array, Array]:
    """Positions, speeds and torques of the samples at which the speed hardly changes and other joints rest."""
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
    return np.convolve(np.pad(x, width // 2, mode="edge"), np.full(width, 1 / width), mode="valid")


def _plateaus(speed: Array) -> list[tuple[float, float]]:
    """Ranges of speed in which many samples lie, from the slowest."""
    if not speed.size:
        return []
    bins = np.arange(np.log(speed.min()) - 1e-9, np.log(speed.max()) + 0.02, 0.01)
    counts, edges = np.histogram(np.log(speed), np.append(bins, bins[-1] + 0.01))
    out: list[tuple[float, float]] = []
    left = counts.astype(float)
    while left.max() > 0 and len(out) < 200:
        peak = float(edges[int(np.argmax(left))]) + 0.005
        window = np.abs(edges[:-1] + 0.005 - peak) <= _SAME / 2
        if counts[window].sum() < 0.01 * len(speed) / max(len(out) + 1, 1):
            break
        out.append((float(np.exp(peak - _SAME / 2)), float(np.exp(peak + _SAME / 2))))
        left[np.abs(edges[:-1] + 0.005 - peak) <= _SAME] = 0.0
    return sorted(out)


def _paired(q: Array, v: Array, torque: Array) -> tuple[float, float, float, float, int] | None:
    """Speed, friction, its deviation, load and number of places that both directions pass at this speed."""
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
    """Mean torque in every bin of positions; NaN in empty ones."""
    label = np.clip(np.searchsorted(edges, q, side="right") - 1, 0, _BINS - 1)
    inside = (q >= edges[0]) & (q <= edges[-1])
    count = np.bincount(label[inside], minlength=_BINS)
    total = np.bincount(label[inside], torque[inside], minlength=_BINS)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(np.where(count > 0, total / count, np.nan))


def map_rows(found: FrictionMap, models: list[FrictionModel]) -> FrictionRows:
    """The map as rows of a friction problem, each divided by its deviation."""
    for model in models:
        bad = [p.name for p in model.pieces if not p.odd or p.needs == "temperature"]
        if bad:
            raise DataError(
                f"friction model '{model.name}' cannot be fitted to a friction map: '{bad[0]}' does not show in pairs "
                "of motion to and fro; fit it to a recording"
            )
    largest = max(models, key=lambda m: m.count)
    if len(found.speed) <= largest.count:
        raise DataError(
            f"{len(found.speed)} speeds are too few for the {largest.count} parameters of the friction model "
            f"'{largest.name}': measure at more speeds, or ask for smaller models"
        )
    std = np.maximum(found.std, 1e-3 * np.abs(found.friction).max())
    weight = std.min() / std
    count = len(found.speed)
    kept = np.arange(count)
    return FrictionRows(
        found.joint,
        np.zeros((count, 0)),
        found.friction * weight,
        Features(found.speed, found.load),
        ((count, (), kept),),
        found.speed,
        # No row follows another.
        2 * kept,
        count,
        float(count),
        weight=weight,
    )
