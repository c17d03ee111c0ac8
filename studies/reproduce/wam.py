"""Feasibility of the printed parameter sets of the WAM, and their free falls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.feasibility.constraints import CenterOfMass, Constraint, Inertia, Mass, Signs
from dynid.feasibility.queries import is_feasible, nearest_feasible
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.robot.spatial import placement
from studies.reproduce.dynamics import printed_order
from studies.reproduce.study import Figure, number, numbers, published
from studies.reproduce.wam_model import model_figures

__all__ = ["figures"]

Array = NDArray[np.float64]

_FOUR = "base values are printed to four decimals"
_RECOMPUTED = "rounding of the recomputed value"


def figures() -> Iterator[Figure]:
    """Verdicts, distances and corrections of Tables 4.9 and 6.1, then the mass matrices and free falls."""
    golden = published("wam_feasibility")
    base = base_parameters(load_robot("wam7"))
    order = printed_order("WAM", base)
    sets = {}
    for name, values in published("wam_base_values").items():
        if name in ("ols", "wls", "nearest", "feasible", "feasible_extra"):
            sets[name] = np.empty(base.count)
            sets[name][order] = values
    yield from _verdicts(base, sets, golden)
    yield from _distances(base, sets, golden)
    yield from _three_links(golden["three_link"])
    yield from model_figures()


def _laws(strictness: float) -> tuple[Constraint, ...]:
    return (Inertia("semi", margin=strictness, relative=False), Signs(margin=strictness))


def _extra(golden: dict[str, Any]) -> tuple[Constraint, ...]:
    boxes = [CenterOfMass(link, lower, upper) for link, (lower, upper) in golden["boxes"].items()]
    return (*_laws(golden["strictness"]), *boxes, Mass(upper=golden["total_mass"]))


def _verdict(section: str, name: str, expected: str, ours: str) -> Figure:
    return Figure(section, name, expected, ours, float(ours != expected), 0.0, "a verdict")


def _verdicts(base: BaseParameters, sets: dict[str, Array], golden: dict[str, Any]) -> Iterator[Figure]:
    section = "WAM, feasibility (Sousa 2014, Table 4.9 and section 4.5)"
    rounding = golden["rounding"]
    for name, expected in golden["verdict"]["plain"].items():
        found = is_feasible(base, sets[name], _laws(0.0), rounding=rounding)
        yield _verdict(section, f"{name}", expected, found.status)
        if expected == "infeasible":
            proof = found.certificate is not None and found.certificate.holds
            yield _verdict(section, f"{name}, certificate", "holds", "holds" if proof else "none")
    for name, expected in golden["verdict"]["extra"].items():
        found = is_feasible(base, sets[name], _extra(golden), rounding=rounding)
        yield _verdict(section, f"{name}, centre-of-mass boxes and 27 kg", expected, found.status)
    for name, expected in golden["margin"].items():
        margin = -is_feasible(base, sets[name], _laws(0.0), unit="SI").margin
        yield number(section, f"{name}, margin in SI units", expected, margin, 5e-5, _FOUR)


def _distances(base: BaseParameters, sets: dict[str, Array], golden: dict[str, Any]) -> Iterator[Figure]:
    section = "WAM, distance to the feasible set and the nearest feasible point (section 4.5)"
    known = golden["distance"]
    laws = {
        "plain": _laws(golden["strictness"]),
        "extra": _extra(golden),
        "full": (Inertia("full", margin=0.0), Signs()),
    }
    for kind, constraints in laws.items():
        for name, expected in known[kind].items():
            if name not in sets:
                continue
            found = nearest_feasible(base, sets[name], constraints)
            tolerance = 5e-5 if kind != "full" else 5e-4
            yield number(section, f"{name}, {kind}", expected, found.distance, tolerance, _RECOMPUTED)
            if (kind, name) == ("plain", "wls"):
                squared = found.distance**2
                yield number(section, "wls, squared distance", known[kind]["wls_squared"], squared, 5e-5, "two digits")
                for i, label in enumerate(base.names):
                    there = float(sets["nearest"][i])
                    yield number(section, f"nearest to wls, {label}", there, float(found.beta[i]), 1e-4, _FOUR)


def _three_links(golden: dict[str, Any]) -> Iterator[Figure]:
    section = "Three-link arm of Yoshida and Khalil (Sousa 2014, Table 6.1)"
    base = base_parameters(three_link_arm())
    laws = (Inertia("semi", margin=0.0),)
    for name, expected in {"t1": "feasible", "t2": "infeasible"}.items():
        found = is_feasible(base, golden[name], laws, unit="SI")
        yield _verdict(section, name, expected, found.status)
        yield number(section, f"{name}, margin", golden["margin"][name], found.margin, 5e-5, _RECOMPUTED)
    near = nearest_feasible(base, golden["t2"], laws)
    yield number(section, "t2, distance", golden["distance"], near.distance, 5e-6, "three digits")
    yield from numbers(section, "t2, nearest", golden["corrected"], near.beta, 1.5e-6, "printed to six decimals")
    after = is_feasible(base, golden["corrected"], laws, rounding=5e-7)
    yield _verdict(section, "corrected t2", "feasible", after.status)


def three_link_arm() -> Robot:
    """A vertical axis, then two parallel horizontal ones a metre apart."""
    y, z = np.array([0.0, 1.0, 0.0]), np.array([0.0, 0.0, 1.0])
    joints = (
        Joint("joint1", "revolute", 0, np.eye(4), y),
        Joint("joint2", "revolute", 1, np.eye(4), z),
        Joint("joint3", "revolute", 2, placement(np.eye(3), [1.0, 0.0, 0.0]), z),
    )
    links = tuple(Link(name, np.zeros(10)) for name in ("base", "link1", "link2", "link3"))
    return Robot("three-link arm", links, joints, gravity=np.array([0.0, -9.81, 0.0]))
