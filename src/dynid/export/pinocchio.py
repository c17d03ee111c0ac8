"""A robot as a Pinocchio model, with words on what such a model cannot hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynid.export.contents import lost_drives, refuse_impossible
from dynid.robot.model import Robot
from dynid.robot.pinocchio import has_place_in_model, model_of_robot

if TYPE_CHECKING:
    import pinocchio as pin

__all__ = ["pinocchio_model"]


def pinocchio_model(
    robot: Robot, independent: bool = False, allow_infeasible: bool = False
) -> tuple[pin.Model, list[str]]:
    """The model of `robot.to_pinocchio(independent)`, and what a user of it should be warned of.

    Rotor inertia is its armature, viscous friction its damping, Coulomb friction, of either side, its dry-friction
    limits; Pinocchio's algorithms use the armature alone. Bodies and drives that break the laws of physics are refused
    unless `allow_infeasible`.
    """
    warnings = refuse_impossible(robot, allow_infeasible)
    warnings += lost_drives(robot, "a Pinocchio model", has_place_in_model)
    return model_of_robot(robot, independent), warnings
