"""The check of simulated motion: worse than the a-priori model, by more than chance and by enough to matter."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.assessment.verdict.assess import evidence_of
from dynid.assessment.verdict.assessment import Check
from dynid.assessment.verdict.model_checks import check_simulation
from dynid.cli.demo import synthetic_recording
from dynid.excitation.basis import random_fourier
from tests.support.noisy_loop import perturbed

Array = NDArray[np.float64]


@pytest.fixture(scope="module")
def robot() -> dynid.Robot:
    return dynid.load_robot("twolink", friction="viscous+coulomb")


@pytest.fixture(scope="module")
def recordings(robot: dynid.Robot) -> tuple[dynid.Recording, dynid.Recording]:
    return synthetic_recording(robot, 0, 10.0), synthetic_recording(robot, 1, 10.0)


def checked(prior: dynid.Robot, parameters: Array, recordings: tuple[dynid.Recording, dynid.Recording]) -> Check:
    """The check of an estimate with these standard parameters."""
    estimate = dynid.identify(prior, recordings[0], "wls")
    estimate = replace(estimate, standard=parameters, beta=estimate.base.values(parameters))
    return check_simulation(evidence_of(estimate, recordings[1]))


def test_a_good_estimate_passes_beside_any_prior(
    robot: dynid.Robot, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """A wrong prior is beaten; an exact one is better, but by too little to matter."""
    for prior in (robot.with_parameters(perturbed(robot, 0.3)), robot):
        found = check_simulation(evidence_of(dynid.identify(prior, recordings[0], "wls"), recordings[1]))
        assert found.result == "passed" and found.figure is not None and found.figure <= 1.0, found


def test_an_estimate_that_simulates_worse_fails(
    robot: dynid.Robot, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    worse = checked(robot, perturbed(robot, 0.5), recordings)
    assert worse.result == "failed" and "a-priori" in worse.words and worse.advice
    same = checked(robot, robot.parameters, recordings)
    assert same.result == "passed" and same.figure == 1.0


def test_an_estimate_that_cannot_be_simulated_fails(
    robot: dynid.Robot, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    parameters = robot.parameters.copy()
    parameters[list(robot.parameter_names).index("fv_joint2")] = -50.0
    found = checked(robot, parameters, recordings)
    assert found.result == "failed" and "ended early" in found.words


def test_torques_that_move_every_model_away_say_nothing(
    robot: dynid.Robot, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """An offset of the torques drives both models further off than a constant velocity is."""
    unseen = recordings[1]
    pushed = [replace(r, torque=r.torque + 0.3 * np.ptp(r.torque, axis=0)) for r in unseen.runs if r.torque is not None]
    estimate, light = dynid.identify(robot, recordings[0], "wls"), 0.7 * robot.parameters
    estimate = replace(estimate, standard=light, beta=estimate.base.values(light))
    found = check_simulation(evidence_of(estimate, replace(unseen, runs=tuple(pushed))))
    assert found.result == "not checked" and "constant velocity" in found.words, found


def test_what_is_missing_is_not_checked(
    robot: dynid.Robot, recordings: tuple[dynid.Recording, dynid.Recording]
) -> None:
    """Without unseen motion, without a prior, or with a few tenths of a second of motion."""
    estimate = dynid.identify(robot, recordings[0], "wls")
    assert check_simulation(evidence_of(estimate)).result == "not checked"
    bare = robot.with_parameters(0 * robot.parameters)
    nothing = check_simulation(evidence_of(dynid.identify(bare, recordings[0], "wls"), recordings[1]))
    assert nothing.result == "not checked" and "a-priori" in nothing.words
    short = check_simulation(evidence_of(estimate, recordings[1].between(0.0, 1.2)))
    assert short.result == "not checked"


@pytest.mark.slow  # compiles the simulation of linkages
def test_a_linkage_is_checked() -> None:
    """Noise of 1 % on the torque of a crank; the a-priori model is wrong by up to 20 %."""
    robot = dynid.load_robot("fourbar", friction="viscous")
    recordings, reach = [], np.ones(1)
    for seed in (0, 1):
        t = np.arange(5000) / 500.0
        q, v, a = random_fourier(robot.home - reach, robot.home + reach, 3 * reach, 10.0, t, seed)
        torque = dynid.inverse_dynamics(robot, q, v, a)
        torque += 0.01 * torque.std() * np.random.default_rng(seed).normal(size=torque.shape)
        recordings.append(dynid.Recording(robot.coordinates, (dynid.Run(t, q, torque=torque),)))
    seen, unseen = recordings
    estimate = dynid.identify(robot.with_parameters(perturbed(robot)), seen, method="feasible")
    check = dynid.assess(estimate, unseen, recording=seen).check("simulation_error")
    assert check.result == "passed" and check.figure < 0.2
