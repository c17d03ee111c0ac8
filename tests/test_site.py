"""The documentation as a site: every page can be reached, every link leads somewhere, the reference is complete."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import inspect
import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from urllib.parse import unquote

import pytest

import dynid
from tests.support.public import PUBLIC_MODULES, public_names

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
GENERATED = DOCS / "reference" / "generated"  # written when the site is built
PAGES = [p for p in sorted(DOCS.glob("**/*.md")) if p.parent != GENERATED]
TEXTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *PAGES]


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
        if target.parent == GENERATED:
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
            written = [t for t in targets if "generated" not in t.parts]
            missing = [t for t in written if not any(t.with_suffix(s).exists() for s in (".md", ".ipynb"))]
            assert not missing, f"{page.name} lists pages that are not there"
            listed |= {t.with_suffix(".md") for t in targets}
    assert [str(p.relative_to(DOCS)) for p in PAGES if p not in listed] == []


def _chapters() -> dict[str, set[Path]]:
    """Pages by the caption of their table of contents on the front page."""
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    trees = re.findall(r"^:caption: (.+)\n(?::.*\n)*\n((?:[\w/-]+\n)+)", text, re.MULTILINE)
    return {caption: {DOCS / f"{name}.md" for name in names.split()} for caption, names in trees}


def test_guide_and_theory_have_at_most_forty_pages() -> None:
    """Everything but reports of studies, notebooks and the reference; a new page is a section of another one first."""
    reference = _chapters()["Reference"]
    assert len(reference) == 6
    apart = {DOCS / "study-reports", DOCS / "notebooks"}
    guide = [p for p in PAGES if p not in reference and p.parent not in apart and "generated" not in p.parts]
    assert len(guide) <= 40, [str(p.relative_to(DOCS)) for p in guide]


def test_theory_opens_with_its_sources() -> None:
    """Author, year and title, before anything else; the reasons for defaults are our own."""
    theory = _chapters()["Theory"] - {DOCS / "defaults.md"}
    assert len(theory) > 6
    source = r"- [A-Z][^\n(]+ \((?:19|20)\d\d\), [A-Z][^.]*\.\n"
    for page in theory:
        assert re.match(rf"# .+\n\nSources:\n\n(?:{source})+\n", page.read_text(encoding="utf-8")), page.name


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


def test_command_lines_fit_the_page() -> None:
    """Commands in blocks have at most 88 characters, which a page of 1280 pixels shows without scrolling."""
    long = []
    for page in TEXTS:
        text = re.sub(r"^```python.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
        blocks = re.findall(r"^```(?:sh|text|\n).*?^```", text, re.DOTALL | re.MULTILINE)
        lines = [line for block in blocks for line in block.splitlines()]
        lines += re.findall(r"^ {4,}((?:dynid|pip|python|make|twine) .*)$", text, re.MULTILINE)
        commands = [x for x in lines if re.match(r"(dynid|pip|python|make|dask) ", x)]
        long += [f"{page.name}: {x}" for x in commands if len(x) > 88]
    assert long == []


def test_every_public_module_is_in_the_reference() -> None:
    """Each once, in the table from which autosummary makes the pages."""
    listed = re.findall(
        r"^   (dynid[\w.]*)$", (DOCS / "reference" / "index.md").read_text(encoding="utf-8"), re.MULTILINE
    )
    assert sorted(listed) == sorted(PUBLIC_MODULES)


def test_a_name_is_the_same_object_in_dynid_and_in_its_submodule() -> None:
    """The reference describes such a name once, on the page of `dynid`."""
    for module in PUBLIC_MODULES:
        members = importlib.import_module(module)
        for name in set(members.__all__) & set(dynid.__all__):
            assert getattr(members, name) is getattr(dynid, name)


def test_the_page_of_the_command_line_shows_every_command() -> None:
    text = _module("command_line").command_page()
    for name in ("robots", "identify", "report"):
        assert f"## dynid {name}\n" in text
    assert "Example" in text and "Usage" in text


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


def test_every_kind_of_fault_has_a_section_with_its_figure_and_its_codes() -> None:
    """The page has one section per kind of the verdict study, which shows its figure and names a right cause."""
    from studies.reproduce.verdict_causes import INVISIBLE, RIGHT_CAUSES

    text, end, _ = (DOCS / "faults.md").read_text(encoding="utf-8").partition("\n## Actuators from encoders\n")
    assert end  # faults of actuators are not in the verdict study, and have no figures
    sections = re.split(r"^### ", text, flags=re.MULTILINE)[1:]
    shown = {}
    for section in sections:
        (figure,) = re.findall(r"\(figures/faults/(\w+)\.svg\)", section)
        shown[figure] = section
    assert set(shown) == {p.stem for p in (DOCS / "figures" / "faults").glob("*.svg")} == set(RIGHT_CAUSES)
    for fault, codes in RIGHT_CAUSES.items():
        assert codes & set(re.findall(r"`(\w+)`", shown[fault])), fault
    assert all("#what-no-data-can-tell" in shown[fault] for fault in INVISIBLE)


def test_defaults_are_those_of_the_code() -> None:
    """What the page calls a default, in bold or in the first column of a table, is one."""
    from dynid.assessment.causes.instruments import instrument_test
    from dynid.identification.estimators.registry import own_methods

    asked: dict[str, list[Callable[..., object]]] = {
        "Signals": [dynid.Signals],
        "Methods": [
            *(dynid.identify, own_methods()["wls"].options, own_methods()["feasible"].options),
            *(dynid.feasibility.constraints.Inertia, dynid.feasibility.is_feasible),
        ],
        "Closed loop": [own_methods()["pc-didim"].options, dynid.ClosedLoop],
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
    """A few minutes: pages, reference, formulas, and the notebooks with their outputs."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-E", "-b", "html", str(DOCS), str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "<math" in (tmp_path / "mathematics.html").read_text(encoding="utf-8")
    for page in tmp_path.glob("**/*.html"):
        text = page.read_text(encoding="utf-8")
        assert not re.search(r'<(script|link|img)[^>]*(src|href)="(https?:)?//', text), f"{page.name} needs a network"
    for book in (DOCS / "notebooks").glob("*.ipynb"):
        text = (tmp_path / "notebooks" / f"{book.stem}.html").read_text(encoding="utf-8")
        assert "cell_output" in text, f"{book.name} is shown without its outputs"
    entries = set()
    for page in (tmp_path / "reference" / "generated").glob("dynid*.html"):
        entries |= set(re.findall(r' id="(dynid\.[\w.]+)"', page.read_text(encoding="utf-8")))
    missing = [
        f"{module}.{name}"
        for module, name, what in public_names()
        if (inspect.isfunction(what) or inspect.isclass(what)) and not {f"{module}.{name}", f"dynid.{name}"} & entries
    ]
    assert not missing


def test_the_site_lists_its_versions() -> None:
    """One entry is this site; every other one has an address of its own."""
    listed = json.loads((DOCS / "versions.json").read_text(encoding="utf-8"))
    assert [one["name"] for one in listed if not one["url"]] == ["latest"]
    assert all(re.match(r"https://|\.\./", one["url"]) for one in listed if one["url"])
    switcher = (DOCS / "templates" / "sidebar" / "variant-selector.html").read_text(encoding="utf-8")
    assert "documentation_versions" in switcher and "release" in switcher
