"""Common parts of all reproductions: figures, studies, published values and the folder of real recordings."""

from __future__ import annotations

import json
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike

from dynid.errors import DataError
from dynid.progress import Progress

__all__ = ["Figure", "Study", "data_folder", "finished_rows", "has_data", "number", "numbers", "published"]


@dataclass(frozen=True)
class Figure:
    """A published figure, ours, their difference, and the tolerance with its reason."""

    section: str
    name: str
    published: str
    ours: str
    difference: float
    tolerance: float
    reason: str

    def __post_init__(self) -> None:
        for name in ("difference", "tolerance"):  # numbers of NumPy are not written as JSON
            object.__setattr__(self, name, float(getattr(self, name)))

    @property
    def ok(self) -> bool:
        return bool(self.difference <= self.tolerance)


@dataclass(frozen=True)
class Study:
    """A named set of figures from one source or on one subject.

    `needs_data`: it reads real recordings. `full`: a longer form with more runs, if there is one. `cases`: of a study
    over many cases, the figures of the longer form or not, of one half or both, with a folder for finished cases.
    """

    name: str
    title: str
    run: Callable[[], Iterator[Figure]]
    needs_data: bool = False
    full: Callable[[], Iterator[Figure]] | None = None
    cases: Callable[[bool, str | None, Path | None], Iterator[Figure]] | None = None


def _folder() -> Path:
    given = os.environ.get("DYNID_DATA")
    return Path(given) if given else Path(__file__).parents[3] / "shared" / "data"


def has_data() -> bool:
    """Whether the folder of real recordings exists."""
    return _folder().is_dir()


def data_folder() -> Path:
    """Folder of the real recordings: DYNID_DATA, or shared/data beside the repository."""
    folder = _folder()
    if not has_data():
        raise DataError(f"the real recordings were not found: no folder '{folder}'; set DYNID_DATA to their folder")
    return folder


def published(name: str) -> dict[str, Any]:
    """The published values of data/NAME.toml."""
    text = (resources.files("studies.reproduce") / "data" / f"{name}.toml").read_text(encoding="utf-8")
    return tomllib.loads(text)


def number(section: str, name: str, expected: float, ours: float, tolerance: float, reason: str) -> Figure:
    """A figure that is one number; the tolerance is absolute."""
    return Figure(section, name, f"{expected:.7g}", f"{ours:.7g}", abs(float(ours) - expected), tolerance, reason)


def numbers(
    section: str, name: str, expected: ArrayLike, ours: ArrayLike, tolerance: float, reason: str
) -> Iterator[Figure]:
    """One figure per entry of a vector."""
    for i, (e, o) in enumerate(zip(np.ravel(expected), np.ravel(ours), strict=True), start=1):
        yield number(section, f"{name} [{i}]", float(e), float(o), tolerance, reason)


def finished_rows(
    what: str,
    work: Callable[..., dict[str, Any]],
    tasks: Mapping[str, tuple[Any, ...]],
    path: Path | None,
    workers: int,
) -> list[dict[str, Any]]:
    """Row `work(*arguments)` of every named task; rows are kept as lines of JSON in `path`, and not made again."""
    lines = path.read_text(encoding="utf-8").splitlines() if path is not None and path.is_file() else []
    done = {row["name"]: row for row in map(json.loads, lines)}
    missing, started = [name for name in tasks if name not in done], time.perf_counter()
    jobs = (delayed(_named)(name, work, tasks[name]) for name in missing)
    for count, row in enumerate(Parallel(n_jobs=workers, return_as="generator_unordered")(jobs), start=1):
        done[row["name"]] = row
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
        left = (time.perf_counter() - started) * (len(missing) / count - 1)
        print(f"dynid: {Progress(f'{what}: {count}/{len(missing)}', count / len(missing), left)}", file=sys.stderr)
    return [done[name] for name in tasks]


def _named(name: str, work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> dict[str, Any]:
    return {"name": name, **work(*arguments)}
