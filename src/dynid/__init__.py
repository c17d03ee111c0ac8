"""dynid: from a robot description and its recorded motion to a dynamic model that can be trusted."""

from dynid.dynamics.frames import frame_jacobian, frame_placement
from dynid.dynamics.functions import (
    bias_torque,
    coriolis_matrix,
    coriolis_torque,
    forward_dynamics,
    gravity_torque,
    inverse_dynamics,
    kinetic_energy,
    kinetic_energy_regressor,
    mass_matrix,
    potential_energy,
    potential_energy_regressor,
    regressor,
)
from dynid.dynamics.gradient import check_gradient, regressor_adjoint
from dynid.errors import DataError, DynidError, ModelError
from dynid.identify.base import BaseParameters, base_parameters
from dynid.robot.drives import DriveTerm, Transmission
from dynid.robot.inertia import (
    inertia_from_com,
    inertia_from_log_cholesky,
    inertia_from_pseudo,
    inertia_from_spatial,
    inertia_to_com,
    inertia_to_log_cholesky,
    inertia_to_pseudo,
    inertia_to_spatial,
    inertia_violations,
    move_inertia,
    reorder_inertia,
)
from dynid.robot.load import builtin_robots, load_robot
from dynid.robot.model import Robot
from dynid.robot.parts import Joint, Limits, Link

__version__ = "0.1.0"

__all__ = [
    "BaseParameters",
    "DataError",
    "DriveTerm",
    "DynidError",
    "Joint",
    "Limits",
    "Link",
    "ModelError",
    "Robot",
    "Transmission",
    "base_parameters",
    "bias_torque",
    "builtin_robots",
    "check_gradient",
    "coriolis_matrix",
    "coriolis_torque",
    "forward_dynamics",
    "frame_jacobian",
    "frame_placement",
    "gravity_torque",
    "inertia_from_com",
    "inertia_from_log_cholesky",
    "inertia_from_pseudo",
    "inertia_from_spatial",
    "inertia_to_com",
    "inertia_to_log_cholesky",
    "inertia_to_pseudo",
    "inertia_to_spatial",
    "inertia_violations",
    "inverse_dynamics",
    "kinetic_energy",
    "kinetic_energy_regressor",
    "load_robot",
    "mass_matrix",
    "move_inertia",
    "potential_energy",
    "potential_energy_regressor",
    "regressor",
    "regressor_adjoint",
    "reorder_inertia",
]
