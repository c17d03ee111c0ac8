"""The data sets of the benchmark: the truth is found in a small one, and ten million samples need below 1.5 GiB."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import scale, scale_data, scale_fold
from dynid.identification.pipeline import identify
from dynid.recording import open_dataset


def test_the_truth_is_found_in_a_small_data_set(tmp_path: Path) -> None:
    robot = scale.arm()
    assert scale_data.write(tmp_path, 50_000, size=20_000, robot=robot) == 3
    dataset = open_dataset(tmp_path, robot, longest=15_000)
    assert dataset.unread_columns == () and "v" in (dataset.log_format.columns or {})
    estimate = identify(robot, dataset, "wls")
    error = (estimate.beta - estimate.base.values()) / estimate.std
    assert np.mean(np.abs(error) < 3) > 0.9 and estimate.notes[0] == "50000 samples of 3 partitions"


def test_the_old_fold_and_the_new_one_agree() -> None:
    """R'R to rounding, and the same bits with any number of threads."""
    robot = scale.arm()
    base = scale_fold.base_parameters(robot)
    motion = scale_fold.prepare(scale_fold.recording(robot, 6000).runs[0], scale_fold.PLAIN)
    old = scale_fold.old_fold(base, motion)
    one, three = (scale_fold.new_fold(base, motion, scale_fold.PLAIN, threads) for threads in (1, 3))
    assert scale_fold.difference(old, one) < 1e-12
    assert all(np.array_equal(a, b) for a, b in zip(one, three, strict=True))


@pytest.mark.slow
def test_ten_million_samples_need_little_memory(tmp_path: Path) -> None:
    rows = scale.growth(tmp_path, (1_000_000, 10_000_000), "wls")
    assert all(row["peak_mib"] < scale.LIMIT_MIB for row in rows)
    assert rows[1]["peak_mib"] < 1.3 * rows[0]["peak_mib"]
    assert rows[1]["processor_s"] < 12 * rows[0]["processor_s"]
