"""Which postures to measure: criteria, candidates, accuracy, the path, and what is refused."""

from __future__ import annotations

import csv
import itertools
from pathlib import Path

import coal  # type: ignore[import-untyped]
import numpy as np
import pinocchio as pin
import pytest
from numpy.typing import NDArray

import dynid
from dynid import Robot
from dynid.dynamics import frame_placement
from dynid.errors import (
    ConflictingArguments,
    Infeasible,
    InvalidShape,
    InvalidValue,
    MissingArgument,
    NotApplicable,
    TooFew,
    UnknownName,
)
from dynid.excitation.collision import Obstacle
from dynid.geometry import GeometryModel, Points, Poses, PosturePlan, Sight, Sockets, plan_postures
from dynid.geometry.choice import Choice
from dynid.geometry.information import error_below
from dynid.geometry.route import nearest_order, route, travel
from dynid.progress import Progress
from dynid.robot.spatial import placement
from tests.support.errors import expect_error

Array = NDArray[np.float64]

BALL = np.array([0.0, 0.02, 0.12])
SOCKETS = {"a": np.array([0.35, 0.2, 0.1]), "b": np.array([0.2, -0.4, 0.25])}


@pytest.fixture(scope="module")
def arm() -> Robot:
    return dynid.load_robot("tx40")


def marker(robot: Robot, **options: object) -> Points:
    """A marker on the last link, before anything is measured."""
    given = {"known": [[0.03, 0.0, 0.1]], "base": np.eye(4)} | options
    return Points(np.zeros((1, robot.n)), robot.links[-1].name, points=np.zeros((1, 3)), **given)  # type: ignore[arg-type]


def ball(robot: Robot) -> Sockets:
    apart = float(np.linalg.norm(SOCKETS["a"] - SOCKETS["b"]))
    return Sockets(
        np.zeros((2, robot.n)),
        robot.links[-1].name,
        socket=["a", "b"],  # type: ignore[arg-type]
        starts=SOCKETS,
        distances_known={("a", "b"): apart},
        ball=tuple(BALL),
    )


@pytest.fixture(scope="module")
def planned(arm: Robot) -> PosturePlan:
    return plan_postures(arm, marker(arm), 16, candidates=150)


# -- choice --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("criterion", ["i", "d", "e", "a"])
@pytest.mark.parametrize("seed", range(3))
def test_the_choice_is_the_best_of_all(criterion: str, seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(9, 2, 4)) * rng.uniform(0.5, 2.0, (9, 1, 1))
    root = rng.normal(size=(4, 4))
    weight = root @ root.T
    choice = Choice(rows, 0.1 * np.eye(4), criterion, weight, np.eye(4))

    def value(which: tuple[int, ...]) -> float:
        M = 0.1 * np.eye(4) + sum(rows[k].T @ rows[k] for k in which)
        if criterion == "d":
            return float(-np.log(np.linalg.det(M)))
        return float(-np.linalg.eigvalsh(M)[0] if criterion == "e" else np.trace(weight @ np.linalg.inv(M)))

    found = choice.exchanged(choice.grown([], 4))
    assert len(set(found)) == 4
    assert choice.value(found) == pytest.approx(value(tuple(found)), rel=1e-10)
    assert value(tuple(found)) == pytest.approx(min(map(value, itertools.combinations(range(9), 4))), rel=1e-9)


def test_the_accuracy_is_that_of_drawn_errors() -> None:
    rng = np.random.default_rng(0)
    roots = rng.normal(size=(40, 3, 3)) * rng.uniform(0.2, 2.0, (40, 1, 1))
    drawn = np.linalg.norm(np.einsum("wij,swj->swi", roots, rng.normal(size=(4000, 40, 3))), axis=2)
    assert error_below(roots @ np.swapaxes(roots, 1, 2)) == pytest.approx(np.quantile(drawn, 0.95), rel=0.02)


# -- accuracy ------------------------------------------------------------------------------------------


def test_more_postures_are_more_accurate_and_chosen_ones_than_random(planned: PosturePlan) -> None:
    assert np.all(np.diff(planned.accuracies) < 0) and np.all(np.diff(planned.counts) > 0)
    enough = planned.counts >= 8
    assert np.all(planned.accuracies[enough] < planned.random[enough])
    assert planned.best < planned.accuracies[-1]
    assert planned.accuracy <= planned.accuracies[planned.counts == 16][0]
    assert np.sqrt(np.mean(planned.errors**2)) < planned.accuracy < 4 * planned.errors.max()


def test_the_smallest_number_that_is_accurate_enough(arm: Robot) -> None:
    wanted = 0.7e-3
    plan = plan_postures(arm, marker(arm), accuracy=wanted, candidates=150)
    assert plan.counts[-1] == len(plan.q) and plan.counts[-2] == len(plan.q) - 1
    assert plan.accuracies[-1] <= wanted < plan.accuracies[-2]
    assert plan.accuracy <= wanted


def test_a_known_base_makes_errors_absolute(arm: Robot) -> None:
    settings = {"candidates": 60, "model": GeometryModel.only("position", "rotation", "zero")}
    free = plan_postures(arm, marker(arm), 10, **settings)  # type: ignore[arg-type]
    held = plan_postures(arm, marker(arm, base_std=(1e-6, 1e-6)), 10, **settings)  # type: ignore[arg-type]
    assert (free.absolute, held.absolute) == (False, True)
    told = plan_postures(arm, marker(arm), 10, absolute=True, **settings)  # type: ignore[arg-type]
    # Where the base is unknown, the errors that its place hides are left; else those of the base, times three.
    assert told.best > 1e-3 and held.best < 5e-6
    assert len(free.notes) == len(held.notes) + 1


def test_the_weight_is_the_accuracy_of_the_stated_workspace(arm: Robot) -> None:
    box = np.array([[0.2, -0.2, 0.0], [0.4, 0.2, 0.3]])
    plan = plan_postures(arm, marker(arm), 12, candidates=100, workspace=box)
    assert np.all((plan.points >= box[0]) & (plan.points <= box[1])) and len(plan.points) > 100


# -- candidates ----------------------------------------------------------------------------------------


def test_the_ball_is_in_its_socket(arm: Robot) -> None:
    plan = plan_postures(arm, ball(arm), 12, candidates=80)
    model = arm.to_pinocchio()
    data, frame = model.createData(), model.getFrameId(arm.links[-1].name)
    order = [model.idx_qs[model.getJointId(name)] for name in plan.joints]
    assert set(plan.labels["socket"]) == {"a", "b"}
    for q, socket in zip(plan.q, plan.labels["socket"], strict=True):
        configuration = np.zeros(model.nq)
        configuration[order] = q
        pin.framesForwardKinematics(model, data, configuration)
        assert np.linalg.norm(data.oMf[frame].act(BALL) - SOCKETS[socket]) < 1e-6
    low, high = np.array([(x.lower, x.upper) for x in arm.limits.values()]).T
    assert np.all((plan.q >= low) & (plan.q <= high))
    # Postures of one socket are spread over what the contact leaves free.
    mine = plan.q[np.array(plan.labels["socket"]) == "a"]
    assert np.ptp(mine, axis=0).max() > 1.0


def test_what_is_measured_is_seen_and_in_reach(arm: Robot) -> None:
    sight = Sight((1.5, 0.0, 0.4), (-1, 0, 0), 0.4, nearest=0.8, farthest=2.0, normal=(1, 0, 0), facing=0.9)
    reach = np.array([[0.0, -0.4, 0.0], [0.6, 0.4, 0.8]])
    plan = plan_postures(arm, marker(arm), 10, candidates=60, visible=sight, reach=reach)
    h = frame_placement(arm, plan.q, plan.frame)
    at = h[:, :3, 3] + h[:, :3, :3] @ np.array([0.03, 0.0, 0.1])
    away = h[:, :3, 3] - np.array([1.5, 0.0, 0.4])
    length = np.linalg.norm(away, axis=1)
    assert np.all((at >= reach[0]) & (at <= reach[1]))
    assert np.all((np.arccos(-away[:, 0] / length) <= 0.4) & (length >= 0.8) & (length <= 2.0))
    assert np.all(np.arccos(-np.einsum("ni,ni->n", h[:, :3, 0], away) / length) <= 0.9)


LINK = """<link name="{name}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
</inertial><collision><origin xyz="0 0 0.2"/><geometry><box size="0.08 0.08 0.3"/></geometry></collision></link>"""
JOINT = """<joint name="j{k}" type="revolute"><parent link="{up}"/><child link="{name}"/><origin xyz="0 0 {z}"/>
<axis xyz="{axis}"/><limit lower="-2.6" upper="2.6" effort="1" velocity="1"/></joint>"""


@pytest.fixture(scope="module")
def boxes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A URDF file of an arm of four boxes."""
    names, axes = ("base", "one", "two", "three", "four"), ("0 0 1", "0 1 0", "0 1 0", "1 0 0")
    links = "".join(LINK.format(name=name) for name in names)
    joints = "".join(JOINT.format(k=k, up=names[k], name=names[k + 1], z=0.4, axis=axis) for k, axis in enumerate(axes))
    path = tmp_path_factory.mktemp("boxes") / "boxes.urdf"
    path.write_text(f'<robot name="boxes">{links}{joints}</robot>')
    return path


def test_nothing_collides_at_the_postures_nor_on_the_way(boxes: Path) -> None:
    robot = dynid.load_robot(boxes)
    post = Obstacle("post", "box", (0.2, 0.2, 2.0), placement(translation=(0.6, 0.3, 1.0)))
    model = pin.buildModelFromUrdf(str(boxes))
    shapes = pin.buildGeomFromUrdf(model, str(boxes), pin.GeometryType.COLLISION)
    names = [g.name.rsplit("_", 1)[0] for g in shapes.geometryObjects]
    data, box = model.createData(), coal.Box(0.2, 0.2, 2.0)
    at = coal.Transform3s(np.eye(3), np.array([0.6, 0.3, 1.0]))

    def distance(q: Array) -> float:
        pin.forwardKinematics(model, data, q)
        where = [data.oMi[g.parentJoint] * g.placement for g in shapes.geometryObjects]
        found = []
        for i, j in itertools.combinations(range(len(names)), 2):
            if j - i > 1:
                pair = [coal.Transform3s(where[k].rotation, where[k].translation) for k in (i, j)]
                bodies = [shapes.geometryObjects[k].geometry for k in (i, j)]
                request, result = coal.DistanceRequest(), coal.DistanceResult()
                found.append(coal.distance(bodies[0], pair[0], bodies[1], pair[1], request, result))
        for k in range(1, len(names)):
            here = coal.Transform3s(where[k].rotation, where[k].translation)
            body = shapes.geometryObjects[k].geometry
            found.append(coal.distance(body, here, box, at, coal.DistanceRequest(), coal.DistanceResult()))
        return min(found)

    assert names == ["base", "one", "two", "three", "four"]
    random = np.random.default_rng(0).uniform(-2.6, 2.6, (100, 4))
    assert sum(distance(q) < 0.02 for q in random) > 15
    sensor = Points(np.zeros((1, 4)), "four", points=np.zeros((1, 3)), known=np.array([[0, 0, 0.4]]), base=np.eye(4))
    plan = plan_postures(robot, sensor, 10, candidates=60, urdf=boxes, obstacles=[post])
    assert min(map(distance, plan.q)) > 0.02 - 1e-6
    unsafe = {(a, b) for a, b in plan.unsafe}
    for (k, a), (m, b) in itertools.pairwise(zip(plan.stops.tolist(), plan.path, strict=True)):
        if (k, m) not in unsafe:
            assert min(distance(a + s * (b - a)) for s in np.linspace(0, 1, 15)) > 0.01
    assert len(unsafe) < 3


def test_a_robot_without_shapes_is_noted_and_kept_above_the_floor(arm: Robot) -> None:
    plan = plan_postures(arm, marker(arm), 8, candidates=40, floor=0.05)
    assert "collision is not checked" in plan.notes[0]
    for link in arm.links[1:]:
        assert frame_placement(arm, plan.q, link.name)[:, 2, 3].min() >= 0.05


# -- path -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_the_way_is_not_longer_than_the_nearest_neighbor(seed: int) -> None:
    rng = np.random.default_rng(seed)
    q, velocity = rng.uniform(-2, 2, (25, 5)), rng.uniform(0.5, 2, 5)
    path = route(np.zeros(5), q, velocity, (), np.zeros((1, 5)))
    times = travel(np.vstack([np.zeros(5), q]), velocity)

    def length(order: list[int]) -> float:
        return float(sum(times[pair] for pair in itertools.pairwise(order)))

    found = [0, *(k + 1 for k in path.order)]
    assert sorted(path.order) == list(range(25)) and path.unsafe == ()
    assert length(found) < length(nearest_order(times))
    assert np.array_equal(path.stops, np.vstack([np.zeros(5), q[list(path.order)]]))


class Wall:
    """Two joints that may pass x = 0 only above y = 1."""

    label = "wall"

    def values(self, q: Array) -> Array:
        return np.maximum(np.abs(q[:, :1]) - 0.1, q[:, 1:] - 1.0)

    def gradients(self, q: Array, which: NDArray[np.intp]) -> Array:
        raise NotImplementedError


def test_a_posture_in_between_leads_around() -> None:
    q, over = np.array([[-1.0, 0.1], [1.0, 0.1], [1.0, -0.1]]), np.array([[0.0, 2.5]])
    path = route(np.array([-1.0, 0.0]), q, np.ones(2), [Wall()], over)
    assert path.unsafe == () and path.posture.tolist().count(-1) == 2
    assert np.array_equal(path.stops[list(path.posture).index(-1, 1)], over[0])
    assert route(np.array([-1.0, 0.0]), q, np.ones(2), [Wall()], np.zeros((0, 2))).unsafe != ()


def test_stops_name_the_postures(planned: PosturePlan) -> None:
    measured = planned.stops >= 0
    assert planned.stops[measured].tolist() == list(range(16))
    assert np.array_equal(planned.path[measured], planned.q)


# -- result --------------------------------------------------------------------------------------------


def test_the_same_seed_gives_the_same_plan(arm: Robot, planned: PosturePlan) -> None:
    seen: list[Progress] = []
    again = plan_postures(arm, marker(arm), 16, candidates=150, progress=seen.append)
    assert np.array_equal(again.q, planned.q) and again.accuracy == planned.accuracy
    shares = [x.share for x in seen]
    assert shares == sorted(shares) and shares[-1] == 1.0  # type: ignore[type-var]
    assert all(x.seconds_left is not None for x in seen)


def test_a_plan_is_written_and_shown(arm: Robot, planned: PosturePlan, tmp_path: Path) -> None:
    planned.to_csv(tmp_path / "plan.csv")
    with (tmp_path / "plan.csv").open() as file:
        header, *rows = csv.reader(file)
    assert header == list(arm.coordinates)
    assert np.array_equal(np.array(rows, dtype=float), planned.q)
    assert planned.to_frame().columns == list(arm.coordinates)
    assert planned.to_frame().height == 16
    assert f"{1e3 * planned.accuracy:.3g} mm" in planned.summary()
    assert np.array_equal(PosturePlan.from_dict(planned.to_dict()).q, planned.q)


# -- what is refused -----------------------------------------------------------------------------------


def test_wrong_requests_are_refused(arm: Robot) -> None:
    few = {"candidates": 20}
    with expect_error(MissingArgument, "count"):
        plan_postures(arm, marker(arm))
    with expect_error(ConflictingArguments, "accuracy"):
        plan_postures(arm, marker(arm), 10, accuracy=1e-3)
    with expect_error(UnknownName, "criterion"):
        plan_postures(arm, marker(arm), 10, criterion="x")
    with expect_error(InvalidValue, "count"):
        plan_postures(arm, marker(arm), 0)
    with expect_error(InvalidValue, "accuracy"):
        plan_postures(arm, marker(arm), accuracy=-1.0)
    with expect_error(TooFew, "count"):
        plan_postures(arm, marker(arm), 1, **few)  # type: ignore[arg-type]
    with expect_error(TooFew, "candidates"):
        plan_postures(arm, marker(arm), 30, **few)  # type: ignore[arg-type]
    with expect_error(InvalidShape, "reach"):
        plan_postures(arm, marker(arm), 10, reach=[1, 2, 3])
    with expect_error(InvalidValue, "workspace"):
        plan_postures(arm, marker(arm), 10, workspace=[[0, 0, 0], [1, -1, 1]], **few)  # type: ignore[arg-type]
    with expect_error(InvalidShape, "workspace"):
        plan_postures(arm, marker(arm), 10, workspace=np.zeros((4, 2)), **few)  # type: ignore[arg-type]
    with expect_error(MissingArgument, "shapes"):
        plan_postures(arm, marker(arm), 10, obstacles=[Obstacle("ball", "sphere", 0.1)])
    with expect_error(InvalidValue, "start"):
        plan_postures(arm, marker(arm), 10, start=[9.0] * 6, **few)  # type: ignore[arg-type]
    with expect_error(InvalidValue, "direction"):
        Sight((0, 0, 0), (0, 0, 0), 0.5)


def test_impossible_plans_are_refused(arm: Robot) -> None:
    with expect_error(NotApplicable, "measurements"):
        plan_postures(arm, Poses(np.zeros((1, 6)), "link6", poses=np.eye(4)[None]), 10, candidates=20)
    with expect_error(Infeasible):
        plan_postures(arm, marker(arm), 10, candidates=20, visible=lambda q, placement: np.zeros(len(q), dtype=bool))
    with expect_error(Infeasible, "workspace"):
        plan_postures(arm, marker(arm), 10, candidates=20, workspace=[[5, 5, 5], [6, 6, 6]])
    far = Sockets(np.zeros((1, 6)), "link6", socket=["a"], starts={"a": np.array([3.0, 0, 0])})  # type: ignore[arg-type]
    with expect_error(Infeasible):
        plan_postures(arm, far, 10, candidates=20)
    with expect_error(Infeasible, "accuracy"):
        plan_postures(arm, marker(arm), accuracy=1e-4, candidates=30)
    with expect_error(Infeasible, "accuracy"):
        plan_postures(arm, marker(arm), accuracy=1e-4, absolute=True, candidates=30)
