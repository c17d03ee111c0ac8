"""The compiled projection against a null space and a Cholesky factor of NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy

import dynid
from dynid.dynamics.kernels.projection import project
from dynid.errors import Duplicate, InvalidValue, MissingArgument, ModelError
from dynid.legs.contacts import Contact, as_contacts, check_rank, contact_jacobian, standing_states
from tests.support.errors import Error, expect_error
from tests.support.walkers import feet, walker


def test_rows_have_no_contact_force_and_unit_noise() -> None:
    """L^-1 N' Y up to an orthogonal factor: the Gram matrix is that of NumPy, and contact forces vanish."""
    robot, rng = walker(), np.random.default_rng(1)
    contacts = as_contacts(robot, feet())[:2]
    q, v, a = standing_states(robot, contacts, 5, seed=3)
    J = contact_jacobian(robot, q, contacts)
    force = rng.normal(size=(5, 6))
    Y = dynid.regressor(robot, q, v, a)[:, :, :40]
    pushed = np.einsum("nij,ni->nj", J, force)
    columns = np.concatenate([Y, pushed[:, :, None]], axis=2)
    M = dynid.mass_matrix(robot, q)
    torque, acceleration = np.zeros((5, 18)), rng.uniform(0.1, 1.0, 18)
    torque[:, 6:] = rng.uniform(0.1, 1.0, (5, 12))
    out = np.empty((5, 12, 41))
    project(J, columns, M, torque, acceleration, 0, 5, out)
    assert np.abs(out[:, :, -1]).max() < 1e-9
    for k in range(5):
        N = scipy.linalg.null_space(J[k])
        noise = np.diag(torque[k] ** 2) + (M[k] * acceleration**2) @ M[k].T
        wanted = Y[k].T @ N @ np.linalg.solve(N.T @ noise @ N, N.T @ Y[k])
        found = out[k, :, :-1].T @ out[k, :, :-1]
        np.testing.assert_allclose(found, wanted, atol=1e-8 * np.abs(wanted).max())


def test_ball_foot_touches_below_its_centre() -> None:
    """A rolling ball has no velocity where it touches, and its centre moves."""
    robot = walker()
    ball = as_contacts(robot, [Contact(frame="FL_foot", radius=0.02)])
    q = np.concatenate([np.zeros(6), [1.0], np.tile([0.0, 0.75, -1.5], 4)])[None]
    point = contact_jacobian(robot, q, [Contact(frame="FL_foot")])
    rolled = contact_jacobian(robot, q, ball)
    # Turning the whole robot about the y axis through the point of contact moves the centre by the radius.
    place = dynid.dynamics.frame_placement(robot, q[0], "FL_foot")[:3, 3] - [0.0, 0.0, 0.02]
    turn = np.zeros(18)
    turn[3:6] = [0.0, 1.0, 0.0]
    turn[:3] = -np.cross([0.0, 1.0, 0.0], place)
    assert np.abs(rolled[0] @ turn).max() < 1e-12
    assert np.linalg.norm(point[0] @ turn) == pytest.approx(0.02)


def test_kinds_of_contacts() -> None:
    """Three, five and six rows; a line transmits no moment about its axis."""
    robot = walker()
    q = standing_states(robot, (), 1, seed=0)[0]
    rows = {k: contact_jacobian(robot, q, [Contact(frame="FL_foot", kind=k)])[0] for k in ("point", "line", "surface")}
    assert [len(r) for r in rows.values()] == [3, 5, 6]
    np.testing.assert_array_equal(np.delete(rows["surface"], 4, axis=0), rows["line"])


def test_contacts_without_rank_are_named() -> None:
    """Six motions of a leg with three joints cannot be prevented together with those of the hip."""
    robot = walker()
    q = standing_states(robot, (), 20, seed=0)[0]
    same = [Contact(frame="FL_foot", kind="surface"), Contact(frame="FL_calf", kind="surface")]
    with expect_error(InvalidValue, "feet"):
        check_rank(robot, q, same)


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([], (MissingArgument, "feet")),
        (["FL_foot", "FL_foot"], (Duplicate, "feet")),
        (["paw"], (ModelError, "frame", "unknown_name")),
    ],
)
def test_wrong_feet(given: list[str], error: Error) -> None:
    """One sentence each."""
    with expect_error(*error):
        as_contacts(walker(), given)
