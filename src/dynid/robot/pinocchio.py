"""Pinocchio models in and out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.drives import TermKind
from dynid.robot.inertia import inertia_to_com, move_inertia
from dynid.robot.model import Robot
from dynid.robot.parts import UNLIMITED, Frame, Joint, Limits, Link
from dynid.robot.spatial import clean

__all__ = ["model_of_robot", "robot_from_model"]

Array = NDArray[np.float64]


def _simple_kind(joint: pin.JointModel) -> str | None:
    """ "revolute" or "prismatic" for the joints with one degree of freedom that dynid knows."""
    name = joint.shortname()
    aligned = name.removeprefix("JointModel")
    if aligned in {"RX", "RY", "RZ", "RUBX", "RUBY", "RUBZ", "RevoluteUnaligned", "RevoluteUnboundedUnaligned"}:
        return "revolute"
    if aligned in {"PX", "PY", "PZ", "PrismaticUnaligned"}:
        return "prismatic"
    return None


def _axis(joint: pin.JointModel, kind: str) -> Array:
    """Unit axis in the joint frame, read off the motion subspace."""
    data = joint.createData()
    neutral = np.zeros(joint.nq)
    if joint.nq == 2:  # unbounded joints store cosine and sine
        neutral[0] = 1.0
    joint.calc(data, neutral)
    subspace = np.asarray(data.S).reshape(6)
    return subspace[3:] if kind == "revolute" else subspace[:3]


def _limits(model: pin.Model, joint: pin.JointModel) -> Limits:
    unbounded = joint.nq != joint.nv
    q, v = joint.idx_q, joint.idx_v
    lower, upper = (-np.inf, np.inf) if unbounded else (model.lowerPositionLimit[q], model.upperPositionLimit[q])
    # Pinocchio marks an unknown limit by the largest float.
    unknown = float(np.finfo(float).max)
    values = [float(x) for x in (lower, upper, model.velocityLimit[v], model.effortLimit[v])]
    values = [np.copysign(np.inf, x) if abs(x) >= unknown else x for x in values]
    # A file without limits leaves zeros or an empty range behind.
    if values[0] == values[1] == 0.0:
        values[:2] = [-np.inf, np.inf]
    return Limits(values[0], values[1], *(x if x > 0 else np.inf for x in values[2:]))


def _link_name(model: pin.Model, index: int) -> str:
    for frame in model.frames:
        if frame.parentJoint == index and frame.type == pin.FrameType.BODY:
            return str(frame.name)
    return "base_link" if index == 0 else f"{model.names[index]}_link"


def _steps(model: pin.Model, index: int) -> list[tuple[str, pin.JointModel, Array]]:
    """The one-degree-of-freedom joints of joint `index`: name, joint, placement in the previous frame."""
    joint, name = model.joints[index], str(model.names[index])
    start = np.asarray(model.jointPlacements[index].homogeneous)
    if joint.shortname() != "JointModelComposite":
        return [(name, joint, start)]
    composite = joint.extract() if hasattr(joint, "extract") else joint
    out = []
    for k, (part, where) in enumerate(zip(composite.joints, composite.jointPlacements, strict=True)):
        out.append((f"{name}.{k + 1}", part, (start if k == 0 else np.eye(4)) @ where.homogeneous))
    return out


def robot_from_model(model: pin.Model, name: str | None = None) -> Robot:
    """Robot of a Pinocchio model, links and joints in Pinocchio's order."""
    floating = len(model.joints) > 1 and model.joints[1].shortname() == "JointModelFreeFlyer"
    root = 1 if floating else 0
    inertia = [np.asarray(i.toDynamicParameters()) for i in model.inertias]
    links = [Link(_link_name(model, root), inertia[root])]
    link_of = {0: 0, root: 0}
    joints: list[Joint] = []
    for index in range(root + 1, len(model.joints)):
        parent = link_of[int(model.parents[index])]
        steps = _steps(model, index)
        for k, (joint_name, joint, where) in enumerate(steps):
            kind = _simple_kind(joint)
            if kind is None:
                raise ModelError(
                    f"joint '{joint_name}' is of kind {joint.shortname().removeprefix('JointModel')}, which is not "
                    "supported: use revolute, continuous, prismatic, fixed or mimic joints"
                )
            limits = _limits(model, joint) if len(steps) == 1 else UNLIMITED
            joints.append(Joint(joint_name, kind, parent, clean(where), _axis(joint, kind), limits=limits))  # type: ignore[arg-type]
            last = k == len(steps) - 1
            links.append(
                Link(_link_name(model, index), inertia[index])
                if last
                else Link(f"{joint_name}.virtual", np.zeros(10), virtual=True)
            )
            parent = len(links) - 1
        link_of[index] = parent
    taken = {link.name for link in links}
    frames = tuple(
        Frame(str(f.name), link_of[int(f.parentJoint)], np.asarray(f.placement.homogeneous))
        for f in model.frames
        if f.type in (pin.FrameType.BODY, pin.FrameType.OP_FRAME, pin.FrameType.FIXED_JOINT)
        and str(f.name) not in taken | {"universe"}
    )
    return Robot(
        name=name or str(model.name) or "robot",
        links=tuple(links),
        joints=tuple(joints),
        gravity=np.asarray(model.gravity.linear),
        base="floating" if floating else "fixed",
        frames=frames,
    )


def apply_file_drives(robot: Robot, model: pin.Model) -> Robot:
    """Fill armature, damping and dry friction of the file into the drive terms that are modelled."""
    known: dict[tuple[str, TermKind], float] = {}
    for index, name in enumerate(model.names):
        joint = model.joints[index]
        if index == 0 or joint.nv != 1:
            continue
        v = joint.idx_v
        known[str(name), TermKind.INERTIA] = float(model.armature[v])
        known[str(name), TermKind.VISCOUS] = float(model.damping[v])
        known[str(name), TermKind.COULOMB] = float(model.friction[v])
    drives = tuple(replace(t, value=known.get((t.shaft, t.kind), t.value)) for t in robot.drives)
    return replace(robot, drives=drives)


def model_of_robot(robot: Robot, independent: bool) -> pin.Model:
    """Pinocchio model of a robot; bodies are moved from link frames to joint frames."""
    mimic = [j.name for j in robot.joints if j.mimic is not None]
    if mimic and not independent:
        raise ModelError(
            f"joint '{mimic[0]}' mimics another; to_pinocchio(independent=True) makes it a joint of its own"
        )
    model = pin.Model()
    model.name = robot.name
    model.gravity.linear = robot.gravity
    root = 0
    if robot.base == "floating":
        root = model.addJoint(0, pin.JointModelFreeFlyer(), pin.SE3.Identity(), "root_joint")
    model.inertias[root] = _inertia(robot.links[0].inertia)
    model.addFrame(pin.Frame(robot.links[0].name, root, 0, pin.SE3.Identity(), pin.FrameType.BODY))
    index = [root]
    for joint, link in zip(robot.joints, robot.links[1:], strict=True):
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
        model.inertias[i] = _inertia(move_inertia(link.inertia, joint.mount))
        model.addFrame(pin.Frame(link.name, i, 0, pin.SE3(np.asarray(joint.mount)), pin.FrameType.BODY))
        index.append(i)
    armature, damping, friction = (np.zeros(model.nv) for _ in range(3))
    for term in robot.drives:
        if np.count_nonzero(term.direction) != 1 or term.cross_only:
            continue
        k = int(np.flatnonzero(term.direction)[0])
        v = model.joints[model.getJointId(robot.coordinates[k])].idx_v
        if term.kind == TermKind.INERTIA:
            armature[v] += term.value * term.direction[k] ** 2
        elif term.kind == TermKind.VISCOUS:
            damping[v] += term.value * term.direction[k] ** 2
        elif term.kind == TermKind.COULOMB:
            friction[v] += term.value * abs(term.direction[k])
    model.armature, model.damping, model.friction = armature, damping, friction
    for frame in robot.frames:
        mount = np.eye(4) if frame.link == 0 else robot.joints[frame.link - 1].mount
        where = pin.SE3(mount @ frame.placement)
        model.addFrame(pin.Frame(frame.name, index[frame.link], 0, where, pin.FrameType.OP_FRAME))
    return model


def _inertia(pi: Array) -> pin.Inertia:
    """Pinocchio inertia of ten numbers; a massless body keeps only its tensor."""
    if pi[0] == 0:
        if np.any(pi[1:4] != 0):
            raise ModelError("a body has a first moment but no mass, which Pinocchio cannot hold")
        tensor = np.array([[pi[4], pi[5], pi[7]], [pi[5], pi[6], pi[8]], [pi[7], pi[8], pi[9]]])
        return pin.Inertia(0.0, np.zeros(3), tensor)
    mass, com, tensor = inertia_to_com(pi)
    return pin.Inertia(float(mass), com, tensor)
