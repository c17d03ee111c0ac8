"""The public names of the package, which the stubs (`__init__.pyi`) list, and a look for a name by its text."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import dynid

_ROOT = Path(dynid.__file__).parent


def _public_modules() -> list[str]:
    """Packages that have a stub, and the modules that stubs export."""
    stubs = [p.parent.relative_to(_ROOT.parent).parts for p in _ROOT.rglob("__init__.pyi")]
    found = {".".join(parts) for parts in stubs}
    for name in list(found):
        members = importlib.import_module(name)
        found |= {f"{name}.{m}" for m in members.__all__ if isinstance(getattr(members, m), ModuleType)}
    return sorted(found)


PUBLIC_MODULES = _public_modules()


def public_names() -> Iterator[tuple[str, str, object]]:
    """Module, name and object of every public function, class and alias; re-exported names come twice."""
    for module in PUBLIC_MODULES:
        members = importlib.import_module(module)
        for name in members.__all__:
            what = getattr(members, name)
            if not isinstance(what, ModuleType):
                yield module, name, what


def exists(name: str) -> bool:
    """Whether a dotted name leads to a module, a public object, an attribute or a field."""
    what: object = dynid
    parts = name.split(".")[1:]
    for i, part in enumerate(parts):
        if hasattr(what, part):
            what = getattr(what, part)
        elif part in getattr(what, "__dataclass_fields__", {}):
            return i == len(parts) - 1
        else:
            try:
                what = importlib.import_module(".".join(["dynid", *parts[: i + 1]]))
            except ModuleNotFoundError:
                return False
    return True
