"""Results: what follows from the declaration of a field, the envelope of files, and functions that methods look up."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
from dataclasses import dataclass, field, fields, is_dataclass
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from numpydoc.docscrape import NumpyDocString

import dynid
from dynid.attached import ATTACHED, attached
from dynid.errors import DamagedFile, DataError, WrongFormat
from dynid.results import Column, Result, SavedResult, Table, View, about
from dynid.saved import KINDS, VERSION, envelope, opened
from tests.support.commands import leaves
from tests.support.errors import expect_error
from tests.test_layers import MODULES, ORDER

Array = NDArray[np.float64]


class Color(StrEnum):
    RED = "red"
    BLUE = "blue"


@dataclass(frozen=True)
class Part:
    """A record without declared fields."""

    name: str
    size: float = np.inf


@dataclass(frozen=True, eq=False)
class Sample(SavedResult):
    """A result of every kind of field."""

    kind = "estimate"
    sizes = MappingProxyType({"k": ("names", "names")})
    views = MappingProxyType({"total": View(lambda s: float(s.values.sum()), exact=True)})
    tables = (Table("sample", "k", (Column("names", "name", "name"), Column("values", "value", "value", ".2f"))),)

    names: tuple[str, ...] = field(metadata=about("Names."))
    values: Array = field(metadata=about("Values.", unit="N m", size=("k",), finite=True))
    matrix: Array = field(metadata=about("Their covariance.", size=("k", "k")))
    flags: NDArray[np.bool_] = field(metadata=about("Flags.", size=("k",)))
    parts: tuple[Part, ...] = field(metadata=about("Parts."))
    color: Color = field(default=Color.RED, metadata=about("A color."))
    shares: dict[str, float] = field(default_factory=dict, metadata=about("Shares by name."))
    pair: tuple[int, float] | None = field(default=None, metadata=about("A pair."))
    weight: Array | None = field(default=None, metadata=about("Weights.", unit="kg", size=("k",), column=".1f"))
    hidden: int = field(default=3, metadata=about("Not in files.", stored=False))


def sample(**changes: Any) -> Sample:
    given: dict[str, Any] = {
        "names": ("a", "b"),
        "values": np.array([1.0, 2.0]),
        "matrix": np.array([[1.0, np.inf], [-2.0, 1.0]]),
        "flags": np.array([True, False]),
        "parts": (Part("x"), Part("y", 2.0)),
    }
    return Sample(**given | changes)


def test_every_kind_of_field_survives_a_file(tmp_path: Path) -> None:
    one = sample(color=Color.BLUE, shares={"a": np.nan}, pair=(3, 0.5), weight=np.array([0.5, np.inf]))
    one.save(tmp_path / "sample.json")
    two = Sample.load(tmp_path / "sample.json")
    for x in fields(Sample):
        a, b = getattr(one, x.name), getattr(two, x.name)
        assert type(a) is type(b), x.name
        if isinstance(a, np.ndarray):
            assert a.dtype == b.dtype and np.array_equal(a, b, equal_nan=a.dtype.kind == "f"), x.name
        else:
            assert a == b or (x.name == "shares" and np.isnan(b["a"])), x.name
    assert "hidden" not in one.to_dict()
    assert sample().weight is None and Sample.from_dict(sample().to_dict()).weight is None


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"values": [1.0]}, "values has 1 entries for 2 names"),
        ({"values": ["inf", 1.0]}, "values.0: "),
        ({"matrix": [[1.0]]}, "matrix is not a 2 x 2 matrix"),
        ({"matrix": [["nan", 1.0], [1.0, 1.0]]}, "matrix.0.0: "),
        ({"flags": [1, 0]}, "flags.0: "),
        ({"parts": [{"name": "x", "size": True}]}, "parts.0.size: must be a number"),
        ({"color": "green"}, "color: "),
        ({"pair": [1.5, 2.0]}, "pair.0: "),
        ({"total": 4.0}, "total: it does not follow from the other fields"),
        ({"more": 1}, "more: "),
    ],
)
def test_the_first_wrong_field_is_named(change: dict[str, Any], said: str) -> None:
    data = sample().to_dict() | change
    with expect_error(DamagedFile) as caught:
        Sample.from_dict(data, where="'a.json'")
    assert said in str(caught.value) and "\n" not in str(caught.value)


def test_a_declared_column_is_in_every_table() -> None:
    plain, more = sample(), sample(weight=np.array([0.25, 1.0]))
    assert plain.to_frame().columns == ["name", "value"]
    assert more.to_frame().columns == ["name", "value", "weight"] and more.to_frame()["weight"].to_list() == [0.25, 1.0]
    assert ">weight</th>" in more._repr_html_() and ">0.2</td>" in more._repr_html_()


def test_a_result_without_tables_shows_its_fields() -> None:
    @dataclass(frozen=True)
    class Body(Result):
        """A body."""

        name: str = field(metadata=about("Name."))
        mass: float = field(metadata=about("Mass.", unit="kg"))
        sides: tuple[float, ...] = field(default=(0.5, 2.0), metadata=about("Sides.", unit="m"))
        grid: Array = field(default_factory=lambda: np.zeros((2, 4)), metadata=about("Values.", size=("*", "*")))

    body = Body("box", 2.5)
    rows = [("name", "box", ""), ("mass", "2.5", "kg"), ("sides", "0.5, 2", "m"), ("grid", "8 entries", "")]
    assert body.to_frame().rows() == rows
    assert all(word in body.summary() for word in ("box", "2.5", "kg")) and ">2.5</td>" in body._repr_html_()
    assert "value" in sample().summary() and "1.00" in sample().summary()


def test_declared_fields_are_documented_and_in_the_schema() -> None:
    attributes = {x.name: x for x in NumpyDocString(inspect.getdoc(Sample) or "")["Attributes"]}
    assert set(attributes) == {x.name for x in fields(Sample)}
    assert attributes["values"].type == "ndarray, shape (k,)" and attributes["values"].desc == ["Values, in N m."]
    assert set(Sample.schema()["required"]) == {x.name for x in fields(Sample)} - {"hidden"} | {"total"}


def test_a_field_that_cannot_be_stored_is_refused_at_once() -> None:
    @dataclass(frozen=True)
    class Odd(Result):
        """With a field of no known type."""

        thing: object = field(metadata=about("Anything."))

    with pytest.raises(TypeError, match="values of object cannot be stored"):
        Odd(3).to_dict()


# -- the envelope --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "'f' is not a saved estimate"),
        ([1], "'f' is not a saved estimate"),
        ({"format": "dynid estimate 9"}, "'f' has the format 'dynid estimate 9' of a version before the first release"),
        (
            {"dynid": "friction", "version": 1},
            r"holds a saved friction selection.*FrictionSelection\.load",
        ),
        ({"dynid": "meals", "version": 1}, "holds 'meals', which this version of dynid does not know"),
        ({"dynid": ["x"], "version": 1}, "does not know"),
        ({"dynid": "estimate"}, "is a damaged estimate: version: it must be a whole number"),
        ({"dynid": "estimate", "version": True}, "it must be a whole number"),
        ({"dynid": "estimate", "version": VERSION + 1}, "by a newer dynid.*update dynid"),
        ({"dynid": "estimate", "version": VERSION - 1}, "by an older dynid.*make it again"),
    ],
)
def test_other_files_are_refused_with_what_to_do(data: Any, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        opened(data, "estimate", "'f'")
    assert "\n" not in str(caught.value)
    assert opened(envelope("estimate") | {"x": 1}, "estimate") == {"x": 1}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_the_reader_of_every_kind_exists(kind: Any) -> None:
    found: Any = dynid
    for name in filter(None, kind.reader.split(".")):
        found = getattr(found, name, None) or importlib.import_module(f"{found.__name__}.{name}")
    assert callable(found) or not kind.reader
    if kind.command:
        from dynid.cli.main import app

        assert kind.command in leaves(app.built)


def saved_results() -> list[type[SavedResult]]:
    for name, path in MODULES.items():
        if "SavedResult)" in path.read_text(encoding="utf-8"):
            importlib.import_module(name)
    return [x for x in SavedResult.__subclasses__() if x.__module__.startswith("dynid.")]


def test_every_saved_result_has_a_kind_of_its_own_and_a_schema() -> None:
    found = saved_results()
    assert len(found) >= 4 and len({x.kind for x in found}) == len(found) and {x.kind for x in found} <= set(KINDS)
    for x in found:
        assert x.schema()["properties"], x


def test_no_module_has_an_envelope_of_its_own() -> None:
    """The old key of formats is written nowhere, and read where old files are refused."""
    wrong = [name for name, path in MODULES.items() if '"format": _FORMAT' in path.read_text(encoding="utf-8")]
    assert not wrong


# -- functions that methods look up --------------------------------------------------------------------

ENTRIES = [(owner, name, place) for owner, names in ATTACHED.items() for name, place in names.items()]


@pytest.mark.parametrize(("owner", "name", "place"), ENTRIES, ids=lambda x: str(x))
def test_every_attached_function_exists_and_is_no_higher(owner: str, name: str, place: str) -> None:
    """Of the package of the result or one before it: text in place of an import does not change the order."""
    module, _, kind = owner.partition(":")
    result = getattr(importlib.import_module(f"dynid.{module}"), kind)
    assert is_dataclass(result) and result.__module__ == f"dynid.{module}"
    function = attached(result, name)
    assert inspect.isfunction(function) and function.__module__ == f"dynid.{place.partition(':')[0]}"
    assert ORDER.index(place.split(".")[0]) <= ORDER.index(module.split(".")[0])
    assert place.partition(":")[0] != module


def test_every_attached_function_is_called() -> None:
    """By a method of the class that it is attached to, and nothing is called that is not there."""
    called = set()
    for name, path in MODULES.items():
        text = path.read_text(encoding="utf-8")
        if "attached(" not in text:
            continue
        for cls in (x for x in ast.parse(text).body if isinstance(x, ast.ClassDef)):
            for call in (x for x in ast.walk(cls) if isinstance(x, ast.Call)):
                if isinstance(call.func, ast.Name) and call.func.id == "attached":
                    called.add((f"{name.removeprefix('dynid.')}:{cls.name}", ast.literal_eval(call.args[1])))
    assert called == {(owner, name) for owner, name, _ in ENTRIES}


def test_a_result_imports_no_function_that_is_attached_to_it() -> None:
    wrong = []
    for owner, _, place in ENTRIES:
        path = MODULES[f"dynid.{owner.partition(':')[0]}"]
        if f"from dynid.{place.partition(':')[0]} import" in path.read_text(encoding="utf-8"):
            wrong.append(f"{owner}: {place}")
    assert not wrong


def test_saved_estimates_say_what_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(envelope("assessment")))
    with expect_error(WrongFormat):
        dynid.Estimate.load(path)
