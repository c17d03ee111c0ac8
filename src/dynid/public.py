"""Public names that are loaded when they are first asked for."""

from __future__ import annotations

import ast
import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

__all__ = ["load_when_asked"]


def load_when_asked(package: str, file: str) -> None:
    """Give a package the names that its `if TYPE_CHECKING:` block imports.

    That block stays the one list of them, for people and type checkers alike. A name may be that of a subpackage too
    (`dynid.identify` is a function and a folder): names are properties of the package's class, which come before what
    an import of the folder leaves in the package.
    """
    names = {name: _Name(home, name) for name, home in _listed(Path(file)).items()}
    members: dict[str, Any] = {**names, "__dir__": lambda self: sorted({*ModuleType.__dir__(self), *names})}
    sys.modules[package].__class__ = type("Package", (ModuleType,), members)


class _Name:
    """One public name: found once, kept, and never replaced by a folder of the same name."""

    def __init__(self, home: str, name: str) -> None:
        self.home, self.name = home, name
        self.found: Any = None

    def __get__(self, package: ModuleType | None, kind: type) -> Any:
        if self.found is None:
            home = importlib.import_module(self.home)
            # A public module is imported as such.
            self.found = getattr(home, self.name, None) or importlib.import_module(f"{self.home}.{self.name}")
        return self.found

    def __set__(self, package: ModuleType, value: Any) -> None:
        # What tests put in its place counts; a folder that an import hangs in here does not.
        if not (isinstance(value, ModuleType) and value.__name__ == f"{package.__name__}.{self.name}"):
            self.found = value


def _listed(file: Path) -> dict[str, str]:
    """Names and the modules they come from, read from the source."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    (block,) = (x for x in tree.body if isinstance(x, ast.If) and ast.unparse(x.test) == "TYPE_CHECKING")
    found: dict[str, str] = {}
    for line in block.body:
        assert isinstance(line, ast.ImportFrom) and line.module is not None
        found |= {alias.name: line.module for alias in line.names}
    return found
