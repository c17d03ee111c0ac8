"""Tables of the documentation that are made from records are those of the records."""

from __future__ import annotations

import re
import runpy
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
MAKER = runpy.run_path(str(DOCS / "record_tables.py"))
MARKED = [page for page in sorted(DOCS.rglob("*.md")) if "<!-- records " in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", MARKED, ids=lambda page: page.name)
def test_a_page_has_the_tables_of_the_records(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert MAKER["with_tables"](text) == text, "write it anew: python docs/record_tables.py"


def test_every_table_is_on_a_page() -> None:
    text = "".join(page.read_text(encoding="utf-8") for page in MARKED)
    assert set(re.findall(r"<!-- records ([a-z-]+) -->", text)) == set(MAKER["TABLES"])
