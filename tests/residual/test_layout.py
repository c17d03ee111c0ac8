"""One layout of the predictor's arrays for Python, the numba kernels and the generated C code."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.residual import layout
from dynid.residual.layout import CHUNK, FIELDS, INTEGERS, NUMBERS, Field, Flag, Shape
from dynid.residual.tables import join
from dynid.robot.drives import TermKind
from tests.support.made_residuals import made_residual

FOLDER = Path(layout.__file__).parent
TEMPLATE = (FOLDER / "c" / "predictor.c").read_text()
# Words in capitals that C itself or the sizes of one robot bring.
OTHER_WORDS = {"NULL", "NAN", "INFINITY", "N", "D", "JOINTS", "TERMS", "SETS", "BLOCKS", "WEIGHTS"}
OTHER_WORDS |= {"R", "P", "V", "A", "F", "J", "S", "I"}  # intermediate results


def code(text: str) -> str:
    """C without comments, include lines and placeholders."""
    return re.sub(r"/\*.*?\*/|#include[^\n]*|@\w+@", " ", text, flags=re.DOTALL)


def used_fields(path: Path, enum: str) -> set[str]:
    """Members of an enumeration that a module uses."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = (x for x in ast.walk(tree) if isinstance(x, ast.Attribute) and isinstance(x.value, ast.Name))
    return {x.attr for x in found if isinstance(x.value, ast.Name) and x.value.id == enum}


@pytest.mark.parametrize("enum", [Field, Flag, Shape])
def test_numbers_are_consecutive_and_each_name_has_its_own(enum: type[Field] | type[Flag] | type[Shape]) -> None:
    assert [int(member) for member in enum] == list(range(len(enum)))
    assert len(enum.__members__) == len(enum)  # a second name for a number would be an alias


def test_integers_come_first_and_then_numbers() -> None:
    assert (*INTEGERS, *NUMBERS) == tuple(FIELDS)
    assert len(INTEGERS) == Field.INTEGERS_END
    assert len(INTEGERS) + 1 + len(NUMBERS) == Field.NUMBERS_END


def test_a_predictor_has_every_field_at_the_place_that_the_head_gives() -> None:
    fields = made_residual(dynid.load_robot("twolink"), 30, degree=1).predictor().fields
    assert tuple(fields) == tuple(FIELDS)
    marked = {
        name: np.full(fields[name].size, number, np.int64 if name in INTEGERS else np.float64)
        for number, name in enumerate(FIELDS)
    }
    index, numbers = join(marked)
    assert index[0] == Field.NUMBERS_END + 1
    for number, (name, field) in enumerate(FIELDS.items()):
        held = (index if name in INTEGERS else numbers)[index[field] : index[field + 1]]
        assert held.size == fields[name].size and np.all(held == number), name


def test_kernels_use_every_field() -> None:
    used = used_fields(FOLDER / "compiled.py", "F")
    assert {name.lower() for name in used} == set(FIELDS) - {"home"}  # the predictor itself starts from it
    assert used_fields(FOLDER / "compiled.py", "Flag") == {flag.name for flag in Flag}


def test_c_code_uses_every_field_and_every_constant() -> None:
    words = set(re.findall(r"\b[a-z]\w*", code(TEMPLATE)))
    assert set(FIELDS) <= words
    declared = set(re.findall(r"^ +(\w+) = -?\d+", layout.c_constants(), re.MULTILINE))
    capitals = set(re.findall(r"\b[A-Z][A-Z0-9_]*\b", code(TEMPLATE))) - OTHER_WORDS
    assert capitals <= declared
    # Of shapes the last and of drive terms the linear ones are default cases.
    assert declared - capitals == {"SHAPE_RATIONAL_QUADRATIC", "TERM_VISCOUS"}


def test_c_constants_have_the_values_of_the_kernels() -> None:
    values = {name: int(value) for name, value in re.findall(r"(\w+) = (-?\d+)", layout.c_constants())}
    assert values["CHUNK"] == CHUNK
    assert {name: values[f"HAS_{name}"] for name in Flag.__members__} == Flag.__members__
    assert {name: values[f"SHAPE_{name}"] for name in Shape.__members__} == Shape.__members__
    for kind in TermKind:
        assert values.get(f"TERM_{kind.name}") == (None if kind is TermKind.CUSTOM else kind)


def test_written_c_declares_each_field_once_with_its_entries(tmp_path: Path) -> None:
    predictor = made_residual(dynid.load_robot("twolink"), 30).predictor()
    text = predictor.to_c(tmp_path)[0].read_text()
    tables = re.findall(r"^static const (int|double) (\w+)\[\] = \{\n(.*?)\};", text, re.DOTALL | re.MULTILINE)
    assert [name for _, name, _ in tables] == list(FIELDS)
    for kind, name, body in tables:
        assert kind == ("int" if name in INTEGERS else "double")
        entries = [float(x.strip().replace("INFINITY", "inf")) for x in body.split(",") if x.strip()]
        assert np.array_equal(entries, predictor.fields[name] if predictor.fields[name].size else [0.0]), name
