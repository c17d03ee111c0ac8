"""Whether a file that is to be changed holds the robot at hand, and how its link frames lie against ours."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.export.xmltext import Element
from dynid.robot.inertia import move_inertia
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.robot.notes import listed
from dynid.robot.parts import Mimic
from dynid.robot.spatial import axis_rotation, inverse_placement, placement

__all__ = ["Named", "Template", "match_template", "named_elements"]

Array = NDArray[np.float64]

# A file may have pi/2 as 1.5708; joints that stand or turn further apart than this are other joints.
_SAME_PLACE = 1e-4  # m and rad


@dataclass(frozen=True)
class Template:
    """The robot of a file, and the ten numbers each moving link shall have there, in the frame it has there.

    Only links whose inertia differs from the file's are in `bodies`. `fixed` names the links that hang on each of
    them by fixed joints.
    """

    robot: Robot
    bodies: dict[str, Array]
    fixed: dict[str, list[str]]

    def value(self, joint: str, symbol: str) -> float:
        """What the file says of a joint's drive, with what its followers have."""
        return next((t.value for t in self.robot.drives if t.shaft == joint and t.symbol == symbol), np.nan)


def match_template(robot: Robot, path: Path) -> Template:
    """Compare a robot with that of a file link by link; one of other links, joints or motion is an error."""
    own = _load(path)
    if own.base == "fixed" and robot.base != "fixed":
        own = own.with_base(robot.base)
    _check_names(robot, own, path.name)
    places = _link_places(robot, own, path.name)
    bodies = {}
    for i, link in enumerate(robot.links):
        if link.virtual or (i == 0 and robot.base == "fixed"):
            continue
        there = own.links[0] if _is_base(robot, own, i) else own.links[own.link_index(link.name)]
        same = np.allclose(places[i], np.eye(4), rtol=0, atol=1e-13)
        pi = link.inertia if same else move_inertia(link.inertia, places[i])
        if not np.array_equal(pi, there.inertia):
            bodies[there.name] = pi
    fixed = {name: [m.link for m in own.merged if m.into == name] for name in bodies}
    return Template(own, bodies, fixed)


class Named(dict[str, Element]):
    """Elements of a file's text by name; one that only its parser finds, as in an entity, is an error."""

    def __init__(self, elements: Mapping[str, Element], file: str) -> None:
        super().__init__(elements)
        self._file = file

    def __missing__(self, name: str) -> Element:
        raise ModelError(
            f"'{name}' does not stand in the text of the template '{self._file}' as an element of its own",
            "template",
            code="unsupported",
        )


def named_elements(elements: Iterable[Element], file: str) -> Named:
    """Elements by their names."""
    return Named({e.get("name") or "": e for e in elements}, file)


def _load(path: Path) -> Robot:
    try:
        return load_robot(path, friction="viscous+coulomb", rotor_inertia=True)
    except ModelError as error:
        raise ModelError(
            f"the template '{path.name}' cannot be used: {error}", "template", code="file_damaged"
        ) from None


def _is_base(robot: Robot, own: Robot, i: int) -> bool:
    """Whether link `i` is the base of both; MuJoCo's world has its name from its format."""
    return i == 0 and robot.links[0].name not in [x.name for x in own.links[1:]]


def _check_names(robot: Robot, own: Robot, file: str) -> None:
    joints, links = [j.name for j in own.joints], [x.name for x in own.links]
    for joint in robot.joints:
        if joint.name not in joints:
            raise ModelError(
                f"the template '{file}' has no joint '{joint.name}'; its joints are {listed(joints)}",
                "template",
                code="mismatch",
            )
    for i, link in enumerate(robot.links):
        if link.name not in links and not link.virtual and not _is_base(robot, own, i):
            raise ModelError(
                f"the template '{file}' has no link '{link.name}'; its links are {listed(links)}",
                "template",
                code="mismatch",
            )
    moving = {j.name for j in robot.joints}
    for joint in own.joints:
        if joint.name not in moving:
            raise ModelError(
                f"joint '{joint.name}' moves in the template '{file}', but not in the robot",
                "template",
                code="mismatch",
            )
        if not _follows_alike(joint.mimic, next(x.mimic for x in robot.joints if x.name == joint.name)):
            raise ModelError(
                f"joint '{joint.name}' follows another joint otherwise in the template '{file}'",
                "template",
                code="mismatch",
            )


def _follows_alike(a: Mimic | None, b: Mimic | None) -> bool:
    if a is None or b is None:
        return a is b
    apart = max(abs(a.ratio - b.ratio), abs(a.offset - b.offset))
    return a.leader == b.leader and apart < _SAME_PLACE


def _placements(robot: Robot, q: dict[str, float]) -> list[Array]:
    """Where each link is in the frame of the base, from positions of all joints by name."""
    out = [np.eye(4)]
    for joint in robot.joints:
        x = q[joint.name]
        turn = axis_rotation(joint.axis, x) if joint.kind == "revolute" else None
        move = placement(turn, None if joint.kind == "revolute" else x * joint.axis)
        out.append(out[joint.parent] @ joint.placement @ move @ joint.mount)
    return out


def _link_places(robot: Robot, own: Robot, file: str) -> list[Array]:
    """Placement of each of our link frames in that of the file's link; links must move alike in both.

    The frame of our base may be another: that of a robot that stands on one of its links.
    """
    index = [0 if _is_base(robot, own, i) else _index(own, x.name, i) for i, x in enumerate(robot.links)]
    rng = np.random.default_rng(0)
    poses = []
    for _ in range(3):
        q = {j.name: float(rng.uniform(-1, 1)) for j in robot.joints}
        ours, theirs = _placements(robot, q), _placements(own, q)
        poses.append((ours, [theirs[k] for k in index]))
    worst = robot.links[-1].name
    for reference in dict.fromkeys((0, min(1, len(robot.links) - 1))):
        places = []
        for ours, theirs in poses:
            # Where our whole robot lies in the file's world if the reference frames are one.
            start = theirs[reference] @ inverse_placement(ours[reference])
            places.append([inverse_placement(t) @ start @ o for o, t in zip(ours, theirs, strict=True)])
        apart = [max(np.abs(p[i] - places[0][i]).max() for p in places) for i in range(len(robot.links))]
        bad = [i for i, x in enumerate(apart) if x > _SAME_PLACE]
        if not bad:
            return places[0]
        if reference == 0:
            worst = robot.links[bad[0]].name
    raise ModelError(
        f"link '{worst}' moves otherwise in the template '{file}': it is the file of another robot",
        "template",
        code="mismatch",
    )


def _index(own: Robot, name: str, i: int) -> int:
    """The link of that name; one between two joints of a body is named by its place."""
    names = [x.name for x in own.links]
    return names.index(name) if name in names else i
