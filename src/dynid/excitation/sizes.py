"""Typical sizes of parameters before any measurement, to compare parameters of different units."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dynid.parameters.base import BaseParameters
from dynid.robot.inertia import INERTIAL_SYMBOLS

__all__ = ["typical_sizes"]

Array = NDArray[np.float64]


def typical_sizes(base: BaseParameters) -> Array:
    """Typical size (b,) of each base parameter, from the a-priori mass and extent of the bodies.

    A body of mass m and size l (root of half the trace of its inertia over its mass) has sizes m, m l and m l^2; drive
    terms have their absolute values; parameters without a value have size 1.
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
