"""A command of the page in a process of its own, which ends with the page: `python -m dynid.studio.job identify ...`.

The page holds the other end of the standard input. When it is gone, however it went, the command and the processes that
it started are ended: nobody would see what they compute.
"""

from __future__ import annotations

import os
import runpy
import signal
from threading import Thread

__all__ = ["main"]


def _end_with_the_page() -> None:
    while os.read(0, 1024):
        pass
    if hasattr(os, "killpg") and os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


def main() -> None:
    """Run `dynid` with the arguments of this process."""
    Thread(target=_end_with_the_page, daemon=True).start()
    runpy.run_module("dynid", run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
