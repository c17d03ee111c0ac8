"""All tests of an estimate in one call: is the residual noise, is the model complete, may least squares be believed?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dynid.assessment.tests.instruments import exogeneity_test, instrument_test
from dynid.assessment.tests.missing import MissingEffects, missing_effects
from dynid.assessment.tests.nested import terms_needed
from dynid.assessment.tests.residuals import residual_tests
from dynid.errors import DataError, DynidError
from dynid.hypothesis import HypothesisTest
from dynid.identification.estimate import Estimate
from dynid.identification.experiment import Experiment
from dynid.identification.observation import observe
from dynid.identification.pipeline import estimate_from
from dynid.recording.recording import Recording, Run
from dynid.simulation.engine import Loop, Simulation
from dynid.simulation.laws import Controller
from dynid.simulation.sensors import Sensors

__all__ = ["Diagnosis", "diagnose"]


@dataclass(frozen=True, eq=False)
class Diagnosis:
    """Tests in the order they were made, effects that the model misses, and what could not be tested and why."""

    tests: tuple[HypothesisTest, ...]
    missing: MissingEffects | None
    untested: tuple[str, ...]

    @property
    def rejected(self) -> tuple[HypothesisTest, ...]:
        """Tests whose null hypothesis does not hold."""
        return tuple(test for test in self.tests if test.rejected)

    def summary(self) -> str:
        """Every test in words, then what is missing and what was left out."""
        parts = [test.summary() for test in self.tests]
        if self.missing is not None:
            parts.append(self.missing.summary())
        return "\n\n".join([*parts, *(f"not tested: {reason}" for reason in self.untested)])

    def to_dict(self) -> dict[str, Any]:
        missing = None if self.missing is None else self.missing.to_dict()
        return {"tests": [t.to_dict() for t in self.tests], "missing": missing, "untested": list(self.untested)}


def diagnose(
    estimate: Estimate,
    recording: Recording,
    controller: Controller | None = None,
    *,
    sensors: Sensors | None = None,
    loop: Loop | None = None,
    memory: int = 10,
    level: float = 0.05,
) -> Diagnosis:
    """Test an estimate on a recording: whiteness, normality and evenness of the residual, which drive terms are needed,
    which effects are missing; with the controller also whether simulated instruments are valid and measured regressors
    exogenous (revised Durbin-Wu-Hausman, `memory` as for `instrument_test`).
    """
    if not estimate.converged:
        raise DataError(f"the estimate is {estimate.status}; there is nothing to test")
    tests: list[HypothesisTest] = []
    untested: list[str] = []
    searched = estimate, recording
    if controller is None:
        rows = observe(estimate.robot, recording, estimate.signals, estimate.base)
    else:
        experiment = Experiment(
            estimate.robot,
            recording,
            controller,
            estimate.signals,
            loop or Loop("auto"),
            sensors or Sensors(),
            estimate.base.channels,
        )
        simulations = experiment.simulate(estimate.parameters)
        if not simulations[-1].finished:
            raise DynidError(f"the loop with this estimate {simulations[-1].outcome}")
        rows = experiment.observe(simulations)
        # Rows up to the positions' own cut-off: the tests need several times more samples than there are columns.
        cutoff = experiment.motions[0].cutoff
        dense = replace(experiment, signals=replace(estimate.signals, cutoff=cutoff, decimate="auto"))
        paired = dense.pair(simulations)
        noise = estimate_from(paired.measured, "wls").noise
        for name, test in (("instrument validity", instrument_test), ("exogeneity", exogeneity_test)):
            try:
                tests.append(test(paired, noise, memory=memory, level=level))
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
    return Diagnosis(tuple(tests), missing, tuple(untested))


def _along_simulations(
    estimate: Estimate, experiment: Experiment, simulations: Sequence[Simulation]
) -> tuple[Estimate, Recording]:
    """The recording with simulated motion, and the estimate with signals that only centre and decimate the torques.

    Along measured motion, noise that feedback brings into the torques and the half period by which they act later would
    pass for missing effects.
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
        decimate=experiment.motions[0].decimate,
        delay=estimate.signals.delay - 0.5 / experiment.law.rate,
    )
    return replace(estimate, signals=signals), replace(experiment.recording, runs=tuple(runs))
