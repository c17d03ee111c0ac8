"""Other packages add methods and formats of log files by their records alone."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.base import records
from dynid.cli import complete
from dynid.cli.demo import synthetic_recording
from dynid.errors import Duplicate, InvalidValue, NotApplicable, UnknownName, WrongFormat
from dynid.identification import methods
from dynid.identification.estimators.method import method_names
from dynid.identification.estimators.registry import own_methods
from dynid.online import OnlineIdentification
from dynid.recording import readers
from dynid.recording.dataset import is_dataset
from tests.support.commands import dynid as run
from tests.support.errors import expect_error
from tests.support.synthetic import EXACT, arm, record

ROOT = Path(__file__).parents[1]
PLUGIN = ROOT / "tests" / "support" / "plugin"


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The package of the example, as pip would install it."""
    monkeypatch.syspath_prepend(PLUGIN)


def package(folder: Path, name: str, points: str, code: str = "") -> None:
    """Install a package with these entry points below a folder."""
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(points)
    (folder / f"{name.replace('-', '_')}.py").write_text(code)


def transposed(recording: dynid.Recording, file: Path) -> Path:
    run = recording.runs[0]
    assert run.torque is not None
    columns = {"t": run.t, **{f"q_{j}": run.q[:, k] for k, j in enumerate(recording.joints)}}
    columns |= {f"torque_{j}": run.torque[:, k] for k, j in enumerate(recording.joints)}
    file.write_text("\n".join(" ".join([name, *map(repr, map(float, x))]) for name, x in columns.items()))
    return file


@pytest.mark.usefixtures("installed")
def test_a_method_of_another_package_is_one_like_any_other() -> None:
    """It is listed, called by its name with its own options, and refused where its record says that it cannot."""
    robot = arm()
    estimate = dynid.identify(robot, record(robot, noise=0.1), "lad", signals=EXACT, max_iterations=150)
    assert estimate.method == "lad" and estimate.converged
    truth = estimate.base.values(robot.parameters)
    assert np.all(np.abs(estimate.beta - truth) < 5 * estimate.std)
    assert list(methods())[-1] == "lad" == method_names()[-1]
    for wrong, error in (
        ({"max_iterations": 0}, (InvalidValue, "max_iterations")),
        ({"loss": "huber"}, (UnknownName, "loss")),
    ):
        with expect_error(*error):
            dynid.identify(robot, record(robot), "lad", **wrong)  # type: ignore[arg-type]
    online = OnlineIdentification(robot)
    with expect_error(NotApplicable, "method"):
        online.estimate("lad")


@pytest.mark.usefixtures("installed")
def test_a_shell_completes_it_without_loading_the_package() -> None:
    assert complete.methods("la") == [("lad", "Of package dynid-example.")]
    assert complete.method_lists("wls,la") == ["wls,lad"]


@pytest.mark.usefixtures("installed")
def test_logs_of_another_package_are_read_and_identified_from(tmp_path: Path) -> None:
    """A file, compressed too, and a folder; by Python and by the command line."""
    recording = synthetic_recording(dynid.load_robot("twolink"), 0, duration=5.0)
    file = transposed(recording, tmp_path / "run.rows")
    folder = tmp_path / "columns"
    folder.mkdir()
    for line in file.read_text().splitlines():
        name, values = line.split(" ", 1)
        (folder / name).write_text(values)
    (folder / "columns.list").write_text("\n".join(x.name for x in folder.iterdir()))
    (folder / "data.parquet").touch()  # a folder with a format of its own is no data set
    assert not is_dataset(folder) and {"transposed", "columns"} <= set(readers())
    for log in (file, folder):
        read = dynid.load_recording(log, dynid.load_robot("twolink")).runs[0]
        assert read.name == log.stem and np.array_equal(read.q, recording.runs[0].q)
        checked = run("check", "twolink", log, "--json")
        assert "findings" in json.loads(checked.stdout), checked.stderr
    done = run("identify", "twolink", file, "--method", "lad", "--json", "--report", "none")
    assert done.returncode == 0 and json.loads(done.stdout)["method"] == "lad", done.stderr
    other = run("check", "twolink", file.rename(tmp_path / "run.xyz"))
    assert "ending '.xyz' is unknown" in other.stderr and ".rows" in other.stderr


@pytest.mark.parametrize(
    ("point", "code", "words"),
    [
        ("broken = dynid_broken:gone", "", "cannot be loaded: AttributeError"),
        ("broken = dynid_absent:METHOD", "", "cannot be loaded: ModuleNotFoundError: No module named 'dynid_absent'"),
        ("broken = dynid_broken:METHOD", "raise OSError('no license')", "cannot be loaded: OSError: no license"),
        ("broken = dynid_broken:METHOD", "METHOD = 3", "is a int, not a Method"),
        (
            "broken = dynid_broken:METHOD",
            "from dynid.identification import Method, OlsOptions\n"
            "METHOD = Method(name='broken', sentence='', options=OlsOptions, function=len, takes='rows')",
            "cannot be loaded: ValueError: a method takes observation, experiment or recording, not 'rows'",
        ),
        (
            "broken = dynid_broken:METHOD",
            "from dynid.identification.estimators.least_squares import OLS as METHOD",
            "calls itself 'ols'",
        ),
    ],
)
def test_a_broken_package_is_named_and_breaks_no_other(
    point: str,
    code: str,
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    package(tmp_path, "dynid-broken", f"[dynid.methods]\n{point}\n", code)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "dynid_broken", raising=False)
    records._warn.cache_clear()
    robot = arm()
    with pytest.raises(dynid.DynidError, match=f"^method 'broken' of package 'dynid-broken' {words}"):
        dynid.identify(robot, record(robot), "broken")
    assert dynid.identify(robot, record(robot), "wls", signals=EXACT).converged
    with caplog.at_level(logging.WARNING):
        assert set(methods()) == set(methods()) == set(own_methods())
    assert [r.getMessage().split(words[:20])[0] for r in caplog.records] == [
        "method 'broken' of package 'dynid-broken' "
    ]


def test_names_that_are_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """dynid's own methods stay; which of two other packages is meant cannot be known."""
    code = "from dynid.identification.estimators.least_squares import OLS as METHOD"
    for name in ("one-package", "two-package"):
        module = name.replace("-", "_")
        package(tmp_path, name, f"[dynid.methods]\nols = {module}:METHOD\nnew = {module}:METHOD\n", code)
    monkeypatch.syspath_prepend(tmp_path)
    records._warn.cache_clear()
    with caplog.at_level(logging.WARNING):
        assert methods()["ols"] is own_methods()["ols"] and "new" not in methods()
    assert "dynid has one of this name" in caplog.text
    with expect_error(Duplicate):
        dynid.identify(arm(), record(arm()), "new")


def test_a_broken_reader_is_named_where_an_ending_is_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    package(tmp_path, "dynid-torn", "[dynid.readers]\ntorn = dynid_torn:READER\n", "import dynid_nowhere")
    monkeypatch.syspath_prepend(tmp_path)
    records._warn.cache_clear()
    (tmp_path / "run.torn").write_text("1")
    with caplog.at_level(logging.WARNING), expect_error(WrongFormat):
        dynid.load_recording(tmp_path / "run.torn")
    assert "reader 'torn' of package 'dynid-torn' cannot be loaded" in caplog.text
    assert len(dynid.load_recording(_table(tmp_path / "run.csv")).joints) == 1


def _table(file: Path) -> Path:
    file.write_text("t,q1\n0,1\n0.01,2\n0.02,3\n")
    return file


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-m", "dynid", "identify", "--help"), "of other packages lad"),
        (("-m", "pytest", "tests/identification/test_estimator_contract.py", "-k", "lad or outliers"), "[lad] PASSED"),
        (("-m", "pytest", "tests/recording/test_readers.py", "-k", "rows or records"), "[transposed-.rows] PASSED"),
    ],
    ids=["help", "methods", "readers"],
)
def test_help_and_batteries_know_it(words: tuple[str, ...], said: str) -> None:
    """In a process of its own: help and the lists of the batteries are made when they are imported."""
    if "pytest" in words:
        words = (*words, "-vv", "-m", "not slow", "-p", "no:cacheprovider")
    path = os.pathsep.join([str(PLUGIN), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = os.environ | {"PYTHONPATH": path, "COLUMNS": "200"}
    done = subprocess.run([sys.executable, *words], cwd=ROOT, capture_output=True, text=True, env=environment)
    assert done.returncode == 0 and said in " ".join(done.stdout.split()), done.stdout + done.stderr
