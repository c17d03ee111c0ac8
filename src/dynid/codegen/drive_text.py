"""Drive terms as Python text over tensors: terms of one kind are computed together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.codegen.drive_terms import refuse_custom
from dynid.codegen.tree_text import Columns
from dynid.robot.drives import DriveTerm, TermKind
from dynid.robot.model import Robot

__all__ = ["drive_constants", "drive_text"]

Array = NDArray[np.float64]

_LINEAR = {TermKind.INERTIA: "a", TermKind.VISCOUS: "v", TermKind.SPRING: "q"}
# Torque of a unit parameter for the motion s of its shaft; sign has derivative zero.
_EFFORTS = {
    TermKind.INERTIA: "s",
    TermKind.VISCOUS: "s",
    TermKind.SPRING: 's - _constant("{name}_rest", q)',
    TermKind.VISCOUS_POSITIVE: "0.5 * (s + np.abs(s))",
    TermKind.VISCOUS_NEGATIVE: "0.5 * (s - np.abs(s))",
    TermKind.COULOMB: "{side}",
    TermKind.COULOMB_POSITIVE: "{positive}",
    TermKind.COULOMB_NEGATIVE: "{negative}",
    TermKind.STRIBECK: '{side} * np.exp(-((s / _constant("{name}_velocity", q)) ** 2))',
    TermKind.OFFSET: "np.ones_like(s)",
}
_SHARP = {
    "side": "np.sign(s)",
    "positive": "0.5 * (np.abs(np.sign(s)) + np.sign(s))",
    "negative": "0.5 * (np.sign(s) - np.abs(np.sign(s)))",
}
_SMOOTH = {
    "side": 'np.tanh(_constant("{name}_slope", q) * s)',
    "positive": '0.5 + 0.5 * np.tanh(_constant("{name}_slope", q) * s)',
    "negative": '0.5 * np.tanh(_constant("{name}_slope", q) * s) - 0.5',
}


def _groups(robot: Robot) -> dict[str, list[DriveTerm]]:
    """Terms of one kind, of one form, by name."""
    refuse_custom(robot)
    out: dict[str, list[DriveTerm]] = {}
    for term in robot.drives:
        form = "_smooth" if term.slope else "_coupling" if term.kind in _LINEAR and term.cross_only else ""
        out.setdefault(f"{term.kind.name.lower()}{form}", []).append(term)
    return out


def drive_constants(robot: Robot) -> dict[str, Array]:
    """Directions of the shafts (term, joint) of each group, and what else its terms have."""
    out = {}
    for name, terms in _groups(robot).items():
        out[name] = np.array([term.direction for term in terms])
        if terms[0].kind == TermKind.INERTIA:
            out[f"{name}_matrix"] = _mass_per_rotor(robot, out[name], name.endswith("_coupling"))
        if terms[0].kind == TermKind.SPRING:
            out[f"{name}_rest"] = np.array([[term.rest] for term in terms])
        if terms[0].slope:
            out[f"{name}_slope"] = np.array([[term.slope] for term in terms])
        if terms[0].kind == TermKind.STRIBECK:
            out[f"{name}_velocity"] = np.array([[term.velocity] for term in terms])
    return out


def _mass_per_rotor(robot: Robot, directions: Array, coupling: bool) -> Array:
    """Mass matrix of unit rotor inertias (term, nv, nv)."""
    size = robot.nv - robot.n if robot.base == "floating" else 0
    d = np.pad(directions, ((0, 0), (size, 0)))
    out = d[:, :, None] * d[:, None, :]
    return out * (1.0 - np.eye(d.shape[1])) if coupling else out


def drive_text(robot: Robot, columns: Columns) -> str:
    """The functions `_drive_torque` and `_mass`, which calls `_rigid_mass`."""
    index = {name: i for i, name in enumerate(robot.parameter_names)}
    drives = ["", "", "def _drive_torque(q, v, a, parms):"]
    drives += ['    """Friction, rotor inertia, offsets and springs of the joints."""']
    drives += [f"    q, v, a = (x[len(x) - {robot.n} :] for x in (q, v, a))"]
    drives += ["    out = np.zeros_like(v)"]
    mass = ["    return out", "", "", "def _mass(placed, parms):", '    """Mass matrix, with rotors."""']
    mass += ["    out = _samples_first(_rigid_mass(placed, parms))"]
    for name, terms in _groups(robot).items():
        kind = terms[0].kind
        x = _LINEAR.get(kind, "v")
        values = f"_take(parms, {[columns.of(index[term.name]) for term in terms]!r})"
        sides = {k: text.format(name=name) for k, text in (_SMOOTH if terms[0].slope else _SHARP).items()}
        drives += [f'    d, values = _constant("{name}", q), {values}', f"    s = d @ {x}"]
        drives += [f"    out = out + d.swapaxes(0, 1) @ (values * ({_EFFORTS[kind].format(name=name, **sides)}))"]
        if name.endswith("_coupling"):
            drives += [f"    out = out - (d.swapaxes(0, 1) ** 2 @ values) * {x}"]
        if kind == TermKind.INERTIA:
            mass += [f'    out = out + np.einsum("tn,tij->nij", {values}, _constant("{name}_matrix", out))']
    return "\n".join([*drives, *mass, "    return out", ""])
