"""Messages can be reworded: few tests assert the words of an error, the others its class, argument and code."""

from __future__ import annotations

import ast
from pathlib import Path

TESTS = Path(__file__).parent
# The words of these are asserted because they are what is tested: errors and the names of options in them, completion,
# code that users run without the package, and places in files, by name.
MOST = 100


def pins(tree: ast.AST) -> list[int]:
    """Lines that assert words of an error: `match` of pytest, and texts that str(error) contains, is or ends with."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            matched = node.func.attr in ("raises", "warns") and any(x.arg == "match" for x in node.keywords)
            ended = node.func.attr in ("startswith", "endswith") and is_message(node.func.value)
            found += [node.lineno] * (matched or ended)
        elif isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            others = [x for x in sides if not is_message(x)]
            broken = any(isinstance(x, ast.Constant) and x.value == "\n" for x in others)
            found += [node.lineno] * (0 < len(others) < len(sides) and not broken)
    return found


def is_message(node: ast.AST) -> bool:
    """Whether an expression is str(error) or str(caught.value)."""
    if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "str" and len(node.args) == 1):
        return False
    what = ast.unparse(node.args[0])
    return what == "error" or what.endswith(".value")


def test_few_tests_assert_the_words_of_errors() -> None:
    files = [p for p in sorted(TESTS.rglob("*.py")) if p != Path(__file__)]
    found = [f"{p.relative_to(TESTS)}:{line}" for p in files for line in pins(ast.parse(p.read_text(encoding="utf-8")))]
    assert 0 < len(found) < MOST, "\n".join(found)


def test_pins_are_found() -> None:
    kept = ["assert '\\n' not in str(caught.value)", "with pytest.raises(ValueError): pass", "assert str(x) == 'y'"]
    pinned = [
        "with pytest.raises(ValueError, match='words'): pass",
        "assert 'words' in str(caught.value)",
        "assert str(error).endswith('words')",
    ]
    assert [len(pins(ast.parse(x))) for x in kept + pinned] == [0, 0, 0, 1, 1, 1]
