"""Anthropometric tables: their own sums and identities, and what is said of bad ones."""

from __future__ import annotations

import tomllib
from importlib import resources
from pathlib import Path

import pytest

import dynid
from dynid import DataError
from dynid.errors import DamagedFile, MissingData, MissingFile, UnknownName
from dynid.human.table import CENTRAL, PAIRED, builtin_tables
from tests.support.errors import Error, expect_error

TEXT = (resources.files("dynid.human") / "data" / "de-leva.toml").read_text(encoding="utf-8")
DATA = tomllib.loads(TEXT)


@pytest.mark.parametrize("sex", ["male", "female"])
def test_masses_add_up(sex: str) -> None:
    """To 100.00 % for men and 99.99 % for women as printed."""
    rows = DATA[sex]["segments"]
    total = sum(rows[n]["mass"] for n in CENTRAL) + 2 * sum(rows[n]["mass"] for n in PAIRED)
    assert total == pytest.approx({"male": 100.0, "female": 99.99}[sex], abs=1e-9)
    assert dynid.human.anthropometric_table("de-leva", sex).total == pytest.approx(total / 100)


@pytest.mark.parametrize(
    ("sex", "trunk", "centre", "mass"), [("male", 603.3, 51.38, 43.46), ("female", 614.8, 49.64, 42.57)]
)
def test_parts_of_the_trunk_make_the_trunk(sex: str, trunk: float, centre: float, mass: float) -> None:
    """Length, mass and centre of the whole trunk stand in another row of the publication (cervicale to mid-hip)."""
    rows = [DATA[sex]["segments"][n] for n in ("upper_trunk", "middle_trunk", "lower_trunk")]
    assert sum(r["length"] for r in rows) == pytest.approx(trunk, abs=1e-9)
    assert sum(r["mass"] for r in rows) == pytest.approx(mass, abs=0.011)
    top, moment = 0.0, 0.0
    for r in rows:
        moment += r["mass"] * (top + r["centre"] / 100 * r["length"])
        top += r["length"]
    # Women's rows agree to the last printed digit; men's are 3 mm apart in the publication itself.
    assert moment / mass / trunk * 100 == pytest.approx(centre, abs={"male": 0.5, "female": 0.01}[sex])


@pytest.mark.parametrize("sex", ["male", "female"])
def test_every_segment_is_a_possible_body(sex: str) -> None:
    table = dynid.human.anthropometric_table("de-leva", sex)
    for segment in table.segments.values():
        a, b, c = sorted(r**2 for r in segment.radii)
        assert a > 0 and a + b > c
        assert 0 < segment.centre < 1 and 0 < segment.length < 0.3


def test_file_says_where_its_numbers_come_from() -> None:
    for name in builtin_tables():
        text = (resources.files("dynid.human") / "data" / f"{name}.toml").read_text(encoding="utf-8")
        assert "Source:" in text and tomllib.loads(text)["reference"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("hand = { mass = 0.61", "palm = { mass = 0.61", "misses segments for sex 'male': hand"),
        ("thigh = { mass = 14.16", "thigh = { mass = 41.16", "add up to 154.0%"),
        (
            "radii = [32.9, 32.9, 14.9]",
            "radii = [90.0, 32.9, 14.9]",
            "segment 'thigh' is not a physically consistent body: triangle",
        ),
        ("radii = [32.9, 32.9, 14.9]", "radii = [32.9, 14.9]", "segment 'thigh' needs three positive radii"),
        ("length = 422.2", 'length = "long"', "segment 'thigh' needs a positive number for length, got 'long'"),
        ('thigh = ["hip", "knee"]', 'thigh = ["hip", "nose"]', "segment 'thigh' needs two ends among"),
        ("height = 1741.0", "", "needs a positive number for height, got None"),
        ("[male.segments]", "[male.segments]\ntail = { mass = 1.0 }", "segment 'tail' is unknown"),
    ],
)
def test_bad_tables_are_explained(tmp_path: Path, old: str, new: str, message: str) -> None:
    """A user's own table: the segment and the number that is wrong are named."""
    assert old in TEXT
    file = tmp_path / "mine.toml"
    file.write_text(TEXT.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(DataError, match=message):
        dynid.human.human_model(table=file)


def test_own_table_is_read(tmp_path: Path) -> None:
    file = tmp_path / "mine.toml"
    file.write_text(
        TEXT.replace("mass = 6.94", "mass = 7.94").replace("mass = 15.96", "mass = 14.96"), encoding="utf-8"
    )
    head = dynid.human.human_model("male", 1.8, 100, table=file).links
    assert next(link for link in head if link.name == "head").inertia[0] == pytest.approx(7.94)


@pytest.mark.parametrize(
    ("source", "sex", "error"),
    [
        ("vitruvius", "male", (UnknownName, "source")),
        ("de-leva", "robot", (UnknownName, "sex")),
        ("nowhere.toml", "male", (MissingFile, "")),
    ],
)
def test_unknown_names(source: str, sex: str, error: Error) -> None:
    with expect_error(*error):
        dynid.human.anthropometric_table(source, sex)


def test_a_file_that_is_no_table(tmp_path: Path) -> None:
    file = tmp_path / "broken.toml"
    file.write_text("[male", encoding="utf-8")
    with expect_error(DamagedFile):
        dynid.human.anthropometric_table(file)
    file.write_text("name = 'empty'", encoding="utf-8")
    with expect_error(MissingData, "sex"):
        dynid.human.anthropometric_table(file)
