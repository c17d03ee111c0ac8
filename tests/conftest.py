"""One thread of linear algebra per worker, one width of tables, and the folder of the real recordings."""

import os
from collections.abc import Iterator
from pathlib import Path

# Before NumPy is imported: the matrices are small, and workers that wait for each other's threads take twice as long.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import pytest  # noqa: E402

# One width for all tables, whatever terminal the tests run in.
os.environ["COLUMNS"] = "150"


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the real recordings: DYNID_DATA, or shared/data beside the repository; skips without them."""
    given = os.environ.get("DYNID_DATA")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real recordings: set DYNID_DATA to their folder")
    return folder


@pytest.fixture(scope="session", autouse=True)
def _commands_are_built_once() -> Iterator[None]:
    """Typer's runner of commands takes the group that the application has built."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("typer.testing._get_command", lambda app: app.built)
        yield
