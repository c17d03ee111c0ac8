"""The command line: each command is a call of the public functions."""

from __future__ import annotations

import io
import logging
import os
import sys
import traceback
from contextlib import suppress

from dynid.cli import (  # noqa: F401
    actuators,
    calibrate,
    chirp,
    compensate,
    convert,
    doctor,
    excite,
    export,
    fleet,
    flexible,
    friction,
    geometry,
    human,
    identify,
    init,
    legs,
    live,
    payload,
    recordings,
    report,
    robots,
    simulate,
    solvers,
    studies,
    studio,
    watch,
)
from dynid.cli.app import INTERRUPTED, app, interrupted
from dynid.cli.option_names import option_words
from dynid.errors import DynidError, Sentence

__all__ = ["TRACEBACK", "UNEXPECTED", "app", "main"]

# The exit code of an error that is not the user's (EX_SOFTWARE), and the variable that shows where it was raised.
UNEXPECTED = 70
TRACEBACK = "DYNID_TRACEBACK"


class _Warnings(logging.Handler):
    """Warnings on whatever standard error is now: a progress bar puts itself in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line, with options in place of arguments."""
        said = record.msg
        text = said.in_words(option_words(app.built, None)) if isinstance(said, Sentence) else record.getMessage()
        print(f"dynid: {text}", file=sys.stderr)


def main() -> None:
    """Run the command line; every error ends in one line on standard error.

    Exit codes: 1 for bad input and for output that nobody reads, 130 for Ctrl-C, 70 for anything unexpected. With the
    environment variable DYNID_TRACEBACK, the whole traceback is printed before that line.
    """
    logging.basicConfig(level=logging.WARNING, handlers=[_Warnings()])
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a terminal without some letters shows ? for them
            stream.reconfigure(errors="replace")
    try:
        _run()
    except DynidError as error:
        _end(str(error), 1)
    except KeyboardInterrupt:
        interrupted()
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # What is left in the buffer would raise once more when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        _end(f"{error.filename or 'the output'} cannot be read or written: {error.strerror or error}", 1)
    except MemoryError:
        _end("this command needs more computer memory than there is", UNEXPECTED)
    except RecursionError:
        _end("something in the input is nested too deeply", UNEXPECTED)
    except Exception as error:
        what = (str(error).strip().splitlines() or [""])[0]
        _end(f"unexpected {type(error).__name__}: {what:.300}", UNEXPECTED)


def _run() -> None:
    """Run the command, and see to it that what it printed has arrived."""
    try:
        app(standalone_mode=True)
    except SystemExit:
        sys.stdout.flush()
        raise


def _end(message: str, code: int) -> None:
    """Print the line and end; after something unexpected, say how to see the traceback."""
    if os.environ.get(TRACEBACK):
        traceback.print_exc()
    elif code == UNEXPECTED:
        message += f" (set {TRACEBACK}=1 to see where; this is an error of dynid, please report it)"
    with suppress(OSError):
        print(f"dynid: {message}", file=sys.stderr)
    sys.exit(code)
