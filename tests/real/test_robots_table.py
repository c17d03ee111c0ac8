"""Every real robot identified with defaults, against what is known of its recordings."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynid.reproduce.registry import find_study
from dynid.reproduce.robot_cases import CASES
from dynid.reproduce.study import published

pytestmark = pytest.mark.real


def test_no_robot_is_worse_than_what_is_known_of_it(data: Path) -> None:
    """All errors are within tolerance but those the table owns up to, each with its reason."""
    figures = list(find_study("robots").run())
    known = published("robots")
    assert set(known) == set(CASES) and len({f.section for f in figures}) == len(CASES)
    owned = {name for robot in known.values() for name in robot.get("missed", ())}
    assert {f.name for f in figures if not f.ok} == owned
