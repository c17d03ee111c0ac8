"""The main road on the command line: from log files to an estimate."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynid as package
from dynid.cli.demo import synthetic_recording
from dynid.recording.recording import Recording
from tests.support.commands import dynid


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Two logs of the two-link arm, as CSV."""
    folder = tmp_path_factory.mktemp("logs")
    robot = package.load_robot("twolink", friction="viscous+coulomb")
    paths = (folder / "one.csv", folder / "two.csv")
    for seed, path in enumerate(paths):
        synthetic_recording(robot, seed).to_csv(path)
    return paths


COMMON = ("twolink", "--friction", "viscous+coulomb")


def test_identify_validates_and_saves(logs: tuple[Path, Path], tmp_path: Path) -> None:
    """One command gives parameters, their deviations, the errors on unseen motion, and a file."""
    out = tmp_path / "estimate.json"
    done = dynid("identify", *COMMON, str(logs[0]), "--validate", str(logs[1]), "-o", str(out), "--table")
    assert done.returncode == 0, done.stderr
    assert "sigma %" in done.stdout and "prediction of measured torques" in done.stdout
    saved = json.loads(out.read_text())
    robot = package.load_robot("twolink", friction="viscous+coulomb")
    truth = dict(zip(package.base_parameters(robot).names, package.base_parameters(robot).values(), strict=True))
    for entry in saved["base_parameters"]:
        assert abs(entry["value"] - truth[entry["name"]]) < 5 * entry["std"]
    drawn = tmp_path / "torques.svg"
    again = dynid("validate", str(out), str(logs[1]), "--json", "--figure", str(drawn))
    assert drawn.read_text().count('class="line') == 3 * 2 and "joint2: RMSE" in drawn.read_text()
    assert again.returncode == 0, again.stderr
    page = json.loads(again.stdout)
    assert all(joint["relative"] < 0.1 for joint in page["validation"][str(out)].values())
    simulated = page["simulation"][str(out)]["open"]
    assert simulated["horizons"] == [0.1, 0.5, 2.0] and simulated["units"]["joint1"] == "rad"
    assert simulated["models"]["identified"]["joint1"]["median"][1] < 0.1 and "a-priori" in simulated["models"]
    shown = dynid("validate", str(out), str(logs[1]))
    assert "simulation error (open loop), identified / a-priori" in shown.stdout and "tool link2" in shown.stdout


def test_two_estimates_are_validated_beside_each_other(logs: tuple[Path, Path], tmp_path: Path) -> None:
    """Errors of both on the same motion, as each estimate tells them alone; the one without friction is worse."""
    recordings = [package.load_recording(log) for log in logs]
    expected = {}
    for name, friction in (("full.json", "viscous+coulomb"), ("poor.json", "none")):
        robot = package.load_robot("twolink", friction=friction)
        estimate = package.identify(robot, recordings[0], "wls")
        estimate.save(tmp_path / name)
        expected[name] = estimate.validate(recordings[1]).to_dict()
    done = dynid("validate", "full.json", str(logs[1]), "--compare", "poor.json", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)["validation"]
    assert list(page) == list(expected)
    for name, joints in expected.items():
        for joint, figures in joints.items():
            assert page[name][joint]["rmse"] == pytest.approx(figures["rmse"], rel=1e-9)
    full, poor = page["full.json"], page["poor.json"]
    assert all(poor[joint]["rmse"] > 2 * full[joint]["rmse"] for joint in ("joint1", "joint2"))


def test_an_effect_that_the_verdict_advises_is_added_by_one_option(tmp_path: Path) -> None:
    """The screen names the ripple and the option; with it, or the line of dynid.toml, the verdict is good."""
    robot = package.load_robot("twolink", friction="viscous+coulomb", effects=["ripple=joint2:24"])
    values = dict(zip(robot.parameter_names, robot.parameters, strict=True)) | {"rs24_joint2": 0.8}
    plant = robot.with_parameters([values[n] for n in robot.parameter_names])
    for seed in range(2):
        synthetic_recording(plant, seed, 10.0).to_csv(tmp_path / f"run{seed}.csv")
    words = ("identify", *COMMON, "run0.csv", "--validate", "run1.csv", "-o")
    before = dynid(*words, "before.json", folder=tmp_path)
    assert "verdict: do not use" in before.stdout and "(--effect ripple=joint2:24)" in before.stdout
    verdict = json.loads((tmp_path / "before.verdict.json").read_text())
    effects = [x for check in verdict["checks"] for x in check["effects"]]
    after = dynid(*words, "after.json", *(w for x in effects for w in ("--effect", x)), folder=tmp_path)
    assert effects == ["ripple=joint2:24"] and "verdict: trusted" in after.stdout, after.stdout
    found = package.Estimate.load(tmp_path / "after.json")
    assert dict(zip(found.base.names, found.beta, strict=True))["rs24_joint2"] == pytest.approx(0.8, abs=0.01)
    assert dynid("validate", "after.json", "run1.csv", folder=tmp_path).returncode == 0
    project = dynid("init", *COMMON, "run0.csv", "run1.csv", "--effect", "ripple=joint2:24", folder=tmp_path)
    assert project.returncode == 0 and 'effects = ["ripple=joint2:24"]' in (tmp_path / "dynid.toml").read_text()
    same = dynid("identify", "-o", "same.json", folder=tmp_path)
    assert same.returncode == 0, same.stderr
    assert package.Estimate.load(tmp_path / "same.json").beta.tolist() == found.beta.tolist()


def test_identify_writes_urdf_and_json(logs: tuple[Path, Path], tmp_path: Path) -> None:
    """-o with .urdf writes the robot; --json prints everything for machines."""
    out = tmp_path / "robot.urdf"
    asked = ("identify", *COMMON, str(logs[0]), str(logs[1]), "--json", "-o", str(out), "--method", "ols")
    refused = dynid(*asked)
    assert refused.returncode == 1 and not out.exists()
    assert "not physically consistent" in refused.stderr and "--allow-infeasible" in refused.stderr
    done = dynid(*asked, "--allow-infeasible")
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert page["method"] == "ols" and len(page["rows"]) == 2
    assert package.load_robot(out).n == 2
    assert "dynid:" in done.stderr  # massless, flat links are possible only on paper: warned of


def test_signal_options_reach_the_settings(logs: tuple[Path, Path]) -> None:
    """What is asked for is what was done."""
    options = ("--cutoff", "20", "--decimate", "5", "--min-velocity", "0.01", "--trim", "0.5")
    page = json.loads(dynid("identify", *COMMON, str(logs[0]), "--json", *options).stdout)
    signals = page["signals"]
    assert signals["cutoff"] == 20 and signals["decimate"] == [5]
    assert signals["min_velocity"] == 0.01 and signals["trim"] == 0.5


def test_reading_options_reach_the_recording(logs: tuple[Path, Path]) -> None:
    """Signs and factors scale what is found; joints can be named; a constant added changes the fit."""

    def first(*options: str) -> float:
        done = dynid("identify", *COMMON, str(logs[0]), "--method", "wls", "--json", *options)
        assert done.returncode == 0, done.stderr
        return float(json.loads(done.stdout)["base_parameters"][0]["value"])

    plain = first()
    assert first("--sign", "torque=-1") == pytest.approx(-plain)
    assert first("--scale", "torque=2") == pytest.approx(2 * plain)
    assert first("--scale", "torque=2,3") != pytest.approx(2 * plain)
    assert first("--joints", "joint1,joint2") == pytest.approx(plain)
    assert first("--offset", "torque=5") != pytest.approx(plain, rel=1e-6)


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("identify", *COMMON, "nothing.csv"), "nothing.csv"),
        (("identify", *COMMON, "LOG", "--method", "magic"), "magic"),
        (("identify", *COMMON, "LOG", "--cutoff", "fast"), "fast"),
        (("identify", *COMMON, "LOG", "--columns", "q"), "SIGNAL=VALUE"),
        (("identify", *COMMON, "LOG", "--rows", "7"), "START:STOP"),
        (("identify", "tx40", "LOG"), "joint"),
        (("validate", "nothing.json", "LOG"), "nothing.json"),
    ],
)
def test_bad_input_is_one_line(arguments: tuple[str, ...], culprit: str, logs: tuple[Path, Path]) -> None:
    """Exit code 1, one line that names the culprit, no traceback."""
    done = dynid(*(str(logs[0]) if a == "LOG" else a for a in arguments))
    assert done.returncode == 1
    assert culprit in done.stderr and done.stderr.count("\n") == 1


def test_demo_recovers_the_truth() -> None:
    """The demonstration's own verdict: about 95 % of the parameters within two deviations."""
    from dynid.cli.demo import run_demo

    result = run_demo()
    off = (result.estimate.beta - result.truth) / result.estimate.std
    # 61 parameters: fewer than 85 % inside two deviations would be a fault, not chance.
    assert np.mean(np.abs(off) < 2) > 0.85 and np.sqrt(np.mean(off**2)) < 1.4
    assert np.all(result.validation.relative < 0.02)


def test_recordings_keep_runs_through_a_file(logs: tuple[Path, Path], tmp_path: Path) -> None:
    """Two runs written into one file come back as two runs."""
    robot = package.load_robot("twolink", friction="viscous+coulomb")
    both = package.load_recording([str(p) for p in logs], robot)
    assert isinstance(both, Recording) and len(both.runs) == 2
    both.to_csv(tmp_path / "both.csv")
    back = package.load_recording(tmp_path / "both.csv", robot)
    assert [len(r) for r in back.runs] == [len(r) for r in both.runs]


def test_options_of_other_methods_are_named(logs: tuple[Path, Path]) -> None:
    """The option of the command line is named, not the keyword behind it."""
    for option, value in (("--prior-weight", "3"), ("--start", "feasible")):
        done = dynid("identify", *COMMON, str(logs[0]), option, value)
        assert done.returncode == 1 and f"dynid: {option} is for" in done.stderr


def test_masses_that_are_known_reach_the_estimate(logs: tuple[Path, Path], tmp_path: Path) -> None:
    """With and without a unit, by name and pattern; screen, report and file say what was given."""
    out = tmp_path / "estimate.json"
    known = ("--mass", "2.1kg", "--link-mass", "link2=1", "--link-mass", "link[1]=1 kg", "--no-box")
    done = dynid("identify", *COMMON, str(logs[0]), "--method", "feasible", *known, "-o", str(out))
    assert done.returncode == 0, done.stderr
    told = " ".join(done.stdout.split())
    assert "weighs 2.1 kg (given)" in told and "link1 weighs 1 kg (given)" in told
    assert "the plausible box of the bodies is switched off" in told
    saved = package.Estimate.load(out)
    assert saved.known_masses.total == 2.1 and saved.known_masses.links == {"link2": 1.0, "link1": 1.0}
    assert saved.box is False
    page = (tmp_path / "estimate.report.html").read_text(encoding="utf-8")
    assert "weighs 2.1 kg (given)" in page and "weighs 1 kg (given)" in page
    assert "The plausible box of the bodies is switched off." in page


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--mass", "abc"), "--mass takes a mass in kg such as 16 or 16kg, got 'abc'"),
        (("--mass", "16lb"), "got '16lb'"),
        (("--mass", "0"), "--mass must be a positive number of kg, got 0.0"),
        (("--mass", "-16"), "--mass must be a positive number of kg"),
        (("--mass", "nan"), "--mass takes a finite number"),
        (("--link-mass", "4.8"), "--link-mass takes LINK=KG, got '4.8'"),
        (("--link-mass", "link2=heavy"), "--link-mass link2 takes a mass in kg"),
        (("--link-mass", "lnk2=4.8"), "--link-mass names 'lnk2', which is no moving body of 'twolink'; did you mean"),
        (("--link-mass", "link*=1", "--link-mass", "link2=2"), "--link-mass names 'link2' twice"),
        (("--mass", "1", "--link-mass", "link2=2"), "--mass must be at least the 2 kg"),
        (("--mass", "16", "--method", "wls"), "--mass is for --method auto or feasible, not for 'wls'"),
        (("--link-mass", "link2=1", "--method", "ols"), "--link-mass is for --method auto or feasible"),
        (("--no-box", "--method", "wls"), "--no-box is for --method auto or feasible"),
    ],
)
def test_masses_that_cannot_be_used_are_told_at_once(options: tuple[str, ...], words: str) -> None:
    """One sentence in the words of the command line, before any log is read."""
    done = dynid("identify", *COMMON, "nothing.csv", *options)
    assert done.returncode == 1 and words in done.stderr and done.stderr.count("\n") == 1
