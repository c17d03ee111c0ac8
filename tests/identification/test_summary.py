"""What an estimate prints: as wide as the terminal, with the units of each joint, and one condition number."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dynid
from dynid.cli.demo import synthetic_recording
from dynid.progress import Progress
from tests.support.gantry import gantry
from tests.support.noisy_loop import noisy_loop
from tests.support.synthetic import EXACT, arm, record


def test_units_of_a_prismatic_joint_are_those_of_a_force() -> None:
    """N, N s/m and kg on the slide, N m, N m s/rad and kg m2 on the arm; in parameters, base parameters and tables."""
    robot = gantry()
    robot = robot.with_terms(robot.joint_term(0, "k", 2.0))
    unit = {p.name: p.unit for p in robot.layout}
    slide, turn = robot.coordinates
    assert [unit[f"{s}_{slide}"] for s in ("Ia", "fv", "fc", "off", "k")] == ["kg", "N s/m", "N", "N", "N/m"]
    assert [unit[f"{s}_{turn}"] for s in ("Ia", "fv", "fc", "off")] == ["kg m2", "N m s/rad", "N m", "N m"]
    estimate = dynid.identify(gantry(), record(gantry(), (0, 1), noise=0.05), "wls", signals=EXACT)
    base = estimate.base
    assert base.channel_units == ("N", "N m")
    units = dict(zip(base.names, base.units, strict=True))
    assert (units[f"fv_{slide}"], units[f"fc_{slide}"], units[f"fv_{turn}"]) == ("N s/m", "N", "N m s/rad")
    assert [p["unit"] for p in estimate.to_dict()["base_parameters"]] == list(base.units)
    for text in (estimate.summary(), estimate._repr_html_()):
        assert "N s/m" in text and "N m s/rad" in text
    validation = estimate.validate(record(gantry(), (2,), noise=0.05))
    assert validation.units == ("N", "N m")
    cells = [[x.strip() for x in re.split("[│|]", line)] for line in validation.summary().splitlines()]
    assert [row[5] for row in cells if row[1:2] in ([slide], [turn])] == ["N", "N m"]
    assert [row["unit"] for row in validation.to_dict().values()] == ["N", "N m"]


def test_units_do_not_change_what_is_compared_with_what() -> None:
    """Typical sizes are taken over parameters of one kind, whatever the joint."""
    group = {p.name: p.group for p in gantry().layout}
    first, second = gantry().coordinates
    assert group[f"fc_{first}"] == group[f"fc_{second}"] == "N m" and group[f"Ia_{first}"] == "kg m2"


def test_tables_are_as_wide_as_the_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Long combinations are wrapped; no figure is cut."""
    robot = dynid.load_robot("tx40")
    estimate = dynid.identify(robot, synthetic_recording(robot, 0, duration=5.0), "wls")
    for width in (70, 80, 132):
        monkeypatch.setenv("COLUMNS", str(width))
        text = estimate.summary()
        assert max(map(len, text.splitlines())) <= width
        assert all(f"{value:.5g}" in text for value in estimate.beta) and "…" not in text


@pytest.mark.slow
def test_the_assessment_and_the_summary_tell_one_condition_number() -> None:
    """That of the estimate: for fits of measured and of simulated regressors, with and without the recording."""
    robot = dynid.load_robot("rv2sq")
    recording = synthetic_recording(robot, 0, duration=5.0)
    experiment = noisy_loop(seconds=2.0)
    simulated = dynid.identification.estimate_closed_loop(experiment, "didim", max_iterations=2)
    cases = [(dynid.identify(robot, recording, method), recording) for method in ("wls", "irls", "gls", "feasible")]
    for estimate, data in [*cases, (simulated, experiment.recording)]:
        for assessment in (dynid.assess(estimate), dynid.assess(estimate, recording=data)):
            check = next(c for c in assessment.checks if c.unit == "condition number")
            assert check.figure == estimate.condition_number
        (told,) = re.findall(r"condition number (\S+);", " ".join(estimate.summary().split()))
        assert told == f"{estimate.condition_number:.4g}"


@pytest.mark.parametrize("method", ["didim", "iv", "clie", "ml", "ekf"])
def test_iterations_are_reported(method: str) -> None:
    """One report per iteration, with the share of the largest number of iterations and the time they would take."""
    heard: list[Progress] = []
    experiment = noisy_loop(seconds=2.0)
    estimate = dynid.identification.estimate_closed_loop(
        experiment, method, max_iterations=3, tolerance=1e-12, progress=heard.append
    )
    assert len(heard) == len(estimate.history) > 0
    for k, report in enumerate(heard, start=1):
        assert report.message.startswith(f"iteration {k} of at most 3: largest step ")
        assert report.share == pytest.approx(k / 3)
        assert report.seconds_left is not None and report.seconds_left >= 0
    assert heard[-1].seconds_left == 0.0 or len(heard) < 3


def test_progress_of_identify_reaches_the_method() -> None:
    experiment = noisy_loop(seconds=2.0)
    heard: list[Progress] = []
    dynid.identify(
        experiment.robot,
        experiment.recording,
        "ekf",
        signals=experiment.signals,
        max_iterations=1,
        progress=heard.append,
    )
    assert len(heard) == 1 and heard[0].share == 1.0
    assert np.isclose(heard[0].seconds_left or 0.0, 0.0)


def test_an_arm_without_slides_has_the_units_of_torques() -> None:
    assert {p.unit for p in arm().layout} == {"kg", "kg m", "kg m2", "N m", "N m s/rad"}
