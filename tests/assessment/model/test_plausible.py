"""Implausible bodies: each kind is made once and named; good bodies, and what the data leave open, are not."""

from __future__ import annotations

from dataclasses import replace
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.assessment import BodyCode, implausible_bodies
from dynid.robot.inertia import inertia_from_com

Array = NDArray[np.float64]

STEEL = 7850.0


def examples() -> Path:
    """The folder of example robots."""
    try:
        files = metadata.files("example-robot-data") or []
    except metadata.PackageNotFoundError:
        pytest.skip("example-robot-data is not installed")
    return Path(str(next(f for f in files if f.name == "ur5_robot.urdf").locate())).parents[2]


def with_body(robot: Robot, link: str, mass: float, com: Array, tensor: Array) -> Robot:
    """The robot with another body on a link."""
    i = robot.link_index(link)
    links = list(robot.links)
    links[i] = replace(links[i], inertia=inertia_from_com(mass, com, tensor))
    return replace(robot, links=tuple(links))


def boxed() -> Robot:
    """An arm of three solid aluminium bars of 0.1 x 0.1 x 0.4 m, with their shapes."""
    robot = Robot.from_dh([(0.0, 0.0, 0.0, 0.0), (np.pi / 2, 0.0, 0.0, 0.0), (0.0, 0.4, 0.0, 0.0)], "modified")
    size, mass = np.array([0.4, 0.1, 0.1]), 0.3 * 2700 * 0.4 * 0.1 * 0.1
    tensor = mass / 12 * (np.sum(size**2) * np.eye(3) - np.diag(size**2))
    box = np.array([[0.0, -0.05, -0.05], [0.4, 0.05, 0.05]])
    for link in robot.links[1:]:
        robot = with_body(robot, link.name, mass, np.array([0.2, 0.0, 0.0]), tensor)
    return replace(robot, links=(robot.links[0], *(replace(x, extent=box) for x in robot.links[1:])))


def codes(robot: Robot) -> set[tuple[BodyCode, str]]:
    return {(f.code, f.link) for f in implausible_bodies(robot)}


@pytest.mark.parametrize("name", ["tx40", "rv2sq", "puma560", "wam7", "box2"])
def test_published_robots_are_plausible(name: str) -> None:
    assert implausible_bodies(dynid.load_robot(name)) == ()


def test_bars_are_plausible() -> None:
    assert implausible_bodies(boxed()) == ()


BALL = 3.24 * 0.4 * 0.05**2 * np.eye(3)
ABSURD = {
    "as heavy as a truck": (8513.0, [0.2, 0, 0], 100 * np.eye(3), {BodyCode.DENSITY, BodyCode.MASS_SHARE}),
    "three metres away": (3.24, [3.0, 0, 0], BALL, {BodyCode.CENTRE_OF_MASS}),
    "five metres wide": (3.24, [0.2, 0, 0], 3.24 * 25 / 3 * np.eye(3), {BodyCode.RADIUS_OF_GYRATION}),
    "ten times gold": (4e-3 * 193000, [0.2, 0, 0], 4e-3 * 193000 * 0.01 * np.eye(3), {BodyCode.DENSITY}),
    "a small ball of ten times gold": (3.24, [0.2, 0, 0], 0.4 * 3.24 * 0.0159**2 * np.eye(3), {BodyCode.COMPACTNESS}),
    "without mass": (0.0, [0, 0, 0], np.zeros((3, 3)), {BodyCode.NO_MASS}),
    "a puff of air": (4e-3, [0.2, 0, 0], 4e-3 * 0.01 * np.eye(3), {BodyCode.DENSITY}),
}


@pytest.mark.parametrize("kind", ABSURD)
@pytest.mark.parametrize("link", ["link2", "link3"])
def test_every_absurdity_is_named(kind: str, link: str) -> None:
    """With its link, figure, limit and remedy, and no other link."""
    mass, com, tensor, expected = ABSURD[kind]
    found = implausible_bodies(with_body(boxed(), link, mass, np.array(com, dtype=float), np.asarray(tensor)))
    assert expected <= {f.code for f in found}
    for f in found:
        assert f.link == link and link in f.what and f.what_to_do
        assert f.figure != f.limit
        assert f.origin == "model" and f.std == 0.0


def test_limits_are_those_of_matter() -> None:
    """A solid steel bar is the heaviest plausible one; a body inside the box has no implausible centre or radius."""
    robot = boxed()
    volume, size = 0.4 * 0.1 * 0.1, np.array([0.4, 0.1, 0.1])

    def bar(density: float) -> Robot:
        mass = density * volume
        tensor = mass / 12 * (np.sum(size**2) * np.eye(3) - np.diag(size**2))
        return with_body(robot, "link3", mass, np.array([0.2, 0.0, 0.0]), tensor)

    assert codes(bar(0.99 * STEEL)) == set()
    assert codes(bar(1.01 * STEEL)) == {(BodyCode.DENSITY, "link3")}
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = rng.uniform([0.0, -0.05, -0.05], [0.4, 0.05, 0.05], (4, 3))
        com = points.mean(axis=0)
        second = 0.81 * (points - com).T @ (points - com)
        tensor = np.trace(second) * np.eye(3) - second + 1e-3 * np.eye(3)
        assert codes(with_body(robot, "link2", 3.24, com, tensor)) == set()


def test_joints_stand_in_for_shapes() -> None:
    """Without shapes the limits are wider, but three metres are too far for an arm of 0.4 m."""
    robot = boxed()
    bare = replace(robot, links=tuple(replace(x, extent=None) for x in robot.links))
    assert codes(with_body(bare, "link2", 3.24, np.array([0.5, 0.0, 0.0]), BALL)) == set()
    assert codes(with_body(robot, "link2", 3.24, np.array([0.5, 0.0, 0.0]), BALL)) == {
        (BodyCode.CENTRE_OF_MASS, "link2")
    }
    assert codes(with_body(bare, "link2", 3.24, np.array([3.0, 0.0, 0.0]), BALL)) == {
        (BodyCode.CENTRE_OF_MASS, "link2")
    }


def test_uncertain_figures_are_not_held_against_an_estimate() -> None:
    """Three standard deviations beyond the limit, or nothing; unless the prior itself is implausible."""
    robot = boxed()
    away = with_body(robot, "link2", 3.24, np.array([1.0, 0.0, 0.0]), BALL)
    at = robot.parameter_names.index("mx_link2")
    for std, expected in ((0.01, True), (5.0, False), (np.inf, False)):
        covariance = np.zeros((len(robot.parameters),) * 2)
        covariance[at, at] = std**2
        found = implausible_bodies(robot, away.parameters, covariance=covariance, prior=robot.parameters)
        assert bool(found) == expected, std
        assert all(f.origin == "estimate" for f in found)
        of_prior = implausible_bodies(robot, away.parameters, covariance=covariance, prior=away.parameters)
        assert {f.origin for f in of_prior} == {"estimate" if expected else "prior"}


def test_masses_are_compared_with_the_prior() -> None:
    """A body five times too heavy, also where the data leave it open, and all; placeholders are not compared."""
    robot = boxed()
    none = np.zeros((len(robot.parameters),) * 2)
    heavy = with_body(robot, "link2", 5 * 3.24, np.array([0.2, 0.0, 0.0]), 5 * 9 * BALL)
    found = implausible_bodies(robot, heavy.parameters, covariance=none, prior=robot.parameters)
    assert {(f.code, f.link) for f in found} == {(BodyCode.MASS, "link2")}
    open_mass = none.copy()
    open_mass[(robot.parameter_names.index("m_link2"),) * 2] = 10.0**2
    found = implausible_bodies(robot, heavy.parameters, covariance=open_mass, prior=robot.parameters)
    assert [(f.code, f.link, f.origin, f.severity) for f in found] == [(BodyCode.MASS, "link2", "open", "warning")]
    tenth = implausible_bodies(robot, 0.1 * robot.parameters, covariance=none, prior=robot.parameters)
    assert (BodyCode.TOTAL_MASS, "") in {(f.code, f.link) for f in tenth}
    light = with_body(robot, "link2", 1e-3, np.array([0.2, 0.0, 0.0]), 1e-5 * np.eye(3))
    assert implausible_bodies(robot, robot.parameters, covariance=none, prior=light.parameters) == ()


def test_known_errors_of_model_files_are_found() -> None:
    """The wrists of this UR5 have the inertia of bodies half a metre wide; those of the UR10 beside it are sound."""
    folder = examples() / "ur_description/urdf"
    bad = {f.link for f in implausible_bodies(dynid.load_robot(folder / "ur5_robot.urdf"))}
    assert bad == {"wrist_1_link", "wrist_2_link", "wrist_3_link"}
    assert implausible_bodies(dynid.load_robot(folder / "ur10_robot.urdf")) == ()


def test_an_audit_names_implausible_bodies() -> None:
    away = with_body(boxed(), "link2", 3.24, np.array([3.0, 0.0, 0.0]), BALL)
    audit = dynid.assessment.audit(away, poses=20, seconds=0.1)
    assert audit.moves and not audit.ok and not audit.links
    assert "not plausible" in audit.verdict and "centre of mass of 'link2'" in audit.summary()
    assert audit.to_dict()["bodies"][0]["code"] == "centre_of_mass"
    assert dynid.assessment.audit(boxed(), poses=20, seconds=0.1).ok
