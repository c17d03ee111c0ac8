"""Named arrays in files: NPZ, NPY, MATLAB, HDF5 and JSON."""

from __future__ import annotations

import io
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from dynid.child import read_in_child
from dynid.errors import DamagedFile, DataError, MissingData, Unsupported
from dynid.limits import exceeded, file_limits
from dynid.reading import check_archive, parse_json, within_ratio
from dynid.recording.files import check_package, damage, read_bytes, unpacked_file
from dynid.recording.matlab import MatlabError, read_matlab
from dynid.recording.reader import Reader
from dynid.recording.records import columns_of, flat
from dynid.recording.table import Table, Unusable

__all__ = [
    "HDF5",
    "JSON",
    "MAT",
    "NPY",
    "NPZ",
    "extract",
    "hdf5_arrays",
    "read_hdf5",
    "read_json",
    "read_mat",
    "read_npy",
    "read_npz",
]


# Arrays of HDF5 files, read in a child process: the library is written in C and follows what the file says.


def hdf5_arrays(path: Path) -> dict[str, Any]:
    """Arrays of a file by their paths inside it; None for one that is not numbers of at most two long dimensions."""
    check_package("h5py", "hdf5", "HDF5 files and MATLAB files of version 7.3")
    with tempfile.TemporaryDirectory(prefix="dynid-") as name, unpacked_file(path) as plain:
        folder = Path(name)
        try:
            found = read_in_child("dynid.recording.arrays:extract", plain, folder)
        except DataError as error:
            raise DamagedFile(str(error).replace(plain.name, path.name)) from None
        return {
            key: None if k is None else np.load(folder / f"{k}.npy", allow_pickle=False) for key, k in found.items()
        }


def extract(path: Path, folder: Path, _: Any) -> dict[str, int | None]:
    """Write the arrays of a file into a folder as 0.npy, 1.npy, ...; returns the number of each by its path."""
    import h5py

    size, total = path.stat().st_size, 0
    found: dict[str, int | None] = {}

    def visit(name: str, node: Any) -> None:
        nonlocal total
        if not isinstance(node, h5py.Dataset) or name.startswith("#") or node.attrs.get("MATLAB_class") == b"char":
            return
        if sum(n > 1 for n in node.shape or ()) > 2:
            return  # arrays of three and more dimensions, such as images, are not loaded
        if len(found) >= file_limits().columns:
            exceeded(path.name, f"more than {file_limits().columns} data sets", "columns")
        if node.shape is None or node.is_virtual or node.external or node.dtype.hasobject:
            found[name] = None  # empty, in other files, or texts and objects
            return
        total += node.size * node.dtype.itemsize
        within_ratio(path.name, total, size)
        np.save(folder / f"{len(found)}.npy", node[()], allow_pickle=False)
        found[name] = len(found)

    try:
        # Through a stream, so that the library opens no other file and locks none.
        with path.open("rb") as stream, h5py.File(stream, "r") as file:
            file.visititems(visit)
    except (DataError, MemoryError):
        raise
    except Exception as error:
        raise DamagedFile(f"{path.name} is not an HDF5 file or damaged: {damage(error)}") from None
    return found


_OBJECTS = Unusable("is an array of Python objects, which is not read: save plain numbers")
# First bytes of an HDF5 file.
_HDF5_MAGIC = b"\x89HDF\r\n\x1a\n"


def read_npz(path: Path) -> Table:
    """Table of the arrays of an NPZ file."""
    data: dict[str, Any] = {}
    raw = read_bytes(path)
    try:
        check_archive(io.BytesIO(raw), path.name)
        with np.load(io.BytesIO(raw), allow_pickle=False) as archive:
            for name in archive.files:
                _add_array(data, name, _member(archive, name))
    except DataError:
        raise
    except Exception as error:  # readers raise errors of many types on damaged files
        raise DamagedFile(f"{path.name} is not an NPZ file or damaged: {damage(error)}") from None
    return _table(path, data)


NPZ = Reader(
    name="npz",
    title="NPZ files",
    sentence="Arrays by their names; nothing is unpickled.",
    endings=(".npz",),
    function=read_npz,
    compressed=True,
)


def _member(archive: Any, name: str) -> Any:
    """One array of an NPZ file; arrays of Python objects are never unpickled."""
    try:
        return archive[name]
    except ValueError as error:
        if "allow_pickle" in str(error):
            return _OBJECTS
        raise


def read_npy(path: Path) -> Table:
    """Table of a single array (N, width) whose columns have no names."""
    try:
        array = np.load(io.BytesIO(read_bytes(path)), allow_pickle=False)
    except Exception as error:
        raise DamagedFile(f"{path.name} is not an NPY file of numbers or damaged: {damage(error)}") from None
    if array.dtype.names:
        return _table(path, {name: array[name] for name in array.dtype.names})
    data: dict[str, Any] = {}
    _add_array(data, "array", array)
    if "array" not in data:
        raise MissingData(f"{path.name} contains no table of numbers: its array has shape {array.shape}")
    array = data["array"].reshape(len(data["array"]), -1)
    return Table(path.name, {str(k): array[:, k] for k in range(array.shape[1])}, header=False)


NPY = Reader(
    name="npy",
    title="NPY files",
    sentence="One array, whose columns have no names; nothing is unpickled.",
    endings=(".npy",),
    function=read_npy,
    compressed=True,
)


def read_mat(path: Path) -> Table:
    """Table of the arrays of a MATLAB file of any version; fields of structs have dotted names."""
    raw = read_bytes(path)
    if raw[:4] == b"MATL" and _HDF5_MAGIC in raw[:1024]:
        return _table(path, _of_hdf5(path, matlab=True))
    try:
        content = read_matlab(raw, path.name)
    except MatlabError as error:
        raise DamagedFile(f"{path.name} is not a MATLAB file or damaged: {damage(error)}") from None
    data: dict[str, Any] = {}
    for name, value in flat(content).items():
        _add_array(data, name, value)
    return _table(path, data)


MAT = Reader(
    name="mat",
    title="MATLAB files",
    sentence="All versions; fields of structs have dotted names, and version 7.3 is HDF5.",
    endings=(".mat",),
    function=read_mat,
    compressed=True,
)


def read_hdf5(path: Path) -> Table:
    """Table of the data sets of an HDF5 file; names are paths inside the file, without the leading slash."""
    return _table(path, _of_hdf5(path, matlab=False))


HDF5 = Reader(
    name="hdf5",
    title="HDF5 files",
    sentence="Names are paths inside the file.",
    endings=(".h5", ".hdf5"),
    function=read_hdf5,
    compressed=True,
    extra="hdf5",
)


def _of_hdf5(path: Path, matlab: bool) -> dict[str, Any]:
    """Arrays of an HDF5 file, or of a MATLAB file of version 7.3, by their names."""
    data: dict[str, Any] = {}
    for name, array in hdf5_arrays(path).items():
        if array is None:
            data[name] = _OBJECTS
        else:
            # MATLAB stores arrays column by column, so they appear transposed.
            _add_array(data, name.replace("/", ".") if matlab else name, array.T if matlab else array)
    return data


def read_json(path: Path) -> Table:
    """Table of a JSON file: a list of records, an object that contains one such list, or an object of lists."""
    try:
        return _of_json(path, parse_json(read_bytes(path)))
    except (ValueError, RecursionError, OverflowError) as error:
        raise DamagedFile(f"{path.name} is not a JSON file or damaged: {damage(error)}") from None


JSON = Reader(
    name="json",
    title="JSON files",
    sentence="A list of records, an object that contains one, or an object of lists.",
    endings=(".json",),
    function=read_json,
    compressed=True,
)


def _of_json(path: Path, content: Any) -> Table:
    if isinstance(content, Mapping):
        lists = [k for k, v in content.items() if _is_records(v)]
        if len(lists) > 1:
            raise Unsupported(f"{path.name} contains several lists of records: {', '.join(lists)}")
        content = content[lists[0]] if lists else content
    if _is_records(content):
        return _table(path, columns_of([flat(record) for record in content]))
    data: dict[str, Any] = {}
    if isinstance(content, Mapping):
        for name, value in flat(content).items():
            if isinstance(value, list):
                data |= columns_of([{name: x} for x in value])
    return _table(path, data)


def _is_records(value: Any) -> bool:
    """Whether a value is a list of JSON objects."""
    return isinstance(value, list) and bool(value) and all(isinstance(x, Mapping) for x in value)


def _add_array(data: dict[str, Any], name: str, value: Any) -> None:
    """Keep an array of one or two dimensions as columns; scalars and texts are left out."""
    if isinstance(value, Unusable):
        data[name] = value
        return
    try:
        array = np.asarray(value)
    except ValueError:  # lists of different lengths
        data[name] = _OBJECTS
        return
    if array.dtype.names:
        for part in array.dtype.names:
            _add_array(data, f"{name}.{part}", array[part])
        return
    if array.dtype.kind == "O":
        data[name] = _OBJECTS
    if array.dtype.kind not in "biuf":
        return
    if array.ndim > 2 or (array.ndim == 2 and 1 in array.shape):
        array = np.squeeze(array)
    if array.ndim == 2 and array.shape[0] < array.shape[1]:
        array = array.T  # one row per joint: a recording has more samples than joints
    if array.ndim in (1, 2) and array.size:
        data[name] = array


def _table(path: Path, data: dict[str, Any]) -> Table:
    """The table of these arrays, of which there must be some."""
    if not data:
        raise MissingData(f"{path.name} contains no arrays of numbers")
    return Table(path.name, data)
