"""Measurements from files: tables, folders of sockets, and samples of packages of ROS; what is guessed is told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

from dynid.errors import (
    DamagedFile,
    DynidError,
    InvalidValue,
    MissingData,
    MissingFile,
    MissingJoints,
    NotApplicable,
    TooFew,
    UnknownName,
    WrongFormat,
)
from dynid.geometry import Points, Sockets, read_measurements
from tests.support.errors import expect_error
from tests.support.geometry_files import FRAME, arm, placements, postures, text, write_sockets, write_tracker

JOINTS = list(arm().coordinates)


def read(source: Any, **settings: Any) -> Any:
    return read_measurements(source, arm(), **{"frame": FRAME} | settings)


# -- tables --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("scale", "degrees"), [(1.0, False), (1e3, True), (1e2, False)])
def test_units_of_points_and_angles_are_found_and_told(tmp_path: Path, scale: float, degrees: bool) -> None:
    plain, other = tmp_path / "si.csv", tmp_path / "other.csv"
    q = write_tracker(plain)
    write_tracker(other, scale=scale, degrees=degrees)
    found = read(other)
    assert isinstance(found[0], Points) and found[0].points.shape == (40, 2, 3)
    np.testing.assert_allclose(found[0].q, q, atol=1e-9)
    np.testing.assert_allclose(found[0].points, read(plain)[0].points, atol=1e-9)
    said = " ".join(found.notes)
    assert f"read as {'deg' if degrees else 'rad'}" in said
    assert f"points are read as {({1.0: 'm', 1e2: 'cm', 1e3: 'mm'})[scale]}" in said


def test_stated_units_are_taken_and_wrong_ones_refused(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    q = write_tracker(file, scale=1e3, degrees=True)
    found = read(file, units={"q": "deg", "points": "mm"})
    np.testing.assert_allclose(found[0].q, q, atol=1e-9)
    assert not any("read as" in note for note in found.notes)
    with expect_error(InvalidValue, "units"):
        read(file, units={"points": "m"})
    with expect_error(InvalidValue, "units"):
        read(file, units={"q": "rad"})
    with expect_error(InvalidValue, "units"):
        read(file, units={"q": "turns"})
    with expect_error(UnknownName, "units"):
        read(file, units={"joints": "deg"})


def test_units_in_the_names_of_columns(tmp_path: Path) -> None:
    q = postures(12)
    at = placements(q)[:, :3, 3]
    file = tmp_path / "a.csv"
    file.write_text(
        text([f"{j}_deg" for j in JOINTS] + ["tool_x_mm", "tool_y_mm", "tool_z_mm"], np.degrees(q), 1e3 * at)
    )
    found = read(file)
    np.testing.assert_allclose(found[0].points[:, 0], at, atol=1e-9)
    np.testing.assert_allclose(found[0].q, q, atol=1e-9)
    assert found[0].markers == ("tool",)


def test_a_marker_that_repeats_another_is_left_out(tmp_path: Path) -> None:
    q = postures(12)
    at = placements(q)[:, :3, 3]
    file = tmp_path / "a.csv"
    names = [f"{a}{k}" for k in (1, 2, 3) for a in "xyz"]
    file.write_text(text([*names, *JOINTS], at, at + np.array([0, 0, 0.1]), at, q))
    found = read(file)
    assert found[0].markers == ("marker 1", "marker 2")
    assert any("marker 3 repeats marker 1" in note for note in found.notes)


def test_hidden_markers_are_not_numbers_and_unused_columns_are_told(tmp_path: Path) -> None:
    q = postures(12)
    at = placements(q)[:, :3, 3].copy()
    rows = text(["time", *JOINTS, "x", "y", "z", "temperature"], np.arange(12), q, at, np.full(12, 20)).splitlines()
    cells = rows[3].split(",")
    rows[3] = ",".join([*cells[:7], "", "", "", cells[10]])
    file = tmp_path / "a.csv"
    file.write_text("\n".join(rows))
    found = read(file)
    assert np.isnan(found[0].points[2]).all() and np.isfinite(np.delete(found[0].points, 2, axis=0)).all()
    assert any("temperature" in note and "not used" in note for note in found.notes)
    assert not any("time" in note for note in found.notes)


def test_numbered_and_stated_joint_columns(tmp_path: Path) -> None:
    q = postures(12)
    at = placements(q)[:, :3, 3]
    numbered, odd = tmp_path / "numbered.csv", tmp_path / "odd.csv"
    numbered.write_text(text([*(f"q{k + 1}" for k in range(6)), "x", "y", "z"], q, at))
    odd.write_text(text([*"abcdef", "x", "y", "z"], q, at))
    found = read(numbered)
    np.testing.assert_allclose(found[0].q, q, atol=1e-9)
    assert any("robot's order" in note for note in found.notes)
    np.testing.assert_allclose(read(odd, joints=tuple("abcdef"))[0].q, q, atol=1e-9)
    with expect_error(UnknownName, "joints"):
        read(odd, joints=tuple("abcdeg"))


def test_two_files_of_one_tracker_are_one_sensor_at_two_places(tmp_path: Path) -> None:
    write_tracker(tmp_path / "monday.csv", 12)
    write_tracker(tmp_path / "tuesday.csv", 14, seed=5)
    found = read(tmp_path)
    assert len(found) == 1 and len(found[0].q) == 26
    assert sorted(set(found[0].place.tolist())) == ["monday", "tuesday"]
    assert set(read(tmp_path, places="none")[0].place.tolist()) == {""}


# -- sockets -------------------------------------------------------------------------------------------


def test_a_folder_of_sockets_has_places_and_distances(tmp_path: Path) -> None:
    write_sockets(tmp_path, places=2, count=3)
    found = read(tmp_path, distances={("hole_0", "hole_1"): 0.05})
    sockets = found[0]
    assert isinstance(sockets, Sockets) and len(sockets.q) == 12
    assert sorted(set(sockets.place.tolist())) == ["place0", "place1"]
    assert sockets.distances_known == {
        ("place0/hole_0", "place0/hole_1"): 0.05,
        ("place1/hole_0", "place1/hole_1"): 0.05,
    }
    with expect_error(UnknownName, "distances"):
        read(tmp_path, distances={("hole_0", "hole_2"): 0.05})
    assert any("no distance" in note for note in read(tmp_path).notes)


def test_columns_of_sockets_and_places(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    rows = [",".join([*JOINTS, "socket", "place"])]
    rows += [",".join([*(f"{x:.6f}" for x in q), s, p]) for q, s, p in zip(postures(4), "abab", "uuvv", strict=True)]
    file.write_text("\n".join(rows))
    sockets = read(file, distances={("a", "b"): 0.1})[0]
    assert sockets.socket.tolist() == ["u/a", "u/b", "v/a", "v/b"]
    assert len(sockets.distances_known) == 2


# -- what ROS packages write ---------------------------------------------------------------------------


def transform(h: Any) -> dict[str, Any]:
    p, r = h[:3, 3], Rotation.from_matrix(h[:3, :3]).as_quat()
    return {
        "translation": dict(zip("xyz", map(float, p), strict=True)),
        "rotation": dict(zip("xyzw", map(float, r), strict=True)),
    }


def hand_eye(in_hand: bool, count: int = 15) -> tuple[Any, Any, Any]:
    """Postures, poses of the robot, and poses of a target in a sensor on the robot or beside it."""
    q = postures(count)
    e = placements(q)
    x, y = np.eye(4), np.eye(4)
    x[:3, :3], x[:3, 3] = Rotation.from_rotvec([0.4, -0.3, 1.2]).as_matrix(), [0.02, 0.05, 0.1]
    y[:3, :3], y[:3, 3] = Rotation.from_rotvec([2.0, 0.3, -0.5]).as_matrix(), [0.6, 0.1, 0.2]
    seen = np.linalg.inv(e @ x) @ y if in_hand else np.linalg.inv(y) @ e @ x
    return q, e, seen


@pytest.mark.parametrize("in_hand", [True, False])
def test_samples_of_moveit_with_joint_states(tmp_path: Path, in_hand: bool) -> None:
    q, e, seen = hand_eye(in_hand)
    samples = [
        {"effector_wrt_world": a.ravel().tolist(), "object_wrt_sensor": b.ravel().tolist()}
        for a, b in zip(e, seen, strict=True)
    ]
    (tmp_path / "samples.yaml").write_text(yaml.safe_dump(samples))
    with expect_error(MissingJoints):
        read(tmp_path / "samples.yaml")
    states = {"joint_names": JOINTS[::-1], "joint_values": q[:, ::-1].tolist()}
    (tmp_path / "joints.yaml").write_text(yaml.safe_dump(states))
    found = read(tmp_path)
    np.testing.assert_allclose(found[0].q, q)
    np.testing.assert_allclose(found[0].poses, seen, atol=1e-9)
    assert found[0].in_hand is in_hand
    assert any("the sensor of the poses counts as" in note for note in found.notes)
    assert read(tmp_path, in_hand=not in_hand)[0].in_hand is not in_hand


def test_samples_of_easy_handeye(tmp_path: Path) -> None:
    q, e, seen = hand_eye(True)
    samples = [{"robot": transform(a), "tracking": transform(b)} for a, b in zip(e, seen, strict=True)]
    for k, sample in enumerate(samples):
        sample["joint_states"] = {"name": JOINTS, "position": q[k].tolist()}
    file = tmp_path / "samples.json"
    file.write_text(json.dumps({"samples": samples}))
    found = read(file)
    np.testing.assert_allclose(found[0].poses, seen, atol=1e-9)
    np.testing.assert_allclose(found[0].q, q)


def test_poses_in_a_table(tmp_path: Path) -> None:
    q, _, seen = hand_eye(True)
    quaternion, angles = (Rotation.from_matrix(seen[:, :3, :3]).as_quat(), Rotation.from_matrix(seen[:, :3, :3]))
    first, second = tmp_path / "a.csv", tmp_path / "b.csv"
    first.write_text(
        text([*JOINTS, "qw", "qx", "qy", "qz", "x", "y", "z"], q, quaternion[:, [3, 0, 1, 2]], seen[:, :3, 3])
    )
    roll = angles.as_euler("xyz", degrees=True)
    names = ["tag.position.x", "tag.position.y", "tag.position.z", "tag.roll", "tag.pitch", "tag.yaw"]
    second.write_text(text([*JOINTS, *names], q, seen[:, :3, 3], roll))
    for file in (first, second):
        np.testing.assert_allclose(read(file)[0].poses, seen, atol=1e-8)
    assert read(second)[0].name == "tag"


def calibration_data(q: Any, points: Any, frame: str) -> str:
    """What `ros2 topic echo` writes of robot_calibration's CalibrationData."""

    def feature(p: Any, frame: str) -> dict[str, Any]:
        return {"header": {"frame_id": frame}, "point": dict(zip("xyz", map(float, p), strict=True))}

    documents = []
    for posture, seen in zip(q, points, strict=True):
        target = [feature(p, "checkerboard") for p in np.eye(3)[: len(seen)]]
        documents.append(
            {
                "joint_states": {
                    "header": {"frame_id": ""},
                    "name": JOINTS,
                    "position": posture.tolist(),
                    "velocity": [],
                },
                "observations": [
                    {"sensor_name": "camera", "features": [feature(p, frame) for p in seen]},
                    {"sensor_name": "arm", "features": target},
                ],
            }
        )
    return yaml.safe_dump_all(documents)


def test_samples_of_robot_calibration(tmp_path: Path) -> None:
    q = postures(8)
    corners = np.array([[0.0, 0, 0.1, 1], [0.05, 0, 0.1, 1]])
    points = np.einsum("nij,mj->nmi", placements(q), corners)[..., :3]
    file = tmp_path / "data.yaml"
    file.write_text(calibration_data(q, points, "head_camera"))
    found = read(file)
    assert found[0].name == "camera"
    np.testing.assert_allclose(found[0].points, points, atol=1e-12)
    assert any("features of arm never change" in note for note in found.notes)
    file.write_text(calibration_data(q, points, "link2"))
    with expect_error(NotApplicable):
        read(file)


# -- one sentence each ---------------------------------------------------------------------------------


def test_a_table_without_measurements_or_joints_is_refused(tmp_path: Path) -> None:
    q, file = postures(4), tmp_path / "a.csv"
    file.write_text(text(JOINTS, q))
    with expect_error(MissingData):
        read(file)
    file.write_text(text([*JOINTS[:4], "x", "y", "z"], q[:, :4], q[:, :3]))
    with expect_error(MissingJoints, "joints") as caught:
        read(file)
    assert isinstance(caught.value, MissingJoints) and caught.value.joints == tuple(JOINTS[4:])
    file.write_text(text([], q[:, :4]))
    with expect_error(MissingJoints):
        read(file)


@pytest.mark.parametrize(
    ("name", "content", "error"),
    [
        ("a.csv", "", MissingData),
        ("a.csv", ",".join(JOINTS) + ",x,y,z\n", MissingData),
        ("a.yaml", "", MissingData),
        ("a.yaml", "a: [1, 2", DamagedFile),
        ("a.yaml", "a: &b [1]\nc: *b\n", DamagedFile),
        ("a.yaml", "[1, 2]", WrongFormat),
        ("a.yaml", "- {robot: 1}", WrongFormat),
        ("a.yaml", "- {robot: 1, tracking: 2}", DamagedFile),
        ("a.yaml", "- {effector_wrt_world: [1, 2], object_wrt_sensor: [1]}", DamagedFile),
        ("a.json", '{"samples": [{"observations": [], "joint_states": {"name": [], "position": []}}]}', MissingJoints),
        ("a.json", '{"samples": [{"observations": [{}], "joint_states": 3}]}', DamagedFile),
        ("a.yaml", "{joint_names: [a], joint_values: [[1.0]]}", MissingData),
        ("a.docx", "", WrongFormat),
    ],
)
def test_damaged_files_are_refused_in_one_sentence(
    tmp_path: Path, name: str, content: str, error: type[DynidError]
) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(error) as caught:
        read(tmp_path / name)
    assert "\n" not in str(caught.value) and str(caught.value).isprintable()


def test_sources_and_settings_that_do_not_exist(tmp_path: Path) -> None:
    with expect_error(MissingFile, "source"):
        read(tmp_path)
    with expect_error(MissingFile, "source"):
        read([])
    with expect_error(MissingFile):
        read(tmp_path / "no.csv")
    with expect_error(MissingFile):
        read(tmp_path / "no.yaml")
    write_tracker(tmp_path / "a.csv", 4)
    with expect_error(UnknownName, "places"):
        read(tmp_path, places="room")


def test_robot_calibration_without_features_that_move(tmp_path: Path) -> None:
    q = postures(3)
    file = tmp_path / "a.yaml"
    file.write_text(calibration_data(q, np.zeros((3, 1, 3)), "head_camera"))
    with expect_error(TooFew):
        read(file)
