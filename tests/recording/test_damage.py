"""Damage anywhere in a file: a recording or a one-line error, never anything else."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from tests.support.array_files import ARRAYS, FORMATS
from tests.support.log_files import motion, names, robot, table, text

ROBOT = robot("a1", "a2", "a3")
TEXT = text(table(motion()), names("q", "v", "tau")).encode()
MAKERS: dict[str, Callable[[], bytes]] = {"csv": lambda: TEXT, "csv.gz": lambda: gzip.compress(TEXT, mtime=0)}
MAKERS |= {f"{name}{ending}": lambda make=make: make(ARRAYS) for name, (ending, make) in FORMATS.items()}


# Read in a process of their own, each file: few here, thousands with `make fuzz`.
APART = [kind for kind in MAKERS if kind.endswith((".h5", ".parquet")) or kind.startswith("mat73")]
DAMAGE = given(
    places=st.lists(st.tuples(st.floats(0, 1, exclude_max=True), st.integers(0, 255)), min_size=1, max_size=8),
    keep=st.floats(0.01, 1),
    bad_rows=st.sampled_from(["error", "split"]),
)


@pytest.mark.parametrize("kind", [kind for kind in MAKERS if kind not in APART])
@settings(max_examples=25, deadline=None)
@DAMAGE
def test_changed_bytes_and_cut_files(
    tmp_path_factory: pytest.TempPathFactory, kind: str, places: list[tuple[float, int]], keep: float, bad_rows: str
) -> None:
    """Bytes turned at any place, and any part of the end cut off."""
    check_damage(tmp_path_factory, kind, places, keep, bad_rows)


@pytest.mark.parametrize("kind", APART)
@settings(max_examples=3, deadline=None)
@DAMAGE
def test_changed_bytes_in_a_child_process(
    tmp_path_factory: pytest.TempPathFactory, kind: str, places: list[tuple[float, int]], keep: float, bad_rows: str
) -> None:
    """As above."""
    check_damage(tmp_path_factory, kind, places, keep, bad_rows)


def check_damage(
    tmp_path_factory: pytest.TempPathFactory, kind: str, places: list[tuple[float, int]], keep: float, bad_rows: str
) -> None:
    """Damage a file and read it."""
    raw = bytearray(MAKERS[kind]())
    for place, value in places:
        raw[int(place * len(raw))] = value
    file: Path = tmp_path_factory.mktemp("damage") / f"run.{kind.split('.', 1)[-1]}"
    file.write_bytes(bytes(raw[: max(1, int(keep * len(raw)))]))
    try:
        recording = dynid.load_recording(file, ROBOT, bad_rows=bad_rows)
    except dynid.DynidError as error:
        assert "\n" not in str(error) and len(str(error)) < 500
    else:
        assert recording.joints == ROBOT.coordinates
