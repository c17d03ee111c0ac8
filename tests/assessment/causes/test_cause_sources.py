"""The records of what is searched for among the causes of a residual, those of other packages included."""

from __future__ import annotations

import ast
import importlib
import inspect
import pickle
import pkgutil
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import get_args

import numpy as np
import pytest

from dynid.assessment.causes import __path__ as folder
from dynid.assessment.causes.cause_code import CauseCheck, CauseCode
from dynid.assessment.causes.cause_groups import Group, Model
from dynid.assessment.causes.cause_source import CauseSource, cause_codes, cause_sources
from dynid.assessment.verdict.assessment import CheckCode
from tests.assessment.causes.test_causes import causes, only
from tests.support.entry_points import add_entry_point

BUMPY = CauseCode("bumpy", "the torque jumps at every radian", "smooth the joint", "1 % of the torque")


def jumps(q: np.ndarray) -> np.ndarray:
    return np.sign(np.sin(2 * np.pi * q))


def bumpy_groups(model: Model) -> Iterator[Group]:
    made = model.rows.decimated([jumps(m.q) for m in model.rows.motions])
    for k, j in enumerate(model.rows.joints):
        yield Group(BUMPY, (j,), lambda size, _: f"jumps of {size} N m", model.only(k, made[k][:, j]), "N m")


BUMPS = CauseSource(name="bumps", codes=(BUMPY,), groups=bumpy_groups)


def test_every_code_is_given_by_the_search_and_named_by_a_check() -> None:
    """A code that no candidate has is a promise that nothing keeps."""
    found = [x.name for x in pkgutil.walk_packages(folder, "dynid.assessment.causes.") if "kernel" not in x.name]
    modules = [importlib.import_module(name) for name in found]
    trees = [ast.parse(inspect.getsource(module)) for module in modules]
    used = Counter(x.id for tree in trees for x in ast.walk(tree) if isinstance(x, ast.Name))
    codes = {id(code): name for m in modules for name, code in vars(m).items() if isinstance(code, CauseCode)}
    assert {cause_codes()[name.lower()] for name in codes.values()} == set(cause_codes().values())
    assert not [name for name in codes.values() if used[name] < 3]
    assert {code.check for code in cause_codes().values()} == set(get_args(CauseCheck))
    assert set(get_args(CauseCheck)) <= {str(code) for code in CheckCode}
    assert all(code.meaning and code.advice for code in cause_codes().values())


def test_candidates_of_another_package_are_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    point = EntryPoint("bumps", f"{__name__}:BUMPS", "dynid.causes")
    add_entry_point(monkeypatch, point)
    cause_sources.cache_clear()
    try:
        assert list(cause_sources())[-1] == "bumps" and "bumpy" in cause_codes()
        first = causes(lambda q, v, t, r: (q, t + only(1, 0.5 * jumps(q[:, 1])))).causes[0]
        assert (first.code, first.joints, first.advice.split(":")[0]) == ("bumpy", ("joint2",), "smooth the joint")
        assert abs(first.size - 0.5) < 0.1
    finally:
        cause_sources.cache_clear()


def test_codes_are_compared_as_text_wherever_they_went() -> None:
    sent = pickle.loads(pickle.dumps(BUMPY))
    assert sent == BUMPY == "bumpy" and sent.advice == BUMPY.advice and sent.relevance == BUMPY.relevance
