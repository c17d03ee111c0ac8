"""Section on the bodies: physical consistency, and the robot with equivalent ellipsoids before and after."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.assessment.verdict.evidence import Evidence
from dynid.dynamics.frames import frame_placement
from dynid.dynamics.functions import inverse_dynamics
from dynid.identification.bodies import body_origins, total_mass
from dynid.identification.estimate import Estimate
from dynid.identification.summary import NO_BOX
from dynid.report.charts import Chart, number, plus_minus
from dynid.report.content import Figure, Figures, Scene, Section, Table, section
from dynid.report.section_errors import force_word, unit_of, velocity_label
from dynid.report.section_residuals import fitted_rows
from dynid.robot.drives import drive_kinds
from dynid.robot.inertia import inertia_to_com, inertia_to_pseudo, inertia_violations
from dynid.robot.model import Robot

__all__ = ["body_section", "ellipsoid", "friction_section"]

Array = NDArray[np.float64]


_BEND = 0.5  # rad; the joints of a straight arm overlap in the view


def body_section(evidence: Evidence) -> Section:
    """Every body before and after, and whether it is physically consistent."""
    estimate, robot = evidence.estimate, evidence.estimate.robot
    after, decided = estimate.identified_robot, _decided(estimate)
    rows = []
    for i in robot.parameter_links:
        before, now = robot.links[i].inertia, after.links[i].inertia
        broken = inertia_violations(now) if np.any(now) else ["massless"]
        smallest = float(np.linalg.eigvalsh(inertia_to_pseudo(now))[0])
        rows.append(
            [
                robot.links[i].name,
                "; ".join(broken) or "yes",
                number(before[0]),
                number(now[0]),
                _centre(before),
                _centre(now),
                decided.get(robot.links[i].name, ""),
                number(smallest),
            ]
        )
    mass = total_mass(estimate)
    sure = number(mass.after) if mass.std is None else plus_minus(mass.after, mass.std)
    centres = [_place(mass.centre_before), _place(mass.centre_after)]
    rows.append(["all bodies", "", number(mass.before), sure, *centres, mass.words, ""])
    head = [
        "body",
        "physically consistent",
        "kg a priori",
        "kg",
        "centre a priori, m",
        "centre, m",
        "decided by",
        "least pseudo-inertia",
    ]
    how = (
        "The method enforces physically consistent bodies."
        if estimate.standard is not None
        else "Only combinations are identifiable: the bodies nearest to the a-priori ones are shown."
    )
    words = (
        "Homogeneous ellipsoids with the mass, centre of mass and inertia of each body. An outline without filling is "
        "a body whose mass the recording does not determine. Drag or use the arrow keys to rotate, scroll to "
        "zoom. A red cross is a body that cannot exist. In the table, the centre of all bodies is in the base frame at "
        "the home posture, those of single bodies in the frames of their links."
    )
    lead = f"Total mass {number(mass.after)} kg, a priori {number(mass.before)} kg; {mass.words}. {how}"
    lead += f" {NO_BOX[0].upper()}{NO_BOX[1:]}." if estimate.box is False else ""
    scene = Scene(json.dumps(_scene(robot, after, mass.open_links)), words)
    return section("bodies", "Bodies", lead, scene, Table(head, rows, numbers=2, words=(6,)))


def ellipsoid(inertia: Array) -> tuple[Array, Array] | None:
    """Centre (3,) and semi-axes (3, 3) of a homogeneous ellipsoid with this inertia; None where none has it."""
    if not inertia[0] > 0:
        return None
    mass, centre, tensor = inertia_to_com(inertia)
    second = 0.5 * np.trace(tensor) * np.eye(3) - tensor
    values, axes = np.linalg.eigh(second / float(mass))
    # Flat and thin bodies of data sheets are drawn; negative second moments cannot be drawn.
    if values[0] < -1e-9 * max(values[-1], 1e-12):
        return None
    return centre, axes * np.sqrt(5.0 * np.maximum(values, 0.0))


def _decided(estimate: Estimate) -> dict[str, str]:
    """What decided mass, centre of mass and inertia of each body, in words by link."""
    out = {link: estimate.known_masses.words(link) for link in estimate.known_masses.links}
    for origin in body_origins(estimate):
        before = f"{out[origin.link]}, " if origin.link in out else ""
        out[origin.link] = f"{before}{origin.what}: {origin.by}"
    return out


def _centre(inertia: Array) -> str:
    """Centre of mass as text."""
    return _place(inertia[1:4] / inertia[0] if inertia[0] > 0 else None)


def _place(point: Array | None) -> str:
    """Coordinates as text."""
    return "-" if point is None else ", ".join(f"{round(float(x), 3) + 0.0:.3f}" for x in point)


def _scene(before: Robot, after: Robot, outlined: Sequence[str]) -> dict[str, Any]:
    """Skeleton and bodies in base coordinates at a slightly bent posture, as plain numbers."""
    limits = [before.limits[c] for c in before.coordinates]
    q = np.clip(np.full(before.n, _BEND), [x.lower for x in limits], [x.upper for x in limits])
    if before.base == "floating":
        q = np.concatenate([[0, 0, 0, 0, 0, 0, 1], q])
    places = [frame_placement(before, q, link.name) for link in before.links]
    bones = []
    joints = []
    for i, joint in enumerate(before.joints):
        h = np.asarray(places[joint.parent] @ joint.placement)
        bones += [[places[joint.parent][:3, 3], h[:3, 3]], [h[:3, 3], places[i + 1][:3, 3]]]
        joints.append({"p": h[:3, 3], "a": h[:3, :3] @ joint.axis, "n": joint.name})
    bodies = []
    for i in before.parameter_links:
        for kind, robot in (("before", before), ("after", after)):
            inertia = robot.links[i].inertia
            shape = ellipsoid(inertia)
            entry: dict[str, Any] = {"n": robot.links[i].name, "k": kind, "m": float(inertia[0])}
            if kind == "after" and robot.links[i].name in outlined:
                entry["o"] = 1  # drawn as an outline
            if shape is not None:
                entry["c"] = places[i][:3, 3] + places[i][:3, :3] @ shape[0]
                entry["s"] = places[i][:3, :3] @ shape[1]
            elif inertia[0] != 0:
                entry["c"] = places[i][:3, 3]
            if "c" in entry:
                bodies.append(entry)
    plain: dict[str, Any] = json.loads(
        json.dumps({"bones": bones, "joints": joints, "bodies": bodies}, default=lambda x: np.round(x, 5).tolist())
    )
    return plain


# Section on friction: the identified curve of every joint, with the measured torques.


_KINDS = drive_kinds("viscous", "coulomb", "stribeck", "offset")
_MOST_DOTS = 500
_LEGEND = (("predicted", "identified"), ("prior", "a priori"), ("measured", "measured, without the rest of the model"))


def friction_section(evidence: Evidence) -> Section | None:
    """Friction torque over velocity of every joint with a friction model; None where there is none."""
    estimate, robot = evidence.estimate, evidence.estimate.robot
    owner = {t.name: robot.tree_coordinates[t.owner] for t in robot.drives}
    terms = {
        j: [t for t in robot.drives if owner[t.name] == name and t.kind in _KINDS]
        for j, name in enumerate(robot.coordinates)
    }
    if not any(terms.values()) or robot.base == "floating":
        return None
    fitted = fitted_rows(evidence) if evidence.motions else []
    rows = {name: own for name, own in zip(estimate.base.channels, fitted, strict=False) if len(own[0])}
    figures = []
    for j, name in enumerate(robot.coordinates):
        if not terms[j] or name not in estimate.base.channels:
            continue
        own, unit = {t.name for t in terms[j]}, unit_of(evidence, name)
        reach = robot.limits[name].velocity
        if name in rows:
            reach = float(np.abs(rows[name][2]).max())
        velocity = np.linspace(-1.0, 1.0, 201) * (reach if np.isfinite(reach) else 1.0)
        chart = Chart(
            velocity_label(unit), f"{force_word(unit)} in {unit}", f"friction of {name}", width=340, height=210
        )
        if name in rows:
            e, _, v, _, _ = rows[name]
            pick = np.unique(np.linspace(0, len(e) - 1, _MOST_DOTS).astype(int))
            chart.dots(v[pick], e[pick] + _curve(evidence, j, own, v[pick], estimate.parameters), "measured")
        if any(robot.parameters[[p.name in own for p in robot.layout]]):
            chart.line(velocity, _curve(evidence, j, own, velocity, robot.parameters), "prior")
        chart.line(velocity, _curve(evidence, j, own, velocity, estimate.parameters), "predicted", "friction").level(
            0.0, "zero"
        )
        values = [
            f"{p.symbol if p.owner == name else p.name} {number(x)} {p.unit}"
            for p, x in zip(robot.layout, estimate.parameters, strict=True)
            if p.name in own
        ]
        figures.append(Figure([chart], name, ", ".join(values)))
    lead = "Identified friction over velocity, with the measured torque minus the rest of the model."
    return section("friction", "Friction", lead, Figures(figures, "small", _LEGEND))


def _curve(evidence: Evidence, joint: int, own: set[str], velocity: Array, parameters: Array) -> Array:
    """Torque of some drive terms of one joint at these velocities."""
    robot = evidence.estimate.robot
    alone = np.where([p.name in own for p in robot.layout], parameters, 0.0)
    v = np.zeros((len(velocity), robot.n))
    q = np.tile(robot.home, (len(velocity), 1))
    v[:, joint] = velocity
    return inverse_dynamics(robot, q, v, np.zeros_like(q), alone)[:, -robot.n + joint]
