"""All checks of a recording, in the order in which they run; of a data set, those of a run on every partition."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from dynid.assessment.data.channels import CLIPPING, RESOLUTION, STILL, STUCK, TORQUES
from dynid.assessment.data.clock import CLOCK, REPEATED_ROWS
from dynid.assessment.data.computed import COMPUTED
from dynid.assessment.data.context import Context
from dynid.assessment.data.excitation import EXCITATION
from dynid.assessment.data.length import LENGTH
from dynid.assessment.data.limits import LIMITS, SIZE
from dynid.assessment.data.order import ORDER
from dynid.assessment.data.recording_check import RecordingCheck
from dynid.assessment.data.spikes import SPIKES
from dynid.assessment.data.stops import STOPS
from dynid.assessment.data.torque import TORQUE
from dynid.assessment.data.velocity import VELOCITY
from dynid.assessment.data.wrench import WRENCH
from dynid.assessment.data.zeros import ZEROS
from dynid.assessment.finding import SEVERITIES, Finding, FindingCode, Findings
from dynid.base.records import joined
from dynid.errors import Mismatch
from dynid.identification.observation import check_no_client
from dynid.progress import ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.partition_map import map_partitions
from dynid.recording.partitions import LeftOut, Partition
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.threads import one_blas_thread

__all__ = ["PARTITION_UNUSABLE", "check", "finding_codes", "recording_checks", "run_findings", "whole_checks"]

PARTITION_UNUSABLE = FindingCode("partition_unusable", "a partition of a data set cannot be read", ("error", "warning"))
# In the order in which they run: findings of the same severity are listed in it.
_CHECKS = (
    *(CLOCK, REPEATED_ROWS, SIZE, TORQUES, STUCK, LIMITS, ORDER, ZEROS, VELOCITY, TORQUE, COMPUTED, CLIPPING, SPIKES),
    *(RESOLUTION, STILL, WRENCH, LENGTH, STOPS, EXCITATION),
)


@cache
def recording_checks() -> dict[str, RecordingCheck]:
    """All checks of recordings, those of other packages (entry points in the group `dynid.checks`) last.

    Returns
    -------
    dict of str to RecordingCheck
        Checks by their names, in the order in which they run.

    Examples
    --------
    >>> from dynid.assessment import recording_checks
    >>> recording_checks()["spikes"].codes
    ('torque_spikes',)
    """
    return joined(_CHECKS, RecordingCheck, "dynid.checks", "check")


def finding_codes() -> dict[str, FindingCode]:
    """All codes that findings on recordings may have, by their text.

    Returns
    -------
    dict of str to FindingCode
    """
    codes = (code for each in recording_checks().values() for code in each.codes)
    return {str(code): code for code in (*codes, PARTITION_UNUSABLE)}


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
        checked; stops and excitation on evenly spaced chunks.
    ordered : bool, default True
        Whether the rows of a run follow each other in time. Of a table of samples in any order, only the sizes of the
        values are checked.
    client : distributed.Client, optional
        Dask cluster whose workers check the partitions of a data set.
    skip_bad : bool, default False
        Whether partitions that cannot be used are warnings and not errors.
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
        found += [finding for whole in whole_checks(robot, ordered) for finding in whole(context)]
    return Findings(sorted(found, key=lambda f: SEVERITIES.index(f.severity)))


def run_findings(robot: Robot, recording: Recording, context: Context, ordered: bool) -> list[Finding]:
    """Findings of all checks of single runs that apply."""
    checks = [x.of_run for x in recording_checks().values() if x.of_run is not None and x.applies(robot, ordered)]
    return [finding for run in recording.runs for of_run in checks for finding in of_run(robot, run, context)]


def whole_checks(robot: Robot, ordered: bool) -> list[Callable[[Context], Iterator[Finding]]]:
    """What checks a whole recording, of the checks that apply."""
    checks = [x for x in recording_checks().values() if x.applies(robot, ordered)]
    return [x.of_recording for x in checks if x.of_recording is not None]


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
    checks = whole_checks(robot, ordered)
    if checks and len(bad) < total:
        sample, _ = dataset.sample()
        context = Context(robot, sample)
        with np.errstate(all="ignore"):
            out += [finding for whole in checks for finding in whole(context)]
    return Findings(sorted(out, key=lambda f: SEVERITIES.index(f.severity)))


def _unusable(left_out: LeftOut, skip_bad: bool) -> Finding:
    """The finding of a partition that cannot be used."""
    return Finding(
        PARTITION_UNUSABLE,
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
