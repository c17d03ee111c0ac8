"""Graphs as MATLAB functions, one file each, over any number of samples at once; GNU Octave runs them too."""

from __future__ import annotations

import re
from collections.abc import Iterator

from dynid.codegen.functions import Function
from dynid.codegen.program import Program
from dynid.codegen.statements import (
    MEANINGS,
    Notation,
    Texts,
    assignments,
    conditions,
    folded,
    head_lines,
    places,
    plain,
    title_lines,
)
from dynid.errors import InvalidValue, TooLarge

__all__ = ["emit_matlab"]

_NOTATION = Notation(
    {
        **{kind: f"{kind}({{}})" for kind in ("sin", "cos", "tanh", "exp", "sign")},
        "step": "double({} > 0.0)",
        "ramp": "max({}, 0.0)",
    },
    element="{}({}, :)",
    first=1,
    product=".*",
    quotient="./",
)
# What could end a string early.
_UNSAFE = "'"
_INDEFINITE = "the mass matrix is not positive definite: no physical robot moves so"
# Longer names are cut by MATLAB.
_LONGEST = 63


def emit_matlab(program: Program) -> dict[str, str]:
    """Texts of NAME_FUNCTION.m, one per function, and of NAME_model.m, which tells what the arrays hold."""
    if not re.match("[A-Za-z]", program.name):
        raise InvalidValue(f"names in MATLAB begin with a letter, unlike '{program.name}': give another name", "name")
    files = {"model": _model(program)} | {f.name: _function(program, f) for f in program.functions}
    for name in files:
        if len(program.name) + 1 + len(name) > _LONGEST:
            raise TooLarge(f"'{program.name}_{name}' has more than {_LONGEST} characters: give a shorter name", "name")
    return {f"{program.name}_{name}.m": "\n".join([*lines, ""]) for name, lines in files.items()}


def _model(program: Program) -> Iterator[str]:
    """Lines of the function that gives names and values."""
    yield f"function model = {program.name}_model()"
    yield from _comment(head_lines(program))
    yield ""
    for what, names in (
        ("joints", program.robot.coordinates),
        ("channels", program.robot.channels),
        ("parameters", program.parameter_names),
    ):
        yield from (f"model.{what} = {{", *(f"    '{plain(x, _UNSAFE)}'" for x in names), "};")
    if program.parameter_values is not None:
        yield from ("model.values = [", *(f"    {float(x)!r}" for x in program.parameter_values), "];")
    yield "end"


def _function(program: Program, function: Function) -> Iterator[str]:
    """Lines of a function: a column of every array is a sample."""
    names, result = [x.name for x in function.arguments], function.result
    yield f"function {result} = {program.name}_{function.name}({', '.join(names)})"
    of = ", ".join(f"{x.name} ({x.size} x N)" for x in function.arguments)
    shape = " x ".join(map(str, (*function.shape, "N")))
    about = [f"{MEANINGS[function.name].capitalize()}:", f"{result} ({shape}) of {of}, a column for each sample."]
    yield from _comment([*about, f"{program.operations(function)}.", "", *title_lines(program)])
    yield ""
    for x in function.arguments:
        yield f"    if size({x.name}, 1) ~= {x.size}"
        yield f"        error('dynid:size', '{x.name} must have {x.size} rows, got %d', size({x.name}, 1));"
        yield "    end"
    yield f"    samples = max([{', '.join(f'size({x}, 2)' for x in names)}]);"
    texts = Texts(function, _NOTATION)
    yield from (f"    {line};" for line in assignments(function, texts))
    for node in conditions(function):
        yield f"    if ~all({texts[node]} > 0.0)"
        yield f"        error('dynid:indefinite', '{_INDEFINITE}');"
        yield "    end"
    yield f"    {result} = zeros({', '.join(map(str, function.shape))}, samples);"
    for place, node in zip(places(function.shape), function.entries, strict=True):
        yield f"    {result}({place}, :) = {texts[node]};"
    yield "end"


def _comment(lines: list[str]) -> list[str]:
    return [f"% {x}".rstrip() for x in folded(lines, _UNSAFE)]
