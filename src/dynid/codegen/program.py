"""Input of every emitter: the functions of one robot and the text for the header."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynid.codegen.functions import Function
from dynid.codegen.linkage import Linkage
from dynid.codegen.operations import Operations, count_operations
from dynid.robot.actuator_law import ActuatorLaw
from dynid.robot.model import Robot

__all__ = ["Program"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Program:
    """Functions of a robot, ready to be written down.

    `parameters` is "standard", "base", "symbolic" or "symbolic-base"; names, units and values are those of the standard
    or base parameters (the values are then a starting point for `parms`). `notes` are lines for the head of the file.
    `sines` tells C where sine and cosine come from, "inline" or "library". `linkage` closes the loops of a robot
    that has some. `places` are the places of the parameters among the standard ones. `law` is the law of the actuators.
    """

    robot: Robot
    name: str
    functions: tuple[Function, ...]
    parameters: str
    parameter_names: tuple[str, ...]
    parameter_units: tuple[str, ...]
    parameter_values: Array | None
    notes: tuple[str, ...] = ()
    sines: str = "inline"
    linkage: Linkage | None = None
    places: tuple[int, ...] = ()
    law: ActuatorLaw | None = None

    @property
    def symbolic(self) -> bool:
        return self.parameters.startswith("symbolic")

    @property
    def kind_of_parameters(self) -> str:
        """ "standard" or "base"."""
        return "base" if self.parameters.endswith("base") else "standard"

    def operations(self, function: Function) -> Operations:
        """Operations of a function; with closed loops, of the functions of the tree that it calls."""
        parts = (function,) if self.linkage is None else self.linkage.parts(function.name)
        return sum((count_operations(x.outputs) for x in parts), Operations())
