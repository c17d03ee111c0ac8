"""Payloads of known mass, centre and inertia are found again, and what the motion does not show is said."""

from __future__ import annotations

import io
import json
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynid
import dynid.robot
from dynid.cli.main import main
from dynid.errors import (
    ConflictingArguments,
    InvalidValue,
    Mismatch,
    MissingArgument,
    ModelError,
    NotApplicable,
    NotIdentifiable,
    UnknownName,
)
from dynid.export.urdf import write_urdf
from dynid.feasibility.body_fit import fit_body, point_mass
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from tests.support.errors import Error, expect_error
from tests.support.loaded_runs import BODY, CENTRE, HAND, MASS, torques
from tests.support.saved_fields import survived
from tests.support.synthetic import EXACT, arm, record


def weigh(noise: float = 0.0, seed: int = 0, **options: object) -> dynid.calibration.Payload:
    given = {"unloaded": torques(False, noise, seed), "link": HAND, "signals": EXACT} | options
    return dynid.calibration.identify_payload(arm(), torques(True, noise, seed + 100), **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("feasible", [True, False])
@pytest.mark.parametrize("known", ["runs", "estimate", "robot"])
def test_without_noise_all_ten_numbers_are_exact(known: str, feasible: bool, tmp_path: Path) -> None:
    """However the arm is known, and whether or not only possible bodies count: this one is inside the cone."""
    before = torques(False)
    model = {"runs": None, "estimate": dynid.identify(arm(), before, "wls", signals=EXACT), "robot": arm()}[known]
    found = weigh(unloaded=before if known == "runs" else None, model=model, feasible=feasible)
    # Rounding of torques of 50 N m over a condition of a few hundred.
    assert np.abs(found.inertial - BODY).max() < 1e-9
    assert found.mass == pytest.approx(MASS) and np.allclose(found.centre, CENTRE)
    assert all(found.shown)
    again = survived(found, tmp_path)
    assert again.summary() == found.summary() and again.mass_sources == found.mass_sources


@pytest.mark.parametrize("known", ["runs", "estimate"])
def test_deviations_are_those_of_the_errors(known: str) -> None:
    """Over twelve recordings the errors are as large as the covariance says, mass and centre together."""
    scores = []
    for seed in range(12):
        before = torques(False, 0.1, seed)
        model = dynid.identify(arm(), before, "wls", signals=EXACT) if known == "estimate" else None
        given = {"unloaded": None if model else before, "model": model}
        found = weigh(0.1, seed, feasible=False, **given)
        scores.append((found.inertial - BODY) / found.std)
    # Root mean square of 120 numbers, correlated within a run: one within a fifth or so.
    assert 0.75 < np.sqrt(np.mean(np.square(scores))) < 1.3
    # The standard deviations of the arm have 19 degrees of freedom: tails are heavier than normal ones.
    assert np.abs(scores).max() < 5.5


def test_a_noisy_payload_lies_within_three_deviations_and_is_possible() -> None:
    found = weigh(0.1, 4)
    assert np.all(np.abs(found.inertial - BODY) < 3 * found.std)
    assert not dynid.inertia.inertia_violations(found.inertial)
    assert np.all(np.abs(found.centre - CENTRE) < 3 * found.centre_std)
    # Stretches of a fifth of the data spread by about the root of five more than the whole.
    assert found.mass_std < found.repeatability[0] < 6 * found.mass_std
    assert found.parts.shape == (5, 10)


def test_possible_bodies_only_where_plain_least_squares_gives_an_impossible_one() -> None:
    """A point mass sits on the boundary of the cone: noise throws plain estimates out of it."""
    rng = np.random.default_rng(5)
    clean = record(arm().with_payload(HAND, point_mass(MASS, CENTRE)), (2, 3))
    runs = tuple(replace(x, torque=x.torque + 0.3 * rng.normal(size=x.q.shape)) for x in clean.runs)
    given = {"unloaded": torques(False, 0.3, 1), "link": HAND, "signals": EXACT}
    plain = dynid.calibration.identify_payload(arm(), Recording(clean.joints, runs), feasible=False, **given)  # type: ignore[arg-type]
    possible = dynid.calibration.identify_payload(arm(), Recording(clean.joints, runs), **given)  # type: ignore[arg-type]
    assert dynid.inertia.inertia_violations(plain.inertial)
    assert not dynid.inertia.inertia_violations(possible.inertial)
    assert any("active constraints" in note for note in possible.notes)
    assert abs(possible.mass - MASS) < 3 * possible.mass_std


def test_point_masses_are_found_where_they_are() -> None:
    robot = arm().with_payload(HAND, point_mass(0.7, np.array([0.2, -0.1, 0.08])))
    loaded = record(robot, (2, 3))
    given = {"link": HAND, "model": arm(), "signals": EXACT}
    found = dynid.calibration.identify_payload(arm(), loaded, form="mass-centre", **given)  # type: ignore[arg-type]
    assert found.mass == pytest.approx(0.7, rel=1e-7)
    assert np.allclose(found.centre, [0.2, -0.1, 0.08], atol=1e-7)
    alone = dynid.calibration.identify_payload(arm(), loaded, form="mass", centre=[0.2, -0.1, 0.08], **given)  # type: ignore[arg-type]
    assert alone.mass == pytest.approx(0.7, rel=1e-9)


def test_friction_that_changed_between_the_runs_may_be_left_free() -> None:
    """Offsets that warmed up by 2 N m bias the payload unless they are named."""
    loaded = torques(True, 0.05, 3)
    warm = Recording(loaded.joints, tuple(replace(x, torque=x.torque + 2.0) for x in loaded.runs))
    given = {"unloaded": torques(False, 0.05, 2), "link": HAND, "signals": EXACT}
    shared = dynid.calibration.identify_payload(arm(), warm, **given)  # type: ignore[arg-type]
    free = dynid.calibration.identify_payload(arm(), warm, free=["off_*"], **given)  # type: ignore[arg-type]
    assert abs(free.mass - MASS) < 3 * free.mass_std
    assert abs(shared.mass - MASS) > 5 * free.mass_std


def test_what_a_motion_does_not_show_is_said() -> None:
    """A hand that only slides along the vertical shows its mass and nothing else."""
    axis = dynid.robot.Joint("lift", "prismatic", 0, np.eye(4), np.array([0.0, 0.0, 1.0]))
    links = (
        dynid.robot.Link("base", np.zeros(10)),
        dynid.robot.Link("hand", np.array([2.0, *[0.0] * 3, *[0.1, 0, 0.1, 0, 0, 0.1]])),
    )
    robot = dynid.Robot("lift", links, (axis,))
    t = np.arange(500) * 0.01
    q = 0.3 * np.sin(2 * np.pi * t)[:, None]
    a = -((2 * np.pi) ** 2) * q
    run = Run(t, q, torque=3.0 * (a + 9.81) + 0.1 * np.random.default_rng(0).normal(size=q.shape))
    loaded = Recording(robot.coordinates, (run,))
    found = dynid.calibration.identify_payload(robot, loaded, model=robot, link="hand", feasible=False, signals=EXACT)
    assert found.mass == pytest.approx(1.0, abs=3 * found.mass_std)
    assert found.shown == (True, *[False] * 9)
    assert np.isinf(found.std[1:]).all() and found.to_dict()["std"]["mx"] is None
    possible = dynid.calibration.identify_payload(robot, loaded, model=robot, link="hand", signals=EXACT)
    assert not dynid.inertia.inertia_violations(possible.inertial)
    assert possible.mass == pytest.approx(found.mass, rel=1e-3)


def test_residuals_that_remember_are_worth_less() -> None:
    loaded = torques(True)
    walk = np.cumsum(np.random.default_rng(2).normal(size=(1000, 3)), axis=0)
    drifting = Recording(loaded.joints, tuple(replace(x, torque=x.torque + 0.01 * walk) for x in loaded.runs))
    given = {"unloaded": torques(False, 0.05, 2), "link": HAND, "signals": EXACT}
    found = dynid.calibration.identify_payload(arm(), drifting, **given)  # type: ignore[arg-type]
    assert any("autocorrelated" in note for note in found.notes)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"link": "hand"}, (ModelError, "name", "unknown_name")),
        ({"link": "base"}, (NotApplicable, "")),
        ({"form": "sphere"}, (UnknownName, "form")),
        ({"form": "mass"}, (MissingArgument, "centre")),
        ({"centre": [0, 0, 0]}, (MissingArgument, "centre")),
        ({"model": arm()}, (ConflictingArguments, "model")),
        ({"unloaded": None}, (ConflictingArguments, "model")),
        ({"free": ["gas_*"]}, (UnknownName, "patterns")),
        ({"parts": 1}, (InvalidValue, "parts")),
        ({"unloaded": None, "model": arm().without("off_*")}, (Mismatch, "model")),
    ],
)
def test_wrong_questions_are_refused_in_one_sentence(options: dict[str, object], error: Error) -> None:
    with expect_error(*error):
        weigh(**options)


def test_a_robot_with_the_payload_predicts_the_loaded_runs() -> None:
    found = weigh()
    loaded = torques(True).runs[0]
    again = dynid.calibration.identify_payload(
        arm().with_payload(HAND, found.inertial),
        torques(True),
        model=arm().with_payload(HAND, found.inertial),
        link=HAND,
        form="mass",
        centre=CENTRE,
        signals=EXACT,
    )
    assert loaded.torque is not None and abs(again.mass) < 1e-9


def test_fits_of_bodies_need_a_mass_that_shows() -> None:
    with expect_error(NotIdentifiable):
        fit_body(np.zeros((3, 10)), np.zeros(3), "mass", False, np.zeros(3))


def command(*arguments: str) -> tuple[int, str, str]:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", ["dynid", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
    return int(ended.value.code or 0), out.getvalue(), err.getvalue()


def test_the_command_weighs_from_files(tmp_path: Path) -> None:
    """Against runs and against a saved estimate; the wrong link is one line."""
    write_urdf(arm(), tmp_path / "arm.urdf")
    law = ("--friction", "viscous+coulomb+offset", "--rotor-inertia")
    plain = ("--cutoff", "none", "--decimate", "none")
    paths = {name: str(tmp_path / f"{name}.csv") for name in ("loaded", "before")}
    torques(True, 0.05, 1).to_csv(paths["loaded"])
    torques(False, 0.05, 2).to_csv(paths["before"])
    arguments = ("payload", str(tmp_path / "arm.urdf"), paths["loaded"], *law, *plain)
    code, out, err = command(*arguments, "--without", paths["before"], "--link", HAND, "--json")
    assert code == 0, err
    found = json.loads(out)
    # Derivatives by differences of a 100 Hz recording cost a percent or two.
    assert found["mass"] == pytest.approx(MASS, rel=0.03)
    read = dynid.load_robot(tmp_path / "arm.urdf", friction=law[1], rotor_inertia=True)
    before = dynid.load_recording(paths["before"], read)
    dynid.identify(read, before, "wls", signals=dynid.Signals(cutoff=None, decimate=())).save(tmp_path / "arm.json")
    code, out, err = command("payload", str(tmp_path / "arm.json"), paths["loaded"], "--link", HAND, "--plain")
    assert code == 0 and "payload on link3 (full, unconstrained)" in out, err
    code, out, err = command(*arguments, "--without", paths["before"], "--link", "hand")
    assert code == 1 and "no link named 'hand'" in err and "Traceback" not in err
    assert command(*arguments, "--link", HAND)[0] == 1
