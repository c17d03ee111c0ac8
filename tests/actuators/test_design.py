"""Chirps that show actuators: predicted standard deviations are those of repeated experiments."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.actuators import ActuatorLaw, design_chirps, identify_actuators, predict_std
from dynid.errors import DataError
from tests.actuators.test_posterior import NOISE, chirp, law, measured, robot


@pytest.mark.slow
def test_predicted_std_is_that_of_repeated_experiments() -> None:
    plant, command = robot(), chirp(2.0, 2)
    unknown = ("armature", "damping", "friction")
    _, predicted = predict_std(plant, law(plant), command, unknown=unknown, noise=NOISE)
    values = [
        identify_actuators(plant, measured(plant, command, 50 + k), law(plant), unknown=unknown).values
        for k in range(16)
    ]
    # Sixteen experiments know a standard deviation to 18 %; the mean over six is known better.
    ratio = np.std(values, axis=0, ddof=1) / predicted
    assert 0.8 < np.sqrt(np.mean(ratio**2)) < 1.25
    assert np.all((ratio > 0.5) & (ratio < 1.6))


def test_the_best_chirp_shows_more_than_a_slow_one() -> None:
    plant = robot().with_limits({c: {"position": (-3.0, 3.0), "velocity": 8.0} for c in robot().coordinates})
    design = design_chirps(plant, law(plant), 0.4, seconds=3.0)
    assert design.command.shape == (600, 2)
    slow = next(worst for highest, share, worst in design.alternatives if (highest, share) == (1.0, 0.25))
    best = min(worst for _, _, worst in design.alternatives)
    assert best < 0.3 * slow
    assert (design.highest, design.share) != (1.0, 0.25)
    assert np.all(np.isfinite(design.std))
    assert np.abs(np.diff(design.command, axis=0)).max() * design.rate < 20.0
    assert np.all(design.command[[0, -1]] == plant.home)


def test_limits_and_bad_commands() -> None:
    plant = robot().with_limits({c: {"velocity": 1e-3} for c in robot().coordinates})
    with pytest.raises(DataError, match="exceeds a limit"):
        design_chirps(plant, law(plant), 0.4, seconds=1.0)
    with pytest.raises(DataError, match="rows of 2 positions"):
        predict_std(robot(), law(robot()), np.zeros((10, 3)))
    unstable = ActuatorLaw(robot().coordinates, kp=1e6, rate=200.0)
    with pytest.raises(DataError, match="diverges"):
        predict_std(robot(), unstable, chirp(1.0, 2))


def test_a_gain_and_what_it_multiplies_are_not_shown_together() -> None:
    """With bodies and friction unknown as well, a factor of all torques has no effect."""
    plant = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    unknown = {"gain": "shared", "bodies": "", "armature": "joint", "damping": "joint", "friction": "joint"}
    unknowns, std = predict_std(plant, law(plant), chirp(2.0, 2), unknown=unknown)
    assert np.isinf(std[[x.quantity == "gain" for x in unknowns]]).all()
