"""Saved estimates: every field of every kind of estimate comes back to the bit, without the robot's file."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import DamagedFile, Mismatch, MissingArgument, WrongVersion
from dynid.identification import Estimate
from dynid.identification.estimators.registry import find_method, own_methods
from dynid.identification.estimators.solution import Outcome
from dynid.identification.pipeline import estimate_closed_loop, estimate_from
from tests.support.errors import expect_error
from tests.support.noisy_loop import noisy_loop
from tests.support.synthetic import EXACT, arm, record


@cache
def fitted(method: str) -> Estimate:
    """A small estimate by any method; those that simulate see smooth Coulomb friction."""
    if find_method(method).simulates:
        return estimate_closed_loop(noisy_loop(seconds=2.0), method, max_iterations=2)
    options: dict[str, Any] = {"std": 10.0} if method == "ridge" else {}
    return dynid.identify(arm(), record(arm(), (0, 1), noise=0.05), method, signals=EXACT, **options)


# Methods that pass over every sample many times.
FILTERS = ("ekf", "ukf")


def assert_same(one: Any, two: Any, where: str) -> None:
    """Equal to the bit and of one type, through dataclasses, tuples and arrays."""
    assert type(one) is type(two), f"{where}: {type(one).__name__} became {type(two).__name__}"
    if isinstance(one, np.ndarray):
        assert one.dtype == two.dtype and np.array_equal(one, two, equal_nan=True), where
    elif is_dataclass(one):
        for x in fields(one):
            assert_same(getattr(one, x.name), getattr(two, x.name), f"{where}.{x.name}")
    elif isinstance(one, tuple | list):
        assert len(one) == len(two), where
        for i, (a, b) in enumerate(zip(one, two, strict=True)):
            assert_same(a, b, f"{where}[{i}]")
    elif isinstance(one, float):
        assert one == two or (np.isnan(one) and np.isnan(two)), where
    else:
        assert one == two, where


@pytest.mark.parametrize("method", [pytest.param(x, marks=[pytest.mark.slow] * (x in FILTERS)) for x in own_methods()])
def test_every_field_survives(method: str, tmp_path: Path) -> None:
    """For every method, with its robot, base parameters, covariances, signals and iterations."""
    estimate = fitted(method)
    assert (len(estimate.history) > 0) == find_method(method).simulates
    assert estimate.domain is not None
    assert (estimate.standard_covariance is not None) == find_method(method).consistent
    estimate.save(tmp_path / "estimate.json")
    back = Estimate.load(tmp_path / "estimate.json")
    for x in fields(Estimate):
        assert_same(getattr(estimate, x.name), getattr(back, x.name), x.name)
    assert np.array_equal(back.parameters, estimate.parameters) and back.base.names == estimate.base.names


def test_settings_that_are_not_defaults_survive(tmp_path: Path) -> None:
    """Log format, signals with tuples, cut-offs, notes, and numbers that are not finite."""
    estimate = replace(
        fitted("wls"),
        log_format=dynid.LogFormat(
            rate=500.0, units={"q": "deg"}, sign={"torque": (1.0, -1.0, 1.0)}, joints=("a", "b", "c")
        ),
        signals=dynid.Signals(cutoff=12.5, decimate=(2, 5), min_velocity=(0.0, 0.1, 0.2)),
        cutoffs=(12.5, None),
        notes=("a note", "another"),
        status="aborted in iteration 1: stopped",
        outcome=Outcome.ABORTED,
        noise=np.array([np.nan, np.inf, -np.inf]),
        condition_number=float("inf"),
    )
    estimate.save(tmp_path / "estimate.json")
    strict = json.loads((tmp_path / "estimate.json").read_text(), parse_constant=lambda word: pytest.fail(word))
    assert strict["noise"] == ["nan", "inf", "-inf"]
    back = Estimate.load(tmp_path / "estimate.json")
    for x in fields(Estimate):
        assert_same(getattr(estimate, x.name), getattr(back, x.name), x.name)


def test_the_log_format_of_the_recording_is_kept() -> None:
    """By methods that fit an observation and by those that simulate."""
    log_format = dynid.LogFormat(rate=1000.0)
    recording = replace(record(arm(), noise=0.05), log_format=log_format)
    assert dynid.identify(arm(), recording, "wls", signals=EXACT).log_format == log_format
    experiment = noisy_loop(seconds=2.0)
    experiment = replace(experiment, recording=replace(experiment.recording, log_format=log_format))
    assert estimate_closed_loop(experiment, "iv", max_iterations=1).log_format == log_format


def test_a_closed_loop_estimate_validates_the_same_after_reload(tmp_path: Path) -> None:
    """Its friction is smooth in the simulation; a reloaded estimate must not predict with sharp steps."""
    experiment = noisy_loop(seconds=2.0)
    robot = dynid.load_robot("twolink")  # as a user has it: Coulomb friction is a step
    estimate = dynid.identify(
        robot,
        experiment.recording,
        "didim",
        signals=experiment.signals,
        loop=experiment.loop,
    )
    assert any(term.slope > 0 for term in estimate.robot.drives) and not any(term.slope for term in robot.drives)
    estimate.save(tmp_path / "estimate.json")
    expected = estimate.validate(experiment.recording)
    for back in (Estimate.load(tmp_path / "estimate.json"), Estimate.load(tmp_path / "estimate.json", robot)):
        found = back.validate(experiment.recording)
        assert np.array_equal(found.relative, expected.relative) and np.array_equal(found.rmse, expected.rmse)


def custom_arm(column: Callable[..., Any] | None = None) -> dynid.Robot:
    robot = arm()
    return robot.with_terms(robot.custom_term("sine", "joint1", column or (lambda q, v, a: np.sin(q)), 0.3, unit="N m"))


def test_custom_terms_need_the_robot(tmp_path: Path) -> None:
    """A Python function cannot be stored: the message says what to give, and with it everything is there."""
    robot = custom_arm()
    estimate = dynid.identify(robot, record(robot, (0, 1), noise=0.05), "wls", signals=EXACT)
    path = tmp_path / "estimate.json"
    estimate.save(path)
    with expect_error(MissingArgument) as caught:
        Estimate.load(path)
    assert "\n" not in str(caught.value)
    back = Estimate.load(path, robot)
    assert np.array_equal(back.beta, estimate.beta) and back.robot.parameter_names == robot.parameter_names
    recording = record(robot, (5,))
    assert np.array_equal(back.validate(recording).rmse, estimate.validate(recording).rmse)
    with expect_error(Mismatch):
        Estimate.load(path, arm())


def test_another_robot_is_refused(tmp_path: Path) -> None:
    """Other drive terms, other kinematics."""
    fitted("wls").save(tmp_path / "estimate.json")
    moved = arm()
    joint = replace(moved.joints[2], placement=moved.joints[1].placement)
    for other in (
        arm().with_drives("viscous"),
        dynid.load_robot("twolink"),
        replace(moved, joints=(*moved.joints[:2], joint)),
    ):
        with expect_error(Mismatch):
            Estimate.load(tmp_path / "estimate.json", other)
    other = arm().with_parameters(1.1 * arm().parameters)
    assert np.array_equal(Estimate.load(tmp_path / "estimate.json", other).robot.parameters, arm().parameters)


def test_files_of_development_versions_are_refused_with_what_to_do(tmp_path: Path) -> None:
    """In one sentence."""
    path = tmp_path / "old.json"
    path.write_text(json.dumps({"format": "dynid estimate 9", "robot": "arm3"}))
    with expect_error(WrongVersion) as caught:
        Estimate.load(path)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("damage", ["base", "base_parameters", "beta", "covariance", "outcome", "domain"])
def test_damaged_files_are_refused(damage: str, tmp_path: Path) -> None:
    """A missing part is named, whatever it is."""
    data = fitted("wls").to_dict()
    del data[damage]
    (tmp_path / "damaged.json").write_text(json.dumps(data))
    with pytest.raises(dynid.DataError, match=rf"damaged\.json.*{damage}"):
        Estimate.load(tmp_path / "damaged.json")


def test_base_parameters_of_the_users_choice_survive(tmp_path: Path) -> None:
    """An observation may have base parameters in another order; the file keeps them."""
    robot = arm()
    base = dynid.base_parameters(robot, channels="torque", method="pivoted")
    seen = dynid.identification.observe(robot, record(robot, (0, 1), noise=0.05), signals=EXACT, base=base)
    estimate = estimate_from(seen, "wls")
    estimate.save(tmp_path / "estimate.json")
    assert_same(estimate.base, Estimate.load(tmp_path / "estimate.json").base, "base")


def _sorted_keys(data: Any) -> Any:
    """The same data with every object's keys in alphabetical order."""
    if isinstance(data, dict):
        return {key: _sorted_keys(data[key]) for key in sorted(data)}
    return [_sorted_keys(x) for x in data] if isinstance(data, list) else data


@pytest.mark.parametrize("method", ["wls", "feasible"])
def test_a_file_is_read_by_names_and_not_by_order(method: str) -> None:
    estimate = fitted(method)
    back = Estimate.from_dict(_sorted_keys(json.loads(json.dumps(estimate.to_dict()))))
    assert np.array_equal(back.parameters, estimate.parameters)
    assert back.base.kept == estimate.base.kept and np.array_equal(back.base.matrix, estimate.base.matrix)


def _places(data: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in nested data; of a list, the first entry."""
    yield place
    inside = data.items() if isinstance(data, dict) else enumerate(data[:1]) if isinstance(data, list) else ()
    for key, value in inside:
        yield from _places(value, (*place, key))


def test_damaged_files_are_refused_in_one_sentence_or_read() -> None:
    """Every field in turn replaced by another type, a number that is too large, or nothing."""
    text = json.dumps(fitted("feasible").to_dict())
    refused = read = 0
    for k, place in enumerate(list(_places(json.loads(text)))[1:]):
        values = (None, "x", [], {}, -1, True, 1e300, 10**400, "nan")
        for value in values[k % 3 :: 3]:  # all of them within three neighbouring fields
            data = json.loads(text)
            inner = data
            for key in place[:-1]:
                inner = inner[key]
            inner[place[-1]] = value
            try:
                Estimate.from_dict(data)
                read += 1
            except dynid.DynidError as error:
                assert "\n" not in str(error)
                refused += 1
    assert refused > 3 * read > 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"rows": [1.5]}, "rows.0"),
        ({"noise": [1.0]}, "noise has 1 entries for 3 channels"),
        ({"covariance": [[1.0]]}, "covariance is not a"),
        ({"method": 3}, "method"),
        ({"more": 1}, "more"),
        ({"standard": [1.0]}, "standard has 1 entries for"),
        ({"base_parameters": []}, "base_parameters: it does not follow from the other fields"),
        ({"beta": ["nan"]}, "beta.0"),
    ],
)
def test_the_first_wrong_field_is_named(change: dict[str, Any], said: str) -> None:
    data = json.loads(json.dumps(fitted("wls").to_dict())) | change
    with expect_error(DamagedFile) as caught:
        Estimate.from_dict(data, where="'arm.json'")
    assert said in str(caught.value) and "'arm.json'" in str(caught.value)


def test_the_structure_of_the_base_parameters_is_whole() -> None:
    """Every parameter once, and every representative in its own base parameter only."""
    whole = json.loads(json.dumps(fitted("wls").to_dict()))
    missing = json.loads(json.dumps(whole))
    missing["base"]["dependent"].pop()
    mixed = json.loads(json.dumps(whole))
    mixed["base"]["combinations"][0][mixed["base"]["kept"][1]] = 0.5
    for data, said in ((missing, "each once"), (mixed, "the representative of another one")):
        with expect_error(DamagedFile) as caught:
            Estimate.from_dict(data)
        assert said in str(caught.value)
