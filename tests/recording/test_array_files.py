"""NPZ, NPY, MATLAB of every version, HDF5, JSON and Parquet, each really written and read back."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import polars
import pytest

import dynid
from dynid.errors import DamagedFile, InvalidShape, MissingData, NotFinite, UnknownName, Unsupported
from tests.support.array_files import ARRAYS, FORMATS, RUN, hdf5, mat, npz
from tests.support.errors import expect_error
from tests.support.log_files import refused, robot, same, table, write

pytestmark = pytest.mark.usefixtures("readers_here")

ROBOT = robot("a1", "a2", "a3")


@pytest.mark.parametrize("packed", ["", ".gz", ".xz"])
@pytest.mark.parametrize("format", FORMATS)
def test_arrays_by_name(tmp_path: Path, format: str, packed: str) -> None:
    """Two-dimensional arrays under usual names are found, under any names they are given by name or by part."""
    ending, make = FORMATS[format]
    file = write(tmp_path / f"run{ending}{packed}", make(ARRAYS))
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN)
    columns = {"q": "positions", "torque": ["torques[0]", "torques[1]", "torques[2]"]}
    assert same(dynid.load_recording(file, ROBOT, columns=columns, time="times").runs[0], RUN, "q", "torque")
    file = write(tmp_path / f"one{ending}{packed}", make({"log": table(RUN)}))
    columns = {"q": "log[1:4]", "v": "log[4:7]", "torque": "log[7:]"}
    assert same(dynid.load_recording(file, ROBOT, columns=columns, time="log[0]").runs[0], RUN)


@pytest.mark.parametrize("format", ["npz", "mat5", "mat73", "hdf5"])
def test_one_row_per_joint_is_transposed(tmp_path: Path, format: str) -> None:
    """Arrays of shape (joint, sample), and times as a row or a column."""
    ending, make = FORMATS[format]
    file = write(tmp_path / f"run{ending}", make({"t": RUN.t[None], "q": RUN.q.T}))
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN, "q")
    file = write(tmp_path / f"run{ending}", make({"t": RUN.t[:, None], "q": RUN.q}))
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN, "q")


def test_structs_groups_and_objects_have_paths(tmp_path: Path) -> None:
    """Fields of MATLAB structs and nested JSON have dotted names, data sets of HDF5 groups their path."""
    nested = {"t": RUN.t, "arm": {"q": RUN.q, "tau": RUN.torque, "serial": "x7"}}
    file = write(tmp_path / "run.mat", mat({"log": nested}))
    columns = {"q": "log.arm.q", "torque": "log.arm.tau"}
    assert same(dynid.load_recording(file, ROBOT, columns=columns, time="log.t").runs[0], RUN, "q", "torque")
    file = write(tmp_path / "run.h5", hdf5({"log/t": RUN.t, "log/arm/q": RUN.q, "log/arm/tau": RUN.torque}))
    columns = {"q": "log/arm/q", "torque": "log/arm/tau"}
    assert same(dynid.load_recording(file, ROBOT, columns=columns, time="log/t").runs[0], RUN, "q", "torque")
    rows = [{"stamp": t, "arm": {"q": q.tolist()}} for t, q in zip(RUN.t, RUN.q, strict=True)]
    file = write(tmp_path / "run.json", json.dumps({"motor": "m", "entries": rows, "kp": 3}))
    assert same(dynid.load_recording(file, ROBOT, columns={"q": "arm.q"}).runs[0], RUN, "q")


def test_structured_arrays_give_their_fields(tmp_path: Path) -> None:
    fields = np.zeros(len(RUN), dtype=[("t", float), ("q", float, 3)])
    fields["t"], fields["q"] = RUN.t, RUN.q
    np.save(tmp_path / "run.npy", fields)
    assert same(dynid.load_recording(tmp_path / "run.npy", ROBOT).runs[0], RUN, "q")
    file = write(tmp_path / "run.h5", hdf5({"log": fields}))
    assert same(dynid.load_recording(file, ROBOT, columns={"q": "log.q"}, time="log.t").runs[0], RUN, "q")


def test_images_beside_the_signals_are_skipped(tmp_path: Path) -> None:
    for ending, make in ((".h5", hdf5), (".npz", npz), (".mat", mat)):
        file = write(tmp_path / f"run{ending}", make({**ARRAYS, "camera": np.zeros((60, 4, 4))}))
        assert same(dynid.load_recording(file, ROBOT).runs[0], RUN)
        with expect_error(UnknownName, "columns"):
            dynid.load_recording(file, columns={"q": "camera"})


def test_npy_is_a_table_without_header(tmp_path: Path) -> None:
    np.save(tmp_path / "run.npy", table(RUN))
    columns = {"q": "1:4", "v": "4:7", "torque": "7:10"}
    assert same(dynid.load_recording(tmp_path / "run.npy", ROBOT, columns=columns, time=0).runs[0], RUN)
    np.save(tmp_path / "cube.npy", np.zeros((4, 5, 6)))
    with expect_error(MissingData):
        dynid.load_recording(tmp_path / "cube.npy", ROBOT, rate=10)


def test_parquet_takes_lists_integers_and_dates(tmp_path: Path) -> None:
    """Columns of lists as pandas writes them, stamps as dates, single precision as it is."""
    stamps = (RUN.t * 1e9).astype("datetime64[ns]") + np.timedelta64(1_700_000_000, "s")
    frame = polars.DataFrame({"time": stamps, "q": RUN.q.tolist(), "tau1": RUN.torque[:, 0].astype("float32")})
    frame.write_parquet(tmp_path / "run.parquet")
    loaded = dynid.load_recording(tmp_path / "run.parquet", columns={"q": "q"}).runs[0]
    # Stamps of today in double precision are good to a quarter of a microsecond.
    assert np.array_equal(loaded.q, RUN.q) and np.abs(loaded.t - RUN.t).max() < 5e-7


def test_lists_of_different_lengths_are_bad_rows(tmp_path: Path) -> None:
    rows = [{"t": t, "q": q.tolist()} for t, q in zip(RUN.t, RUN.q, strict=True)]
    rows[4]["q"] = [1.0, 2.0]
    file = write(tmp_path / "run.json", json.dumps(rows))
    with expect_error(NotFinite, "bad_rows"):
        dynid.load_recording(file, ROBOT)
    rows[4] = {"t": rows[4]["t"]}
    with expect_error(NotFinite, "bad_rows"):
        dynid.load_recording(write(file, json.dumps(rows)), ROBOT)
    frame = polars.DataFrame({"t": [0.0, 0.1], "q": [[1.0, 2.0], [1.0]]})
    frame.write_parquet(tmp_path / "run.parquet")
    with expect_error(DamagedFile):
        dynid.load_recording(tmp_path / "run.parquet", columns={"q": "q"})


@pytest.mark.parametrize("format", FORMATS)
def test_damaged_files_are_refused(tmp_path: Path, format: str) -> None:
    """Cut off in the middle, and of another format than the ending."""
    ending, make = FORMATS[format]
    raw = make(ARRAYS)
    with refused(f"run{ending} is not .* or damaged"):
        dynid.load_recording(write(tmp_path / f"run{ending}", raw[: len(raw) // 2]), ROBOT)
    with refused(f"run{ending} is not .* or damaged"):
        dynid.load_recording(write(tmp_path / f"run{ending}", b"t,q1\n0,1\n"), ROBOT)


@pytest.mark.parametrize("format", FORMATS)
def test_missing_array_is_named_with_what_is_there(tmp_path: Path, format: str) -> None:
    ending, make = FORMATS[format]
    file = write(tmp_path / f"run{ending}", make(ARRAYS))
    with refused(f"run{ending} has no column 'pos' for q, it has .*positions"):
        dynid.load_recording(file, ROBOT, columns={"q": "pos"})
    with refused(f"run{ending} has no column 'clock' for t"):
        dynid.load_recording(file, ROBOT, time="clock")


def test_arrays_of_objects_are_never_unpacked(tmp_path: Path) -> None:
    """Only numbers are read from NPZ: unpickling could run anything."""
    file = write(tmp_path / "run.npz", npz({**ARRAYS, "extra": np.array([{"a": 1}, None], dtype=object)}))
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN)
    with expect_error(DamagedFile):
        dynid.load_recording(file, columns={"q": "extra"})
    np.save(tmp_path / "run.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with expect_error(DamagedFile):
        dynid.load_recording(tmp_path / "run.npy", rate=1)


def test_files_without_signals_are_refused(tmp_path: Path) -> None:
    """Texts and single numbers only; several lists to choose from; values that are not numbers."""
    with expect_error(MissingData):
        dynid.load_recording(write(tmp_path / "run.json", '{"robot": "x", "mass": 3}'), ROBOT)
    with expect_error(Unsupported):
        dynid.load_recording(write(tmp_path / "run.json", '{"a": [{"q": 1}], "b": [{"q": 1}]}'), ROBOT)
    with expect_error(DamagedFile):
        dynid.load_recording(
            write(tmp_path / "run.json", '[{"t": 0, "q": "up"}, {"t": 1, "q": "up"}]'), columns={"q": "q"}
        )
    with expect_error(MissingData):
        dynid.load_recording(write(tmp_path / "run.npz", npz({"name": np.array("x")})), ROBOT)
    polars.DataFrame({"t": [], "q": []}).write_parquet(tmp_path / "run.parquet")
    with expect_error(MissingData):
        dynid.load_recording(tmp_path / "run.parquet", ROBOT)


def test_arrays_of_different_lengths_are_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "run.npz", npz({**ARRAYS, "times": RUN.t[:-1]}))
    with expect_error(InvalidShape):
        dynid.load_recording(file, ROBOT)
