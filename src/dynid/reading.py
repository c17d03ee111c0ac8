"""Reading of files: regular files only, decompression and nesting within `dynid.limits`, XML without entities."""

from __future__ import annotations

import bz2
import errno
import io
import json
import lzma
import os
import stat
import tomllib
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any
from xml.parsers import expat

from dynid.errors import DamagedFile, DataError, DynidError, ModelError
from dynid.limits import exceeded, file_limits

__all__ = [
    "PACKED",
    "check_archive",
    "check_nesting",
    "check_regular",
    "inflated",
    "parse_json",
    "parse_toml",
    "parse_xml",
    "read_json",
    "read_npz",
    "read_regular",
    "read_text",
    "read_toml",
    "unpacked",
    "whole_number",
    "within_ratio",
    "zlib_stream",
]

_BLOCK, _CHUNK = 1 << 16, 1 << 20  # bytes that are read and unpacked at a time
# Up to this size a file may be packed as well as it likes.
_FLOOR = 256 << 20
# Computer memory that an xz file may ask for; the strongest setting of xz needs 65 MiB.
_XZ_MEMORY = 512 << 20
# Digits of a whole number that fits into 64 bits.
_DIGITS = 18
_LARGEST = 10**308  # of the floats
_KINDS = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a pipe"), (stat.S_ISSOCK, "a socket"))


# -- regular files -------------------------------------------------------------------------------------


def check_regular(path: str | Path) -> int:
    """Size of a regular file (bytes); OSError for pipes, sockets, devices and folders, which are never opened."""
    if "\0" in str(path):
        raise OSError(errno.EINVAL, "its name contains a NUL", str(path).replace("\0", "?"))
    status = os.stat(path)
    if stat.S_ISREG(status.st_mode):
        return status.st_size
    kind = next((words for test, words in _KINDS if test(status.st_mode)), "a device")
    raise OSError(errno.EINVAL, f"it is {kind}, not a file", str(path))


def read_regular(path: str | Path, most: int | None = None) -> bytes:
    """Content of a regular file; OSError where it cannot be read or is longer than `most` bytes."""
    size = check_regular(path)
    if most is not None and size > most:
        raise OSError(errno.EFBIG, f"it has {size} bytes, more than {most}", str(path))
    with open(path, "rb") as stream:
        return stream.read() if most is None else stream.read(most)


def read_text(path: str | Path) -> str:
    """Text of a regular file in UTF-8, within the limit `text_bytes`; OSError or UnicodeDecodeError otherwise."""
    size = check_regular(path)
    if size > file_limits().text_bytes:
        exceeded(Path(path).name, f"{size} bytes", "text_bytes")
    return read_regular(path).decode("utf-8")


def whole_number(text: str) -> int | None:
    """The number that the digits 0 to 9 write; None for other digits, for too many of them and for any other text."""
    return int(text) if text.isascii() and text.isdigit() and len(text) <= _DIGITS else None


# -- TOML and JSON -------------------------------------------------------------------------------------


def parse_toml(text: str) -> dict[str, Any]:
    """Content of a TOML text; TOMLDecodeError for everything that is wrong with it."""
    try:
        data = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, RecursionError, OverflowError) as error:
        raise tomllib.TOMLDecodeError(_reason(error)) from None
    check_nesting(data, tomllib.TOMLDecodeError)
    return data


def read_toml(path: str | Path) -> dict[str, Any]:
    """Content of a TOML file; OSError, UnicodeDecodeError or TOMLDecodeError where it cannot be read."""
    return parse_toml(read_text(path))


def parse_json(text: str | bytes) -> Any:
    """Content of a JSON text; ValueError for everything that is wrong with it."""
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError(_reason(error)) from None


def read_json(path: str | Path) -> Any:
    """Content of a JSON file, nested within the limit; OSError or ValueError where it cannot be read."""
    data = parse_json(read_text(path))
    check_nesting(data, ValueError)
    return data


def _reason(error: Exception) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    if "digits" in str(error):
        return "it has a number with too many digits"
    return str(error)


def check_nesting(data: Any, error: type[ValueError]) -> None:
    """Refuse tables and lists that are nested deeper than the limit, and whole numbers that no float can hold."""
    most, level = file_limits().nesting, [data]
    for _ in range(most + 1):
        inner = [list(x.values()) if isinstance(x, Mapping) else x for x in level]
        if any(isinstance(x, int) and not -_LARGEST <= x <= _LARGEST for values in inner for x in values):
            raise error("it has a number with too many digits")
        level = [value for values in inner for value in values if isinstance(value, dict | list)]
        if not level:
            return
    raise error(f"it is nested more than {most} levels deep, the limit DYNID_MAX_NESTING")


# -- XML -----------------------------------------------------------------------------------------------


def parse_xml(data: bytes, file: str) -> ET.Element:
    """Root element of an XML text; entities are refused, depth and number of elements are limited.

    Tags keep their namespaces as ElementTree writes them.
    """
    limits, builder, depth, count = file_limits(), ET.TreeBuilder(), 0, 0
    parser = expat.ParserCreate(namespace_separator="}")
    parser.buffer_text = True

    def start(tag: str, attributes: dict[str, str]) -> None:
        nonlocal depth, count
        depth, count = depth + 1, count + 1
        if depth > limits.xml_depth:
            exceeded(file, f"elements nested more than {limits.xml_depth} deep", "xml_depth", ModelError)
        if count > limits.xml_elements:
            exceeded(file, f"more than {limits.xml_elements} elements", "xml_elements", ModelError)
        builder.start(_named(tag), {_named(key): value for key, value in attributes.items()})

    def end(tag: str) -> None:
        nonlocal depth
        depth -= 1
        builder.end(_named(tag))

    def entity(name: str, *_: Any) -> None:
        raise ModelError(
            f"{file} declares the entity '{name:.60}', and entities are not read: write its text instead",
            code="unsupported",
        )

    parser.StartElementHandler, parser.EndElementHandler, parser.CharacterDataHandler = start, end, builder.data
    parser.EntityDeclHandler = parser.UnparsedEntityDeclHandler = entity
    parser.ExternalEntityRefHandler = lambda *names: 0
    try:
        parser.Parse(data, True)
    except (expat.ExpatError, UnicodeError, LookupError, ValueError) as error:
        raise ModelError(f"{file} is not well-formed XML: {error}", code="file_damaged") from None
    root = builder.close()
    for element in root.iter():
        for value in element.attrib.values():
            if len(value) > _LONGEST_ATTRIBUTE:
                raise ModelError(
                    f"an attribute of <{element.tag:.40}> has {len(value)} characters", code="too_large", where=file
                )
    return root


# Arrays of mesh vertices in MJCF are attributes.
_LONGEST_ATTRIBUTE = 64 << 20


def _named(tag: str) -> str:
    return "{" + tag if "}" in tag else tag


# -- compression ---------------------------------------------------------------------------------------


def within_ratio(file: str, size: int, packed: int, error: type[DynidError] = DataError) -> None:
    """Refuse content of `size` bytes in `packed` bytes of a file that is longer than the limits allow."""
    limits = file_limits()
    if size > limits.unpacked_bytes:
        exceeded(file, f"more than {limits.unpacked_bytes} bytes when unpacked", "unpacked_bytes", error)
    if size > _FLOOR and size > limits.unpacked_ratio * packed:
        exceeded(file, f"content more than {limits.unpacked_ratio} times its own size", "unpacked_ratio", error)


class _Inflater:
    """A stream of zlib or gzip with the methods of the streams of lzma and bz2."""

    def __init__(self, wbits: int) -> None:
        self._stream = zlib.decompressobj(wbits)

    def decompress(self, data: bytes | memoryview, most: int) -> bytes:
        return self._stream.decompress(self._stream.unconsumed_tail or data, most)

    @property
    def eof(self) -> bool:
        return self._stream.eof

    @property
    def needs_input(self) -> bool:
        return not self._stream.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._stream.unused_data


# Streams by the endings of compressed files.
PACKED: dict[str, Callable[[], Any]] = {
    ".gz": lambda: _Inflater(31),
    ".xz": lambda: lzma.LZMADecompressor(memlimit=_XZ_MEMORY),
    ".bz2": bz2.BZ2Decompressor,
}


def zlib_stream() -> Any:
    """A stream of zlib, for `inflated`."""
    return _Inflater(15)


def inflated(raw: bytes | memoryview, make: Callable[[], Any], file: str) -> bytes:
    """Compressed data, unpacked piece by piece up to the limits; EOFError and errors of the libraries where damaged.

    The ratio is that of what was unpacked to what was read of the file until then, so that a file of zeros is refused
    early however long it is.
    """
    data, out, at, size = memoryview(raw), io.BytesIO(), 0, 0
    stream, begun = make(), False
    while at < len(data):
        block = data[at : at + _BLOCK]
        at += len(block)
        part = stream.decompress(block, _CHUNK)
        begun = True
        while True:
            size += out.write(part)
            within_ratio(file, size, at)
            if stream.eof or stream.needs_input:
                break
            part = stream.decompress(b"", _CHUNK)
        if stream.eof:  # another stream, or zeros that fill a tape, may follow
            at -= len(stream.unused_data)
            while at < len(data) and not data[at]:
                at += 1
            stream, begun = make(), False
    if begun:
        raise EOFError("it ends before its end-of-stream marker")
    return out.getvalue()


def unpacked(raw: bytes, ending: str, file: str) -> bytes:
    """Content of a compressed file within the limits."""
    try:
        return inflated(raw, PACKED[ending], file)
    except (OSError, EOFError, ValueError, zlib.error, lzma.LZMAError, MemoryError) as error:
        reason = str(error).strip().splitlines() or [type(error).__name__]
        raise DamagedFile(f"{file} is damaged or cut off: {reason[0]:.120}") from None


def read_npz(path: str | Path) -> dict[str, Any]:
    """Arrays of an NPZ file by name, none of Python objects; OSError or ValueError where it cannot be read."""
    import numpy as np

    raw = read_regular(path)
    try:
        check_archive(io.BytesIO(raw), Path(path).name)
        with np.load(io.BytesIO(raw), allow_pickle=False) as file:
            return {name: file[name] for name in file.files}
    except DynidError:
        raise
    except Exception as error:  # zipfile, zlib and NumPy raise errors of many types on damaged files
        raise ValueError(str(error) or type(error).__name__) from None


def check_archive(stream: IO[bytes], file: str) -> None:
    """Refuse a ZIP archive (NPZ) whose members are larger than the limits allow, by its table of contents.

    Members that are longer than the table says end in an error of the reader, since only so many bytes are read.
    """
    size = stream.seek(0, io.SEEK_END)
    with zipfile.ZipFile(stream) as archive:
        within_ratio(file, sum(member.file_size for member in archive.infolist()), size)
    stream.seek(0)
