"""`dynid geometry`: plan, fit, check, export; from the command line and from dynid.toml, and bad input in one line."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid as package
from dynid.export.urdf import write_urdf
from dynid.geometry import GeometryEstimate
from tests.support.commands import dynid, leaves
from tests.support.geometry_files import FRAME, arm, placements, postures, text, write_sockets, write_tracker

TOML = """[robot]
file = "arm.urdf"
[geometry]
frame = "link6"
measurements = ["sockets"]
distances = { "hole_0,hole_1" = 0.05 }
noise = 5e-5
output = "geometry.json"
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the robot, what a tracker and sockets measured, and the calibration by the tracker."""
    folder = tmp_path_factory.mktemp("geometry")
    write_urdf(arm(), folder / "arm.urdf")
    write_tracker(folder / "tracker.csv", 45)
    write_tracker(folder / "other.csv", 20, seed=7)
    write_sockets(folder / "sockets", count=8)
    (folder / "dynid.toml").write_text(TOML)
    done = dynid(*fit_words("tracker.csv"), "-o", "tracker.json", "--report", "tracker.html", folder=folder)
    assert done.returncode == 0, done.stderr
    (folder / "out.txt").write_text(done.stdout)
    return folder


def fit_words(*more: str) -> list[str]:
    return ["geometry", "fit", "arm.urdf", *more, "--frame", FRAME, "--kinds", "position,rotation,zero"]


def refused(done: Any, *words: str) -> None:
    """The command ended with one line on standard error that has these words."""
    line = [x for x in done.stderr.splitlines() if x.startswith("dynid:")][-1]
    assert done.returncode == 1 and all(w in line for w in words), done.stderr
    assert "Traceback" not in done.stderr


def test_every_command_of_the_group_has_few_options() -> None:
    from dynid.cli.main import app

    for name, command in leaves(app.built).items():
        if name.startswith("geometry "):
            assert sum(p.param_type_name == "option" for p in command.params) <= 25, name


def test_fit_prints_the_verdict_first_then_the_error_before_and_after(files: Path) -> None:
    lines = (files / "out.txt").read_text().splitlines()
    assert lines[0].startswith("verdict: ") and lines[1].startswith("  - ")
    assert sum(line.startswith("  error at parts left out: mean") for line in lines) == 1
    assert any("largest differences" in line for line in lines)
    assert "dynid geometry export tracker.json" in lines[-1] or "do not use" in lines[0]
    found = GeometryEstimate.load(files / "tracker.json")
    assert found.held_out is not None and found.held_out.mean[1] < 0.2 * found.held_out.mean[0]
    assert found.judgement is not None and found.judgement.grade == lines[0].removeprefix("verdict: ")
    assert any("read as rad" in note for note in found.notes)


def test_the_page_has_verdict_pictures_and_what_is_hidden(files: Path) -> None:
    page = (files / "tracker.html").read_text(encoding="utf-8")
    for key in ("picture", "postures", "workspace", "differences", "base", "sensors", "hidden", "checks"):
        assert f'<section id="{key}"' in page, key
    assert "\u2192" in page and '"arrows"' in page and "next:" in page.lower()
    assert page.index('class="verdict') < page.index('class="figures-key"') < page.index('<section id="picture"')
    assert "full poses of link6" in page or "base and tool in one frame" in page


def test_the_last_line_of_fit_is_a_command_that_works(files: Path) -> None:
    last = (files / "out.txt").read_text().splitlines()[-1].strip("- ")
    assert last.startswith("dynid geometry export ")
    done = dynid(*last.split()[1:], folder=files)
    assert done.returncode == 0, done.stderr
    found = GeometryEstimate.load(files / "tracker.json")
    q = postures(5, 9)
    robot = package.load_robot(files / "arm.calibrated.urdf")
    there = package.dynamics.frame_placement(robot, q, FRAME)
    np.testing.assert_allclose(there, found.place(q)[0], atol=1e-6)


@pytest.mark.parametrize("table", ["zeros", "dh", "mdh"])
def test_tables_are_written(files: Path, tmp_path: Path, table: str) -> None:
    done = dynid("geometry", "export", "tracker.json", "--table", table, "-o", str(tmp_path / "t.csv"), folder=files)
    assert done.returncode == 0, done.stderr
    written = (tmp_path / "t.csv").read_text()
    assert "joint6" in written
    if table == "zeros":
        rows = list(csv.DictReader(written.splitlines()))
        found = GeometryEstimate.load(files / "tracker.json")
        value = found.values[[u.name for u in found.unknowns].index("zero of joint2")]
        assert float(rows[1]["offset"]) == pytest.approx(value, rel=1e-6)


def test_check_tries_the_calibration_on_other_measurements(files: Path) -> None:
    done = dynid("geometry", "check", "tracker.json", "other.csv", "--json", folder=files)
    assert done.returncode == 0, done.stderr
    row = json.loads(done.stdout)["errors"][0]
    assert row["postures"] == 20 and row["after"] < 0.15 * row["before"]
    done = dynid("geometry", "check", "tracker.json", "other.csv", folder=files)
    assert "verdict: " in done.stdout and "20 postures of link6" in done.stdout


def test_a_project_file_has_everything(files: Path) -> None:
    done = dynid("geometry", "fit", "--kinds", "position,rotation,zero", "--json", folder=files)
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert page["held_out"]["by"] == "places" and page["verdict"]["verdict"]
    assert (files / "geometry.json").exists()
    done = dynid("geometry", "check", folder=files)
    assert done.returncode == 0 and "48 postures of link6" in done.stdout, done.stderr
    done = dynid("geometry", "export", "--untrusted", "-o", "sockets.urdf", folder=files)
    assert done.returncode == 0, done.stderr
    assert "arm.urdf with the origins" in done.stdout.replace("/", " ")


def test_a_plan_is_written_with_the_accuracy_it_gives(files: Path, tmp_path: Path) -> None:
    out = tmp_path / "postures.csv"
    words = ["geometry", "plan", "arm.urdf", "--frame", FRAME, "--count", "12", "--pool", "60"]
    done = dynid(*words, "-o", str(out), "--json", folder=files)
    assert done.returncode == 0, done.stderr
    page, rows = json.loads(done.stdout), list(csv.reader(out.read_text().splitlines()))
    assert rows[0] == list(arm().coordinates) and len(rows) == 13
    np.testing.assert_allclose(np.array(rows[1:], dtype=float), page["q"], atol=1e-9)
    assert 0 < page["accuracy"] < 0.01
    done = dynid(*words, "--workspace", "0,0,0", folder=files)
    refused(done, "--workspace")
    done = dynid("geometry", "plan", "arm.urdf", "tracker.csv", "--frame", FRAME, folder=files)
    refused(done, "--accuracy")


def test_masses_of_another_robot_load_the_joints(files: Path) -> None:
    done = dynid(*fit_words("tracker.csv")[:-1], "zero,compliance", "--bodies", "tx40", "--json", folder=files)
    assert done.returncode == 0, done.stderr
    assert any(u["symbol"] == "c" for u in json.loads(done.stdout)["unknowns"])


def test_required_verdicts_end_the_command(files: Path, tmp_path: Path) -> None:
    q = postures(8)
    bad = tmp_path / "bad.csv"
    seen = placements(q)[:, :3, 3] + np.random.default_rng(0).normal(size=(8, 3))
    bad.write_text(text([*arm().coordinates, "x", "y", "z"], q, seen))
    done = dynid(*fit_words(str(bad)), "--units", "points=m", "--require", "trusted", folder=files)
    assert done.returncode == 3 and "--require trusted asks for better" in done.stderr, done.stderr


def test_bad_input_is_refused_in_one_line(files: Path, tmp_path: Path) -> None:
    lines = (files / "tracker.csv").read_text().splitlines()
    empty, short, odd = tmp_path / "empty.csv", tmp_path / "short.csv", tmp_path / "odd.csv"
    empty.write_text(lines[0] + "\n")
    short.write_text("\n".join(",".join(line.split(",")[1:]) for line in lines))
    odd.write_text("\n".join(",".join(line.split(",")[:6]) for line in lines))
    refused(dynid(*fit_words(str(empty)), folder=files), "no rows")
    refused(dynid(*fit_words(str(short)), folder=files), "joint1", "--joints")
    refused(dynid(*fit_words(str(odd)), folder=files), "nothing is measured")
    refused(dynid(*fit_words("tracker.csv"), "--units", "points=mm", folder=files), "--units points=m")
    refused(dynid(*fit_words("tracker.csv"), "--joints", "a,b,c,d,e,f", folder=files), "no column 'a'")
    refused(dynid(*fit_words("sockets"), "--distance", "hole_0,hole_9=0.05", folder=files), "hole_9")
    refused(dynid(*fit_words("sockets"), "--distance", "hole_0=0.05", folder=files), "--distance")
    refused(dynid(*fit_words("tracker.csv"), "-o", "tracker.csv", folder=files), ".json")
    refused(dynid("geometry", "fit", "arm.urdf", "tracker.csv", folder=files), "--frame", "link6")
    refused(dynid("geometry", "fit", "arm.urdf", "--frame", FRAME, folder=files), "no measurement")
    refused(dynid(*fit_words("tracker.csv")[:-1], "zeros", folder=files), "zeros")
    refused(dynid("geometry", "export", "tracker.json", folder=files), "-o")
    refused(dynid("geometry", "export", "tracker.json", "--table", "dhh", "-o", "a.csv", folder=files), "dhh")
    refused(dynid("geometry", "check", "arm.urdf", "other.csv", folder=files), "geometric calibration")
    refused(dynid("geometry", "check", folder=tmp_path), "ESTIMATE")
