"""What a shell completes, and what is suggested for words that are misspelt."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer

import dynid
import dynid.montecarlo
from dynid.cli import complete
from dynid.codegen.generate import generate_code
from dynid.errors import did_you_mean
from dynid.excitation.criteria import CRITERIA, SUMS
from dynid.excitation.design import FAMILIES, make_family
from dynid.friction.models import friction_model
from dynid.identification.estimators.method import described
from dynid.identification.estimators.registry import own_methods
from dynid.robot.effects import EFFECTS
from dynid.simulation.integrators import integration_method
from studies.reproduce.registry import find_study, studies


def test_words_for_the_shell_are_those_of_the_registries() -> None:
    """They are written down twice, or read from the text of files, as a shell does not wait for the registries."""
    assert list(described()) == list(own_methods())
    for name, values in described().items():
        assert {x: getattr(own_methods()[name], x) for x in values} == values
    words = complete.methods_help()
    assert all(re.search(rf"\b{name}\b", words) for name in own_methods())
    assert tuple(studies()) == complete.STUDIES
    assert tuple(FAMILIES) == complete.FAMILIES
    # A task, for criterion "torque", has no option.
    assert (*CRITERIA, *SUMS, "sigma") == complete.CRITERIA
    assert tuple(EFFECTS) == complete.EFFECTS


def test_robots_are_completed_by_name_or_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Built-in names first, then files of robots; other files and folders that are not there give nothing."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arms").mkdir()
    for name in ("wagon.urdf", "wagon.csv", "arms/left.xml", "arms/left.toml", "arms/notes.txt"):
        (tmp_path / name).touch()
    assert complete.robots("") == [*dynid.builtin_robots(), "wagon.urdf"]
    assert complete.robots("wa") == ["wam7", "wagon.urdf"]
    assert complete.robots("arms/l") == ["arms/left.toml", "arms/left.xml"]
    assert complete.robots(f"{tmp_path}/arms/left.x") == [f"{tmp_path}/arms/left.xml"]
    assert complete.robots("nowhere/x") == []


def test_methods_studies_families_and_friction() -> None:
    """By their beginnings; of words that are joined, the last one."""
    assert dict(complete.methods("pc")) == {n: own_methods()[n].sentence for n in ("pc-didim", "pc-iv")}
    assert complete.studies("human") == ["human-regressor", "human-forceplate"]
    assert complete.families("q") == ["quintic"] and complete.families("zig") == []
    assert complete.friction("viscous+co") == ["viscous+coulomb", "viscous+coulomb-asymmetric"]
    assert "viscous+viscous" not in complete.friction("viscous+")
    assert complete.method_lists("wls,ri") == ["wls,ridge"]


def test_links_of_the_robot_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every kind of file that is text, of the project's robot where none is named, and none where none is found."""
    monkeypatch.chdir(tmp_path)
    Path("arm.urdf").write_text('<robot><link name="base"/><link\n  name="upper_arm"></link></robot>')
    Path("arm.xml").write_text("<mujoco><body pos='0 0 1' name='upper_leg'/></mujoco>")
    Path("arm.toml").write_text('[[joint]]\nlink = "slide"\n[[joint]]\n')
    Path("bad.toml").write_text("= =")

    def found(robot: str, start: str) -> list[str]:
        asked = typer.Context(typer.main.get_command(typer.Typer(callback=lambda: None)))
        asked.args = [robot, "run.csv"]
        return complete.link_masses(asked, start)

    assert found("arm.urdf", "") == ["base=", "upper_arm="] and found("arm.urdf", "up") == ["upper_arm="]
    assert found("arm.xml", "up") == ["upper_leg="] and found("arm.toml", "") == ["slide=", "link2="]
    assert found("tx40", "link6") == ["link6="]
    assert found("bad.toml", "") == found("gone.urdf", "") == found("nobody", "") == []
    Path("dynid.toml").write_text('[robot]\nfile = "arm.xml"\n')
    assert found("run.csv", "upper") == ["upper_leg="]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("dynid identify tx", ["tx40"]),
        ("dynid inspect pu", ["puma560"]),
        ("dynid identify tx40 run.csv --method pc-d", ["pc-didim"]),
        ("dynid reproduce iiwa", ["iiwa-feasibility"]),
        ("dynid excite tx40 --family b", ["b-spline"]),
        ("dynid ex", ["export", "excite"]),
        ("dynid identify tx40 run.csv --link-mass link3", ["link3="]),
    ],
)
def test_a_shell_gets_them_fast(line: str, words: list[str]) -> None:
    """Asked as bash asks, without loading what takes its time."""
    asked = {"_DYNID_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    heavy = "('numba', 'scipy', 'polars', 'pinocchio')"
    code = (
        "import sys, atexit\n"
        f"atexit.register(lambda: print([m for m in {heavy} if m in sys.modules], file=sys.stderr))\n"
        "sys.argv[0] = 'dynid'\nfrom dynid.cli.main import main\nmain()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=os.environ | asked)
    assert done.stdout.split() == words, done.stderr
    assert done.stderr.strip() == "[]"


def test_the_closest_words_are_suggested() -> None:
    """At most three; none where none is close."""
    assert did_you_mean("wsl", ["ols", "wls", "ridge"]) == "; did you mean wls?"
    assert did_you_mean("Ridg", ["ols", "wls", "ridge"]) == "; did you mean ridge?"
    assert did_you_mean("magic", ["ols", "wls", "ridge"]) == ""
    assert did_you_mean("abcd", ["abce", "abcf", "abcg", "abch"]).count(" or ") == 2


def test_unknown_words_come_with_suggestions() -> None:
    """Methods, studies, friction, functions, families and integrators, beside the list of all."""
    robot = dynid.load_robot("twolink")

    def refused(words: str, action: object, *given: object, **more: object) -> None:
        with pytest.raises(dynid.DynidError) as caught:
            action(*given, **more)  # type: ignore[operator]
        assert str(caught.value).endswith(f"; did you mean {words}?")

    refused("tx40", dynid.load_robot, "tx4")
    refused("viscous", dynid.load_robot, "tx40", friction="viscose")
    refused("stribeck or stribeck-shaped", friction_model, "stribek")
    refused("structure", find_study, "structures")
    refused("feasible", dynid.montecarlo.Estimator, "feasable")
    refused("mass_matrix", generate_code, robot, ["massmatrix"])
    refused("b-spline", make_family, "bspline", 10.0, 5)
    refused("implicit or semi-implicit", integration_method, "impicit")
