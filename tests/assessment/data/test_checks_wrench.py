"""Wrenches against the weight: right ones pass, wrong axes, signs, points and offsets are told."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import dynid
import dynid.robot
from dynid import Recording, Run
from dynid.assessment import Finding
from dynid.recording import WrenchSensor
from dynid.robot.spatial import placement
from tests.support.humanoids import dance, humanoid, standing

PLATE = placement(Rotation.from_euler("x", 180, degrees=True).as_matrix(), [0.4, 0.2, -0.9])
ROBOT = humanoid(0, limbs="LR")
SENSORS = {"plate": WrenchSensor("world", placement=PLATE, link="legL_link6")}


def walk(turns: int = 1, **changes: object) -> Run:
    run = standing(ROBOT, dance(ROBOT, turns=turns), SENSORS).runs[0]
    return replace(run, **changes)  # type: ignore[arg-type]


def findings(run: Run) -> list[Finding]:
    found = dynid.check(ROBOT, Recording(ROBOT.coordinates, (run,)))
    return [f for f in found if f.code.startswith("wrench")]


def quiet(samples: int = 400) -> Run:
    """Standing still for four seconds, in an ordinary pose."""
    motion = dance(ROBOT, samples=samples, period=4.0)
    for x in (motion.v, motion.a):
        x[:] = 0.0
    motion.q[:] = motion.q[40]
    return standing(ROBOT, motion, SENSORS).runs[0]


@pytest.mark.parametrize("make", [walk, quiet])
def test_good_wrenches_pass(make: type[Run]) -> None:
    assert findings(make()) == []  # type: ignore[call-arg]


@pytest.mark.parametrize("make", [walk, quiet])
def test_wrong_axes_are_told(make: type[Run]) -> None:
    """Numbers in plate axes taken for those of the base or of the world, and the other way round."""
    run = make()  # type: ignore[call-arg]
    for axes in ("world", "base"):
        wrong = replace(run, sensors={"plate": replace(SENSORS["plate"], axes=axes)})
        (found,) = findings(wrong)
        assert found.severity == "error"
        assert found.code in ("wrench_axes", "wrench_sign")
    tilted = placement(Rotation.from_euler("y", 50, degrees=True).as_matrix(), [0.4, 0.2, -0.9])
    tilt = {"plate": WrenchSensor("world", placement=tilted)}
    truth = standing(ROBOT, dance(ROBOT), tilt).runs[0]
    assert findings(truth) == []
    (found,) = findings(replace(truth, sensors={"plate": replace(tilt["plate"], axes="world")}))
    assert "50 degrees" in found.how_much and "axes of the sensor" in found.what_to_do


def test_a_force_of_the_wrong_sign_is_told() -> None:
    run = walk()
    (found,) = findings(replace(run, wrenches={"plate": -run.wrenches["plate"]}))
    assert found.severity == "error" and found.code == "wrench_sign" and "sign" in found.what_to_do


def test_a_plate_that_is_not_zeroed_is_told() -> None:
    """By the weight it shows; by what it shows while the robot flies; sideways by its direction."""
    run = walk()
    weight = dynid.dynamics.total_mass(ROBOT) * 9.81
    offset = np.zeros(6)
    offset[2] = -0.08 * weight
    (found,) = findings(replace(run, wrenches={"plate": run.wrenches["plate"] + offset}))
    assert found.code == "wrench_weight" and found.how_much.startswith("+8 percent")
    (found,) = findings(replace(run, wrenches={"plate": run.wrenches["plate"] + [0.15 * weight, 0, 0, 0, 0, 0]}))
    assert found.severity == "warning" and found.code == "wrench_axes"
    # Two plates, the second one empty for a second.
    motion = dance(ROBOT)
    two = {"left": WrenchSensor("world"), "right": WrenchSensor("world", placement=placement(None, [0.1, -0.2, 0.0]))}
    run = standing(ROBOT, motion, two).runs[0]
    lifted = (motion.t > 2) & (motion.t < 3.5)
    right = np.where(lifted[:, None], 0.0, run.wrenches["right"] + [0, 0, 0.6 * weight, 0, 0, 0])
    moved = np.zeros_like(right)
    moved[:, :3] = right[:, :3]
    moved[:, 3:] = right[:, 3:] + np.cross([0.1, -0.2, 0.0], right[:, :3])
    total = run.wrenches["left"].copy()
    shifted = run.wrenches["right"].copy()
    shifted[:, 3:] += np.cross([0.1, -0.2, 0.0], shifted[:, :3])
    good = replace(run, wrenches={"left": total + shifted - moved, "right": right})
    assert findings(good) == []
    (found,) = findings(replace(good, wrenches=dict(good.wrenches) | {"right": right + np.array([0, 0, 7.0, 0, 0, 0])}))
    assert found.code == "wrench_not_zeroed" and "'right'" in found.what
    # The filter rings a little where the foot leaves.
    assert float(found.how_much.split()[0]) == pytest.approx(7.0, rel=0.03)


def test_moments_about_another_point_are_told() -> None:
    run = walk()
    away = placement(PLATE[:3, :3], PLATE[:3, 3] + [0.3, 0.0, 0.0])
    (found,) = findings(replace(run, sensors={"plate": replace(SENSORS["plate"], placement=away)}))
    assert found.code == "wrench_point" and found.how_much.startswith("0.3 metres")


def test_wrenches_without_what_they_need_are_told() -> None:
    run = walk()
    (found,) = findings(replace(run, base=None))
    assert found.severity == "error" and "no motion of its base" in found.how_much
    toe = {"plate": WrenchSensor("toe")}
    (found,) = findings(replace(run, sensors=toe))
    assert "no link or frame 'toe'" in found.how_much


def test_a_tool_without_joints_is_checked_too() -> None:
    """On a wrist sensor: a good recording passes, one of the wrong sign does not."""
    tool = dynid.Robot("tool", (dynid.robot.Link("tool", ROBOT.links[0].inertia),), ()).with_base("floating")
    good = standing(tool, dance(tool), {"wrist": WrenchSensor("base", placement=PLATE)})
    assert dynid.check(tool, good) == ()
    run = replace(good.runs[0], wrenches={"wrist": -good.runs[0].wrenches["wrist"]})
    (found,) = dynid.check(tool, Recording((), (run,)))
    assert found.code == "wrench_sign"
