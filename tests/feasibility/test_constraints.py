"""Every constraint by vectors that keep it and vectors that break it, and in words where it is given wrongly."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import DataError, InvalidShape, InvalidType, InvalidValue, MissingArgument, NotApplicable, UnknownName
from dynid.feasibility.constraints import (
    BaseBounds,
    Bounds,
    CenterOfMass,
    Constraint,
    Ellipsoids,
    Fixed,
    Inertia,
    Linear,
    Mass,
    Mirrored,
    Signs,
    constraint_set,
    link_scales,
)
from dynid.feasibility.fit import fit
from dynid.feasibility.queries import is_feasible
from dynid.feasibility.sets import feasible_set
from dynid.parameters.base import base_parameters
from tests.support import textbook
from tests.support.errors import Error, expect_error
from tests.support.random_robots import random_inertia, random_placement, random_robot
from tests.support.synthetic import arm

ARM = arm()
LINKS = [ARM.links[i].name for i in ARM.parameter_links]
NAMES = list(ARM.parameter_names)


def values(**changed: float) -> Any:
    """The arm's own parameters with some of them changed by name."""
    pi = np.array(ARM.parameters)
    for name, value in changed.items():
        pi[NAMES.index(name)] = value
    return pi


def with_body(link: str, body: Any) -> Any:
    pi = np.array(ARM.parameters)
    first = NAMES.index(f"m_{link}")
    pi[first : first + 10] = body
    return pi


def slack(constraint: Any, pi: Any) -> float:
    """Smallest slack of all blocks; equalities give minus what they are off."""
    return min(b.slack(pi) for b in feasible_set(ARM, constraint).blocks)


def labels(constraint: Any, robot: dynid.Robot = ARM) -> list[str]:
    return [b.label for b in constraint.blocks(robot)]


def box(mass: float, sides: Any, com: Any = (0, 0, 0)) -> Any:
    """A box of even density."""
    square = np.square(sides) / 12
    return dynid.inertia.inertia_from_com(mass, np.array(com, dtype=float), mass * np.diag(square.sum() - square))


# Principal inertias 1, 1, 3 about the centre of mass: positive definite, but no mass distribution has them.
LOPSIDED = dynid.inertia.inertia_from_com(2.0, np.array([0.1, 0.2, -0.1]), np.diag([0.01, 0.01, 0.03]))


@pytest.mark.parametrize("notion", ["full", "semi"])
@pytest.mark.parametrize("seed", range(20))
def test_inertia_is_the_smallest_eigenvalue_of_the_textbook(notion: str, seed: int) -> None:
    """Random vectors, most of them infeasible: the slack is the eigenvalue in units of the link's mass and size."""
    rng = np.random.default_rng(seed)
    pi = with_body(LINKS[1], rng.normal(size=10) if seed % 2 else random_inertia(rng))
    (first,) = [i for i, n in enumerate(NAMES) if n == f"m_{LINKS[1]}"]
    mass, length = link_scales(ARM)[LINKS[1]]
    assert (mass, length) == pytest.approx(textbook.sizes(ARM)[1])
    entries = {"full": textbook.pseudo, "semi": textbook.spatial}[notion](pi[first : first + 10])
    root = np.sqrt(mass) * np.array([length] * 3 + [1.0] * (len(entries) - 3))
    eigenvalue = np.linalg.eigvalsh(entries / np.outer(root, root))[0]
    found = slack(Inertia(notion, LINKS[1], margin=0.0), pi)  # type: ignore[arg-type]
    assert found == pytest.approx(eigenvalue, abs=1e-12)
    # What the eigenvalue means: mass and inertia about the centre of mass, and the triangle inequality.
    m, _, tensor = dynid.inertia.inertia_to_com(pi[first : first + 10])
    principal = np.linalg.eigvalsh(tensor)
    possible = m > 0 and principal[0] > 0
    if notion == "full":
        possible = possible and principal[0] + principal[1] > principal[2]
    assert (found > 0) == possible


def test_only_full_refuses_a_broken_triangle_inequality() -> None:
    """The bug of peer tools: inertia taken for second moments accepts inconsistent bodies."""
    for link in LINKS:
        pi = with_body(link, LOPSIDED)
        assert slack("semi", pi) > 0
        assert slack("full", pi) < 0
        assert feasible_set(ARM, "semi").violations(pi) == []
        (found,) = feasible_set(ARM, "full").violations(pi)
        assert found.startswith(f"{link}: pseudo-inertia positive definite: broken by ")
        assert "triangle inequality broken: principal inertias 0.01 + 0.01 < 0.03 kg m2" in found


def test_margin_is_relative_or_absolute() -> None:
    mass, length = link_scales(ARM)[LINKS[0]]
    for notion, matrix in (("full", textbook.pseudo), ("semi", textbook.spatial)):
        pi = values()
        entries = matrix(pi[:10])
        absolute = np.linalg.eigvalsh(entries)[0]
        for factor, sign in ((0.99, 1), (1.01, -1)):
            (block,) = Inertia(notion, LINKS[0], factor * absolute, relative=False).blocks(ARM)  # type: ignore[arg-type]
            assert np.sign(block.slack(pi)) == sign
        root = np.sqrt(mass) * np.array([length] * 3 + [1.0] * (len(entries) - 3))
        relative = np.linalg.eigvalsh(entries / np.outer(root, root))[0]
        for factor, sign in ((0.99, 1), (1.01, -1)):
            assert np.sign(slack(Inertia(notion, LINKS[0], factor * relative), pi)) == sign  # type: ignore[arg-type]
    # Off the boundary by default: a point mass is on it, and refused.
    point = with_body(LINKS[0], dynid.inertia.inertia_from_com(1.0, np.array([0.1, 0, 0]), np.zeros((3, 3))))
    assert slack(Inertia("full", LINKS[0]), point) == pytest.approx(-1e-6, abs=1e-12)
    assert slack(Inertia("full", LINKS[0], margin=0.0), point) == pytest.approx(0, abs=1e-12)


def test_links_are_chosen_by_wildcard() -> None:
    assert len(Inertia().blocks(ARM)) == len(LINKS) == 3
    assert labels(Inertia("semi", LINKS[2])) == [f"{LINKS[2]}: mass and inertia positive definite"]
    assert slack(Inertia("full", LINKS[0]), with_body(LINKS[1], LOPSIDED)) > 0


@pytest.mark.parametrize("name", ["Ia_joint1", "fv_joint2", "fc_joint3"])
def test_signs_of_drives(name: str) -> None:
    assert slack(Signs(), values()) > 0
    assert slack(Signs(), values(**{name: -0.25})) == pytest.approx(-0.25)
    assert slack(Signs(), values(**{name: 0.0})) == 0.0
    assert slack(Signs(margin=0.1), values(**{name: 0.05})) == pytest.approx(-0.05)
    assert f"{name} not negative" in labels(Signs())


def test_offsets_and_springs_have_no_sign() -> None:
    assert slack(Signs(), values(off_joint1=-100.0)) > 0
    assert not [text for text in labels(Signs()) if "off" in text]
    robot = ARM.with_terms(ARM.joint_term(0, "k", -3.0))
    assert min(b.slack(robot.parameters) for b in Signs().blocks(robot)) > 0


def test_one_sided_friction_has_a_sign() -> None:
    terms = [ARM.joint_term(0, s, 0.1) for s in ("fvp", "fvn", "fcp", "fcn")]
    robot = ARM.with_terms(*terms)
    found = " ".join(labels(Signs(), robot))
    for symbol in ("fvp", "fvn", "fcp", "fcn"):
        assert f"{symbol}_joint1 not negative" in found


def test_coupled_terms_need_their_joints() -> None:
    """tx40's motor 6 couples joints 5 and 6: [[own 5, cross], [cross, own 6]] is positive semidefinite, no more."""
    robot = dynid.load_robot("tx40")
    names = list(robot.parameter_names)
    blocks = Signs().blocks(robot)
    assert not [b.label for b in blocks if b.label.endswith("motor6 not negative")]
    for symbol in ("Ia", "fv"):
        (block,) = [b for b in blocks if b.cone == "psd" and f"{symbol}_motor6" in b.label]
        assert block.label == f"{symbol}_joint5, {symbol}_joint6, {symbol}_motor6 together positive semidefinite"
        for own5, own6, cross in (
            (2.0, 3.0, 1.0),
            (2.0, 3.0, -1.0),
            (1.0, 1.0, 1.5),
            (1.0, 0.01, 0.2),
            (0.0, 1.0, 0.1),
        ):
            pi = np.array(robot.parameters)
            for name, value in (("joint5", own5), ("joint6", own6), ("motor6", cross)):
                pi[names.index(f"{symbol}_{name}")] = value
            expected = np.linalg.eigvalsh([[own5, cross], [cross, own6]])[0]
            assert block.slack(pi) == pytest.approx(expected, abs=1e-12)
    # Coulomb friction over a sum of velocities is no quadratic form: the coupled one stays free.
    assert not [b.label for b in blocks if "fc_motor6" in b.label]


def test_mass_of_links_and_groups() -> None:
    total = sum(ARM.parameters[NAMES.index(f"m_{n}")] for n in LINKS)
    assert total == pytest.approx(6.0)
    assert slack(Mass(5.0, 6.5), values()) == pytest.approx(0.5)
    assert slack(Mass(6.25), values()) == pytest.approx(-0.25)
    assert slack(Mass(upper=5.75), values()) == pytest.approx(-0.25)
    assert slack(Mass(6.0, 6.0), values()) == pytest.approx(0, abs=1e-12)
    assert slack(Mass(6.1, 6.1), values()) == pytest.approx(-0.1)
    pair = Mass(3.5, 10.0, LINKS[1:])
    assert slack(pair, values()) == pytest.approx(-0.5)
    assert labels(Mass(27.0, 27.0)) == ["total mass = 27"]
    assert labels(pair) == [f"mass of {LINKS[1]} and {LINKS[2]} >= 3.5", f"mass of {LINKS[1]} and {LINKS[2]} <= 10"]
    assert slack(Mass(2.5, 4, LINKS[0]), values()) == pytest.approx(0.5)


@pytest.mark.parametrize("seed", range(5))
def test_centre_of_mass_in_a_box(seed: int) -> None:
    rng = np.random.default_rng(seed)
    low, high = np.sort(rng.uniform(-0.3, 0.3, (2, 3)), axis=0)
    rule = CenterOfMass(LINKS[0], low, high)
    for _ in range(20):
        com = rng.uniform(-0.35, 0.35, 3)
        inside = bool(np.all((com > low) & (com < high)))
        assert (slack(rule, with_body(LINKS[0], box(2.0, [0.1, 0.2, 0.3], com))) > 0) == inside
    middle = (low + high) / 2
    assert slack(rule, with_body(LINKS[0], box(2.0, [0.1, 0.2, 0.3], middle))) > 0
    assert labels(rule) == [f"{LINKS[0]}: centre of mass in its box"]


def test_centre_of_mass_in_a_hull() -> None:
    """Corners of a tetrahedron: x, y, z not negative and x + y + z at most 0.3."""
    rule = CenterOfMass(LINKS[1], hull=0.3 * np.vstack([np.zeros(3), np.eye(3)]))
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(200):
        com = rng.uniform(-0.05, 0.2, 3)
        inside = bool(np.all(com > 0) and com.sum() < 0.3)
        assert (slack(rule, with_body(LINKS[1], box(1.5, [0.1, 0.1, 0.1], com))) > 0) == inside
        seen.add(inside)
    assert seen == {True, False}
    assert labels(rule) == [f"{LINKS[1]}: centre of mass in its hull"]


def ellipsoid(centre: Any, axes: Any, turn: Any = None) -> Any:
    """Q with [x; 1]' Q [x; 1] = 1 - |D (x - centre)|^2."""
    root = np.diag(1.0 / np.asarray(axes)) @ (np.eye(3) if turn is None else turn)
    shape, centre = root.T @ root, np.asarray(centre)
    out = np.zeros((4, 4))
    out[:3, :3], out[:3, 3], out[3, :3] = -shape, shape @ centre, shape @ centre
    out[3, 3] = 1 - centre @ shape @ centre
    return out


def points_within(rng: np.random.Generator, centre: Any, axes: Any, turn: Any, count: int) -> Any:
    directions = rng.normal(size=(count, 3))
    directions *= (rng.uniform(0, 1, count) ** (1 / 3) / np.linalg.norm(directions, axis=1))[:, None]
    return np.asarray(centre) + (directions * np.asarray(axes)) @ turn


def body_of(points: Any, masses: Any) -> Any:
    zero = np.zeros((3, 3))
    return sum(dynid.inertia.inertia_from_com(float(m), x, zero) for x, m in zip(points, masses, strict=True))


def off_by(link: str, body: Any, constraint: Any) -> float:
    """How far the body is from those allowed, as least squares on its ten numbers."""
    possible = feasible_set(ARM, [Inertia(margin=0.0), constraint])
    first = NAMES.index(f"m_{link}")
    rows = np.zeros((10, len(NAMES)))
    rows[:, first : first + 10] = np.diag(1 / possible.scale[first : first + 10])
    pi = with_body(link, body)
    found = fit(possible, rows, rows @ pi, ARM.parameters, weight=1e-8)
    return float(np.sqrt(2 * found.cost))


@pytest.mark.parametrize("seed", range(5))
def test_one_ellipsoid(seed: int) -> None:
    """All points within: feasible. tr(J Q) is the sum of mass times what is left to the surface."""
    rng = np.random.default_rng(seed)
    turn, centre, axes = random_placement(rng)[:3, :3], rng.uniform(-0.1, 0.1, 3), rng.uniform(0.05, 0.4, 3)
    rule = Ellipsoids(LINKS[0], [ellipsoid(centre, axes, turn)])
    points, masses = points_within(rng, centre, axes, turn, 8), rng.uniform(0.1, 1, 8)
    assert slack(rule, with_body(LINKS[0], body_of(points, masses))) > 0
    assert off_by(LINKS[0], body_of(points, masses), rule) < 1e-5
    outside = centre + (np.array([1.2, 0, 0]) * axes) @ turn
    lone = body_of([outside], [1.0])
    assert slack(rule, with_body(LINKS[0], lone)) < 0
    assert off_by(LINKS[0], lone, rule) > 1e-3
    assert labels(rule) == [f"{LINKS[0]}: mass inside its ellipsoid"]
    assert rule.extra == 0


@pytest.mark.parametrize("seed", range(5))
def test_several_ellipsoids(seed: int) -> None:
    """Points in either are feasible, though neither alone holds them; one between the two is not."""
    rng = np.random.default_rng(seed)
    turn = random_placement(rng)[:3, :3]
    places = [((0.0, 0, 0), (0.1, 0.1, 0.1)), ((0.5, 0, 0), (0.1, 0.2, 0.05))]
    shapes = [ellipsoid(c, a, turn if k else None) for k, (c, a) in enumerate(places)]
    points = np.vstack([points_within(rng, c, a, turn if k else np.eye(3), 6) for k, (c, a) in enumerate(places)])
    body = body_of(points, rng.uniform(0.1, 1, len(points)))
    rule = Ellipsoids(LINKS[1], shapes)
    assert rule.extra == 20
    assert off_by(LINKS[1], body, rule) < 1e-5
    for single in shapes:
        assert off_by(LINKS[1], body, Ellipsoids(LINKS[1], [single])) > 1e-3
    assert off_by(LINKS[1], body_of([np.array([0.25, 0, 0])], [1.0]), rule) > 1e-3
    assert off_by(LINKS[1], body_of([np.array([0, 0, 0.3])], [1.0]), rule) > 1e-3
    text = labels(rule)
    assert text[0] == f"{LINKS[1]}: sum of the parts inside its 2 ellipsoids"
    assert f"{LINKS[1]}: part 2 inside its ellipsoid" in text


def test_unions_on_several_links_do_not_mix() -> None:
    """Each constraint has unknowns of its own behind the standard parameters."""
    rng = np.random.default_rng(0)
    pair = [ellipsoid((0, 0, 0), (0.1,) * 3), ellipsoid((0.4, 0, 0), (0.1,) * 3)]
    triple = [*pair, ellipsoid((0, 0.4, 0), (0.1,) * 3)]
    rules: list[Constraint] = [Ellipsoids(LINKS[0], pair), Ellipsoids(LINKS[2], triple)]
    possible = feasible_set(ARM, [Inertia(margin=0.0), *rules])
    assert possible.extra == 50
    bodies = {
        LINKS[0]: body_of(np.array([0.4, 0, 0]) + rng.uniform(-0.05, 0.05, (5, 3)), np.ones(5)),
        LINKS[2]: body_of(np.array([0, 0.4, 0]) + rng.uniform(-0.05, 0.05, (5, 3)), np.ones(5)),
    }
    for swapped, allowed in ((False, True), (True, False)):
        pi = np.array(ARM.parameters)
        for link in bodies:
            first = NAMES.index(f"m_{link}")
            other = next(n for n in bodies if n != link)
            pi[first : first + 10] = bodies[other if swapped else link]
        rows = np.diag(1 / possible.scale[: possible.size])
        found = fit(possible, rows, rows @ pi, ARM.parameters, weight=1e-8)
        assert (np.sqrt(2 * found.cost) < 1e-5) == allowed
    with expect_error(NotApplicable):
        is_feasible(ARM, None, rules)
    base = base_parameters(ARM)
    inside = np.array(ARM.parameters)
    for link, body in bodies.items():
        inside[NAMES.index(f"m_{link}") : NAMES.index(f"m_{link}") + 10] = body
    assert is_feasible(base, base.values(inside), [Inertia(margin=0.0), Signs(), *rules], tolerance=1e-9)


@pytest.mark.parametrize("axis", ["x", "y", "z"])
def test_mirrored_links(axis: str) -> None:
    """The image of a cloud of points is the cloud of images."""
    rng = np.random.default_rng(ord(axis))
    points, masses = rng.uniform(-0.3, 0.3, (6, 3)), rng.uniform(0.1, 1, 6)
    flip = np.ones(3)
    flip["xyz".index(axis)] = -1
    rule = Mirrored(LINKS[2], LINKS[1], axis)  # type: ignore[arg-type]
    pi = with_body(LINKS[1], body_of(points, masses))
    first = NAMES.index(f"m_{LINKS[2]}")
    pi[first : first + 10] = body_of(points * flip, masses)
    assert slack(rule, pi) == pytest.approx(0, abs=1e-12)
    pi[first + 1] += 0.01
    assert slack(rule, pi) == pytest.approx(-0.01)
    assert labels(rule) == [f"{LINKS[2]}: mirror image of {LINKS[1]}"]


def test_mirrored_by_a_placement() -> None:
    rng = np.random.default_rng(1)
    points, masses, h = rng.uniform(-0.3, 0.3, (6, 3)), rng.uniform(0.1, 1, 6), random_placement(rng)
    h[:3, :3] = h[:3, :3] @ np.diag([1, 1, -1])
    pi = with_body(LINKS[1], body_of(points, masses))
    first = NAMES.index(f"m_{LINKS[2]}")
    pi[first : first + 10] = body_of(points @ h[:3, :3].T + h[:3, 3], masses)
    assert slack(Mirrored(LINKS[2], LINKS[1], placement=h), pi) == pytest.approx(0, abs=1e-12)


def test_fixed_values_and_bodies() -> None:
    rule = Fixed({"m_" + LINKS[0]: 3.0, "fv_joint2": 1.0})
    assert slack(rule, values()) == pytest.approx(0, abs=1e-12)
    assert slack(rule, values(fv_joint2=1.5)) == pytest.approx(-0.5)
    assert labels(rule) == [f"m_{LINKS[0]} = 3", "fv_joint2 = 1"]
    body = box(1.0, [0.1, 0.1, 0.4], [0.1, 0, 0])
    whole = Fixed.body(LINKS[2], body)
    assert slack(whole, with_body(LINKS[2], body)) == pytest.approx(0, abs=1e-12)
    assert slack(whole, values()) < -1e-3
    assert len(labels(whole)) == 10
    assert {b.cone for b in whole.blocks(ARM)} == {"zero"}


def test_bounds_by_name_and_wildcard() -> None:
    rule = Bounds({"fv_*": (0.5, 5.0), f"mz_{LINKS[0]}": (None, 0.4)})
    assert slack(rule, values()) == pytest.approx(0.1)
    assert slack(rule, values(fv_joint3=5.5)) == pytest.approx(-0.5)
    assert slack(rule, values(fv_joint1=0.0)) == pytest.approx(-0.5)
    assert slack(rule, values(**{f"mz_{LINKS[0]}": 0.7})) == pytest.approx(-0.3)
    assert slack(rule, values(**{f"mz_{LINKS[0]}": -70.0})) > 0
    assert "fv_joint1 >= 0.5" in labels(rule)
    assert "fv_joint3 <= 5" in labels(rule)
    assert labels(Bounds({"fv_joint1": (2.0, 2.0)})) == ["fv_joint1 = 2"]
    assert labels(Bounds({"fv_joint1": (None, None)})) == []


def test_linear_combinations() -> None:
    rule = Linear({"fv_joint1": 2.0, "fv_joint2": -1.0}, lower=0.5, upper=4.0)
    assert slack(rule, values()) == pytest.approx(0.5)
    assert slack(rule, values(fv_joint1=0.5)) == pytest.approx(-0.5)
    assert slack(rule, values(fv_joint2=-3.0)) == pytest.approx(-1.0)
    assert labels(rule)[0] == "2 fv_joint1 + -1 fv_joint2 >= 0.5"
    assert labels(Linear({"fv_joint1": 1.0}, 1.0, 1.0, "weighed on Monday")) == ["weighed on Monday = 1"]


def test_base_bounds() -> None:
    base = base_parameters(ARM)
    beta = base.values()
    rule = BaseBounds(base.matrix, beta - 0.1, beta + 0.2, base.names)
    assert slack(rule, ARM.parameters) == pytest.approx(0.1)
    moved = base.join(beta + 0.3 * np.eye(base.count)[4])
    assert slack(rule, moved) == pytest.approx(-0.1)
    # What the torques cannot see, base bounds do not bound.
    unseen = base.join(beta, 100.0 * np.ones(len(base.dependent)))
    assert slack(rule, unseen) == pytest.approx(0.1)
    assert labels(rule)[0].startswith(f"{base.names[0]} >= ")
    assert labels(BaseBounds(base.matrix[:1], -np.inf, 5.0)) == ["base parameter 1 <= 5"]
    assert labels(BaseBounds(base.matrix[:1], -np.inf, np.inf)) == []
    assert labels(BaseBounds(base.matrix[:2], [1.0, 2.0], [1.0, 2.0])) == [
        "base parameter 1 = 1",
        "base parameter 2 = 2",
    ]


def test_sets_are_named_mixed_and_nested() -> None:
    full = constraint_set("full")
    assert full == (Inertia("full"), Signs())
    assert constraint_set(Mass(1.0)) == (Mass(1.0),)
    assert constraint_set(["semi", [Mass(1.0), Fixed({})]]) == (Inertia("semi"), Signs(), Mass(1.0), Fixed({}))


def test_violations_name_what_is_broken() -> None:
    possible = feasible_set(ARM, ["full", Mass(upper=5.0)])
    found = possible.violations(values(fc_joint2=-0.5, **{f"m_{LINKS[2]}": -1.0}))
    assert [text.split(":")[0] for text in found] == [LINKS[2], "fc_joint2 not negative"]
    assert "mass -1 kg is not positive" in found[0]
    assert "broken by 0.5" in found[1]
    assert feasible_set(ARM, Mass(upper=5.0)).violations(values()) == ["total mass <= 5: broken by 1"]
    assert feasible_set(ARM, Mass(upper=5.0)).violations(values(), tolerance=1.5) == []
    with expect_error(DataError):
        possible.violations([1.0, 2.0])


def test_scales_of_links_without_inertia() -> None:
    """The mean of the others, or a kilogram and a decimetre where nothing is known."""
    robot = dynid.Robot.from_dh([{"a": 0.4}, {"a": 0.3}], "modified", name="empty")
    assert set(link_scales(robot).values()) == {(1.0, 0.1)}
    rows: list[dict[str, Any]] = [
        {"a": 0.1, "inertia": {"mass": 4.0, "com": [0, 0, 0], "tensor": [0.04, 0, 0, 0.02, 0, 0.02]}},
        {"a": 0.2},
    ]
    mixed = link_scales(dynid.Robot.from_dh(rows, "modified", name="half"))
    assert list(mixed.values()) == [pytest.approx((4.0, 0.1))] * 2


def test_slack_of_the_whole_set_is_the_worst_of_all() -> None:
    possible = feasible_set(ARM, ["full", Mass(5.9), Fixed({"fv_joint1": 7.0})])
    pi = values()
    assert possible.slack(pi) == pytest.approx(min(textbook.slack(ARM, pi, "full", 1e-6), 0.1))
    assert feasible_set(ARM, Fixed({"fv_joint1": 7.0})).slack(pi) == np.inf


@pytest.mark.parametrize(
    ("constraint", "error"),
    [
        (Inertia(links="hand"), (UnknownName, "")),
        (Inertia("half"), (UnknownName, "notion")),  # type: ignore[arg-type]
        (Bounds({"fq_*": (0, 1)}), (UnknownName, "")),
        (Bounds({"fv_joint1": (2.0, 1.0)}), (InvalidValue, "lower")),
        (Bounds({"fv_joint1": (float("nan"), None)}), (InvalidValue, "lower")),
        (Bounds({"fv_joint1": (0.0, float("inf"))}), (InvalidValue, "lower")),
        (Fixed({"m_hand": 1.0}), (UnknownName, "constraints")),
        (Linear({"m_hand": 1.0}, 0.0), (UnknownName, "constraints")),
        (Mass(2.0, 1.0), (InvalidValue, "lower")),
        (Mass(1.0, links=["hand"]), (UnknownName, "")),
        (CenterOfMass("hand", [0, 0, 0], [1, 1, 1]), (UnknownName, "")),
        (CenterOfMass(LINKS[0]), (MissingArgument, "lower")),
        (CenterOfMass(LINKS[0], lower=[0, 0, 0]), (MissingArgument, "lower")),
        (CenterOfMass(LINKS[0], [0, 0, 0], [1, 1, 1], np.eye(3)), (MissingArgument, "lower")),
        (CenterOfMass(LINKS[0], [0, 0, 0], hull=np.eye(3)), (MissingArgument, "lower")),
        (CenterOfMass(LINKS[0], [0, 0], [1, 1, 1]), (DataError, "")),
        (CenterOfMass(LINKS[0], [0, 2, 0], [1, 1, 1]), (InvalidValue, "lower")),
        (CenterOfMass(LINKS[0], hull=[[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]), (InvalidValue, "points")),
        (CenterOfMass(LINKS[0], hull=np.eye(3)), (InvalidValue, "points")),
        (CenterOfMass(LINKS[0], hull=np.eye(4)), (InvalidShape, "points")),
        (CenterOfMass(LINKS[0], hull=np.full((5, 3), np.nan)), (InvalidShape, "points")),
        (CenterOfMass("*", [0, 0, 0], [1, 1, 1]), (UnknownName, "name")),
        (Ellipsoids(LINKS[0], []), (MissingArgument, "matrices")),
        (Ellipsoids(LINKS[0], [np.eye(3)]), (DataError, "")),
        (Ellipsoids(LINKS[0], [np.zeros((4, 4))]), (InvalidValue, "matrices")),
        (Ellipsoids(LINKS[0], [np.eye(4)]), (InvalidValue, "matrices")),
        (Ellipsoids(LINKS[0], [-np.eye(4)]), (InvalidValue, "matrices")),
        (Ellipsoids("*", [np.eye(4)]), (UnknownName, "name")),
        (Mirrored(LINKS[0], "hand"), (UnknownName, "")),
        (Mirrored(LINKS[0], LINKS[1], "w"), (UnknownName, "axis")),  # type: ignore[arg-type]
        (Mirrored(LINKS[0], LINKS[1], placement=np.eye(3)), (DataError, "")),
        (BaseBounds(np.ones((2, 3)), 0, 1), (InvalidShape, "matrix")),
        (BaseBounds(np.ones(42), 0, 1), (InvalidShape, "matrix")),
        (BaseBounds(np.ones((2, 42)), [0, 0, 0], 1), (InvalidShape, "lower")),
        (BaseBounds(np.ones((1, 42)), 2.0, 1.0), (InvalidValue, "lower")),
        (BaseBounds(np.ones((2, 42)), 0, 1, ["one"]), (InvalidShape, "names")),
    ],
)
def test_wrong_constraints_are_refused_in_words(constraint: Any, error: Error) -> None:
    with expect_error(*error):
        feasible_set(ARM, constraint)


def test_wrong_sets_are_refused_in_words() -> None:
    with expect_error(UnknownName, "constraints"):
        feasible_set(ARM, "fool")
    with expect_error(InvalidType, "constraints"):
        feasible_set(ARM, 7)  # type: ignore[arg-type]
    with expect_error(InvalidType, "constraints"):
        feasible_set(ARM, ["full", 7])  # type: ignore[list-item]
    with expect_error(DataError):
        Fixed.body("l1", [1, 2, 3])


def test_units_follow_the_link() -> None:
    """The same body a thousand times as large lies as far inside: slack is a share of mass and size."""
    robot = random_robot(3, 2)
    found = [b.slack(robot.parameters) for b in Inertia(margin=0.0).blocks(robot)]
    assert all(0.001 < s < 1 for s in found)
