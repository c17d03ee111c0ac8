"""The page on the choice of a method names methods and options that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import dynid
from dynid.identification.estimators.registry import method_options, own_methods

PAGES = Path(__file__).parents[2] / "docs"
PAGE = (PAGES / "how-to" / "which-method.md").read_text(encoding="utf-8")
OPTION = re.compile(r"`(\w+)=([^`=]+)`")


def steps() -> list[str]:
    """The lines of the steps, each with the methods and options that it recommends."""
    return PAGE.split("\n## What it costs")[0].split("\n## ", 2)[2].splitlines()


def test_the_steps_name_methods_and_options_that_exist() -> None:
    """Each option belongs to the method that stands before it in its line, with a value that it takes."""
    methods, options = set(), 0
    for line in steps():
        last = ""
        for quoted in re.findall(r"`[^`]+`", line):
            option = OPTION.fullmatch(quoted)
            if option and last:
                method_options(last, **{option[1]: ast.literal_eval(option[2])})
                options += 1
            elif re.fullmatch(r"`[a-z][a-z-]*`", quoted) and quoted != "`cutoff`":
                last = quoted.strip("`")
                assert last in own_methods(), f"no method is named {last}"
                methods.add(last)
    assert options >= 3 and {"auto", "feasible", "wls", "pc-didim"} <= methods


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
        assert method.value in own_methods(), call
        known = {*own_methods()[str(method.value)].option_names} | {"signals", "options", "channels", "controller"}
        assert {k.arg for k in node.keywords} <= known, call


def test_the_list_of_options_per_method_on_the_identification_page() -> None:
    """The table of methods names every method, and options that they have."""
    text = (PAGES / "identification.md").read_text(encoding="utf-8")
    seen = set()
    for first, second in re.findall(r"^\| ((?:`[\w-]+` ?)+) \| (.*) \|$", text, flags=re.MULTILINE):
        methods = re.findall(r"`([\w-]+)`", first)
        seen |= set(methods)
        for option in re.findall(r"`(\w+)(?:=[^`]*)?`", second):
            assert option in own_methods()[methods[0]].option_names, f"{methods[0]} has no option {option}"
    assert seen == set(own_methods())


def test_options_that_the_page_names_are_public() -> None:
    for name in re.findall(r"`(?:options=)?dynid\.identification\.(\w+Options)", PAGE):
        assert hasattr(dynid.identification, name)
