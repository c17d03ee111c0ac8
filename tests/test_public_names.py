"""Public names are there when asked for, and not before."""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys

import dynid


def fresh(code: str) -> str:
    """What a new interpreter prints."""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_every_name_is_what_its_module_holds() -> None:
    for name in dynid.__all__:
        what = getattr(dynid, name)
        assert what is not None and name in dir(dynid)


def test_importing_dynid_loads_no_solver() -> None:
    """The command line's --help must not wait for what it does not need."""
    heavy = "{'scipy', 'numba', 'pinocchio', 'clarabel', 'polars', 'statsmodels', 'coal'}"
    assert fresh(f"import sys, dynid.cli; print(sorted({heavy} & set(sys.modules)))") == "[]"


def test_a_function_stays_one_though_a_folder_has_its_name() -> None:
    """In any order of imports."""
    for first in ("import dynid.parameters.base", "from dynid.identify import base", "import dynid.simulation.loop"):
        assert fresh(f"import dynid; {first}; print(callable(dynid.identify), callable(dynid.simulate))") == "True True"
    module = importlib.import_module("dynid.identify")
    assert module.__name__ == "dynid.identify" and callable(dynid.identify)


def test_names_can_be_imported_and_sent_elsewhere() -> None:
    assert fresh("from dynid import identify, controllers, Robot; print(Robot.__name__, controllers.__name__)") == (
        "Robot dynid.controllers"
    )
    assert pickle.loads(pickle.dumps(dynid.load_robot)) is dynid.load_robot
    assert fresh("import dynid; print(hasattr(dynid, 'no_such_name'))") == "False"
