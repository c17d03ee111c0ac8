"""The command that designs commands for logs of encoders alone, as a user meets it."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

import dynid as package
from dynid.robot import ActuatorLaw
from studies.reproduce.actuator_plants import given_robot, legs, logged, truth
from tests.support.commands import dynid

LAW = ("--law", "pd:20,1.5", "--control-rate", "1000")
QUICK = ("--duration", "3")


def test_from_a_design_to_identified_actuators(tmp_path: Path) -> None:
    """The command that is written runs on the robot, whose log beside it identifies armature and delay."""
    robot = given_robot(str(tmp_path / "legs.xml"))
    done = dynid("chirp", "legs.xml", *LAW, *QUICK, "--amplitude", "0.35", "-o", "command.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "largest standard deviation" in done.stdout and "armature of L_hip" in done.stdout
    assert "chosen: chirps" in done.stdout and "delay of all joints" in done.stdout
    assert "wrote command.csv" in done.stderr
    # A narrow terminal shows which chirp was chosen.
    assert any(line.startswith("\u2502") and "chosen" in line for line in done.stdout.splitlines())
    table = np.genfromtxt(tmp_path / "command.csv", delimiter=",", names=True)
    assert table.dtype.names == ("t", *(f"reference_{j}" for j in robot.coordinates))
    command = np.array([[*row][1:] for row in table])
    law = ActuatorLaw(robot.coordinates, kp=20.0, kd=1.5, rate=1000.0, delay=0.004)
    run = logged(legs(truth(1)), law, command, ratio=10).runs[0]
    package.Recording(robot.coordinates, (package.Run(run.t, run.q, name="log"),)).to_csv(tmp_path / "log.csv")
    both = "q=log.csv,reference=command.csv"
    done = dynid(
        "actuators", "legs.xml", both, *LAW, "--unknown", "armature,friction,damping,delay", "--json", folder=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = {x["label"]: x["value"] for x in json.loads(done.stdout)["unknowns"]}
    assert found["delay of all joints"] == pytest.approx(0.004, abs=2e-4)
    assert found["armature of L_hip"] == pytest.approx(truth(1)[0, 0], rel=0.05)


def test_json_and_options_reach_the_design(tmp_path: Path) -> None:
    """Unknowns, posture, limits, rate and noise; the project file has the law."""
    (tmp_path / "dynid.toml").write_text(
        '[robot]\nfile = "twolink"\n[actuators]\nlaw = "pd:60,3"\nunknown = ["delay"]\n'
    )
    limits = ("--limits", '{"joint*": {"velocity": 3, "acceleration": 40}}')
    words = ("--start-posture", "0.2,-0.1", "--output-rate", "100", *limits, *QUICK, "--json")
    pages = []
    for noise in ("0.001", "0.002,0.002"):
        done = dynid("chirp", "-o", "c.csv", "--position-noise", noise, *words, folder=tmp_path)
        assert done.returncode == 0, done.stderr
        pages.append(json.loads(done.stdout))
    assert pages[0]["posture"] == [0.2, -0.1] and pages[0]["rate"] == 100 and len(pages[0]["tried"]) == 18
    assert [x["label"] for x in pages[0]["unknowns"]] == ["delay of all joints"]
    assert pages[1]["unknowns"][0]["std"] == pytest.approx(2 * pages[0]["unknowns"][0]["std"], rel=1e-6)
    command = np.loadtxt(tmp_path / "c.csv", delimiter=",", skiprows=1)
    velocity = np.gradient(command[:, 1:], 0.01, axis=0)
    assert np.abs(velocity).max() <= 3 and np.abs(np.gradient(velocity, 0.01, axis=0)).max() <= 40


def test_what_is_assumed_is_said(tmp_path: Path) -> None:
    """A base that is held, and a file without friction."""
    package.export.write(package.load_robot("twolink", friction="none").with_base("floating"), tmp_path / "a.xml")
    done = dynid("chirp", "a.xml", "--law", "pd:60,3", *QUICK, "-o", "c.csv", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "the base is held fixed" in done.stderr and "no friction" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--law is missing"),
        (("--law", "pd:20"), "the law 'pd:20' is not known"),
        (("--law", "torque"), "joint 'joint1' does not follow a chirp: its law has no kp"),
        (("--law", "pd:60,3", "--amplitude", "0"), "--amplitude must be positive, got 0"),
        (("--law", "pd:60,3", "--amplitude", "nan"), "--amplitude takes a finite number"),
        (("--law", "pd:60,3", "--amplitude", "1,1,1"), "--amplitude has one number or 2, got 3"),
        (("--law", "pd:60,3", "--duration", "0"), "duration of a chirp"),
        (("--law", "pd:60,3", "--duration", "inf"), "--duration takes a finite number"),
        (("--law", "pd:60,3", "--output-rate", "1"), "--output-rate must be at least 5 Hz"),
        (("--law", "pd:60,3", "--position-noise", "-1"), "noise of the positions must be positive"),
        (("--law", "pd:60,3", "--start-posture", "0"), "needs 2 positions"),
        (("--law", "pd:60,3", "--start-posture", "9,0"), "joint 'joint1' is 9, outside its range"),
        (("--law", "pd:60,3", "--unknown", "armatur"), "did you mean armature"),
        (("--law", "pd:60,3", "--control-rate", "330"), "not a whole multiple of the 200 Hz"),
        (("--law", "pd:1e9,1", "--control-rate", "200"), "the law is unstable"),
        (("--law", "pd:60,3", "--limits", '{"*": {"torque": 1e-9}}'), "every chirp exceeds a limit"),
        (("--law", "pd:60,3", "--limits", '{"*": {"jerk": 1}}'), "not to jerk"),
        (("--law", "pd:60,3", "--limits", '{"knee": {"velocity": 1}}'), "'knee'"),
        (("--law", "pd:60,3", "-o", "c.toml"), "c.toml"),
        (("--law", "law.csv", "-o", "law.csv"), "is read by this command and would be overwritten"),
    ],
)
def test_bad_input_is_one_line_and_writes_nothing(words: tuple[str, ...], message: str, tmp_path: Path) -> None:
    (tmp_path / "law.csv").write_text("kp\n")
    done = dynid("chirp", "twolink", "-o", "c.csv", *QUICK, *words, folder=tmp_path)
    assert done.returncode == 1 and message in done.stderr.splitlines()[-1]
    assert os.listdir(tmp_path) == ["law.csv"]
