"""The command that designs a motion, as a user meets it."""

from __future__ import annotations

import json
import os
import xml.etree.ElementTree as ET
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest

import dynid as package
from dynid.cli.demo import synthetic_recording
from tests.support.commands import dynid

QUICK = ("--duration", "6", "--budget", "60", "--output-rate", "50")
URDF = """<robot name="bare"><link name="base"/><link name="a"/><link name="b"/>
<joint name="j1" type="revolute"><parent link="base"/><child link="a"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1" velocity="2" effort="10"/></joint>
<joint name="j2" type="revolute"><parent link="a"/><child link="b"/><origin xyz="1 0 0"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" velocity="2" effort="10"/></joint></robot>"""


def excite(folder: Path, *arguments: str) -> CompletedProcess[str]:
    return dynid("excite", *arguments, folder=folder)


def planned(done: CompletedProcess[str]) -> set[str]:
    """Base parameters whose standard deviations were predicted."""
    return {row["name"] for row in json.loads(done.stdout)["plan"]["base_parameters"]}


def test_help_has_an_example(tmp_path: Path) -> None:
    """The line of an example, and a limits file as it must be written."""
    done = excite(tmp_path, "--help")
    assert done.returncode == 0 and "Example: dynid excite tx40" in done.stdout
    assert '["joint*"]\n' in done.stdout


def test_motion_figure_and_plan(tmp_path: Path) -> None:
    """One command: a table a controller runs, within the limits of a file, a figure, and what will be known when."""
    (tmp_path / "limits.toml").write_text('["joint*"]\nacceleration = 6\n[joint2]\nvelocity = 1.2\n')
    options = ("--limits", "limits.toml", "--torque-noise", "0.5,0.2", "--figure", "m.svg", "--limit-share", "0.9")
    done = excite(tmp_path, "twolink", "-o", "m.csv", *options, "--start-posture", "0.2,-0.1", *QUICK)
    assert done.returncode == 0, done.stderr
    assert "active limits" in done.stdout and "periods to 2 %" in done.stdout
    assert "wrote m.csv" in done.stderr
    run = package.load_recording(tmp_path / "m.csv", package.load_robot("twolink")).runs[0]
    assert run.q is not None and run.v is not None and run.a is not None
    np.testing.assert_allclose(run.q[0], [0.2, -0.1], atol=1e-9)
    # Nine tenths of the robot's own limits, those of the file as they are.
    assert np.abs(run.a).max() <= 6 and np.abs(run.v[:, 1]).max() <= 1.2
    assert np.abs(run.v[:, 0]).max() <= 0.9 * 2 and np.abs(run.q).max() <= 0.9 * 1.5708
    ET.parse(tmp_path / "m.svg")
    assert sorted(os.listdir(tmp_path)) == ["limits.toml", "m.csv", "m.svg"]


@pytest.mark.parametrize("name", ["m.toml", "m.yaml", "m.json"])
def test_formats_by_suffix_and_json_page(name: str, tmp_path: Path) -> None:
    """Every suffix its format; --json prints the figures of merit; options reach the designer."""
    options = ("--limits", '{"joint*": {"acceleration": 6}}', "--family", "b-spline", "--size", "8", "--json")
    done = excite(tmp_path, "twolink", "-o", name, *options, "--torque-noise", "0.5", "--criterion", "a", *QUICK)
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert page["criterion"] == "a" and page["duration"] == 6 and page["plan"]["noise"] == [0.5, 0.5]
    assert page["plan"]["rate"] == 50 and 0.5 < page["use"]["joint1"]["acceleration"] <= 1
    text = (tmp_path / name).read_text()
    if name == "m.toml":
        motion = package.Excitation.from_toml(tmp_path / name, package.load_robot("twolink"))
        assert motion.condition_number == pytest.approx(page["condition_number"], rel=1e-6)
    else:
        assert "joint_names" in text and "time_from_start" in text


def test_chosen_parameters(tmp_path: Path) -> None:
    """A criterion of single parameters takes their names."""
    done = excite(tmp_path, "twolink", "-o", "m.csv", "--criterion", "sigma", "--chosen", "fv_joint1", "--json", *QUICK)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["criterion"] == "sigma"


def test_drives_that_the_file_says_nothing_of_count_too(tmp_path: Path) -> None:
    """Method auto chooses them afterwards, so the motion must show them."""
    body = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    text = URDF.replace('<link name="a"/>', f'<link name="a">{body}</link>')
    (tmp_path / "arm.urdf").write_text(text.replace('<link name="b"/>', f'<link name="b">{body}</link>'))
    options = ("--json", "--torque-noise", "0.1", *QUICK)
    done = excite(tmp_path, "arm.urdf", "-o", "m.toml", *options)
    assert done.returncode == 0 and "viscous+coulomb+offset and rotor inertias" in done.stderr
    assert {"fv_j1", "fc_j2", "off_j2"} <= planned(done)
    (tmp_path / "dynid.toml").write_text('[robot]\nfile = "arm.urdf"\nfriction = "auto"\n[identify]\ncutoff = 20\n')
    assert "fv_j1" in planned(excite(tmp_path, "-o", "project.toml", *options))
    alone = excite(tmp_path, "arm.urdf", "-o", "alone.toml", "--friction", "none", *options)
    assert alone.returncode == 0 and "rotor" not in alone.stderr
    assert not any(name.startswith(("f", "off", "Ia")) for name in planned(alone))


def test_robot_without_masses(tmp_path: Path) -> None:
    """Its geometry is enough for a motion; that its torque limits cannot be kept is said."""
    (tmp_path / "bare.urdf").write_text(URDF)
    done = excite(tmp_path, "bare.urdf", "-o", "m.csv", "--torque-noise", "1", "--figure", "m.svg", *QUICK)
    assert done.returncode == 0, done.stderr
    assert (
        "torque limits of its file cannot be kept" in done.stderr
        and "torque" not in done.stdout.split("active limits")[0]
    )
    assert "all a-priori values are zero" in done.stdout


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two recordings, and what auto identified from the first."""
    folder = tmp_path_factory.mktemp("logs")
    robot = package.load_robot("twolink")
    runs = [synthetic_recording(robot, seed, duration=5.0) for seed in (0, 1)]
    for k, run in enumerate(runs, start=1):
        run.to_csv(folder / f"run{k}.csv")
    package.identify(robot, runs[0]).save(folder / "estimate.json")
    return folder


def test_after_recordings_the_motion_complements_them(logs: Path, tmp_path: Path) -> None:
    """The design is that of the function, for the noise that the residuals show; the plan counts the recordings."""
    names = f"{logs / 'run1.csv'},{logs / 'run2.csv'}"
    done = excite(tmp_path, "twolink", "-o", "m.toml", "--after", names, "--json", *QUICK)
    assert done.returncode == 0, done.stderr
    robot = package.load_robot("twolink")
    motion = package.Excitation.from_toml(tmp_path / "m.toml", robot)
    runs = [package.load_recording(logs / f"run{k}.csv", robot) for k in (1, 2)]
    known = package.excitation.earlier_information(motion.criterion.base, runs)
    np.testing.assert_allclose(motion.criterion.noise, known.noise, rtol=1e-9)
    expected, stored = (rows.T @ rows for rows in (known.on_grid(motion.samples, 6.0), motion.criterion.known))
    np.testing.assert_allclose(stored, expected, rtol=0, atol=1e-9 * expected.max())
    plan = json.loads(done.stdout)["plan"]
    after = known.with_motion(motion).std
    np.testing.assert_allclose([row["std"] for row in plan["base_parameters"]], after, rtol=1e-6)


def test_after_an_estimate_the_motion_is_for_its_drive_terms(logs: Path, tmp_path: Path) -> None:
    """Those that auto chose, although the robot has others; an option of friction is kept, and then they differ."""
    words = ("twolink", "-o", "m.toml", "--after", str(logs / "estimate.json"), *QUICK)
    done = excite(tmp_path, *words, "--json")
    assert done.returncode == 0, done.stderr
    assert planned(done) == set(package.Estimate.load(logs / "estimate.json").base.names)
    other = excite(tmp_path, *words, "--friction", "viscous")
    assert other.returncode == 1 and "other parameters" in other.stderr.splitlines()[-1]


def test_motions_one_after_another(logs: Path, tmp_path: Path) -> None:
    """Files with numbers that join, the reason at the end, and figures."""
    options = ("--stack", "2", "--least-gain", "0", "--family", "cubic", "--figure", "m.svg")
    done = excite(tmp_path, "twolink", "-o", "m.csv", "--after", str(logs / "run1.csv"), *options, *QUICK)
    assert done.returncode == 0, done.stderr
    assert "2 motions are the most that were asked for" in done.stdout and "least known" in done.stdout
    assert "motion 2 of at most 2" in done.stderr
    assert sorted(os.listdir(tmp_path)) == ["m-1.csv", "m-1.svg", "m-2.csv", "m-2.svg"]
    robot = package.load_robot("twolink")
    first, second = (package.load_recording(tmp_path / f"m-{k}.csv", robot).runs[0] for k in (1, 2))
    np.testing.assert_allclose(first.q[-1], second.q[0], atol=1e-9)
    easy = excite(tmp_path, "twolink", "-o", "n.csv", "--stack", "5", "--target", "9", "--json", *QUICK)
    page = json.loads(easy.stdout)
    assert page["end"] == "target" and len(page["motions"]) == 1 and (tmp_path / "n-1.csv").is_file()


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("--target", "0.1"), "give --stack"),
        (("--least-gain", "0.1"), "give --stack"),
        (("--rows", "0:9"), "--rows is for recordings"),
        (("--cutoff", "9"), "--cutoff is for recordings"),
        (("--after", "nothing.csv"), "nothing.csv"),
        (("--after", "nothing.json"), "nothing.json"),
        (("--stack", "2", "--target", "-1"), "target"),
        (("--stack", "2", "--least-gain", "2"), "least gain"),
        (("--stack", "2", "--family", "fourier-free"), "begin where the one before ends"),
        (("--start-posture", "3,0"), "'joint1' is 3, outside its range"),
        (("--start-posture", "0"), "start posture needs 2"),
        (("--start-posture", "zero,0"), "'zero'"),
        (("--limits", '{"joint1": {"lower": 0.5, "upper": 0.5}}'), "range of joint 'joint1' is empty"),
        (("--limits", '{"joint1": {"lower": 0.5}}', "--start-posture", "0,0"), "outside its range"),
        (("--limits", '{"elbow": {"velocity": 1}}'), "'elbow'"),
        (("--limits", '{"joint1": {"speed": 1}}'), "'speed'"),
        (("--limits", '{"joint1": {"velocity": "fast"}}'), "'fast'"),
        (("--limits", '{"joint1": 3}'), "needs a table"),
        (("--limits", '{"joint1": '), "not valid"),
        (("--limits", "nothing.toml"), "nothing.toml"),
        (("--limits", "limits.ini"), "limits.ini"),
        (("--duration", "0.01"), "too short"),
        (("--limits", '{"*": {"acceleration": 0.001}}'), "too short"),
        (("--duration", "-1"), "duration"),
        (("--family", "waltz"), "'waltz'"),
        (("--criterion", "z"), "'z'"),
        (("--criterion", "sigma"), "names of base parameters"),
        (("--criterion", "sigma", "--chosen", "charm"), "'charm'"),
        (("--size", "1"), "more harmonics"),
        (("--limit-share", "0"), "share"),
        (("--budget", "0"), "budget"),
        (("--output-rate", "0"), "rate"),
        (("--output-rate", "1"), "at least"),
        (("--torque-noise", "-1"), "positive"),
        (("--torque-noise", "1,2,3"), "one number or 2"),
        (("-o", "m.xml"), "m.xml"),
        (("-o", "nowhere/m.csv"), "nowhere/m.csv"),
        (("-o", "folder.csv"), "folder.csv"),
        (("--figure", "nowhere/m.svg"), "nowhere/m.svg"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(arguments: tuple[str, ...], culprit: str, tmp_path: Path) -> None:
    """Exit code 1, a last line that names the culprit, no traceback, no file."""
    (tmp_path / "folder.csv").mkdir()
    done = excite(tmp_path, "twolink", "-o", "m.csv", *QUICK, *arguments)
    assert done.returncode == 1 and culprit in done.stderr.splitlines()[-1]
    assert os.listdir(tmp_path) == ["folder.csv"]


def test_torque_limits_of_a_robot_without_masses(tmp_path: Path) -> None:
    """A limit that was asked for and cannot be kept is refused."""
    (tmp_path / "bare.urdf").write_text(URDF)
    done = excite(tmp_path, "bare.urdf", "-o", "m.csv", "--limits", '{"j1": {"torque": 5}}', *QUICK)
    assert done.returncode == 1 and "no torque model" in done.stderr and done.stderr.count("\n") == 1
    assert os.listdir(tmp_path) == ["bare.urdf"]


def test_the_best_of_several_in_simulation(tmp_path: Path) -> None:
    """The motion that is written is the first of the table; options that do not apply are refused."""
    (tmp_path / "loop.toml").write_text('kind = "cascade"\nrate = 1000\nbandwidth = 5\n')
    common = ("twolink", "-o", "m.toml", "--controller", "loop.toml")
    ranked = ("--rank", "simulated", "--candidates", "2", "--torque-noise", "0.2", "--position-noise", "1e-5", "--json")
    done = excite(tmp_path, *common, *ranked, *QUICK)
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    found = page["ranking"]["candidates"]
    assert sorted(c["candidate"] for c in found) == [1, 2] and found[0]["error"] <= found[1]["error"]
    assert found[0]["condition_number"] == pytest.approx(page["condition_number"], rel=1e-9)
    for extra, words in (
        ((), "--controller belongs to --rank simulated"),
        (("--rank", "simulated"), "needs --torque-noise"),
        (("--rank", "best"), "--rank is simulated or left out"),
        (("--rank", "simulated", "--torque-noise", "0.2", "--candidates", "0"), "--candidates is a whole number"),
    ):
        refused = excite(tmp_path, *common, *extra, *QUICK)
        assert refused.returncode == 1 and words in refused.stderr, refused.stderr


def test_ready_rules(tmp_path: Path) -> None:
    """The motion starts at zero for the condition number; options that the rules have themselves are refused."""
    done = excite(tmp_path, "twolink", "-o", "m.toml", "--rules", "halper", "--json", *QUICK)
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert page["criterion"] == "cond"
    motion = package.Excitation.from_toml(tmp_path / "m.toml", package.load_robot("twolink"))
    assert np.abs(np.array(motion.at(0.0))).max() < 1e-9 and abs(motion.at(np.arange(600) / 100)[0].mean()) < 1e-9
    for extra, words in (
        (("--rules", "other"), "--rules is halper or left out"),
        (("--rules", "halper", "--family", "cubic"), "has its own --family"),
        (("--rules", "halper", "--criterion", "a"), "has its own --criterion"),
        (("--rules", "halper", "--start-posture", "0,0"), "has its own --start-posture"),
    ):
        refused = excite(tmp_path, "twolink", "-o", "m.toml", *extra, *QUICK)
        assert refused.returncode == 1 and words in refused.stderr, refused.stderr
