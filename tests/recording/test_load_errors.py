"""Files that cannot be a recording: one line that names the file, what is wrong and what to do."""

from __future__ import annotations

import gzip
import importlib.util
import lzma
from pathlib import Path

import pytest

import dynid
from dynid.errors import InvalidType, InvalidValue, NotApplicable
from tests.support.errors import expect_error
from tests.support.log_files import motion, names, refused, robot, table, text, write

ROBOT = robot("a1", "a2", "a3")
BODY = text(table(motion(samples=400)), names("q", "v", "tau"))


@pytest.mark.parametrize("ending", [".csv", ".npz", ".npy", ".mat", ".h5", ".json", ".parquet", ".csv.gz"])
def test_empty_files(tmp_path: Path, ending: str) -> None:
    (tmp_path / f"run{ending}").touch()
    with refused(f"run{ending} is empty"):
        dynid.load_recording(tmp_path / f"run{ending}", ROBOT)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (" \n\n", "run.csv is empty"),
        ("# only\n% comments\n", "run.csv contains comments and no rows"),
        ("t,q1,q2,q3\n", "run.csv has a header and no rows"),
        ("t,q1,q2,q3\n0,1,2,3\n", "run.csv has 1 rows: at least two are needed"),
    ],
)
def test_files_without_samples(tmp_path: Path, content: str, message: str) -> None:
    with refused(message):
        dynid.load_recording(write(tmp_path / "run.csv", content), ROBOT)


@pytest.mark.parametrize("ending", [".csv", ".npz", ".mat", ".mcap", ".bag", ".db3", ".csv.gz"])
def test_missing_files(tmp_path: Path, ending: str) -> None:
    with refused(f"gone{ending} cannot be read: No such file or directory"):
        dynid.load_recording(tmp_path / f"gone{ending}", ROBOT)


@pytest.mark.parametrize("name", ["run.xlsx", "run", "run.gz", "run.csv.zip"])
def test_unknown_endings(tmp_path: Path, name: str) -> None:
    file = write(tmp_path / "x", BODY).rename(tmp_path / name)
    with refused(f"{name}: ending '.*' is unknown, known are .csv, .tsv"):
        dynid.load_recording(file, ROBOT)


@pytest.mark.parametrize("ending", [".gz", ".xz"])
def test_damaged_compression(tmp_path: Path, ending: str) -> None:
    """Cut off, changed in the middle, or not compressed at all."""
    raw = {".gz": gzip.compress, ".xz": lzma.compress}[ending](BODY.encode())
    turned = bytearray(raw)
    for k in range(len(raw) // 2, len(raw) // 2 + 8):
        turned[k] ^= 255
    file = tmp_path / f"run.csv{ending}"
    for content in (raw[: len(raw) // 2], bytes(turned), BODY.encode()):
        file.write_bytes(content)
        with refused(f"run.csv{ending} is damaged or cut off"):
            dynid.load_recording(file, ROBOT)


@pytest.mark.parametrize(
    ("name", "package", "extra"),
    [
        ("run.h5", "h5py", "hdf5"),
        ("run.bag", "rosbags", "ros"),
        ("run.db3", "rosbags", "ros"),
        ("run.mcap", "mcap", "ros"),
    ],
)
def test_missing_packages_are_named_with_their_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, package: str, extra: str
) -> None:
    original = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name, *args: None if name == package else original(name, *args)
    )
    with refused(rf"need the package '{package}': pip install 'dynid\[{extra}\]'"):
        dynid.load_recording(write(tmp_path / name, "x"), ROBOT)


def test_errors_are_data_errors(tmp_path: Path) -> None:
    """One class catches all that is wrong with data."""
    with pytest.raises(dynid.DataError):
        dynid.load_recording(write(tmp_path / "run.csv", ""), ROBOT)


def test_topic_of_a_file_without_topics(tmp_path: Path) -> None:
    with expect_error(NotApplicable, "topic"):
        dynid.load_recording(write(tmp_path / "run.csv", BODY), ROBOT, topic="/joint_states")


def test_arguments_of_the_wrong_kind(tmp_path: Path) -> None:
    file = write(tmp_path / "run.csv", BODY)
    with expect_error(InvalidType):
        dynid.load_recording(file, "tx40")
    with expect_error(InvalidValue):
        dynid.load_recording(file, ROBOT, rows=(1, 2, 3))
