"""Examples in the docstrings of recordings and signals run as they are written."""

from __future__ import annotations

import doctest
import importlib

import pytest


@pytest.mark.parametrize(
    "name",
    [
        "dynid.recording.base_motion",
        "dynid.recording.load",
        "dynid.recording.log_format",
        "dynid.recording.recording",
        "dynid.recording.wrench",
        "dynid.signals.settings",
    ],
)
def test_docstring_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
