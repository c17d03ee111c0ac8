"""Arrays of HDF5 files, read in a child process: the library is written in C and follows what the file says."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from dynid.child import read_in_child
from dynid.errors import DamagedFile, DataError
from dynid.limits import exceeded, file_limits
from dynid.reading import within_ratio
from dynid.recording.files import check_package, damage, unpacked_file

__all__ = ["extract", "hdf5_arrays"]


def hdf5_arrays(path: Path) -> dict[str, Any]:
    """Arrays of a file by their paths inside it; None for one that is not numbers of at most two long dimensions."""
    check_package("h5py", "hdf5", "HDF5 files and MATLAB files of version 7.3")
    with tempfile.TemporaryDirectory(prefix="dynid-") as name, unpacked_file(path) as plain:
        folder = Path(name)
        try:
            found = read_in_child("dynid.recording.hdf5:extract", plain, folder)
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
