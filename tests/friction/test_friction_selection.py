"""A selection over all joints: cross-validation, its file, validation on other motion, standard deviations."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import (
    DataError,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingData,
    MissingFile,
    NotApplicable,
    UnknownName,
)
from dynid.friction import BUILT_IN_MODELS, FrictionSelection, select_friction
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from tests.support.errors import expect_error
from tests.support.friction_truth import EXACT, LOADED, STRIBECK, arm, record

ROBOT = arm()
MODELS = ("coulomb+viscous", "stribeck", "tanh")


@pytest.fixture(scope="module")
def selection() -> FrictionSelection:
    return select_friction(ROBOT, record("stribeck", STRIBECK), models=MODELS, signals=EXACT)


def same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray):
        return np.array_equal(a, b, equal_nan=True)
    return a == b or (isinstance(a, float) and np.isnan(a) and np.isnan(b))


def test_every_field_survives_the_file(selection: FrictionSelection, tmp_path: Path) -> None:
    selection.save(tmp_path / "friction.json")
    again = FrictionSelection.load(tmp_path / "friction.json")
    assert again.signals == selection.signals and again.log_format == selection.log_format
    assert again.robot.parameter_names == ROBOT.parameter_names
    for before, after in zip(selection.fits, again.fits, strict=True):
        for x in fields(before):
            if x.name != "ranking":
                assert same(getattr(before, x.name), getattr(after, x.name)), x.name
        for one, other in zip(before.ranking, after.ranking, strict=True):
            for x in fields(one):
                assert same(getattr(one, x.name), getattr(other, x.name)), x.name
    assert again.summary() == selection.summary() and again.to_dict() == selection.to_dict()
    assert "effective_rows" in again.to_dict()["joint2"] and "of them independent" in again.summary()
    assert "stribeck" in again._repr_html_()


def test_the_order_of_names_in_the_file_has_no_meaning(selection: FrictionSelection, tmp_path: Path) -> None:
    path = tmp_path / "friction.json"
    selection.save(path)
    path.write_text(json.dumps(json.loads(path.read_text()), sort_keys=True))
    again = FrictionSelection.load(path)
    assert "stribeck" in selection.models.values()
    assert again.summary() == selection.summary()
    assert [fit.std for fit in again.fits] == [fit.std for fit in selection.fits]


def test_other_motion_is_predicted_to_the_noise(selection: FrictionSelection, tmp_path: Path) -> None:
    """Noise of 0.05 N m; plain friction leaves more than twice that in the joint with Stribeck friction."""
    unseen = record("stribeck", STRIBECK, motion_seed=4, seed=7)
    found = selection.validate(unseen)
    np.testing.assert_allclose(found.rmse, 0.05, rtol=0.15)
    plain = selection.validate(unseen, model="coulomb+viscous")
    assert plain.rmse[1] > 2 * found.rmse[1]
    selection.save(tmp_path / "friction.json")
    again = FrictionSelection.load(tmp_path / "friction.json").validate(unseen)
    np.testing.assert_allclose(again.rmse, found.rmse, rtol=1e-9)


@pytest.mark.parametrize("kind", ["rigid", "gravity"])
def test_load_friction_is_validated_with_the_load_of_the_other_motion(kind: str) -> None:
    given = {"models": ["coulomb+viscous", "load"], "signals": EXACT, "load": kind}
    truth = {"gravity_load": kind == "gravity", "noise": 0.02}
    found = select_friction(ROBOT, record("load", LOADED, **truth), [1], **given)  # type: ignore[arg-type]
    unseen = record("load", LOADED, motion_seed=4, **truth)  # type: ignore[arg-type]
    assert found.models == {"joint2": "load"}
    assert found.validate(unseen).rmse[0] == pytest.approx(0.02, rel=0.2)


def test_friction_of_an_estimate_and_of_temperature_is_validated() -> None:
    recording, unseen = (record("stribeck", STRIBECK, noise=0.02, motion_seed=s) for s in (3, 4))
    known = dynid.friction.fit_friction(ROBOT, recording, 1, models=["stribeck"], signals=EXACT).apply(ROBOT)
    estimate = dynid.identify(known, recording, signals=EXACT)
    found = select_friction(known, recording, [1], models=["stribeck"], estimate=estimate)
    assert found.validate(unseen).rmse[0] == pytest.approx(0.02, rel=0.2)
    warm = np.linspace(20, 50, 1000)
    heated = record("temperature", {"fc": 0.5, "fv": 0.8, "fvt": -0.012}, temperature=warm, noise=0.02)
    thin = select_friction(ROBOT, heated, [1], models=["temperature"], signals=EXACT, temperature=warm)
    with expect_error(MissingArgument, "temperature"):
        thin.validate(heated)
    assert thin.validate(heated, temperature=warm).rmse[0] == pytest.approx(0.02, rel=0.2)


def test_bad_files_are_refused_in_words(selection: FrictionSelection, tmp_path: Path) -> None:
    path = tmp_path / "friction.json"
    selection.save(path)
    whole = json.loads(path.read_text())

    def error(change: Any, robot: dynid.Robot | None = None) -> str:
        path.write_text(json.dumps(change) if not isinstance(change, str) else change)
        with pytest.raises(DataError) as found:
            FrictionSelection.load(path, robot)
        return str(found.value)

    assert "is not a saved friction selection" in error("{")
    assert "before the first release" in error({"format": "dynid friction 1"})
    assert "holds a saved estimate, not a saved friction selection" in error({"dynid": "estimate", "version": 1})
    assert "by a newer dynid" in error(whole | {"version": 2})
    assert "is not a saved friction selection" in error([1])
    assert "damaged" in error({k: v for k, v in whole.items() if k != "signals"})
    assert "damaged" in error(whole | {"fits": []})
    broken = json.loads(json.dumps(whole))
    broken["fits"][0]["joint"] = "elbow"
    assert "has no joint 'elbow'" in error(broken)
    broken = json.loads(json.dumps(whole))
    parameters = broken["fits"][0]["ranking"][0]["parameters"]
    parameters["fs"] = parameters.pop("fc")
    assert "the parameters of friction model" in error(broken)
    for field, wrong in {"ranking": 3, "level": "high", "rows": -1, "velocity": [1.0], "from_map": "no"}.items():
        broken = json.loads(json.dumps(whole))
        broken["fits"][0][field] = wrong
        assert "is a damaged friction selection: fits.0" in error(broken), field
    assert "another robot" in error(whole, dynid.load_robot("twolink"))
    with expect_error(MissingFile):
        FrictionSelection.load(tmp_path / "none.json")


def test_bad_calls_are_refused_in_words(selection: FrictionSelection) -> None:
    recording = record("stribeck", STRIBECK)
    with expect_error(UnknownName, "joint"):
        selection["elbow"]
    with expect_error(InvalidValue, "joints"):
        select_friction(ROBOT, recording, ["joint1", 0], models=MODELS)
    with expect_error(UnknownName, "name"):
        selection.validate(recording, model="load")
    with expect_error(Mismatch):
        selection.validate(Recording(("a", "b"), (Run(np.arange(50) / 100, np.zeros((50, 2))),)))
    silent = Recording(recording.joints, (Run(recording.runs[0].t, recording.runs[0].q),))
    with expect_error(MissingData):
        selection.validate(silent)


@pytest.mark.parametrize(
    "model, truth",
    [
        ("viscous", {"fv": 0.8}),
        ("coulomb+viscous", {"fc": 0.7, "fv": 0.5}),
        ("coulomb+viscous+offset", {"fc": 0.7, "fv": 0.5, "off": 0.3}),
        ("tanh", {"fc": 0.9, "vc": 0.2, "fv": 0.4}),
        ("asymmetric", {"fcp": 0.9, "fcn": 0.5, "fvp": 0.5, "fvn": 0.9}),
    ],
)
def test_cross_validation_selects_the_terms_that_are_there(model: str, truth: dict[str, float]) -> None:
    given: dict[str, Any] = {"models": BUILT_IN_MODELS, "criterion": "cross-validation", "offset": False}
    found = select_friction(ROBOT, record(model, truth), [1], signals=EXACT, **given)
    assert found.models == {"joint2": model}
    fit = found["joint2"]
    assert fit.best.held_out_rms == pytest.approx(0.05, rel=0.15) and "held-out rms" in fit.summary()
    assert {t.symbol for t in found.apply().drives if t.owner == 1} >= set(truth) - {"vc"}


def test_held_out_errors_are_those_of_a_plain_refit() -> None:
    """Linear models: each tenth of the rows predicted from the others by ordinary least squares."""
    from dynid.friction.models import friction_model
    from dynid.friction.rows import friction_rows
    from dynid.friction.solve import held_out_errors

    rows = friction_rows(ROBOT, record("coulomb+viscous", {"fc": 0.7, "fv": 0.5}), 1, signals=EXACT, load=None)
    model = friction_model("coulomb+viscous", offset=True)
    W = np.hstack([rows.W, rows.rows_of(model.fixed(rows.features))])
    expected = []
    for block in np.array_split(np.arange(rows.own), 10):
        others = np.delete(np.arange(len(W)), block)
        beta = np.linalg.lstsq(W[others], rows.y[others], rcond=None)[0]
        expected.append(np.mean((rows.y[block] - W[block] @ beta) ** 2))
    np.testing.assert_allclose(held_out_errors(rows, model, np.zeros(0)), expected, rtol=1e-8)


def test_maps_and_short_recordings_cannot_be_cross_validated() -> None:
    speed = np.linspace(0.1, 2.0, 12)
    found = dynid.friction.FrictionMap("joint2", speed, 0.5 + 0.3 * speed, np.full(12, 0.01), np.ones(12), (20,) * 12)
    with expect_error(NotApplicable, "criterion"):
        dynid.friction.fit_friction(ROBOT, found, criterion="cross-validation")
    fit = dynid.friction.fit_friction(ROBOT, found, models=["coulomb+viscous"])
    with expect_error(NotApplicable):
        FrictionSelection(ROBOT, (fit,), EXACT).validate(record("stribeck", STRIBECK))


@pytest.mark.slow
def test_standard_deviations_account_for_autocorrelated_noise() -> None:
    """First-order noise with rho = 0.8: errors of 40 fits over their standard deviations are about one.

    White noise of as many rows would give standard deviations that are three times smaller.
    """
    truth = {"fc": 0.7, "fv": 0.5}
    z, shares = [], []
    for seed in range(40):
        recording = record("coulomb+viscous", truth, noise=0.0)
        run = recording.runs[0]
        noise = np.random.default_rng(seed).normal(size=(len(run) + 200, 3))
        for k in range(1, len(noise)):
            noise[k] += 0.8 * noise[k - 1]
        torque = run.torque + 0.05 * noise[200:]
        colored = Recording(recording.joints, (Run(run.t, run.q, torque=torque, name="run"),))
        fit = dynid.friction.fit_friction(ROBOT, colored, 1, models=["coulomb+viscous"], signals=EXACT)
        z.append([(fit.parameters[n] - x) / fit.std[n] for n, x in truth.items()])
        shares.append(fit.effective_rows / fit.rows)
    scatter = np.std(z, axis=0)
    assert np.all(scatter > 0.5) and np.all(scatter < 1.5)
    # A process of rho = 0.8 has one independent row in nine.
    assert np.mean(shares) == pytest.approx(1 / 9, rel=0.35)
