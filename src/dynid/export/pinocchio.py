"""A robot as a Pinocchio model, with warnings of what such a model cannot hold."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynid.export.contents import lost_drives, refuse_infeasible
from dynid.robot.model import Robot
from dynid.robot.pinocchio import has_place_in_model, model_of_robot

if TYPE_CHECKING:
    import pinocchio as pin

__all__ = ["pinocchio_model"]


def pinocchio_model(
    robot: Robot, *, independent: bool = False, allow_infeasible: bool = False
) -> tuple[pin.Model, list[str]]:
    """Build a Pinocchio model of a robot.

    Rotor inertia becomes its armature, viscous friction its damping, Coulomb friction its dry-friction limits.
    Pinocchio's algorithms use the armature only.

    Parameters
    ----------
    robot : Robot
        The robot.
    independent : bool, default False
        As in `Robot.to_pinocchio`.
    allow_infeasible : bool, default False
        Accept bodies and drives that are not physically consistent.

    Returns
    -------
    model : pinocchio.Model
        The model.
    warnings : list of str
        Drive terms that the model cannot hold.
    """
    warnings = refuse_infeasible(robot, allow_infeasible)
    warnings += lost_drives(robot, "a Pinocchio model", has_place_in_model)
    return model_of_robot(robot, independent=independent), warnings
