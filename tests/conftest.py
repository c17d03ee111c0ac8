"""Kernels are tested as they are written, not as they were cached; one thread of linear algebra per worker."""

import os
from contextlib import suppress
from pathlib import Path

# Before NumPy is imported: the matrices are small, and workers that wait for each other's threads take twice as long.
for library in ("OMP", "OPENBLAS", "MKL"):
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

import pytest  # noqa: E402

import dynid  # noqa: E402


def drop_stale_kernels() -> None:
    """Forget kernels compiled before the newest source file.

    The compiler's cache watches the file a kernel stands in, but not the files of the steps it inlines.
    """
    package = Path(dynid.__path__[0])
    newest = max(source.stat().st_mtime for source in (package / "dynamics" / "kernels").glob("*.py"))
    for index in package.glob("**/__pycache__/*.nbi"):
        with suppress(FileNotFoundError):  # another worker was faster
            if index.stat().st_mtime < newest:
                index.unlink()


# One width for all tables, whatever terminal the tests run in.
os.environ["COLUMNS"] = "150"
drop_stale_kernels()  # when the tests are collected, before any of them runs


@pytest.fixture(scope="session")
def data() -> Path:
    """Folder of the real recordings: DYNID_DATA, or shared/data beside the repository; skips without them."""
    given = os.environ.get("DYNID_DATA")
    folder = Path(given) if given else Path(__file__).parents[2] / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no real recordings: set DYNID_DATA to their folder")
    return folder
