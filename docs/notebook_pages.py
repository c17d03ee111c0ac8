"""Pages of the notebooks: their words and their code, with a link to the file itself."""

from __future__ import annotations

from pathlib import Path

import nbformat


def write_notebook_pages(notebooks: Path, folder: Path) -> None:
    """One Markdown page for each notebook."""
    folder.mkdir(exist_ok=True)
    for path in sorted(notebooks.glob("*.ipynb")):
        parts = []
        for cell in nbformat.read(path, as_version=4).cells:
            parts.append(cell.source if cell.cell_type == "markdown" else f"```python\n{cell.source}\n```")
        parts.insert(1, f"{{download}}`The notebook <../notebooks/{path.name}>`.")
        text = "\n\n".join(parts) + "\n"
        page = folder / f"{path.stem}.md"
        if not page.exists() or page.read_text(encoding="utf-8") != text:
            page.write_text(text, encoding="utf-8")
