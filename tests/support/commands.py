"""The commands of the command line, and the line itself without a process of its own."""

from __future__ import annotations

import contextlib
import io
import logging
import subprocess
import sys
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from dynid.cli.main import main


def leaves(group: Any, *before: str) -> dict[str, Any]:
    """Every command by its words, those of groups such as `human` included."""
    found: dict[str, Any] = {}
    for name, command in group.commands.items():
        words = (*before, name)
        found |= leaves(command, *words) if hasattr(command, "commands") else {" ".join(words): command}
    return found


def dynid(*arguments: str | Path, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    """The command line within this process, which spares the imports of another; warnings on standard error too.

    Parameters
    ----------
    *arguments : str or Path
        The words after `dynid`.
    folder : Path, optional
        Where it runs; the current folder.
    """
    words = [str(a) for a in arguments]
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err), _own_log():
        patch.setattr(sys, "argv", ["dynid", *words])
        if folder is not None:
            patch.chdir(folder)
        with pytest.raises(SystemExit) as ended:
            main()
    return subprocess.CompletedProcess(words, int(ended.value.code or 0), out.getvalue(), err.getvalue())


@contextlib.contextmanager
def _own_log() -> Iterator[None]:
    """The log without the handlers of pytest, as a fresh process has it."""
    root = logging.getLogger()
    before = root.handlers[:]
    root.handlers.clear()
    try:
        yield
    finally:
        root.handlers[:] = before
