"""Examples in docstrings of excitation and residuals run as they are written."""

from __future__ import annotations

import doctest
import importlib

import pytest

MODULES = [
    "dynid.excitation.design",
    "dynid.excitation.limits",
    "dynid.excitation.live",
    "dynid.excitation.planners",
    "dynid.excitation.postures",
    "dynid.residual.blend",
    "dynid.residual.fit",
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0
