"""Actuators from encoder logs: the section [actuators] of the project file, the command, and what it found."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynid.actuators.unknowns import DEFAULT_UNKNOWN, Quantity
from dynid.errors import DataError, MissingArgument
from dynid.studio.jobs import Done, Listener
from dynid.studio.session import Session
from dynid.studio.step_files import ACTUATOR_RANGES, ACTUATORS, ACTUATORS_FOUND, SIMULATOR_FILES

__all__ = ["QUANTITIES", "ActuatorChoice", "ActuatorStep", "ErrorRow", "ValueRow", "error_rows", "value_rows"]

QUANTITIES = tuple(x.value for x in Quantity)


@dataclass(frozen=True)
class ActuatorChoice:
    """What is chosen in the step.

    Attributes
    ----------
    law : str
        "pd:KP,KD", "torque", or a TOML file of the workspace.
    control_rate : float or None
        Frequency of the control loop in Hz; None where the law acts continuously.
    unknown : tuple of str
        Unknown quantities, each with =shared or =PATTERN;PATTERN if joints share it.
    export : tuple of str
        Simulators whose files are written.
    draws : int or None
        Draws whose ranges are written.
    """

    law: str = ""
    control_rate: float | None = None
    unknown: tuple[str, ...] = DEFAULT_UNKNOWN
    export: tuple[str, ...] = ("mujoco",)
    draws: int | None = None

    @classmethod
    def of_section(cls, section: Mapping[str, Any]) -> ActuatorChoice:
        """From the section [actuators]."""
        return cls(
            str(section.get("law", "")),
            section.get("control_rate"),
            tuple(section.get("unknown") or DEFAULT_UNKNOWN),
            tuple(section.get("export", cls.export)),
            section.get("draws"),
        )

    def to_section(self) -> dict[str, Any]:
        """The section [actuators]; None for what is left out."""
        return {
            "law": self.law,
            "control_rate": self.control_rate,
            "unknown": list(self.unknown),
            "output": ACTUATORS,
            "export": list(self.export),
            "draws": self.draws,
        }


@dataclass(frozen=True)
class ValueRow:
    """One identified value as it is shown."""

    label: str
    value: str
    std: str
    unit: str


@dataclass(frozen=True)
class ErrorRow:
    """Position error of a joint (rad or m), identified and with the values of the model file; None if it diverges."""

    joint: str
    unit: str
    identified: float | None
    given: float | None


@dataclass(frozen=True)
class ActuatorStep:
    """The step of a session."""

    session: Session

    @property
    def choice(self) -> ActuatorChoice:
        """What was chosen last."""
        return ActuatorChoice.of_section(self.session.project.section("actuators"))

    def laws(self) -> list[str]:
        """TOML files of the workspace that may hold a law."""
        return [n for n in self.session.choices() if n.endswith(".toml")]

    async def identify(self, choice: ActuatorChoice, progress: Listener | None = None) -> Done:
        """Keep the choice, run `dynid actuators`, and keep what it found."""
        session = self.session
        session.check_logs()
        if not choice.law:
            raise MissingArgument(
                "give the law first: the torques are not measured, so it must be known, such as pd:20,1.5"
            )
        if choice.law.endswith(".toml"):
            session.workspace.existing(choice.law)
        if not choice.unknown:
            raise MissingArgument("choose at least one unknown quantity", "unknown")
        before = session.project.section("actuators")
        session.project.put("actuators", before | choice.to_section())
        done = await session.jobs.run("actuators", "--json", progress=progress)
        if done.ok:
            said = [x for x in done.err.splitlines() if x.strip() and not x.startswith("wrote ")]
            session.workspace.write(ACTUATORS_FOUND, json.dumps(done.data | {"said": said}, indent=2).encode())
        return done

    def found(self) -> dict[str, Any] | None:
        """What the last command found; None where there is nothing, or where it belongs to an older file."""
        if not self.session.current(ACTUATORS_FOUND, ACTUATORS):
            return None
        try:
            found = json.loads(self.session.workspace.existing(ACTUATORS_FOUND).read_text(encoding="utf-8"))
        except (DataError, ValueError):
            return None
        return found if isinstance(found, dict) and "unknowns" in found and "joints" in found else None

    def files(self) -> list[str]:
        """Files that the last command wrote, to be taken away."""
        choice = self.choice
        names = [ACTUATORS, *(SIMULATOR_FILES[x] for x in choice.export if x in SIMULATOR_FILES)]
        names += [] if choice.draws is None else [ACTUATOR_RANGES]
        there = self.session.workspace.names()
        return [name for name in names if name in there]


def value_rows(found: Mapping[str, Any]) -> list[ValueRow]:
    """The table of values; times are shown in ms."""
    out = []
    for x in found["unknowns"]:
        scale, unit = (1e3, "ms") if x["unit"] == "s" else (1.0, x["unit"])
        std = "not shown by the log" if x["std"] is None else f"{scale * x['std']:.2g}"
        std += " (value at its bound)" if x.get("at_bound") else ""
        out.append(ValueRow(str(x["label"]), f"{scale * x['value']:.4g}", std, unit or "-"))
    return out


def error_rows(found: Mapping[str, Any]) -> tuple[list[ErrorRow], bool]:
    """Position errors by joint, and whether they are those of motion that was not fitted."""
    unseen = found.get("unseen") is not None and found.get("unseen_prior") is not None
    after = found["unseen"]["rms"] if unseen else found["rms"]
    before = found["unseen_prior"]["rms"] if unseen else found["prior_rms"]
    units = found["position_units"]
    rows = zip(found["joints"], units, after, before, strict=True)
    return [ErrorRow(j, u, _finite(a), _finite(b)) for j, u, a, b in rows], unseen


def _finite(x: float | None) -> float | None:
    return None if x is None or not abs(x) < float("inf") else float(x)
