"""Errors of sensors put into simulated recordings are found again, and the parameters with them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

import dynid
from dynid import Recording, Robot, Run
from dynid.calibration.sensors.unknowns import WORDS, units_of
from dynid.cli.main import app
from dynid.errors import InvalidValue, MissingArgument, MissingData, NotApplicable, NotIdentifiable, UnknownName
from dynid.excitation.basis import random_fourier
from dynid.robot.posture import tilted_gravity
from dynid.signals.shift import shifted
from tests.support.errors import expect_error
from tests.support.gantry import gantry
from tests.support.saved_fields import survived
from tests.support.synthetic import EXACT, arm, motion

Array = NDArray[np.float64]

DELAY = np.array([0.013, 0.021, -0.004])
GAIN = np.array([1.0, 1.2, 0.7])
OFFSET = np.array([0.5, -1.0, 0.2])
# Only the second encoder can be seen: the first joint is vertical, behind the last one any other body may hang.
ENCODER = np.array([0.0, 0.1, 0.0])
TILT = np.array([0.03, -0.05])
TRUTH = {"delay": DELAY, "torque_gain": GAIN, "torque_offset": OFFSET, "encoder_offset": ENCODER, "tilt": TILT}
CASES: list[tuple[Any, dict[str, Any]]] = [
    (("delay",), {}),
    (("torque_gain",), {"reference": "joint1"}),
    (("torque_offset",), {}),
    (("encoder_offset",), {}),
    (("tilt",), {}),
    (("tilt", "encoder_offset", "delay"), {}),
    (("delay", "torque_gain", "torque_offset", "encoder_offset", "tilt"), {"reference": "joint1"}),
]


def test_units_follow_from_the_joints() -> None:
    """A prismatic joint has forces, metres and metres per second; the base has forces and moments."""
    units = {"torque_offset": ("N", "N m"), "encoder_offset": ("m", "rad"), "velocity_offset": ("m/s", "rad/s")}
    units |= {"delay": ("s", "s"), "torque_gain": ("", ""), "tilt": ("rad", "rad"), "wrench_delay": ("s",)}
    units |= {"velocity_gain": ("", ""), "wrench_offset": ("N", "N", "N", "N m", "N m", "N m")}
    assert {word: units_of(gantry(), word) for word in WORDS} == units


def smooth_arm() -> Robot:
    """Without Coulomb friction torques have no steps, and a delay of theirs is exact."""
    return arm().with_drives("viscous", rotor_inertia=True)


def recorded(robot: Robot, errors: dict[str, Array], noise: float = 0.0, draw: int = 0) -> Recording:
    """Two periodic runs as sensors with these errors record them."""
    truth = dict(TRUTH, torque_gain=np.ones(3)) | {k: 0 * v for k, v in TRUTH.items() if k != "torque_gain"} | errors
    leaning = robot.with_gravity(tilted_gravity(robot, truth["tilt"]))
    rng = np.random.default_rng(draw)
    runs = []
    for seed in range(2):
        t, q, v, a = motion(robot, seed)
        torque = shifted(t, dynid.inverse_dynamics(leaning, q, v, a), -truth["delay"], periodic=True)
        torque = truth["torque_gain"] * torque + truth["torque_offset"] + noise * rng.normal(size=q.shape)
        runs.append(Run(t, q + truth["encoder_offset"], torque=torque, name=f"run{seed}"))
    return Recording(robot.coordinates, tuple(runs))


def of(words: Any) -> dict[str, Array]:
    return {w: TRUTH[w] for w in words}


@pytest.mark.parametrize(("words", "options"), CASES, ids=lambda x: "+".join(x) if isinstance(x, tuple) else "")
def test_noise_free_truth(words: tuple[str, ...], options: dict[str, Any], tmp_path: Path) -> None:
    """Sensors and base parameters to 1e-6, torques to rounding."""
    robot = smooth_arm()
    found = dynid.calibration.calibrate_sensors(robot, recorded(robot, of(words)), words, signals=EXACT, **options)
    assert found.converged
    for word in words:
        np.testing.assert_allclose(found.values[word], TRUTH[word], atol=1e-6)
    truth = robot.with_gravity(tilted_gravity(robot, TILT if "tilt" in words else np.zeros(2)))
    np.testing.assert_allclose(found.gravity, truth.gravity, atol=1e-6)
    np.testing.assert_allclose(found.estimate.beta, found.estimate.base.values(truth.parameters), atol=1e-6)
    assert found.estimate.relative_error.max() < 1e-6 < 1e-4 < found.uncorrected.relative_error.max()
    again = survived(found, tmp_path)
    assert again.summary() == found.summary()
    np.testing.assert_array_equal(again.estimate.covariance, found.estimate.covariance)


@pytest.mark.parametrize(
    ("word", "truth", "options"),
    [
        ("delay", np.array([0.1, -0.1, 0.05]), {}),
        ("torque_gain", np.array([1.0, -1.5, 5.0]), {"reference": "joint1"}),
        ("encoder_offset", np.array([0.0, 0.5, 0.0]), {}),
        ("tilt", np.array([0.5, -0.5]), {}),
        ("tilt", np.zeros(2), {}),
    ],
)
def test_far_and_near_truths_are_found(word: str, truth: Array, options: dict[str, Any]) -> None:
    """Delays of ten samples, a reversed sign, half a radian; and an upright base, where some moments have no effect."""
    robot = smooth_arm()
    found = dynid.calibration.calibrate_sensors(robot, recorded(robot, {word: truth}), word, signals=EXACT, **options)
    assert found.converged
    np.testing.assert_allclose(found.values[word], truth, atol=1e-6)


@pytest.mark.slow
def test_deviations_are_as_large_as_the_errors() -> None:
    """Twelve draws of noise, all errors at once: each within its deviation as often as chance has it."""
    robot = smooth_arm()
    words = ("delay", "torque_gain", "torque_offset", "encoder_offset", "tilt")
    clean = recorded(robot, of(words))
    truth = np.concatenate([DELAY, GAIN[1:], OFFSET, ENCODER[1:2], TILT])
    sensors, parameters = [], []
    for draw in range(12):
        rng = np.random.default_rng(100 + draw)
        runs = tuple(Run(r.t, r.q, torque=r.torque + 0.05 * rng.normal(size=r.q.shape)) for r in clean.runs)
        noisy = Recording(clean.joints, runs)
        found = dynid.calibration.calibrate_sensors(robot, noisy, words, reference="joint1", signals=EXACT)
        values = np.concatenate([found.values[w] for w in words])
        deviations = np.concatenate([found.std[w] for w in words])
        free = np.isfinite(deviations) & (deviations > 0)
        sensors.append((values[free] - truth) / deviations[free])
        np.testing.assert_allclose(np.sqrt(np.diag(found.covariance)), deviations[free])
        expected = found.estimate.base.values(robot.parameters)
        parameters.append((found.estimate.beta - expected) / found.estimate.std)
    # 12 draws of 11 numbers: the mean square of independent ones scatters by sqrt(2 / 132) = 0.12, of correlated ones
    # by more.
    assert np.mean(np.square(sensors)) == pytest.approx(1.0, abs=0.45)
    assert np.mean(np.square(parameters)) == pytest.approx(1.0, abs=0.45)
    assert np.abs(sensors).max() < 4.0


def test_an_unmodelled_delay_biases_and_calibration_removes_it() -> None:
    """Plain least squares is many deviations off; with the delay estimated too, errors are chance."""
    robot = smooth_arm()
    late = {"delay": np.full(3, 0.02)}
    found = dynid.calibration.calibrate_sensors(robot, recorded(robot, late, 0.02), {"delay": "common"}, signals=EXACT)
    truth = found.estimate.base.values(robot.parameters)
    before = np.abs(found.uncorrected.beta - truth) / found.uncorrected.std
    after = np.abs(found.estimate.beta - truth) / found.estimate.std
    # The residual that the delay leaves widens the standard deviations of plain least squares as well.
    assert before.max() > 5.0 and after.max() < 4.0
    assert np.ptp(found.delay) == 0.0 and abs(found.delay[0] - 0.02) < 4 * found.std["delay"][0]
    assert len(found.names) == 1


def test_corrected_recordings_are_what_perfect_sensors_record() -> None:
    """Identified as they are, they give the estimate of the calibration."""
    robot = smooth_arm()
    words = ("delay", "torque_gain", "torque_offset", "encoder_offset")
    data = recorded(robot, of(words))
    found = dynid.calibration.calibrate_sensors(robot, data, words, reference="joint1", signals=EXACT)
    mended = found.corrected(data)
    for mine, true in zip(mended.runs, recorded(robot, {}).runs, strict=True):
        np.testing.assert_allclose(mine.q, true.q, atol=1e-8)
        np.testing.assert_allclose(mine.torque, true.torque, atol=1e-6)
    again = dynid.identify(found.robot, mended, "wls", signals=EXACT)
    np.testing.assert_allclose(again.beta, found.estimate.beta, atol=1e-7)
    assert found.estimate.validate(mended).relative.max() < 1e-6


def test_runs_that_do_not_repeat_with_friction_steps() -> None:
    """Default signals, Coulomb friction, delays that are no whole samples: four deviations, each below a sample."""
    robot = arm().with_drives("viscous+coulomb", rotor_inertia=True)
    rate, ones = 1000.0, np.ones(3)
    t = np.arange(10_000) / rate
    runs = []
    for seed in range(2):
        q = random_fourier(-1.5 * ones, 1.5 * ones, 3 * ones, 17.3, t, seed)[0]
        torque = np.empty_like(q)
        for j, delay in enumerate(DELAY + 3e-4):
            late = random_fourier(-1.5 * ones, 1.5 * ones, 3 * ones, 17.3, t - delay, seed)
            torque[:, j] = dynid.inverse_dynamics(robot, *late)[:, j]
        torque = GAIN * torque + 0.05 * np.random.default_rng(seed).normal(size=q.shape)
        runs.append(Run(t, q, torque=torque, name=f"run{seed}"))
    data = Recording(robot.coordinates, tuple(runs))
    found = dynid.calibration.calibrate_sensors(robot, data, ("delay", "torque_gain"), reference=["joint1"])
    off = np.abs(found.delay - DELAY - 3e-4)
    assert np.all(off < 4 * found.std["delay"]) and found.std["delay"].max() < 1.0 / rate
    assert np.all(np.abs(found.torque_gain - GAIN)[1:] < 4 * found.std["torque_gain"][1:])
    assert found.estimate.relative_error.max() < 0.5 * found.uncorrected.relative_error.max()
    mended = found.corrected(data)
    assert all(len(run) < len(t) for run in mended.runs)
    errors = dynid.identify(robot, mended, "wls").relative_error
    assert np.all(errors < 1.1 * found.estimate.relative_error)


def test_a_known_payload_is_a_scale_for_all_gains() -> None:
    """With a run that carries a known load no joint's gain need be known."""
    robot = smooth_arm()
    loaded = robot.with_payload("link3", dynid.inertia.inertia_from_com(2.0, [0.2, 0.1, 0.0], 0.01 * np.eye(3)))
    gain = np.array([0.9, 1.2, 0.7])
    runs = recorded(robot, {"torque_gain": gain}).runs[:1] + recorded(loaded, {"torque_gain": gain}).runs[1:]
    data = Recording(robot.coordinates, runs)
    for payload in (loaded, loaded.parameters - robot.parameters):
        found = dynid.calibration.calibrate_sensors(
            robot, data, "torque_gain", payloads={"run1": payload}, signals=EXACT
        )
        np.testing.assert_allclose(found.torque_gain, gain, atol=1e-6)
        np.testing.assert_allclose(found.estimate.beta, found.estimate.base.values(robot.parameters), atol=1e-6)


def test_velocity_sensors_are_told_by_positions() -> None:
    """Gain and offset of measured velocities, and what is corrected."""
    robot = smooth_arm()
    t, q, v, a = motion(robot, 0)
    gain, offset = np.array([1.1, 0.9, 1.0]), np.array([0.0, 0.05, -0.02])
    run = Run(t, q, v=gain * v + offset, torque=dynid.inverse_dynamics(robot, q, v, a))
    data = Recording(robot.coordinates, (run,))
    found = dynid.calibration.calibrate_sensors(robot, data, ("velocity_gain", "velocity_offset"), signals=EXACT)
    np.testing.assert_allclose(found.values["velocity_gain"], gain, atol=1e-9)
    np.testing.assert_allclose(found.values["velocity_offset"], offset, atol=1e-9)
    np.testing.assert_allclose(found.corrected(data).runs[0].v, v, atol=1e-8)
    rng = np.random.default_rng(0)
    noisy = Recording(robot.coordinates, (Run(t, q, v=run.v + 0.01 * rng.normal(size=q.shape), torque=run.torque),))
    found = dynid.calibration.calibrate_sensors(
        robot, noisy, ("velocity_gain", "velocity_offset", "delay"), signals=EXACT
    )
    for word, truth in (("velocity_gain", gain), ("velocity_offset", offset)):
        assert np.abs((found.values[word] - truth) / found.std[word]).max() < 4.0
    assert np.abs(found.delay).max() < 1e-9


def test_a_base_wrench_has_delay_and_offset() -> None:
    """A plate under the arm that lags and is not zeroed; its vertical force offset is the base's weight."""
    robot = smooth_arm().with_base("instrumented")
    t, q, v, a = motion(robot, 0)
    load = dynid.inverse_dynamics(robot, q, v, a)
    offset = np.array([3.0, -2.0, 0.0, 0.4, -0.6, 0.8])
    wrench = shifted(t, load[:, :6], -0.012, periodic=True) + offset
    data = Recording(robot.coordinates, (Run(t, q, torque=load[:, 6:], wrench=wrench),))
    words = ("wrench_delay", "wrench_offset")
    found = dynid.calibration.calibrate_sensors(robot, data, words, signals=EXACT)
    assert found.values["wrench_delay"][0] == pytest.approx(0.012, abs=1e-6)
    seen = np.isfinite(found.std["wrench_offset"])
    # Gravity on the base link makes a constant force along z and constant moments about x and y.
    assert list(np.flatnonzero(~seen)) == [2, 3, 4]
    np.testing.assert_allclose(found.values["wrench_offset"][seen], offset[seen], atol=1e-6)
    np.testing.assert_allclose(found.corrected(data).runs[0].wrench[:, [0, 1, 5]], load[:, [0, 1, 5]], atol=1e-5)


def test_what_cannot_be_seen_is_said() -> None:
    """Encoders about a vertical axis and behind the last joint, offsets beside the drive's own."""
    robot = arm()
    data = recorded(robot, {})
    found = dynid.calibration.calibrate_sensors(
        robot, data, ("encoder_offset", "torque_offset", "delay"), signals=EXACT
    )
    said = " ".join(found.warnings)
    for words in ("encoder_offset joint1 cannot be seen: gravity", "encoder_offset joint3 cannot be seen: bodies"):
        assert words in said
    assert said.count("torque_offset") == 3 and not np.isfinite(found.std["torque_offset"]).any()
    assert [n for n in found.names if "encoder" in n] == ["encoder_offset joint2"]
    with expect_error(NotIdentifiable):
        dynid.calibration.calibrate_sensors(robot, data, {"encoder_offset": ["joint3"]}, signals=EXACT)
    flat = dynid.load_robot("twolink").with_drives("viscous", rotor_inertia=True)
    still = Recording(flat.coordinates, (Run(*_flat_run(flat)),))
    with expect_error(NotApplicable):
        dynid.calibration.calibrate_sensors(flat.with_gravity([0, 0, 0]), still, "tilt", signals=EXACT)


def _flat_run(robot: Robot) -> tuple[Any, ...]:
    t, q, v, a = motion(robot, 0)
    return t, q, None, None, dynid.inverse_dynamics(robot, q, v, a)


def test_plain_words_for_bad_input() -> None:
    """Each mistake is one sentence."""
    robot = smooth_arm()
    data = recorded(robot, {})
    cases: list[tuple[Any, dict[str, Any], str]] = [
        ("torque_gain", {}, (MissingArgument, "reference")),
        ("torque_gain", {"reference": "elbow"}, (UnknownName, "")),
        ("lag", {}, (UnknownName, "")),
        ((), {}, (MissingArgument, "")),
        ({"encoder_offset": "common"}, {}, (NotApplicable, "")),
        ("wrench_offset", {}, (MissingData, "")),
        ("velocity_gain", {}, (MissingData, "")),
        ("torque_gain", {"payloads": {"other": robot}}, (UnknownName, "payloads")),
    ]
    for words, options, error in cases:
        with expect_error(*error):
            dynid.calibration.calibrate_sensors(robot, data, words, signals=EXACT, **options)
    with expect_error(MissingArgument):
        dynid.calibration.calibrate_sensors(robot, [], "delay")


def test_on_the_command_line(tmp_path: Path) -> None:
    """From a log to a corrected one; what cannot be done is one line."""
    robot = dynid.load_robot("rv2sq")
    t, q, *_ = motion(robot, 0, samples=2000)
    late = dynid.inverse_dynamics(robot, *random_fourier(*_limits(robot), 10.0, t - 0.012, 0))
    noise = 0.01 * np.random.default_rng(0).normal(size=q.shape)
    log, mended, saved = tmp_path / "log.csv", tmp_path / "mended.csv", tmp_path / "estimate.json"
    Recording(robot.coordinates, (Run(t, q, torque=late + noise),)).to_csv(log)
    words = ["calibrate", "rv2sq", str(log), "--estimate", "delay", "--common", "delay"]
    done = CliRunner().invoke(app, [*words, "-o", str(mended), "--save", str(saved), "--json"])
    assert done.exit_code == 0, done.output
    page = json.loads(done.stdout)
    # Half a millisecond is a tenth of the time between two samples.
    assert page["sensors"]["delay"]["value"] == pytest.approx([0.012] * robot.n, abs=5e-4)
    again = dynid.identify(robot, dynid.load_recording(mended, robot), "wls", signals=dynid.Signals(min_velocity="10%"))
    assert again.relative_error.max() < 1.1 * max(page["relative_error_percent"]["corrected"]) / 100
    assert dynid.Estimate.load(saved, robot).method == "wls + sensors"
    assert "Example" in CliRunner().invoke(app, ["calibrate", "--help"]).stdout
    for more in (["--estimate", "torque-gain"], ["--common", "torque-gain"], ["-o", "x.mat"]):
        failed = CliRunner().invoke(app, ["calibrate", "rv2sq", str(log), *more])
        assert failed.exit_code != 0 and isinstance(failed.exception, dynid.DataError)


def _limits(robot: Robot) -> tuple[Array, Array, Array]:
    ones = np.ones(robot.n)
    return -1.5 * ones, 1.5 * ones, 3.0 * ones


def test_a_moved_signal_comes_back() -> None:
    """Phase, windowed sinc and spline against the signal itself at other times."""
    t = np.arange(800) / 100.0

    def signal(at: Array) -> Array:
        return np.column_stack([np.sin(2 * np.pi * 1.25 * at), np.cos(2 * np.pi * 2.5 * at + 0.3)])

    delays = np.array([0.0137, -0.021])
    expected = np.column_stack([signal(t + d)[:, k] for k, d in enumerate(delays)])
    np.testing.assert_allclose(shifted(t, signal(t), delays, periodic=True), expected, atol=1e-12)
    inside = slice(30, -30)
    np.testing.assert_allclose(shifted(t, signal(t), delays)[inside], expected[inside], atol=1e-5)
    uneven = t + 0.002 * np.sin(t * 40)
    wanted = np.column_stack([signal(uneven + d)[:, k] for k, d in enumerate(delays)])
    np.testing.assert_allclose(shifted(uneven, signal(uneven), delays)[inside], wanted[inside], atol=1e-4)
    # Noise near half the sampling rate keeps its power, or a delay would be chosen for how much it smooths.
    noise = np.random.default_rng(0).normal(size=(4000, 1))
    for part in (0.25, 0.5):
        moved = shifted(np.arange(4000) / 100.0, noise, part / 100.0)
        assert np.std(moved) > 0.9 * np.std(noise)
    with expect_error(InvalidValue, "delay"):
        shifted(t, signal(t), 5.0)
