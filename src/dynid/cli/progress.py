"""How far long work is, on standard error: a bar on a terminal, plain lines elsewhere, or JSON for a program."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Protocol

from dynid.progress import JSON_LINES, PROGRESS_FORMAT, Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

__all__ = ["Work", "working"]

# Work that takes less than this time (s) is not announced; lines are printed no more often than that.
_QUIET = 1.0
# Lines for a program may come as often as this (s).
_OFTEN = 0.1


class Work(Protocol):
    """Long work that is running."""

    def report(self, progress: Progress) -> None:
        """Show how far the work is; functions of the package take this as their `progress`."""


@contextmanager
def working(message: str) -> Iterator[Work]:
    """Show that work is running until it is done.

    On a terminal a bar shows what is done, the time spent and the time left, and is removed at the end. Elsewhere lines
    are printed, the first as "MESSAGE ..." once the work takes longer than a second. With DYNID_PROGRESS=json every
    line is a JSON object with message, share, seconds left and values.
    """
    with _interruptible() as struck:
        if os.environ.get(PROGRESS_FORMAT) == JSON_LINES:
            yield _Attentive(_JsonLines(message), struck)
            return
        with _bar(message) if _on_terminal() else _lines(message) as work:
            yield _Attentive(work, struck)


@contextmanager
def _interruptible() -> Iterator[list[bool]]:
    """Ctrl-C ends the work at its end at the latest; the list is empty until it strikes.

    Python drops an interrupt that strikes inside a callback of compiled code or a destructor, with a traceback. As it
    ends the work later, nothing is said of it here.
    """
    struck: list[bool] = []
    before = sys.unraisablehook

    def strike(number: int, frame: FrameType | None) -> None:
        struck.append(True)
        signal.default_int_handler(number, frame)

    def dropped(error: sys.UnraisableHookArgs) -> None:
        if not (struck and error.exc_type is KeyboardInterrupt):
            before(error)

    ours = threading.current_thread() is threading.main_thread()
    if not ours or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield struck
        return
    sys.unraisablehook = dropped
    signal.signal(signal.SIGINT, strike)
    try:
        yield struck
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.unraisablehook = before
    if struck:
        raise KeyboardInterrupt


class _Attentive:
    """Work that is not continued after an interrupt."""

    def __init__(self, work: Work, struck: list[bool]) -> None:
        self._work, self._struck = work, struck

    def report(self, progress: Progress) -> None:
        if self._struck:
            raise KeyboardInterrupt
        self._work.report(progress)


def _on_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _time_left(progress: Progress, spent: float) -> str:
    """The time left: as reported, or as expected from the share done; empty where it is not known."""
    seconds = progress.seconds_left
    if progress.share is not None and progress.share >= 1:
        return ""
    if seconds is None:
        if not progress.share:
            return ""
        seconds = spent * (1 / progress.share - 1)
    return f"{seconds:.0f} s left" if seconds < 100 else f"{seconds / 60:.0f} min left"


class _JsonLines:
    def __init__(self, message: str) -> None:
        self._last = -_OFTEN
        self.report(Progress(message))

    def report(self, progress: Progress) -> None:
        """Print a line, at most ten per second; the last one always."""
        now = time.monotonic()
        if now - self._last >= _OFTEN or progress.share == 1:
            self._last = now
            print(progress.to_line(), file=sys.stderr, flush=True)


class _Lines:
    def __init__(self, message: str) -> None:
        self._began = self._last = time.monotonic()
        self._notice = threading.Timer(_QUIET, self._print, [f"{message} ..."])
        self._notice.daemon = True

    def report(self, progress: Progress) -> None:
        """Print a line, at most one per second; the last one always."""
        now = time.monotonic()
        if now - self._last < _QUIET and progress.share != 1:
            return
        share = "" if progress.share is None else f"{progress.share:.0%}"
        done = ", ".join(x for x in (share, _time_left(progress, now - self._began)) if x)
        self._print(f"{progress.message}: {done}" if done else progress.message)

    def _print(self, line: str) -> None:
        self._notice.cancel()
        self._last = time.monotonic()
        print(line, file=sys.stderr, flush=True)

    def start(self) -> None:
        self._notice.start()

    def stop(self) -> None:
        self._notice.cancel()


@contextmanager
def _lines(message: str) -> Iterator[Work]:
    lines = _Lines(message)
    lines.start()
    try:
        yield lines
    finally:
        lines.stop()


class _Bar:
    def __init__(self, bar: RichProgress, task: TaskID) -> None:
        self._bar, self._task = bar, task
        self._began = time.monotonic()

    def report(self, progress: Progress) -> None:
        """Show the message, the share done and the time left."""
        left = _time_left(progress, time.monotonic() - self._began)
        if progress.share is None:
            self._bar.update(self._task, description=progress.message, left=left)
        else:
            self._bar.update(
                self._task, description=progress.message, total=1.0, completed=min(progress.share, 1.0), left=left
            )


@contextmanager
def _bar(message: str) -> Iterator[Work]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    # Results go to standard output, which the bar on standard error must leave alone.
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        yield _Bar(bar, bar.add_task(message, total=None, left=""))
