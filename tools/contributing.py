"""The tree of packages in CONTRIBUTING.md, made from the order that tests/test_layers.py holds.

`python -m tools.contributing` writes it; tests/test_contributing.py compares.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["PAGE", "main", "tree", "with_tree"]

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "CONTRIBUTING.md"
_MARKED = re.compile(r"(<!-- tree:[^\n]*-->\n\n).*?(\n<!-- end of the tree -->)", re.DOTALL)


def tree(order: Sequence[str], sentences: Mapping[str, str], source: Path) -> str:
    """Parts of the package from the ground up, each on one line with its sentence.

    Parameters
    ----------
    order : sequence of str
        Parts in the order in which they may import each other.
    sentences : mapping of str to str
        What each part is.
    source : Path
        Folder of the package: a part that is no folder or module there, such as the studies beside it, is left out.

    Returns
    -------
    str
        An indented block of Markdown.
    """
    parts = {part: f"{part}/" if (source / part).is_dir() else part for part in order}
    inside = [part for part in order if (source / part).is_dir() or (source / f"{part}.py").is_file()]
    width = max(len(parts[part]) for part in inside) + 2
    lines = [f"      {parts[part]:{width}}{sentences[part]}" for part in inside]
    return "\n".join(["    src/dynid/", *lines]) + "\n"


def with_tree(text: str, block: str) -> str:
    """The text with the block between its two marks.

    Parameters
    ----------
    text : str
        Markdown with the marks `<!-- tree: ... -->` and `<!-- end of the tree -->`.
    block : str
        What `tree` made.

    Returns
    -------
    str
        The text with the new block.
    """
    if not _MARKED.search(text):
        raise ValueError(f"the marks of the tree are not in {PAGE.name}")
    return _MARKED.sub(lambda m: m[1] + block + m[2], text)


def main() -> int:
    """Write the tree into CONTRIBUTING.md.

    Returns
    -------
    int
        0.
    """
    order = importlib.import_module("tests.test_layers").ORDER
    sentences = importlib.import_module("tests.support.house").SENTENCES
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(with_tree(text, tree(order, sentences, ROOT / "src" / "dynid")), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
