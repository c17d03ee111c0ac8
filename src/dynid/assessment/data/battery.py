"""All checks of a recording, in the order in which they run; of a data set, those of a run on every partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.assessment.data.channels import (
    check_clipping,
    check_resolution,
    check_standstill,
    check_stuck,
    check_torques,
)
from dynid.assessment.data.clock import check_clock, check_repeated_rows
from dynid.assessment.data.computed import check_computed
from dynid.assessment.data.context import Context
from dynid.assessment.data.excitation import check_excitation
from dynid.assessment.data.limits import check_limits, check_size
from dynid.assessment.data.order import check_order
from dynid.assessment.data.spikes import check_spikes
from dynid.assessment.data.stops import check_stops
from dynid.assessment.data.torque import check_torque
from dynid.assessment.data.velocity import check_velocity
from dynid.assessment.data.wrench import check_wrench
from dynid.assessment.data.zeros import check_zeros
from dynid.assessment.finding import SEVERITIES, Finding, FindingCode, Findings
from dynid.errors import Mismatch
from dynid.identification.observation import check_no_client
from dynid.progress import ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.partition_map import map_partitions
from dynid.recording.partitions import LeftOut, Partition
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot
from dynid.threads import one_blas_thread

__all__ = ["RECORDING_CHECKS", "RUN_CHECKS", "check", "recording_findings", "run_findings"]

RunCheck = Callable[[Robot, Run, Context], Iterator[Finding]]
RecordingCheck = Callable[[Context], Iterator[Finding]]

RUN_CHECKS: tuple[RunCheck, ...] = (
    check_clock,
    check_repeated_rows,
    check_size,
    check_torques,
    check_stuck,
    check_limits,
    check_order,
    check_zeros,
    check_velocity,
    check_torque,
    check_computed,
    check_clipping,
    check_spikes,
    check_resolution,
    check_standstill,
    check_wrench,
)
# Checks of a single body on a wrench sensor, which has no joints.
_JOINTLESS_CHECKS: tuple[RunCheck, ...] = (check_clock, check_wrench)
# Checks of single rows, which need no order in time.
_UNORDERED_CHECKS: tuple[RunCheck, ...] = (check_size,)
# Runs are identified together, so stops and excitation are checked over all of them.
RECORDING_CHECKS: tuple[RecordingCheck, ...] = (check_stops, check_excitation)


def check(
    robot: Robot,
    recording: Recording | DataSet,
    *,
    ordered: bool = True,
    client: Any = None,
    skip_bad: bool = False,
    progress: ProgressCallback | None = None,
) -> Findings:
    """Check a recording: clock, units, signs, delays, column order, torques, resolution, limits, excitation.

    Parameters
    ----------
    robot : Robot
        Robot with its a-priori parameters, which the torques are compared with.
    recording : Recording or DataSet
        Recording of the robot, with the joints in the order of `robot.coordinates`. All partitions of a data set are
        checked; stops and excitation are checked on evenly spaced chunks.
    ordered : bool, default True
        Whether the rows of a run follow each other in time. Of a table of samples in any order, only the sizes of the
        values are checked.
    client : distributed.Client, optional
        Dask cluster whose workers check the partitions of a data set.
    skip_bad : bool, default False
        Whether partitions that cannot be used are reported as warnings instead of errors.
    progress : callable, optional
        Receives a `Progress` after every partition of a data set.

    Returns
    -------
    Findings
        A tuple of `Finding`, sorted by severity, errors first.

    Raises
    ------
    DataError
        If recording and robot have different numbers of joints.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> robot = dynid.load_robot("twolink")
    >>> recording = synthetic_recording(robot, seed=0, duration=10.0)
    >>> [f.code for f in dynid.check(robot, recording) if f.severity == "error"]
    []
    """
    if len(recording.joints) != robot.n:
        raise Mismatch(f"the recording has {len(recording.joints)} joints, robot '{robot.name}' has {robot.n}")
    if isinstance(recording, DataSet):
        return _check_dataset(robot, recording, ordered=ordered, client=client, skip_bad=skip_bad, progress=progress)
    check_no_client(client)
    context = Context(robot, recording)
    # Damaged data overflow; the checks look at the results, so numpy need not warn. Threads slow small matrices down.
    with np.errstate(all="ignore"), one_blas_thread():
        found = run_findings(robot, recording, context, ordered)
        found += recording_findings(context) if ordered and robot.n else ()
    return Findings(sorted(found, key=lambda f: SEVERITIES.index(f.severity)))


def run_findings(robot: Robot, recording: Recording, context: Context, ordered: bool) -> list[Finding]:
    """Findings of all checks of single runs that apply."""
    out: list[Finding] = []
    for run in recording.runs:
        checks = _UNORDERED_CHECKS if not ordered else RUN_CHECKS if robot.n else _JOINTLESS_CHECKS
        for run_check in checks:
            out += run_check(robot, run, context)
        if ordered and robot.n and context.cleaned(run) is None:
            out.append(
                context.found(
                    FindingCode.RUN_TOO_SHORT,
                    "info",
                    run,
                    None,
                    "The run is too short or too damaged to compare its signals with each other.",
                    f"{len(run)} samples",
                    "Record a longer run, or repair its clock first.",
                )
            )
    return out


def recording_findings(context: Context) -> list[Finding]:
    """Findings of all checks of a whole recording."""
    return [finding for recording_check in RECORDING_CHECKS for finding in recording_check(context)]


def _check_partition(
    dataset: DataSet, partition: Partition, robot: Robot, ordered: bool, threads: int | None
) -> list[Finding]:
    """Findings on one partition, each once however many chunks have it."""
    found: list[Finding] = []
    for _, chunk in dataset.chunks(partition):
        with np.errstate(all="ignore"):
            found += run_findings(robot, chunk, Context(robot, chunk), ordered)
    return [replace(f, run=partition.name) for f in _first(found).values()]


def _check_dataset(
    robot: Robot,
    dataset: DataSet,
    *,
    ordered: bool = True,
    client: Any = None,
    skip_bad: bool = False,
    progress: ProgressCallback | None = None,
) -> Findings:
    """Findings on a data set, as `check`: one per code and joint, with the number of partitions that have it.

    Stops and excitation are checked on evenly spaced chunks. Partitions that cannot be read are findings, too.
    """
    total = len(dataset.partitions)
    found: list[Finding] = []
    bad: list[Finding] = []
    work = map_partitions(
        _check_partition,
        dataset,
        (robot, ordered),
        client=client,
        skip_bad=True,
        progress=progress,
        what="checking",
    )
    for _, one in work:
        if isinstance(one, LeftOut):
            bad.append(_unusable(one, skip_bad))
        else:
            found += one
    count: dict[tuple[str, ...], int] = {}
    for finding in found:
        count[_key(finding)] = count.get(_key(finding), 0) + 1
    out = bad + [
        replace(f, how_much=f"{f.how_much}; in {count[key]} of {total} partitions") for key, f in _first(found).items()
    ]
    if ordered and robot.n and len(bad) < total:
        sample, _ = dataset.sample()
        with np.errstate(all="ignore"):
            out += recording_findings(Context(robot, sample))
    return Findings(sorted(out, key=lambda f: SEVERITIES.index(f.severity)))


def _unusable(left_out: LeftOut, skip_bad: bool) -> Finding:
    """The finding of a partition that cannot be used."""
    return Finding(
        FindingCode.PARTITION_UNUSABLE,
        "warning" if skip_bad else "error",
        left_out.partition,
        "",
        f"{left_out.reason[:1].upper()}{left_out.reason[1:]}.",
        "1 partition",
        "Repair it, or leave it out with skip_bad=True.",
    )


def _key(finding: Finding) -> tuple[str, ...]:
    return str(finding.code), finding.joint, finding.severity


def _first(findings: Iterable[Finding]) -> dict[tuple[str, ...], Finding]:
    """The first finding of every code, joint and severity."""
    out: dict[tuple[str, ...], Finding] = {}
    for finding in findings:
        out.setdefault(_key(finding), finding)
    return out
