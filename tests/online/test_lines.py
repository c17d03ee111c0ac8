"""Lines of a growing log: columns as in a file, faults counted and named, never a crash."""

from __future__ import annotations

import numpy as np

import dynid
from dynid.errors import DamagedFile, MissingData
from dynid.online.lines import LineFault, LineReader, Samples
from tests.support.errors import expect_error

HEADER = "time,pos1,pos2,tau1,tau2"


def rows(count: int, first: int = 0) -> list[str]:
    return [f"{0.01 * k},{0.1 * k},{0.2 * k},{k},{-k}" for k in range(first, first + count)]


def robot() -> dynid.Robot:
    return dynid.load_robot("twolink")


def read(reader: LineReader, *parts: list[str]) -> Samples:
    """All samples of some parts of a log."""
    found = [s for part in parts if (s := reader.feed(part)) is not None]
    v = None if found[0].v is None else np.concatenate([s.v for s in found if s.v is not None])
    t, q, torque = (np.concatenate([getattr(s, name) for s in found]) for name in ("t", "q", "torque"))
    return Samples(t, q, torque, v)


def test_samples_are_those_of_the_file() -> None:
    """Whatever the parts in which the lines come."""
    lines = [HEADER, *rows(60)]
    whole = read(LineReader(robot()), lines)
    parts = read(LineReader(robot()), *([line] for line in lines))
    for name in ("t", "q", "torque"):
        np.testing.assert_array_equal(getattr(whole, name), getattr(parts, name))
    np.testing.assert_allclose(whole.q[:, 1], 0.2 * np.arange(60))
    assert whole.v is None


def test_units_separators_and_signs_of_the_log_format() -> None:
    log = dynid.LogFormat(units={"q": "deg", "t": "ms"}, sign={"torque": -1})
    lines = ["Zeit;pos1;pos2;tau1;tau2", *(f"{10 * k};1,5;3;{k},25;0" for k in range(30))]
    found = read(LineReader(robot(), log.replaced({"time": "Zeit"})), lines)
    np.testing.assert_allclose(found.t, 0.01 * np.arange(30))
    np.testing.assert_allclose(found.q, np.deg2rad([[1.5, 3.0]] * 30))
    np.testing.assert_allclose(found.torque[:, 0], -(np.arange(30) + 0.25))


def test_bad_lines_are_counted_and_named() -> None:
    reader = LineReader(robot())
    bad = ["1,2,3", "0.5,a,1,1,1", "", "# remark", "0.6,nan,1,1,1", "0.7,1e12,1,1,1", "\x00\x01,,,,"]
    found = read(reader, [HEADER, *rows(30), *bad, *rows(5, 100)])
    assert len(found.t) == 35
    assert dict(reader.faults) == {LineFault.CELLS: 1, LineFault.NUMBER: 2, LineFault.VALUE: 2}
    assert reader.last_fault.startswith("line 3")


def test_a_bad_line_among_the_first_does_not_hide_the_columns() -> None:
    reader = LineReader(robot())
    found = read(reader, [HEADER, *rows(5), "half a li", *rows(30, 5)])
    assert len(found.t) == 35 and reader.faults[LineFault.CELLS] == 1


def test_logs_that_cannot_be_followed_are_refused() -> None:
    with expect_error(DamagedFile):
        LineReader(robot()).feed(["hello world"] * 30)
    with expect_error(MissingData):
        LineReader(robot()).feed(["time,pos1,pos2", *(f"{0.01 * k},{k},{k}" for k in range(30))])
    assert LineReader(robot()).feed([HEADER, *rows(3)]) is None
    short = LineReader(robot()).feed([HEADER, *rows(3)], last=True)
    assert short is not None and len(short.t) == 3


def test_a_log_without_a_clock_has_its_rate() -> None:
    log = dynid.LogFormat(time=None, rate=50.0, columns={"q": "0:2", "torque": "2:4"})
    found = read(LineReader(robot(), log), [f"{k},{k},1,2" for k in range(25)], ["1,1,1,1"])
    np.testing.assert_allclose(found.t, np.arange(26) / 50.0)
