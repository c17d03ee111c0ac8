"""Fitting residuals: gain on motion that was not seen, calibrated, safe away from the data, and plain about faults."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import (
    ConflictingArguments,
    DynidError,
    InvalidShape,
    InvalidType,
    InvalidValue,
    Mismatch,
    NotApplicable,
    NotFinite,
    UnknownName,
)
from dynid.progress import Progress
from dynid.residual import training
from dynid.residual.features import Features
from dynid.residual.fit import fit_residual
from dynid.residual.posterior import Posterior
from dynid.residual.problem import Problem, Unfit
from dynid.residual.rows import TorqueRows
from dynid.residual.training import Training
from tests.support import hidden_effects as made
from tests.support.compare import difference
from tests.support.errors import Error, expect_error


@pytest.mark.slow
def test_held_out_errors_shrink_to_the_noise() -> None:
    comparison = made.residual().evaluate(made.recording(7, 8))
    assert np.all(comparison.rigid.rmse > 5 * made.NOISE)
    assert np.all(comparison.ratio < 0.35)
    assert "run" not in comparison.summary() and "joint1" in comparison.summary()
    assert comparison.to_dict()["joint2"]["rows"] == comparison.rigid.rows[1]


@pytest.mark.slow
def test_intervals_cover_what_they_say() -> None:
    """95 % intervals cover 90 to 98 % of held-out simulated torques."""
    comparison = made.residual().evaluate(made.recording(20, 21, 22, 23))
    assert np.all((comparison.coverage >= 0.90) & (comparison.coverage <= 0.98)), comparison.coverage


@pytest.mark.parametrize("method", ["exact", "subset", "sparse", "local"])
def test_every_method_learns_it(method: str) -> None:
    how = Training(method=method, points={"subset": 300, "sparse": 80, "local": 150}.get(method), restarts=0, rows=300)
    found = fit_residual(made.estimate(), made.recording(0, 1), kernel="own", training=how)
    assert np.all(found.evaluate(made.recording(7)).ratio < 0.4)
    wanted = {"exact": 1000, "subset": 300, "sparse": 80, "local": 1000}[method]
    assert [j.posterior.points for j in found.joints if j is not None] == [wanted, wanted]


def _problem(p: Posterior, features: Features, x: np.ndarray, error: np.ndarray) -> Problem:
    return Problem.of(p.kernel, p.noise, features, x, error / p.scale, np.zeros((len(x), 0)))


def test_moved_inducing_points_lift_the_bound() -> None:
    from dynid.residual import sparse

    recording = made.recording(0)
    still, moved = (
        fit_residual(
            made.estimate(), recording, kernel="own",
            training=Training(method="sparse", points=8, restarts=0, rows=200, move_points=move),
        )
        for move in (False, True)
    )  # fmt: skip
    rows = TorqueRows.of(made.estimate(), recording).joints[0]

    def bound(residual: dynid.residual.Residual) -> float:
        joint = residual.joints[0]
        assert joint is not None
        p = joint.posterior
        x = residual.features(*rows.motion)
        problem = training.Problem.of(
            p.kernel, p.noise, residual.features, x, rows.error / p.scale, np.zeros((len(x), 0))
        )
        return sparse.bound(problem, np.append(p.theta, p.noise_theta), p.blocks[0].points)[0]

    assert bound(moved) > bound(still) + 1.0


def test_far_away_it_is_the_rigid_model() -> None:
    found = made.residual()
    q, v, a = np.full((1, 2), 1e3), np.full((1, 2), -2e3), np.full((1, 2), 5e3)
    far = found.predict(q, v, a)
    assert difference(far.torque, dynid.inverse_dynamics(found.robot, q, v, a)) < 1e-12
    assert np.all(far.share == 0)
    for j, joint in enumerate(found.joints):
        assert joint is not None
        prior = joint.variance_factor * (
            joint.posterior.prior_variance + joint.posterior.noise_variance(np.zeros(1))[0]
        )
        assert far.std[0, j] == pytest.approx(np.sqrt(prior))


def test_it_fades_beyond_the_positions_that_were_seen() -> None:
    """Half of the reach beyond the range leaves half, all of it nothing, whatever the kernel takes for irrelevant."""
    found = replace(made.residual(), blend=dynid.residual.Blend(1, 1, 0.2))
    features = found.features
    assert not features.periodic.any()
    span = (features.high[0] - features.low[0]) * features.scale[0]
    edge = features.high[0] * features.scale[0] + features.center[0]
    q = np.zeros((4, 2))
    q[:, 0] = edge + span * np.array([-0.05, 0.0, 0.1, 0.25])
    share = found.predict(q, np.zeros((4, 2)), np.zeros((4, 2))).share
    first, second = found.joints
    assert first is not None and first.posterior.kernel.name == "own"
    assert difference(share[:, 0] / first.trust, [1.0, 1.0, 0.5, 0.0]) < 1e-9
    assert second is not None and second.posterior.kernel.name == "own"
    assert np.all(share[:, 1] == second.trust)  # it sees its own position only
    with expect_error(InvalidValue, "reach"):
        dynid.residual.Blend(reach=0.0)


def test_no_learned_torque_beyond_the_bound() -> None:
    bounded = fit_residual(made.estimate(), made.recording(0), kernel="own", bound=[0.05, 0.1])
    _, q, v, a = made.states(7)
    learned = np.abs(bounded.predict(q, v, a).learned)
    assert np.all(learned.max(axis=0) <= [0.05, 0.1]) and np.all(learned.max(axis=0) > [0.049, 0.09])


def test_a_query_that_is_not_finite_gets_the_rigid_torque_and_a_flag() -> None:
    found = made.residual()
    _, q, v, a = (x[:4].copy() for x in made.states(7))
    clean = found.predict(q, v, a)
    q[2, 0], v[1, 1], a[3] = np.nan, np.inf, np.nan
    hurt = found.predict(q, v, a)
    assert list(hurt.valid) == [True, False, False, False]
    assert np.array_equal(hurt.torque[0], clean.torque[0])
    assert np.all(hurt.learned[1:] == 0) and np.all(np.isfinite(hurt.torque))
    still = dynid.inverse_dynamics(found.robot, [q[1, 0], q[2, 1]], v[2], a[2])
    assert difference(hurt.torque[2], still) < 1e-12
    first = found.predict(np.full((1, 2), np.nan), v[:1], a[:1])
    assert difference(first.torque[0], dynid.inverse_dynamics(found.robot, found.home, v[0], a[0])) < 1e-12


def test_more_data_is_the_same_as_all_of_it() -> None:
    """Streaming at fixed hyper-parameters against conditioning on everything."""
    for method in ("exact", "sparse"):
        how = Training(method=method, points=None if method == "exact" else 60, restarts=0, rows=200)
        first = fit_residual(made.estimate(), made.recording(0), kernel="own", training=how)
        grown = first.updated(made.recording(1))
        both = TorqueRows.of(made.estimate(), made.recording(0, 1))
        for j in range(2):
            old = first.joints[j]
            assert old is not None
            p, rows = old.posterior, both.joints[j]
            x = first.features(*rows.motion)
            problem = training.Problem.of(
                p.kernel, p.noise, first.features, x, rows.error / p.scale, np.zeros((len(x), 0))
            )
            theta = np.append(p.theta, p.noise_theta)
            if method == "exact":
                block = training.exact.condition(problem, theta)
            else:
                points = p.blocks[0].points
                block = training.sparse.condition(
                    p.kernel, p.theta, points, training.sparse.gather(problem, theta, points)
                )
            whole = replace(p, blocks=(block,))
            new = grown.joints[j]
            assert new is not None
            for ours, theirs in zip(new.posterior.predict(x[::7]), whole.predict(x[::7]), strict=True):
                assert difference(ours, theirs) < 1e-7
    local = fit_residual(
        made.estimate(), made.recording(0), kernel="own", training=Training(method="local", points=100, restarts=0)
    )
    before, after = (r.evaluate(made.recording(1)).ratio for r in (local, local.updated(made.recording(1))))
    assert np.all(after < before)


def test_streaming_keeps_to_its_budget() -> None:
    first = fit_residual(
        made.estimate(), made.recording(0), kernel="own", training=Training(method="exact", restarts=0)
    )
    grown = first.updated(made.recording(1), max_points=400)
    assert [j.posterior.points for j in grown.joints if j is not None] == [400, 400]
    assert np.all(grown.evaluate(made.recording(7)).ratio < 0.5)
    with expect_error(InvalidValue, "max_points"):
        first.updated(made.recording(1), max_points=0)


def test_rigid_parameters_with_a_prior_equal_the_rigid_body_kernel() -> None:
    """One joint's posterior mean against the dense formula with k + W S W' as covariance, joints coupled through S."""
    estimate = made.estimate()
    how = Training(method="exact", restarts=0, rows=150)
    recording = made.recording(0)
    loose = fit_residual(estimate, recording, kernel="own", training=how, rigid="prior", prior_scale=20.0)
    fixed = fit_residual(estimate, recording, kernel="own", training=how)
    rows = TorqueRows.of(estimate, recording)
    _, q, v, a = (x[::50] for x in made.states(9))
    W_new = estimate.base.regressor(q, v, a)
    prior = 20.0**2 * estimate.covariance
    # The joints' targets stacked, as one Gaussian process with a block diagonal kernel and the shared rigid part.
    blocks, crosses, targets, regressors = [], [], [], []
    for j, one in enumerate(rows.joints):
        joint = fixed.joints[j]
        assert joint is not None
        p = joint.posterior
        x, new = fixed.features(*one.motion), fixed.features(q, v, a)
        K = p.scale**2 * p.kernel.matrix(p.theta, x)
        blocks.append(K + p.noise_variance(np.zeros(len(x))) * np.eye(len(x)))
        crosses.append(p.scale**2 * p.kernel.matrix(p.theta, new, x))
        targets.append(one.error)
        regressors.append(one.W)
    n0 = len(targets[0])
    W = np.vstack(regressors)
    C = W @ prior @ W.T
    C[:n0, :n0] += blocks[0]
    C[n0:, n0:] += blocks[1]
    solved = np.linalg.solve(C, np.concatenate(targets))
    rigid = dynid.inverse_dynamics(estimate.identified_robot, q, v, a)
    found = replace(loose, blend=dynid.residual.Blend.everywhere()).predict(q, v, a)
    for j in range(2):
        cross = W_new[:, j] @ prior @ W.T
        cross[:, slice(0, n0) if j == 0 else slice(n0, None)] += crosses[j]
        dense = rigid[:, j] + cross @ solved
        assert difference(found.torque[:, j], dense) < 1e-6
        joint = fixed.joints[j]
        assert joint is not None
        p = joint.posterior
        variance = (
            p.prior_variance + np.einsum("ij,jk,ik->i", W_new[:, j], prior, W_new[:, j])
            - np.einsum("ij,ij->i", cross, np.linalg.solve(C, cross.T).T) + p.noise_variance(np.zeros(1))
        )  # fmt: skip
        assert difference(found.std[:, j] ** 2, variance) < 1e-6
    with expect_error(ConflictingArguments, "rigid"):
        fit_residual(estimate, recording, kernel="own", rigid="prior", training=Training(method="sparse", points=20))


@pytest.mark.slow
def test_without_a_rigid_part_it_is_a_plain_process() -> None:
    plain = fit_residual(made.estimate(), made.recording(0, 1), kernel="se", rigid="none")
    assert not plain.has_rigid
    _, q, v, a = made.states(7)
    assert np.all(plain.predict(q, v, a).rigid == 0)
    semi = fit_residual(made.estimate(), made.recording(0, 1), kernel="se")
    ours, theirs = (r.evaluate(made.recording(7)).compensated.rmse for r in (semi, plain))
    assert np.all(ours < theirs)


@pytest.mark.parametrize("basis", ["constant", "linear"])
@pytest.mark.parametrize("noise", ["even", "reversal"])
def test_basis_and_uneven_noise(basis: str, noise: str) -> None:
    how = Training(restarts=0, rows=200)
    found = fit_residual(made.estimate(), made.recording(0), kernel="own", basis=basis, noise=noise, training=how)
    assert np.all(found.evaluate(made.recording(7)).ratio < 0.5)
    with expect_error(NotApplicable):
        found.updated(made.recording(1))


def test_saved_and_loaded_it_is_the_same(tmp_path: Path) -> None:
    _, q, v, a = made.states(7)
    how = Training(method="exact", restarts=0, rows=150)
    for found in (
        made.residual(),
        fit_residual(made.estimate(), made.recording(0), kernel="own", training=how, rigid="prior"),
    ):
        found.save(tmp_path / "residual.npz")
        again = dynid.residual.Residual.load(tmp_path / "residual.npz", made.robot())
        ours, theirs = again.predict(q, v, a), found.predict(q, v, a)
        for name in ("torque", "rigid", "learned", "std", "share"):
            assert np.array_equal(getattr(ours, name), getattr(theirs, name))
        assert again.notes == found.notes and again.scores == dict(found.scores)
        assert np.array_equal(again.evaluate(made.recording(8)).ratio, found.evaluate(made.recording(8)).ratio)
    with expect_error(Mismatch):
        dynid.residual.Residual.load(tmp_path / "residual.npz", dynid.load_robot("puma560"))
    (tmp_path / "bad.npz").write_bytes((tmp_path / "residual.npz").read_bytes()[:200])
    for name in ("bad.npz", "none.npz"):
        with pytest.raises(dynid.DataError, match=name):
            dynid.residual.Residual.load(tmp_path / name, made.robot())
    with expect_error(DynidError, code="not_writable"):
        made.residual().save(tmp_path / "no" / "where.npz")


@pytest.mark.slow
def test_a_joint_that_gains_nothing_keeps_its_rigid_torque() -> None:
    """Only joint 1 hides something; joint 2's error is noise."""
    runs = []
    for seed in (0, 1, 2):
        t, q, v, a = made.states(seed)
        rng = np.random.default_rng(seed)
        tau = dynid.inverse_dynamics(made.robot(), q, v, a) + 0.05 * rng.standard_normal(q.shape)
        tau[:, 0] += made.hidden(q, v)[:, 0]
        runs.append(dynid.Run(t, q, torque=tau, name=str(seed)))
    recording = dynid.Recording(made.robot().coordinates, tuple(runs))
    found = fit_residual(made.estimate(), recording, kernel=("friction", "own"))
    assert found.joints[0] is not None and found.joints[1] is None
    assert any(line.startswith("joint2: no learned torque") for line in found.notes)
    _, q, v, a = made.states(9)
    assert np.all(found.predict(q, v, a).learned[:, 1] == 0)


def test_odd_data_is_taken_or_refused_in_words() -> None:
    estimate, n = made.robot(), 2
    _, q, v, a = made.states(0)
    rigid = dynid.inverse_dynamics(estimate, q, v, a)

    def rows(index: slice, extra: float | np.ndarray = 0.0) -> TorqueRows:
        return TorqueRows.of_motion(estimate, q[index], v[index], a[index], rigid[index] + extra)

    exact = fit_residual(estimate, rows(slice(None)), kernel="own")
    assert exact.joints == (None, None) and "predicts the torque exactly" in exact.notes[0]
    constant = fit_residual(estimate, rows(slice(None), 0.7), kernel="own")
    assert difference(constant.predict(q, v, a).torque, rigid + 0.7) < 0.02
    one = fit_residual(estimate, rows(slice(0, 1), 0.7), kernel="own")
    assert np.all(np.isfinite(one.predict(q, v, a).torque))
    assert fit_residual(estimate, rows(slice(0, 1), 0.7)).joints == (None,) * n
    twice = np.concatenate([np.arange(100)] * 3)
    same = TorqueRows.of_motion(estimate, q[twice], v[twice], a[twice], rigid[twice] + made.hidden(q, v)[twice])
    found = fit_residual(estimate, same, kernel="own", training=Training(restarts=0))
    assert np.all(np.abs(found.predict(q[:100], v[:100], a[:100]).learned - made.hidden(q, v)[:100]) < 0.1)
    with expect_error(NotFinite):
        TorqueRows.of_motion(estimate, q, v, a, np.where(q > 0, np.nan, rigid))
    with expect_error(InvalidShape):
        TorqueRows.of_motion(estimate, q, v, a, rigid[:, :1])
    with expect_error(InvalidShape):
        TorqueRows.of_motion(estimate, q, v, a, rigid, runs=[0])


def test_a_fit_that_fails_leaves_the_rigid_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise Unfit("the covariance matrix is not positive definite")

    monkeypatch.setattr(training.exact, "log_likelihood", fail)
    for kernel in ("own", ("own", "se")):
        found = fit_residual(made.estimate(), made.recording(0, 1), kernel=kernel)
        assert found.joints == (None, None)
        assert any("rigid model is kept" in line for line in found.notes)
        _, q, v, a = made.states(7)
        assert np.array_equal(found.torques(q, v, a), dynid.inverse_dynamics(found.robot, q, v, a))


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"kernel": "cubic"}, (UnknownName, "kernel")),
        ({"noise": "loud"}, (UnknownName, "noise")),
        ({"basis": "cubic"}, (UnknownName, "basis")),
        ({"rigid": "soft"}, (UnknownName, "rigid")),
        ({"periodic": 3}, (InvalidValue, "periodic")),
        ({"bound": -1.0}, (InvalidValue, "bound")),
        ({"bound": [1.0, 2.0, 3.0]}, (InvalidValue, "bound")),
    ],
)
def test_wrong_options_are_named(options: dict[str, object], error: Error) -> None:
    with expect_error(*error):
        fit_residual(made.estimate(), made.recording(0), **({"kernel": "own"} | options))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"method": "magic"}, (UnknownName, "method")),
        ({"library": "gpflow"}, (UnknownName, "library")),
        ({"points": 0}, (InvalidValue, "points")),
        ({"rows": 1}, (InvalidValue, "rows")),
        ({"restarts": -1}, (InvalidValue, "restarts")),
    ],
)
def test_wrong_training_is_named(options: dict[str, object], error: Error) -> None:
    with expect_error(*error):
        Training(**options)  # type: ignore[arg-type]


def test_wrong_models_and_blends_are_named() -> None:
    with expect_error(InvalidType, "model"):
        fit_residual("arm.urdf", made.recording(0))  # type: ignore[arg-type]
    with expect_error(InvalidValue, "whole"):
        dynid.residual.Blend(0.9, 0.5)
    puma = dynid.load_robot("puma560")
    with expect_error(Mismatch):
        fit_residual(puma, made.recording(0))
    with expect_error(InvalidShape):
        made.residual().predict([[0.0]], [[0.0]], [[0.0]])


def test_progress_is_reported_once_per_joint() -> None:
    reports: list[Progress] = []
    training = Training(restarts=0, rows=50)
    fit_residual(made.estimate(), made.recording(0), kernel="friction", training=training, progress=reports.append)
    assert [one.share for one in reports] == [0.5, 1.0]
    assert all(name in one.message for one, name in zip(reports, made.estimate().robot.coordinates, strict=True))
