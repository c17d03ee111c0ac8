"""`identify_legs`: base parameters of a robot on its legs, from torques, encoders and an inertial unit."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    ConflictingArguments,
    MissingArgument,
    MissingData,
    NotApplicable,
    UnknownName,
    named,
    one_of,
)
from dynid.feasibility.constraints import Mass
from dynid.feasibility.prior import known_masses
from dynid.identification.estimators.feasible import FEASIBLE
from dynid.identification.estimators.least_squares import WLS, wls
from dynid.identification.estimators.solution import Solution
from dynid.identification.jackknife import jackknife
from dynid.identification.observation import Observation
from dynid.identification.pipeline import estimate_of
from dynid.legs.contacts import Contact, as_contacts, legs_base_parameters, mode_name
from dynid.legs.fold import estimate_noise, observe_legs
from dynid.legs.result import LegsEstimate, trunk_of
from dynid.legs.runs import LegNoise, LegRun, prepare_legs, used_modes
from dynid.markup import HtmlSummary
from dynid.parameters.base import BaseParameters
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.threads import one_blas_thread

__all__ = ["LEG_SIGNALS", "TrunkPayload", "identify_legs", "identify_trunk_payload", "rejected_samples", "whitened"]

Array = NDArray[np.float64]

# Torques and motion have the same low-pass, since rows of different contact modes cannot be decimated together.
LEG_SIGNALS = Signals(cutoff=20.0, torque_cutoff="same", decimate=())
# A sample whose residual is larger in all but one of so many recordings of Gaussian noise is an outlier.
_OUTLIER = 1e-6
# No standard deviation is smaller than that of white noise: rows are thinned to the band of the low-pass.
_LEAST_RATIO = 1.0
_METHODS = {method.name: method for method in (FEASIBLE, WLS)}


def identify_legs(
    robot: Robot,
    recording: Recording,
    feet: Sequence[Contact | str],
    method: Literal["wls", "feasible"] = "feasible",
    *,
    imu: str | None = None,
    mass: float | None = None,
    signals: Signals | None = None,
    foot_std: float = 0.03,
    every: int | None = None,
    foot_forces: bool = False,
    **options: Any,
) -> LegsEstimate:
    """Identify a robot that stands or walks from torques, encoders and an inertial unit; contact forces are unknown.

    The equations of motion are projected on the null space of the contact Jacobian at each sample, where contact forces
    do not occur, and are whitened for the noise of torques and accelerations. A foot touches where the run's `contacts`
    or the torques of its leg say so.

    Parameters
    ----------
    robot : Robot
        The robot, with a floating base and its a-priori parameters.
    recording : Recording
        Runs with joint positions, torques, `imu`, and `contacts` where a schedule or foot switches are known.
    feet : sequence of Contact or str
        Frames of the feet, or contacts with their kind and radius.
    method : {"feasible", "wls"}
        Physically consistent parameters, or weighted least squares.
    imu : str, optional
        Frame of the inertial unit, by default the base link.
    mass : float, optional
        Mass (kg) of the whole robot, if it was weighed; for method "feasible".
    signals : Signals, optional
        How the runs are filtered, by default with 20 Hz. Torques must have the low-pass of the positions.
    foot_std : float
        Standard deviation (m/s) of the velocity of a foot at rest.
    every : int, optional
        Every how many samples give rows, by default as many as the low-pass leaves independent.
    foot_forces : bool
        Use the runs' `wrenches` of the feet, by the names of their frames, instead of eliminating the forces.
    **options
        Options of method "feasible", see `FeasibleOptions`.

    Returns
    -------
    LegsEstimate

    Raises
    ------
    DataError
        If a run has no torques or no inertial unit, no foot stands, the standing feet slip, or contacts depend on each
        other.
    """
    started, given = time.perf_counter(), known_masses(robot, mass)
    if method not in _METHODS:
        raise UnknownName(f"{named('method')} '{method}' is unknown for legs: use {one_of(_METHODS)}")
    record = _METHODS[method]
    if not record.consistent and (mass is not None or options):
        raise ConflictingArguments(
            f"mass and constraints are for method '{FEASIBLE.name}', not for '{method}'", "method"
        )
    contacts = as_contacts(robot, feet)
    settings = signals or LEG_SIGNALS
    if settings.torque_cutoff != "same" or settings.decimate != ():
        raise NotApplicable(
            "legs need torques with the low-pass of the positions, and rows that are not decimated", "signals"
        )
    runs = prepare_legs(
        robot, recording, contacts, imu=imu, signals=settings, foot_std=foot_std, every=every, foot_forces=foot_forces
    )
    base = legs_base_parameters(robot, used_modes(runs, contacts))
    with one_blas_thread():
        observation, noise, runs, rejected = whitened(robot, base, runs, contacts, settings)
        if record.consistent:
            laws: list[Any] = [options.pop("constraints", "full")]
            laws += [] if mass is None else [Mass(mass, mass)]
            options |= {"constraints": laws, "mass": mass}
        solution: Solution = record.function(observation, record.options(**options))
        estimate = estimate_of(
            observation, solution, method, started, noise_model="autocorrelated", least_ratio=_LEAST_RATIO
        )
    return LegsEstimate(
        estimate=replace(
            estimate,
            log_format=recording.log_format,
            seconds=time.perf_counter() - started,
            known_masses=given,
        ),
        contacts=contacts,
        imu=imu,
        noise=noise,
        bases=tuple(run.base for run in runs),
        contradicted=_joined(recording, runs, contacts, "contradicted"),
        slips=_joined(recording, runs, contacts, "slips"),
        rejected=rejected,
        samples=sum(len(run.used) for run in runs) + rejected,
        foot_std=foot_std,
        foot_forces=foot_forces,
    )


def whitened(
    robot: Robot,
    base: BaseParameters,
    runs: Sequence[LegRun],
    contacts: Sequence[Contact],
    settings: Signals,
    known: ArrayLike | None = None,
) -> tuple[Observation, LegNoise, list[LegRun], int]:
    """The observation with the noise of its own residuals and without outliers, and how many samples these were."""
    noise = mean_noise(runs)
    fixed = None if known is None else np.asarray(known, dtype=float)
    observation = observe_legs(robot, base, runs, contacts, noise, settings=settings, known=known)
    noise = estimate_noise(robot, runs, contacts, base, wls(observation).beta, noise, fixed)
    observation = observe_legs(robot, base, runs, contacts, noise, settings=settings, known=known)
    left, count = rejected_samples(observation, runs)
    if count:
        runs = left
        noise = estimate_noise(robot, runs, contacts, base, wls(observation).beta, noise, fixed)
        observation = observe_legs(robot, base, runs, contacts, noise, settings=settings, known=known)
    return observation, noise, list(runs), count


def mean_noise(runs: Sequence[LegRun]) -> LegNoise:
    """Root mean square of the noise of all runs."""
    return LegNoise(
        np.sqrt(np.mean([run.noise.torque**2 for run in runs], axis=0)),
        np.sqrt(np.mean([run.noise.acceleration**2 for run in runs], axis=0)),
    )


def rejected_samples(observation: Observation, runs: Sequence[LegRun]) -> tuple[list[LegRun], int]:
    """The runs without samples whose residual is too large for noise, and how many there were."""
    solution = wls(observation)
    total = sum(len(run.motion.t) for run in runs)
    squares, rows = np.zeros(total), np.zeros(total)
    for block in observation.blocks():
        e = (block.y - block.W @ solution.beta) / solution.noise[block.channel]
        squares += np.bincount(block.index, e**2, total)
        rows += np.bincount(block.index, minlength=total)
    seen = rows > 0
    # Heavier tails than Gaussian ones are usual: the scale is that of the median sample.
    scale = float(np.median(squares[seen] / scipy.stats.chi2.median(rows[seen])))
    limit = max(scale, 1.0) * scipy.stats.chi2.isf(_OUTLIER, np.maximum(rows, 1.0))
    bad = seen & (squares > limit)
    out, first = [], 0
    for run in runs:
        out.append(replace(run, used=run.used[~bad[first + run.used]]))
        first += len(run.motion.t)
    return out, int(bad.sum())


def _joined(
    recording: Recording, runs: Sequence[LegRun], contacts: Sequence[Contact], what: str
) -> dict[str, dict[str, NDArray[np.bool_]]]:
    """Masks of the samples per run and foot."""
    out = {}
    for k, (run, given) in enumerate(zip(runs, recording.runs, strict=True), 1):
        source = run.schedule.contradicted if what == "contradicted" else run.base.slips
        out[given.name if given.name not in out else f"{given.name} ({k})"] = {
            contact.frame: source[contact.frame] for contact in contacts
        }
    return out


# The legs are the same with and without the payload, whatever they are.
_SAME_LEGS = 1e-3


@dataclass(frozen=True, eq=False)
class TrunkPayload(HtmlSummary):
    """Mass and centre of mass of what the trunk carries.

    Attributes
    ----------
    mass, mass_std : float
        Mass in kg and its standard deviation.
    center, center_std : ndarray (3,)
        Centre of mass in the frame of the trunk, m, and its standard deviation.
    parameters, std : ndarray (10,)
        All inertial parameters of the payload and their standard deviations, in the frame of the trunk.
    """

    mass: float
    mass_std: float
    center: Array
    center_std: Array
    parameters: Array
    std: Array

    def summary(self) -> str:
        """One line.

        Returns
        -------
        str
        """
        where = ", ".join(f"{1e3 * x:.1f}" for x in self.center)
        stds = ", ".join(f"{1e3 * x:.1f}" for x in self.center_std)
        return (
            f"payload on the trunk: {self.mass:.4g} kg (standard deviation {self.mass_std:.2g}), centre of mass at "
            f"{where} mm ({stds})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Values ready for JSON.

        Returns
        -------
        dict
        """
        return {
            "mass": self.mass,
            "mass_std": self.mass_std,
            "center": self.center.tolist(),
            "center_std": self.center_std.tolist(),
            "parameters": self.parameters.tolist(),
            "std": self.std.tolist(),
        }


def identify_trunk_payload(
    unloaded: LegsEstimate | Robot,
    recording: Recording,
    feet: Sequence[Contact | str] | None = None,
    *,
    imu: str | None = None,
    foot_std: float = 0.03,
) -> TrunkPayload:
    """Identify a payload that is fixed to the trunk from runs with it and the robot without it.

    Parameters
    ----------
    unloaded : LegsEstimate or Robot
        The robot without the payload, identified or known.
    recording : Recording
        Runs with the payload: torques, encoders and inertial unit.
    feet : sequence of Contact or str, optional
        The feet; those of the estimate if one is given.
    imu : str, optional
        Frame of the inertial unit; that of the estimate if one is given.
    foot_std : float
        Standard deviation (m/s) of the velocity of a foot at rest.

    Returns
    -------
    TrunkPayload

    Raises
    ------
    DataError
        If there are no feet, or the payload has no positive mass.
    """
    if isinstance(unloaded, LegsEstimate):
        robot, contacts, imu = unloaded.identified_robot, unloaded.contacts, imu or unloaded.imu
        settings = unloaded.estimate.signals
    else:
        if feet is None:
            raise MissingArgument("feet are needed beside a robot; an estimate knows its own", "feet")
        robot, contacts, settings = unloaded, as_contacts(unloaded, feet), LEG_SIGNALS
    runs = prepare_legs(robot, recording, contacts, imu=imu, signals=settings, foot_std=foot_std, every=None)
    base = _trunk_alone(robot, contacts)
    with one_blas_thread():
        observation, _, _, _ = whitened(robot, base, runs, contacts, settings, robot.parameters)
        solution = wls(observation)
        blocks = jackknife(observation, solution.beta, solution.noise)
    white = np.sqrt(np.diag(solution.covariance))
    ratio = np.ones(10) if blocks is None else np.maximum(blocks.ratio, 1.0)
    covariance = solution.covariance * np.outer(ratio, ratio)
    if isinstance(unloaded, LegsEstimate):
        covariance = covariance + _of_unloaded(unloaded)
    mass = float(solution.beta[0])
    if mass <= 0:
        raise MissingData(
            f"the difference to the robot without payload has the mass {mass:.3g} kg: there is no payload"
        )
    center = solution.beta[1:4] / mass
    slopes = np.hstack([-center[:, None] / mass, np.eye(3) / mass])
    std = np.sqrt(np.maximum(np.diag(covariance), white**2))
    return TrunkPayload(
        mass,
        float(std[0]),
        center,
        np.sqrt(np.diag(slopes @ covariance[:4, :4] @ slopes.T)),
        solution.beta,
        std,
    )


def _trunk_alone(robot: Robot, contacts: Sequence[Contact]) -> BaseParameters:
    """The ten parameters of the trunk as base parameters: all others are known."""
    matrix = np.zeros((10, len(robot.layout)))
    matrix[:, :10] = np.eye(10)
    rest = tuple(range(10, len(robot.layout)))
    name = mode_name(tuple(contacts))
    return BaseParameters(robot, (name,), "known", matrix, tuple(range(10)), rest, np.ones(10), np.inf, rest)


def _of_unloaded(unloaded: LegsEstimate) -> Array:
    """Covariance (10, 10) of the mass and centre of the trunk without payload, for the same legs in both."""
    trunk = trunk_of(unloaded.estimate, _SAME_LEGS)
    out = np.zeros((10, 10))
    out[0, 0] = trunk.mass_std**2
    out[1:4, 1:4] = np.diag((trunk.mass * trunk.center_std) ** 2)
    return out
