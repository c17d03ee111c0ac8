"""`dynid solvers`: one fit by several solvers, a file for others, and exit code 1 where they disagree."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from typer.testing import CliRunner

import dynid
from dynid.cli.main import app
from tests.support.synthetic import record


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with run.csv."""
    folder = tmp_path_factory.mktemp("solvers")
    record(dynid.load_robot("twolink"), noise=0.02, samples=400).to_csv(folder / "run.csv")
    return folder


def run(place: Path, *words: object) -> Result:
    return CliRunner().invoke(app, ["solvers", "twolink", str(place / "run.csv"), *map(str, words)])


def test_solvers_agree(place: Path) -> None:
    done = run(place, "--only", "CVXOPT", "--json")
    assert done.exit_code == 0, done.output
    page = json.loads(done.stdout)
    assert page["agree"] and [x["solver"] for x in page["solvers"]] == ["clarabel", "CVXOPT"]
    assert abs(page["solvers"][1]["excess"]) < 1e-6 and page["solvers"][1]["margin"] > -1e-6
    done = run(place, "--only", "clarabel")
    assert done.exit_code == 0 and "The solvers agree." in done.stdout and "cost" in done.stdout
    assert run(place, "--only", "cdsp").exit_code == 1


def test_a_file_for_others_and_their_solution(place: Path, tmp_path: Path) -> None:
    """A wrong solution disagrees; its table says by how much."""
    file = tmp_path / "problem.dat-s"
    done = run(place, "-o", file)
    assert done.exit_code == 0, done.output
    count = int(next(x for x in file.read_text().splitlines() if not x.startswith('"')))
    (tmp_path / "far.sol").write_text(" ".join(map(str, np.ones(count))) + "\n")
    done = run(place, "--solution", tmp_path / "far.sol")
    assert done.exit_code == 1 and "far.sol" in done.stdout and "do not agree" in done.stdout
