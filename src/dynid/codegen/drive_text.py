"""Drive terms as Python text over tensors: terms of one kind are computed together."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.codegen.drive_terms import refuse_custom
from dynid.codegen.tree_text import Columns
from dynid.robot.drives import LAW_OF_KIND, DriveTerm, TermKind
from dynid.robot.model import Robot

__all__ = ["drive_constants", "drive_text"]

Array = NDArray[np.float64]

# Steps of the motion s of a shaft; sign has derivative zero.
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
        linear = LAW_OF_KIND[term.kind].linear
        form = "_smooth" if term.slope else "_coupling" if linear and term.cross_only else ""
        out.setdefault(f"{term.kind.name.lower()}{form}", []).append(term)
    return out


def drive_constants(robot: Robot) -> dict[str, Array]:
    """Directions of the shafts (term, joint) of each group, and what else its terms have."""
    out = {}
    for name, terms in _groups(robot).items():
        out[name] = np.array([term.direction for term in terms])
        if terms[0].kind == TermKind.INERTIA:
            out[f"{name}_matrix"] = _mass_per_rotor(robot, out[name], name.endswith("_coupling"))
        setting = LAW_OF_KIND[terms[0].kind].setting
        for own in filter(None, (setting, "slope" if terms[0].slope else "")):
            out[f"{name}_{own}"] = np.array([[getattr(term, own)] for term in terms])
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
        law = LAW_OF_KIND[kind]
        x = law.motion
        values = f"_take(parms, {[columns.of(index[term.name]) for term in terms]!r})"
        sides = {k: text.format(name=name) for k, text in (_SMOOTH if terms[0].slope else _SHARP).items()}
        drives += [f'    d, values = _constant("{name}", q), {values}', f"    s = d @ {x}"]
        drives += [f"    out = out + d.swapaxes(0, 1) @ (values * ({law.text.format(name=name, **sides)}))"]
        if name.endswith("_coupling"):
            drives += [f"    out = out - (d.swapaxes(0, 1) ** 2 @ values) * {x}"]
        if kind == TermKind.INERTIA:
            mass += [f'    out = out + np.einsum("tn,tij->nij", {values}, _constant("{name}_matrix", out))']
    return "\n".join([*drives, *mass, "    return out", ""])
