"""LogFormat: how a log is read, in one object that files, commands and recordings share."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator, model_validator

from dynid.errors import DamagedFile, DataError, InvalidType, InvalidValue, MissingFile, did_you_mean, keyword, named
from dynid.markup import html_table
from dynid.quoting import toml_value
from dynid.reading import read_toml
from dynid.recording.log_fields import Columns, PerJoint, check_signals, plain_columns, plain_float, plain_per_joint
from dynid.recording.run import SIGNALS
from dynid.recording.units import MOTOR_SIGNALS, UNITS, check_unit_name

__all__ = ["LogFormat", "both_clocks", "unknown_field"]


class LogFormat(BaseModel):
    """How a log is read: clock, columns, units, and the conversions to joint-side SI signals.

    Values are converted in this order: `units`, `scale`, `sign`, `gain`, `motor_side`, `offset`. Fields that are given
    per signal map the signal (q, v, a, torque, current, reference, link_q, and where stated t, wrench, base, base_v,
    base_a or wrench:NAME) to one value for all joints or to one value per joint.

    Attributes
    ----------
    time : str, int or None
        Column of the clock, by name or by index from 0. "auto" finds it by its name; None (in TOML: "none") means that
        the log has no clock or that its clock is not used, which requires `rate`.
    rate : float or None
        Sampling rate in Hz of a log that has no clock.
    columns : dict or None
        Signal to its columns: a name, an index, a list of them, a pattern with {i} (counts from 1), {k} (counts
        from 0), {joint} or {part}, a range "1:7", an array or a part of it ("data[0:7]"). Only these signals are read.
        None recognises the columns by their names. "none" stands for the column of a joint without link encoder.
    units : dict
        Signal to its unit: t (s, ms, us, ns), q, reference and link_q (rad, deg, rev, counts:4096, m, mm), v (rad/s,
        deg/s, rev/s, rpm, m/s, mm/s), a (rad/s2, deg/s2, rev/s2, m/s2, mm/s2), torque (Nm, mNm, kNm, N, kN), current
        (A, mA).
    scale : dict
        Signal to a factor.
    sign : dict
        Signal to 1 or -1.
    gain : float, tuple of float or None
        Torque per current in N m/A (N/A for prismatic joints): torques are computed from currents.
    motor_side : bool or tuple of str
        Which of q, v, a, reference, torque are measured on the motor side; True for all of them.
    offset : dict
        Signal to a value that is added last, on the joint side, in SI units.
    joints : tuple of str or of int, or None
        The joints in the order of the robot: their names in the log, or their indices from 0 to select some of many.
    rows : tuple of int or None
        Rows (start, stop) of each file, counted from 0, stop excluded; "100:5000" is accepted.
    bad_rows : {"error", "split"}
        What happens at rows that cannot be used: an error, or the run is split there.
    topic : str or None
        Topic of a bag.

    Raises
    ------
    DataError
        If a field is unknown or its value cannot be used; the message names the field.

    Examples
    --------
    >>> from dynid import LogFormat
    >>> log = LogFormat(units={"t": "ms", "q": "deg"}, sign={"torque": -1})
    >>> print(log.to_toml(), end="")
    units = { t = "ms", q = "deg" }
    sign = { torque = -1.0 }
    >>> LogFormat.from_toml({"units": {"t": "ms", "q": "deg"}, "sign": {"torque": -1}}) == log
    True
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    time: str | int | None = Field("auto", description="Column of the clock, by name or index; None without a clock.")
    rate: float | None = Field(None, description="Sampling rate in Hz of a log without a clock.")
    columns: dict[str, Columns] | None = Field(None, description="Signal to columns; recognised by name if left out.")
    units: dict[str, str | tuple[str, ...]] = Field(default_factory=dict, description="Signal to unit.")
    scale: dict[str, PerJoint] = Field(default_factory=dict, description="Signal to factor.")
    sign: dict[str, PerJoint] = Field(default_factory=dict, description="Signal to 1 or -1.")
    gain: PerJoint | None = Field(None, description="Torque per current, N m/A or N/A.")
    motor_side: bool | tuple[str, ...] = Field(False, description="Signals measured on the motor side; true for all.")
    offset: dict[str, PerJoint] = Field(default_factory=dict, description="Signal to the value added last, SI units.")
    joints: tuple[str, ...] | tuple[int, ...] | None = Field(
        None, description="Names in the log, or indices from 0, of the joints in the order of the robot."
    )
    rows: tuple[int | None, int | None] | None = Field(None, description="Rows (start, stop) of each file, from 0.")
    bad_rows: Literal["error", "split"] = Field("error", description="At unusable rows: an error, or split the run.")
    topic: str | None = Field(None, description="Topic of a bag.")

    def __init__(self, **fields: Any) -> None:
        try:
            super().__init__(**fields)
        except ValidationError as error:
            raise InvalidValue(_sentence(error)) from None

    @field_validator("time", mode="before")
    @classmethod
    def _check_time(cls, value: Any) -> Any:
        if isinstance(value, np.integer):
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, str | int | None):
            raise ValueError(f"time must be the name or the index of a column, or None, got {value!r:.60}")
        return None if value == "none" else value

    @field_validator("rate", mode="before")
    @classmethod
    def _check_rate(cls, value: Any) -> Any:
        if value is None:
            return None
        rate = plain_float(value)
        if rate is None or not 0 < rate < np.inf:
            raise ValueError(f"{named('rate')} must be positive, got {value!r:.60}")
        return rate

    @field_validator("columns", mode="before")
    @classmethod
    def _check_columns(cls, value: Any) -> Any:
        if value is None:
            return None
        check_signals("columns", value, SIGNALS)
        return {signal: plain_columns(signal, spec) for signal, spec in value.items()}

    @field_validator("units", mode="before")
    @classmethod
    def _check_units(cls, value: Any) -> Any:
        value = {} if value is None else value
        check_signals("units", value, ("t", *UNITS), wrenches=False)
        out = {}
        for signal, unit in value.items():
            names = (unit,) if isinstance(unit, str) or not isinstance(unit, Iterable) else tuple(unit)
            if not all(isinstance(x, str) for x in names):
                raise ValueError(f"units of {signal} must be a unit or one unit per joint, got {unit!r:.60}")
            if signal == "t" and not isinstance(unit, str):
                raise ValueError(f"units of t must be one unit, got {unit!r:.60}")
            for name in names:
                check_unit_name(signal, name)
            out[signal] = unit if isinstance(unit, str) else names
        return out

    @field_validator("scale", "sign", "offset", mode="before")
    @classmethod
    def _check_numbers(cls, value: Any, info: ValidationInfo) -> Any:
        value, field = {} if value is None else value, str(info.field_name)
        check_signals(field, value, (*UNITS, "wrench"))
        return {signal: plain_per_joint(field, signal, x) for signal, x in value.items()}

    @field_validator("gain", mode="before")
    @classmethod
    def _check_gain(cls, value: Any) -> Any:
        return None if value is None else plain_per_joint("gain", "current", value)

    @field_validator("motor_side", mode="before")
    @classmethod
    def _check_motor_side(cls, value: Any) -> Any:
        if value is None or isinstance(value, bool):
            return bool(value)
        chosen = {value} if isinstance(value, str) else set(value) if isinstance(value, Iterable) else {value}
        unknown = sorted(str(x) for x in chosen - set(MOTOR_SIGNALS))
        if unknown:
            raise ValueError(f"motor_side: signal '{unknown[0]}' is unknown, use {', '.join(MOTOR_SIGNALS)}")
        return tuple(s for s in MOTOR_SIGNALS if s in chosen) or False

    @field_validator("joints", mode="before")
    @classmethod
    def _check_joints(cls, value: Any) -> Any:
        if value is None:
            return None
        wrong = f"{keyword('joints')} must list names or indices, got {value!r:.60}"
        if isinstance(value, str) or not isinstance(value, Iterable):
            raise ValueError(wrong)
        joints = tuple(int(x) if isinstance(x, np.integer) else x for x in value)
        kinds = {str if isinstance(x, str) else int if isinstance(x, int) else None for x in joints}
        if len(kinds) != 1 or None in kinds:
            raise ValueError(wrong)
        return joints

    @field_validator("rows", mode="before")
    @classmethod
    def _check_rows(cls, value: Any) -> Any:
        if value is None:
            return None
        wrong = f"rows must be (start, stop), got {value!r:.60}"
        if isinstance(value, str):
            match = re.fullmatch(r"(-?\d+)?:(-?\d+)?", value)
            if match is None:
                raise ValueError(wrong)
            value = [int(x) if x else None for x in match.groups()]
        if not isinstance(value, Sequence) or len(value) != 2:
            raise ValueError(wrong)
        if not all(x is None or (isinstance(x, int | np.integer) and not isinstance(x, bool)) for x in value):
            raise ValueError(wrong)
        start, stop = (None if x is None else int(x) for x in value)
        return None if start is None and stop is None else (start, stop)

    @field_validator("bad_rows", mode="before")
    @classmethod
    def _check_bad_rows(cls, value: Any) -> Any:
        if value not in ("error", "split"):
            raise ValueError(f"bad_rows '{value}' is unknown: use error or split")
        return value

    @field_validator("topic", mode="before")
    @classmethod
    def _check_topic(cls, value: Any) -> Any:
        if value is not None and not isinstance(value, str):
            raise ValueError(f"topic must be the name of a topic, got {value!r:.60}")
        return value

    @model_validator(mode="after")
    def _check_clock(self) -> LogFormat:
        if self.time is None and self.rate is None:
            raise ValueError(
                f"without a time column ({keyword('time', None)}) the rate in Hz is needed: {keyword('rate')}"
            )
        if self.time not in (None, "auto") and self.rate is not None:
            raise ValueError(both_clocks(self.time, self.rate))
        if self.time is None and "t" in self.units:
            raise ValueError(f"{named('units')} is given for t, but the times come from {keyword('rate')}")
        return self

    def replaced(self, fields: Mapping[str, Any]) -> LogFormat:
        """The same format with some fields replaced.

        Parameters
        ----------
        fields : mapping
            Field name to its new value.

        Returns
        -------
        LogFormat

        Raises
        ------
        DataError
            If a field is unknown or its value cannot be used.
        """
        return LogFormat(**{**{name: getattr(self, name) for name in self.model_fields_set}, **fields})

    def common(self, other: LogFormat) -> LogFormat | None:
        """The format of both logs: rows that differ are left out; None where anything else differs."""
        if self.rows != other.rows:
            return self.replaced({"rows": None}).common(other.replaced({"rows": None}))
        return self if self == other else None

    def to_dict(self) -> dict[str, Any]:
        """Fields that differ from their defaults, ready for JSON.

        Returns
        -------
        dict
            `LogFormat(**log.to_dict())` is the same format again.
        """
        default = LogFormat()
        content = self.model_dump(mode="json")
        return {name: content[name] for name in content if getattr(self, name) != getattr(default, name)}

    @classmethod
    def from_toml(cls, source: str | Path | Mapping[str, Any]) -> LogFormat:
        """Format from a TOML file or from a table that was read from one.

        Parameters
        ----------
        source : path or mapping
            A TOML file, or its content. A table `[log]` is used where there is one, otherwise the whole content.

        Returns
        -------
        LogFormat

        Raises
        ------
        DataError
            If the file cannot be read, a field is unknown or its value cannot be used.
        """
        if isinstance(source, Mapping):
            content, place = source, ""
        else:
            place = Path(source).name
            try:
                content = read_toml(source)
            except OSError as error:
                raise MissingFile(f"{source} cannot be read: {error.strerror}") from None
            except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
                raise DamagedFile(f"not a TOML file: {error}", where=place) from None
        table = content.get("log", content)
        if not isinstance(table, Mapping):
            raise InvalidType(f"log must be a table of settings, got {table!r:.60}", "log", where=place)
        try:
            return cls(**table)
        except DataError as error:
            raise (error.at(place) if place else error) from None

    def to_toml(self) -> str:
        """TOML lines of the fields that differ from their defaults, for a file of their own or below `[log]`.

        Returns
        -------
        str
            Empty where all fields have their defaults.
        """
        content = self.to_dict()
        if "rows" in content:
            content["rows"] = _range(content["rows"])  # TOML has no null
        if content.get("time", "") is None:
            content["time"] = "none"
        return "".join(f"{name} = {toml_value(value)}\n" for name, value in content.items())

    def summary(self) -> str:
        """How the log is read, one line per setting.

        Returns
        -------
        str
            The clock, then the columns of every signal, then the settings that differ from their defaults.
        """
        return "\n".join(f"{name:<12}{text}" for name, text in self._lines())

    def _repr_html_(self) -> str:
        return html_table("Log format", ("setting", "value"), self._lines())

    def _lines(self) -> list[tuple[str, str]]:
        """Name and text of every setting worth showing."""
        if self.time is None:
            clock = f"rows at {self.rate:g} Hz"
        else:
            clock = "recognised by name" if self.time == "auto" else f"column '{self.time}'"
        out = [("time", clock)]
        if self.columns is None:
            out.append(("columns", "recognised by name"))
        else:
            out += [(signal, f"from {_listed(spec)}") for signal, spec in self.columns.items()]
        for field, value in self.to_dict().items():
            if field == "rate" and self.time == "auto":
                out.append((field, f"{self.rate:g} Hz"))
            elif field == "rows":
                out.append((field, _range(value)))
            elif field not in ("time", "rate", "columns"):
                settings = value.items() if isinstance(value, Mapping) else [("", value)]
                out.append((field, ", ".join(f"{k} {_listed(x)}".strip() for k, x in settings)))
        return out


def both_clocks(column: object, rate: float) -> str:
    """The message on a rate beside a time column."""
    clocks = f"the log has a time column '{column}' and {keyword('rate', rate)}"
    return f"{clocks}: leave out the rate, or say {keyword('time', None)}"


def _sentence(error: ValidationError) -> str:
    """The first problem of a validation in one sentence that names the field."""
    first = error.errors(include_url=False)[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    if first["type"] == "extra_forbidden":
        return unknown_field(field)
    if first["type"] == "value_error":
        return str(first["ctx"]["error"])
    return f"{field}: {first['msg']}, got {first['input']!r:.60}"


def unknown_field(name: str) -> str:
    """The message on a field that a log format does not have."""
    known = list(LogFormat.model_fields)
    return f"a log format has no field '{name}': use {', '.join(known)}{did_you_mean(name, known)}"


def _range(rows: Sequence[int | None]) -> str:
    """Rows as text: 100:5000."""
    return ":".join("" if x is None else str(x) for x in rows)


def _listed(value: Any) -> str:
    """A value for the summary; long lists are shortened."""
    if isinstance(value, list | tuple):
        items = [f"{x:g}" if isinstance(x, float) else str(x) for x in value]
        return ", ".join(items if len(items) <= 8 else [*items[:3], "...", items[-1]])
    return f"{value:g}" if isinstance(value, float) else str(value)
