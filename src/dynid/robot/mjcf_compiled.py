"""Reader of MJCF files through MuJoCo's compiler, which resolves defaults, macros, includes, meshes and settings."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError, keyword
from dynid.robot.chains import Step, add_chain, ball, ball_angles, floating
from dynid.robot.constraints import Constraint, JointEquality
from dynid.robot.drives import FileDrives
from dynid.robot.equalities import with_equalities
from dynid.robot.extent import joined_boxes, moved_box, round_box, with_extents
from dynid.robot.inertia import inertia_from_com, move_inertia
from dynid.robot.lock import lock_open_tree
from dynid.robot.mjcf_constraints import joint_equalities, loops_of, tied_to_world
from dynid.robot.mjcf_passive import drive_values, driven_joints, servo_gains, with_passive_elements
from dynid.robot.model import Robot
from dynid.robot.notes import chain_notes, quoted
from dynid.robot.parts import Frame, Joint, Limits, Link, Merge, read_limits
from dynid.robot.spatial import axis_rotation, clean, inverse_placement, placement

__all__ = ["CompiledTree", "NotCompiled", "compile_file", "position_servos", "read_compiled"]

Array = NDArray[np.float64]
_FREE, _BALL, _SLIDE, _HINGE = (int(getattr(mujoco.mjtJoint, f"mjJNT_{k}")) for k in ("FREE", "BALL", "SLIDE", "HINGE"))

# Radius (m) of the point that stands for a mesh with a mass.
_POINT = 0.01

# What MuJoCo raises on files that it does not take.
_REFUSED = (ValueError, TypeError, OverflowError, RuntimeError, MemoryError, mujoco.FatalError)


class NotCompiled(ModelError):
    """A file that MuJoCo refuses."""


def read_compiled(path: Path, name: str, *, ignore_loops: bool) -> tuple[Robot, FileDrives]:
    """Robot and drive values of an MJCF file, as MuJoCo compiles it."""
    model, notes = compile_file(path)
    _refuse(model, path.name)
    tree = CompiledTree(model)
    robot, held, equalities = tree.robot(name)
    closing, others, more = loops_of(model, tree.bodies, tree.names)
    loops: list[Constraint] = [*closing, *equalities]
    if others and not ignore_loops:
        raise ModelError(
            f"{others[0]} is not supported: {keyword('ignore_loops', True)} reads the robot without it",
            code="unsupported",
            where=path.name,
        )
    left = [*others, *(str(loop) for loop in loops if ignore_loops)]
    more += [f"{where} closes a loop and was left out" for where in left]
    robot = with_passive_elements(replace(robot, notes=(*notes, *robot.notes, *more)), model, tree.names)
    if held:
        robot, loops = lock_open_tree(robot, held, loops)
    if loops and not ignore_loops:
        robot = _closed(robot, tree, loops)
    return robot, drive_values(model, tree.names)


def _closed(robot: Robot, tree: CompiledTree, loops: list[Constraint]) -> Robot:
    """The robot with loops that close near the reference posture or a keyframe.

    Joints with motors are independent, or those with friction or armature where the file has no motors.
    """
    model = tree.model
    values = drive_values(model, tree.names)
    driven = driven_joints(model, tree.names) or {name for name, each in values.items() if any(each.values())}
    offsets = tuple(robot.joint_term(name, "off") for name in robot.coordinates if name in driven)
    reasons = []
    for posture in (tree.posture(model.qpos0), *robot.postures.values()):
        start = {name: value for name, value in posture.items() if name in robot.coordinates}
        try:
            passive = replace(robot, drives=offsets, transmission=None).with_loops(loops, posture=start).passive
            return robot.with_loops(loops, passive=passive, posture=start)
        except ModelError as error:
            reasons.append(str(error))
    raise ModelError(reasons[0])


def position_servos(path: Path) -> dict[str, tuple[float, float, float]]:
    """Gains (N m/rad, N m s/rad) and largest torque of the position actuators of a file, by joint."""
    model, _ = compile_file(path)
    return servo_gains(model, CompiledTree(model).names)


def compile_file(path: Path) -> tuple[Any, list[str]]:
    """The compiled model of a file without its looks, and sentences on meshes that are missing."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # attributes that MuJoCo will drop one day
        return _compile(path)


def _compile(path: Path) -> tuple[Any, list[str]]:
    try:
        return _without_looks(path).compile(), []
    except _REFUSED as error:
        reason = _sentence(error)
    # A mesh that is missing or wrong matters only where the inertia comes from it.
    try:
        spec = _without_looks(path)
        spared, points = [], []
        for body in spec.bodies:
            meshes = [g for g in body.geoms if g.meshname]
            needed = not body.explicitinertial and body.name != "world"
            for geom in meshes:
                if not needed:
                    spec.delete(geom)
                elif np.isfinite(geom.mass):  # the mass is known without the mesh, its distribution is not
                    geom.type, geom.meshname, geom.size[0] = mujoco.mjtGeom.mjGEOM_SPHERE, "", _POINT
                    points.append(f"{geom.mass:.3g} kg of '{body.name}'")
            spared += [body.name] if meshes and not needed else []
        used = {geom.meshname for geom in spec.geoms}
        for mesh in [mesh for mesh in spec.meshes if mesh.name not in used]:
            spec.delete(mesh)
        model = spec.compile()
    except _REFUSED as error:
        raise NotCompiled(f"MuJoCo cannot compile {path.name}: {_sentence(error)}") from None
    notes = [f"{reason}: meshes were left out, so the size of {quoted('link', spared)} is not known"] if spared else []
    if points:
        notes.append(f"{reason}: {', '.join(points)} became a point at the place of the mesh that is missing")
    return model, notes


def _without_looks(path: Path) -> Any:
    """What a file specifies, without textures, materials and skins, whose files may be missing."""
    spec = mujoco.MjSpec.from_file(str(path))
    spec.compiler.fusestatic = 0
    spec.memory = -1  # MuJoCo's own choice: a file could ask for all there is
    for shape in [*spec.geoms, *spec.sites, *spec.tendons]:
        shape.material = ""
    for look in [*spec.textures, *spec.materials, *spec.skins]:
        spec.delete(look)
    return spec


def _sentence(error: Exception) -> str:
    """The message of MuJoCo on one line, without the word Error."""
    lines = [
        line.strip().removeprefix("XML ").removeprefix("Error:").strip().removeprefix("Error:").strip()
        for line in str(error).splitlines()
    ]
    return ", ".join(line for line in lines if line)


def _refuse(model: Any, file: str) -> None:
    """Refuse what is no tree of rigid bodies with torques on its joints."""
    if model.nflex:
        raise ModelError(
            f"{file} has flexible bodies (flex), which are not supported: dynid models rigid bodies", code="unsupported"
        )
    muscles = np.flatnonzero(model.actuator_biastype == int(mujoco.mjtBias.mjBIAS_MUSCLE))
    if len(muscles):
        name = model.actuator(muscles[0]).name
        raise ModelError(
            f"{file} has muscles ('{name}' and {len(muscles) - 1} more), which are not supported", code="unsupported"
        )


class CompiledTree:
    """Bodies and joints of a compiled model, in MuJoCo's depth-first order.

    `names` are those of MuJoCo's joints, empty for the free base and for joints in `chains`, which became several.
    """

    def __init__(self, model: Any) -> None:
        self.model = model
        self.links = [Link("world", np.zeros(10))]
        self.joints: list[Joint] = []
        self.frames: list[Frame] = []
        self.merged: list[Merge] = []
        self.boxes: dict[str, Array | None] = {}
        self.notes: list[str] = []
        self.names: list[str] = []  # of MuJoCo's joints
        self.chains: dict[int, tuple[str, list[Step]]] = {}  # MuJoCo joint -> its name and the joints that it became
        self._count = 0  # of bodies, for the names of those that have none
        roots = {int(model.body_rootid[b]) for b in model.jnt_bodyid}
        free = [j for j in range(model.njnt) if model.jnt_type[j] == _FREE]
        self.floating = len(roots) == 1 and len(free) == 1 and not tied_to_world(model)
        # Name, link and placement on it of every body; what stands in the world of a floating robot has no link.
        self.bodies: list[tuple[str, int, Array]] = [("world", -1 if self.floating else 0, np.eye(4))]
        for body in range(1, model.nbody):
            self._read(body)
        for site in range(model.nsite):
            if model.site(site).name:
                _, link, on = self.bodies[model.site_bodyid[site]]
                pose = _pose(model.site_pos[site], model.site_quat[site])
                if link >= 0:
                    self.frames.append(Frame(model.site(site).name, link, on @ pose))

    def robot(self, name: str) -> tuple[Robot, dict[str, float], list[JointEquality]]:
        """The robot without drive terms, and what `with_equalities` returns beside it."""
        model = self.model
        off = model.opt.disableflags & int(mujoco.mjtDisableBit.mjDSBL_GRAVITY)
        equalities, notes = joint_equalities(model, self.names)
        robot = Robot(
            name=name,
            links=tuple(self.links),
            joints=tuple(self.joints),
            gravity=np.zeros(3) if off else np.array(model.opt.gravity),
            base="floating" if self.floating else "fixed",
            frames=tuple(self.frames),
            merged=tuple(self.merged),
            postures=self.postures(),
            notes=(*self.notes, *notes),
        )
        return with_equalities(with_extents(robot, self.boxes), equalities)

    def _read(self, body: int) -> None:
        model = self.model
        standing = self.floating and int(model.body_weldid[body]) == 0
        self._count += not standing
        name = model.body(body).name or f"body{self._count}"
        inertia = inertia_from_com(model.body_mass[body], np.zeros(3), np.diag(model.body_inertia[body]))
        inertia = move_inertia(inertia, _pose(model.body_ipos[body], model.body_iquat[body]))
        box = self._box(body)
        _, carrier, on = self.bodies[model.body_parentid[body]]
        place = on @ _pose(model.body_pos[body], model.body_quat[body])
        start, count = model.body_jntadr[body], model.body_jntnum[body]
        if standing:
            self.bodies.append((name, -1, place))
            return
        if count and self.floating and model.jnt_type[start] == _FREE:
            self.links = [Link(name, inertia)]
            self.names.append("")
            carrier, on = 0, np.eye(4)
            lost = self._lost(start)
            if lost:
                self.notes.append(f"the {', '.join(lost)} of the free base is not modeled")
        elif count:
            self._hang(body, name, inertia, carrier, place)
            carrier, on = len(self.links) - 1, np.eye(4)
        else:
            on = clean(place)
            link = self.links[carrier]
            self.links[carrier] = replace(link, inertia=link.inertia + move_inertia(inertia, on))
            self.frames.append(Frame(name, carrier, on))
            self.merged.append(Merge(name, f"{name}_fixed", link.name, float(inertia[0])))
        if box is not None:
            self.boxes[name] = box[0]
        self.bodies.append((name, carrier, on))

    def _hang(self, body: int, name: str, inertia: Array, parent: int, place: Array) -> None:
        """Add a body with its joints, one after the other; all but the last carry a virtual link."""
        model = self.model
        start, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
        for j in range(start, start + count):
            joint = model.joint(j).name or f"{name}_joint{j - start + 1 if count > 1 else ''}"
            kind, at, axis = int(model.jnt_type[j]), np.array(model.jnt_pos[j]), np.array(model.jnt_axis[j])
            link = Link(name, inertia)
            if j < start + count - 1:
                link = Link(f"{joint}.virtual", np.zeros(10), virtual=True)
            limits: dict[str, Limits] = {}
            if kind in (_HINGE, _SLIDE):
                reference = float(model.qpos0[model.jnt_qposadr[j]])
                back = placement(axis_rotation(axis, -reference)) if kind == _HINGE else None
                back = placement(None, -reference * axis) if back is None else back
                before = clean(place @ placement(None, at) @ back)
                steps = [Step("", "revolute" if kind == _HINGE else "prismatic", axis)]
                limits[""] = self._limits(j, joint)
            elif kind == _BALL:
                before = clean(place @ placement(None, at))
                steps = ball(inertia[1:4] - inertia[0] * at if link.name == name else None)
            else:  # a free body beside others; its position is that in the world
                before, steps = np.eye(4), floating()
            self.names.append(joint if len(steps) == 1 else "")
            made = add_chain(self.joints, self.links, joint, steps, parent, before, placement(None, -at), link, limits)
            if len(steps) > 1:
                self.chains[j] = joint, steps
                what = f"ball joint '{joint}'" if kind == _BALL else f"free joint '{joint}'"
                self.notes += chain_notes(what, made, self._lost(j))
            parent, place = len(self.links) - 1, np.eye(4)

    def _lost(self, j: int) -> list[str]:
        """What acts on a ball or free joint and has no drive term on the joints that it became."""
        model, dof = self.model, int(self.model.jnt_dofadr[j])
        found = {
            "armature": model.dof_armature[dof],
            "damping": model.dof_damping[dof],
            "frictionloss": model.dof_frictionloss[dof],
            "stiffness": model.jnt_stiffness[j],
            "range": model.jnt_limited[j],
        }
        return [key for key, value in found.items() if value]

    def _limits(self, j: int, name: str) -> Limits:
        model = self.model
        given: dict[str, Any] = {}
        if model.jnt_limited[j]:
            given["position"] = [float(x) for x in model.jnt_range[j]]
        if model.jnt_actfrclimited[j]:
            given["effort"] = float(np.abs(model.jnt_actfrcrange[j]).min())
        return read_limits(name, given)

    def _box(self, body: int) -> list[Array | None] | None:
        """The box around the shapes of a body that collide, or all where none does; None without shapes."""
        model = self.model
        start, count = model.body_geomadr[body], model.body_geomnum[body]
        geoms = range(start, start + count)
        solid = [g for g in geoms if model.geom_contype[g] or model.geom_conaffinity[g]]
        boxes = [_geom_box(model, g) for g in solid or geoms]
        return [joined_boxes(boxes)] if boxes else None

    def postures(self) -> dict[str, dict[str, float]]:
        """The keyframes: positions of the joints by name."""
        model = self.model
        return {model.key(k).name or f"key{k}": self.posture(model.key_qpos[k]) for k in range(model.nkey)}

    def posture(self, q: Array) -> dict[str, float]:
        """Positions of the joints by name, for MuJoCo's configuration q."""
        out: dict[str, float] = {}
        for j, name in enumerate(self.names):
            first = int(self.model.jnt_qposadr[j])
            if name:
                out[name] = float(q[first])
            elif j in self.chains:
                out |= self._chain_posture(j, q[first : first + 7])
        return out

    def _chain_posture(self, j: int, q: Array) -> dict[str, float]:
        joint, steps = self.chains[j]
        shift = [float(x) for x in q[:3]] if len(steps) == 6 else []
        turn = _pose(np.zeros(3), q[len(shift) : len(shift) + 4])[:3, :3]
        values = [*shift, *ball_angles(steps[-3:], turn)]
        return {joint + step.suffix: value for step, value in zip(steps, values, strict=True)}


def _pose(position: Array, quaternion: Array) -> Array:
    """Placement from a position and a quaternion w, x, y, z."""
    w, x, y, z = np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion)
    rotation = [
        [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
    ]
    return placement(rotation, position)


def _geom_box(model: Any, geom: int) -> Array | None:
    """Box (2, 3) of a geom in the frame of its body; None for planes, height fields and other unbounded shapes."""
    kinds = mujoco.mjtGeom
    kind, size = kinds(int(model.geom_type[geom])), np.array(model.geom_size[geom])
    place = _pose(model.geom_pos[geom], model.geom_quat[geom])
    if kind == kinds.mjGEOM_MESH:
        mesh = int(model.geom_dataid[geom])
        start, count = model.mesh_vertadr[mesh], model.mesh_vertnum[mesh]
        moved = _pose(model.mesh_pos[mesh], model.mesh_quat[mesh])  # MuJoCo centres meshes; back to the file's frame
        corners = model.mesh_vert[start : start + count] @ moved[:3, :3].T + moved[:3, 3]
        box = np.array([corners.min(axis=0), corners.max(axis=0)])
        return moved_box(box, place @ inverse_placement(moved))
    if kind == kinds.mjGEOM_SPHERE:
        half = np.full(3, size[0])
    elif kind in (kinds.mjGEOM_CAPSULE, kinds.mjGEOM_CYLINDER):
        half = np.array([size[0], size[0], size[1] + (size[0] if kind == kinds.mjGEOM_CAPSULE else 0.0)])
    elif kind in (kinds.mjGEOM_BOX, kinds.mjGEOM_ELLIPSOID):
        half = size
    else:
        return None
    return moved_box(round_box(half), place)
