"""Payloads, gains, friction and fleets end with a verdict: in words, as JSON, as a page, and as an exit code."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.cli.main import app
from dynid.errors import DataError
from dynid.export.urdf import write_urdf
from tests.support.loaded_runs import GAINS, HAND, MASS, currents, torques
from tests.support.synthetic import arm

LAW = ("--friction", "viscous+coulomb+offset", "--rotor-inertia")
PLAIN = ("--cutoff", "none", "--decimate", "none")
TYPED = ("--gain", ",".join(f"{g:g}" for g in GAINS))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An arm, its torques and currents without and with a body in its hand, and a fleet of two dates."""
    place = tmp_path_factory.mktemp("verdicts")
    write_urdf(arm(), place / "arm.urdf")
    for name, loaded in (("before", False), ("loaded", True)):
        torques(loaded, 0.05, 1 + loaded).to_csv(place / f"{name}.csv")
        currents(loaded, 0.002, 3 + loaded).to_csv(place / f"{name}_currents.csv")
    robot = dynid.load_robot("twolink", friction="viscous+coulomb")
    for k, (unit, day) in enumerate((u, d) for u in "AB" for d in ("2026-03-02", "2026-03-09")):
        where = place / "fleet" / f"robot={unit}" / f"date={day}"
        where.mkdir(parents=True)
        synthetic_recording(robot, 20 + k, duration=6.0).to_csv(where / "log.csv")
    return place


PAYLOAD = ("payload", "arm.urdf", "loaded.csv", "--without", "before.csv", "--link", HAND, *LAW, *PLAIN)
WEIGHED = ("payload", "arm.urdf", "loaded_currents.csv", "--without", "before_currents.csv", "--link", HAND)
SCALED = (
    "gains",
    "arm.urdf",
    "before_currents.csv",
    "loaded_currents.csv",
    "--payload-mass",
    str(MASS),
    "--link",
    HAND,
)
COMMANDS = {
    "payload": PAYLOAD,
    "typed gains": (*WEIGHED, *TYPED, *LAW, *PLAIN),
    "gains": (*SCALED, *LAW, *PLAIN),
    "friction": (
        "friction",
        "arm.urdf",
        "before.csv",
        "--joint",
        "joint2",
        "--models",
        "coulomb+viscous",
        *LAW,
        *PLAIN,
    ),
    "fleet": ("fleet", "twolink", "fleet", "--friction", "viscous+coulomb", "--workers", "1"),
}
BELOW = {"trusted": 0, "use with care": 1, "do not use": 2}


@pytest.mark.parametrize("name", COMMANDS)
def test_the_verdict_is_in_words_json_page_and_exit_code(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    page = folder / f"{name.replace(' ', '-')}.html"
    done = CliRunner().invoke(app, [*COMMANDS[name], "--json", "--report", str(page)])
    assert done.exit_code == 0, (done.output, done.exception)
    verdict = json.loads(done.stdout)["verdict"]
    assert f'<p class="word">{verdict["verdict"].capitalize()}</p>' in page.read_text(encoding="utf-8")
    assert verdict["reasons"] and verdict["checks"]
    for asked, worst in (("trusted", 0), ("care", 1)):
        told = CliRunner().invoke(app, [*COMMANDS[name], "--require", asked])
        assert told.exit_code == (3 if BELOW[verdict["verdict"]] > worst else 0), told.output
        assert f"verdict: {verdict['verdict']}" in told.stdout
    if name == "payload":
        assert verdict["verdict"] == "trusted", verdict["reasons"]
    if name == "typed gains":
        assert verdict["verdict"] == "use with care"
        assert verdict["reasons"][0].startswith("the gains of the drives decide the mass")
    if name in ("friction", "fleet"):
        assert verdict["verdict"] == "use with care", verdict["reasons"]


def test_a_stated_gain_uncertainty_is_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With gains known to 1 % the payload is trusted; with 10 % even torques that were measured are not."""
    monkeypatch.chdir(folder)

    def found(name: str, std: str) -> dict[str, dict[str, str]]:
        done = CliRunner().invoke(app, [*COMMANDS[name], "--gain-std", std, "--json"])
        assert done.exit_code == 0, done.output
        out: dict[str, dict[str, str]] = json.loads(done.stdout)
        return out

    assert found("typed gains", "0.01")["verdict"]["verdict"] == "trusted"
    assert found("payload", "0.1")["verdict"]["verdict"] == "use with care"


@pytest.mark.parametrize("name", ["payload", "gains", "friction", "fleet"])
def test_wrong_options_are_refused_before_the_work(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    for given, words in ((("--require", "perfect"), "trusted or care"), (("--report", "page.pdf"), ".html")):
        done = CliRunner().invoke(app, [*COMMANDS[name], *given])
        assert isinstance(done.exception, DataError) and words in str(done.exception)
