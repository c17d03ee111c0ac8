"""Data sets: streamed observations, estimates and validations equal those of the recording in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import dynid
from dynid.identification import data_sets
from dynid.identification.observation import observe, time_parts
from dynid.identification.pipeline import identify
from dynid.progress import Progress
from dynid.recording import open_dataset
from dynid.recording.dataset import DataSet
from dynid.recording.recording import Recording
from dynid.signals.settings import Signals
from tests.support.partitions import files, runs, write_data_set
from tests.support.synthetic import arm

ROBOT = arm()
# Stops are looked for over all runs of a recording, and chunk by chunk in a data set.
SIGNALS = Signals(cutoff=10.0, stops=False)


@pytest.fixture(scope="module")
def recording() -> Recording:
    return Recording(ROBOT.coordinates, tuple(runs(ROBOT, 6, samples=2000)))


@pytest.fixture
def dataset(tmp_path: Path, recording: Recording) -> DataSet:
    # Partitions in the order of the dates.
    write_data_set(ROBOT, tmp_path, list(recording.runs))
    for k, file in enumerate(files(tmp_path)):
        file.rename(tmp_path / f"run={k}.parquet")
    return open_dataset(tmp_path, ROBOT)


def equal(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a.factors, b.factors, strict=True)) and a.rows == b.rows


def test_factors_equal_those_of_the_recording(dataset: DataSet, recording: Recording) -> None:
    whole, streamed = observe(ROBOT, recording, signals=SIGNALS), observe(ROBOT, dataset, signals=SIGNALS)
    assert streamed.rows == whole.rows and not streamed.left_out and streamed.notes[0].startswith("12000 samples of 6")
    for a, b in zip(whole.factors, streamed.factors, strict=True):
        np.testing.assert_allclose(a.T @ a, b.T @ b, atol=1e-12 * np.abs(a.T @ a).max())


def test_blocks_of_time_add_up_and_serve_as_parts(dataset: DataSet, recording: Recording) -> None:
    """Six partitions make twenty blocks; their sum is the whole, and five parts have about a fifth each."""
    streamed = observe(ROBOT, dataset, signals=SIGNALS)
    assert len(streamed.time_blocks) == 20
    parts = time_parts(streamed, 5)
    for k, factor in enumerate(streamed.factors):
        total = sum(part[k].T @ part[k] for part in parts)
        np.testing.assert_allclose(total, factor.T @ factor, atol=1e-10 * np.abs(total).max())
    reference = time_parts(observe(ROBOT, recording, signals=SIGNALS), 5)
    energy = [[np.sum(p[k][:, -1] ** 2) for p in some] for some in (parts, reference) for k in range(3)]
    np.testing.assert_allclose(energy[:3], energy[3:], rtol=0.2)


@pytest.mark.parametrize("method", ["wls", "feasible"])
def test_estimates_equal_those_of_the_recording(method: str, dataset: DataSet, recording: Recording) -> None:
    """Parameters to rounding, standard deviations to the scatter of twenty blocks cut elsewhere."""
    whole, streamed = (identify(ROBOT, data, method, signals=SIGNALS) for data in (recording, dataset))
    tolerance = 0.1 if method == "feasible" else 1e-6  # the weight of its prior rests on the standard deviations
    assert np.abs((streamed.beta - whole.beta) / whole.std).max() < tolerance
    assert streamed.noise_model == "autocorrelated" and streamed.freedom >= 5
    assert 0.7 < np.median(streamed.std / whole.std) < 1.4
    # The effective number of rows is measured in another way, but says the same.
    assert 0.5 < sum(streamed.independent_rows) / sum(whole.independent_rows) < 2.0


@pytest.mark.slow
def test_auto_chooses_on_a_part_and_says_so(dataset: DataSet, recording: Recording) -> None:
    given = {"friction": "given", "filters": "given", "signals": SIGNALS}
    whole, streamed = (identify(ROBOT, data, "auto", **given) for data in (recording, dataset))  # type: ignore[arg-type]
    assert np.abs((streamed.beta - whole.beta) / whole.std).max() < 1.0
    assert any("were chosen on 12000 samples of 6 of 6 partitions" in note for note in streamed.notes)
    assert {c.option for c in streamed.choices if c.what == "estimator"} == {"feasible", "wls", "ols"}


def test_methods_that_need_the_samples_are_refused(dataset: DataSet) -> None:
    for method in ("irls", "gls"):
        with pytest.raises(dynid.DataError, match=f"'{method}' needs the samples again"):
            identify(ROBOT, dataset, method)
    with pytest.raises(dynid.DataError, match="not a data set"):
        identify(ROBOT, dataset, "cloe")
    with pytest.raises(dynid.DataError, match="known"):
        observe(ROBOT, dataset, known=np.zeros(len(ROBOT.layout)))


def test_a_cluster_is_for_data_sets(recording: Recording) -> None:
    estimate = identify(ROBOT, recording, "wls", signals=SIGNALS)
    for work in (
        lambda: observe(ROBOT, recording, client=object()),
        lambda: identify(ROBOT, recording, "wls", client=object()),
        lambda: estimate.validate(recording, client=object()),
        lambda: dynid.check(ROBOT, recording, client=object()),
    ):
        with pytest.raises(dynid.DataError, match="open_dataset"):
            work()


def test_validation_equals_that_of_the_recording(dataset: DataSet, recording: Recording) -> None:
    estimate = identify(ROBOT, recording, "wls", signals=SIGNALS)
    whole, streamed = estimate.validate(recording), estimate.validate(dataset)
    assert streamed.rows == whole.rows and streamed.partitions == 6
    for name in ("rmse", "relative", "nrmse", "largest", "r2"):
        np.testing.assert_allclose(getattr(streamed, name), getattr(whole, name), rtol=1e-9, atol=1e-9)
    assert len(streamed.measured[0]) and "RMSE" in streamed.summary()


def test_chunks_bound_what_is_read_at_once(dataset: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long run in chunks gives the estimate of the whole one; only the trimmed edges are lost."""
    longest = 0
    cleaned = data_sets.cleaned_chunk

    def watched(base: Any, chunk: Recording, settings: Signals) -> Any:
        nonlocal longest
        longest = max(longest, chunk.samples)
        return cleaned(base, chunk, settings)

    monkeypatch.setattr(data_sets, "cleaned_chunk", watched)
    whole = identify(ROBOT, dataset, "wls", signals=SIGNALS)
    cut = open_dataset(dataset.source, ROBOT, longest=500)
    streamed = identify(ROBOT, cut, "wls", signals=SIGNALS)
    assert longest == 2000 and sum(streamed.rows) > 0.85 * sum(whole.rows)
    assert np.abs((streamed.beta - whole.beta) / whole.std).max() < 1.0
    longest = 0
    observe(ROBOT, cut, signals=SIGNALS)
    assert longest == 500


def test_no_bit_depends_on_the_number_of_threads(dataset: DataSet, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DYNID_THREADS", "1")
    one = observe(ROBOT, dataset, signals=SIGNALS)
    monkeypatch.setenv("DYNID_THREADS", "3")
    assert equal(one, observe(ROBOT, dataset, signals=SIGNALS))


def test_progress_counts_partitions(dataset: DataSet) -> None:
    seen: list[Progress] = []
    observe(ROBOT, dataset, signals=SIGNALS, progress=seen.append)
    assert [p.message for p in seen][-1] == "folding: 6 of 6 partitions" and seen[-1].share == 1.0
    assert seen[0].seconds_left is not None


def corrupt(file: Path) -> None:
    raw = bytearray(file.read_bytes())
    raw[200:400] = bytes(200)
    file.write_bytes(bytes(raw))


def cut_off(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-100])


def empty(file: Path) -> None:
    polars.read_parquet(file).head(0).write_parquet(file)


def other_schema(file: Path) -> None:
    frame = polars.read_parquet(file)
    frame.rename({name: name.replace("q_", "position_") for name in frame.columns}).write_parquet(file)


def joint_missing(file: Path) -> None:
    polars.read_parquet(file).drop("torque_joint2").write_parquet(file)


def clock_in_ms(file: Path) -> None:
    polars.read_parquet(file).with_columns(polars.col("t") * 1000).write_parquet(file)


def clock_in_days(file: Path) -> None:
    polars.read_parquet(file).with_columns(polars.col("t") / 86400).write_parquet(file)


def text(file: Path) -> None:
    polars.read_parquet(file).with_columns(polars.lit("x").alias("q_joint1")).write_parquet(file)


FAULTS: list[tuple[Callable[[Path], None], str]] = [
    (corrupt, "damaged"),
    (cut_off, "damaged"),
    (empty, "has columns and no rows"),
    (other_schema, "has no column 'q_joint1' for q, which the other partitions have"),
    (joint_missing, "has no column 'torque_joint2' for torque"),
    (clock_in_ms, "units"),
    (clock_in_days, "another unit"),
    (text, "is not a number"),
    (Path.unlink, "No such file"),
]


@pytest.mark.parametrize(("damage", "words"), FAULTS, ids=lambda x: getattr(x, "__name__", ""))
def test_a_bad_partition_is_named_and_may_be_left_out(
    damage: Callable[[Path], None], words: str, dataset: DataSet, rows_without_3: tuple[int, ...]
) -> None:
    damage(Path(dataset.source) / "run=3.parquet")
    with pytest.raises(dynid.DataError, match=r"run=3\.parquet.*" + words) as error:
        observe(ROBOT, dataset, signals=SIGNALS)
    assert "skip_bad" in str(error.value)
    seen = observe(ROBOT, dataset, signals=SIGNALS, skip_bad=True)
    assert [one.partition for one in seen.left_out] == ["run=3.parquet"]
    assert any("1 of 6 partitions are left out: partition run=3.parquet" in note for note in seen.notes)
    assert seen.rows == rows_without_3


@pytest.fixture(scope="module")
def rows_without_3(recording: Recording) -> tuple[int, ...]:
    return observe(ROBOT, Recording(recording.joints, (*recording.runs[:3], *recording.runs[4:])), signals=SIGNALS).rows


def test_what_was_left_out_stands_in_the_results(dataset: DataSet) -> None:
    joint_missing(Path(dataset.source) / "run=3.parquet")
    estimate = identify(ROBOT, dataset, "wls", signals=SIGNALS, skip_bad=True)
    assert any("1 of 6 partitions are left out: partition run=3.parquet" in note for note in estimate.notes)
    with pytest.raises(dynid.DataError, match=r"run=3\.parquet"):
        estimate.validate(dataset)
    validation = estimate.validate(dataset, skip_bad=True)
    assert [one.partition for one in validation.left_out] == ["run=3.parquet"]
    assert validation.rows == estimate.rows and "1 of 6 partitions" in validation.summary()


def test_checks_name_partitions_and_count_them(dataset: DataSet) -> None:
    """The same finding on several partitions is one line; what cannot be read is a finding."""
    for k in (1, 2):
        path = Path(dataset.source) / f"run={k}.parquet"
        polars.read_parquet(path).with_columns(-polars.col("torque_joint2")).write_parquet(path)
    (Path(dataset.source) / "run=4.parquet").write_bytes(b"")
    found = dynid.check(ROBOT, dataset)
    signs = [f for f in found if f.code == "torque_sign"]
    assert [(f.joint, f.run) for f in signs] == [("joint2", "run=1.parquet")]
    assert signs[0].how_much.endswith("in 2 of 6 partitions")
    bad = [f for f in found if f.code == "partition_unusable"]
    assert [(f.run, f.severity) for f in bad] == [("run=4.parquet", "error")]
    assert [f.severity for f in dynid.check(ROBOT, dataset, skip_bad=True) if f.code == bad[0].code] == ["warning"]


@pytest.fixture
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(2, threads_per_worker=1, processes=False, dashboard_address=None) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
    ):
        yield client


def test_a_cluster_gives_the_same_bits(dataset: DataSet, client: Any) -> None:
    """Results come in any order and are joined in one; bad partitions are named as here."""
    here, there = (observe(ROBOT, dataset, signals=SIGNALS, client=c) for c in (None, client))
    assert equal(here, there) and len(there.time_blocks) == 20
    estimate = identify(ROBOT, dataset, "wls", signals=SIGNALS, client=client)
    assert np.array_equal(estimate.beta, identify(ROBOT, dataset, "wls", signals=SIGNALS).beta)
    one, two = (estimate.validate(dataset, client=c) for c in (None, client))
    assert one.rows == two.rows and np.array_equal(one.rmse, two.rmse)
    assert dynid.check(ROBOT, dataset) == dynid.check(ROBOT, dataset, client=client)
    (Path(dataset.source) / "run=2.parquet").write_bytes(b"")
    with pytest.raises(dynid.DataError, match=r"run=2\.parquet"):
        observe(ROBOT, dataset, signals=SIGNALS, client=client)
    left = [observe(ROBOT, dataset, signals=SIGNALS, client=c, skip_bad=True) for c in (None, client)]
    assert equal(*left) and [one.partition for one in left[1].left_out] == ["run=2.parquet"]
