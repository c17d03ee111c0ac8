"""USD stages against the same robot in MJCF; the numbers of the stage are single precision, so they are short here."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from tests.support.random_robots import random_motion

Usd = pytest.importorskip("pxr.Usd")

INERTIAL = '<inertial mass="2" pos="0.25 0 0.5" diaginertia="0.5 0.25 0.625"/>'
MJCF = f"""<mujoco><worldbody><body name="base"><body name="upper" pos="0 0.5 0.25">
  <joint name="j1" axis="0 1 0"/>{INERTIAL}
  <body name="lower" pos="1 0 0"><joint name="j2" type="slide" axis="1 0 0"/>{INERTIAL}</body>
</body></body></worldbody></mujoco>"""


def stage(path: Path, units: float = 1.0, fixed: bool = True, reverse: bool = False) -> Any:
    """The arm of MJCF, in metres or other units; `reverse` swaps the ends of the second joint."""
    from pxr import Gf, UsdGeom, UsdPhysics

    out = Usd.Stage.CreateNew(str(path))
    UsdGeom.SetStageMetersPerUnit(out, units)
    UsdGeom.SetStageUpAxis(out, UsdGeom.Tokens.z)
    for name, at in (("base", (0, 0, 0)), ("upper", (0, 0.5, 0.25)), ("lower", (1, 0.5, 0.25))):
        body = UsdGeom.Xform.Define(out, f"/{name}")
        body.AddTranslateOp().Set(Gf.Vec3d(*(x / units for x in at)))
        UsdPhysics.RigidBodyAPI.Apply(body.GetPrim())
        mass = UsdPhysics.MassAPI.Apply(body.GetPrim())
        mass.CreateMassAttr(2.0)
        mass.CreateCenterOfMassAttr(Gf.Vec3f(0.25 / units, 0, 0.5 / units))
        mass.CreateDiagonalInertiaAttr(Gf.Vec3f(*(x / units**2 for x in (0.5, 0.25, 0.625))))
    if fixed:
        UsdPhysics.FixedJoint.Define(out, "/root").CreateBody1Rel().SetTargets(["/base"])
    for name, kind, axis, ends, at in (
        ("j1", UsdPhysics.RevoluteJoint, "Y", ("/base", "/upper"), (0, 0.5, 0.25)),
        ("j2", UsdPhysics.PrismaticJoint, "X", ("/upper", "/lower"), (1, 0, 0)),
    ):
        joint = kind.Define(out, f"/{name}")
        joint.CreateAxisAttr(axis)
        turned = reverse and name == "j2"
        for k, end in enumerate(ends):
            which = 1 - k if turned else k
            getattr(joint, f"CreateBody{which}Rel")().SetTargets([end])
            place = Gf.Vec3f(*(x / units for x in at)) if k == 0 else Gf.Vec3f(0)
            getattr(joint, f"CreateLocalPos{which}Attr")(place)
    return out


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("units", [1.0, 0.01])
def test_torques_are_those_of_the_mjcf_file(tmp_path: Path, units: float, reverse: bool) -> None:
    """In metres and centimetres; a joint whose ends are swapped moves the other way."""
    stage(tmp_path / "arm.usda", units, reverse=reverse).Save()
    (tmp_path / "arm.xml").write_text(MJCF)
    robot, same = (dynid.load_robot(tmp_path / f"arm.{x}") for x in ("usda", "xml"))
    assert (robot.coordinates, robot.base, robot.links[0].name) == (("j1", "j2"), "fixed", "base")
    q, v, a = random_motion(robot, 0)
    sign = np.array([1.0, -1.0 if reverse else 1.0])
    theirs = dynid.inverse_dynamics(same, sign * q, sign * v, sign * a) * sign
    np.testing.assert_allclose(dynid.inverse_dynamics(robot, q, v, a), theirs, rtol=1e-6, atol=1e-5)


def test_limits_floating_base_and_notes(tmp_path: Path) -> None:
    """Limits in degrees; without a joint to the world the robot floats; drives are named."""
    from pxr import UsdPhysics

    made = stage(tmp_path / "arm.usda", fixed=False)
    joint = UsdPhysics.RevoluteJoint.Get(made, "/j1")
    joint.CreateLowerLimitAttr(-90.0)
    joint.CreateUpperLimitAttr(180.0)
    UsdPhysics.DriveAPI.Apply(joint.GetPrim(), "angular")
    made.Save()
    robot = dynid.load_robot(tmp_path / "arm.usda")
    assert robot.base == "floating"
    assert robot.limits["j1"].upper == pytest.approx(np.pi)
    assert "'j1' have drives" in robot.notes[0]


def test_a_body_without_mass_is_named(tmp_path: Path) -> None:
    """The schema can leave masses to the simulator; dynid says which body lacks one."""
    from pxr import UsdPhysics

    made = stage(tmp_path / "arm.usda")
    UsdPhysics.MassAPI.Get(made, "/lower").GetMassAttr().Set(0.0)
    made.Save()
    with pytest.raises(dynid.ModelError, match="body 'lower' gives no mass"):
        dynid.load_robot(tmp_path / "arm.usda")


def test_the_module_stays_in_a_child_process(tmp_path: Path) -> None:
    """What a damaged stage does to usd-core ends that process and not this one."""
    stage(tmp_path / "arm.usda").Save()
    program = (
        "import sys, dynid; dynid.load_robot(sys.argv[1]); sys.exit(any(x.startswith('pxr') for x in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", program, str(tmp_path / "arm.usda")], check=False).returncode == 0


def test_a_stage_refers_only_to_files_of_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As every other robot file, unless the user allows more."""
    inner = tmp_path / "models" / "arm"
    inner.mkdir(parents=True)
    stage(tmp_path / "elsewhere.usda").Save()
    (inner / "arm.usda").write_text("#usda 1.0\n(subLayers = [@../../elsewhere.usda@])\n")
    with pytest.raises(dynid.ModelError, match=r"elsewhere.usda', which is outside its folder"):
        dynid.load_robot(inner / "arm.usda")
    monkeypatch.setenv("DYNID_MODEL_FOLDERS", str(tmp_path))
    assert dynid.load_robot(inner / "arm.usda").n == 2


def test_what_is_no_stage_costs_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, content in (
        ("a.usda", b"#usda 1.0\ndef {{{"),
        ("b.usdc", b"PXR-USDC" + bytes(80)),
        ("c.usdz", b"PK\3\4"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(dynid.ModelError, match=name[:1]) as caught:
            dynid.load_robot(tmp_path / name)
        assert "\n" not in str(caught.value)
    stage(tmp_path / "arm.usda").Save()
    monkeypatch.setenv("DYNID_MAX_LINKS", "2")
    with pytest.raises(dynid.ModelError, match=r"arm\.usda has 3 bodies, the limit is 2: set DYNID_MAX_LINKS"):
        dynid.load_robot(tmp_path / "arm.usda")
