"""Robot files of others, written with other parameters in every format and read back by who reads them in practice."""

from __future__ import annotations

import re
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import numpy as np
import pinocchio as pin
import pytest

import dynid
from dynid import Robot
from tests.support.model_files import assert_mujocos_torques, assert_pinocchios_torques, assert_same_torques, changed

FRICTION = "viscous+coulomb"
DATA = (
    "human-forceplate-figaroh/human.urdf",
    "staubli-tx40-figaroh/tx40_mdh_modified.urdf",
    "rokae-xmate3pro/xmate3pro_kinematics.urdf",
    "ur10e-mamedov/ur10e.urdf",
    "kuka-kr300-weigand/kr300_cad.urdf",
    "kuka-lwr4-flobaroid/kuka_lwr4_identified.urdf",
    "kuka-lwr4-flobaroid/kuka_lwr4.urdf",
    "tiago-figaroh/tiago_48_schunk.urdf",
    "kinova-gen3-dynamapp/gen3.urdf",
    "kuka-lbr-med7/med7dock.urdf",
)
EXAMPLES = (
    "panda_description/urdf/panda.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "talos_data/robots/talos_full_v2.urdf",
    "tiago_description/robots/tiago.urdf",
    "solo_description/robots/solo12.urdf",
    "icub_description/robots/icub.urdf",
)
FILES = [*(f"data/{x}" for x in DATA), *(f"examples/{x}" for x in EXAMPLES)]


@pytest.fixture
def file(request: pytest.FixtureRequest) -> Path:
    """A robot file of the recordings, or of the package of example robots."""
    where, _, name = request.param.partition("/")
    path = request.getfixturevalue("data") / name if where == "data" else _example(name)
    if path is None or not path.is_file():
        pytest.skip(f"there is no {name}")
    return Path(path)


def _example(name: str) -> Path | None:
    """Where the package of example robots has put a file of it, if it is installed."""
    try:
        found = [f for f in files("example-robot-data") or () if f.as_posix().endswith(name)]
    except PackageNotFoundError:
        return None
    return Path(str(found[0].locate())) if found else None


# Large robots take long.
LARGE = ("talos_full_v2.urdf", "tiago.urdf", "icub.urdf", "tiago_48_schunk.urdf")
every_file = pytest.mark.parametrize(
    "file",
    [pytest.param(f, marks=pytest.mark.slow) if f.endswith(LARGE) else f for f in FILES],
    indirect=True,
    ids=lambda f: f.rsplit("/", 1)[1],
)


def read(path: Path) -> Robot:
    return dynid.load_robot(path, friction=FRICTION)


load = cache(read)  # for the files that stay as they are


def rigid(robot: Robot) -> Robot:
    return robot.without("*")


def kept(text: str) -> str:
    """What must not change in a URDF: all but inertial and dynamics elements of its robot, and blanks around them."""
    bare = re.sub(
        r"<inertial>.*?</inertial>|<dynamics[^>]*?/>|<dynamics[^>]*>\s*</dynamics>", "", text, flags=re.DOTALL
    )
    bare = re.sub(r"<(link|joint)([^<>]*?)\s*/>", r"<\1\2></\1>", bare)
    return re.sub(r"\s+", "", bare)


@every_file
def test_urdf_in_place(file: Path, tmp_path: Path) -> None:
    """Pinocchio reads the changed file; unchanged parameters leave it byte by byte, changed ones all but themselves."""
    robot, out = load(file), tmp_path / "out.urdf"
    dynid.export.write_urdf(robot, out, template=file, allow_infeasible=True)
    assert out.read_bytes() == file.read_bytes()
    other = changed(robot)
    assert dynid.export.write_urdf(other, out, template=file) == []
    old, new = (f.read_bytes().decode() for f in (file, out))
    assert kept(old) == kept(new)
    assert_same_torques(read(out), other)
    assert_pinocchios_torques(pin.buildModelFromUrdf(str(out)), rigid(other))


@every_file
def test_urdf_in_place_of_a_robot_that_flies(file: Path, tmp_path: Path) -> None:
    """The base link has its share then."""
    other, out = changed(load(file).with_base("floating")), tmp_path / "out.urdf"
    assert dynid.export.write_urdf(other, out, template=file) == []
    assert_same_torques(read(out).with_base("floating"), other)
    assert_pinocchios_torques(pin.buildModelFromUrdf(str(out), pin.JointModelFreeFlyer()), rigid(other))


@every_file
def test_urdf_from_the_tree(file: Path, tmp_path: Path) -> None:
    """A file of our own, for Pinocchio and for MuJoCo, which feels damping as well."""
    mujoco = pytest.importorskip("mujoco")
    other, out = changed(load(file)), tmp_path / "out.urdf"
    dynid.export.write_urdf(other, out)
    assert_same_torques(read(out), other)
    assert_pinocchios_torques(pin.buildModelFromUrdf(str(out)), rigid(other))
    assert_mujocos_torques(mujoco, mujoco.MjModel.from_xml_path(str(out)), other.without("fc_*"))


@every_file
def test_mjcf(file: Path, tmp_path: Path) -> None:
    """MuJoCo's torques with rotor inertia and damping, from the tree and once more into that file."""
    mujoco = pytest.importorskip("mujoco")
    robot = changed(load(file).with_drives(rotor_inertia=True))
    first, second = tmp_path / "first.xml", tmp_path / "second.xml"
    dynid.export.write_mjcf(robot, first)
    back = dynid.load_robot(first, friction=FRICTION, rotor_inertia=True)
    assert_same_torques(back, robot)
    assert_mujocos_torques(mujoco, mujoco.MjModel.from_xml_path(str(first)), robot.without("fc_*"))
    other = changed(back, seed=1)
    dynid.export.write_mjcf(other, second, template=first)
    assert_same_torques(dynid.load_robot(second, friction=FRICTION, rotor_inertia=True), other)
    assert_mujocos_torques(mujoco, mujoco.MjModel.from_xml_path(str(second)), other.without("fc_*"))


@every_file
def test_sdf(file: Path, tmp_path: Path) -> None:
    """From the tree, and once more into that file."""
    robot = changed(load(file))
    first, second = tmp_path / "first.sdf", tmp_path / "second.sdf"
    dynid.export.write_sdf(robot, first)
    back = read(first)
    assert_same_torques(back, robot)
    dynid.export.write_sdf(back, second, template=first)
    assert second.read_bytes() == first.read_bytes()
    other = changed(back, seed=1)
    dynid.export.write_sdf(other, second, template=first)
    assert_same_torques(read(second), other)


@every_file
def test_parameter_files(file: Path, tmp_path: Path) -> None:
    """Loaded onto the robot without drives they bring these too."""
    bare = rigid(load(file))
    robot = changed(bare.with_drives("viscous+coulomb-asymmetric+offset", rotor_inertia=True))
    for ending in ("json", "toml", "yaml"):
        assert dynid.export.write_parameters(robot, tmp_path / f"robot.{ending}") == []
        back = dynid.export.load_parameters(tmp_path / f"robot.{ending}", bare)
        np.testing.assert_allclose(back.parameters, robot.parameters, rtol=1e-13, atol=1e-14)
        assert_same_torques(back, robot)


# What MuJoCo has against these files as they come: elements given twice, static bodies that are impossible.
REFUSED = {
    "kuka_lwr4.urdf": "repeated element: 'origin'",
    "tiago_48_schunk.urdf": "positive eigenvalues",
    "tiago.urdf": "positive eigenvalues",
    "gen3.urdf": r"A \+ B >= C",
}


@every_file
def test_mujoco_reads_the_file_changed_in_place(file: Path, tmp_path: Path) -> None:
    """Without its meshes, which lie elsewhere; a file that MuJoCo refuses for what stands still in it stays refused."""
    mujoco = pytest.importorskip("mujoco")
    other, out = changed(load(file)), tmp_path / "out.urdf"
    dynid.export.write_urdf(other, out, template=file)

    def compiled(path: Path) -> object:
        shapes = r"<(visual|collision)\b.*?</\1\s*>"
        return mujoco.MjModel.from_xml_string(re.sub(shapes, "", path.read_text(encoding="utf-8"), flags=re.DOTALL))

    if file.name in REFUSED:
        for path in (file, out):
            with pytest.raises(ValueError, match=REFUSED[file.name]):
                compiled(path)
    else:
        assert_mujocos_torques(mujoco, compiled(out), other.without("fc_*"))
