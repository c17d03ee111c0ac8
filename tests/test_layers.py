"""The architecture: what a part of the house imports, lazily and for types too, and no circles between files."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.sparse.csgraph import connected_components

import dynid

ROOT = Path(dynid.__file__).parent
# From the ground up; a part imports only parts before it. `inertia`, `controllers` and `stats` list public names of the
# packages before them.
BASE = [
    *("errors", "base", "patterns", "files", "limits", "reading", "child", "markup", "quoting", "terminal"),
    *("saved", "attached", "results", "progress", "hypothesis", "threads", "plotting"),
]
CORE = [
    *BASE,
    *("robot", "inertia", "dynamics", "parameters", "recording", "signals", "feasibility", "simulation", "controllers"),
    *("identification", "excitation", "assessment", "stats", "export"),
]
# Each field with its packages in this order; a field imports the core and itself.
FIELDS = {
    "actuators": ("actuators",),
    "calibration": ("calibration",),
    "codegen": ("codegen",),
    "fleet": ("online", "fleet", "montecarlo"),
    "flexible": ("flexible",),
    "friction": ("friction",),
    "geometry": ("geometry",),
    "human": ("human", "mocap"),
    "legs": ("legs",),
    "residual": ("residual",),
    "report": ("report",),
    "studio": ("studio",),
}
# The command line imports fields inside functions only, so that it starts fast.
TOP = ["cli", "__main__"]
ORDER = [*CORE, *(part for parts in FIELDS.values() for part in parts), *TOP, "studies"]
FIELD_OF = {part: field for field, parts in FIELDS.items() for part in parts}
# Imports against the order, and of a field by another, each with its reason.
ALLOWED = {
    ("cli", "studies"): "the commands reproduce and benchmark run what a checkout holds beside the package",
    ("report", "actuators"): "the page of identified actuators shows their verdict and values",
    ("report", "calibration"): "the pages of payloads and drive gains show their verdicts and values",
    ("report", "fleet"): "the page of a fleet shows the verdicts on its units",
    ("report", "friction"): "the pages of friction show measured friction and its laws",
    ("report", "geometry"): "the page of a geometric calibration shows its errors, values and verdict",
    ("studio", "actuators"): "the step of actuators offers their unknowns",
    ("studio", "report"): "charts and bodies are drawn as on the page",
}


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported_names(tree: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Every import of a tree with what it names, module and name joined: at the top, in functions, or for types."""
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            yield from ((node, f"{node.module}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)


def part_of(name: str) -> str | None:
    """The part of the house that an imported name belongs to."""
    parts = name.split(".")
    if parts[0] == "studies":
        return "studies"
    return parts[1] if parts[0] == "dynid" and len(parts) > 1 else None


def imported(path: Path) -> set[str]:
    """Parts of the house that a module imports anywhere."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {part for _, name in imported_names(tree) if (part := part_of(name)) is not None}


def files_of(part: str) -> list[Path]:
    """The modules of a part."""
    return [p for n, p in MODULES.items() if n.split(".")[1:2] == [part]]


def test_every_part_has_its_place() -> None:
    parts = {p.stem for p in ROOT.iterdir() if (p.suffix == ".py" or (p / "__init__.py").exists())} - {"__init__"}
    assert parts == set(ORDER) - {"studies"}


@pytest.mark.parametrize("part", [p for p in ORDER if p != "studies"])
def test_a_part_imports_only_what_is_before_it(part: str) -> None:
    before = ORDER[: ORDER.index(part)]
    if part in FIELD_OF:
        before = [x for x in before if FIELD_OF.get(x) in (None, FIELD_OF[part])]
    below = {part, "__version__", *before}
    files = files_of(part)
    assert files
    wrong = {
        f"{f.relative_to(ROOT)}: {name}" for f in files for name in imported(f) - below if (part, name) not in ALLOWED
    }
    assert not wrong


def test_the_command_line_imports_fields_inside_functions() -> None:
    wrong = []
    for path in (p for part in TOP for p in files_of(part)):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        at_the_top = ast.Module([x for x in tree.body if isinstance(x, ast.Import | ast.ImportFrom)], [])
        wrong += [f"{path.name}: {name}" for _, name in imported_names(at_the_top) if part_of(name) in FIELD_OF]
    assert not wrong


def test_exceptions_to_the_order_are_few_and_used() -> None:
    assert len(ALLOWED) <= 8
    for part, other in ALLOWED:
        assert any(other in imported(p) for p in files_of(part))


def circles(graph: dict[str, set[str]]) -> set[tuple[str, ...]]:
    """Groups of nodes each of which leads to every other of its group."""
    number = {name: k for k, name in enumerate(graph)}
    edges = [(number[a], number[b]) for a, ends in graph.items() for b in ends]
    rows, columns = zip(*edges, strict=True)
    matrix = csr_array((np.ones(len(edges)), (rows, columns)), shape=(len(graph), len(graph)))
    groups: dict[int, list[str]] = {}
    for name, label in zip(graph, connected_components(matrix, connection="strong")[1], strict=True):
        groups.setdefault(int(label), []).append(name)
    return {tuple(sorted(group)) for group in groups.values() if len(group) > 1}


def test_circles_are_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == {("b", "c")}


def test_there_are_no_circles_of_imports_between_files() -> None:
    """Imports in functions and for types count: a file can be read, and replaced, without those that use it."""
    graph: dict[str, set[str]] = {}
    for module, path in MODULES.items():
        named = {name for _, name in imported_names(ast.parse(path.read_text(encoding="utf-8")))}
        graph[module] = {name if name in MODULES else name.rpartition(".")[0] for name in named} & set(MODULES)
        graph[module] -= {module, "dynid"}
    assert circles(graph) == set()


def test_the_public_face_is_small() -> None:
    names = [n for n in dir(dynid) if not n.startswith("_")]
    assert len(names) <= 48
    assert all(getattr(dynid, name) is not None for name in names)
    assert sum(not isinstance(getattr(dynid, name), ModuleType) for name in names) <= 30


def test_every_module_can_be_imported_under_another_name() -> None:
    """`import dynid.x.y as z` gives the module, never a function of the same name that the package exports."""
    optional = {"torch", "gpytorch", "casadi", "sympy", "nicegui"}
    for found in pkgutil.walk_packages(dynid.__path__, "dynid."):
        if found.name.endswith("__main__"):
            continue
        space: dict[str, object] = {}
        try:
            exec(f"import {found.name} as z", space)
        except ModuleNotFoundError as error:
            assert error.name in optional, error
            continue
        assert isinstance(space["z"], ModuleType) and space["z"].__name__ == found.name


def test_no_package_has_the_name_of_a_public_function() -> None:
    for name in dynid.__all__:
        what = getattr(dynid, name)
        assert isinstance(what, ModuleType) or importlib.util.find_spec(f"dynid.{name}") is None
