"""Positions of links beside those of motors: columns, units, joints without a link encoder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dynid.errors import NotFinite
from dynid.recording.load import load_recording
from dynid.recording.run import Run
from dynid.robot.load import load_robot
from tests.support.errors import expect_error

ROBOT = load_robot("twolink")


def write(path: Path, header: str) -> Path:
    """Six columns: time, positions, torques and one more."""
    rows = [f"{0.01 * k},{k},{2 * k},1,2,{k + 1}" for k in range(40)]
    path.write_text("\n".join([header, *rows]))
    return path


@pytest.mark.parametrize(
    "name", ["q_link_joint2", "link_position_joint2", "position_link_joint2", "link_q_2", "pos_link_2"]
)
def test_link_positions_are_recognized(name: str, tmp_path: Path) -> None:
    """By the word link; joint1 has no link encoder."""
    log = write(tmp_path / "run.csv", f"t,q_joint1,q_joint2,tau_joint1,tau_joint2,{name}")
    run = load_recording(log, ROBOT).runs[0]
    assert run.link_q is not None and np.isnan(run.link_q[:, 0]).all()
    np.testing.assert_array_equal(run.link_q[:, 1], np.arange(40) + 1)
    np.testing.assert_array_equal(run.q[:, 1], 2 * np.arange(40))


def test_units_and_joints_without_encoder(tmp_path: Path) -> None:
    """Given by name, in degrees; none stands for a joint without link encoder; the file is read back."""
    log = write(tmp_path / "run.csv", "t,a,b,c,d,e")
    columns = {"q": ["a", "b"], "torque": ["c", "d"], "link_q": ["e", "none"]}
    recording = load_recording(log, ROBOT, columns=columns, units={"link_q": "deg"})
    expected = np.deg2rad(np.arange(40) + 1)
    np.testing.assert_allclose(np.asarray(recording.runs[0].link_q)[:, 0], expected)
    recording.to_csv(tmp_path / "again.csv")
    again = load_recording(tmp_path / "again.csv", ROBOT).runs[0].link_q
    np.testing.assert_array_equal(again, recording.runs[0].link_q)
    assert recording.rows(10, 20).runs[0].link_q is not None


def test_positions_of_links_alone_are_the_positions(tmp_path: Path) -> None:
    log = write(tmp_path / "run.csv", "t,link_position_1,link_position_2,tau_1,tau_2,spare")
    run = load_recording(log, ROBOT).runs[0]
    assert run.link_q is None and run.q[3, 1] == 6.0


def test_a_gap_in_link_positions_is_refused() -> None:
    """A column that is missing as a whole is not."""
    t, q = np.arange(10) / 10.0, np.zeros((10, 2))
    broken = q.copy()
    broken[3, 1] = np.nan
    with expect_error(NotFinite):
        Run(t, q, link_q=broken)
