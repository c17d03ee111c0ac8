"""Controllers for `dynid.ClosedLoop`: from gains, from files, or from user functions."""

from dynid.simulation.admittance import admittance
from dynid.simulation.controller_files import load_controller, save_controller
from dynid.simulation.gains import bandwidth, bandwidth_gains
from dynid.simulation.laws import (
    CallableController,
    Controller,
    LinearController,
    TorqueModel,
    cascade,
    function,
    overlay,
    pd,
    pid,
    state_space,
    transfer_function,
)
from dynid.simulation.model_laws import (
    augmented_pd,
    compensation,
    computed_torque,
    elastic_pd,
    impedance,
    model_position,
    regimes,
    singular_perturbation,
)
from dynid.simulation.overlay_fit import fit_overlay
from dynid.simulation.task_space import task_impedance, task_space
from dynid.simulation.torque_models import HeldModel, RigidModel, held, rigid

__all__ = [
    "CallableController",
    "Controller",
    "HeldModel",
    "LinearController",
    "RigidModel",
    "TorqueModel",
    "admittance",
    "augmented_pd",
    "bandwidth",
    "bandwidth_gains",
    "cascade",
    "compensation",
    "computed_torque",
    "elastic_pd",
    "fit_overlay",
    "function",
    "held",
    "impedance",
    "load_controller",
    "model_position",
    "overlay",
    "pd",
    "pid",
    "regimes",
    "rigid",
    "save_controller",
    "singular_perturbation",
    "state_space",
    "task_impedance",
    "task_space",
    "transfer_function",
]
