"""Files of an estimate say what decided each body, and are read as before."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pinocchio as pin
import pytest

import dynid
from dynid import Estimate
from dynid.export.label import label_of
from dynid.export.xmltext import marked
from tests.support.model_files import assert_mujocos_torques, assert_pinocchios_torques, assert_same_torques
from tests.support.synthetic import EXACT, arm, record

FORMATS = {"arm.urdf": "link", "arm.xml": "body", "arm.sdf": "link"}


@pytest.fixture(scope="module")
def estimate() -> Estimate:
    return dynid.identify(arm(), record(arm()), "feasible", signals=EXACT)


def bodies(estimate: Estimate) -> dict[str, str]:
    """What decided each body, by link."""
    label = label_of(estimate)
    assert label is not None and label.bodies
    return dict(label.bodies)


def comments(path: Path, tag: str) -> dict[str, str]:
    """Our comment directly inside each element with a name."""
    parser = ET.XMLParser(target=ET.TreeBuilder(insert_comments=True))
    found = {}
    for element in ET.parse(path, parser).getroot().iter(tag):
        for child in element:
            if child.tag is ET.Comment:
                found[element.get("name", "")] = (child.text or "").strip()
    return found


@pytest.mark.parametrize("name", FORMATS)
def test_every_link_is_marked_and_read_as_before(estimate: Estimate, tmp_path: Path, name: str) -> None:
    path, remarks = tmp_path / name, bodies(estimate)
    dynid.export.write(estimate, path)
    assert remarks
    assert comments(path, FORMATS[name]) == {link: f"dynid: {link}: {words}" for link, words in remarks.items()}
    plain = estimate.identified_robot.without("*")
    back = dynid.load_robot(path)
    assert_same_torques(back, plain)
    if name == "arm.urdf":
        assert_pinocchios_torques(pin.buildModelFromUrdf(str(path)), plain)
    if name == "arm.xml":
        mujoco = pytest.importorskip("mujoco")
        model = mujoco.MjModel.from_xml_path(str(path))
        model.dof_armature[:] = model.dof_damping[:] = model.dof_frictionloss[:] = 0
        assert_mujocos_torques(mujoco, model, plain)


@pytest.mark.parametrize("name", FORMATS)
def test_a_marked_template_is_marked_once(estimate: Estimate, tmp_path: Path, name: str) -> None:
    dynid.export.write(estimate, tmp_path / name)
    again = tmp_path / f"again.{name}"
    dynid.export.write(estimate, again, template=tmp_path / name)
    assert again.read_bytes() == (tmp_path / name).read_bytes()


def test_a_robot_without_an_estimate_is_not_marked(estimate: Estimate, tmp_path: Path) -> None:
    for name in FORMATS:
        dynid.export.write(estimate.identified_robot, tmp_path / name)
        assert "<!--" not in (tmp_path / name).read_text()


@pytest.mark.parametrize("name", FORMATS)
def test_a_template_does_not_lend_its_verdict(estimate: Estimate, tmp_path: Path, name: str) -> None:
    """A robot that is no estimate keeps the comments of a template only if it changes nothing in it."""
    dynid.export.write(estimate, tmp_path / name)
    robot = dynid.load_robot(tmp_path / name)
    dynid.export.write(robot, tmp_path / f"same.{name}", template=tmp_path / name)
    assert (tmp_path / f"same.{name}").read_bytes() == (tmp_path / name).read_bytes()
    heavier = robot.with_parameters(1.5 * robot.parameters)
    dynid.export.write(heavier, tmp_path / f"other.{name}", template=tmp_path / name)
    assert "verdict" in (tmp_path / name).read_text() and "dynid:" not in (tmp_path / f"other.{name}").read_text()


def test_marks_of_names_that_are_not_in_the_file_stand_first() -> None:
    text = marked(b'<robot>\n  <link name="a"/>\n</robot>', "link", {"a": "one", "b--c": "two"}).decode()
    root = ET.fromstring(text, ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
    assert [x.text for x in root.iter(ET.Comment)] == [" dynid: b- -c: two ", " dynid: a: one "]
    headed = marked(text.encode(), "link", {}, ["verdict: trusted", "---><!-- \n"]).decode()
    root = ET.fromstring(headed, ET.XMLParser(target=ET.TreeBuilder(insert_comments=True)))
    assert [x.text for x in root.iter(ET.Comment)] == [" dynid: verdict: trusted ", " dynid: - - -><!- - ? "]
    assert marked(text.encode(), "link", {}).decode().replace('<link name="a">\n  </link>', '<link name="a"/>') == (
        '<robot>\n  <link name="a"/>\n</robot>'
    )


def test_parameter_files_and_code_are_marked(estimate: Estimate, tmp_path: Path) -> None:
    remarks = bodies(estimate)
    dynid.export.write(estimate, tmp_path / "arm.yaml")
    text = (tmp_path / "arm.yaml").read_text()
    assert all(f"# {words}" in text for words in remarks.values())
    header = next(t for n, t in dynid.generate_code(estimate).files.items() if n.endswith(".h"))
    flat = re.sub(r"\s*\n \*\s+", " ", header)
    assert all(f"{link}: {words}" in flat for link, words in remarks.items())
    base = dynid.generate_code(estimate, parameters="base").files
    assert not any("decided by" in t for t in base.values())
