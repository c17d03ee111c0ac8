"""The command line: each command is a call of the public functions."""

from __future__ import annotations

import logging
import sys

from dynid.cli import (  # noqa: F401
    actuators,
    calibrate,
    compensate,
    doctor,
    excite,
    export,
    fleet,
    flexible,
    friction,
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
    studies,
    studio,
)
from dynid.cli.app import INTERRUPTED, app, interrupted
from dynid.cli.keywords import option_words
from dynid.errors import DynidError

__all__ = ["app", "main"]


class _Warnings(logging.Handler):
    """Warnings on whatever standard error is now: a progress bar puts itself in its place."""

    def emit(self, record: logging.LogRecord) -> None:
        """Print one line."""
        print(f"dynid: {option_words(record.getMessage())}", file=sys.stderr)


def main() -> None:
    """Run the command line; bad input ends with one line on standard error and exit code 1, Ctrl-C with 130."""
    logging.basicConfig(level=logging.WARNING, handlers=[_Warnings()])
    try:
        app(standalone_mode=True)
    except DynidError as error:
        print(f"dynid: {error}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        interrupted()
        sys.exit(INTERRUPTED)
