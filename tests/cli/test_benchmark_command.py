"""`dynid benchmark`: one command, one table, one picture."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import numpy as np
import polars as pl
import pytest

import dynid
from dynid.errors import DataError, ModelError, UnknownName
from dynid.identification.estimators.registry import own_methods
from studies.benchmark.benchmark import BENCHMARK_ROBOTS, SLOW, Benchmark, default_methods, run_benchmark
from studies.benchmark.figure import benchmark_figure
from studies.benchmark.robots import benchmark_robot, held_out, make_scenario
from tests.support import commands
from tests.support.errors import Error, expect_error


def command(*arguments: str) -> CompletedProcess[str]:
    return commands.dynid("benchmark", *arguments)


@pytest.fixture(scope="module")
def small() -> Benchmark:
    """The two-link arm with the least squares and DIDIM methods."""
    return run_benchmark(
        ["twolink"], runs=1, counts=[32000], methods=["wls", "feasible", "didim", "pc-didim"], workers=1
    )


@pytest.mark.slow
def test_the_quick_command_gives_table_and_picture(tmp_path: Path) -> None:
    """A run of seconds with every default method; progress on standard error, files where they were asked for."""
    done = command(
        *("--quick", "--robots", "twolink", "--workers", "1", "--folder", str(tmp_path / "kept")),
        *("-o", str(tmp_path / "table.csv"), "--figure", str(tmp_path / "figure.svg"), "--json"),
    )
    assert done.returncode == 0, done.stderr
    assert "1 of 1 recordings" in done.stderr
    page = json.loads(done.stdout)
    assert page["runs"] == 1 and "cores" in page["computer"]
    assert {row["method"] for row in page["table"]} == set(default_methods())
    table = pl.read_csv(tmp_path / "table.csv")
    assert len(table) == len(page["table"]) == 2 * (2 + 2 * (len(default_methods()) - 2))
    ET.parse(tmp_path / "figure.svg")
    # The second call finds its recording in the folder and has nothing to simulate.
    again = command("--quick", "--robots", "twolink", "--folder", str(tmp_path / "kept"))
    assert again.returncode == 0 and "recordings" not in again.stderr
    assert "| 32000 | 40 Hz | 30 % off | pc-didim | 100 % |" in again.stdout


@pytest.mark.slow
def test_simulation_beats_least_squares_where_the_filter_is_too_wide(small: Benchmark) -> None:
    """With the 200 Hz filter least squares misses more than 5 % of the torque, DIDIM less than a fifth of that."""
    wide = small.table.filter(pl.col("filter") == "200 Hz", pl.col("start").is_null() | (pl.col("start") == "truth"))
    error = dict(wide.select("method", "torque_error").iter_rows())
    assert error["wls"] > 5
    assert error["didim"] < 0.2 * error["wls"]
    assert error["pc-didim"] < 0.2 * error["wls"]


def test_the_table_counts_what_the_fits_say(small: Benchmark) -> None:
    """Errors and shares follow from estimates and outcomes; here they are computed a second way."""
    row = small.table.filter(method="wls", filter="40 Hz").row(0, named=True)
    fit = small.results.estimates.filter(method="wls", filter="40 Hz", kind="base")
    robot = benchmark_robot("twolink").with_smooth_coulomb(0.0)
    base = dynid.base_parameters(robot, channels="torque")
    q, v, a = held_out(robot)
    estimated = dynid.inverse_dynamics(robot.with_parameters(base.standard(fit["estimate"].to_numpy())), q, v, a)
    true = dynid.inverse_dynamics(robot, q, v, a)
    share = 100 * np.mean(np.linalg.norm(estimated - true, axis=0) / np.linalg.norm(true, axis=0))
    assert row["torque_error"] == pytest.approx(share, rel=1e-6)
    ratio = ((fit["estimate"] - fit["truth"]).abs() / fit["std"]).to_numpy()
    assert row["sigmas"] == pytest.approx(np.median(ratio))
    assert row["covered"] == pytest.approx(np.mean(ratio <= 2))
    assert row["converged"] == 1.0 and row["runs"] == 1


def test_the_picture_has_a_dot_for_every_figure(small: Benchmark) -> None:
    """As many dots as errors in the table, beside those of the legend, all inside the picture."""
    root = ET.fromstring(benchmark_figure(small))
    space = "{http://www.w3.org/2000/svg}"
    dots = root.findall(f"{space}circle")
    assert len(dots) == 1 + len(small.table["torque_error"].drop_nulls())
    assert all(0 < float(d.get("cx", 0)) < float(root.get("width", 0)) for d in dots)
    words = {t.text for t in root.findall(f"{space}text")}
    assert {"twolink", "wls", "pc-didim, 30 % off", "32000 counts, filter 200 Hz"} <= words


@pytest.mark.parametrize("name", BENCHMARK_ROBOTS)
def test_robots_of_the_benchmark_are_possible_and_complete(name: str) -> None:
    """Nothing impossible in the truth, friction and inertia in every drive, a motion within the limits."""
    robot = benchmark_robot(name)
    assert (
        dynid.feasibility.feasible_set(
            robot, [dynid.feasibility.constraints.Inertia(margin=0.0), dynid.feasibility.constraints.Signs()]
        ).violations(robot.parameters)
        == []
    )
    for link in robot.links[1:]:
        assert np.linalg.eigvalsh(dynid.inertia.inertia_to_pseudo(link.inertia))[0] > 0
    still = np.zeros((1, robot.n))
    slow = np.full((1, robot.n), 0.1)
    friction = dynid.inverse_dynamics(robot, still, slow, still) - dynid.inverse_dynamics(robot, still, -slow, still)
    assert np.all(friction > 1e-3)
    motion = make_scenario(robot).reference
    for i, joint in enumerate(robot.coordinates):
        limits = robot.limits[joint]
        assert limits.lower <= motion.q[:, i].min() and motion.q[:, i].max() <= limits.upper
        assert np.abs(motion.v[:, i]).max() <= limits.velocity


def test_methods_come_from_the_registries_and_slow_ones_are_left_out() -> None:
    """Whatever simulates the loop is in by itself unless it is known to be slow; every name exists."""
    simulating = {name for name, method in own_methods().items() if method.simulates}
    assert set(default_methods()) == {"wls", "feasible", *simulating} - set(SLOW)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"robots": ["nobody"]}, (ModelError, "source", "unknown_name")),
        ({"methods": ["magic"]}, (UnknownName, "method")),
        ({"robots": ["twolink", "twolink"]}, (DataError, "")),
        ({"counts": [0]}, (DataError, "")),
        ({"robots": ["box2"]}, (DataError, "")),
    ],
)
def test_wrong_requests_are_refused_before_any_work(wrong: dict[str, Any], error: Error) -> None:
    """In one plain sentence each."""
    with expect_error(*error):
        run_benchmark(**{"robots": ["twolink"], "workers": 1} | wrong)


def test_the_command_fails_in_one_line() -> None:
    """No traceback, exit code 1."""
    done = command("--robots", "twolink", "--methods", "magic")
    assert done.returncode == 1
    assert "method 'magic' is unknown" in done.stderr and "Traceback" not in done.stderr
