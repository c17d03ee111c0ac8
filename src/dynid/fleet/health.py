"""Health of the units: which parameter changed, when, by how much, and whether temperature explains it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import numpy as np

from dynid.errors import UnknownName
from dynid.fleet.bodies import PayloadChange
from dynid.fleet.kinds import ParameterKind
from dynid.fleet.scatter import Variation
from dynid.fleet.unlike import Unlike
from dynid.results import Result, about

__all__ = ["Change", "ChangeCode", "Drift", "Health", "TemperatureCode", "UnitCode", "UnitHealth"]


class ChangeCode(StrEnum):
    """What changed."""

    STEP = "step"
    DRIFT = "drift"
    PAYLOAD = "payload"
    BODY = "body"


class TemperatureCode(StrEnum):
    """Whether temperature may explain a change of friction."""

    SEPARATED = "not temperature"
    NOT_LOGGED = "temperature not logged"
    NOT_SEPARATED = "maybe temperature"
    NOT_CONCERNED = "not concerned"


class UnitCode(StrEnum):
    """Verdict of a unit."""

    CHANGED = "changed"
    UNLIKE = "unlike the fleet"
    STEADY = "steady"
    TOO_SHORT = "too few dates"


@dataclass(frozen=True, eq=False)
class Change:
    """A significant change of one unit.

    Attributes
    ----------
    unit : str
        Name of the unit.
    code : ChangeCode
        What changed.
    date : str
        First date after the change; for a drift the date at which it starts.
    joint : str
        Joint of the parameter; for bodies the joint that moves the link.
    parameter : str
        Name of the base parameter; for bodies the name of the link.
    kind : ParameterKind or None
        Kind of the parameter; None for bodies.
    value, std : float
        Change and its standard deviation, in the unit of the parameter; for a payload its mass in kg; NaN for a body.
    before : float
        Value before the change; NaN for bodies.
    p_value : float
        p-value, corrected for all tests of the fleet.
    temperature : TemperatureCode
        Whether temperature may explain it.
    payload : PayloadChange or None
        The payload, compared with the dates since the change before.
    carried : PayloadChange or None
        The payload compared with the dates before the first change, where that is another one.
    more : bool
        Whether the bodies also changed significantly in directions of no payload on the link.
    """

    unit: str
    code: ChangeCode
    date: str
    joint: str
    parameter: str
    kind: ParameterKind | None
    value: float
    std: float
    before: float
    p_value: float
    temperature: TemperatureCode
    payload: PayloadChange | None = None
    carried: PayloadChange | None = None
    more: bool = False

    @property
    def relative(self) -> float:
        """Change relative to the value before; NaN where there is none."""
        return self.value / abs(self.before) if self.before else float("nan")

    @property
    def words(self) -> str:
        """The change in words."""
        if self.payload is not None:
            x = self.payload
            verb = "carries" if x.mass > 0 else "has lost"
            return (
                f"unit {self.unit} {verb} a payload of {abs(x.mass):.3g} kg (std {x.mass_std:.2g}) on {x.link} since "
                f"{self.date}, {x.centre_words}"
                + (
                    ""
                    if self.carried is None
                    else f"; {self.carried.mass:+.3g} kg (std {self.carried.mass_std:.2g}) in all"
                )
                + ("; this is not all that changed: look at other links, gains and sensors" if self.more else "")
            )
        if self.code is ChangeCode.BODY:
            return f"bodies of unit {self.unit} changed on {self.date}, not by a payload on {self.parameter}"
        share = f" {100 * self.relative:+.0f} %" if np.isfinite(self.relative) else ""
        tail = "" if self.temperature is TemperatureCode.NOT_CONCERNED else f", {self.temperature.value}"
        how = "drifts" if self.code is ChangeCode.DRIFT else "changed"
        return (
            f"{self.joint} of unit {self.unit}: {self.kind}{share} since {self.date} "
            f"({how} by {self.value:+.3g}, std {self.std:.2g}){tail}"
        )

    def to_dict(self) -> dict[str, Any]:
        """All values as plain data."""
        return {
            "unit": self.unit,
            "code": self.code.value,
            "date": self.date,
            "joint": self.joint,
            "parameter": self.parameter,
            "kind": None if self.kind is None else self.kind.value,
            "change": _plain(self.value),
            "std": _plain(self.std),
            "before": _plain(self.before),
            "p_value": self.p_value,
            "temperature": self.temperature.value,
            "words": self.words,
        } | (
            {}
            if self.payload is None
            else {
                "mass": self.payload.mass,
                "mass_std": _plain(self.payload.mass_std),
                "centre": self.payload.centre.tolist(),
                "centre_std": [_plain(x) for x in self.payload.centre_std],
                "carried_mass": None if self.carried is None else self.carried.mass,
                "more": self.more,
            }
        )


@dataclass(frozen=True)
class Drift(Result):
    """Weighted regression of one parameter of one unit over time, with temperature taken out where it is logged."""

    unit: str = field(metadata=about("Names of the unit and of the base parameter."))
    parameter: str = field(metadata=about("Names of the unit and of the base parameter."))
    per_month: float = field(
        metadata=about("Change per 30 days and its standard deviation, in the unit of the parameter.")
    )
    std: float = field(metadata=about("Change per 30 days and its standard deviation, in the unit of the parameter."))


@dataclass(frozen=True, eq=False)
class UnitHealth(Result):
    """Verdict of one unit."""

    unit: str = field(metadata=about("Name of the unit."))
    code: UnitCode = field(metadata=about("Verdict."))
    changes: tuple[Change, ...] = field(metadata=about("Its changes, in order of time."))
    dates: int = field(metadata=about("Number of its entries."))
    unlike: Unlike | None = field(
        default=None,
        metadata=about("How its bodies differ from those of the other units from the first date on, where they do."),
    )
    untested: tuple[str, ...] = field(
        default=(),
        metadata=about(
            "Joints whose temperature and time go together, so that a steady drift of friction cannot be told "
            "from warmth."
        ),
    )

    @property
    def p_value(self) -> float:
        """Smallest p-value of what was found; 2 where nothing was."""
        found = [c.p_value for c in self.changes]
        return min([*found, self.unlike.p_value] if self.unlike is not None else found, default=2.0)

    @property
    def sentences(self) -> tuple[str, ...]:
        """The verdict in words, one sentence per finding."""
        out = [] if self.unlike is None else [f"unit {self.unit}: {self.unlike.words}"]
        out += [change.words for change in self.changes]
        if self.code is UnitCode.TOO_SHORT:
            out.append(f"unit {self.unit}: {self.dates} date, too few to tell a change")
        elif not self.changes:
            out.append(f"unit {self.unit}: no change over {self.dates} dates")
        if self.untested:
            out.append(
                f"unit {self.unit}: temperature and time go together, so that a steady drift of the friction of "
                f"{', '.join(self.untested)} cannot be told from temperature"
            )
        return tuple(out)

    @property
    def words(self) -> str:
        """The verdict in words."""
        return "; ".join(self.sentences)


@dataclass(frozen=True, eq=False)
class Health(Result):
    """Health of a fleet."""

    units: tuple[UnitHealth, ...] = field(
        metadata=about("Verdicts, changed units first, the most significant change first.")
    )
    drifts: tuple[Drift, ...] = field(metadata=about("Regression of every watched parameter of every unit over time."))
    variations: dict[str, Variation] = field(
        metadata=about("Scatter and temperature effect of every watched parameter.")
    )
    rate: float = field(metadata=about("Probability of any false alarm in the whole fleet."))
    tests: int = field(metadata=about("Number of series that were tested: units times watched parameters."))
    link: str = field(metadata=about("Link whose payload is watched."))
    notes: tuple[str, ...] = field(default=(), metadata=about("What was not tested, in words."))

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, unit by unit."""
        return tuple(change for unit in self.units for change in unit.changes)

    def __getitem__(self, unit: str) -> UnitHealth:
        """Verdict of one unit."""
        found = [x for x in self.units if x.unit == unit]
        if not found:
            raise UnknownName(f"no unit is named '{unit}', there are {', '.join(x.unit for x in self.units)}", "unit")
        return found[0]


def _plain(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
