"""Peculiarities of real C3D files: long trials, many labels, old events; by other writers, or byte by byte."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import dynid
from dynid.errors import DamagedFile
from dynid.mocap.c3d import read_c3d
from tests.support.capture_files import Platform, corners_mm, smooth, write_ezc3d
from tests.support.errors import expect_error

Array = NDArray[np.float64]
EXACT = 1e-6  # files hold 32-bit floats


def by_the_c3d_package(
    path: Path, points: Array, labels: list[str], scale: float = -1.0, analog: Array | None = None
) -> None:
    """points (N, M, 3) in mm, NaN unseen; analog (N, channels, subsamples)."""
    c3d = pytest.importorskip("c3d")
    analog = np.zeros((len(points), 1, 1)) if analog is None else analog
    writer = c3d.Writer(point_rate=100.0, analog_rate=100.0 * analog.shape[2], point_scale=scale)
    frames = np.zeros((*points.shape[:2], 5), dtype=np.float32)
    frames[..., :3] = np.nan_to_num(points)
    frames[..., 3] = np.where(np.isnan(points[..., 0]), -1, 0)
    for frame, samples in zip(frames, analog.astype(np.float32), strict=True):
        writer.add_frames((frame, samples))
    writer.set_point_labels(labels)
    writer.set_analog_labels([f"a{k}" for k in range(analog.shape[1])])
    with path.open("wb") as file:
        writer.write(file)


def patched(path: Path, changes: dict[int, bytes], name: str = "patched.c3d") -> Path:
    """A copy with other bytes at some places."""
    raw = bytearray(path.read_bytes())
    for start, data in changes.items():
        raw[start : start + len(data)] = data
    out = path.parent / name
    out.write_bytes(raw)
    return out


def with_parameter(path: Path, group: str, entries: dict[str, Any]) -> Path:
    """A copy with a group of texts and 16-bit numbers behind the other parameters, whose blocks have room for them."""
    raw = bytearray(path.read_bytes())
    at = 512 * (raw[0] - 1) + 4
    while raw[at]:
        place = at + 2 + abs(struct.unpack_from("b", raw, at)[0])
        step = struct.unpack_from("<h", raw, place)[0]
        if step == 0:
            break
        at = place + step
    text = bytes([len(group), 256 - 77]) + group.encode() + struct.pack("<h", 3) + b"\0"
    for name, values in entries.items():
        text_of = isinstance(values, str)
        data = values.encode() if text_of else np.asarray(values).astype(np.int64).astype("<u2").tobytes()
        body = bytes([255 if text_of else 2, 1, len(values)]) + data + b"\0"
        text += bytes([len(name), 77]) + name.encode() + struct.pack("<h", len(body) + 2) + body
    text += b"\0\0"
    assert not any(raw[at : at + len(text)]), "no room behind the parameters"
    raw[at : at + len(text)] = text
    out = path.parent / f"with_{group}.c3d"
    out.write_bytes(raw)
    return out


def random_points(count: int, markers: int, seed: int = 0) -> Array:
    return np.random.default_rng(seed).uniform(-900, 900, (count, markers, 3))


def test_more_labels_than_one_parameter_holds(tmp_path: Path) -> None:
    """300 markers, whose names another program splits into LABELS and LABELS2."""
    rng = np.random.default_rng(1)
    tracks = {f"M{k:03d}": rng.uniform(100, 900, (4, 3)) for k in range(300)}
    write_ezc3d(tmp_path / "many.c3d", tracks, 100.0)
    assert {"LABELS", "LABELS2"} <= set(read_c3d(tmp_path / "many.c3d").parameters["POINT"])
    capture = dynid.mocap.load_capture(tmp_path / "many.c3d")
    assert capture.markers == tuple(tracks)
    np.testing.assert_allclose(capture["M299"], 1e-3 * tracks["M299"], rtol=EXACT)


def test_more_frames_than_the_header_can_count(tmp_path: Path) -> None:
    """70 000 frames: named by TRIAL, or by nothing but the size of the file, whose last block is filled up."""
    rng = np.random.default_rng(2)
    track = rng.uniform(100, 900, (70000, 3))
    write_ezc3d(tmp_path / "long.c3d", {"A": track}, 200.0)
    plain = read_c3d(tmp_path / "long.c3d")
    assert "TRIAL" not in plain.parameters and plain.points.shape == (70000, 1, 3)
    np.testing.assert_allclose(plain.points[:, 0], track, rtol=EXACT)
    fields = {"ACTUAL_START_FIELD": [1, 0], "ACTUAL_END_FIELD": [69900 % 65536, 1]}
    named = read_c3d(with_parameter(tmp_path / "long.c3d", "TRIAL", fields))
    assert named.points.shape == (69900, 1, 3) and named.first == 1
    with expect_error(DamagedFile):
        far = {"ACTUAL_START_FIELD": [1, 0], "ACTUAL_END_FIELD": [80000 % 65536, 1]}
        read_c3d(with_parameter(tmp_path / "long.c3d", "TRIAL", far))


def test_a_trial_that_begins_after_the_headers_last_frame(tmp_path: Path) -> None:
    """Frames 70001 to 70050, which 16 bits cannot tell; events count from frame 1."""
    points = random_points(50, 2)
    by_the_c3d_package(tmp_path / "x.c3d", points, ["A", "B"])
    fields = {"ACTUAL_START_FIELD": [70001 % 65536, 1], "ACTUAL_END_FIELD": [70050 % 65536, 1]}
    found = read_c3d(with_parameter(patched(tmp_path / "x.c3d", {}), "TRIAL", fields))
    assert found.first == 70001
    np.testing.assert_allclose(found.points, points, rtol=EXACT)


def test_a_trial_cut_afterwards(tmp_path: Path) -> None:
    """TRIAL still has the frames of the whole, the header those that are there."""
    points = random_points(50, 2)
    by_the_c3d_package(tmp_path / "x.c3d", points, ["A", "B"])
    fields = {"ACTUAL_START_FIELD": [1, 0], "ACTUAL_END_FIELD": [900, 0]}
    found = read_c3d(with_parameter(tmp_path / "x.c3d", "TRIAL", fields))
    np.testing.assert_allclose(found.points, points, rtol=EXACT)


@pytest.mark.parametrize("scale", [-1.0, -0.02, 0.05])
def test_scale_of_floats_and_integers(tmp_path: Path, scale: float) -> None:
    """A negative scale says floats, which are not multiplied by it; a positive one says integers, which are."""
    points = random_points(40, 3)
    points[5:9, 1] = np.nan
    by_the_c3d_package(tmp_path / "x.c3d", points, ["A", "B", "C"], scale)
    capture = dynid.mocap.load_capture(tmp_path / "x.c3d")
    assert [(g.marker, g.start, g.stop) for g in capture.gaps()] == [("B", 5, 9)]
    # That writer drops the fraction of integers.
    off = np.nanmax(np.abs(1e3 * capture.positions - points))
    assert off <= (scale if scale > 0 else 1e-4)


def test_names_of_parameters_in_small_letters(tmp_path: Path) -> None:
    """Groups and parameters are the same in any letters; labels keep theirs."""
    points = random_points(10, 2)
    by_the_c3d_package(tmp_path / "x.c3d", points, ["lAnk", "RANK"])
    raw = (tmp_path / "x.c3d").read_bytes()
    end = 512 * read_c3d(tmp_path / "x.c3d").parameters["POINT"]["DATA_START"].astype(int)[0] - 512
    head = raw[:end]
    for name in (b"POINT", b"ANALOG", b"LABELS", b"SCALE", b"UNITS", b"RATE", b"DATA_START", b"USED"):
        assert name in head
        head = head.replace(name, name.lower())
    (tmp_path / "small.c3d").write_bytes(head + raw[end:])
    capture = dynid.mocap.load_capture(tmp_path / "small.c3d")
    assert capture.markers == ("lAnk", "RANK")
    np.testing.assert_allclose(capture.positions, 1e-3 * points, rtol=EXACT)


def test_locked_parameters(tmp_path: Path) -> None:
    """A negative length of a name marks a parameter as locked."""
    by_the_c3d_package(tmp_path / "x.c3d", random_points(10, 2), ["A", "B"])
    raw = (tmp_path / "x.c3d").read_bytes()
    at = raw.index(b"LABELS") - 2
    assert raw[at] == 6
    capture = dynid.mocap.load_capture(patched(tmp_path / "x.c3d", {at: bytes([256 - 6])}))
    assert capture.markers == ("A", "B")


def test_events_that_only_the_header_has(tmp_path: Path) -> None:
    """Names of four letters and seconds; without the mark there are none, and a group of events goes first."""
    by_the_c3d_package(tmp_path / "x.c3d", random_points(100, 2), ["A", "B"])
    block = struct.pack("<hh", 12345, 2) + b"\0\0" + struct.pack("<18f", 0.25, 0.5, *[0.0] * 16)
    names = b"RHS LTO ".ljust(72, b" ")
    marked = patched(tmp_path / "x.c3d", {298: block, 396: names})
    assert dynid.mocap.load_capture(marked).events == (("RHS", pytest.approx(0.25)), ("LTO", pytest.approx(0.5)))
    assert dynid.mocap.load_capture(patched(tmp_path / "x.c3d", {300: struct.pack("<h", 2), 396: names})).events == ()
    many = patched(tmp_path / "x.c3d", {298: struct.pack("<HH", 12345, 60000)})
    assert len(dynid.mocap.load_capture(many).events) == 18
    track = {"A": np.ones((20, 3))}
    extra = {"LABELS": ("EVENT", ["Strike"]), "TIMES": ("EVENT", np.array([[0.0], [0.1]]))}
    write_ezc3d(tmp_path / "both.c3d", track, 100.0, extra=extra)
    both = patched(tmp_path / "both.c3d", {298: block, 396: names})
    assert [name for name, _ in dynid.mocap.load_capture(both).events] == ["Strike"]


def test_unsigned_analog_samples_of_sixteen_bits(tmp_path: Path) -> None:
    """Counts above 32767, with an offset in the middle of the range that a signed word cannot hold either."""
    rng = np.random.default_rng(3)
    counts = rng.integers(0, 65536, (20, 1, 2))
    by_the_c3d_package(tmp_path / "x.c3d", random_points(20, 2), ["A", "B"], 0.1, np.zeros(counts.shape))
    read = read_c3d(tmp_path / "x.c3d")
    start = 512 * (int(read.parameters["POINT"]["DATA_START"][0]) - 1)
    width = 2 * (2 * 4 + 2)
    samples = {start + k * width + 16: counts[k, 0].astype("<u2").tobytes() for k in range(20)}
    more = {"FORMAT": "UNSIGNED", "OFFSET": [32768]}
    path = with_parameter(patched(tmp_path / "x.c3d", samples), "ANALOG", more)
    values = read_c3d(path).analogs[:, 0]
    np.testing.assert_allclose(values, counts.reshape(-1) - 32768.0)


@pytest.mark.parametrize("missing", ["group", "used", "none used"])
def test_no_force_platforms(tmp_path: Path, missing: str) -> None:
    """Without the group, without its count, or with a count of zero: markers alone."""
    rng = np.random.default_rng(4)
    path = tmp_path / "x.c3d"
    wrench = np.hstack([smooth(rng, 30, 3, 5.0), smooth(rng, 30, 3, 1e3)])
    plate = Platform(2, corners_mm((0, 0)), np.array([0.0, 0.0, -40.0]), wrench, ("N",) * 3 + ("Nmm",) * 3)
    write_ezc3d(path, {"A": rng.uniform(100, 900, (30, 3))}, 100.0, 1, {}, (plate,))
    assert len(dynid.mocap.load_capture(path).plates) == 1
    raw = path.read_bytes()
    if missing == "group":
        path.write_bytes(raw.replace(b"FORCE_PLATFORM", b"FORCE_PLATFORX"))
    else:
        group = raw[raw.index(b"FORCE_PLATFORM") - 1]
        at = raw.index(bytes([4, 256 - group]) + b"USED")
        if missing == "used":
            path = patched(path, {at + 2: b"USEX"})
        else:
            value = at + 2 + 4 + 2
            _, axes = struct.unpack_from("bB", raw, value)
            path = patched(path, {value + 2 + axes: struct.pack("<h", 0)})
    capture = dynid.mocap.load_capture(path)
    assert capture.plates == () and capture.markers == ("A",)
