"""Data sets: partitions are found, cut into chunks and read as any log, and messages name them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars
import pytest

import dynid
from dynid.errors import DamagedFile, MissingData, NotFinite, NotWritable, WrongFormat
from dynid.recording import open_dataset, write_partition
from dynid.recording.dataset import _spaced, is_dataset
from dynid.recording.recording import Recording
from tests.support.errors import expect_error
from tests.support.partitions import files, runs, write_data_set
from tests.support.synthetic import arm

ROBOT = arm()


def test_a_partition_reads_as_the_run_that_was_written(tmp_path: Path) -> None:
    some = runs(ROBOT, 3)
    dataset = write_data_set(ROBOT, tmp_path, some)
    assert len(dataset) == 3 and dataset.joints == ROBOT.coordinates
    assert dataset.step == pytest.approx(0.005)
    assert {p.keys["run"] for p in dataset.partitions} == {"0", "1", "2"}
    assert len(dataset.select(robot="unit2")) == 2
    with expect_error(MissingData):
        dataset.select(robot="unit9")
    first = dataset.select(run="1").partitions[0]
    ((start, recording),) = dataset.chunks(first)
    assert start == 0
    np.testing.assert_array_equal(recording.runs[0].q, some[1].q)
    np.testing.assert_array_equal(recording.runs[0].torque, some[1].torque)


def test_a_long_partition_is_cut_into_chunks_of_equal_length(tmp_path: Path) -> None:
    some = runs(ROBOT, 1)
    write_data_set(ROBOT, tmp_path, some)
    dataset = open_dataset(tmp_path, ROBOT, longest=1500)
    chunks = list(dataset.chunks(dataset.partitions[0]))
    assert [start for start, _ in chunks] == [0, 1333, 2666] and sum(c.samples for _, c in chunks) == 4000
    q = np.concatenate([c.runs[0].q for _, c in chunks])
    np.testing.assert_array_equal(q, some[0].q)


def test_rows_of_the_log_format_are_those_of_each_partition(tmp_path: Path) -> None:
    write_data_set(ROBOT, tmp_path, runs(ROBOT, 1))
    dataset = open_dataset(tmp_path, ROBOT, rows=(100, 900))
    ((start, recording),) = dataset.chunks(dataset.partitions[0])
    assert start == 100 and recording.samples == 800


def test_only_signals_that_are_asked_for_are_read(tmp_path: Path) -> None:
    """Column pruning: a column that is not read may contain anything."""
    write_data_set(ROBOT, tmp_path, runs(ROBOT, 1))
    (file,) = files(tmp_path)
    frame = polars.read_parquet(file)
    words = {f"reference_{j}": polars.lit("broken") for j in ROBOT.coordinates}
    frame.with_columns(**words).write_parquet(file)
    dataset = open_dataset(tmp_path, ROBOT, columns={s: f"{s}_{{joint}}" for s in ("q", "torque", "reference")})
    with expect_error(NotFinite, "bad_rows"):
        next(dataset.chunks(dataset.partitions[0]))
    pruned = dataset.with_signals(["q", "torque"])
    assert next(pruned.chunks(pruned.partitions[0]))[1].runs[0].reference is None


def test_numbers_in_names_count_as_numbers(tmp_path: Path) -> None:
    (run,) = runs(ROBOT, 1, samples=400)
    for k in (10, 9, 1):
        Recording(ROBOT.coordinates, (run,)).to_parquet(tmp_path / f"run={k}.parquet")
    assert [p.keys["run"] for p in open_dataset(tmp_path, ROBOT).partitions] == ["1", "9", "10"]
    # A superscript is a digit to Python, but no number.
    next(tmp_path.rglob("*.parquet")).rename(tmp_path / "1\u00b22.parquet")
    assert len(open_dataset(tmp_path, ROBOT).partitions) == 3


def test_an_address_of_fsspec_is_read_as_a_folder(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    write_data_set(ROBOT, tmp_path, runs(ROBOT, 2, samples=400))
    memory = fsspec.filesystem("memory")
    for file in files(tmp_path):
        memory.pipe(f"/logs/{file.relative_to(tmp_path).as_posix()}", file.read_bytes())
    here, there = open_dataset(tmp_path, ROBOT), open_dataset("memory://logs", ROBOT)
    assert [p.name for p in here.partitions] == [p.name for p in there.partitions]
    for a, b in zip(here.partitions, there.partitions, strict=True):
        one, two = next(here.chunks(a))[1].runs[0], next(there.chunks(b))[1].runs[0]
        np.testing.assert_array_equal(one.q, two.q)
    with expect_error(MissingData):
        open_dataset("memory://nothing", ROBOT)


def test_folders_without_partitions_are_no_data_sets(tmp_path: Path) -> None:
    assert not is_dataset(tmp_path) and not is_dataset(tmp_path / "absent") and is_dataset("s3://bucket/logs")
    with expect_error(MissingData):
        open_dataset(tmp_path, ROBOT)
    with expect_error(WrongFormat):
        open_dataset(tmp_path / "absent", ROBOT)


def test_a_sample_is_spaced_over_the_partitions(tmp_path: Path) -> None:
    dataset = write_data_set(ROBOT, tmp_path, runs(ROBOT, 5, samples=400))
    Path(dataset.partitions[4].address).write_bytes(b"PAR1")
    sample, bad = dataset.sample(1000)
    assert [run.name for run in sample.runs] == [dataset.partitions[k].name for k in (0, 1, 2)]
    assert sample.samples == 1200 and [one.partition for one in bad] == [dataset.partitions[4].name]
    assert sorted(_spaced(7)) == list(range(7)) and _spaced(5)[:3] == [0, 4, 2] and _spaced(1) == [0]


def test_a_partition_is_not_overwritten(tmp_path: Path) -> None:
    recording = Recording(ROBOT.coordinates, tuple(runs(ROBOT, 1, samples=400)))
    (path,) = write_partition(recording, tmp_path, {"robot": "a/b"}, float32=True)
    assert path.parent.parent.name == "robot=a%2Fb"
    schema = polars.read_parquet_schema(path)
    assert schema["t"] == polars.Float64 and schema["q_joint1"] == polars.Float32
    with expect_error(NotWritable):
        write_partition(recording, tmp_path, {"robot": "a/b"})


def test_the_first_good_partition_says_how_all_are_read(tmp_path: Path) -> None:
    """A damaged first partition does not close the data set; only if all are damaged nothing can be said."""
    first = write_data_set(ROBOT, tmp_path, runs(ROBOT, 3, samples=400)).partitions[0]
    Path(first.address).write_bytes(b"")
    dataset = open_dataset(tmp_path, ROBOT)
    with pytest.raises(dynid.DataError, match=f"partition {dataset.partitions[0].name} .*damaged"):
        next(dataset.chunks(dataset.partitions[0]))
    for file in files(tmp_path):
        file.write_bytes(b"")
    with expect_error(DamagedFile):
        open_dataset(tmp_path, ROBOT)


def test_a_clock_that_stands_still_names_the_partition(tmp_path: Path) -> None:
    """In one partition, which can be left out, and in all of them, where nothing can be read."""
    write_data_set(ROBOT, tmp_path, runs(ROBOT, 2, samples=400))
    still, other = files(tmp_path)
    for file in (still, other):
        polars.read_parquet(file).with_columns(t=polars.lit(1.5)).write_parquet(file)
        words = "partition .*has a clock that stands still"
        if file is still:
            dataset = open_dataset(tmp_path, ROBOT)
            with pytest.raises(dynid.DataError, match=words):
                [chunk for partition in dataset.partitions for chunk in dataset.chunks(partition)]
    with pytest.raises(dynid.DataError, match=words):
        open_dataset(tmp_path, ROBOT)


def test_keys_may_hold_any_character(tmp_path: Path) -> None:
    """Slashes and signs are written as %XX and read back."""
    (run,) = runs(ROBOT, 1)
    for unit in ("line 3/unit=7", "b"):
        write_partition(Recording(ROBOT.coordinates, (run,)), tmp_path, {"robot": unit})
    dataset = open_dataset(tmp_path, ROBOT)
    assert len(dataset.select(robot="line 3/unit=7")) == 1
