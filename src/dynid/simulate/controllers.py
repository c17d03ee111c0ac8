"""Controllers: made from gains, read from files, or any function of the user's."""

from dynid.simulate.controller_files import load_controller, save_controller
from dynid.simulate.laws import (
    CallableController,
    Controller,
    LinearController,
    bandwidth_gains,
    cascade,
    computed_torque,
    function,
    impedance,
    pd,
    pid,
    state_space,
    transfer_function,
)

__all__ = [
    "CallableController",
    "Controller",
    "LinearController",
    "bandwidth_gains",
    "cascade",
    "computed_torque",
    "function",
    "impedance",
    "load_controller",
    "pd",
    "pid",
    "save_controller",
    "state_space",
    "transfer_function",
]
