"""The doctor tells what is here and what is missing."""

from __future__ import annotations

import importlib.metadata
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from dynid.cli import examine as doctor
from dynid.cli.examine import examine


def test_versions_are_those_installed() -> None:
    found = {line.name: line for line in examine().lines}
    assert examine().healthy
    assert found["numpy"].state == np.__version__ and found["dynid"].state == importlib.metadata.version("dynid")
    assert "cores" in found["system"].state
    json.dumps(examine().to_dict())


def test_what_is_missing_is_named_with_what_to_do(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A missing extra is no illness, a missing part of the core is."""
    monkeypatch.setattr(doctor, "CORE", ("numpy", "no-such-package"))
    monkeypatch.setattr(doctor, "EXTRAS", {"moon": ("no-such-extra",)})
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setenv("DYNID_DATA", str(tmp_path / "nowhere"))
    found = {line.name: line for line in examine().lines}
    assert not examine().healthy and not found["no-such-package"].ok
    assert found["moon"].advice == "pip install 'dynid[moon]'" and not found["moon"].needed
    assert found["C"].state == "none found" and "DYNID_DATA" in found["real recordings"].advice
