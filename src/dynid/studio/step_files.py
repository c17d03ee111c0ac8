"""Names of the files that the steps Actuators and Fleet write: neither robots nor recordings."""

from __future__ import annotations

from dynid.export.simulators.registry import simulator_targets

__all__ = [
    "ACTUATORS",
    "ACTUATORS_FOUND",
    "ACTUATOR_RANGES",
    "FLEET_FOUND",
    "FLEET_PAGE",
    "FLEET_TABLE",
    "SIMULATOR_FILES",
    "STEP_FILES",
]

# Law, values and errors; what the command printed; ranges of draws; simulator -> its file.
ACTUATORS, ACTUATORS_FOUND, ACTUATOR_RANGES = "actuators.toml", "actuators.found.json", "actuators_ranges.json"
SIMULATOR_FILES = {name: f"actuators_{name}{target.ending}" for name, target in simulator_targets().items()}
# The table of all estimates, the page, and what the command printed.
FLEET_TABLE, FLEET_PAGE, FLEET_FOUND = "fleet.csv", "fleet.html", "fleet.found.json"
STEP_FILES = (
    *(ACTUATORS, ACTUATORS_FOUND, ACTUATOR_RANGES),
    *SIMULATOR_FILES.values(),
    *(FLEET_TABLE, FLEET_PAGE, FLEET_FOUND),
)
