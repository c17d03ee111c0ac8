"""How far long work is, on standard error: a bar on a terminal, plain lines for whoever else reads them."""

from __future__ import annotations

import logging
import os
import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

__all__ = ["Work", "working"]

# Work that is done within this time (s) is not spoken of; shares are told no more often than that.
_QUIET = 1.0
_COUNT = re.compile(r"\b(\d+) of (\d+)\b")
# Deep in the package, rounds of an estimator are logged here.
_MAX_ITERATIONS = logging.getLogger("dynid.progress")


class Work(Protocol):
    """What a command tells of its work while it is done."""

    def say(self, line: str, share: float | None = None, every: float = 0.0) -> None:
        """Show a line, at most each `every` seconds where lines are printed; "3 of 20" in it is a share done."""

    def at(self, share: float, what: str) -> None:
        """Show which share is done, with the time left: "simulated 40%, 3 s left"."""


@contextmanager
def working(words: str, rounds: bool = False) -> Iterator[Work]:
    """Say what is being done until it is; with `rounds`, also what estimators tell of their rounds.

    On a terminal a bar shows what is done, the time spent and the time left, and is gone at the end. Elsewhere lines
    are printed, the first as "WORDS ..." once the work takes longer than a second.
    """
    shown = _bar(words) if _on_terminal() else _lines(words)
    with shown as work:
        if not rounds:
            yield work
            return
        listener = _Listener(work)
        before = _MAX_ITERATIONS.level, _MAX_ITERATIONS.propagate
        _MAX_ITERATIONS.addHandler(listener)
        _MAX_ITERATIONS.setLevel(logging.INFO)
        _MAX_ITERATIONS.propagate = False
        try:
            yield work
        finally:
            _MAX_ITERATIONS.removeHandler(listener)
            _MAX_ITERATIONS.level, _MAX_ITERATIONS.propagate = before


class _Listener(logging.Handler):
    """Hands what is logged on to the work."""

    def __init__(self, work: Work) -> None:
        super().__init__(logging.INFO)
        self._work = work

    def emit(self, record: logging.LogRecord) -> None:
        self._work.say(record.getMessage(), every=_QUIET)


def _on_terminal() -> bool:
    return sys.stderr.isatty() and os.environ.get("TERM") != "dumb"


def _counted(line: str) -> float | None:
    """The share that a line such as "start 3 of 20" tells."""
    found = _COUNT.search(line)
    return None if found is None or not int(found[2]) else min(int(found[1]) / int(found[2]), 1.0)


def _left(share: float, spent: float) -> str:
    """The time left if the rest goes as fast; nothing at the beginning and at the end."""
    if not 0 < share < 1:
        return ""
    seconds = spent * (1 / share - 1)
    return f"{seconds:.0f} s left" if seconds < 100 else f"{seconds / 60:.0f} min left"


def _with_left(line: str, left: str) -> str:
    return f"{line}, {left}" if left and not line.rstrip().endswith("left") else line


class _Lines:
    def __init__(self, words: str) -> None:
        self._began = self._last = time.monotonic()
        self._notice = threading.Timer(_QUIET, self._tell, [f"{words} ..."])
        self._notice.daemon = True

    def say(self, line: str, share: float | None = None, every: float = 0.0) -> None:
        now = time.monotonic()
        if now - self._last < every:
            return
        told = share if share is not None else _counted(line)
        self._tell(_with_left(line, "" if told is None else _left(told, now - self._began)))

    def at(self, share: float, what: str) -> None:
        self.say(f"{what} {share:.0%}", share, _QUIET if share < 1 else 0.0)

    def _tell(self, line: str) -> None:
        self._notice.cancel()
        self._last = time.monotonic()
        print(line, file=sys.stderr, flush=True)

    def start(self) -> None:
        self._notice.start()

    def stop(self) -> None:
        self._notice.cancel()


@contextmanager
def _lines(words: str) -> Iterator[Work]:
    lines = _Lines(words)
    lines.start()
    try:
        yield lines
    finally:
        lines.stop()


class _Bar:
    def __init__(self, bar: Progress, task: TaskID) -> None:
        self._bar, self._task = bar, task
        self._began = time.monotonic()

    def say(self, line: str, share: float | None = None, every: float = 0.0) -> None:
        told = share if share is not None else _counted(line)
        if told is None:
            self._bar.update(self._task, description=line, left="")
            return
        left = _left(told, time.monotonic() - self._began)
        self._bar.update(
            self._task,
            description=line,
            total=1.0,
            completed=told,
            left="" if line.rstrip().endswith("left") else left,
        )

    def at(self, share: float, what: str) -> None:
        self.say(f"{what} {share:.0%}", share)


@contextmanager
def _bar(words: str) -> Iterator[Work]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}"),
    )
    # Results go to standard output, which is no business of a bar on standard error.
    with Progress(*columns, console=Console(stderr=True), transient=True, redirect_stdout=False) as bar:
        yield _Bar(bar, bar.add_task(words, total=None, left=""))
