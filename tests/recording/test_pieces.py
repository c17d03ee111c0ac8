"""One long file in pieces: the rows, columns and messages of reading it whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars
import pytest

import dynid
from dynid.errors import DamagedFile, MissingData, NotFinite, TooLarge, Unsupported, WrongFormat
from dynid.recording import DataSet, open_dataset
from dynid.recording.dataset import is_long
from dynid.recording.recording import Recording
from tests.support.errors import expect_error
from tests.support.partitions import runs
from tests.support.synthetic import arm

pytestmark = pytest.mark.usefixtures("readers_here")

ROBOT = arm()
ROWS = 3001


@pytest.fixture(scope="module")
def table() -> polars.DataFrame:
    (run,) = runs(ROBOT, 1, samples=ROWS)
    return polars.DataFrame(Recording(ROBOT.coordinates, (run,)).columns()).drop("run")


def rewritten(table: polars.DataFrame, kind: str) -> bytes:
    """The table as text in one of the usual forms."""
    text = table.write_csv()
    head, _, body = text.partition("\n")
    lines = body.splitlines()
    if kind == "blanks and comments between rows":
        spread = [f"{line}\n\n# note\n" if k % 700 == 0 else f"{line}\n" for k, line in enumerate(lines)]
        return (f"# a log\n\n{head}\n" + "".join(spread)).encode()
    return {
        "header": text.encode(),
        "no line feed at the end": text.rstrip("\n").encode(),
        "header in a comment": f"# {head}\n{body}".encode(),
        "byte-order mark and carriage returns": b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode(),
        "mark before a comment": b"\xef\xbb\xbf# log\n" + text.encode(),
        "decimal commas": text.replace(",", ";").replace(".", ",").encode(),
        "aligned by blanks": text.replace(",", "   ").encode(),
    }[kind]


def joined(dataset: DataSet, signal: str) -> np.ndarray:
    chunks = [chunk for p in dataset.partitions for _, chunk in dataset.chunks(p)]
    return np.concatenate([getattr(run, signal) for chunk in chunks for run in chunk.runs])


@pytest.mark.parametrize(
    "kind",
    [
        *("header", "no line feed at the end", "header in a comment", "byte-order mark and carriage returns"),
        *("mark before a comment", "decimal commas", "aligned by blanks", "blanks and comments between rows"),
    ],
)
def test_the_pieces_of_a_text_are_the_whole(tmp_path: Path, table: polars.DataFrame, kind: str) -> None:
    path = tmp_path / "long.csv"
    path.write_bytes(rewritten(table, kind))
    whole = dynid.load_recording(path, ROBOT)
    dataset = open_dataset(path, ROBOT, longest=700)
    assert len(dataset) == 5 and [p.rows for p in dataset.partitions][:2] == [(0, 600), (600, 1200)]
    for signal in ("t", "q", "torque"):
        np.testing.assert_array_equal(joined(dataset, signal), getattr(whole.runs[0], signal))
    assert dataset.log_format == whole.log_format and dataset.unread_columns == whole.unread_columns
    some = open_dataset(path, ROBOT, longest=700, rows=(1000, 2500))
    np.testing.assert_array_equal(joined(some, "q"), whole.runs[0].q[1000:2500])
    assert [p.name for p in some.partitions] == [f"long.csv rows {a}:{a + 500}" for a in (1000, 1500, 2000)]


def test_a_text_without_a_header_and_with_long_blocks(
    tmp_path: Path, table: polars.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Blocks that end in the middle of a line, and a layout that only the first of them shows."""
    monkeypatch.setattr("dynid.recording.dataset._BLOCK", 1000)
    monkeypatch.setattr("dynid.recording.dataset._HEAD", 2000)
    path = tmp_path / "long.txt"
    path.write_text(table.write_csv(include_header=False))
    names = {name: k for k, name in enumerate(table.columns)}
    columns = {s: tuple(names[f"{s}_{j}"] for j in ROBOT.coordinates) for s in ("q", "torque")}
    given = {"time": 0, "columns": columns}
    whole = dynid.load_recording(path, ROBOT, **given)
    dataset = open_dataset(path, ROBOT, longest=1024, **given)
    np.testing.assert_array_equal(joined(dataset, "q"), whole.runs[0].q)
    np.testing.assert_array_equal(joined(dataset, "torque"), whole.runs[0].torque)


def test_the_pieces_of_a_parquet_file_are_the_whole(tmp_path: Path, table: polars.DataFrame) -> None:
    path = tmp_path / "long.parquet"
    table.write_parquet(path, row_group_size=1000)
    whole = dynid.load_recording(path, ROBOT)
    dataset = open_dataset(path, ROBOT, longest=700)
    assert len(dataset) == 5
    np.testing.assert_array_equal(joined(dataset, "torque"), whole.runs[0].torque)
    some = open_dataset(path, ROBOT, longest=700, rows=(1000, 2500))
    np.testing.assert_array_equal(joined(some, "q"), whole.runs[0].q[1000:2500])


def test_a_damaged_parquet_file_costs_one_sentence(tmp_path: Path, table: polars.DataFrame) -> None:
    """It is read in a child process before; what is wrong in its middle is found there."""
    path = tmp_path / "long.parquet"
    table.write_parquet(path, row_group_size=1000, compression="zstd")
    raw = bytearray(path.read_bytes())
    raw[len(raw) // 2 : len(raw) // 2 + 400] = bytes(400)
    path.write_bytes(raw)
    with expect_error(DamagedFile) as caught:
        open_dataset(path, ROBOT, longest=700)
    assert "\n" not in str(caught.value)


def test_messages_name_the_line_of_the_file(tmp_path: Path, table: polars.DataFrame) -> None:
    lines = table.write_csv().splitlines()
    lines[1500] = lines[1500].rsplit(",", 1)[0] + ",oops"
    path = tmp_path / "long.csv"
    path.write_text("\n".join(lines))
    dataset = open_dataset(path, ROBOT, longest=700)
    with expect_error(NotFinite, "bad_rows"):
        list(dataset.chunks(dataset.partitions[2]))
    path.unlink()
    with expect_error(DamagedFile):
        list(dataset.chunks(dataset.partitions[0]))


def test_which_files_are_read_in_pieces(
    tmp_path: Path, table: polars.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = table.write_csv()
    files = {
        "short.csv": text[:5000].encode(),
        "long.csv": text.encode(),
        "utf16.csv": text.encode("utf-16"),
        "old.csv": text.replace("\n", "\r").encode(),
        "long.csv.gz": text.encode(),
        "long.mat": text.encode(),
    }
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    monkeypatch.setenv("DYNID_MAX_WHOLE_BYTES", "10000")
    assert [name for name in files if is_long(tmp_path / name)] == ["long.csv"]
    assert not is_long(tmp_path) and not is_long({"q": "long.csv"}) and not is_long("s3://bucket/long.csv")
    for name, error in (("utf16.csv", (Unsupported, "")), ("long.mat", (WrongFormat, ""))):
        with expect_error(*error):
            open_dataset(tmp_path / name, ROBOT)
    monkeypatch.delenv("DYNID_MAX_WHOLE_BYTES")
    assert not is_long(tmp_path / "long.csv")


def test_a_text_that_is_no_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.recording.dataset._BLOCK", 100)
    monkeypatch.setattr("dynid.recording.dataset._LONGEST_LINE", 1 << 20)
    path = tmp_path / "long.csv"
    path.write_bytes(b"t,q1\n0,1\n" + b"1" * (2 << 20))
    with expect_error(TooLarge):
        open_dataset(path, ROBOT)
    path.write_bytes(b"")
    with expect_error(MissingData):
        open_dataset(path, ROBOT)
