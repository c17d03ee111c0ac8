"""Which column is which signal: assigned in blocks, turned into a log format, and read back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import DataError, InvalidShape, InvalidValue, Mismatch, MissingArgument, UnknownName
from dynid.recording.log_format import LogFormat
from dynid.recording.table import Table
from dynid.robot.model import Robot
from dynid.studio.mapping import Assignment, LogMapping, column_numbers, listed_numbers, units_of
from dynid.studio.opened_log import held_joints, open_log, signal_of_file
from dynid.studio.previews import previews, sparkline
from tests.support.errors import Error, expect_error

JOINTS = ("a", "b", "c")


@pytest.fixture(scope="module")
def robot() -> Robot:
    return dynid.load_robot("tx40")


def mapping(columns: int = 12, joints: tuple[str, ...] = JOINTS, header: bool = False) -> LogMapping:
    t = np.arange(50.0)
    names = [f"c{k}" if header else str(k) for k in range(columns)]
    table = Table("run.csv", {name: np.sin(t + k) for k, name in enumerate(names)}, header=header)
    return LogMapping(previews({"": table}), joints)


def bare_log(folder: Path, joints: int, rate: float = 100.0) -> Path:
    """A file without a header: a clock, positions, currents."""
    t = np.arange(300) / rate
    q = np.column_stack([np.sin(t * (k + 1)) for k in range(joints)])
    path = folder / "bare.csv"
    np.savetxt(path, np.column_stack([t + 5.0, q, 2.0 * q]), delimiter=",")
    return path


def test_numbers_of_columns_are_written_as_ranges() -> None:
    assert column_numbers("0, 3, 7-12") == [0, 3, 7, 8, 9, 10, 11, 12]
    assert column_numbers(" 1 - 3 ,9") == [1, 2, 3, 9] and column_numbers("") == []
    assert listed_numbers([0, 3, 7, 8, 9]) == "0, 3, 7-9" and listed_numbers([]) == ""
    for text in ("a", "3-1", "1-", "-4", "1,1", "0-99999"):
        with pytest.raises(DataError):
            column_numbers(text)


def test_a_block_is_one_joint_after_the_other() -> None:
    """With its unit and its gains; what the joints had before is given up."""
    first = mapping().assign([0], "t", unit="ms").assign([1, 2, 3], "q", unit="deg").assign([4, 5, 6], "q")
    assert [first.assigned.get(k) for k in (1, 4)] == [None, Assignment("q", "a")]
    both = first.assign([7, 8, 9], "current", sign=-1, factors=[10, 11, 12])
    log = both.log_format()
    assert log.time == 0 and log.units == {"t": "ms"} and log.sign == {"current": -1.0}
    assert log.columns == {"q": (4, 5, 6), "current": (7, 8, 9)} and log.gain == (10, 11, 12)
    assert both.assign([8], "").assigned.keys() == {0, 4, 5, 6, 7, 9}


def test_one_value_for_all_joints_is_written_once() -> None:
    whole = mapping(header=True).assign([0], "t").assign([1, 2, 3], "q", factors=[2.0]).assign([4, 5, 6], "torque")
    log = whole.assign([5], "torque", "b", unit="mNm", factors=[-3.0]).log_format()
    assert log.columns == {"q": ("c1", "c2", "c3"), "torque": ("c4", "c5", "c6")}
    assert log.scale == {"q": 2.0, "torque": (1.0, -3.0, 1.0)} and log.units == {"torque": ("Nm", "mNm", "Nm")}
    sliding = LogMapping(whole.columns, JOINTS, frozenset({"c"})).assign([0], "t").assign([1, 2, 3], "q")
    assert sliding.assign([1], "q", "a", unit="deg").log_format().units == {"q": ("deg", "rad", "m")}


def test_a_block_may_start_at_a_joint_and_passes_over_locked_ones() -> None:
    locked = mapping().lock({"b": 0.3}).assign([1, 2], "q")
    assert [locked.assigned[k].channel for k in (1, 2)] == ["a", "c"] and locked.free == ("a", "c")
    assert locked.assign([3], "q", "b").assigned[3].channel == "b"
    assert [x.channel for x in locked.assign([3, 4, 5], "q").assigned.values()] == ["a", "b", "c"]
    # A column of a locked joint is left out of what is read.
    assert locked.assign([0], "t").assign([3, 4, 5], "q").log_format().columns == {"q": (3, 5)}
    assert mapping().assign([1, 3], "q").without_position() == ["c"]


@pytest.mark.parametrize(
    ("change", "error"),
    [
        (lambda m: m.assign([], "q"), (UnknownName, "columns")),
        (lambda m: m.assign([12], "q"), (UnknownName, "columns")),
        (lambda m: m.assign([1, 2], "t"), (InvalidValue, "time")),
        (lambda m: m.assign([1, 2, 3, 4], "q"), (Mismatch, "columns")),
        (lambda m: m.assign([1, 2], "q", "c"), (Mismatch, "columns")),
        (lambda m: m.assign([1], "q", "d"), (UnknownName, "joints")),
        (lambda m: m.assign([1], "temperature"), (UnknownName, "signal")),
        (lambda m: m.assign([1], "q", unit="Nm"), (UnknownName, "unit")),
        (lambda m: m.assign([1, 2, 3], "q", factors=[1, 2]), (InvalidShape, "gain")),
        (lambda m: m.lock({"d": 0.0}), (UnknownName, "joints")),
        (lambda m: m.lock(dict.fromkeys(JOINTS, 0.0)), (InvalidValue, "lock")),
        (lambda m: m.log_format(), (MissingArgument, "")),
        (lambda m: m.assign([1, 2, 3], "q").log_format(), (MissingArgument, "time")),
        (lambda m: m.assign([0], "t").assign([1, 2], "q").log_format(), (MissingArgument, "columns")),
        (
            lambda m: (
                m.assign([0], "t")
                .assign([1, 2, 3], "q")
                .assign([4, 5, 6], "current")
                .assign([4], "current", "a", factors=[3])
                .log_format()
            ),
            (MissingArgument, "gain"),
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(change: object, error: Error) -> None:
    with expect_error(*error):
        change(mapping())  # type: ignore[operator]


def test_a_log_without_a_header_is_read_as_assigned(robot: Robot, tmp_path: Path) -> None:
    """Its clock is seen in its values; the format that is saved opens the log as it was left."""
    path = bare_log(tmp_path, robot.n)
    opened = open_log({"": path}, robot, LogFormat())
    assert opened.guess == "bare.csv has no header: assign its columns"
    assert opened.mapping.assigned == {0: Assignment("t")}
    columns = opened.mapping.assign(range(1, 7), "q").assign(range(7, 13), "current", factors=[3.0])
    opened = opened.changed(columns)
    assert opened.summary() == "300 samples, 3.0 s at 100 Hz: q, torque, current of 6 joints"
    run = opened.recording.runs[0]
    assert run.torque is not None and np.allclose(run.torque, 6.0 * run.q)
    low, high, unit = opened.ranges()[7]
    assert unit == "N m" and (low, high) == (run.torque[:, 0].min(), run.torque[:, 0].max())
    again = open_log({"": path}, robot, LogFormat.from_toml({"log": columns.log_format().to_dict()}))
    assert again.guess == "" and again.mapping.assigned == columns.assigned


def test_names_are_guessed_and_joints_that_no_column_names_are_locked(robot: Robot, tmp_path: Path) -> None:
    t = np.arange(300) / 100.0
    named = robot.coordinates[:4]
    for signal, word in (("q", "position"), ("torque", "effort")):
        values = np.column_stack([t, *(np.sin(t * (k + 1)) for k in range(4))])
        header = ",".join(["t", *(f"{joint}_{word}" for joint in named)])
        np.savetxt(tmp_path / f"arm_{word}.csv", values, delimiter=",", header=header, comments="")
        assert signal_of_file(f"arm_{word}.csv.gz") == signal
    files = {"q": tmp_path / "arm_position.csv", "torque": tmp_path / "arm_effort.csv"}
    opened = open_log(files, robot, LogFormat())
    assert tuple(opened.mapping.locked) == robot.coordinates[4:] and opened.guess == ""
    assert opened.robot.coordinates == named == opened.recording.joints
    assert opened.mapping.assigned[6] == Assignment("torque", named[0])
    with expect_error(Mismatch, "columns"):
        opened.mapping.assign([6], "v")


def test_a_preview_shows_first_values_range_and_a_curve() -> None:
    values = np.linspace(-1.0, 2.0, 10_000)
    table = Table("x.csv", {"up": values, "text": np.full(10_000, np.nan)})
    up, text = previews({"": table})
    assert (up.first[0], up.low, up.high, up.rising) == (-1.0, -1.0, 2.0, True)
    assert len(up.curve) == 96 and up.curve.min() == -1.0 and up.curve.max() == 2.0
    assert np.isnan(text.low) and not text.rising
    drawn, empty = sparkline(up.curve), sparkline(text.curve)
    assert drawn.count(",") == 96 and "nan" not in drawn + empty and "polyline" not in empty


def test_locked_joints_of_a_project_file(robot: Robot) -> None:
    first, second = robot.coordinates[:2]
    assert held_joints([first, f"{second}=0.25"], robot) == {first: 0.0, second: 0.25}
    assert held_joints({"*": 0.1}, robot) == dict.fromkeys(robot.coordinates, 0.1)
    for wrong in (["nothing"], [f"{first}=x"]):
        with pytest.raises(DataError, match="lock: "):
            held_joints(wrong, robot)


def test_units_of_a_signal() -> None:
    assert units_of("t") == ["s", "ms", "us", "ns"] and units_of("q")[0] == "rad" and units_of("wrench") == []
