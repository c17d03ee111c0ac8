"""Torques that lag the motion: a delay, or a low-pass of first or second order, common to all joints.

To first order in frequency all of them are the same column, the time derivative of the torque. They are told apart by
what they do to steps and to fast motion, so each kind is tried at several lags as the exact filter of the torque.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.causes.cause_code import CauseCode, Relevance
from dynid.assessment.causes.cause_groups import Group, Model
from dynid.assessment.causes.cause_rows import CauseRows
from dynid.assessment.causes.cause_source import CauseSource
from dynid.identification.row_stream import channel_rows
from dynid.signals.filters import decimate

__all__ = ["DELAY", "JOINT_DELAY", "LAGS", "LOW_PASS", "Lag", "lag_groups", "lagged_rows"]

Array = NDArray[np.float64]

DELAY = CauseCode(
    "delay",
    "torques lag the motion, in all joints alike",
    "give this delay to the signal settings (delay), identify again",
    "1 % of the torque, half of the residual",
    check="delay",
    relevance=Relevance(share=0.5, agreement=0.3),
)
JOINT_DELAY = CauseCode(
    "joint_delay",
    "the torque of one joint is late, the others are not",
    "move the torques of this joint by that time before loading; all others are on time",
    "half of its residual",
    check="delay",
    relevance=Relevance(share=0.5, agreement=0.3, positive=True),
)
LOW_PASS = CauseCode(
    "low_pass",
    "torques were recorded through a low-pass of first or second order",
    "record torques before the filter, or pass the positions through the same filter",
    "the same",
    check="delay",
    relevance=Relevance(share=0.5, agreement=0.3, positive=True),
)

# Lags that are tried, in s; sizes between them follow from the coefficient.
_LAGS = 0.002 * 2.0 ** np.arange(0.0, 6.5, 1.0)
# Seconds at either end that are reflected before a filter is applied.
_PAD = 2.0


@dataclass(frozen=True)
class Lag:
    """A kind of lag: order of the low-pass (0 for a delay), and its delay at low frequencies in s."""

    order: int
    seconds: float

    @property
    def code(self) -> CauseCode:
        """Code of the cause."""
        return LOW_PASS if self.order else DELAY

    @property
    def corner(self) -> float:
        """Corner frequency of the low-pass in Hz."""
        return (1.0 if self.order == 1 else np.sqrt(2.0)) / (2 * np.pi * self.seconds)

    def response(self, frequency: Array) -> NDArray[np.complex128]:
        """Frequency response at these frequencies (Hz)."""
        s = 2j * np.pi * frequency * self.seconds
        if self.order == 0:
            return np.asarray(np.exp(-s))
        low_pass = 1.0 / (1.0 + s) if self.order == 1 else 1.0 / (1.0 + s + 0.5 * s**2)
        return np.asarray(low_pass)

    @property
    def words(self) -> str:
        """What it is."""
        if self.order:
            return f"torques were recorded through a low-pass of about {self.corner:.2g} Hz"
        return f"torques {'lag behind' if self.seconds > 0 else 'run ahead of'} the motion by"


def filtered(x: Array, rate: float, lag: Lag) -> Array:
    """Columns (N, c) behind a lag."""
    pad = min(int(_PAD * rate), len(x) - 1)
    wide = np.concatenate([2 * x[:1] - x[pad:0:-1], x, 2 * x[-1:] - x[-2 : -pad - 2 : -1]])
    spectrum = np.fft.rfft(wide, axis=0)
    response = lag.response(np.fft.rfftfreq(len(wide), 1.0 / rate).astype(float))
    return np.fft.irfft(spectrum * response[:, None], len(wide), axis=0)[pad : pad + len(x)]


def lag_groups(model: Model) -> Iterator[tuple[Lag, Group]]:
    """All lags, of all joints alike, and delays of one joint."""
    rows = model.rows
    torque = [decimate(x, m.decimate) for x, m in zip(model.whole, rows.motions, strict=True)]
    rates = [_rate(rows, r) for r in range(len(torque))]
    kinds = [Lag(0, s) for s in (*-_LAGS, *_LAGS)] + [Lag(k, s) for k in (1, 2) for s in _LAGS]
    for lag in kinds:
        moved = rows.from_grid([filtered(x, rate, lag) - x for x, rate in zip(torque, rates, strict=True)])
        own = [c[:, j] for c, j in zip(moved, rows.joints, strict=True)]
        yield lag, _group(lag, model.everywhere(own))
        if lag.order == 0 and lag.seconds > 0 and len(own) > 1:
            for k, j in enumerate(rows.joints):
                words, columns = _alone(rows.base.robot.coordinates[j]), model.only(k, own[k])
                yield lag, Group(JOINT_DELAY, (j,), words, columns, "ms", 1e3 * lag.seconds)


def _group(lag: Lag, columns: tuple[Array | None, ...]) -> Group:
    def words(size: str, value: float) -> str:
        found = replace(lag, seconds=1e-3 * value)
        return found.words if lag.order else f"{found.words} {size} ms"

    return Group(lag.code, (), words, columns, "ms", 1e3 * lag.seconds)


def _alone(name: str) -> Callable[[str, float], str]:
    return lambda size, value: (
        f"the torque of '{name}' is {'late' if value > 0 else 'early'} by {size} ms, the others not"
    )


def _rate(rows: CauseRows, run: int) -> float:
    motion = rows.motions[run]
    return motion.rate / (int(np.prod(motion.decimate)) if motion.decimate else 1)


def lagged_rows(rows: CauseRows, lag: Lag) -> CauseRows:
    """The rows with the regressor behind a low-pass as the torques are, or with torques moved back by a delay."""
    if lag.order == 0:
        back = Lag(0, -lag.seconds)
        moved = rows.from_grid(
            [filtered(decimate(m.torque, m.decimate), _rate(rows, r), back) for r, m in enumerate(rows.motions)]  # type: ignore[arg-type]
        )
        return replace(rows, y=tuple(c[:, j] for c, j in zip(moved, rows.joints, strict=True)))
    out = [np.empty_like(W) for W in rows.W]
    for r, motion in enumerate(rows.motions):
        step = int(np.prod(motion.decimate)) if motion.decimate else 1
        parts: list[list[Array]] = [[] for _ in rows.W]
        for block, _ in channel_rows(rows.base, motion):
            parts[block.channel].append(block.W)
        for k, part in enumerate(parts):
            calm = filtered(np.concatenate(part), _rate(rows, r), lag)
            mine = rows.run_of(rows.index[k]) == r
            at = (rows.index[k][mine] - rows.first[r] - motion.lead) // step
            out[k][mine] = calm[at]
    return replace(rows, W=tuple(out))


LAGS = CauseSource(name="lags", codes=(DELAY, JOINT_DELAY, LOW_PASS))
