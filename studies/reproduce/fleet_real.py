"""Real arms as fleets: a UR10e over five months with and without a payload, and three designs of a double pendulum."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from dynid.fleet.entries import FleetEntry
from dynid.fleet.health import Change, ChangeCode
from dynid.fleet.identify import identify_fleet
from dynid.fleet.result import FleetEstimate
from dynid.recording.load import load_recording
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from studies.reproduce.drives import SIGNALS, TOOL, calibrate, ur10e, with_gains
from studies.reproduce.robot_cases import CASES
from studies.reproduce.study import Figure, data_folder, kept_figures, published

__all__ = ["figures", "loaded", "pendulum_fleet", "ur10e_entries", "ur10e_files", "ur10e_fleet"]

# Runs with somebody pushing the arm are not for identification.
_FOLDERS = ("identification", "jointwise", "validation")
# Each pair is identified with the gains of the other.
_OTHER = {"14harm50sec": "15 harmonics", "15harm50sec": "14 harmonics"}
_DESIGNS = {"A.0": "pendulum_a0", "C.0": "pendulum_c0", "C.1": "pendulum_c1"}


def figures(folder: Path | None = None) -> Iterator[Figure]:
    """Payloads of the UR10e, then the pendulums."""
    sections: dict[str, Callable[[], Iterator[Figure]]] = {
        **{f"UR10e, {pair}": partial(_ur10e_figures, pair, other) for pair, other in _OTHER.items()},
        **{f"pendulum {design}": partial(_pendulum_figures, design) for design in _DESIGNS},
        "two pendulums": _two_pendulums,
    }
    yield from kept_figures("fleet-real", sections, folder)


def loaded(name: str) -> bool:
    """Whether a run has a payload, by its name."""
    return "unload" not in name and "load" in name.lower()


def ur10e_files() -> list[Path]:
    """All runs in order of their dates, then of their names."""
    files = [p for name in _FOLDERS for p in (data_folder() / "ur10e-mamedov" / name).glob("*.csv.gz")]
    return sorted(files, key=lambda p: p.name)


def ur10e_entries(robot: Robot, gains: ArrayLike) -> list[FleetEntry]:
    """Every run of the UR10e as an entry, with torques by these gains; runs of one day are a minute apart."""
    usable = published("drives")["ur10e"]["rows"]
    columns = {"q": "1:7", "v": "7:13", "current": "13:19"}
    out = []
    for minute, path in enumerate(ur10e_files()):
        name = path.name.removesuffix(".csv.gz")
        found = re.match(r"ur-(\d\d)_(\d\d)_(\d\d)", name)
        assert found is not None
        year, month, day = (int(x) for x in found.groups())
        first, last = usable.get(f"{path.parent.name}/{name}", (1, 0))
        rows = (first - 1, last or None)
        data = load_recording(path, robot, columns=columns, time=0, rows=rows, bad_rows="split")
        when = datetime(2000 + year, month, day) + timedelta(minutes=minute)
        out.append(FleetEntry("ur10e", when, with_gains(data, gains), name=name[3:]))
    return out


def ur10e_fleet(gains: ArrayLike) -> FleetEstimate:
    """The UR10e as a fleet of one; postures at rest are left out, since no joint moves."""
    robot = ur10e()
    return identify_fleet(robot, ur10e_entries(robot, gains), signals=SIGNALS, link=TOOL, skip_bad=True)


def _ur10e_figures(pair: str, other: str) -> Iterator[Figure]:
    robot, known = ur10e(), published("drives")["ur10e"]
    section = f"UR10e as a fleet of one, drive gains from the runs with {other}"
    found = ur10e_fleet(calibrate(robot, other).gains)
    yield Figure(
        section, "runs used, left out", "all", f"{len(found.entries)}, {found.left_out}", 0.0, np.inf, "recorded"
    )
    steps = {c.date: c for c in found.health.changes if c.code in (ChangeCode.PAYLOAD, ChangeCode.BODY)}
    before = False
    for one in found.entries:
        day = one.moment.isoformat(timespec="minutes")
        change, now = steps.get(day), loaded(one.name)
        expected = "none" if before == now else "picked up" if now else "removed"
        wrong = (change is not None) != (before != now)
        if before and now:  # two payloads that need not be the same
            yield Figure(section, f"{one.name}", "another payload", _shown(change), 0.0, np.inf, "recorded")
        else:
            reason = "payload by the name of the run"
            yield Figure(section, f"{one.name}", expected, _shown(change), float(wrong), 0.0, reason)
        if pair in one.name and now and change is not None:
            error = abs(change.value / known["payload"] - 1)
            shown = f"{change.value:.3f} kg, std {change.std:.3f}, {100 * (change.value / known['payload'] - 1):+.1f} %"
            yield Figure(section, f"{one.name}, mass", f"{known['payload']} kg", shown, error, 0.1, "10 %; held out")
        before = now
    drives = [c for c in found.health.changes if c.kind is not None]
    shown = "; ".join(c.words for c in drives) or "none"
    yield Figure(section, "changes of drives", "none stated", shown, 0.0, np.inf, "recorded")


def _shown(change: Change | None) -> str:
    if change is None:
        return "none"
    return f"{change.value:+.2f} kg, std {change.std:.2f}" if change.payload is not None else "bodies changed"


def pendulum_fleet(*designs: str) -> FleetEstimate:
    """Runs of some designs of the double pendulum with equal lengths, each design a unit; runs are minutes apart."""
    entries = []
    robot = CASES[_DESIGNS[designs[0]]]().robot
    columns = {"q": "pos_meas{i}", "torque": "tau_meas{i}"}
    for design in designs:
        files = sorted((data_folder() / "double-pendulum-dfki" / f"design_{design}").glob("*.csv.xz"))
        start = datetime.strptime(files[0].name[:8], "%Y%m%d")
        for minute, path in enumerate(files):
            data: Recording = load_recording(path, robot, columns=columns, time="time")
            when = start + timedelta(minutes=minute)
            entries.append(FleetEntry(design, when, data, name=path.name.removesuffix(".csv.xz")))
    return identify_fleet(robot, entries, skip_bad=True)


def _pendulum_figures(design: str) -> Iterator[Figure]:
    section = f"double pendulum {design}, runs of one day as dates"
    found = pendulum_fleet(design)
    bodies = [c for c in found.health.changes if c.kind is None]
    shown = "; ".join(c.words for c in bodies) or "none"
    # A quarter to a half of the torque of C.1 is not explained by any rigid model, differently in every motion.
    held = design != "C.1"
    reason = f"one arm, {len(found.entries)} runs" if held else "recorded: runs differ in what is not modeled"
    yield Figure(section, "changes of bodies", "none", shown, len(bodies), 0 if held else np.inf, reason)
    drives = "; ".join(c.words for c in found.health.changes if c.kind is not None) or "none"
    yield Figure(section, "changes of drives", "none stated", drives, 0.0, np.inf, "recorded: drives warm up")


def _two_pendulums() -> Iterator[Figure]:
    both = pendulum_fleet("C.0", "C.1")
    section = "double pendulums C.0 and C.1, equal lengths, as a fleet of two"
    names, mean = both.base.names, both.pooled
    assert mean is not None
    for name in ("mx_link2", "Izz_link2"):
        k = next(j for j, n in enumerate(names) if n.startswith(name))
        a, b = mean.values[:, k]
        shown = f"{a:.4f} and {b:.4f}, std {mean.std[0, k]:.4f} and {mean.std[1, k]:.4f}"
        yield Figure(section, names[k], "recorded", shown, 0.0, np.inf, "recorded: two rebuilt arms")
