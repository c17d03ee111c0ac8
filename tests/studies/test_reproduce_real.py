"""Reproductions that read real recordings."""

from __future__ import annotations

import pytest

from dynid.errors import DataError
from studies.reproduce.registry import find_study
from studies.reproduce.study import data_folder

pytestmark = pytest.mark.real


def test_tx40_tables_are_met_from_the_raw_files() -> None:
    """All 61 least-squares and weighted values, their deviations, and the 27 essential parameters."""
    try:
        data_folder()
    except DataError as error:
        pytest.skip(str(error))
    figures = list(find_study("tx40").run())
    assert len(figures) > 150
    out = [f for f in figures if not f.ok]
    assert not out, out
