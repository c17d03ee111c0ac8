"""Commands of dynid run beside the page: with progress, to be cancelled, one at a time."""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dynid.errors import DataError, NotApplicable
from dynid.progress import JSON_LINES, PROGRESS_FORMAT, Progress

__all__ = ["Done", "Jobs", "Listener"]

Listener = Callable[[Progress], None]

# Seconds that a command has to end after it was interrupted.
_PATIENCE = 5.0


@dataclass(frozen=True)
class Done:
    """How a command ended."""

    command: str
    code: int
    out: str
    err: str
    cancelled: bool = False

    @property
    def ok(self) -> bool:
        return self.code == 0 and not self.cancelled

    @property
    def data(self) -> Any:
        """What it printed as JSON."""
        try:
            return json.loads(self.out)
        except json.JSONDecodeError:
            raise DataError(f"'{self.command}' printed no JSON", code="interrupted") from None

    @property
    def reason(self) -> str:
        """Its last words, for a person."""
        if self.cancelled:
            return "cancelled"
        lines = [x.strip() for x in self.err.splitlines() if x.strip()]
        return lines[-1].removeprefix("dynid: ") if lines else f"ended with code {self.code}"


@dataclass
class Jobs:
    """Runs `dynid` in `folder`. A second command while one runs is refused."""

    folder: Path
    _process: asyncio.subprocess.Process | None = None
    _running: bool = False
    _cancelled: bool = False
    history: list[str] = field(default_factory=list)

    @property
    def busy(self) -> bool:
        return self._running

    async def run(self, *arguments: str, progress: Listener | None = None) -> Done:
        """Run a command to its end; `progress` receives what it reports, and each other line as a message."""
        if self.busy:
            raise NotApplicable("another command is still running: wait for it, or cancel it")
        self._running = True  # before anything is awaited, so that of two clicks one is refused
        try:
            return await self._run(arguments, progress)
        finally:
            self._process, self._running = None, False

    async def _run(self, arguments: tuple[str, ...], progress: Listener | None) -> Done:
        command = shlex.join(["dynid", *arguments])
        self.history.append(command)
        self._cancelled = False
        process = self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "dynid.studio.job",
            *arguments,
            cwd=self.folder,
            env=os.environ | {PROGRESS_FORMAT: JSON_LINES},
            stdin=asyncio.subprocess.PIPE,  # its end tells the command that the page is gone
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # a group of its own: it is ended with the processes that it starts
        )
        if self._cancelled:  # before it was there
            self.cancel()
        assert process.stdout is not None and process.stderr is not None
        out, err = await asyncio.gather(process.stdout.read(), _listen(process.stderr, progress))
        code = await process.wait()
        return Done(command, code, out.decode("utf-8", "replace"), err, self._cancelled)

    def cancel(self) -> None:
        """End the running command and its processes as Ctrl-C would, and at once if it does not end by that.

        Python drops an interrupt that arrives inside a callback of compiled code.
        """
        self._cancelled = self._running
        self._send(signal.SIGINT)
        if self._process is not None:
            asyncio.get_running_loop().call_later(_PATIENCE, self._insist, self._process)

    def _insist(self, process: asyncio.subprocess.Process) -> None:
        if process is self._process:
            self._send(signal.SIGKILL)

    def stop(self) -> None:
        """End the running command at once, when the page is closed."""
        self._cancelled = self._running
        self._send(signal.SIGKILL)

    def _send(self, sign: signal.Signals) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError):
                os.killpg(self._process.pid, sign)


async def _listen(stream: asyncio.StreamReader, progress: Listener | None) -> str:
    """All lines of a stream but its reports of progress, which are told as they come, as the other lines are."""
    said, rest = [], ""
    while chunk := await stream.read(4096):
        *lines, rest = (rest + chunk.decode("utf-8", "replace")).replace("\r", "\n").split("\n")
        for line in lines:
            report = Progress.from_line(line)
            if report is None:
                said.append(line)
            if progress is not None and line.strip():
                progress(report or Progress(line.strip()))
    return "\n".join([*said, rest])
