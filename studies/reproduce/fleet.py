"""A simulated fleet of 100 arms on 20 dates: one drifts, two pick up a payload, temperatures vary.

Which units and joints are named, how often a healthy one is named, and what pooling gains on short recordings. Seeds
with even numbers are for development, those with odd numbers are held back.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DataError
from dynid.fleet.entries import FleetEntry
from dynid.fleet.health import Change, ChangeCode
from dynid.fleet.identify import identify_fleet
from dynid.fleet.result import FleetEstimate
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from studies.reproduce.fleet_plant import Fleet, Plan, fleet_robot
from studies.reproduce.study import Figure, finished_rows, rows_file

__all__ = ["SIGNALS", "figures", "outcome"]

Array = NDArray[np.float64]
Outcome = dict[str, Any]

RATE = 0.05
SEEDS = 50
LENGTHS = ("12", "6")
HALVES = ("development", "held back")
# Uniform clocks and no stops: nothing has to be looked for.
SIGNALS = Signals(cutoff=5.0, decimate=(), stops=False, resample=None, trim=0.4)


def figures(full: bool = False, half: str | None = None, folder: Path | None = None) -> Iterator[Figure]:
    """Figures of both halves, or of one; one seed per half, or all of them."""
    if half is not None and half not in HALVES:
        raise DataError(f"half '{half}' is unknown: use {' or '.join(HALVES)}")
    halves = HALVES if half is None else (half,)
    seeds = [s for s in range(SEEDS if full else 2) if HALVES[s % 2] in halves]
    outcomes = _outcomes(seeds, folder)
    for name in halves:
        mine = [o for o in outcomes if HALVES[o["seed"] % 2] == name]
        yield from _named(f"fleet of 100 arms, 20 dates, {name} seeds", mine)
    yield from _false_alarms("fleet of 100 arms, 20 dates, all seeds", outcomes)
    yield from _pooling(outcomes)
    slowest = max(o["seconds"] for o in outcomes)
    yield Figure(
        "computing time", "slowest seed, one process", "300 s", f"{slowest:.0f} s", slowest, 300.0, "five minutes"
    )


def _outcomes(seeds: Sequence[int], folder: Path | None) -> list[Outcome]:
    """Outcome of every seed; each is kept in the folder as soon as it is known."""
    with tempfile.TemporaryDirectory() as place:
        robot = fleet_robot(place)
    tasks = {f"seed {seed}": (robot, seed) for seed in seeds}
    return finished_rows("fleet", outcome, tasks, rows_file("fleet", folder), workers=1)


def outcome(robot: Robot, seed: int, units: int = 100, dates: int = 20, plan: Plan | None = None) -> Outcome:
    """What is found in the fleet of one seed, and the errors of pooled and separate estimates on one date."""
    plan = plan or Plan()
    fleet = Fleet(seed, units, dates, plan)
    entries = fleet.entries()
    started = time.perf_counter()
    found = identify_fleet(robot, entries, signals=SIGNALS, rate=RATE)
    seconds = time.perf_counter() - started
    first = fleet.entries(dates=1)
    short = {name: _errors(fleet, identify_fleet(robot, _cut(first, name), signals=SIGNALS)) for name in LENGTHS}
    return {
        "seed": seed,
        "seconds": seconds,
        "changes": [_plain(c) for c in found.health.changes],
        "dates": [fleet.day(k).isoformat() for k in range(dates)],
        "short": short,
    }


def _plain(c: Change) -> dict[str, Any]:
    """A change as plain data, with its unit as a number."""
    what = "payload" if c.code is ChangeCode.PAYLOAD else c.joint
    return c.to_dict() | {"unit": int(c.unit[3:]), "what": what, "value": c.value}


def _cut(entries: Sequence[FleetEntry], seconds: str) -> list[FleetEntry]:
    """The first seconds of every recording."""
    return [replace(e, data=e.data.between(0.0, float(seconds))) for e in entries if isinstance(e.data, Recording)]


def _errors(fleet: Fleet, found: FleetEstimate) -> dict[str, list[float]]:
    """Mean squared error of each base parameter, separate and pooled, and of the torques on the motion of the date."""
    base = found.base
    truth = np.array([base.values(fleet.truth(u, 0)) for u in range(fleet.units)])
    assert found.pooled is not None
    alone = np.array([e.beta for e in found.entries]) - truth
    pooled = found.pooled.values - truth
    weight = base.regressor(*_states(fleet))
    return {
        "separate": np.mean(alone**2, axis=0).tolist(),
        "pooled": np.mean(pooled**2, axis=0).tolist(),
        "bodies": [kind.of_body for kind in found.kinds],
        "torque": [float(np.mean((weight @ e.T) ** 2)) for e in (alone, pooled)],
    }


def _states(fleet: Fleet) -> tuple[Array, Array, Array]:
    t, q, v, _ = fleet.motions[0]
    return q, v, np.gradient(v, t, axis=0)


def _named(section: str, outcomes: Sequence[Outcome]) -> Iterator[Figure]:
    """The units that did change, and their joints."""
    plan, count = Plan(), len(outcomes)
    drift = sum(_has(o, plan.drifting, f"joint{plan.drift_joint + 1}") for o in outcomes)
    yield Figure(section, "drifting unit and joint named", str(count), str(drift), count - drift, 0, "every seed")
    for unit, since, mass in plan.loaded:
        hits = [_payload(o, unit) for o in outcomes]
        seen = [h for h in hits if h is not None]
        shown = f"{len(seen)} of {count}"
        yield Figure(section, f"payload of {mass} kg named", str(count), shown, count - len(seen), 0, "every seed")
        if not seen:
            continue
        errors = np.array([h["value"] / mass - 1 for h in seen])
        z = np.array([(h["value"] - mass) / h["std"] for h in seen])
        most, rms = 100 * np.abs(errors).max(), np.sqrt(np.mean(z**2))
        text = f"mean {100 * errors.mean():+.1f} %, largest {most:.1f} %, rms {rms:.2f} std"
        yield Figure(
            section, f"its mass, {mass} kg", "within 15 %", text, float(np.abs(errors).max()), 0.15, "three std"
        )
        late = [abs(o["dates"].index(h["date"]) - since) for o, h in zip(outcomes, hits, strict=True) if h is not None]
        yield Figure(
            section, f"its date, {mass} kg", "same date", f"at most {max(late)} dates off", max(late), 1, "one date"
        )
    yield from _false_alarms(section, outcomes)


def _false_alarms(section: str, outcomes: Sequence[Outcome]) -> Iterator[Figure]:
    """Seeds in which anything healthy is named."""
    truth, count = Plan().truth, len(outcomes)
    wrong = [[c for c in o["changes"] if (c["unit"], c["what"]) not in truth] for o in outcomes]
    alarmed = sum(bool(w) for w in wrong)
    # More than this would happen by chance in 1 of 100 studies at the stated rate.
    most = int(scipy.stats.binom.ppf(0.99, count, RATE))
    names = "; ".join(f"arm{c['unit']:03d} {c['parameter']}" for w in wrong for c in w)
    shown = f"{alarmed} of {count}" + (f" ({names})" if names else "")
    yield Figure(
        section, "seeds with any false alarm", f"rate {RATE:g}", shown, alarmed, most, "stated rate, 99 % of chance"
    )
    rate = alarmed / count
    yield Figure(
        section,
        "rate of false alarms",
        f"{RATE:g}",
        f"{rate:.3f}",
        rate,
        RATE if count >= SEEDS // 2 else 1.0,
        "stated rate",
    )


def _pooling(outcomes: Sequence[Outcome]) -> Iterator[Figure]:
    """What pooling gains on one short recording per unit."""
    for seconds in LENGTHS:
        section = f"one recording of {seconds} s per unit: mean squared error of separate over pooled estimates"
        mine = [o["short"][seconds] for o in outcomes]
        separate, pooled = (np.mean([m[key] for m in mine], axis=0) for key in ("separate", "pooled"))
        bodies = np.array(mine[0]["bodies"])
        ratios = separate / pooled
        short = seconds == LENGTHS[-1]
        # Every parameter counts alike: errors are relative to those of the separate estimates.
        groups = (("all base parameters", ratios), ("bodies", ratios[bodies]), ("drives", ratios[~bodies]))
        for name, group in groups:
            gain = group.size / float(np.sum(1 / group))
            held = short and name != "drives"
            reason = "three times less" if held else "recorded: drives differ by 15 % between units, which data show"
            yield Figure(
                section, name, "at least 3", f"{gain:.1f}", max(3.0 - gain, 0.0), 0.0 if held else np.inf, reason
            )
        torque = np.mean([m["torque"] for m in mine], axis=0)
        gain = float(torque[0] / torque[1])
        reason = "three times less" if short else "recorded"
        yield Figure(
            section,
            "torques on 12 s",
            "at least 3",
            f"{gain:.1f}",
            max(3.0 - gain, 0.0),
            0.0 if short else np.inf,
            reason,
        )
        worst = float(ratios.min())
        yield Figure(
            section, "worst base parameter", "at least 1", f"{worst:.2f}", max(1.0 - worst, 0.0), 0.05, "never worse"
        )


def _has(o: Outcome, unit: int, what: str) -> bool:
    return any(c["unit"] == unit and c["what"] == what for c in o["changes"])


def _payload(o: Outcome, unit: int) -> dict[str, Any] | None:
    return next((c for c in o["changes"] if c["unit"] == unit and c["what"] == "payload"), None)
