"""All hypothesis tests of an estimate in one call: residual, drive terms, missing effects, bias by feedback."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from dynid.assessment.causes.cause import Causes
from dynid.assessment.causes.cause_search import find_causes
from dynid.assessment.causes.instruments import exogeneity_test, instrument_test
from dynid.assessment.causes.missing import MissingEffects, missing_effects
from dynid.assessment.causes.nested import terms_needed
from dynid.assessment.causes.residuals import residual_tests
from dynid.assessment.given import check_observation
from dynid.errors import DataError, DynidError, InvalidType, NotApplicable
from dynid.hypothesis import HypothesisTest, TestCode, tests_frame
from dynid.identification.estimate import Estimate
from dynid.identification.experiment import Experiment
from dynid.identification.observation import Observation
from dynid.identification.observing import observe
from dynid.identification.pipeline import estimate_from
from dynid.markup import HtmlFrame
from dynid.recording.recording import Recording
from dynid.recording.run import Run
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.simulation import Simulation

if TYPE_CHECKING:
    import polars as pl

__all__ = ["Diagnosis", "diagnose"]


@dataclass(frozen=True, eq=False)
class Diagnosis(HtmlFrame):
    """Hypothesis tests of an estimate.

    Attributes
    ----------
    tests : tuple of HypothesisTest
        Tests in the order in which they were made.
    missing : MissingEffects or None
        Effects that are missing from the model; None where they cannot be searched for.
    untested : tuple of str
        Tests that could not be made, and why.
    causes : Causes or None
        Causes of the residual, by name; None where they cannot be searched for.
    """

    tests: tuple[HypothesisTest, ...]
    missing: MissingEffects | None
    untested: tuple[str, ...]
    causes: Causes | None = None

    @property
    def rejected(self) -> tuple[HypothesisTest, ...]:
        """Tests whose null hypothesis is rejected."""
        return tuple(test for test in self.tests if test.rejected)

    def to_frame(self) -> pl.DataFrame:
        """The tests as a table.

        Returns
        -------
        polars.DataFrame
            One row per test: code, name, statistic, distribution, p_value, level, rejected and verdict.
        """
        return tests_frame(self.tests)

    def summary(self) -> str:
        """Return all tests as text, then the missing effects and the tests that could not be made."""
        parts = [test.summary() for test in self.tests]
        if self.missing is not None:
            parts.append(self.missing.summary())
        if self.causes is not None:
            parts.append(self.causes.summary())
        return "\n\n".join([*parts, *(f"not tested: {reason}" for reason in self.untested)])

    def test(self, code: TestCode | str) -> HypothesisTest | None:
        """Return the test with a code, or None where it was not made."""
        return next((t for t in self.tests if t.code == code), None)

    def to_dict(self) -> dict[str, Any]:
        """Return tests and missing effects as plain data for JSON."""
        missing = None if self.missing is None else self.missing.to_dict()
        causes = None if self.causes is None else self.causes.to_dict()
        tests = [t.to_dict() for t in self.tests]
        return {"tests": tests, "missing": missing, "causes": causes, "untested": list(self.untested)}


def diagnose(
    estimate: Estimate,
    recording: Recording | Observation,
    *,
    loop: ClosedLoop | None = None,
    correlated_samples: int = 10,
    level: float = 0.05,
) -> Diagnosis:
    """Test an estimate on a recording.

    Tests the residual for whiteness, normality and constant variance, the drive terms for significance, and searches
    for missing effects. With the closed loop, it also tests the validity of the simulated instruments and the
    exogeneity of the measured regressor (revised Durbin-Wu-Hausman).

    Parameters
    ----------
    estimate : Estimate
        Estimate that converged.
    recording : Recording or Observation
        Recording to test on, or the observation that the estimate was identified from, which avoids cleaning the
        runs again. With a loop, the recording itself is needed.
    loop : ClosedLoop, optional
        The closed loop of the recording: controller, sensors and integrator settings.
    correlated_samples : int
        Number of samples over which the noise is correlated, see `instrument_test`.
    level : float
        Significance level.

    Returns
    -------
    Diagnosis

    Raises
    ------
    DataError
        If the estimate did not converge or the recording does not fit the robot.
    DynidError
        If the closed loop cannot be simulated with the estimate.
    """
    if not estimate.converged:
        raise NotApplicable(f"the estimate is {estimate.status}; it cannot be tested")
    tests: list[HypothesisTest] = []
    untested: list[str] = []
    searched: tuple[Estimate, Recording | Observation]
    if isinstance(recording, Observation):
        if loop is not None:
            raise InvalidType(
                "tests with the closed loop simulate the recording: give the recording, not an observation"
            )
        rows = check_observation(estimate, recording)
        searched = estimate, rows
    elif loop is None:
        rows = observe(estimate.robot, recording, signals=estimate.signals, base=estimate.base)
        searched = estimate, rows
    else:
        experiment = Experiment(estimate.robot, recording, loop, estimate.signals, estimate.base.channels)
        simulations = experiment.simulate(estimate.parameters)
        if not simulations[-1].completed:
            raise DynidError(f"the loop with this estimate {simulations[-1].outcome}", code="simulation_failed")
        rows = experiment.observe(simulations)
        # Rows up to the positions' own cut-off: the tests need several times more samples than there are columns.
        cutoff = experiment.motions[0].cutoff
        dense = replace(experiment, signals=replace(estimate.signals, cutoff=cutoff, decimate="auto"))
        paired = dense.pair(simulations)
        noise = estimate_from(paired.measured, "wls").noise
        for name, test in (("instrument validity", instrument_test), ("exogeneity", exogeneity_test)):
            try:
                tests.append(test(paired, noise, correlated_samples=correlated_samples, level=level))
            except DataError as error:
                untested.append(f"{name}: {error}")
        searched = _along_simulations(estimate, experiment, simulations)
    found = residual_tests(rows, estimate.beta, estimate.noise, level=level)
    tests += [found.whiteness, found.normality, found.homoscedasticity]
    try:
        tests.append(terms_needed(rows, level=level))
    except DataError as error:
        untested.append(f"drive terms: {error}")
    missing = None
    try:
        missing = missing_effects(*searched, level=level)
    except DataError as error:
        untested.append(f"missing effects: {error}")
    causes = None
    if rows.motions:
        try:
            causes = find_causes(estimate, [rows])
        except DataError as error:
            untested.append(f"causes: {error}")
    return Diagnosis(tuple(tests), missing, tuple(untested), causes)


def _along_simulations(
    estimate: Estimate, experiment: Experiment, simulations: Sequence[Simulation]
) -> tuple[Estimate, Recording]:
    """The recording with simulated motion, and the estimate with signals that only shift and decimate the torques.

    Along measured motion, the noise that feedback adds to the torques and their delay of half a control period would
    look like missing effects.
    """
    runs = []
    for run, simulation in zip(experiment.recording.runs, simulations, strict=True):
        assert run.torque is not None
        n = min(len(run), len(simulation.t))
        runs.append(Run(run.t[:n], simulation.q[:n], v=simulation.v[:n], torque=run.torque[:n], name=run.name))
    signals = replace(
        estimate.signals,
        median=0,
        cutoff=None,
        measured_velocity=True,
        measured_acceleration=False,
        decimate=experiment.motions[0].decimate,
        delay=estimate.signals.delay - 0.5 / experiment.law.rate,
    )
    return replace(estimate, signals=signals), replace(experiment.recording, runs=tuple(runs))
