"""The command line: thin, each command a call of the public functions."""

from __future__ import annotations

import logging
import sys

# In the order that --help lists them.
from dynid.commands import (  # noqa: F401
    calibrate,
    doctor,
    export,
    friction,
    models,
    motions,
    payload,
    recordings,
    report,
    studies,
    studio,
)
from dynid.commands.app import app
from dynid.errors import DynidError

__all__ = ["app", "main"]


def main() -> None:
    """Run the command line; bad input ends with one line on standard error and exit code 1."""
    logging.basicConfig(format="dynid: %(message)s", level=logging.WARNING, stream=sys.stderr)
    try:
        app(standalone_mode=True)
    except DynidError as error:
        print(f"dynid: {error}", file=sys.stderr)
        sys.exit(1)
