"""Entries of a fleet: what was recorded of which unit on which date."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from dynid.errors import InvalidValue
from dynid.identification.observation import Observation
from dynid.recording.recording import Recording

if TYPE_CHECKING:
    from dynid.recording.log_format import LogFormat

__all__ = ["EntryFault", "FleetEntry"]


@dataclass(frozen=True, eq=False)
class FleetEntry:
    """One recording of one unit of a fleet.

    Attributes
    ----------
    unit : str
        Name of the unit.
    date : date, datetime or str
        When it was recorded; text is in ISO format, such as 2026-03-02 or 2026-03-02T14:30.
    data : Recording, Observation, str or Path
        The recording, what `observe` made of it, or the file that holds it.
    temperature : mapping of str to float
        Temperature of joints by name during the recording, deg C; joints without a sensor are left out.
    missing : tuple of str
        Joints whose torques were not measured. Their rows are left out; the other joints take part.
    log : LogFormat or None
        How the file is read.
    name : str
        Name of the recording, if a unit has several of one date.

    Raises
    ------
    DataError
        If the date cannot be read.
    """

    unit: str
    date: date | datetime | str
    data: Recording | Observation | str | Path
    temperature: Mapping[str, float] = field(default_factory=dict)
    missing: tuple[str, ...] = ()
    log: LogFormat | None = None
    name: str = ""

    def __post_init__(self) -> None:
        if isinstance(self.date, str):
            try:
                moment = datetime.fromisoformat(self.date)
            except ValueError:
                raise InvalidValue(
                    f"unit '{self.unit}': '{self.date}' is no date; write it as 2026-03-02 or 2026-03-02T14:30", "date"
                ) from None
        elif isinstance(self.date, datetime):
            moment = self.date
        else:
            moment = datetime(self.date.year, self.date.month, self.date.day)
        object.__setattr__(self, "date", moment.replace(tzinfo=None))

    @property
    def moment(self) -> datetime:
        """The date as a time stamp."""
        assert isinstance(self.date, datetime)
        return self.date

    @property
    def day(self) -> str:
        """The date as text, with the time of day where it is given."""
        return shown_date(self.moment)

    @property
    def label(self) -> str:
        """The entry in words, for messages."""
        tail = f" ({self.name})" if self.name else ""
        return f"unit '{self.unit}' on {self.day}{tail}"


@dataclass(frozen=True)
class EntryFault:
    """An entry that was left out.

    Attributes
    ----------
    unit : str
        Name of the unit.
    date : str
        Its date.
    words : str
        One sentence that names the entry and says why.
    """

    unit: str
    date: str
    words: str


def shown_date(moment: datetime) -> str:
    """A date in ISO format, with the time of day only where it is not midnight."""
    return moment.date().isoformat() if moment.time() == datetime.min.time() else moment.isoformat(timespec="minutes")
