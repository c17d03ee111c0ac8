"""A human model from sex, height and weight: sixteen segments, thirty-five joints, a floating base."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.human.landmarks import SIDES, Body, skeleton_data, standing_body
from dynid.human.prior import check_height, check_weight, segment_links, with_segments
from dynid.human.table import PAIRED, AnthropometricTable, anthropometric_table
from dynid.robot.model import Robot
from dynid.robot.parts import Frame, Joint, Limits, Link
from dynid.robot.posture import link_placements
from dynid.robot.spatial import placement

__all__ = ["human_model"]

Array = NDArray[np.float64]

# Axes of rotation are mirrored as pseudo-vectors: the plane of symmetry has the normal y.
_MIRROR = np.array([-1.0, 1.0, -1.0])


def human_model(
    sex: str = "male",
    height: float = 1.75,
    weight: float = 75.0,
    *,
    table: str | Path | AnthropometricTable = "de-leva",
    lengths: Mapping[str, float] | None = None,
    name: str = "human",
) -> Robot:
    """Build a human model with a floating base from sex, height and weight.

    At q = 0 the body stands upright with arms down and palms forward, and all frames are parallel: x forward, y left,
    z up. The base is the lower trunk, with its origin midway between the hips. Ball joints are three successive
    revolute joints on virtual links. Equal joint values on both sides give a symmetric posture. Frames: vertex, and on
    each side fingertip, heel, toe and sole (the ground below the ankle).

    Parameters
    ----------
    sex : {"male", "female"}, default "male"
        Sex, which selects the columns of the table.
    height : float, default 1.75
        Body height, m.
    weight : float, default 75.0
        Body mass, kg.
    table : str, Path or AnthropometricTable, default "de-leva"
        Anthropometric table: a built-in name or a TOML file.
    lengths : mapping of str to float, optional
        Segment lengths, m, that replace those of the table.
    name : str, default "human"
        Name of the robot.

    Returns
    -------
    Robot
        Sixteen segments, thirty-five joints, floating base.

    Raises
    ------
    DataError
        If height, weight, table or lengths are out of range or unknown.

    Examples
    --------
    >>> robot = human_model("female", 1.68, 60)
    >>> robot.n, len(robot.parameter_links), f"{sum(link.inertia[0] for link in robot.links):.9f}"
    (35, 16, '60.000000000')
    """
    check_height(height)
    check_weight(weight)
    numbers = anthropometric_table(table, sex)
    body = standing_body(numbers, height, lengths)
    links = [Link("lower_trunk", np.zeros(10))]
    joints: list[Joint] = []
    origin = {"lower_trunk": body.points["mid_hip"]}
    for row, side in _in_order():
        _add(row, side, body, links, joints, origin)
    bare = Robot(name, tuple(links), tuple(joints), base="floating", frames=_frames(links, body, origin))
    places = link_placements(bare)
    return with_segments(bare, segment_links(bare), body, numbers, weight, places)


def _in_order() -> list[tuple[Mapping[str, Any], str]]:
    """Joints of the trunk, then of the left and right sides."""
    rows = skeleton_data()["joint"]
    middle = [(row, "") for row in rows if row["child"] not in PAIRED]
    return middle + [(row, f"{side}_") for side in SIDES for row in rows if row["child"] in PAIRED]


def _add(
    row: Mapping[str, Any], side: str, body: Body, links: list[Link], joints: list[Joint], origin: dict[str, Array]
) -> None:
    """Add the joints between two segments, and their links."""
    child = side + row["child"]
    parent = side + row["parent"] if row["parent"] in PAIRED else row["parent"]
    number = next(i for i, link in enumerate(links) if link.name == parent)
    origin[child] = body.points[side + row["at"]]
    place = placement(translation=origin[child] - origin[parent])
    last = len(row["moves"]) - 1
    for k, (move, axis, limits) in enumerate(zip(row["moves"], row["axes"], row["limits"], strict=True)):
        direction = np.array(axis, dtype=float) * (_MIRROR if side == "right_" else 1.0)
        lower, upper = np.deg2rad(limits)
        joints.append(
            Joint(
                f"{side}{row['name']}_{move}",
                "revolute",
                number,
                place if k == 0 else np.eye(4),
                direction,
                limits=Limits(float(lower), float(upper)),
            )
        )
        links.append(Link(child if k == last else f"{child}_virtual_{k + 1}", np.zeros(10), virtual=k != last))
        number = len(links) - 1


def _frames(links: list[Link], body: Body, origin: Mapping[str, Array]) -> tuple[Frame, ...]:
    """Named frames for contacts and markers."""
    number = {link.name: i for i, link in enumerate(links)}

    def frame(name: str, link: str, point: Array) -> Frame:
        return Frame(name, number[link], placement(translation=point - origin[link]))

    out = [frame("vertex", "head", body.points["vertex"])]
    for side in SIDES:
        ankle, heel = body.points[f"{side}_ankle"], body.points[f"{side}_heel"]
        out.append(frame(f"{side}_fingertip", f"{side}_hand", body.points[f"{side}_fingertip"]))
        out += [frame(f"{side}_{end}", f"{side}_foot", body.points[f"{side}_{end}"]) for end in ("heel", "toe")]
        # Heel and toe lie halfway between ankle and ground.
        sole = np.array([ankle[0], ankle[1], 2.0 * heel[2] - ankle[2]])
        out.append(frame(f"{side}_sole", f"{side}_foot", sole))
    return tuple(out)
