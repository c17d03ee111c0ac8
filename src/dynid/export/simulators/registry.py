"""The simulators that actuators can be written for: their names at once, their records when they are needed."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from dynid.base.records import collect, listed
from dynid.errors import UnknownName, did_you_mean

if TYPE_CHECKING:
    from dynid.export.simulators.target import SimulatorTarget

__all__ = ["simulator_names", "simulator_target", "simulator_targets"]

_PACKAGE, _GROUP = "dynid.export.simulators.targets", "dynid.simulators"


@cache
def simulator_names() -> tuple[str, ...]:
    """Names of all simulators, without loading what writes their files."""
    return listed(_PACKAGE, _GROUP)


@cache
def simulator_targets() -> dict[str, SimulatorTarget]:
    """All simulators by their names."""
    from dynid.export.simulators.target import SimulatorTarget

    return collect(_PACKAGE, SimulatorTarget, _GROUP, "simulator")


def simulator_target(name: str) -> SimulatorTarget:
    """The simulator of this name."""
    names = simulator_names()
    if name not in names:
        raise UnknownName(
            f"simulator '{name}' is unknown: use {', '.join(names)}{did_you_mean(name, names)}", "simulator"
        )
    return simulator_targets()[name]
