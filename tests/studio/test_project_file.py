"""dynid.toml as the page keeps it: what is chosen outlives the page, and what it does not know stays."""

from __future__ import annotations

import asyncio
import tomllib
from pathlib import Path

import numpy as np
import pytest

from dynid.cli.project import load_project
from dynid.errors import DamagedFile, DataError, InvalidValue, MissingArgument, ModelError, Unsupported
from dynid.studio.comparison import EstimateFiles, EstimateRow, compared, own_files
from dynid.studio.estimate_panel import comparison_rows, next_steps
from dynid.studio.project_file import ProjectFile
from dynid.studio.runs import LogRuns
from dynid.studio.session import PER_JOINT, Session
from dynid.studio.workspace import Workspace
from tests.support.errors import expect_error

TEXT = """# mine
[robot]
file = "tx40"
friction = { joint1 = "viscous" }   # one joint

[log]
units = { q = "deg" }
[log.sign]
torque = -1

[loop]   # kept
velocity_cutoff = 100
"""


def test_a_section_is_replaced_and_the_others_stay(tmp_path: Path) -> None:
    file = ProjectFile(Workspace(tmp_path))
    assert file.section("log") == {}
    (tmp_path / "dynid.toml").write_text(TEXT)
    file.put("log", {"time": 0, "rate": None, "columns": {"q": [1, 2]}})
    file.put("runs", {"identify": [{"q": "a.csv"}]})
    text = (tmp_path / "dynid.toml").read_text()
    assert "# mine" in text and "# one joint" in text and "[loop]   # kept\nvelocity_cutoff = 100" in text
    found = tomllib.loads(text)
    assert found["log"] == {"time": 0, "columns": {"q": [1, 2]}} and found["runs"] == {"identify": [{"q": "a.csv"}]}
    assert load_project(tmp_path / "dynid.toml").log.columns == {"q": (1, 2)}


def test_a_file_that_cannot_be_changed_is_left(tmp_path: Path) -> None:
    file = ProjectFile(Workspace(tmp_path))
    for text, error in (("= =", (DamagedFile, "")), ('log.time = 0\nx = """\n[log]\n"""\n', (Unsupported, ""))):
        (tmp_path / "dynid.toml").write_text(text)
        with expect_error(*error):
            file.put("log", {"rate": 100.0})
        assert (tmp_path / "dynid.toml").read_text() == text


def test_a_session_goes_on_where_the_file_was_left(tmp_path: Path) -> None:
    """Robot, friction per joint, locked joints, logs and log format; other keys of the robot stay."""
    (tmp_path / "dynid.toml").write_text(TEXT.replace("file =", "gravity = [0.0, 0.0, -9.8]\nfile ="))
    session = Session(Workspace(tmp_path))
    assert session.name == "tx40" and session.friction == PER_JOINT and session.log.units == {"q": "deg"}
    session.lock({"joint6": 0.2})
    again = Session(Workspace(tmp_path))
    assert again.robot is not None and again.robot.n == 5 and again.held == {"joint6": 0.2}
    again.choose("tx40", PER_JOINT, True)
    section = again.project.section("robot")
    assert section["friction"] == {"joint1": "viscous"} and section["gravity"][2] == -9.8 and section["rotor_inertia"]
    again.choose("twolink")
    assert again.project.section("robot") == {"file": "twolink"} and again.held == {}
    (tmp_path / "dynid.toml").write_text("[robot]\nfile = 'gone.urdf'\n")
    assert "gone.urdf" in Session(Workspace(tmp_path)).problem


def test_effects_are_added_to_the_model(tmp_path: Path) -> None:
    """As the button below the verdict does; what is wrong with one is said and nothing is kept."""
    session = Session(Workspace(tmp_path))
    session.choose("tx40")
    session.add_effects(["load-friction=joint2"])
    robot = session.add_effects(["ripple=joint3:30", "load-friction=joint2"])
    assert {"fl_joint2", "rs30_joint3", "rc30_joint3"} <= set(robot.parameter_names)
    again = Session(Workspace(tmp_path))
    assert again.robot is not None and again.robot.parameter_names == robot.parameter_names
    with expect_error(ModelError, "effect", code="unknown_name"):
        session.add_effects(["spring=joint9"])
    assert session.project.section("robot")["effects"] == ["load-friction=joint2", "ripple=joint3:30"]


def test_the_mass_of_the_robot_is_kept(tmp_path: Path) -> None:
    """Written for the commands, beside what else the section has; another robot has another mass."""
    session = Session(Workspace(tmp_path))
    with expect_error(MissingArgument):
        session.weigh(16.0)
    session.choose("tx40", "viscous")
    assert session.mass is None
    session.weigh(16)
    with expect_error(InvalidValue, "mass"):
        session.weigh(0)
    again = Session(Workspace(tmp_path))
    assert again.mass == 16.0 and again.name == "tx40"
    again.lock({"joint6": 0.0})
    assert load_project(tmp_path / "dynid.toml").robot.mass == 16.0
    (tmp_path / "dynid.toml").write_text(
        '[robot]\nfile = "tx40"\nmass = 16.0\n[robot.link_mass]\nlink2 = 4.8\n[log]\nrate = 100.0\n'
    )
    again = Session(Workspace(tmp_path))
    again.weigh(17.5)
    found = load_project(tmp_path / "dynid.toml")
    assert found.robot.mass == 17.5 and found.robot.link_mass == {"link2": 4.8} and found.log.rate == 100.0
    again.weigh(None)
    assert again.mass is None and again.project.section("robot") == {"file": "tx40", "link_mass": {"link2": 4.8}}
    again.weigh(16.0)
    again.choose("twolink")
    assert again.mass is None


@pytest.mark.slow
def test_from_a_bare_log_to_the_project_of_the_commands(tmp_path: Path) -> None:
    """Chosen, mapped and saved in the page; read by `dynid check` without options."""
    session = Session(Workspace(tmp_path))
    session.choose("twolink")
    t = np.arange(400) / 100.0
    q = np.column_stack([np.sin(t), np.cos(2 * t)])
    np.savetxt(tmp_path / "bare.csv", np.column_stack([t, q, 3 * q]), delimiter=",")
    with pytest.raises(DataError, match="no file 'gone"):
        session.use(LogRuns(("gone.csv",)))
    session.use(LogRuns(("bare.csv",), share=0.25))
    opened = session.open()
    with pytest.raises(DataError, match="positions are needed"):
        session.save_log()
    assert session.project.section("log") == {}
    session.opened = opened.changed(opened.mapping.assign([1, 2], "q").assign([3, 4], "torque", sign=-1))
    session.save_log()
    assert np.allclose(session.motion(points=10_000)[1], q)
    done = asyncio.run(session.check())
    assert done.data["log_format"]["sign"] == {"torque": -1.0} and session.jobs.history == ["dynid check --json"]
    fresh = Session(Workspace(tmp_path))
    assert fresh.open().mapping.log_format() == session.open().mapping.log_format()


def test_runs_are_checked_and_told() -> None:
    runs = LogRuns(({"q": "p.csv", "torque": "e.csv"},), rows="10:20")
    assert LogRuns.of_section(runs.to_section()) == LogRuns(({"q": "p.csv", "torque": "e.csv"},), rows="10:20")
    assert runs.words() == "from p.csv, e.csv; validated on rows 10:20" and runs.held_out == "rows"
    assert LogRuns(("a.csv",), ("b.csv",)).words() == "from a.csv; validated on b.csv"
    assert LogRuns(("a.csv",), share=0.25).words() == "from a.csv; validated on the last 25%"
    wrong = [{"share": 1.5}, {"rows": "x"}, {"identify": ({"torque": "e.csv"},)}, {"identify": ({"": "a"},)}]
    for fields in wrong:
        with pytest.raises(DataError):
            LogRuns(**fields)  # type: ignore[arg-type]


def test_estimates_beside_each_other(tmp_path: Path) -> None:
    import json

    workspace = Workspace(tmp_path)
    rows = [
        EstimateRow("estimate", "auto", "trusted", "Fc, Fv", True, {"j1": (1.5, "N m", 0.05)}, 12.0, 13.0),
        EstimateRow(
            "other",
            "wls",
            "do not use",
            "",
            False,
            {"j2": (float("nan"), "N", float("nan"))},
            11.0,
            13.0,
            "weighs 16 kg (given)",
        ),
    ]
    for row in rows:
        workspace.write(EstimateFiles(row.name).row, json.dumps(row.__dict__).encode())
        workspace.write(EstimateFiles(row.name).estimate, b"{}")
    workspace.write("lost.row.json", json.dumps(rows[0].__dict__).encode())
    workspace.write("odd.row.json", b"[]")
    assert {row.name for row in compared(workspace)} == {"estimate", "other"}
    table = {line[""]: line for line in comparison_rows(rows)}
    assert table["j1"] == {"": "j1", "estimate": "1.5 N m (5.0%)", "other": ""}
    assert table["j2"]["other"] == "stands still" and table["total mass"]["other"] == (
        "11 kg (a priori 13), weighs 16 kg (given)"
    )
    assert table["total mass"]["estimate"] == "12 kg (a priori 13)"
    assert own_files(workspace) >= {"other.json", "other.row.json", "estimate.json", "verdict.json"}


def test_next_steps_are_what_failed_checks_recommend() -> None:
    checks = [
        {"result": "warned", "advice": "record longer"},
        {"result": "failed", "advice": "turn the sign"},
        {"result": "passed", "advice": ""},
        {"result": "warned", "advice": "turn the sign"},
    ]
    assert next_steps({"checks": checks}, "Done.") == ["turn the sign", "record longer"]
    assert next_steps({"checks": []}, "Done.") == ["Done."]
