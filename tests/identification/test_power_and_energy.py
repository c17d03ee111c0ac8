"""Methods that balance energy instead of torques, against Pinocchio and against known noise."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy
from numpy.typing import NDArray

import dynid
from dynid.dynamics.functions import kinetic_energy_regressor, potential_energy_regressor, regressor
from dynid.errors import InvalidValue, Mismatch, NotApplicable, TooFew, UnknownName
from dynid.identification.balance import Balance, energy_balance, power_balance
from dynid.identification.estimators.energy import EnergyOptions, Variances
from dynid.identification.observation import Observation
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from, identify
from dynid.parameters.base import base_parameters, random_states
from dynid.recording.dataset import open_dataset
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.robot.drives import TermKind
from tests.support.energy_plant import COULOMB, OFFSET, RATE, VISCOUS, Plant
from tests.support.errors import expect_error
from tests.support.synthetic import EXACT, arm, base_of, motion, record

Array = NDArray[np.float64]
METHODS = ("power", "energy")
both = pytest.mark.parametrize("method", METHODS)


@cache
def plant(joints: int) -> Plant:
    # A sum over the joints shows less than each of them: sixty parameters need several motions.
    return Plant(joints, motions=1 if joints < 4 else 4)


@cache
def exact(joints: int) -> Observation:
    whole = plant(joints)
    return observe(whole.robot, whole.recording(), signals=EXACT)


def test_the_energy_balance_is_that_of_pinocchio() -> None:
    """Change of Pinocchio's energies plus the work of friction in each window, by Simpson's rule."""
    whole = plant(6)
    balance = energy_balance(exact(6), window=0.1)
    energy, v = whole.energy(0), whole.motions[0][1]
    lost = VISCOUS * v**2 + COULOMB * np.abs(v) + OFFSET * v
    work = scipy.integrate.cumulative_simpson(np.sum(lost, axis=1), dx=1.0 / RATE, initial=0.0)
    first = balance.index < len(v)
    starts = balance.index[first]
    ends = starts + round(0.1 * RATE)
    expected = energy[ends] - energy[starts] + work[ends] - work[starts]
    found = (balance.W @ base_of(whole.robot).values())[first]
    # Both rules round the corners of |v|; the work of a window is some ten joules.
    np.testing.assert_allclose(found, expected, atol=1e-3)
    np.testing.assert_allclose(balance.y[first], expected, atol=1e-3)


@pytest.mark.parametrize("joints", [2, 6])
@pytest.mark.parametrize(
    ("method", "options"), [("power", {}), ("energy", {}), ("energy", {"window": 0.02}), ("energy", {"window": 0.15})]
)
def test_torques_of_pinocchio_give_the_truth(joints: int, method: str, options: dict[str, Any]) -> None:
    """Without noise, to the error of numerical derivatives and integrals of a motion sampled at 500 Hz."""
    found = estimate_from(exact(joints), method, **options)
    truth = base_of(plant(joints).robot).values()
    np.testing.assert_allclose(found.beta, truth, atol=1e-4 * np.abs(truth).max())


@both
def test_accelerations_are_not_used(method: str) -> None:
    """Wrong accelerations change no bit of the parameters."""
    seen = exact(2)
    wrong = replace(seen, motions=tuple(replace(m, a=np.full_like(m.a, 1e6)) for m in seen.motions))
    assert np.array_equal(estimate_from(seen, method).beta, estimate_from(wrong, method).beta)


@pytest.mark.parametrize(
    "name", ["twolink", "rv2sq", "tx40", "wam7", "iiwa14", "puma560", "box2", "fourbar", "palletizer", "psm"]
)
def test_power_shows_the_same_base_parameters_as_torques(name: str) -> None:
    """dE/dt + P is v'Y column by column, and the one equation per time has the rank of all torques together."""
    robot = dynid.load_robot(name)
    base = base_parameters(robot, channels="torque")
    q, v, a = random_states(robot, 6 * base.count, seed=3)
    kept, first = list(base.kept), len(robot.channels) - robot.n
    power = np.einsum("nj,njp->np", v, regressor(robot, q, v, a)[:, first:][..., kept])
    step = 1e-4

    def energy(s: float) -> Array:
        at, speed = q + s * v + 0.5 * s**2 * a, v + s * a
        return (kinetic_energy_regressor(robot, at, speed) + potential_energy_regressor(robot, at))[:, kept]

    stored = {t.name for t in robot.drives if t.kind in (TermKind.INERTIA, TermKind.SPRING)}
    conserved = [k for k, j in enumerate(kept) if robot.layout[j].inertial or robot.parameter_names[j] in stored]
    change = (energy(step) - energy(-step)) / (2 * step)
    np.testing.assert_allclose(change[:, conserved], power[:, conserved], atol=1e-5 * np.abs(power).max())
    others = np.delete(change, conserved, axis=1)
    assert not others.any()
    scaled = power / np.linalg.norm(power, axis=0)
    assert np.linalg.matrix_rank(scaled, tol=1e-9 * len(scaled)) == base.count


def _runs(joints: int, runs: int, method: str, **options: Any) -> tuple[Array, Array, float]:
    """Estimates (run, b) and their standard deviations from noisy repetitions, and the reach of 95 % intervals."""
    whole = plant(joints)
    betas, stds = [], []
    for seed in range(runs):
        seen = observe(whole.robot, whole.recording(seed, torque=0.02, position=1e-5))
        found = estimate_from(seen, method, **options)
        betas.append(found.beta)
        stds.append(found.std)
    return np.array(betas), np.array(stds), float(scipy.stats.t.ppf(0.975, found.freedom))


def _covers(joints: int, runs: int, method: str, **options: Any) -> None:
    betas, stds, reach = _runs(joints, runs, method, **options)
    error = betas - base_of(plant(joints).robot).values()
    spread = betas.std(axis=0, ddof=1)
    # 95 % are asked for. The jackknife is conservative, and a spread of 25 runs is itself uncertain by 14 %.
    assert 0.92 < np.mean(np.abs(error) < reach * stds) <= 1.0
    assert 0.85 < np.sqrt(np.mean((stds / spread) ** 2)) < 2.0
    # Velocities stand on both sides of the equations; what that biases is far below the noise.
    assert np.sqrt(np.mean((error.mean(axis=0) / spread) ** 2)) < 0.35


@both
def test_intervals_hold_the_truth(method: str) -> None:
    _covers(2, 25, method)


@pytest.mark.slow
@both
def test_intervals_of_six_joints_hold_the_truth(method: str) -> None:
    """A hundred runs."""
    _covers(6, 100, method)


def test_one_equation_for_all_joints_is_worth_less_than_one_per_joint() -> None:
    """Standard deviations are larger than those of weighted torques, of every parameter but by chance."""
    found = {
        m: identify(plant(2).robot, plant(2).recording(0, 0.02, 1e-5), m, noise_model="white")
        for m in (*METHODS, "wls")
    }
    for method in METHODS:
        ratio = float(np.median(found[method].std / found["wls"].std))
        assert ratio > 1.3 and f"standard deviations are {ratio:.2g} times" in found[method].notes[0]


def _made(noise: Array, end: float, seed: int = 0) -> tuple[Balance, Array]:
    """Equations of windows with known torque noise per joint (n,) and noise of their ends, and their residuals."""
    rng = np.random.default_rng(seed)
    shares = rng.uniform(0.0, 1.0, (4000, len(noise)))
    ends = end * rng.normal(size=4001)
    residual = np.sqrt(shares @ noise**2) * rng.normal(size=4000) + np.diff(ends)
    joined = np.arange(4000) > 0
    return Balance(np.ones((4000, 1)), residual, shares, np.arange(4000), joined), residual


def test_the_noise_of_joints_and_ends_is_told_apart() -> None:
    """Estimated variances are those of the made noise, and whitened residuals are white with unit variance."""
    balance, residual = _made(np.array([0.1, 1.0]), 0.5)
    found = Variances.of_residuals(balance, residual)
    assert found.end == pytest.approx(0.25, rel=0.15)
    np.testing.assert_allclose(found.own.mean(), (balance.shares @ [0.01, 1.0]).mean(), rtol=0.1)
    steep = np.polyfit(balance.shares[:, 1], found.own, 1)[0]
    assert steep == pytest.approx(1.0, rel=0.1)
    white = found.whitened(residual[:, None])[:, 0]
    assert np.var(white) == pytest.approx(1.0, rel=0.05)
    assert abs(white[1:] @ white[:-1]) / len(white) < 0.05
    assert residual[1:] @ residual[:-1] / len(residual) < -0.2  # as they are not before


def test_a_joint_at_rest_keeps_its_parameters() -> None:
    """Its friction is unknown, its noise does no work, and the others are found."""
    robot = arm()
    truth = robot.with_parameters(1.2 * robot.parameters)
    t, q, v, a = motion(robot, 0)
    q[:, 2], v[:, 2], a[:, 2] = 0.3, 0.0, 0.0
    rng = np.random.default_rng(0)
    torque = dynid.inverse_dynamics(truth, q, v, a) + 0.01 * rng.normal(size=q.shape)
    recording = Recording(robot.coordinates, (Run(t, q + 1e-6 * rng.normal(size=q.shape), torque=torque),))
    for method in METHODS:
        found = identify(robot, recording, method, signals=replace(EXACT, min_velocity="1%", derivative="central5"))
        rest = found.base.names.index("fc_joint3")
        assert np.isinf(found.std[rest]) and found.beta[rest] == pytest.approx(0.7)
        seen = found.base.names.index("fc_joint1")
        assert found.beta[seen] == pytest.approx(1.2 * 0.7, rel=0.01)


def test_work_at_a_stop_is_left_out() -> None:
    """No window and no row holds a sample at which a joint presses against a stop."""
    seen = exact(2)
    stopped = np.zeros_like(seen.motions[0].q, dtype=bool)
    stopped[1000:1100, 1] = True
    torque = np.where(stopped, 1e3, seen.motions[0].torque)  # type: ignore[arg-type]
    pressed = replace(seen, motions=(replace(seen.motions[0], stopped=stopped, torque=torque),))
    for balance, whole in (
        (power_balance(pressed), power_balance(seen)),
        (energy_balance(pressed, 0.1), energy_balance(seen, 0.1)),
    ):
        assert len(balance.y) < len(whole.y)
        assert np.abs(balance.y).max() <= np.abs(whole.y).max()
    windows = energy_balance(pressed, 0.1).joined
    assert windows.sum() == len(windows) - 2  # all but the first one and the one after the gap
    assert not power_balance(seen).joined.any()


@both
def test_what_cannot_be_balanced_is_refused(method: str, tmp_path: Path) -> None:
    """One sentence each, that says what is missing."""
    robot = arm()
    recording = record(robot, (0,), noise=0.1)
    seen = observe(robot, recording, signals=EXACT)
    with expect_error(NotApplicable, "channels"):
        identify(robot, recording, method, signals=EXACT, channels=["joint1", "joint2"])
    with expect_error(NotApplicable, "method"):
        estimate_from(seen.joined(seen), method)
    with expect_error(NotApplicable, "method"):
        identify(robot, recording, method, device="cpu")
    recording.to_csv(tmp_path / "run.csv")
    with expect_error(NotApplicable, "method"):
        identify(robot, open_dataset(tmp_path / "run.csv", robot), method)
    heavy = robot.with_terms(robot.custom_term("mass", "joint1", lambda q, v, a: a, 0.1, unit="kg m2"))
    with expect_error(NotApplicable, "method"):
        identify(heavy, recording, method, signals=EXACT)
    order = np.random.default_rng(0).permutation(len(seen.motions[0].t))
    mixed = replace(seen.motions[0], q=seen.motions[0].q[order], v=seen.motions[0].v[order])
    with expect_error(Mismatch):
        estimate_from(replace(seen, motions=(mixed,)), method)


def test_a_floating_base_is_refused() -> None:
    robot = dynid.load_robot("twolink", base="floating")
    seen = replace(exact(2), base=base_parameters(robot))
    with expect_error(NotApplicable, "method"):
        estimate_from(seen, "energy")


@pytest.mark.parametrize("window", [0.0, -1.0, float("nan"), float("inf")])
def test_windows_have_a_length(window: float) -> None:
    with expect_error(InvalidValue, "window"):
        EnergyOptions(window=window)
    with expect_error(UnknownName, "window"):
        identify(arm(), record(arm()), "power", window=0.1)
    with expect_error(TooFew, "window"):
        identify(arm(), record(arm()), "energy", signals=EXACT, window=100.0)
    with expect_error(TooFew, "window"):
        identify(arm(), record(arm()), "energy", signals=EXACT, window=1.0)
