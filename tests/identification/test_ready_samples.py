"""Tables of positions, velocities, accelerations and torques: nothing is filtered or differentiated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pinocchio as pin
import polars as pl
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Recording, Robot, Run, Signals
from dynid.signals.settings import prepare
from tests.support.commands import dynid as command

Array = NDArray[np.float64]
READY = Signals(cutoff=None, decimate=(), trim=0.0, measured_velocity=True, measured_acceleration=True)
NOISE = 0.1  # N m


def table(robot: Robot, rows: int, seed: int) -> tuple[Array, Array, Array, Array]:
    """Rows in any order, their torques by Pinocchio."""
    rng = np.random.default_rng(seed)
    q, v, a = (size * rng.uniform(-1, 1, (rows, robot.n)) for size in (2.0, 2.0, 10.0))
    model = robot.to_pinocchio()
    data = model.createData()
    torque = np.array([pin.rnea(model, data, *state) for state in zip(q, v, a, strict=True)])
    return q, v, a, torque + NOISE * rng.normal(size=torque.shape)


def arm() -> Robot:
    return dynid.load_robot("twolink", friction="none", rotor_inertia=False)


def test_rows_without_order_are_identified_within_their_uncertainty() -> None:
    """40 tables: the squared error over its covariance is that of as many parameters, and of no fewer."""
    robot = arm()
    sums = []
    for seed in range(40):
        q, v, a, torque = table(robot, 200, seed)
        recording = Recording(robot.coordinates, (Run(np.arange(200.0), q, v, a, torque),))
        estimate = dynid.identify(robot, recording, signals=READY, method="wls")
        error = estimate.beta - estimate.base.values()
        sums.append(error @ np.linalg.solve(estimate.covariance, error))
    count = estimate.base.count
    # The mean of 40 chi-square values of `count` degrees has a standard deviation of sqrt(2 count / 40).
    assert abs(np.mean(sums) - count) < 4 * np.sqrt(2 * count / 40)


def test_measured_accelerations_pass_the_low_pass_of_the_positions() -> None:
    """Noise above the cut-off is removed, motion below it is kept, and the positions are not differentiated."""
    t = np.arange(0.0, 10.0, 0.002)
    slow, fast = np.sin(2 * t)[:, None], np.sin(600 * t)[:, None]
    run = Run(t, np.zeros_like(slow), v=slow, a=3 * slow + fast)
    motion = prepare(run, Signals(cutoff=10.0, decimate=(), measured_acceleration=True, measured_velocity=True))
    inside = slow[(t >= motion.t[0] - 1e-9) & (t <= motion.t[-1] + 1e-9)]
    # The filter extrapolates at the ends of the run.
    np.testing.assert_allclose(motion.a[100:-100], 3 * inside[100:-100], atol=1e-3)
    np.testing.assert_allclose(motion.v[100:-100], inside[100:-100], atol=1e-3)


def test_table_through_the_command_line(tmp_path: Path) -> None:
    """The verdict does not ask rows without order for a clock or a velocity that follows the positions."""
    robot = arm()
    names = [f"{s}{j + 1}" for s in ("q", "v", "a", "tau") for j in range(robot.n)]
    file = tmp_path / "table.csv"
    pl.DataFrame(np.hstack(table(robot, 1500, 0)), schema=names).write_csv(file)
    words = ["identify", "twolink", file, "--friction", "none", "--no-rotor-inertia", "--method", "wls"]
    words += ["--time", "none", "--rate", "100", "--cutoff", "none", "--decimate", "none", "--trim", "0"]
    ready = ["--measured-velocity", "--measured-acceleration", "--validate-share", "0.3"]
    done = command(*words, *ready, "-o", tmp_path / "estimate.json")
    assert done.returncode == 0, done.stderr
    assert "verdict: trusted" in done.stdout
    estimate = dynid.Estimate.load(tmp_path / "estimate.json")
    assert not estimate.signals.ordered
    np.testing.assert_allclose(estimate.beta, estimate.base.values(), atol=5 * float(estimate.std.max()))


@pytest.mark.parametrize("missing", ["velocity", "acceleration"])
def test_missing_columns_are_named(missing: str) -> None:
    """One sentence with the run and the signal."""
    robot = arm()
    q, v, a, torque = table(robot, 50, 0)
    signals = {"v": None if missing == "velocity" else v, "a": None if missing == "acceleration" else a}
    recording = Recording(robot.coordinates, (Run(np.arange(50.0), q, torque=torque, name="first", **signals),))
    with pytest.raises(dynid.DataError, match=f"run 'first' has no measured {missing}"):
        dynid.identify(robot, recording, signals=READY)
