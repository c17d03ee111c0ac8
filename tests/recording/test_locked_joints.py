"""Logs of all joints of a robot of which some are locked."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import Mismatch
from tests.support.errors import expect_error

WHOLE = dynid.load_robot("rv2sq")
FREE = WHOLE.locked({"joint2": 0.0, "joint6": 0.0})
Q = 0.3 * np.sin(np.outer(np.arange(50) / 50.0, 1.0 + np.arange(6)))


def write(path: Path, names: list[str], columns: np.ndarray) -> Path:
    t = np.arange(len(columns)) / 200.0
    np.savetxt(path, np.column_stack([t, columns]), delimiter=",", header=",".join(["t", *names]), comments="")
    return path


@pytest.mark.parametrize(
    ("names", "fields"),
    [
        ([f"pos{k}" for k in range(1, 7)], {}),
        ([f"pos{k}" for k in range(1, 7)], {"columns": {"q": "pos{i}"}}),
        (list("abcdef"), {"columns": {"q": "1:7"}}),
        (list("abcdef"), {"columns": {"q": ("a", "b", "c", "d", "e", "f")}}),
        ([f"q_joint{k}" for k in (6, 5, 4, 3, 2, 1)], {"columns": {"q": "q_{joint}"}}),
    ],
    ids=["numbers", "pattern", "range", "list", "names"],
)
def test_columns_of_locked_joints_are_left_out(names: list[str], fields: dict[str, Any], tmp_path: Path) -> None:
    """Columns without joint names that are as many as the joints of the whole robot are those of all of them."""
    backwards = names[0] == "q_joint6"
    log = write(tmp_path / "log.csv", names, Q[:, ::-1] if backwards else Q)
    found = dynid.load_recording(log, FREE, whole=WHOLE, **fields)
    np.testing.assert_allclose(found.runs[0].q, Q[:, [0, 2, 3, 4]])


@pytest.mark.parametrize("fields", [{}, {"columns": {"q": "pos{i}"}}, {"columns": {"q": "1:5"}}])
def test_a_log_of_the_free_joints_alone_is_read_as_it_is(fields: dict[str, Any], tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", [f"pos{k}" for k in range(1, 5)], Q[:, :4])
    np.testing.assert_allclose(dynid.load_recording(log, FREE, whole=WHOLE, **fields).runs[0].q, Q[:, :4])


def test_another_number_of_columns_is_refused(tmp_path: Path) -> None:
    log = write(tmp_path / "log.csv", list("abcdef"), Q)
    with expect_error(Mismatch, "columns"):
        dynid.load_recording(log, FREE, whole=WHOLE, columns={"q": "1:6"})
