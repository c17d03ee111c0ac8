"""Names from files are data: in the terminal, in pages, in generated code and in model files; nothing runs them."""

from __future__ import annotations

import ast
import json
import re
import tomllib
import xml.etree.ElementTree as ET
from html.parser import HTMLParser
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import dynid
from dynid import Robot
from dynid.actuators import ActuatorEstimate, load_law
from dynid.actuators.unknowns import Quantity, Unknown
from dynid.errors import ModelError
from dynid.export.simulators.write import actuator_text
from dynid.flexible.estimate import _toml as flexible_toml
from dynid.markup import html_table
from dynid.robot import ActuatorLaw
from dynid.robot.parts import Joint, Link
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from dynid.signals.fingerprint import Fingerprint
from tests.support.commands import dynid as command
from tests.support.errors import expect_error

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
    with expect_error(ModelError, "name", code="invalid_value"):
        robot(name)


def test_a_nul_in_a_file_is_refused(tmp_path: Path) -> None:
    text = 'name = "r"\nconvention = "modified"\n[[joint]]\nname = "a\\u0000b"\nalpha = 0.0\n'
    (tmp_path / "a.toml").write_text(text)
    with expect_error(ModelError, "name", code="invalid_value"):
        dynid.load_robot(tmp_path / "a.toml")
    stored = robot_to_dict(dynid.load_robot("twolink"))
    with expect_error(ModelError, "name", code="invalid_value"):
        robot_from_dict(json.loads(json.dumps(stored).replace('"twolink', '"two\\u0000link')))


def test_long_names_are_refused() -> None:
    with expect_error(ModelError):
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


# -- files of simulators, TOML and YAML ----------------------------------------------------------------

# Letters beyond U+FFFF, the delete character, signs at which a line of YAML ends, and XML and TOML to break out of.
ODD = (
    "😀 arm",
    "a\x7fb",
    "a\u2028  b: 1",
    "a\x85b: 1",
    'a"]\nkp = 1\n[x."',
    "</joint_name></plugin><plugin filename='x'>",
    "a & b",
)


def actuated(name: str) -> tuple[Robot, ActuatorLaw]:
    """A robot with this name, joints that hold it, and their law."""
    model = robot(name).with_drives("viscous+coulomb")
    return model, ActuatorLaw(model.coordinates, kp=20.0, kd=[1.0, 2.0], delay=[0.004, 0.0], backlash=0.01)


@pytest.mark.parametrize("name", ODD)
def test_names_in_files_of_simulators(name: str) -> None:
    """Names come back from YAML, XML and Python, and nothing else does; a plugin of Gazebo is code that it loads."""
    model, law = actuated(name)
    joints = list(model.coordinates)
    page = yaml.safe_load(actuator_text(model, law, "ros2_controllers")[0])
    assert set(page) == {"controller_manager", "actuators"}
    assert page["actuators"]["ros__parameters"]["dof_names"] == joints
    assert list(page["actuators"]["ros__parameters"]["gains"]) == joints
    root = ET.fromstring(actuator_text(model, law, "gazebo")[0])
    plugins = root.findall("gazebo/plugin")
    assert [x.findtext("joint_name") for x in plugins] == joints
    assert {x.get("filename") for x in plugins} == {"gz-sim-joint-position-controller-system"}
    for simulator in ("isaaclab", "mjlab", "drake", "genesis"):
        ast.parse(actuator_text(model, law, simulator)[0])


@pytest.mark.parametrize("name", ODD)
def test_names_in_toml_and_yaml(name: str, tmp_path: Path) -> None:
    model, law = actuated(name)
    joints = list(model.coordinates)
    n = len(joints)
    found = ActuatorEstimate(
        robot=model,
        law=law,
        unknowns=tuple(Unknown(Quantity.KD, (j,), (), "N m s/rad") for j in joints),
        values=np.ones(n),
        std=np.ones(n),
        prior_values=np.ones(n),
        covariance=np.eye(n),
        within_tick=np.zeros(n),
        at_bound=np.zeros(n, bool),
        rms=np.ones(n),
        prior_rms=np.ones(n),
        kp_change=np.zeros(n),
        kp_change_std=np.ones(n),
        kd_change=np.ones(n),
        kd_change_std=np.ones(n),
        negative_delay=0.0,
        rate=200.0,
        rows=100,
        effective_rows=np.ones(n),
        horizon=1.0,
        iterations=1,
        converged=True,
        seconds=1.0,
        fingerprint=Fingerprint(10.0, np.ones(n), ()),
    )
    found.save(tmp_path / "actuators.toml")
    page = tomllib.loads((tmp_path / "actuators.toml").read_bytes().decode())
    assert page["law"]["joints"] == joints and list(page["error"]) == joints
    assert load_law(tmp_path / "actuators.toml", joints).kd.tolist() == [1.0, 2.0]
    flexible = SimpleNamespace(robot=model, joints=tuple(joints))
    for field in ("stiffness", "damping", "motor_inertia"):
        vars(flexible)[field] = vars(flexible)[f"{field}_std"] = np.ones(n)
    assert list(tomllib.loads(flexible_toml(flexible))["joints"]) == joints  # type: ignore[arg-type]
    dynid.export.write(model, tmp_path / "parameters.yaml")
    (node,) = yaml.safe_load((tmp_path / "parameters.yaml").read_bytes()).values()
    assert node["ros__parameters"]["joint_names"] == joints
