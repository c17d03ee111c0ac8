"""What a base parameter is: its kind, and the joint or link that it belongs to."""

from __future__ import annotations

from enum import StrEnum

from dynid.parameters.base import BaseParameters
from dynid.robot.drives import drive_symbols

__all__ = ["ParameterKind", "kinds_of", "owners_of", "variance_groups"]


class ParameterKind(StrEnum):
    """Kind of a base parameter, after the standard parameter that represents it."""

    MASS = "mass"
    MOMENT = "first moment"
    INERTIA = "inertia"
    COULOMB = "Coulomb friction"
    VISCOUS = "viscous friction"
    OFFSET = "offset"
    ROTOR = "rotor inertia"
    DRIVE = "drive parameter"

    @property
    def of_body(self) -> bool:
        """Whether it belongs to a body and not to a drive."""
        return self in (ParameterKind.MASS, ParameterKind.MOMENT, ParameterKind.INERTIA)

    @property
    def of_friction(self) -> bool:
        """Whether it may depend on the temperature of the joint."""
        return self in (ParameterKind.COULOMB, ParameterKind.VISCOUS, ParameterKind.OFFSET)


_BODY = {"m": ParameterKind.MASS, "mx": ParameterKind.MOMENT, "my": ParameterKind.MOMENT, "mz": ParameterKind.MOMENT}
_DRIVE = {
    "Ia": ParameterKind.ROTOR,
    **dict.fromkeys(drive_symbols("coulomb"), ParameterKind.COULOMB),
    **dict.fromkeys(drive_symbols("viscous"), ParameterKind.VISCOUS),
    "off": ParameterKind.OFFSET,
}


def kinds_of(base: BaseParameters) -> tuple[ParameterKind, ...]:
    """Kind of each base parameter."""
    out = []
    for j in base.kept:
        entry = base.robot.layout[j]
        if entry.inertial:
            out.append(_BODY.get(entry.symbol, ParameterKind.INERTIA))
        else:
            out.append(_DRIVE.get(entry.symbol, ParameterKind.DRIVE))
    return tuple(out)


def owners_of(base: BaseParameters) -> tuple[str, ...]:
    """Joint, or motor, of each drive parameter; for a body parameter the joint that moves its link."""
    robot = base.robot
    moved_by = {robot.links[i + 1].name: joint.name for i, joint in enumerate(robot.joints)}
    return tuple(moved_by.get(robot.layout[j].owner, robot.layout[j].owner) for j in base.kept)


def variance_groups(base: BaseParameters) -> tuple[int, ...]:
    """Number of the group of each base parameter: those of one kind and one joint share a variance between units."""
    pairs = list(zip(kinds_of(base), owners_of(base), strict=True))
    first = {pair: k for k, pair in enumerate(dict.fromkeys(pairs))}
    return tuple(first[pair] for pair in pairs)
