"""dynid.toml of the workspace: the page changes one section at a time and leaves the text of the others as it is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynid.errors import DamagedFile, InvalidType, Unsupported
from dynid.quoting import toml_value
from dynid.studio.workspace import Workspace

__all__ = ["PROJECT_FILE", "ProjectFile"]

PROJECT_FILE = "dynid.toml"
_HEAD = "# Project file of dynid; paths are relative to this file. Options of commands override it.\n"
_TABLE = re.compile(r"\s*\[\[?\s*([A-Za-z0-9_-]+)\s*(?:\.[^\]]*)?\]\]?\s*(?:#.*)?")


@dataclass(frozen=True)
class ProjectFile:
    """The project file of a workspace, which the commands read as well."""

    workspace: Workspace

    def section(self, name: str) -> dict[str, Any]:
        """The values of a section, empty where the file does not have it."""
        found = self._content(self._text()).get(name, {})
        if not isinstance(found, dict):
            raise InvalidType(f"{PROJECT_FILE}: {name} must be a section [{name}]")
        return found

    def put(self, name: str, values: Mapping[str, Any]) -> None:
        """Write a section in place of the old one; values that are None are left out."""
        text = self._text()
        before = self._content(text)
        kept = {key: value for key, value in values.items() if value is not None}
        lines = [f"[{name}]", *(f"{key} = {toml_value(value)}" for key, value in kept.items())]
        changed = _with_section(text or _HEAD, name, "\n".join(lines) + "\n")
        try:
            same = tomllib.loads(changed) == before | {name: kept}
        except tomllib.TOMLDecodeError:
            same = False
        if not same:
            raise Unsupported(f"the section [{name}] of {PROJECT_FILE} cannot be changed here: edit the file")
        self.workspace.write(PROJECT_FILE, changed.encode())

    def _text(self) -> str:
        path = self.workspace.path(PROJECT_FILE)
        try:
            return path.read_text(encoding="utf-8") if path.is_file() else ""
        except UnicodeDecodeError:
            raise DamagedFile(f"{PROJECT_FILE} is not a text file") from None

    def _content(self, text: str) -> dict[str, Any]:
        try:
            return tomllib.loads(text)
        except tomllib.TOMLDecodeError as error:
            raise DamagedFile(f"{PROJECT_FILE} is not TOML: {error}") from None


def _with_section(text: str, name: str, section: str) -> str:
    """The text with a section and its sub-tables replaced, or added at the end."""
    kept: list[str] = []
    place, inside = None, False
    for line in text.splitlines(keepends=True):
        head = _TABLE.fullmatch(line.rstrip("\n"))
        if head is not None:
            inside = head[1] == name
            if inside and place is None:
                place = len(kept)
        if not inside:
            kept.append(line)
    if place is None:
        return "".join(kept).rstrip("\n") + "\n\n" + section
    after = "".join(kept[place:])
    return "".join(kept[:place]) + section + ("\n" + after if after.strip() else "")
