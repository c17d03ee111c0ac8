"""The one folder that the page reads and writes."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path

from dynid.errors import InvalidValue, MissingData, MissingFile, NotApplicable, TooLarge
from dynid.files import on_disk, writing

__all__ = ["UPLOAD_LIMIT", "Workspace"]

# Bytes of one upload: an hour of a 7-joint robot at 1 kHz as text is about 500 MB.
UPLOAD_LIMIT = 512 * 2**20
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,119}")
ROBOT_FILES = (".urdf", ".xml", ".mjcf", ".sdf", ".toml")


@dataclass(frozen=True)
class Workspace:
    """Files by plain name within `folder`; no name leads out of it. `arriving` has uploads that are not complete."""

    folder: Path
    arriving: set[str] = field(default_factory=set, compare=False)

    def path(self, name: str) -> Path:
        """Where a file of this name lies; refuses anything that is not a plain name or leads elsewhere by a link."""
        if not _NAME.fullmatch(name) or ".." in name:
            raise InvalidValue(f"'{name[:60]}' is no plain file name: letters, digits, blanks and . _ + - only", "name")
        path = self.folder / name
        if path.resolve().parent != self.folder.resolve():
            raise InvalidValue(f"'{name}' leads out of the workspace", "name")
        return path

    def existing(self, name: str) -> Path:
        path = self.path(name)
        if not path.is_file():
            raise MissingFile(f"the workspace has no file '{name}'", "name")
        return path

    def write(self, name: str, content: bytes) -> Path:
        """Write a file, whole or not at all."""
        path = self._new(name, len(content))
        with writing(path) as part:
            part.write_bytes(content)
        return path

    async def keep(self, name: str, size: int, save: Callable[[Path], Awaitable[None]]) -> Path:
        """Keep an upload of `size` bytes, which `save` writes to a path, whole or not at all."""
        path = self._new(name, size)
        if name in self.arriving:
            raise NotApplicable(f"'{name}' is being uploaded from another page: try again when it is there", "name")
        self.arriving.add(name)
        try:
            with writing(path) as part:
                await save(part)
                await asyncio.to_thread(on_disk, part)  # the page goes on meanwhile
        finally:
            self.arriving.discard(name)
        return path

    def _new(self, name: str, size: int) -> Path:
        """The path of a file that is about to be written; refuses empty files and those that are too large."""
        if not size:
            raise MissingData(f"'{name[:60]}' is empty")
        if size > UPLOAD_LIMIT:
            raise TooLarge(f"'{name[:60]}' has {size / 2**20:.0f} MB, uploads may have {UPLOAD_LIMIT >> 20}")
        return self.path(name)

    def taken(self, name: str) -> bool:
        """Whether a file has this name, or will have it."""
        return self.path(name).exists() or name in self.arriving

    def free_name(self, name: str) -> str:
        """This name, or the first of "run-2.csv", "run-3.csv", ... that no file has."""
        free, number = name, 2
        while self.taken(free):
            free = f"{Path(name).stem}-{number}{Path(name).suffix}"
            number += 1
        return free

    def names(self, suffixes: tuple[str, ...] | None = None) -> list[str]:
        """Files in it, newest first."""
        found = [p for p in self.folder.iterdir() if p.is_file() and not p.name.startswith(".")]
        kept = [p for p in found if suffixes is None or p.suffix.lower() in suffixes]
        return [p.name for p in sorted(kept, key=lambda p: p.stat().st_mtime, reverse=True)]
