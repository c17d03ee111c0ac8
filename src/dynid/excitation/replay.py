"""A recording passed to a live score as if it were measured now."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.errors import InvalidValue
from dynid.excitation.live import LiveExcitation, LiveScore
from dynid.identification.loads import check_run, state
from dynid.recording.recording import Recording
from dynid.signals.settings import Signals, prepare

__all__ = ["replay"]


def replay(
    live: LiveExcitation, recording: Recording, *, signals: Signals | None = None, every: float = 1.0
) -> Iterator[LiveScore]:
    """The score after each `every` seconds of a recording, processed as for identification, run after run.

    Only the motion counts: torques and wrenches may be missing.
    """
    if not every > 0:
        raise InvalidValue(f"the time between two scores must be positive, got {every}", "every")
    settings = signals or Signals()
    end = max(live.time, 0.0)
    for run in recording.runs:
        check_run(live.robot, run, ())
        motion = prepare(run, settings)
        rows = slice(motion.lead, len(motion.t) - motion.lead)
        q, v, a = state(live.robot, motion, rows)
        t = motion.t[rows]
        t = end + 1.0 / motion.rate + t - t[0]
        scores = min(max(1.0, (t[-1] - t[0]) / every), len(t))
        for part in np.array_split(np.arange(len(t)), round(scores)):
            live.update(t[part], q[part], v[part], a[part])
            yield live.score()
        end = float(t[-1])
