"""Commands on data sets: identification and validation that stream over partitions, here or on a cluster."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dynid.cli.inputs import Inputs
from dynid.cli.output import check_required, show, verdict_lines
from dynid.cli.progress import working
from dynid.errors import ConflictingArguments, NotApplicable

if TYPE_CHECKING:
    from dynid.cli.values import Source
    from dynid.identification.estimate import Estimate
    from dynid.identification.validation_errors import Validation
    from dynid.recording.dataset import DataSet
    from dynid.recording.recording import Recording

__all__ = [
    "Unseen",
    "Work",
    "check_files_only",
    "client_of",
    "identify",
    "predicted",
    "read_fitted",
    "read_split",
    "validate",
]


@dataclass(frozen=True)
class Work:
    """How partitions are worked on: by which cluster, whether bad ones are left out, and what folds them."""

    client: Any = None
    skip_bad: bool = False
    device: str | None = None

    def settings(self) -> dict[str, Any]:
        """Keywords of the functions that take data sets."""
        return {"client": self.client, "skip_bad": self.skip_bad}


@dataclass(frozen=True)
class Unseen:
    """Motion to validate on: a recording, or the errors on a data set and a part of it.

    Attributes
    ----------
    recording : Recording
        The recording, or evenly spaced chunks of the data set.
    errors : Validation or None
        Errors on all partitions of a data set.
    """

    recording: Recording
    errors: Validation | None = None

    @property
    def evidence(self) -> dict[str, Any]:
        """What `evidence_of` takes."""
        if self.errors is None:
            return {"validation": self.recording}
        return {"validation": self.errors, "unseen": self.recording}


@contextmanager
def client_of(address: str | None) -> Iterator[Any]:
    """The Dask client of --cluster, closed at the end; None without an address."""
    if address is None:
        yield None
        return
    from dynid.recording.cluster import connect

    client = connect(address)
    try:
        yield client
    finally:
        client.close()


def check_files_only(cluster: str | None, skip_bad: bool) -> None:
    """Raise a DataError if options of data sets are given for log files."""
    if cluster is not None or skip_bad:
        raise NotApplicable(
            "--cluster and --skip-bad-partitions are for a folder of Parquet partitions: see dynid convert", "cluster"
        )


def read_split(
    inputs: Inputs, validate: Sequence[str] | None, share: float | None, rows: str | None, *, long: bool = True
) -> tuple[DataSet, DataSet | Recording | None] | None:
    """The data set to identify from and what to validate on; None where the logs are files, long ones if not `long`."""
    held_out = inputs.held_out(validate, share, rows)
    found = inputs.data_set(long=long and held_out.rows is None)
    if found is None:
        return None
    if rows is not None:
        raise NotApplicable(
            "--validate-rows is for log files; of a data set, --validate-share holds out partitions", "validate_rows"
        )
    if validate and share is not None:
        raise ConflictingArguments(
            "--validate names other logs and --validate-share holds out a part of these: give one", "validate"
        )
    if held_out.rows is not None:
        raise NotApplicable(
            "runs.validate_rows is for log files; of a data set, runs.validate_share holds out partitions",
            "validate_rows",
        )
    if held_out.share is not None and not held_out.logs:
        return found.split(held_out.share)
    return found, _other(inputs, held_out.logs) if held_out.logs else None


def read_fitted(
    inputs: Inputs, validate: Sequence[str] | None, share: float | None, rows: str | None, *, long: bool = True
) -> tuple[DataSet | Recording | None, DataSet | Recording | None] | None:
    """What an estimate was identified from, if it is named, and what to validate on; None where all logs are files.

    Long files are data sets unless `long` is False.
    """
    from dynid.recording.dataset import DataSet

    if inputs.data:
        split = read_split(inputs, validate, share, rows, long=long)
        if split is not None:
            return split
    other = inputs.data_set(validate, rows=None, long=long) if validate else None
    if not isinstance(other, DataSet):
        return None
    if share is not None or rows is not None:
        raise ConflictingArguments(
            "--validate names other logs; --validate-share and --validate-rows hold out a part of these", "validate"
        )
    return inputs.read() if inputs.data else None, other


def _other(inputs: Inputs, logs: Sequence[Source]) -> DataSet | Recording:
    """Other logs, as a data set or in memory; the rows of the log format are those to identify from."""
    found = inputs.data_set(logs, rows=None)
    return found if found is not None else inputs.read(logs, rows=None)


def predicted(estimate: Estimate, unseen: DataSet | Recording | None, work: Work) -> Unseen | None:
    """The errors on a data set and a part of it; a recording is predicted later."""
    from dynid.assessment.verdict.assess import part_of
    from dynid.recording.recording import Recording

    if unseen is None or isinstance(unseen, Recording):
        return None if unseen is None else Unseen(unseen)
    with working("predicting torques") as shown:
        errors = estimate.validate(unseen, progress=shown.report, **work.settings())
    return Unseen(part_of(unseen), errors)


def identify(
    inputs: Inputs,
    dataset: DataSet,
    unseen: DataSet | Recording | None,
    method: str,
    given: dict[str, Any],
    work: Work,
) -> tuple[Estimate, Recording, Unseen | None]:
    """The estimate, the part of the data set that checks and figures rest on, and the other motion."""
    from dynid.assessment.verdict.assess import part_of
    from dynid.identification.estimators.registry import find_method
    from dynid.identification.pipeline import identify as run

    options = inputs.chosen_by_user(find_method(method)) | given
    with working(f"identifying {inputs.robot.name} with {method}") as shown:
        estimate = run(
            inputs.robot,
            dataset,
            method,
            signals=inputs.signals(),
            progress=shown.report,
            device=work.device,
            **work.settings(),
            **options,
        )
        sample = part_of(dataset)
    other = predicted(estimate, unseen, work)
    note = f"the checks of the verdict rest on {sample.samples} samples of {dataset.source}"
    return replace(estimate, notes=(*estimate.notes, note)), sample, other


def validate(estimate: Estimate, dataset: DataSet, work: Work, require: str | None, as_json: bool) -> None:
    """Predict the torques of a data set, and print errors and verdict."""
    from dynid.assessment.verdict.assess import assess_evidence, evidence_of

    unseen = predicted(estimate, dataset, work)
    assert unseen is not None and unseen.errors is not None
    found = unseen.errors
    verdict = assess_evidence(evidence_of(estimate, **unseen.evidence))
    if as_json:
        left_out = [{"partition": one.partition, "reason": one.reason} for one in found.left_out]
        page = {"validation": found.to_dict(), "left_out": left_out, "verdict": verdict.to_dict()}
        print(json.dumps(page, indent=2))
    else:
        show(found.summary())
        show("\n".join(verdict_lines(verdict)))
    check_required(require, verdict)
