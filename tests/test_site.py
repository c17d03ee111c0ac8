"""The documentation as a site: every page can be reached, every link leads somewhere, the reference is complete."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import dynid

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [p for p in sorted(DOCS.glob("**/*.md")) if not p.parent.name.endswith("-pages")]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]
# Made when the site is built.
GENERATED = ("reference-pages", "notebook-pages")


def _module(name: str) -> ModuleType:
    """A module of the docs folder, which is no package."""
    spec = importlib.util.spec_from_file_location(f"docs_{name}", DOCS / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def _prose(page: Path) -> str:
    """The text without its code."""
    text = re.sub(r"^(```+|:::+).*?^\1", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    return re.sub(r"`[^`\n]*`", "code", text)


def _anchors(page: Path) -> set[str]:
    """Headings as links name them: small letters, blanks as dashes, everything else but letters and digits gone."""
    text = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    heads = re.findall(r"^#+\s+(.*?)\s*$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


def _broken(page: Path) -> list[str]:
    """Relative links of a page that lead to no file or no heading."""
    bad = []
    for link in re.findall(r"\]\(([^)\s]+)\)", _prose(page)):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if target.parent.name in GENERATED and target.parent.parent == DOCS:
            continue
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in _anchors(target)):
            bad.append(link)
    return bad


def test_every_page_is_in_a_table_of_contents() -> None:
    """A page that no toctree names cannot be found by reading on."""
    listed = {DOCS / "index.md"}
    for page in PAGES:
        for tree in re.findall(
            r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            names = [line.strip() for line in tree.splitlines() if line.strip() and not line.startswith(":")]
            targets = [(page.parent / re.sub(r"^.*<(.*)>$", r"\1", name)).resolve() for name in names]
            missing = [t for t in targets if t.parent.name not in GENERATED and not t.with_suffix(".md").exists()]
            assert not missing, f"{page.name} lists pages that are not there"
            listed |= {t.with_suffix(".md") for t in targets}
    assert [str(p.relative_to(DOCS)) for p in PAGES if p not in listed] == []


@pytest.mark.parametrize("page", TEXTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    """Files exist and headings have the name that is asked for."""
    assert _broken(page) == []


def test_a_broken_link_would_be_seen(tmp_path: Path) -> None:
    """Wrong file, wrong heading in another file and in its own; code is no link."""
    (tmp_path / "other.md").write_text("# Two words\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md) [b](other.md#two-words) [c](#here) `x[i](j)` [d](no.md) [e](other.md#three)\n"
        "[f](#there)\n"
        "```python\nf[i](k)\n```\n"
    )
    assert _broken(page) == ["no.md", "other.md#three", "#there"]


def test_every_public_name_is_in_the_reference(tmp_path: Path) -> None:
    """Each once, as a heading, on a page that the reference lists."""
    reference = _module("reference")
    reference.write_reference(tmp_path)
    pages = {p.stem: p.read_text(encoding="utf-8") for p in tmp_path.glob("*.md")}
    heads = [
        head for name, text in pages.items() if name != "cli" for head in re.findall(r"^## (.*)$", text, re.MULTILINE)
    ]
    assert sorted(heads) == sorted(dynid.__all__)
    assert all(re.search(rf"^{name}$", pages["index"], re.MULTILINE) for name in pages if name != "index")
    assert "## dynid identify" in pages["cli"] and "Example" in pages["cli"]


def test_plain_docstrings_become_restructured_text() -> None:
    """Backticks are code; stars, bars and trailing underscores stay what they are; examples are left alone."""
    plain = _module("docstrings").as_restructured
    assert plain("`q_` times 2*x and |r|, fv_ or a_b") == r"``q_`` times 2\*x and \|r\|, fv\_ or a_b"
    assert plain("Words.\n\n>>> 2 * 3\n6") == "Words.\n\n>>> 2 * 3\n6"
    assert plain("``done *``") == "``done *``"
    assert plain("one: first\nand more\n`two`: second") == "- one: first\n  and more\n- ``two``: second"
    assert plain("Once: a word.\nNo list.") == "Once: a word.\nNo list."


def test_formulas_are_drawn_without_a_network() -> None:
    """All formulas of the pages can be drawn, and a command nobody knows is refused."""
    draw = _module("mathml").mathml
    count = 0
    for page in PAGES:
        text = _prose(page)
        for block in re.findall(r"\$\$(.+?)\$\$", text, re.DOTALL):
            assert draw(block, block=True).startswith("<math")
            count += 1
    assert count > 10
    assert "<mo>\N{PRECEDES ABOVE SINGLE-LINE EQUALS SIGN}</mo>" in draw(r"A \preceq B")
    with pytest.raises(Exception, match="cannot be drawn"):
        draw(r"\nosuchcommand{x}")


def test_figures_of_the_explanations_have_their_script() -> None:
    """Every figure in the folder is drawn by a function of figures.py, and every function has its figure."""
    drawn = re.search(
        r"^FIGURES.*?\{(.*?)\}", (DOCS / "figures.py").read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
    )
    assert drawn is not None
    assert set(re.findall(r'"(\w+)":', drawn[1])) == {p.stem for p in (DOCS / "figures").glob("*.svg")}


def test_defaults_are_those_of_the_code() -> None:
    """What the page calls a default, in bold or in the first column of a table, is one."""
    from dynid.assessment.tests.instruments import instrument_test
    from dynid.identification.estimators.registry import CLOSED_LOOP, ESTIMATORS

    asked: dict[str, list[Callable[..., object]]] = {
        "Signals": [dynid.Signals],
        "Estimators": [
            *(dynid.identify, ESTIMATORS["wls"], ESTIMATORS["feasible"]),
            *(dynid.feasibility.constraints.Inertia, dynid.feasibility.is_feasible),
        ],
        "Closed loop": [CLOSED_LOOP["pc-didim"]],
        "Excitation": [dynid.design_excitation],
        "Tests": [instrument_test],
        "Residuals": [dynid.fit_residual],
    }
    text = (DOCS / "defaults.md").read_text(encoding="utf-8")
    count = 0
    for title, functions in asked.items():
        section = text.split(f"\n## {title}\n")[1].split("\n## ")[0]
        said = re.findall(r"\*\*(.+?)\*\*|^\| ([^|]+)\|", section, re.MULTILINE)
        for name, value in re.findall(r"`(\w+)=([^`()]+)`", " ".join("".join(x) for x in said)):
            given = [inspect.signature(f).parameters for f in functions]
            defaults = [p[name].default for p in given if name in p]
            assert ast.literal_eval(value) in defaults, (title, name, value)
            count += 1
    assert count > 25


@pytest.mark.slow
def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Half a minute: pages, reference, formulas."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "<math" in (tmp_path / "mathematics.html").read_text(encoding="utf-8")
    for page in tmp_path.glob("**/*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(script|link|img)[^>]*(src|href)="(https?:)?//', text), f"{page.name} needs a network"
