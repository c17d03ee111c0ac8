"""Small fleets with torques by Pinocchio: what is named, missing joints, gains, faults, tables and pages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import dynid
from dynid.errors import DataError, InvalidValue, MissingData, MissingFile, UnknownName, WrongFormat
from dynid.fleet import ChangeCode, FleetEntry, FleetEstimate, TemperatureCode, UnitCode, fleet_entries, identify_fleet
from dynid.recording.recording import Recording
from dynid.report import write_fleet
from studies.reproduce.fleet import SIGNALS
from studies.reproduce.fleet_plant import Fleet, Plan, fleet_robot
from tests.support.errors import expect_error
from tests.support.saved_fields import survived

UNITS, DATES = 9, 8
PLAN = Plan(drifting=4, drift_share=0.8, drift_start=3, loaded=((2, 5, 2.0),))


@pytest.fixture(scope="module")
def robot(tmp_path_factory: pytest.TempPathFactory) -> dynid.Robot:
    return fleet_robot(str(tmp_path_factory.mktemp("robot")))


@pytest.fixture(scope="module")
def plant() -> Fleet:
    return Fleet(1, UNITS, DATES, PLAN)


@pytest.fixture(scope="module")
def found(robot: dynid.Robot, plant: Fleet) -> FleetEstimate:
    return identify_fleet(robot, plant.entries(), signals=SIGNALS)


def test_the_changed_units_are_named_and_no_other(found: FleetEstimate, plant: Fleet) -> None:
    assert [u.unit for u in found.health.units if u.code is UnitCode.CHANGED] == ["arm002", "arm004"]
    (load,) = found.health["arm002"].changes
    assert load.code is ChangeCode.PAYLOAD and load.date == plant.day(5).isoformat()
    assert abs(load.value - 2.0) < 3 * load.std < 0.4
    assert load.payload is not None and abs(load.payload.centre[2] - 0.12) < 4 * load.payload.centre_std[2]
    (worn,) = found.health["arm004"].changes
    assert (worn.code, worn.joint, worn.temperature) == (ChangeCode.DRIFT, "joint2", TemperatureCode.SEPARATED)
    assert worn.parameter == "fc_joint2" and 0.4 < worn.relative < 1.2
    assert "joint2 of unit arm004: Coulomb friction +" in worn.words and "not temperature" in worn.words


def test_a_date_without_temperature_leaves_the_others_useful(robot: dynid.Robot, plant: Fleet) -> None:
    """One such recording made wear of the unit a change "temperature not logged"."""
    gone = ("arm004", plant.day(1).isoformat())
    entries = [
        replace(e, temperature={}) if (e.unit, e.moment.date().isoformat()) == gone else e for e in plant.entries()
    ]
    assert sum(not e.temperature for e in entries) == 1
    health = identify_fleet(robot, entries, signals=SIGNALS).health
    (worn,) = health["arm004"].changes
    assert (worn.parameter, worn.temperature) == ("fc_joint2", TemperatureCode.SEPARATED)
    assert any("unit arm004: 1 of 8 recordings have no temperature" in note for note in health.notes)


@pytest.mark.parametrize(("warmer", "code"), [(0.0, TemperatureCode.SEPARATED), (9.0, TemperatureCode.NOT_SEPARATED)])
def test_two_dates_do_not_tell_friction_from_temperature(
    robot: dynid.Robot, plant: Fleet, warmer: float, code: TemperatureCode
) -> None:
    days = [plant.day(0).isoformat(), plant.day(7).isoformat()]
    others = [e for e in plant.entries() if e.unit != "arm004"]
    mine = [e for e in plant.entries() if e.unit == "arm004" and e.moment.date().isoformat() in days]
    warm = [dict.fromkeys(robot.coordinates, 25.0 + warmer * k) for k in range(2)]
    entries = [*others, *(replace(e, temperature=x) for e, x in zip(mine, warm, strict=True))]
    worn = [c for c in identify_fleet(robot, entries, signals=SIGNALS).health["arm004"].changes if c.joint == "joint2"]
    assert worn and {c.temperature for c in worn} == {code}


def test_a_constant_temperature_is_logged(robot: dynid.Robot, plant: Fleet) -> None:
    even = dict.fromkeys(robot.coordinates, 25.0)
    entries = [replace(e, temperature=even if e.unit == "arm004" else {}) for e in plant.entries()]
    health = identify_fleet(robot, entries, signals=SIGNALS).health
    worn = [c.temperature for c in health["arm004"].changes if c.parameter == "fc_joint2"]
    assert worn == [TemperatureCode.SEPARATED]
    assert all(
        c.temperature is not TemperatureCode.SEPARATED for u in health.units if u.unit != "arm004" for c in u.changes
    )


def test_shared_bodies_are_those_of_the_fleet(found: FleetEstimate, plant: Fleet) -> None:
    """Within four standard deviations, which include how units differ, of the mean of the true bodies."""
    steady = [u for u in range(UNITS) if u != 2]
    truth = np.array([found.base.values(plant.truth(u, 0)) for u in steady])
    assert found.pooled is not None
    std = np.sqrt(np.diag(found.pooled.mean_covariance) + truth.var(axis=0) / len(steady))
    bodies = np.array([k.of_body for k in found.kinds])
    z = (found.pooled.mean - truth.mean(axis=0)) / std
    assert np.abs(z[bodies]).max() < 5
    assert found.shared_names == tuple(n for n, b in zip(found.base.names, bodies, strict=True) if b)


def test_a_unit_with_a_missing_joint_takes_part(robot: dynid.Robot, plant: Fleet, found: FleetEstimate) -> None:
    entries = [replace(e, missing=("joint3",)) if e.unit == "arm001" else e for e in plant.entries()]
    part = identify_fleet(robot, entries, signals=SIGNALS)
    mine = [e for e in part.entries if e.unit == "arm001"]
    j = part.base.names.index("fc_joint3")
    assert all(np.isinf(e.std[j]) for e in mine)
    k = part.base.names.index("fc_joint4")
    assert all(np.isfinite(e.std[k]) for e in mine)
    assert part.pooled is not None and np.isfinite(part.of_unit("arm001")[1][j])
    assert [u.unit for u in part.health.units if u.changes] == ["arm002", "arm004"]


def test_gains_of_units_come_out(robot: dynid.Robot) -> None:
    healthy = Fleet(2, 6, 2, None)
    true = np.array([1.0, 1.1, 0.95, 1.0, 1.05, 0.9])[:, None] * np.ones(4)
    true[:, 1] = true[::-1, 0]
    true /= true.mean(axis=0)
    entries = []
    for e in healthy.entries():
        assert isinstance(e.data, Recording)
        run = e.data.runs[0]
        assert run.torque is not None
        run = replace(run, torque=run.torque * true[int(e.unit[3:])])
        entries.append(replace(e, data=Recording(e.data.joints, (run,))))
    result = identify_fleet(robot, entries, signals=SIGNALS, gains=True)
    assert result.gains is not None and result.gains_std is not None
    # Joints 2 and 3 carry the weight of the arm; bodies differ by about two percent between units.
    assert np.abs(result.gains - true)[:, 1:3].max() < 0.05
    assert np.all(result.gains_std[:, 1:3] < 0.05)
    assert result.to_frame().filter(pl.col("kind") == "gain").height == 24


def test_faults_name_the_entry(robot: dynid.Robot, plant: Fleet, tmp_path: Path) -> None:
    good = plant.entries(2)[:4]
    assert isinstance(good[0].data, Recording)
    run = good[0].data.runs[0]
    (tmp_path / "bad.parquet").write_text("nothing")
    slow = Recording(good[0].data.joints, (replace(run, t=1000.0 * run.t),))
    few = Recording(("joint1", "joint2"), (replace(run, q=run.q[:, :2], torque=np.asarray(run.torque)[:, :2]),))
    wrong = {
        "bad.parquet": FleetEntry("X", "2026-03-02", tmp_path / "bad.parquet"),
        "another unit": FleetEntry("Y", "2026-03-03", slow),
        "joint3": FleetEntry("Z", "2026-03-04", few),
    }
    for words, entry in wrong.items():
        with pytest.raises(DataError, match=rf"unit '{entry.unit}' on 2026-03-0.*{words}"):
            identify_fleet(
                robot, [*good, entry], signals=replace(SIGNALS, cutoff=None) if words == "another unit" else SIGNALS
            )
    rest = identify_fleet(robot, [*good, *wrong.values()], signals=replace(SIGNALS, cutoff=None), skip_bad=True)
    assert rest.left_out == 3 and {f.unit for f in rest.faults} == {"X", "Y", "Z"}
    assert len(rest.entries) == 4
    with expect_error(MissingData, "entries"):
        identify_fleet(robot, [wrong["joint3"]], signals=SIGNALS, skip_bad=True)
    with expect_error(InvalidValue, "date"):
        FleetEntry("X", "last week", run.name)
    with expect_error(UnknownName, "patterns"):
        identify_fleet(robot, good, shared="wheels")


def test_a_folder_is_listed_with_temperatures_and_missing_torques(
    robot: dynid.Robot, plant: Fleet, tmp_path: Path
) -> None:
    for k, entry in enumerate(plant.entries(1)[:3]):
        assert isinstance(entry.data, Recording)
        run = entry.data.runs[0]
        table = {"time": run.t} | {f"q_{j}": run.q[:, i] for i, j in enumerate(robot.coordinates)}
        table |= {
            f"torque_{j}": np.asarray(run.torque)[:, i] for i, j in enumerate(robot.coordinates) if (k, i) != (1, 2)
        }
        table["temperature_joint2"] = np.full(len(run), 31.0)
        if k == 2:
            table["torque_joint4"] = np.full(len(run), np.nan)
        place = tmp_path / f"robot=arm{k}" / "date=2026-03-02" / "run=7"
        place.mkdir(parents=True)
        pl.DataFrame(table).write_parquet(place / "log.parquet")
    listed = fleet_entries(robot, tmp_path)
    assert [(e.unit, e.day, e.missing) for e in listed] == [
        ("arm0", "2026-03-02", ()),
        ("arm1", "2026-03-02", ("joint3",)),
        ("arm2", "2026-03-02", ("joint4",)),
    ]
    assert all(e.temperature == {"joint2": 31.0} for e in listed)
    result = identify_fleet(robot, listed, signals=SIGNALS)
    assert len(result.entries) == 3 and not result.faults
    with expect_error(MissingFile, "folder"):
        fleet_entries(robot, tmp_path / "robot=arm0" / "date=2026-03-02")


def test_table_and_page(found: FleetEstimate, tmp_path: Path) -> None:
    for name in ("fleet.parquet", "fleet.csv"):
        found.write(tmp_path / name)
    table = pl.read_parquet(tmp_path / "fleet.parquet")
    assert table.columns == ["unit", "date", "joint", "parameter", "value", "std", "kind"]
    assert table.filter(pl.col("kind") == "entry").height == UNITS * DATES * found.base.count
    assert table.filter(pl.col("kind") == "change").height == 2
    with expect_error(WrongFormat):
        found.write(tmp_path / "fleet.txt")
    write_fleet(found, tmp_path / "fleet.html")
    page = (tmp_path / "fleet.html").read_text()
    assert page.index("arm002") < page.index("arm000") and "src=" not in page
    assert "2 changed" in page and found.health.changes[0].words in page
    assert "arm002" in found.summary() and found.to_dict()["units"][0]["code"] == "changed"
    again = survived(found, tmp_path)
    assert again.summary() == found.summary() and again.to_frame().equals(found.to_frame(), null_equal=True)


@pytest.mark.slow
def test_workers_give_the_same_result(robot: dynid.Robot, plant: Fleet) -> None:
    entries = plant.entries(5)
    one, two = (identify_fleet(robot, entries, signals=SIGNALS, workers=w) for w in (1, 2))
    assert all(np.array_equal(a.beta, b.beta) for a, b in zip(one.entries, two.entries, strict=True))


@pytest.mark.slow
def test_a_cluster_gives_the_same_result(robot: dynid.Robot, plant: Fleet) -> None:
    """Bit for bit, on two worker processes."""
    distributed = pytest.importorskip("distributed")
    entries = plant.entries(2)
    alone = identify_fleet(robot, entries, signals=SIGNALS)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        shared = identify_fleet(robot, entries, signals=SIGNALS, client=client)
    assert all(np.array_equal(a.beta, b.beta) for a, b in zip(alone.entries, shared.entries, strict=True))
    assert np.array_equal(alone.shared.values, shared.shared.values)
