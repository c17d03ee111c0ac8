"""LogFormat: checked by field, written to TOML and JSON and read back, and the resolved format of a recording."""

from __future__ import annotations

import json
import logging
import tomllib
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import dynid
from dynid import LogFormat
from dynid.errors import DamagedFile, InvalidType, InvalidValue, MissingFile, UnknownName
from dynid.recording.log_fields import LogFields
from dynid.robot import Transmission
from tests.support.errors import expect_error
from tests.support.log_files import motion, names, refused, robot, same, table, text, write

RUN = motion()
ROBOT = robot("a1", "a2", "a3")
FULL: dict[str, Any] = {
    "time": "stamp",
    "columns": {"q": "pos{i}", "current": ["i1", 2, "i 3"], "wrench:left": "6:12", "v": 4},
    "units": {"t": "ms", "q": ["deg", "mm", "counts:4096"]},
    "scale": {"current": 2.0},
    "sign": {"current": [1, -1, 1]},
    "gain": (0.1, 0.2, 0.3),
    "motor_side": {"torque", "q"},
    "offset": {"q": [0.0, 1e-17, -1.5]},
    "joints": ["j1", "j2", 'say "j3"'],
    "rows": (10, None),
    "bad_rows": "split",
    "topic": "/joint_states",
}


def log(folder: Path, header: list[str], *signals: str, name: str = "run.csv") -> Path:
    return write(folder / name, text(table(RUN, *signals), header))


def test_every_field_survives_toml_and_json(tmp_path: Path) -> None:
    """In a file of its own, below [log], and as a table that was read already."""
    full = LogFormat(**FULL)
    rated = LogFormat(time=None, rate=250, rows=(-100, -1))
    assert full.model_fields_set | rated.model_fields_set == set(LogFormat.model_fields)
    for given in (full, rated, LogFormat(), LogFormat(rows=(None, 5), joints=[3, 1], time=2, motor_side=True)):
        assert LogFormat(**json.loads(json.dumps(given.to_dict()))) == given
        own, project = tmp_path / "log.toml", tmp_path / "dynid.toml"
        own.write_text(given.to_toml(), encoding="utf-8")
        project.write_text(f"[robot]\nfile = 'arm.urdf'\n[log]\n{given.to_toml()}[runs]\n", encoding="utf-8")
        assert LogFormat.from_toml(own) == LogFormat.from_toml(str(project)) == given
        assert LogFormat.from_toml(tomllib.loads(given.to_toml())) == given
    assert LogFormat().to_dict() == {} and LogFormat().to_toml() == ""
    assert LogFormat(units={"q": "deg"}).to_dict() == {"units": {"q": "deg"}}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"unit": {"q": "deg"}}, "a log format has no field 'unit': use time, rate, .*; did you mean units"),
        ({"time": 1.5}, "time must be the name or the index of a column, or None, got 1.5"),
        ({"time": True}, "time must be"),
        ({"rate": "fast"}, "rate must be positive, got 'fast'"),
        ({"rate": 0}, "rate must be positive, got 0"),
        ({"columns": "q"}, "columns must name its signals"),
        ({"columns": {"q": 1.5}}, "columns of q must be names, indices, a pattern or a range, got 1.5"),
        ({"columns": {"q": ["a", None]}}, "columns of q must be names"),
        ({"units": {"q": 3}}, "units of q must be a unit or one unit per joint, got 3"),
        ({"units": {"t": ["s", "ms"]}}, "units of t must be one unit"),
        ({"units": {"t": "min"}}, "unit 'min' of t is unknown: use s, ms, us, ns"),
        ({"units": {"q": "counts:0"}}, "unit 'counts:0' of q needs the counts per revolution"),
        ({"scale": {"q": [1.0, "x"]}}, "scale of q must be a finite number or one per joint"),
        ({"scale": {"q": "2"}}, "scale of q must be a finite number or one per joint, got '2'"),
        ({"sign": {"torque": [1, 2]}}, "sign of torque must be 1 or -1"),
        ({"gain": float("inf")}, "gain of current must be a finite number"),
        ({"motor_side": 3}, "motor_side: signal '3' is unknown"),
        ({"joints": ["a", 1]}, "joints= must list names or indices"),
        ({"joints": []}, "joints= must list names or indices"),
        ({"rows": "10-20"}, r"rows must be \(start, stop\), got '10-20'"),
        ({"rows": (1.5, 2)}, "rows must be"),
        ({"bad_rows": "drop"}, "bad_rows 'drop' is unknown: use error or split"),
        ({"topic": 5}, "topic must be the name of a topic, got 5"),
        ({"time": None}, r"without a time column \(time=None\) the rate in Hz is needed"),
        ({"time": 0, "rate": 10}, "the log has a time column '0' and rate=10: leave out the rate, or say time=None"),
        ({"time": None, "rate": 9, "units": {"t": "s"}}, "units is given for t, but the times come from rate="),
    ],
)
def test_wrong_fields_are_one_sentence_before_anything_is_read(fields: dict[str, Any], message: str) -> None:
    """From the class, from TOML and from the keywords of `load_recording`."""
    with refused(message):
        LogFormat(**fields)
    with refused(message):
        LogFormat.from_toml({"log": fields})
    with refused(message):
        dynid.load_recording("no_such_file.csv", ROBOT, **fields)
    with pytest.raises(dynid.DataError):
        LogFormat.model_validate(fields)


def test_files_that_are_not_a_log_format(tmp_path: Path) -> None:
    with expect_error(MissingFile):
        LogFormat.from_toml(tmp_path / "gone.toml")
    with expect_error(DamagedFile):
        LogFormat.from_toml(write(tmp_path / "bad.toml", "units = {"))
    with expect_error(InvalidType, "log"):
        LogFormat.from_toml(write(tmp_path / "wrong.toml", "log = 3"))
    with expect_error(InvalidValue):
        LogFormat.from_toml(write(tmp_path / "typo.toml", "[log]\nsing = { torque = -1 }"))


def test_keywords_of_load_recording_are_the_fields_of_the_format() -> None:
    assert set(get_type_hints(LogFields)) == set(LogFormat.model_fields)
    assert all(field.description for field in LogFormat.model_fields.values())


def test_keywords_override_the_format(tmp_path: Path) -> None:
    file = log(tmp_path, ["stamp", *names("pos", "vel", "tau")[1:]])
    settings = LogFormat(units={"q": "deg"}, sign={"torque": -1}, rows=(5, 20))
    run = dynid.load_recording(file, ROBOT, log=settings, units={"q": "rad"}).runs[0]
    assert np.array_equal(run.q, RUN.q[5:20]) and np.array_equal(run.torque, -RUN.torque[5:20])
    with expect_error(InvalidType, "log"):
        dynid.load_recording(file, ROBOT, log={"rate": 5})
    with expect_error(UnknownName):
        dynid.load_recording(tmp_path / "gone.csv", ROBOT, sensor={})


def test_the_recording_has_the_resolved_format(tmp_path: Path) -> None:
    """The clock and columns that were found, the settings that were given, and what was left over."""
    header = ["stamp", *names("pos", "vel", "tau")[1:]]
    rows = np.column_stack([table(RUN), np.zeros((60, 2))])
    file = write(tmp_path / "run.csv", text(rows, [*header, "temperature1", "gripper"]))
    recording = dynid.load_recording(file, ROBOT, sign={"torque": -1}, rows=(0, 50))
    found = recording.log_format
    assert found == LogFormat(
        time="stamp",
        columns={"q": header[1:4], "v": header[4:7], "torque": header[7:10]},
        sign={"torque": -1},
        rows=(0, 50),
    )
    assert recording.unread_columns == ("temperature1", "gripper")
    again = dynid.load_recording(file, ROBOT, log=found)
    assert again.log_format == found and same(again.runs[0], recording.runs[0])
    for part in (recording.between(0.1, 0.3), recording.rows(5, 20), *recording.split(0.5), recording + recording):
        assert part.log_format == found and part.unread_columns == recording.unread_columns
    summary = recording.summary()
    for words in (
        "column 'stamp'",
        "from tau1, tau2, tau3",
        "torque -1",
        " 0:50",
        "temperature1, gripper",
        "run: 50 samples",
    ):
        assert words in summary
    assert "gripper" in recording._repr_html_() and "tau1" in recording._repr_html_()
    assert "stamp" in found._repr_html_()


def test_formats_of_several_files(tmp_path: Path) -> None:
    """Equal ones are kept, rows that differ are left out, and of different columns only what was given stays."""
    file = log(tmp_path, names("q", "v", "tau"))
    other = log(tmp_path, names("pos", "vel", "tau"), name="other.csv")
    first, second = (dynid.load_recording(file, ROBOT, rows=rows) for rows in ((0, 20), (30, 60)))
    assert (first + second).log_format == first.log_format.replaced({"rows": None})
    assert (first + dynid.load_recording(other, ROBOT)).log_format is None
    made = dynid.Recording(ROBOT.coordinates, (RUN,))
    assert made.log_format is None and (made + first).log_format == (first + made).log_format == first.log_format
    assert dynid.load_recording([file, file], ROBOT).log_format == dynid.load_recording(file, ROBOT).log_format
    mixed = dynid.load_recording([file, other], ROBOT, offset={"q": 0.5})
    assert mixed.log_format == LogFormat(offset={"q": 0.5})


def test_resolved_formats_read_the_same_again(tmp_path: Path) -> None:
    """Arrays, files of one signal each, logs without header or clock, selected joints, motors."""
    np.savez(tmp_path / "run.npz", t=RUN.t, q=RUN.q, tau=RUN.torque, image=np.zeros((60, 200)), label="x")
    write(tmp_path / "bare.csv", text(table(RUN)))
    for signal in ("q", "torque"):
        write(tmp_path / f"{signal}.csv", text(table(RUN, signal), ["time", "x1", "x2", "x3"]))
    log(tmp_path, names("q", "v", "tau"), name="full.csv")
    dynid.Recording(("b", "c", "d"), (RUN, RUN)).to_csv(tmp_path / "own.csv")
    pair = robot("b", "c").with_transmission(Transmission(("m1", "m2"), np.eye(2), np.array([10.0, -5.0])))
    cases: list[tuple[Any, Any, dict[str, Any]]] = [
        (tmp_path / "run.npz", ROBOT, {}),
        (tmp_path / "run.npz", None, {}),
        (tmp_path / "bare.csv", ROBOT, {"columns": {"q": "1:4", "torque": "7:10"}, "time": 0}),
        (tmp_path / "bare.csv", None, {"columns": {"q": "1:4"}, "time": None, "rate": 50}),
        ({"q": tmp_path / "q.csv", "torque": tmp_path / "torque.csv"}, ROBOT, {}),
        ({"torque": tmp_path / "torque.csv", "q": tmp_path / "q.csv"}, None, {}),
        (tmp_path / "full.csv", None, {"joints": [2, 0]}),
        (tmp_path / "full.csv", pair, {"joints": [2, 0], "motor_side": {"q", "torque"}}),
        (tmp_path / "own.csv", None, {}),
    ]
    for source, arm, fields in cases:
        loaded = dynid.load_recording(source, arm, **fields)
        again = dynid.load_recording(source, arm, log=LogFormat.from_toml(tomllib.loads(loaded.log_format.to_toml())))
        assert again.log_format == loaded.log_format and again.joints == loaded.joints
        for one, two in zip(again.runs, loaded.runs, strict=True):
            assert same(one, two, "q") and (one.torque is None or same(one, two, "torque"))
    assert dynid.load_recording(tmp_path / "run.npz", ROBOT).unread_columns == ("image",)
    assert dynid.load_recording(tmp_path / "own.csv").unread_columns == ()


def test_a_log_without_torque_is_reported_with_the_columns_left_over(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = log(tmp_path, [*names("q")[:4], *(f"load{k}" for k in (1, 2, 3))], "q", "torque")
    with caplog.at_level(logging.WARNING, "dynid"):
        recording = dynid.load_recording(file, ROBOT)
    assert recording.runs[0].torque is None and recording.unread_columns == ("load1", "load2", "load3")
    (message,) = (record.getMessage() for record in caplog.records)
    for words in ("run.csv: read q from q1, q2, q3", "not found: v, torque, current", "load1, load2, load3"):
        assert words in message
    caplog.clear()
    with caplog.at_level(logging.WARNING, "dynid"):
        dynid.load_recording(log(tmp_path, names("q", "i"), "q", "torque"), ROBOT)  # currents
        dynid.load_recording(log(tmp_path, names("q"), "q"), ROBOT)  # nothing is left over
        dynid.load_recording(file, ROBOT, columns={"q": "q{i}"})  # the choice of the caller
    assert not caplog.records
