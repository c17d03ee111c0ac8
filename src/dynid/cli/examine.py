"""The installation: versions, compilers, caches, data, and what is missing for which part."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Examination", "Line", "examine"]

# Packages that are always required, and those of each extra.
CORE = ("numpy", "scipy", "numba", "pin", "clarabel", "polars", "pydantic", "statsmodels", "typer", "rich", "jinja2")
EXTRAS = {
    "mujoco": ("mujoco",),
    "usd": ("usd-core",),
    "ros": ("rosbags", "mcap"),
    "hdf5": ("h5py",),
    "cvx": ("cvxpy", "scs"),
    "symbolic": ("sympy", "casadi"),
    "studio": ("nicegui",),
    "gp": ("torch", "gpytorch"),
    "torch": ("torch",),
    "gpu": ("torch",),
    "jax": ("jax",),
    "cluster": ("dask", "distributed"),
}


@dataclass(frozen=True)
class Line:
    """One item: its state, whether that is sufficient, and what to do if not."""

    topic: str
    name: str
    state: str
    ok: bool = True
    needed: bool = True
    advice: str = ""


@dataclass(frozen=True)
class Examination:
    """All items."""

    lines: tuple[Line, ...]

    @property
    def healthy(self) -> bool:
        """Whether no required item is missing."""
        return all(line.ok for line in self.lines if line.needed)

    def to_dict(self) -> dict[str, Any]:
        """All items as plain data."""
        return {"healthy": self.healthy, "lines": [asdict(line) for line in self.lines]}


def examine() -> Examination:
    """Examine the installation; nothing is changed and nothing heavy is imported."""
    return Examination((*_computer(), *_packages(), *_compilers(), *_cache(), *_data()))


def _computer() -> list[Line]:
    new_enough = sys.version_info >= (3, 11)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return [
        Line(
            "computer",
            "python",
            platform.python_version(),
            new_enough,
            advice="" if new_enough else "use 3.11 or newer",
        ),
        Line("computer", "system", f"{platform.system()} {platform.uname()[4]}, {cores} cores"),
    ]


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _packages() -> list[Line]:
    out = [Line("package", "dynid", _version("dynid") or "not installed, run from its sources")]
    for name in CORE:
        found = _version(name)
        out.append(
            Line("package", name, found or "missing", found is not None, advice="" if found else "pip install dynid")
        )
    for extra, names in EXTRAS.items():
        missing = [n for n in names if _version(n) is None]
        state = ", ".join(f"{n} {_version(n)}" for n in names) if not missing else f"without {', '.join(missing)}"
        advice = f"pip install 'dynid[{extra}]'" if missing else ""
        out.append(Line("extra", extra, state, not missing, needed=False, advice=advice))
    return out


def _compilers() -> list[Line]:
    name = next((c for c in ("cc", "gcc", "clang") if shutil.which(c)), None)
    if name is None:
        advice = "generated C is still written; a compiler is needed only to check it here"
        return [Line("compiler", "C", "none found", False, needed=False, advice=advice)]
    done = subprocess.run([name, "--version"], capture_output=True, text=True, check=False)
    return [Line("compiler", "C", (done.stdout or name).splitlines()[0], needed=False)]


def _cache() -> list[Line]:
    """Compiled kernels are kept beside their sources, or in NUMBA_CACHE_DIR."""
    from dynid.dynamics.kernels import CACHE_SUFFIXES

    given = os.environ.get("NUMBA_CACHE_DIR")
    folder = Path(given) if given else Path(__file__).parents[1] / "dynamics" / "kernels" / "__pycache__"
    kept = len(list(folder.rglob(f"*{CACHE_SUFFIXES[0]}"))) if folder.is_dir() else 0
    try:
        place = folder if folder.is_dir() else next(p for p in folder.parents if p.is_dir())
        with tempfile.TemporaryFile(dir=place):
            writable = True
    except OSError:
        writable = False
    state = f"{kept} compiled kernels in {folder}" if writable else f"{folder} cannot be written"
    advice = "" if writable else "set NUMBA_CACHE_DIR to a folder of your own, or every start compiles again"
    return [Line("cache", "kernels", state, writable, needed=False, advice=advice)]


def _data() -> list[Line]:
    """Real recordings, which the studies and some tests read: DYNID_DATA, or shared/data beside a checkout."""
    given = os.environ.get("DYNID_DATA")
    folder = Path(given) if given else Path(__file__).parents[4] / "shared" / "data"
    if folder.is_dir():
        return [Line("data", "real recordings", str(folder), needed=False)]
    advice = "only studies on real robots need them; set DYNID_DATA to their folder"
    return [Line("data", "real recordings", "none", False, needed=False, advice=advice)]
