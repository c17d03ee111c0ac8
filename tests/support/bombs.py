"""Files that ask for more than they give: packed zeros, deep nesting, many columns and joints, includes in circles."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

MIB = 1 << 20
_JOINT = '<joint name="j{0}" type="continuous"><parent link="l{0}"/><child link="l{1}"/></joint>'


def _zeros(path: Path, packed: bytes, count: int) -> Path:
    """The same packed piece of 16 MiB again and again: gzip, xz and bzip2 files may be concatenated."""
    path.write_bytes(packed * count)
    return path


def gz(folder: Path) -> Path:
    return _zeros(folder / "run.csv.gz", gzip.compress(bytes(16 * MIB), 9), 512)


def xz(folder: Path) -> Path:
    return _zeros(folder / "run.csv.xz", lzma.compress(bytes(16 * MIB), preset=0), 512)


def bzip2(folder: Path) -> Path:
    return _zeros(folder / "run.csv.bz2", bz2.compress(bytes(16 * MIB), 9), 512)


def npz(folder: Path) -> Path:
    """8 GiB of zeros as one array."""
    path, count = folder / "run.npz", 512
    head = io.BytesIO()
    import numpy as np

    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (count * 2 * MIB,)})
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("q.npy", "w", force_zip64=True) as out,
    ):
        out.write(head.getvalue())
        for _ in range(count // 8):
            out.write(bytes(16 * MIB))
    return path


def mat(folder: Path) -> Path:
    packer = zlib.compressobj(9)
    packed = b"".join(packer.compress(bytes(16 * MIB)) for _ in range(32)) + packer.flush()
    head = b"MATLAB 5.0 MAT-file".ljust(124) + struct.pack("<H", 0x0100) + b"IM"
    (folder / "run.mat").write_bytes(head + struct.pack("<II", 15, len(packed)) + packed)
    return folder / "run.mat"


def hdf5(folder: Path) -> Path:
    """A data set of 8 TiB of which nothing is stored."""
    import h5py

    with h5py.File(folder / "run.h5", "w") as file:
        file.create_dataset("q", (1 << 40,), "f8", chunks=(MIB,), compression="gzip")
    return folder / "run.h5"


def parquet(folder: Path) -> Path:
    """A billion equal numbers in row groups."""
    import polars

    frame = polars.DataFrame({"q": polars.repeat(0.0, 100_000_000, eager=True)})
    frame.write_parquet(folder / "run.parquet", row_group_size=100_000_000)
    return folder / "run.parquet"


def zstd(folder: Path) -> Path:
    """An MCAP file with one chunk, 8 GiB of zeros."""
    import zstandard

    def record(kind: int, data: bytes) -> bytes:
        return bytes([kind]) + struct.pack("<Q", len(data)) + data

    size = 8192 * MIB
    packer = zstandard.ZstdCompressor().compressobj(size=size)
    packed = b"".join(packer.compress(bytes(16 * MIB)) for _ in range(size // (16 * MIB))) + packer.flush()
    chunk = struct.pack("<QQQII", 0, 0, size, 0, 4) + b"zstd" + struct.pack("<Q", len(packed)) + packed
    records = record(1, struct.pack("<II", 0, 0)) + record(6, chunk) + record(15, bytes(4)) + record(2, bytes(20))
    magic = b"\x89MCAP0\r\n"
    (folder / "run.mcap").write_bytes(magic + records + magic)
    return folder / "run.mcap"


def columns(folder: Path) -> Path:
    """A million columns."""
    rows = [",".join(f"c{k}" for k in range(10**6)), *[",".join(["1"] * 10**6)] * 3]
    (folder / "run.csv").write_text("\n".join(rows) + "\n")
    return folder / "run.csv"


def entities(folder: Path) -> Path:
    """A billion laughs."""
    words = "".join(f'<!ENTITY x{k} "{f"&x{k - 1};" * 10 if k else "ha"}">' for k in range(10))
    (folder / "a.urdf").write_text(f'<!DOCTYPE r [{words}]><robot name="&x9;"><link name="a"/></robot>')
    return folder / "a.urdf"


def external(folder: Path) -> Path:
    """An entity with the content of another file."""
    (folder / "a.urdf").write_text(
        '<!DOCTYPE r [<!ENTITY x SYSTEM "file:///etc/passwd">]><robot name="&x;"><link name="a"/></robot>'
    )
    return folder / "a.urdf"


def deep(folder: Path) -> Path:
    (folder / "a.urdf").write_text('<robot name="r">' + "<a>" * 10**6 + "</a>" * 10**6 + "</robot>")
    return folder / "a.urdf"


def deep_mjcf(folder: Path) -> Path:
    count = 10**5
    (folder / "a.xml").write_text(
        "<mujoco><worldbody>" + "<body>" * count + "</body>" * count + "</worldbody></mujoco>"
    )
    return folder / "a.xml"


def joints(folder: Path) -> Path:
    """A hundred thousand joints."""
    count = 10**5
    links = "".join(f'<link name="l{k}"/>' for k in range(count + 1))
    (folder / "a.urdf").write_text(
        f'<robot name="r">{links}{"".join(_JOINT.format(k, k + 1) for k in range(count))}</robot>'
    )
    return folder / "a.urdf"


def replicas(folder: Path) -> Path:
    """A macro within a macro that makes a billion bodies."""
    inner = '<replicate count="100000" offset="1 0 0"><body><joint/><geom size=".1"/></body></replicate>'
    text = f'<mujoco><worldbody><replicate count="10000" offset="0 1 0">{inner}</replicate></worldbody></mujoco>'
    (folder / "a.xml").write_text(text)
    return folder / "a.xml"


def circle(folder: Path) -> Path:
    (folder / "a.xml").write_text('<mujoco><include file="b.xml"/></mujoco>')
    (folder / "b.xml").write_text('<mujoco><include file="a.xml"/></mujoco>')
    return folder / "a.xml"


def chain(folder: Path) -> Path:
    """Five thousand files that include one another."""
    for k in range(5000):
        (folder / f"a{k}.xml").write_text(f'<mujoco><include file="a{k + 1}.xml"/></mujoco>')
    return folder / "a0.xml"


def traversal(folder: Path) -> Path:
    (folder / "a.xml").write_text('<mujoco><include file="../../../../../../../../etc/passwd"/></mujoco>')
    return folder / "a.xml"


def traversal_by_mesh(folder: Path) -> Path:
    mesh = '<asset><mesh name="m" file="/dev/zero"/></asset>'
    body = '<worldbody><body><joint/><geom type="mesh" mesh="m"/></body></worldbody>'
    (folder / "a.xml").write_text(f"<mujoco>{mesh}{body}</mujoco>")
    return folder / "a.xml"


def nested_toml(folder: Path) -> Path:
    (folder / "a.toml").write_text('name = "r"\nconvention = "modified"\njoint = ' + "[" * 10**5)
    return folder / "a.toml"


def digits(folder: Path) -> Path:
    (folder / "a.toml").write_text('name = "r"\nconvention = "modified"\ngravity = [0, 0, ' + "9" * 10**6 + "]\n")
    return folder / "a.toml"


def nested_json(folder: Path) -> Path:
    (folder / "run.json").write_text("[" * 10**6)
    return folder / "run.json"


# Each file with words of the sentence that refuses it.
BOMBS: dict[str, tuple[Callable[[Path], Path], str]] = {
    "gz": (gz, "run.csv.gz has content more than 100 times its own size"),
    "xz": (xz, "run.csv.xz has content more than 100 times its own size"),
    "bz2": (bzip2, "run.csv.bz2 has content more than 100 times its own size"),
    "npz": (npz, "run.npz has content more than 100 times its own size"),
    "mat": (mat, "run.mat has content more than 100 times its own size"),
    "hdf5": (hdf5, "run.h5 has more than"),
    "parquet": (parquet, "run.parquet has content more than 100 times its own size"),
    "zstd": (zstd, "run.mcap needs more than"),
    "columns": (columns, "run.csv has 1000000 columns, the limit is 20000"),
    "entities": (entities, "declares the entity 'x0'"),
    "external entity": (external, "declares the entity 'x'"),
    "deep xml": (deep, "nested more than 400 deep"),
    "deep mjcf": (deep_mjcf, "nested more than 400 deep"),
    "joints": (joints, "has 100001 links, the limit is 10000"),
    "replicas": (replicas, "more than 10000 bodies"),
    "circle of includes": (circle, "'a.xml' is included twice"),
    "chain of includes": (chain, "nested more than 400 deep"),
    "path traversal": (traversal, "outside its folder"),
    "path traversal by a mesh": (traversal_by_mesh, "outside its folder"),
    "nested toml": (nested_toml, "not a valid TOML file"),
    "digits": (digits, "too many digits"),
    "nested json": (nested_json, "nested too deeply"),
}
# Those that take longer than a second to make.
LARGE = ("gz", "xz", "bz2", "npz", "mat", "parquet", "zstd", "columns", "joints", "chain of includes", "deep xml")
