"""The plausible box: it holds the a-priori bodies, excludes absurd ones, and its walls are found."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid.feasibility import consistent_prior
from dynid.feasibility.box import PlausibleBox, Quantity, plausible_box
from dynid.robot.inertia import inertia_from_com
from tests.support.synthetic import arm, record

ROBOTS = ("puma560", "tx40", "rv2sq", "wam7", "twolink")


def slack(box: PlausibleBox, parameters: np.ndarray) -> dict[tuple[str, str], float]:
    """Smallest slack of each kind of side, by link."""
    out: dict[tuple[str, str], float] = {}
    for side in box.sides:
        key = (side.link, side.what.value)
        out[key] = min(out.get(key, np.inf), side.block.slack(parameters))
    return out


@pytest.mark.parametrize("name", ROBOTS)
def test_the_a_priori_bodies_are_inside(name: str) -> None:
    robot = dynid.load_robot(name)
    prior = consistent_prior(robot)
    assert all(x > 0 for x in slack(plausible_box(robot, prior), prior.parameters).values())


def with_body(robot: dynid.Robot, link: str, body: np.ndarray) -> np.ndarray:
    pi = consistent_prior(robot).parameters.copy()
    first = robot.parameter_names.index(f"m_{link}")
    pi[first : first + 10] = body
    return pi


@pytest.mark.parametrize(
    ("mass", "radius", "offset", "broken"),
    [(2459.0, 0.1, 0.1, Quantity.MASS), (3.0, 0.006, 0.1, Quantity.GYRATION), (3.0, 0.2, 3.0, Quantity.REACH)],
)
def test_what_an_engineer_would_laugh_at_is_outside(
    mass: float, radius: float, offset: float, broken: Quantity
) -> None:
    """Bodies that are physically consistent: of tonnes, within millimetres, and three metres away."""
    robot = arm()
    link = robot.links[2].name
    body = inertia_from_com(mass, np.array([offset, 0.0, 0.0]), mass * radius**2 * 2 / 3 * np.eye(3))
    assert dynid.feasibility.feasible_set(robot).violations(with_body(robot, link, body)) == []
    assert slack(plausible_box(robot, consistent_prior(robot)), with_body(robot, link, body))[link, broken] < 0


def test_radius_of_gyration_is_where_the_inequality_ends() -> None:
    """The matrix inequality holds exactly down to a fifth of the size of the link, wherever the body is."""
    robot = arm()
    link = robot.links[1].name
    box = plausible_box(robot, consistent_prior(robot))
    limit = next(s.limit for s in box.sides if s.link == link and s.what is Quantity.GYRATION)
    for share, inside in ((0.99, False), (1.01, True)):
        second = (share * limit) ** 2 / 3  # of each axis
        body = inertia_from_com(2.0, np.array([0.2, -0.1, 0.05]), 2.0 * 2 * second * np.eye(3))
        assert (slack(box, with_body(robot, link, body))[link, Quantity.GYRATION] > 0) == inside


def test_a_tool_fits_on_the_last_link_only() -> None:
    robot = arm()
    prior = consistent_prior(robot)
    box, total = plausible_box(robot, prior), prior.mass(robot)
    for k, fits in ((1, False), (3, True)):
        link = robot.links[k].name
        own = prior.parameters[robot.parameter_names.index(f"m_{link}")]
        heavier = with_body(robot, link, inertia_from_com(4 * own + 0.2 * total, np.zeros(3), np.eye(3)))
        assert (slack(box, heavier)[link, Quantity.MASS] > 0) == fits


@pytest.mark.parametrize("method", ["auto", "feasible"])
def test_known_masses_decide(method: str) -> None:
    robot = arm()
    bare = robot.with_parameters(1.3 * robot.parameters)
    recording = record(robot, (0,), noise=0.05, samples=3000)
    masses = [i for i, n in enumerate(robot.parameter_names) if n.startswith("m_")]
    total = float(robot.parameters[masses].sum())
    found = dynid.identify(bare, recording, method, mass=total)
    after = found.parameters[[i for i, n in enumerate(found.robot.parameter_names) if n.startswith("m_")]]
    assert after.sum() == pytest.approx(total, rel=0.065)
    link = robot.links[1].name
    one = dynid.identify(bare, recording, method, link_masses={link: 2.5})
    assert dict(zip(one.robot.parameter_names, one.parameters, strict=True))[f"m_{link}"] == pytest.approx(
        2.5, rel=0.065
    )


@pytest.mark.parametrize("method", ["auto", "feasible"])
def test_a_wall_is_a_finding_and_can_be_switched_off(method: str) -> None:
    """The file says a tenth of the true mass of the middle link, whose weight the torques show."""
    robot = arm()
    light = list(robot.links)
    light[2] = replace(light[2], inertia=0.1 * light[2].inertia)
    wrong = replace(robot, links=tuple(light))
    recording = record(robot, (0, 1), noise=0.02, samples=4000)
    found = dynid.identify(wrong, recording, method)
    name = light[2].name
    assert any(wall.link == name and wall.gain > 10 for wall in found.walls)
    assert any(name in note and "the box ends at" in note for note in found.notes)
    free = dynid.identify(wrong, recording, method, box=False)
    assert free.walls == () and free.box is False
    assert free.validate(recording).relative.mean() <= found.validate(recording).relative.mean()
