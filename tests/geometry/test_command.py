"""Commanded postures bring the real tool to its place, in Python and in C."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.dynamics import frame_jacobian, frame_placement
from dynid.errors import Infeasible, InvalidShape, InvalidValue, MissingArgument, NotApplicable, NotFinite
from dynid.geometry import Unknown, command_for, corrected_robot, write_command_c
from dynid.geometry.command import Command
from dynid.geometry.real import RealRobot
from tests.support.errors import expect_error
from tests.support.random_robots import random_robot
from tests.support.wrong_geometry import EVERYTHING, RIGID, tool, wrong

Array = NDArray[np.float64]

COMPILER = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
compiled = pytest.mark.skipif(COMPILER is None, reason="there is no C compiler on this computer")

ROBOTS = {
    **{name: dynid.load_robot(name) for name in ("puma560", "iiwa14")},
    "mimics, mounts, slides": random_robot(3, 9, parents=range(9), kinds="rprprprrr", mimics=2),
    "four joints": random_robot(1, 4, parents=range(4), kinds="rrrp"),
}
LOAD = [3, 0.3, 0, 0.2, 0.1, 0, 0.1, 0, 0, 0.1]


def regular(robot: dynid.Robot, frame: str, count: int = 20) -> Array:
    """Postures away from singular ones."""
    q = np.random.default_rng(5).uniform(-1.5, 1.5, (400, robot.n))
    jacobian = frame_jacobian(robot, q, frame)
    whole = np.linalg.svd(jacobian)[1][:, min(5, robot.n - 1)]
    place = np.linalg.svd(jacobian[:, :3])[1][:, -1]
    return q[(whole > 0.05) & (place > 0.05)][:count]


def case(name: str) -> tuple[dynid.Robot, str, tuple[Unknown, ...], Array, dynid.Robot, Array]:
    robot = ROBOTS[name]
    frame = robot.links[-1].name
    unknowns, x = wrong(robot, model=EVERYTHING)
    return robot, frame, unknowns, x, robot.with_payload(frame, LOAD), regular(robot, frame)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_real_tool_gets_where_the_nominal_one_would_be(name: str) -> None:
    robot, frame, unknowns, x, loaded, q = case(name)
    assert len(q) == 20
    found = command_for(robot, unknowns, x, q, frame, bodies=loaded)
    real = RealRobot(robot, unknowns, x, loaded).place(found.q, [frame])[frame]
    wanted = frame_placement(robot, q, frame)
    assert np.abs(real.origin - wanted[:, :3, 3]).max() < 1e-9
    if robot.n >= 6:
        assert np.abs(real.rotation - wanted[:, :3, :3]).max() < 1e-9
    assert 1e-3 < np.abs(found.q - q).max() < 1.0
    unloaded = tool(robot, unknowns, x, found.q, frame)
    assert np.abs(unloaded[:, :3, 3] - wanted[:, :3, 3]).max() > 1e-5


def test_without_loads_the_corrected_robot_is_the_oracle() -> None:
    robot, frame = ROBOTS["puma560"], "link6"
    unknowns, x = wrong(robot, model=RIGID)
    q = regular(robot, frame)
    found = command_for(robot, unknowns, x, q, frame)
    there = frame_placement(corrected_robot(robot, unknowns, x), found.q, frame)
    np.testing.assert_allclose(there, frame_placement(robot, q, frame), rtol=0, atol=2e-9)


@pytest.mark.parametrize("name", ROBOTS)
def test_the_jacobian_is_that_of_the_real_robot(name: str) -> None:
    """Central differences, with the loads left out."""
    robot, frame, unknowns, x, _, q = case(name)
    stiff = np.array([0.0 if u.kind in ("compliance", "bending") else 1.0 for u in unknowns])
    command, step = Command(RealRobot(robot, unknowns, x * stiff), frame), 1e-6
    rotation, _, jacobian = command.place(q)
    for k, e in enumerate(np.eye(robot.n)):
        (after, there, _), (before, here, _) = (command.place(q + s * step * e) for s in (1, -1))
        np.testing.assert_allclose((there - here) / (2 * step), jacobian[:, :3, k], rtol=0, atol=1e-8)
        turning = (after - before) / (2 * step) @ np.swapaxes(rotation, 1, 2)
        found = np.stack([turning[:, 2, 1], turning[:, 0, 2], turning[:, 1, 0]], axis=1)
        np.testing.assert_allclose(found, jacobian[:, 3:, k], rtol=0, atol=1e-8)


def test_redundant_arms_change_least() -> None:
    """No nearby posture with the tool in its place is nearer to the wanted one, to first order."""
    robot, frame, unknowns, x, loaded, q = case("iiwa14")
    found = command_for(robot, unknowns, 0.1 * x, q, frame, bodies=loaded)
    _, _, jacobian = Command(RealRobot(robot, unknowns, 0.1 * x, loaded), frame).place(found.q)
    for change, slopes in zip(found.q - q, jacobian, strict=True):
        free = np.linalg.svd(slopes)[2][6]
        assert abs(free @ change) < 0.05 * np.linalg.norm(change)


def test_one_posture_and_wanted_placements() -> None:
    robot, frame, unknowns, x, loaded, q = case("puma560")
    many = command_for(robot, unknowns, x, q, frame, bodies=loaded)
    one = command_for(robot, unknowns, x, q[3], frame, bodies=loaded)
    np.testing.assert_allclose(one.q, many.q[3], rtol=0, atol=1e-12)
    assert one.q.shape == (6,) and np.ndim(one.distance) == 0
    wanted = frame_placement(robot, q, frame)
    placed = command_for(robot, unknowns, x, wanted, frame, bodies=loaded, start=q)
    np.testing.assert_allclose(placed.q, many.q, rtol=0, atol=1e-12)
    near = command_for(robot, unknowns, x, wanted[3], frame, bodies=loaded, start=q[3] + 0.05)
    np.testing.assert_allclose(near.q, many.q[3], rtol=0, atol=1e-8)


def test_joints_that_do_not_move_the_tool_stay() -> None:
    robot = random_robot(4, 8, parents=[0, 1, 2, 3, 4, 5, 0, 7], kinds="rrrrrrrr")
    unknowns, x = wrong(robot)
    q = regular(robot, "l6", 5)
    found = command_for(robot, unknowns, x, q, "l6")
    np.testing.assert_allclose(found.q[:, 6:], q[:, 6:], rtol=0, atol=1e-15)


def test_errors_name_the_posture_and_the_argument() -> None:
    robot, frame, unknowns, x, _, q = case("puma560")
    far = frame_placement(robot, q[:3], frame)
    far[1, :3, 3] *= 10
    with expect_error(Infeasible, "wanted"):
        command_for(robot, unknowns, x, far, frame, start=q[:3])
    with expect_error(MissingArgument, "start"):
        command_for(robot, unknowns, x, far, frame)
    with expect_error(InvalidShape, "start"):
        command_for(robot, unknowns, x, far, frame, start=q[:2])
    with expect_error(InvalidShape, "wanted"):
        command_for(robot, unknowns, x, q[:, :5], frame)
    with expect_error(NotFinite, "wanted"):
        command_for(robot, unknowns, x, q * np.nan, frame)
    with expect_error(NotApplicable, "frame"):
        command_for(robot, unknowns, x, q, robot.links[0].name)


def build(folder: Path, name: str, *arguments: object, **options: object) -> ctypes.CDLL:
    source, _ = write_command_c(folder, *arguments, name=name, **options)  # type: ignore[arg-type]
    library = folder / f"{name}.so"
    strict = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O2", "-shared", "-fPIC"]
    done = subprocess.run([str(COMPILER), *strict, str(source), "-o", str(library), "-lm"], capture_output=True)
    assert done.returncode == 0, done.stderr.decode()[:2000]
    return ctypes.CDLL(str(library))


def call(function: Callable[..., int], *given: Array, size: int | tuple[int, ...]) -> tuple[int, Array]:
    """What a C function returns, and the array that it fills last."""
    pointer, out = ctypes.POINTER(ctypes.c_double), np.zeros(size)
    rows = [np.ascontiguousarray(a, dtype=float) for a in given]
    return function(*(a.ctypes.data_as(pointer) for a in (*rows, out))), out


@compiled
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("bends", [True, False])
def test_c_gives_the_same_numbers(tmp_path: Path, name: str, bends: bool) -> None:
    robot, frame, unknowns, x, loaded, q = case(name)
    if not bends:
        x = np.array([0.0 if u.kind in ("compliance", "bending") else v for u, v in zip(unknowns, x, strict=True)])
    expected = command_for(robot, unknowns, x, q, frame, bodies=loaded)
    library = build(tmp_path, "arm", robot, unknowns, x, frame, bodies=loaded)
    real = RealRobot(robot, unknowns, x, loaded).place(q, [frame])[frame]
    wanted = frame_placement(robot, q, frame)
    for k in range(len(q)):
        for good, found in (
            call(library.arm, q[k], size=robot.n),
            call(library.arm_pose, wanted[k], q[k], size=robot.n),
        ):
            assert good == 1
            np.testing.assert_allclose(found, expected.q[k], rtol=0, atol=1e-12)
        _, placed = call(library.arm_place, q[k], size=(4, 4))
        np.testing.assert_allclose(placed[:3, :3], real.rotation[k], rtol=0, atol=1e-13)
        np.testing.assert_allclose(placed[:3, 3], real.origin[k], rtol=0, atol=1e-13)
    far = wanted[0].copy()
    far[:3, 3] *= 50
    assert call(library.arm_pose, far, q[0], size=robot.n)[0] == 0


def test_names_that_c_does_not_take(tmp_path: Path) -> None:
    with expect_error(InvalidValue, "name"):
        write_command_c(tmp_path, ROBOTS["puma560"], [], [], "link6", name="my arm")
