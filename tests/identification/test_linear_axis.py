"""Closed-loop methods on a slow linear axis with exact Coulomb friction, recorded by an independent integrator."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.integrate import solve_ivp

import dynid
from dynid.errors import Mismatch
from dynid.identification.experiment import Experiment
from dynid.recording.recording import Recording
from dynid.signals.settings import Signals
from tests.support import linear_axis
from tests.support.errors import expect_error
from tests.support.linear_axis import COULOMB, MASS, VISCOUS, axis, loop, moved

Array = NDArray[np.float64]

METHODS = ("iv", "didim", "pc-didim")
SIGNALS = Signals(cutoff=40.0, decimate=(10,), trim=0.5)
TRUTH = np.array([MASS, VISCOUS, COULOMB])


@cache
def recording(seed: int) -> Recording:
    return linear_axis.recording(seed)


@cache
def prior() -> dynid.Robot:
    """The axis, 20 % off."""
    return axis().with_parameters(1.2 * axis().parameters)


def identified(method: str, seed: int, slope: object = "auto", noise_model: str = "autocorrelated") -> dynid.Estimate:
    settings = {"loop": loop(coulomb_slope=slope), "signals": SIGNALS, "noise_model": noise_model}
    found = dynid.identify(prior(), recording(seed), method, **settings)  # type: ignore[arg-type]
    assert found.converged and found.base.expressions == ("m_1", "fv_1", "fc_1")
    return found


def errors(method: str, runs: int, slope: object = "auto") -> tuple[Array, Array]:
    """Errors (run, parameter) in standard deviations of each estimate, and in those over the runs."""
    found = [identified(method, seed, slope) for seed in range(runs)]
    error = np.array([x.beta for x in found]) - TRUTH
    return error / np.array([x.std for x in found]), error / error.std(axis=0)


@pytest.mark.parametrize(("v", "force"), [(0.02, -400.0), (-0.05, 300.0), (0.1, 100.0), (0.0, 149.0), (0.0, -160.0)])
def test_the_plant_is_the_limit_of_steep_friction(v: float, force: float) -> None:
    """scipy's Radau with tanh(1e7 v) arrives at the same state, through a change of sign and into sticking."""

    def slope(_: float, x: Array) -> list[float]:
        return [x[1], (force - VISCOUS * x[1] - COULOMB * np.tanh(1e7 * x[1])) / MASS]

    end = solve_ivp(slope, (0, 0.05), [0.0, v], "Radau", rtol=1e-9, atol=1e-12).y[:, -1]
    np.testing.assert_allclose(moved(v, force, 0.05), end, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_methods_agree_with_the_truth(method: str) -> None:
    """The mean error of a few runs stays within two standard deviations, single ones within four."""
    own, _ = errors(method, 3)
    assert np.abs(own.mean(axis=0)).max() < 2.0 and np.abs(own).max() < 4.0


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_methods_are_unbiased_over_fifty_runs(method: str) -> None:
    """The mean error is within two standard deviations of one run: of the estimate, and over the runs."""
    own, over_runs = errors(method, 50)
    print(method, own.mean(axis=0), np.sqrt(np.mean(own**2, axis=0)), over_runs.mean(axis=0))
    assert np.abs(own.mean(axis=0)).max() < 2.0
    assert np.sqrt(np.mean(own**2, axis=0)).max() < 2.0
    assert np.abs(over_runs.mean(axis=0)).max() < 1.5


@pytest.mark.parametrize("method", METHODS)
def test_a_slope_for_fast_joints_biases_a_slow_one(method: str) -> None:
    """The slope 100 s/m: the Coulomb friction of the axis is off by more than 10 % and eight standard deviations."""
    found = identified(method, 0, 100.0, "white")
    error = found.beta[2] - COULOMB
    assert error > 0.1 * COULOMB and error > 8 * found.std[2]


def test_without_a_reference_the_measured_velocities_count() -> None:
    """A recording for the methods ml, ekf and ukf; the slope is nearly that of the reference."""
    (run,) = recording(0).runs
    bare = Recording(axis().coordinates, (replace(run, reference=None),))
    (slope,) = {t.slope for t in Experiment(axis(), bare, signals=SIGNALS).robot.drives if t.is_coulomb}
    assert slope == pytest.approx(3800.0, rel=0.05)


def test_another_robot_is_refused() -> None:
    with expect_error(Mismatch):
        Experiment(dynid.load_robot("twolink"), recording(0), loop(), SIGNALS)


def test_the_slope_is_resolved_once_stored_and_printed(tmp_path: Path) -> None:
    """It follows from the reference; simulations, regressor, estimate and file have the same one."""
    experiment = Experiment(axis(), recording(0), loop(), SIGNALS)
    fast = np.quantile(np.abs(np.gradient(linear_axis.reference(10.0), 1e-3)), 0.95)
    (slope,) = {t.slope for t in experiment.robot.drives if t.is_coulomb}
    assert slope == float(f"{400 / fast:.2g}") == 3800.0
    found = identified("didim", 0)
    found.save(tmp_path / "estimate.json")
    back = dynid.Estimate.load(tmp_path / "estimate.json")
    for robot in (found.robot, found.identified_robot, back.robot, back.identified_robot):
        assert {t.slope for t in robot.drives if t.is_coulomb} == {slope}
    for each in (found, back):
        assert "tanh(slope * velocity): fc_joint1 3800 s/m" in each.summary()
    plain = dynid.identify(prior(), recording(0), "wls", signals=SIGNALS)
    assert {t.slope for t in plain.robot.drives} == {0.0} and "tanh" not in plain.summary()
