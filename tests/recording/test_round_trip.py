"""What a recording writes it reads back: every number, every run, every joint."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid import Recording, Run
from dynid.errors import DamagedFile
from dynid.recording.run import SIGNALS, WIDTH
from tests.support.errors import expect_error
from tests.support.log_files import robot

pytestmark = pytest.mark.usefixtures("readers_here")


def random_recording(
    seed: int, joints: tuple[str, ...], signals: tuple[str, ...], lengths: tuple[int, ...]
) -> Recording:
    """Numbers of every size, times that do not start at zero and are uneven."""
    rng = np.random.default_rng(seed)
    runs = []
    for k, length in enumerate(lengths):
        values = {
            s: rng.normal(size=(length, WIDTH.get(s, len(joints)))) * 10.0 ** rng.integers(-9, 6) for s in signals
        }
        if "base" in values:  # a quaternion has a size of its own
            values["base"][:, 3:] = rng.normal(size=(length, 4))
        t = 3.0 + np.cumsum(rng.uniform(1e-3, 2e-3, length))
        runs.append(Run(t, name=f"run{k}", **values))
    return Recording(tuple(joints), tuple(runs))


def assert_same(ours: Recording, theirs: Recording) -> None:
    assert ours.joints == theirs.joints and len(ours.runs) == len(theirs.runs)
    for a, b in zip(ours.runs, theirs.runs, strict=True):
        for signal in ("t", *SIGNALS):
            x, y = getattr(a, signal), getattr(b, signal)
            assert (x is None) == (y is None) and (x is None or np.array_equal(x, y)), signal


@settings(max_examples=20, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    signals=st.lists(st.sampled_from(SIGNALS), unique=True),
    lengths=st.lists(st.integers(2, 30), min_size=1, max_size=4),
    ending=st.sampled_from([".csv", ".csv.gz", ".parquet"]),
)
def test_everything_survives(
    tmp_path_factory: pytest.TempPathFactory, seed: int, signals: list[str], lengths: list[int], ending: str
) -> None:
    """Exactly, with the robot and without, runs apart and in order."""
    joints = ("shoulder_pan_joint", "wrist_1_joint", "wrist_2_joint")
    # Without v only the step decides the unit of the clock; random v would decide it wrongly.
    recording = random_recording(seed, joints, tuple({"q", *signals} - {"v"}), tuple(lengths))
    file = tmp_path_factory.mktemp("trip") / f"run{ending}"
    (recording.to_parquet if ending == ".parquet" else recording.to_csv)(file)
    assert_same(dynid.load_recording(file, robot(*joints)), recording)
    assert_same(dynid.load_recording(file), recording)


@pytest.mark.parametrize(
    "joints", [("q", "v", "a"), ("q_1", "torque_2", "t3"), ("run", "time", "x"), ("a,b", 'c"d', "é")]
)
@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_any_joint_names_survive(tmp_path: Path, joints: tuple[str, ...], ending: str) -> None:
    """Also names that look like signals, or contain commas and quotation marks."""
    recording = random_recording(1, joints, ("q", "v", "torque"), (40, 3))
    file = tmp_path / f"run{ending}"
    (recording.to_parquet if ending == ".parquet" else recording.to_csv)(file)
    assert_same(dynid.load_recording(file, units={"t": "s"}), recording)
    assert_same(dynid.load_recording(file, robot(*joints), units={"t": "s"}), recording)


def test_loaded_runs_written_and_read_again(tmp_path: Path) -> None:
    """Runs of several files in one file, and that file beside another."""
    recording = random_recording(2, ("a", "b"), ("q", "torque"), (20, 30))
    recording.to_csv(tmp_path / "two.csv")
    recording.to_parquet(tmp_path / "two.parquet")
    both = dynid.load_recording([tmp_path / "two.csv", tmp_path / "two.parquet"])
    assert_same(both, recording + recording)
    assert [run.name for run in both.runs] == ["two#1", "two#2"] * 2


def test_runs_are_distinguished_by_numbers(tmp_path: Path) -> None:
    file = tmp_path / "run.csv"
    random_recording(3, ("a",), ("q",), (4, 4)).to_csv(file)
    file.write_text(file.read_text().replace("\n1,", "\nsecond,"))
    with expect_error(DamagedFile):
        dynid.load_recording(file)
