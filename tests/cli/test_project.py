"""dynid.toml: written by `dynid init`, used by every command, overridden by options."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from pathlib import Path
from urllib.parse import unquote

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner, Result

import dynid
from dynid.cli.main import app
from dynid.cli.project import load_project
from dynid.export.urdf import write_urdf
from dynid.quoting import toml_value
from tests.support.documented_files import LAW, LOOP, arm, write_own_logs

READING = ("--time", "0", "--columns", "q=1:4", "--columns", "torque=4:7", "--units", "t=ms", "--units", "q=deg")
LOGS = ("monday.csv", "tuesday.csv", "plain.csv")


def run(*words: object) -> Result:
    return CliRunner().invoke(app, [str(w) for w in words])


def done(*words: object) -> Result:
    """A command that must succeed."""
    result = run(*words)
    assert result.exit_code == 0, (words, result.output, result.exception)
    return result


def refused(*words: object) -> str:
    """What a command that must fail says."""
    result = run(*words)
    assert isinstance(result.exception, dynid.DynidError), (result.output, result.exception)
    return str(result.exception)


def monday() -> NDArray[np.float64]:
    """Time, positions and torques of a log, in SI units."""
    columns = {"q": "1:4", "torque": "4:7"}
    robot = dynid.load_robot("arm.urdf")
    run = dynid.load_recording("monday.csv", robot, time=0, columns=columns, units={"t": "ms", "q": "deg"}).runs[0]
    assert run.torque is not None
    return np.column_stack([run.t, run.q, run.torque])


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A URDF without friction, two logs with headers of their own and one without, and a controller."""
    folder = tmp_path_factory.mktemp("made")
    robot = arm()
    write_urdf(robot, folder / "arm.urdf")
    write_own_logs(robot, folder)
    (folder / "loop.toml").write_text(LOOP)
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of these files, which is the current folder."""
    shutil.copytree(made, tmp_path / "arm")
    monkeypatch.chdir(tmp_path / "arm")
    return tmp_path / "arm"


def beta(text: str) -> list[float]:
    return [p["value"] for p in json.loads(text)["base_parameters"]]


def test_from_files_to_a_report_without_repeating_an_option(folder: Path) -> None:
    """The reading options are given once; every later command takes them from dynid.toml, with equal results."""
    done("init", "arm.urdf", *LOGS, *READING)
    assert "3 runs" in done("check").stdout
    ours = beta(done("identify", "--json").stdout)
    assert {"estimate.json", "estimate.report.html", "estimate.verdict.json"} <= {p.name for p in folder.iterdir()}
    done("report")
    assert (folder / "report.html").exists() and (folder / "verdict.json").exists()
    figures = json.loads(done("validate", "--json").stdout)["validation"]["estimate.json"]
    assert max(joint["relative"] for joint in figures.values()) < 0.1
    done("export", "-o", "identified.urdf")
    assert dynid.load_robot("identified.urdf").n == 3
    assert "joint2" in done("friction", "--joint", "joint2", "--models", "coulomb+viscous").stdout
    shutil.move("dynid.toml", "other.toml")
    words = ("identify", "arm.urdf", *LOGS[:2], *READING, "--friction", "auto", "--method", "auto")
    assert beta(done(*words, "--validate", LOGS[2], "--report", "none", "--json").stdout) == ours
    assert "no robot is given" in refused("check")
    assert beta(done("identify", "--project", "other.toml", "--json").stdout) == ours


def test_init_says_what_was_guessed_and_what_was_not(folder: Path) -> None:
    """Columns, those left over, signals not found, and whether the robot file has friction."""
    done("init", "arm.urdf", *LOGS, *READING)
    text = Path("dynid.toml").read_text()
    page = tomllib.loads(text)
    assert page["robot"] == {"file": "arm.urdf", "friction": "auto"}
    assert page["log"]["time"] == 0 and page["log"]["units"] == {"t": "ms", "q": "deg"}
    assert page["runs"] == {"identify": ["monday.csv", "tuesday.csv"], "validate": ["plain.csv"]}
    assert page["identify"] == {"method": "auto", "output": "estimate.json"}
    assert (
        "Friction of the robot file is a start" in text
        and "Temperatur" in text
        and "# Not found: v" in text
        and "# lock" in text
    )
    Path("bare.urdf").write_text(re.sub("<dynamics[^>]*>", "", Path("arm.urdf").read_text()))
    done("init", "bare.urdf", *LOGS, *READING, "-o", "bare.toml")
    assert "The robot file has no friction" in Path("bare.toml").read_text()
    robot = dynid.load_robot("twolink", friction="viscous")
    from dynid.cli.demo import synthetic_recording

    synthetic_recording(robot, 0).to_csv("run.csv")
    told = json.loads(done("init", "twolink", "run.csv", "--friction", "viscous", "-o", "two.toml", "--json").stdout)
    assert told["log_format"]["columns"]["q"] == ["q_joint1", "q_joint2"]
    page = tomllib.loads(Path("two.toml").read_text())
    assert page["robot"] == {"file": "twolink", "friction": "viscous"} and page["log"]["time"] == "t"
    assert page["runs"] == {"identify": ["run.csv"], "validate_share": 0.25}


def test_init_with_a_log_that_cannot_be_read(folder: Path) -> None:
    """The file is written with the reason and a form to fill in; nothing is overwritten without --force."""
    said = refused("init", "arm.urdf", *LOGS)
    assert "dynid.toml" in said and "dynid check" in said
    text = Path("dynid.toml").read_text()
    assert "# Not read: " in text and "# columns = " in text
    assert load_project("dynid.toml").runs.identify == ["monday.csv", "tuesday.csv"]
    assert "--force" in refused("init", "arm.urdf", *LOGS, *READING)
    assert Path("dynid.toml").read_text() == text
    done("init", "arm.urdf", *LOGS, *READING, "--force")
    assert "# Not read" not in Path("dynid.toml").read_text()


def test_init_says_what_comes_next(folder: Path) -> None:
    """By what a log holds; check says the same, with the words of its own command line."""
    done("init", "arm.urdf", *LOGS, *READING)
    assert "next: dynid identify, dynid report" in done("init", "arm.urdf", *LOGS, *READING, "--force").stdout
    table = monday()
    rows = ("t,q1,q2,q3,", "%.9g")
    np.savetxt("only.csv", table[:, :4], rows[1], ",", header="t,q1,q2,q3", comments="")
    np.savetxt("currents.csv", table / [1, 1, 1, 1, 5, 8, 10], rows[1], ",", header="t,q1,q2,q3,i1,i2,i3", comments="")
    told = json.loads(done("init", "arm.urdf", "only.csv", "--force", "--json").stdout)
    assert told["good_for"] == "record" and told["next"] == "dynid excite -o motion.csv"
    assert "next: dynid excite arm.urdf -o motion.csv" in done("check", "arm.urdf", "only.csv").stdout
    told = json.loads(done("init", "arm.urdf", "currents.csv", "--force", "--json").stdout)
    assert told["good_for"] == "bodies" and told["next"] == "dynid identify"
    assert tomllib.loads(Path("dynid.toml").read_text())["log"]["gain"] == pytest.approx([5, 8, 10], rel=0.3)
    np.savetxt("loaded.csv", table, rows[1], ",", header="t,q1,q2,q3,tau1,tau2,tau3", comments="")
    np.savetxt("empty.csv", table, rows[1], ",", header="t,q1,q2,q3,tau1,tau2,tau3", comments="")
    told = json.loads(done("init", "arm.urdf", "empty.csv", "loaded.csv", "--force", "--json").stdout)
    assert told["next"] == "dynid payload loaded.csv --without empty.csv --link link3"
    assert tomllib.loads(Path("dynid.toml").read_text())["runs"]["identify"] == ["empty.csv"]
    done(*told["next"].split()[1:])


def test_init_locks_joints_without_columns(folder: Path) -> None:
    """Joints that a log does not name, and fingers where an arm's columns are only numbered."""
    two = monday()[:, [0, 1, 2, 4, 5]]
    np.savetxt("two.csv", two, delimiter=",", header="t,q_joint1,q_joint2,tau_joint1,tau_joint2", comments="")
    done("init", "arm.urdf", "two.csv", "--force")
    assert tomllib.loads(Path("dynid.toml").read_text())["robot"]["lock"] == ["joint3"]
    Path("hand.urdf").write_text(Path("arm.urdf").read_text().replace("joint3", "finger_joint"))
    np.savetxt("two.csv", two, delimiter=",", header="t,q1,q2,tau1,tau2", comments="")
    done("init", "hand.urdf", "two.csv", "--force")
    assert tomllib.loads(Path("dynid.toml").read_text())["robot"]["lock"] == ["finger_joint"]
    assert "expected 3" in refused("init", "arm.urdf", "two.csv", "--force")


def test_options_and_arguments_override_the_file(folder: Path) -> None:
    """Options one by one, logs by name; another robot leaves the file aside."""
    done("init", "arm.urdf", *LOGS, *READING, "--friction", LAW)
    settings = ("--report", "none", "--method", "wls", "-o", "x.json", "--json")
    first = json.loads(done("identify", "--cutoff", "20", *settings).stdout)
    assert first["method"] == "wls" and first["signals"]["cutoff"] == 20 and Path("x.json").exists()
    assert "validation" in first and not Path("estimate.json").exists()
    alone = json.loads(done("identify", "monday.csv", *settings).stdout)
    assert sum(alone["rows"]) < sum(first["rows"])
    flipped = json.loads(done("identify", "--cutoff", "20", "--sign", "torque=-1", *settings).stdout)
    assert flipped["base_parameters"][0]["value"] == pytest.approx(-first["base_parameters"][0]["value"])
    assert json.loads(done("inspect", "twolink", "--json").stdout)["name"] == "twolink"
    assert json.loads(done("inspect", "--json").stdout)["name"] == "arm"


def test_logs_in_patterns_and_another_folder(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Paths are relative to the project file."""
    done("init", "arm.urdf", *LOGS, *READING, "--friction", LAW)
    text = Path("dynid.toml").read_text().replace('["monday.csv", "tuesday.csv"]', '["*day.csv"]')
    Path("dynid.toml").write_text(text.replace("estimate.json", "out.json"))
    monkeypatch.chdir(tmp_path)
    page = json.loads(done("identify", "--project", "arm", "--report", "none", "--json").stdout)
    assert page["validation"] and (folder / "out.json").exists() and not Path("out.json").exists()
    (folder / "dynid.toml").write_text(text.replace("*day.csv", "*night.csv"))
    assert "no file fits '*night.csv' of runs.identify" in refused("check", "--project", "arm/dynid.toml")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[robot]\nfile = ", "is not TOML"),
        ("[log]\nrate = 5", "robot is missing"),
        ('[robot]\nfile = "tx40"\nfricton = "x"', "robot.fricton is unknown: use file, friction"),
        ('[robot]\nfile = "tx40"\n[identfy]\nmethod = "wls"', "identfy is unknown"),
        ('[robot]\nfile = "tx40"\n[identify]\ntrim = "long"', "identify.trim: "),
        ('[robot]\nfile = "tx40"\n[runs]\nvalidate_share = 2', "runs.validate_share: "),
        ('[robot]\nfile = "tx40"\n[runs]\nvalidate_rows = "7"', "runs.validate_rows takes START:STOP"),
        ('[robot]\nfile = "tx40"\n[log]\ncolums = 3', "did you mean columns"),
        ('[robot]\nfile = "tx40"\n[log]\nrate = -3', "[log]: rate must be positive"),
        ('[robot]\nfile = "tx40"\nbase = "flying"', "robot.base: "),
        ('[robot]\nfile = "tx40"\nmass = -16.0', "robot.mass: "),
        ('[robot]\nfile = "tx40"\nmass = "heavy"', "robot.mass: "),
        ('[robot]\nfile = "tx40"\n[robot.link_mass]\nlink2 = 0', "robot.link_mass: "),
        ('[robot]\nfile = "tx40"\nlock = ["nose"]', "no joint fits 'nose'"),
    ],
)
def test_errors_name_file_and_key(text: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("dynid.toml").write_text(text)
    said = refused("check", "run.csv")
    assert words in said and "\n" not in said
    assert "nose" in text or "dynid.toml" in said


def test_a_missing_project_or_estimate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain errors that say what to do."""
    monkeypatch.chdir(tmp_path)
    assert "no robot is given: name ROBOT" in refused("identify")
    assert "no estimate is given: name ESTIMATE" in refused("report")
    assert "dynid init" in refused("check", "--project", "none.toml")
    Path("dynid.toml").write_text('[robot]\nfile = "tx40"\n[identify]\noutput = "estimate.json"\n')
    assert "runs.identify" in refused("check")
    assert "run dynid identify" in refused("validate")


def test_rate_beside_a_time_column(folder: Path) -> None:
    """The error names both options; --time none uses the rate."""
    columns = ("--columns", "q=1:4", "--columns", "torque=4:7", "--units", "q=deg")
    said = refused("check", "arm.urdf", "monday.csv", *columns, "--time", "0", "--rate", "1000")
    assert "--rate" in said and "--time" in said
    done("check", "arm.urdf", "monday.csv", *columns, "--time", "none", "--rate", "1000")


def test_rows_and_shares_held_out(folder: Path) -> None:
    """A share or rows of one log validate; rows are never used twice."""
    words = ("identify", "arm.urdf", "monday.csv", *READING, "--friction", LAW, "--report", "none", "--json")

    def rows(*more: str) -> tuple[int, int]:
        page = json.loads(done(*words, "--decimate", "none", "--trim", "0", "--cutoff", "50", *more).stdout)
        return page["rows"][0], page["validation"]["joint1"]["rows"] if "validation" in page else 0

    whole, _ = rows()
    fit, held = rows("--validate-share", "0.25")
    assert fit == pytest.approx(0.75 * whole, rel=0.02) and held == pytest.approx(0.25 * whole, rel=0.05)
    fit, held = rows("--validate-rows", "2000:4000")
    assert fit == pytest.approx(0.8 * whole, rel=0.02) and held == pytest.approx(0.2 * whole, rel=0.05)
    fit, held = rows("--rows", "0:5000", "--validate-rows", "6000:")
    assert fit == pytest.approx(0.5 * whole, rel=0.02) and held == pytest.approx(0.4 * whole, rel=0.05)
    fit, held = rows("--rows", "0:5000", "--validate", "monday.csv")
    assert fit == pytest.approx(0.5 * whole, rel=0.02) and held == pytest.approx(whole, rel=0.02)
    assert "overlaps --rows" in refused(*words, "--rows", "0:5000", "--validate-rows", "4000:")
    assert "give one" in refused(*words, "--validate", "plain.csv", "--validate-share", "0.2")
    assert "between 0 and 1" in refused(*words, "--validate-share", "1.5")


@pytest.mark.parametrize("named", [True, False], ids=["names", "numbers"])
def test_locked_joints_are_left_out_of_the_log(named: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whether columns carry names of joints or only numbers; patterns and positions are accepted."""
    monkeypatch.chdir(tmp_path)
    robot = dynid.load_robot("rv2sq", friction="viscous")
    t = np.arange(400) / 200.0
    q = 0.3 * np.sin(np.outer(t, 1.0 + np.arange(6)))
    q[:, [1, 5]] = 0.0
    dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=np.cos(q)),)).to_csv("named.csv")
    rows = np.loadtxt("named.csv", delimiter=",", skiprows=1)[:, 1:]
    np.savetxt("plain.csv", rows, delimiter=",", header=",".join(["t", *(f"c{k}" for k in range(12))]), comments="")
    reading = () if named else ("--columns", "q=1:7", "--columns", "torque=7:13")
    words = (
        "identify",
        "rv2sq",
        "named.csv" if named else "plain.csv",
        "--friction",
        "viscous",
        "--method",
        "wls",
        *reading,
    )
    page = json.loads(done(*words, "--lock", "joint2,joint[6]=0.0", "--report", "none", "--json").stdout)
    assert page["channels"] == ["joint1", "joint3", "joint4", "joint5"]
    free = robot.locked({"joint2": 0.0, "joint6": 0.0})
    log = dynid.load_recording("named.csv", free)
    assert [p["value"] for p in page["base_parameters"]] == list(dynid.identify(free, log, "wls").beta)


def test_require_sets_the_exit_code(folder: Path) -> None:
    """3 below the verdict that is asked for, after everything was printed and written."""
    done("init", "arm.urdf", *LOGS, *READING, "--friction", LAW)
    result = run("identify", "--method", "ols", "--sign", "torque=-1", "--require", "care")
    assert result.exit_code == 3, result.output
    assert "verdict: do not use" in result.stdout and "--require care" in result.stderr
    assert Path("estimate.json").exists()
    assert run("report", "--sign", "torque=-1", "--require", "care").exit_code == 3
    assert run("validate", "--require", "trusted").exit_code == 3
    assert "did you mean" in refused("identify", "--require", "truste")


def test_the_terminal_ends_with_errors_verdict_and_files(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No line is wider than the terminal; the table of parameters only on request."""
    monkeypatch.setenv("COLUMNS", "60")
    done("init", "arm.urdf", *LOGS, *READING, "--friction", LAW)
    plain = done("identify")
    assert all(len(line) <= 60 for line in plain.stdout.splitlines())
    text = plain.stdout
    errors = text[text.index("torque errors") :]
    assert errors.index("joint3") < errors.index("verdict: ") and "sigma" not in text
    assert plain.stderr.splitlines()[-2:] == ["wrote estimate.json", "wrote estimate.report.html"]
    table = done("identify", "--table").stdout
    assert "sigma" in table and all(len(line) <= 60 for line in table.splitlines())


def test_the_loop_of_the_project(folder: Path) -> None:
    """A file or a table; methods that do not simulate leave it aside."""
    text = f'[robot]\nfile = "arm.urdf"\nfriction = "{LAW}"\n[loop]\nvelocity_cutoff = 100\n'
    Path("motion.csv").write_text(
        "t,q_joint1,q_joint2,q_joint3\n"
        + "".join(f"{k / 100},{np.sin(k / 50)},{np.sin(k / 40)},{0.5 * np.sin(k / 30)}\n" for k in range(200))
    )
    results = []
    for controller in ('"loop.toml"', '{ kind = "cascade", rate = 1000, bandwidth = 5 }'):
        Path("dynid.toml").write_text(text + f"controller = {controller}\n")
        done("simulate", "--reference", "motion.csv", "-o", "run.csv")
        results.append(Path("run.csv").read_text())
    assert results[0] == results[1]
    for slope in ('"auto"', "[20, 20, 20]", "20.0"):
        Path("dynid.toml").write_text(text + f'controller = "loop.toml"\ncoulomb_slope = {slope}\n')
        done("simulate", "--reference", "motion.csv", "-o", "run.csv")
        results.append(Path("run.csv").read_text())
    assert results[0] == results[2] != results[3] == results[4]
    done("identify", "run.csv", "--report", "none")
    assert "--controller" in refused("identify", "twolink", "run.csv", "--velocity-cutoff", "3")


def test_identify_writes_toml(folder: Path) -> None:
    """A parameter file by its ending, with the values of the estimate."""
    done("init", "arm.urdf", *LOGS, *READING, "--friction", LAW)
    done("identify", "-o", "identified.toml", "--report", "none")
    assert tomllib.loads(Path("identified.toml").read_text())["robot"] == "arm"
    done("identify", "--report", "none")
    estimate = dynid.Estimate.load("estimate.json")
    back = dynid.export.load_parameters("identified.toml", estimate.robot)
    assert np.allclose(back.parameters, estimate.parameters, rtol=1e-9, atol=1e-12)


def test_masses_of_the_project_file(folder: Path) -> None:
    """Asked for by `dynid init`, read by `dynid identify`, overridden by its options, kept for the next time."""
    done("init", "arm.urdf", *LOGS, *READING, "--friction", LAW)
    text = Path("dynid.toml").read_text()
    assert "# mass = 16.0 " in text and "mass" not in tomllib.loads(text)["robot"]
    known = "mass = 12.3\n[robot.link_mass]\nlink2 = 4.0\n[log]"
    Path("dynid.toml").write_text(text.replace("[log]", known).replace("[identify]", "[identify]\nbox = false"))
    words = ("identify", "--method", "feasible", "--json")
    page = json.loads(done(*words, "--report", "none").stdout)
    assert page["known_masses"] == {"total": 12.3, "links": {"link2": 4.0}} and page["box"] is False
    over = ("--mass", "12kg", "--link-mass", "link3=2", "--box")
    page = json.loads(done(*words, *over).stdout)
    assert page["known_masses"] == {"total": 12.0, "links": {"link2": 4.0, "link3": 2.0}} and page["box"] is True
    again = re.search(r'download="dynid.toml" href="data:text/plain;charset=utf-8,([^"]+)"', _page())
    assert again is not None
    kept = tomllib.loads(unquote(again[1]))
    assert kept["robot"]["mass"] == 12.0 and kept["robot"]["link_mass"] == {"link2": 4.0, "link3": 2.0}
    assert kept["identify"]["box"] is True
    # A method that estimates no bodies leaves them aside, and other commands read the robot as ever.
    page = json.loads(done("identify", "--method", "wls", "--report", "none", "--json").stdout)
    assert page["known_masses"] == {"total": None, "links": {}} and page["box"] is None
    assert json.loads(done("inspect", "--json").stdout)["name"] == "arm"
    assert "did you mean link2" in refused("identify", "--link-mass", "lnk2=1")


def _page() -> str:
    return Path("estimate.report.html").read_text(encoding="utf-8")


def test_values_as_toml() -> None:
    """Read back as they were."""
    page = {"a b": [1, 2.5, 'x"y'], "c": {"d": True, "e": (-1e-9, 3)}, "f": "ü"}
    assert tomllib.loads(f"x = {toml_value(page)}")["x"] == {**page, "c": {"d": True, "e": [-1e-9, 3]}}
