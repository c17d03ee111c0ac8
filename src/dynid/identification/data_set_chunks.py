"""Chunks of data sets: what is read of them, how they are cleaned, and the blocks of time that they belong to."""

from __future__ import annotations

from dynid.identification.folding import BLOCKS
from dynid.identification.loads import check_run
from dynid.identification.stops import Stop, without_stops
from dynid.parameters.base import BaseParameters
from dynid.recording.dataset import DataSet
from dynid.recording.recording import Recording, Run
from dynid.signals.settings import Motion, Signals, prepare

__all__ = ["SHORTEST_S", "cleaned_chunk", "needed_signals", "parts_of"]

# Parts that the blocks of time are made of: whole partitions, or parts of few partitions, so that blocks differ in
# length by no more than a fifth.
_PARTS = 5 * BLOCKS
# Pieces of a run at the edge of a chunk that are shorter than this, beyond what is trimmed, are left out.
SHORTEST_S, _SHORTEST_SAMPLES = 1.0, 64


def needed_signals(settings: Signals, dataset: DataSet) -> tuple[str, ...]:
    """Signals that an identification reads."""
    out = ["q", "torque", "wrench", "base", "base_v", "base_a"]
    out += ["v"] * settings.measured_velocity + ["a"] * settings.measured_acceleration
    return (*out, *(["current"] * (dataset.log_format.gain is not None)))


def parts_of(count: int) -> int:
    """Parts of the time that each of `count` partitions is folded in."""
    return -(-_PARTS // count)


def cleaned_chunk(
    base: BaseParameters, recording: Recording, settings: Signals
) -> tuple[list[tuple[Run, Motion]], tuple[Stop, ...], int]:
    """Filtered runs of a chunk, its stops, and the number of samples in pieces that are too short."""
    shortest = 2 * settings.trim + SHORTEST_S
    long = [r for r in recording.runs if len(r) >= _SHORTEST_SAMPLES and len(r) * r.step >= shortest]
    for run in long:
        check_run(base.robot, run, base.channels)
    motions, stops = without_stops(base, [prepare(run, settings) for run in long], settings)
    return list(zip(long, motions, strict=True)), stops, recording.samples - sum(len(r) for r in long)
