"""Assembly of robots with closed loops: positions, velocities and accelerations of all joints of the tree.

    phi(q_tree) = 0,    v_tree = N v,    a_tree = N a + (dN/dt) v,    torque = N' torque_tree

Sources: Featherstone, Rigid Body Dynamics Algorithms (2008), chapter 8 (closed-loop systems); Wehage and Haug,
Generalized Coordinate Partitioning for Dimension Reduction in Analysis of Constrained Dynamic Systems (1982). The
kernel is `dynid.dynamics.kernels.assembly`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.dynamics.batch import as_batch, first_use, for_kernel, run
from dynid.dynamics.tree import Tree, compile_robot
from dynid.errors import DataError, Infeasible
from dynid.robot.constraints import JointEquality, LoopKind
from dynid.robot.loops import gap_limit
from dynid.robot.model import Robot
from dynid.robot.parts import Frame

if TYPE_CHECKING:
    from dynid.dynamics.kernels.assembly import Closure
    from dynid.dynamics.kernels.equations import Linkage
    from dynid.dynamics.tree import DriveArrays

__all__ = [
    "Assembly",
    "assemble",
    "assembly_where_closed",
    "linkage",
    "of_given_shape",
    "projected",
    "reachable_postures",
]

Array = NDArray[np.float64]

# Codes of the kernel: kinds of loops in this order, then equalities between joints; and results per sample.
_KINDS = (LoopKind.CONNECT, LoopKind.WELD, LoopKind.ROD)
_EQUALITY = len(_KINDS)
_CLOSED, _SINGULAR = 0, 1
_NOWHERE = Frame("", 0, np.eye(4))  # an equality between joints has no frames
_NEAR = 0.25  # margin of random postures relative to that of the assembled posture
_SHORTER = 30  # attempts to shorten an offset, by a fifth each
_CLOSURES: WeakKeyDictionary[Robot, tuple[Tree, Closure]] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Assembly:
    """The motion of all joints of a robot with closed loops.

    Attributes
    ----------
    robot : Robot
        The robot with its loops.
    q, v, a : ndarray, shapes (N, nq), (N, nv), (N, nv) of `robot.tree`
        Positions, velocities and accelerations of the tree, with the entries of a floating base first.
    slopes : ndarray, shape (N, passive, n)
        Velocity of each passive joint per velocity of each independent joint.
    margin : ndarray, shape (N,)
        Distance from a singular posture: 0 where the constraints of the passive joints depend on each other, 1 at most.
    """

    robot: Robot
    q: Array
    v: Array
    a: Array
    slopes: Array
    margin: Array

    def rows(self, which: slice) -> Assembly:
        """The assembly of some samples."""
        parts = (x[which] for x in (self.q, self.v, self.a, self.slopes, self.margin))
        return Assembly(self.robot, *parts)

    @property
    def jacobian(self) -> Array:
        """Tree velocity per velocity of the robot, (N, nv of the tree, nv)."""
        robot = self.robot
        base, names = robot.nv - robot.n, robot.tree_coordinates
        out = np.zeros((len(self.q), robot.tree.nv, robot.nv))
        out[:, range(base), range(base)] = 1.0
        out[:, [base + names.index(x) for x in robot.coordinates], range(base, robot.nv)] = 1.0
        out[:, [base + names.index(x) for x in robot.passive], base:] = self.slopes
        return out


def assemble(robot: Robot, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None) -> Assembly:
    """Positions, velocities and accelerations of all joints, passive ones included.

    The passive joints continue from sample to sample on the branch of the assembled posture. Their velocities and
    accelerations are exact.

    Parameters
    ----------
    robot : Robot
        A robot with loops.
    q : array_like, shape (N, nq) or (nq,)
        Configurations (rad or m) of the independent joints.
    v, a : array_like, shape (N, nv) or (nv,), optional
        Velocities and accelerations of the independent joints, zero if not given.

    Returns
    -------
    Assembly
        With N samples, also where one was given.

    Raises
    ------
    DataError
        If a sample is a singular posture, or if a loop cannot close there; the message names sample and frames.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("fourbar")
    >>> robot.coordinates, robot.passive
    (('crank',), ('coupler', 'rocker'))
    >>> dynid.dynamics.assemble(robot, [[0.1], [0.2]]).q.shape
    (2, 3)
    """
    zero = np.zeros((*np.shape(q)[:-1], robot.nv))
    (q, v, a), _, _ = as_batch(robot, q=q, v=zero if v is None else v, a=zero if a is None else a)
    assembly, status = _run(robot, q, v, a, False)
    if np.any(status != _CLOSED):
        raise _not_assembled(robot, q, int(np.flatnonzero(status != _CLOSED)[0]), status)
    return assembly


def assembly_where_closed(robot: Robot, q: Array, v: Array, a: Array) -> tuple[Assembly, NDArray[np.bool_]]:
    """`assemble` without an error: the assembly, and which samples (N,) of it could be assembled."""
    (q, v, a), _, _ = as_batch(robot, q=q, v=v, a=a)
    assembly, status = _run(robot, q, v, a, False)
    return assembly, status == _CLOSED


def reachable_postures(robot: Robot, offsets: Array) -> Array:
    """Joint positions (N, n) at offsets (N, n) from the assembled posture, shortened where the loops cannot follow.

    A sample is shortened too where it is much closer to a singular posture than the assembled posture.
    """
    home = robot.home
    zero, rigid = np.zeros((len(offsets), robot.n)), robot.with_base("fixed")
    least = _NEAR * float(_run(rigid, home[None], zero[:1], zero[:1], True)[0].margin[0])
    out, share = np.tile(home, (len(offsets), 1)), np.ones((len(offsets), 1))
    left = np.arange(len(offsets))
    for _ in range(_SHORTER):
        trial = home + share[left] * offsets[left]
        assembly, status = _run(rigid, trial, zero[left], zero[left], True)
        good = (status == _CLOSED) & (assembly.margin >= least)
        out[left[good]] = trial[good]
        left = left[~good]
        share[left] *= 0.8
    return out


def projected(assembly: Assembly, rows: Array) -> Array:
    """Torque rows (N, channel, ...) of the robot from those of its tree: N' times the rows of the joints."""
    from dynid.dynamics.kernels import assembly as kernels

    robot = assembly.robot
    closure = _closure(robot)[1]
    flat = for_kernel(rows.reshape(*rows.shape[:2], -1))
    out = np.empty((len(rows), len(robot.channels), flat.shape[2]))
    run(kernels.project, len(rows), (closure, len(robot.channels) - robot.n, assembly.slopes, flat), (out,))
    return out.reshape(len(rows), len(robot.channels), *rows.shape[2:])


def of_given_shape(q: ArrayLike, rows: Array) -> Array:
    """Rows (N, ...), without the first axis where q is a single configuration."""
    return rows[0] if np.ndim(q) == 1 else rows


def linkage(robot: Robot, drives: DriveArrays) -> Linkage:
    """The robot in its assembled posture for the kernels of simulations, with the drive terms of its tree."""
    from dynid.dynamics.kernels.equations import make_linkage

    return make_linkage(*_closure(robot), drives)


def _run(robot: Robot, q: Array, v: Array, a: Array, fresh: bool) -> tuple[Assembly, NDArray[np.int64]]:
    """Assembly of checked samples, and the result per sample."""
    from dynid.dynamics.kernels import assembly as kernels

    tree, closure = _closure(robot)
    samples, n, base = len(q), robot.n, robot.nv - robot.n
    full_q, full_v, full_a = (np.zeros((samples, len(robot.tree_coordinates))) for _ in range(3))
    slopes, margin = np.zeros((samples, len(robot.passive), n)), np.zeros(samples)
    status = np.zeros(samples, np.int64)
    given = (for_kernel(q[:, q.shape[1] - n :]), for_kernel(v[:, base:]), for_kernel(a[:, base:]))
    with first_use(kernels.assemble):
        out = (full_q, full_v, full_a, slopes, margin, status)
        kernels.assemble(tree, closure, *given, int(fresh), 0, samples, *out)
    if base:
        full_q, full_v, full_a = (
            np.hstack([x[:, : x.shape[1] - n], y]) for x, y in ((q, full_q), (v, full_v), (a, full_a))
        )
    return Assembly(robot, full_q, full_v, full_a, slopes, margin), status


def _not_assembled(robot: Robot, q: Array, sample: int, status: NDArray[np.int64]) -> DataError:
    joints = zip(robot.coordinates, q[sample, q.shape[1] - robot.n :], strict=True)
    where = ", ".join(f"{name} {x:.4g}" for name, x in joints)
    names = " and ".join(str(loop) for loop in robot.loops)
    if status[sample] == _SINGULAR:
        return Infeasible(f"sample {sample} ({where}) is at or beyond a singular posture of {names}")
    return Infeasible(f"sample {sample} ({where}) cannot be assembled: it opens {names}")


def _closure(robot: Robot) -> tuple[Tree, Closure]:
    """Arrays of the loops, made once per Robot object; the tree without its floating base."""
    found = _CLOSURES.get(robot)
    if found is None:
        found = _CLOSURES[robot] = _compile(robot)
    return found


def _compile(robot: Robot) -> tuple[Tree, Closure]:
    from dynid.dynamics.kernels.assembly import Closure

    tree = compile_robot(robot.tree).tree._replace(wrench_rows=0, moving=0)
    names = robot.tree_coordinates
    frames: list[Frame] = []
    chains: list[list[int]] = []
    weights: list[float] = []
    placed: set[int] = set()
    for loop in robot.loops:
        if isinstance(loop, JointEquality):
            frames += [_NOWHERE, _NOWHERE]
            for side in (loop.weights, loop.leaders):
                chains.append([names.index(name) for name in side])
                weights += side.values()
            continue
        frames += loop.frames
        support = [list(tree.support[tree.support_start[f.link] : tree.support_start[f.link + 1]]) for f in loop.frames]
        placed |= {int(j) for chain in support for j in chain}
        shared = set(support[0]) & set(support[1])
        chains += [[j for j in chain if j not in shared] for chain in support]
        weights += [1.0] * sum(map(len, chains[-2:]))
    passive, independent = ([names.index(x) for x in group] for group in (robot.passive, robot.coordinates))
    slot, rank = np.full((2, len(names)), -1, np.int64)
    slot[passive], rank[independent] = range(len(passive)), range(len(independent))
    laws = [loop.polynomial if isinstance(loop, JointEquality) else (0.0,) for loop in robot.loops]
    polynomial = np.zeros((len(laws), max(map(len, laws))))
    for k, law in enumerate(laws):
        polynomial[k, : len(law)] = law
    assert robot.assembled is not None
    closure = Closure(
        np.array([_EQUALITY if isinstance(x, JointEquality) else _KINDS.index(x.kind) for x in robot.loops], np.int64),
        np.array([f.link for f in frames], np.int64),
        np.array([[*f.placement[:3, :3].ravel(), *f.placement[:3, 3]] for f in frames]),
        np.array([0.0 if isinstance(loop, JointEquality) else loop.length for loop in robot.loops]),
        polynomial,
        np.cumsum([0, *(loop.rows for loop in robot.loops)]).astype(np.int64),
        np.cumsum([0, *map(len, chains)]).astype(np.int64),
        np.array([j for chain in chains for j in chain], np.int64),
        np.array(weights, float),
        np.array(sorted(placed), np.int64),
        np.array(passive, np.int64),
        np.array(independent, np.int64),
        slot,
        rank,
        np.array(robot.assembled),
        gap_limit(robot.tree, robot.loops),
    )
    return tree, closure
