"""Feasibility queries (test, nearest, standard parameters) against cvxpy and a published example."""

from __future__ import annotations

from typing import Any

import cvxpy as cp
import numpy as np
import pytest

import dynid
from dynid import DataError, Robot
from dynid.errors import Infeasible, InvalidValue, UnknownName
from dynid.feasibility.constraints import Ellipsoids, Fixed, Inertia, Linear, Mass, Signs
from dynid.feasibility.metrics import add_distance, distance
from dynid.feasibility.queries import is_feasible, nearest_feasible, standard_parameters
from dynid.feasibility.sets import feasible_set
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot import Joint, Link
from tests.support import textbook
from tests.support.errors import expect_error
from tests.support.feasible_robots import random_bodies, robot_and_base
from tests.support.random_robots import random_robot
from tests.support.synthetic import arm
from tests.support.textbook import best, bodies, laws

ARM = arm()
BASE = base_parameters(ARM)
NAMES = list(ARM.parameter_names)
LINKS = [ARM.links[i].name for i in ARM.parameter_links]

# Sousa 2014, Table 6.1: the combinations of Yoshida and Khalil (2000), two vectors that differ in the first value, and
# the nearest feasible one to the second.
YOSHIDA = [
    ({"Iyy_1": 1, "Iyy_2": 1, "Iyy_3": 1, "m_3": 1}, 6.4, 6.2, 6.200951),
    ({"Ixx_2": 1, "Iyy_2": -1, "m_3": -1}, -5.48, -5.48, -5.479049),
    ({"Ixy_2": 1}, 0.072, 0.072, 0.071966),
    ({"Ixz_2": 1, "mz_3": -1}, -0.087, -0.087, -0.086967),
    ({"Iyz_2": 1}, 0.051, 0.051, 0.050999),
    ({"Izz_2": 1, "m_3": 1}, 5.6, 5.6, 5.6),
    ({"mx_2": 1, "m_3": 1}, 6.5, 6.5, 6.5),
    ({"my_2": 1}, -0.00075, -0.00075, -0.00075),
    ({"Ixx_3": 1, "Iyy_3": -1}, -0.72, -0.72, -0.719049),
    ({"Ixy_3": 1}, -0.0098, -0.0098, -0.009819),
    ({"Ixz_3": 1}, -0.0098, -0.0098, -0.009817),
    ({"Iyz_3": 1}, -0.00045, -0.00045, -0.00045),
    ({"Izz_3": 1}, 0.72, 0.72, 0.72),
    ({"mx_3": 1}, 0.95, 0.95, 0.949999),
    ({"my_3": 1}, 0.015, 0.015, 0.014966),
]
T1, T2, CORRECTED = (np.array([row[k] for row in YOSHIDA]) for k in (1, 2, 3))
# The table's own laws: no margin.
SEMI = [Inertia("semi", margin=0.0)]


def yoshida() -> BaseParameters:
    """A vertical axis along y, then two parallel ones a metre apart; nothing known of the bodies."""
    along = np.eye(4)
    along[0, 3] = 1.0
    places, axes = (np.eye(4), np.eye(4), along), (1, 2, 2)
    robot = Robot(
        name="yoshida",
        links=(Link("base", np.zeros(10)), *(Link(f"{k}", np.zeros(10)) for k in (1, 2, 3))),
        joints=tuple(Joint(f"j{k + 1}", "revolute", k, places[k], np.eye(3)[axes[k]], np.eye(4)) for k in range(3)),
        gravity=np.array([0, -9.81, 0]),
    )
    base = base_parameters(robot)
    table = np.zeros((15, 30))
    for i, (row, *_) in enumerate(YOSHIDA):
        for name, weight in row.items():
            table[i, robot.parameter_names.index(name)] = weight
    np.testing.assert_allclose(base.matrix, table, atol=1e-9)
    return base


def test_verdicts_of_yoshida_and_khalil() -> None:
    base = yoshida()
    for unit in ("relative", "SI"):
        first, second = (is_feasible(base, t, SEMI, unit=unit) for t in (T1, T2))
        assert first.status == "feasible"
        assert second.status == "infeasible"
        assert first
        assert not second
    # The digest's margins: a shift of the whole matrix by t.
    assert is_feasible(base, T1, SEMI, unit="SI").margin == pytest.approx(0.0657, abs=1e-4)
    assert is_feasible(base, T2, SEMI, unit="SI").margin == pytest.approx(-9.5e-4, abs=1e-5)
    assert is_feasible(base, CORRECTED, SEMI, rounding=1e-6).status != "infeasible"


def test_correction_of_yoshida_and_khalil() -> None:
    base = yoshida()
    found = nearest_feasible(base, T2, SEMI)
    assert found.distance == pytest.approx(1.649e-3, abs=5e-7)
    np.testing.assert_allclose(found.beta, CORRECTED, atol=1e-6)
    np.testing.assert_allclose(base.matrix @ found.parameters, found.beta, atol=1e-12)
    assert nearest_feasible(base, T1, SEMI).distance < 1e-7
    # Off the boundary by 1e-6 in SI units, as the thesis does it.
    off = nearest_feasible(base, T2, [Inertia("semi", margin=1e-6, relative=False)])
    assert off.distance == pytest.approx(1.651e-3, abs=1e-6)


def nearest_by_cvxpy(base: BaseParameters, given: Any, notion: str, margin: float, root: Any = None) -> float:
    """Squared distance to the possible base values by another solver."""
    scale = feasible_set(base.robot, notion).scale
    u = cp.Variable(len(scale))
    root = np.eye(len(given)) if root is None else root
    cost = cp.sum_squares(root @ (base.matrix @ cp.multiply(scale, u) - given))
    rules = laws(base.robot, cp.multiply(scale, u), notion, margin)
    values = [best(cp.Problem(cp.Minimize(cost), rules), solver) for solver in ("CLARABEL", "CVXOPT")]
    return float(np.nanmin(values))


def off_base(base: BaseParameters, seed: int) -> Any:
    """Base values of a robot with one friction coefficient and some inertia below zero."""
    rng = np.random.default_rng(seed)
    pi = random_bodies(base.robot, rng, 0.05)
    return base.values(pi) + 0.2 * rng.normal(size=base.count)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("notion", ["full", "semi"])
def test_nearest_is_nearest(seed: int, notion: str) -> None:
    """No other solver comes closer; what is found is possible, and is its own nearest."""
    base = BASE if seed < 3 else robot_and_base(seed, 3)[1]
    given = off_base(base, seed)
    rules = [Inertia(notion, margin=1e-4), Signs()]  # type: ignore[arg-type]
    found = nearest_feasible(base, given, rules)
    theirs = np.sqrt(nearest_by_cvxpy(base, given, notion, 1e-4))
    # The nearest point may be one that only ever heavier bodies reach: solvers stop before.
    assert found.distance == pytest.approx(theirs, abs=1e-4)
    assert found.distance == pytest.approx(np.linalg.norm(found.beta - given), abs=1e-12)
    size = max(1.0, np.abs(found.parameters / feasible_set(base.robot, notion).scale).max())
    assert textbook.slack(base.robot, found.parameters, notion, 1e-4) > -1e-8 * size
    np.testing.assert_allclose(base.matrix @ found.parameters, found.beta, atol=1e-9 * size)
    again = nearest_feasible(base, found.beta, rules)
    np.testing.assert_allclose(again.beta, found.beta, atol=1e-4)
    assert again.distance < 1e-4
    assert is_feasible(base, found.beta, [Inertia(notion, margin=0.0), Signs(-1e-6)])  # type: ignore[arg-type]
    if found.distance > 1e-3:
        assert found.active


@pytest.mark.parametrize("seed", range(3))
def test_possible_values_are_their_own_nearest(seed: int) -> None:
    base = robot_and_base(seed, 3)[1]
    beta = base.values(random_bodies(base.robot, np.random.default_rng(seed), 0.05))
    found = nearest_feasible(base, beta)
    assert found.distance < 1e-7
    np.testing.assert_allclose(found.beta, beta, atol=1e-7)


@pytest.mark.parametrize("seed", range(4))
def test_nearest_in_the_metric_of_a_covariance(seed: int) -> None:
    rng = np.random.default_rng(seed)
    given = off_base(BASE, seed)
    root = rng.normal(size=(BASE.count, BASE.count)) * 0.3 + np.eye(BASE.count)
    covariance = root @ root.T
    found = nearest_feasible(BASE, given, [Inertia(margin=1e-4), Signs()], covariance=covariance)
    off = found.beta - given
    assert found.distance == pytest.approx(np.sqrt(off @ np.linalg.solve(covariance, off)), rel=1e-8)
    root = np.linalg.cholesky(np.linalg.inv(covariance)).T
    assert found.distance == pytest.approx(np.sqrt(nearest_by_cvxpy(BASE, given, "full", 1e-4, root)), abs=1e-5)
    plain = nearest_feasible(BASE, given, [Inertia(margin=1e-4), Signs()])
    assert np.linalg.norm(off) >= plain.distance - 1e-7


def test_nearest_takes_the_prior_among_equals() -> None:
    """Dependent parameters follow the prior where base values allow it."""
    base = BASE
    prior = random_bodies(ARM, np.random.default_rng(5), 0.1)
    found = nearest_feasible(base, base.values(prior), prior=prior)
    # Base values count first: of the rest a hundredth of the typical size is resolved.
    off = (found.parameters - prior) / feasible_set(ARM).scale
    assert np.abs(off).max() < 0.02
    assert np.abs((nearest_feasible(base, base.values(prior)).parameters - prior) / feasible_set(ARM).scale).max() > 1
    own = nearest_feasible(base, base.values())
    assert np.abs((own.parameters - ARM.parameters) / feasible_set(ARM).scale).max() < 0.02


def test_nearest_standard_vector() -> None:
    pi = np.array(ARM.parameters)
    found = nearest_feasible(ARM, pi)
    assert found.distance < 1e-6
    pi[NAMES.index("fv_joint2")] = -0.75
    found = nearest_feasible(ARM, pi)
    # Friction is alone in its constraint: only it moves, to zero.
    assert found.distance == pytest.approx(0.75, abs=1e-6)
    assert found.active == ("fv_joint2 not negative",)
    np.testing.assert_array_equal(found.beta, found.parameters)
    pi[NAMES.index("fv_joint2")] = 0.0
    np.testing.assert_allclose(found.parameters, pi, atol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_nearest_body_drops_negative_eigenvalues(seed: int) -> None:
    """One link, its pseudo-inertia measured by its entries: the nearest is known in closed form."""
    rng = np.random.default_rng(seed)
    robot = random_robot(seed, 1)
    given = rng.normal(size=10)
    values, vectors = np.linalg.eigh(textbook.pseudo(given))
    closed = (vectors * np.maximum(values, 0)) @ vectors.T
    # The Frobenius norm of the pseudo-inertia as a metric of the ten numbers.
    maps = textbook.maps("full").reshape(10, -1)
    found = nearest_feasible(robot, given, Inertia(margin=0.0), covariance=np.linalg.inv(maps @ maps.T))
    np.testing.assert_allclose(textbook.pseudo(found.parameters), closed, atol=1e-4)
    assert found.distance == pytest.approx(np.linalg.norm(np.minimum(values, 0)), abs=1e-5)


def test_nearest_within_a_union_of_ellipsoids() -> None:
    """Constraints with unknowns of their own work in every query."""
    ball = np.diag([-1.0, -1.0, -1.0, 0.25])
    rule = Ellipsoids(LINKS[2], [ball, np.diag([-1.0, -4.0, -4.0, 0.36])])
    found = nearest_feasible(BASE, BASE.values(), ["full", rule])
    assert found.distance < 1e-6
    pi = standard_parameters(BASE, BASE.values(), ["full", rule])
    np.testing.assert_allclose(BASE.values(pi), BASE.values(), atol=1e-5)
    far = np.array(ARM.parameters)
    far[NAMES.index(f"mx_{LINKS[2]}")] *= 20
    assert is_feasible(BASE, BASE.values(), ["full", rule]).status == "feasible"


def test_standard_vectors_feasible_virtual_and_not() -> None:
    own = is_feasible(ARM)
    assert (own.status, own.virtual, own.reasons) == ("feasible", False, ())
    assert own.margin == pytest.approx(textbook.slack(ARM, ARM.parameters, "full", 1e-6))
    # Mass moved along a direction without effect on torques: infeasible itself, with feasible base parameters.
    hidden = np.array(ARM.parameters)
    change = BASE.join(np.zeros(BASE.count), 5.0 * np.eye(len(BASE.dependent))[0])
    for k in range(len(BASE.dependent)):
        change = BASE.join(np.zeros(BASE.count), -5.0 * np.eye(len(BASE.dependent))[k])
        if textbook.slack(ARM, hidden + change) < -1e-3:
            break
    virtual = is_feasible(ARM, hidden + change)
    assert virtual.status == "feasible"
    assert virtual.virtual
    assert virtual.reasons
    assert virtual.summary().startswith("virtually feasible (margin ")
    np.testing.assert_allclose(BASE.values(virtual.parameters), BASE.values(), atol=1e-8)
    assert textbook.slack(ARM, virtual.parameters, "full", 1e-6) > 0
    # A friction coefficient is what it is.
    infeasible = np.array(ARM.parameters)
    infeasible[NAMES.index("fc_joint1")] = -0.5
    no = is_feasible(ARM, infeasible)
    assert (no.status, no.virtual) == ("infeasible", False)
    assert no.reasons == ("fc_joint1 not negative: broken by 0.5",)
    assert no.certificate is not None
    assert no.certificate.holds
    np.testing.assert_array_equal(no.parameters, infeasible)
    # On the boundary nobody can say.
    edge = np.array(ARM.parameters)
    edge[NAMES.index("fc_joint1")] = 0.0
    assert is_feasible(ARM, edge).status == "undecided"
    edge[NAMES.index("fc_joint1")] = 5e-8
    assert is_feasible(ARM, edge).status == "undecided"
    assert is_feasible(ARM, edge, tolerance=1e-9).status == "feasible"


def test_standard_vectors_and_equalities() -> None:
    assert is_feasible(ARM, None, ["full", Mass(6.0, 6.0)]).status == "feasible"
    found = is_feasible(ARM, None, ["full", Fixed({"fv_joint1": 1.5})])
    assert found.status == "infeasible"
    assert found.reasons == ("fv_joint1 = 1.5: broken by 0.5",)


def test_base_values_against_equalities() -> None:
    """An identifiable parameter fixed to another value excludes these base values; the proof names it."""
    rules = ["full", Fixed({"fv_joint1": 1.5})]
    found = is_feasible(BASE, BASE.values(), rules)
    assert found.status == "infeasible"
    assert found.certificate is not None
    assert found.reasons == ("fv_joint1 = 1.5",)
    assert "infeasible" in found.summary()
    beta = BASE.values()
    beta[BASE.names.index("fv_joint1")] = 1.5
    assert is_feasible(BASE, beta, rules).status == "feasible"
    assert is_feasible(BASE, BASE.values(), ["full", Mass(20.0, 20.0)]).status == "feasible"
    known = Linear({"fv_joint1": 1.0, "fv_joint2": 1.0}, 2.0, 2.0)
    assert is_feasible(BASE, BASE.values(), ["full", known]).status == "feasible"


def test_rounding_gives_every_value_its_half_digit() -> None:
    """Values of a boundary robot rounded to two decimals: infeasible as printed, feasible within rounding."""
    beta = BASE.values()
    beta[BASE.names.index("fc_joint2")] = -0.004
    assert is_feasible(BASE, beta).status == "infeasible"
    assert is_feasible(BASE, beta, rounding=0.005).status == "feasible"
    close = is_feasible(BASE, beta, rounding=0.003)
    assert close.status == "infeasible"
    assert close.margin == pytest.approx(-0.001, abs=1e-7)
    found = is_feasible(BASE, beta, rounding=0.005)
    assert np.abs(BASE.values(found.parameters) - beta).max() <= 0.005 + 1e-9


def test_margins_relative_and_in_si_units() -> None:
    """Half a newton metre of Coulomb friction short is half a unit in both; bodies count in their own size."""
    beta = BASE.values()
    beta[BASE.names.index("fc_joint2")] = -0.5
    for unit in ("relative", "SI"):
        assert is_feasible(BASE, beta, unit=unit).margin == pytest.approx(-0.5, abs=1e-7)
    relative, absolute = (is_feasible(ARM, None, Inertia(margin=0.0), unit=unit) for unit in ("relative", "SI"))
    assert relative.margin == pytest.approx(textbook.slack(ARM, ARM.parameters), rel=1e-9)
    eigenvalues = [np.linalg.eigvalsh(textbook.pseudo(ARM.parameters[i : i + 10]))[0] for i in bodies(ARM)]
    assert absolute.margin == pytest.approx(min(eigenvalues), rel=1e-9)


@pytest.mark.parametrize("notion", ["full", "semi"])
def test_margin_is_the_largest_common_slack(notion: str) -> None:
    """max t with every law at least t inside, by cvxpy."""
    base = robot_and_base(11, 2)[1]
    beta = base.values(random_bodies(base.robot, np.random.default_rng(0), 0.1))
    for given in (beta, 1.2 * beta, beta - 0.15):
        scale = feasible_set(base.robot, notion).scale
        u, t = cp.Variable(len(scale)), cp.Variable()
        pi = cp.multiply(scale, u)
        rules: list[Any] = [base.matrix @ pi == given, t <= 1]
        for first, unit in zip(bodies(base.robot), textbook.units(base.robot, notion), strict=True):
            maps = textbook.maps(notion)
            matrix = sum(pi[first + k] * maps[k] for k in range(10))
            rules.append(matrix - (1e-6 + t) * unit >> 0)
        rules += [pi[i] >= t for i in textbook.signed(base.robot)]
        theirs = best(cp.Problem(cp.Maximize(t), rules), "CLARABEL")
        found = is_feasible(base, given, notion)
        # Both searches end where bodies get too heavy for them.
        assert found.margin == pytest.approx(theirs, abs=1e-4)
        assert found.status == ("feasible" if theirs > 0 else "infeasible")


def test_reasons_name_the_guilty() -> None:
    beta = BASE.values()
    beta[BASE.names.index("fv_joint3")] = -0.1
    found = is_feasible(BASE, beta)
    assert found.reasons == ("fv_joint3 not negative",)
    assert found.summary().splitlines() == [
        f"infeasible (margin {found.margin:.3g}, undecided within 1e-07)",
        "  fv_joint3 not negative",
    ]
    # The inertia of the last link about its own axis cannot be below zero.
    beta = BASE.values()
    (k,) = [i for i, n in enumerate(BASE.names) if n.startswith(f"Izz_{LINKS[2]}")]
    beta[k] = -0.1
    found = is_feasible(BASE, beta)
    assert found.status == "infeasible"
    assert found.reasons[0].startswith(f"{LINKS[2]}: pseudo-inertia positive definite")


@pytest.mark.parametrize("notion", ["full", "semi"])
@pytest.mark.parametrize("metric", ["euclidean", "pullback", "entropic"])
@pytest.mark.parametrize("seed", range(2))
def test_standard_parameters_are_closest(seed: int, metric: Any, notion: str) -> None:
    """Base values kept, possible, and no other such vector nearer to the prior (cvxpy)."""
    robot = ARM if seed == 0 else random_robot(8, 2, rotors=True)
    base = base_parameters(robot)
    rng = np.random.default_rng(seed)
    beta, prior = base.values(random_bodies(robot, rng, 0.08)), random_bodies(robot, rng, 0.08)
    pi = standard_parameters(base, beta, notion, prior=prior, metric=metric)
    size = np.linalg.norm(beta)
    assert np.linalg.norm(base.values(pi) - beta) <= 1.01e-6 * size
    assert textbook.slack(robot, pi, notion, 1e-6) > -1e-7
    scale = feasible_set(robot, notion).scale
    ours = textbook_distance(robot, pi, prior, metric, scale)
    assert distance(robot, pi, prior, metric, scale) == pytest.approx(ours, rel=1e-9, abs=1e-12)
    u = cp.Variable(len(scale))
    unknown = cp.multiply(scale, u)
    miss = base.matrix @ unknown - beta
    rules = [*laws(robot, unknown, notion, 1e-6), cp.norm(miss / size) <= 1e-6]
    theirs = best(cp.Problem(cp.Minimize(cvx_distance(robot, unknown, prior, metric, scale)), rules), "CLARABEL")
    assert ours == pytest.approx(theirs, rel=1e-4, abs=1e-6)


def _roots(robot: Robot, prior: Any) -> list[tuple[int, Any]]:
    return [(i, np.linalg.inv(np.linalg.cholesky(textbook.pseudo(prior[i : i + 10])))) for i in bodies(robot)]


def _rest(robot: Robot) -> list[int]:
    """Drive parameters, which are measured by their difference."""
    return [i for i, p in enumerate(robot.layout) if not p.inertial]


def textbook_distance(robot: Robot, pi: Any, prior: Any, metric: str, scale: Any) -> float:
    """Lee, Wensing and Park (2020): 1/2 tr((P0^-1 dP)^2), and tr(P0^-1 P) - log det(P0^-1 P) - 4."""
    if metric == "euclidean":
        return 0.5 * float(np.sum(((pi - prior) / scale) ** 2))
    rest = _rest(robot)
    out = 0.5 * float(np.sum(((pi - prior)[rest] / scale[rest]) ** 2))
    for first in bodies(robot):
        before, now = (textbook.pseudo(x[first : first + 10]) for x in (prior, pi))
        ratio = np.linalg.solve(before, now)
        if metric == "pullback":
            change = ratio - np.eye(4)
            out += 0.5 * float(np.trace(change @ change))
        else:
            out += float(np.trace(ratio) - np.log(np.linalg.det(ratio)) - 4)
    return float(out)


def cvx_distance(robot: Robot, pi: Any, prior: Any, metric: str, scale: Any) -> Any:
    if metric == "euclidean":
        return 0.5 * cp.sum_squares(cp.multiply(1 / scale, pi - prior))
    rest = _rest(robot)
    out = 0.5 * cp.sum_squares(cp.multiply(1 / scale[rest], pi[rest] - prior[rest])) if rest else 0.0
    maps = textbook.maps("full")
    for first, inverse in _roots(robot, prior):
        white = sum(pi[first + k] * (inverse @ maps[k] @ inverse.T) for k in range(10))
        if metric == "pullback":
            out += 0.5 * cp.sum_squares(white - np.eye(4))
        else:
            out += cp.trace(white) - cp.log_det(white) - 4
    return out


def test_standard_parameters_return_the_prior_where_it_fits() -> None:
    for metric in ("euclidean", "pullback", "entropic"):
        pi = standard_parameters(BASE, BASE.values(), metric=metric)
        np.testing.assert_allclose(pi, ARM.parameters, atol=2e-5)


def test_standard_parameters_of_boundary_values() -> None:
    """Nearest values lie on the boundary: the slack makes room."""
    beta = BASE.values()
    beta[BASE.names.index("fc_joint2")] = -0.3
    edge = nearest_feasible(BASE, beta).beta
    pi = standard_parameters(BASE, edge, slack=1e-4)
    assert np.linalg.norm(BASE.values(pi) - edge) <= 1.01e-4 * np.linalg.norm(edge)
    with pytest.raises(dynid.DynidError):
        standard_parameters(BASE, beta)


def test_wrong_questions_are_refused_in_words() -> None:
    beta = BASE.values()
    with expect_error(DataError):
        is_feasible(BASE, beta[:-1])
    with expect_error(DataError):
        nearest_feasible(ARM, beta)
    with expect_error(DataError):
        nearest_feasible(BASE, np.where(np.arange(len(beta)) == 2, np.nan, beta))
    with expect_error(InvalidValue, "covariance"):
        nearest_feasible(BASE, beta, covariance=-np.eye(len(beta)))
    with expect_error(DataError):
        nearest_feasible(BASE, beta, covariance=np.eye(3))
    with expect_error(UnknownName, "metric"):
        standard_parameters(BASE, beta, metric="manhattan")  # type: ignore[arg-type]
    with expect_error(Infeasible, "prior"):
        standard_parameters(BASE, beta, metric="pullback", prior=-ARM.parameters)
    with expect_error(InvalidValue, "slack"):
        standard_parameters(BASE, beta, slack=0.0)
    with expect_error(InvalidValue, "rounding"):
        is_feasible(BASE, beta, rounding=-0.1)
    with expect_error(UnknownName, "unit"):
        is_feasible(BASE, beta, unit="imperial")  # type: ignore[arg-type]


def test_zero_base_values_are_on_the_boundary() -> None:
    """The massless robot is the limit of feasible ones."""
    found = is_feasible(BASE, np.zeros(BASE.count), [Inertia(margin=0.0), Signs()])
    assert found.status == "undecided"
    assert abs(found.margin) <= found.tolerance
    assert nearest_feasible(BASE, np.zeros(BASE.count), [Inertia(margin=0.0), Signs()]).distance < 1e-6


def test_distances_enter_a_program_as_they_are() -> None:
    """The program's objective is the distance, up to the constant of the divergence."""
    possible = feasible_set(ARM, "full")
    prior = random_bodies(ARM, np.random.default_rng(3), 0.08)
    for metric in ("euclidean", "pullback", "entropic"):
        program = possible.program()
        program.minimise_squares(np.diag(1 / possible.scale), np.array(ARM.parameters) / possible.scale)
        add_distance(program, possible, prior, metric, 2.0)  # type: ignore[arg-type]
        found = program.solve()
        pi = found.x[: possible.size]
        constant = 4 * len(LINKS) if metric == "entropic" else 0
        expected = 0.5 * np.sum(((pi - ARM.parameters) / possible.scale) ** 2)
        expected += 2 * (textbook_distance(ARM, pi, prior, metric, possible.scale) + constant)
        assert found.objective == pytest.approx(expected, rel=1e-6)
