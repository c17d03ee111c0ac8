"""The robots that come with dynid are the published ones."""

from __future__ import annotations

import numpy as np
import pytest

import dynid

# joints and standard parameters
SIZES = {
    "box2": (2, 24),
    "fourbar": (1, 33),
    "iiwa14": (7, 84),
    "leg12": (7, 141),
    "palletizer": (4, 112),
    "psm": (4, 102),
    "puma560": (6, 84),
    "rv2sq": (6, 78),
    "twolink": (2, 28),
    "tx40": (6, 87),
    "wam7": (7, 119),
}


def test_every_builtin_robot_is_listed_with_a_line_on_it() -> None:
    """`builtin_robots` names all of them, each with a description."""
    found = dynid.builtin_robots()
    assert set(SIZES) <= set(found)
    assert all(len(text) > 10 and "\n" not in text for text in found.values())


@pytest.mark.parametrize("name", dynid.builtin_robots())
def test_every_builtin_robot_loads_and_moves(name: str) -> None:
    """Each one loads by name, says where its numbers come from, and can be simulated where its bodies are possible."""
    robot = dynid.load_robot(name)
    assert robot.name == name
    assert len(robot.source) > 50
    rng = np.random.default_rng(0)
    q, v, a = rng.uniform(-1, 1, (3, 10, robot.n))
    if robot.loops:
        q = robot.home + 0.3 * q
    tau = dynid.inverse_dynamics(robot, q, v, a)
    np.testing.assert_allclose(dynid.regressor(robot, q, v, a) @ robot.parameters, tau, atol=1e-11)  # up to 200 N m
    if name != "iiwa14":
        np.testing.assert_allclose(dynid.forward_dynamics(robot, q, v, tau), a, atol=1e-10)


@pytest.mark.parametrize("name", SIZES)
def test_sizes_are_the_published_ones(name: str) -> None:
    """Number of joints and of standard parameters of the models in the literature."""
    robot = dynid.load_robot(name)
    assert (robot.n, len(robot.parameters)) == SIZES[name]


def test_box_arm_meets_its_published_table() -> None:
    """Nguyen (2021), Table 3.1, to its last printed digit, base link included."""
    table = {
        "link0": [1, 0, 0, 0.125, 0.026042, 0, 0.041667, 0, 0, 0.026042],
        "link1": [1, 0.25, 0, 0.125, 0.026042, 0, 0.104167, -0.03125, 0, 0.088542],
        "link2": [1, 0.25, 0, 0.125, 0.026042, 0, 0.104167, -0.03125, 0, 0.088542],
    }
    robot = dynid.load_robot("box2")
    for link in robot.links:
        np.testing.assert_allclose(link.inertia, table[link.name], atol=1e-6)
    drive = {t.name: t.value for t in robot.drives}
    assert drive == {"fv_joint1": 0.05, "fc_joint1": 0.01, "fv_joint2": 0.05, "fc_joint2": 0.01}


def test_impossible_bodies_are_where_the_sources_say() -> None:
    """The iiwa estimates break the laws on links 5 and 6 (no positive tensor); TX40 and WAM are possible throughout."""
    for name in ("tx40", "wam7", "box2", "twolink"):
        assert [dynid.inertia.inertia_violations(link.inertia) for link in dynid.load_robot(name).links[1:]].count(
            []
        ) == len(dynid.load_robot(name).joints)
    negative = [
        link.name
        for link in dynid.load_robot("iiwa14").links
        if any("negative principal value" in words for words in dynid.inertia.inertia_violations(link.inertia))
    ]
    assert negative == ["link5", "link6"]


def test_options_change_a_builtin_robot_only_where_they_name_something() -> None:
    """Left out, friction and rotors stay as the file has them; given, they replace the joint side alone."""
    robot = dynid.load_robot("tx40")
    assert dynid.load_robot("tx40", friction="viscous").parameter_names != robot.parameter_names
    fewer = dynid.load_robot("tx40", friction="viscous")
    assert [n for n in fewer.parameter_names if n.startswith("fc_")] == ["fc_motor6"]
    assert [n for n in fewer.parameter_names if n.startswith("Ia_")] == [f"Ia_joint{k}" for k in range(1, 7)] + [
        "Ia_motor6"
    ]
    value = dict(zip(fewer.parameter_names, fewer.parameters, strict=True))
    assert value["fv_joint1"] == 7.9379


def test_slide_of_the_psm_passes_through_its_remote_centre() -> None:
    """Whatever the joints do, the insertion axis meets the yaw axis 0.516 m before the pitch joint."""
    robot = dynid.load_robot("psm")
    q = np.random.default_rng(0).uniform([-1.5, -0.85, 0.0, -2], [1.5, 0.85, 0.24, 2], (30, 4))
    place = dynid.dynamics.frame_placement(robot, q, "instrument")
    to_centre = np.array([0.516, 0.0, 0.0]) - place[:, :3, 3]
    np.testing.assert_allclose(to_centre, (0.4318 - q[:, 2:3]) * place[:, :3, 2], atol=1e-12)
