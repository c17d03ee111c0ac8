"""The page on the choice of a method names methods and options that exist."""

from __future__ import annotations

import ast
import re
from dataclasses import fields
from pathlib import Path

import pytest

import dynid
from dynid.identification.estimators.registry import OPTIONS, method_options

PAGES = Path(__file__).parents[2] / "docs"
PAGE = (PAGES / "how-to" / "which-method.md").read_text(encoding="utf-8")
OPTION = re.compile(r"`(\w+)=([^`=]+)`")


def rows() -> list[list[str]]:
    """The cells of the table, line by line."""
    lines = [line for line in PAGE.splitlines() if line.startswith("|") and not line.startswith("|---")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[1:]]


def test_the_table_names_methods_and_options_that_exist() -> None:
    """Each option belongs to the method that stands before it in its cell, with a value that it takes."""
    named = 0
    for _, method, _ in rows():
        last = ""
        for quoted in re.findall(r"`[^`]+`", method):
            option = OPTION.fullmatch(quoted)
            if option:
                method_options(last, **{option[1]: ast.literal_eval(option[2])})
                named += 1
            elif not quoted.startswith("`dynid "):
                last = quoted.strip("`")
                assert last in OPTIONS, f"no method is named {last}"
    assert named >= 3


@pytest.mark.parametrize("page", ["how-to/which-method.md", "identification.md", "defaults.md"])
def test_keywords_in_calls_of_identify_exist(page: str) -> None:
    """Calls in the text as well as in the examples."""
    text = (PAGES / page).read_text(encoding="utf-8")
    for call in re.findall(r"dynid\.identify\([^()]*\)", text):
        node = ast.parse(call, mode="eval").body
        assert isinstance(node, ast.Call)
        method = node.args[2] if len(node.args) > 2 else ast.Constant("wls")
        if not isinstance(method, ast.Constant):
            continue
        assert method.value in OPTIONS, call
        known = {x.name for x in fields(OPTIONS[str(method.value)])} | {"signals", "options", "channels", "controller"}
        assert {k.arg for k in node.keywords} <= known, call


def test_the_list_of_options_per_method_on_the_identification_page() -> None:
    """The table of methods names every method, and options that they have."""
    text = (PAGES / "identification.md").read_text(encoding="utf-8")
    seen = set()
    for first, second in re.findall(r"^\| ((?:`[\w-]+` ?)+) \| (.*) \|$", text, flags=re.MULTILINE):
        methods = re.findall(r"`([\w-]+)`", first)
        seen |= set(methods)
        for option in re.findall(r"`(\w+)(?:=[^`]*)?`", second):
            assert option in {x.name for x in fields(OPTIONS[methods[0]])}, f"{methods[0]} has no option {option}"
    assert seen == set(OPTIONS)


def test_options_that_the_page_names_are_public() -> None:
    for name in re.findall(r"`(?:options=)?dynid\.identification\.(\w+Options)", PAGE):
        assert hasattr(dynid.identification, name)
