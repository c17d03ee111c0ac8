"""Where the real recordings lie; without them these tests are skipped and say so."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the real recordings: DYNID_DATA, or shared/data beside the repository."""
    given = os.environ.get("DYNID_DATA")
    folder = Path(given) if given else Path(__file__).parents[3] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real recordings: set DYNID_DATA to their folder")
    return folder
