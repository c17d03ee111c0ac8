"""Fleets: recordings of many units over many dates, the section [fleet] of the project file, and what was found."""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from dynid.errors import DataError, InvalidValue, MissingArgument, MissingFile, NotWritable
from dynid.recording.partitions import hive_keys
from dynid.recording.tables import SCANNED
from dynid.studio.jobs import Done, Listener
from dynid.studio.session import Session
from dynid.studio.step_files import FLEET_FOUND, FLEET_PAGE, FLEET_TABLE

__all__ = ["FLEET_LOGS", "FleetChoice", "FleetRun", "FleetStep", "guessed_run"]

# Folder that the page makes from logs of the workspace; the mark says that the page made it and may make it anew.
FLEET_LOGS, _MARK = "fleet-logs", ".made-by-studio"
_DATE = re.compile(r"(?<!\d)(20\d\d)[-_]?(\d\d)[-_]?(\d\d)(?!\d)")
_UNIT = re.compile(r"[A-Za-z0-9][A-Za-z0-9 ._+-]{0,59}")


@dataclass(frozen=True)
class FleetRun:
    """A log of the workspace, the unit that it was recorded on, and the date (YYYY-MM-DD)."""

    file: str
    unit: str
    day: str

    def __post_init__(self) -> None:
        if not _UNIT.fullmatch(self.unit) or ".." in self.unit:
            raise InvalidValue(
                f"'{self.unit[:40]}' is no name of a unit: letters, digits, blanks and . _ + - only", "unit"
            )
        try:
            date.fromisoformat(self.day)
        except ValueError:
            raise InvalidValue(f"'{self.day[:40]}' is no date of {self.file}: write YYYY-MM-DD", "day") from None


@dataclass(frozen=True)
class FleetChoice:
    """What is chosen in the step.

    Attributes
    ----------
    folder : str
        Folder of the workspace with recordings as robot=NAME/date=YYYY-MM-DD/...
    false_alarms : float
        Probability of any false alarm in the whole fleet.
    skip_bad : bool
        Whether recordings that cannot be used are left out and listed.
    unit_gains : bool
        Whether the torque gain of every unit is identified.
    """

    folder: str = ""
    false_alarms: float = 0.05
    skip_bad: bool = False
    unit_gains: bool = False

    @classmethod
    def of_section(cls, section: Mapping[str, Any]) -> FleetChoice:
        """From the section [fleet]."""
        return cls(
            str(section.get("folder", "")),
            float(section.get("false_alarms", cls.false_alarms)),
            bool(section.get("skip_bad")),
            bool(section.get("unit_gains")),
        )

    def to_section(self) -> dict[str, Any]:
        """The section [fleet]."""
        return {
            "folder": self.folder,
            "output": FLEET_TABLE,
            "report": FLEET_PAGE,
            "false_alarms": self.false_alarms,
            "skip_bad": self.skip_bad or None,
            "unit_gains": self.unit_gains or None,
        }


@dataclass(frozen=True)
class FleetStep:
    """The step of a session."""

    session: Session

    @property
    def choice(self) -> FleetChoice:
        """What was chosen last."""
        return FleetChoice.of_section(self.session.project.section("fleet"))

    def folders(self) -> list[str]:
        """Folders of the workspace that hold recordings of units."""
        places = sorted(p for p in self.session.workspace.folder.iterdir() if p.is_dir() and not p.name.startswith("."))
        return [p.name for p in places if any(x.is_dir() for x in p.glob("robot=*"))]

    def logs(self) -> list[str]:
        """Logs of the workspace that a fleet may be made of."""
        return [n for n in self.session.recordings() if n.lower().endswith(SCANNED)]

    def runs(self, folder: str) -> list[FleetRun]:
        """The recordings of a folder."""
        root = self._folder(folder)
        out = []
        for path in sorted(p for p in root.rglob("*") if p.suffix.lower() in SCANNED):
            keys = hive_keys(path.relative_to(root).parent.as_posix())
            with suppress(DataError):
                out.append(FleetRun(path.name, keys.get("robot", ""), keys.get("date", "")))
        return out

    def arrange(self, runs: Sequence[FleetRun]) -> str:
        """Make the folder of a fleet from logs of the workspace; returns its name."""
        if not runs:
            raise MissingArgument("choose the logs of the fleet first", "logs")
        paths = [self.session.workspace.existing(run.file) for run in runs]
        target = self.session.workspace.path(FLEET_LOGS)
        if target.exists() and not (target / _MARK).is_file():
            raise NotWritable(f"the folder '{FLEET_LOGS}' was not made by this page: give it another name")
        fresh = target.with_name(f"{FLEET_LOGS}.part")
        shutil.rmtree(fresh, ignore_errors=True)
        for run, path in zip(runs, paths, strict=True):
            place = fresh / f"robot={run.unit}" / f"date={run.day}"
            place.mkdir(parents=True, exist_ok=True)
            _linked(path, place / path.name)
        (fresh / _MARK).touch()
        shutil.rmtree(target, ignore_errors=True)
        fresh.rename(target)
        return FLEET_LOGS

    async def identify(self, choice: FleetChoice, progress: Listener | None = None) -> Done:
        """Keep the choice, run `dynid fleet`, and keep what it found."""
        session = self.session
        if session.robot is None:
            raise MissingArgument("choose a robot first")
        self._folder(choice.folder)
        if not 0.0 < choice.false_alarms < 1.0:
            raise InvalidValue(
                f"the probability of a false alarm lies between 0 and 1, got {choice.false_alarms:g}", "false_alarms"
            )
        before = session.project.section("fleet")
        session.project.put("fleet", before | choice.to_section())
        done = await session.jobs.run("fleet", "--json", progress=progress)
        if done.ok:
            session.workspace.write(FLEET_FOUND, json.dumps(done.data, indent=2).encode())
        return done

    def found(self) -> dict[str, Any] | None:
        """What the last command found; None where there is nothing, or where it belongs to an older page."""
        if not self.session.current(FLEET_FOUND, FLEET_PAGE):
            return None
        try:
            found = json.loads(self.session.workspace.existing(FLEET_FOUND).read_text(encoding="utf-8"))
        except (DataError, ValueError):
            return None
        return found if isinstance(found, dict) and "units" in found else None

    def _folder(self, name: str) -> Path:
        if not name:
            raise MissingArgument("choose the folder of the fleet first, or make one from logs", "folder")
        path = self.session.workspace.path(name)
        if not path.is_dir():
            raise MissingFile(f"the workspace has no folder '{name}'", "folder")
        return path


def _linked(path: Path, target: Path) -> None:
    """The same file under another name; a copy where the file system has no links."""
    try:
        os.link(path, target)
    except OSError:
        shutil.copyfile(path, target)


def guessed_run(file: str) -> tuple[str, str]:
    """Unit and date that the name of a file says, empty where it says none: arm3_2026-03-02.csv is arm3 on that day."""
    stem = file.split(".")[0]
    match = _DATE.search(stem)
    day = "" if match is None else "-".join(match.groups())
    rest = stem if match is None else stem[: match.start()] + stem[match.end() :]
    unit = re.sub(r"^[ ._+-]+|[ ._+-]+$", "", re.sub(r"[ ._+-]{2,}", "-", rest))
    return unit, day
