"""Drive gains of known size are found again from currents; what currents cannot tell is said."""

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
from dynid.cli.main import main
from dynid.errors import (
    Duplicate,
    InvalidShape,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingData,
    ModelError,
    NotApplicable,
    NotIdentifiable,
    UnknownName,
)
from dynid.export.urdf import write_urdf
from dynid.recording.recording import Recording
from tests.support.errors import Error, expect_error
from tests.support.loaded_runs import BODY, GAINS, HAND, MASS, currents, torques
from tests.support.saved_fields import survived
from tests.support.synthetic import EXACT, arm

PARTLY = np.where(np.arange(10) < 4, BODY, np.nan)


def gains(
    noise: float = 0.0, seed: int = 0, factors: np.ndarray = GAINS, **options: object
) -> dynid.calibration.DriveGains:
    given = {"payload": MASS, "link": HAND, "signals": EXACT} | options
    before, after = currents(False, noise, seed, factors), currents(True, noise, seed + 50, factors)
    return dynid.calibration.identify_drive_gains(arm(), before, after, **given)  # type: ignore[arg-type]


@pytest.mark.parametrize("payload", [MASS, PARTLY, BODY], ids=["mass", "mass and centre", "all ten"])
@pytest.mark.parametrize("method", ["output", "wls", "tls"])
def test_without_noise_all_methods_agree_to_1e_8(method: str, payload: object, tmp_path: Path) -> None:
    found = gains(method=method, payload=payload)
    assert np.abs(found.gains / GAINS - 1).max() < 1e-8
    assert found.payload is not None and np.abs(found.payload - BODY).max() < 1e-8
    assert found.beta is not None and found.base is not None
    assert np.allclose(found.beta, found.base.values(arm().parameters), atol=1e-7)
    assert all(found.shown)
    assert np.allclose(found.base.values(found.parameters), found.beta)
    assert survived(found, tmp_path).summary() == found.summary()


def test_deviations_of_output_are_those_of_its_errors() -> None:
    """Ten recordings with noisy currents: no bias, and errors as large as the covariance says."""
    scores = np.array([(x.gains - GAINS) / x.std for x in (gains(0.02, seed) for seed in range(10))])
    assert 0.6 < np.sqrt(np.mean(scores**2)) < 1.4  # 30 numbers: within a third or so of one
    assert np.abs(scores).max() < 4 and np.all(np.abs(scores.mean(axis=0)) < 1.2)


def test_noisy_currents_pull_linear_estimates_towards_zero_and_they_say_so() -> None:
    """Joint 1 carries no weight: its gain hangs on inertia alone, and wls loses most of it where output does not."""
    good, linear = gains(0.02, 1), gains(0.02, 1, method="wls")
    assert abs(good.gains[0] - GAINS[0]) < 3 * good.std[0]
    assert linear.gains[0] < 0.7 * GAINS[0] and not linear.shown[0] and linear.shown[1]
    assert any("towards zero" in note and "joint1" in note for note in linear.notes)
    assert not any("towards zero" in note for note in good.notes)


@pytest.mark.parametrize("method", ["output", "wls", "tls"])
def test_a_current_that_counts_the_other_way_is_found_and_told(method: str) -> None:
    turned = GAINS * [1, -1, 1]
    with expect_error(Mismatch, "sign"):
        gains(0.001, factors=turned, method=method)
    found = gains(0.001, factors=turned, method=method, positive=False)
    assert (np.sign(found.gains) == np.sign(turned)).all()


def test_without_a_known_payload_gains_cannot_be_told() -> None:
    for nothing in (0.0, np.full(10, np.nan), np.zeros(10)):
        with expect_error(InvalidValue, "payload"):
            gains(payload=nothing)
    with expect_error(MissingArgument, "payload"):
        gains(payload=None)


def test_runs_that_both_lack_the_payload_are_noticed() -> None:
    """The same arm twice: the second run was not loaded at all."""
    with expect_error(NotIdentifiable, "payload"):
        dynid.calibration.identify_drive_gains(
            arm(), currents(False, 0.02, 1), currents(False, 0.02, 2), payload=MASS, link=HAND, signals=EXACT
        )


def test_equal_motors_may_share_a_gain() -> None:
    same = np.array([8.0, 8.0, 5.0])
    alone = gains(0.02, 3, same)
    found = gains(0.02, 3, same, shared=[("joint1", "joint2")])
    assert found.gains[0] == found.gains[1]
    assert found.std[0] < 0.2 * alone.std[0]
    assert np.all(np.abs(found.gains - same) < 3.5 * found.std)


@pytest.mark.parametrize("method", ["output", "wls"])
def test_bounds_hold_and_are_told(method: str) -> None:
    found = gains(0.01, method=method, bounds=(0.0, [10.0, 20.0, 20.0]) if method == "output" else ([11.0, 0, 0], 50.0))
    assert found.gains[0] == pytest.approx(10.0 if method == "output" else 11.0, rel=1e-4)
    assert any("at their bounds: joint1" in note for note in found.notes)


def test_a_prior_decides_what_the_data_do_not_show() -> None:
    """With noise that hides joint 1, its gain stays at the prior; the others hardly move."""
    wide = gains(0.3, 2)
    assert not wide.shown[0] and any("not identifiable" in note and "joint1" in note for note in wide.notes)
    held = gains(0.3, 2, prior=[11.0, 0, 0], prior_std=[0.05, np.inf, np.inf])
    assert held.gains[0] == pytest.approx(11.0, abs=0.15) and not held.shown[0]
    assert np.allclose(held.gains[1:], wide.gains[1:], rtol=0.05)


def test_gains_make_torques_that_weigh_the_payload() -> None:
    found = gains()
    weighed = dynid.calibration.identify_payload(
        arm(), found.apply(currents(True)), found.apply(currents(False)), link=HAND, signals=EXACT
    )
    assert weighed.mass == pytest.approx(MASS, rel=1e-7)
    with expect_error(Mismatch, "gains"):
        found.apply(Recording(("a", "b", "c"), currents(True).runs))


def test_measured_torques_give_gains_and_offsets_directly() -> None:
    rng = np.random.default_rng(0)
    clean = torques(True)
    runs = tuple(
        replace(x, current=(x.torque - 0.5) / GAINS, torque=x.torque + 0.1 * rng.normal(size=x.q.shape))
        for x in clean.runs
    )
    found = dynid.calibration.reference_gains(Recording(clean.joints, runs))
    assert found.offset is not None
    assert np.all(np.abs(found.gains - GAINS) < 4 * found.std) and np.allclose(found.offset, 0.5, atol=0.02)
    turned = tuple(replace(x, current=-x.current) for x in runs if x.current is not None)
    assert any("negative" in n for n in dynid.calibration.reference_gains(Recording(clean.joints, turned)).notes)
    with expect_error(MissingData):
        dynid.calibration.reference_gains(clean)


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"link": "hand"}, (ModelError, "name", "unknown_name")),
        ({"method": "ols"}, (UnknownName, "method")),
        ({"payload": [1.0, 2.0]}, (InvalidShape, "payload")),
        ({"payload": -1.0}, (InvalidValue, "payload")),
        ({"shared": [("joint1", "elbow")]}, (UnknownName, "shared")),
        ({"shared": [("joint1", "joint2"), ("joint2", "joint3")]}, (Duplicate, "shared")),
        ({"prior": 10.0}, (MissingArgument, "prior_std")),
        ({"bounds": (5.0, 4.0)}, (InvalidValue, "bounds")),
        ({"method": "tls", "bounds": (0, 20)}, (NotApplicable, "method")),
        ({"prior": [1.0, 2.0], "prior_std": 1.0}, (InvalidShape, "")),
    ],
)
def test_wrong_questions_are_refused_in_one_sentence(options: dict[str, object], error: Error) -> None:
    with expect_error(*error):
        gains(**options)


def test_runs_without_currents_are_refused() -> None:
    with expect_error(MissingData, "columns"):
        dynid.calibration.identify_drive_gains(arm(), torques(False), torques(True), payload=MASS, link=HAND)


def test_the_command_finds_gains_from_files(tmp_path: Path) -> None:
    write_urdf(arm(), tmp_path / "arm.urdf")
    paths = [str(tmp_path / f"{name}.csv") for name in ("before", "after")]
    for path, loaded in zip(paths, (False, True), strict=True):
        currents(loaded, 0.005, 7).to_csv(path)
    base = ("gains", str(tmp_path / "arm.urdf"), *paths, "--friction", "viscous+coulomb+offset", "--rotor-inertia")
    plain = ("--cutoff", "none", "--decimate", "none")

    def command(*more: str) -> tuple[int, str, str]:
        out, err = io.StringIO(), io.StringIO()
        with redirect_stdout(out), redirect_stderr(err), pytest.MonkeyPatch.context() as patch:
            patch.setattr(sys, "argv", ["dynid", *base, *plain, *more])
            with pytest.raises(SystemExit) as ended:
                main()
        return int(ended.value.code or 0), out.getvalue(), err.getvalue()

    code, out, err = command("--payload-mass", "1.5", "--link", HAND, "--json")
    assert code == 0, err
    joints = json.loads(out)["joints"]
    # Derivatives by differences of a 100 Hz recording cost a few percent.
    assert [joints[f"joint{k}"]["gain"] for k in (2, 3)] == pytest.approx([8.0, 5.0], rel=0.05)
    code, out, err = command("--payload-mass", "1.5", "--link", HAND, "--shared", "joint1,joint2")
    assert code == 0 and "drive gains by output" in out
    code, out, err = command("--payload-mass", "0", "--link", HAND)
    assert code == 1 and "common factor" in err and "Traceback" not in err
