"""Graphs as one Julia module that needs nothing but Base, for numbers of any type."""

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
)
from dynid.errors import InvalidValue

__all__ = ["emit_julia"]

_NOTATION = Notation(
    {
        **{kind: f"{kind}({{}})" for kind in ("sin", "cos", "tanh", "exp", "sign")},
        "step": "ifelse({} > 0.0, 1.0, 0.0)",
        "ramp": "max({}, 0.0)",
    },
    first=1,
)
# What could end a string early, or put a value into it.
_UNSAFE = r'"|\\|\$'
_RESERVED = (
    *("baremodule", "begin", "break", "catch", "const", "continue", "do", "else", "elseif", "end", "export", "false"),
    *("finally", "for", "function", "global", "if", "import", "in", "isa", "let", "local", "macro", "module", "quote"),
    *("return", "struct", "true", "try", "using", "where", "while"),
)
_INDEFINITE = "the mass matrix is not positive definite: no physical robot moves so"
_SHARED = """
_number(arrays...) = float(promote_type(map(eltype, arrays)...))

function _sized(name, array, sizes)
    Base.require_one_based_indexing(array)
    size(array) == sizes || throw(DimensionMismatch("$name must have size $sizes, got $(size(array))"))
end
"""


def emit_julia(program: Program) -> dict[str, str]:
    """Text of NAME.jl."""
    public = ", ".join(f"{f.name}, {f.name}!" for f in program.functions)
    lines = ["", f"export {public}", "", f"const JOINTS = {_names(program.robot.coordinates)}"]
    lines += [f"const CHANNELS = {_names(program.robot.channels)}"]
    lines += [f"const PARAMETERS = {_names(program.parameter_names)}"]
    if program.parameter_values is not None:
        lines += [f"const VALUES = [{', '.join(repr(float(x)) for x in program.parameter_values)}]"]
    lines += [_SHARED.rstrip("\n")]
    for function in program.functions:
        lines += ["", *_function(program, function)]
    text = "\n".join(lines)
    code = re.sub(r'"[^"]*"', "", text)
    if program.name in _RESERVED or not program.name.strip("_") or re.search(rf"\b{program.name}\b", code):
        raise InvalidValue(f"'{program.name}' has another meaning in the Julia file: give another name", "name")
    head = [f"# {line}".rstrip() for line in folded(head_lines(program), _UNSAFE)]
    return {f"{program.name}.jl": "\n".join([*head, "", f"module {program.name}", text, "", "end", ""])}


def _function(program: Program, function: Function) -> Iterator[str]:
    """Lines of the function that writes into its first argument, and of the one that makes a new array."""
    names = [x.name for x in function.arguments]
    given, result = ", ".join(names), function.result
    yield '"""'
    yield f"    {function.name}({given})"
    yield f"    {function.name}!({result}, {given})"
    yield ""
    of = ", ".join(f"{x.name} ({x.size})" for x in function.arguments)
    shape = " x ".join(map(str, function.shape))
    yield f"{MEANINGS[function.name].capitalize()}:"
    yield f"{result} ({shape}) of {of}. The result must not overlap them."
    if function.positive:
        yield "Throws a DomainError where the mass matrix is not positive definite."
    yield f"{program.operations(function)}."
    yield '"""'
    yield f"function {function.name}!({result}, {given})"
    sizes = {result: function.shape} | {x.name: (x.size,) for x in function.arguments}
    yield from (f'    _sized("{name}", {name}, {_tuple(size)})' for name, size in sizes.items())
    texts = Texts(function, _NOTATION)
    yield "    @inbounds begin"
    yield from (f"        {line}" for line in assignments(function, texts))
    for node in conditions(function):
        yield f'        {texts[node]} > 0.0 || throw(DomainError({texts[node]}, "{_INDEFINITE}"))'
    for place, node in zip(places(function.shape), function.entries, strict=True):
        yield f"        {result}[{place}] = {texts[node]}"
    yield "    end"
    yield f"    return {result}"
    yield "end"
    yield ""
    made = f"Array{{_number({given})}}(undef, {', '.join(map(str, function.shape))})"
    yield f"{function.name}({given}) = {function.name}!({made}, {given})"


def _names(names: tuple[str, ...]) -> str:
    return "[" + ", ".join(f'"{plain(x, _UNSAFE)}"' for x in names) + "]"


def _tuple(sizes: tuple[int, ...]) -> str:
    return f"({', '.join(map(str, sizes))}{',' if len(sizes) == 1 else ''})"
