"""Whether bodies and drives are physically consistent: the one check that estimates, verdict, audit and export share.

A body is judged by `inertia_violations`, in its own unit: the largest principal inertia about its centre of mass.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.robot.drives import DriveTerm, TermKind
from dynid.robot.inertia import inertia_violations
from dynid.robot.model import Robot

__all__ = ["drive_violations", "link_violations", "physical_violations"]

Array = NDArray[np.float64]

_ROUNDING = 1e-9  # N m, N m s/rad and kg m2: what a fit of exact data leaves of a term that is not there


def physical_violations(robot: Robot, parameters: Array) -> list[str]:
    """Everything about standard parameters (p,) that breaks the laws of physics, in words; empty if nothing does."""
    links = (f"{name}: {'; '.join(laws)}" for name, laws in link_violations(robot, parameters).items())
    drives = (f"{name}: {words}" for name, words in drive_violations(robot, parameters).items())
    return [*links, *drives]


def link_violations(robot: Robot, parameters: Array, *, massless: bool = True) -> dict[str, list[str]]:
    """Links whose body is not physically consistent, and why; `massless` allows links without mass and inertia."""
    inertial = [p.inertial for p in robot.layout]
    bodies = np.asarray(parameters)[inertial].reshape(-1, 10)
    out = {}
    for i, body in zip(robot.parameter_links, bodies, strict=True):
        if np.any(body):
            out[robot.links[i].name] = inertia_violations(body)
        elif not massless:
            out[robot.links[i].name] = ["no inertia given"]
    return {name: broken for name, broken in out.items() if broken}


def drive_violations(robot: Robot, parameters: Array) -> dict[str, str]:
    """Friction and rotor inertias of the wrong sign, and why, by parameter name; of coupled joints by all names."""
    value = dict(zip(robot.parameter_names, np.asarray(parameters).tolist(), strict=True))
    out = {}
    for term in robot.drives:
        number = value[term.name]
        if term.dissipates and number < -_ROUNDING:
            if term.kind == TermKind.INERTIA:
                out[term.name] = f"rotor inertia {number:.4g} {term.unit} is negative"
            else:
                out[term.name] = f"friction {number:.4g} {term.unit} is negative: it drives instead of braking"
    for kind, words in ((TermKind.INERTIA, "rotor inertias"), (TermKind.VISCOUS, "viscous friction")):
        out |= _coupled([t for t in robot.drives if t.kind == kind], value, words)
    return out


def _coupled(terms: list[DriveTerm], value: dict[str, float], words: str) -> dict[str, str]:
    """The violation of joints that are coupled by cross-only terms: their matrix is positive semidefinite."""
    joints = sorted({int(j) for t in terms if t.cross_only for j in np.flatnonzero(t.direction)})
    own = [t for t in terms if np.any(t.direction[joints])] if joints else []
    if not own:
        return {}
    matrix = np.zeros((len(joints), len(joints)))
    for term in own:
        part = np.outer(term.direction[joints], term.direction[joints])
        matrix += value[term.name] * (part - np.diag(np.diag(part)) if term.cross_only else part)
    smallest = float(np.linalg.eigvalsh(matrix)[0])
    if smallest >= -_ROUNDING:
        return {}
    names = ", ".join(t.name for t in own)
    return {names: f"the matrix of the {words} has the negative eigenvalue {smallest:.4g} {own[0].unit}"}
