"""Conversion from and to Pinocchio models."""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.chains import Step, add_chain, ball, floating, planar, screw, translations
from dynid.robot.drives import DriveTerm, FileDrives, TermKind
from dynid.robot.inertia import inertia_to_com, move_inertia
from dynid.robot.mechanism import Mechanism
from dynid.robot.notes import chain_notes
from dynid.robot.parts import Frame, Joint, Limits, Link, read_limits
from dynid.robot.spatial import clean, inverse_placement

__all__ = ["file_drives", "has_place_in_model", "model_of_robot", "robot_from_model"]

Array = NDArray[np.float64]
R = TypeVar("R", bound=Mechanism)

_FRAMES = (pin.FrameType.FIXED_JOINT, pin.FrameType.OP_FRAME, pin.FrameType.BODY)


def _motions(joint: pin.JointModel, along: Array) -> list[Step] | None:
    """The revolute and prismatic joints that a joint is made of; None for joints that are not supported.

    `along` is the direction in which the body lies in the joint frame.
    """
    kind = joint.shortname().removeprefix("JointModel")
    if kind in {"RX", "RY", "RZ", "RUBX", "RUBY", "RUBZ", "RevoluteUnaligned", "RevoluteUnboundedUnaligned"}:
        return [Step("", "revolute", _subspace(joint)[3:])]
    if kind in {"PX", "PY", "PZ", "PrismaticUnaligned"}:
        return [Step("", "prismatic", _subspace(joint)[:3])]
    if kind in {"HX", "HY", "HZ", "HelicalUnaligned"}:
        subspace = _subspace(joint)
        return screw(subspace[3:], float(subspace[:3] @ subspace[3:]))
    if kind == "Universal":
        axes = joint.extract()
        return [Step(f"_{k + 1}", "revolute", np.array(x)) for k, x in enumerate((axes.axis1, axes.axis2))]
    if kind == "SphericalZYX":
        return [Step(f"_r{letter}", "revolute", np.eye(3)["xyz".index(letter)]) for letter in "zyx"]
    several = {
        "Spherical": lambda: ball(along),
        "Translation": translations,
        "Planar": lambda: planar((0, 0, 1)),
        "FreeFlyer": floating,
    }
    return several[kind]() if kind in several else None


def _subspace(joint: pin.JointModel) -> Array:
    """Motion subspace of a joint with one degree of freedom."""
    data = joint.createData()
    neutral = np.zeros(joint.nq)
    if joint.nq == 2:  # unbounded joints store cosine and sine
        neutral[0] = 1.0
    joint.calc(data, neutral)
    return np.array(data.S).reshape(6)


def _limits(model: pin.Model, joint: pin.JointModel, name: str) -> Limits:
    unbounded = joint.nq != joint.nv
    q, v = joint.idx_q, joint.idx_v
    lower, upper = (-np.inf, np.inf) if unbounded else (model.lowerPositionLimit[q], model.upperPositionLimit[q])
    # Pinocchio uses the largest float for an unknown limit.
    unknown = float(np.finfo(float).max)
    values = [float(x) for x in (lower, upper, model.velocityLimit[v], model.effortLimit[v])]
    values = [math.copysign(math.inf, x) if abs(x) >= unknown else x for x in values]
    # A file without limits gives zeros or an empty range.
    if values[0] == values[1] == 0.0:
        values[:2] = [-math.inf, math.inf]
    velocity, effort = (x if x > 0 else math.inf for x in values[2:])
    return read_limits(name, {"position": values[:2], "velocity": velocity, "effort": effort})


def _bodies(model: pin.Model) -> dict[int, tuple[str, Array]]:
    """Name of the first body of each joint and its placement in the joint frame."""
    out: dict[int, tuple[str, Array]] = {}
    for frame in model.frames:
        if frame.type == pin.FrameType.BODY and frame.parentJoint not in out:
            out[frame.parentJoint] = str(frame.name), clean(frame.placement.homogeneous)
    return out


def _steps(model: pin.Model, index: int) -> list[tuple[str, pin.JointModel, Array]]:
    """The joints that joint `index` is composed of: name, joint, placement in the previous frame."""
    joint, name = model.joints[index], str(model.names[index])
    start = np.asarray(model.jointPlacements[index].homogeneous)
    if joint.shortname() != "JointModelComposite":
        return [(name, joint, start)]
    composite = joint.extract()
    places = [np.asarray(place.homogeneous) for place in composite.jointPlacements]
    places[0] = start @ places[0]
    return [(f"{name}.{k + 1}", x, y) for k, (x, y) in enumerate(zip(composite.joints, places, strict=True))]


def _one_tree(model: pin.Model) -> bool:
    """Whether the first joint carries all others."""
    return sum(parent == 0 for parent in list(model.parents)[1:]) == 1


def robot_from_model(kind: type[R], model: pin.Model, *, name: str | None = None) -> R:
    """Robot of class `kind` from a Pinocchio model, links and joints in Pinocchio's order.

    The frame of a link is that of the first body of its joint, or the joint frame where there is no body.
    """
    flying = len(model.joints) > 1 and _one_tree(model) and model.joints[1].shortname() == "JointModelFreeFlyer"
    root = 1 if flying else 0
    inertia = [np.asarray(i.toDynamicParameters()) for i in model.inertias]
    bodies = _bodies(model)
    base = bodies.get(root)
    at_root = base is not None and np.array_equal(base[1], np.eye(4))
    links = [Link(base[0] if base and at_root else "base_link", inertia[root])]
    joints: list[Joint] = []
    notes: list[str] = []
    where_is = {root: (0, np.eye(4))}  # joint -> its link, and the frame of that link in the joint frame
    for index in range(root + 1, len(model.joints)):
        parent, mount_before = where_is[model.parents[index]]
        before = inverse_placement(mount_before)
        link, mount = bodies.get(index) or (f"{model.names[index]}_link", np.eye(4))
        *inner, last = _steps(model, index)
        for joint_name, joint, place in inner:
            virtual = Link(f"{joint_name}.virtual", np.zeros(10), virtual=True)
            notes += _hang(joints, links, model, (joint_name, joint), parent, before @ place, np.eye(4), virtual)
            parent, before = len(links) - 1, np.eye(4)
        joint_name, joint, place = last
        body = Link(link, move_inertia(inertia[index], inverse_placement(mount)))
        along = np.asarray(model.inertias[index].lever)
        notes += _hang(joints, links, model, (joint_name, joint), parent, before @ place, mount, body, along)
        where_is[index] = len(links) - 1, mount
    # Where a fixed joint and a body share a name, the frame is that of the body.
    named = {str(f.name): f for kind in _FRAMES for f in model.frames if f.type == kind}
    taken = {link.name for link in links} | {"universe"}
    frames = []
    for key, f in named.items():
        if key not in taken and f.parentJoint in where_is:
            number, mount = where_is[f.parentJoint]
            frames.append(Frame(key, number, inverse_placement(mount) @ f.placement.homogeneous))
    # Gravity in the frame that the pose of the base is relative to.
    turn = np.asarray(model.jointPlacements[root].rotation) if flying else np.eye(3)
    return kind(
        name=name or str(model.name) or "robot",
        links=tuple(links),
        joints=tuple(joints),
        gravity=turn.T @ np.asarray(model.gravity.linear),
        base="floating" if flying else "fixed",
        frames=tuple(frames),
        notes=tuple(notes),
    )


def _hang(
    joints: list[Joint],
    links: list[Link],
    model: pin.Model,
    named: tuple[str, pin.JointModel],
    parent: int,
    place: Array,
    mount: Array,
    link: Link,
    along: Array | None = None,
) -> list[str]:
    """Add a joint, or the chain that it becomes, and its link; returns sentences on it."""
    name, joint = named
    steps = _motions(joint, np.zeros(3) if along is None else along)
    if steps is None:
        raise ModelError(
            f"joint '{name}' is of kind {joint.shortname().removeprefix('JointModel')}, not supported",
            code="unsupported",
        )
    limits = {"": _limits(model, joint, name)} if joint.nv == 1 else {}
    made = add_chain(joints, links, name, steps, parent, clean(place), mount, link, limits)
    turning = sum(step.kind == "revolute" for step in steps)
    return chain_notes(f"joint '{name}'", made, []) if turning == 3 else []


def file_drives(model: pin.Model) -> FileDrives:
    """Armature, damping and dry friction of every joint, by drive symbol."""
    out: FileDrives = {}
    for index in range(1, len(model.joints)):
        for name, joint, _ in _steps(model, index):
            if joint.nv == 1:
                v = joint.idx_v
                forward, backward = model.upperDryFrictionLimit[v], -model.lowerDryFrictionLimit[v]
                # Friction set through the deprecated attribute has an upper limit only.
                fc = 0.5 * (forward + backward) if backward else forward
                out[name] = {"Ia": model.armature[v], "fv": model.damping[v], "fc": fc}
    return out


def has_place_in_model(term: DriveTerm) -> bool:
    """Whether a Pinocchio model can represent a drive term: friction and rotor inertia of a single joint."""
    kinds = (
        TermKind.INERTIA,
        TermKind.VISCOUS,
        TermKind.COULOMB,
        TermKind.COULOMB_POSITIVE,
        TermKind.COULOMB_NEGATIVE,
    )
    return np.count_nonzero(term.direction) == 1 and not term.cross_only and not term.slope and term.kind in kinds


def model_of_robot(robot: Mechanism, *, independent: bool = False) -> pin.Model:
    """Pinocchio model of a robot, with inertias in joint frames."""
    mimic = [j.name for j in robot.joints if j.mimic is not None]
    if mimic and not independent:
        raise ModelError(
            f"joint '{mimic[0]}' mimics another; to_pinocchio(independent=True) makes it an independent joint",
            "independent",
            code="unsupported",
        )
    if robot.loops and not independent:
        raise ModelError(
            f"{robot.loops[0]} has no place in a Pinocchio model; to_pinocchio(independent=True) leaves the loops out",
            "independent",
            code="unsupported",
        )
    robot = robot.tree
    model = pin.Model()
    model.name = robot.name
    model.gravity.linear = robot.gravity
    root = 0
    if robot.base == "floating":
        root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
    model.inertias[root] = _inertia(robot.links[0])
    model.addFrame(pin.Frame(robot.links[0].name, root, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    index = {0: root}
    for j in _depth_first(robot):
        joint, link = robot.joints[j], robot.links[j + 1]
        before = np.eye(4) if joint.parent == 0 else robot.joints[joint.parent - 1].mount
        make = pin.JointModelRevoluteUnaligned if joint.kind == "revolute" else pin.JointModelPrismaticUnaligned
        limits = joint.limits
        where = pin.SE3(before @ joint.placement)
        i = model.addJoint(
            index[joint.parent],
            make(np.asarray(joint.axis)),
            where,
            joint.name,
            np.array([limits.effort]),
            np.array([limits.velocity]),
            np.array([limits.lower]),
            np.array([limits.upper]),
        )
        model.addJointFrame(i)
        model.inertias[i] = pin.SE3(np.asarray(joint.mount)).act(_inertia(link))
        model.addFrame(pin.Frame(link.name, i, 0, pin.SE3(np.asarray(joint.mount)), pin.FrameType.BODY))
        index[j + 1] = i
    armature, damping, forward, backward = (np.zeros(model.nv) for _ in range(4))
    for term in robot.drives:
        if not has_place_in_model(term):
            continue
        k = int(np.flatnonzero(term.direction)[0])
        d = term.direction[k]
        v = model.joints[model.getJointId(robot.coordinates[k])].idx_v
        if term.kind == TermKind.INERTIA:
            armature[v] += term.value * d**2
        elif term.kind == TermKind.VISCOUS:
            damping[v] += term.value * d**2
        else:  # a shaft that rotates in the opposite direction swaps the two signs
            if term.kind != (TermKind.COULOMB_NEGATIVE if d > 0 else TermKind.COULOMB_POSITIVE):
                forward[v] += term.value * abs(d)
            if term.kind != (TermKind.COULOMB_POSITIVE if d > 0 else TermKind.COULOMB_NEGATIVE):
                backward[v] += term.value * abs(d)
    model.armature, model.damping = armature, damping
    model.upperDryFrictionLimit, model.lowerDryFrictionLimit = forward, -backward
    for frame in robot.frames:
        mount = np.eye(4) if frame.link == 0 else robot.joints[frame.link - 1].mount
        where = pin.SE3(mount @ frame.placement)
        model.addFrame(pin.Frame(frame.name, index[frame.link], 0, where, pin.FrameType.OP_FRAME))
    return model


def _depth_first(robot: Mechanism) -> list[int]:
    """Joints in depth-first order; in any other order, Pinocchio's mass matrix is wrong without an error."""
    out: list[int] = []

    def visit(link: int) -> None:
        for j, joint in enumerate(robot.joints):
            if joint.parent == link:
                out.append(j)
                visit(j + 1)

    visit(0)
    return out


def _inertia(link: Link) -> pin.Inertia:
    """Pinocchio inertia of a link in its own frame; of a massless link, only the tensor."""
    pi = link.inertia
    if pi[0] == 0:
        if np.any(pi[1:4] != 0):
            raise ModelError(
                f"link '{link.name}' has a first moment but no mass, which Pinocchio cannot represent",
                code="unsupported",
            )
        tensor = np.array([[pi[4], pi[5], pi[7]], [pi[5], pi[6], pi[8]], [pi[7], pi[8], pi[9]]])
        return pin.Inertia(0.0, np.zeros(3), tensor)
    mass, com, tensor = inertia_to_com(pi)
    return pin.Inertia(float(mass), com, tensor)
