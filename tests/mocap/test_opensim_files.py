"""OpenSim's text files: markers, coordinates in degrees or radians, ground forces."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import Mismatch, MissingData
from tests.support.capture_files import smooth
from tests.support.errors import expect_error


def _trc(path: Path, names: list[str], x: np.ndarray, rate: float = 60.0, unit: str = "mm", start: float = 0.0) -> None:
    count = len(x)
    head = [
        f"PathFileType\t4\t(X/Y/Z)\t{path.name}",
        "DataRate\tCameraRate\tNumFrames\tNumMarkers\tUnits\tOrigDataRate\tOrigDataStartFrame\tOrigNumFrames",
        f"{rate}\t{rate}\t{count}\t{len(names)}\t{unit}\t{rate}\t1\t{count}",
        "Frame#\tTime\t" + "\t\t\t".join(names) + "\t\t",
        "\t\t" + "\t".join(f"{a}{k + 1}" for k in range(len(names)) for a in "XYZ"),
        "",
    ]
    rows = [
        "\t".join([str(k + 1), f"{start + k / rate:.6f}", *("" if np.isnan(v) else f"{v:.6f}" for v in x[k].ravel())])
        for k in range(count)
    ]
    path.write_text("\n".join(head + rows) + "\n")


def _mot(path: Path, columns: dict[str, np.ndarray], degrees: bool, rows: int | None = None) -> None:
    count = len(next(iter(columns.values())))
    head = ["Coordinates", "version=1", f"nRows={rows or count}", f"nColumns={len(columns)}"]
    head += [f"inDegrees={'yes' if degrees else 'no'}", "", "endheader", "\t".join(columns)]
    body = ["\t".join(f"{v:.10g}" for v in row) for row in np.column_stack(list(columns.values()))]
    path.write_text("\n".join(head + body) + "\n")


def test_markers_of_a_trc_file(tmp_path: Path) -> None:
    """Millimetres, y up, empty cells as gaps, a clock that does not start at zero."""
    x = smooth(np.random.default_rng(0), 40, 9, 300.0).reshape(40, 3, 3)
    x[5:9, 1] = np.nan
    x[20, 2] = np.nan
    _trc(tmp_path / "walk.trc", ["R.ASIS", "L.ASIS", "Sacral"], x, start=0.5)
    capture = dynid.mocap.load_capture(tmp_path / "walk.trc", up="y")
    assert capture.markers == ("R.ASIS", "L.ASIS", "Sacral") and capture.start == 0.5
    assert capture.rate == pytest.approx(60.0, rel=1e-5)
    expected = 1e-3 * np.stack([x[..., 0], -x[..., 2], x[..., 1]], axis=2)
    np.testing.assert_allclose(capture.positions, expected, atol=1e-9)
    assert [(g.marker, g.start, g.stop) for g in capture.gaps()] == [("L.ASIS", 5, 9), ("Sacral", 20, 21)]


@pytest.mark.parametrize("degrees", [True, False])
def test_coordinates_of_a_motion_file(tmp_path: Path, degrees: bool) -> None:
    """Angles in rad whatever the header says, lengths as they are; a recording by joint names."""
    rng = np.random.default_rng(1)
    t = np.arange(50) / 100
    hip, knee, tx = smooth(rng, 50, 3, 0.5).T
    factor = 180 / np.pi if degrees else 1.0
    columns = {"time": t, "pelvis_tx": tx, "joint2": factor * knee, "joint1": factor * hip, "slide": tx}
    _mot(tmp_path / "a.mot", columns, degrees)
    capture = dynid.mocap.load_capture(tmp_path / "a.mot", translations=["slide"])
    np.testing.assert_allclose(capture.coordinates["joint1"], hip, atol=1e-8)
    np.testing.assert_allclose(capture.coordinates["pelvis_tx"], tx, atol=1e-8)
    np.testing.assert_allclose(capture.coordinates["slide"], tx, atol=1e-8)
    assert capture.coordinates.units == ("m", "rad", "rad", "m")
    recording = capture.recording(dynid.load_robot("twolink"))
    np.testing.assert_allclose(recording.runs[0].q, np.column_stack([hip, knee]), atol=1e-8)
    np.testing.assert_allclose(recording.runs[0].t, t, atol=1e-9)
    with expect_error(MissingData):
        capture.recording(dynid.load_robot("wam7"))


def test_paths_of_states_and_uneven_times(tmp_path: Path) -> None:
    """OpenSim 4 writes states by their path; integrators write when they like."""
    rng = np.random.default_rng(2)
    t = np.cumsum(rng.uniform(0.005, 0.015, 200))
    columns = {"time": t, "/jointset/hip/hip_flexion/value": 2 * t, "/jointset/hip/hip_flexion/speed": 0 * t + 2}
    _mot(tmp_path / "s.sto", columns, False)
    capture = dynid.mocap.load_capture(tmp_path / "s.sto")
    assert capture.coordinates.names == ("hip_flexion",)
    np.testing.assert_allclose(
        capture.coordinates["hip_flexion"], 2 * (capture.start + capture.coordinates.t), atol=1e-8
    )


@pytest.mark.parametrize("names", ["{n}_ground_{w}_{c}", "ground_{w}_{n}_{c}"])
def test_ground_forces_act_at_their_points(tmp_path: Path, names: str) -> None:
    """Two feet; force, point and torque become wrenches about the laboratory's origin, z up."""
    rng = np.random.default_rng(3)
    columns = {"time": np.arange(60) / 1000}
    expected = {}
    for foot in "rl":
        force, point, torque = (smooth(rng, 60, 3, s) for s in (200.0, 0.3, 5.0))
        for k, axis in enumerate("xyz"):
            columns[names.format(n=foot, w="force", c=f"v{axis}")] = force[:, k]
            columns[names.format(n=foot, w="force", c=f"p{axis}")] = point[:, k]
            columns[names.format(n=foot, w="torque", c=axis)] = torque[:, k]
        expected[foot] = np.hstack([force, np.cross(point, force) + torque])
    _mot(tmp_path / "grf.mot", columns, True)
    capture = dynid.mocap.load_capture(tmp_path / "grf.mot", up="y")
    assert len(capture.plates) == 2 and not capture.coordinates.names
    for plate, wrench in zip(capture.plates, expected.values(), strict=True):
        turned = wrench.reshape(-1, 2, 3)[..., [0, 2, 1]] * [1, -1, 1]
        np.testing.assert_allclose(plate.in_laboratory(), turned.reshape(-1, 6), atol=1e-5)


def test_markers_and_forces_of_two_files_share_a_clock(tmp_path: Path) -> None:
    """The forces start earlier; what both files call the same time stays so."""
    t = np.arange(500) / 1000
    _mot(tmp_path / "f.mot", {"time": t, **{f"ground_force_v{a}": np.sin(9 * t) for a in "xyz"}}, False)
    x = np.ones((20, 1, 3))
    _trc(tmp_path / "m.trc", ["A"], x, 100.0, start=0.25)
    markers, forces = dynid.mocap.load_capture(tmp_path / "m.trc"), dynid.mocap.load_capture(tmp_path / "f.mot")
    joined = markers.with_plates(forces)
    np.testing.assert_allclose(joined.wrench()[2:-2, 0], np.sin(9 * (0.25 + joined.t))[2:-2], atol=1e-4)
    with expect_error(Mismatch):
        forces.with_plates(replace(forces, start=markers.start))


def test_text_that_cannot_be_read_says_why(tmp_path: Path) -> None:
    """No header, cut off, words for numbers, a clock that stands still."""
    x = smooth(np.random.default_rng(4), 20, 3, 100.0).reshape(20, 1, 3)

    def refused(name: str, text: str, words: str) -> None:
        (tmp_path / name).write_text(text)
        with pytest.raises(dynid.DataError, match=words):
            dynid.mocap.load_capture(tmp_path / name)

    _trc(tmp_path / "x.trc", ["A"], x)
    good = (tmp_path / "x.trc").read_text()
    refused("a.trc", "hello\nworld\n", "is no TRC file")
    refused("b.trc", "\n".join(good.split("\n")[:-6]), "announces 20 frames and holds 15")
    refused("c.trc", good.replace("\tmm\t", "\tfurlong\t"), "unit 'furlong'")
    refused("d.trc", good.replace("0.050000", "0.033333"), "does not rise at row")
    t = np.arange(20) / 100
    _mot(tmp_path / "y.mot", {"time": t, "hip": t}, False, rows=30)
    text = (tmp_path / "y.mot").read_text()
    refused("e.mot", text, "announces 30 rows and holds 20")
    refused("f.mot", text.replace("endheader", ""), "no line endheader")
    refused("g.sto", text.replace("0.05", "five"), "holds 'five'")
    refused("h.sto", text.replace("time\t", "t\t"), "expected time")


def test_many_markers_of_one_name_are_numbered(tmp_path: Path) -> None:
    """Thousands of repeated names, which took minutes."""
    names = ["A", "A#2", *["A"] * 4000]
    _trc(tmp_path / "run.trc", names, np.ones((5, len(names), 3)))
    found = dynid.mocap.load_capture(tmp_path / "run.trc").markers
    assert found[:4] == ("A", "A#2", "A#3", "A#4") and len(set(found)) == len(names)
