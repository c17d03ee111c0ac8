"""What each set of sensors can show: counted without samples, on samples, and in a recording."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid import Recording, Robot, Run
from dynid.errors import MissingArgument, NotApplicable, UnknownName
from dynid.parameters.base import base_parameters
from dynid.recording import WrenchSensor
from tests.support.errors import expect_error
from tests.support.humanoids import EXACT, dance, humanoid, standing
from tests.support.structured_robots import structured_robot


@pytest.mark.slow
@pytest.mark.parametrize("drives", [False, True])
def test_counts_of_a_humanoid_of_thirty_joints(drives: bool) -> None:
    """Seven a turning joint and ten of the whole body for the wrench; torques miss those ten and see the drives."""
    robot = humanoid(0)
    if drives:
        robot = robot.with_drives("viscous+coulomb+offset", rotor_inertia=True)
    sets = {"torque": "torque", "wrench": "wrench", "all": "all"}
    numeric = dynid.identification.sensor_sets(robot, sets)
    structural = dynid.identification.sensor_sets(robot, sets, method="recursive")
    extra = 4 * 30 if drives else 0
    assert numeric.counts == structural.counts == {"torque": 210 + extra, "wrench": 220, "all": 220 + extra}
    for name in sets:
        assert numeric[name].base.kept == structural[name].base.kept
        np.testing.assert_allclose(numeric[name].base.matrix, structural[name].base.matrix, atol=1e-6)
        assert numeric[name].base.gap > 1e6 and structural[name].base.gap > 1e6


@pytest.mark.parametrize("seed", range(8))
def test_structural_counts_equal_numeric_ones_on_random_trees(seed: int) -> None:
    """Prismatic joints, branches and drives on a floating base: kept columns and combinations alike."""
    robot = structured_robot(seed, 2 + seed, "floating")
    for channels in ("torque", "wrench", "all"):
        numeric = base_parameters(robot, channels=channels)
        structural = base_parameters(robot, channels=channels, method="recursive")
        assert numeric.kept == structural.kept and numeric.without_effect == structural.without_effect, channels
        np.testing.assert_allclose(numeric.matrix, structural.matrix, atol=1e-8)


def test_what_one_more_sensor_shows() -> None:
    """Torques lack what the whole body, frozen, is to its base: ten combinations, the total mass among them."""
    robot = humanoid(1, limbs="LR")
    found = dynid.identification.sensor_sets(robot)
    assert found.counts == {"torque": 84, "wrench": 94, "force": 28, "moment": 93, "all": 94}
    gained = found.gain("torque", "all")
    assert len(gained) == 10
    assert " + ".join(f"m_{k}" for k in range(13)) in gained
    assert found.gain("wrench", "torque") == ()
    assert found.gain("moment", "wrench") == (" + ".join(f"m_{k}" for k in range(13)),)
    more = dynid.identification.one_more_sensor(robot, "torque")
    assert [g.sensor for g in more] == ["wrench"] and more[0].combinations == gained
    one = dynid.identification.one_more_sensor(robot, "legL*")
    by = {g.sensor: g.count for g in one}
    assert by["wrench"] == 52 and by["legR1"] == 42 and by["legR6"] == 7
    assert [g.count for g in one] == sorted(by.values(), reverse=True)
    assert one[0].together.count == 94
    chosen = dynid.identification.one_more_sensor(robot, "wrench", {"legs": "torque", "again": "wrench"})
    assert [(g.sensor, g.count) for g in chosen] == [("legs", 0)]
    assert "torque" in found.summary() and "84" in found.summary()


def test_a_recording_shows_less_than_the_structure() -> None:
    """A leg that does not move hides its own part, for every set of sensors."""
    robot = humanoid(2, limbs="LR")
    motion = dance(robot)
    sensors = {"footL": WrenchSensor("footL")}
    whole = dynid.identification.sensor_sets(robot, recording=standing(robot, motion, sensors), signals=EXACT)
    for one in whole.sets:
        assert one.excited == one.count and one.condition_number is not None and one.condition_number < 1e3
    bare = Recording(robot.coordinates, (Run(motion.t, motion.q[:, 7:], base=motion.q[:, :7]),))
    blind = dynid.identification.sensor_sets(robot, recording=bare, signals=EXACT)
    assert [x.condition_number for x in blind.sets] == [x.condition_number for x in whole.sets]
    for x in (motion.q, motion.v, motion.a):
        x[:, -6:] = 0.0
    still = dynid.identification.sensor_sets(robot, recording=standing(robot, motion, sensors), signals=EXACT)
    assert still.counts == whole.counts
    assert still["wrench"].excited == 94 - 42 and still["wrench"].condition_number == np.inf
    assert still["all"].excited < 94 and "inf" in still.summary()


def test_an_instrumented_base() -> None:
    """The two-link example of Nguyen (2021): ten combinations by torques with friction, thirteen by the base wrench."""
    robot = dynid.load_robot("box2", base="instrumented")
    found = dynid.identification.sensor_sets(robot)
    assert found.counts["torque"] == 10 and found.counts["wrench"] == 13
    assert found.counts["all"] == base_parameters(robot, method="pivoted").count
    assert dynid.identification.sensor_sets(robot.with_base("fixed")).counts == {"torque": 10}


def test_bad_sets_are_refused_in_words() -> None:
    robot = humanoid(0, limbs="L")
    found = dynid.identification.sensor_sets(robot)
    with expect_error(UnknownName, "name"):
        found["gyro"]
    with expect_error(UnknownName, "channels"):
        dynid.identification.sensor_sets(robot, {"knee": "knee"})
    with expect_error(MissingArgument, "sets"):
        dynid.identification.sensor_sets(robot, {})
    with expect_error(NotApplicable, "method"):
        base_parameters(robot, channels=["legL1"], method="recursive")
    still = Robot("arm", robot.links, robot.joints, base="instrumented")
    with expect_error(NotApplicable, "method"):
        base_parameters(still, method="recursive")
