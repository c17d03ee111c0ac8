"""MATLAB files of versions 4 to 7: the numbers in them, by name.

SciPy's reader ends the process on some damaged files (a segmentation fault in 6 of 6 processes that read 300 each), so
that its own is here: every tag, size and type is checked before it is used. Files of version 7.3 are HDF5.
"""

from __future__ import annotations

import math
import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.limits import exceeded, file_limits
from dynid.reading import inflated, zlib_stream

__all__ = ["MatlabError", "read_matlab"]

_HEADER = 128
# Numbers of the format: types of data elements and classes of arrays.
_COMPRESSED, _MATRIX = 15, 14
_TYPES = {1: "i1", 2: "u1", 3: "i2", 4: "u2", 5: "i4", 6: "u4", 7: "f4", 9: "f8", 12: "i8", 13: "u8"}
_TEXTS = {16: "u1", 17: "u2", 18: "u4"}
_CELL, _STRUCT, _OBJECT, _CHAR, _SPARSE = 1, 2, 3, 4, 5
_CLASSES = {6: "f8", 7: "f4", 8: "i1", 9: "u1", 10: "i2", 11: "u2", 12: "i4", 13: "u4", 14: "i8", 15: "u8"}
_LOGICAL, _COMPLEX = 0x02, 0x08
# Types of version 4, the third digit of the header's first number.
_OLD_TYPES = {0: "f8", 1: "f4", 2: "i4", 3: "i2", 4: "u2", 5: "u1"}
_OLD_ORDERS = {0: "<", 1: ">"}
_OLD_TEXT, _OLD_FULL = 1, 0


class MatlabError(ValueError):
    """A file that does not follow the format, and where."""


def read_matlab(raw: bytes, file: str) -> dict[str, Any]:
    """Variables of a file by name.

    Numbers are arrays of their shape, structs are dicts, arrays of structs and cells are lists, texts are str. Sparse
    arrays, objects and function handles are None.

    Raises
    ------
    MatlabError
        If the file does not follow the format.
    """
    if len(raw) >= _HEADER and raw[126:128] in (b"IM", b"MI"):
        return dict(_Reader(raw, "<" if raw[126:128] == b"IM" else ">", file).variables())
    return dict(_old_variables(raw))


@dataclass(frozen=True, eq=False)
class _Element:
    """One data element: its type and its bytes."""

    kind: int
    data: memoryview


class _Reader:
    """A file of version 5 to 7, in the byte order that its header tells."""

    def __init__(self, raw: bytes, order: str, file: str) -> None:
        self.raw, self.order, self.file = raw, order, file

    def variables(self) -> Iterator[tuple[str, Any]]:
        for element in self._elements(memoryview(self.raw)[_HEADER:], padded=False):
            if element.kind == _COMPRESSED:
                parts = list(self._elements(memoryview(self._inflated(element.data)), padded=True))
                if len(parts) != 1:
                    raise MatlabError(f"a compressed variable consists of {len(parts)} elements")
                element = parts[0]
            if element.kind != _MATRIX:
                raise MatlabError(f"a variable is of type {element.kind}")
            name, value = self._matrix(element.data, 0)
            if name and not name.startswith("__"):
                yield name, value

    def _inflated(self, data: memoryview) -> bytes:
        """A compressed element, unpacked piece by piece up to the limits."""
        try:
            return inflated(data, zlib_stream, self.file)
        except (zlib.error, EOFError) as error:
            raise MatlabError(f"a compressed variable is damaged: {error}") from None

    def _elements(self, data: memoryview, padded: bool) -> Iterator[_Element]:
        """The elements one after the other; they end at multiples of 8 bytes where they are padded."""
        at = 0
        while at < len(data):
            if len(data) - at < 8:
                if any(data[at:]):
                    raise MatlabError("it is cut off")
                return
            kind, size = struct.unpack_from(f"{self.order}II", data, at)
            if kind >> 16:  # small: size and type share one number, four bytes of data follow
                kind, size = kind & 0xFFFF, kind >> 16
                if size > 4:
                    raise MatlabError(f"a small element has {size} bytes")
                start, at = at + 4, at + 8
            else:
                start = at + 8
                at = start + (size + 7 & ~7 if padded and kind != _COMPRESSED else size)
            if start + size > len(data):
                raise MatlabError("it is cut off")
            yield _Element(kind, data[start : start + size])

    def _matrix(self, data: memoryview, depth: int) -> tuple[str, Any]:
        """Name and value of an array."""
        if depth > file_limits().nesting:
            exceeded(self.file, "structs nested too deeply", "nesting")
        parts = self._elements(data, padded=True)
        flags = self._numbers(_next(parts), "u4")
        if len(flags) != 2:
            raise MatlabError("an array has no flags")
        kind, bits = int(flags[0]) & 0xFF, int(flags[0]) >> 8
        if kind not in (_CELL, _STRUCT, _CHAR, *_CLASSES):
            return self._name_of_other(parts, kind), None
        shape = tuple(int(n) for n in self._numbers(_next(parts), "i4"))
        if len(shape) < 2 or any(n < 0 for n in shape):
            raise MatlabError(f"an array has the shape {shape}")
        name = bytes(_next(parts).data).decode("utf-8", "replace").rstrip("\0")
        if kind == _CELL:
            return name, self._cells(parts, shape, depth)
        if kind == _STRUCT:
            return name, self._struct(parts, shape, depth)
        value = self._values(_next(parts), shape, kind)
        if kind == _CHAR:
            return name, _text(value)
        if bits & _COMPLEX:
            return name, value + 1j * self._values(_next(parts), shape, kind)
        return name, value.astype(bool) if bits & _LOGICAL else value.astype(self.order + _CLASSES[kind], copy=False)

    def _name_of_other(self, parts: Iterator[_Element], kind: int) -> str:
        """Name of an array that holds no dense numbers: its second or third element."""
        if kind in (_SPARSE, _OBJECT):
            _next(parts)
        return bytes(_next(parts).data).decode("utf-8", "replace").rstrip("\0")

    def _numbers(self, element: _Element, wanted: str) -> NDArray[Any]:
        if _TYPES.get(element.kind) != wanted or len(element.data) % int(wanted[1]):
            raise MatlabError(f"an element of {len(element.data)} bytes is of type {element.kind}, expected {wanted}")
        return np.frombuffer(element.data, self.order + wanted)

    def _values(self, element: _Element, shape: tuple[int, ...], kind: int) -> NDArray[Any]:
        """Numbers of an array; the format stores them in the smallest type that holds them, column by column."""
        types = _TYPES | _TEXTS if kind == _CHAR else _TYPES
        if element.kind not in types:
            raise MatlabError(f"an array holds elements of type {element.kind}")
        size = int(types[element.kind][1])
        count = math.prod(shape)
        if kind == _CHAR and element.kind == 16:
            count = len(element.data)  # UTF-8 has no fixed width
            shape = (1, count)
        if len(element.data) != size * count:
            raise MatlabError(f"an array of shape {shape} has {len(element.data)} bytes of numbers")
        return np.frombuffer(element.data, self.order + types[element.kind]).reshape(shape, order="F")

    def _cells(self, parts: Iterator[_Element], shape: tuple[int, ...], depth: int) -> list[Any]:
        """The cells as a list; lists inside a list for a table of cells."""
        values = [self._matrix(part.data, depth + 1)[1] for part in self._matrices(parts, math.prod(shape))]
        rows, columns = shape[0], math.prod(shape[1:])
        if rows <= 1 or columns <= 1:
            return values
        return [values[row::rows] for row in range(rows)]

    def _struct(self, parts: Iterator[_Element], shape: tuple[int, ...], depth: int) -> Any:
        """A dict of the fields; a list of them for an array of structs."""
        width = self._numbers(_next(parts), "i4")
        names = bytes(_next(parts).data)
        if len(width) != 1 or width[0] < 1 or len(names) % int(width[0]):
            raise MatlabError("a struct has names of no proper length")
        size = int(width[0])
        fields = [names[k : k + size].split(b"\0")[0].decode("utf-8", "replace") for k in range(0, len(names), size)]
        count = math.prod(shape)
        values = [self._matrix(part.data, depth + 1)[1] for part in self._matrices(parts, count * len(fields))]
        structs = [dict(zip(fields, values[k * len(fields) :], strict=False)) for k in range(count)] if fields else []
        return structs[0] if len(structs) == 1 else structs

    def _matrices(self, parts: Iterator[_Element], count: int) -> Iterator[_Element]:
        """The next `count` elements, which must be arrays; an array without any content is empty."""
        for _ in range(count):
            part = _next(parts)
            if part.kind != _MATRIX:
                raise MatlabError(f"a struct or cell holds an element of type {part.kind}")
            yield part if len(part.data) else _Element(_MATRIX, memoryview(self._empty()))

    def _empty(self) -> bytes:
        """The bytes of an empty array of doubles."""
        numbers = ((6, 8, 6, 0), (5, 8, 0, 0), (1, 0), (9, 0))
        return b"".join(struct.pack(f"{self.order}{len(x)}I", *x) for x in numbers)


def _next(parts: Iterator[_Element]) -> _Element:
    part = next(parts, None)
    if part is None:
        raise MatlabError("an array ends too early")
    return part


def _text(letters: NDArray[Any]) -> str:
    """The text of the letters of the first row."""
    row = letters[:1].ravel()
    if letters.dtype.itemsize == 1:
        return row.tobytes().decode("utf-8", "replace")
    return "".join(chr(int(c)) if c < 0x110000 and not 0xD800 <= c < 0xE000 else "\ufffd" for c in row)


# -- version 4 -----------------------------------------------------------------------------------------


def _old_variables(raw: bytes) -> Iterator[tuple[str, Any]]:
    """Variables of a file of version 4: one header of five numbers, the name and the numbers each."""
    at = 0
    while at < len(raw):
        if len(raw) - at < 20:
            raise MatlabError("it is cut off or not a MATLAB file")
        first = struct.unpack_from("<I", raw, at)[0]
        kind = first if first < 10000 else struct.unpack_from(">I", raw, at)[0]
        order, reserved, number, content = kind // 1000 % 10, kind // 100 % 10, kind // 10 % 10, kind % 10
        if kind >= 10000 or reserved or order not in _OLD_ORDERS or number not in _OLD_TYPES or content > 2:
            raise MatlabError("it does not start as one")
        mark, kept = _OLD_ORDERS[order], _OLD_TYPES[number]
        rows, columns, imaginary, length = struct.unpack_from(f"{mark}4I", raw, at + 4)
        size = rows * columns * int(kept[1])
        start = at + 20 + length
        at = start + size * (2 if imaginary else 1)
        if not 0 < length < 1000 or imaginary > 1 or at > len(raw):
            raise MatlabError("it is cut off or not a MATLAB file")
        name = raw[start - length : start].split(b"\0")[0].decode("latin-1")
        values = np.frombuffer(raw, mark + kept, rows * columns, start).reshape((rows, columns), order="F")
        if content == _OLD_FULL and not imaginary:
            yield name, values
        elif content == _OLD_TEXT:
            yield name, ""
