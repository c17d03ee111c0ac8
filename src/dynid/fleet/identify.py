"""From the entries of a fleet to its estimates and the health of its units."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ConflictingArguments, MissingArgument, MissingData, UnknownName
from dynid.fleet.arrow import solve_arrow
from dynid.fleet.changes import fleet_health
from dynid.fleet.entries import FleetEntry, shown_date
from dynid.fleet.folding import FoldedEntry, fold_entries
from dynid.fleet.gains import fleet_gains
from dynid.fleet.health import Health
from dynid.fleet.kinds import variance_groups
from dynid.fleet.pooling import Pooled, pool_units, unit_factor
from dynid.fleet.result import FleetEstimate
from dynid.fleet.whitened import WhitenedEntry, noise_ratio, whitened_entries
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.progress import Progress, ProgressCallback
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.threads import one_blas_thread

__all__ = ["identify_fleet"]

Array = NDArray[np.float64]
Patterns = str | Sequence[str]

# Entries in which the autocorrelation of the noise is measured: its effect is then known to about two percent.
_COLORED = 100


def identify_fleet(
    robot: Robot,
    entries: Sequence[FleetEntry],
    *,
    shared: Patterns = "links",
    per_date: Patterns = (),
    gains: bool = False,
    signals: Signals | None = None,
    rate: float = 0.05,
    link: str | None = None,
    skip_bad: bool = False,
    workers: int = 1,
    client: Any = None,
    progress: ProgressCallback | None = None,
) -> FleetEstimate:
    """Identify many units of one robot over many dates, together, and find what changed.

    Every entry is folded once. Then its own estimate, the shared model, the partially pooled estimates of the units
    and the tests for changes follow from the factors.

    Parameters
    ----------
    robot : Robot
        The robot that all units are built as.
    entries : sequence of FleetEntry
        Recordings by unit and date, in any order; units may have different dates and missing joints.
    shared : str or sequence of str, default "links"
        Base parameters that are common to all units in the shared model: "links" (bodies), "drives", "all", or names
        with wildcards.
    per_date : str or sequence of str, default ()
        Parameters that differ from date to date in the shared model; the remaining ones differ from unit to unit.
    gains : bool, default False
        Also identify the gain of the torque measurement of every unit and joint, relative to the mean of the fleet.
    signals : Signals, optional
        How the recordings are filtered.
    rate : float, default 0.05
        Probability of one false alarm or more in the whole fleet: over all units, parameters and dates.
    link : str, optional
        Link whose payload is watched; by default the last one.
    skip_bad : bool, default False
        Leave out entries that cannot be used, and list them in the result; by default they raise.
    workers : int, default 1
        Number of processes that fold entries.
    client : distributed.Client, optional
        Dask cluster that folds the entries; only factors travel back.
    progress : callable, optional
        Called with a `dynid.progress.Progress` while entries are folded.

    Returns
    -------
    FleetEstimate

    Raises
    ------
    DataError
        If an entry cannot be used, which the message names, or if no entry is left.
    DynidError
        If the scheduler of the cluster is gone.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> from dynid.fleet import FleetEntry, identify_fleet
    >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    >>> days = ("2026-03-02", "2026-03-09", "2026-03-16")
    >>> entries = [FleetEntry("A", day, synthetic_recording(robot, k, 5.0)) for k, day in enumerate(days)]
    >>> identify_fleet(robot, entries).health["A"].code.value
    'steady'
    """
    started = time.perf_counter()
    if not entries:
        raise MissingArgument("a fleet needs entries: units, dates and recordings", "entries")
    base = base_parameters(robot, channels="torque")
    common, own, dated = _levels(base, shared, per_date)
    folded, faults = fold_entries(
        base,
        entries,
        signals or Signals(),
        colored=_COLORED,
        skip_bad=skip_bad,
        workers=workers,
        client=client,
        progress=progress,
    )
    if not folded:
        raise MissingData(f"none of the {len(entries)} entries can be used: {faults[0].words}", "entries")
    _report(progress, "joining the factors")
    with one_blas_thread():
        folded = sorted(folded, key=lambda x: (x.unit, x.moment, x.name))
        ratio = noise_ratio(folded, base.count)
        seen = whitened_entries(base, folded, ratio)
        units = tuple(dict.fromkeys(x.unit for x in seen))
        place = [units.index(x.unit) for x in seen]
        found = fleet_gains(base, folded, seen, units, common, ratio) if gains else None
        even = seen if found is None else whitened_entries(base, found.folded, ratio)
        _report(progress, "looking for changes")
        health = fleet_health(base, seen, even=even, rate=rate, link=link)
        health = replace(health, notes=(*health.notes, *_standing_still(base, folded)))
        scatter = np.array([health.variations[n].scatter if n in health.variations else 0.0 for n in base.names])
        used = _with_common_bodies(even, health)
        arrow = solve_arrow([x.rows for x in even], [x.target for x in even], place, common, own, dated, used=used)
        _report(progress, "pooling the units")
        pooled = _pooled(base, even, units, scatter, used)
    return FleetEstimate(
        base=base,
        units=units,
        entries=tuple(seen),
        shared_names=tuple(base.names[j] for j in common),
        shared=arrow,
        pooled=pooled,
        health=health,
        gains=None if found is None else found.gains,
        gains_std=None if found is None else found.std,
        noise_ratio=ratio,
        faults=faults,
        seconds=time.perf_counter() - started,
    )


def _report(progress: ProgressCallback | None, words: str) -> None:
    if progress is not None:
        progress(Progress(words))


def _levels(
    base: BaseParameters, shared: Patterns, per_date: Patterns
) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]]:
    """Columns of the parameters that are shared, of a unit, and of a unit and date."""
    chosen = [_matching(base, x) for x in (shared, per_date)]
    both = chosen[0] & chosen[1]
    if both:
        raise ConflictingArguments(
            f"'{base.names[min(both)]}' cannot be shared and differ from date to date: name it once", "shared"
        )
    left = set(range(base.count)) - chosen[0] - chosen[1]
    first, second, third = (np.array(sorted(x), dtype=np.intp) for x in (chosen[0], left, chosen[1]))
    return first, second, third


def _matching(base: BaseParameters, patterns: Patterns) -> set[int]:
    out: set[int] = set()
    for pattern in [patterns] if isinstance(patterns, str) else patterns:
        mine = set()
        for k, (j, name) in enumerate(zip(base.kept, base.names, strict=True)):
            entry = base.robot.layout[j]
            named = fnmatchcase(name, pattern) or fnmatchcase(entry.name, pattern)
            if named or pattern == "all" or pattern == ("links" if entry.inertial else "drives"):
                mine.add(k)
        if not mine:
            raise UnknownName(f"no base parameter matches '{pattern}'", "patterns")
        out |= mine
    return out


def _standing_still(base: BaseParameters, folded: Sequence[FoldedEntry]) -> tuple[str, ...]:
    """Sentences on joints of units that never move, although they do in most units."""
    moves: dict[str, NDArray[np.bool_]] = {}
    for one in folded:
        moves[one.unit] = moves.get(one.unit, False) | (np.array(one.rows) > 0)
    usual = np.mean(list(moves.values()), axis=0) > 0.5
    return tuple(
        f"{channel} of unit {unit} stands still or is not measured in all its recordings, unlike in most units"
        for unit, mine in moves.items()
        for channel, use, mostly in zip(base.channels, mine, usual, strict=True)
        if mostly and not use
    )


def _with_common_bodies(seen: Sequence[WhitenedEntry], health: Health) -> list[bool]:
    """Whether the bodies of each entry are those of the fleet: its unit is like the others and not changed yet.

    A change comes after the first entry of a unit, also where both are of one date.
    """
    since = {u.unit: min((c.date for c in u.changes if c.kind is None), default="9999") for u in health.units}
    unlike = {u.unit for u in health.units if u.unlike is not None}
    first = {x.unit: x for x in reversed(seen)}
    return [x.unit not in unlike and (shown_date(x.moment) < since[x.unit] or x is first[x.unit]) for x in seen]


def _pooled(
    base: BaseParameters, seen: Sequence[WhitenedEntry], units: Sequence[str], scatter: Array, used: Sequence[bool]
) -> Pooled | None:
    """Partial pooling of the units from the entries that are used; None for a single unit.

    A unit none of whose entries is used keeps its own values.
    """
    mine = {unit: [x for x, use in zip(seen, used, strict=True) if use and x.unit == unit] for unit in units}
    apart = [k for k, unit in enumerate(units) if not mine[unit]]
    if len(units) - len(apart) < 2:
        return None
    some = [mine[unit] or [x for x in seen if x.unit == unit] for unit in units]
    factors = [unit_factor([x.rows for x in own], [x.target for x in own], scatter) for own in some]
    rows, targets = (np.array(x) for x in zip(*factors, strict=True))
    return pool_units(rows, targets, variance_groups(base), apart)
