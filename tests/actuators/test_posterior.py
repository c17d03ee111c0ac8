"""Draws of identified actuators: their distribution, against a Markov chain and on motion that was not fitted."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.actuators import ActuatorEstimate, Commands, Segments, draw_actuators, identify_actuators, rollout
from dynid.errors import InvalidValue
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot import ActuatorLaw
from tests.support.errors import expect_error

Array = NDArray[np.float64]

RATE, NOISE = 200.0, 1e-3


def robot() -> dynid.Robot:
    whole = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    values = {"Ia": 0.05, "fv": 0.4, "fc": 0.5}
    found = [values.get(p.symbol, x) for p, x in zip(whole.layout, whole.parameters, strict=True)]
    return whole.with_parameters(found).with_smooth_coulomb(200.0)  # plant and model with the same friction at rest


def law(plant: dynid.Robot) -> ActuatorLaw:
    return ActuatorLaw(plant.coordinates, kp=60.0, kd=3.0)


def chirp(seconds: float, joints: int, highest: float = 4.0) -> Array:
    t = np.arange(int(seconds * RATE)) / RATE
    phase = 2 * np.pi * (0.2 * t + (highest - 0.2) * t**2 / (2 * seconds))
    return 0.4 * np.sin(np.outer(phase, 1.0 + 0.2 * np.arange(joints)))


def simulated(plant: dynid.Robot, actuated: ActuatorLaw, command: Array) -> Array:
    start = Segments(np.array([0]), len(command) - 1, command[:1], np.zeros((1, plant.n)))
    # The fit takes out the error of its steps of 1 ms; the plant must not have it.
    return rollout(plant, actuated, Commands(RATE, command, None, None), start, step=2e-4).q[0]


def measured(plant: dynid.Robot, command: Array, seed: int) -> Recording:
    q = simulated(plant, law(plant), command)
    q = q + np.random.default_rng(seed).normal(0.0, NOISE, q.shape)
    return Recording(plant.coordinates, (Run(np.arange(len(q)) / RATE, q, reference=command),))


def fitted(plant: dynid.Robot, seed: int, seconds: float = 3.0) -> ActuatorEstimate:
    log = measured(plant, chirp(seconds, plant.n), seed)
    return identify_actuators(plant, log, law(plant), unknown=("armature", "damping", "friction"))


def test_draws_have_the_covariance_of_the_estimate() -> None:
    found = fitted(robot(), 0)
    draws = draw_actuators(found, 4000)
    assert draws.names == tuple(f"{s}_joint{j}" for s in ("Ia", "fv", "fc") for j in (1, 2))
    np.testing.assert_allclose(draws.mean, found.values, atol=4 * found.std.max() / np.sqrt(1000))
    np.testing.assert_allclose(draws.std, found.std, rtol=0.1)
    np.testing.assert_allclose(draws.correlation, found.correlation, atol=0.06)
    again = draw_actuators(found, 4000)
    np.testing.assert_array_equal(again.values, draws.values)
    with expect_error(InvalidValue, "count"):
        draw_actuators(found, 1)


def test_draws_are_never_negative() -> None:
    plant = robot()
    plant = plant.with_parameters([x * (p.symbol != "fv") for p, x in zip(plant.layout, plant.parameters, strict=True)])
    draws = draw_actuators(fitted(plant, 1), 500)
    assert np.all(draws.values >= 0.0)
    for model, actuated in list(draws.models(plant, law(plant)))[:3]:
        assert np.all(np.isfinite(simulated(model, actuated, chirp(0.5, 2))))


@pytest.mark.slow
def test_a_markov_chain_has_the_same_distribution() -> None:
    """One joint, three unknowns, white noise: the chain samples the likelihood itself.

    Friction is known. Where it is not, the fit asks for its softness, too: the standard deviations then contain two
    values that a chain over these three does not vary.
    """
    plant = robot().locked({"joint2": 0.3})
    command = chirp(3.0, 1)
    log = measured(plant, command, 2)
    found = identify_actuators(plant, log, law(plant), unknown=("armature", "damping", "offset"))
    space = [found.robot.parameter_names.index(x.parameters[0]) for x in found.unknowns]
    least = np.array([x.least for x in found.unknowns])
    q = log.runs[0].q

    def likelihood(values: Array) -> float:
        parameters = np.array(found.robot.parameters)
        parameters[space] = values
        if np.any(values < least):
            return -np.inf
        error = simulated(found.robot.with_parameters(parameters), law(plant), command) - q
        return -0.5 * float(np.sum(error**2)) / NOISE**2

    rng, root = np.random.default_rng(0), np.linalg.cholesky(found.covariance)
    state, level, chain = found.values, likelihood(found.values), []
    for _ in range(3000):
        trial = state + 1.2 * root @ rng.standard_normal(3)
        new = likelihood(trial)
        if np.log(rng.uniform()) < new - level:
            state, level = trial, new
        chain.append(state)
    samples = np.array(chain[300:])
    np.testing.assert_allclose(samples.std(axis=0), found.std, rtol=0.25)
    assert np.all(np.abs(samples.mean(axis=0) - found.values) < 0.5 * found.std)


@pytest.mark.slow
def test_drawn_models_cover_the_true_motion_that_was_not_fitted() -> None:
    """The true positions of other motion lie between the ends of 95 % of the drawn ones in 90 to 98 % of 30 logs."""
    plant = robot()
    command = chirp(2.0, 2, highest=2.5)[:, ::-1]
    true = simulated(plant, law(plant), command)
    inside = []
    for seed in range(30):
        found = fitted(plant, 100 + seed, seconds=2.0)
        draws = draw_actuators(found, 60, seed=seed)
        moved = np.array([simulated(*model, command) for model in draws.models(found.robot, found.law)])
        middle, std = moved.mean(axis=0), moved.std(axis=0, ddof=1)
        moving = std > 1e-7
        inside.append(np.mean(np.abs(true - middle)[moving] < 1.96 * std[moving]))
    assert 0.9 <= np.mean(inside) <= 0.98, np.mean(inside)
