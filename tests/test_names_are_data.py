"""Names from files are data: in the terminal, in pages, in generated code and in model files; nothing runs them."""

from __future__ import annotations

import ast
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.markup import html_table
from dynid.robot.parts import Joint, Link
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from tests.support.commands import dynid as command
from tests.support.log_files import refused

ROOT = Path(dynid.__file__).parent
NASTY = (
    "<script>alert(1)</script>",
    "\"quoted\" and 'quoted'",
    "[/bold]",
    "[red]x[/red]",
    "line\nbreak",
    "\u202ereversed",
    "a*/ b // c \\",
    "${jndi} {0} %s",
    "]]> --> <!--",
    "é ü 名",
)


def robot(name: str) -> Robot:
    """Two joints, whose names and links hold the text."""
    body = dynid.inertia.inertia_from_com(1.0, [0.1, 0, 0], 0.01 * np.eye(3))
    links = tuple(Link(f"{name} l{k}", body) for k in range(3))
    joints = tuple(Joint(f"{name} j{k}", "revolute", k, np.eye(4), np.array([0.0, 1.0, 0.0])) for k in range(2))
    return Robot(name, links, joints)


@pytest.mark.parametrize("name", [n for n in NASTY if "\n" not in n])
def test_inspect_shows_names_as_they_are(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Brackets are no markup of the terminal; this ended in a traceback."""
    from dynid.report import inspection

    shown: list[str] = []

    class Page:
        width = 300

        def print(self, *parts: object, **_: object) -> None:
            from dynid.terminal import rendered

            shown.append(rendered(*parts))

    monkeypatch.setattr(inspection, "page", Page)
    monkeypatch.setenv("COLUMNS", "300")
    tree = inspection._tree(robot(name))
    Page().print(tree)
    assert f"{name} l0" in "".join(shown) and f"{name} j1" in "".join(shown)


def test_inspect_of_a_file_with_markup_in_its_names(tmp_path: Path) -> None:
    text = '<robot name="[/bold]"><link name="[/a]"/><link name="b[red]"/>'
    text += '<joint name="j[1]" type="continuous"><parent link="[/a]"/><child link="b[red]"/></joint></robot>'
    (tmp_path / "a.urdf").write_text(text)
    found = command("inspect", tmp_path / "a.urdf")
    assert found.returncode == 0 and "[/bold]: 1 joints" in found.stdout and "b[red]" in found.stdout


@pytest.mark.parametrize("ending", [".urdf", ".xml", ".sdf"])
@pytest.mark.parametrize("name", [n for n in NASTY if "\n" not in n])
def test_model_files_give_names_back(tmp_path: Path, name: str, ending: str) -> None:
    if ending == ".xml" and "/" in name:
        pytest.skip("MuJoCo's own rules for names")
    dynid.export.write(robot(name), tmp_path / f"a{ending}")
    back = dynid.load_robot(tmp_path / f"a{ending}")
    assert [j.name for j in back.joints] == [j.name for j in robot(name).joints]


@pytest.mark.parametrize("name", NASTY)
def test_notebook_tables_escape_names(name: str) -> None:
    tags: list[str] = []

    class Tags(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)

    Tags().feed(html_table(name, [name], [[name]], name))
    assert set(tags) <= {"div", "strong", "table", "thead", "tbody", "tr", "th", "td"}


@pytest.mark.parametrize("name", ["a\0b", "a\x1b[2J", "\ud800", "\uffff"])
def test_names_that_no_file_can_hold_are_refused(name: str) -> None:
    with refused("contains the character U\\+", "which model files cannot hold"):
        robot(name)


def test_a_nul_in_a_file_is_refused(tmp_path: Path) -> None:
    text = 'name = "r"\nconvention = "modified"\n[[joint]]\nname = "a\\u0000b"\nalpha = 0.0\n'
    (tmp_path / "a.toml").write_text(text)
    with refused("the name of a joint contains the character U\\+0000"):
        dynid.load_robot(tmp_path / "a.toml")
    stored = robot_to_dict(dynid.load_robot("twolink"))
    with refused("contains the character U\\+0000"):
        robot_from_dict(json.loads(json.dumps(stored).replace('"twolink', '"two\\u0000link')))


def test_long_names_are_refused() -> None:
    with refused("has 20000 characters, the limit is 1000"):
        robot("x" * 20_000)


# -- nothing executable --------------------------------------------------------------------------------


def calls(path: Path) -> list[str]:
    """Names of all functions that a module calls, and what it passes to keywords of interest."""
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            found.append(name)
            found += [f"{k.arg}={ast.unparse(k.value)}" for k in node.keywords if k.arg in ("allow_pickle", "shell")]
    return found


# Modules that load pickles, none of which comes in a file of the user.
PICKLES = {
    "montecarlo/study.py": "tasks that a cluster hands to its workers",
    "recording/cluster.py": "tasks that a cluster hands to its workers",
    "dynamics/kernels/cache.py": "compiled kernels, which numba itself keeps as pickles in the user's own cache",
}


def test_no_reader_runs_what_a_file_says() -> None:
    """No eval, no pickle, no YAML but safe, no shell."""
    wrong = {"eval", "exec", "yaml.load", "allow_pickle=True", "shell=True", "os.system", "marshal.loads"}
    words = re.compile("eval|exec|yaml|pickle|shell|system|marshal|joblib|dill")
    for path in ROOT.rglob("*.py"):
        if not words.search(path.read_text(encoding="utf-8")):
            continue
        used, name = set(calls(path)), path.relative_to(ROOT).as_posix()
        assert not used & wrong, name
        pickles = {x for x in used if re.match(r"(c?pickle|dill|cloudpickle|joblib)\.loads?$", x)}
        assert not pickles or name in PICKLES, name
