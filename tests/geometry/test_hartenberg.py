"""Denavit-Hartenberg tables give the calibrated arm back; their standard deviations follow from the covariance."""

from __future__ import annotations

import numpy as np
import pytest

import dynid
from dynid.dynamics import frame_placement
from dynid.errors import InvalidShape, NotApplicable, UnknownName
from dynid.geometry import DhTable, Unknown, corrected_robot, dh_table
from dynid.geometry.unknowns import UnknownKind
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot
from tests.support.wrong_geometry import positions, postures, wrong

ROBOTS = {
    **{name: dynid.load_robot(name) for name in ("puma560", "iiwa14", "tx40", "twolink")},
    "mimics, mounts, slides": random_robot(1, 8, parents=range(8), kinds="rprprprr", mimics=3),
}


@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("convention", ["standard", "modified"])
@pytest.mark.parametrize("hayati", [True, False])
def test_the_table_is_the_calibrated_arm(name: str, convention: str, hayati: bool) -> None:
    robot = ROBOTS[name]
    unknowns, x = wrong(robot)
    frame = robot.links[-1].name
    table = dh_table(robot, unknowns, x, frame=frame, convention=convention, hayati=hayati)  # type: ignore[arg-type]
    q = postures(robot, 5)
    expected = frame_placement(corrected_robot(robot, unknowns, x), q, frame)
    place = positions(robot, q)
    for k in range(len(q)):
        found = table.placement([place[row.joint][k] for row in table.rows if row.kind])
        np.testing.assert_allclose(found, expected[k], rtol=0, atol=1e-12)


def values(table: DhTable) -> np.ndarray:
    return np.array([v for row in table.rows for v in row.values.values()])


@pytest.mark.parametrize(
    ("name", "convention"), [("puma560", "standard"), ("iiwa14", "modified"), ("mimics, mounts, slides", "standard")]
)
def test_the_covariance_follows_from_central_differences(name: str, convention: str) -> None:
    robot = ROBOTS[name]
    unknowns, x = wrong(robot)
    rng, step = np.random.default_rng(0), 1e-6
    some = range(0, len(x), 5)
    root = np.zeros((len(x), len(some)))
    root[some] = rng.normal(size=(len(some), len(some)))

    def at(moved: np.ndarray, covariance: np.ndarray | None = None) -> DhTable:
        return dh_table(
            robot,
            unknowns,
            moved,
            covariance,
            frame=robot.links[-1].name,
            convention=convention,  # type: ignore[arg-type]
        )

    table = at(x, root @ root.T)
    slopes = [(values(at(x + step * e)) - values(at(x - step * e))) / (2 * step) for e in np.eye(len(x))[some]]
    own = np.array(slopes).T @ root[some]
    expected = own @ own.T
    assert np.abs(table.covariance - expected).max() < 1e-7 * np.abs(expected).max()
    stds = [s for row in table.rows for s in row.std.values()]
    np.testing.assert_allclose(stds, np.sqrt(np.maximum(np.diag(table.covariance), 0)), rtol=1e-12)


def test_the_file_alone_gives_the_published_table() -> None:
    """The Puma of the file in its standard table; parallel axes 2 and 3 have no d of their own."""
    robot = ROBOTS["puma560"]
    table = dh_table(robot, [], [], frame="link6")
    a = [row.values["a"] for row in table.rows[1:-1]]
    alpha = [row.values["alpha"] for row in table.rows[1:-1]]
    np.testing.assert_allclose(a, [0, 0.4318, 0.0203, 0, 0, 0], atol=1e-12)
    np.testing.assert_allclose(np.abs(alpha), np.array([1, 0, 1, 1, 1, 0]) * np.pi / 2, atol=1e-12)
    np.testing.assert_allclose([table.rows[k].values["d"] for k in (3, 4)], [0.15005, 0.4318], atol=1e-12)
    assert "beta" in table.rows[2].values and "beta" not in table.rows[1].values
    assert [n for n in table.notes if "joint2 and joint3 are parallel" in n]
    assert table.text().splitlines()[0].split()[:3] == ["joint", "theta", "(rad)"]


def test_plain_tables_say_how_badly_parallel_axes_are_known() -> None:
    """A tilt of 2 mrad known to 0.1 mrad: d of the plain table is known to metres, Hayati's to the 0.1 mm given."""
    robot = ROBOTS["puma560"]
    unknowns, x = wrong(robot)
    covariance = np.eye(len(x)) * 1e-8
    plain = dh_table(robot, unknowns, x, covariance, frame="link6", hayati=False)
    with_beta = dh_table(robot, unknowns, x, covariance, frame="link6")
    assert plain.rows[2].std["d"] > 1.0 and with_beta.rows[2].std["d"] == 0.0
    assert max(s for row in with_beta.rows for s in row.std.values()) < 2e-3
    assert [n for n in plain.notes if "known as badly as they say" in n]


def test_wrong_arguments_are_named() -> None:
    robot = ROBOTS["puma560"]
    with expect_error(UnknownName, "convention"):
        dh_table(robot, [], [], frame="link6", convention="khalil")  # type: ignore[arg-type]
    with expect_error(NotApplicable, "hayati"):
        dh_table(robot, [], [], frame="link6", hayati=False)
    with expect_error(NotApplicable, "frame"):
        dh_table(robot, [], [], frame=robot.links[0].name)
    with expect_error(InvalidShape, "covariance"):
        dh_table(robot, [Unknown(UnknownKind.ZERO, "joint1", "zero", "rad")], [0.0], np.eye(2), frame="link6")
