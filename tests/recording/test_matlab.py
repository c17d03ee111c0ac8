"""Our reader of MATLAB files against SciPy's, on honest files of many shapes; damaged files end in a sentence."""

from __future__ import annotations

import io
import random
import struct
import subprocess
import sys
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.io
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dynid
from dynid.errors import DamagedFile, DataError
from dynid.recording.arrays import read_mat
from dynid.recording.matlab import MatlabError, read_matlab
from tests.support.array_files import ARRAYS
from tests.support.errors import expect_error
from tests.support.log_files import robot

KINDS = ("f8", "f4", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "?")


def saved(content: dict[str, Any], **options: Any) -> bytes:
    stream = io.BytesIO()
    scipy.io.savemat(stream, content, **options)
    return stream.getvalue()


@settings(max_examples=60, deadline=None)
@given(
    array=st.sampled_from(KINDS).flatmap(
        lambda kind: hnp.arrays(np.dtype(kind), hnp.array_shapes(min_dims=1, max_dims=4, min_side=0, max_side=5))
    ),
    packed=st.booleans(),
)
def test_arrays_of_every_type_and_shape(array: np.ndarray, packed: bool) -> None:
    raw = saved({"x": array}, do_compression=packed)
    theirs = scipy.io.loadmat(io.BytesIO(raw))["x"]
    ours = read_matlab(raw, "x.mat")["x"]
    assert ours.shape == theirs.shape
    np.testing.assert_array_equal(ours, theirs)
    assert ours.dtype == (bool if array.dtype == bool else theirs.dtype)


@pytest.mark.parametrize("packed", [False, True])
def test_structs_cells_texts_and_complex_numbers(packed: bool) -> None:
    """What logs hold besides arrays: nested structs, arrays of structs, cells, texts, empty arrays, and sparse ones."""
    numbers = np.arange(6.0).reshape(2, 3)
    content = {
        "log": {"arm": {"q": numbers, "serial": "x7 é"}, "empty": np.zeros((0, 0)), "n": 3},
        "runs": np.array([{"q": numbers, "k": 1}, {"q": 2 * numbers, "k": 2}], dtype=object),
        "cells": np.array([1.0, "two", numbers], dtype=object),
        "table": np.array([[1.0, 2.0], [3.0, "four"]], dtype=object),
        "complex": numbers + 2j * numbers,
        "sparse": scipy.sparse.csc_array(np.eye(3)),
        "small": np.array([[1.0, 2.0]]),
        "flag": np.array([True, False]),
    }
    ours = read_matlab(saved(content, do_compression=packed, long_field_names=True), "x.mat")
    assert set(ours) == set(content)
    np.testing.assert_array_equal(ours["log"]["arm"]["q"], numbers)
    assert ours["log"]["arm"]["serial"] == "x7 é" and ours["log"]["empty"].shape == (0, 0) and ours["log"]["n"] == [[3]]
    assert [run["k"].item() for run in ours["runs"]] == [1, 2]
    assert ours["cells"][1] == "two" and ours["table"][1][1] == "four" and ours["table"][0][1] == 2.0
    np.testing.assert_array_equal(ours["complex"], content["complex"])
    assert ours["sparse"] is None
    assert ours["flag"].dtype == bool


@pytest.mark.parametrize("kind", ["f8", "f4", "i4", "i2", "u2", "u1"])
def test_version_4(kind: str) -> None:
    content = {"x": np.arange(12).reshape(3, 4).astype(kind), "name": "text", "y": np.ones((1, 5))}
    ours = read_matlab(saved(content, format="4"), "x.mat")
    np.testing.assert_array_equal(ours["x"], content["x"])
    assert ours["y"].shape == (1, 5) and isinstance(ours["name"], str)


def test_the_other_byte_order() -> None:
    """A file of a big-endian computer, put together by hand."""

    def element(kind: int, data: bytes) -> bytes:
        return struct.pack(">II", kind, len(data)) + data.ljust(-(-len(data) // 8) * 8, b"\0")

    inside = element(6, struct.pack(">II", 6, 0)) + element(5, struct.pack(">ii", 2, 2)) + element(1, b"x")
    inside += element(9, struct.pack(">4d", 1, 2, 3, 4))
    raw = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack(">H", 0x0100) + b"MI" + element(14, inside)
    np.testing.assert_array_equal(read_matlab(raw, "x.mat")["x"], [[1, 3], [2, 4]])
    np.testing.assert_array_equal(scipy.io.loadmat(io.BytesIO(raw))["x"], [[1, 3], [2, 4]])


@pytest.mark.parametrize("options", [{}, {"do_compression": True}, {"format": "4"}])
def test_damage_ends_in_an_error(options: dict[str, Any]) -> None:
    """Thousands of changed bytes and sizes, all read or refused."""
    raw, rng = saved(ARRAYS, **options), random.Random(0)
    ends = {"read": 0, "refused": 0}
    for _ in range(1500):
        data = bytearray(raw)
        for _ in range(rng.choice((1, 2, 8))):
            at = rng.randrange(rng.choice((400, len(data))))
            data[at] = rng.choice((0, 1, 14, 15, 255, rng.randrange(256)))
        try:
            read_matlab(bytes(data[: rng.choice((len(data), rng.randrange(1, len(data))))]), "x.mat")
        except (MatlabError, DataError):
            ends["refused"] += 1
        else:
            ends["read"] += 1
    assert min(ends.values()) > 20


@pytest.mark.parametrize(("at", "value"), [(476, 15), (329, 15), (241, 16)])
def test_bytes_that_ended_the_process_are_refused(tmp_path: Path, at: int, value: int) -> None:
    """With one of these bytes, SciPy 1.17 ends in a segmentation fault."""
    log = {"t": np.arange(4.0), "q": np.arange(6.0).reshape(2, 3)}
    raw = bytearray(saved({"log": log, "c": np.array([1.0, "a"], dtype=object)}))
    raw[at] = value
    (tmp_path / "run.mat").write_bytes(raw)
    with expect_error(DamagedFile):
        read_mat(tmp_path / "run.mat")


def test_a_packed_variable_that_never_ends_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dynid.reading._FLOOR", 1 << 20)  # of 256 MiB, which take long to make
    packed = zlib.compress(bytes(4 << 20), 9)
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    (tmp_path / "bomb.mat").write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    with expect_error(DataError):
        dynid.load_recording(tmp_path / "bomb.mat", robot("a"))


def test_scipy_is_not_asked() -> None:
    """Its reader ends the process on some files, so that nothing of dynid imports it."""
    code = "import dynid.recording.arrays, sys; assert 'scipy.io' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
    sources = Path(dynid.__file__).parent.rglob("*.py")
    assert not [p for p in sources if "loadmat" in p.read_text(encoding="utf-8")]
