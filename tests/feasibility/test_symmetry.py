"""Left-right symmetry: against half the unknowns, for any link frames, and in words where it cannot hold."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid import DynidError
from dynid.errors import (
    ConflictingArguments,
    DataError,
    Duplicate,
    InvalidShape,
    InvalidType,
    InvalidValue,
    MissingData,
    NotFinite,
    UnknownName,
)
from dynid.feasibility import constraints
from dynid.feasibility.cone import ConeProgram
from dynid.feasibility.metrics import METRICS, Metric, distance, local_rows
from dynid.identification.pipeline import estimate_from
from dynid.robot.posture import link_placements
from tests.support.errors import Error, expect_error
from tests.support.random_robots import random_rotation
from tests.support.synthetic import observation_of

HUMAN = dynid.human.human_model("male", 1.8, 94.0)
NAMES = list(HUMAN.parameter_names)
# Of the prior, where bodies are to stay inside their cones.
WEIGHT = 1e4


def mirrored_motion(robot: dynid.Robot, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    q = np.column_stack([rng.normal(size=(60, 7)), rng.uniform(-1, 1, (60, robot.n))])
    q[:, 3:7] /= np.linalg.norm(q[:, 3:7], axis=1)[:, None]
    return q, rng.normal(size=(60, robot.nv)), 5 * rng.normal(size=(60, robot.nv))


def wrench_rows(robot: dynid.Robot, seed: int = 0) -> np.ndarray:
    """Rows of the base wrench for random motions (360, p): what a force plate sees."""
    return dynid.regressor(robot, *mirrored_motion(robot, seed))[:, :6].reshape(-1, len(robot.layout))


def turned(robot: dynid.Robot, seed: int) -> dynid.Robot:
    """The same robot with every link frame but the base's turned about its own origin."""
    rng = np.random.default_rng(seed)
    turns = [np.eye(4)] + [np.block([[random_rotation(rng), np.zeros((3, 1))], [0, 0, 0, 1]]) for _ in robot.joints]
    joints = [
        replace(j, placement=turns[j.parent].T @ j.placement, mount=j.mount @ turns[i + 1])
        for i, j in enumerate(robot.joints)
    ]
    links = [
        replace(x, inertia=dynid.inertia.move_inertia(x.inertia, h.T)) for x, h in zip(robot.links, turns, strict=True)
    ]
    return replace(robot, links=tuple(links), joints=tuple(joints))


def half(robot: dynid.Robot) -> np.ndarray:
    """Matrix (p, 100): all parameters from those of one side by hand, y the normal of the plane and frames parallel.

    A link of the middle has seven numbers, my = Ixy = Iyz = 0; the right side has the left one's with these turned.
    """
    odd = np.array([0, 0, 1, 0, 0, 1, 0, 0, 1, 0], dtype=bool)
    sign = np.where(odd, -1.0, 1.0)
    columns = []
    for k, name in enumerate(robot.parameter_names):
        link = robot.layout[k].owner
        which = NAMES.index(name) - NAMES.index(f"m_{link}")
        if link.startswith("right") or (not link.startswith("left") and odd[which]):
            continue
        column = np.zeros(len(NAMES))
        column[k] = 1.0
        if link.startswith("left"):
            column[NAMES.index(name.replace("left", "right"))] = sign[which]
        columns.append(column)
    return np.array(columns).T


def newton(H: np.ndarray, W: np.ndarray, y: np.ndarray, metric: Metric, weight: float, scale: np.ndarray) -> np.ndarray:
    """Minimiser over the unknowns of one side, by Newton steps on the smooth objective, as all parameters (p,)."""
    prior = HUMAN.parameters

    def cost(x: np.ndarray) -> float:
        return 0.5 * float(np.sum((W @ H @ x - y) ** 2)) + weight * distance(HUMAN, H @ x, prior, metric, scale)

    x = np.linalg.pinv(H) @ prior
    for _ in range(50):
        S, e = local_rows(HUMAN, H @ x, prior, metric, scale)
        gradient = H.T @ (W.T @ (W @ H @ x - y) + weight * S.T @ e)
        hessian = H.T @ (W.T @ W + weight * S.T @ S) @ H
        step = np.linalg.solve(hessian, -gradient)
        t = 1.0
        while t > 1e-9 and not cost(x + t * step) <= cost(x) + 1e-12 * abs(cost(x)):
            t *= 0.5
        x = x + t * step
        if np.abs(H @ step / scale).max() < 1e-12:
            break
    return np.asarray(H @ x)


@pytest.mark.parametrize("metric", METRICS)
def test_same_solution_as_with_half_the_unknowns(metric: Metric) -> None:
    """The oracle has the unknowns of one side only and knows neither cones nor equalities.

    The pull of the prior is strong enough to keep every body inside its cone, where both problems are smooth.
    """
    H = half(HUMAN)
    assert H.shape == (160, 4 * 7 + 6 * 10)
    rng = np.random.default_rng(0)
    W = wrench_rows(HUMAN)
    y = W @ (HUMAN.parameters * rng.uniform(0.95, 1.05, 160)) + 0.01 * rng.normal(size=len(W))
    rule = constraints.Symmetry.by_name(HUMAN)
    found = dynid.feasibility.fit_regressor(HUMAN, W, y, constraints=["full", rule], metric=metric, weight=WEIGHT)
    scale = found.feasible.scale
    expected = newton(H, W, y, metric, WEIGHT, scale)
    assert dynid.feasibility.feasible_set(HUMAN).slack(expected) > 1e-4
    # A minimum is flat: the solver's 1e-9 of an objective with exponential cones leaves more of the parameters open.
    assert np.abs((found.parameters - expected) / scale).max() < (2e-5 if metric == "entropic" else 1e-9)
    # Without the symmetry the result is another one.
    free = dynid.feasibility.fit_regressor(HUMAN, W, y, constraints="full", metric=metric, weight=WEIGHT)
    assert np.abs((free.parameters - expected) / scale).max() > 1e-3


def _cost(W: np.ndarray, y: np.ndarray, pi: np.ndarray, scale: np.ndarray) -> float:
    return 0.5 * float(np.sum((W @ pi - y) ** 2)) + 100.0 * distance(HUMAN, pi, HUMAN.parameters, "euclidean", scale)


def test_same_solution_as_with_half_the_unknowns_on_the_boundary() -> None:
    """A weaker prior: bodies touch their cones. The oracle has the same cones over the unknowns of one side."""
    H = half(HUMAN)
    rng = np.random.default_rng(0)
    W = wrench_rows(HUMAN)
    y = W @ (HUMAN.parameters * rng.uniform(0.95, 1.05, 160)) + 0.01 * rng.normal(size=len(W))
    rule = constraints.Symmetry.by_name(HUMAN)
    found = dynid.feasibility.fit_regressor(HUMAN, W, y, constraints=["full", rule], weight=100.0)
    assert any("pseudo-inertia" in label for label in found.active)
    plain = dynid.feasibility.feasible_set(HUMAN)
    scale = plain.scale
    program = ConeProgram(H.shape[1], np.abs(np.linalg.pinv(H)) @ scale)
    for block in plain.blocks:
        program.require(block.substituted(np.zeros(160), H))
    rows = np.vstack([W @ H, 10.0 * H / scale[:, None]])
    program.minimise_squares(rows, np.concatenate([y, 10.0 * HUMAN.parameters / scale]))
    expected = H @ program.solve(tolerance=1e-11).require("the oracle").x
    # In SI units; the fit's own tolerance is 1e-9 of its objective.
    assert np.abs(found.parameters - expected).max() < 1e-6
    assert found.solution.objective == pytest.approx(_cost(W, y, expected, scale), rel=1e-8)


@pytest.mark.parametrize("seed", [0, 1])
def test_frames_may_lie_in_any_direction(seed: int) -> None:
    """The reflections follow from the skeleton: the model stays symmetric, and a body that is not breaks the rule."""
    robot = turned(HUMAN, seed)
    possible = dynid.feasibility.feasible_set(robot, constraints.Symmetry.by_name(robot))
    assert possible.violations(robot.parameters, 1e-11) == []
    broken = np.array(robot.parameters)
    broken[robot.parameter_names.index("my_left_shank")] += 0.01
    assert [v.split(":")[0] for v in possible.violations(broken)] == ["right_shank"]
    broken = np.array(robot.parameters)
    first = robot.parameter_names.index("m_head")
    shifted = np.eye(4)
    place = link_placements(robot)[robot.link_index("head")][:3, :3]
    shifted[:3, 3] = place.T @ [0, 0.01, 0]
    broken[first : first + 10] = dynid.inertia.move_inertia(broken[first : first + 10], shifted)
    assert [v.split(": broken")[0] for v in possible.violations(broken)] == ["head: its own mirror image"]


def test_solution_does_not_depend_on_the_frames() -> None:
    """The fit of a turned skeleton is the turned fit, in a metric that has no frame of its own."""
    other = turned(HUMAN, 3)
    rng = np.random.default_rng(2)
    noise = rng.normal(size=360)
    truth = HUMAN.parameters * rng.uniform(0.95, 1.05, 160)
    W = wrench_rows(HUMAN)
    y = W @ truth + noise
    fits = []
    for robot in (HUMAN, other):
        rule = constraints.Symmetry.by_name(robot)
        found = dynid.feasibility.fit_regressor(
            robot, wrench_rows(robot), y, constraints=["full", rule], metric="pullback", weight=10.0
        )
        fits.append(robot.with_parameters(found.parameters))
    q, v, a = mirrored_motion(HUMAN, 9)
    ours, theirs = (dynid.inverse_dynamics(robot, q, v, a) for robot in fits)
    assert np.abs(ours - theirs).max() < 1e-5 * np.abs(theirs).max()


def test_rows_of_one_link() -> None:
    """A link of the middle has three equalities, a pair ten."""
    blocks = constraints.Symmetry([("head", "head"), ("left_foot", "right_foot")]).blocks(HUMAN)
    assert [b.rows for b in blocks] == [3, 10]
    assert [b.label for b in blocks] == ["head: its own mirror image", "right_foot: mirror image of left_foot"]
    touched = {NAMES[c] for c in blocks[0].matrix.indices}
    assert touched == {"my_head", "Ixy_head", "Iyz_head"}


def test_agrees_with_mirrored() -> None:
    """With parallel frames a pair is what `Mirrored` says of one link."""
    pair = constraints.Symmetry({"left_foot": "right_foot"}).blocks(HUMAN)[0]
    single = constraints.Mirrored("right_foot", "left_foot", "y").blocks(HUMAN)[0]
    np.testing.assert_allclose(pair.matrix.toarray(), single.matrix.toarray(), atol=1e-15)


def test_planes_by_name_and_by_vector() -> None:
    by_name = constraints.Symmetry([("left_hand", "right_hand")], "y").blocks(HUMAN)[0].matrix.toarray()
    by_vector = constraints.Symmetry([("left_hand", "right_hand")], [0, -3.0, 0]).blocks(HUMAN)[0].matrix.toarray()
    np.testing.assert_allclose(by_name, by_vector, atol=1e-15)
    oblique = constraints.Symmetry([("head", "head")], [1.0, 1.0, 0]).blocks(HUMAN)[0]
    assert oblique.rows == 3 and np.linalg.matrix_rank(oblique.matrix.toarray()) == 3


def test_a_reflection_of_ones_own() -> None:
    rng = np.random.default_rng(0)
    h = np.eye(4)
    h[:3, :3] = random_rotation(rng) @ np.diag([1, 1, -1.0])
    h[:3, 3] = [0.1, -0.2, 0.3]
    rule = constraints.Symmetry([("left_hand", "right_hand")], placements={"right_hand": h})
    single = constraints.Mirrored("right_hand", "left_hand", placement=h)
    np.testing.assert_allclose(
        rule.blocks(HUMAN)[0].matrix.toarray(), single.blocks(HUMAN)[0].matrix.toarray(), atol=1e-12
    )


def test_contradictions_are_named() -> None:
    laws = [
        "full",
        constraints.Symmetry.by_name(HUMAN),
        constraints.Fixed({"m_left_thigh": 10.0}),
        constraints.Mass(lower=11.0, links="right_thigh"),
    ]
    W = wrench_rows(HUMAN)
    with expect_error(DynidError, "constraints", code="infeasible") as error:
        dynid.feasibility.fit_regressor(HUMAN, W, W @ HUMAN.parameters, constraints=laws)
    for part in ("m_left_thigh = 10", "mass of right_thigh >= 11", "right_thigh: mirror image of left_thigh"):
        assert part in str(error.value)
    assert "head" not in str(error.value)


def test_goes_with_a_known_weight() -> None:
    W = wrench_rows(HUMAN)
    y = W @ (1.1 * HUMAN.parameters)
    laws = ["full", constraints.Symmetry.by_name(HUMAN), constraints.Mass(94.0, 94.0)]
    found = dynid.feasibility.fit_regressor(HUMAN, W, y, constraints=laws, metric="entropic", weight=1.0).parameters
    masses = {n: x for n, x in zip(NAMES, found, strict=True) if n.startswith("m_")}
    assert sum(masses.values()) == pytest.approx(94.0, abs=1e-6)
    for name, mass in masses.items():
        assert mass == pytest.approx(masses[name.replace("left", "right")], abs=1e-7)


def test_identification_gains_by_it() -> None:
    """A person from the wrench alone: errors and standard deviations of the base parameters become a fifth smaller."""
    base = dynid.base_parameters(HUMAN, channels="wrench")
    truth = base.values(dynid.human.human_model("male", 1.7, 94.0).parameters)
    rng = np.random.default_rng(0)
    q = np.column_stack([np.zeros((300, 6)), np.ones(300), rng.uniform(-0.8, 0.8, (300, HUMAN.n))])
    v, a = rng.normal(size=(2, 300, HUMAN.nv))
    W = base.regressor(q, v, 5 * a)
    seen = observation_of(base, W, W @ truth + rng.normal(size=W.shape[:2]))
    error, sigma = [], []
    for laws in (["full"], ["full", constraints.Symmetry.by_name(HUMAN)]):
        found = estimate_from(seen, "feasible", constraints=laws, metric="entropic", weight=1.0)
        error.append(np.linalg.norm(found.beta - truth))
        sigma.append(np.linalg.norm(found.std))
        # Biased a little by the prior: nearly all within three standard deviations.
        assert np.mean(np.abs(found.beta - truth) <= 3 * found.std) > 0.95
    assert error[1] < 0.85 * error[0] and sigma[1] < 0.85 * sigma[0]


@pytest.mark.parametrize(
    ("rule", "error"),
    [
        (constraints.Symmetry([("left_foot", "tail")]), (UnknownName, "")),
        (
            constraints.Symmetry([("left_foot", "right_foot"), ("left_foot", "left_foot")]),
            (Duplicate, "pairs"),
        ),
        (constraints.Symmetry(["left_foot"]), (InvalidType, "pairs")),  # type: ignore[list-item]
        (constraints.Symmetry([("head", "head")], "w"), (UnknownName, "plane")),
        (constraints.Symmetry([("head", "head")], [0, 0, 0]), (InvalidValue, "plane")),
        (constraints.Symmetry([("head", "head")], placements={"head": np.eye(4)}), (InvalidValue, "placements")),
        (
            constraints.Symmetry([("head", "head")], placements={"tail": np.eye(4)}),
            (UnknownName, "placements"),
        ),
    ],
)
def test_wrong_rules_are_explained(rule: constraints.Symmetry, error: Error) -> None:
    with expect_error(*error):
        dynid.feasibility.feasible_set(HUMAN, rule)


def test_names_without_a_partner() -> None:
    lonely = replace(HUMAN, links=tuple(replace(x, name=x.name.replace("right_hand", "hook")) for x in HUMAN.links))
    with expect_error(MissingData):
        constraints.Symmetry.by_name(lonely)
    with expect_error(UnknownName, "pairs"):
        constraints.Symmetry.by_name(HUMAN, left="links", right="rechts")


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"W": np.ones((3, 5))}, (InvalidShape, "W")),
        ({"y": np.ones(2)}, (DataError, "")),
        ({"W": np.full((360, 160), np.nan)}, (NotFinite, "W")),
        ({"std": -1.0}, (InvalidValue, "std")),
        ({"std": np.ones(7)}, (InvalidShape, "std")),
        ({"weight": 1.0, "bound": 1.0}, (ConflictingArguments, "weight")),
        ({"weight": -1.0}, (InvalidValue, "weight")),
        ({"bound": 0.0}, (InvalidValue, "bound")),
        ({"unit": "feet"}, (UnknownName, "unit")),
    ],
)
def test_regressor_given_wrongly(options: dict[str, object], error: Error) -> None:
    given = {"W": wrench_rows(HUMAN), "y": np.zeros(360), **options}
    with expect_error(*error):
        dynid.feasibility.fit_regressor(HUMAN, **given)  # type: ignore[arg-type]


def test_std_weighs_rows() -> None:
    """Rows divided by their std beforehand give the same fit."""
    W = wrench_rows(HUMAN)
    rng = np.random.default_rng(4)
    y, std = W @ HUMAN.parameters + rng.normal(size=360), rng.uniform(0.5, 2, 360)
    a = dynid.feasibility.fit_regressor(HUMAN, W, y, std=std, weight=10.0)
    b = dynid.feasibility.fit_regressor(HUMAN, W / std[:, None], y / std, weight=10.0)
    np.testing.assert_allclose(a.parameters, b.parameters, atol=1e-7)
