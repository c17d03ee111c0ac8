"""The clock: stamps shifted to zero, milliseconds never taken for seconds, never silently rescaled."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import ConflictingArguments, InvalidValue, MissingArgument
from tests.support.errors import expect_error
from tests.support.log_files import motion, names, refused, robot, table, text, write

ROBOT = robot("a1", "a2", "a3")
UNITS = {"ms": 1e3, "us": 1e6, "ns": 1e9}


def log(folder: Path, factor: float = 1.0, rate: float = 100.0, start: float = 0.0, clock: str = "t") -> Path:
    run = motion(samples=200, rate=rate, start=start)
    rows = table(run)
    rows[:, 0] *= factor
    return write(folder / "run.csv", text(rows, [clock, *names("q", "v", "tau")[1:]]))


@pytest.mark.parametrize("rate", [30.0, 100.0, 1000.0, 5000.0])
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("evidence", ["step", "velocity"])
def test_clocks_in_other_units_are_named(tmp_path: Path, unit: str, rate: float, evidence: str) -> None:
    """The message names the unit, by the step alone or by velocities; then it is read as given."""
    file = log(tmp_path, UNITS[unit], rate)
    options: dict[str, Any] = {} if evidence == "velocity" else {"columns": {"q": "q{i}", "torque": "tau{i}"}}
    with refused("run.csv: 't' advances by", f'units={{"t": "{unit}"}}', "time=None and rate="):
        dynid.load_recording(file, ROBOT, **options)
    t = dynid.load_recording(file, ROBOT, units={"t": unit}, **options).runs[0].t
    np.testing.assert_allclose(t, motion(200, rate=rate).t, rtol=1e-14)


def test_velocities_confirm_seconds(tmp_path: Path) -> None:
    """A slow log of one sample in 0.4 s is refused, but accepted with velocities or with units."""
    file = log(tmp_path, rate=2.5)
    assert dynid.load_recording(file, ROBOT).runs[0].step == pytest.approx(0.4)
    alone = {"q": "q{i}"}
    with expect_error(MissingArgument, "units"):
        dynid.load_recording(file, ROBOT, columns=alone)
    given = dynid.load_recording(file, ROBOT, columns=alone, units={"t": "s"})
    assert given.runs[0].step == pytest.approx(0.4)


def test_wrong_units_of_angles_are_not_taken_for_a_wrong_clock(tmp_path: Path) -> None:
    """Velocities in deg/s beside positions in rad are off by 57, not by 1000."""
    run = motion(samples=200)
    rows = np.column_stack([run.t, run.q, run.v * 180 / np.pi])
    file = write(tmp_path / "run.csv", text(rows, names("q", "v")))
    assert dynid.load_recording(file, ROBOT).runs[0].step == pytest.approx(0.01)


def test_sample_numbers_are_replaced_by_a_rate(tmp_path: Path) -> None:
    """Kinova's Time counts samples at 1 kHz."""
    rows = table(motion(samples=50, rate=1000))
    rows[:, 0] = np.arange(50)
    file = write(tmp_path / "run.csv", text(rows, ["Time", *names("q", "v", "tau")[1:]]))
    with expect_error(MissingArgument, "units"):
        dynid.load_recording(file, ROBOT)
    t = dynid.load_recording(file, ROBOT, time=None, rate=1000).runs[0].t
    assert np.array_equal(t, np.arange(50) / 1000)


def test_a_rate_beside_a_clock_is_an_error(tmp_path: Path) -> None:
    """Whether the clock is found by its name or given; without a clock, or with time=None, the rate counts."""
    file = log(tmp_path)
    with expect_error(ConflictingArguments, "rate"):
        dynid.load_recording(file, ROBOT, rate=100)
    with expect_error(InvalidValue, "rate"):
        dynid.load_recording(tmp_path / "never_read.csv", ROBOT, time="t", rate=500)
    assert dynid.load_recording(file, ROBOT, time=None, rate=500).runs[0].step == pytest.approx(0.002)
    bare = log(tmp_path, clock="counter")
    assert dynid.load_recording(bare, ROBOT, rate=500).runs[0].step == pytest.approx(0.002)


@pytest.mark.parametrize(("clock", "unit"), [("time_ms", "ms"), ("t [us]", "us"), ("timestamp_ns", "ns")])
def test_units_in_the_name_of_the_clock_count(tmp_path: Path, clock: str, unit: str) -> None:
    """Also where the numbers look like seconds."""
    with refused(f'units={{"t": "{unit}"}}'):
        dynid.load_recording(log(tmp_path, clock=clock), ROBOT)
    assert dynid.load_recording(log(tmp_path, clock=clock), ROBOT, units={"t": "s"}).samples == 200


def test_unix_stamps_start_at_zero_and_clocks_since_power_on_stay(tmp_path: Path) -> None:
    """Stamps since 1970 lose their date; a controller's 3000 s since power-on are kept."""
    t = dynid.load_recording(log(tmp_path, start=1_700_000_000.0), ROBOT).runs[0].t
    # Doubles near 1.7e9 are 2.4e-7 apart.
    assert t[0] == 0 and np.abs(t - motion(200).t).max() < 5e-7
    stamps = dynid.load_recording(log(tmp_path, 1e9, start=1_700_000_000.0), ROBOT, units={"t": "ns"}).runs[0].t
    assert stamps[0] == 0 and np.abs(stamps - motion(200).t).max() < 1e-6
    assert dynid.load_recording(log(tmp_path, start=3047.5), ROBOT).runs[0].t[0] == 3047.5


@pytest.mark.parametrize("shape", ["constant", "backwards", "repeated"])
def test_odd_clocks_are_left_to_the_checks(tmp_path: Path, shape: str) -> None:
    """A clock that stands still or runs backwards is read as it is."""
    rows = table(motion(samples=200))
    if shape == "constant":
        rows[:, 0] = 5.0
    elif shape == "backwards":
        rows[100:, 0] -= 0.5
    else:
        rows[1::2, 0] = rows[::2, 0]
    file = write(tmp_path / "run.csv", text(rows, names("q", "v", "tau")))
    assert np.array_equal(dynid.load_recording(file, ROBOT).runs[0].t, rows[:, 0])


def test_a_clock_or_a_rate_is_needed(tmp_path: Path) -> None:
    file = log(tmp_path)
    with expect_error(InvalidValue, "time"):
        dynid.load_recording(file, ROBOT, time=None)
    with expect_error(InvalidValue, "rate"):
        dynid.load_recording(file, ROBOT, time=None, rate=-5)
    with expect_error(InvalidValue, "units"):
        dynid.load_recording(file, ROBOT, time=None, rate=5, units={"t": "ms"})
    with expect_error(InvalidValue, "time"):
        dynid.load_recording(file, ROBOT, time="1:4")
