"""The readers: which files they are given, made by our own writers at run time, and how they are called."""

from __future__ import annotations

import gzip
import io
import json
import lzma
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import dynid
from dynid import Robot

__all__ = ["TARGETS", "Target"]

Array = np.ndarray
Seeds = Callable[[Path], list[Path]]


@dataclass(frozen=True)
class Target:
    """A reader.

    `seeds` writes honest files into a folder; `read` is called with the path of each mutated file; `structured` names
    the mutation that keeps the grammar, "" for binary files; `beside` writes files that the mutated one refers to.
    """

    seeds: Seeds
    read: Callable[[Path], object]
    structured: str = ""
    beside: Callable[[Path], None] = lambda folder: None


@cache
def _arm() -> Robot:
    rows = [(0.0, 0.0, 0.4, 0.0), (np.pi / 2, 0.0, 0.0, 0.0), (0.0, 0.4, 0.0, 0.0)]
    robot = dynid.Robot.from_dh(rows, convention="modified", name="arm").with_drives("viscous+coulomb")
    body = dynid.inertia.inertia_from_com(2.0, [0.1, 0.02, 0.01], 0.02 * np.eye(3))
    values = iter(np.tile(body, robot.n))
    parameters = [next(values) if p.inertial else 0.5 for p in robot.layout]
    limits = {name: {"position": (-1.5, 1.5), "velocity": 3.0, "effort": 80.0} for name in robot.coordinates}
    return robot.with_parameters(parameters).with_limits(limits)


def _run(samples: int = 40) -> dict[str, Array]:
    t = np.arange(samples) / 100.0
    w = 1.0 + np.arange(3)
    return {
        "t": t,
        "q": np.sin(t[:, None] * w),
        "v": w * np.cos(t[:, None] * w),
        "torque": 10.0 + np.sin(t[:, None] - w),
    }


def _columns() -> dict[str, Array]:
    run = _run()
    out = {"t": run.pop("t")}
    return out | {f"{name}_joint{k + 1}": x[:, k] for name, x in run.items() for k in range(3)}


def _write(folder: Path, files: dict[str, bytes | str]) -> list[Path]:
    out = []
    for name, content in files.items():
        path = folder / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        out.append(path)
    return out


# -- recordings ----------------------------------------------------------------------------------------


def _load(path: Path) -> object:
    return dynid.load_recording(path, _arm(), bad_rows="split")


def _load_pieces(path: Path) -> object:
    """The file as one that is too long to be read whole."""
    from dynid.recording import open_dataset

    dataset = open_dataset(path, _arm(), longest=256, bad_rows="split")
    return [chunk for partition in dataset.partitions for chunk in dataset.chunks(partition)]


def _text(separator: str = ",") -> str:
    columns = _columns()
    rows = np.column_stack(list(columns.values()))
    return "\n".join([separator.join(columns), *(separator.join(f"{x:.9g}" for x in row) for row in rows)]) + "\n"


def _csv(folder: Path) -> list[Path]:
    states = "time,name0,name1,name2,position0,position1,position2\n" + "".join(
        f"{k / 100},joint1,joint2,joint3,{k},{2 * k},{3 * k}\n" for k in range(20)
    )
    return _write(folder, {"a.csv": _text(), "b.tsv": _text("\t"), "c.txt": "# comment\n" + _text(), "d.csv": states})


def _packed(folder: Path) -> list[Path]:
    raw = _text().encode()
    import bz2

    return _write(
        folder, {"a.csv.gz": gzip.compress(raw), "a.csv.xz": lzma.compress(raw), "a.csv.bz2": bz2.compress(raw)}
    )


def _npz(folder: Path) -> list[Path]:
    np.savez(folder / "a.npz", **_run())
    np.savez_compressed(folder / "b.npz", **_run())
    return [folder / "a.npz", folder / "b.npz"]


def _npy(folder: Path) -> list[Path]:
    fields = np.zeros(40, dtype=[("t", float), ("q", float, 3)])
    fields["t"], fields["q"] = _run()["t"], _run()["q"]
    np.save(folder / "a.npy", fields)
    return [folder / "a.npy"]


def _mat(folder: Path) -> list[Path]:
    import scipy.io

    run = _run()
    nested = {
        "t": run["t"],
        "log": {"arm": {"q": run["q"], "name": "x"}},
        "cells": np.array([[1.0, "a"]], dtype=object),
    }
    nested["log"]["parts"] = np.array([{"a": 1.0}, {"a": 2.0}])
    ints = {name: x if name == "t" else (1000 * x).astype(np.int16) for name, x in run.items()}
    scipy.io.savemat(folder / "a.mat", run)
    scipy.io.savemat(folder / "b.mat", nested, do_compression=True)
    scipy.io.savemat(folder / "c.mat", nested)
    scipy.io.savemat(folder / "d.mat", ints)
    scipy.io.savemat(folder / "e.mat", run, format="4")
    return [folder / f"{name}.mat" for name in "abcde"]


def _hdf5_bytes(**options: Any) -> bytes:
    import h5py

    stream = io.BytesIO()
    with h5py.File(stream, "w", userblock_size=options.pop("userblock", 0)) as file:
        for name, x in _run().items():
            file.create_dataset(f"log/{name}" if name == "v" else name, data=x, **options)
        file.attrs["robot"] = "arm"
    return stream.getvalue()


def _hdf5(folder: Path) -> list[Path]:
    packed = _hdf5_bytes(compression="gzip", chunks=True, shuffle=True)
    return _write(folder, {"a.h5": _hdf5_bytes(), "b.hdf5": packed})


def _mat73(folder: Path) -> list[Path]:
    raw = _hdf5_bytes(userblock=512)
    return _write(folder, {"a.mat": b"MATLAB 7.3 MAT-file, Platform: x".ljust(128) + raw[128:]})


def _parquet(folder: Path) -> list[Path]:
    import polars

    polars.DataFrame(_columns()).write_parquet(folder / "a.parquet")
    polars.DataFrame(_run()).write_parquet(folder / "b.parquet", compression="snappy")
    polars.DataFrame(_columns()).write_parquet(folder / "c.pq", compression="uncompressed")
    return [folder / "a.parquet", folder / "b.parquet", folder / "c.pq"]


def _json(folder: Path) -> list[Path]:
    columns = {name: x.tolist() for name, x in _columns().items()}
    records = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    lists = {"robot": "arm", **{name: x.tolist() for name, x in _run().items()}}
    return _write(
        folder, {"a.json": json.dumps(records), "b.json": json.dumps(lists), "c.json": json.dumps({"x": records})}
    )


_KIND = "sensor_msgs/msg/JointState"


def _messages(store: Any) -> list[tuple[int, Any]]:
    run, out = _run(), []
    for k, t in enumerate(run["t"]):
        stamp = store.types["builtin_interfaces/msg/Time"](int(t), int(1e9 * (t % 1)))
        head = store.types["std_msgs/msg/Header"]
        header = head(0, stamp, "") if "seq" in head.__dataclass_fields__ else head(stamp, "")
        names = ["joint1", "joint2", "joint3"]
        message = store.types[_KIND](header, names, run["q"][k], run["v"][k], run["torque"][k])
        out.append((int(1e9 * t) + 1, message))
    return out


def _ros1(folder: Path) -> list[Path]:
    from rosbags import rosbag1
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS1_NOETIC)
    paths = []
    for name, packing in (("a", None), ("b", "BZ2"), ("c", "LZ4")):
        paths.append(folder / f"{name}.bag")
        writer = rosbag1.Writer(paths[-1])
        if packing:
            writer.set_compression(rosbag1.Writer.CompressionFormat[packing])
        with writer:
            connection = writer.add_connection("/joint_states", _KIND, typestore=store)
            for logged, message in _messages(store):
                writer.write(connection, logged, store.serialize_ros1(message, _KIND))
    return paths


def _ros2(folder: Path, plugin: str) -> list[Path]:
    from rosbags import rosbag2
    from rosbags.typesys import Stores, get_typestore

    store = get_typestore(Stores.ROS2_HUMBLE)
    with rosbag2.Writer(folder / "bag", version=9, storage_plugin=rosbag2.StoragePlugin[plugin]) as writer:
        connection = writer.add_connection("/joint_states", _KIND, typestore=store)
        for logged, message in _messages(store):
            writer.write(connection, logged, store.serialize_cdr(message, _KIND))
    return [p for p in (folder / "bag").iterdir() if p.suffix in (".db3", ".mcap")]


def _mcap(folder: Path) -> list[Path]:
    from mcap.writer import CompressionType, Writer

    paths = _ros2(folder, "MCAP")
    for packing in (CompressionType.ZSTD, CompressionType.LZ4, CompressionType.NONE):
        paths.append(folder / f"{packing.name}.mcap")
        with paths[-1].open("wb") as stream:
            writer = Writer(stream, compression=packing)
            writer.start()
            schema = writer.register_schema("JointState", "jsonschema", b'{"type": "object"}')
            channel = writer.register_channel("/joints", "json", schema)
            run = _run()
            for k, t in enumerate(run["t"]):
                row = {"name": ["joint1", "joint2", "joint3"], "position": run["q"][k].tolist(), "t": float(t)}
                writer.add_message(channel, int(1e9 * t), json.dumps(row).encode(), int(1e9 * t))
            writer.finish()
    return paths


# -- captures ------------------------------------------------------------------------------------------


def _c3d(folder: Path) -> list[Path]:
    import c3d

    paths = []
    for name, scale in (("a", -1.0), ("b", 0.1)):
        rng = np.random.default_rng(4)
        writer = c3d.Writer(point_rate=50.0, analog_rate=100.0, point_scale=scale)
        points = np.zeros((30, 4, 5), dtype=np.float32)
        points[..., :3] = rng.uniform(-900, 900, (30, 4, 3))
        for frame, samples in zip(points, rng.normal(size=(30, 2, 2)).astype(np.float32), strict=True):
            writer.add_frames((frame, samples))
        writer.set_point_labels(["A", "B", "C", "D"])
        writer.set_analog_labels(["a", "b"])
        paths.append(folder / f"{name}.c3d")
        with paths[-1].open("wb") as file:
            writer.write(file)
    return paths


def _trc(folder: Path) -> list[Path]:
    head = "PathFileType\t4\t(X/Y/Z)\tx.trc\nDataRate\tNumFrames\tNumMarkers\tUnits\n100\t20\t2\tmm\n"
    head += "Frame#\tTime\tA\t\t\tB\t\t\n\t\tX1\tY1\tZ1\tX2\tY2\tZ2\n"
    rows = "".join(f"{k + 1}\t{k / 100}\t{k}\t2\t3\t4\t{k}\t6\n" for k in range(20))
    return _write(folder, {"a.trc": head + rows})


def _mot(folder: Path) -> list[Path]:
    names = ["time", "hip", "pelvis_tx", *(f"ground_force_{x}" for x in ("vx", "vy", "vz", "px", "py", "pz"))]
    names += [f"ground_torque_{x}" for x in "xyz"]
    rows = "".join("\t".join(f"{k / 100 if j == 0 else j + k:g}" for j in range(len(names))) + "\n" for k in range(20))
    text = f"motion\nversion=1\nnRows=20\nnColumns={len(names)}\ninDegrees=yes\nendheader\n" + "\t".join(names) + "\n"
    return _write(folder, {"a.mot": text + rows, "b.sto": text + rows})


# -- robots --------------------------------------------------------------------------------------------


def _triangles() -> bytes:
    """A tetrahedron as a binary STL file."""
    p = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], dtype="<f4")
    faces = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]
    body = b"".join(np.zeros(3, "<f4").tobytes() + p[list(f)].tobytes() + b"\0\0" for f in faces)
    return b"\0" * 80 + len(faces).to_bytes(4, "little") + body


_OBJ = "o a\nv 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
_SHAPES = (
    '<collision><geometry><mesh filename="part.stl"/></geometry></collision>'
    '<collision><origin xyz="0 0 1"/><geometry><box size="1 2 3"/></geometry></collision>'
)


def _parts(folder: Path) -> None:
    (folder / "part.stl").write_bytes(_triangles())
    (folder / "part.obj").write_text(_OBJ)
    (folder / "other.xml").write_text(
        '<mujoco><worldbody><body name="more"><geom size=".1"/></body></worldbody></mujoco>'
    )


def _urdf(folder: Path) -> list[Path]:
    dynid.export.write(_arm(), folder / "a.urdf")
    text = (folder / "a.urdf").read_text()
    shaped = text.replace("</link>", _SHAPES + "</link>")
    mimic = '<mimic joint="joint1" multiplier="2"/></joint>'.join(text.rsplit("</joint>", 1))
    dynid.export.write(dynid.load_robot("leg12"), folder / "d.urdf")
    return [folder / "a.urdf", *_write(folder, {"b.urdf": shaped, "c.urdf": mimic}), folder / "d.urdf"]


def _mjcf(folder: Path) -> list[Path]:
    dynid.export.write(_arm(), folder / "a.xml")
    dynid.export.write(dynid.load_robot("fourbar"), folder / "b.xml")
    text = (folder / "a.xml").read_text()
    start = text.index(">", text.index("<mujoco")) + 1
    asset = '<asset><mesh name="part" file="part.stl"/><mesh name="other" file="part.obj"/></asset>'
    asset += '<include file="other.xml"/>'
    geom = '<geom type="mesh" mesh="part"/><geom type="mesh" mesh="other"/><geom type="capsule" size=".1 .2"/>'
    shaped = text[:start] + asset + text[start:].replace("</body>", geom + "</body>")
    return [folder / "a.xml", folder / "b.xml", *_write(folder, {"c.xml": shaped})]


def _sdf(folder: Path) -> list[Path]:
    dynid.export.write(_arm(), folder / "a.sdf")
    dynid.export.write(dynid.load_robot("leg12"), folder / "b.sdf")
    return [folder / "a.sdf", folder / "b.sdf"]


def _toml(folder: Path) -> list[Path]:
    names = ("twolink", "tx40", "fourbar", "psm", "leg12")
    table = resources.files("dynid.robot.builtin")
    return _write(folder, {f"{name}.toml": (table / f"{name}.toml").read_bytes() for name in names})


_USD = """#usda 1.0
(
    metersPerUnit = 1
    upAxis = "Z"
)
%s
def PhysicsFixedJoint "root" {
    rel physics:body1 = </base>
}
def PhysicsRevoluteJoint "j1" {
    uniform token physics:axis = "Y"
    rel physics:body0 = </base>
    rel physics:body1 = </upper>
    point3f physics:localPos0 = (0, 0.5, 0.25)
    quatf physics:localRot0 = (1, 0, 0, 0)
    float physics:lowerLimit = -90
    float physics:upperLimit = 90
}
def PhysicsPrismaticJoint "j2" {
    uniform token physics:axis = "X"
    rel physics:body0 = </upper>
    rel physics:body1 = </lower>
    point3f physics:localPos0 = (1, 0, 0)
}
"""
_USD_BODY = """def Xform "%s" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsMassAPI"]) {
    float physics:mass = 2
    point3f physics:centerOfMass = (0.25, 0, 0.5)
    float3 physics:diagonalInertia = (0.5, 0.25, 0.625)
    quatf physics:principalAxes = (1, 0, 0, 0)
    double3 xformOp:translate = (0, 0.5, 0.25)
    uniform token[] xformOpOrder = ["xformOp:translate"]
}
"""


def _usd(folder: Path) -> list[Path]:
    """A stage as text, as a binary file and as an archive."""
    from pxr import Usd, UsdUtils

    text = _USD % "".join(_USD_BODY % name for name in ("base", "upper", "lower"))
    (path,) = _write(folder, {"a.usda": text})
    Usd.Stage.Open(str(path)).Export(str(folder / "b.usdc"))
    UsdUtils.CreateNewUsdzPackage(str(path), str(folder / "c.usdz"))
    return [path, folder / "b.usdc", folder / "c.usdz"]


def _mesh(folder: Path) -> list[Path]:
    return _write(folder, {"a.stl": _triangles(), "b.obj": _OBJ})


def _read_mesh(path: Path) -> object:
    """The inertia and the collision shape of a link with this mesh."""
    text = (
        '<robot name="r"><link name="a"/><link name="b"><collision><geometry>'
        f'<mesh filename="{path.name}"/></geometry></collision></link>'
        '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint></robot>'
    )
    file = path.with_suffix(".urdf")
    file.write_text(text)
    from dynid.robot.collision import collision_shapes

    robot = dynid.load_robot(file)
    list(collision_shapes(file, robot))
    return dynid.load_robot(file, inertia_from="collision")


def _read_mesh_by_mujoco(path: Path) -> object:
    file = path.with_suffix(".xml")
    file.write_text(
        f'<mujoco><asset><mesh name="m" file="{path.name}"/></asset><worldbody><body name="b"><joint name="j"/>'
        '<geom type="mesh" mesh="m"/></body></worldbody></mujoco>'
    )
    return dynid.load_robot(file)


# -- saved results and settings ------------------------------------------------------------------------


def _residual(folder: Path) -> list[Path]:
    from tests.support.made_residuals import made_residual

    residual = made_residual(_arm(), 40)
    residual.save(folder / "a.npz")
    return [folder / "a.npz"]


def _predictor(folder: Path) -> list[Path]:
    from tests.support.made_residuals import made_residual

    made_residual(_arm(), 40).predictor().save(folder / "a.npz")
    return [folder / "a.npz"]


def _read_predictor(path: Path) -> object:
    from dynid.residual.predictor import Predictor

    return Predictor.load(path)


def _excitation(folder: Path) -> list[Path]:
    motion = dynid.design_excitation(_arm(), 4.0, size=2, budget=1.0)
    motion.to_toml(folder / "a.toml")
    return [folder / "a.toml"]


def _read_excitation(path: Path) -> object:
    from dynid.excitation.files import read_toml

    return read_toml(path, _arm())


def _estimate(folder: Path) -> list[Path]:
    from dynid.cli.demo import synthetic_recording

    estimate = dynid.identify(_arm(), synthetic_recording(_arm(), 0, duration=4.0), method="wls")
    estimate.save(folder / "a.json")
    dynid.assess(estimate).save(folder / "b.json")
    return [folder / "a.json"]


def _read_estimate(path: Path) -> object:
    return (dynid.Estimate if path.name == "a.json" else dynid.Assessment).load(path).summary()


def _actuators(folder: Path) -> list[Path]:
    from dynid.actuators import identify_actuators
    from dynid.robot import ActuatorLaw
    from tests.support.encoder_logs import encoder_log

    encoder_log(folder / "run.csv", 2.0)
    robot = dynid.load_robot("twolink", friction="viscous+coulomb", rotor_inertia=True)
    log = dynid.load_recording(folder / "run.csv", robot)
    (folder / "run.csv").unlink()
    law = ActuatorLaw(robot.coordinates, kp=60.0, kd=4.0)
    identify_actuators(robot, log, law, unknown=("armature", "friction")).save(folder / "a.json")
    return [folder / "a.json"]


def _read_actuators(path: Path) -> object:
    from dynid.actuators import load_actuators

    return load_actuators(path).table()


_LAW = """kp = {"joint[12]" = 60.0, joint3 = 40.0}
kd = [4.0, 4.0, 2.0]
delay = 0.005
stall_torque = 20.0
rate = 1000.0
"""


def _law(folder: Path) -> list[Path]:
    return _write(folder, {"law.toml": _LAW})


def _read_law(path: Path) -> object:
    from dynid.actuators import load_law

    return load_law(path, _arm().coordinates)


def _flexible(folder: Path) -> list[Path]:
    from dynid.flexible import identify_flexible
    from tests.support.flexible_plant import recording, robot

    identify_flexible(robot(), recording()).save(folder / "a.json")
    return [folder / "a.json"]


def _read_flexible(path: Path) -> object:
    from dynid.flexible import load_flexible

    return load_flexible(path).summary()


def _friction(folder: Path) -> list[Path]:
    from dynid.friction import select_friction
    from tests.support.friction_truth import EXACT, STRIBECK, arm, record

    models = ("coulomb+viscous", "stribeck")
    select_friction(arm(), record("stribeck", STRIBECK), models=models, signals=EXACT).save(folder / "a.json")
    return [folder / "a.json"]


def _read_friction(path: Path) -> object:
    return dynid.friction.FrictionSelection.load(path).summary()


def _limits(folder: Path) -> list[Path]:
    table = {"joint*": {"velocity": 1.5, "torque": 80.0}, "joint3": {"acceleration": 4.0}}
    text = "".join(f'["{name}"]\n' + "".join(f"{k} = {x}\n" for k, x in row.items()) for name, row in table.items())
    return _write(folder, {"a.json": json.dumps(table), "b.toml": text})


def _read_limits(path: Path) -> object:
    from dynid.excitation.files import read_limits
    from dynid.excitation.limits import stated_limits

    return stated_limits(_arm(), read_limits(str(path)))


def _parameters(folder: Path) -> list[Path]:
    from dynid.export import write_parameters

    names = ["a.json", "b.toml", "c.yaml"]
    for name in names:
        write_parameters(_arm(), folder / name)
    return [folder / name for name in names]


def _read_parameters(path: Path) -> object:
    from dynid.export import load_parameters

    return load_parameters(path, _arm())


_PROJECT = """[robot]
file = "arm.toml"
friction = "viscous+coulomb"
gravity = [0.0, 0.0, -9.81]
lock = {joint1 = 0.5}
[log]
rate = 100.0
columns = {q = ["q1", "q2", "q3"], torque = "tau*"}
units = {q = "deg"}
[runs]
identify = ["run*.csv", {q = "q.csv", torque = "tau.csv"}]
validate_share = 0.25
[identify]
method = "auto"
cutoff = 10.0
decimate = [2, 5]
[loop]
controller = {kind = "cascade", rate = 1000, bandwidth = 5}
coulomb_slope = "auto"
"""


def _project(folder: Path) -> list[Path]:
    return _write(folder, {"dynid.toml": _PROJECT})


def _read_project(path: Path) -> object:
    from dynid.cli.project import load_project

    return load_project(path)


def _log_format(folder: Path) -> list[Path]:
    return _write(folder, {"log.toml": _PROJECT.partition("[log]\n")[2].partition("[runs]")[0]})


def _controller(folder: Path) -> list[Path]:
    return _write(folder, {"loop.toml": 'kind = "cascade"\nrate = 1000\nbandwidth = 5\n'})


def _read_controller(path: Path) -> object:
    from dynid.simulation.controller_files import load_controller

    return load_controller(path, _arm())


_AVOID = """distance = 0.05
[[obstacle]]
name = "table"
kind = "box"
size = [1.0, 1.0, 0.1]
position = [0.0, 0.0, -0.5]
[[shape]]
link = "link3"
kind = "capsule"
size = [0.05, 0.3]
rpy = [0.0, 1.57, 0.0]
"""


def _avoid(folder: Path) -> list[Path]:
    return _write(folder, {"avoid.toml": _AVOID})


def _read_avoid(path: Path) -> object:
    from dynid.excitation.avoid import read_avoid

    return read_avoid(path, _arm())


def _drive(folder: Path) -> list[Path]:
    table = resources.files("dynid.robot.drives_library")
    entry = next(x for x in table.iterdir() if x.name.endswith(".toml"))
    return _write(folder, {"drive.toml": entry.read_bytes()})


def _read_drive(path: Path) -> object:
    from dynid.robot.library import load_drive

    return load_drive(path)


def _tracker(folder: Path) -> list[Path]:
    """Markers and a pose beside joint positions."""
    q = _run()["q"]
    at = dynid.dynamics.frame_placement(_arm(), q, "link3")[:, :3, 3]
    out = []
    for name, header, columns in (
        ("markers", "x1,y1,z1,x2,y2,z2,place", [at, 1.1 * at, np.ones((len(q), 1))]),
        ("pose", "x,y,z,qx,qy,qz,qw,socket", [at, np.tile([0.0, 0, 0, 1, 1], (len(q), 1))]),
    ):
        rows = np.column_stack([q, *columns])
        lines = [",".join([*_arm().coordinates, header]), *(",".join(f"{x:.9g}" for x in row) for row in rows)]
        out.append(folder / f"{name}.csv")
        out[-1].write_text("\n".join(lines))
    return out


def _samples(folder: Path) -> list[Path]:
    """Samples of robot_calibration and easy_handeye2."""
    q = _run(6)["q"]
    states = [{"name": list(_arm().coordinates), "position": row.tolist()} for row in q]
    at = {"translation": {"x": 0.1, "y": 0.2, "z": 0.3}, "rotation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}}
    eye = [{"robot": at, "tracking": at, "joint_states": s} for s in states]
    seen = [
        {"header": {"frame_id": "camera"}, "point": {"x": float(row[0]), "y": float(row[1]), "z": 0.5}} for row in q
    ]
    data = [
        {"joint_states": s, "observations": [{"sensor_name": "camera", "features": [f]}]}
        for s, f in zip(states, seen, strict=True)
    ]
    out = []
    for name, content in (("eye", {"samples": eye}), ("data", {"samples": data})):
        out.append(folder / f"{name}.json")
        out[-1].write_text(json.dumps(content))
    return out


def _yaml_samples(folder: Path) -> list[Path]:
    """Samples of MoveIt, and those of the other packages, as YAML."""
    import yaml

    names, h = list(_arm().coordinates), np.eye(4).ravel().tolist()
    joints = [{"name": names, "position": row.tolist()} for row in _run(4)["q"]]
    pairs = [{"effector_wrt_world": h, "object_wrt_sensor": h, "joint_states": x} for x in joints]
    contents = {f"{p.stem}.yaml": json.loads(p.read_text()) for p in _samples(folder)} | {"pairs.yaml": pairs}
    return _write(folder, {name: yaml.safe_dump(json.loads(json.dumps(x))) for name, x in contents.items()})


def _read_geometry(path: Path) -> object:
    return dynid.geometry.read_measurements(path, _arm(), frame="link3")


TARGETS: dict[str, Target] = {
    "csv": Target(_csv, _load, "csv"),
    "csv in pieces": Target(_csv, _load_pieces, "csv"),
    "compressed csv": Target(_packed, _load),
    "npz": Target(_npz, _load),
    "npy": Target(_npy, _load),
    "mat": Target(_mat, _load),
    "mat 7.3": Target(_mat73, _load),
    "hdf5": Target(_hdf5, _load),
    "parquet": Target(_parquet, _load),
    "parquet in pieces": Target(_parquet, _load_pieces),
    "json": Target(_json, _load, "json"),
    "ros 1 bag": Target(_ros1, _load),
    "ros 2 db3": Target(lambda folder: _ros2(folder, "SQLITE3"), _load),
    "mcap": Target(_mcap, _load),
    "c3d": Target(_c3d, dynid.mocap.load_capture),
    "trc": Target(_trc, dynid.mocap.load_capture, "csv"),
    "mot": Target(_mot, dynid.mocap.load_capture, "csv"),
    "urdf": Target(_urdf, dynid.load_robot, "xml", _parts),
    "mjcf": Target(_mjcf, dynid.load_robot, "xml", _parts),
    "sdf": Target(_sdf, dynid.load_robot, "xml", _parts),
    **({} if find_spec("pxr") is None else {"usd": Target(_usd, dynid.load_robot, "lines")}),
    "toml robot": Target(_toml, dynid.load_robot, "lines"),
    "mesh": Target(_mesh, _read_mesh),
    "mesh in mjcf": Target(_mesh, _read_mesh_by_mujoco),
    "residual": Target(_residual, dynid.residual.Residual.load),
    "predictor": Target(_predictor, _read_predictor),
    "estimate": Target(_estimate, _read_estimate, "json"),
    "actuators": Target(_actuators, _read_actuators, "json"),
    "actuator law": Target(_law, _read_law, "lines"),
    "flexible joints": Target(_flexible, _read_flexible, "json"),
    "geometry table": Target(_tracker, _read_geometry, "csv"),
    "geometry samples": Target(_samples, _read_geometry, "json"),
    "geometry yaml": Target(_yaml_samples, _read_geometry, "lines"),
    "friction": Target(_friction, _read_friction, "json"),
    "limits": Target(_limits, _read_limits, "lines"),
    "excitation": Target(_excitation, _read_excitation, "lines"),
    "parameters": Target(_parameters, _read_parameters, "lines"),
    "project": Target(_project, _read_project, "lines"),
    "log format": Target(_log_format, dynid.LogFormat.from_toml, "lines"),
    "controller": Target(_controller, _read_controller, "lines"),
    "avoid": Target(_avoid, _read_avoid, "lines"),
    "drive": Target(_drive, _read_drive, "lines"),
}
