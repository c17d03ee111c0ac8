"""dynid: from a robot description and its recorded motion to a dynamic model that can be trusted."""

import importlib
from typing import Any

import lazy_loader

__version__ = "0.1.0"

_listed, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
# Packages whose main names are above; reachable as attributes too, but not listed by dir().
_MORE = ("assessment", "fleet", "montecarlo", "online", "progress", "recording", "robot", "signals")


def __getattr__(name: str) -> Any:
    return importlib.import_module(f"{__name__}.{name}") if name in _MORE else _listed(name)
