"""Files are written whole or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from dynid.errors import DynidError
from dynid.files import _computer, check_output, make_folder, remove_left_over, write_text, writing
from tests.support.errors import expect_error


def test_an_interrupted_file_leaves_the_old_one(tmp_path: Path) -> None:
    """Ctrl-C in the middle, or an error: what was there is there, and nothing else."""
    path = tmp_path / "model.csv.gz"
    write_text(path, "old")
    for trouble in (KeyboardInterrupt, ValueError):
        with pytest.raises(trouble), writing(path) as part:
            assert part.suffixes == path.suffixes
            part.write_text("half")
            raise trouble
    assert path.read_text() == "old" and os.listdir(tmp_path) == ["model.csv.gz"]
    write_text(path, "new")
    assert path.read_text() == "new" and os.listdir(tmp_path) == ["model.csv.gz"]


def test_links_and_modes_are_kept(tmp_path: Path) -> None:
    real, link = tmp_path / "real.txt", tmp_path / "link.txt"
    real.write_text("old")
    real.chmod(0o600)
    link.symlink_to(real)
    write_text(link, "new")
    assert link.is_symlink() and real.read_text() == "new" and real.stat().st_mode & 0o777 == 0o600


def test_what_cannot_be_written_is_named(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path, act in (
        (tmp_path, lambda p: write_text(p, "x")),
        (tmp_path / "none" / "x.csv", lambda p: write_text(p, "x")),
        (tmp_path / "none" / "x.csv", check_output),
        (file / "folder", make_folder),
    ):
        with expect_error(DynidError, code="not_writable"):
            act(path)


@pytest.mark.parametrize("name", ["x" * 251 + ".csv", "é" * 125 + ".json", "." + "x" * 254, "a." + "x" * 250])
def test_a_name_may_be_as_long_as_the_file_system_takes(name: str, tmp_path: Path) -> None:
    """The temporary name beside it was longer, and was refused."""
    check_output(tmp_path / name)
    with writing(tmp_path / name) as part:
        assert part.suffix == Path(name).suffix or len(Path(name).suffix) > 100
        part.write_text("whole")
    assert os.listdir(tmp_path) == [name] and (tmp_path / name).read_text() == "whole"


def test_a_device_is_written_directly() -> None:
    write_text("/dev/null", "x")
    check_output("/dev/null")


def test_what_a_killed_process_left_is_deleted_by_the_next_one(tmp_path: Path) -> None:
    """Of dead processes of this computer and of this file only."""
    program = (
        "import os, signal, sys\nfrom dynid.files import writing\n"
        "with writing(sys.argv[1]) as part:\n    part.write_text('half')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    path, other = tmp_path / "model [1].csv", tmp_path / ".elsewhere-1-1-model [1].csv"
    other.write_text("of another computer")
    subprocess.run([sys.executable, "-c", program, str(path)], check=False)
    assert len(os.listdir(tmp_path)) == 2 and not path.exists()
    write_text(path, "whole")
    assert sorted(os.listdir(tmp_path)) == [other.name, path.name] and path.read_text() == "whole"


def test_what_a_killed_process_left_is_deleted_in_a_whole_folder(tmp_path: Path) -> None:
    """Hidden files of others that only look like it stay."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    left = tmp_path / f".{_computer()}-{dead.pid}-1400-a.csv"
    others = [f".{_computer()}-{os.getpid()}-1400-a.csv", f".{_computer()}-notes-1.txt", f".{_computer()}-{dead.pid}-x"]
    for name in (left.name, *others):
        (tmp_path / name).touch()
    remove_left_over(tmp_path)
    assert sorted(os.listdir(tmp_path)) == sorted(others)


def test_the_content_is_on_the_disk_before_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """After a loss of power a renamed file without content would be all that is left."""
    path, acts = tmp_path / "model.csv", []
    flush, rename = os.fsync, Path.replace
    monkeypatch.setattr(os, "fsync", lambda file: (acts.append(("fsync", os.fstat(file).st_size)), flush(file))[1])
    monkeypatch.setattr(Path, "replace", lambda part, to: (acts.append(("rename", to)), rename(part, to))[1])
    write_text(path, "whole")
    assert acts == [("fsync", 5), ("rename", path)]


def test_two_threads_write_one_file(tmp_path: Path) -> None:
    path = tmp_path / "model.csv"
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda k: write_text(path, str(k) * 1000), range(40)))
    assert len(set(path.read_text())) <= 2 and os.listdir(tmp_path) == ["model.csv"]
