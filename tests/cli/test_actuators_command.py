"""The command that identifies actuators from encoder logs."""

from __future__ import annotations

import json
from pathlib import Path

import mujoco
import pytest

from studies.reproduce.actuator_plants import chirps, given_robot, legs, logged, truth
from tests.support.commands import dynid

JOINTS = [f"{side}_{joint}" for side in "LR" for joint in ("hip", "thigh", "calf")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model file and a log at 200 Hz, as its owner has them."""
    from dynid.robot import ActuatorLaw

    folder = tmp_path_factory.mktemp("legs")
    given_robot(str(folder / "legs.xml"))
    law = ActuatorLaw(JOINTS, kp=20.0, kd=1.5, rate=1000.0, delay=0.004)
    run = logged(legs(truth(1)), law, chirps(6.0, 1), ratio=10).runs[0]
    assert run.reference is not None
    header = ["time", *(f"q_{j}" for j in JOINTS), *(f"cmd_{j}" for j in JOINTS)]
    lines = [",".join(header)]
    lines += [",".join(f"{x:.9g}" for x in (t, *q, *c)) for t, q, c in zip(run.t, run.q, run.reference, strict=True)]
    (folder / "log.csv").write_text("\n".join(lines) + "\n")
    (folder / "law.toml").write_text('kp = 20\nkd = { ".*" = 1.5 }\nrate = 1000\n')
    return folder


def test_from_a_log_to_the_files_of_simulators(folder: Path) -> None:
    words = ("--law", "law.toml", "--validate-share", "0.3")
    done = dynid(
        *("actuators", "legs.xml", "log.csv", *words, "-o", "legs.toml"),
        *("--export", "mujoco,isaaclab", "--draws", "20"),
        folder=folder,
    )
    assert done.returncode == 0, done.stderr
    assert "armature of L_hip" in done.stdout and "delay of all joints" in done.stdout
    assert "verdict: trusted" in done.stdout
    assert max(len(line) for line in done.stdout.splitlines()) <= 100
    model = mujoco.MjModel.from_xml_path(str(folder / "legs_mujoco.xml"))
    assert model.dof_armature == pytest.approx(truth(1)[:, 0], rel=0.02)
    assert model.dof_frictionloss == pytest.approx(truth(1)[:, 2], abs=0.02)
    compile((folder / "legs_isaaclab.py").read_text(), "legs_isaaclab.py", "exec")
    ranges = json.loads((folder / "legs_ranges.json").read_text())
    assert len(ranges["parameters"]) == 6 * 4


def test_the_law_is_read_from_a_file_and_json_holds_everything(folder: Path) -> None:
    words = ("--law", "law.toml", "--unknown", "friction=shared,delay")
    done = dynid("actuators", "legs.xml", "log.csv", *words, "--rows", "0:500", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert [x["label"] for x in page["unknowns"]] == ["friction of all joints", "delay of all joints"]
    assert page["verdict"]["verdict"] == "use with care"
    assert len(page["rms"]) == 6


def test_gains_that_nobody_knows_are_found_too(folder: Path) -> None:
    """From a log and a model file alone: dynid init chooses the command, which finds kp within a few percent."""
    assert dynid("init", "legs.xml", "log.csv", "-o", "legs_project.toml", folder=folder).returncode == 0
    text = (folder / "legs_project.toml").read_text()
    assert 'law = "pd"' in text and "commanded and measured positions" in text
    done = dynid("actuators", "--project", "legs_project.toml", "--json", folder=folder)
    assert done.returncode == 0, done.stderr
    gains = [x["value"] for x in json.loads(done.stdout)["unknowns"] if x["label"].startswith("kp of")]
    assert gains == pytest.approx([20.0] * 6, rel=0.05)


def test_the_law_of_a_model_file(folder: Path) -> None:
    """Position actuators of an MJCF file are a law; a joint without one is named."""
    text = (folder / "legs.xml").read_text()
    servos = "".join(f'<position joint="{j}" kp="20" kv="1.5" forcerange="-30 30"/>' for j in JOINTS)
    (folder / "servos.xml").write_text(text.replace("</mujoco>", f"<actuator>{servos}</actuator></mujoco>"))
    words = ("--law", "file", "--rows", "0:400", "--unknown", "delay", "-o", "servos.toml")
    done = dynid("actuators", "servos.xml", "log.csv", *words, folder=folder)
    assert done.returncode == 0, done.stderr
    saved = (folder / "servos.toml").read_text()
    assert "20.0" in saved and "1.5" in saved and "30.0" in saved
    assert dynid("init", "servos.xml", "log.csv", "-o", "servos_project.toml", folder=folder).returncode == 0
    assert 'law = "file"' in (folder / "servos_project.toml").read_text()
    refused = dynid("actuators", "legs.xml", "log.csv", "--law", "file", folder=folder)
    assert refused.returncode == 1 and "no position actuator on joint 'L_hip'" in refused.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "--law is missing"),
        (("--law", "pd:20"), "the law 'pd:20' is not known"),
        (("--law", "pd:20,1.5"), "no commanded positions"),
        (("--law", "pd:20,1.5", "--unknown", "armatur"), "did you mean armature"),
        (("--law", "pd:20,1.5", "--export", "mujoco"), "name it with -o"),
        (("--law", "pd:20,1.5", "--export", "gazbo", "-o", "x.toml"), "--export 'gazbo' is unknown"),
        (("--law", "pd:20,1.5", "-o", "x.toml", "--draws", "1"), "--draws takes 2 to 1000000 draws, got 1"),
        (("--law", "pd:20,1.5", "-o", "x.csv"), "is a .toml or .json file"),
        (("--law", "missing.toml"), "cannot be read"),
        (("--law", "law.toml", "--control-rate", "330"), "200 rows per second, the law 330"),
    ],
)
def test_bad_input_is_one_sentence(folder: Path, words: tuple[str, ...], message: str) -> None:
    columns = ("--columns", "q=q_{joint}") if message == "no commanded positions" else ()
    done = dynid("actuators", "legs.xml", "log.csv", *columns, *words, folder=folder)
    assert done.returncode == 1
    assert message in " ".join(done.stderr.split())


def test_a_project_file_takes_the_place_of_options(folder: Path, tmp_path: Path) -> None:
    """Robot with armature and friction to be found, log, law, unknowns and files of simulators."""
    for name in ("legs.xml", "log.csv", "law.toml"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    sections = [
        '[robot]\nfile = "legs.xml"\n[runs]\nidentify = ["log.csv"]\n[log]\nrows = "0:500"\n[actuators]',
        'law = "law.toml"\nunknown = ["friction=shared", "delay"]\noutput = "out.toml"\nexport = ["mujoco"]\n',
    ]
    (tmp_path / "dynid.toml").write_text("\n".join(sections))
    done = dynid("actuators", "--json", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert [x["label"] for x in page["unknowns"]] == ["friction of all joints", "delay of all joints"]
    assert page["joints"] == JOINTS and page["position_units"] == ["rad"] * 6
    assert (tmp_path / "out.toml").is_file() and (tmp_path / "out_mujoco.xml").is_file()
    done = dynid("actuators", "--law", "pd:20", folder=tmp_path)
    assert "the law 'pd:20' is not known" in done.stderr
    (tmp_path / "dynid.toml").write_text(sections[0] + "\nlaws = 1\n")
    assert "actuators.laws is unknown: use law" in dynid("actuators", folder=tmp_path).stderr
