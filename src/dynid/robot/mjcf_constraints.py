"""Equality constraints of a compiled MJCF model: between joints, between tendons, and those that close loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from dynid.robot.constraints import JointEquality, Loop, LoopKind
from dynid.robot.mjcf_passive import fixed_tendon
from dynid.robot.parts import Frame
from dynid.robot.spatial import placement

__all__ = ["joint_equalities", "loops_of", "tied_to_world"]

Array = NDArray[np.float64]
Body = tuple[str, int, Array]

_KINDS = ("CONNECT", "WELD", "JOINT", "TENDON")
_CONNECT, _WELD, _JOINT, _TENDON = (int(getattr(mujoco.mjtEq, f"mjEQ_{kind}")) for kind in _KINDS)
_SITE = int(mujoco.mjtObj.mjOBJ_SITE)
_WRAP_SITE = int(mujoco.mjtWrap.mjWRAP_SITE)


def joint_equalities(model: Any, names: Sequence[str]) -> tuple[list[JointEquality], list[str]]:
    """Equalities between positions of joints, and sentences on all equalities that are switched off."""
    out, notes = [], []
    for i in range(model.neq):
        if not model.eq_active0[i]:
            notes.append(f"{_where(model, i)} is not active and was left out")
        elif model.eq_type[i] in (_JOINT, _TENDON) and not _through_space(model, i, names):
            out.append(_equality(model, i, names))
    return out, notes


def _where(model: Any, i: int) -> str:
    """Words for an equality: its kind and the things that it holds together."""
    kind = mujoco.mjtEq(int(model.eq_type[i])).name.removeprefix("mjEQ_").lower()
    first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])
    if model.eq_type[i] == _JOINT:
        of = model.joint
    elif model.eq_type[i] == _TENDON:
        of = model.tendon
    else:
        of = model.site if model.eq_objtype[i] == _SITE else model.body
    ends = [f"'{of(first).name}'", *([f"'{of(second).name}'"] if second >= 0 else [])]
    return f"the {kind} equality of {' and '.join(ends)}"


def _through_space(model: Any, i: int, names: Sequence[str]) -> bool:
    """Whether an equality holds a tendon that runs through space."""
    ends = [int(x) for x in (model.eq_obj1id[i], model.eq_obj2id[i]) if x >= 0]
    return model.eq_type[i] == _TENDON and any(fixed_tendon(model, t, names) is None for t in ends)


def _equality(model: Any, i: int, names: Sequence[str]) -> JointEquality:
    """y1 - y1_0 = polynomial of (y2 - y2_0); y are positions of joints or lengths of tendons."""
    first, second = int(model.eq_obj1id[i]), int(model.eq_obj2id[i])

    def part(index: int) -> tuple[dict[str, float], float]:
        """Weights of a position or length over the joints, and its reference value."""
        if model.eq_type[i] == _JOINT:
            return {names[index]: 1.0}, float(model.qpos0[model.jnt_qposadr[index]])
        weights = fixed_tendon(model, index, names) or {}
        return {name: x for name, x in weights.items() if x}, float(model.tendon_length0[index])

    weights, reference = part(first)
    if second < 0:
        return JointEquality(weights, (reference + float(model.eq_data[i, 0]),), name=_name(model, i))
    leaders, at = part(second)
    law = Polynomial(model.eq_data[i, :5])(Polynomial([-at, 1.0]))
    coefficients = [float(x) for x in law.coef]
    return JointEquality(weights, (coefficients[0] + reference, *coefficients[1:]), leaders, _name(model, i))


def _name(model: Any, i: int) -> str:
    return mujoco.mj_id2name(model, int(mujoco.mjtObj.mjOBJ_EQUALITY), i) or ""


def loops_of(model: Any, bodies: Sequence[Body], names: Sequence[str]) -> tuple[list[Loop], list[str], list[str]]:
    """The active constraints that close loops, words for those that no loop stands for, and sentences on the rest."""
    loops: list[Loop] = []
    others, notes = [], []
    for i in range(model.neq):
        kind = model.eq_type[i]
        if not model.eq_active0[i] or (kind in (_JOINT, _TENDON) and not _through_space(model, i, names)):
            continue
        if kind == _TENDON:
            rod = _rod(model, i, bodies)
            if rod is None:
                others.append(f"{_where(model, i)}, which runs through space over more than two sites,")
            else:
                loops.append(rod)
        elif kind not in (_CONNECT, _WELD):
            others.append(_where(model, i))
        else:
            owners, own = _ends(model, i)
            if any(model.body_mocapid[b] >= 0 for b in owners):
                notes.append(f"{_where(model, i)} guides a body by a mocap body and was left out")
                continue
            first, second = (
                Frame(bodies[b][0], bodies[b][1], bodies[b][2] @ place) for b, place in zip(owners, own, strict=True)
            )
            if first.link == second.link:
                notes.append(f"{_where(model, i)} holds bodies that do not move against each other and was left out")
            else:
                what = LoopKind.WELD if kind == _WELD else LoopKind.CONNECT
                loops.append(Loop(what, first, second, name=_name(model, i)))
    return loops, others, notes


def tied_to_world(model: Any) -> bool:
    """Whether a constraint holds a moving body at one that stands in the world; mocap bodies do not count."""
    for i in (i for i in range(model.neq) if model.eq_active0[i]):
        if model.eq_type[i] in (_CONNECT, _WELD):
            owners = _ends(model, i)[0]
        elif model.eq_type[i] == _TENDON:
            parts = _sites(model, int(model.eq_obj1id[i]))
            owners = [int(model.site_bodyid[site]) for site in parts or ()]
        else:
            continue
        standing = [model.body_weldid[b] == 0 for b in owners]
        if any(standing) and not all(standing) and not any(model.body_mocapid[b] >= 0 for b in owners):
            return True
    return False


def _sites(model: Any, tendon: int) -> list[int] | None:
    """The two sites of a tendon that runs straight from one to the other; None for other tendons."""
    start, count = int(model.tendon_adr[tendon]), int(model.tendon_num[tendon])
    parts = range(start, start + count)
    straight = count == 2 and all(model.wrap_type[k] == _WRAP_SITE for k in parts)
    return [int(model.wrap_objid[k]) for k in parts] if straight else None


def _rod(model: Any, i: int, bodies: Sequence[Body]) -> Loop | None:
    """A tendon of constant length between two sites; None for other tendons."""
    tendon = int(model.eq_obj1id[i])
    sites = _sites(model, tendon)
    if model.eq_obj2id[i] >= 0 or sites is None:
        return None
    ends = []
    for site in sites:
        name, link, on = bodies[model.site_bodyid[site]]
        ends.append(Frame(model.site(site).name or name, link, on @ _pose(model.site_pos[site], model.site_quat[site])))
    if ends[0].link == ends[1].link:
        return None
    length = float(model.tendon_length0[tendon] + model.eq_data[i, 0])
    return Loop(LoopKind.ROD, ends[0], ends[1], length, _name(model, i))


def _ends(model: Any, i: int) -> tuple[list[int], list[Array]]:
    """The two bodies of a connect or weld and the frames on them."""
    weld = model.eq_type[i] == _WELD
    data, ends = model.eq_data[i], (int(model.eq_obj1id[i]), int(model.eq_obj2id[i]))
    if model.eq_objtype[i] == _SITE:
        own = [_pose(model.site_pos[s], model.site_quat[s]) for s in ends]
        return [int(model.site_bodyid[s]) for s in ends], own
    own = [placement(None, data[3:6] if weld else data[:3]), placement(None, data[:3] if weld else data[3:6])]
    if weld:
        own[0] = own[0] @ _pose(np.zeros(3), data[6:10])
    return list(ends), own


def _pose(position: Array, quaternion: Array) -> Array:
    matrix = np.zeros(9)
    mujoco.mju_quat2Mat(matrix, np.asarray(quaternion, dtype=float) / np.linalg.norm(quaternion))
    return placement(matrix.reshape(3, 3), position)
