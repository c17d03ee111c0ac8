"""Monte Carlo studies: the same whoever does the work, resumable, and never ended by one bad fit."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import dynid
from dynid import controllers
from dynid.errors import (
    DamagedFile,
    Duplicate,
    DynidError,
    Infeasible,
    InvalidType,
    InvalidValue,
    MissingArgument,
    NotWritable,
    UnknownName,
)
from dynid.excitation.basis import random_fourier
from dynid.files import _computer
from dynid.montecarlo import study as driver
from dynid.montecarlo.scenario import Estimator, MonteCarloStudy, Scenario, perturbed_parameters
from dynid.montecarlo.study import monte_carlo
from dynid.progress import Progress
from dynid.signals.settings import Signals
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.reference import Reference
from dynid.simulation.sensors import Sensors
from tests.support.errors import Error, expect_error

RATE = 500.0


def scenario(bandwidth: float = 5.0, **more: Any) -> Scenario:
    """The box arm under a cascade, 4 s of a random periodic motion."""
    robot = dynid.load_robot("box2")
    reach = np.full(robot.n, 1.5)
    motion = random_fourier(-reach, reach, 3 * reach, 4.0, np.arange(0, 4, 1 / RATE), seed=0)
    law = controllers.cascade(RATE, *controllers.bandwidth_gains(robot, bandwidth))
    return Scenario(robot, ClosedLoop(controller=law), Reference(RATE, *motion), **more)


def small_study(**more: Any) -> MonteCarloStudy:
    given: dict[str, Any] = {
        "robots": {"box2": scenario()},
        "noise": {
            "fine": Sensors(noise=1e-5, velocity_cutoff=50.0),
            "coarse": Sensors(noise=1e-3, velocity_cutoff=50.0),
        },
        "filters": {"narrow": Signals(cutoff=20.0, decimate=(10,))},
        "starts": {"truth": "truth", "20 %": 0.2},
        "estimators": ("wls", "didim", "pc-didim"),
        "runs": 2,
        "seed": 3,
    }
    return MonteCarloStudy(**given | more)


def without_times(table: pl.DataFrame) -> pl.DataFrame:
    return table.drop([c for c in table.columns if c.endswith("seconds")])


@pytest.fixture(scope="module")
def alone() -> Any:
    """The small study, done by this process."""
    return monte_carlo(small_study(), workers=1)


@pytest.mark.slow
def test_results_do_not_depend_on_the_number_of_workers(alone: Any) -> None:
    """Bit by bit the same tables from one process and from two."""
    shared = monte_carlo(small_study(), workers=2)
    assert_frame_equal(without_times(shared.to_frame()), without_times(alone.to_frame()), check_exact=True)


def test_runs_differ_and_the_seed_decides(alone: Any) -> None:
    """Two runs see different noise, and another study seed other noise again."""
    first = alone.estimates.filter(pl.col("run") == 0)["estimate"].to_numpy()
    second = alone.estimates.filter(pl.col("run") == 1)["estimate"].to_numpy()
    assert np.all(first != second)
    other = monte_carlo(
        small_study(seed=4, runs=1, noise={"fine": Sensors(noise=1e-5, velocity_cutoff=50.0)}), workers=1
    )
    same_place = alone.estimates.filter(pl.col("run") == 0, pl.col("noise") == "fine")["estimate"].to_numpy()
    assert np.all(other.estimates["estimate"].to_numpy() != same_place)


def test_estimates_are_near_the_truth(alone: Any) -> None:
    """With fine encoders DIDIM's base values lie within 2 % of the truth, or 6 of their own sigmas."""
    wanted = {"noise": "fine", "kind": "base", "outcome": "converged"}
    fine = alone.to_frame().filter(pl.col("method") != "wls", **wanted)
    error = (fine["estimate"] - fine["truth"]).abs().to_numpy()
    room = np.maximum(0.02 * fine["truth"].abs().to_numpy(), 6 * fine["std"].to_numpy())
    assert len(fine) == 8 * 10  # two methods, two starts, two runs
    assert np.all(error <= room)


def test_a_study_goes_on_where_it_was_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, alone: Any) -> None:
    """Interrupted after three of four recordings, a second call does the last one only, and more runs only those."""
    study, done = small_study(), []
    work = driver.run_unit

    def stop_at_fourth(study: MonteCarloStudy, *unit: Any) -> dict[str, Any]:
        if len(done) == 3:
            raise KeyboardInterrupt
        done.append(unit)
        return work(study, *unit)

    monkeypatch.setattr(driver, "run_unit", stop_at_fourth)
    with pytest.raises(KeyboardInterrupt):
        monte_carlo(study, workers=1, folder=tmp_path / "study")
    assert len(list((tmp_path / "study").glob("box2@*.json"))) == 3

    again: list[Any] = []
    monkeypatch.setattr(driver, "run_unit", lambda study, *unit: again.append(unit) or work(study, *unit))
    result = monte_carlo(study, workers=1, folder=tmp_path / "study")
    assert again == [study.units()[3]]
    assert_frame_equal(without_times(result.to_frame()), without_times(alone.to_frame()), check_exact=True)

    again.clear()
    more = monte_carlo(replace(study, runs=3), workers=1, folder=tmp_path / "study")
    assert {unit[2] for unit in again} == {2} and len(again) == 2
    assert more.fits["run"].max() == 2


def test_a_folder_of_another_study_is_refused(tmp_path: Path) -> None:
    """Another noise, option or truth is another study; so is a folder with other things in it."""
    tiny = small_study(runs=1, estimators=("wls",), noise={"fine": Sensors(noise=1e-5)})
    monte_carlo(tiny, workers=1, folder=tmp_path / "a")
    pi = tiny.robots["box2"].robot.parameters * 1.01  # type: ignore[union-attr]
    heavier = replace(tiny.robots["box2"], robot=tiny.robots["box2"].robot.with_parameters(pi), model=None)  # type: ignore[union-attr]
    for other in (
        replace(tiny, noise={"fine": Sensors(noise=2e-5)}),
        replace(tiny, estimators=(Estimator("feasible", {"constraints": "semi"}),)),
        replace(tiny, robots={"box2": heavier}),
        replace(tiny, seed=9),
    ):
        with expect_error(NotWritable, "folder"):
            monte_carlo(other, workers=1, folder=tmp_path / "a")
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "thesis.txt").write_text("x")
    with expect_error(NotWritable, "folder"):
        monte_carlo(tiny, workers=1, folder=tmp_path / "b")


def test_a_damaged_file_is_named(tmp_path: Path) -> None:
    """A file cut short from outside is not taken for a result."""
    tiny = small_study(runs=1, estimators=("wls",), noise={"fine": Sensors(noise=1e-5)})
    monte_carlo(tiny, workers=1, folder=tmp_path)
    file = next(tmp_path.glob("box2@*.json"))
    file.write_text(file.read_text()[:100])
    with expect_error(DamagedFile):
        monte_carlo(tiny, workers=1, folder=tmp_path)


def test_failures_are_counted(alone: Any) -> None:
    """A loop that runs away gives no data, an estimator that raises has failed, too few rounds do not converge."""
    study = small_study(
        robots={"box2": scenario(), "unstable": scenario(bandwidth=400.0)},
        noise={"fine": Sensors(noise=1e-5, velocity_cutoff=50.0)},
        filters={"narrow": Signals(cutoff=20.0, decimate=(10,)), "nothing left": Signals(trim=3.0)},
        starts={"50 %": 0.5},
        estimators=("wls", "didim", Estimator("didim", {"max_iterations": 2}, "two rounds")),
        runs=1,
    )
    result = monte_carlo(study, workers=1)
    outcome = {(r, f, m): o for r, f, m, o in result.fits.select("robot", "filter", "method", "outcome").iter_rows()}
    assert {o for (robot, *_), o in outcome.items() if robot == "unstable"} == {"no data"}
    assert {o for (r, f, _), o in outcome.items() if r == "box2" and f == "nothing left"} == {"failed"}
    assert outcome["box2", "narrow", "didim"] == "converged"
    assert outcome["box2", "narrow", "two rounds"] == "not converged"
    counts = result.methods().filter(pl.col("robot") == "unstable")
    assert counts["no data"].to_list() == counts["runs"].to_list()
    stopped = result.fits.filter(pl.col("robot") == "unstable")["status"]
    assert all("diverges" in text for text in stopped)
    # Only what converged enters the figures.
    assert set(result.parameters()["method"]) == {"wls", "didim"}


def count_rows(experiment: Any, estimate: dynid.Estimate) -> Mapping[str, float]:
    return {"rows": float(sum(estimate.rows)), "mass": float(experiment.robot.parameters[0])}


def test_starts_are_perturbed_alike_for_every_noise_and_the_study_may_measure() -> None:
    """The start of a run is the same whatever the noise, another in the next run; figures become columns."""
    study = small_study(estimators=("wls", "didim"), measure=count_rows)
    result = monte_carlo(study, workers=1)
    masses = (
        result.fits.filter(pl.col("start") == "20 %").group_by("run", maintain_order=True).agg(pl.col("mass").unique())
    )
    assert [len(m) for m in masses["mass"]] == [1, 1]
    assert masses["mass"][0][0] != masses["mass"][1][0]
    assert set(result.fits.filter(pl.col("start") == "truth")["mass"]) == {1.0}
    assert result.fits["rows"].min() > 100  # type: ignore[operator]


def test_the_summary_has_the_layout_of_the_papers(alone: Any) -> None:
    """Parameter, mean (deviation), bias and sigma of each method, truth; below it how the fits ended."""
    name = alone.parameters()["parameter"][0]
    text = alone.summary([name])
    lines = text.splitlines()
    assert lines.count("### robot box2, noise fine, filter narrow, start 20 %") == 1
    head = "| parameter | wls | bias % | std | didim | bias % | std | pc-didim | bias % | std | true |"
    assert lines.count(head) == 4  # two noises, two starts; wls, which has none, in each
    row = next(line for line in lines if line.startswith(f"| {name} |"))
    assert row.count("(") == 3 and row.count("|") == head.count("|")
    wanted = {"parameter": name, "noise": "fine", "method": "wls"}
    figures = alone.parameters().filter(**wanted)
    mine = alone.estimates.filter(kind="base", **wanted)["estimate"].to_numpy()
    assert figures["mean"][0] == pytest.approx(mine.mean())
    assert figures["std"][0] == pytest.approx(mine.std(ddof=1))
    assert f"{mine.mean():.5g} ({mine.std(ddof=1):.3g})" in row
    with expect_error(UnknownName, "name"):
        alone.summary(["nonsense"])


def test_tables_are_written(tmp_path: Path, alone: Any) -> None:
    """CSV and Parquet hold one row a parameter of a fit."""
    alone.to_csv(tmp_path / "a.csv")
    alone.to_parquet(tmp_path / "a.parquet")
    assert len(pl.read_csv(tmp_path / "a.csv")) == len(alone.estimates)
    assert_frame_equal(pl.read_parquet(tmp_path / "a.parquet"), alone.to_frame())


def test_pairs_restrict_the_grid_and_a_model_may_lack_a_term() -> None:
    """Only the pairs of noise and filter that are named are done; truth of a poorer model is taken by name."""
    robot = dynid.load_robot("box2")
    study = small_study(
        robots={"box2": scenario(model=robot.without("fc_joint2"))},
        filters={"narrow": Signals(cutoff=20.0, decimate=(10,)), "wide": Signals(cutoff=100.0, decimate=(2,))},
        pairs=[("fine", "narrow"), ("coarse", "narrow"), ("fine", "wide")],
        estimators=("wls",),
        runs=1,
    )
    result = monte_carlo(study, workers=1)
    assert sorted(result.fits.select("noise", "filter").iter_rows()) == sorted(study.pairs or ())
    names = set(result.estimates.filter(pl.col("kind") == "base")["parameter"])
    assert not any("fc" in n and "2" in n for n in names) and any(n.startswith("fc") for n in names)


@pytest.mark.parametrize(
    ("wrong", "error"),
    [
        ({"estimators": ("magic",)}, (UnknownName, "method")),
        ({"estimators": ("wls", "wls")}, (Duplicate, "estimators")),
        ({"starts": {"odd": "somewhere"}}, (InvalidValue, "starts")),
        ({"starts": {"odd": -0.1}}, (InvalidValue, "starts")),
        ({"runs": 0}, (InvalidValue, "")),
        ({"noise": {}}, (MissingArgument, "")),
        ({"pairs": [("fine", "broad")]}, (UnknownName, "pairs")),
    ],
)
def test_wrong_studies_are_refused_in_words(wrong: dict[str, Any], error: Error) -> None:
    """Before any work is done."""
    with expect_error(*error):
        small_study(**wrong)


def test_wrong_options_measures_and_workers_are_refused(tmp_path: Path) -> None:
    """An option that the method lacks, a measure that a folder cannot tell from another, and no workers at all."""
    with expect_error(InvalidType):
        monte_carlo(small_study(measure=partial(count_rows)), workers=1, folder=tmp_path)
    with expect_error(UnknownName, "max_iterations"):
        Estimator("wls", {"max_iterations": 3})
    with expect_error(InvalidValue, "workers"):
        monte_carlo(small_study(), workers=0)


@dataclass(frozen=True)
class Deadly:
    """A measure that kills the process it runs in, on one recording, while `file` is there."""

    file: Path
    noise: float

    def __call__(self, experiment: Any, estimate: dynid.Estimate) -> dict[str, float]:
        if float(np.max(experiment.loop.sensors.noise)) == self.noise and self.file.exists():
            self.file.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return {}


@pytest.mark.slow
def test_a_killed_process_is_an_error_and_loses_nothing_finished(tmp_path: Path) -> None:
    """The call says what happened and where the finished recordings are; the next one does the rest."""
    file = tmp_path / "trigger"
    file.touch()
    study = small_study(estimators=("wls",), runs=4, measure=Deadly(file, 1e-3))
    with expect_error(DynidError, code="interrupted"):
        monte_carlo(study, workers=2, folder=tmp_path / "study")
    result = monte_carlo(study, workers=2, folder=tmp_path / "study")
    expected = monte_carlo(study, workers=1)
    assert_frame_equal(without_times(result.to_frame()), without_times(expected.to_frame()), check_exact=True)


def test_a_study_that_was_killed_in_its_first_file_can_start_again(tmp_path: Path) -> None:
    """What the killed process left was taken for files of somebody else."""
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    study = small_study(estimators=("wls",), runs=1, noise={"fine": Sensors(noise=1e-5, velocity_cutoff=50.0)})
    left = tmp_path / f".{_computer()}-{dead.pid}-140000000000-study.json"
    left.write_text('{"format"')
    monte_carlo(study, workers=1, folder=tmp_path)
    assert not left.exists() and len(list(tmp_path.glob("box2@*.json"))) == 1


@pytest.mark.slow
def test_a_killed_worker_of_a_cluster_loses_nothing(tmp_path: Path) -> None:
    """A worker process of a Dask cluster dies in the middle of a recording; another one does it again."""
    distributed = pytest.importorskip("distributed")
    file = tmp_path / "trigger"
    file.touch()
    study = small_study(estimators=("wls",), runs=3, measure=Deadly(file, 1e-3))
    lines: list[Progress] = []
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        before = {w["pid"] for w in client.run(lambda: {"pid": os.getpid()}).values()}
        result = monte_carlo(study, folder=tmp_path / "study", client=client, progress=lines.append)
        client.wait_for_workers(2, timeout=60)
        after = {w["pid"] for w in client.run(lambda: {"pid": os.getpid()}).values()}
    assert not file.exists()
    assert len(before - after) == 1, "one worker was killed"
    expected = monte_carlo(study, workers=1)
    assert_frame_equal(without_times(result.to_frame()), without_times(expected.to_frame()), check_exact=True)
    assert lines[-1].message.startswith("6 of 6 recordings") and lines[-1].share == 1.0
    assert len(list((tmp_path / "study").glob("box2@*.json"))) == 6


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_perturbed_parameters_scatter_as_asked_and_stay_possible(share: float) -> None:
    """Relative deviations are near the share, all links are possible, no friction is negative, zeros stay zero."""
    robot = dynid.load_robot("tx40")
    truth = robot.parameters
    rng = np.random.default_rng(0)
    draws = np.array([perturbed_parameters(robot, share, rng) for _ in range(40)])
    assert np.all(draws[:, truth == 0] == 0)
    spread = (draws / np.where(truth == 0, 1, truth) - 1)[:, truth != 0].std()
    assert 0.7 * share < spread < 1.1 * share  # rejection narrows it
    for pi in draws:
        assert not dynid.feasibility.feasible_set(robot).violations(pi)
    same = perturbed_parameters(robot, share, 7)
    assert np.array_equal(same, perturbed_parameters(robot, share, 7))


def test_an_impossible_link_cannot_be_perturbed() -> None:
    """The point masses of the two-link arm leave no room; the link is named."""
    with expect_error(Infeasible):
        perturbed_parameters(dynid.load_robot("twolink"), 0.1, 0)
    with expect_error(InvalidValue, "share"):
        perturbed_parameters(dynid.load_robot("tx40"), -0.1, 0)


def test_the_rv2sq_is_possible_and_says_that_it_is_made_up() -> None:
    """All pseudo-inertias are positive definite by a margin; the source names what is invented."""
    robot = dynid.load_robot("rv2sq")
    assert (robot.n, len(robot.parameters)) == (6, 78)
    for link in robot.links[1:]:
        eigenvalues = np.linalg.eigvalsh(dynid.inertia.inertia_to_pseudo(link.inertia))
        assert eigenvalues[0] > 1e-3 * eigenvalues[1]
        assert dynid.inertia.inertia_violations(link.inertia) == []
    assert "made up" in robot.source and "RV-2SQ" in robot.source
    assert all(term.value > 0 for term in robot.drives)
    q = np.zeros(6)
    wrist = dynid.dynamics.frame_placement(robot, q, "link6")
    # Upright: shoulder, upper arm and forearm above each other, flange beyond.
    assert wrist[..., 2, 3] == pytest.approx(0.295 + 0.23 + 0.27 + 0.07)
    assert np.hypot(wrist[..., 0, 3], wrist[..., 1, 3]) == pytest.approx(0.05)


def test_results_are_plain_files(tmp_path: Path) -> None:
    """Every finished recording is one JSON file that other tools can read."""
    tiny = small_study(runs=1, estimators=("wls",), noise={"fine / 1": Sensors(noise=1e-5)})
    monte_carlo(tiny, workers=1, folder=tmp_path)
    page = json.loads(next(tmp_path.glob("box2@fine%20%2F%201@00000.json")).read_text())
    assert page["fits"][0]["outcome"] == "converged"
    assert not list(tmp_path.glob("*.part"))
