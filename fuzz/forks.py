"""Child processes of readers, forked with the libraries loaded where an interpreter would start for each file.

Everything else is as in `dynid.child`: the same function with the same limits in a process of its own.
"""

from __future__ import annotations

import importlib
import json
import os
import resource
import sys
import tempfile
from contextlib import suppress

from dynid import child

__all__ = ["Forks"]

_MODULES = ("numpy", "h5py", "polars", "rosbags.highlevel", "rosbags.typesys", "mcap.reader", "dynid.recording.bags")
_MODULES += ("pinocchio", "pxr.Usd", "pxr.UsdGeom", "pxr.UsdPhysics", "dynid.robot.usd")


class Forks:
    """A process that forks on demand; it must be made before any library starts threads."""

    def __init__(self) -> None:
        (self._in, there), (here, self._out) = os.pipe(), os.pipe()
        self.peak = 0  # bytes
        if os.fork() == 0:
            os.close(self._in)
            os.close(self._out)
            _serve(here, there)
        os.close(there)
        os.close(here)
        self._answers = os.fdopen(self._in, "r")

    def start(self, given: list[str], _: float) -> tuple[int, str]:
        """In the place of `dynid.child._start`."""
        os.write(self._out, (json.dumps(given) + "\n").encode())
        code, words, peak = json.loads(self._answers.readline())
        self.peak = max(self.peak, peak)
        return code, words


def _serve(here: int, there: int) -> None:
    for name in _MODULES:
        with suppress(ImportError):
            importlib.import_module(name)
    with os.fdopen(here, "r") as requests:
        for line in requests:
            with tempfile.TemporaryFile() as errors:
                process = os.fork()
                if process == 0:
                    os.dup2(errors.fileno(), 2)
                    sys.argv = ["dynid.child", *json.loads(line)]
                    try:
                        child.main()
                    except BaseException as error:
                        os.write(2, str(error).encode())
                    os._exit(1)
                code = os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])
                errors.seek(0)
                words = errors.read().decode("utf-8", "replace")
            peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
            os.write(there, (json.dumps([code, words[-2000:], peak]) + "\n").encode())
    os._exit(0)
