"""Mass matrix, bias and inverse dynamics of a robot against MuJoCo (MJCF) or Pinocchio (URDF).

The coordinates of the other program are functions of ours: their velocities are G(q) v, with rows of G for mimic
joints, ball joints and bases, so that our mass matrix is G' M G and our torques are G' tau.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pinocchio as pin
from numpy.typing import NDArray

from dynid.dynamics.assembly import assemble
from dynid.dynamics.functions import inverse_dynamics, mass_matrix
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.robot.parts import Joint
from dynid.robot.spatial import axis_rotation, inverse_placement, placement, skew, twist_adjoint

if TYPE_CHECKING:
    from dynid.robot.mjcf_compiled import CompiledTree

__all__ = ["Differences", "against_mujoco", "against_pinocchio"]

Array = NDArray[np.float64]

_SAMPLES = 3
# Torques at zero acceleration below this share of those of a random motion are rounding.
_ROUNDING = 1e-3


@dataclass(frozen=True)
class Differences:
    """Largest differences between dynid and another program, each over the largest value.

    Attributes
    ----------
    mass_matrix, bias, inverse : float
        Of the mass matrix, of the torques at zero acceleration, and of the torques of a random motion.
    """

    mass_matrix: float
    bias: float
    inverse: float

    @property
    def largest(self) -> float:
        """The largest of the three."""
        return max(self.mass_matrix, self.bias, self.inverse)


# The other program: (q, v, a) of ours -> its velocity map G, its mass matrix and its torques.
_Other = Callable[[Array, Array, Array], tuple[Array, Array, Array]]


def _differences(robot: Robot, other: _Other) -> Differences:
    """Compare at random samples."""
    rng = np.random.default_rng(0)
    worst, largest = np.zeros(3), np.full(3, 1e-9)
    sliding = {j.name for j in robot.joints if j.kind == "prismatic"}
    linear = np.array([name in sliding for name in robot.coordinates], dtype=bool)
    for _ in range(_SAMPLES):
        q = rng.uniform(-1, 1, robot.nq)
        q[robot.nq - robot.n :][linear] *= 0.2
        if robot.loops:  # near the posture in which they close
            q[robot.nq - robot.n :] = robot.home + 0.1 * q[robot.nq - robot.n :]
        if robot.base == "floating":
            q[3:7] /= np.linalg.norm(q[3:7])
        v, a = rng.uniform(-1, 1, (2, robot.nv))
        G, M, tau = other(q, v, a)
        bias = other(q, v, np.zeros(robot.nv))[2]
        for k, (ours, theirs) in enumerate(
            (
                (mass_matrix(robot, q), G.T @ M @ G),
                (inverse_dynamics(robot, q, v, np.zeros(robot.nv)), G.T @ bias),
                (inverse_dynamics(robot, q, v, a), G.T @ tau),
            )
        ):
            worst[k] = max(worst[k], np.abs(ours - theirs).max())
            largest[k] = max(largest[k], np.abs(theirs).max())
    largest[1] = max(largest[1], _ROUNDING * largest[2])  # without gravity the bias may be zero
    return Differences(*(float(x) for x in worst / largest))


@dataclass(frozen=True, eq=False)
class _Motion:
    """Placement of a child frame in its parent, its twist and the derivative of that, both in the child frame.

    `map` (6, nv) is the twist per velocity of the robot.
    """

    place: Array
    twist: Array
    change: Array
    map: Array

    def then(self, joint: Joint, x: float, row: Array, v: Array, a: Array) -> _Motion:
        """The motion after one more joint at position x, whose velocity is row . v."""
        turning = joint.kind == "revolute"
        step = placement(axis_rotation(joint.axis, x) if turning else None, None if turning else x * joint.axis)
        back = twist_adjoint(inverse_placement(step))
        axis = np.concatenate([np.zeros(3), joint.axis] if turning else [joint.axis, np.zeros(3)])
        twist = back @ self.twist + axis * (row @ v)
        spin, drive = skew(twist[3:]), axis * (row @ v)
        turn = np.concatenate([spin @ drive[:3] + np.cross(twist[:3], drive[3:]), spin @ drive[3:]])
        change = back @ self.change + axis * (row @ a) + turn
        return _Motion(self.place @ step, twist, change, back @ self.map + np.outer(axis, row))


class _Coordinates:
    """Positions and velocity rows of the joints of a robot, at one sample."""

    def __init__(self, robot: Robot, q: Array, v: Array, a: Array) -> None:
        self.robot, self.q, self.v, self.a = robot, q, v, a
        self.joints = {joint.name: joint for joint in robot.joints}

    def one(self, name: str) -> tuple[float, Array]:
        """Position of a joint and its velocity per velocity of the robot."""
        joint, robot = self.joints[name], self.robot
        leader, ratio, offset = (
            (name, 1.0, 0.0) if joint.mimic is None else (joint.mimic.leader, joint.mimic.ratio, joint.mimic.offset)
        )
        k = robot.coordinates.index(leader)
        row = np.zeros(robot.nv)
        row[robot.nv - robot.n + k] = ratio
        return ratio * self.q[robot.nq - robot.n + k] + offset, row

    def chain(self, names: Sequence[str]) -> _Motion:
        """Relative motion over several joints, without the placements before and after them."""
        out = _Motion(np.eye(4), np.zeros(6), np.zeros(6), np.zeros((6, self.robot.nv)))
        for name in names:
            x, row = self.one(name)
            out = out.then(self.joints[name], x, row, self.v, self.a)
        return out

    def base(self) -> _Motion:
        """Motion of a floating base."""
        turn = pin.Quaternion(*(self.q[k] for k in (6, 3, 4, 5))).toRotationMatrix()
        rows = np.eye(6, self.robot.nv)
        return _Motion(placement(turn, self.q[:3]), self.v[:6], self.a[:6], rows)


def against_mujoco(path: Path, *, ignore_loops: bool = False) -> Differences:
    """Compare the robot of an MJCF file with MuJoCo, without contacts and without what the notes of the robot name.

    Closed loops are compared through the Jacobians of MuJoCo's constraints.

    Parameters
    ----------
    path : Path
        The file.
    ignore_loops : bool
        Whether closed loops are left out.

    Returns
    -------
    Differences
    """
    from dynid.robot.mjcf_compiled import CompiledTree, compile_file

    robot = load_robot(path, friction="viscous", rotor_inertia=True, ignore_loops=ignore_loops)
    if robot.loops:  # passive joints have drive terms where they are named
        names = robot.tree_coordinates
        robot = load_robot(path, friction=dict.fromkeys(names, "viscous"), rotor_inertia=names)
    # MuJoCo counts Coulomb friction among its constraints.
    robot = replace(robot, drives=tuple(term for term in robot.drives if not term.is_coulomb))
    model, _ = compile_file(path)
    tree = CompiledTree(model)
    held = tree.robot(robot.name)[1]
    _leave_out_unmodeled(model, tree.names)
    there = _MujocoState(robot.tree, tree, held)

    def other(q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        N, moved = np.eye(robot.nv), (q, v, a)
        if robot.loops:
            start = assemble(robot, q).q[0]
            N, change = _null_space(robot, there, start, v)
            moved = start, N @ v, N @ a + change
        G, M, tau = there.inverse(*moved)
        return G @ N, M, tau

    return _differences(robot, other)


def _null_space(robot: Robot, there: _MujocoState, q: Array, v: Array) -> tuple[Array, Array]:
    """Tree velocity per velocity of the robot by MuJoCo's constraints, and the acceleration at constant velocity.

    The derivative of the Jacobian along the motion is a central difference of fourth order.
    """
    base, names = robot.nv - robot.n, robot.tree_coordinates
    free = [*range(base), *(base + names.index(name) for name in robot.coordinates)]
    bound = [base + names.index(name) for name in robot.passive]
    J = there.constraints(q)
    N = np.zeros((robot.tree.nv, robot.nv))
    N[free, range(robot.nv)] = 1.0
    N[bound] = -np.linalg.lstsq(J[:, bound], J[:, free], rcond=1e-10)[0]
    h, along = 1e-3, N @ v
    steps = {s: there.constraints(_moved(robot.tree, q, s * h * along)) @ along for s in (-2, -1, 1, 2)}
    slope = (8 * (steps[1] - steps[-1]) - (steps[2] - steps[-2])) / (12 * h)
    change = np.zeros(robot.tree.nv)
    change[bound] = -np.linalg.lstsq(J[:, bound], slope, rcond=1e-10)[0]
    return N, change


def _moved(robot: Robot, q: Array, step: Array) -> Array:
    """Configuration after a small step of the joints; constraints do not depend on the pose of a floating base."""
    out = q.copy()
    out[robot.nq - robot.n :] += step[robot.nv - robot.n :]
    return out


class _MujocoState:
    """A compiled model at configurations of our robot; `held` are the positions of joints that are locked."""

    def __init__(self, robot: Robot, tree: CompiledTree, held: Mapping[str, float]) -> None:
        import mujoco

        self.robot, self.tree, self.held = robot, tree, held
        self.free = int(mujoco.mjtJoint.mjJNT_FREE)
        self.data = mujoco.MjData(tree.model)

    def inverse(self, q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        """Velocity map, mass matrix and torques."""
        import mujoco

        model, data = self.tree.model, self.data
        G, change = self._place(q, v, a)
        data.qvel[:], data.qacc[:] = G @ v, change
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        mujoco.mj_inverse(model, data)
        M = np.zeros((model.nv, model.nv))
        for i in range(model.nv):
            column = np.zeros(model.nv)
            mujoco.mj_mulM(model, data, column, np.eye(model.nv)[i])
            M[:, i] = column
        return G, M, np.array(data.qfrc_inverse)

    def constraints(self, q: Array) -> Array:
        """Jacobian of the active equality constraints over the velocities of the tree."""
        import mujoco

        model, data = self.tree.model, self.data
        G, _ = self._place(q, np.zeros(self.robot.nv), np.zeros(self.robot.nv))
        data.qvel[:] = 0.0
        model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        mujoco.mj_fwdPosition(model, data)
        rows = np.array(data.efc_type[: data.nefc]) == int(mujoco.mjtConstraint.mjCNSTR_EQUALITY)
        return np.array(data.efc_J).reshape(-1, model.nv)[: data.nefc][rows] @ G

    def _place(self, q: Array, v: Array, a: Array) -> tuple[Array, Array]:
        """Set the configuration; returns the velocity map and the acceleration."""
        model, data, tree = self.tree.model, self.data, self.tree
        ours = _Coordinates(self.robot, q, v, a)
        G, change = np.zeros((model.nv, self.robot.nv)), np.zeros(model.nv)
        for j, name in enumerate(tree.names):
            at, dof = int(model.jnt_qposadr[j]), int(model.jnt_dofadr[j])
            if name in ours.joints:
                data.qpos[at], G[dof] = ours.one(name)
                change[dof] = G[dof] @ a
            elif name:
                data.qpos[at] = self.held[name]
            else:
                joint, steps = tree.chains.get(j, ("", []))
                motion = ours.chain([joint + step.suffix for step in steps]) if steps else ours.base()
                turn, twist = motion.place[:3, :3], motion.twist
                if model.jnt_type[j] == self.free:  # linear velocity in the world, angular velocity in the body
                    data.qpos[at : at + 3] = motion.place[:3, 3]
                    G[dof : dof + 3] = turn @ motion.map[:3]
                    change[dof : dof + 3] = turn @ (motion.change[:3] + np.cross(twist[3:], twist[:3]))
                    at, dof = at + 3, dof + 3
                quaternion = pin.Quaternion(turn)
                data.qpos[at : at + 4] = quaternion.w, quaternion.x, quaternion.y, quaternion.z
                G[dof : dof + 3] = motion.map[3:]
                change[dof : dof + 3] = motion.change[3:]
        return G, change


def _leave_out_unmodeled(model: Any, names: Sequence[str]) -> None:
    """Switch off in MuJoCo what the notes of the robot say is not modeled."""
    import mujoco

    from dynid.robot.mjcf_passive import fixed_tendon

    for what in ("FRICTIONLOSS", "LIMIT", "CONTACT"):
        model.opt.disableflags |= int(getattr(mujoco.mjtDisableBit, f"mjDSBL_{what}"))
    model.opt.jacobian = int(mujoco.mjtJacobian.mjJAC_DENSE)
    model.opt.density = model.opt.viscosity = 0.0
    model.body_gravcomp[:] = 0.0
    for field in ("jnt_stiffnesspoly", "dof_dampingpoly", "tendon_stiffnesspoly", "tendon_dampingpoly"):
        if hasattr(model, field):
            getattr(model, field)[:] = 0.0
    whole = [j for j, name in enumerate(names) if not name]
    model.jnt_stiffness[whole] = 0.0
    dofs = [d for d in range(model.nv) if model.dof_jntid[d] in whole]
    model.dof_M0[dofs] -= model.dof_armature[dofs]  # MuJoCo takes the inertia of simple bodies from here
    model.dof_armature[dofs] = model.dof_damping[dofs] = 0.0
    for t in range(model.ntendon):
        lower, upper = model.tendon_lengthspring[t]
        if fixed_tendon(model, t, names) is None:
            model.tendon_damping[t] = model.tendon_armature[t] = 0.0
        if fixed_tendon(model, t, names) is None or lower != upper:
            model.tendon_stiffness[t] = 0.0


def against_pinocchio(source: Path | pin.Model, *, floating: bool = False) -> Differences:
    """Compare the robot of a URDF file or Pinocchio model with Pinocchio.

    Parameters
    ----------
    source : Path or pinocchio.Model
        The file or model.
    floating : bool
        Give the robot of a file a floating base.

    Returns
    -------
    Differences
    """
    robot = load_robot(source, base="floating" if floating else None)
    root = [pin.JointModelFreeFlyer()] if floating else []
    model = pin.buildModelFromUrdf(str(source), *root) if isinstance(source, Path) else source
    data = model.createData()

    def other(q: Array, v: Array, a: Array) -> tuple[Array, Array, Array]:
        ours = _Coordinates(robot, q, v, a)
        there, G, change = pin.neutral(model), np.zeros((model.nv, robot.nv)), np.zeros(model.nv)
        for index in range(1, model.njoints):
            joint, name = model.joints[index], str(model.names[index])
            at, dof = slice(joint.idx_q, joint.idx_q + joint.nq), slice(joint.idx_v, joint.idx_v + joint.nv)
            there[at], G[dof], change[dof] = _pinocchio_joint(ours, joint, name)
        M = pin.crba(model, data, there)
        M = np.triu(M) + np.triu(M, 1).T
        return G, M, pin.rnea(model, data, there, G @ v, change)

    return _differences(robot, other)


def _pinocchio_joint(ours: _Coordinates, joint: pin.JointModel, name: str) -> tuple[Array, Array, Array]:
    """Position of a joint of Pinocchio, its velocity per velocity of the robot, and its acceleration."""
    kind = joint.shortname().removeprefix("JointModel")
    parts = [n for n in ours.joints if n.startswith(name + "_") and len(n) <= len(name) + 3]
    if name in ours.joints or kind in ("Universal", "SphericalZYX"):
        names = [name] if name in ours.joints else parts
        values, rows = zip(*(ours.one(n) for n in names), strict=True)
        there = np.array([np.cos(values[0]), np.sin(values[0])] if joint.nq > joint.nv else values)
        return there, np.array(rows), np.array(rows) @ ours.a
    motion = ours.base() if kind == "FreeFlyer" and not parts else ours.chain(parts)
    pose = pin.SE3ToXYZQUAT(pin.SE3(motion.place))
    turn = motion.place[:3, :3]
    there, chosen = {
        "FreeFlyer": (pose, [0, 1, 2, 3, 4, 5]),
        "Spherical": (pose[3:], [3, 4, 5]),
        "Translation": (pose[:3], [0, 1, 2]),
        "Planar": (np.array([*pose[:2], turn[0, 0], turn[1, 0]]), [0, 1, 5]),
    }[kind]
    return there, motion.map[chosen], motion.change[chosen]
