"""`dynid fleet`: a folder with a bad file, in the terminal, as table, page and JSON."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from dynid.cli.main import app
from studies.reproduce.fleet_plant import FRICTION, Fleet, fleet_robot


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two units on two dates, and a file that is no recording."""
    folder = tmp_path_factory.mktemp("fleet")
    fleet_robot(str(folder))
    for entry in Fleet(0, 2, 2, None).entries():
        where = folder / "logs" / f"robot={entry.unit}" / f"date={entry.day}"
        where.mkdir(parents=True)
        entry.data.to_csv(where / "log.csv")  # type: ignore[union-attr]
    bad = folder / "logs" / "robot=arm009" / "date=2026-02-02"
    bad.mkdir(parents=True)
    (bad / "log.parquet").write_text("nothing")
    return folder


def test_a_bad_file_is_named_or_left_out(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    words = ["fleet", "arm.urdf", "logs", "--friction", FRICTION, "--cutoff", "5", "--workers", "1"]
    stopped = CliRunner().invoke(app, words)
    assert stopped.exit_code == 1 and "unit 'arm009' on 2026-02-02" in str(stopped.exception)
    done = CliRunner().invoke(app, [*words, "--skip-bad", "-o", "table.parquet", "--report", "page.html", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert [x["unit"] for x in found["left_out"]] == ["arm009"] and found["entries"] == 4
    assert {u["unit"] for u in found["units"]} == {"arm000", "arm001"}
    assert set(pl.read_parquet("table.parquet")["kind"]) >= {"entry", "shared model", "pooled"}
    assert "1 left out" in Path("page.html").read_text()


@pytest.mark.slow
def test_a_cluster_folds_the_recordings(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same table as on this computer; a scheduler that is gone is named."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.chdir(place)
    words = ["fleet", "arm.urdf", "logs", "--friction", FRICTION, "--cutoff", "5", "--skip-bad"]
    with distributed.LocalCluster(
        2, threads_per_worker=1, processes=False, protocol="tcp://", dashboard_address=None
    ) as cluster:
        address = cluster.scheduler_address
        done = CliRunner().invoke(app, [*words, "--cluster", address, "-o", "there.parquet"])
        assert done.exit_code == 0, done.output
    assert CliRunner().invoke(app, [*words, "--workers", "1", "-o", "here.parquet"]).exit_code == 0
    assert pl.read_parquet("there.parquet").equals(pl.read_parquet("here.parquet"))
    gone = CliRunner().invoke(app, [*words, "--cluster", address])
    assert gone.exit_code == 1 and f"no Dask scheduler can be reached at {address}" in str(gone.exception)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["fleet", "twolink"], "FOLDER"),
        (["fleet", "twolink", "nowhere"], "no folder 'nowhere'"),
        (["fleet", "twolink", "nowhere", "-o", "table.txt"], "table.parquet"),
        (["fleet", "twolink", "nowhere", "--workers", "2", "--cluster", "tcp://host:1"], "give one"),
    ],
)
def test_wrong_arguments_are_refused(given: list[str], words: str) -> None:
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 1 and words in str(done.exception)


def test_a_project_file_takes_the_place_of_options(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    robot = f'[robot]\nfile = "arm.urdf"\nfriction = "{FRICTION}"\n[identify]\ncutoff = 5\n'
    fleet = '[fleet]\nfolder = "logs"\noutput = "own.csv"\nreport = "own.html"\nskip_bad = true\nfalse_alarms = 0.01\n'
    (place / "dynid.toml").write_text(robot + fleet)
    done = CliRunner().invoke(app, ["fleet", "--workers", "1", "--json"])
    assert done.exit_code == 0, done.output
    found = json.loads(done.stdout)
    assert found["entries"] == 4 and found["rate"] == 0.01 and len(found["left_out"]) == 1
    assert Path("own.html").is_file() and pl.read_csv("own.csv").height > 0
    (place / "dynid.toml").unlink()
