"""Every benchmark can be started in a checkout, as the documentation writes it."""

from __future__ import annotations

import importlib
from pathlib import Path

import pytest

NAMES = sorted(p.stem for p in (Path(__file__).parents[2] / "benchmarks").glob("[a-z]*.py"))
# Other programs that some of them are held against and that a checkout need not have.
NEEDS = {"actuators_arm": "mujoco.sysid", "residual_gpu": "gpytorch", "tensors": "torch"}


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_can_be_imported(name: str) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    importlib.import_module(f"benchmarks.{name}")
