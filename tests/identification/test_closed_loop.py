"""The estimators that simulate the closed loop: what they compute, how they end, what they refuse."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dynid
from dynid.controllers import Controller, cascade
from dynid.errors import (
    DataError,
    InvalidType,
    InvalidValue,
    Mismatch,
    MissingArgument,
    MissingData,
    NotApplicable,
    TooFew,
    UnknownName,
)
from dynid.identification.estimators.closed_loop import _sizes
from dynid.identification.estimators.least_squares import wls
from dynid.identification.experiment import Experiment
from dynid.identification.pipeline import estimate_closed_loop, estimate_from
from dynid.signals.settings import Signals
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.engine import simulate
from dynid.simulation.reference import Reference
from dynid.simulation.sensors import Sensors
from tests.support.errors import expect_error
from tests.support.experiments import RATE, experiment, reference, wrong
from tests.support.synthetic import arm

METHODS = ("iv", "didim", "pc-iv", "pc-didim")
SIGNALS = Signals(cutoff=None, decimate=(5,), trim=0.2)


@cache
def robot() -> dynid.Robot:
    """Three joints with a range and a speed, which motions fill."""
    bare = arm()
    return bare.with_limits({name: {"position": (-1.5, 1.5), "velocity": 4.0} for name in bare.coordinates})


@cache
def data(noise: float = 0.0, share: float = 0.3) -> Experiment:
    """Four seconds of it, seen from a prior that is wrong by up to `share`."""
    sensors = Sensors(noise=noise, velocity_cutoff=100.0)
    return experiment(robot(), wrong(robot(), share, seed=2), SIGNALS, sensors, seconds=4.0)


def truth() -> np.ndarray:
    return data().base.values(robot().parameters)


@pytest.mark.parametrize("method", METHODS)
def test_noise_free_data_return_the_truth_from_a_wrong_start(method: str) -> None:
    """Nothing is left of a start that is up to 30 % off, once the rounds go on to convergence.

    Simulated regressors are exact. Measured ones are differences of positions, and the torque of a tick is held until
    the next: it acts half a tick later, which the experiment makes up for.
    """
    found = estimate_closed_loop(data(), method, tolerance=1e-8, max_iterations=30)
    assert found.status == "converged" and found.converged
    close = 2e-3 if method in ("iv", "pc-iv") else 1e-6  # the second order of differences over 1 ms; rounding
    np.testing.assert_allclose(found.beta, truth(), rtol=0, atol=close * np.abs(truth()).max())


def test_two_stage_instruments_are_the_textbook_formula() -> None:
    """One round is (Z'X)^-1 Z'y over rows divided by the noise of their joint, with s2 (Q'X)^-1 (Q'X)^-T beside it."""
    found = estimate_closed_loop(data(1e-4), "iv", max_iterations=1, noise_model="white")
    paired = data(1e-4).pair(data(1e-4).simulate(data(1e-4).robot.parameters))
    blocks = list(paired.blocks())
    Z, X, y = (np.concatenate([getattr(b, k) / found.noise[b.channel] for b in blocks]) for k in "ZXy")
    np.testing.assert_allclose(found.beta, np.linalg.solve(Z.T @ X, Z.T @ y), rtol=1e-6)
    bread = np.linalg.inv(Z.T @ X)
    covariance = bread @ (Z.T @ Z) @ bread.T
    np.testing.assert_allclose(found.covariance, covariance, rtol=1e-5, atol=1e-8 * np.abs(covariance).max())


def test_didim_ends_where_least_squares_on_its_own_simulation_stays() -> None:
    """At convergence, weighted least squares over the regressor simulated with the estimate gives the estimate back."""
    found = estimate_closed_loop(data(1e-4), "didim", tolerance=1e-8, max_iterations=30)
    again = estimate_from(data(1e-4).observe(data(1e-4).simulate(found.parameters)), "wls")
    np.testing.assert_allclose(again.beta, found.beta, atol=1e-5 * np.abs(found.beta).max())


def test_iterating_improves_instruments_from_a_wrong_start() -> None:
    """Two stages are consistent whatever the start; refined instruments are more precise."""
    two_stage = estimate_closed_loop(data(1e-4, 0.5), "iv", max_iterations=1, noise_model="white")
    iterated = estimate_closed_loop(data(1e-4, 0.5), "iv", noise_model="white")
    assert two_stage.status == "one iteration" and two_stage.converged and len(two_stage.history) == 1
    assert iterated.status == "converged" and len(iterated.history) > 1
    assert np.all(np.abs(two_stage.beta - truth()) < 5 * two_stage.std)
    assert np.median(iterated.std / two_stage.std) < 1


@pytest.mark.parametrize("method", ["pc-didim", "pc-iv"])
def test_every_iterate_is_possible_from_a_start_half_off(method: str) -> None:
    """Prefix pc: rounds may be many, but each of them ends with a robot that could be built."""
    found = estimate_closed_loop(data(1e-4, 0.5), method)
    assert found.converged and all(r.feasible for r in found.history)
    assert found.standard is not None and not any(map(dynid.inertia.inertia_violations, _links(found.standard)))


def _links(parameters: np.ndarray) -> list[np.ndarray]:
    names = data().robot.parameter_names
    starts = [i for i, name in enumerate(names) if name.startswith("m_")]
    return [parameters[i : i + 10] for i in starts]


@pytest.mark.parametrize("method", METHODS)
def test_trail_tells_what_each_round_did(method: str) -> None:
    """Steps fall, the last residual is that of the estimate, the time of both halves of a round is there."""
    found = estimate_closed_loop(data(1e-4), method)
    history = found.history
    assert 2 <= len(history) <= 10 and history[-1].step <= 0.025 < history[0].step
    np.testing.assert_array_equal(history[-1].beta, found.beta)
    np.testing.assert_allclose(history[-1].residual, found.history[-2].residual, rtol=0.025)
    assert all(r.simulation_seconds > 0 and r.solver_seconds > 0 for r in history)
    assert sum(r.simulation_seconds + r.solver_seconds for r in history) < found.seconds


def test_a_value_held_by_constraints_has_a_step() -> None:
    """Rounding of its variance to below zero does not make every further step no number."""
    rows = data(1e-4).measured
    found = wls(rows)
    held = found.covariance.copy()
    held[0, 0] = -1e-29
    assert np.all(_sizes(replace(found, covariance=held), rows) > 0)


def test_rounds_stop_at_the_tolerance() -> None:
    """Finer asks for more rounds; too few rounds are said, and the last iterate is there all the same."""
    coarse, fine = (estimate_closed_loop(data(), "didim", tolerance=t, max_iterations=30) for t in (0.1, 1e-6))
    assert coarse.history[-1].step <= 0.1 and fine.history[-1].step <= 1e-6
    assert len(coarse.history) < len(fine.history)
    short = estimate_closed_loop(data(), "didim", tolerance=1e-12, max_iterations=2)
    assert short.status == "not converged in 2 iterations" and not short.converged
    np.testing.assert_array_equal(short.beta, fine.history[1].beta)


def test_feasible_start_is_the_feasible_estimate() -> None:
    """The first simulation runs with what PC-IDIM-LS finds; given as numbers it is the same."""
    start = estimate_from(data(1e-4).measured, "feasible").parameters
    named = estimate_closed_loop(data(1e-4), "didim", start="feasible")
    given = estimate_closed_loop(data(1e-4), "didim", start=start)
    np.testing.assert_array_equal(named.history[0].beta, given.history[0].beta)


def test_two_runs_are_simulated_each_along_its_own_reference() -> None:
    """Runs of different length and motion join in one estimate, better than that of either."""
    loop = ClosedLoop(controller=data().loop.controller, coulomb_slope=100.0)  # the same slope along both motions
    runs = [simulate(robot(), loop, reference(robot(), s, k)).run(f"run{k}") for k, s in enumerate((4.0, 3.0))]
    known = data().robot.with_smooth_coulomb(0.0)
    both = replace(data(), robot=known, recording=dynid.Recording(robot().coordinates, tuple(runs)), loop=loop)
    found = estimate_closed_loop(both, "didim", tolerance=1e-8, max_iterations=30)
    np.testing.assert_allclose(found.beta, truth(), atol=1e-6 * np.abs(truth()).max())
    assert sum(found.rows) > 1.5 * sum(estimate_closed_loop(data(), "didim", max_iterations=1).rows)


@pytest.mark.parametrize("method", METHODS)
def test_an_impossible_start_is_an_outcome_not_a_crash(method: str) -> None:
    """Negative masses cannot be simulated: the estimate says so, and can still be looked at."""
    found = estimate_closed_loop(data(), method, start=-robot().parameters)
    assert found.status.startswith("aborted in iteration 1: stopped at 0 s: the mass matrix is not positive definite")
    assert not found.converged and found.history == () and np.all(np.isnan(found.std))
    assert "aborted" in found.summary()


@pytest.mark.parametrize("method", METHODS)
def test_some_joints_alone_can_be_identified(method: str) -> None:
    """All joints are simulated, but only the torques of two of them count."""
    done = replace(data(1e-4), channels=("joint2", "joint3"))
    found = estimate_closed_loop(done, method)
    assert found.status == "converged" and len(found.rows) == 2
    low, high = found.confidence_intervals(0.9999).T
    expected = done.base.values(robot().parameters)
    assert np.all((low < expected) & (expected < high))


def test_unconstrained_iterates_may_end_the_simulation() -> None:
    """A second of very noisy data: DIDIM wanders off in some draws, PC-DIDIM simulates all of its rounds."""
    sensors = Sensors(noise=3e-3, velocity_cutoff=100.0)
    signals, ends = replace(SIGNALS, trim=0.1), []
    for seed in range(6):
        rough = experiment(robot(), wrong(robot(), 0.3), signals, sensors, seconds=1.0, seed=seed)
        ends.append(estimate_closed_loop(rough, "didim"))
        kept = estimate_closed_loop(rough, "pc-didim", max_iterations=3)
        assert not kept.status.startswith("aborted") and all(r.feasible for r in kept.history)
    assert any(e.status.startswith("aborted in iteration") and e.history and not e.converged for e in ends)
    assert not all(r.feasible for e in ends for r in e.history)


def test_the_estimate_keeps_the_coulomb_slope_of_the_loop() -> None:
    """The regressor was made with tanh(k v), so predictions of the estimate must use the same slope."""
    sharp = data().robot.with_smooth_coulomb(0.0)
    loop = replace(data().loop, coulomb_slope=37.0)
    found = dynid.identify(sharp, data().recording, "didim", signals=SIGNALS, loop=loop, max_iterations=1)
    for robot_ in (found.robot, found.identified_robot):
        assert {t.slope for t in robot_.drives if t.is_coulomb} == {37.0}


@pytest.mark.slow
def test_stribeck_and_asymmetric_friction_in_the_loop(tmp_path: Path) -> None:
    """Simulated and identified with the same law: the truth from a wrong start, and a slope that is kept with it."""
    bare = robot().with_drives("viscous-asymmetric+coulomb-asymmetric+offset", rotor_inertia=False)

    def column(q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
        return np.sign(v) * np.exp(-((v / 0.4) ** 2)) * [0, 1, 0]

    true = bare.with_terms(bare.custom_term("fs", 1, column, 0.6, unit="N m"))
    values = dict(zip(true.parameter_names, true.parameters, strict=True))
    for k, name in enumerate(n for n in values if n.startswith(("fcp", "fcn", "fvp", "fvn"))):
        values[name] *= 1 + 0.1 * (k % 3)
    true = true.with_parameters(list(values.values()))
    seen = experiment(true, wrong(true, 0.2, seed=2), SIGNALS, Sensors(velocity_cutoff=100.0), seconds=2.0)
    for method in ("didim", "pc-didim"):
        found = estimate_closed_loop(seen, method, tolerance=1e-8, max_iterations=30)
        expected = seen.base.values(true.parameters)
        np.testing.assert_allclose(found.beta, expected, atol=1e-5 * np.abs(expected).max())
    slopes = {t.name: t.slope for t in found.robot.drives if t.jumps}
    assert set(slopes) == {f"{s}_joint{j}" for s in ("fcp", "fcn") for j in (1, 2, 3)} | {"fs_joint2"}
    assert slopes["fs_joint2"] == slopes["fcp_joint2"] > 0
    found.save(tmp_path / "estimate.json")
    back = dynid.Estimate.load(tmp_path / "estimate.json", true)
    assert {t.name: t.slope for t in back.robot.drives if t.jumps} == slopes
    assert "fs_joint2" in back.summary().split("tanh(slope * velocity): ")[1]


def test_unstable_controller_is_named() -> None:
    """Gains of the wrong sign run away in the first simulation."""
    gains = np.full(3, 20.0)
    found = estimate_closed_loop(
        replace(data(), loop=replace(data().loop, controller=cascade(RATE, gains, -gains))), "pc-didim"
    )
    assert "the controller is unstable with this robot" in found.status and not found.converged


def test_saved_estimates_keep_their_rounds(tmp_path: Path) -> None:
    """Every figure of every round comes back; an estimate without rounds has none."""
    found = estimate_closed_loop(data(1e-4), "pc-didim")
    found.save(tmp_path / "estimate.json")
    saved = json.loads((tmp_path / "estimate.json").read_text())
    assert (saved["dynid"], saved["version"]) == ("estimate", 1) and len(saved["history"]) == len(found.history) > 1
    back = dynid.Estimate.load(tmp_path / "estimate.json", robot())
    assert back.status == "converged" and back.converged
    for one, two in zip(found.history, back.history, strict=True):
        np.testing.assert_array_equal(one.beta, two.beta)
        assert vars(one) | {"beta": None} == vars(two) | {"beta": None}
    np.testing.assert_array_equal(back.parameters, found.parameters)
    plain = estimate_from(data(1e-4).measured, "wls")
    plain.save(tmp_path / "plain.json")
    assert dynid.Estimate.load(tmp_path / "plain.json", robot()).history == ()


def test_estimates_validate_and_export(tmp_path: Path) -> None:
    """One call from a recording; the estimate predicts another motion and becomes a URDF that loads."""
    sensors = Sensors(noise=1e-4, velocity_cutoff=100.0)
    done = data(1e-4)
    found = dynid.identify(
        done.robot, done.recording, "pc-didim", signals=SIGNALS, loop=replace(done.loop, sensors=sensors)
    )
    other = simulate(robot(), ClosedLoop(controller=done.loop.controller), reference(robot(), 4.0, seed=5)).recording()
    # Torques of a new motion, free of noise: what is left is the error of the estimate.
    assert found.validate(other).relative.max() < 0.02
    unassessed, smooth, warning = dynid.export.write(found, tmp_path / "arm.urdf")
    assert "not assessed" in unassessed and "smooth" in smooth
    assert warning.startswith("URDF has no place for the drive terms Ia of joint1")
    loaded = dynid.load_robot(tmp_path / "arm.urdf")
    masses = [link[0] for link in _links(found.parameters)]
    np.testing.assert_allclose([link.inertia[0] for link in loaded.links if link.inertia[0] > 0], masses, rtol=1e-6)


def _recording(**changes: Any) -> dynid.Recording:
    run = replace(data().recording.runs[0], **changes)
    return dynid.Recording(robot().coordinates, (run,))


def _identify(recording: Any = None, method: str = "didim", **options: Any) -> object:
    given = {"loop": ClosedLoop(controller=data().loop.controller), "signals": SIGNALS} | options
    return dynid.identify(data().robot, recording or data().recording, method, **given)


def _with(controller: Controller) -> object:
    return _identify(loop=ClosedLoop(controller=controller))


def _jittered() -> dynid.Recording:
    run = data().recording.runs[0]
    inner = np.random.default_rng(0).uniform(-0.4, 0.4, len(run) - 2) / RATE
    return _recording(t=run.t + np.concatenate([[0.0], inner, [0.0]]))


def _thinned(keep: int) -> dynid.Recording:
    run = data().recording.runs[0]
    thin = {k: getattr(run, k)[::keep] for k in ("t", "q", "v", "torque", "reference")}
    return _recording(**thin)


BAD: dict[str, tuple[Callable[[], object], str]] = {
    "no controller": (lambda: _identify(loop=None), (MissingArgument, "loop")),
    "no reference": (lambda: _identify(_recording(reference=None)), (MissingData, "reference")),
    "no torque": (lambda: _identify(_recording(torque=None)), (MissingData, "")),
    "observation": (lambda: _identify(data().measured), (NotApplicable, "method")),
    "no controller in the loop": (lambda: _identify(loop=ClosedLoop()), (MissingArgument, "loop")),
    "a bare controller": (lambda: _identify(loop=data().loop.controller), (InvalidType, "loop")),
    "loop for wls": (lambda: _identify(method="wls"), (NotApplicable, "loop")),
    "unknown start": (lambda: _identify(start="cad"), (UnknownName, "start")),
    "short start": (lambda: _identify(start=np.ones(3)), (DataError, "")),
    "no rounds": (lambda: _identify(max_iterations=0), (InvalidValue, "max_iterations")),
    "no tolerance": (lambda: _identify(tolerance=0.0), (InvalidValue, "tolerance")),
    "unknown option": (lambda: _identify(colour="red"), (UnknownName, "colour")),
    "rates": (lambda: _with(cascade(1300.0, np.ones(3), np.ones(3))), (InvalidValue, "rate")),
    "slow controller": (lambda: _with(cascade(500.0, np.ones(3), np.ones(3))), (InvalidValue, "rate")),
    "joints": (lambda: _with(cascade(RATE, np.ones(2), np.ones(2))), (Mismatch, "controller")),
    "averaged periods": (lambda: _identify(signals=replace(SIGNALS, period=2.0)), (NotApplicable, "period")),
    "uneven clock": (lambda: _identify(_jittered()), (NotApplicable, "")),
    "limits": (lambda: _identify(_recording(reference=3 * data().recording.runs[0].q)), (InvalidValue, "reference")),
    "no rows": (lambda: _identify(method="iv", signals=replace(SIGNALS, min_velocity=99.0)), (TooFew, "")),
    "resampled": (lambda: _identify(signals=replace(SIGNALS, resample=300.0)), (NotApplicable, "")),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_in_plain_words(case: str) -> None:
    """One line that says what is wrong."""
    call, error = BAD[case]
    with expect_error(*error) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_a_record_slower_than_the_controller_is_enough() -> None:
    """Every fifth sample of references, torques and positions: the loop runs at its own rate in between."""
    signals = Signals(cutoff=None, decimate=(), trim=0.2)
    loop = replace(data().loop, sensors=Sensors(velocity_cutoff=100.0))
    found = _identify(_thinned(5), "didim", signals=signals, loop=loop)
    assert isinstance(found, dynid.Estimate) and found.converged
    np.testing.assert_allclose(found.beta, truth(), atol=0.02 * np.abs(truth()).max())


def test_references_are_not_copied_from_positions() -> None:
    """The experiment follows what the recording asked for."""
    (path,) = data().references
    assert isinstance(path, Reference)
    np.testing.assert_array_equal(path.q, data().recording.runs[0].reference)
