"""Methods of `dynid identify` that treat the recordings in another way than row by row."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.cli.main import app
from dynid.errors import one_of
from dynid.identification import BodyOptions
from dynid.identification.estimators.registry import own_methods
from tests.support.commands import dynid as run


@pytest.fixture(scope="module")
def logs(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Three runs of one motion of the two-link arm, started at other times, and another motion."""
    folder = tmp_path_factory.mktemp("logs")
    robot = dynid.load_robot("twolink")
    one = synthetic_recording(robot, 0, duration=10.0).runs[0]
    rng = np.random.default_rng(0)
    out = []
    for k in (0, 40, 15):
        torque = one.torque[k:] + 0.01 * rng.normal(size=one.q[k:].shape)  # type: ignore[index]
        path = folder / f"repeated{k}.csv"
        dynid.Recording(robot.coordinates, (dynid.Run(one.t[k:] - one.t[k], one.q[k:], torque=torque),)).to_csv(path)
        out.append(path)
    synthetic_recording(robot, 1, duration=10.0).to_csv(folder / "other.csv")
    return [*out, folder / "other.csv"]


@pytest.mark.parametrize(("keyword", "option"), [("constraints", "constraints"), ("prior_weight", "weight")])
def test_help_of_an_option_names_the_methods_that_have_it(keyword: str, option: str) -> None:
    """Of those that take what is known of the bodies: the others take it from Python."""
    (parameter,) = [p for p in app.built.commands["identify"].params if p.name == keyword]
    able = [n for n, m in own_methods().items() if issubclass(m.options, BodyOptions) and option in m.option_names]
    assert parameter.help.startswith(f"With --method {one_of(able)}: ")


@pytest.mark.parametrize("method", ["power", "energy"])
def test_methods_without_accelerations(method: str, logs: list[Path]) -> None:
    """The note says what one equation for all joints costs, and unseen torques are predicted."""
    done = run("identify", "twolink", str(logs[0]), "--method", method, "--validate", str(logs[3]), "--json")
    assert done.returncode == 0, done.stderr
    page = json.loads(done.stdout)
    assert page["method"] == method and f"equations of {method}" in page["notes"][0]
    assert max(one["relative"] for one in page["validation"].values()) < 0.02


def test_repetitions_are_averaged(logs: list[Path], tmp_path: Path) -> None:
    """Logs that were started at other times are one motion; the estimate says where its noise comes from."""
    saved = tmp_path / "mean.json"
    done = run("identify", "twolink", *map(str, logs[:3]), "--average", "-o", str(saved), "--report", "none")
    assert done.returncode == 0, done.stderr
    estimate = dynid.Estimate.load(saved)
    assert estimate.noise_model == "repetitions" and "the mean of 3 runs" in done.stdout
    assert estimate.method == "wls" and 10 < estimate.freedom <= 40


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--method", "ols"), "--average fits the mean of the runs by wls, not by 'ols'"),
        (("--tests",), "--tests does not go with --average"),
        (("--device", "cpu"), "--device does not go with --average"),
        ((), "is not the motion of"),
    ],
)
def test_what_cannot_be_averaged_is_refused(options: tuple[str, ...], words: str, logs: list[Path]) -> None:
    done = run("identify", "twolink", str(logs[0]), str(logs[3]), "--average", *options)
    assert done.returncode == 1 and words in " ".join(done.stderr.split())
