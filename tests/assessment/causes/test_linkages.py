"""Effects that a named cause adds to the model of a robot with closed loops."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.assessment.causes.cause_search import term_torques
from dynid.robot.effects import effect_terms
from dynid.signals.settings import Motion


@pytest.mark.parametrize("effect", ["ripple=flange:3", "ripple=crank:2", "coupled-inertia=crank:flange"])
def test_an_effect_acts_in_the_independent_joints_of_a_linkage(effect: str) -> None:
    robot = dynid.load_robot("palletizer")
    rng = np.random.default_rng(0)
    q = robot.home + 0.05 * rng.normal(size=(5, robot.n))
    v, a = rng.normal(size=(2, 5, robot.n))
    motion = Motion(np.arange(5.0), q, v, a, None, 1.0, cutoff=None, decimate=(), name="", q_noise=np.zeros(robot.n))
    for term in effect_terms(robot, effect):
        whole = robot.with_terms(term)
        values = np.zeros(len(whole.parameter_names))
        values[whole.parameter_names.index(term.name)] = 1.0
        expected = dynid.inverse_dynamics(whole, q, v, a, values)
        np.testing.assert_allclose(term_torques(robot, term, motion), expected, atol=1e-9)
