"""Public names are there when asked for, and not before."""

from __future__ import annotations

import ast
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

import dynid

ROOT = Path(dynid.__file__).parent
STUBS = sorted(ROOT.rglob("__init__.pyi"))


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize("stub", STUBS, ids=lambda p: p.parent.name)
def test_every_name_of_a_stub_is_there(stub: Path) -> None:
    """What type checkers are told is what a package gives."""
    package = ".".join(stub.parent.relative_to(Path(dynid.__file__).parents[1]).parts)
    module = __import__(package, fromlist=["*"])
    lines = [x for x in ast.parse(stub.read_text(encoding="utf-8")).body if isinstance(x, ast.ImportFrom)]
    names = {alias.asname or alias.name for line in lines for alias in line.names}
    assert names == set(module.__all__) and len(names) > 0
    for name in names:
        assert getattr(module, name) is not None and name in dir(module)


def test_importing_dynid_loads_no_solver() -> None:
    """The command line's --help must not wait for what it does not need."""
    heavy = "{'scipy', 'numba', 'pinocchio', 'clarabel', 'polars', 'statsmodels', 'coal'}"
    assert fresh(f"import sys, dynid.cli.main; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_names_can_be_imported_and_sent_elsewhere() -> None:
    code = "from dynid import identify, controllers, Robot; print(Robot.__name__, controllers.__name__)"
    assert fresh(code) == "Robot dynid.controllers"
    assert pickle.loads(pickle.dumps(dynid.load_robot)) is dynid.load_robot
    assert fresh("import dynid; print(hasattr(dynid, 'no_such_name'))") == "False"


@pytest.mark.parametrize("package", sorted(".".join(p.parts[len(ROOT.parts) : -1]) for p in STUBS if p.parent != ROOT))
def test_every_package_is_reachable_on_a_fresh_import(package: str) -> None:
    """`import dynid; dynid.robot.Joint` works whatever was imported before."""
    assert fresh(f"import dynid; print(dynid.{package}.__name__)") == f"dynid.{package}"
