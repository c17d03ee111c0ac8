"""Where lines come from: a log file that grows, or a socket on this computer."""

from __future__ import annotations

import os
import select
import socket
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from dynid.errors import InvalidValue, MissingFile, Unsupported
from dynid.reading import check_regular, whole_number

__all__ = ["LineSource", "open_source"]

# Bytes that are read at once, and the longest line.
_CHUNK = 1 << 16
_LONGEST_LINE = 1 << 16
# Seconds between two looks at a file that has not grown.
_PAUSE = 0.05
_LAST_PORT = 65535
_LOCAL = ("localhost", "127.0.0.1", "::1")


class LineSource(Protocol):
    """Complete lines of text as they arrive."""

    name: str
    ended: bool

    def read(self, timeout: float) -> list[str]:
        """New complete lines, after at most `timeout` seconds."""

    def close(self) -> None:
        """Release the file or the connection."""


def open_source(text: str, *, patience: float = 5.0) -> LineSource:
    """Open a source of lines.

    Parameters
    ----------
    text : str
        Path of a log file, `unix:PATH` of a socket file, or `localhost:PORT`.
    patience : float, default 5.0
        Seconds during which a connection is tried.

    Returns
    -------
    LineSource

    Raises
    ------
    DataError
        If there is no such file, nothing listens there, or the address is that of another computer.
    """
    if text.startswith("unix:"):
        return _Socket(text, text.removeprefix("unix:"), patience)
    host, colon, port = text.rpartition(":")
    number = whole_number(port)
    if colon and number is not None and not Path(text).exists():
        if host.strip("[]") not in _LOCAL:
            raise InvalidValue(f"'{text}' is no address of this computer: use localhost:{port}", "address")
        if not 0 < number <= _LAST_PORT:
            raise InvalidValue(f"'{text}' is no address: ports are 1 to {_LAST_PORT}", "address")
        return _Socket(text, (host.strip("[]"), number), patience)
    return _File(text)


class _Pieces:
    """Bytes cut into complete lines."""

    def __init__(self) -> None:
        self._rest = b""

    def lines(self, data: bytes) -> list[str]:
        whole = (self._rest + data).replace(b"\r\n", b"\n").split(b"\n")
        self._rest = whole.pop()
        if len(self._rest) > _LONGEST_LINE:
            # Never a line of a log: handed on, it is counted as one that cannot be read.
            whole.append(self._rest[:_LONGEST_LINE])
            self._rest = b""
        return [line.decode("utf-8", errors="replace") for line in whole]


class _File:
    """A log file that grows; read from its beginning, and again where it is cut or replaced."""

    def __init__(self, text: str) -> None:
        self.name, self.ended = text, False
        self._path = Path(text)
        try:
            self._open()
        except OSError as error:
            raise MissingFile(f"'{text}' cannot be read: {error.strerror or error}") from None

    def _open(self) -> None:
        # A pipe would wait for its writer, whatever time is given; a device never ends.
        check_regular(self._path)
        self._file, self._pieces = self._path.open("rb"), _Pieces()

    def read(self, timeout: float) -> list[str]:
        until = time.monotonic() + timeout
        while True:
            data = self._file.read(_CHUNK)
            if data:
                return self._pieces.lines(data)
            if self._replaced():
                old = self._file
                with suppress(OSError):  # gone again, or no file: the next look may find one
                    self._open()
                    old.close()
                    continue
            left = until - time.monotonic()
            if left <= 0:
                return []
            time.sleep(min(_PAUSE, left))

    def _replaced(self) -> bool:
        """Whether the file was cut, or another one has its name."""
        try:
            now, own = self._path.stat(), os.fstat(self._file.fileno())
        except OSError:
            return False
        return (now.st_dev, now.st_ino) != (own.st_dev, own.st_ino) or own.st_size < self._file.tell()

    def close(self) -> None:
        self._file.close()


class _Socket:
    """A connection to a program on this computer that sends lines."""

    def __init__(self, name: str, address: str | tuple[str, int], patience: float) -> None:
        self.name, self.ended = name, False
        until = time.monotonic() + patience
        while True:
            try:
                self._socket = _connected(address)
                break
            except OSError as error:
                if time.monotonic() >= until:
                    raise MissingFile(f"'{name}' cannot be reached: {error.strerror or error}") from None
                time.sleep(_PAUSE)
        self._pieces = _Pieces()

    def read(self, timeout: float) -> list[str]:
        if self.ended:
            time.sleep(min(timeout, _PAUSE))
            return []
        ready, _, _ = select.select([self._socket], [], [], timeout)
        if not ready:
            return []
        try:
            data = self._socket.recv(_CHUNK)
        except OSError:
            data = b""
        self.ended = not data
        return self._pieces.lines(data or b"\n")

    def close(self) -> None:
        self._socket.close()


def _connected(address: str | tuple[str, int]) -> socket.socket:
    if isinstance(address, tuple):
        return socket.create_connection(address, timeout=1.0)
    if not hasattr(socket, "AF_UNIX"):
        raise Unsupported("this system has no socket files: use localhost:PORT")
    out = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        out.connect(address)
    except OSError:
        out.close()
        raise
    return out
