"""One recording as NPZ, MATLAB, HDF5, JSON and Parquet files."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from typing import Any

import numpy as np
import polars
import pytest
import scipy.io

from tests.support.log_files import motion

RUN = motion()
ARRAYS: dict[str, Any] = {"times": RUN.t, "positions": RUN.q, "velocities": RUN.v, "torques": RUN.torque}


def npz(arrays: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def mat(arrays: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    scipy.io.savemat(stream, arrays)
    return stream.getvalue()


def hdf5(arrays: dict[str, Any], matlab: bool = False) -> bytes:
    h5py = pytest.importorskip("h5py")
    stream = io.BytesIO()
    with h5py.File(stream, "w", userblock_size=512 if matlab else 0) as file:
        for name, array in arrays.items():
            # MATLAB's arrays lie column by column, so that readers by row see them transposed.
            file[name] = np.atleast_2d(np.asarray(array).T) if matlab else array
            if matlab:
                file[name].attrs["MATLAB_class"] = np.bytes_("double")
    raw = stream.getvalue()
    return b"MATLAB 7.3 MAT-file, Platform: test".ljust(128) + raw[128:] if matlab else raw


def records(arrays: dict[str, Any]) -> bytes:
    rows = zip(*(np.asarray(a).tolist() for a in arrays.values()), strict=True)
    return json.dumps([dict(zip(arrays, row, strict=True)) for row in rows]).encode()


def lists(arrays: dict[str, Any]) -> bytes:
    return json.dumps({"robot": "x", **{name: np.asarray(a).tolist() for name, a in arrays.items()}}).encode()


def parquet(arrays: dict[str, Any]) -> bytes:
    stream = io.BytesIO()
    polars.DataFrame({name: np.asarray(a) for name, a in arrays.items()}).write_parquet(stream)
    return stream.getvalue()


FORMATS: dict[str, tuple[str, Callable[[dict[str, Any]], bytes]]] = {
    "npz": (".npz", npz),
    "mat5": (".mat", mat),
    "mat73": (".mat", lambda a: hdf5(a, matlab=True)),
    "hdf5": (".h5", hdf5),
    "json records": (".json", records),
    "json lists": (".json", lists),
    "parquet": (".parquet", parquet),
}
