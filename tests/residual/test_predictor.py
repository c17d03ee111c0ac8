"""Predictors against the residuals they are made of."""

from __future__ import annotations

import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.dynamics.kernels.compiler import kernel
from dynid.errors import (
    DamagedFile,
    DataError,
    DynidError,
    InvalidShape,
    InvalidValue,
    MissingFile,
    NotApplicable,
    Unsupported,
    WrongFormat,
    WrongVersion,
)
from dynid.residual.blend import Blend
from dynid.residual.compiled import decay
from dynid.residual.flattened import leading
from dynid.residual.layout import INTEGERS, NUMBERS
from dynid.residual.prediction import Prediction
from dynid.residual.predictor import Predictor
from tests.support.compare import difference
from tests.support.errors import expect_error
from tests.support.made_residuals import made_residual, motion
from tests.support.random_robots import random_motion, random_robot, with_custom_terms

# Relative to the largest torque; what is measured is below 1e-13.
SAME = 1e-9
FIELDS = ("torque", "rigid", "learned", "std", "share")

KINDS: dict[str, dict[str, Any]] = {
    "one length scale": {"kernel": "se"},
    "a length scale per column": {"kernel": "ard"},
    "matern and friction, noise at reversal": {"kernel": "matern32+friction", "noise": "reversal"},
    "matern 5/2 with a linear basis": {"kernel": "matern52", "degree": 1},
    "exponential and friction, noise at reversal": {"kernel": "exponential+friction", "noise": "reversal"},
    "rational quadratic with a linear basis": {"kernel": "rational-quadratic", "degree": 1},
    "rational quadratic, exponential, matern of one length scale": {
        "kernel": "rational-quadratic-iso+exponential-iso+matern52-iso",
        "inducing": 40,
    },
    "two local models of an exponential": {"kernel": "exponential-iso", "local": 2},
    "a constant": {"degree": 0},
    "more points than one chunk": {"samples": 300},
    "inducing points": {"inducing": 40},
    "inducing points with a linear basis": {"inducing": 40, "degree": 1},
    "two local models": {"local": 2},
    "six local models with a constant": {"local": 6, "samples": 200, "degree": 0},
    "joints without a learned part": {"missing": (0, 2)},
    "no joint with a learned part": {"missing": tuple(range(7))},
    "no rigid part": {"has_rigid": False},
    "tight bounds": {"bound": 0.1},
    "a sharp blend": {"blend": Blend(0.5, 0.5)},
    "sines and cosines": {"periodic": True},
}


def arm() -> dynid.Robot:
    return dynid.load_robot("iiwa14").with_drives("viscous+coulomb+offset", rotor_inertia=True)


def queries(robot: dynid.Robot) -> tuple[np.ndarray, ...]:
    """Some beyond what was learned from, some of the samples themselves."""
    near, far = motion(robot, 120, 0), motion(robot, 40, 7, reach=1.5)
    return tuple(np.vstack([x[:20], y]) for x, y in zip(near, far, strict=True))


def assert_same(ours: Prediction, theirs: Prediction) -> None:
    for name in FIELDS:
        assert difference(getattr(ours, name), getattr(theirs, name)) < SAME, name
    assert np.array_equal(ours.valid, theirs.valid)


@pytest.mark.parametrize("kind", KINDS)
def test_gives_what_the_residual_gives(kind: str) -> None:
    residual = made_residual(arm(), **KINDS[kind])
    predictor = residual.predictor(rank=1000)
    query = queries(residual.robot)
    expected = residual.predict(*query)
    assert_same(predictor.predict(*query), expected)
    singles = [(predictor(*sample), predictor.std, predictor.valid) for sample in zip(*query, strict=True)]
    assert difference([torque for torque, _, _ in singles], expected.torque) < SAME
    assert difference([std for _, std, _ in singles], expected.std) < SAME
    assert all(valid for _, _, valid in singles)


def test_the_cases_reach_what_they_are_about() -> None:
    query = queries(arm())
    predicted = made_residual(arm()).predict(*query)
    assert predicted.share.min() < 0.3 < 0.89 < predicted.share.max()
    bounded = made_residual(arm(), bound=0.1).predict(*query)
    assert np.mean(np.abs(bounded.learned) == 0.1) > 0.5
    shares = made_residual(arm(), local=6, samples=200).joints[0].posterior.shares  # type: ignore[union-attr]
    assert np.all(np.count_nonzero(shares(np.random.default_rng(0).normal(size=(20, 28))), axis=1) <= 3)


@pytest.mark.parametrize("name", ["tx40", "puma560", "twolink", "mimics", "every drive", "smooth"])
def test_rigid_part_of_any_tree(name: str) -> None:
    trees = {
        "mimics": random_robot(5, 8, mimics=3, rotors=True),
        "every drive": random_robot(8, 5, drives=True, mimics=1),
        "smooth": random_robot(8, 5, drives=True).with_smooth_coulomb(3.0),
    }
    robot = trees[name] if name in trees else dynid.load_robot(name)
    residual = made_residual(robot, 40)
    query = random_motion(robot, 3, 20)
    assert_same(residual.predictor().predict(*query), residual.predict(*query))


def test_mean_alone_does_not_fade_with_its_variance() -> None:
    residual = made_residual(arm(), blend=Blend(0.0, 0.1))
    predictor = residual.predictor(variance=False)
    query = motion(arm(), 20, 3, reach=2.0)
    predicted = predictor.predict(*query)
    expected = replace(residual, blend=Blend(1, 1, residual.blend.reach)).predict(*query)
    assert difference(predicted.torque, expected.torque) < SAME
    assert np.isnan(predicted.std).all()
    predictor(*(x[0] for x in query))
    assert np.isnan(predictor.std).all()
    assert difference(predicted.learned, residual.predict(*query).learned) > 0.01


def test_fewer_directions_never_claim_to_know_more() -> None:
    residual = made_residual(arm(), 200, noise="reversal", blend=Blend(0.1, 0.9))
    for query in (motion(arm(), 100, 7), motion(arm(), 200, 0)):  # new samples, and those that were learned from
        full = residual.predict(*query)
        before = np.full_like(full.std, np.inf)
        for rank in (10, 50, 150):
            some = residual.predictor(rank=rank).predict(*query)
            assert np.all(some.std >= full.std * (1 - 1e-12))
            assert np.all(some.share <= full.share + 1e-12)
            assert some.std.mean() < before.mean()
            before = some.std
        # Three quarters of the directions leave a standard deviation within a few percent, on unstructured samples.
        assert np.all(before < 1.05 * full.std)
        assert difference(some.rigid, full.rigid) < SAME


def test_the_directions_kept_are_the_best_ones() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 3))
    K = np.exp(-0.25 * ((x[:, None] - x) ** 2).sum(axis=2))
    A = np.linalg.inv(K + np.diag(rng.uniform(0.01, 0.1, 80)))
    B = leading(K, A, 20)
    lost = np.trace(K @ A @ K) - np.sum((B @ K) ** 2)
    values = np.linalg.svd(np.linalg.cholesky(A).T @ K, compute_uv=False)
    assert lost == pytest.approx(np.sum(values[20:] ** 2), rel=1e-3)  # no projection on 20 directions loses less


def test_one_sample_into_a_given_array() -> None:
    residual = made_residual(dynid.load_robot("twolink"), 30)
    predictor = residual.predictor()
    q, v, a = (x[0] for x in motion(residual.robot, 1, 3))
    out = np.zeros((2, 4))[:, ::2][0]
    assert predictor(q, v, a, out=out) is out
    assert np.array_equal(out, predictor(q.tolist(), v.tolist(), a.tolist()))
    assert predictor(q, v, a) is not predictor(q, v, a)


def gaps(robot: dynid.Robot) -> tuple[np.ndarray, ...]:
    q, v, a = motion(robot, 8, 3)
    q[0, 0], q[3, 1], q[4, 1], v[4, 0], a[6, :] = np.nan, np.inf, np.nan, -np.inf, np.nan
    return q, v, a


def test_what_is_not_finite_gives_the_rigid_torque_alone() -> None:
    residual = made_residual(dynid.load_robot("twolink"), 30)
    predictor = residual.predictor()
    query = gaps(residual.robot)
    expected = residual.predict(*query)
    assert not expected.valid.all()
    assert_same(predictor.predict(*query), expected)
    for i, sample in enumerate(zip(*query, strict=True)):
        assert difference(predictor(*sample), expected.torque[i]) < SAME
        assert difference(predictor.std, expected.std[i]) < SAME
        assert predictor.valid == expected.valid[i]
    nothing = np.full(2, np.nan)
    held = dynid.inverse_dynamics(residual.robot, query[0][-1], np.zeros(2), np.zeros(2))
    assert difference(predictor(nothing, nothing, nothing), held) < SAME
    predictor.reset()
    home = dynid.inverse_dynamics(residual.robot, residual.home, np.zeros(2), np.zeros(2))
    assert difference(predictor(nothing, nothing, nothing), home) < SAME


def test_a_batch_leaves_the_last_position_alone() -> None:
    residual = made_residual(dynid.load_robot("twolink"), 30)
    predictor = residual.predictor()
    nothing = np.full(2, np.nan)
    before = predictor(nothing, nothing, nothing)
    predictor.predict(*motion(residual.robot, 3, 1))
    assert np.array_equal(predictor(nothing, nothing, nothing), before)


def test_many_samples_on_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    residual = made_residual(dynid.load_robot("twolink"), 30)
    predictor = residual.predictor()
    query = motion(residual.robot, 2000, 3)
    monkeypatch.setenv("DYNID_THREADS", "1")
    alone = predictor.torques(*query)
    monkeypatch.setenv("DYNID_THREADS", "3")
    assert np.array_equal(predictor.torques(*query), alone)


def test_what_fits_no_robot_is_refused() -> None:
    residual = made_residual(dynid.load_robot("twolink"), 30)
    predictor = residual.predictor()
    x = np.zeros(2)
    for wrong in (np.zeros(3), 0.0, np.zeros((1, 2))):
        with expect_error(InvalidShape):
            predictor(x, x, wrong)  # type: ignore[arg-type]
    with expect_error(InvalidShape, "out"):
        predictor(x, x, x, np.zeros((3, 2)))
    with expect_error(InvalidValue, "rank"):
        residual.predictor(rank=0)
    with expect_error(Unsupported):
        replace(residual, robot=with_custom_terms(residual.robot)).predictor()
    with expect_error(NotApplicable):
        replace(residual, robot=residual.robot.with_base("floating")).predictor()


# -- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind", ["six local models with a constant", "inducing points", "no joint with a learned part"]
)
def test_a_file_gives_the_predictor_back(kind: str, tmp_path: Path) -> None:
    predictor = made_residual(arm(), **KINDS[kind]).predictor()
    predictor.save(tmp_path / "arm.npz")
    back = Predictor.load(tmp_path / "arm.npz")
    query = motion(arm(), 5, 3)
    assert back.coordinates == predictor.coordinates
    for name in FIELDS:
        assert np.array_equal(getattr(back.predict(*query), name), getattr(predictor.predict(*query), name))


def test_notes_stand_in_every_file(tmp_path: Path) -> None:
    """Such as the verdict on the estimate; nothing in them ends a comment."""
    notes = ("verdict: use with care", "*/ int broken; /*")
    predictor = made_residual(dynid.load_robot("twolink"), 30, degree=1).predictor(notes=notes)
    predictor.save(tmp_path / "two.npz")
    assert Predictor.load(tmp_path / "two.npz").notes == notes
    for path in predictor.to_c(tmp_path / "code"):
        text = path.read_text()
        assert "verdict: use with care" in text
        assert "broken" not in re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)


def saved(folder: Path) -> tuple[Path, dict[str, np.ndarray]]:
    path = folder / "two.npz"
    made_residual(dynid.load_robot("twolink"), 30, degree=1).predictor().save(path)
    with np.load(path) as file:
        return path, {name: file[name] for name in file.files}


def test_files_that_are_no_predictors(tmp_path: Path) -> None:
    path, content = saved(tmp_path)
    whole = path.read_bytes()
    for text in (b"", b"not a file of arrays", whole[: len(whole) // 2]):
        path.write_bytes(text)
        with expect_error(DamagedFile):
            Predictor.load(path)
    np.save(path.with_suffix(".npy"), np.zeros(3))
    np.savez(path, a=np.zeros(3))
    for foreign in (path, path.with_suffix(".npy")):
        with pytest.raises(DataError, match="not a saved predictor"):
            Predictor.load(foreign)
    for change, error in (
        ({"version": 0}, (WrongVersion, "")),
        ({"version": 2}, (WrongVersion, "")),
        ({"dynid": "residual"}, (WrongFormat, "")),
    ):
        np.savez(path, **content | {key: np.array(value) for key, value in change.items()})
        with expect_error(*error):
            Predictor.load(path)
    with expect_error(MissingFile):
        Predictor.load(tmp_path / "missing.npz")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("dynid.npy", b"no array")
    with pytest.raises(DataError):
        Predictor.load(path)


@pytest.mark.parametrize("name", [*INTEGERS, *NUMBERS, "coordinates"])
def test_damaged_tables_are_seen(name: str, tmp_path: Path) -> None:
    path, content = saved(tmp_path)
    for damaged in (content[name][:-1], np.append(content[name], content[name][-1:]), content[name].astype("U9")):
        if name == "coordinates" and damaged.shape == content[name].shape:
            continue
        np.savez(path, **content | {name: damaged})
        with expect_error(DamagedFile):
            Predictor.load(path)
    if name in INTEGERS:
        np.savez(path, **content | {name: content[name] + 1000})
        with expect_error(DamagedFile):
            Predictor.load(path)


def test_a_path_that_cannot_be_written(tmp_path: Path) -> None:
    predictor = made_residual(dynid.load_robot("twolink"), 30).predictor()
    with expect_error(DynidError, code="not_writable"):
        predictor.save(tmp_path / "missing" / "two.npz")


# -- the exponential -----------------------------------------------------------------------------


@kernel
def decays(x: np.ndarray, out: np.ndarray) -> None:
    for i in range(x.shape[0]):
        out[i] = decay(x[i])


def test_the_exponential_is_one() -> None:
    x = np.concatenate([[0.0, 1e-300], np.geomspace(1e-18, 700, 100_000), np.linspace(0, 700, 100_001)])
    out = np.empty_like(x)
    decays(x, out)
    assert np.abs(out / np.exp(-x) - 1).max() < 1e-13  # the series ends at 1e-14
    decays(np.array([800.0, np.inf]), out)
    assert np.all((out[:2] >= 0) & (out[:2] < 1e-300))


def test_points_are_held_once() -> None:
    """Joints that learned from the same samples share their points, those of inducing points have their own."""
    shared = made_residual(arm()).predictor(variance=False)
    own = made_residual(arm(), inducing=40).predictor(variance=False)
    assert shared.fields["set_size"].tolist() == [120]
    assert own.fields["set_size"].tolist() == [40] * 7
