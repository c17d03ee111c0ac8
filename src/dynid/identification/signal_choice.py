"""Delay between torques and positions, and cut-off frequency of the low-pass, for method "auto"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.identification.estimators.solution import Choice
from dynid.identification.observation import observe, time_parts
from dynid.identification.parts import Loss, Parts
from dynid.recording.recording import Recording
from dynid.signals.settings import Signals

__all__ = ["choose_signals"]

Array = NDArray[np.float64]

# Delays that are tried in turn, later first and then earlier, as long as the error decreases, in s.
_DELAYS = (0.004, 0.008, 0.016, 0.032)
_CUTOFFS = (0.5, 2.0)  # times the automatic one
# Another delay or cut-off must lower the error by this share of it.
_WORTH = 0.03


def choose_signals(
    parts: Parts,
    recording: Recording,
    settings: Signals,
    terms: Array,
    weight: float,
    choices: list[Choice],
    report: Callable[[float], None],
) -> Signals:
    """Delay and cut-off frequency with the smallest error; those given unless another is surely better."""

    def trial(signals: Signals) -> Parts:
        first = parts.observation
        seen = observe(parts.robot, recording, signals=signals, base=first.base, device=first.device)
        return replace(parts, observation=seen, factors=tuple(time_parts(seen, len(parts.factors))))

    best, chosen = parts.cross_validated(weight, terms), settings
    trials = [Choice("delay", _delay(settings), best.error, True)]
    for direction in (1.0, -1.0):
        for delay in _DELAYS:
            report(0.1 * len(trials))
            other = replace(settings, delay=settings.delay + direction * delay)
            shifted = trial(other)
            loss = shifted.cross_validated(weight, terms)
            trials.append(Choice("delay", _delay(other), loss.error, False))
            if not _worth(loss, best):
                break
            chosen, best, parts = other, loss, shifted
        if chosen is not settings:
            break
    choices += [replace(c, chosen=c.option == _delay(chosen)) for c in trials]
    cutoffs = [c for c in parts.observation.cutoffs if c is not None]
    if settings.cutoff != "auto" or not cutoffs:
        return chosen
    # A fit to more or less filtered signals is judged by the same torques.
    automatic, filtered = float(np.median(cutoffs)), chosen
    trials = [Choice("cut-off", _cutoff(chosen, automatic), best.error, True)]
    for k, factor in enumerate(_CUTOFFS):
        report(0.7 + 0.3 * k / len(_CUTOFFS))
        other = replace(filtered, cutoff=factor * automatic)
        try:
            loss = trial(other).cross_validated(weight, terms, parts)
        except DataError:  # above half of the sampling rate, or too low for the length of a run
            continue
        trials.append(Choice("cut-off", _cutoff(other, automatic), loss.error, False))
        if _worth(loss, best):
            chosen, best = other, loss
    choices += [replace(c, chosen=c.option == _cutoff(chosen, automatic)) for c in trials]
    return chosen


def _worth(loss: Loss, best: Loss) -> bool:
    """Whether other filters than those given are surely and clearly better."""
    return loss.surely_better_than(best) and loss.error < (1 - _WORTH) * best.error


def _delay(signals: Signals) -> str:
    return f"{1000 * signals.delay:g} ms"


def _cutoff(signals: Signals, automatic: float) -> str:
    return f"{automatic:.3g} Hz (automatic)" if signals.cutoff == "auto" else f"{signals.cutoff:.3g} Hz"
