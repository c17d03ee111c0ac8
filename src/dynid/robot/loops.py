"""Closed kinematic loops: constraints between frames or joints of a tree, and the joints that they determine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.constraints import Constraint, JointEquality, LoopKind
from dynid.robot.drives import Transmission
from dynid.robot.mechanism import Mechanism
from dynid.robot.parts import Frame, checked
from dynid.robot.spatial import axis_rotation, placement

__all__ = ["ROUNDED", "close_loops", "gap_limit", "loop_rows"]

Array = NDArray[np.float64]
R = TypeVar("R", bound=Mechanism)

# Share that the printed digits of a file leave: 1.5708 for a right angle is wrong by 4e-6, six digits by 5e-7.
ROUNDED = 1e-5

_ITERATIONS = 200
_CLOSED = 1e-12  # m or rad
_NEARBY = 0.05  # rad or m: distance of the postures that tell a singular posture from a redundant constraint
_SAME_BRANCH = 1.0  # rad or m: farther away, an assembled posture may be on another branch
_MOVE = 0.02  # rad, or of the longest offset: a motion that every independent joint can make
_LONGEST = 0.3  # rad or m: longest step of the iteration that assembles the robot


def _reach(tree: Mechanism, loops: Sequence[Constraint]) -> float:
    """The longest offset in the robot (m), 1 if there is none."""
    on = [np.asarray(f.placement) for loop in loops for f in loop.frames]
    places = [*on, *(x for joint in tree.joints for x in (joint.placement, joint.mount))]
    return max(float(np.linalg.norm(x[:3, 3])) for x in places) or 1.0


def gap_limit(tree: Mechanism, loops: Sequence[Constraint]) -> float:
    """The gap (m or rad) up to which a loop counts as closed: what rounding leaves of the longest offset in the robot.

    A loop with more rows than joints, such as a linkage in a plane, closes only as well as its numbers are printed.
    """
    return ROUNDED * _reach(tree, loops)


def loop_rows(tree: Mechanism, loops: Sequence[Constraint], q: Array) -> tuple[Array, Array]:
    """Residual (row,) of the loops and its Jacobian (row, n) at one posture q (n,) of the tree."""
    places, twists = [np.eye(4)], [np.zeros((tree.n, 6))]
    number = {name: i for i, name in enumerate(tree.coordinates)}
    for joint in tree.joints:
        mimic = joint.mimic
        i = number[joint.name if mimic is None else mimic.leader]
        ratio, offset = (1.0, 0.0) if mimic is None else (mimic.ratio, mimic.offset)
        value = ratio * q[i] + offset
        before = places[joint.parent] @ joint.placement
        axis = before[:3, :3] @ joint.axis
        turns = joint.kind == "revolute"
        moved = placement(axis_rotation(joint.axis, value)) if turns else placement(translation=value * joint.axis)
        own = twists[joint.parent].copy()
        own[i] += ratio * np.hstack([np.cross(before[:3, 3], axis), axis] if turns else [axis, np.zeros(3)])
        places.append(before @ moved @ joint.mount)
        twists.append(own)
    residual, rows = [], []
    for loop in loops:
        if isinstance(loop, JointEquality):
            value, row = loop.row(number, q)
            residual.append(np.array([value]))
            rows.append(row[None])
            continue
        (a, da), (b, db) = (_moving(places, twists, f) for f in (loop.first, loop.second))
        apart, rate = a[:3, 3] - b[:3, 3], (da - db).T
        if loop.kind == LoopKind.ROD:
            distance = max(float(np.linalg.norm(apart)), 1e-12)
            residual.append(np.array([distance - loop.length]))
            rows.append(apart[None] @ rate[:3] / distance)
            continue
        residual.append(apart)
        rows.append(rate[:3])
        if loop.kind == LoopKind.WELD:
            turn = a[:3, :3] @ b[:3, :3].T
            residual.append(0.5 * np.array([turn[2, 1] - turn[1, 2], turn[0, 2] - turn[2, 0], turn[1, 0] - turn[0, 1]]))
            rows.append(rate[3:])
    return np.concatenate(residual), np.vstack(rows)


def _moving(places: Sequence[Array], twists: Sequence[Array], frame: Frame) -> tuple[Array, Array]:
    """Placement of a frame, and its velocity per joint velocity (n, 6) at its origin."""
    place = places[frame.link] @ frame.placement
    rate = twists[frame.link].copy()
    rate[:, :3] += np.cross(rate[:, 3:], place[:3, 3])
    return place, rate


def close_loops(
    tree: R, loops: Sequence[Constraint], passive: Sequence[str] | None, posture: Mapping[str, float] | None
) -> R:
    """The tree with loops, its passive joints and an assembled posture; see `Robot.with_loops`."""
    if not loops:
        raise ModelError(f"robot '{tree.name}' is given no loop to close", "loops", code="missing_argument")
    for equality in (x for x in loops if isinstance(x, JointEquality)):
        unknown = [name for name in equality.joints if name not in tree.coordinates]
        if unknown:
            names = ", ".join(tree.coordinates)
            raise ModelError(
                f"{equality}: no independent joint named '{unknown[0]}', the joints are {names}", code="unknown_name"
            )
    for frame in (f for loop in loops for f in loop.frames):
        if not 0 <= frame.link < len(tree.links):
            raise ModelError(
                f"frame '{frame.name}' of a loop is on link {frame.link}, which does not exist",
                "frame",
                code="unknown_name",
            )
    start = _start(tree, posture)
    q = _assembled(tree, loops, start, passive, posture or {})
    _check_redundant(tree, loops, q)
    jacobian = loop_rows(tree, loops, q)[1]
    chosen = _passive(tree, loops, jacobian) if passive is None else _given_passive(tree, loops, jacobian, passive)
    if passive is None:
        q = _with_given(tree, loops, q, start, chosen)
    if len(chosen) == tree.n:
        raise ModelError(f"the loops of robot '{tree.name}' leave no joint free to move")
    _check_mobile(tree, loops, q, chosen)
    transmission = _of_independent(tree, loops, chosen, q)
    return replace(tree, loops=tuple(loops), passive=chosen, assembled=q, transmission=transmission)


def _with_given(tree: Mechanism, loops: Sequence[Constraint], q: Array, start: Array, passive: Sequence[str]) -> Array:
    """The assembled posture q with the independent joints where the start has them, if the loops close there too."""
    moving = np.array([name in passive for name in tree.coordinates])
    moved, apart = _newton(tree, loops, np.where(moving, q, start), moving)
    close = np.abs(moved - q).max() < _SAME_BRANCH and apart <= gap_limit(tree, loops)
    return moved if close and _rank(loop_rows(tree, loops, moved)[1][:, moving]) == len(passive) else q


def _of_independent(
    tree: Mechanism, loops: Sequence[Constraint], passive: Sequence[str], q: Array
) -> Transmission | None:
    """The transmission over the independent joints.

    A motor may drive a passive joint where this follows the independent joints at constant ratios.
    """
    if tree.transmission is None:
        return None
    free = np.array([name not in passive for name in tree.coordinates])
    coupling = tree.transmission.coupling
    driven = ~free & np.any(coupling != 0, axis=1)
    if np.any(driven):
        here, *others = (_slopes(loop_rows(tree, loops, x)[1], free)[driven] for x in (q, *_nearby(tree, loops, q)))
        if not others or any(np.abs(here - x).max() > 1e-9 for x in others):
            name = tree.coordinates[int(np.flatnonzero(driven)[0])]
            raise ModelError(
                f"joint '{name}' is driven by a motor and cannot be passive in {loops[0]}",
                "passive",
                code="conflicting",
            )
        ratios = np.zeros((tree.n, int(free.sum())))
        ratios[driven] = here
        coupling = coupling.copy()
        coupling[free] += ratios.T @ coupling
    return replace(tree.transmission, coupling=coupling[free])


def _slopes(jacobian: Array, free: NDArray[np.bool_]) -> Array:
    """Velocity of every joint per velocity of the independent joints, (n, independent)."""
    out = np.zeros((len(free), int(free.sum())))
    out[free] = np.eye(int(free.sum()))
    out[~free] = -np.linalg.lstsq(jacobian[:, ~free], jacobian[:, free], rcond=ROUNDED)[0]
    return out


def _start(tree: Mechanism, posture: Mapping[str, float] | None) -> Array:
    """Posture (n,) at which the assembly starts: the given values, and zero or the middle of the limits elsewhere."""
    given = dict(posture or {})
    unknown = sorted(set(given) - set(tree.coordinates))
    if unknown:
        raise ModelError(
            f"posture: no joint named '{unknown[0]}', the joints are {', '.join(tree.coordinates)}",
            "posture",
            code="unknown_name",
        )
    limits = tree.limits
    out = []
    for name in tree.coordinates:
        low, high = limits[name].lower, limits[name].upper
        inside = 0.0 if low <= 0.0 <= high else 0.5 * (low + high) if np.isfinite(high - low) else np.clip(0, low, high)
        out.append(float(checked(given.get(name, inside), (), f"posture of joint '{name}'")))
    return np.array(out)


def _assembled(
    tree: Mechanism,
    loops: Sequence[Constraint],
    start: Array,
    passive: Sequence[str] | None,
    posture: Mapping[str, float],
) -> Array:
    """Posture near `start` in which all loops close; first with the joints in `posture` held, then with all moving.

    If the passive joints are known, all others are held in the first attempt.
    """
    held = set(tree.coordinates) - set(passive) if passive is not None else set(posture)
    free = np.array([name not in held for name in tree.coordinates])
    for moving in (free, np.ones(tree.n, dtype=bool)):
        q, apart = _newton(tree, loops, start, moving)
        if apart <= gap_limit(tree, loops):
            return q
    residual = loop_rows(tree, loops, q)[0]
    sizes = [float(np.abs(x).max()) for x in np.split(residual, np.cumsum([loop.rows for loop in loops])[:-1])]
    worst = loops[int(np.argmax(sizes))]
    raise ModelError(
        f"{worst} cannot close: {max(sizes):.3g} m or rad remain at the nearest posture; check the frames, or give a "
        "posture close to an assembled one",
        "posture",
        code="infeasible",
    )


def _newton(
    tree: Mechanism, loops: Sequence[Constraint], start: Array, moving: NDArray[np.bool_]
) -> tuple[Array, float]:
    """Damped least-squares iteration over the moving joints; the posture and the largest residual."""
    q, damping = start.copy(), 1e-6
    residual, jacobian = loop_rows(tree, loops, q)
    for _ in range(_ITERATIONS if np.any(moving) else 0):
        if np.abs(residual).max() < _CLOSED:
            break
        J = jacobian[:, moving]
        u, s, vt = np.linalg.svd(J, full_matrices=False)
        gain = np.where(s > ROUNDED * s[0], s / (s**2 + damping * max(s[0] ** 2, 1e-12)), 0.0)
        step = -vt.T @ (gain * (u.T @ residual))
        step *= min(1.0, _LONGEST / max(float(np.abs(step).max()), 1e-300))
        if np.abs(step).max() < _CLOSED:  # as close as it gets
            break
        trial = q.copy()
        trial[moving] += step
        new, slope = loop_rows(tree, loops, trial)
        if new @ new < residual @ residual:
            q, residual, jacobian, damping = trial, new, slope, max(damping * 0.1, 1e-18)
        elif damping > 1e6:
            break
        else:
            damping = max(10 * damping, 1e-12)
    return q, float(np.abs(residual).max())


def _unit(jacobian: Array) -> Array:
    """The Jacobian relative to its largest column, so that ranks do not depend on the size of the robot."""
    return jacobian / max(float(np.linalg.norm(jacobian, axis=0).max(initial=0.0)), 1e-300)


def _rank(jacobian: Array) -> int:
    return int(np.linalg.matrix_rank(_unit(jacobian), tol=ROUNDED)) if jacobian.size else 0


def _nearby(tree: Mechanism, loops: Sequence[Constraint], q: Array) -> list[Array]:
    """A few assembled postures at a small distance."""
    rng = np.random.default_rng(0)
    out = []
    for _ in range(8):
        moved, apart = _newton(tree, loops, q + _NEARBY * rng.uniform(-1, 1, tree.n), np.ones(tree.n, dtype=bool))
        if apart <= gap_limit(tree, loops):
            out.append(moved)
    return out


def _check_redundant(tree: Mechanism, loops: Sequence[Constraint], q: Array) -> None:
    """Refuse loops that add nothing to those before them, and assembled postures that are singular."""
    near = [loop_rows(tree, loops, x)[1] for x in _nearby(tree, loops, q)]
    here = loop_rows(tree, loops, q)[1]
    generic = max(map(_rank, near), default=_rank(here))
    if _rank(here) < generic:
        names = ", ".join(str(loop) for loop in loops)
        raise ModelError(
            f"the posture in which robot '{tree.name}' is assembled is singular ({names}): give another posture",
            "posture",
        )
    rank = row = 0
    for loop in loops:
        row += loop.rows
        with_it = max(_rank(x[:row]) for x in (here, *near))
        if with_it == rank:
            raise ModelError(f"{loop} adds no constraint to the other joints and loops: remove it", "loops")
        rank = with_it


def _check_mobile(tree: Mechanism, loops: Sequence[Constraint], q: Array, passive: Sequence[str]) -> None:
    """Refuse loops that leave an independent joint no motion: those that are singular wherever they close."""
    residual, jacobian = loop_rows(tree, loops, q)
    limit = float(np.abs(residual).max()) + _MOVE * gap_limit(tree, loops)  # rounding changes with the motion
    moving = np.array([name in passive for name in tree.coordinates])
    slopes = _slopes(jacobian, ~moving)
    kind = {joint.name: joint.kind for joint in tree.joints}
    for k, i in enumerate(np.flatnonzero(~moving)):
        size = _MOVE * (1.0 if kind[tree.coordinates[i]] == "revolute" else _reach(tree, loops))
        if not np.any(jacobian[:, i]):
            continue
        if all(_newton(tree, loops, q + step * slopes[:, k], moving)[1] > limit for step in (size, -size)):
            raise ModelError(
                f"the loops of robot '{tree.name}' close in a singular posture only: joint '{tree.coordinates[i]}' "
                "cannot move from there"
            )


def _passive(tree: Mechanism, loops: Sequence[Constraint], jacobian: Array) -> tuple[str, ...]:
    """The joints that the loops determine: those without drive terms before those with, later joints before earlier.

    A joint that leads others by a polynomial comes after the others, because the polynomial may have no inverse. Slides
    without a body of their own, such as those of a floating body, come first: its rotations stay independent.
    """
    driven = {i for t in tree.drives for i in np.flatnonzero(t.direction)} | {t.owner for t in tree.drives}
    leaders = {name for loop in loops if isinstance(loop, JointEquality) for name in loop.leaders}
    first = {
        joint.name
        for joint, link in zip(tree.joints, tree.links[1:], strict=True)
        if joint.kind == "prismatic" and link.virtual
    }
    rank_of = {name: (name in leaders, name not in first) for name in tree.coordinates}
    order = sorted(range(tree.n), key=lambda i: (i in driven, *rank_of[tree.coordinates[i]], -i))
    chosen: list[int] = []
    unit, basis = _unit(jacobian), np.zeros((len(jacobian), 0))
    rank = _rank(jacobian)
    for least in (1e-2, 1e-4, ROUNDED):  # a joint that barely moves its loop is taken only where nothing else is left
        for i in order:
            rest = unit[:, i]
            for _ in range(2):
                rest = rest - basis @ (basis.T @ rest)
            size = np.linalg.norm(rest)
            if i not in chosen and len(chosen) < rank and size > least:
                chosen.append(i)
                basis = np.column_stack([basis, rest / size])
    return tuple(name for i, name in enumerate(tree.coordinates) if i in chosen)


def _given_passive(
    tree: Mechanism, loops: Sequence[Constraint], jacobian: Array, passive: Sequence[str]
) -> tuple[str, ...]:
    for name in passive:
        if name not in tree.coordinates:
            raise ModelError(
                f"passive joint '{name}' is unknown, the joints are {', '.join(tree.coordinates)}",
                "passive",
                code="unknown_name",
            )
    columns = [name in set(passive) for name in tree.coordinates]
    rank, own = _rank(jacobian), _rank(jacobian[:, columns])
    if own < rank or len(set(passive)) != rank:
        names = ", ".join(str(loop) for loop in loops)
        raise ModelError(
            f"the loops of robot '{tree.name}' ({names}) determine {rank} joints, but of the {len(set(passive))} given "
            f"passive joints they determine {own}",
            "passive",
            code="mismatch",
        )
    return tuple(name for name, is_in in zip(tree.coordinates, columns, strict=True) if is_in)
