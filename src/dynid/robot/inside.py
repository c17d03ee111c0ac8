"""Files that a robot file refers to: inside its folder, or in folders that the user allows."""

from __future__ import annotations

import os
from pathlib import Path

from dynid.errors import ModelError
from dynid.reading import check_regular

__all__ = ["FOLDERS", "check_inside", "is_inside"]

# Environment variable with further folders that may be read, separated as in PATH.
FOLDERS = "DYNID_MODEL_FOLDERS"


def is_inside(path: Path, file: Path, above: int = 1) -> bool:
    """Whether a path lies in the folder of a robot file, up to `above` folders higher, or in an allowed folder.

    Meshes often lie beside the folder of the robot file (../meshes). Links of the file system are not followed: what
    somebody has linked into the folder may be read.
    """
    at, folder = Path(os.path.normpath(path.absolute())), Path(os.path.normpath(file.absolute())).parent
    roots = [folder if not above or folder == folder.parent else folder.parents[above - 1]]
    roots += [Path(x).absolute() for x in os.environ.get(FOLDERS, "").split(os.pathsep) if x]
    return any(at.is_relative_to(root) for root in roots)


def check_inside(named: str, path: Path, file: Path, above: int = 1) -> None:
    """Refuse a file that lies elsewhere, or that exists and is a device, a pipe or a folder."""
    if "\0" in named:
        raise ModelError(f"{file.name}: the name of a file contains a NUL", code="invalid_value")
    if not is_inside(path, file, above):
        raise ModelError(
            f"{file.name} refers to '{named}', which is outside its folder and is not read: name the folder of that "
            f"file in the environment variable {FOLDERS} to allow it",
            code="unsupported",
        )
    try:
        check_regular(path)
    except FileNotFoundError:
        return  # whoever needs it says that it is missing
    except OSError as error:
        raise ModelError(
            f"{file.name} refers to '{named}', which cannot be read: {error.strerror}", code="file_missing"
        ) from None
