"""The posterior without inequalities: its algebra, the worth of colored rows, and the learned scales."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from dynid.feasibility import consistent_prior
from dynid.identification.estimators.options import KnownMasses
from dynid.identification.observing import observe
from dynid.identification.posterior import learn, parameter_prior
from dynid.identification.row_stream import Block
from tests.support.synthetic import EXACT, arm, record


def seen(noise: float = 0.1, samples: int = 3000):  # type: ignore[no-untyped-def]
    robot = arm()
    bare = robot.with_parameters(1.2 * robot.parameters)
    return observe(bare, record(robot, (0,), noise=noise, samples=samples), signals=EXACT)


def test_mean_and_covariance_are_those_of_the_normal_equations() -> None:
    """With the same noise and scales: (K' W'W K / s2 + P)^-1, inverted directly."""
    observation = seen()
    found = learn(observation, parameter_prior(observation, consistent_prior(observation.robot), KnownMasses()))
    K, data = observation.base.matrix, found.factor
    rows = data[:, :-1] @ K
    root = found.prior.directions[:, found.used] * found.prior.sizes(found.scales)[found.used]
    S = root @ root.T
    gain = S @ rows.T @ np.linalg.inv(rows @ S @ rows.T + np.eye(len(rows)))
    mean = found.prior.mean + gain @ (data[:, -1] - rows @ found.prior.mean)
    np.testing.assert_allclose(found.parameters, mean, rtol=1e-6, atol=1e-8)
    covariance = found.standard_root @ found.standard_root.T
    np.testing.assert_allclose(covariance, S - gain @ rows @ S, rtol=1e-5, atol=1e-9)
    P, target = found.prior_rows()
    inside = np.linalg.lstsq(P, target, rcond=None)[0]
    np.testing.assert_allclose(inside, found.prior.mean, rtol=1e-6, atol=1e-8)


def test_noise_is_found_whatever_the_fit_takes() -> None:
    """0.1 N m on every joint; white rows are all independent."""
    observation = seen(noise=0.1)
    found = learn(observation, parameter_prior(observation, consistent_prior(observation.robot), KnownMasses()))
    np.testing.assert_allclose(found.noise, 0.1, rtol=0.1)
    assert np.all(found.share > 0.8)


@pytest.mark.parametrize("kept", [0.0, 0.6, 0.9])
def test_rows_of_colored_noise_are_worth_their_share(kept: float) -> None:
    """First-order noise with this autocorrelation of neighbours: (1 - kept) / (1 + kept) of the rows."""
    observation = seen(noise=0.0, samples=6000)
    rng = np.random.default_rng(0)
    blocks = []
    for block in observation.blocks():
        white = rng.normal(size=len(block.y))
        e = np.empty_like(white)
        e[0] = white[0]
        for k in range(1, len(e)):
            e[k] = kept * e[k - 1] + np.sqrt(1 - kept**2) * white[k]
        blocks.append(Block(block.channel, block.W, block.y + 0.1 * e, block.index))
    factors = tuple(
        np.column_stack(
            [
                np.vstack([b.W for b in blocks if b.channel == j]),
                np.concatenate([b.y for b in blocks if b.channel == j]),
            ]
        )
        for j in range(len(observation.factors))
    )
    colored = replace(observation, factors=factors, blocks=lambda: iter(blocks))
    found = learn(colored, parameter_prior(colored, consistent_prior(colored.robot), KnownMasses()))
    expected = (1 - kept) / (1 + kept)
    assert np.all(found.share < 1.5 * expected) and np.all(found.share > 0.6 * expected)
    # Standard deviations grow with the square root of what a row is worth, within what the shares scatter.
    white = learn(colored, found.prior, tempered=False)
    wider = np.linalg.norm(found.base_root, axis=1) / np.linalg.norm(white.base_root, axis=1)
    assert 0.8 * expected**-0.5 < np.median(wider) < 1.3 * expected**-0.5


def test_scales_follow_the_parameters_and_never_vanish() -> None:
    """Friction that is not there shrinks its scale, but not to zero; bodies far from the prior widen theirs."""
    observation = seen()
    prior = parameter_prior(observation, consistent_prior(observation.robot), KnownMasses())
    found = learn(observation, prior)
    assert all(value > 0 for value in found.scales.values())
    far = arm().with_parameters(1.2 * arm().parameters)
    pi = consistent_prior(far).parameters.copy()
    first = far.parameter_names.index(f"m_{far.links[2].name}")
    pi[first : first + 10] *= 0.3
    other = parameter_prior(observation, replace(prior.bodies, parameters=pi), KnownMasses())
    assert learn(observation, other).scales["bodies"] > found.scales["bodies"]


def test_an_iteration_that_does_not_converge_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With fewer iterations than passes over the rows, the estimate is not converged."""
    from dynid.identification import posterior
    from dynid.identification.pipeline import identify

    observation = seen()
    assert identify(observation.robot, observation).converged
    monkeypatch.setattr(posterior, "_ITERATIONS", 2)
    found = identify(observation.robot, observation)
    assert not found.converged and "converge" in found.status


def test_rows_that_cannot_be_read_again_are_told() -> None:
    from dynid.identification.observation import no_rows
    from dynid.identification.pipeline import identify

    observation = seen()
    found = identify(observation.robot, replace(observation, blocks=no_rows))
    assert any("cannot be read again" in note for note in found.notes)
    assert not any("cannot be read again" in note for note in identify(observation.robot, observation).notes)


def test_a_known_mass_has_its_standard_deviation() -> None:
    """3 % of the total, which the torques alone leave open."""
    observation = seen()
    robot = observation.robot
    masses = [n.startswith("m_") for n in robot.parameter_names]
    known = KnownMasses(float(1.1 * robot.parameters[masses].sum()))
    spread = {}
    for given in (KnownMasses(), known):
        found = learn(observation, parameter_prior(observation, consistent_prior(robot), given))
        spread[given.total] = np.linalg.norm(found.standard_root[masses].sum(axis=0))
    assert spread[known.total] < 0.031 * known.total < 0.5 * spread[None]


def test_friction_below_zero_is_no_evidence_of_large_friction() -> None:
    """Torques with half a newton metre of Coulomb friction of the wrong sign: the scale of friction stays small."""
    robot = arm().with_drives("coulomb")
    wrong = robot.parameters.copy()
    for k, name in enumerate(robot.parameter_names):
        if name.startswith("fc_"):
            wrong[k] = -0.5
    plain = robot.with_parameters(np.where(np.isclose(wrong, -0.5), 0.0, robot.parameters))
    scales = {}
    for sign in (1.0, -1.0):
        pi = np.where(np.isclose(wrong, -0.5), 0.5 * sign, robot.parameters)
        observation = observe(plain, record(robot.with_parameters(pi), (0,), noise=0.1, samples=3000), signals=EXACT)
        found = learn(observation, parameter_prior(observation, consistent_prior(plain), KnownMasses()))
        scales[sign] = found.scales["fc"]
    assert scales[-1.0] < 0.5 * scales[1.0]
