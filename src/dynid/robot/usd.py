"""Reader of USD stages with the physics schema: rigid bodies, their masses, and the joints between them.

The pxr module (usd-core) resolves layers, references and variants; here only the tree is made. Both happen in a child
process: the module follows what a stage says about itself, and asks for whatever computer memory that takes.
"""

from __future__ import annotations

import importlib.util
import tempfile
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.child import read_in_child
from dynid.errors import ModelError
from dynid.limits import exceeded, file_limits
from dynid.robot.chains import Step, add_chain, ball
from dynid.robot.constraints import Loop
from dynid.robot.drives import FileDrives
from dynid.robot.inertia import inertia_from_com, move_inertia
from dynid.robot.inside import check_inside
from dynid.robot.loop_joints import CLOSING, closing_loops, with_closing_loops
from dynid.robot.model import Robot
from dynid.robot.notes import chain_notes, quoted
from dynid.robot.parts import Frame, Joint, Limits, Link, Merge, read_limits
from dynid.robot.serialize import robot_from_dict, robot_to_dict
from dynid.robot.spatial import clean, inverse_placement, placement

__all__ = ["extract", "read_usd"]

Array = NDArray[np.float64]
_WORLD = "world"
_KINDS = {
    "PhysicsRevoluteJoint": "revolute",
    "PhysicsPrismaticJoint": "prismatic",
    "PhysicsSphericalJoint": "ball",
    "PhysicsFixedJoint": "fixed",
}


@dataclass(frozen=True, eq=False)
class _UsdJoint:
    """A joint: its prim, kind, the two bodies (paths, empty for the world) and its frames on them."""

    prim: Any
    name: str
    kind: str
    ends: tuple[str, str]
    frames: tuple[Array, Array]


def read_usd(path: Path, *, ignore_loops: bool = False) -> tuple[Robot, FileDrives]:
    """Robot and drive values of a USD stage."""
    if importlib.util.find_spec("pxr") is None:
        raise ModelError(f"{path.name} needs the package 'usd-core': pip install 'dynid[usd]'", code="missing_package")
    with tempfile.TemporaryDirectory(prefix="dynid-") as folder:
        found = read_in_child("dynid.robot.usd:extract", path, Path(folder), ignore_loops, error=ModelError)
    return robot_from_dict(found["robot"]), found["drives"]


def extract(path: Path, _: Path, ignore_loops: bool) -> dict[str, Any]:
    """The robot of a stage as plain data, and its drive values, in a process of its own."""
    robot, drives = _robot(path, ignore_loops)
    return {"robot": robot_to_dict(robot), "drives": drives}


def _robot(path: Path, ignore_loops: bool) -> tuple[Robot, FileDrives]:
    from pxr import Tf, Usd

    try:
        stage = Usd.Stage.Open(str(path))
    except Tf.ErrorException as error:
        # Lines of the form: Error in 'function' at line 7 in file stage.cpp : 'what is wrong'.
        said = [line.partition(" : ")[2].strip("'") for line in str(error).splitlines()]
        reason = next(filter(None, said), "it cannot be opened").replace(f"{path.parent}/", "")
        raise ModelError(f"{path.name} is not a USD stage: {reason:.200}", code="file_damaged") from None
    for layer in stage.GetUsedLayers():
        if layer.realPath:  # layers in memory have none; those of an archive are named archive[layer]
            check_inside(layer.identifier, Path(layer.realPath.partition("[")[0]), path)
    tree = _Tree(stage, path.name)
    robot = Robot(
        name=path.stem,
        links=tuple(tree.links),
        joints=tuple(tree.joints),
        gravity=tree.gravity(),
        base="fixed" if tree.fixed else "floating",
        frames=tuple(tree.frames),
        merged=tuple(tree.merged),
        notes=tuple(tree.notes),
    )
    if tree.loops and ignore_loops:
        notes = [f"joint '{name}' closes a loop and was left out" for name in {x.name: None for x in tree.loops}]
        return replace(robot, notes=(*robot.notes, *notes)), tree.drives
    return with_closing_loops(robot, tree.loops) if tree.loops else robot, tree.drives


class _Tree:
    """Bodies and joints of a stage, from the world or the first body of the articulation outwards."""

    def __init__(self, stage: Any, file: str) -> None:
        from pxr import UsdGeom, UsdPhysics

        self.stage = stage
        self.length = UsdGeom.GetStageMetersPerUnit(stage)
        self.mass = UsdPhysics.GetStageKilogramsPerUnit(stage)
        self.links: list[Link] = []
        self.joints: list[Joint] = []
        self.frames: list[Frame] = []
        self.merged: list[Merge] = []
        self.loops: list[Loop] = []
        self.drives: FileDrives = {}
        self.notes: list[str] = []
        cache = UsdGeom.XformCache()
        prims = [p for p in stage.Traverse() if p.HasAPI(UsdPhysics.RigidBodyAPI)]
        if not prims:
            raise ModelError(f"{file} has no rigid bodies (PhysicsRigidBodyAPI)", code="missing_data")
        if len(prims) > file_limits().links:
            exceeded(file, f"{len(prims)} bodies", "links", ModelError)
        self.bodies = {str(p.GetPath()): p for p in prims}
        names = Counter(p.GetName() for p in prims)
        self.names = {
            path: p.GetName() if names[p.GetName()] == 1 else path.strip("/").replace("/", "_")
            for path, p in self.bodies.items()
        } | {"": _WORLD}
        self.scales = {path: _scale(cache.GetLocalToWorldTransform(p)) for path, p in self.bodies.items()} | {
            "": np.ones(3)
        }
        self.usd_joints = [self._joint(p) for p in stage.Traverse() if p.IsA(UsdPhysics.Joint) and _enabled(p)]
        self._note_drives()
        on_world = [j for j in self.usd_joints if "" in j.ends]
        self.fixed = bool(on_world)
        # The link itself is the base where the world carries one link only, on a fixed joint.
        start = next((e for j in on_world for e in j.ends if e and j.kind == "fixed"), "") if len(on_world) == 1 else ""
        if start:
            self.usd_joints.remove(on_world[0])
        self.start = start or ("" if on_world else self._root())
        self._grow()
        left = [name for path, name in self.names.items() if path and path not in self.on]
        if left:
            self.notes.append(
                f"{quoted('body', left).replace('bodys', 'bodies')} are not joined to the robot: left out"
            )

    def gravity(self) -> Array:
        """Gravity of the scene in the base frame, 9.81 m/s2 downwards where it gives none."""
        from pxr import UsdGeom, UsdPhysics

        up = np.array([0.0, 1.0, 0.0] if UsdGeom.GetStageUpAxis(self.stage) == "Y" else [0.0, 0.0, 1.0])
        direction, size = -up, 9.81
        for prim in self.stage.Traverse():
            if prim.IsA(UsdPhysics.Scene):
                scene = UsdPhysics.Scene(prim)
                given = np.array(scene.GetGravityDirectionAttr().Get() or (0, 0, 0), dtype=float)
                direction = given / np.linalg.norm(given) if np.any(given) else direction
                magnitude = scene.GetGravityMagnitudeAttr().Get()
                size = magnitude * self.length if magnitude is not None and 0 <= magnitude < np.inf else size
        turn = self._world(self.start)[:3, :3] if self.start and self.fixed else np.eye(3)
        out = turn.T @ (size * direction)
        return np.where(np.abs(out) < 1e-12 * size, 0.0, out)

    def _world(self, path: str) -> Array:
        """Placement of a body on the stage, in metres, without its scale."""
        from pxr import UsdGeom

        matrix = UsdGeom.XformCache().GetLocalToWorldTransform(self.bodies[path]).RemoveScaleShear()
        h = np.array(matrix, dtype=float).T
        return placement(h[:3, :3], self.length * h[:3, 3])

    def _root(self) -> str:
        """The body of the articulation root, or the first that no joint has as its second body."""
        from pxr import UsdPhysics

        for path, prim in self.bodies.items():
            if prim.HasAPI(UsdPhysics.ArticulationRootAPI):
                return path
        children = {j.ends[1] for j in self.usd_joints}
        jointed = {end for j in self.usd_joints for end in j.ends}
        return next((p for p in self.bodies if p not in children and p in jointed), next(iter(self.bodies)))

    def _joint(self, prim: Any) -> _UsdJoint:
        from pxr import UsdPhysics

        name, joint = prim.GetName(), UsdPhysics.Joint(prim)
        if prim.GetTypeName() not in _KINDS:
            kinds = ", ".join(_KINDS)
            raise ModelError(
                f"joint '{name}' is of type '{prim.GetTypeName()}', which is not supported: use {kinds}",
                code="unsupported",
            )
        ends, frames = [], []
        for k in (0, 1):
            targets = getattr(joint, f"GetBody{k}Rel")().GetTargets()
            end = str(targets[0]) if targets else ""
            while end and end not in self.bodies:  # a prim below a body, or one that stands in the world
                end = end.rpartition("/")[0]
            position = np.array(getattr(joint, f"GetLocalPos{k}Attr")().Get() or (0, 0, 0), dtype=float)
            turn = getattr(joint, f"GetLocalRot{k}Attr")().Get()
            rotation = np.eye(3) if turn is None else _rotation(turn)
            ends.append(end)
            frames.append(placement(rotation, self.length * self.scales[end] * position))
        return _UsdJoint(prim, name, _KINDS[prim.GetTypeName()], (ends[0], ends[1]), (frames[0], frames[1]))

    def _grow(self) -> None:
        """Add the bodies from the root outwards; joints between bodies that are there already close loops."""
        inertia = np.zeros(10) if not self.start else self._inertia(self.start)
        self.links.append(Link(self.names[self.start], inertia))
        self.on: dict[str, tuple[int, Array]] = {self.start: (0, np.eye(4))}
        todo = list(self.usd_joints)
        while True:
            joint = next((j for j in todo if (j.ends[0] in self.on) or (j.ends[1] in self.on)), None)
            if joint is None:
                return
            todo.remove(joint)
            if all(end in self.on for end in joint.ends):
                first, second = (
                    Frame(self.names[end], self.on[end][0], self.on[end][1] @ frame)
                    for end, frame in zip(joint.ends, joint.frames, strict=True)
                )
                kind = joint.kind
                if kind not in CLOSING:  # the joint stays in the tree with an end of no mass, welded to the body
                    end = Link(f"{joint.name}.virtual", np.zeros(10), virtual=True)
                    self._add(joint, end, first.link, clean(first.placement), np.eye(4), False)
                    first, kind = Frame(joint.name, len(self.links) - 1, np.eye(4)), "fixed"
                self.loops += closing_loops(joint.name, kind, first, second, _axis(joint.prim))
            else:
                self._hang(joint, reverse=joint.ends[0] not in self.on)

    def _hang(self, joint: _UsdJoint, reverse: bool) -> None:
        """Add the body at the other end of a joint, from body 0 to body 1 or, reversed, from body 1 to body 0."""
        (parent, child), (before, after) = joint.ends, joint.frames
        if reverse:
            parent, child, before, after = child, parent, after, before
        number, on = self.on[parent]
        before, mount = clean(on @ before), inverse_placement(after)
        link = Link(self.names[child], self._inertia(child))
        if joint.kind == "fixed":
            place = clean(before @ mount)
            carrier = self.links[number]
            self.links[number] = Link(carrier.name, carrier.inertia + move_inertia(link.inertia, place))
            self.frames.append(Frame(link.name, number, place))
            self.merged.append(Merge(link.name, joint.name, carrier.name, float(link.inertia[0])))
            self.on[child] = number, place
            return
        self._add(joint, link, number, before, clean(mount), reverse)
        self.on[child] = len(self.links) - 1, np.eye(4)

    def _add(self, joint: _UsdJoint, link: Link, parent: int, before: Array, mount: Array, reverse: bool) -> None:
        """Add a joint, or the chain that it becomes, and the link that it carries."""
        limits: dict[str, Limits] = {}
        if joint.kind == "ball":
            steps = ball(mount[:3, :3] @ link.inertia[1:4] + link.inertia[0] * mount[:3, 3])
            self.notes += chain_notes(f"ball joint '{joint.name}'", [joint.name + s.suffix for s in steps], [])
        else:
            axis = _axis(joint.prim) * (-1.0 if reverse else 1.0)
            steps = [Step("", "prismatic" if joint.kind == "prismatic" else "revolute", axis)]
            limits[""] = self._limits(joint)
            armature = joint.prim.GetAttribute("physxJoint:armature").Get()
            self.drives[joint.name] = {"Ia": float(armature or 0.0)}
        add_chain(self.joints, self.links, joint.name, steps, parent, before, mount, link, limits)

    def _limits(self, joint: _UsdJoint) -> Limits:
        scale = self.length if joint.kind == "prismatic" else np.pi / 180
        bounds = [joint.prim.GetAttribute(f"physics:{side}Limit").Get() for side in ("lower", "upper")]
        low, high = (x if x is not None else s * np.inf for x, s in zip(bounds, (-1, 1), strict=True))
        return read_limits(joint.name, {"position": (low * scale, high * scale) if low <= high else (-np.inf, np.inf)})

    def _inertia(self, path: str) -> Array:
        """Inertial parameters of a body in its own frame."""
        from pxr import UsdPhysics

        prim = self.bodies[path]
        api = UsdPhysics.MassAPI(prim)
        mass = api.GetMassAttr().Get() if prim.HasAPI(UsdPhysics.MassAPI) else None
        diagonal = np.array(api.GetDiagonalInertiaAttr().Get() or (0, 0, 0), dtype=float)
        if not mass or not np.any(diagonal):
            what = "inertia" if mass else "mass"
            raise ModelError(
                f"body '{self.names[path]}' gives no {what}: write PhysicsMassAPI with mass and diagonalInertia",
                code="missing_data",
            )
        center = np.array(api.GetCenterOfMassAttr().Get() or (0, 0, 0), dtype=float)
        center = np.where(np.isfinite(center), center, 0.0) * self.scales[path] * self.length
        axes = api.GetPrincipalAxesAttr().Get()
        turn = np.eye(3) if axes is None or axes.GetLength() == 0 else _rotation(axes)
        tensor = self.mass * self.length**2 * np.diag(diagonal)
        return move_inertia(inertia_from_com(mass * self.mass, np.zeros(3), tensor), placement(turn, center))

    def _note_drives(self) -> None:
        driven = [j.name for j in self.usd_joints if any("PhysicsDriveAPI" in x for x in j.prim.GetAppliedSchemas())]
        if driven:
            self.notes.append(f"{quoted('joint', driven)} have drives with feedback of their own, no part of the robot")
        rubbing = [j.name for j in self.usd_joints if j.prim.GetAttribute("physxJoint:jointFriction").Get()]
        if rubbing:
            self.notes.append(f"the friction of {quoted('joint', rubbing)} in the file is not modeled")


def _enabled(prim: Any) -> bool:
    return prim.GetAttribute("physics:jointEnabled").Get() is not False


def _axis(prim: Any) -> Array:
    letter = prim.GetAttribute("physics:axis").Get() or "X"
    return np.eye(3)["XYZ".index(letter)]


def _rotation(quaternion: Any) -> Array:
    import pinocchio as pin

    x, y, z = quaternion.GetImaginary()
    return np.asarray(pin.Quaternion(quaternion.GetReal(), x, y, z).normalized().toRotationMatrix())


def _scale(matrix: Any) -> Array:
    """Lengths of the axes of a transform."""
    return np.linalg.norm(np.array(matrix, dtype=float)[:3, :3], axis=1)
