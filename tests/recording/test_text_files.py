"""Text tables: every separator, with and without header, compressed or not, give back the numbers exactly."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dynid
from dynid.errors import DamagedFile, DataError, UnknownName, Unsupported
from tests.support.errors import expect_error
from tests.support.log_files import motion, names, refused, robot, same, table, text, write

RUN = motion()
HEADER = names("q", "v", "tau")
ROBOT = robot("a1", "a2", "a3")
PLAIN = {"q": "1:4", "v": "4:7", "torque": "7:10"}


@pytest.mark.parametrize("ending", [".csv", ".csv.gz", ".csv.xz", ".txt", ".TSV", ".dat.gz"])
@pytest.mark.parametrize("separator", [",", ";", "\t", " ", "  \t ", ", "])
def test_separator_and_compression_are_found(tmp_path: Path, ending: str, separator: str) -> None:
    """With a header the columns are recognised, without one they are given by index."""
    file = write(tmp_path / f"run{ending}", text(table(RUN), HEADER, separator))
    loaded = dynid.load_recording(file, ROBOT)
    assert same(loaded.runs[0], RUN) and loaded.runs[0].name == "run"
    file = write(tmp_path / f"bare{ending}", text(table(RUN), None, separator))
    assert same(dynid.load_recording(file, ROBOT, columns=PLAIN, time=0).runs[0], RUN)


def test_every_double_survives(tmp_path: Path) -> None:
    """Tiny, huge and subnormal numbers, as Python prints them."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=(40, 3)) * 10.0 ** rng.integers(-300, 8, (40, 3))
    values[0] = [5e-324, 1.0 / 3.0, -0.0]
    lines = "\n".join(",".join(map(repr, row)) for row in values.tolist())
    file = write(tmp_path / "run.csv", "q1,q2,q3\n" + lines)
    assert np.array_equal(dynid.load_recording(file, rate=100).runs[0].q, values)


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.replace("\n", "\r\n"),
        lambda s: s.replace("\n", "\r"),
        lambda s: "\ufeff" + s,
        lambda s: "\n" + s.replace("\n", "\n\n") + "\n\n",
        lambda s: "# robot 7\n% second comment\n" + s,
        lambda s: "#" + s,
        lambda s: "% " + s,
        lambda s: s.replace("\n", ",\n"),
        lambda s: s.replace("t,q1", '"t","q1"'),
        lambda s: s.replace("tau3\n", "tau3\n# pause\n"),
    ],
    ids=["dos", "mac", "bom", "blank", "comments", "hash", "percent", "trailing", "quotes", "inner"],
)
def test_usual_variants_of_text_files_are_read(tmp_path: Path, change: object) -> None:
    """Line ends, marks, blank lines, comments, commented headers, a separator at the end of lines, quoted names."""
    file = write(tmp_path / "run.csv", change(text(table(RUN), HEADER)))
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN)


def test_utf16_of_spreadsheets_is_read(tmp_path: Path) -> None:
    file = write(tmp_path / "run.csv", text(table(RUN), HEADER, "\t").encode("utf-16"))
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN)


@pytest.mark.parametrize("separator", [";", "\t"])
def test_decimal_commas_are_read(tmp_path: Path, separator: str) -> None:
    """German spreadsheets write 0,5; the separator then is another mark."""
    body = text(table(RUN), HEADER, separator).replace(".", ",")
    assert same(dynid.load_recording(write(tmp_path / "run.csv", body), ROBOT).runs[0], RUN)


def test_one_column_is_a_table_too(tmp_path: Path) -> None:
    file = write(tmp_path / "run.txt", "\n".join(f"{x:.17g}" for x in RUN.q[:, 0]))
    assert np.array_equal(dynid.load_recording(file, rate=100, columns={"q": 0}).runs[0].q, RUN.q[:, :1])


def test_repeated_names_are_taken_in_order(tmp_path: Path) -> None:
    """Three columns q are joints 1, 2, 3; asking for q alone is refused."""
    file = write(tmp_path / "run.csv", text(table(RUN, "q"), ["t", "q", "q", "q"]))
    assert np.array_equal(dynid.load_recording(file, ROBOT).runs[0].q, RUN.q)
    with expect_error(UnknownName, "columns"):
        dynid.load_recording(file, columns={"q": "q"})


def test_printed_joint_states_go_by_the_name_in_the_cells(tmp_path: Path) -> None:
    """rostopic echo -p writes field.name0, field.position0, ...; the order of the joints is that of the message."""
    header = ["%time", *(f"field.{x}{k}" for x in ("name", "position", "effort") for k in range(3))]
    order = [2, 0, 1]
    rows = [
        [f"{t * 1e9:.0f}", *(f"a{k + 1}" for k in order), *(f"{x:.17g}" for x in [*q[order], *tau[order]])]
        for t, q, tau in zip(RUN.t, RUN.q, RUN.torque, strict=True)
    ]
    file = write(tmp_path / "run.csv", "\n".join(map(",".join, [header, *rows])))
    loaded = dynid.load_recording(file, ROBOT, units={"t": "ns"}).runs[0]
    assert same(loaded, RUN, "q", "torque")
    assert dynid.load_recording(file, units={"t": "ns"}).joints == ("a3", "a1", "a2")
    rows[7][1:3] = rows[7][2:0:-1]
    write(file, "\n".join(map(",".join, [header, *rows])))
    with expect_error(Unsupported):
        dynid.load_recording(file, ROBOT, units={"t": "ns"})


def test_header_must_fit_the_rows(tmp_path: Path) -> None:
    """Also with one name too few: columns would be off by one where rows start with an unnamed number."""
    for missing in (1, 2):
        file = write(tmp_path / "run.csv", text(table(RUN), HEADER[missing:]))
        with refused(f"run.csv: the header names {10 - missing} columns, the rows have 10"):
            dynid.load_recording(file, ROBOT, rate=100)
    file = write(tmp_path / "run.csv", text(table(RUN), [*HEADER, ""]))
    assert same(dynid.load_recording(file, ROBOT).runs[0], RUN)


def test_rows_that_count_the_columns_are_headers(tmp_path: Path) -> None:
    """The column numbers that a data frame without names writes are not a sample, with or without its index."""
    rows = table(RUN)
    file = write(tmp_path / "run.csv", text(rows, [str(k) for k in range(10)]))
    assert same(dynid.load_recording(file, ROBOT, columns=PLAIN, time=0).runs[0], RUN)
    rows = np.column_stack([np.arange(60), rows])
    file = write(tmp_path / "run.csv", text(rows, ["", *(str(k) for k in range(10))]))
    shifted = {"q": "2:5", "v": "5:8", "torque": "8:11"}
    assert same(dynid.load_recording(file, ROBOT, columns=shifted, time=1).runs[0], RUN)


def test_quotation_marks_across_lines_are_an_error(tmp_path: Path) -> None:
    body = text(table(RUN), HEADER).splitlines()
    body[5], body[9] = '"' + body[5], body[9] + '"'
    with expect_error(DamagedFile):
        dynid.load_recording(write(tmp_path / "run.csv", "\n".join(body)), ROBOT)


@pytest.mark.parametrize(("panics", "said"), [("numbers", None), ("always", "cannot be read as a table")])
def test_a_panic_of_polars_ends_no_process(
    panics: str, said: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Seen once in 78 000 damaged files, by the timing of its threads: the columns are then read as text."""
    read = pl.read_csv

    def shaky(source: object, *, schema: dict[str, object], **given: object) -> object:
        if panics == "always" or pl.Float64 in schema.values():
            raise pl.exceptions.PanicException("slice index starts at 1 but ends at 0")
        return read(source, schema=schema, **given)  # type: ignore[arg-type]

    monkeypatch.setattr(pl, "read_csv", shaky)
    file = write(tmp_path / "run.csv", text(table(RUN), HEADER))
    if said is None:
        assert same(dynid.load_recording(file, ROBOT).runs[0], RUN)
    else:
        with refused(said):
            dynid.load_recording(file, ROBOT)


def test_lines_that_are_too_long_for_the_csv_module(tmp_path: Path) -> None:
    """A name of over 128 KiB is refused by the limit of names; a comment as long is no header and does no harm."""
    body = text(table(RUN), HEADER)
    with expect_error(DataError):
        dynid.load_recording(write(tmp_path / "run.csv", body.replace(HEADER[3], "x" * 200_000 + HEADER[3])), ROBOT)
    file = write(tmp_path / "run.csv", "# " + "x" * 200_000 + "\n" + text(table(RUN)))
    assert same(dynid.load_recording(file, ROBOT, columns=PLAIN, time=0).runs[0], RUN)
