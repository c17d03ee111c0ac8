"""Dynamic functions from base parameters alone: those of every standard vector with these base values."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import ArrayLike

import dynid
import dynid.robot
from dynid import Robot
from dynid.errors import DataError, DynidError, InvalidShape, MissingData, NotIdentifiable, UnknownName
from dynid.identification.known import essential_parameters
from dynid.identification.observing import observe
from dynid.parameters import BaseModel
from tests.support.compare import difference
from tests.support.errors import expect_error
from tests.support.random_robots import displaced, random_motion, random_robot, with_custom_terms
from tests.support.synthetic import EXACT, arm, record


def close(ours: ArrayLike, theirs: ArrayLike, tolerance: float) -> None:
    assert difference(ours, theirs) < tolerance


JOINT_DRIVES = ("Ia", "fv", "fc", "off")


def with_drives(robot: Robot, seed: int) -> Robot:
    rng = np.random.default_rng(seed)
    return robot.with_terms(
        *(robot.joint_term(i, s, float(rng.uniform(0.05, 0.5))) for i in range(robot.n) for s in JOINT_DRIVES)
    )


ROBOTS = {
    "serial": lambda: with_drives(random_robot(1, 6, parents=range(6), kinds="rrrrrr"), 1),
    "tree": lambda: with_drives(random_robot(2, 7), 2),
    "slides": lambda: with_drives(random_robot(3, 5, kinds="rprpr"), 3),
    "followers": lambda: with_drives(random_robot(4, 6, kinds="rrrrrr", mimics=2), 4),
    "coupled": lambda: random_robot(5, 4, drives=True).without("fcp_*", "fcn_*", "fvp_*", "fvn_*"),
    "floating": lambda: with_drives(random_robot(6, 5, base="floating"), 6),
    "instrumented": lambda: with_drives(random_robot(7, 5, base="instrumented"), 7),
    "own terms": lambda: with_custom_terms(with_drives(random_robot(8, 4), 8)),
    "built in": lambda: dynid.load_robot("tx40"),
    "hanging": lambda: dynid.load_robot("tx40").with_gravity([3.0, -2.0, 7.0]),
}


@pytest.fixture(scope="module", params=list(ROBOTS))
def robot(request: pytest.FixtureRequest) -> Robot:
    return ROBOTS[request.param]()


@pytest.fixture(scope="module")
def model(robot: Robot) -> BaseModel:
    base = dynid.base_parameters(robot)
    return BaseModel(base, base.values())


def test_every_function_equals_that_of_the_standard_parameters(robot: Robot, model: BaseModel) -> None:
    """To rounding: torques of these robots are 1 to 1000, beta itself is exact to about 1e-12 of the torques."""
    q, v, a = random_motion(robot, 3, 12)
    assert not model.notes and model.channels == robot.channels
    close(model.inverse_dynamics(q, v, a), dynid.inverse_dynamics(robot, q, v, a), 1e-10)
    close(model.mass_matrix(q), dynid.mass_matrix(robot, q), 1e-10)
    close(model.gravity_torque(q), dynid.dynamics.gravity_torque(robot, q), 1e-10)
    close(model.coriolis_torque(q, v), dynid.dynamics.coriolis_torque(robot, q, v), 1e-10)
    close(model.coriolis_matrix(q, v), dynid.dynamics.coriolis_matrix(robot, q, v), 1e-10)
    tau = np.random.default_rng(0).normal(size=v.shape) * 10
    # The solve multiplies errors by the condition of M, up to 1e3 for these robots.
    close(model.forward_dynamics(q, v, tau), dynid.forward_dynamics(robot, q, v, tau), 1e-8)


def test_parts_add_up_and_friction_is_part_of_the_drives(robot: Robot, model: BaseModel) -> None:
    """M a + C v + g + drives = torque; friction is what is left of a robot without bodies, offsets and springs."""
    q, v, a = random_motion(robot, 4, 6)
    rest = model.coriolis_torque(q, v) + model.gravity_torque(q) + model.drive_torque(q, v)
    moved = np.einsum("kij,kj->ki", model.mass_matrix(q), a)
    moving = slice(None) if robot.base != "instrumented" else slice(6, None)
    close(rest[:, moving] + moved, model.inverse_dynamics(q, v, a)[:, moving], 1e-10)
    friction = [n.split("_")[0] in ("fv", "fc", "fvp", "fvn", "fcp", "fcn", "fs") for n in robot.parameter_names]
    pi = np.where(friction, robot.parameters, 0.0)
    close(model.friction_torque(v), dynid.inverse_dynamics(robot, q, v, 0 * a, pi), 1e-10)
    assert np.array_equal(model.friction_torque(v[0]), model.friction_torque(v)[0])


def test_change_of_the_mass_matrix_is_that_of_the_coriolis_matrix(robot: Robot, model: BaseModel) -> None:
    """dM/dt = C + C', by central differences good to about 1e-8; of bodies, as a user's own inertia is not in C."""
    if any(term.function for term in robot.drives):
        pytest.skip("a user's own inertia")
    q, v, _ = random_motion(robot, 5, 3)
    h = 1e-5
    rate = (model.mass_matrix(displaced(robot, q, h * v)) - model.mass_matrix(displaced(robot, q, -h * v))) / (2 * h)
    C = model.coriolis_matrix(q, v)
    close(rate, C + C.transpose(0, 2, 1), 1e-7)


def test_many_random_robots() -> None:
    """Thirty robots of all shapes and bases, with whatever base parameters they have."""
    for seed in range(30):
        base_kind = ("fixed", "floating", "instrumented")[seed % 3]
        robot = with_drives(random_robot(100 + seed, 1 + seed % 6, base=base_kind), seed)
        base = dynid.base_parameters(robot)
        model = BaseModel(base, base.values())
        q, v, a = random_motion(robot, seed, 4)
        close(model.inverse_dynamics(q, v, a), dynid.inverse_dynamics(robot, q, v, a), 1e-10)
        close(model.mass_matrix(q), dynid.mass_matrix(robot, q), 1e-10)
        if not model.notes:
            close(model.gravity_torque(q), dynid.dynamics.gravity_torque(robot, q), 1e-10)
        else:
            both = model.gravity_torque(q) + model.drive_torque(q, v)
            own = dynid.inverse_dynamics(robot, q, v, 0 * a) - dynid.dynamics.coriolis_torque(robot, q, v)
            close(both, own, 1e-10)
        close(model.coriolis_matrix(q, v), dynid.dynamics.coriolis_matrix(robot, q, v), 1e-10)


def test_pivoted_and_recursive_groupings_serve_as_well() -> None:
    """Whatever columns represent the combinations."""
    robot = random_robot(11, 5, rotors=True)
    q, v, a = random_motion(robot, 1, 5)
    for method in ("pivoted", "recursive"):
        base = dynid.base_parameters(robot, method=method)
        model = BaseModel(base, base.values())
        close(model.inverse_dynamics(q, v, a), dynid.inverse_dynamics(robot, q, v, a), 1e-9)
        close(model.gravity_torque(q), dynid.dynamics.gravity_torque(robot, q), 1e-9)
        close(model.mass_matrix(q), dynid.mass_matrix(robot, q), 1e-9)


def slide(terms: tuple[str, ...]) -> Robot:
    joint = dynid.robot.Joint("z", "prismatic", 0, np.eye(4), np.array([0.0, 0.0, 1.0]), np.eye(4))
    body = np.array([2.0, 0, 0, 0, 0.1, 0, 0.1, 0, 0, 0.1])
    robot = Robot("slide", (dynid.robot.Link("base", np.zeros(10)), dynid.robot.Link("body", body)), (joint,))
    return robot.with_terms(*(robot.joint_term(0, s, 0.5) for s in terms))


def test_what_shows_only_together_is_said() -> None:
    """The weight on a vertical slide and its drive's offset; one-sided friction and an offset."""
    base = dynid.base_parameters(slide(("Ia", "off")))
    model = BaseModel(base, base.values())
    assert len(model.notes) == 1 and "gravity torque of z" in model.notes[0]
    close(model.gravity_torque([[0.1]]) + model.drive_torque([[0.1]], [[0.0]]), [[2 * 9.81 + 0.5]], 1e-12)
    base = dynid.base_parameters(slide(("fcp", "fcn", "off")))
    assert any("friction" in note for note in BaseModel(base, base.values()).notes)
    base = dynid.base_parameters(slide(("off",)))  # without rotor the mass shows by itself
    assert BaseModel(base, base.values()).notes == ()


def test_channels_that_the_base_parameters_determine() -> None:
    """The wrench of a floating base tells all of the bodies; joint torques alone do not tell the wrench."""
    robot = random_robot(12, 4, base="floating")
    q, v, a = random_motion(robot, 1, 4)
    base = dynid.base_parameters(robot, channels="wrench")
    model = BaseModel(base, base.values())
    assert model.channels == robot.channels
    close(model.inverse_dynamics(q, v, a), dynid.inverse_dynamics(robot, q, v, a), 1e-10)
    close(model.mass_matrix(q), dynid.mass_matrix(robot, q), 1e-10)
    base = dynid.base_parameters(robot.with_base("instrumented"), channels="torque")
    model = BaseModel(base, base.values())
    assert model.channels == robot.coordinates
    close(
        model.inverse_dynamics(q[:, 7:], v[:, 6:], a[:, 6:]),
        dynid.inverse_dynamics(robot.with_base("fixed"), q[:, 7:], v[:, 6:], a[:, 6:]),
        1e-10,
    )
    close(model.mass_matrix(q[:, 7:]), dynid.mass_matrix(robot.with_base("fixed"), q[:, 7:]), 1e-10)
    friction = with_drives(robot, 1)
    base = dynid.base_parameters(friction, channels="wrench")
    with expect_error(NotIdentifiable):
        BaseModel(base, base.values()).mass_matrix(q)


def test_parameters_of_postures_give_gravity_alone() -> None:
    """Base parameters at rest say nothing of inertia."""
    robot = random_robot(13, 4)
    base = dynid.base_parameters(robot, still=True)
    model = BaseModel(base, base.values())
    q, v, a = random_motion(robot, 1, 4)
    close(model.gravity_torque(q), dynid.dynamics.gravity_torque(robot, q), 1e-10)
    for ask in (
        lambda: model.inverse_dynamics(q, v, a),
        lambda: model.mass_matrix(q),
        lambda: model.friction_torque(v),
    ):
        with expect_error(NotIdentifiable):
            ask()


def test_another_gravity_only_where_it_shows_nothing_new() -> None:
    """A robot turned upside down is known; one whose upright first axis is laid down is not."""
    robot = dynid.load_robot("tx40")
    base = dynid.base_parameters(robot)
    model = BaseModel(base, base.values())
    q, v, a = random_motion(robot, 1, 4)
    ceiling = robot.with_gravity([0, 0, 9.81])
    close(model.with_gravity([0, 0, 9.81]).inverse_dynamics(q, v, a), dynid.inverse_dynamics(ceiling, q, v, a), 1e-10)
    with expect_error(NotIdentifiable):
        model.with_gravity([9.81, 0, 0])


def test_impossible_base_parameters_cannot_move_and_it_is_said() -> None:
    """A negative inertia of the last joint makes the mass matrix indefinite; torques are still told."""
    robot = arm()
    base = dynid.base_parameters(robot)
    beta = base.values()
    beta[base.names.index(next(n for n in base.names if n.startswith("Ia_joint3")))] = -0.5
    model = BaseModel(base, beta)
    q, v, a = random_motion(robot, 1, 4)
    assert np.all(np.isfinite(model.inverse_dynamics(q, v, a)))
    with expect_error(DynidError, code="infeasible"):
        model.forward_dynamics(q, v, a)
    with expect_error(InvalidShape, "q"):
        model.forward_dynamics(q[:, :2], v, a)


def test_uncertainty_is_that_of_drawn_parameters() -> None:
    """Standard deviation over 4000 draws: a spread good to about 1.1 percent, so 6 percent at five of them."""
    robot = arm()
    estimate = dynid.identify(robot, record(robot, (0,), noise=0.5), "ols", signals=EXACT)
    model = estimate.base_model()
    q, v, a = random_motion(robot, 1, 2)
    draws = np.random.default_rng(0).multivariate_normal(estimate.beta, estimate.covariance, 4000)
    torques = np.einsum("kcb,sb->skc", estimate.base.regressor(q, v, a), draws)
    assert np.all(np.abs(model.std("inverse_dynamics", q, v, a) / torques.std(axis=0) - 1) < 0.06)
    masses = np.array([BaseModel(estimate.base, beta).mass_matrix(q[0]) for beta in draws[:1000]])
    assert np.all(np.abs(model.std("mass_matrix", q[0]) / masses.std(axis=0) - 1) < 0.12)  # five times 2.2 percent
    assert model.std("gravity_torque", q[0]).shape == (3,)
    with expect_error(MissingData):
        BaseModel(estimate.base, estimate.beta).std("mass_matrix", q)
    with expect_error(UnknownName, "part"):
        model.std("weight", q)  # type: ignore[arg-type]


def test_estimates_and_essential_parameters_give_their_model() -> None:
    """The torques are those of the base regressor, with the parameters that were taken out at zero too."""
    robot = arm()
    recording = record(robot, (0,), noise=0.5)
    estimate = dynid.identify(robot, recording, "ols", signals=EXACT)
    few = essential_parameters(observe(robot, recording, signals=EXACT), estimate, ratio=5.0)
    assert few.removed
    q, v, a = random_motion(robot, 2, 5)
    for known in (estimate, few.estimate):
        close(known.base_model().inverse_dynamics(q, v, a), known.base.regressor(q, v, a) @ known.beta, 1e-10)


def test_wrong_input_is_told_plainly() -> None:
    """Sizes and values."""
    base = dynid.base_parameters(arm())
    with expect_error(DataError):
        BaseModel(base, base.values()[1:])
    with expect_error(DataError):
        BaseModel(base, np.full(base.count, np.nan))
    with expect_error(DataError):
        BaseModel(base, base.values(), np.eye(2))
    with pytest.raises(ValueError, match="read-only"):
        BaseModel(base, base.values()).beta[0] = 1.0
