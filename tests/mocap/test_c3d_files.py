"""C3D files written by ezc3d and by the c3d package are read back by our own reader."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np
import pytest

import dynid
from dynid.errors import MissingFile, UnknownName
from dynid.mocap.c3d import read_c3d
from tests.support.capture_files import Platform, corners_mm, smooth, write_ezc3d
from tests.support.errors import expect_error

# Files hold 32-bit floats: 6e-8 of a value.
EXACT = 1e-6


def _tracks(rng: np.random.Generator, count: int = 60) -> dict[str, np.ndarray]:
    return {f"M{k}": 500 + smooth(rng, count, 3, 200.0) for k in range(5)}


@pytest.mark.parametrize(("unit", "factor"), [("mm", 1e-3), ("m", 1.0), ("cm", 1e-2)])
def test_markers_come_in_metres_with_their_gaps(tmp_path: Path, unit: str, factor: float) -> None:
    """Names, rate, positions to 1e-6 and unseen frames, whatever the unit of the file."""
    tracks = _tracks(np.random.default_rng(0))
    tracks["M2"][10:15] = np.nan
    write_ezc3d(tmp_path / "walk.c3d", tracks, 120.0, unit=unit)
    capture = dynid.mocap.load_capture(tmp_path / "walk.c3d")
    assert capture.markers == tuple(tracks) and capture.rate == 120.0 and capture.name == "walk"
    for name, track in tracks.items():
        np.testing.assert_allclose(capture[name], factor * track, rtol=EXACT)
    (gap,) = capture.gaps()
    assert (gap.marker, gap.start, gap.stop) == ("M2", 10, 15)
    (finding,) = (f for f in capture.findings() if "missing" in f.what)
    assert "frames 10 to 14" in finding.what and finding.how_much.startswith("5 of 60 frames")


def test_analog_channels_keep_names_units_and_rate(tmp_path: Path) -> None:
    """Several samples a frame."""
    rng = np.random.default_rng(1)
    channels = {f"emg{k}": rng.normal(size=600) for k in range(3)}
    write_ezc3d(tmp_path / "x.c3d", _tracks(rng), 100.0, 10, channels)
    capture = dynid.mocap.load_capture(tmp_path / "x.c3d")
    assert capture.analogs.names == tuple(channels) and capture.analogs.rate == 1000.0
    assert capture.analogs.units == ("V",) * 3
    for name, values in channels.items():
        np.testing.assert_allclose(capture.analogs[name], values, rtol=EXACT)


def _platforms(rng: np.random.Generator, count: int) -> tuple[Platform, ...]:
    """One plate of each type, turned and shifted, loaded with about 700 N (upwards is -z of a plate)."""
    force = np.column_stack([smooth(rng, count, 2, 20.0), -700 + smooth(rng, count, 1, 50.0)])
    moment = smooth(rng, count, 3, 3e4)
    newton = ("N",) * 3 + ("Nmm",) * 3
    pressure = smooth(rng, count, 2, 60.0)
    first = np.column_stack([force, pressure, 1e3 * smooth(rng, count, 1, 5.0)])
    eight = np.column_stack([smooth(rng, count, 4, 10.0), -175 + smooth(rng, count, 4, 20.0)])
    matrix = np.diag([2.0, 2.1, 1.9, 1.1e3, 0.9e3, 1e3]) + rng.normal(size=(6, 6))
    volts = np.column_stack([force / 2, moment / 1e3])
    return (
        Platform(1, corners_mm((0, 0)), np.zeros(3), first, ("N", "N", "N", "mm", "mm", "Nmm")),
        Platform(2, corners_mm((600, 0), angle=0.3), np.array([1.5, -2.0, -41.0]), np.hstack([force, moment]), newton),
        Platform(3, corners_mm((0, 700), angle=1.2), np.array([120.0, 200.0, -48.0]), eight, ("N",) * 8),
        Platform(4, corners_mm((600, 700), angle=-2.0), np.array([0.4, 1.0, -39.0]), volts, ("V",) * 6, matrix),
    )


def test_plates_agree_with_another_program(tmp_path: Path) -> None:
    """Force, moment and centre of pressure of types 1 to 4 against ezc3d's own computation."""
    rng = np.random.default_rng(2)
    platforms = _platforms(rng, 240)
    path = tmp_path / "plates.c3d"
    ezc3d = write_ezc3d(path, _tracks(rng), 100.0, 4, {"sync": rng.normal(size=240)}, platforms)
    capture = dynid.mocap.load_capture(path)
    other = ezc3d.c3d(str(path), extract_forceplat_data=True)["data"]["platform"]
    assert len(capture.plates) == len(other) == 4
    for kind, (plate, theirs) in enumerate(zip(capture.plates, other, strict=True), start=1):
        turn = plate.placement[:3, :3]
        force, moment = plate.wrench[:, :3] @ turn.T, plate.wrench[:, 3:] @ turn.T
        np.testing.assert_allclose(force, theirs["force"].T, rtol=EXACT, atol=1e-4)
        # Their type 1 has the moments of a force at the mirrored point, so only its pressure is compared.
        if kind > 1:
            np.testing.assert_allclose(moment, 1e-3 * theirs["moment"].T, rtol=EXACT, atol=1e-5)
            free = (1e-3 * theirs["Tz"].T @ turn)[:, 2]
            np.testing.assert_allclose(plate.free_moment(), -free, rtol=EXACT, atol=1e-5)
        np.testing.assert_allclose(
            plate.centre_of_pressure(), 1e-3 * theirs["center_of_pressure"].T, rtol=EXACT, atol=1e-8
        )
        assert plate.rate == 400.0 and plate.placement[2, 2] == pytest.approx(-1)
        np.testing.assert_allclose(plate.corners, 1e-3 * platforms[kind - 1].corners.T, atol=1e-9)


def test_a_known_load_is_found_again(tmp_path: Path) -> None:
    """A vertical and a sideways force at a known point: wrench about the laboratory's origin and free moment."""
    angle, centre, at = 0.4, np.array([0.5, -0.2]), np.array([0.55, -0.12, 0.0])
    force, free = np.array([30.0, -20.0, 800.0]), 4.0
    corners = corners_mm((500.0, -200.0), angle=angle)
    x = (corners[:, 0] - corners[:, 1]) / 460.0
    y = (corners[:, 0] - corners[:, 3]) / 500.0
    turn = np.column_stack([x, y, np.cross(x, y)])
    origin = np.array([2.0, 1.0, -40.0])
    moment_centre = np.cross(at - [*centre, 0], force) + np.array([0, 0, free])
    local_force, local_moment = turn.T @ force, turn.T @ moment_centre
    sensor = 1e3 * local_moment + np.cross(origin, local_force)
    channels = np.tile(np.concatenate([local_force, sensor]), (40, 1))
    plate = Platform(2, corners, origin, channels, ("N",) * 3 + ("Nmm",) * 3)
    write_ezc3d(tmp_path / "load.c3d", _tracks(np.random.default_rng(3), 20), 100.0, 2, {}, (plate,))
    (found,) = dynid.mocap.load_capture(tmp_path / "load.c3d").plates
    np.testing.assert_allclose(found.in_laboratory()[0, :3], force, rtol=EXACT)
    np.testing.assert_allclose(found.in_laboratory()[0, 3:], np.cross(at, force) + np.array([0, 0, free]), rtol=1e-5)
    np.testing.assert_allclose(found.centre_of_pressure()[0], at, atol=EXACT)
    assert found.free_moment()[0] == pytest.approx(free, rel=1e-5)
    (action,) = dynid.mocap.load_capture(tmp_path / "load.c3d", plates="action").plates
    np.testing.assert_allclose(action.wrench, -found.wrench)
    assert dynid.mocap.load_capture(tmp_path / "load.c3d", plates="none").plates == ()


def test_integers_and_floats_of_the_c3d_package(tmp_path: Path) -> None:
    """A second writer: frames as it stores them, with its mark for unseen points."""
    c3d = pytest.importorskip("c3d")
    rng = np.random.default_rng(4)
    writer = c3d.Writer(point_rate=50.0, analog_rate=100.0, point_scale=-1.0)
    points = np.zeros((30, 4, 5), dtype=np.float32)
    points[..., :3] = rng.uniform(-900, 900, (30, 4, 3))
    points[7:9, 1, 3] = -1
    analog = rng.normal(size=(30, 2, 2)).astype(np.float32)
    for frame, samples in zip(points, analog, strict=True):
        writer.add_frames((frame, samples))
    writer.set_point_labels(["A", "B", "C", "D"])
    writer.set_analog_labels(["a", "b"])
    with (tmp_path / "y.c3d").open("wb") as file:
        writer.write(file)
    capture = dynid.mocap.load_capture(tmp_path / "y.c3d")
    assert capture.markers == ("A", "B", "C", "D") and capture.rate == 50.0
    expected = 1e-3 * points[..., :3].astype(float)
    expected[7:9, 1] = np.nan
    np.testing.assert_allclose(capture.positions, expected, rtol=EXACT)
    np.testing.assert_allclose(capture.analogs.values, analog.transpose(0, 2, 1).reshape(60, 2), rtol=EXACT)


@pytest.mark.parametrize("processor", [84, 85, 86])
@pytest.mark.parametrize("integers", [False, True])
def test_every_processor_and_number_format(tmp_path: Path, processor: int, integers: bool) -> None:
    """A file put together byte by byte: Intel, DEC and MIPS, scaled integers and floats, unsigned analogs."""
    order = ">" if processor == 86 else "<"

    def real(values: object) -> bytes:
        plain = np.asarray(values, dtype=np.float32).ravel()
        if processor != 85:
            return plain.astype(f"{order}f4").tobytes()
        bits = (plain * 4).view(np.uint32)
        return np.column_stack([bits >> 16, bits & 0xFFFF]).astype("<u2").tobytes()

    def word(values: object) -> bytes:
        return np.asarray(values).astype(np.int64).astype(np.uint16).astype(f"{order}u2").tobytes()

    def parameter(name: str, group: int, kind: int, shape: list[int], data: bytes) -> bytes:
        body = bytes([kind & 255, len(shape), *shape]) + data + b"\0"
        return bytes([len(name), group]) + name.encode() + word([len(body) + 2]) + body

    def group(name: str, number: int) -> bytes:
        return bytes([len(name), 256 - number]) + name.encode() + word([3]) + b"\0"

    scale = 0.05 if integers else -0.05
    labels = b"LEFTRIGH"
    section = b"".join(
        [
            group("POINT", 1),
            group("ANALOG", 2),
            parameter("UNITS", 1, -1, [2], b"mm"),
            parameter("LABELS", 1, -1, [4, 2], labels),
            parameter("SCALE", 1, 4, [], real([scale])),
            parameter("RATE", 1, 4, [], real([60.0])),
            parameter("SCALE", 2, 4, [1], real([0.5])),
            parameter("OFFSET", 2, 2, [1], word([2048])),
            parameter("GEN_SCALE", 2, 4, [], real([2.0])),
            parameter("FORMAT", 2, -1, [8], b"UNSIGNED"),
            b"\0\0",
        ]
    )
    parameters = (bytes([1, 80, 1, processor]) + section).ljust(512, b"\0")
    header = bytes([2, 80]) + word([2, 2, 1, 3, 0]) + real([scale]) + word([3, 2]) + real([60.0])
    rng = np.random.default_rng(5)
    counts = rng.integers(-3000, 3000, (3, 2, 3))
    raw = np.concatenate([40000 + rng.integers(0, 20000, (3, 1)), rng.integers(0, 4096, (3, 1))], axis=1)
    data = b""
    write = word if integers else real
    for k in range(3):
        for m in range(2):
            place = counts[k, m] if integers else 0.05 * counts[k, m]
            data += write([*place, -1 if (k, m) == (1, 0) else 0])
        data += write(raw[k])
    path = tmp_path / "z.c3d"
    path.write_bytes(header.ljust(512, b"\0") + parameters + data.ljust(512, b"\0"))
    capture = dynid.mocap.load_capture(path)
    expected = 0.05e-3 * counts
    expected[1, 0] = np.nan
    assert capture.markers == ("LEFT", "RIGH") and capture.rate == 60.0
    np.testing.assert_allclose(capture.positions, expected, rtol=EXACT)
    np.testing.assert_allclose(capture.analogs.values.ravel(), (raw.ravel() - 2048.0) * 0.5 * 2.0, rtol=EXACT)


def test_compressed_files_and_the_upward_axis(tmp_path: Path) -> None:
    """A file with y up, in .gz: heights stand in z."""
    tracks = _tracks(np.random.default_rng(6))
    write_ezc3d(tmp_path / "x.c3d", tracks, 100.0)
    (tmp_path / "x.c3d.gz").write_bytes(gzip.compress((tmp_path / "x.c3d").read_bytes()))
    capture = dynid.mocap.load_capture(tmp_path / "x.c3d.gz", up="y")
    turned = dynid.mocap.load_capture(tmp_path / "x.c3d", up="x")
    np.testing.assert_allclose(capture["M0"][:, 2], 1e-3 * tracks["M0"][:, 1], rtol=EXACT)
    np.testing.assert_allclose(turned["M0"][:, 2], 1e-3 * tracks["M0"][:, 0], rtol=EXACT)
    # A rotation, not a mirror: the triple product of three markers stays.
    plain = dynid.mocap.load_capture(tmp_path / "x.c3d")
    for other in (capture, turned):
        assert np.linalg.det(other.positions[0, :3]) == pytest.approx(np.linalg.det(plain.positions[0, :3]))


def test_computed_curves_are_no_markers_and_events_have_times(tmp_path: Path) -> None:
    """Angles that a program stores among the points are left out."""
    tracks = _tracks(np.random.default_rng(7)) | {"KneeAngle": np.ones((60, 3))}
    extra = {
        "ANGLES": ("POINT", ["KneeAngle"]),
        "LABELS": ("EVENT", ["Strike"]),
        "CONTEXTS": ("EVENT", ["Left"]),
        "TIMES": ("EVENT", np.array([[0.0], [0.25]])),
    }
    write_ezc3d(tmp_path / "x.c3d", tracks, 100.0, extra=extra)
    capture = dynid.mocap.load_capture(tmp_path / "x.c3d")
    assert "KneeAngle" not in capture.markers and len(capture.markers) == 5
    assert capture.events == (("Left Strike", pytest.approx(0.25, abs=0.011)),)


def test_files_that_cannot_be_read_say_why(tmp_path: Path) -> None:
    """Not a C3D file, cut off at several places, without parameters, unknown endings: one sentence each."""
    rng = np.random.default_rng(8)
    whole = tmp_path / "whole.c3d"
    (platform,) = (p for p in _platforms(rng, 60) if p.kind == 2)
    write_ezc3d(whole, _tracks(rng), 100.0, 1, {}, (platform,))
    raw = whole.read_bytes()

    def refused(data: bytes, words: str, name: str = "bad.c3d", **options: object) -> None:
        path = tmp_path / name
        path.write_bytes(data)
        with pytest.raises(dynid.DataError, match=words) as info:
            dynid.mocap.load_capture(path, **options)  # type: ignore[arg-type]
        assert "\n" not in str(info.value)

    refused(b"hello" * 300, "is no C3D file")
    refused(b"", "is empty")
    refused(raw[:600], "cut off")
    refused(raw[:-2000], "is cut off: it announces 60 frames and holds")
    refused(raw, "ending '.xyz' is unknown", "bad.xyz")
    refused(raw.replace(b"CORNERS", b"CORNORS"), "no parameter FORCE_PLATFORM:CORNERS")
    refused(raw.replace(b"\x05\x01UNITS", b"\x05\x01UNITZ"), "no parameter POINT:UNITS")
    refused(raw[:513] + b"P" + raw[514:515] + b"\x07" + raw[516:], "processor type 7")
    with expect_error(MissingFile):
        dynid.mocap.load_capture(tmp_path / "none.c3d")
    with expect_error(UnknownName, "up"):
        dynid.mocap.load_capture(whole, up="w")  # type: ignore[arg-type]


def test_every_truncation_is_a_plain_error(tmp_path: Path) -> None:
    """Cut anywhere, the reader either says so or still has all frames; it never fails in another way."""
    write_ezc3d(tmp_path / "x.c3d", _tracks(np.random.default_rng(9), 12), 100.0)
    raw = (tmp_path / "x.c3d").read_bytes()
    whole = read_c3d(tmp_path / "x.c3d").points
    stream = io.BytesIO(raw)
    for size in range(1, len(raw), 97):
        (tmp_path / "cut.c3d").write_bytes(stream.getbuffer()[:size])
        try:
            found = read_c3d(tmp_path / "cut.c3d").points
        except dynid.DataError:
            continue
        np.testing.assert_array_equal(found, whole)


def test_damaged_bytes_are_a_plain_error_or_other_numbers(tmp_path: Path) -> None:
    """Random bytes in header and parameters never fail in another way."""
    rng = np.random.default_rng(10)
    write_ezc3d(tmp_path / "x.c3d", _tracks(rng), 100.0, 4, {"s": rng.normal(size=240)}, _platforms(rng, 240))
    raw = (tmp_path / "x.c3d").read_bytes()
    refused = 0
    for k in range(400):
        damaged = bytearray(raw)
        for _ in range(3):
            damaged[rng.integers(0, 520 if k % 2 else 3600)] = rng.integers(256)
        (tmp_path / "y.c3d").write_bytes(damaged)
        try:
            dynid.mocap.load_capture(tmp_path / "y.c3d")
        except dynid.DataError:
            refused += 1
    assert refused > 20


def test_an_exchange_of_names_in_a_file_is_reported(tmp_path: Path) -> None:
    """Written by one program, read by another: which markers, which frames; and the gap beside it."""
    rng = np.random.default_rng(11)
    path = 1000 * np.cumsum(rng.normal(size=(200, 3)), axis=0) / 500
    tracks = {f"M{k}": path + rng.uniform(-200, 200, 3) + rng.normal(size=(200, 3)) for k in range(5)}
    a = slice(80, 120)
    tracks["M1"][a], tracks["M4"][a] = tracks["M4"][a].copy(), tracks["M1"][a].copy()
    tracks["M2"][150:157] = np.nan
    write_ezc3d(tmp_path / "swap.c3d", tracks, 100.0)
    first, second = dynid.mocap.load_capture(tmp_path / "swap.c3d").findings()
    assert first.what == "the markers M1 and M4 bear each other's name in frames 80 to 119"
    assert second.joint == "M2" and second.what == "the marker is missing in frames 150 to 156"
