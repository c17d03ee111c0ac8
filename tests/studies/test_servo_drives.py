"""The library of drives holds what its study gives."""

from __future__ import annotations

import tomllib
from functools import partial
from pathlib import Path

import pytest

from dynid.robot import known_drives, load_drive
from studies.reproduce import servo_drives, so101_drive

pytestmark = [pytest.mark.real, pytest.mark.slow]

TEXTS = {name: partial(servo_drives.library_text, name) for name in servo_drives.SERVOS}
TEXTS["sts3215"] = so101_drive.library_text


@pytest.mark.parametrize("name", TEXTS)
def test_the_library_is_the_study(name: str, data: Path) -> None:
    """Every figure to a tenth of its standard deviation; servos that their runs do not determine are not in it."""
    page = tomllib.loads(TEXTS[name]("2026-01-01"))
    rows = {**page["drive"], **page.get("motor", {})}
    determined = all(row["std"] <= 0.5 * row["value"] for row in rows.values())
    assert determined == (name in known_drives())
    if determined:
        drive = load_drive(name)
        known = {**drive.drive, **drive.motor}
        assert rows.keys() == known.keys() and page["source"].strip() == drive.source
        for key, x in known.items():
            assert rows[key]["value"] == pytest.approx(x.value, abs=0.1 * x.std)
            assert rows[key]["std"] == pytest.approx(x.std, rel=0.1) and rows[key]["unit"] == x.unit
