"""CONTRIBUTING's tree of packages is that of the layer test, and every target that it names exists."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.house import SENTENCES
from tests.test_layers import ORDER
from tests.test_layers import ROOT as SOURCE
from tools.contributing import PAGE, tree, with_tree

TEXT = PAGE.read_text(encoding="utf-8")


def test_every_part_has_its_sentence() -> None:
    """In tests/support/house.py, none for a part that is no longer there."""
    assert set(SENTENCES) == set(ORDER)
    assert all(sentence and len(sentence) < 100 and not sentence.endswith(".") for sentence in SENTENCES.values())


def test_the_tree_is_that_of_the_layers() -> None:
    """`make contributing` writes it after a change of the order or of a sentence."""
    assert with_tree(TEXT, tree(ORDER, SENTENCES, SOURCE)) == TEXT


def test_another_order_gives_another_tree(tmp_path: Path) -> None:
    """Parts come in their order, folders with a stroke, and parts outside of the package not at all."""
    (tmp_path / "low").mkdir()
    (tmp_path / "high.py").touch()
    sentences = {"low": "first", "high": "second", "beside": "third"}
    block = tree(["low", "high", "beside"], sentences, tmp_path)
    assert block == "    src/dynid/\n      low/  first\n      high  second\n"
    assert tree(["high", "low"], sentences, tmp_path) != block
    page = "Before.\n\n<!-- tree: make contributing -->\n\n    old\n\n<!-- end of the tree -->\n"
    assert with_tree(page, block) == page.replace("    old\n", block)
    with pytest.raises(ValueError, match="marks of the tree"):
        with_tree("No marks.", block)


def test_targets_exist() -> None:
    """Every `make NAME` of the page is a target of the Makefile."""
    targets = set(re.findall(r"^([a-z-]+):", (PAGE.parent / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"(?:`| {4})make ([a-z-]+)", TEXT))
    assert {"test", "lint", "coverage", "contributing"} <= named <= targets
