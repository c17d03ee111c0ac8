"""Inertia from shapes of URDF and SDF files: against closed forms, and against MuJoCo's integration of a mesh."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.errors import ModelError
from dynid.robot.inertia import inertia_from_com, move_inertia
from dynid.robot.spatial import placement, rpy_rotation
from tests.support.errors import Error, expect_error
from tests.support.robot_files import Load

BOX = '<box size="0.2 0.4 0.6"/>'
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 2, 0], [0, 0, 3.0]])
FACES = [(0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3)]


def urdf(shape: str, origin: str = "", inertial: str = "") -> str:
    solid = "".join(f"<{kind}>{origin}<geometry>{shape}</geometry></{kind}>" for kind in ("collision", "visual"))
    return (
        f'<robot name="r"><link name="a"/><link name="b">{inertial}{solid}</link><joint name="j" type="continuous">'
        '<parent link="a"/><child link="b"/><axis xyz="0 1 0"/></joint></robot>'
    )


def write_mesh(path: Path, faces: list[tuple[int, ...]] = FACES) -> None:
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS] + [f"f {a + 1} {b + 1} {c + 1}" for a, b, c in faces]
    path.write_text("\n".join(lines))


def test_a_box_at_its_origin(load: Load) -> None:
    """Density times volume, the tensor of a cuboid, moved by the origin of the shape."""
    origin = '<origin xyz="0.1 0.2 0.3" rpy="0.3 0.2 0.1"/>'
    robot = load(urdf(BOX, origin), ".urdf", inertia_from="collision", density=500)
    mass = 500 * 0.2 * 0.4 * 0.6
    tensor = mass / 12 * np.diag([0.4**2 + 0.6**2, 0.2**2 + 0.6**2, 0.2**2 + 0.4**2])
    place = placement(rpy_rotation(0.3, 0.2, 0.1), [0.1, 0.2, 0.3])
    theirs = move_inertia(inertia_from_com(mass, np.zeros(3), tensor), place)
    np.testing.assert_allclose(robot.links[1].inertia, theirs, atol=1e-13)
    assert "'b'" in robot.notes[0] and "collision" in robot.notes[0]


@pytest.mark.parametrize("shape", ['<sphere radius="0.3"/>', '<cylinder radius="0.2" length="0.5"/>', BOX])
def test_the_shape_mass_scales_the_density(load: Load, shape: str) -> None:
    """All links with inertia from shapes weigh what was asked for, with the shape of their tensors unchanged."""
    heavy = load(urdf(shape), ".urdf", inertia_from="visual", shape_mass=7.0).links[1].inertia
    water = load(urdf(shape), ".urdf", inertia_from="visual").links[1].inertia
    assert heavy[0] == pytest.approx(7.0)
    np.testing.assert_allclose(heavy / heavy[0], water / water[0])


def test_a_given_inertia_stays(load: Load) -> None:
    """Shapes count only for links without an inertial element."""
    inertial = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>'
    assert load(urdf(BOX, inertial=inertial), ".urdf").links[1].inertia[0] == 2
    with expect_error(ModelError, "inertia_from", code="missing_data"):
        load(urdf(BOX, inertial=inertial), ".urdf", inertia_from="collision")


def test_a_mesh_is_integrated_as_by_mujoco(load: Load, tmp_path: Path) -> None:
    """A tetrahedron, scaled, turned inside out or not, in URDF and in MuJoCo."""
    mujoco = pytest.importorskip("mujoco")
    write_mesh(tmp_path / "tetra.obj")
    world = '<body><joint/><geom type="mesh" mesh="m"/></body>'
    asset = f'<asset><mesh name="m" file="{tmp_path}/tetra.obj" scale="0.1 0.2 0.3"/></asset>'
    model = mujoco.MjModel.from_xml_string(f"<mujoco>{asset}<worldbody>{world}</worldbody></mujoco>")
    for scale in ("0.1 0.2 0.3", "-0.1 0.2 0.3"):
        robot = load(urdf(f'<mesh filename="tetra.obj" scale="{scale}"/>'), ".urdf", inertia_from="collision")
        mass, moment = robot.links[1].inertia[0], robot.links[1].inertia[1:4]
        assert mass == pytest.approx(model.body_mass[1], rel=1e-6)
        np.testing.assert_allclose(np.abs(moment / mass), model.body_ipos[1], rtol=1e-6)
        assert not dynid.inertia.inertia_violations(robot.links[1].inertia)


def test_sdf_automatic_inertia(load: Load) -> None:
    """auto="true" of SDF takes the collision shapes and the density of the element, without being asked."""
    shape = (
        "<collision name='c'><pose>0 0 1 0 0 0</pose><geometry><box><size>0.2 0.4 0.6</size></box></geometry>"
        "</collision>"
    )
    own = '<inertial auto="true"><density>500</density></inertial>'
    text = (
        f'<sdf version="1.11"><model name="m"><link name="a"/><link name="b">{own}{shape}</link>'
        '<joint name="j" type="revolute"><parent>a</parent><child>b</child>'
        "<axis><xyz>0 1 0</xyz></axis></joint></model></sdf>"
    )
    robot = load(text, ".sdf")
    np.testing.assert_allclose(robot.links[1].inertia[:4], [24, 0, 0, 24])
    assert robot.links[0].inertia[0] == 1  # the default of SDF
    plain = text.replace(own, "")
    assert load(plain, ".sdf", inertia_from="collision", density=250).links[1].inertia[0] == pytest.approx(12)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"inertia_from": "collision", "density": -1.0}, (ModelError, "", "invalid_value")),
        ({"inertia_from": "collision", "shape_mass": 0.0}, (ModelError, "", "invalid_value")),
        ({"inertia_from": "collision", "shape_mass": 1.0, "density": 2.0}, (ModelError, "density", "conflicting")),
        ({"inertia_from": "looks"}, (ModelError, "inertia_from", "unknown_name")),
        ({"density": 5.0}, (ModelError, "inertia_from", "missing_argument")),
    ],
)
def test_wrong_options_are_one_sentence(load: Load, options: dict[str, Any], error: Error) -> None:
    """Each names the option."""
    with expect_error(*error):
        load(urdf(BOX), ".urdf", **options)


def test_meshes_that_give_no_volume_are_named(load: Load, tmp_path: Path) -> None:
    """A missing file, a surface with a hole, a file that is no mesh."""
    for name, error in (
        ("no.obj", (ModelError, "", "file_missing")),
        ("open.obj", (ModelError, "")),
        ("text.obj", (ModelError, "", "file_damaged")),
    ):
        if name == "open.obj":
            write_mesh(tmp_path / name, FACES[:3])
        elif name == "text.obj":
            (tmp_path / name).write_text("hello")
        with expect_error(*error):
            load(urdf(f'<mesh filename="{name}"/>'), ".urdf", inertia_from="collision")
