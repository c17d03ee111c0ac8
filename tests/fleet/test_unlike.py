"""Units that are unlike the others from the first date on, dead sensors, joints that never move, and their words."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import DataError
from dynid.fleet import FleetEntry, FleetEstimate, UnitCode, fleet_entries, identify_fleet
from dynid.fleet.bodies import BodySeries
from dynid.fleet.unlike import unlike_units
from dynid.recording.recording import Recording
from studies.reproduce.fleet import SIGNALS
from studies.reproduce.fleet_plant import Fleet, Plan, fleet_robot

Array = NDArray[np.float64]

UNITS, DATES, WHO = 7, 3, "arm003"
# Loaded with 2 kg from the first date on.
LOADED = Plan(drifting=99, loaded=((3, 0, 2.0),))


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> dynid.Robot:
    return fleet_robot(str(tmp_path_factory.mktemp("robot")))


def spoiled(plan: Plan | None, change: Callable[[Array, Array], tuple[Array, Array]]) -> list[FleetEntry]:
    """A healthy fleet of which one unit has other positions and torques."""
    out = []
    for entry in Fleet(3, UNITS, DATES, plan).entries():
        assert isinstance(entry.data, Recording)
        run = entry.data.runs[0]
        if entry.unit == WHO:
            assert run.torque is not None
            q, torque = change(run.q, run.torque)
            run = replace(run, q=q, torque=torque)
        out.append(replace(entry, data=Recording(entry.data.joints, (run,))))
    return out


def kept(q: Array, torque: Array) -> tuple[Array, Array]:
    return q, torque


def swapped(q: Array, torque: Array) -> tuple[Array, Array]:
    return q[:, [1, 0, 2, 3]], torque[:, [1, 0, 2, 3]]


def in_degrees(q: Array, torque: Array) -> tuple[Array, Array]:
    return np.degrees(q), torque


@pytest.fixture(scope="module")
def healthy(robot: dynid.Robot) -> FleetEstimate:
    return identify_fleet(robot, spoiled(None, kept), signals=SIGNALS)


def test_no_unit_of_a_healthy_fleet_is_unlike(healthy: FleetEstimate) -> None:
    assert {u.code for u in healthy.health.units} == {UnitCode.STEADY}


@pytest.mark.parametrize("change", [swapped, in_degrees])
def test_a_unit_with_another_log_is_named_and_does_not_spoil_the_fleet(
    robot: dynid.Robot, healthy: FleetEstimate, change: Callable[[Array, Array], tuple[Array, Array]]
) -> None:
    found = identify_fleet(robot, spoiled(None, change), signals=SIGNALS)
    assert [u.unit for u in found.health.units if u.code is UnitCode.UNLIKE] == [WHO]
    assert found.health.units[0].unlike is not None and found.health.units[0].unlike.payload is None
    assert f"unit {WHO}: " in found.health.units[0].words and "other units" in found.health.units[0].words
    # One of seven units is missing in them, and nothing else; with it they were wrong by their own size.
    std = np.sqrt(np.diag(healthy.shared.shared_covariance))
    assert np.abs((found.shared.shared - healthy.shared.shared) / std).max() < 5
    assert found.pooled is not None and healthy.pooled is not None
    std = np.sqrt(np.diag(healthy.pooled.mean_covariance))
    assert np.abs((found.pooled.mean - healthy.pooled.mean) / std).max() < 5
    mine = [k for k, e in enumerate(found.entries) if e.unit == WHO]
    assert np.isnan(found.shared.values[mine]).all() and np.isfinite(found.of_unit(WHO)[0]).all()


def test_a_payload_from_the_first_date_on_is_weighed(robot: dynid.Robot) -> None:
    found = identify_fleet(robot, spoiled(LOADED, kept), signals=SIGNALS)
    (unlike,) = (u for u in found.health.units if u.code is UnitCode.UNLIKE)
    assert unlike.unit == WHO and unlike.unlike is not None and unlike.unlike.payload is not None
    load = unlike.unlike.payload
    assert abs(load.mass - 2.0) < 0.15  # masses of links of the units differ by one percent
    assert "as by a payload of +" in unlike.words and f"x {load.centre[0]:.3f} (std " in unlike.words


def test_a_dead_torque_sensor_is_a_fault(robot: dynid.Robot) -> None:
    def dead(q: Array, torque: Array) -> tuple[Array, Array]:
        return q, np.where(np.arange(4) == 1, 3.3, torque)

    entries = spoiled(None, dead)
    with pytest.raises(DataError, match=rf"unit '{WHO}' on .*torque of joint 'joint2' is 3.3 in every sample"):
        identify_fleet(robot, entries, signals=SIGNALS)
    entries = [replace(e, missing=("joint2",)) if e.unit == WHO else e for e in entries]
    assert WHO in identify_fleet(robot, entries, signals=SIGNALS).units


def test_a_joint_that_never_moves_is_no_error(robot: dynid.Robot) -> None:
    """Covariances of what it leaves undetermined were not positive definite to rounding."""

    def still(q: Array, torque: Array) -> tuple[Array, Array]:
        return np.where(np.arange(4) == 1, 0.3, q), torque

    found = identify_fleet(robot, spoiled(None, still), signals=replace(SIGNALS, min_velocity="1%"))
    assert any(f"joint2 of unit {WHO} stands still" in note for note in found.health.notes)
    assert "stands still" in found.summary() and found.to_dict()["notes"]


def test_units_with_one_date_are_not_called_steady(robot: dynid.Robot) -> None:
    found = identify_fleet(robot, Fleet(3, UNITS, 1, None).entries(), signals=SIGNALS)
    assert "no change" not in found.summary() and "4 more" in found.summary()


@pytest.mark.parametrize("units", [3, 9])
def test_temperature_that_rises_with_time_is_said(robot: dynid.Robot, units: int) -> None:
    start = date(2026, 1, 5)
    entries = [
        replace(e, temperature={j: 20.0 + (e.moment.date() - start) / timedelta(days=7) for j in robot.coordinates})
        for e in Fleet(4, units, 5, None).entries()
    ]
    found = identify_fleet(robot, entries, signals=SIGNALS)
    assert "temperature and time go together" in found.summary()
    if units == 3:  # slopes over temperature are those of each unit
        assert all(u.untested == robot.coordinates for u in found.health.units)
    else:
        assert "wear that is common to all units" in found.health.notes[0]


def test_temperatures_of_tables_with_semicolons_are_read(robot: dynid.Robot, tmp_path: Path) -> None:
    (entry,) = Fleet(3, 1, 1, None).entries()
    assert isinstance(entry.data, Recording) and entry.data.runs[0].torque is not None
    run, folder = entry.data.runs[0], tmp_path / "robot=A" / "date=2026-03-02"
    folder.mkdir(parents=True)
    names = robot.coordinates
    head = ["time", *(f"q_{j}" for j in names), *(f"tau_{j}" for j in names), "temperature"]
    rows = np.column_stack([run.t, run.q, run.torque, np.full(len(run.t), 21.5)])
    lines = [";".join(head), *(";".join(f"{x:.6f}".replace(".", ",") for x in row) for row in rows)]
    (folder / "log.csv").write_text("\n".join(lines), encoding="utf-8")
    (found,) = fleet_entries(robot, tmp_path)
    assert found.temperature == dict.fromkeys(names, 21.5)


def test_a_change_between_two_recordings_of_the_first_date(robot: dynid.Robot) -> None:
    """The recordings before it are those of no earlier date."""
    fleet = Fleet(3, 1, 6, Plan(drifting=99, loaded=((0, 1, 2.0),)))
    entries = [replace(e, date="2026-03-02", name=str(k)) for k, e in enumerate(fleet.entries())]
    found = identify_fleet(robot, entries, signals=SIGNALS)
    (change,) = found.health.changes
    assert change.payload is not None and np.isfinite(found.shared.values[0]).all()


def test_a_unit_of_which_only_errors_are_known_is_no_error() -> None:
    """Its torques are explained far worse, and its recordings say nothing of the bodies."""
    rng = np.random.default_rng(0)
    series = {}
    for k in range(6):
        rows = rng.normal(size=(40, 3)) if k else np.zeros((40, 3))
        series[f"arm{k}"] = BodySeries.of_rows([rows], [rows @ np.ones(3)], np.arange(3))
    noise = {unit: np.array([1000.0 if unit == "arm0" else 1.0]) for unit in series}
    found = unlike_units(series, noise, ("joint1",), rng.normal(size=(3, 10)), "link1", 1.0, 1e-3)
    assert list(found) == ["arm0"] and found["arm0"].payload is None
    assert "explains the torques of joint1 1e+03 times worse" in found["arm0"].words
