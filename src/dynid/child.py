"""Reading in a child process: what a damaged file can do to a library written in C or Rust stays in that process.

The child has limits on its computer memory and processor time where the operating system has them (`resource`). It
writes what it read into a temporary folder. An interpreter starts anew for every file: 0.2 to 0.3 s.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from dynid import errors
from dynid.errors import DataError, DynidError
from dynid.limits import file_limits

__all__ = ["read_in_child"]

logger = logging.getLogger("dynid")
# Last words of a process at its memory limit: ours, and those of Rust and C++.
_OUT_OF_MEMORY = re.compile("memory limit|memory allocation|bad_alloc|MemoryError", re.IGNORECASE)
_RESULT = "result.json"
_MIB = 1 << 20
# Wall-clock time per processor time, beyond which a child is ended that waits for something.
_PATIENCE = 8


def read_in_child(
    function: str, path: Path, folder: Path, argument: Any = None, *, error: type[DynidError] = DataError
) -> Any:
    """Call `function(path, folder, argument)` in a child process and return what it returns.

    Parameters
    ----------
    function : str
        Module and name, such as "dynid.recording.arrays:extract". What it returns must be representable in JSON; arrays
        are written into `folder`.
    path : Path
        The file to read, or a folder of files.
    folder : Path
        An empty folder for the results.
    argument : object
        Whatever else the function needs, representable in JSON.
    error : type
        Type of the error.

    Raises
    ------
    DynidError
        With the message of the function, or a sentence on how the process ended.
    """
    limits = file_limits()
    size = sum(p.stat().st_size for p in path.iterdir()) if path.is_dir() else path.stat().st_size
    room = limits.reader_megabytes * _MIB + limits.unpacked_ratio * size
    seconds = limits.reader_seconds + size // _MIB
    given = [function, str(path), str(folder), str(room), str(seconds), json.dumps(argument)]
    try:
        code, words = _start(given, _PATIENCE * seconds)
    except subprocess.TimeoutExpired:
        raise error(
            f"{path.name}: its reader was ended after {_PATIENCE * seconds} s: it is damaged, or the computer too "
            "busy; set DYNID_MAX_READER_SECONDS to a larger number"
        ) from None
    except OSError as problem:
        raise error(f"{path.name}: the process that reads it cannot be started: {problem.strerror}") from None
    try:
        result = json.loads((folder / _RESULT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise error(_how(path.name, code, words, room, seconds)) from None
    for level, message in result["log"]:
        logger.log(level, "%s", message)
    if "error" in result:
        name, text, about = result["error"]
        kind = getattr(errors, name, error)
        raise (kind if issubclass(kind, error) else error)(text, **about)
    return result["value"]


def _start(given: list[str], seconds: float) -> tuple[int, str]:
    """Run the child; returns its exit code and what it wrote to standard error."""
    package = str(Path(errors.__file__).parents[1])
    places = [package, *(p for p in sys.path if p and p != package)]
    ended = subprocess.run(
        [sys.executable, "-P", "-m", "dynid.child", *given],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        timeout=seconds,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(places)},
        check=False,
    )
    return ended.returncode, ended.stderr.decode("utf-8", "replace")


def _how(file: str, code: int, words: str, room: int, seconds: int) -> str:
    """A sentence on a process that ended without a result."""
    if -code in (getattr(signal, "SIGXCPU", 0), getattr(signal, "SIGKILL", 0)):
        return (
            f"{file} takes more than {seconds} s of processor time to read: it is damaged, or set "
            "DYNID_MAX_READER_SECONDS to a larger number"
        )
    if _OUT_OF_MEMORY.search(words):
        return (
            f"{file} needs more than {room // _MIB} MiB to read: it is damaged, or set DYNID_MAX_READER_MEGABYTES to "
            "a larger number"
        )
    how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
    return f"{file} is damaged: the process that read it ended with {how}"


def _limit(room: int, seconds: int) -> None:
    """Limit this process to `room` bytes of computer memory more than it has, and to `seconds` of processor time."""
    try:
        import resource
    except ImportError:  # not a Unix system
        return
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + 1))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    pages = Path("/proc/self/statm")
    if pages.exists():
        own = int(pages.read_text().split()[5]) * os.sysconf("SC_PAGE_SIZE")
        most = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = own + room
        resource.setrlimit(resource.RLIMIT_DATA, (wanted if most < 0 else min(wanted, most), most))


class _Log(logging.Handler):
    """What the function logs, for the parent to log."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[tuple[int, str]] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append((record.levelno, record.getMessage()))


def _result(read: Callable[[Path, Path, Any], Any], path: Path, folder: Path, argument: Any) -> dict[str, Any]:
    try:
        return {"value": read(path, folder, argument)}
    except DynidError as error:
        about = {"argument": error.argument, "code": error.code}
        return {"error": [type(error).__name__, error.sentence.text, about]}
    except MemoryError:
        raise SystemExit("out of memory limit") from None
    except BaseException as error:  # libraries raise errors of many types on damaged files, panics of Rust among them
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return {"error": ["DamagedFile", f"{path.name} is damaged: {lines[0]:.120}", {}]}


def main() -> None:
    """The child: module:function, file, folder, bytes of computer memory, seconds, and the argument."""
    function, path, folder, room, seconds, argument = sys.argv[1:]
    module, _, name = function.partition(":")
    read = getattr(importlib.import_module(module), name)
    _limit(int(room), int(seconds))
    log = _Log()
    logger.addHandler(log)
    logger.setLevel(logging.INFO)
    result = _result(read, Path(path), Path(folder), json.loads(argument)) | {"log": log.lines}
    part = Path(folder) / f"{_RESULT}.part"
    part.write_text(json.dumps(result), encoding="utf-8")
    part.replace(Path(folder) / _RESULT)
    os._exit(0)  # without the destructors of libraries, which a damaged file may have upset


if __name__ == "__main__":
    main()
