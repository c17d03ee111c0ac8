"""`dynid export`: every format from a robot and from an estimate, and plain words for what cannot be."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import dynid
from dynid.cli.main import app
from dynid.export.urdf import write_urdf
from tests.support.compare import difference
from tests.support.random_robots import random_motion
from tests.support.synthetic import EXACT, arm, record

LAW = "viscous+coulomb+offset"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with arm.urdf and an estimate of it."""
    folder = tmp_path_factory.mktemp("export")
    truth = arm().without("Ia_*")
    write_urdf(truth, folder / "arm.urdf")
    robot = dynid.load_robot(folder / "arm.urdf", friction=LAW)
    estimate = dynid.identify(robot, record(truth, (0, 1), noise=0.02), "feasible", signals=EXACT)
    estimate.save(folder / "estimate.json")
    return folder


def run(place: Path, *words: object) -> Result:
    """Of the estimate where it is named first, else of the robot."""
    model = [] if words[0] == place / "estimate.json" else [place / "arm.urdf", "--friction", LAW]
    return CliRunner().invoke(app, ["export", *map(str, (*model, *words))])


def estimate_of(place: Path) -> dynid.Estimate:
    return dynid.Estimate.load(place / "estimate.json")


def test_ranges_of_draws(place: Path, tmp_path: Path) -> None:
    """Ranges of every standard parameter around the estimate, with its verdict; not of a robot without estimate."""
    file, estimate = tmp_path / "ranges.json", estimate_of(place)
    done = run(place, place / "estimate.json", "--draws", 200, "-o", file)
    assert done.exit_code == 0, done.output
    page = json.loads(file.read_text())
    assert page["verdict"] == "not assessed" and page["draws"] == 200
    found = {row["name"]: row for row in page["parameters"]}
    assert tuple(found) == estimate.robot.parameter_names
    value = dict(zip(found, estimate.parameters, strict=True))["fv_joint2"]
    assert found["fv_joint2"]["low"] < value < found["fv_joint2"]["high"]
    for words in (("--draws", 1), ("--draws", 20, "--to", "c")):
        assert run(place, place / "estimate.json", *words, "-o", file).exit_code == 1
    assert "name its file in place of the robot" in str(run(place, "--draws", 20, "-o", file).exception)


@pytest.mark.parametrize("ending", ["urdf", "xml", "sdf", "yaml", "json", "toml"])
def test_every_file_is_written(place: Path, tmp_path: Path, ending: str) -> None:
    """The ending says what; an estimate's values are in it."""
    file = tmp_path / f"model.{ending}"
    done = run(place, place / "estimate.json", "-o", file, "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["written"] == [str(file)] and file.stat().st_size > 500
    if ending == "urdf":
        back = dynid.load_robot(file, friction=LAW)
        expect = estimate_of(place).identified_robot
        q, v, a = random_motion(back, 1, 3)
        inertial = np.array([p.inertial for p in back.layout])
        ours = [dynid.inverse_dynamics(r, q, v, a, np.where(inertial, r.parameters, 0)) for r in (back, expect)]
        assert difference(*ours) < 1e-9


def test_templates_keep_their_own(place: Path, tmp_path: Path) -> None:
    """A remark in the file survives."""
    template = tmp_path / "with_remark.urdf"
    template.write_text((place / "arm.urdf").read_text().replace("</robot>", "<!-- by hand --></robot>"))
    done = run(place, place / "estimate.json", "-o", tmp_path / "out.urdf", "--template", template)
    assert done.exit_code == 0 and "<!-- by hand -->" in (tmp_path / "out.urdf").read_text()


def test_python_code_of_base_parameters_predicts_as_the_estimate(place: Path, tmp_path: Path) -> None:
    """The file alone gives the torques of the estimate's base parameters."""
    file = tmp_path / "model.py"
    done = run(place, place / "estimate.json", "-o", file, "--parameters", "base", "--date", "2026-02-03")
    assert done.exit_code == 0 and "inverse_dynamics:" in done.stdout
    spec = importlib.util.spec_from_file_location("model", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    estimate = estimate_of(place)
    q, v, a = random_motion(estimate.robot, 1, 3)
    assert difference(module.inverse_dynamics(q, v, a), estimate.base_model().inverse_dynamics(q, v, a)) < 1e-10
    head = file.read_text().split('"""')[1]
    assert "2026-02-03" in head and "Relative error of the fit" in head


def test_code_goes_into_a_folder_or_under_the_name_of_the_file(place: Path, tmp_path: Path) -> None:
    """c and casadi write several files; today's date stands in the head."""
    done = run(place, "--to", "c", "-o", tmp_path / "code", "--functions", "gravity_torque", "--json")
    page = json.loads(done.stdout)
    assert [Path(p).name for p in page["written"]] == ["arm3.h", "arm3.c"] and "gravity_torque" in page["operations"]
    assert "Date: 20" in (tmp_path / "code" / "arm3.h").read_text()
    done = run(place, "-o", tmp_path / "mine.c", "--parameters", "symbolic", "--functions", "inverse_dynamics")
    assert done.exit_code == 0 and "mine_inverse_dynamics(" in (tmp_path / "mine.h").read_text()
    done = run(place, "-o", tmp_path / "mine.jl")
    assert done.exit_code == 0 and "module mine\n" in (tmp_path / "mine.jl").read_text()
    done = run(place, "-o", tmp_path / "mine.m", "--functions", "mass_matrix", "--json")
    assert [Path(p).name for p in json.loads(done.stdout)["written"]] == ["mine_model.m", "mine_mass_matrix.m"]
    assert "function M = mine_mass_matrix(q)" in (tmp_path / "mine_mass_matrix.m").read_text()
    pytest.importorskip("casadi")
    done = run(place, "--to", "casadi", "-o", tmp_path / "ca", "--functions", "mass_matrix", "--name", "bob")
    assert done.exit_code == 0 and (tmp_path / "ca" / "bob_mass_matrix.casadi").exists()


@pytest.mark.parametrize("language", ["torch", "jax"])
def test_files_of_tensors_are_named_by_to(place: Path, tmp_path: Path, language: str) -> None:
    """The ending .py alone means NumPy; values of the estimate are in the file."""
    done = run(place, place / "estimate.json", "--to", language, "-o", tmp_path / "mine.py")
    text = (tmp_path / "mine.py").read_text()
    assert done.exit_code == 0 and f"import {language}" in text and "def forward_dynamics(q, v, tau, parms" in text
    assert f"VALUES = ({float(estimate_of(place).parameters[0])!r}, " in text
    done = run(place, "--to", language, "-o", tmp_path / "code", "--parameters", "symbolic-base")
    assert done.exit_code == 0 and (tmp_path / "code" / "arm3.py").exists()


def test_equations_hold_values_unless_asked_for_symbols(place: Path, tmp_path: Path) -> None:
    """Base parameters of the estimate under the equations."""
    done = CliRunner().invoke(app, ["export", "twolink", "-o", str(tmp_path / "a.tex"), "--parameters", "base"])
    text = (tmp_path / "a.tex").read_text()
    assert done.exit_code == 0 and "Izz_1R = " in text and "I_{zz,1}^{R}" in text
    CliRunner().invoke(app, ["export", "twolink", "-o", str(tmp_path / "a.tex"), "--parameters", "symbolic"])
    assert "values" not in (tmp_path / "a.tex").read_text()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["twolink"], "name the file to write"),
        (["twolink", "-o", "x.txt"], "use --to"),
        (["twolink", "-o", "x", "--to", "fortran"], "--to 'fortran' is unknown"),
        (["twolink", "-o", "x.c", "--template", "a.urdf"], "--template is for"),
        (["twolink", "-o", "x.urdf", "--parameters", "base"], "--parameters is for code"),
        (["twolink", "-o", "x.urdf", "--functions", "all"], "--functions is for code"),
        (["twolink", "-o", "x.c", "--functions", "thrust"], "no function is named 'thrust'"),
        (["nowhere.json", "-o", "x.c"], "there is no file"),
        (["-o", "x.c"], "no robot is given"),
        (["tx40", "-o", "x.tex"], "6 joints"),
        (["iiwa14", "-o", "x.urdf"], "--allow-infeasible"),
    ],
)
def test_what_cannot_be_is_said(
    words: list[str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One sentence, no file."""
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["export", *words])
    assert done.exit_code != 0 and isinstance(done.exception, dynid.DynidError)
    assert message in str(done.exception) and not list(tmp_path.iterdir())


def test_impossible_robots_are_written_when_asked(tmp_path: Path) -> None:
    """With warnings that name them."""
    words = ["export", "iiwa14", "-o", str(tmp_path / "x.urdf"), "--allow-infeasible", "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and any("not physically consistent" in w for w in json.loads(done.stdout)["warnings"])


def test_help_has_an_example() -> None:
    """As every command."""
    done = CliRunner().invoke(app, ["export", "--help"])
    assert done.exit_code == 0 and "Example: dynid export" in done.output


@pytest.mark.parametrize("simulator", ["mujoco", "isaaclab", "ros2_controllers"])
def test_actuators_for_a_simulator(place: Path, tmp_path: Path, simulator: str) -> None:
    """What is lost is told, in words and as data."""
    file = tmp_path / "actuators"
    words = ("--simulator", simulator, "--law", "pd:20,1.5", "--step", "0.005", "-o", file)
    assert run(place, *words).exit_code == 0 and "0.005 s" in file.read_text()
    done = run(place, place / "estimate.json", *words, "--json")
    assert done.exit_code == 0, done.output
    page = json.loads(done.stdout)
    assert page["simulator"] == simulator and page["kept"]["proportional gain"]
    assert "offset" in {x["code"] for x in page["lost"]} and "torque offset is left out" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--simulator", "mujoco"), "--simulator needs the law"),
        (("--law", "pd:20,1", "--to", "urdf"), "--law is for --simulator and for torch and jax"),
        (("--step", "0.005"), "name the simulator with --simulator"),
        (("--simulator", "isaac", "--law", "pd:20,1"), "did you mean isaaclab"),
        (("--simulator", "mujoco", "--law", "pd:20,1", "--to", "mjcf"), "--to is not for the actuators"),
        (("--simulator", "mujoco", "--law", "pd:20"), "the law 'pd:20' is not known"),
    ],
)
def test_actuators_that_cannot_be_written(place: Path, tmp_path: Path, words: tuple[str, ...], message: str) -> None:
    done = run(place, *words, "-o", tmp_path / "out")
    assert done.exit_code != 0 and message in str(done.exception) and not (tmp_path / "out").exists()
