"""Recordings of robots with closed loops: independent joints from any sufficient set of measured joints."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dynid.dynamics.assembly import Assembly, assemble
from dynid.errors import Infeasible, NotApplicable, NotIdentifiable, UnknownName
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.model import Robot

__all__ = ["reconcile"]

Array = NDArray[np.float64]

_ITERATIONS = 100
_CONVERGED = 1e-10  # rad or m
_LONGEST = 0.2  # rad or m; longest step of an independent joint in an iteration
_SUFFICIENT = 1e-6  # share of the largest singular value


def reconcile(robot: Robot, recording: Recording) -> tuple[Recording, dict[str, float]]:
    """Positions of the independent joints from the measured positions of any sufficient set of joints.

    Positions of the independent joints are found by least squares over all measured joints. Velocities and
    accelerations are kept where all independent joints have them. Torques that drives deliver in passive joints are
    projected on the independent joints; a joint without a torque column delivers none.

    Parameters
    ----------
    robot : Robot
        A robot with closed loops and a fixed base.
    recording : Recording
        Its `joints` are joints of `robot.tree`, in any number that determines the independent joints.

    Returns
    -------
    recording : Recording
        The recording of the independent joints, `robot.coordinates`.
    residuals : dict of str to float
        Per measured joint, the root mean square difference (rad or m) between measured and reconciled position.

    Raises
    ------
    DataError
        If a joint is unknown, the measured joints do not determine the independent ones, or a loop cannot close.

    Examples
    --------
    >>> import dynid
    >>> robot = dynid.load_robot("fourbar")
    >>> motion = dynid.dynamics.assemble(robot, [[-1.0], [-0.9]])
    >>> measured = dynid.Recording(robot.tree.coordinates, (dynid.Run([0.0, 0.1], motion.q),))
    >>> dynid.recording.reconcile(robot, measured)[0].joints
    ('crank',)
    """
    if not robot.loops or robot.base == "floating":
        raise NotApplicable(
            f"robot '{robot.name}' has no closed loops, or a floating base: there is nothing to reconcile"
        )
    unknown = [name for name in recording.joints if name not in robot.tree_coordinates]
    if unknown:
        raise UnknownName(f"no joint named '{unknown[0]}', the joints are {', '.join(robot.tree_coordinates)}")
    columns = [robot.tree_coordinates.index(name) for name in recording.joints]
    runs, squares, count = [], np.zeros(len(columns)), 0
    for run in recording.runs:
        motion = _reconciled(robot, run, recording.joints, columns)
        squares += np.sum((motion.q[:, columns] - run.q) ** 2, axis=0)
        count += len(run)
        runs.append(_changed(robot, run, recording.joints, motion))
    rest = dict(zip(recording.joints, np.sqrt(squares / count).tolist(), strict=True))
    return Recording(robot.coordinates, tuple(runs)), rest


def _reconciled(robot: Robot, run: Run, joints: tuple[str, ...], columns: list[int]) -> Assembly:
    """The assembly that is closest to the measured positions, by Gauss-Newton steps of all samples together."""
    x = np.tile(robot.home, (len(run), 1))
    for i, name in enumerate(robot.coordinates):
        if name in joints:
            x[:, i] = run.q[:, joints.index(name)]
    for _ in range(_ITERATIONS):
        motion = assemble(robot, x)
        J = motion.jacobian[:, columns]
        singular = np.linalg.svd(J, compute_uv=False)
        if len(columns) < robot.n or singular[:, -1].max() < _SUFFICIENT * singular[:, 0].max():
            raise NotIdentifiable(
                f"{', '.join(joints)} do not determine the independent joints {', '.join(robot.coordinates)}"
            )
        step = (np.linalg.pinv(J) @ (run.q - motion.q[:, columns])[:, :, None])[:, :, 0]
        size = np.abs(step).max(axis=1, keepdims=True)
        x = x + step * np.minimum(1.0, _LONGEST / np.maximum(size, 1e-300))
        if size.max() < _CONVERGED:
            return assemble(robot, x)
    raise Infeasible(
        f"the measured positions of {', '.join(joints)} fit no posture of '{robot.name}'", where=f"run '{run.name}'"
    )


def _changed(robot: Robot, run: Run, joints: tuple[str, ...], motion: Assembly) -> Run:
    """The run with the signals of the independent joints."""
    names = robot.tree_coordinates
    own = [joints.index(name) for name in robot.coordinates if name in joints]
    whole = len(own) == robot.n
    signals: dict[str, Array | None] = {}
    for signal in ("v", "a", "current", "reference", "link_q"):
        value = getattr(run, signal)
        signals[signal] = value[:, own] if whole and value is not None else None
    if run.torque is not None:
        full = np.zeros((len(run), len(names)))
        full[:, [names.index(name) for name in joints]] = run.torque
        signals["torque"] = np.einsum("nij,ni->nj", motion.jacobian, full)
    x = motion.q[:, [names.index(name) for name in robot.coordinates]]
    return replace(run, q=x, **signals)  # type: ignore[arg-type]
