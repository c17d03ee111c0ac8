"""Equations of motion at one state, for trees and for linkages with closed loops.

Both have the same signatures; the compiler chooses by the type of the first argument, so that trees pay nothing for
the loops of others. Those of linkages are not inlined: that would take minutes to compile.

    M(q) a + bias(q, v) = tau,    and with closed loops    M = N' M_tree N,    bias = N' (bias_tree + M_tree (dN/dt) v)

where N maps the velocities of the independent joints to those of all joints of the tree.

Source: Featherstone, Rigid Body Dynamics Algorithms (2008), chapters 3 and 8 (closed-loop systems).
"""

from typing import Any, NamedTuple

import numpy as np
from numba import types
from numba.extending import overload

from dynid.dynamics.kernels.assembly import CLOSED, Closure, Room, assemble_one, gathered, moved
from dynid.dynamics.kernels.compiler import STEP, kernel, step
from dynid.dynamics.kernels.drives import drive_inertia, drive_torque
from dynid.dynamics.kernels.inverse import rigid_torque
from dynid.dynamics.kernels.kinematics import place_and_move
from dynid.dynamics.kernels.mass import composite_inertias, rigid_mass


class Linkage(NamedTuple):
    """A tree with closed loops, in place of a tree. `room` has the last assembled posture, from which the next follows.

    `shafts` has the drive terms over the independent joints, with weights of the last posture. `status` is the result
    of the last assembly.
    """

    tree: Any
    closure: Closure
    room: Room
    shafts: Any
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    bias: np.ndarray
    M: np.ndarray
    half: np.ndarray  # M N (tree, n)
    status: np.ndarray


def make_linkage(tree: Any, closure: Closure, drives: Any) -> Linkage:
    """A linkage in its assembled posture."""
    size, n, p = len(closure.assembled), len(closure.independent), len(closure.passive)
    bodies, joints, rows, terms = len(tree.parent) + 1, len(tree.parent), int(closure.row[-1]), len(drives.kind)
    R = np.zeros((bodies, 9))
    R[0, [0, 4, 8]] = 1.0
    home = closure.assembled[None]
    room = Room(
        R, np.zeros((bodies, 3)), np.zeros((joints, 6)), home.copy(), home.copy(), np.zeros(p), np.zeros(rows),
        np.zeros((p, rows)), np.zeros((p, p)), np.zeros((n, rows)), np.zeros((p, n)), np.zeros(p), np.zeros(1),
    )  # fmt: skip
    shafts = drives._replace(
        start=np.arange(terms + 1, dtype=np.int64) * n,
        joint=np.tile(np.arange(n, dtype=np.int64), terms),
        weight=np.zeros(terms * n),
    )
    q, v, a, bias = np.zeros((4, 1, size))
    status = np.full(1, -1, np.int64)
    return Linkage(tree, closure, room, shafts, q, v, a, bias, np.zeros((size, size)), np.zeros((size, n)), status)


def equations(tree, inertia, drives, smooth, values, q, v, zero, R, P, J, V, A, F, C, M, bias):
    """Mass matrix M and bias (1, n) of the state (q, v), each (1, n); False where there is none.

    Drive torques are those of the values `smooth`, rotor inertias those of `values`.
    """


def shafts_of(tree, drives):
    """Drive terms over the coordinates of the state."""


def model_torque(tree, inertia, drives, values, q, v, a, drive_v, with_drives, R, P, J, V, A, F, bias):
    """Inverse dynamics bias (1, n) of a motion (q, v, a), each (1, n), with or without drive terms at `drive_v`."""


def _is_linkage(tree: Any) -> bool:
    return isinstance(tree, types.NamedTuple) and tree.instance_class is Linkage


def _tree_equations(tree, inertia, drives, smooth, values, q, v, zero, R, P, J, V, A, F, C, M, bias):
    place_and_move(tree, q, v, zero, 0, R, P, J, V, A)
    for i in range(bias.shape[1]):
        bias[0, i] = 0.0
    rigid_torque(tree, inertia, R, P, J, V, A, F, bias, 0)
    drive_torque(tree, drives, smooth, q, v, zero, 0, bias)
    composite_inertias(tree, inertia, R, P, C)
    rigid_mass(tree, J, C, M)
    drive_inertia(tree, drives, values, M)
    return True


@step
def turn_shafts(linkage, drives):
    """Weights of the drive terms over the independent joints in the last posture."""
    closure, N = linkage.closure, linkage.room.N
    for t in range(drives.kind.shape[0]):
        at = linkage.shafts.start[t]
        for j in range(N.shape[1]):
            linkage.shafts.weight[at + j] = 0.0
        for i in range(drives.start[t], drives.start[t + 1]):
            k, d = drives.joint[i], drives.weight[i]
            if closure.rank[k] >= 0:
                linkage.shafts.weight[at + closure.rank[k]] += d
            else:
                for j in range(N.shape[1]):
                    linkage.shafts.weight[at + j] += d * N[closure.slot[k], j]


@kernel
def linkage_equations(tree, inertia, drives, smooth, values, q, v, zero, R, P, J, V, A, F, C, M, bias):
    own, closure, N = tree.tree, tree.closure, tree.room.N
    tree.status[0] = assemble_one(own, closure, q, v, zero, tree.room, tree.status[0], tree.q, tree.v, tree.a)
    if tree.status[0] != CLOSED:
        return False
    place_and_move(own, tree.q, tree.v, tree.a, 0, R, P, J, V, A)
    for i in range(tree.bias.shape[1]):
        tree.bias[0, i] = 0.0
    rigid_torque(own, inertia, R, P, J, V, A, F, tree.bias, 0)
    drive_torque(own, drives, smooth, tree.q, tree.v, tree.a, 0, tree.bias)
    composite_inertias(own, inertia, R, P, C)
    rigid_mass(own, J, C, tree.M)
    drive_inertia(own, drives, values, tree.M)
    gathered(closure, N, tree.bias[0], bias[0])
    for i in range(tree.M.shape[0]):
        gathered(closure, N, tree.M[i], tree.half[i])
    for j in range(M.shape[0]):
        for i in range(M.shape[0]):
            s = tree.half[closure.independent[i], j]
            for k in range(closure.passive.shape[0]):
                s += N[k, i] * tree.half[closure.passive[k], j]
            M[i, j] = s
    turn_shafts(tree, drives)
    return True


def _tree_torque(tree, inertia, drives, values, q, v, a, drive_v, with_drives, R, P, J, V, A, F, bias):
    place_and_move(tree, q, v, a, 0, R, P, J, V, A)
    for i in range(bias.shape[1]):
        bias[0, i] = 0.0
    rigid_torque(tree, inertia, R, P, J, V, A, F, bias, 0)
    if with_drives:
        drive_torque(tree, drives, values, q, drive_v, a, 0, bias)


@kernel
def linkage_torque(tree, inertia, drives, values, q, v, a, drive_v, with_drives, R, P, J, V, A, F, bias):
    own, closure = tree.tree, tree.closure
    tree.status[0] = assemble_one(own, closure, q, v, a, tree.room, tree.status[0], tree.q, tree.v, tree.a)
    for i in range(tree.bias.shape[1]):
        tree.bias[0, i] = 0.0
    if tree.status[0] == CLOSED:
        place_and_move(own, tree.q, tree.v, tree.a, 0, R, P, J, V, A)
        rigid_torque(own, inertia, R, P, J, V, A, F, tree.bias, 0)
        if with_drives:
            moved(closure, tree.room.N, drive_v, 0, tree.v)
            drive_torque(own, drives, values, tree.q, tree.v, tree.a, 0, tree.bias)
    gathered(closure, tree.room.N, tree.bias[0], bias[0])


def _linkage_equations(tree, inertia, drives, smooth, values, q, v, zero, R, P, J, V, A, F, C, M, bias):
    return linkage_equations(tree, inertia, drives, smooth, values, q, v, zero, R, P, J, V, A, F, C, M, bias)


def _linkage_torque(tree, inertia, drives, values, q, v, a, drive_v, with_drives, R, P, J, V, A, F, bias):
    linkage_torque(tree, inertia, drives, values, q, v, a, drive_v, with_drives, R, P, J, V, A, F, bias)


@overload(equations, jit_options=STEP)
def _equations(tree, inertia, drives, smooth, values, q, v, zero, R, P, J, V, A, F, C, M, bias):
    return _linkage_equations if _is_linkage(tree) else _tree_equations


@overload(shafts_of, jit_options=STEP)
def _shafts_of(tree, drives):
    if _is_linkage(tree):
        return lambda tree, drives: tree.shafts
    return lambda tree, drives: drives


@overload(model_torque, jit_options=STEP)
def _model_torque(tree, inertia, drives, values, q, v, a, drive_v, with_drives, R, P, J, V, A, F, bias):
    return _linkage_torque if _is_linkage(tree) else _tree_torque
