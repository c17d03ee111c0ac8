"""The rank of base parameters on placements that a file rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
import scipy
from hypothesis import given, settings
from hypothesis import strategies as st

import dynid
from dynid.errors import ModelError
from dynid.parameters.base import random_states
from dynid.parameters.rank import independent_columns, pivoted_columns, spectrum_ranks
from dynid.robot.angles import exact_angle
from dynid.robot.spatial import rpy_rotation
from tests.support.errors import expect_error
from tests.support.structured_robots import structured_robot


def tilted(robot: dynid.Robot, size: float, seed: int) -> dynid.Robot:
    """The robot with every joint frame turned by random angles up to `size`."""
    rng = np.random.default_rng(seed)
    joints = []
    for joint in robot.joints:
        placed = joint.placement.copy()
        placed[:3, :3] = rpy_rotation(*rng.uniform(-size, size, 3)) @ placed[:3, :3]
        joints.append(replace(joint, placement=placed))
    return replace(robot, joints=tuple(joints))


@pytest.mark.slow
@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    st.integers(0, 10**6),
    st.integers(1, 8),
    st.sampled_from(["fixed", "floating"]),
    st.sampled_from([1e-12, 1e-10, 1e-9, 1e-8, 3e-8]),
)
def test_single_precision_placements_have_the_rank_of_the_exact_ones(
    seed: int, joints: int, base: str, size: float
) -> None:
    """The exact rank comes from the recursion, which has no samples; torques still follow from the groups."""
    robot = structured_robot(seed, joints, base)
    rounded = tilted(robot, size, seed)
    groups = dynid.base_parameters(rounded)
    assert groups.count == dynid.base_parameters(robot, method="recursive").count
    assert dynid.base_parameters(rounded, method="pivoted").count == groups.count
    q, v, a = random_states(rounded, 6, seed=1)
    torque = dynid.inverse_dynamics(rounded, q, v, a)
    # What is dropped is as large as the tilt.
    np.testing.assert_allclose(
        groups.regressor(q, v, a) @ groups.values(), torque, atol=(1e-9 + 10 * size) * np.abs(torque).max()
    )


def test_rank_agrees_with_many_digits() -> None:
    """Singular values of the same regressor in 50 digits: those beyond the rank are rounding of the samples alone."""
    mpmath = pytest.importorskip("mpmath")
    robot = dynid.load_robot("twolink")
    groups = dynid.base_parameters(robot)
    Y = dynid.regressor(robot, *random_states(robot, 20, seed=3)).reshape(-1, len(robot.layout))
    with mpmath.workdps(50):
        exact = mpmath.svd_r(mpmath.matrix(Y.tolist()), compute_uv=False)
    sizes = np.array([float(x) for x in exact])
    assert sizes[groups.count - 1] > 1e-3 * sizes[0]
    assert np.all(sizes[groups.count :] < 1e-14 * sizes[0])


def test_falls_of_a_spectrum() -> None:
    """The largest fall comes first; rounding is one size; full rank and no gap are told apart."""
    assert spectrum_ranks(np.array([1.0, 0.5, 1e-4, 1e-16, 1e-17])) == [3, 2]
    assert spectrum_ranks(np.array([1.0, 0.5, 0.2])) == [3]
    assert spectrum_ranks(np.geomspace(1.0, 1e-16, 12)) == []


def test_columns_follow_the_rank_and_not_a_fixed_limit() -> None:
    """A column that differs by 1e-8 from an earlier one does not stand for a direction that a later one shows."""
    first, second = np.eye(3)[0], np.eye(3)[1]
    scaled = np.column_stack([first, first + 2e-8 * second, second])
    assert independent_columns(scaled, [0, 1, 2], np.array([1.4, 1.0, 1e-16])) == [0, 2]
    assert independent_columns(scaled, [0, 1, 2], np.array([1.4, 1e-16, 1e-16])) == []


def test_angles_by_their_printed_digits() -> None:
    """Rounded, cut and summed multiples are recognised; an angle of its own is not."""
    half = np.pi / 2
    for text in ("1.57", "1.571", "1.5708", "1.570796", "1.57079", "1.57079632679"):
        assert exact_angle(float(text)) == half
    assert exact_angle(3.14158) == exact_angle(3.1416) == exact_angle(3.14) == np.pi
    assert exact_angle(-4.71239) == -3 * half
    assert exact_angle(-5.24e-8) == 0.0
    for own in (1.6, 2.0, 1.58, 1.572, 3.15, 0.1, 1e-4, 1.5707, 1.57081, 1.57075, 0.7854):
        assert exact_angle(own) in (None, half) and (exact_angle(own) is None or abs(own - half) < 1e-4)
    assert exact_angle(1.58) is exact_angle(1.6) is exact_angle(0.1) is exact_angle(1.57075) is None


def arm(write: Callable[[float], str]) -> str:
    """A URDF like that of a small arm: right angles between all axes, angles written by `write`."""
    half = np.pi / 2
    turns = [(np.pi, 0, -np.pi), (half, 0, -half), (0, 0, half), (0, 0, -half), (half, 0.0486795, np.pi), (half, 0, 0)]
    places = ["0 0 .06", ".03 .02 .05", "-.11 0 .03", "-.13 0 0", "0 -.06 .02", ".02 .02 -.02"]
    body = '<inertial><mass value="0.1"/><inertia ixx="1e-3" iyy="1e-3" izz="1e-3"/></inertial>'
    out = ['<robot name="arm"><link name="base"/>']
    for i, (turn, place) in enumerate(zip(turns, places, strict=True), start=1):
        rpy = " ".join(write(x) for x in turn)
        out.append(
            f'<link name="l{i}">{body}</link><joint name="j{i}" type="continuous"><axis xyz="0 0 1"/>'
            f'<parent link="{f"l{i - 1}" if i > 1 else "base"}"/><child link="l{i}"/>'
            f'<origin xyz="{place}" rpy="{rpy}"/></joint>'
        )
    return "".join([*out, "</robot>"])


@pytest.mark.parametrize("digits", ["%.4f", "%.5f", "%.6g", "%.6f"])
def test_rounded_right_angles_add_base_parameters_unless_snapped(tmp_path: Path, digits: str) -> None:
    """Ghosts are named always; with snap_angles the count is that of the exact file."""
    exact, rounded = tmp_path / "exact.urdf", tmp_path / "rounded.urdf"
    exact.write_text(arm(repr))
    rounded.write_text(arm(lambda x: digits % x))
    count = dynid.base_parameters(dynid.load_robot(exact)).count
    ghosts = dynid.load_robot(rounded)
    snapped = dynid.load_robot(rounded, snap_angles=True)
    assert dynid.base_parameters(ghosts).count > count
    assert dynid.base_parameters(snapped).count == count == 36
    assert "3.14" in ghosts.notes[0] and "'j2'" in ghosts.notes[0] and "snap_angles" in ghosts.notes[0]
    assert "exact multiples" in snapped.notes[0]
    assert dynid.load_robot(exact).notes == ()


def test_snapping_in_sdf_and_toml_files(tmp_path: Path) -> None:
    """The same angles in the other formats that write angles; a format without them says so."""
    table = "\n".join(
        f"[[joint]]\nalpha = {x}\nd = 0.1\na = 0.2\n" for x in ("3.1416", "1.5708", "-1.5708", "1.5708", "-1.5708")
    )
    path = tmp_path / "arm.toml"
    path.write_text(f'name = "arm"\nconvention = "modified"\n{table}')
    loaded, snapped = dynid.load_robot(path), dynid.load_robot(path, snap_angles=True)
    assert "joint2" in loaded.notes[0]
    assert dynid.base_parameters(loaded).count > dynid.base_parameters(snapped).count
    sdf = tmp_path / "arm.sdf"
    sdf.write_text(
        '<sdf version="1.8"><model name="arm"><link name="a"/><link name="b"><pose>0 0 1 1.5708 0 0</pose></link>'
        '<joint name="ab" type="revolute"><parent>a</parent><child>b</child><axis><xyz>0 0 1</xyz></axis></joint>'
        "</model></sdf>"
    )
    assert "link 'b'" in dynid.load_robot(sdf).notes[0]
    turn = dynid.load_robot(sdf, snap_angles=True).joints[0].placement
    assert abs(turn[1, 1]) < 1e-16
    mjcf = tmp_path / "arm.xml"
    mjcf.write_text("<mujoco><worldbody/></mujoco>")
    with expect_error(ModelError, "snap_angles", code="not_applicable"):
        dynid.load_robot(mjcf, snap_angles=True)


@pytest.mark.skipif(find_spec("example_robot_data") is None, reason="example-robot-data is not installed")
@pytest.mark.parametrize(
    ("file", "plain", "snapped"),
    [
        ("romeo_description/urdf/romeo.urdf", 351, 351),
        ("so_arm_description/urdf/so100.urdf", 38, 36),
        ("so_arm_description/urdf/so101.urdf", 38, 36),
    ],
)
def test_published_files_with_rounded_placements(file: str, plain: int, snapped: int) -> None:
    """Romeo's spectrum falls clearly at one rank; the small arms lose the two parameters that only rounding adds."""
    import example_robot_data

    path = Path(example_robot_data.getModelPath(file)) / file
    assert dynid.base_parameters(dynid.load_robot(path)).count == plain
    groups = dynid.base_parameters(dynid.load_robot(path, snap_angles=True))
    assert groups.count == snapped
    assert dynid.base_parameters(groups.robot, method="recursive").count == snapped


def test_pivots_of_equal_length_do_not_depend_on_rounding() -> None:
    """Of columns that are equally long the first is taken; LAPACK's choice differed from build to build."""
    rng = np.random.default_rng(0)
    space = np.linalg.qr(rng.normal(size=(30, 5)))[0]
    columns = space @ np.column_stack([np.eye(5), np.eye(5)[:, ::-1], 0.5 * np.eye(5)])
    scan = [*range(10, 15), 3, 1, 0, 2, 4, *range(5, 10)]
    for _ in range(20):
        noisy = columns + 1e-13 * rng.normal(size=columns.shape)
        kept = pivoted_columns(noisy, scan, np.linalg.svd(noisy, compute_uv=False))
        assert kept == [3, 1, 0, 2, 4]


def test_pivots_are_those_of_lapack_where_lengths_differ() -> None:
    rng = np.random.default_rng(1)
    columns = rng.normal(size=(40, 6)) * np.array([1.0, 5.0, 0.3, 2.0, 9.0, 0.7])
    # Beside column 1, the last one is half of column 0: a sum of both would be as long, a tie.
    columns = np.column_stack([columns, 0.5 * columns[:, 0] + columns[:, 1]])
    kept = pivoted_columns(columns, list(range(7)), np.linalg.svd(columns, compute_uv=False))
    assert kept == scipy.linalg.qr(columns, mode="r", pivoting=True)[1][:6].tolist()
