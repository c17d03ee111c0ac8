"""Every format of log files goes through the same battery, those of other packages that are installed included."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import dynid
from dynid.recording.formats import own_readers, reader_of, readers
from dynid.recording.reader import Reader

PAGE = (Path(__file__).parents[2] / "docs" / "recordings.md").read_text(encoding="utf-8")
ENDINGS = [(reader.name, ending) for reader in readers().values() for ending in reader.endings]


def test_records_are_complete() -> None:
    """Names are keys, endings are in lower case, and no two of dynid's own formats have the same."""
    for name, reader in readers().items():
        assert isinstance(reader, Reader) and reader.name == name and reader.sentence.endswith(".")
        assert reader.endings or reader.marks
        assert all(re.fullmatch(r"\.[a-z0-9]+", ending) for ending in reader.endings)
    own = [ending for reader in own_readers().values() for ending in reader.endings]
    assert len(own) == len(set(own))


@pytest.mark.parametrize(("name", "ending"), ENDINGS)
def test_files_that_are_missing_empty_or_of_another_kind_are_refused(name: str, ending: str, tmp_path: Path) -> None:
    """One sentence that names the file; no error of a library."""
    assert reader_of(tmp_path / f"run{ending.upper()}").name == name
    for content in (None, b"", bytes(range(256)) * 4):
        file = tmp_path / f"run{ending}"
        if content is not None:
            file.write_bytes(content)
        with pytest.raises(dynid.DynidError, match="run") as caught:
            dynid.load_recording(file)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", [name for name, reader in own_readers().items() if reader.endings])
def test_compression_is_for_formats_that_know_it(name: str, tmp_path: Path) -> None:
    reader = own_readers()[name]
    file = tmp_path / f"run{reader.endings[0]}.gz"
    if reader.compressed:
        assert reader_of(file) is reader
    else:
        with pytest.raises(dynid.DataError, match=f"{reader.title} are not read compressed"):
            reader_of(file)


@pytest.mark.parametrize("name", own_readers())
def test_the_page_has_every_format(name: str) -> None:
    """A row with its endings, or the files by which its folders are known, and its extra where it needs one."""
    reader = own_readers()[name]
    known = [f"`{word}`" for word in reader.endings or reader.marks]
    (row,) = [line for line in PAGE.splitlines() if line.startswith("| ") and known[0] in line]
    assert all(word in row for word in known)
    assert not reader.extra or f"`dynid[{reader.extra}]`" in row
