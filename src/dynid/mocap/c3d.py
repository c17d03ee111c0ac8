"""C3D files as they are: parameters, points and analog samples, scaled, in the units of the file."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import DamagedFile, MissingData, Unsupported, WrongFormat
from dynid.recording.files import read_bytes

__all__ = ["C3D", "read_c3d"]

Array = NDArray[np.float64]
Parameters = dict[str, dict[str, Any]]

_BLOCK = 512
_INTEL, _DEC, _MIPS = 84, 85, 86
# Where the header keeps its events: a mark, how many, their times, their names.
_EVENT_MARK, _EVENT_COUNT, _EVENT_TIMES, _EVENT_NAMES = 298, 300, 304, 396
_FOUR_LETTERS, _MOST_EVENTS = 12345, 18


@dataclass(frozen=True, eq=False)
class C3D:
    """Contents of a C3D file.

    points (N, M, 3) in the file's unit of length, NaN where a point was not seen; residual (N, M) in the same unit;
    analogs (K, C) in the units of the channels, `subsamples` of them a frame; first: number of the first frame.
    Text parameters are lists, numbers arrays whose first axis runs fastest in the file. header_events: names and times
    (s, as the file counts) of the up to eighteen events that the header has room for.
    """

    file: str
    parameters: Parameters
    rate: float
    first: int
    subsamples: int
    points: Array
    residual: Array
    analogs: Array
    header_events: tuple[tuple[str, float], ...] = ()

    def get(self, group: str, name: str) -> Any:
        """A parameter, or None where the file does not have it or left it empty."""
        value = self.parameters.get(group, {}).get(name)
        return value if value is not None and len(value) else None

    def need(self, group: str, name: str, why: str) -> Any:
        value = self.get(group, name)
        if value is None:
            raise MissingData(f"{self.file} has no parameter {group}:{name}, which {why}")
        return value

    def numbers(self, group: str, name: str, why: str) -> Array:
        """A parameter of finite numbers."""
        value = self.need(group, name, why)
        if isinstance(value, list) or not np.all(np.isfinite(value)):
            raise DamagedFile(f"the parameter {group}:{name} holds something else than numbers", where=self.file)
        return np.asarray(value, dtype=float)

    def texts(self, group: str, name: str) -> list[str]:
        """Entries of a text parameter and of its continuations (LABELS, LABELS2, ...)."""
        out, k = [], 1
        while (part := self.get(group, name if k == 1 else f"{name}{k}")) is not None:
            out += list(map(str, part))
            k += 1
        return out


def read_c3d(path: Path) -> C3D:
    """Read a C3D file: integers or floats, of Intel, DEC and MIPS processors."""
    raw = read_bytes(path)
    if len(raw) < _BLOCK or raw[1] != 0x50:
        raise WrongFormat(f"{path.name} is no C3D file: it does not start with the mark of one")
    start = _BLOCK * (max(raw[0], 1) - 1)
    if len(raw) < start + 4:
        raise DamagedFile(f"{path.name} is cut off before its parameters")
    processor = raw[start + 3]
    if processor not in (_INTEL, _DEC, _MIPS):
        raise Unsupported(f"{path.name} was written by processor type {processor}, known are 84, 85 and 86")
    numbers = _Numbers(raw, processor)
    parameters = _parameters(numbers, start, path.name)
    return _data(numbers, parameters, path.name)


@dataclass(frozen=True, eq=False)
class _Numbers:
    """Numbers of a file in the byte order and float format of the processor that wrote it."""

    raw: bytes
    processor: int

    @property
    def order(self) -> str:
        return ">" if self.processor == _MIPS else "<"

    def integers(self, start: int, count: int, signed: bool = True) -> Array:
        kind = f"{self.order}{'i' if signed else 'u'}2"
        return np.frombuffer(self.raw, kind, count, start).astype(float)

    def floats(self, start: int, count: int) -> Array:
        if self.processor != _DEC:
            with np.errstate(invalid="ignore"):  # damaged bytes may be no number
                return np.frombuffer(self.raw, f"{self.order}f4", count, start).astype(float)
        # A DEC float has its two words in reverse order and an exponent that is larger by two.
        words = np.frombuffer(self.raw, "<u2", 2 * count, start).reshape(-1, 2)
        bits = words[:, 0].astype(np.uint32) << 16 | words[:, 1]
        with np.errstate(invalid="ignore"):
            return bits.view(np.float32).astype(float) / 4.0

    def word(self, start: int) -> int:
        return int(self.integers(start, 1, signed=False)[0])


def _parameters(numbers: _Numbers, start: int, file: str) -> Parameters:
    raw, at = numbers.raw, start + 4
    groups: dict[int, str] = {}
    found: list[tuple[int, str, Any]] = []
    try:
        while at < len(raw):
            length, number = struct.unpack_from("bb", raw, at)
            if length == 0:
                break
            at += 2
            name = _text(raw[at : at + abs(length)]).upper()
            at += abs(length)
            step = int(numbers.integers(at, 1)[0])
            if number < 0:
                groups[-number] = name
            else:
                found.append((number, name, _value(numbers, at + 2)))
            if step == 0:
                break
            if step < 0:
                raise ValueError
            at += step
    except (struct.error, ValueError, IndexError):
        raise DamagedFile(f"{file} is damaged or cut off in its parameters, near byte {at}") from None
    out: Parameters = {name: {} for name in groups.values()}
    for number, name, value in found:
        out.setdefault(groups.get(number, f"GROUP{number}"), {})[name] = value
    if "POINT" not in out:
        raise DamagedFile(f"{file} has no group of parameters POINT: it is damaged or no C3D file")
    return out


def _value(numbers: _Numbers, at: int) -> Any:
    raw = numbers.raw
    kind, axes = struct.unpack_from("bB", raw, at)
    shape = tuple(raw[at + 2 : at + 2 + axes])
    count, at = int(np.prod(shape, dtype=int)), at + 2 + axes
    if len(shape) != axes or at + count * abs(kind) > len(raw):
        raise ValueError
    if kind == -1:
        width = shape[0] if shape else 1
        if not count:
            return []
        return [_text(raw[k : k + width]) for k in range(at, at + count, width)]
    if kind == 1:
        values = np.frombuffer(raw, np.uint8, count, at).astype(float)
    elif kind == 2:
        values = numbers.integers(at, count)
    elif kind == 4:
        values = numbers.floats(at, count)
    else:
        raise ValueError
    return values.reshape(shape or (1,), order="F")


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8").strip(" \0\t")
    except UnicodeDecodeError:
        return raw.decode("latin-1").strip(" \0\t")


def _data(numbers: _Numbers, parameters: Parameters, file: str) -> C3D:
    raw, word = numbers.raw, numbers.word
    scale = _number(parameters, "POINT", "SCALE", float(numbers.floats(12, 1)[0]))
    rate = _number(parameters, "POINT", "RATE", float(numbers.floats(20, 1)[0]))
    points, measurements, subsamples = word(2), word(4), max(word(18), 1)
    start = _BLOCK * (int(_number(parameters, "POINT", "DATA_START", word(16))) - 1)
    if start < _BLOCK:
        raise DamagedFile(f"{file} is damaged: its data cannot start at byte {start}")
    if not (np.isfinite(rate) and rate > 0):
        raise DamagedFile(f"{file} has the frame rate {rate:g} Hz: it must be positive")
    if points == 0 and measurements == 0:
        raise MissingData(f"{file} holds neither points nor analog channels")
    size = 2 if scale > 0 else 4
    width = 4 * points + measurements
    there = max(len(raw) - start, 0) // (size * width)
    first, frames = _frames(numbers, parameters, raw[start:], size * width)
    if frames < 1:
        raise MissingData(f"{file} holds no frames")
    if there < frames:
        raise DamagedFile(f"{file} is cut off: it announces {frames} frames and holds {there}")
    unsigned = str((parameters.get("ANALOG", {}).get("FORMAT") or [""])[0]).upper() == "UNSIGNED"
    read = numbers.floats if size == 4 else numbers.integers
    table = read(start, frames * width).reshape(frames, width)
    analog = table[:, 4 * points :]
    if size == 2 and unsigned:
        analog = np.where(analog < 0, analog + 65536.0, analog)
    seen = table[:, : 4 * points].reshape(frames, points, 4)
    positions = seen[..., :3] * (scale if size == 2 else 1.0)
    mask = seen[..., 3]
    # Programs that do not mark a gap leave zeros.
    unseen = (mask < 0) | ~np.all(np.isfinite(positions), axis=2) | np.all(positions == 0, axis=2)
    positions[unseen] = np.nan
    residual = np.where(unseen, np.nan, np.mod(np.trunc(np.nan_to_num(mask)), 256) * abs(scale))
    channels = measurements // subsamples
    analog = analog[:, : channels * subsamples].reshape(frames * subsamples, channels)
    analog = _scaled(parameters, analog, unsigned, file)
    events = _header_events(numbers)
    return C3D(file, parameters, rate, first, subsamples, positions, residual, analog, events)


def _frames(numbers: _Numbers, parameters: Parameters, data: bytes, width: int) -> tuple[int, int]:
    """First frame and number of frames of `width` bytes; the header ends at 65535, longer trials say so elsewhere."""
    there = len(data) // width
    first, last = numbers.word(6), numbers.word(8)
    frames = last - first + 1
    trial = parameters.get("TRIAL", {})
    ends = [trial.get(f"ACTUAL_{x}_FIELD") for x in ("START", "END")]
    if all(isinstance(x, np.ndarray) and x.shape == (2,) for x in ends):
        begin, end = (int(np.mod(x[0], 65536) + 65536 * np.mod(x[1], 65536)) for x in ends if x is not None)
        # A trial that was cut afterwards may still name the frames of the whole.
        if end >= begin and not (end - begin >= there and last < 65535 and 0 < frames <= there):
            return begin, end - begin + 1
    if last < 65535:
        return first, frames
    point = parameters["POINT"]
    for name in ("LONG_FRAMES", "FRAMES"):
        given = int(_number(parameters, "POINT", name, 0.0)) if name in point else 0
        if given > frames:
            return first, given
    # Nothing tells: all that is there, but for the zeros that fill the last block up.
    full = there
    while full > max(frames, there - _BLOCK // width - 1) and not any(data[(full - 1) * width : full * width]):
        full -= 1
    return first, max(frames, full)


def _header_events(numbers: _Numbers) -> tuple[tuple[str, float], ...]:
    """Events of the header, by name and time; none where it has no mark of them."""
    raw = numbers.raw
    if numbers.word(_EVENT_MARK) != _FOUR_LETTERS:
        return ()
    count = min(numbers.word(_EVENT_COUNT), _MOST_EVENTS)
    times = numbers.floats(_EVENT_TIMES, count)
    names = (_text(raw[_EVENT_NAMES + 4 * k : _EVENT_NAMES + 4 * k + 4]) for k in range(count))
    return tuple((name, float(t)) for name, t in zip(names, times, strict=True) if np.isfinite(t))


def _number(parameters: Parameters, group: str, name: str, otherwise: float) -> float:
    value = parameters.get(group, {}).get(name)
    if value is None or isinstance(value, list) or not np.size(value) or not np.isfinite(np.ravel(value)[0]):
        return otherwise
    return float(np.ravel(value)[0])


def _scaled(parameters: Parameters, analog: Array, unsigned: bool, file: str) -> Array:
    """Channel values: (sample - offset) * scale of the channel * general scale."""
    channels, group = analog.shape[1], parameters.get("ANALOG", {})

    def each(name: str, otherwise: float) -> Array:
        parts, k = [], 1
        while (part := group.get(name if k == 1 else f"{name}{k}")) is not None and len(part):
            parts.append(np.ravel(part))
            k += 1
        values = np.concatenate(parts) if parts else np.full(channels, otherwise)
        if len(values) < channels:
            raise DamagedFile(f"{file} has {channels} analog channels and {len(values)} entries in ANALOG:{name}")
        return np.asarray(values[:channels], dtype=float)

    if not channels:
        return analog
    offset = each("OFFSET", 0.0)
    if unsigned:
        offset = np.where(offset < 0, offset + 65536.0, offset)
    return np.asarray((analog - offset) * each("SCALE", 1.0) * _number(parameters, "ANALOG", "GEN_SCALE", 1.0))
