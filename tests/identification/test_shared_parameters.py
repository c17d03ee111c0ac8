"""Models that share parameters, identified together, against one least squares over all rows."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.errors import Mismatch, TooFew, UnknownName
from tests.support.errors import expect_error
from tests.support.synthetic import EXACT, arm, motion, record

LABELS = ("bare", "loaded", "hung")
OWN = ("*_link3", "off_*")
PAYLOAD = dynid.inertia.inertia_from_com(1.5, [0.1, 0.05, 0.02], np.diag([0.004, 0.005, 0.006]))


def robots() -> tuple[Robot, Robot, Robot]:
    """An arm, the same with a payload, and that one mounted at an angle, with another drive offset."""
    bare = arm()
    loaded = bare.with_payload("link3", PAYLOAD)
    values = loaded.parameters.copy()
    values[loaded.parameter_names.index("off_joint2")] = -0.4
    return bare, loaded, loaded.with_parameters(values).with_gravity([3.0, 2.0, -9.0])


def data(noise: float = 0.0) -> list[tuple[Robot, dynid.Recording]]:
    """What is known of each model, and its recording: a priori all have the bare arm's numbers."""
    truths = robots()
    priors = (truths[0], truths[0], truths[0].with_gravity(truths[2].gravity))
    return [(p, record(r, (k,), noise)) for k, (p, r) in enumerate(zip(priors, truths, strict=True))]


@pytest.mark.parametrize("method", ["ols", "wls", "feasible"])
def test_noise_free_truth_of_every_model(method: str) -> None:
    """Values to rounding, or to what a cone solver leaves."""
    found = dynid.identification.identify_shared(data(), own=OWN, method=method, signals=EXACT, labels=LABELS)
    assert found.base.count < sum(e.base.count for e in found.estimates)
    for label, truth in zip(LABELS, robots(), strict=True):
        mine = found[label]
        np.testing.assert_allclose(mine.beta, mine.base.values(truth.parameters), atol=1e-7)


def test_it_is_one_least_squares_over_all_rows() -> None:
    """Rows of all models side by side, columns shared or apart, in one lstsq: values and covariance."""
    found = dynid.identification.identify_shared(data(0.05), own=OWN, signals=EXACT, labels=LABELS)
    union = found.base.union
    rows, values = [], []
    for k, (robot, recording) in enumerate(data(0.05)):
        _, q, v, a = motion(robot, k)
        Y = dynid.regressor(robot, q, v, a) / found.estimates[k].noise[:, None]
        rows.append(union.expand(Y.reshape(-1, Y.shape[-1]), k))
        values.append((recording.runs[0].torque / found.estimates[k].noise).ravel())
    W, y = np.vstack(rows), np.concatenate(values)
    size = np.linalg.norm(W, axis=0)
    assert np.linalg.matrix_rank(W / np.where(size > 0, size, 1.0), tol=1e-7) == found.base.count
    W = W[:, list(found.base.kept)]
    np.testing.assert_allclose(found.beta, np.linalg.lstsq(W, y, rcond=None)[0], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(W.T @ W), rtol=1e-5, atol=1e-12)


@pytest.mark.slow
def test_noise_is_covered_and_sharing_helps() -> None:
    """Errors of 30 draws are as large as their deviations say, which are smaller than those of one model alone."""
    truths = robots()
    first = data()
    scores = []
    for draw in range(30):
        rng = np.random.default_rng(draw)
        noisy = []
        for prior, recording in first:
            run = recording.runs[0]
            torque = run.torque + 0.05 * rng.normal(size=run.torque.shape)
            noisy.append((prior, dynid.Recording(recording.joints, (dynid.Run(run.t, run.q, torque=torque),))))
        found = dynid.identification.identify_shared(noisy, own=OWN, signals=EXACT, labels=LABELS)
        for label, truth in zip(LABELS, truths, strict=True):
            mine = found[label]
            scores.append((mine.beta - mine.base.values(truth.parameters)) / mine.std)
    # 30 draws of about 53 independent numbers: the mean square scatters by sqrt(2 / 1590) = 0.035.
    assert np.mean(np.concatenate(scores) ** 2) == pytest.approx(1.0, abs=0.15)
    alone = dynid.identify(noisy[0][0], noisy[0][1], "wls", signals=EXACT)
    ratio = found["bare"].std / alone.std
    assert np.all(ratio < 1.05) and np.median(ratio) < 0.85


def test_a_difference_is_the_payload() -> None:
    """With shared drives all that differs is what hangs on the last link, and shared values differ by exactly zero."""
    bare, loaded, _ = robots()
    two = data(0.02)[:2]
    found = dynid.identification.identify_shared(two, own="*_link3", signals=EXACT, labels=LABELS[:2])
    change, sigma = found.difference("loaded", "bare")
    base = found["bare"].base
    expected = base.values(loaded.parameters) - base.values(bare.parameters)
    shared = sigma < 1e-12
    assert shared.any() and np.abs(change[shared]).max() < 1e-9
    assert np.abs((change - expected)[~shared] / sigma[~shared]).max() < 4.0
    apart = [dynid.identify(robot, rec, "wls", signals=EXACT) for robot, rec in two]
    before = np.sqrt(apart[0].std ** 2 + apart[1].std ** 2)
    assert np.median(sigma[~shared] / before[~shared]) < 0.9
    np.testing.assert_allclose(found.cross_covariance("bare", "bare"), found["bare"].covariance)


def test_feasible_models_are_possible_robots() -> None:
    """Short and noisy data make plain values impossible; the feasible ones are possible and share what they share."""
    pairs = zip(data(), robots(), strict=True)
    few = [(robot, record(truth, (k,), 2.0, samples=60)) for k, ((robot, _), truth) in enumerate(pairs)]
    plain = dynid.identification.identify_shared(few, own=OWN, signals=EXACT, labels=LABELS)
    assert any(not e.feasibility() for e in plain.estimates)
    found = dynid.identification.identify_shared(few, own=OWN, method="feasible", signals=EXACT, labels=LABELS)
    for mine in found.estimates:
        assert not dynid.feasibility.feasible_set(mine.robot).violations(mine.parameters, tolerance=1e-6)
    one, two = found["bare"].parameters, found["loaded"].parameters
    names = found["bare"].robot.parameter_names
    for i, name in enumerate(names):
        assert (one[i] == two[i]) == (name in found.base.union.shared), name


def test_runs_with_offsets_of_their_own() -> None:
    """One robot, two runs whose drive offsets differ: shared otherwise."""
    robot = arm()
    values = robot.parameters.copy()
    values[[i for i, n in enumerate(robot.parameter_names) if n.startswith("off_")]] = [0.5, -0.3, 0.2]
    other = robot.with_parameters(values)
    found = dynid.identification.identify_shared(
        [(robot, record(robot, (0,))), (robot, record(other, (1,)))], own="off_*", signals=EXACT
    )
    np.testing.assert_allclose(found["1"].beta, found["1"].base.values(robot.parameters), atol=1e-9)
    np.testing.assert_allclose(found["2"].beta, found["2"].base.values(other.parameters), atol=1e-9)
    assert found.base.count == found["1"].base.count + 3


def test_plain_words_for_bad_input() -> None:
    """Each mistake is one sentence."""
    pairs = data()
    for arguments, error in (
        ({"own": "nothing_*"}, (UnknownName, "pattern")),
        ({"method": "tls"}, (UnknownName, "method")),
        ({"labels": ("a", "a", "b")}, (Mismatch, "labels")),
    ):
        with expect_error(*error):
            dynid.identification.identify_shared(pairs, signals=EXACT, **arguments)
    with expect_error(TooFew, "models"):
        dynid.identification.identify_shared(pairs[:1], signals=EXACT)
    found = dynid.identification.identify_shared(pairs, own=OWN, signals=EXACT, labels=LABELS)
    with expect_error(UnknownName, "label"):
        found["other"]
    with expect_error(Mismatch):
        found.difference("hung", "bare")
    assert "loaded" in found.summary() and set(found.to_dict()["models"]) == set(LABELS)
