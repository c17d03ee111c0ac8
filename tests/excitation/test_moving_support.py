"""The zero-moment point as a limit of the design."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.excitation.balance import MovingSupport, verify_balance, zero_moment_point
from dynid.excitation.design import design_excitation
from dynid.robot.parts import Joint, Link
from dynid.robot.spatial import placement

LIMITS = {"*": {"lower": -0.6, "upper": 0.6, "velocity": 4.0, "acceleration": 40.0}}
FOOT = [[-0.1, -0.07], [0.14, -0.07], [0.14, 0.07], [-0.1, 0.07]]


def standing() -> dynid.Robot:
    """Ankle (two axes), hip and shoulder above a foot."""
    axes = ([0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0])
    heights = (0.08, 0.0, 0.7, 0.4)
    masses = (0.5, 6.0, 12.0, 3.0)
    joints, links = [], [Link("foot", dynid.inertia.inertia_from_com(1.0, [0, 0, 0.03], 0.002 * np.eye(3)))]
    for k, (axis, height, mass) in enumerate(zip(axes, heights, masses, strict=True)):
        at = placement(translation=[0.0, 0.0, height])
        joints.append(Joint(f"joint{k + 1}", "revolute", k, at, np.array(axis)))
        links.append(
            Link(f"link{k + 1}", dynid.inertia.inertia_from_com(mass, [0.01, 0, 0.2], 0.02 * mass * np.eye(3)))
        )
    return dynid.Robot("standing", tuple(links), tuple(joints)).with_drives("viscous+coulomb")


def test_values_are_those_of_the_zero_moment_point_and_gradients_exact() -> None:
    """Positive exactly where the point lies inside; derivatives against differences."""
    robot = standing()
    support = MovingSupport(robot, FOOT)
    rng = np.random.default_rng(0)
    q, v, a = (s * rng.uniform(-1, 1, (200, robot.n)) for s in (0.3, 1.0, 3.0))
    values = support.values_in_motion(q, v, a)
    point = zero_moment_point(robot, q, v, a)
    pushed = np.isfinite(point[:, 0])
    inside = (support.inside(point[pushed]) > 0).all(axis=1)
    assert 5 < inside.sum() < len(inside) - 5
    np.testing.assert_array_equal((values[pushed] > 0).all(axis=1), inside)
    which = rng.integers(0, values.shape[1], len(q))
    rows = np.arange(len(q))
    slopes = support.gradients_in_motion(q, v, a, which)
    state = [q, v, a]
    for k, slope in enumerate(slopes):
        d = rng.normal(size=q.shape)
        sides = []
        for sign in (1e-6, -1e-6):
            moved = list(state)
            moved[k] = moved[k] + sign * d
            sides.append(support.values_in_motion(*moved)[rows, which])
        numeric = (sides[0] - sides[1]) / 2e-6
        np.testing.assert_allclose(np.sum(slope * d, axis=1), numeric, atol=1e-6 * np.abs(numeric).max())


@pytest.mark.slow
def test_a_design_that_knows_the_foot_keeps_its_balance() -> None:
    """Without the limit the same design would tip over."""
    robot = standing()
    support = MovingSupport(robot, FOOT, margin=0.005)
    free = design_excitation(robot, 6.0, limits=LIMITS, size=3, budget=150)
    kept = design_excitation(robot, 6.0, limits=LIMITS, size=3, budget=300, clearances=[support])
    assert not verify_balance(support, free).kept
    assert verify_balance(support, kept).worst[0] > -1e-4
    assert np.isfinite(kept.condition_number)
