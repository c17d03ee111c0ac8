"""Mechanical stops: found on a plant with MuJoCo's joint limits, left out, and not seen where there are none."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Signals
from dynid.identification import stops
from dynid.identification.observing import observe
from dynid.identification.stops import JointRows, find_stop
from dynid.parameters.base import random_states
from tests.support.stop_plant import arm, stopped_run

pytest.importorskip("mujoco")

Array = NDArray[np.float64]


def torque_error(estimate: dynid.Estimate, joint: int) -> float:
    """Relative error of the predicted torque of a joint over random motion, against the truth."""
    base = estimate.base
    q, v, a = random_states(base.robot, 400, seed=9)
    true = base.regressor(q, 0.5 * v, 2 * a)[:, joint] @ base.values(arm().parameters)
    found = base.regressor(q, 0.5 * v, 2 * a)[:, joint] @ estimate.beta
    return float(np.linalg.norm(found - true) / np.linalg.norm(true))


@pytest.mark.slow
@pytest.mark.parametrize(("seed", "joint", "hardness"), [(1, 0, 0.02), (2, 1, 0.005)])
def test_samples_at_a_stop_are_found_and_left_out(seed: int, joint: int, hardness: float) -> None:
    """The finding names joint and position; the joint is within 3 % of the truth, where it was wrong by far more."""
    robot = arm()
    recording, stop = stopped_run(seed, joint, hardness=hardness)
    codes = {(f.code, f.joint): f for f in dynid.check(robot, recording)}
    finding = codes["mechanical_stop", robot.coordinates[joint]]
    assert finding.severity == "warning" and sum(code == "mechanical_stop" for code, _ in codes) == 1
    (found,) = observe(robot, recording).stops
    assert found.side == 1 and found.position == pytest.approx(stop, abs=0.05) and 0.01 < found.share < 0.12
    kept = dynid.identify(robot, recording, "wls", signals=Signals(stops=False))
    left_out = dynid.identify(robot, recording, "wls")
    assert any("stop" in note for note in left_out.notes) and not any("stop" in note for note in kept.notes)
    assert torque_error(left_out, joint) < 0.03 < 2 * torque_error(left_out, joint) + 0.03 < torque_error(kept, joint)
    # Samples at the stop are left out of a validation too.
    assert left_out.validate(recording).relative[joint] < 0.05


@pytest.mark.slow
def test_a_stop_is_found_in_a_part_of_the_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a recording of more rows than are searched: the same stop, and the same samples within a few."""
    recording, stop = stopped_run(1, 0, hardness=0.02)
    whole = observe(arm(), recording)
    rows = sum(len(m.q) // int(np.prod(m.decimate)) for m in whole.motions)
    monkeypatch.setattr(stops, "_MOST_ROWS", rows // 2)
    part = observe(arm(), recording)
    (a,), (b,) = whole.stops, part.stops
    assert (a.joint, a.side) == (b.joint, b.side)
    assert b.position == pytest.approx(stop, abs=0.05) and b.share == pytest.approx(a.share, rel=0.3)


def test_torque_beyond_a_model_at_one_end_is_a_stop() -> None:
    """A pendulum in closed form: a stop is found at the end where it is, and only if it is clearly above friction."""
    t = np.arange(0.0, 60.0, 0.02)
    q, v, a = np.sin(2 * t) + 0.3 * np.sin(5 * t), 2 * np.cos(2 * t) + 1.5 * np.cos(5 * t), -4 * np.sin(2 * t)
    a -= 7.5 * np.sin(5 * t)
    rng = np.random.default_rng(0)
    W = np.column_stack([a, np.sin(q), v, np.sign(v)])
    clean = W @ [0.5, 10.0, 0.3, 1.0] + 0.05 * rng.standard_normal(len(t))
    run = np.zeros(len(t), dtype=np.int64)
    inside = q > q.max() - 0.01

    def stops(y: Array) -> list[tuple[int, float, float, NDArray[np.bool_]]]:
        return list(find_stop(JointRows(W, y, q, v, run, [3], 0.02)))

    assert stops(clean) == [] and stops(clean + 0.5 * inside) == [] and stops(clean - 20.0 * inside) == []
    ((side, position, torque, pressed),) = stops(clean + 20.0 * inside)
    assert side == 1 and position == pytest.approx(q.max() - 0.01, abs=0.01) and torque > 5.0
    assert np.all(pressed[inside]) and pressed.mean() < 4 * inside.mean()


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
def test_reversals_without_a_stop_are_no_stop(seed: int) -> None:
    recording, _ = stopped_run(seed, None)
    assert observe(arm(), recording).stops == ()
    assert not any(f.code == "mechanical_stop" for f in dynid.check(arm(), recording))
