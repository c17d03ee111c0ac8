"""Equations: those of the textbooks, and our numbers."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid import Robot
from dynid.codegen.symbolic import Equations, equations
from dynid.errors import ConflictingArguments, Mismatch, NotApplicable, TooLarge, Unsupported
from tests.support.compare import difference
from tests.support.errors import expect_error
from tests.support.random_robots import random_motion, random_robot
from tests.support.synthetic import arm

sp = pytest.importorskip("sympy")


def pendulum() -> Robot:
    """Two links in a vertical plane: x along the links, angles from the horizontal, gravity along -y of the base."""
    rows = [{"a": 0.0}, {"a": 0.7}]
    robot = Robot.from_dh(rows, convention="modified", name="pendulum").with_gravity([0.0, -9.81, 0.0])
    return robot.with_drives("viscous", rotor_inertia=True)


@pytest.fixture(scope="module")
def found() -> Equations:
    return equations(pendulum(), lengths=True)


def same(ours: object, theirs: object) -> bool:
    return bool(sp.simplify(sp.expand(sp.expand_trig(ours - theirs))) == 0)


def test_two_link_pendulum_is_that_of_the_textbooks(found: Equations) -> None:
    """Point by point the equations of a planar arm, with Izz about the joints and first moments m x, m y."""
    p, (q1, q2), (v1, v2) = found.parameters, found.q, found.v
    g, length = (next(s for s in found.constants if str(s) == name) for name in ("g", "x2"))
    m2, x1, y1, x2, y2 = (p[n] for n in ("m_link2", "mx_link1", "my_link1", "mx_link2", "my_link2"))
    I1, I2, J1, J2 = (p[n] for n in ("Izz_link1", "Izz_link2", "Ia_joint1", "Ia_joint2"))
    reach = length * (x2 * sp.cos(q2) - y2 * sp.sin(q2))
    slope = -length * (x2 * sp.sin(q2) + y2 * sp.cos(q2))
    M = [[I1 + I2 + m2 * length**2 + 2 * reach + J1, I2 + reach], [I2 + reach, I2 + J2]]
    C = [[slope * v2, slope * (v1 + v2)], [-slope * v1, 0]]
    outer = g * (x2 * sp.cos(q1 + q2) - y2 * sp.sin(q1 + q2))
    gravity = [g * ((x1 + m2 * length) * sp.cos(q1) - y1 * sp.sin(q1)) + outer, outer]
    for i in range(2):
        assert same(found.g[i], gravity[i])
        assert same(found.drives[i], p[f"fv_joint{i + 1}"] * found.v[i])
        for j in range(2):
            assert same(found.M[i, j], M[i][j]) and same(found.C[i, j], C[i][j])


def test_the_form_is_short_and_named(found: Equations) -> None:
    """No longer than the textbook's, with c12 and the like."""
    text = found.text()
    assert "M[2, 2] = Ia_2 + Izz_2" in text and "c12" in text and "s12" in text and "sin(" not in text
    assert found.M[0, 0].count_ops() <= 13  # I1 + I2 + J1 + m2 l^2 + 2 l (x2 c2 - y2 s2)
    assert found.C[0, 1].count_ops() <= 9  # -l (v1 + v2) (x2 s2 + y2 c2)
    assert "x2 = 0.7" in text and "Izz_2: Izz_link2" in text
    latex = found.latex()
    assert latex.count("\\begin{align*}") == latex.count("\\end{align*}") == 4
    assert "I_{zz,2}" in latex and "c_{12}" in latex and "\\dot{q}_{2}" in latex


def test_names_in_latex() -> None:
    """Of every kind of parameter, on joints and on motors."""
    text = equations(random_robot(3, 2, kinds="rr", drives=True), simplify=False).latex()
    for name in (
        "I_{\\mathrm{a},1}",
        "I_{\\mathrm{a},m2}",
        "f_{\\mathrm{cp},1}",
        "\\tau_{\\mathrm{off},1}",
        "k_{1}",
        "{mx}_{2}",
    ):
        assert name in text, name
    assert text.count("{") == text.count("}")


def test_base_parameters_shorten_the_equations() -> None:
    """Only base parameters are left, and the torque is the same."""
    robot = arm().locked({"joint3": 0.2})
    base = dynid.base_parameters(robot)
    found = equations(robot, base)
    assert tuple(found.parameters) == base.names
    free = set().union(*(getattr(found, part).free_symbols for part in ("M", "C", "g", "drives")))
    assert free <= {*found.parameters.values(), *found.q, *found.v, *found.constants}
    q, v, a = (x[0] for x in random_motion(robot, 1, 1))
    ours = found.numbers("tau", q, v, a, values=base.values())
    assert difference(ours[:, 0], dynid.inverse_dynamics(robot, q, v, a)) < 1e-12


@pytest.mark.parametrize(
    "robot",
    [
        random_robot(3, 2, drives=True),
        random_robot(3, 2, drives=True).with_smooth_coulomb(10.0),
        random_robot(5, 2, kinds="rp", mimics=1),
        dynid.load_robot("box2"),
        dynid.load_robot("twolink"),
    ],
    ids=["drives", "smooth", "follower", "box2", "twolink"],
)
@pytest.mark.parametrize("simplify", [True, False])
def test_numbers_are_those_of_the_kernels(robot: Robot, simplify: bool) -> None:
    """Every part, for any axes; what simplifying drops as rounding is below 1e-13 of it."""
    found = equations(robot, gravity=False, simplify=simplify)
    q, v, a = (x[0] for x in random_motion(robot, 1, 1))
    pi = robot.parameters
    assert difference(found.numbers("M", q, values=pi), dynid.mass_matrix(robot, q)) < 1e-12
    assert difference(found.numbers("C", q, v, values=pi), dynid.dynamics.coriolis_matrix(robot, q, v)) < 1e-12
    assert difference(found.numbers("g", q, values=pi)[:, 0], dynid.dynamics.gravity_torque(robot, q)) < 1e-12
    tau = found.numbers("tau", q, v, a, values=pi)[:, 0]
    assert difference(tau, dynid.inverse_dynamics(robot, q, v, a)) < 1e-12


def test_what_has_no_readable_equations_is_refused() -> None:
    """Many joints, moving bases, the user's own terms, base parameters with symbolic lengths or of another robot."""
    with expect_error(TooLarge):
        equations(dynid.load_robot("tx40"))
    with expect_error(NotApplicable):
        dynid.codegen.equations(dynid.load_robot("fourbar"))
    with expect_error(NotApplicable):
        equations(random_robot(1, 2, base="floating"))
    robot = dynid.load_robot("twolink")
    own = robot.with_terms(robot.custom_term("wave", 0, lambda q, v, a: np.sin(q)))
    with expect_error(Unsupported):
        equations(own)
    with expect_error(ConflictingArguments, "lengths"):
        equations(robot, dynid.base_parameters(robot), lengths=True)
    with expect_error(Mismatch, "base"):
        equations(robot, dynid.base_parameters(arm()))
