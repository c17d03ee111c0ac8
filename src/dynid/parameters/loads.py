"""A body that is fixed to a link: its ten inertial parameters among the base parameters.

The inertial parameters pi_L of a body on link L add to those of the link, so its part of the torques Y_b beta is

    beta_L = K_L pi_L

with the columns K_L of the map beta = K pi that belong to the link.

Source: Khalil and Dombre, Modeling, Identification and Control of Robots (2002), for payloads as parameters of the last
link.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.errors import NotApplicable
from dynid.parameters.base import BaseParameters
from dynid.robot.model import Robot

__all__ = ["link_mass", "load_columns"]

Array = NDArray[np.float64]


def load_columns(base: BaseParameters, link: str) -> Array:
    """K_L (b, 10): contribution of the inertial parameters of a body on a link to the base parameters."""
    robot = base.robot
    if robot.link_index(link) not in robot.parameter_links:
        raise NotApplicable(f"a load on link '{link}' is not moved by any joint; name a link that has parameters")
    first = robot.parameter_names.index(f"m_{link}")
    columns = base.matrix[:, first : first + 10]
    if not np.any(columns):
        raise NotApplicable(f"a body on link '{link}' has no effect on {', '.join(base.channels)}")
    return columns


def link_mass(robot: Robot, link: str) -> float:
    """Mass in kg of a link with parameters in the robot file; infinite where it has none."""
    mass = float(robot.parameters[robot.parameter_names.index(f"m_{link}")])
    return mass if mass > 0 else np.inf
