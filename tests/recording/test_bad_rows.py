"""Rows that cannot be used are named with file, line and column, or cut out, and never joined over."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import InvalidValue, NotFinite, TooFew
from tests.support.errors import expect_error
from tests.support.log_files import motion, names, refused, robot, same, table, text, write

ROBOT = robot("a1", "a2", "a3")
RUN = motion(samples=100)
HEADER = names("q", "v", "tau")


def lines() -> list[list[str]]:
    return [line.split(",") for line in text(table(RUN), HEADER).splitlines()]


def log(folder: Path, cells: list[list[str]], name: str = "run.csv") -> Path:
    return write(folder / name, "\n".join(map(",".join, cells)))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nan", "'nan' is not a number"),
        ("-nan", "nan' is not a number"),
        ("inf", "'inf' is not a number"),
        ("", "'' is not a number"),
        ("NA", "'NA' is not a number"),
        ("overflow", "'overflow' is not a number"),
        ("1.5.2", "'1.5.2' is not a number"),
        ("2e9", "2e+09 is not plausible"),
        ("-" + "9" * 200 + ".0", r"-1e\+200 is not plausible"),
    ],
)
@pytest.mark.parametrize("column", [2, 4, 9], ids=["q", "v", "torque"])
def test_bad_cells_are_named(tmp_path: Path, value: str, message: str, column: int) -> None:
    """File, line counted from 1 with its header, column, and the content of the cell."""
    cells = lines()
    cells[41][column] = value
    file = log(tmp_path, cells)
    with refused(f"run.csv, line 42, column '{HEADER[column]}': ", message, 'bad_rows="split"'):
        dynid.load_recording(file, ROBOT)
    pieces = dynid.load_recording(file, ROBOT, bad_rows="split").runs
    assert [len(p) for p in pieces] == [40, 59]
    assert same(pieces[0], RUN.rows(0, 40)) and same(pieces[1], RUN.rows(41, 100))
    assert [p.name for p in pieces] == ["run#1", "run#2"]


def test_lines_count_comments_and_blanks(tmp_path: Path) -> None:
    """The number is that of the editor."""
    cells = lines()
    cells[10][1] = "x"
    body = ["# a comment", "", *map(",".join, cells)]
    body.insert(5, "")
    with expect_error(NotFinite, "bad_rows"):
        dynid.load_recording(write(tmp_path / "run.csv", "\n".join(body)), ROBOT)


@pytest.mark.parametrize(("cut", "count"), [(4, 4), (9, 9), (10, 11)])
def test_lines_of_another_length_are_bad_rows(tmp_path: Path, cut: int, count: int) -> None:
    """A short last line is a log that was cut off; its last number may be cut too."""
    cells = lines()
    cells[-1] = (cells[-1] + ["7"])[:cut] if cut < 10 else [*cells[-1], "7"]
    file = log(tmp_path, cells)
    with refused(f"run.csv, line 101: has {count} cells, the other lines 10"):
        dynid.load_recording(file, ROBOT, columns={"q": "q{i}"})
    (piece,) = dynid.load_recording(file, ROBOT, bad_rows="split").runs
    assert same(piece, RUN.rows(0, 99)) and piece.name == "run"


def test_cells_of_unread_columns_may_be_bad(tmp_path: Path) -> None:
    """Bad cells in columns that are not read do not matter."""
    cells = lines()
    cells[41][9] = "1e300"
    cells[42][8] = "none"
    run = dynid.load_recording(log(tmp_path, cells), ROBOT, columns={"q": "q{i}", "v": "v{i}"}).runs[0]
    assert same(run, RUN, "q", "v")


def test_short_runs_are_dropped_and_counted(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Bad rows at lines 12 and 20: the ten good rows before and the seven between are too few to use."""
    cells = lines()
    cells[11][1] = cells[19][1] = "x"
    with caplog.at_level(logging.WARNING, "dynid"):
        (piece,) = dynid.load_recording(log(tmp_path, cells), ROBOT, bad_rows="split").runs
    assert same(piece, RUN.rows(19, 100))
    assert caplog.messages == [
        "run.csv: 2 bad rows and 17 rows in runs shorter than 16 are left out of 100, 1 runs are kept"
    ]


def test_nothing_left_is_an_error(tmp_path: Path) -> None:
    cells = lines()
    for k in range(1, 101, 10):
        cells[k][1] = "x"
    with expect_error(TooFew):
        dynid.load_recording(log(tmp_path, cells), ROBOT, bad_rows="split")


def test_split_also_cuts_where_the_clock_jumps(tmp_path: Path) -> None:
    """Bad rows that look like numbers are found by their time; small gaps and repeated stamps do not split."""
    rows = table(RUN)
    rows[40:, 0] += 3.0
    rows[70:, 0] -= 2.0
    rows[20:, 0] += 0.05
    rows[10, 0] = rows[9, 0]
    file = write(tmp_path / "run.csv", text(rows, HEADER))
    pieces = dynid.load_recording(file, ROBOT, bad_rows="split").runs
    assert [len(p) for p in pieces] == [40, 30, 30]
    assert len(dynid.load_recording(file, ROBOT).runs) == 1


def test_a_sound_file_is_not_split(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (piece,) = dynid.load_recording(log(tmp_path, lines()), ROBOT, bad_rows="split").runs
    assert same(piece, RUN) and piece.name == "run" and not caplog.messages


def test_bad_rows_of_one_file_cut_all_signals(tmp_path: Path) -> None:
    """Signals in files of their own stay together."""
    rows = table(RUN, "torque")
    rows[50, 2] = np.nan
    q = write(tmp_path / "q.csv", text(table(RUN, "q"), names("x")))
    torque = write(tmp_path / "torque.csv", text(rows, names("x")))
    with expect_error(NotFinite, "bad_rows"):
        dynid.load_recording({"q": q, "torque": torque}, ROBOT)
    pieces = dynid.load_recording({"q": q, "torque": torque}, ROBOT, bad_rows="split").runs
    assert same(pieces[0], RUN.rows(0, 50), "q", "torque") and same(pieces[1], RUN.rows(51, 100), "q", "torque")


def test_bad_times_are_bad_rows(tmp_path: Path) -> None:
    cells = lines()
    cells[30][0] = "1e150"
    cells[60][0] = ""
    file = log(tmp_path, cells)
    with expect_error(NotFinite, "bad_rows"):
        dynid.load_recording(file, ROBOT)
    assert [len(p) for p in dynid.load_recording(file, ROBOT, bad_rows="split").runs] == [29, 29, 40]


def test_rows_are_chosen_before_they_are_judged(tmp_path: Path) -> None:
    """A range of the rows below the header; bad rows outside do not matter, those inside keep their line."""
    cells = lines()
    cells[5][1] = cells[95][1] = "x"
    file = log(tmp_path, cells)
    assert same(dynid.load_recording(file, ROBOT, rows=(5, 94)).runs[0], RUN.rows(5, 94))
    assert same(dynid.load_recording(file, ROBOT, rows=(95, None)).runs[0], RUN.rows(95, 100))
    assert same(dynid.load_recording(file, ROBOT, rows=(-4, None)).runs[0], RUN.rows(96, 100))
    with expect_error(NotFinite, "bad_rows"):
        dynid.load_recording(file, ROBOT, rows=(50, None))
    with expect_error(TooFew):
        dynid.load_recording(file, ROBOT, rows=(120, 130))


def test_unknown_treatment_is_refused(tmp_path: Path) -> None:
    with expect_error(InvalidValue):
        dynid.load_recording(log(tmp_path, lines()), ROBOT, bad_rows="skip")
