"""The architecture: a package imports only packages before it in the order of the house, lazy imports included."""

from __future__ import annotations

import ast
import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest

import dynid

ROOT = Path(dynid.__file__).parent
# From the ground up; a package may import those before it. `inertia`, `controllers` and `stats` list public names of
# the packages before them.
ORDER = [
    *("errors", "patterns", "files", "limits", "reading", "child", "markup", "quoting", "terminal"),
    *("saved", "attached", "results", "progress", "hypothesis", "threads", "plotting"),
    *("robot", "inertia", "dynamics", "parameters", "recording", "signals", "feasibility", "simulation", "controllers"),
    *("identification", "calibration", "online", "friction", "actuators", "fleet", "excitation", "residual"),
    *("assessment", "stats", "montecarlo", "human", "mocap", "export", "codegen"),
    *("report", "studio", "cli", "__main__", "studies"),
]
# Imports against the order, each with its reason.
ALLOWED = {
    ("cli", "studies"): "the commands reproduce and benchmark run what a checkout holds beside the package",
}


def modules() -> dict[str, Path]:
    """Every module of the package by its dotted name."""
    found = {}
    for path in ROOT.rglob("*.py"):
        parts = path.relative_to(ROOT.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


MODULES = modules()


def imported(path: Path) -> set[str]:
    """Parts of the house that a module imports anywhere: at the top, inside functions, or for types only."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module is not None and node.level == 0:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        for name in names:
            parts = name.split(".")
            if parts[0] == "studies":
                found.add("studies")
            elif parts[0] == "dynid" and len(parts) > 1:
                found.add(parts[1])
    return found


def test_every_part_has_its_place() -> None:
    parts = {p.stem for p in ROOT.iterdir() if (p.suffix == ".py" or (p / "__init__.py").exists())} - {"__init__"}
    assert parts == set(ORDER) - {"studies"}


@pytest.mark.parametrize("part", [p for p in ORDER if p != "studies"])
def test_a_part_imports_only_what_is_before_it(part: str) -> None:
    below = {part, "__version__", *ORDER[: ORDER.index(part)]}
    files = [p for n, p in MODULES.items() if n.split(".")[1:2] == [part]]
    assert files
    wrong = {
        f"{f.relative_to(ROOT)}: {name}" for f in files for name in imported(f) - below if (part, name) not in ALLOWED
    }
    assert not wrong


def test_exceptions_to_the_order_are_few_and_used() -> None:
    assert len(ALLOWED) <= 2
    for part, other in ALLOWED:
        assert any(other in imported(p) for n, p in MODULES.items() if n.split(".")[1:2] == [part])


def test_the_public_face_is_small() -> None:
    names = [n for n in dir(dynid) if not n.startswith("_")]
    assert len(names) <= 45
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
