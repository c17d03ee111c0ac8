"""Data sets: streamed observations, estimates and validations equal those of the recording in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars
import pytest

import dynid
from dynid.assessment.verdict.assess import evidence_of
from dynid.assessment.verdict.error_checks import check_unseen
from dynid.errors import MissingData, NotApplicable, TooFew
from dynid.identification import data_sets
from dynid.identification.observation import time_parts
from dynid.identification.observing import observe
from dynid.identification.pipeline import identify
from dynid.identification.validation import cross_validate
from dynid.progress import Progress
from dynid.recording import open_dataset
from dynid.recording.dataset import DataSet
from dynid.recording.recording import Recording
from dynid.signals.settings import Signals
from tests.support.errors import expect_error
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
    given = {"friction": "given", "signals": SIGNALS}
    whole, streamed = (identify(ROBOT, data, "auto", **given) for data in (recording, dataset))  # type: ignore[arg-type]
    assert np.abs((streamed.beta - whole.beta) / whole.std).max() < 1.0
    assert any("were chosen on 12000 samples of 6 of 6 partitions" in note for note in streamed.notes)
    assert {c.option for c in streamed.choices if c.what == "estimator"} == {"feasible", "wls", "ols"}


@pytest.mark.parametrize(
    ("method", "options"),
    [("irls", {}), ("irls", {"loss": "tukey"}), ("gls", {}), ("feasible", {"objective": "huber"})],
    ids=["huber", "tukey", "gls", "feasible"],
)
def test_methods_that_weight_rows_read_the_partitions_again(
    method: str, options: dict[str, Any], dataset: DataSet, recording: Recording
) -> None:
    """Parameters as in memory; standard deviations from blocks of time that are cut elsewhere."""
    whole, streamed = (identify(ROBOT, data, method, signals=SIGNALS, **options) for data in (recording, dataset))
    tolerance = 0.1 if method == "feasible" else 1e-5
    assert streamed.converged and streamed.rows == whole.rows
    assert np.abs((streamed.beta - whole.beta) / whole.std).max() < tolerance
    assert streamed.noise_model == "autocorrelated" and streamed.freedom >= 5
    assert 0.6 < np.median(streamed.std / whole.std) < 1.6


def test_outliers_in_one_partition_are_given_less_weight(dataset: DataSet) -> None:
    path = Path(dataset.source) / "run=2.parquet"
    wild = np.where(np.arange(2000) % 40 == 0, 30.0, 0.0)
    frame = polars.read_parquet(path)
    frame.with_columns(polars.col("torque_joint2") + polars.Series(wild)).write_parquet(path)
    plain, robust = (identify(ROBOT, dataset, method, signals=Signals(cutoff=None)) for method in ("wls", "irls"))
    k = plain.base.names.index(next(name for name in plain.base.names if name.startswith("off") and "2" in name))
    error = [abs(e.beta[k] - e.base.values()[k]) for e in (plain, robust)]
    assert error[1] < 0.2 * error[0]


def test_methods_that_cannot_stream_are_refused(dataset: DataSet) -> None:
    with expect_error(NotApplicable, "method"):
        identify(ROBOT, dataset, "cloe")
    joined = observe(ROBOT, dataset, signals=SIGNALS)
    joined = joined.joined(joined)
    for method in ("irls", "gls"):
        with expect_error(NotApplicable, "method"):
            identify(ROBOT, joined, method)
    with expect_error(NotApplicable, "known"):
        observe(ROBOT, dataset, known=np.zeros(len(ROBOT.layout)))


def test_a_cluster_is_for_data_sets(recording: Recording) -> None:
    estimate = identify(ROBOT, recording, "wls", signals=SIGNALS)
    for work in (
        lambda: observe(ROBOT, recording, client=object()),
        lambda: identify(ROBOT, recording, "wls", client=object()),
        lambda: estimate.validate(recording, client=object()),
        lambda: dynid.check(ROBOT, recording, client=object()),
    ):
        with expect_error(NotApplicable, "client"):
            work()


def test_validation_equals_that_of_the_recording(dataset: DataSet, recording: Recording) -> None:
    estimate = identify(ROBOT, recording, "wls", signals=SIGNALS)
    whole, streamed = estimate.validate(recording), estimate.validate(dataset)
    assert streamed.rows == whole.rows and streamed.partitions == 6
    for name in ("rmse", "relative", "nrmse", "largest", "r2"):
        np.testing.assert_allclose(getattr(streamed, name), getattr(whole, name), rtol=1e-9, atol=1e-9)
    assert len(streamed.measured[0]) and "RMSE" in streamed.summary()


def own_partition(dataset: DataSet, folder: Path, disguise: str) -> DataSet:
    """The second partition as another data set: under another name, cut, at another rate, with noise."""
    frame = polars.read_parquet(Path(dataset.source) / "run=1.parquet")
    if disguise == "cut":
        frame = frame[600:1500].with_columns(polars.col("t") - 6.0)
    elif disguise == "resampled":
        frame = frame[::3]
    elif disguise == "noise":
        rng = np.random.default_rng(0)
        frame = frame.with_columns(polars.col("^q_.*$") + polars.Series(1e-4 * rng.normal(size=len(frame))))
    folder.mkdir()
    frame.write_parquet(folder / "other.parquet")
    return open_dataset(folder, ROBOT)


@pytest.mark.parametrize("longest", [65536, 700])
@pytest.mark.parametrize("disguise", ["renamed", "cut", "resampled", "noise"])
def test_a_partition_that_was_fitted_is_recognised(
    disguise: str, longest: int, dataset: DataSet, tmp_path: Path
) -> None:
    estimate = identify(ROBOT, open_dataset(dataset.source, ROBOT, longest=longest), "wls", signals=SIGNALS)
    known = estimate.fingerprint
    assert known is not None and known.share == 1.0 and len(known.runs) == 6
    own = own_partition(dataset, tmp_path / "own", disguise)
    recording, _ = own.sample()
    assert estimate.validate(own).repeated > 0.8 and estimate.validate(recording).repeated > 0.8
    other = write_data_set(ROBOT, tmp_path / "unseen", runs(ROBOT, 8, samples=2000)[6:])
    assert estimate.validate(other).repeated == 0.0
    mixed = replace(other, partitions=(*other.partitions, *own.partitions))
    assert 0.1 < estimate.validate(mixed).repeated < 0.6


def test_a_long_data_set_keeps_stretches(
    dataset: DataSet, recording: Recording, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of the partitions: one that is kept is recognised, one that is not is unknown; the size is bounded."""
    monkeypatch.setattr(data_sets, "_MOST_POSITIONS", 1000)
    estimate = identify(ROBOT, dataset, "wls", signals=SIGNALS)
    known = estimate.fingerprint
    assert known is not None and sum(map(len, known.runs)) <= 1000 and 0.2 < known.share < 0.6 and known.gap > 15.0
    runs_of = [estimate.validate(replace(recording, runs=(run,))).repeated for run in recording.runs]
    assert runs_of[0] > 0.8 and np.isnan(runs_of[1])
    validation = estimate.validate(replace(dataset, partitions=dataset.partitions[1:2]))
    check = check_unseen(evidence_of(estimate, validation))
    assert check.result == "warned" and "not known" in check.words


@pytest.mark.slow
def test_a_verdict_on_other_partitions_can_be_trusted(dataset: DataSet, tmp_path: Path) -> None:
    """On partitions of its own it cannot."""
    estimate = identify(ROBOT, dataset, "feasible", signals=SIGNALS)
    other = write_data_set(ROBOT, tmp_path / "unseen", runs(ROBOT, 8, samples=2000)[6:])
    verdict = dynid.assess(estimate, other, recording=dataset)
    assert verdict.verdict == "trusted", verdict.summary()
    own = own_partition(dataset, tmp_path / "own", "resampled")
    verdict = dynid.assess(estimate, own, recording=dataset)
    assert verdict.verdict == "use with care" and verdict.check("unseen_motion").result == "warned"
    another = dynid.assess(estimate, other, recording=other)
    assert another.check("evidence").result == "warned"  # not what it was identified from


def test_validation_shows_rows_of_all_partitions_in_the_order_of_time(dataset: DataSet) -> None:
    found = identify(ROBOT, dataset, "wls", signals=SIGNALS).validate(dataset)
    for time, measured in zip(found.time, found.measured, strict=True):
        assert np.all(np.diff(time) > 0) and 100.0 < time[-1] < 121.0 and len(time) == len(measured) <= 20_000


def test_cross_validation_equals_that_of_the_partitions(dataset: DataSet, recording: Recording) -> None:
    """Each third is predicted from the others."""
    found = cross_validate(ROBOT, dataset, "wls", folds=3, signals=SIGNALS)
    assert len(found) == 3 and [one.partitions for one in found] == [2, 2, 2]
    for k, one in enumerate(found):
        inside = recording.runs[2 * k : 2 * k + 2]
        others = replace(recording, runs=tuple(run for run in recording.runs if run not in inside))
        expected = identify(ROBOT, others, "wls", signals=SIGNALS).validate(replace(recording, runs=inside))
        assert one.rows == expected.rows
        np.testing.assert_allclose(one.rmse, expected.rmse, rtol=1e-6)
    with expect_error(TooFew, "folds"):
        cross_validate(ROBOT, dataset, folds=7)
    with expect_error(NotApplicable, "client"):
        cross_validate(ROBOT, recording, client=object())


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
    assert error.value.argument == "skip_bad"
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
    with expect_error(MissingData, "skip_bad"):
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


@pytest.mark.slow
def test_a_cluster_gives_the_same_bits(dataset: DataSet, client: Any) -> None:
    """Results come in any order and are joined in one; bad partitions are named as here."""
    here, there = (observe(ROBOT, dataset, signals=SIGNALS, client=c) for c in (None, client))
    assert equal(here, there) and len(there.time_blocks) == 20
    estimate = identify(ROBOT, dataset, "wls", signals=SIGNALS, client=client)
    assert np.array_equal(estimate.beta, identify(ROBOT, dataset, "wls", signals=SIGNALS).beta)
    one, two = (estimate.validate(dataset, client=c) for c in (None, client))
    assert one.rows == two.rows and np.array_equal(one.rmse, two.rmse)
    assert dynid.check(ROBOT, dataset) == dynid.check(ROBOT, dataset, client=client)
    robust = [identify(ROBOT, dataset, "irls", signals=SIGNALS, client=c).beta for c in (None, client)]
    assert np.array_equal(*robust)
    folds = [cross_validate(ROBOT, dataset, folds=2, signals=SIGNALS, client=c) for c in (None, client)]
    assert all(np.array_equal(a.rmse, b.rmse) for a, b in zip(*folds, strict=True))
    (Path(dataset.source) / "run=2.parquet").write_bytes(b"")
    with pytest.raises(dynid.DataError, match=r"run=2\.parquet"):
        observe(ROBOT, dataset, signals=SIGNALS, client=client)
    left = [observe(ROBOT, dataset, signals=SIGNALS, client=c, skip_bad=True) for c in (None, client)]
    assert equal(*left) and [one.partition for one in left[1].left_out] == ["run=2.parquet"]
