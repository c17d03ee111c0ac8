"""Checks of a data set: those of a run on every partition, those of a recording on a part of it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from dynid.assessment.data.battery import PARTITION_UNUSABLE, run_findings, whole_checks
from dynid.assessment.data.context import Context
from dynid.assessment.finding import SEVERITIES, Finding, Findings
from dynid.progress import ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.partition_map import map_partitions
from dynid.recording.partitions import LeftOut, Partition
from dynid.robot.model import Robot

__all__ = ["check_dataset"]


def check_partition(
    dataset: DataSet, partition: Partition, robot: Robot, ordered: bool, threads: int | None
) -> list[Finding]:
    """Findings on one partition, each once however many chunks have it."""
    found: list[Finding] = []
    for _, chunk in dataset.chunks(partition):
        with np.errstate(all="ignore"):
            found += run_findings(robot, chunk, Context(robot, chunk), ordered)
    return [replace(f, run=partition.name) for f in _first(found).values()]


def check_dataset(
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
        check_partition,
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
