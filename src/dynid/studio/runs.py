"""Which logs are identified from and which motion is held out: the section [runs] of the project file."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dynid.errors import InvalidType, InvalidValue, MissingData, UnknownName
from dynid.recording.log_fields import is_signal

__all__ = ["HELD_OUT", "LogRuns"]

# How motion is held out: code and words.
HELD_OUT = {"share": "a share of the log", "rows": "rows of the log", "logs": "other logs", "none": "nothing"}


@dataclass(frozen=True)
class LogRuns:
    """Logs of an identification.

    Attributes
    ----------
    identify : tuple of str or mapping
        Files, or one mapping of signals to files.
    validate : tuple of str or mapping
        Other logs to validate on.
    share : float or None
        Share of each run, from its end, that is held out.
    rows : str
        Rows START:STOP that are held out, or that are read of the other logs; "" for none.
    """

    identify: tuple[str | Mapping[str, str], ...] = ()
    validate: tuple[str | Mapping[str, str], ...] = ()
    share: float | None = None
    rows: str = ""

    def __post_init__(self) -> None:
        if self.share is not None and not 0.0 < self.share < 1.0:
            raise InvalidValue(f"the share that is held out must lie between 0 and 1, got {self.share:g}", "share")
        if self.rows and not re.fullmatch(r"-?\d*:-?\d*", self.rows):
            raise InvalidValue(f"'{self.rows[:40]}' are no rows: write START:STOP, such as 4000:6000", "rows")
        for entry in (*self.identify, *self.validate):
            for signal in entry if isinstance(entry, Mapping) else ():
                if signal != "t" and not is_signal(signal):
                    raise UnknownName(f"'{signal}' is no signal: say which signal each file has", "signal")
            if isinstance(entry, Mapping) and "q" not in entry:
                raise MissingData("no file has the positions: one of the files must be that of q")

    @property
    def files(self) -> list[str]:
        """The files to identify from."""
        return [name for entry in self.identify for name in _names(entry)]

    @property
    def other_files(self) -> list[str]:
        """The files of the other logs."""
        return [name for entry in self.validate for name in _names(entry)]

    @property
    def signals(self) -> dict[str, str]:
        """Signal to its file, where the log has one file per signal; otherwise empty."""
        return dict(self.identify[0]) if self.identify and isinstance(self.identify[0], Mapping) else {}

    @property
    def held_out(self) -> str:
        """The code of HELD_OUT."""
        if self.validate:
            return "logs"
        return "share" if self.share is not None else "rows" if self.rows else "none"

    def words(self) -> str:
        """In a sentence, for people."""
        if not self.identify:
            return "no log is chosen"
        with_rows = f", rows {self.rows}" if self.rows else ""
        held = {
            "logs": f"validated on {', '.join(self.other_files)}{with_rows}",
            "share": f"validated on the last {self.share or 0:.0%}",
            "rows": f"validated on rows {self.rows}",
            "none": "not validated",
        }
        return f"from {', '.join(self.files)}; {held[self.held_out]}"

    @classmethod
    def of_section(cls, section: Mapping[str, Any]) -> LogRuns:
        """From the section [runs]."""
        rows = section.get("validate_rows") or ""
        if not isinstance(rows, str):
            rows = ":".join("" if x is None else str(x) for x in rows)
        return cls(
            _entries(section.get("identify") or ()),
            _entries(section.get("validate") or ()),
            section.get("validate_share"),
            rows,
        )

    def to_section(self) -> dict[str, Any]:
        """The section [runs]; None for what is left out."""
        return {
            "identify": list(self.identify),
            "validate": list(self.validate) or None,
            "validate_share": self.share,
            "validate_rows": self.rows or None,
        }


def _entries(listed: Any) -> tuple[str | Mapping[str, str], ...]:
    if not isinstance(listed, Sequence) or isinstance(listed, str):
        raise InvalidType(f"runs must list files, got {listed!r:.60}")
    return tuple(listed)


def _names(entry: str | Mapping[str, str]) -> list[str]:
    return [entry] if isinstance(entry, str) else list(entry.values())
