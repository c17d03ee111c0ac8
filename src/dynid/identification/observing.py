"""Observation of a recording, in memory or a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynid.dynamics.functions import inverse_dynamics
from dynid.errors import NotApplicable
from dynid.identification.data_sets import observe_dataset
from dynid.identification.loads import check_run, default_channels, state
from dynid.identification.observation import Observation, check_no_client, dropout_count, too_few_rows
from dynid.identification.row_stream import (
    Block,
    Folding,
    check_device,
    joined_factors,
    motion_blocks,
)
from dynid.identification.stops import standstill, without_stops
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.progress import ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.domain import Domain
from dynid.signals.settings import Motion, Signals, prepare
from dynid.signals.spikes import dropout_note

__all__ = ["observe", "observe_motions"]


def observe(
    robot: Robot,
    recording: Recording | DataSet,
    *,
    signals: Signals | None = None,
    base: BaseParameters | None = None,
    channels: str | Sequence[str] | None = None,
    known: ArrayLike | None = None,
    client: Any = None,
    skip_bad: bool = False,
    progress: ProgressCallback | None = None,
    device: str | None = None,
    fewest: int | None = None,
) -> Observation:
    """Fold a recording into an observation of the base parameters.

    Parameters
    ----------
    robot : Robot
        The robot to be identified.
    recording : Recording or DataSet
        Measured motion and torques. Wrenches of named sensors, such as force plates and contacts, are included in the
        measured base wrench and joint torques. The partitions of a data set are read one after another; its rows are
        not kept, but the factors of up to twenty blocks of time are.
    signals : Signals, optional
        How the runs are filtered and differentiated; by default `Signals()`.
    base : BaseParameters, optional
        Base parameters to use, by default those of the robot and the channels.
    channels : str or sequence of str, optional
        "torque", "wrench" (six rows of a floating or instrumented base), "all", or names of channels with wildcards;
        by default what all runs have.
    known : array_like, shape (p,), optional
        Standard parameters whose torques are subtracted first, such as those of a payload that was weighed. Runs with
        and without a payload then become observations of the same parameters, which can be joined.
    client : distributed.Client, optional
        Dask cluster whose workers read and fold the partitions of a data set. The result is the same to the last bit.
    skip_bad : bool, default False
        Leave out partitions of a data set that cannot be used; `Observation.left_out` names them.
    progress : callable, optional
        Receives a `Progress` after every partition of a data set.
    device : str, optional
        Device of PyTorch that makes and folds the rows, such as "cuda" for a graphics card (`pip install dynid[gpu]`).
        The result is the same to rounding. Rows that are needed again later are made by the processor.
    fewest : int, optional
        Least number of rows; by default one more than base parameters. Methods with a prior need fewer.

    Returns
    -------
    Observation

    Raises
    ------
    DataError
        If a run does not have the channels, if too few rows are left for the number of base parameters, or if the
        device does not support the robot.
    DynidError
        If PyTorch or the device is missing.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> robot = dynid.load_robot("twolink")
    >>> seen = dynid.identification.observe(robot, synthetic_recording(robot, 0, duration=5.0))
    >>> seen.base.channels
    ('joint1', 'joint2')
    """
    settings = signals or Signals()
    check_device(robot, device, client)
    if isinstance(recording, DataSet):
        if known is not None:
            raise NotApplicable("known parameters are for a recording, not for a data set", "known")
        return observe_dataset(
            robot,
            recording,
            signals=settings,
            base=base,
            channels=channels,
            client=client,
            skip_bad=skip_bad,
            progress=progress,
            device=device,
            fewest=fewest,
        )
    check_no_client(client)
    if base is None:
        base = base_parameters(robot, channels=channels if channels is not None else default_channels(robot, recording))
    for run in recording.runs:
        check_run(robot, run, base.channels)
    motions, stops = without_stops(base, [prepare(run, settings) for run in recording.runs], settings)
    if known is not None:
        motions = [_less(robot, motion, known) for motion in motions]
    return replace(
        observe_motions(base, motions, settings, device, fewest), log_format=recording.log_format, stops=stops
    )


def observe_motions(
    base: BaseParameters,
    motions: Sequence[Motion],
    settings: Signals,
    device: str | None = None,
    fewest: int | None = None,
) -> Observation:
    """Fold filtered runs, measured or simulated, into an observation."""
    folding = Folding.of_recording(base, settings, motions, device)
    if sum(folding.rows) < (base.count + 1 if fewest is None else fewest):
        raise too_few_rows(sum(folding.rows), base)

    def blocks() -> Iterator[Block]:
        start = 0
        for motion in motions:
            yield from motion_blocks(base, motion, settings, start)
            start += len(motion.t)

    parts = folding.factors()
    return Observation(
        base,
        parts[0] if len(parts) == 1 else joined_factors(parts),
        tuple(folding.rows),
        blocks if folding.kept is None else folding.kept_blocks,
        settings,
        tuple(m.cutoff for m in motions),
        motions=tuple(motions),
        standstill=standstill(base, motions, settings),
        time_blocks=() if len(parts) == 1 else tuple(parts),
        notes=dropout_note(dropout_count(base.robot, motions)),
        domain=Domain.of_motions(base.robot, motions),
        device=device,
    )


def _less(robot: Robot, motion: Motion, known: ArrayLike) -> Motion:
    """The motion with the torques and the base wrench of the known parameters subtracted."""
    load = inverse_dynamics(robot, *state(robot, motion), known)
    first = len(robot.channels) - robot.n
    torque = None if motion.torque is None else motion.torque - load[:, first:]
    if not first or (motion.wrench is None and not motion.wrenches):
        return replace(motion, torque=torque)
    wrench = np.zeros((len(motion.t), first)) if motion.wrench is None else motion.wrench
    return replace(motion, torque=torque, wrench=wrench - load[:, :first])
