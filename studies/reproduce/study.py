"""Common parts of all reproductions: figures, studies, published values and the folder of real recordings."""

from __future__ import annotations

import json
import os
import sys
import time
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike

from dynid.errors import DataError
from dynid.progress import Progress

__all__ = [
    "Figure",
    "Study",
    "data_folder",
    "finished_rows",
    "has_data",
    "kept_figures",
    "number",
    "numbers",
    "published",
    "rows_file",
]


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

    `run` may take some of three options: `full` for a longer form with more runs, `half` for one half of the cases, and
    `folder` to keep what is finished and to continue there. `needs_data`: it reads real recordings.
    """

    name: str
    title: str
    run: Callable[..., Iterator[Figure]]
    needs_data: bool = False

    def takes(self, option: str) -> bool:
        """Whether the study has an option: full, half or folder."""
        return option in signature(self.run).parameters

    def figures(self, **options: object) -> Iterator[Figure]:
        """All figures; options that the study does not have are left out."""
        return self.run(**{name: value for name, value in options.items() if self.takes(name)})


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
    """Row `work(*arguments)` of every named task; rows are kept as lines of JSON in `path`, and not made again.

    A name says all that its row depends on: tasks of the short and of the full form have the same only for the same
    work.
    """
    kept = _Rows(what, tasks, path)
    jobs = (delayed(_named)(name, work, tasks[name]) for name in kept.missing)
    for row in Parallel(n_jobs=workers, return_as="generator_unordered")(jobs):
        kept.add(row)
    return [kept.done[name] for name in tasks]


def kept_figures(
    study: str, sections: Mapping[str, Callable[[], Iterable[Figure]]], folder: Path | None
) -> Iterator[Figure]:
    """Figures of all named sections; those of finished sections are kept in `folder`, and not computed again.

    A name says all that its figures depend on, as of `finished_rows`.
    """
    kept = _Rows(study, sections, rows_file(study, folder))
    for name, section in sections.items():
        if name not in kept.done:
            kept.add({"name": name, "figures": [vars(figure) for figure in section()]})
        yield from (Figure(**values) for values in kept.done[name]["figures"])


def rows_file(study: str, folder: Path | None) -> Path | None:
    """The file of a folder in which a study keeps its rows."""
    return None if folder is None else folder / f"{study}.jsonl"


class _Rows:
    """Rows by name, with a file in which they are kept, if there is one."""

    def __init__(self, what: str, names: Iterable[str], path: Path | None) -> None:
        self._what, self._path, self._started = what, path, time.perf_counter()
        self.done = {} if path is None else _read(path)
        self.missing = [name for name in names if name not in self.done]
        self._count = 0

    def add(self, row: dict[str, Any]) -> None:
        """Keep a row, as it will be read again, and show how far the study is."""
        line = json.dumps(row)
        self.done[row["name"]] = json.loads(line)
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with self._path.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        self._count += 1
        count, total = self._count, len(self.missing)
        left = (time.perf_counter() - self._started) * (total / count - 1)
        print(f"dynid: {Progress(f'{self._what}: {count}/{total}', count / total, left)}", file=sys.stderr)


def _read(path: Path) -> dict[str, dict[str, Any]]:
    """Rows of a file by name; a last line whose writing was interrupted is cut off."""
    if not path.is_file():
        return {}
    data = path.read_bytes()
    end = data.rfind(b"\n") + 1
    if end < len(data):
        os.truncate(path, end)
    try:
        return {row["name"]: row for row in map(json.loads, data[:end].splitlines())}
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"'{path}' does not hold finished parts of a study; give another folder") from error


def _named(name: str, work: Callable[..., dict[str, Any]], arguments: tuple[Any, ...]) -> dict[str, Any]:
    return {"name": name, **work(*arguments)}
