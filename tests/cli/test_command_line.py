"""The command line as a user meets it; help and a mistake also in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.support.commands import dynid

URDF = """<robot name="pair">
  <link name="base"/>
  <link name="upper"><inertial><mass value="{mass}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
    </inertial></link>
  <link name="tool"><inertial><mass value="0.5"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
    </inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" velocity="2" effort="3"/></joint>
  <joint name="flange" type="fixed"><parent link="upper"/><child link="tool"/><origin xyz="0 0 0.2"/></joint>
</robot>"""


def own_process(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "dynid", *arguments], capture_output=True, text=True, check=False)


def test_help_is_there_without_a_command() -> None:
    """`dynid` alone shows what there is, as --help does."""
    asked, alone = own_process("--help"), own_process()
    assert asked.returncode == 0
    assert asked.stdout == alone.stdout + alone.stderr


def test_a_mistake_ends_a_process_with_one_line() -> None:
    """Exit code 1, one line on standard error, no traceback."""
    done = own_process("inspect", "tx4")
    assert done.returncode == 1
    assert done.stderr.startswith("dynid: ") and "did you mean tx40" in done.stderr and done.stderr.count("\n") == 1


def test_robots_lists_the_built_in_ones() -> None:
    """Names and one line each, also for machines."""
    done = dynid("robots")
    assert done.returncode == 0 and "tx40" in done.stdout
    found = set(json.loads(dynid("robots", "--json").stdout))
    arms = {"box2", "iiwa14", "puma560", "rv2sq", "twolink", "tx40", "wam7"}
    assert found == arms | {"fourbar", "leg12", "palletizer", "psm"}


def test_inspect_shows_loops_and_passive_joints() -> None:
    text = dynid("inspect", "fourbar").stdout
    assert text.count("passive") == 2 and "closed: loop " in text
    data = json.loads(dynid("inspect", "fourbar", "--json").stdout)
    assert sum(j["passive"] for j in data["joints"]) == 2 and [x["rows"] for x in data["loops"]] == [3]


def test_inspect_shows_tree_limits_parameters_and_base() -> None:
    """The page holds what a user looks for."""
    done = dynid("inspect", "tx40", "--table")
    assert done.returncode == 0, done.stderr
    page = " ".join(done.stdout.split())
    assert "87 standard parameters, 76 with an effect, 61 base parameters" in page
    assert "Izz_1 + Ia_1 + Iyy_2 + Iyy_3 + 0.07 mz_3 + 0.05185 m_3" in page
    assert "[-3.142, 3.142] rad" in page and "physically consistent" in page


def test_inspect_json_and_options_reach_the_model() -> None:
    """Every option changes what it names."""

    def counts(*options: str) -> dict[str, int]:
        done = dynid("inspect", "tx40", "--json", *options)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)["counts"]

    assert counts() == {"standard": 87, "effective": 76, "base": 61}
    assert counts("--friction", "none")["standard"] == 87 - 18
    assert counts("--no-rotor-inertia")["standard"] == 87 - 6
    assert counts("--base", "instrumented")["standard"] == 97
    assert counts("--gravity", "9.81", "0", "0")["base"] == 63
    assert counts("--channels", "joint5,joint6")["base"] < 61
    assert counts("--grouping", "recursive")["base"] == 61


def test_inspect_reports_merges_and_inconsistent_links(tmp_path: Path) -> None:
    """A negative mass loads and is flagged; a link on a fixed joint is reported with where it went."""
    file = tmp_path / "pair.urdf"
    file.write_text(URDF.format(mass=-1))
    done = dynid("inspect", str(file))
    assert done.returncode == 0, done.stderr
    assert "merged: link tool (0.5 kg) on fixed joint flange into upper" in done.stdout
    assert "not physically consistent upper: mass -0.5 kg is not positive" in done.stdout
    data = json.loads(dynid("inspect", str(file), "--json").stdout)
    assert "upper" in data["inconsistent_links"] and data["merged"][0]["into"] == "upper"
    file.write_text(URDF.format(mass=1))
    assert "physically consistent" in dynid("inspect", str(file)).stdout


def test_inspect_draws_a_figure(tmp_path: Path) -> None:
    """The SVG is well-formed, has one cell a parameter, and names the robot."""
    file = tmp_path / "robot.svg"
    assert dynid("inspect", "wam7", "--figure", str(file)).returncode == 0
    root = ET.fromstring(file.read_text())
    titles = [t.text or "" for t in root.iter("{http://www.w3.org/2000/svg}title")]
    assert sum(" = " in t for t in titles) == 119
    assert any("wam7" in (t.text or "") for t in root.iter("{http://www.w3.org/2000/svg}text"))


def test_reproduce_prints_figures_and_succeeds() -> None:
    """Published and ours side by side, exit code 0."""
    done = dynid("reproduce", "structure")
    assert done.returncode == 0, done.stderr
    assert "all within tolerance" in done.stdout and "published" in done.stdout
    figures = json.loads(dynid("reproduce", "structure", "--json").stdout)
    assert len(figures) > 300 and all(f["ok"] and f["reason"] for f in figures)


@pytest.mark.parametrize(
    ("arguments", "culprit"),
    [
        (("inspect", "tx4"), "did you mean tx40"),
        (("inspect", "nothing.urdf"), "no file 'nothing.urdf'"),
        (("inspect", "tx40", "--friction", "sticky"), "sticky"),
        (("inspect", "tx40", "--base", "hanging"), "hanging"),
        (("inspect", "tx40", "--figure", "no/such/folder/x.svg"), "no/such/folder/x.svg"),
        (("reproduce", "nonsense"), "nonsense"),
        (("reproduce", "iiwa"), "did you mean iiwa-feasibility"),
        (("identify", "tx40", "run.csv", "--friction", "viscos"), "did you mean viscous"),
        (("export", "tx40", "-o", "arm", "--to", "pyton"), "did you mean python"),
    ],
)
def test_bad_input_is_one_line_and_a_failure(arguments: tuple[str, ...], culprit: str) -> None:
    """Exit code 1, one line on standard error that names the culprit, no traceback."""
    done = dynid(*arguments)
    assert done.returncode == 1
    assert culprit in done.stderr and done.stderr.count("\n") == 1
