"""Identifiable combinations by gait and sensors: structural counts, and the rank of motion with fixed footholds."""

from __future__ import annotations

import numpy as np
import pytest

from dynid.legs import LegSensors, legs_table, standing_run, usual_gaits
from dynid.legs.contacts import mode_rows, standing_states
from dynid.parameters.rank import column_scales
from tests.support.walkers import POSTURE, feet, walker

# Rows of docs/legs.md.
COUNTS = {
    "trunk held, legs in the air": (96, 96, 115, 79),
    "stand on 4": (126, 126, 130, 94),
    "lifts": (130, 130, 130, 94),
    "trot": (0, 130, 130, 94),
    "jump": (0, 130, 130, 94),
    "stand + lifts": (130, 130, 130, 94),
}


@pytest.mark.slow
def test_table_of_a_quadruped() -> None:
    """The counts of the documentation; standing on all feet hides one mass per foot, and with them the total mass."""
    table = legs_table(walker(), feet())
    found = {gait: tuple(row) for gait, row in zip(table.gaits, table.counts.tolist(), strict=True)}
    assert found == COUNTS
    assert not table.mass[table.gaits.index("stand on 4"), table.sensors.index(LegSensors.TORQUE_IMU)]
    assert table.mass[table.gaits.index("lifts"), table.sensors.index(LegSensors.TORQUE_IMU)]
    assert all(base.gap > 1e6 for base in table.structures.values())


@pytest.mark.parametrize("name", ["stand on 4", "lifts", "trot"])
def test_structural_count_is_the_rank_of_motion_with_fixed_footholds(name: str) -> None:
    """The feet of a mode are where the posture has them, the trunk sways by centimetres, and nothing moves at will."""
    robot = walker()
    gait = next(g for g in usual_gaits(robot, feet()) if g.name == name)
    rows = []
    for k, mode in enumerate(gait.modes):
        run = standing_run(robot, feet(), POSTURE, duration=16.0, rate=50.0, noise=0.0, bias=np.zeros(6), seed=k)
        q = np.hstack([_tilts(len(run.t), k), run.q])
        rows.append(mode_rows(robot, mode, LegSensors.TORQUE_IMU, *_consistent(robot, mode, q, k)))
    stack = np.vstack(rows)
    scaled = stack / np.where((s := column_scales(robot.layout, stack)) > 0, s, 1.0)
    singular = np.linalg.svd(scaled, compute_uv=False)
    wanted = COUNTS[name][1]
    assert singular[wanted - 1] > 1e3 * singular[wanted]
    assert singular[wanted] < 1e-9 * singular[0]


def _tilts(samples: int, seed: int) -> np.ndarray:
    """Poses with tilts of a few degrees."""
    pose = np.zeros((samples, 7))
    pose[:, 3:] = np.random.default_rng(seed).normal(0.0, 0.05, (samples, 4))
    pose[:, 6] += 1.0
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    return pose


def _consistent(robot, mode, q, seed):  # type: ignore[no-untyped-def]
    """Random velocities and accelerations at these postures that keep the feet of the mode at rest."""
    from unittest.mock import patch

    from dynid.legs import contacts

    def states(robot, samples, seed):  # type: ignore[no-untyped-def]
        rng = np.random.default_rng(seed)
        return (q.copy(), *rng.normal(size=(2, len(q), robot.nv)))

    with patch.object(contacts, "random_states", states):
        return standing_states(robot, mode, len(q), seed)
