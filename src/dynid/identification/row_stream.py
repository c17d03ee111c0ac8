"""Regressor rows of filtered runs, channel by channel, folded into triangular factors here or on a device of PyTorch.

Rows are made segment by segment, in threads, and never held. The row of a joint has entries only in the columns of the
links that it carries. Only these columns are computed on, decimated and folded. How many threads there are changes no
bit of the rows or of their factors.

Factors are by Householder QR in LAPACK, called without Python's global lock. SciPy's own wrappers hold the lock during
the call, so that two threads take turns; here the same routine of the same library is called through its address.

The rows of a device, such as a graphics card, are those of the kernels to rounding: the same segments, the same filter
before decimation, and the same rows left out. Signals are filtered on the processor before, and factors come back to
it.
"""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import scipy
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

from dynid.dynamics.batch import as_batch, thread_count
from dynid.dynamics.functions import regressor
from dynid.dynamics.tree import compile_robot
from dynid.errors import ConflictingArguments, DynidError, NotApplicable, UnknownName, keyword, named
from dynid.identification.loads import measured, state
from dynid.identification.stops import moving_joints
from dynid.parameters.base import BaseParameters, random_states
from dynid.reading import whole_number
from dynid.robot.model import Robot
from dynid.signals.filters import decimate
from dynid.signals.settings import Motion, Signals
from dynid.threads import one_blas_thread

if TYPE_CHECKING:
    from dynid.identification.torch_rows import FilterBlock

__all__ = [
    "BLOCKS",
    "Block",
    "DeviceRows",
    "Folding",
    "Segment",
    "SegmentRows",
    "channel_rows",
    "check_device",
    "fold",
    "folded_together",
    "joined_factors",
    "motion_blocks",
    "segments",
    "side_by_side",
    "touched_columns",
    "velocity_limits",
]

Array = NDArray[np.float64]
T = TypeVar("T")

# Columns that the decomposition treats at once: the fastest for stacks of ten to seventy columns.
_PANEL = 8
_INTEGER, _POINTER = ctypes.POINTER(ctypes.c_int), ctypes.c_void_p


@lru_cache(maxsize=1)
def _dgeqrt() -> Callable[..., None]:
    """LAPACK's dgeqrt (m, n, nb, a, lda, t, ldt, work, info)."""
    capsule = cython_lapack.__pyx_capi__["dgeqrt"]
    name, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    kinds: list[Any] = [_INTEGER, _INTEGER, _INTEGER, _POINTER, _INTEGER, _POINTER, _INTEGER, _POINTER, _INTEGER]
    return ctypes.CFUNCTYPE(None, *kinds)(pointer(capsule, name(capsule)))


def fold(rows: Array) -> Array:
    """Triangular factor of a stack of rows; the rows themselves if they are fewer than the columns.

    A stack in Fortran order is overwritten.
    """
    count, columns = rows.shape
    if count <= columns:
        return rows
    packed = np.require(rows, np.float64, ["F", "A", "W"])
    panel = min(_PANEL, columns)
    blocks, work = np.empty((columns, panel)), np.empty(columns * panel)
    info = ctypes.c_int(0)

    def number(value: int) -> Any:
        return ctypes.byref(ctypes.c_int(value))

    _dgeqrt()(
        *(number(count), number(columns), number(panel), packed.ctypes.data, number(count)),
        *(blocks.ctypes.data, number(panel), work.ctypes.data, ctypes.byref(info)),
    )
    assert info.value == 0
    return np.triu(packed[:columns])


def joined_factors(parts: Sequence[Sequence[Array]]) -> tuple[Array, ...]:
    """Triangular factors per channel of the rows of all parts, each of which has one factor per channel."""
    return tuple(folded_together(factors) for factors in zip(*parts, strict=True))


def folded_together(rows: Sequence[Array]) -> Array:
    """Triangular factor of several stacks of rows; only columns that are not zero are worked on."""
    stack = np.vstack(rows)
    used = np.flatnonzero(np.any(stack != 0, axis=0))
    narrow = fold(np.asfortranarray(stack[:, used])) if len(used) else np.zeros((0, 0))
    out = np.zeros((len(narrow), stack.shape[1]))
    out[:, used] = narrow
    return out


@lru_cache(maxsize=1)
def _pool(threads: int) -> ThreadPoolExecutor:
    """The thread pool, created once; not that of the kernels, which the work in these threads may wait for."""
    return ThreadPoolExecutor(threads, thread_name_prefix="dynid-fold")


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.cache_clear)  # a forked child has the pool but not its threads


def side_by_side(work: Callable[[Any], T], items: Sequence[Any], threads: int | None = None) -> list[T]:
    """The results of work(item), computed in threads where there are several; in the order of the items."""
    count = thread_count() if threads is None else threads
    if count == 1 or len(items) < 2:
        return [work(item) for item in items]
    return list(_pool(count).map(work, items))


# Samples of a segment without decimation.
_CHUNK = 4096
# Parallel decimation filters whole columns, this many output samples at a time, with margins.
_DECIMATED_BLOCK = 4096
_DECIMATION_MARGIN = 60
# Samples whose regressor is computed at once: it stays in the cache of the processor.
_BATCH = 512


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one channel from consecutive samples: W (m, b), y (m,), and the index (m,) of their samples."""

    channel: int
    W: Array
    y: Array
    index: NDArray[np.int64]


@dataclass(frozen=True)
class Segment:
    """Samples `lo` to `hi` of a run. Those from `start` to `stop` make rows, the rest is for the decimation filter."""

    start: int
    stop: int
    lo: int
    hi: int
    factors: tuple[int, ...]

    @property
    def whole(self) -> slice:
        """All samples of the segment."""
        return slice(self.lo, self.hi)

    @property
    def step(self) -> int:
        """Samples per row."""
        return math.prod(self.factors)

    def thinned(self, rows: Array) -> Array:
        """Decimated rows of `start` to `stop`, from rows over `whole`."""
        return rows if self.step == 1 else self.inside(decimate(rows, self.factors))

    def inside(self, decimated: Array) -> Array:
        """Rows of `start` to `stop`, from decimated rows over `whole`."""
        count = -(-(self.stop - self.start) // self.step)
        return decimated[(self.start - self.lo) // self.step :][:count]


def segments(motion: Motion, chunk: int | None = None) -> Iterator[Segment]:
    """A filtered run in segments that fit in memory at full rate; without decimation they have `chunk` samples."""
    factors = tuple(motion.decimate or ())
    step, samples = math.prod(factors), len(motion.t)
    span = chunk or _CHUNK if step == 1 else _DECIMATED_BLOCK * step
    margin = 0 if step == 1 else _DECIMATION_MARGIN * step
    for start in range(motion.lead, samples - motion.lead, span):
        stop = min(start + span, samples - motion.lead)
        yield Segment(start, stop, max(0, start - margin), min(samples, stop + margin), factors)


@lru_cache(maxsize=8)
def touched_columns(base: BaseParameters) -> list[NDArray[np.intp]]:
    """Columns that can be non-zero in each channel: a joint carries only the links beyond it."""
    W = base.regressor(*random_states(base.robot, 8, seed=0))
    return [np.flatnonzero(np.abs(W[:, k]).max(axis=0)) for k in range(len(base.channels))]


class SegmentRows:
    """Makes the rows of all channels of a segment, each with its touched columns only.

    Parameters
    ----------
    base : BaseParameters
        The unknowns.
    threads : int, optional
        Number of threads; by default that of the kernels.
    """

    def __init__(self, base: BaseParameters, threads: int | None = None) -> None:
        self.base, self.threads, self.chunk = base, threads, _CHUNK
        self.touched = touched_columns(base)
        robot, kept = base.robot, np.array(base.kept)
        joint = {name: j for j, name in enumerate(robot.coordinates)}
        self.row = [robot.channels.index(c) for c in base.channels]
        self._joint = [joint.get(c) for c in base.channels]
        # In the table of all channels, each has its columns of W, then y, then the velocity of its joint.
        widths = [len(columns) + 2 for columns in self.touched]
        starts = np.concatenate([[0], np.cumsum(widths)])
        self.spans = [slice(int(a), int(b)) for a, b in pairwise(starts)]
        self.width = int(starts[-1])
        self._places = np.concatenate([np.arange(s.start, s.stop - 2) for s in self.spans])
        self._rows = np.concatenate([np.full(len(c), r) for c, r in zip(self.touched, self.row, strict=True)])
        self._columns = np.concatenate([kept[c] for c in self.touched])

    def table(self, motion: Motion, part: Segment) -> Array:
        """Rows of all channels at full rate, side by side, over the whole segment."""
        robot = self.base.robot
        # In the order in which they are read: columns by LAPACK, rows by the decimation filter.
        out = np.empty((part.hi - part.lo, self.width), order="F" if part.step == 1 else "C")

        def fill(first: int) -> None:
            rows = slice(first, min(first + _BATCH, part.hi))
            q, v, a = state(robot, motion, rows)
            Y, y = regressor(robot, q, v, a), measured(robot, motion, q, rows)
            here = out[rows.start - part.lo : rows.stop - part.lo]
            here[:, self._places] = Y[:, self._rows, self._columns]
            for span, row, j in zip(self.spans, self.row, self._joint, strict=True):
                here[:, span.stop - 2] = y[:, row]
                here[:, span.stop - 1] = 0.0 if j is None else motion.v[rows, j]

        starts = range(part.lo, part.hi, _BATCH)
        fill(starts[0])  # alone, because the first use of a kernel may compile it
        side_by_side(fill, starts[1:], self.threads)
        return out

    def channel(self, table: Array, part: Segment, k: int) -> tuple[Array, Array]:
        """Decimated rows [W y] (m, touched + 1) of a channel and the velocities (m,) of its joint."""
        rows = part.thinned(table[:, self.spans[k]])
        return rows[:, :-1], rows[:, -1]

    def folded(self, factor: Array, rows: Array) -> Array:
        """Triangular factor of a factor and further rows."""
        # Fortran order, so that LAPACK works on this array without a copy.
        stack = np.empty((len(factor) + len(rows), rows.shape[1]), order="F")
        stack[: len(factor)] = factor
        stack[len(factor) :] = rows
        return fold(stack)

    def wide(self, k: int, rows: Array, index: NDArray[np.int64]) -> Block:
        """Rows [W y] of a channel with all columns."""
        W = np.zeros((len(rows), self.base.count))
        W[:, self.touched[k]] = rows[:, :-1]
        return Block(k, W, np.ascontiguousarray(rows[:, -1]), index)

    def used(
        self, motion: Motion, part: Segment, k: int, velocity: Array, limit: float
    ) -> tuple[NDArray[np.bool_], NDArray[np.int64]]:
        """Which rows (m,) of a channel count, because its joint moves and is not at a stop; and their samples (m,)."""
        index = part.start + part.step * np.arange(len(velocity))
        moving = np.abs(velocity) >= limit
        j = self._joint[k]
        if motion.stopped is not None and j is not None:
            moving &= ~motion.stopped[index, j]
        return moving, index


def motion_blocks(
    base: BaseParameters, motion: Motion, settings: Signals, first: int = 0, threads: int | None = None
) -> Iterator[Block]:
    """Rows of every channel of a filtered run, decimated, without the samples at which the joint stands still.

    Samples at which it presses against a stop are left out too.
    """
    limits = velocity_limits(base, motion, settings)
    maker = SegmentRows(base, threads)
    for part in segments(motion):
        table = maker.table(motion, part)
        for k in range(len(base.channels)):
            rows, velocity = maker.channel(table, part, k)
            moving, index = maker.used(motion, part, k, velocity, limits[k])
            if moving.any():
                yield maker.wide(k, rows[moving], first + index[moving])


def channel_rows(base: BaseParameters, motion: Motion, first: int = 0) -> Iterator[tuple[Block, Array]]:
    """All rows of every channel of a filtered run, decimated, each block with the velocities of the joint.

    Channels of the base wrench belong to no joint, and their velocities are zero.
    """
    maker = SegmentRows(base)
    for part in segments(motion):
        table = maker.table(motion, part)
        for k in range(len(base.channels)):
            rows, velocity = maker.channel(table, part, k)
            yield maker.wide(k, rows, first + part.start + part.step * np.arange(len(rows))), velocity


def velocity_limits(base: BaseParameters, motion: Motion, settings: Signals) -> Array:
    """Smallest |velocity| of the joint of each channel whose rows are used (channel,); zero for wrench channels.

    It is infinite for a joint that stands still.
    """
    joints = settings.velocity_limits(motion.v) if motion.v.shape[1] else np.zeros(0)
    joints = np.where(moving_joints(base.robot, motion, settings), joints, np.inf)
    limits = dict(zip(base.robot.coordinates, joints, strict=True))
    return np.array([limits.get(c, 0.0) for c in base.channels])


# Numbers of a segment without decimation, all channels together.
_NUMBERS = 2**25
# Samples that the filter before decimation takes at once.
_FILTERED = 512


def check_device(robot: Robot, device: str | None, client: Any = None) -> None:
    """Raise an error if rows of a robot cannot be folded on a device; None is the processor without PyTorch."""
    if device is None:
        return
    if client is not None:
        raise ConflictingArguments(
            f"{keyword('device')} folds in this process and {keyword('client')} on the workers of a cluster: give one"
        )
    custom = [term.name for term in robot.drives if term.function is not None]
    has = "closed loops" if robot.loops else f"a base that is {robot.base}" if robot.base != "fixed" else ""
    has = has or (f"the custom drive term '{custom[0]}'" if custom else "")
    if has:
        raise NotApplicable(
            f"robot '{robot.name}' has {has}, which {keyword('device')} does not support: fold without it"
        )
    try:
        import torch
    except ImportError:
        raise DynidError(
            f"{keyword('device')} needs PyTorch: pip install 'dynid[gpu]'", code="missing_package"
        ) from None
    name, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if name not in ("cuda", "cpu") or (number and whole_number(number) is None):
        raise UnknownName(
            f"device {device!r:.40} is unknown: use 'cuda', 'cuda:1' for a second graphics card, or 'cpu'", "device"
        )
    if name == "cuda" and int(number or 0) >= torch.cuda.device_count():
        raise DynidError(
            f"{named('device')} '{device}' is not there: PyTorch {torch.__version__} finds no such graphics card",
            code="unknown_name",
        )


class DeviceRows(SegmentRows):
    """Makes the rows of all channels of a segment on a device, and folds them there.

    Parameters
    ----------
    base : BaseParameters
        The unknowns.
    device : str
        A device that `check_device` accepts.
    """

    def __init__(self, base: BaseParameters, device: str) -> None:
        from dynid.identification.torch_rows import TorchRows

        super().__init__(base, threads=1)
        model, kept = compile_robot(base.robot), np.array(base.kept)
        self._backend = TorchRows(model.tree, model.drives, self.row, [kept[c] for c in self.touched], device)
        self.chunk = max(_NUMBERS // self.width, self.chunk)

    def table(self, motion: Motion, part: Segment) -> Any:
        """Decimated rows of all channels, side by side."""
        robot = self.base.robot
        (q, v, a), _, _ = as_batch(robot, **dict(zip("qva", state(robot, motion, part.whole), strict=True)))
        table = self._backend.table(q, v, a, measured(robot, motion, q, part.whole))
        return part.inside(decimate(table, part.factors, self._zero_phase))

    def _zero_phase(self, sos: Array, x: Any, pad: int) -> Any:
        return self._backend.zero_phase(x, pad, _block(sos.tobytes()))

    def channel(self, table: Any, part: Segment, k: int) -> tuple[Any, Array]:
        """Rows [W y] (m, touched + 1) of a channel, on the device, and the velocities (m,) of its joint."""
        rows = table[:, self.spans[k]]
        return rows[:, :-1], rows[:, -1].cpu().numpy()

    def folded(self, factor: Array, rows: Any) -> Array:
        """Triangular factor of a factor and rows on the device."""
        return self._backend.folded(factor, rows)


@lru_cache(maxsize=64)
def _block(sections: bytes) -> FilterBlock:
    """Second-order sections as a filter over blocks of samples."""
    from dynid.identification.torch_rows import FilterBlock

    sos = np.frombuffer(sections).reshape(-1, 6).copy()
    size = 2 * len(sos)
    response, driven = scipy.signal.sosfilt(sos, np.eye(_FILTERED), axis=0, zi=np.zeros((len(sos), 2, _FILTERED)))
    unit = np.eye(size).reshape(len(sos), 2, size)
    free, carried = scipy.signal.sosfilt(sos, np.zeros((_FILTERED, size)), axis=0, zi=unit)
    steady = scipy.signal.sosfilt_zi(sos).ravel()
    return FilterBlock(response, free, driven.reshape(size, -1), carried.reshape(size, size), steady)


# Rows of small recordings are kept for estimators that need them again; those of large ones are computed again. Of
# large ones the factors of this many blocks of time are kept, for standard deviations and cross-validation.
_KEEP_BYTES = 128 * 2**20
BLOCKS = 20


class Folding:
    """Triangular factors of [W y] per channel, to which runs are added one by one.

    Parameters
    ----------
    base : BaseParameters
        The unknowns.
    settings : Signals
        Which rows are left out at low velocities.
    parts : int, default 1
        Number of parts of the time, each of which has factors of its own.
    keep : bool, default False
        Keep the rows.
    threads : int, optional
        Number of threads; by default that of the kernels. It changes no bit of the result.
    device : str, optional
        Device of PyTorch that makes and folds the rows in place of the kernels; `keep` is then False.
    """

    def __init__(
        self,
        base: BaseParameters,
        settings: Signals,
        *,
        parts: int = 1,
        keep: bool = False,
        threads: int | None = None,
        device: str | None = None,
    ) -> None:
        self.base, self.settings = base, settings
        self.rows = [0] * len(base.channels)
        self.samples = 0
        self.kept: list[tuple[int, int, Array, NDArray[np.int64]]] | None = [] if keep else None
        self._maker = SegmentRows(base, threads) if device is None else DeviceRows(base, device)
        self._factors = [[np.zeros((0, len(c) + 1)) for c in self._maker.touched] for _ in range(parts)]

    def add(self, motion: Motion, first: float = 0.0, share: float = 1.0) -> None:
        """Fold the rows of a filtered run, which begins at `first` of the whole time and is a `share` of it."""
        maker, limits = self._maker, velocity_limits(self.base, motion, self.settings)
        channels = range(len(self.base.channels))
        # Tall, narrow factors gain nothing from several BLAS threads, which slow each other down.
        with one_blas_thread():
            for part in segments(motion, maker.chunk):
                table = maker.table(motion, part)

                def fold_channel(k: int, table: Array = table, part: Segment = part) -> None:
                    rows, velocity = maker.channel(table, part, k)
                    moving, index = maker.used(motion, part, k, velocity, limits[k])
                    if not moving.all():
                        rows, index = rows[moving], index[moving]
                    if len(rows):
                        when = first + share * index / len(motion.t)
                        self._add(k, rows, self.samples + part.start, self.samples + index, when)

                side_by_side(fold_channel, channels, maker.threads)
        self.samples += len(motion.t)

    def _add(self, k: int, rows: Array, segment: int, index: NDArray[np.int64], when: Array) -> None:
        """Fold rows [W y] of touched columns of a channel into the factors of their parts of the time."""
        parts = len(self._factors)
        if parts == 1:
            self._fold(self._factors[0], k, rows)
        else:
            place = np.minimum((when * parts).astype(int), parts - 1)
            for part in np.unique(place):
                self._fold(self._factors[part], k, rows[place == part])
        self.rows[k] += len(rows)
        if self.kept is not None:
            self.kept.append((segment, k, rows.copy(), index))

    @classmethod
    def of_recording(
        cls, base: BaseParameters, settings: Signals, motions: Sequence[Motion], device: str | None = None
    ) -> Folding:
        """All runs of a recording folded: the rows of a small one are kept, a large one is cut into blocks of time.

        Rows that a device makes are not kept.
        """
        rows = sum(-(-len(m.t) // math.prod(m.decimate or ())) for m in motions) * len(base.channels)
        small = rows * (base.count + 1) * 8 <= _KEEP_BYTES
        out = cls(base, settings, parts=1 if small else BLOCKS, keep=small and device is None, device=device)
        total = sum(len(m.t) for m in motions)
        for motion in motions:
            out.add(motion, out.samples / total, len(motion.t) / total)
        return out

    def _fold(self, factors: list[Array], k: int, rows: Array) -> None:
        """Fold rows into the factor of a channel."""
        factors[k] = self._maker.folded(factors[k], rows)

    def factors(self) -> list[tuple[Array, ...]]:
        """The factors of each part, one per channel with all columns (<= touched + 1, b + 1)."""
        return [
            tuple(self._wide(f, c) for f, c in zip(part, self._maker.touched, strict=True)) for part in self._factors
        ]

    def _wide(self, factor: Array, columns: NDArray[np.intp]) -> Array:
        out = np.zeros((len(factor), self.base.count + 1))
        out[:, columns], out[:, -1] = factor[:, :-1], factor[:, -1]
        return out

    def kept_blocks(self) -> Iterator[Block]:
        """The rows that are kept, segment by segment and channel by channel, as `motion_blocks` streams them."""
        for _, k, rows, index in sorted(self.kept or (), key=lambda one: one[:2]):
            yield self._maker.wide(k, rows, index)
