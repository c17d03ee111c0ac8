"""Mutations of files: bytes anywhere, and changes that keep the grammar of XML, TOML, JSON and CSV."""

from __future__ import annotations

import json
import random
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from copy import deepcopy
from typing import Any

__all__ = ["STRUCTURED", "mutated_bytes"]

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w.])")
_NUMBERS = (
    *("nan", "inf", "-inf", "1e308", "-1e308", "1e-320", "0", "-0", "-1", "1e9", "4294967296", "-9223372036854775809"),
    *("9" * 5000, "1e99999", "0x10", "1_000", "١", "1,5", "", "  ", "true", "null", "1e", "--1", "1.5.2"),
)
_WORDS = (
    *("", " ", "\t", "\n", "a" * 20000, "<b>", "</b>", "[/bold]", "[red]", "'", '"', "\\", "%s", "{}", "{0}", "${x}"),
    *("../../../../etc/passwd", "/dev/zero", "package://../../x", "\u202ename", "\ud7ff", "joint[1]", "*", "a.b.c"),
    *("None", "nan", "__class__", "world", "0", "\x01", "é" * 50),
)
_SPECIAL_BYTES = (0x00, 0x01, 0x7F, 0x80, 0xFF, 0x0A, 0x22, 0x3C)


def mutated_bytes(raw: bytes, rng: random.Random) -> bytes:
    """The file with bytes changed, ranges deleted, doubled, moved or filled, or its end cut off."""
    data = bytearray(raw)
    for _ in range(rng.choice((1, 1, 1, 2, 3, 8, 30))):
        if not data:
            break
        kind, at = rng.randrange(9), rng.randrange(len(data))
        # The beginning of a file holds most of its structure.
        at = min(at, rng.randrange(512)) if rng.random() < 0.5 else at
        size = min(len(data) - at, rng.choice((1, 2, 4, 8, 32, 200)))
        if kind <= 2:
            data[at] = rng.choice((*_SPECIAL_BYTES, rng.randrange(256)))
        elif kind == 3:
            data[at] ^= 1 << rng.randrange(8)
        elif kind == 4:
            value = rng.choice((0, 1, 2**31 - 1, 2**31, 2**32 - 1, 10**6, 10**9, rng.randrange(2**32)))
            data[at : at + 4] = value.to_bytes(4, rng.choice(("little", "big")))
        elif kind == 5:
            del data[at : at + size]
        elif kind == 6:
            data[at:at] = data[at : at + size] * rng.choice((1, 2, 50))
        elif kind == 7:
            data[at : at + size] = bytes([rng.randrange(256)]) * size
        elif rng.random() < 0.3:
            del data[at:]
    return bytes(data)


# -- text with a grammar -------------------------------------------------------------------------------


def _other_number(rng: random.Random) -> str:
    return rng.choice(_NUMBERS)


def _xml(text: str, rng: random.Random) -> str:
    """Elements dropped, doubled, moved, nested or renamed; attributes changed, dropped and exchanged."""
    try:
        root = ET.fromstring(text)
    except ET.ParseError:
        return text
    for _ in range(rng.choice((1, 1, 2, 4))):
        elements = list(root.iter())
        parents = [e for e in elements if len(e)]
        one = rng.choice(elements)
        kind = rng.randrange(10)
        if kind <= 3 and one.attrib:
            key = rng.choice(list(one.attrib))
            value = one.attrib[key]
            if _NUMBER.search(value) and rng.random() < 0.7:
                found = list(_NUMBER.finditer(value))
                hit = rng.choice(found)
                value = value[: hit.start()] + _other_number(rng) + value[hit.end() :]
            else:
                others = [v for e in elements for v in e.attrib.values()]
                value = rng.choice((rng.choice(_WORDS), rng.choice(others)))
            one.set(key, value)
        elif kind == 4 and one.attrib:
            del one.attrib[rng.choice(list(one.attrib))]
        elif kind == 5 and parents:
            parent = rng.choice(parents)
            parent.remove(rng.choice(list(parent)))
        elif kind == 6 and parents:
            parent = rng.choice(parents)
            parent.append(deepcopy(rng.choice(list(parent))))
        elif kind == 7 and parents:
            parent = rng.choice(parents)
            parent[:] = rng.sample(list(parent), len(parent))
        elif kind == 8:
            copy, depth = ET.Element(one.tag, one.attrib), rng.choice((2, 30, 300, 3000))
            for _ in range(depth):
                copy = _around(copy, one)
            one.append(copy)
        elif one.text and one.text.strip():
            one.text = rng.choice((_other_number(rng), rng.choice(_WORDS)))
        else:
            one.tag = rng.choice([e.tag for e in elements] + ["include", "body", "x"])
    try:
        return _text_of(root)
    except ValueError:
        return text


def _around(inner: ET.Element, like: ET.Element) -> ET.Element:
    outer = ET.Element(like.tag, like.attrib)
    outer.append(inner)
    return outer


def _text_of(root: ET.Element) -> str:
    """The text of a tree of any depth; names are written as they are."""
    out: list[str] = []
    todo: list[Any] = [root]
    while todo:
        item = todo.pop()
        if isinstance(item, str):
            out.append(item)
            continue
        attributes = "".join(f" {k}={_quoted(v)}" for k, v in item.attrib.items())
        out.append(f"<{item.tag}{attributes}>{_escaped(item.text or '')}")
        todo.append(f"</{item.tag}>\n")
        todo += reversed(item)
    return "".join(out)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;")


def _quoted(text: str) -> str:
    return '"' + _escaped(text).replace('"', "&quot;") + '"'


def _lines(text: str, rng: random.Random) -> str:
    """TOML and similar: numbers and words changed, lines dropped, doubled, moved, tables nested."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, kind = rng.randrange(len(lines)), rng.randrange(8)
        found = list(_NUMBER.finditer(lines[at]))
        if kind <= 3 and found:
            hit = rng.choice(found)
            lines[at] = lines[at][: hit.start()] + _other_number(rng) + lines[at][hit.end() :]
        elif kind <= 4 and "=" in lines[at]:
            key, _, value = lines[at].partition("=")
            value = rng.choice((json.dumps(rng.choice(_WORDS)), "[" * 3000, "[]", "{}", "true", "[[1]]", "1979-05-27"))
            lines[at] = rng.choice((f"{key}= {value}", f"x ={value}", f"name ={value}"))
        elif kind == 5:
            del lines[at]
            lines = lines or [""]
        elif kind == 6:
            lines.insert(rng.randrange(len(lines)), lines[at])
        else:
            lines.insert(at, rng.choice(("[" + ".".join("a" * 3000) + "]", "[[joint]]", "[x]", "x = 9" + "9" * 6000)))
    return "\n".join(lines)


def _json(text: str, rng: random.Random) -> str:
    """Values replaced by values of another kind, keys dropped and renamed, deep nesting."""
    try:
        data = json.loads(text)
    except ValueError:
        return text
    values: list[Any] = [
        *(None, True, 0, -1, 1e308, float("nan"), float("inf"), 10**30, "", "x", "9" * 5000),
        *([], {}, [[]], [None], {"a": 1}),
        *rng.sample(_WORDS, 3),
    ]
    for _ in range(rng.choice((1, 1, 2, 4))):
        places: list[tuple[Any, Any]] = []
        todo = [data]
        while todo and len(places) < 20000:
            item = todo.pop()
            inner = list(item.items()) if isinstance(item, dict) else list(enumerate(item))
            places += [(item, key) for key, _ in inner]
            todo += [value for _, value in inner if isinstance(value, dict | list)]
        if not places:
            return text
        # Shallow places are as likely as all the numbers of an array together.
        holder, key = rng.choice(rng.choice((places, [p for p in places if isinstance(p[0], dict)] or places)))
        kind = rng.randrange(6)
        if kind <= 2:
            holder[key] = rng.choice(values)
        elif kind == 3:
            del holder[key]
        elif kind == 4 and isinstance(holder, dict):
            holder[rng.choice(("x", "", "format", str(key) + "2"))] = holder.pop(key)
        else:
            other, name = rng.choice(places)
            holder[key] = json.loads(json.dumps(other[name])) if name in _keys(other) else None
    text = json.dumps(data)
    if rng.random() < 0.05:
        found = list(_NUMBER.finditer(text))
        if found:
            hit = rng.choice(found)
            text = text[: hit.start()] + rng.choice(("[" * 100000, "9" * 5000)) + text[hit.end() :]
    return text


def _keys(holder: Any) -> Any:
    return holder if isinstance(holder, dict) else range(len(holder))


def _csv(text: str, rng: random.Random) -> str:
    """Cells changed, columns and lines dropped, doubled and moved, other separators."""
    lines = text.split("\n")
    mark = "," if "," in lines[0] else "\t"
    for _ in range(rng.choice((1, 1, 2, 4))):
        at, kind = rng.randrange(len(lines)), rng.randrange(8)
        at = 0 if rng.random() < 0.3 else at
        cells = lines[at].split(mark)
        column = rng.randrange(len(cells))
        if kind <= 2:
            cells[column] = rng.choice((_other_number(rng), rng.choice(_WORDS)))
            lines[at] = mark.join(cells)
        elif kind == 3:
            lines = [mark.join(c for k, c in enumerate(line.split(mark)) if k != column) for line in lines]
        elif kind == 4:
            lines = [mark.join([*line.split(mark), *line.split(mark)[column : column + 1]]) for line in lines]
        elif kind == 5:
            lines.insert(rng.randrange(len(lines)), lines[at])
        elif kind == 6:
            lines[at] = mark.join([*cells, *([rng.choice(_NUMBERS)] * rng.choice((1, 5, 5000)))])
        else:
            lines = [line.replace(mark, rng.choice((";", " ", "|", mark * 2))) for line in lines]
    return "\n".join(lines)


STRUCTURED: dict[str, Callable[[str, random.Random], str]] = {"xml": _xml, "lines": _lines, "json": _json, "csv": _csv}
