"""How large a parameter typically is, before anything is measured: so parameters of any unit compare."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.parameters.base import BaseParameters
from dynid.robot.inertia import INERTIAL_SYMBOLS

__all__ = ["typical_sizes"]

Array = NDArray[np.float64]


def typical_sizes(base: BaseParameters) -> Array:
    """Typical size (b,) of each base parameter: of its parts, as large as a body of that mass and extent has them.

    A body of mass m and size l (root of half the trace of its inertia over its mass) counts m, m l and m l2; drive
    terms count as they are; what has no value counts one.
    """
    robot = base.robot
    size = np.ones(len(robot.layout))
    for k, (parameter, value) in enumerate(zip(robot.layout, robot.parameters, strict=True)):
        if not parameter.inertial:
            size[k] = abs(value) or 1.0
        elif parameter.symbol == INERTIAL_SYMBOLS[0]:
            link = robot.links[robot.link_index(parameter.owner)].inertia
            mass = abs(float(link[0]))
            trace = sum(float(link[INERTIAL_SYMBOLS.index(s)]) for s in ("Ixx", "Iyy", "Izz"))
            if mass > 0 and trace > 0:
                reach = np.sqrt(0.5 * trace / mass)
                size[k : k + 10] = [mass, *(mass * reach,) * 3, *(mass * reach**2,) * 6]
    return np.asarray(np.sqrt(base.matrix**2 @ size**2))
