"""Estimate: uncertainty, standard set, files, validation, essential parameters."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import DynidError, InvalidValue, Mismatch, MissingFile, ModelError, UnknownName
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.solution import Outcome
from dynid.identification.known import essential_parameters
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from, identify
from dynid.identification.validation import cross_validate
from tests.support.errors import expect_error
from tests.support.synthetic import EXACT, arm, record


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    robot = arm()
    prior = robot.with_parameters(robot.parameters * 0.9)
    return identify(prior, record(robot, (0, 1), noise=0.05), "wls", signals=EXACT)


def test_standard_set_has_the_base_values_and_stays_near_the_prior(estimate: Estimate) -> None:
    """It maps to the identified base values, and no other set that does is nearer to the prior."""
    pi = estimate.parameters
    np.testing.assert_allclose(estimate.base.values(pi), estimate.beta, atol=1e-9)
    prior = estimate.robot.parameters
    units = [p.unit for p in estimate.robot.layout]
    kind = {u: [x for x, other in zip(prior, units, strict=True) if other == u] for u in units}
    size = np.array([np.sqrt(np.mean(np.square(kind[u]))) for u in units])
    size[size == 0] = 1.0
    distance = np.linalg.norm((pi - prior) / size)
    rng = np.random.default_rng(0)
    for _ in range(20):
        _, dependent = estimate.base.split(pi)
        other = estimate.base.join(estimate.beta, dependent + 0.01 * rng.normal(size=dependent.shape))
        assert np.linalg.norm((other - prior) / size) > distance


def test_confidence_intervals_hold_the_truth(estimate: Estimate) -> None:
    """About 95 of 100 parameters lie in their interval; here all but a few of 25."""
    truth = estimate.base.values(arm().parameters)
    low, high = estimate.confidence_intervals(0.95).T
    assert np.mean((low <= truth) & (truth <= high)) > 0.8
    wide = estimate.confidence_intervals(0.999)
    assert np.all(wide[:, 0] < low) and np.all(wide[:, 1] > high)
    with expect_error(InvalidValue, "level"):
        estimate.confidence_intervals(1.5)


def test_rounding_of_a_held_value_is_no_deviation(estimate: Estimate) -> None:
    """Of a value that constraints hold a product may leave a variance of -1e-29: that is zero, not no number."""
    held = estimate.covariance.copy()
    held[0, 0] = -1e-29
    sigma = replace(estimate, covariance=held).std
    assert sigma[0] == 0.0 and np.array_equal(sigma[1:], estimate.std[1:])


def test_saved_estimates_come_back(estimate: Estimate, tmp_path: Path) -> None:
    """Every number, settings and covariance included; the file is plain JSON with names in it."""
    file = tmp_path / "estimate.json"
    estimate.save(file)
    data = json.loads(file.read_text())
    assert data["base_parameters"][0]["expression"] == estimate.base.expressions[0]
    back = Estimate.load(file, estimate.robot)
    assert np.array_equal(back.beta, estimate.beta) and np.array_equal(back.covariance, estimate.covariance)
    assert back.signals == estimate.signals and back.method == estimate.method
    np.testing.assert_allclose(back.parameters, estimate.parameters)


@pytest.mark.parametrize("text", ["", "[]", '{"format": "other"}', "{"])
def test_foreign_files_are_refused(text: str, tmp_path: Path) -> None:
    """With the name of the file."""
    file = tmp_path / "bad.json"
    file.write_text(text)
    with pytest.raises(dynid.DataError, match=r"bad\.json"):
        Estimate.load(file, arm())
    with expect_error(MissingFile):
        Estimate.load(tmp_path / "none.json", arm())


def test_paths_that_cannot_be_written_are_named(estimate: Estimate, tmp_path: Path) -> None:
    """Estimates, robots and recordings say so in a plain error."""
    recording, lost = record(arm()), tmp_path / "no" / "folder"
    for call, name in (
        (estimate.save, "estimate.json"),
        (lambda path: dynid.export.write(estimate, path, allow_infeasible=True), "robot.urdf"),
        (recording.to_csv, "run.csv"),
        (recording.to_parquet, "run.parquet"),
    ):
        with expect_error(DynidError, code="not_writable") as caught:
            call(lost / name)
        assert name in str(caught.value)


def test_estimate_of_another_robot_is_refused(estimate: Estimate, tmp_path: Path) -> None:
    """Parameters are never put onto a robot with other drive terms."""
    file = tmp_path / "estimate.json"
    estimate.save(file)
    with expect_error(Mismatch):
        Estimate.load(file, arm().with_drives("viscous"))


def test_summary_reads_like_a_table(estimate: Estimate) -> None:
    """Expressions, values, deviations, fit and what was done."""
    text = estimate.summary()
    assert "fv_1" in text and "sigma" in text and "condition number" in text and "joint3" in text


def test_urdf_of_the_identified_robot_predicts_its_torques(estimate: Estimate, tmp_path: Path) -> None:
    """Written and read back, the rigid part is the identified one; impossible links and lost terms are warned of."""
    file = tmp_path / "identified.urdf"
    warnings = dynid.export.write(estimate, file)
    assert any("off" in w for w in warnings)
    back = dynid.load_robot(file, friction="viscous+coulomb")
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-1, 1, (3, 10, 3))
    rigid = estimate.identified_robot.without("Ia_*", "off_*")
    np.testing.assert_allclose(dynid.inverse_dynamics(back, q, v, a), dynid.inverse_dynamics(rigid, q, v, a), atol=1e-8)
    broken = replace(estimate, beta=-estimate.beta)
    with expect_error(ModelError, "allow_infeasible", code="untrusted"):
        dynid.export.write(broken, file)
    assert any("not physically consistent" in w for w in dynid.export.write(broken, file, allow_infeasible=True))


def test_urdf_template_keeps_everything_but_inertias(tmp_path: Path) -> None:
    """Meshes and names of the file stay, a link on a fixed joint gives its mass to the body that carries it."""
    inertia = '<inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/>'
    source = tmp_path / "arm.urdf"
    source.write_text(
        f"""<robot name="one"><link name="base"/>
        <link name="upper"><visual><geometry><mesh filename="x.stl"/></geometry></visual>
          <inertial><mass value="1"/>{inertia}</inertial></link>
        <link name="tool"><inertial><mass value="0.5"/>{inertia}</inertial></link>
        <joint name="j" type="continuous"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/></joint>
        <joint name="f" type="fixed"><parent link="upper"/><child link="tool"/><origin xyz="0.3 0 0"/></joint>
        </robot>"""
    )
    robot = dynid.load_robot(source, friction="viscous+coulomb")
    estimate = identify(robot, record(robot, (0,)), "ols", signals=EXACT)
    out = tmp_path / "out.urdf"
    dynid.export.write(estimate, out, template=source)
    assert "x.stl" in out.read_text()
    back = dynid.load_robot(out)
    np.testing.assert_allclose(back.links[1].inertia, estimate.identified_robot.links[1].inertia, atol=1e-9)
    with expect_error(ModelError, "template", code="file_damaged"):
        dynid.export.write(estimate, out, template=tmp_path / "missing.urdf")


def test_validation_on_unseen_motion(estimate: Estimate) -> None:
    """Errors are those of the noise, joint by joint, and every figure is what it says."""
    result = estimate.validate(record(arm(), (9,), noise=0.05))
    np.testing.assert_allclose(result.rmse, 0.05, rtol=0.15)
    for k in range(3):
        error = result.measured[k] - result.predicted[k]
        assert result.rmse[k] == pytest.approx(np.sqrt(np.mean(error**2)))
        assert result.relative[k] == pytest.approx(np.linalg.norm(error) / np.linalg.norm(result.measured[k]))
        assert result.nrmse[k] == pytest.approx(result.rmse[k] / np.ptp(result.measured[k]))
        assert result.largest[k] == pytest.approx(np.abs(error).max())
        assert len(result.time[k]) == result.rows[k]
    assert np.all(result.r2 > 0.98) and "RMSE" in result.summary()


def test_a_wrong_model_validates_badly() -> None:
    """Leaving friction out is seen on unseen motion."""
    robot = arm()
    data, unseen = record(robot, (0, 1), noise=0.05), record(robot, (9,), noise=0.05)
    full = identify(robot, data, "wls", signals=EXACT).validate(unseen)
    poor = identify(robot.with_drives("none"), data, "wls", signals=EXACT).validate(unseen)
    assert np.all(poor.rmse > 3 * full.rmse)


def test_cross_validation_uses_blocks_of_time() -> None:
    """Each fold predicts about as well as the noise; a fold is a segment of time."""
    signals = replace(EXACT, derivative="central5")
    folds = cross_validate(arm(), record(arm(), (0, 1), noise=0.05), folds=4, signals=signals)
    assert len(folds) == 4
    for fold in folds:
        assert np.all(fold.rmse < 0.1)
        assert np.all(np.diff(fold.time[0][: fold.rows[0] // 2]) > 0)
    with expect_error(InvalidValue, "folds"):
        cross_validate(arm(), record(arm()), folds=1)


@pytest.mark.parametrize("test", ["ratio", "f"])
def test_essential_parameters_leave_out_what_is_zero(test: str) -> None:
    """Parameters that are zero in truth go, those that matter stay, torques hardly change."""
    robot = arm()
    observation = observe(robot, record(robot, (0, 1), noise=0.1), signals=EXACT)
    estimate = estimate_from(observation, "wls")
    essential = essential_parameters(observation, estimate, test=test)
    truth = estimate.base.values()
    assert {"fv_joint1", "fc_joint2", "Izz_link2R"} <= set(essential.names)
    assert set(essential.kept) | set(essential.removed) == set(range(len(truth)))
    assert all(abs(truth[i]) < 0.2 for i in essential.removed) and essential.removed
    assert essential.change < 0.03  # what is left out was below the noise, 0.1 of torques of about 10
    assert np.all(essential.estimate.beta[list(essential.removed)] == 0)
    with expect_error(UnknownName, "test"):
        essential_parameters(observation, estimate, test="magic")
    poorer = observe(robot.without("fc_joint2"), record(robot, (0,)), signals=EXACT)
    with expect_error(Mismatch):
        essential_parameters(poorer, estimate)


@pytest.mark.parametrize("outcome", Outcome)
def test_only_one_outcome_is_convergence(estimate: Estimate, outcome: Outcome) -> None:
    """Whatever the status says in words."""
    assert replace(estimate, status="solved", outcome=outcome).converged is (outcome is Outcome.CONVERGED)
