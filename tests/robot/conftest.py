"""Robot files written by the tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import dynid
from dynid import Robot
from tests.support.robot_files import Load


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """load(text, suffix, **options): write a robot file and load it."""

    def inner(text: str, suffix: str, **options: Any) -> Robot:
        path = tmp_path / f"robot{suffix}"
        path.write_text(text, encoding="utf-8")
        return dynid.load_robot(path, **options)

    return inner
