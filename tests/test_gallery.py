"""The scripts of the gallery compile, say what they show, and run."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
SCRIPTS = sorted(GALLERY.rglob("plot_*.py"))


def test_there_are_enough_scripts_and_every_one_is_found() -> None:
    assert len(SCRIPTS) >= 24
    assert {p.parent for p in SCRIPTS} == {p for p in GALLERY.iterdir() if p.is_dir()}
    assert all((p.parent / "GALLERY_HEADER.rst").is_file() for p in SCRIPTS)
    assert not [p for p in GALLERY.rglob("*.py") if p not in SCRIPTS]


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.stem)
def test_a_script_compiles_and_has_a_title_and_a_figure(script: Path) -> None:
    text = script.read_text(encoding="utf-8")
    tree = ast.parse(text)
    compile(tree, script.name, "exec")
    title, line, *rest = (ast.get_docstring(tree) or "").splitlines()
    assert line == "=" * len(title) and any(rest)
    assert ".plot(" in text or "plt.subplots(" in text
    own = [x for x in text.splitlines() if "figsize" in x]
    assert not own or "label" in text  # a figure of its own has labels


@pytest.mark.slow
def test_every_script_runs(tmp_path: Path) -> None:
    """All in one process, as the documentation runs them; a warning of matplotlib is an error."""
    code = (
        "import os, runpy, sys, warnings\n"
        "import matplotlib\n"
        "matplotlib.use('Agg')\n"
        "from matplotlib import pyplot\n"
        "warnings.filterwarnings('error', module='matplotlib')\n"
        "for path in sys.argv[1:]:\n"
        "    os.chdir(os.path.dirname(path))\n"
        "    runpy.run_path(path)\n"
        "    assert pyplot.get_fignums() or 'real' in path, path\n"
        "    for k in pyplot.get_fignums():\n"
        "        figure = pyplot.figure(k)\n"
        "        figure.canvas.draw()\n"
        "        assert any(a.get_ylabel() or a.get_xlabel() for a in figure.axes), path\n"
        "    pyplot.close('all')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, SCRIPTS)], env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
