"""Examples in the documentation run as they are written; public names exist and are documented."""

from __future__ import annotations

import dataclasses
import doctest
import enum
import importlib
import importlib.util
import inspect
import json
import re
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from numpydoc.docscrape import NumpyDocString

import dynid
from tests.support.public import exists, public_names

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
PAGES = [
    ROOT / "README.md",
    *(p for p in sorted((ROOT / "docs").glob("**/*.md")) if p.parent.name != "generated"),
]
TEXTS = [ROOT / "CONTRIBUTING.md", *PAGES, *sorted((ROOT / "docs" / "notebooks").glob("*.ipynb"))]
MODULES = [
    ".".join(p.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__")
    for p in sorted(SOURCE.rglob("*.py"))
    if ">>> " in p.read_text(encoding="utf-8")
]
# Endings of file names such as `dynid.toml`, which are no names of Python.
FILES = {"toml", "json", "csv", "html", "log"}
# Libraries that blocks may import and that need not be installed; such a block is left out without them.
OPTIONAL = ("torch", "jax")


# Pages that select among many models, fit Gaussian processes, or go through the whole package.
SLOW = (
    *("actuators.md", "calibration.md", "floating-base.md", "friction.md", "generated-code.md"),
    *("human.md", "legs.md", "online.md", "residual.md", "simulation.md", "statistics.md", "walk-through.md"),
    "which-method.md",
)


@pytest.fixture
def own_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The folder of the test is the current one, and the one of temporary files: examples leave theirs behind."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize(
    "page",
    [pytest.param(p, marks=pytest.mark.slow) if p.name in SLOW else p for p in PAGES],
    ids=lambda p: p.name,
)
def test_python_blocks_run_in_order(page: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """All blocks of a page share one namespace; a comment after a print is its output."""
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL):
        if any(f"\nimport {x}\n" in f"\n{block}" and importlib.util.find_spec(x) is None for x in OPTIONAL):
            continue
        exec(compile(block, page.name, "exec"), names)
        printed = capsys.readouterr().out.splitlines()
        expected = re.findall(r"^print\(.*\) {2,}# (.*)$", block, re.MULTILINE)
        for text in expected:
            if text.startswith(("how", "the", "values", "errors")):
                continue
            assert any(line == text.split(": beta")[0] for line in printed), (text, printed)


def test_robot_file_of_the_documentation_loads(tmp_path: Path) -> None:
    """The complete TOML example is valid, and so is the same file with the block of the coupling."""
    blocks = re.findall(r"```toml\n(.*?)```", (ROOT / "docs/robot-files.md").read_text(encoding="utf-8"), re.DOTALL)
    file = tmp_path / "elbow.toml"
    file.write_text(blocks[0])
    robot = dynid.load_robot(file)
    assert robot.n == 2 and robot.limits["joint1"].effort == 50
    head, joints = blocks[0].split("[[joint]]", 1)
    coupling, motors = blocks[1].split("[[motor]]", 1)
    file.write_text(f"{head}{coupling}[[joint]]{joints}[[motor]]{motors}")
    assert "fvm_2" in dynid.load_robot(file).parameter_labels


@pytest.mark.usefixtures("own_folder")
@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples_run(name: str) -> None:
    """Examples in docstrings, of every module that has some."""
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.attempted > 0 and result.failed == 0


def undocumented(what: object) -> list[str]:
    """Parameters of a function, or of a class's constructor, that its docstring does not list as `name : type`.

    The fields of a dataclass may stand under Attributes instead; `*args` and `**options` need no type.
    """
    text = inspect.getdoc(what)
    if not text:
        return ["no docstring"]
    # A class may leave what it inherits to the docstring of its base.
    texts = [text]
    if inspect.isclass(what):
        if issubclass(what, enum.Enum):
            return []
        texts += [base.__doc__ for base in what.__mro__[1:] if base.__module__.startswith("dynid") and base.__doc__]
    listed = []
    for one in texts:
        try:
            sections = NumpyDocString(inspect.cleandoc(one))
        except ValueError as error:
            return [str(error).splitlines()[0]]
        listed += [*sections["Parameters"], *sections["Other Parameters"]]
        if inspect.isclass(what):
            listed += sections["Attributes"]
    names = [(name.strip(), entry.type) for entry in listed for name in entry.name.split(",")]
    typed = {name.lstrip("*") for name, kind in names if kind or name.startswith("*")}
    return [name for name in parameters(what) if name not in typed]


def parameters(what: object) -> list[str]:
    """Names of the parameters that a caller may give."""
    if inspect.isclass(what):
        if dataclasses.is_dataclass(what):
            return [f.name for f in dataclasses.fields(what) if f.init and not f.name.startswith("_")]
        if issubclass(what, BaseException) or getattr(what, "_is_protocol", False):
            return []
    try:
        found = inspect.signature(what).parameters  # type: ignore[arg-type]
    except ValueError:
        return []
    return [name for name in found if name not in ("self", "cls") and not name.startswith("_")]


def test_every_public_name_documents_its_parameters() -> None:
    """All names of the stubs: functions and classes have a Parameters section (numpydoc) with a type for each."""
    wrong: dict[str, str] = {}
    seen: set[int] = set()
    for module, name, what in public_names():
        if not (inspect.isfunction(what) or inspect.isclass(what)) or id(what) in seen:
            continue
        seen.add(id(what))
        if missing := undocumented(what):
            wrong[f"{module}.{name}"] = ", ".join(missing)
    listed = "\n".join(f"  {name}: {missing}" for name, missing in sorted(wrong.items()))
    assert not wrong, f"{len(wrong)} of {len(seen)} public names have undocumented parameters:\n{listed}"


def test_undocumented_parameters_are_found() -> None:
    """A parameter without an entry, and an entry without a type."""

    def sample(q: float, v: float, *, rate: float) -> None:
        """Sum.

        Parameters
        ----------
        q : float
            Position.
        v
            Velocity.
        """

    assert undocumented(sample) == ["v", "rate"]


def test_every_public_method_has_a_docstring() -> None:
    wrong = set()
    for what in {what for _, _, what in public_names() if inspect.isclass(what)}:
        ours = [vars(x) for x in what.__mro__ if x.__module__.startswith("dynid")]
        for key, member in (item for members in ours for item in members.items()):
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            own = inspect.isfunction(function) and function.__module__.startswith("dynid")
            # A method may leave what it inherits to the docstring of its base.
            told = (vars(x).get(key) for x in what.__mro__)
            if own and not key.startswith("_") and not any(getattr(x, "__doc__", None) for x in told):
                wrong.add(f"{what.__module__}.{what.__qualname__}.{key}")
    assert not wrong, "\n".join(sorted(wrong))


def code_names(text: str) -> Iterator[str]:
    """Dotted names of the package in the code of a Markdown text, in blocks and between backticks."""
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE))
    for code in (*blocks, *spans):
        found = re.findall(r"(?<![\w./-])dynid(?:\.[A-Za-z_]\w*)+", code)
        yield from (name for name in found if name.rsplit(".", 1)[1] not in FILES)
        for module, names in re.findall(r"^from (dynid[\w.]*) import ([\w, ]+)$", code, re.MULTILINE):
            yield from (f"{module}.{name.split(' as ')[0].strip()}" for name in names.split(","))


@pytest.mark.parametrize("page", TEXTS, ids=lambda p: p.name)
def test_names_in_the_documentation_exist(page: Path) -> None:
    """Every `dynid.a.b` in code or between backticks."""
    text = page.read_text(encoding="utf-8")
    if page.suffix == ".ipynb":
        cells = [(c["cell_type"], "".join(c["source"])) for c in json.loads(text)["cells"]]
        text = "\n".join(f"```python\n{source}\n```" if kind == "code" else source for kind, source in cells)
    assert sorted({n for n in code_names(text) if not exists(n)}) == []


def test_a_name_that_does_not_exist_is_found() -> None:
    text = "`dynid.identify` `dynid.nothing` `dynid.toml`\n"
    text += "```python\nfrom dynid.signals import Signals, Nothing\ndynid.Robot.links\n```\n"
    assert [n for n in code_names(text) if not exists(n)] == ["dynid.signals.Nothing", "dynid.nothing"]
