"""The library of drives holds what its study gives."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from dynid.robot import known_drives, load_drive
from studies.reproduce.servo_drives import SERVOS, library_text

pytestmark = [pytest.mark.real, pytest.mark.slow]


@pytest.mark.parametrize("name", SERVOS)
def test_the_library_is_the_study(name: str, data: Path) -> None:
    """Every figure to a tenth of its standard deviation; servos that their runs do not determine are not in it."""
    page = tomllib.loads(library_text(name, "2026-01-01"))
    rows = {**page["drive"], **page["motor"]}
    determined = all(row["std"] <= 0.5 * row["value"] for row in rows.values())
    assert determined == (name in known_drives())
    if determined:
        drive = load_drive(name)
        for key, known in {**drive.drive, **drive.motor}.items():
            assert rows[key]["value"] == pytest.approx(known.value, abs=0.1 * known.std)
            assert rows[key]["std"] == pytest.approx(known.std, rel=0.1) and rows[key]["unit"] == known.unit
