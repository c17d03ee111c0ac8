"""Readers of damaged files have processes of their own; tests of what good files hold spare their starts."""

import logging
import os
import sys
from collections.abc import Iterator

import pytest

from dynid import child


@pytest.fixture(scope="module")
def readers_here() -> Iterator[None]:
    """Files are read within this process, without the limits of a child, by all that the child runs."""
    logger = logging.getLogger("dynid")

    def start(given: list[str], _: float) -> tuple[int, str]:
        level = logger.level
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(logger, "handlers", [])
            patch.setattr(logger, "propagate", False)
            patch.setattr(child, "_limit", lambda *_: None)
            patch.setattr(os, "_exit", lambda _: None)
            patch.setattr(sys, "argv", ["child", *given])
            child.main()
        logger.setLevel(level)
        return 0, ""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(child, "_start", start)
        yield
