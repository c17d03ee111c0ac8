"""How the documentation is built: Markdown pages, and a reference drawn from the package itself."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from docstrings import plain_docstring  # noqa: E402
from notebook_pages import write_notebook_pages  # noqa: E402
from reference import write_reference  # noqa: E402

from dynid import __version__  # noqa: E402

project = "dynid"
release = __version__
html_title = f"dynid {release}"
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.viewcode", "mathml"]
html_math_renderer = "mathml"
source_suffix = {".md": "markdown"}
exclude_patterns = ["_build", "notebooks/*.ipynb"]
# Quotation marks in docstrings are code.
smartquotes = False
html_theme = "furo"
html_static_path = ["static"]
html_css_files = ["mathml.css"]
myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 4
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_default_options = {"members": True, "undoc-members": False}
# Links to other sites are not followed: pages must build, and be checked, without a network.
linkcheck_ignore = [r"https?://.*"]

write_reference(HERE / "reference-pages")
write_notebook_pages(HERE / "notebooks", HERE / "notebook-pages")


def setup(app: Any) -> None:
    """Docstrings of the package are plain text."""
    app.connect("autodoc-process-docstring", plain_docstring)
