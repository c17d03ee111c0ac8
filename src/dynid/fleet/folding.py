"""Every entry folded once: triangular factors per channel, and what is known of the autocorrelation of its noise."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy
from numpy.typing import NDArray

from dynid.errors import DynidError, InvalidValue, Mismatch, MissingData, TooFew, UnknownName
from dynid.fleet.entries import EntryFault, FleetEntry
from dynid.identification.jackknife import jackknife
from dynid.identification.observation import fold
from dynid.identification.observing import observe
from dynid.identification.stops import smallest_motions
from dynid.parameters.base import BaseParameters
from dynid.progress import Progress, ProgressCallback
from dynid.recording.cluster import map_on_cluster
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals

__all__ = ["FoldedEntry", "fold_entries", "fold_entry"]

Array = NDArray[np.float64]

# Singular values of the factor with unit columns, relative to the largest, below which a direction is not excited.
_WEAKEST = 1e-9
# Diagonal of a triangular factor, relative to the norm of its column, above which columns are surely independent.
_SAFE = 1e-6
# Entries per process below which its start takes longer than they do.
_FEW = 20
# Clocks of one fleet differ by less than this factor, unless their units of time differ.
_CLOCKS = 100.0


@dataclass(frozen=True, eq=False)
class FoldedEntry:
    """One entry, folded.

    Attributes
    ----------
    unit : str
        Name of the unit.
    moment : datetime
        When it was recorded.
    name : str
        Name of the recording.
    temperature : ndarray, shape (joint,)
        Temperature per joint, deg C; NaN where it is not logged.
    factors : tuple of ndarray, shape (k, b + 1)
        Triangular factor of [W y] per channel; empty for a channel that was not measured.
    rows : tuple of int
        Number of rows per channel.
    at_rest : ndarray, shape (k, b + 1)
        Equations that joints at rest leave undecided, see `dynid.identification.stops`.
    squares : ndarray, shape (channel,)
        Sum of the squared residuals of the entry's own fit per channel, (N m)2 or N2.
    freedom : ndarray, shape (channel,)
        Rows less fitted columns per channel.
    ratio : ndarray, shape (b,), or None
        Standard deviation of each base parameter relative to that of white noise, where it was measured.
    step : float
        Time between samples, s; NaN for an observation that keeps no motion.
    """

    unit: str
    moment: datetime
    name: str
    temperature: Array
    factors: tuple[Array, ...]
    rows: tuple[int, ...]
    at_rest: Array
    squares: Array
    freedom: Array
    ratio: Array | None
    step: float

    @property
    def own_noise(self) -> Array:
        """Standard deviation of the residual per channel (channel,); NaN for channels without rows."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.sqrt(self.squares / self.freedom)


def fold_entries(
    base: BaseParameters,
    entries: Sequence[FleetEntry],
    signals: Signals,
    *,
    colored: int,
    skip_bad: bool,
    workers: int,
    client: Any,
    progress: ProgressCallback | None,
) -> tuple[list[FoldedEntry], tuple[EntryFault, ...]]:
    """Fold every entry, and measure the autocorrelation on about `colored` of them, evenly distributed."""
    every = max(1, len(entries) // max(colored, 1))
    started = time.perf_counter()
    found: list[FoldedEntry | None] = [None] * len(entries)
    faults: list[EntryFault] = []
    tasks = [(entry, k % every == 0) for k, entry in enumerate(entries)]
    for done, (k, result) in enumerate(_results(base, tasks, signals, workers, client), start=1):
        if isinstance(result, str):
            if not skip_bad:
                raise MissingData(result)
            faults.append(_fault(entries[k], result))
        else:
            found[k] = result
        if progress is not None and (done % 50 == 0 or done == len(entries)):
            spent = time.perf_counter() - started
            left = spent / done * (len(entries) - done)
            progress(Progress(f"{done} of {len(entries)} entries", done / len(entries), left))
    steps = [x.step for x in found if x is not None and np.isfinite(x.step)]
    usual = float(np.median(steps)) if steps else 1.0
    for k, one in enumerate(found):
        if one is not None and (one.step > usual * _CLOCKS or one.step < usual / _CLOCKS):
            words = (
                f"{entries[k].label}: its samples are {one.step:.3g} s apart, those of other entries {usual:.3g} s; "
                "its clock is in another unit, say so with units={'t': 'ms'}"
            )
            if not skip_bad:
                raise Mismatch(words, "units")
            faults.append(_fault(entries[k], words))
            found[k] = None
    return [x for x in found if x is not None], tuple(faults)


def _fault(entry: FleetEntry, words: str) -> EntryFault:
    return EntryFault(entry.unit, entry.day, words)


def _results(
    base: BaseParameters, tasks: Sequence[tuple[FleetEntry, bool]], signals: Signals, workers: int, client: Any
) -> Iterator[tuple[int, FoldedEntry | str]]:
    """Number and result of every entry, or a sentence that says why there is none."""
    if workers < 1:
        raise InvalidValue(f"a fleet needs at least one worker, got {workers}", "workers")
    if client is not None:
        names = [entry.label for entry, _ in tasks]
        yield from map_on_cluster(client, _on_worker, (base, signals), tasks, names, "recording")
    elif min(workers, len(tasks) // _FEW) > 1:
        from joblib import Parallel, delayed

        pool = Parallel(n_jobs=min(workers, len(tasks) // _FEW), return_as="generator", max_nbytes=None)
        yield from enumerate(pool(delayed(_tried)(base, entry, signals, color) for entry, color in tasks))
    else:
        for k, (entry, color) in enumerate(tasks):
            yield k, _tried(base, entry, signals, color)


def _on_worker(task: tuple[FleetEntry, bool], base: BaseParameters, signals: Signals) -> FoldedEntry | str:
    """The result of one entry on a cluster."""
    return _tried(base, task[0], signals, task[1])


def _tried(base: BaseParameters, entry: FleetEntry, signals: Signals, color: bool) -> FoldedEntry | str:
    """The folded entry, or one sentence that names it and says what is wrong with it."""
    try:
        return fold_entry(base, entry, signals, color=color)
    except (DynidError, OSError) as error:
        words = " ".join(str(error).split())
        return f"{entry.label}: {words}"


def fold_entry(base: BaseParameters, entry: FleetEntry, signals: Signals, *, color: bool = True) -> FoldedEntry:
    """Fold one entry into factors of the base parameters.

    Parameters
    ----------
    base : BaseParameters
        Base parameters of the robot of the fleet.
    entry : FleetEntry
        The entry.
    signals : Signals
        How its runs are filtered; an observation has its own.
    color : bool, default True
        Whether to measure the autocorrelation of the residuals.

    Returns
    -------
    FoldedEntry

    Raises
    ------
    DataError
        If the entry cannot be read, or does not have what the base parameters need.
    """
    robot = base.robot
    data = entry.data
    if isinstance(data, str | Path):
        data = load_recording(data, robot, log=entry.log)
    if isinstance(data, Recording):
        if data.joints != robot.coordinates:
            absent = [j for j in robot.coordinates if j not in data.joints]
            raise Mismatch(
                f"it has no joint '{absent[0]}'"
                if absent
                else f"its joints are {', '.join(data.joints)}, in this order"
            )
        _check_torques(robot, data, entry.missing)
        seen = observe(robot, data, signals=signals, base=base)
        step = float(np.median(np.concatenate([np.diff(run.t) for run in data.runs])))
    else:
        seen = data
        if seen.base.kept != base.kept or seen.base.channels != base.channels:
            raise Mismatch("it was observed with other base parameters than those of the fleet")
        step = float(np.median(np.diff(seen.motions[0].t))) if seen.motions else float("nan")
    unknown = [c for c in (*entry.missing, *entry.temperature) if c not in robot.coordinates]
    if unknown:
        raise UnknownName(f"no joint is named '{unknown[0]}', the joints are {', '.join(robot.coordinates)}", "joints")
    used = [c not in entry.missing for c in base.channels]
    factors = tuple(f if u else f[:0] for f, u in zip(seen.factors, used, strict=True))
    rows = tuple(n if u else 0 for n, u in zip(seen.rows, used, strict=True))
    if not any(rows):
        raise TooFew("no row is left")
    beta, noise, squares, freedom = _own_fit(factors, rows)
    full = all(used) and seen.standstill is None
    found = jackknife(seen, beta, noise) if color and full else None
    return FoldedEntry(
        unit=entry.unit,
        moment=entry.moment,
        name=entry.name,
        temperature=np.array([float(entry.temperature.get(j, np.nan)) for j in robot.coordinates]),
        factors=factors,
        rows=rows,
        at_rest=np.zeros((0, base.count + 1)) if seen.standstill is None else seen.standstill.rows,
        squares=squares,
        freedom=freedom,
        ratio=None if found is None else found.ratio,
        step=step,
    )


def _check_torques(robot: Robot, data: Recording, missing: Sequence[str]) -> None:
    """Refuse a torque that never varies although its joint moves: a dead sensor, not a measurement."""
    if any(run.torque is None for run in data.runs):
        return
    q, torque = (np.vstack([x for run in data.runs if (x := getattr(run, s)) is not None]) for s in ("q", "torque"))
    if torque.shape[1] != robot.n or q.shape[1] != robot.n:
        return
    dead = (np.ptp(torque, axis=0) == 0) & (np.ptp(q, axis=0) > smallest_motions(robot))
    for joint, is_dead, value in zip(robot.coordinates, dead, torque[0], strict=True):
        if is_dead and joint not in missing:
            raise MissingData(
                f"the torque of joint '{joint}' is {value:g} in every sample although the joint moves: its sensor is "
                "dead; empty its column to use the other joints"
            )


def _own_fit(factors: Sequence[Array], rows: Sequence[int]) -> tuple[Array, Array, Array, Array]:
    """Weighted least squares of one entry: base parameters, noise, squared residuals and freedom per channel."""
    count = np.array(rows, dtype=float)
    columns = np.array([np.count_nonzero(np.linalg.norm(f[:, :-1], axis=0)) for f in factors])
    freedom = count - columns
    if np.any((freedom < 1) & (count > 0)):
        raise TooFew(f"{int(count[count > 0].min())} rows of a joint are too few for {int(columns.max())} parameters")
    torque = np.array([np.linalg.norm(f[:, -1]) for f in factors])
    noise = np.where(count > 0, 1.0, np.inf)
    for _ in range(2):
        stack = np.vstack([f / n for f, n in zip(factors, noise, strict=True)])
        beta = _solved(fold(np.asfortranarray(stack)))
        squares = np.array([np.sum((f[:, -1] - f[:, :-1] @ beta) ** 2) for f in factors])
        least = 1e-13 * torque / np.sqrt(np.maximum(count, 1.0))
        noise = np.where(count > 0, np.maximum(np.sqrt(squares / np.maximum(freedom, 1.0)), least), np.inf)
        noise = np.where(noise > 0, noise, 1.0)
    return np.asarray(beta), noise, squares, np.where(count > 0, freedom, 0.0)


def _solved(factor: Array) -> Array:
    """Least-squares solution (b,) of a factor of [A z], the shortest one where columns are dependent."""
    A, z = factor[:, :-1], factor[:, -1]
    diagonal = np.abs(np.diag(A))
    norms = np.linalg.norm(A, axis=0)
    if len(A) >= A.shape[1] and np.all(diagonal > _SAFE * norms) and np.all(norms > 0):
        return np.asarray(scipy.linalg.solve_triangular(A[: A.shape[1]], z[: A.shape[1]]))
    scale = np.where(norms > 0, norms, 1.0)
    return np.asarray(np.linalg.lstsq(A / scale, z, rcond=_WEAKEST)[0] / scale)
