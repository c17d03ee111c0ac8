"""Fleets: the study on a small simulated one, and real arms."""

from __future__ import annotations

from pathlib import Path

import pytest

from dynid.errors import DataError
from dynid.fleet.health import ChangeCode
from studies.reproduce import fleet, fleet_real
from studies.reproduce.fleet_plant import Plan, fleet_robot
from tests.support.errors import expect_error


@pytest.mark.slow
def test_a_seed_names_what_changed_and_pooling_helps(tmp_path: Path) -> None:
    robot = fleet_robot(str(tmp_path))
    plan = Plan(drifting=3, loaded=((1, 5, 1.5), (5, 6, 1.0)))
    found = fleet.outcome(robot, 2, units=10, dates=12, plan=plan)
    assert {(c["unit"], c["what"]) for c in found["changes"]} == plan.truth
    short = found["short"]["6"]
    assert short["torque"][1] < 0.6 * short["torque"][0]


def test_a_half_that_does_not_exist_is_refused() -> None:
    with expect_error(DataError):
        next(fleet.figures(False, "third"))


@pytest.mark.real
@pytest.mark.slow
def test_payloads_of_the_ur10e_are_found_where_they_were(data: Path) -> None:
    """With published gains the mass is off by a known factor; the dates must be right all the same."""
    gains = fleet_real.published("drives")["ur10e"]["gains"]
    found = fleet_real.ur10e_fleet(gains)
    steps = [c for c in found.health.changes if c.code is ChangeCode.PAYLOAD]
    names = {e.moment.isoformat(timespec="minutes"): e.name for e in found.entries}
    gained = {names[c.date] for c in steps if c.value > 1.0}
    loaded = {"20_01_13-load_2600", "20_01_31-load", "20_02_19_14harm50secLoad", "20_02_19_15harm50secLoad"}
    assert gained == loaded
    lost = {names[c.date] for c in steps if c.value < -1.0}
    assert lost == {"20_01_17-ptp_10_points", "20_01_31-unload", "20_02_19_15harm50sec"}
    assert len(steps) == 7 and found.left_out == 10
