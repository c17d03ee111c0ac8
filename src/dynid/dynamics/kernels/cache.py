"""The cache of compiled kernels: files with a checksum, which are compiled again if they are damaged.

Numba's own cache ends the process if a file of it is damaged, if the disk is full, or if no folder can be written.
Here a kernel is compiled again in all of these cases, and one warning says why.
"""

from __future__ import annotations

import hashlib
import logging
import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from numba.core.caching import FunctionCache, IndexDataCacheFile, NullCache

from dynid.dynamics.kernels import CACHE_SUFFIXES

__all__ = ["kernel_cache"]

logger = logging.getLogger("dynid")

_DIGEST = hashlib.sha256
# Reasons that were told already: thousands of functions may have the same one.
_told: set[str] = set()


def kernel_cache(function: Callable[..., Any]) -> Any:
    """The cache of a function; one that keeps nothing where no folder can be written."""
    try:
        return _Cache(function)
    except (RuntimeError, OSError):  # no folder for it
        _tell("no folder for compiled kernels can be written: they are compiled in every process; set NUMBA_CACHE_DIR")
        return NullCache()


@cache
def _sources() -> str:
    """Digest of the sources of all kernels: one inlines steps of other files, which numba's own cache does not see."""
    return _DIGEST("".join(map(_digest, sorted(Path(__file__).parent.glob("*.py")))).encode()).hexdigest()


@cache
def _digest(path: Path) -> str:
    return _DIGEST(path.read_bytes()).hexdigest()


def _tell(reason: str) -> None:
    """Log a reason once per process."""
    if reason not in _told:
        _told.add(reason)
        logger.warning("%s", reason)


class _Files(IndexDataCacheFile):
    """Index and code of one function; each file begins with the checksum of the rest."""

    def __init__(self, cache_path: str, filename_base: str, source_stamp: Any) -> None:
        super().__init__(cache_path, filename_base, source_stamp)
        index, code = CACHE_SUFFIXES
        self._index_name = filename_base + index
        self._index_path = str(Path(cache_path) / self._index_name)
        self._data_name_pattern = filename_base + ".{number:d}" + code

    def _load_index(self) -> dict[Any, str]:
        try:
            version, stamp, overloads = self._read(self._index_path)
        except FileNotFoundError:
            return {}
        # Sources that were changed, or another version of numba: numbered files are overwritten one by one.
        return overloads if (version, stamp) == (self._version, self._source_stamp) else {}

    def _save_index(self, overloads: dict[Any, str]) -> None:
        self._write(self._index_path, (self._version, self._source_stamp, overloads))

    def _load_data(self, name: str) -> Any:
        return self._read(self._data_path(name))

    def _save_data(self, name: str, data: Any) -> None:
        self._write(self._data_path(name), data)

    def _read(self, path: str) -> Any:
        content = Path(path).read_bytes()
        size = _DIGEST().digest_size
        if _DIGEST(content[size:]).digest() != content[:size]:
            raise ValueError(f"the checksum of {Path(path).name} is wrong")
        return pickle.loads(content[size:])

    def _write(self, path: str, data: Any) -> None:
        content = self._dump(data)
        with self._open_for_write(path) as file:
            file.write(_DIGEST(content).digest() + content)


class _Cache(FunctionCache):
    """Numba's cache of one function, which a damaged or full disk does not break."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = _sources(), _digest(Path(function.__code__.co_filename))
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, stamp)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of a signature, None if there is none that can be used."""
        try:
            return super().load_overload(sig, target_context)
        except Exception as error:
            folder = self._cache_path
            _tell(f"compiled kernels in {folder} are damaged and are compiled again ({type(error).__name__})")
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a compiled function, if it can be."""
        try:
            super().save_overload(sig, data)
        except ValueError:  # a damaged index, which was told when it was read
            self._cache_file.flush()
            super().save_overload(sig, data)
        except OSError as error:
            _tell(f"compiled kernels cannot be kept in {self._cache_path}: {error.strerror or error}")
