"""Sphinx settings: Markdown pages, notebooks with their outputs, and an API reference made from the docstrings."""

from __future__ import annotations

import json
import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from command_line import write_command_page  # noqa: E402

import dynid  # noqa: E402

project = "dynid"
copyright = "dynid developers"
release = dynid.__version__
extensions = [
    "myst_nb",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "sphinx_gallery.gen_gallery",
    "sphinx_copybutton",
    "sphinx_design",
    "accessible",
    "mathml",
]
source_suffix = {".rst": "restructuredtext", ".md": "myst-nb", ".ipynb": "myst-nb"}  # autosummary writes the first kind
exclude_patterns = ["_build", "templates", "gallery", "generated/gallery/index.rst", "generated/gallery/**.ipynb"]
templates_path = ["templates"]
smartquotes = False  # quotation marks in docstrings belong to code
default_role = "code"  # single backticks in docstrings are code

html_title = f"dynid {release}"
# Other versions of the site and their addresses; a release adds its own.
html_context = {"documentation_versions": json.loads((HERE / "versions.json").read_text(encoding="utf-8"))}
html_theme = "furo"
html_static_path = ["static"]
html_favicon = "static/favicon.svg"
html_css_files = ["mathml.css", "site.css"]
html_math_renderer = "mathml"  # sphinx.ext.mathjax loads its script from a network, imgmath needs a LaTeX installation

myst_enable_extensions = ["dollarmath", "deflist", "colon_fence"]
myst_heading_anchors = 4

# The notebooks are stored without outputs and run when the site is built; `make clean` forgets the outputs.
nb_execution_mode = "force"
nb_execution_timeout = 600
nb_execution_raise_on_error = True
nb_merge_streams = True

# Packages load their names lazily, so every public name counts as imported; `__all__` holds the public names only.
autosummary_imported_members = True
autosummary_ignore_module_all = False
autosummary_context = {"public_names": dynid.__all__}
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False
numpydoc_validation_checks: set[str] = set()

# Links to other sites are not followed: pages must build, and be checked, without a network.
linkcheck_ignore = [r"https?://.*"]

# The scripts of docs/gallery run when the site is built; plots.md includes the list of their thumbnails.
sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "generated/gallery",
    "nested_sections": False,
    "subsection_order": [
        *("gallery/recordings", "gallery/excitation", "gallery/identification"),
        *("gallery/friction", "gallery/simulation", "gallery/robots"),
    ],
    "within_subsection_order": "FileNameSortKey",
    "capture_repr": ("_repr_html_",),
    "abort_on_example_error": True,
    "download_all_examples": False,
    "show_memory": False,
    "write_computation_times": False,
    "min_reported_time": 5,
    "reset_modules": ("gallery_style.gallery_style",),
    "remove_config_comments": True,
}
write_command_page(HERE / "reference" / "generated" / "command-line.md")
