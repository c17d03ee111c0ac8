"""`Follower`: lines of a log in, estimate, payload and events out. What `dynid watch` shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynid.errors import DynidError, InvalidValue, MissingData
from dynid.identification.estimate import Estimate
from dynid.online.identification import OnlineIdentification
from dynid.online.lines import LineReader, Samples
from dynid.online.payload import PayloadMonitor
from dynid.online.payload_state import PayloadEvent, PayloadState
from dynid.robot.model import Robot

__all__ = ["Follower", "FollowerState"]

# Samples from whose times the rate is found.
_RATE_SAMPLES = 50


@dataclass(frozen=True, eq=False)
class FollowerState:
    """What is known at one moment.

    Attributes
    ----------
    time : float
        Time of the last sample since the first, s.
    samples : int
        Number of samples.
    rate : float
        Samples per second, Hz; nan while it is not known.
    estimate : Estimate or None
        The estimate; None while there is none.
    waiting : str
        Why there is no estimate.
    payload : PayloadState or None
        The payload, if one is watched and known.
    events : tuple of PayloadEvent
        All events so far.
    bad_lines : dict of str to int
        Lines that could not be read, by their fault.
    left_out : dict of str to int
        Samples that were left out, see `OnlineIdentification.left_out`.
    last_fault : str
        Number and fault of the last line that could not be read.
    dead : tuple of str
        Joints whose torque does not vary although they move, if a payload is watched.
    """

    time: float
    samples: int
    rate: float
    estimate: Estimate | None
    waiting: str
    payload: PayloadState | None
    events: tuple[PayloadEvent, ...]
    bad_lines: dict[str, int]
    left_out: dict[str, int]
    last_fault: str
    dead: tuple[str, ...] = ()

    def line(self) -> str:
        """The state in one line."""
        parts = [f"{self.time:8.1f} s", f"{self.samples} samples"]
        if self.estimate is not None:
            worst = 100 * float(np.max(self.estimate.relative_error))
            parts.append(f"{len(self.estimate.beta)} base parameters, largest torque error {worst:.1f} %")
        else:
            parts.append(self.waiting)
        if self.payload is not None:
            parts.append(f"payload {self.payload}")
        bad = sum(self.bad_lines.values())
        if bad:
            parts.append(f"{bad} bad lines ({self.last_fault})")
        parts += [f"{count} {what}" for what, count in self.left_out.items() if count]
        if self.dead:
            parts.append(f"the torque of {', '.join(self.dead)} does not vary: dead sensor?")
        return "  ".join(parts)

    def to_dict(self) -> dict[str, Any]:
        """The state as plain data; the estimate as its base parameters with standard deviations."""
        estimate = self.estimate
        values = {}
        if estimate is not None:
            rows = zip(estimate.base.names, estimate.beta, estimate.std, strict=True)
            values = {name: {"value": float(x), "std": float(s) if np.isfinite(s) else None} for name, x, s in rows}
        return {
            "time": self.time,
            "samples": self.samples,
            "rate": self.rate if np.isfinite(self.rate) else None,
            "base_parameters": values,
            "waiting": self.waiting,
            "payload": None if self.payload is None else self.payload.to_dict(),
            "events": [event.to_dict() for event in self.events],
            "bad_lines": self.bad_lines,
            "left_out": self.left_out,
            "dead": list(self.dead),
        }


class Follower:
    """Identify from the lines of a log while it grows, and watch the payload.

    Parameters
    ----------
    robot : Robot
        The robot to be identified.
    reader : LineReader
        How lines are read.
    link : str, optional
        Link whose payload is watched.
    model : Estimate or Robot, optional
        Known model of the arm for the payload; by default the robot.
    settings : mapping, optional
        Arguments of `OnlineIdentification`: cutoff, forgetting, window, min_velocity, measured_velocity.
    """

    def __init__(
        self,
        robot: Robot,
        reader: LineReader,
        *,
        link: str | None = None,
        model: Estimate | Robot | None = None,
        settings: dict[str, Any] | None = None,
    ) -> None:
        self.robot, self.reader, self.link, self.model = robot, reader, link, model
        self.settings = settings or {}
        self.online: OnlineIdentification | None = None
        self.monitor: PayloadMonitor | None = None
        self._waiting: list[Samples] = []
        self._first = self._last = np.nan

    def feed(self, lines: Sequence[str], *, last: bool = False) -> list[PayloadEvent]:
        """Read lines and use their samples; returns new events. `last` says that no more lines follow."""
        samples = self.reader.feed(lines, last=last)
        if samples is not None:
            self._waiting.append(samples)
            if np.isnan(self._first):
                self._first = float(samples.t[0])
            self._last = float(samples.t[-1])
        count = sum(len(x.t) for x in self._waiting)
        if self.online is None and (count >= _RATE_SAMPLES or (last and count > 2)):
            self._start(np.concatenate([x.t for x in self._waiting]))
        if self.online is None:
            return []
        events: list[PayloadEvent] = []
        for each in self._waiting:
            events += self._use(each)
        self._waiting = []
        return events

    def _start(self, t: np.ndarray) -> None:
        steps = np.diff(t)
        usual = float(np.median(steps[steps > 0])) if np.any(steps > 0) else 0.0
        if usual <= 0:
            raise InvalidValue("the times of the log do not increase")
        # Stamps that jitter have the right mean; a gap in them would shorten it.
        near = steps[(steps > 0.5 * usual) & (steps < 1.5 * usual)]
        rate = 1.0 / float(near.mean())
        self.online = OnlineIdentification(self.robot, rate=rate, **self.settings)
        if self.link is not None:
            self.monitor = PayloadMonitor(
                self.robot if self.model is None else self.model,
                self.link,
                rate=rate,
                cutoff=self.settings.get("cutoff"),
                measured_velocity=bool(self.settings.get("measured_velocity")),
            )

    def _use(self, samples: Samples) -> list[PayloadEvent]:
        assert self.online is not None
        v = None
        if self.settings.get("measured_velocity"):
            v = samples.v
            if v is None:
                raise MissingData("measured_velocity is set, but the log has no velocities", "measured_velocity")
        self.online.update_block(samples.t, samples.q, samples.torque, v)
        return [] if self.monitor is None else self.monitor.update_block(samples.t, samples.q, samples.torque, v)

    @property
    def elapsed(self) -> float:
        """Time of the last sample since the first, s."""
        return 0.0 if np.isnan(self._first) else self._last - self._first

    def state(self) -> FollowerState:
        """What is known now."""
        estimate, waiting = None, "waiting for samples"
        if self.online is not None:
            try:
                estimate, waiting = self.online.estimate(), ""
            except DynidError as error:
                waiting = f"no estimate yet: {error}"
        return FollowerState(
            time=self.elapsed,
            samples=0 if self.online is None else self.online.samples,
            rate=np.nan if self.online is None else self.online.filters.rate,
            estimate=estimate,
            waiting=waiting,
            payload=None if self.monitor is None else self.monitor.payload(),
            events=() if self.monitor is None else self.monitor.events,
            bad_lines={str(fault): count for fault, count in self.reader.faults.items()},
            left_out={} if self.online is None else self.online.left_out,
            last_fault=self.reader.last_fault,
            dead=() if self.monitor is None else self.monitor.dead,
        )
