"""An arm folded into a corner: excitation designed with and without clearance to the walls."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dynid.excitation.collision import Collision, LinkShape, Obstacle
from dynid.excitation.design import design_excitation
from dynid.excitation.excitation import Excitation
from dynid.robot.inertia import inertia_from_com
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Link
from dynid.robot.spatial import placement
from studies.reproduce.study import Figure

__all__ = ["DISTANCE", "LENGTHS", "corner_case", "corner_designs", "corner_figures"]

LENGTHS = (0.4, 0.35, 0.25, 0.15)
RADIUS = 0.04
DISTANCE = 0.03
# The distance is verified on a fine grid; between its points a link may come closer by this much, m.
_BETWEEN = 5e-4


def corner_case(distance: float = DISTANCE) -> tuple[Robot, tuple[Collision, ...], dict[str, dict[str, float]]]:
    """An arm of four joints in the vertical xy plane, folded between a floor, a wall and a box; with its limits."""
    links, joints = [Link("base", np.zeros(10))], []
    for k, length in enumerate(LENGTHS):
        mass = 8.0 * length
        rod = mass * length**2 / 12 * np.diag([0.02, 1.0, 1.0])
        links.append(Link(f"link{k + 1}", inertia_from_com(mass, [0.5 * length, 0.01, 0.0], rod)))
        at = [LENGTHS[k - 1] if k else 0.0, 0.0, 0.0]
        joints.append(Joint(f"joint{k + 1}", "revolute", k, placement(translation=at), np.array([0.0, 0.0, 1.0])))
    ranges = ((0.2, 2.6), (-2.6, 0.2), (-2.4, 0.8), (-1.8, 1.8))
    limits = {
        f"joint{k + 1}": {"lower": low, "upper": high, "velocity": 3.0, "acceleration": 20.0}
        for k, (low, high) in enumerate(ranges)
    }
    robot = Robot("corner", tuple(links), tuple(joints), gravity=np.array([0.0, -9.81, 0.0]))
    held = {name: {"position": r} for name, r in zip(limits, ranges, strict=True)}
    robot = robot.with_drives("viscous+coulomb").with_limits(held)
    shapes = [LinkShape.capsule(f"link{k + 1}", [0, 0, 0], [x, 0, 0], RADIUS) for k, x in enumerate(LENGTHS)]
    obstacles = [
        Obstacle("floor", "box", (2.0, 0.1, 1.0), placement(translation=[0.5, -0.2, 0.0])),
        Obstacle("wall", "box", (0.1, 2.0, 1.0), placement(translation=[-0.35, 0.5, 0.0])),
        Obstacle("box", "box", (0.3, 0.25, 0.5), placement(translation=[0.7, -0.02, 0.0])),
    ]
    return robot, (Collision(robot, distance=distance, obstacles=obstacles, shapes=shapes),), limits


def corner_designs(budget: int = 1000) -> dict[str, Excitation]:
    """The same design without and with the clearance."""
    robot, clearances, limits = corner_case()
    free = design_excitation(robot, 6.0, size=3, samples=120, limits=limits, budget=budget)
    kept = design_excitation(robot, 6.0, size=3, samples=120, limits=limits, budget=budget, clearances=clearances)
    return {"without clearance": free, "with clearance": kept}


def corner_figures() -> Iterator[Figure]:
    """Closest distances of both designs on a grid of 2 ms."""
    section = f"An arm in a corner, clearance {DISTANCE} m"
    _, (clearance,), _ = corner_case()
    for name, motion in corner_designs().items():
        closest, pair = clearance.closest(motion.sample(500.0)[1])
        shown = f"{closest:.4f} m between {pair[0]} and {pair[1]}"
        if name.startswith("without"):
            yield Figure(section, name, "in collision", shown, max(float(closest), 0.0), 0.0, "walls ignored")
        else:
            missed = max(DISTANCE - float(closest), 0.0)
            yield Figure(
                section, name, f">= {DISTANCE} m", shown, missed, _BETWEEN, "half a millimetre between grid points"
            )
