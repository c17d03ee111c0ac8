"""From a robot and a recording to an estimate, in one call or as data keep arriving."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from dynid.errors import DataError, did_you_mean
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.registry import CLOSED_LOOP, ESTIMATORS, UNCONTROLLED, Solution
from dynid.identification.experiment import Experiment
from dynid.identification.observation import Observation, observe
from dynid.parameters.base import BaseParameters, base_parameters
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.simulation.engine import Loop
from dynid.simulation.laws import Controller
from dynid.simulation.sensors import Sensors

__all__ = [
    "SequentialIdentification",
    "check_method",
    "estimate_closed_loop",
    "estimate_from",
    "estimate_of",
    "identify",
]


def identify(
    robot: Robot,
    recording: Recording | Observation,
    method: str = "wls",
    *,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    controller: Controller | None = None,
    sensors: Sensors | None = None,
    loop: Loop | None = None,
    **options: Any,
) -> Estimate:
    """Identify the base parameters of a robot from a recording.

    `method` is one of ols, wls, gls, irls, tls, ridge, feasible; `options` go to it. `signals` says how runs are
    cleaned, `channels` what counts: "torque", "wrench" of the base, "all" or names (by default what was recorded). An
    Observation may be given instead of a recording. The methods iv, didim, pc-iv, pc-didim, cloe and clie simulate the
    closed loop: they need recorded references and the `controller`, with the `sensors` it reads and how the `loop` is
    computed; ml, ekf and ukf do without.
    """
    started = time.perf_counter()
    check_method(method)
    if method in CLOSED_LOOP:
        if isinstance(recording, Observation):
            raise DataError(f"method '{method}' simulates the closed loop and needs the recording itself")
        if controller is None and method not in UNCONTROLLED:
            raise DataError(f"method '{method}' simulates the closed loop: give the controller that made the recording")
        experiment = Experiment(
            robot, recording, controller, signals or Signals(), loop or Loop("auto"), sensors or Sensors(), channels
        )
        return replace(estimate_closed_loop(experiment, method, **options), seconds=time.perf_counter() - started)
    if controller is not None or sensors is not None or loop is not None:
        raise DataError(f"method '{method}' does not simulate; controller, sensors and loop are for {_listed()}")
    if isinstance(recording, Observation):
        if signals is not None or channels is not None:
            raise DataError("an observation has its signals and channels already; give them to observe")
        if recording.robot.parameter_names != robot.parameter_names:
            raise DataError(f"the observation is of another robot or other drive terms than '{robot.name}'")
        observation = recording
    else:
        observation = observe(robot, recording, signals, channels=channels)
    return replace(estimate_from(observation, method, **options), seconds=time.perf_counter() - started)


def check_method(method: str) -> None:
    """Refuse a name that no estimator has."""
    known = [*ESTIMATORS, *CLOSED_LOOP]
    if method not in known:
        raise DataError(f"method '{method}' is unknown: use {', '.join(known)}{did_you_mean(method, known)}")


def estimate_from(observation: Observation, method: str, **options: Any) -> Estimate:
    """Run one estimator on an observation."""
    check_method(method)
    if method in CLOSED_LOOP:
        raise DataError(f"method '{method}' simulates the closed loop and needs an experiment")
    started = time.perf_counter()
    solution = _run(ESTIMATORS[method], observation, method, options)
    return estimate_of(observation, solution, method, started)


def estimate_closed_loop(experiment: Experiment, method: str, **options: Any) -> Estimate:
    """Run one estimator that simulates on an experiment."""
    if method not in CLOSED_LOOP:
        raise DataError(f"method '{method}' does not simulate; {_listed()} do")
    started = time.perf_counter()
    solution, observation = _run(CLOSED_LOOP[method], experiment, method, options)
    return estimate_of(observation, solution, method, started)


def _run(estimator: Callable[..., Any], data: Observation | Experiment, method: str, options: dict[str, Any]) -> Any:
    try:
        # Small matrices gain nothing from several BLAS threads, which get in each other's way.
        with threadpool_limits(1, "blas"):
            return estimator(data, **options)
    except TypeError as error:
        if "unexpected keyword" in str(error):
            raise DataError(f"method '{method}' does not take {str(error).split('argument ')[-1]}") from None
        raise


def _listed() -> str:
    return ", ".join(CLOSED_LOOP)


def estimate_of(observation: Observation, solution: Solution, method: str, started: float) -> Estimate:
    residual, torque = observation.residual_norms(solution.beta), observation.torque_norms()
    return Estimate(
        base=observation.base,
        method=method,
        beta=solution.beta,
        covariance=solution.covariance,
        noise=solution.noise,
        rows=observation.rows,
        rms=residual / np.sqrt(np.maximum(observation.rows, 1)),
        relative_error=residual / np.where(torque > 0, torque, np.inf),
        condition_number=solution.condition_number,
        status=solution.status,
        seconds=time.perf_counter() - started,
        signals=observation.signals,
        cutoffs=observation.cutoffs,
        notes=solution.notes,
        standard=solution.parameters,
        standard_covariance=solution.parameter_covariance,
        history=solution.history,
    )


class SequentialIdentification:
    """Least squares for logs that keep arriving: each recording is folded in and can be forgotten.

    With `forgetting` below one, what was known before each update counts that much less.
    """

    def __init__(
        self,
        robot: Robot,
        signals: Signals | None = None,
        channels: str | Sequence[str] | None = None,
        forgetting: float = 1.0,
    ) -> None:
        if not 0 < forgetting <= 1:
            raise DataError(f"forgetting must lie in (0, 1], got {forgetting}")
        self._base: BaseParameters = base_parameters(robot, channels=channels if channels is not None else "torque")
        self._signals = signals or Signals()
        self._forgetting = forgetting
        self._observation: Observation | None = None

    def update(self, recording: Recording) -> None:
        """Fold a recording in."""
        new = observe(self._base.robot, recording, self._signals, self._base)
        if self._observation is not None:
            old = self._observation
            faded = replace(old, factors=tuple(np.sqrt(self._forgetting) * f for f in old.factors))
            new = faded.joined(new)
        self._observation = replace(new, blocks=lambda: iter(()))

    def estimate(self, method: str = "wls", **options: Any) -> Estimate:
        """What all recordings so far say; methods that need the rows again (irls, gls) are refused."""
        if self._observation is None:
            raise DataError("no recording has arrived yet")
        if method in ("irls", "gls"):
            raise DataError(
                f"method '{method}' needs the samples again, which are not kept; use ols, wls, tls or ridge"
            )
        return estimate_from(self._observation, method, **options)
