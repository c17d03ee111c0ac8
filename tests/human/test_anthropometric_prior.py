"""Tables scaled to a skeleton that is already there."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import dynid
from dynid import DataError, Robot
from dynid.errors import Duplicate, InvalidValue, MissingArgument, MissingData, ModelError, UnknownName
from dynid.human.landmarks import standing_body
from dynid.human.prior import SEGMENTS, segment_links
from dynid.human.segments import cut, place_segment
from dynid.human.table import TRUNK
from dynid.robot.parts import Link
from dynid.robot.posture import link_placements
from tests.support.errors import Error, expect_error
from tests.support.random_robots import random_rotation

HUMAN = dynid.human.human_model("male", 1.8, 94.0)


def bare(robot: Robot) -> Robot:
    return replace(robot, links=tuple(Link(x.name, np.zeros(10)) for x in robot.links))


def renamed(robot: Robot, names: dict[str, str]) -> Robot:
    return replace(robot, links=tuple(replace(x, name=names.get(x.name, x.name)) for x in robot.links))


def turned(robot: Robot, seed: int) -> Robot:
    """The same robot with every link frame turned about its own origin; the base stays."""
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


def total(robot: Robot) -> np.ndarray:
    """Ten numbers of the whole body at q = 0, base frame."""
    places = link_placements(robot)
    return np.sum([dynid.inertia.move_inertia(x.inertia, h) for x, h in zip(robot.links, places, strict=True)], axis=0)


@pytest.mark.parametrize("height", [1.8, None])
def test_skeleton_of_the_model_gets_the_model_back(height: float | None) -> None:
    """Lengths measured on the skeleton are those it was built with, and so is the height they tell."""
    again = dynid.human.with_anthropometric_prior(bare(HUMAN), "male", 94.0, height=height)
    assert again.parameter_names == HUMAN.parameter_names
    np.testing.assert_allclose(again.parameters, HUMAN.parameters, atol=1e-12)


def test_frames_of_links_do_not_matter() -> None:
    """A skeleton whose link frames lie in all directions gets the same bodies."""
    other = turned(HUMAN, 0)
    again = dynid.human.with_anthropometric_prior(bare(other), "male", 94.0)
    np.testing.assert_allclose(again.parameters, other.parameters, atol=1e-12)


def test_links_are_found_by_name_or_by_a_list() -> None:
    names = {"left_thigh": "LeftUpperLeg", "right_shank": "r_tibia", "lower_trunk": "Pelvis", "upper_trunk": "thorax"}
    again = dynid.human.with_anthropometric_prior(bare(renamed(HUMAN, names)), "male", 94.0)
    np.testing.assert_allclose(again.parameters, HUMAN.parameters, atol=1e-12)
    strange = {name: f"part{k}" for k, name in enumerate(SEGMENTS)}
    skeleton = bare(renamed(HUMAN, strange))
    with expect_error(MissingData, "segments"):
        dynid.human.with_anthropometric_prior(skeleton, "male", 94.0)
    given = {link: segment for segment, link in strange.items()}
    again = dynid.human.with_anthropometric_prior(skeleton, "male", 94.0, segments=given)
    np.testing.assert_allclose(again.parameters, HUMAN.parameters, atol=1e-12)


def test_one_link_may_be_several_segments() -> None:
    """A stiff trunk: the joints between its parts are gone, their bodies are one link."""
    names = [n for n in HUMAN.coordinates if n.startswith(("lumbar", "thoracic"))]
    stiff = HUMAN.locked(dict.fromkeys(names, 0.0))
    given = {x.name: x.name for x in stiff.links if x.name in SEGMENTS}
    again = dynid.human.with_anthropometric_prior(
        bare(stiff), "male", 94.0, segments={**given, "lower_trunk": list(TRUNK)}
    )
    np.testing.assert_allclose(again.parameters, stiff.parameters, atol=1e-12)


def test_a_skeleton_in_another_posture() -> None:
    """Arms that q = 0 holds out sideways are measured in the pose in which they hang down."""
    lift = {f"{s}_shoulder_abduction": np.pi / 2 for s in ("left", "right")}
    joints = list(HUMAN.joints)
    for i, j in enumerate(joints):
        if j.name in lift:
            motion = np.eye(4)
            c, s = np.cos(lift[j.name]), np.sin(lift[j.name]) * j.axis[0]
            motion[1:3, 1:3] = [[c, -s], [s, c]]
            joints[i] = replace(j, placement=j.placement @ motion)
    raised = replace(HUMAN, joints=tuple(joints))
    pose = {name: -value for name, value in lift.items()}
    again = dynid.human.with_anthropometric_prior(bare(raised), "male", 94.0, pose=pose)
    np.testing.assert_allclose(again.parameters, HUMAN.parameters, atol=1e-12)
    # Arms out in the frontal plane keep their sagittal axis, so the pose may as well be left out.
    again = dynid.human.with_anthropometric_prior(bare(raised), "male", 94.0)
    np.testing.assert_allclose(again.parameters, HUMAN.parameters, atol=1e-12)


def shifted_trunk(lumbar: float, thoracic: float) -> Robot:
    """The skeleton with the joints of its trunk moved up by so much, everything above where it was."""
    joints = list(HUMAN.joints)
    for i, j in enumerate(joints):
        place = np.array(j.placement)
        parent = HUMAN.links[j.parent].name
        if j.name == "lumbar_flexion":
            place[2, 3] += lumbar
        elif j.name == "thoracic_flexion":
            place[2, 3] += thoracic - lumbar
        elif parent == "upper_trunk":
            place[2, 3] -= thoracic
        joints[i] = replace(j, placement=place)
    return replace(HUMAN, joints=tuple(joints))


@pytest.mark.parametrize(("lumbar", "thoracic"), [(-0.08, -0.05), (0.06, 0.1), (-0.1, 0.02), (0.0, -0.1)])
def test_trunk_is_cut_where_the_skeleton_bends(lumbar: float, thoracic: float) -> None:
    """The whole body stays what it was, every link is possible, and mass goes to the side it lies on."""
    skeleton = shifted_trunk(lumbar, thoracic)
    prior = dynid.human.with_anthropometric_prior(bare(skeleton), "male", 94.0, height=1.8)
    np.testing.assert_allclose(total(prior), total(HUMAN), atol=1e-11)
    mass = {x.name: x.inertia[0] for x in prior.links}
    plain = {x.name: x.inertia[0] for x in HUMAN.links}
    for i in prior.parameter_links:
        assert dynid.inertia.inertia_violations(prior.links[i].inertia) == []
    assert np.sign(mass["lower_trunk"] - plain["lower_trunk"]) == np.sign(lumbar)
    assert np.sign(mass["upper_trunk"] - plain["upper_trunk"]) == -np.sign(thoracic)


def test_parts_of_a_cut_segment() -> None:
    """Against the integral of the density over thin slices."""
    table = dynid.human.anthropometric_table("de-leva")
    body = standing_body(table, 1.8)
    for name in TRUNK:
        segment = place_segment(table.segments[name], body, None, 10.0)
        top, bottom = segment.ends[:, 2]
        height = bottom + 0.3 * (top - bottom)
        parts = dict(cut(segment, [1, 2], [height], np.array([0.0, 0.0, 1.0])))
        np.testing.assert_allclose(parts[1] + parts[2], segment.inertia, atol=1e-12)
        s = (np.arange(20000) + 0.5) / 20000
        density = 1 + 12 * (segment.centre - 0.5) * (s - 0.5)
        below = top + s * (bottom - top) < height
        assert parts[1][0] == pytest.approx(10.0 * np.mean(density * below), rel=1e-4)
        assert parts[1][3] / parts[1][0] < height < parts[2][3] / parts[2][0]


def test_links_without_a_segment() -> None:
    """Virtual, or small balls that leave the whole mass as it is: then all links are possible bodies."""
    plain = dynid.human.with_anthropometric_prior(bare(HUMAN), "male", 94.0)
    assert [x.virtual for x in plain.links] == [x.virtual for x in HUMAN.links]
    shared = dynid.human.with_anthropometric_prior(bare(HUMAN), "male", 94.0, virtual_share=1e-3)
    assert not any(x.virtual for x in shared.links) and len(shared.parameter_links) == 36
    assert total(shared)[0] == pytest.approx(94.0, rel=1e-12)
    for link in shared.links:
        assert dynid.inertia.inertia_violations(link.inertia) == []
    # A virtual link has a thousandth of what it leads to.
    ball = shared.links[shared.link_index("left_thigh_virtual_1")].inertia[0]
    assert ball == pytest.approx(1e-3 * plain.links[plain.link_index("left_thigh")].inertia[0])


def test_massless_links_of_a_file_become_virtual() -> None:
    robot = bare(HUMAN)
    marked = dynid.human.with_virtual_links(replace(robot, links=(robot.links[0], *HUMAN.links[1:])))
    assert not marked.links[0].virtual and [x.virtual for x in marked.links[1:]] == [x.virtual for x in HUMAN.links[1:]]


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"weight": -1}, (InvalidValue, "weight")),
        ({"height": 18.0}, (InvalidValue, "height")),
        ({"sex": "x"}, (UnknownName, "sex")),
        ({"segments": {"left_thigh": "tail"}}, (UnknownName, "segments")),
        ({"segments": {"left_thigh": "left_thigh"}}, (MissingData, "segments")),
        (
            {"segments": {"left_thigh": "head", "head": "head"}},
            (Duplicate, "segments"),
        ),
        ({"virtual_share": 0.5}, (InvalidValue, "virtual_share")),
        ({"pose": {"tail": 1.0}}, (ModelError, "posture", "unknown_name")),
    ],
)
def test_odd_input(options: dict[str, object], error: Error) -> None:
    with expect_error(*error):
        dynid.human.with_anthropometric_prior(bare(HUMAN), **{"sex": "male", "weight": 94.0, **options})  # type: ignore[arg-type]


def test_a_link_with_mass_and_no_segment_must_be_named() -> None:
    """Its mass would be counted twice or lost without a word."""
    heavy = renamed(HUMAN, {"left_hand": "left_paw"})
    with expect_error(MissingArgument, "segments"):
        segment_links(heavy)


def test_a_skeleton_without_width() -> None:
    flat = [replace(j, placement=_narrow(j.placement)) for j in HUMAN.joints]
    with expect_error(DataError, code="invalid_model"):
        dynid.human.with_anthropometric_prior(bare(replace(HUMAN, joints=tuple(flat))), "male", 94.0)


def _narrow(h: np.ndarray) -> np.ndarray:
    out = np.array(h)
    out[1, 3] = 0.0
    return out
