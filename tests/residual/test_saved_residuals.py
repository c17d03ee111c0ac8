"""Residuals and predictors come back from their files with every field as it was."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import MissingArgument
from dynid.residual.blend import Blend
from dynid.residual.fit import fit_residual
from dynid.residual.posterior import Statistics
from dynid.residual.predictor import Predictor
from dynid.residual.residual import Residual
from dynid.residual.rigid_prior import RigidPosterior
from dynid.residual.selection import Score
from dynid.residual.training import Training
from dynid.signals.settings import Signals
from tests.support import hidden_effects
from tests.support.errors import expect_error
from tests.support.gantry import gantry
from tests.support.made_residuals import made_residual, motion
from tests.support.saved_fields import assert_no_defaults, assert_same_fields
from tests.support.synthetic import EXACT, record


def changed_robot() -> dynid.Robot:
    """The puma560 with another gravity, steep but continuous Coulomb friction, and other limits."""
    robot = dynid.load_robot("puma560")
    drives = tuple(replace(t, slope=80.0, value=2.0 * t.value) if t.is_coulomb else t for t in robot.drives)
    joints = tuple(replace(j, limits=replace(j.limits, velocity=1.25, effort=77.0)) for j in robot.joints)
    assert any(t.is_coulomb for t in drives)
    return replace(robot, gravity=np.array([0.0, 1.0, -9.7]), drives=drives, joints=joints)


def full_residual() -> Residual:
    """A residual in which no field has its default."""
    rng = np.random.default_rng(0)
    robot = changed_robot()
    made = made_residual(robot, 60, kernel="matern32+friction", noise="reversal", degree=1, inducing=20, missing=(1,))
    joints = list(made.joints)
    assert joints[0] is not None and joints[2] is not None
    statistics = Statistics(rng.normal(size=(5, 5)), rng.normal(size=5))
    joints[0] = replace(joints[0], posterior=replace(joints[0].posterior, statistics=statistics))
    joints[2] = replace(joints[2], bound=np.inf)
    return replace(
        made,
        joints=tuple(joints),
        blend=Blend(0.2, 0.7, 0.3),
        has_rigid=False,
        channels=("joint1", "joint3"),
        signals=Signals(cutoff=7.0),
        rigid_posterior=RigidPosterior(rng.normal(size=4), rng.normal(size=(4, 4)), {0: rng.normal(size=(4, 20))}),
        notes=("a note", "a note"),
        scores={"joint1": (Score("se", 0.1, 0.2, 0.3, 0.4, 0.5, 0.6),)},
    )


def test_every_field_of_a_residual_is_saved(tmp_path: Path) -> None:
    saved = full_residual()
    assert_no_defaults(saved)
    saved.save(tmp_path / "residual.npz")
    # The robot of the file alone, whatever the one that is given; only Python functions are taken from that.
    for robot in (None, saved.robot, dynid.load_robot("puma560")):
        assert_same_fields(Residual.load(tmp_path / "residual.npz", robot), saved)


def test_functions_of_custom_terms_come_from_the_given_robot(tmp_path: Path) -> None:
    robot = dynid.load_robot("twolink")
    robot = robot.with_terms(robot.custom_term("cogging", 0, cogging, 0.3, unit="N m"))
    saved = made_residual(robot, 30)
    saved.save(tmp_path / "residual.npz")
    assert_same_fields(Residual.load(tmp_path / "residual.npz", robot), saved)
    with expect_error(MissingArgument):
        Residual.load(tmp_path / "residual.npz")


def cogging(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Torque ripple of the first joint."""
    return np.column_stack([np.sin(7 * q[:, 0]), np.zeros(len(q))])


def test_tables_have_the_units_of_each_joint() -> None:
    robot = gantry()
    residual = made_residual(robot, 40)
    slide, turn = (line.split() for line in residual.summary().splitlines()[1:3])
    assert slide[-1] == "N" and turn[-2:] == ["N", "m"]
    comparison = residual.evaluate(record(robot, (0,), noise=0.05), signals=EXACT)
    assert [row["unit"] for row in comparison.to_dict().values()] == ["N", "N m"]
    slide, turn = (line.split() for line in comparison.summary().splitlines()[1:3])
    assert slide[4] == "N" and turn[4:6] == ["N", "m"]
    assert len(slide) == 10 and len(turn) == 11


def test_every_field_of_a_fitted_residual_is_saved(tmp_path: Path) -> None:
    training = Training(method="exact", restarts=0)
    found = fit_residual(
        hidden_effects.estimate(), hidden_effects.recording(0), kernel="own", training=training, rigid="prior"
    )
    found.save(tmp_path / "residual.npz")
    assert_same_fields(Residual.load(tmp_path / "residual.npz", hidden_effects.estimate().robot), found)


@pytest.mark.parametrize("kernel", ["exponential", "rational-quadratic-iso+exponential-iso", "rational-quadratic"])
def test_kernels_are_saved_by_name_and_predict_the_same(kernel: str, tmp_path: Path) -> None:
    """The residual, and the predictor made of it and loaded from its own file."""
    saved = made_residual(dynid.load_robot("twolink"), 40, kernel=kernel)
    saved.save(tmp_path / "residual.npz")
    back = Residual.load(tmp_path / "residual.npz")
    assert_same_fields(back, saved)
    back.predictor().save(tmp_path / "predictor.npz")
    query = motion(saved.robot, 10, 5)
    torque = Predictor.load(tmp_path / "predictor.npz").torques(*query)
    np.testing.assert_allclose(torque, saved.predict(*query).torque, rtol=1e-9, atol=1e-9)


def test_every_field_of_a_predictor_is_saved(tmp_path: Path) -> None:
    predictor = made_residual(dynid.load_robot("twolink"), 30, degree=1, local=2).predictor()
    predictor.save(tmp_path / "predictor.npz")
    back = Predictor.load(tmp_path / "predictor.npz")
    assert vars(back).keys() == vars(predictor).keys()
    for name in ("fields", "coordinates", "n", "variance", "valid", "notes"):
        assert_same_fields(getattr(back, name), getattr(predictor, name), name)
    assert {name for name in vars(predictor) if not name.startswith("_")} == {
        *("fields", "coordinates", "n", "variance", "valid", "notes"),
    }


@pytest.mark.slow
def test_a_damaged_residual_is_refused_in_one_sentence_or_read(tmp_path: Path) -> None:
    """Every array in turn missing, of another type or of another shape."""
    path, odd = tmp_path / "residual.npz", tmp_path / "odd.npz"
    full_residual().save(path)
    with np.load(path) as file:
        content = {name: file[name] for name in file.files}
    refused = 0
    for name, array in content.items():
        rest = {key: value for key, value in content.items() if key != name}
        others = [rest, rest | {name: array.astype("U9")}, rest | {name: array[None]}, rest | {name: np.array([])}]
        for other in [*others, rest | {name: np.array("[1")}, rest | {name: np.array(10.0**300)}]:
            np.savez(odd, **other)
            try:
                Residual.load(odd)
            except dynid.DynidError as error:
                assert "\n" not in str(error)
                refused += 1
    assert refused > len(content)
