"""A position controller whose gains nobody knows: the start of an identification in which they are unknown too."""

from __future__ import annotations

import numpy as np

from dynid.dynamics.functions import mass_matrix
from dynid.errors import MissingData
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot

__all__ = ["law_of_inertia"]

# Position controllers of servos follow commands up to a few Hz, with some damping.
_BANDWIDTH, _DAMPING = 4.0, 0.7


def law_of_inertia(robot: Robot) -> ActuatorLaw:
    """A PD law that lets every joint follow commands up to 4 Hz, by its inertia at zero position.

    It is the start of `identify_actuators` with unknown kp and kd.

    Parameters
    ----------
    robot : Robot
        The robot with masses and inertias.

    Returns
    -------
    ActuatorLaw

    Raises
    ------
    DataError
        If a joint moves no inertia.
    """
    standing = robot.with_base("fixed")
    inertia = np.diagonal(mass_matrix(standing, np.zeros((1, standing.nq)))[0])
    for joint, value in zip(robot.coordinates, inertia, strict=True):
        if not value > 0:
            raise MissingData(
                f"gains cannot be guessed: '{joint}' has no inertia in the robot file; give --law pd:KP,KD"
            )
    bandwidth = 2 * np.pi * _BANDWIDTH
    return ActuatorLaw(robot.coordinates, kp=inertia * bandwidth**2, kd=2 * _DAMPING * inertia * bandwidth)
