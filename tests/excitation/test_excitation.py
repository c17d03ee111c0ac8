"""Motions as objects: their files, what they say of limits, and the plan of an experiment."""

from __future__ import annotations

import csv
import json
import os
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.errors import (
    DynidError,
    Infeasible,
    InvalidValue,
    Mismatch,
    MissingData,
    MissingFile,
    UnknownName,
    Unsupported,
)
from dynid.excitation.basis import (
    Basis,
    BSpline,
    CubicSpline,
    Fourier,
    FourierQuintic,
    Narrowed,
    PointToPoint,
    Quintic,
    at_rest,
)
from dynid.excitation.criteria import make_criterion
from dynid.excitation.room import check_duration, check_torque_model
from dynid.excitation.sequencing import retimed
from dynid.excitation.summary import plan_text
from dynid.files import check_output
from dynid.progress import Progress
from dynid.report.excitation import excitation_figure
from tests.support.errors import expect_error
from tests.support.saved_fields import assert_no_defaults, assert_same_fields, survived

Array = NDArray[np.float64]

ROBOT = dynid.load_robot("twolink")
LIMITS = {"*": {"acceleration": 8.0, "torque": 40.0}}
BASES = [
    Fourier(6, 4),
    Fourier(6.1, (2, 5, 7)),
    Quintic(2.0),
    FourierQuintic(5.0, 3),
    BSpline(4.0, 6, 4),
    CubicSpline(4.0, 7),
    PointToPoint(7.0, 5, "trapezoid", 0.25),
    at_rest(Fourier(6.0, 5)),
    at_rest(BSpline(3.0, 9), orders=(1,), ends=("start",)),
    Narrowed(at_rest(FourierQuintic(5.0, 3)), np.eye(8)[:, :4]),
]


def motion_of(basis: Basis, robot: dynid.Robot = ROBOT, seed: int = 0) -> dynid.Excitation:
    """Random coefficients of a family, with no designer in the way."""
    X = 0.2 * np.random.default_rng(seed).normal(size=(robot.n, basis.size))
    base = dynid.base_parameters(robot, channels="torque")
    return dynid.Excitation(
        robot, basis, X, dynid.excitation.motion_limits(robot, LIMITS), make_criterion(base), samples=150
    )


@pytest.fixture(scope="module")
def motion() -> dynid.Excitation:
    """A designed motion of the two-link arm."""
    return dynid.design_excitation(ROBOT, 6, limits=LIMITS, noise=[0.5, 0.2], budget=60)


# -- files ---------------------------------------------------------------------------------------


def test_csv_is_read_as_a_recording(motion: dynid.Excitation, tmp_path: Path) -> None:
    """Every number comes back, under the joints' names, and nothing else lies in the folder."""
    path = tmp_path / "motion.csv"
    motion.to_csv(path, rate=50)
    with path.open() as file:
        assert next(csv.reader(file)) == ["t", *(f"{s}_joint{j}" for s in "qva" for j in (1, 2))]
    run = dynid.load_recording(path, ROBOT).runs[0]
    t, q, v, a = motion.sample(50)
    assert len(t) == 301 and t[-1] == 6
    for written, meant in ((run.t, t), (run.q, q), (run.v, v), (run.a, a)):
        assert np.array_equal(np.asarray(written), meant)
    assert os.listdir(tmp_path) == ["motion.csv"]


@pytest.mark.parametrize("suffix", [".json", ".yaml", ".yml"])
def test_joint_trajectory_is_a_ros_message(motion: dynid.Excitation, suffix: str, tmp_path: Path) -> None:
    """YAML and JSON hold the fields of trajectory_msgs/JointTrajectory, and numbers are numbers in YAML 1.1 too."""
    path = tmp_path / f"motion{suffix}"
    motion.to_joint_trajectory(path, rate=30)
    if suffix == ".json":
        message = json.loads(path.read_text())
    else:
        yaml = pytest.importorskip("ruamel.yaml").YAML(typ="safe", pure=True)
        yaml.version = (1, 1)
        message = yaml.load(path.read_text())
    t, q, v, a = motion.sample(30)
    assert message["joint_names"] == ["joint1", "joint2"] and len(message["points"]) == len(t)
    for key, values in (("positions", q), ("velocities", v), ("accelerations", a)):
        assert np.array_equal(np.array([p[key] for p in message["points"]], dtype=float), values)
        assert all(isinstance(x, float) for p in message["points"] for x in p[key])
    stamps = [p["time_from_start"] for p in message["points"]]
    assert all(isinstance(s["sec"], int) and 0 <= s["nanosec"] < 10**9 for s in stamps)
    # A nanosecond is the unit of the stamp.
    np.testing.assert_allclose([s["sec"] + 1e-9 * s["nanosec"] for s in stamps], t, atol=1e-9)


@pytest.mark.parametrize("basis", BASES, ids=lambda b: type(b).__name__)
def test_toml_keeps_every_family_exactly(basis: Basis, tmp_path: Path) -> None:
    """Coefficients, settings, limits and criterion come back bit by bit."""
    path = tmp_path / "motion.toml"
    saved = replace(motion_of(basis), seconds=1.25, notes=('a "note"',))
    saved.to_toml(path)
    read = dynid.Excitation.from_toml(path, ROBOT)
    assert type(read.basis) is type(basis) and read.basis.periodic == basis.periodic
    assert np.array_equal(read.coefficients, saved.coefficients)
    t = np.linspace(0, basis.duration, 41)
    assert all(np.array_equal(one, two) for one, two in zip(read.at(t), saved.at(t), strict=True))
    assert np.array_equal(read.limits.acceleration, saved.limits.acceleration) and np.isinf(read.limits.jerk).all()
    assert (read.seconds, read.notes, read.samples) == (1.25, saved.notes, 150)
    assert read.value == saved.value


def test_toml_keeps_the_criterion(motion: dynid.Excitation, tmp_path: Path) -> None:
    """Name, noise, sizes, friction, previous information, chosen parameters and task."""
    path = tmp_path / "motion.toml"
    base = motion.criterion.base
    rng = np.random.default_rng(0)
    settings = {"noise": [0.3, 0.1], "sizes": rng.uniform(1, 2, base.count), "known": rng.normal(size=(3, base.count))}
    for name in ("a", "e", "cond", "hadamard", "frobenius", "sum-cond", "mass-static", "mass-dynamic"):
        for friction in (True, False):
            saved = replace(motion, criterion=make_criterion(base, name, friction=friction, **settings))
            saved.to_toml(path)
            read = dynid.Excitation.from_toml(path, ROBOT)
            assert read.criterion.name == name and read.value == saved.value
    with expect_error(Mismatch, "base"):
        dynid.Excitation.from_toml(path, dynid.load_robot("twolink", friction="none"))
    task = motion.base_regressor(20.0)
    for special in (make_criterion(base, "sigma", chosen=base.names[:2]), make_criterion(base, "torque", task=task)):
        saved = replace(motion, criterion=special)
        saved.to_toml(path)
        read = dynid.Excitation.from_toml(path, ROBOT)
        # The numbers of the task are the same, but not always their order in memory, and so the rounding of products.
        assert read.criterion.name == special.name and read.value == pytest.approx(saved.value, rel=1e-12)
    with expect_error(Mismatch, "base"):
        dynid.Excitation.from_toml(path, dynid.load_robot("twolink", friction="none"))


def test_toml_keeps_every_field(motion: dynid.Excitation, tmp_path: Path) -> None:
    """All fields but the clearances, which `from_toml` takes as an argument, also those of nested objects."""
    base = dynid.base_parameters(ROBOT, channels=ROBOT.coordinates[1:])
    rng = np.random.default_rng(0)
    settings = {"noise": 0.3, "sizes": rng.uniform(1, 2, base.count), "known": rng.normal(size=(3, base.count))}
    saved = replace(
        retimed(motion, 7.0),
        limits=replace(motion.limits, jerk=rng.uniform(10, 20, 2)),
        criterion=make_criterion(
            base, "sigma", friction=False, chosen=[n for n in base.names if "f" not in n], **settings
        ),
        seconds=1.25,
        notes=("one", "one", "two"),
        samples=77,
    )
    assert_no_defaults(saved, except_for={"clearances"})
    saved.to_toml(tmp_path / "motion.toml")
    read = dynid.Excitation.from_toml(tmp_path / "motion.toml", ROBOT)
    assert_same_fields(read, saved)


def test_a_motion_may_be_read_for_another_friction_model(motion: dynid.Excitation, tmp_path: Path) -> None:
    """The motion is of joints, not of parameters."""
    path = tmp_path / "motion.toml"
    motion.to_toml(path)
    frictionless = dynid.load_robot("twolink", friction="none")
    read = dynid.Excitation.from_toml(path, frictionless)
    assert read.criterion.base.count == dynid.base_parameters(frictionless, channels="torque").count


def test_bad_files_are_refused(motion: dynid.Excitation, tmp_path: Path) -> None:
    """Missing, foreign, damaged, or for another robot: one line that names the file."""
    path = tmp_path / "motion.toml"
    motion.to_toml(path)
    text = path.read_text()

    def refused(new: str, words: str, robot: dynid.Robot = ROBOT) -> None:
        path.write_text(new)
        with pytest.raises(dynid.DataError, match=words) as caught:
            dynid.Excitation.from_toml(path, robot)
        assert "motion.toml" in str(caught.value) and "\n" not in str(caught.value)

    refused("velocity = 1", "not a saved motion")
    refused("velocity", "not a saved motion")
    refused(text.replace("[family", "[relatives"), "damaged")
    refused(text.replace('kind = "Fourier"', 'kind = "Wavelet"'), "Wavelet")
    refused(text.replace("joint2 = [", "joint2 = [0.0, "), "damaged")
    refused(text.replace("harmonics = 5", "harmonics = 'many'"), "motion.toml")
    refused(re.sub(r"samples = \d+", "samples = inf", text), "damaged")
    refused(text, "joint6", dynid.load_robot("tx40"))
    with expect_error(MissingFile):
        dynid.Excitation.from_toml(tmp_path / "nothing.toml", ROBOT)

    @dataclass(frozen=True)
    class Own(Quintic):
        """A family that no file can name."""

    with expect_error(Unsupported, "family"):
        replace(motion_of(Own(2.0))).to_toml(tmp_path / "own.toml")
    assert os.listdir(tmp_path) == ["motion.toml"]


def test_writing_is_complete_or_not_at_all(
    motion: dynid.Excitation, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A disk that fills up leaves the old file as it was; bad paths, suffixes and rates write nothing."""
    path = tmp_path / "motion.csv"
    path.write_text("old")

    def full(self: Path, text: str, **settings: str) -> int:
        with self.open("w") as file:
            file.write(text[:100])
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_text", full)
        with expect_error(DynidError, code="not_writable"):
            motion.to_csv(path, 100)
    assert path.read_text() == "old"
    for call in (
        lambda: motion.to_csv(tmp_path / "none" / "motion.csv", 100),
        lambda: motion.to_csv(tmp_path, 100),
        lambda: motion.to_joint_trajectory(tmp_path / "motion.xml", 100),
        lambda: motion.to_csv(tmp_path / "other.csv", 0.0),
        lambda: motion.to_csv(tmp_path / "other.csv", 1.0),
        lambda: check_output(tmp_path),
        lambda: check_output(tmp_path / "none" / "motion.csv"),
    ):
        with pytest.raises(dynid.DynidError) as caught:
            call()
        assert "\n" not in str(caught.value)
    check_output(tmp_path / "new.csv")
    assert os.listdir(tmp_path) == ["motion.csv"]


# -- what it says of itself ----------------------------------------------------------------------


def test_use_of_limits_is_what_samples_show(motion: dynid.Excitation) -> None:
    """Largest shares joint by joint, those at the limit named, all within them."""
    _, q, v, a = motion.sample(1000)
    torque = dynid.inverse_dynamics(ROBOT, q, v, a)
    half = 0.5 * (motion.limits.upper - motion.limits.lower)
    # The two grids differ: peaks are met to a thousandth.
    expected = {
        "position": np.abs(q - motion.limits.center).max(axis=0) / half,
        "velocity": np.abs(v).max(axis=0) / motion.limits.velocity,
        "acceleration": np.abs(a).max(axis=0) / 8.0,
        "torque": np.abs(torque).max(axis=0) / 40.0,
    }
    assert set(motion.use) == set(expected)
    for kind, share in expected.items():
        np.testing.assert_allclose(motion.use[kind], share, atol=5e-3)
        assert np.all(motion.use[kind] <= 1 + 1e-9)
    for kind, share in motion.use.items():
        for name, x in zip(ROBOT.coordinates, share, strict=True):
            assert (f"{kind} of '{name}'" in motion.active_limits) == (x > 0.98)


def test_summary_says_what_matters(motion: dynid.Excitation) -> None:
    """Limits, condition number, criterion, what is in the way and what is known worst."""
    page = motion.summary()
    for words in (
        "joint2",
        "acceleration",
        "torque",
        "active limits",
        "criterion d",
        "condition number",
        "relative error",
    ):
        assert words in page
    data = json.loads(json.dumps(motion.to_dict()))
    assert data["use"]["joint1"]["velocity"] == motion.use["velocity"][0] and data["criterion"] == "d"


def test_figure_draws_signals_limits_and_spectra(motion: dynid.Excitation) -> None:
    """A chart per joint and signal, a line per finite limit, bars at the harmonics only."""
    root = ET.fromstring(excitation_figure(motion))
    space = "{http://www.w3.org/2000/svg}"
    drawn = [(p.get("class") or "", p.get("d") or "") for p in root.iter(f"{space}path")]
    assert [kind for kind, _ in drawn].count("line predicted") == 4 * ROBOT.n
    assert [kind for kind, _ in drawn].count("level limit") == 2 * 4 * ROBOT.n
    assert [d.count("Z") for kind, d in drawn if kind.startswith("bars")] == [5] * ROBOT.n


# -- the plan ------------------------------------------------------------------------------------


def test_plan_predicts_what_least_squares_finds(motion: dynid.Excitation, tmp_path: Path) -> None:
    """Deviations of weighted least squares over many noisy runs are the predicted ones."""
    noise = np.array([0.5, 0.2])
    plan = motion.plan(noise, rate=50)
    W = motion.base_regressor(50)[:-1] / noise[:, None]
    rows = W.reshape(-1, W.shape[-1])
    exact = np.sqrt(np.diag(np.linalg.inv(rows.T @ rows)))
    np.testing.assert_allclose(plan.std, exact, rtol=1e-6)
    np.testing.assert_allclose(motion.predicted_std(noise, periods=4, rate=50), exact / 2, rtol=1e-6)
    rng = np.random.default_rng(0)
    found = np.linalg.lstsq(rows, rng.normal(size=(len(rows), 2000)), rcond=None)[0].std(axis=1)
    # A deviation from 2000 runs is known to 1.6 %; four of these.
    np.testing.assert_allclose(found, plan.std, rtol=0.065)
    known = plan.prior != 0
    np.testing.assert_allclose(plan.relative_std[known], 100 * exact[known] / np.abs(plan.prior[known]), rtol=1e-6)
    assert np.all(np.isinf(plan.relative_std[~known]))
    assert survived(plan, tmp_path).summary() == plan.summary()


def test_periods_are_the_fewest_that_suffice(motion: dynid.Excitation) -> None:
    """Known after as many, not yet after one less; more noise or a smaller target ask for more."""
    plan = motion.plan(2.0, rate=50, target=0.02)
    checked = 0
    for i, count in enumerate(plan.periods):
        if np.isinf(count):
            assert plan.prior[i] == 0 or plan.relative_after(1000)[i] > 2
            continue
        assert plan.relative_after(count)[i] <= 2
        assert count == 0 or plan.relative_after(count - 1)[i] > 2
        name = plan.base.names[i]
        words = "once" if count == 1 else f"for {count:.0f} periods"
        assert plan.reason(name) == f"run the motion {words} ({6 * count:g} s) for a relative error of {name} below 2 %"
        checked += 1
    assert checked >= 3 and np.isfinite(plan.periods).any()
    assert np.all(motion.plan(4.0, rate=50).periods >= plan.periods)
    assert np.all(motion.plan(2.0, rate=50, target=0.01).periods >= plan.periods)
    page = plan_text(plan)
    assert "periods to 2 %" in page and "below 2 %" in page
    assert json.loads(json.dumps(plan.to_dict()))["target"] == 0.02


def test_previous_recordings_count(motion: dynid.Excitation) -> None:
    """Information adds up: after n periods it is that of the recordings and n times that of the motion."""
    observation = dynid.identification.observe(ROBOT, synthetic_recording(ROBOT, seed=3))
    noise = np.array([1.0, 0.5])
    plan = motion.plan(noise, rate=50, previous=observation)
    old = np.vstack([f[:, :-1] / s for f, s in zip(observation.factors, noise, strict=True)])
    W = motion.base_regressor(50)[:-1] / noise[:, None]
    new = W.reshape(-1, W.shape[-1])
    for count in (0, 1, 7):
        exact = np.sqrt(np.diag(np.linalg.inv(old.T @ old + count * new.T @ new)))
        # Normal equations are the reference, and lose digits.
        np.testing.assert_allclose(plan.std_after(count), exact, rtol=1e-5)
    assert np.all(plan.periods <= motion.plan(noise, rate=50).periods)
    twice = motion.plan(noise, rate=50, previous=[observation, observation])
    assert np.all(twice.std_after(0) < plan.std_after(0))
    other = dynid.load_robot("twolink", friction="viscous")
    foreign = dynid.identification.observe(other, synthetic_recording(other, seed=3))
    with expect_error(Mismatch):
        motion.plan(noise, previous=foreign)


def test_what_a_motion_does_not_show_stays_unknown(motion: dynid.Excitation) -> None:
    """With joint 1 at rest, its friction and inertia are never known, and the plan says so instead of a number."""
    X = motion.coefficients.copy()
    X[0] = motion.problem(150).resting[0]
    plan = replace(motion, coefficients=X).plan(0.1)
    unseen = [n for n, hidden in zip(plan.base.names, plan.unseen, strict=True) if hidden]
    assert "fv_joint1" in unseen and "fv_joint2" not in unseen
    assert set(unseen) <= set(plan.unknown) and np.all(np.isinf(plan.std[plan.unseen]))
    assert plan.reason("fv_joint1") == "fv_joint1 is not identifiable from the motion"
    assert "never" in plan.summary()
    old = dynid.identification.observe(ROBOT, synthetic_recording(ROBOT, seed=3))
    before = replace(motion, coefficients=X).plan(0.1, previous=old)
    assert not before.unseen.any() and np.isfinite(before.std_after(0)).all()


@pytest.mark.parametrize(
    "settings", [{"noise": 0.0}, {"noise": [1.0, 1.0, 1.0]}, {"noise": np.nan}, {"noise": 1, "target": 0.0}]
)
def test_bad_plans_are_refused(motion: dynid.Excitation, settings: dict[str, float]) -> None:
    """Noise and targets are positive."""
    with expect_error(InvalidValue, "target" if "target" in settings else "torque_noise"):
        motion.plan(**settings)
    with expect_error(UnknownName, "name"):
        motion.plan(1.0).reason("charm")
    with expect_error(InvalidValue, "periods"):
        motion.plan(1.0).std_after(-1)


# -- room ----------------------------------------------------------------------------------------


def test_too_short_motions_are_refused() -> None:
    """A second is enough, a hundredth is not, whether speed, acceleration or jerk is in the way."""
    for limit in ({"velocity": 1.0}, {"acceleration": 5.0}, {"jerk": 50.0}):
        limits = dynid.excitation.motion_limits(ROBOT, {"joint2": limit})
        check_duration(ROBOT, limits, 1.0)
        with expect_error(Infeasible, "duration"):
            check_duration(ROBOT, limits, 0.01)


def test_torque_limits_need_masses() -> None:
    """Only limits that somebody asked for are refused."""
    bare = ROBOT.with_parameters(0 * ROBOT.parameters)
    check_torque_model(ROBOT, {"joint1": {"torque": 3.0}})
    check_torque_model(bare, {"joint1": {"velocity": 3.0}})
    with expect_error(MissingData, "limits"):
        check_torque_model(bare, {"joint1": {"power": 3.0}})


def test_progress_of_the_designer() -> None:
    """Shares never fall, and the last start completes the work."""
    reports: list[Progress] = []
    limits = {"*": {"acceleration": 10.0}}
    dynid.design_excitation(ROBOT, 4.0, size=2, limits=limits, budget=1000, progress=reports.append)
    shares = [one.share for one in reports if one.share is not None]
    assert len(shares) > 2 and shares == sorted(shares) and (shares[0], shares[-1]) == (0.0, 1.0)
    assert all(one.seconds_left is None or one.seconds_left >= 0 for one in reports)
    assert all(one.message for one in reports)
    best = [one.values["best"] for one in reports if one.values]
    assert len(best) > 20 and best == sorted(best, reverse=True) and best[-1] < best[0]
    assert all(one.values["criterion"] >= one.values["best"] for one in reports if one.values)


class Jumping:
    """A clock that is an hour later whenever it is asked, as on a machine that compiles or swaps."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> float:
        self.asked += 1
        return 3600.0 * self.asked


def test_the_clock_does_not_change_a_design(monkeypatch: pytest.MonkeyPatch) -> None:
    """A budget counts iterations: two machines, and two moments on one, find the same motion."""

    def design(**given: Any) -> dynid.Excitation:
        return dynid.design_excitation(ROBOT, 4.0, size=2, limits={"*": {"acceleration": 10.0}}, budget=40, **given)

    calm = design()
    monkeypatch.setattr("time.monotonic", Jumping())
    busy = design()
    np.testing.assert_array_equal(busy.coefficients, calm.coefficients)
    assert calm.notes == busy.notes
    stopped = design(time_limit=10.0)
    assert any(x == "stopped by the time limit: 0 of 20 motions were refined" for x in stopped.notes)
    assert stopped.problem(1000).worst(stopped.coefficients) >= 0
    assert stopped.value > calm.value


def test_a_budget_is_no_time() -> None:
    """Seconds are refused as a budget, and a time limit of zero."""
    with expect_error(InvalidValue, "budget"):
        dynid.design_excitation(ROBOT, 4.0, budget=30.0)  # type: ignore[arg-type]
    with expect_error(InvalidValue, "time_limit"):
        dynid.design_excitation(ROBOT, 4.0, time_limit=0.0)
