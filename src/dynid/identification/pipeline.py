"""From a robot and a recording to an estimate, in one call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ConflictingArguments, InvalidType, Mismatch, MissingArgument, NotApplicable, keyword
from dynid.feasibility.prior import known_masses
from dynid.identification.estimate import Estimate
from dynid.identification.estimators.method import Method
from dynid.identification.estimators.options import BodyOptions, MethodOptions
from dynid.identification.estimators.registry import check_factors_suffice, find_method, method_options, methods
from dynid.identification.estimators.solution import Solution, condition_number
from dynid.identification.experiment import Experiment
from dynid.identification.jackknife import NoiseModel, Uncertainty, check_noise_model, uncertainty
from dynid.identification.observation import Observation, check_no_client
from dynid.identification.observing import observe
from dynid.identification.row_stream import check_device
from dynid.identification.stops import stop_notes
from dynid.progress import ProgressCallback
from dynid.recording.dataset import DataSet
from dynid.recording.recording import Recording
from dynid.robot.model import Robot
from dynid.signals.domain import Domain
from dynid.signals.fingerprint import fingerprint
from dynid.signals.settings import Signals
from dynid.simulation.closed_loop import ClosedLoop
from dynid.threads import one_blas_thread

__all__ = [
    "check_folded",
    "estimate_closed_loop",
    "estimate_from",
    "estimate_of",
    "identify",
    "identify_observed",
]

Array = NDArray[np.float64]


def identify(
    robot: Robot,
    recording: Recording | DataSet | Observation,
    method: str = "auto",
    *,
    options: MethodOptions | None = None,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    loop: ClosedLoop | None = None,
    noise_model: NoiseModel = "autocorrelated",
    progress: ProgressCallback | None = None,
    client: Any = None,
    skip_bad: bool = False,
    device: str | None = None,
    **keywords: Any,
) -> Estimate:
    """Identify the dynamic parameters of a robot from a recording.

    Parameters
    ----------
    robot : Robot
        The robot, with the drive terms that are to be identified. Its parameter values are the prior of methods that
        use one and the start of methods that iterate.
    recording : Recording, DataSet or Observation
        Measured motion and torques. Methods that do not simulate also take an observation, see `observe`, and a data
        set, see `dynid.recording.open_dataset`. Methods that read the samples again do so in every iteration.
    method : str, default "auto"
        "auto" gives the most probable robot of a posterior over bodies and all drive terms, physically consistent and
        plausible; the scales of its priors are learned. `dynid.identification.methods()` lists all, with what each does
        and needs. Most fit the measured regressor. Those that simulate the closed loop need recorded references and the
        `loop`.
    options : MethodOptions, optional
        Options of the method as its dataclass, for example `WlsOptions(iterations=3)`.
    signals : Signals, optional
        How the runs are filtered and differentiated; by default `Signals()`.
    channels : str or sequence of str, optional
        Measured quantities that are fitted: "torque", "wrench" (of the base), "all", or names of channels with
        wildcards. By default those that all runs of the recording have.
    loop : ClosedLoop, optional
        The closed loop with the controller that made the recording. Methods that filter the recording without the
        controller take its integrator settings only.
    noise_model : {"autocorrelated", "white"}, default "autocorrelated"
        What the standard deviations assume of the residuals. "autocorrelated" measures them from blocks of time, so
        that correlation over time and between joints counts; "white" takes all rows as independent, as most
        publications do. Methods whose residuals are not those of measured torques always assume white noise.
    progress : callable, optional
        Called with a `dynid.progress.Progress` after every step of "auto", every partition of a data set, and every
        iteration of a method that simulates or filters.
    client : distributed.Client, optional
        Dask cluster whose workers read and fold the partitions of a data set. The result is the same to the last bit.
    skip_bad : bool, default False
        Leave out partitions of a data set that cannot be used; the notes of the estimate name them.
    device : str, optional
        Device of PyTorch that makes and folds the rows, such as "cuda" for a graphics card (`pip install dynid[gpu]`).
        The result is the same to rounding. Not for methods that simulate or that weight samples one by one.
    **keywords
        Options of the method by name, instead of `options`: `identify(robot, recording, "wls", iterations=3)`.

    Returns
    -------
    Estimate
        Base parameters with their covariance and the fit per channel.

    Raises
    ------
    DataError
        If the method, an option or a value of an option is wrong (before any signal is processed), or if the recording
        does not have what the method needs.
    DynidError
        If the motion does not excite all base parameters.

    Examples
    --------
    >>> import dynid
    >>> from dynid.cli.demo import synthetic_recording
    >>> robot = dynid.load_robot("rv2sq")
    >>> estimate = dynid.identify(robot, synthetic_recording(robot, 0, duration=5.0), "wls", iterations=2)
    >>> estimate.converged
    True
    """
    started = time.perf_counter()
    record, chosen = find_method(method), method_options(method, options, **keywords)
    check_noise_model(noise_model)
    _given_bodies(robot, chosen)  # wrong links are told before any signal is processed
    if device is not None:
        if isinstance(recording, Observation):
            raise NotApplicable(f"an observation is folded already; give {keyword('device')} to observe")
        check_folded(robot, record, chosen, device, client)
    if record.simulates:
        if not isinstance(recording, Recording):
            given = "a data set" if isinstance(recording, DataSet) else "an observation"
            raise NotApplicable(
                f"method '{method}' simulates the closed loop and needs the recording, not {given}", "method"
            )
        experiment = Experiment(robot, recording, _checked_loop(loop, record), signals or Signals(), channels)
        found = estimate_closed_loop(experiment, method, options=chosen, noise_model=noise_model, progress=progress)
        return replace(found, seconds=time.perf_counter() - started)
    if record.needs_runs and isinstance(recording, DataSet):
        check_factors_suffice(record, chosen, "which a data set does not keep")
    if loop is not None:
        raise NotApplicable(f"method '{method}' does not simulate; a loop is for {', '.join(_simulating())}", "loop")
    if record.takes == "recording":
        if isinstance(recording, Observation):
            _check_observed(robot, recording, signals, channels)
        found, _ = identify_observed(
            robot,
            recording,
            record,
            chosen,
            signals=signals,
            channels=channels,
            noise_model=noise_model,
            progress=progress,
            client=client,
            skip_bad=skip_bad,
            device=device,
        )
        return found
    if isinstance(recording, Observation):
        _check_observed(robot, recording, signals, channels)
        check_no_client(client)
        observation = recording
    else:
        observation = observe(
            robot,
            recording,
            signals=signals,
            channels=channels,
            client=client,
            skip_bad=skip_bad,
            progress=progress,
            device=device,
        )
    found = estimate_from(observation, method, options=chosen, noise_model=noise_model)
    return replace(found, seconds=time.perf_counter() - started)


def identify_observed(
    robot: Robot,
    recording: Recording | DataSet | Observation,
    method: Method,
    options: MethodOptions,
    *,
    signals: Signals | None = None,
    channels: str | Sequence[str] | None = None,
    noise_model: NoiseModel = "autocorrelated",
    progress: ProgressCallback | None = None,
    client: Any = None,
    skip_bad: bool = False,
    device: str | None = None,
) -> tuple[Estimate, Observation]:
    """The estimate of a method that takes the recording, and the observation it rests on, with its drive terms."""
    started, given = time.perf_counter(), _given_bodies(robot, options)
    # Small matrices gain nothing from several BLAS threads, which slow each other down.
    with one_blas_thread():
        solution, seen = method.function(
            robot,
            recording,
            options,
            signals=signals,
            channels=channels,
            progress=progress,
            tempered=noise_model != "white",
            client=client,
            skip_bad=skip_bad,
            device=device,
        )
        found = estimate_of(seen, solution, method.name, started, noise_model=noise_model)
    return replace(found, **given), seen


def check_folded(robot: Robot, method: Method, options: MethodOptions, device: str, client: Any = None) -> None:
    """Raise an error if the rows of a method cannot be folded on a device."""
    if method.simulates:
        raise NotApplicable(
            f"method '{method.name}' simulates or filters; {keyword('device')} is for methods that fit measured torques"
        )
    check_factors_suffice(method, options, f"which {keyword('device')} does not make")
    check_device(robot, device, client)


def _check_observed(
    robot: Robot, observation: Observation, signals: Signals | None, channels: str | Sequence[str] | None
) -> None:
    """Raise a DataError if an observation does not belong to a robot or is given settings that it has already."""
    if signals is not None or channels is not None:
        raise ConflictingArguments(
            "an observation has its signals and channels already; give them to observe", "signals"
        )
    if observation.robot.parameter_names != robot.parameter_names:
        raise Mismatch(f"the observation is of another robot or other drive terms than '{robot.name}'")


def _simulating() -> list[str]:
    """Names of the methods that simulate or filter."""
    return [method.name for method in methods().values() if method.simulates]


def _checked_loop(loop: ClosedLoop | None, method: Method) -> ClosedLoop:
    """The loop that a method simulates, refused where it has no controller and the method needs one."""
    if loop is not None and not isinstance(loop, ClosedLoop):
        raise InvalidType(f"loop is a dynid.ClosedLoop(controller=...), got {loop!r:.60}", "loop")
    loop = loop or ClosedLoop()
    if loop.controller is None and method.uses_controller:
        raise MissingArgument(
            f"method '{method.name}' simulates the closed loop: give the controller that made the recording, "
            f"a ClosedLoop for {keyword('loop')}"
        )
    return loop


def estimate_from(
    observation: Observation,
    method: str = "wls",
    *,
    options: MethodOptions | None = None,
    noise_model: NoiseModel = "autocorrelated",
    **keywords: Any,
) -> Estimate:
    """Run a method that does not simulate on an observation.

    Parameters
    ----------
    observation : Observation
        What `observe` returned.
    method : str, default "wls"
        One whose record in `dynid.identification.methods()` takes an observation.
    options : MethodOptions, optional
        Options of the method, as for `identify`.
    noise_model : {"autocorrelated", "white"}, default "autocorrelated"
        What the standard deviations assume of the residuals, as for `identify`.
    **keywords
        Options of the method by name.

    Returns
    -------
    Estimate
    """
    started = time.perf_counter()
    record, chosen = find_method(method), method_options(method, options, **keywords)
    if record.simulates:
        raise MissingArgument(f"method '{method}' simulates the closed loop and needs an experiment", "experiment")
    if record.takes == "recording":
        raise MissingArgument(f"method '{method}' needs the robot: use identify(robot, observation)")
    given = _given_bodies(observation.robot, chosen)
    if not observation.readable:
        check_factors_suffice(record, chosen)
    # Small matrices gain nothing from several BLAS threads, which slow each other down.
    with one_blas_thread():
        solution: Solution = record.function(observation, chosen)
        found = estimate_of(observation, solution, method, started, noise_model=noise_model)
    return replace(found, **given)


def _given_bodies(robot: Robot, options: MethodOptions) -> dict[str, Any]:
    """Fields of an estimate on what was given for the bodies; none where the method takes nothing on them."""
    if not isinstance(options, BodyOptions):
        return {}
    return {"known_masses": known_masses(robot, options.mass, options.link_masses), "box": bool(options.box)}


def estimate_closed_loop(
    experiment: Experiment,
    method: str,
    *,
    options: MethodOptions | None = None,
    noise_model: NoiseModel = "autocorrelated",
    progress: ProgressCallback | None = None,
    **keywords: Any,
) -> Estimate:
    """Run a method that simulates or filters on an experiment.

    Parameters
    ----------
    experiment : Experiment
        The recording with the controller that made it.
    method : str
        One whose record in `dynid.identification.methods()` takes an experiment.
    progress : callable, optional
        Called with a `dynid.progress.Progress` after every iteration.
    options : MethodOptions, optional
        Options of the method, as for `identify`.
    noise_model : {"autocorrelated", "white"}, default "autocorrelated"
        What the standard deviations assume of the residuals, as for `identify`.
    **keywords
        Options of the method by name.

    Returns
    -------
    Estimate
    """
    started = time.perf_counter()
    record, chosen = find_method(method), method_options(method, options, **keywords)
    if not record.simulates:
        raise NotApplicable(f"method '{method}' does not simulate; {', '.join(_simulating())} do", "method")
    with one_blas_thread():
        solution, observation = record.function(experiment, chosen, progress)
        assumed: NoiseModel = noise_model if record.fits_torques else "white"
        # Feedback makes the residuals of simulated regressors alternate, which says nothing of their other errors.
        least = 1.0 if record.alternating else 0.0
        found = estimate_of(observation, solution, method, started, noise_model=assumed, least_ratio=least)
    # The domain is that of the recorded motion, which simulated rows are not.
    domain = Domain.of_motions(found.robot, experiment.centred_motions)
    return replace(found, log_format=experiment.recording.log_format, domain=domain)


def estimate_of(
    observation: Observation,
    solution: Solution,
    method: str,
    started: float,
    condition: float | None = None,
    noise_model: NoiseModel = "white",
    least_ratio: float = 0.0,
) -> Estimate:
    """The estimate of a solution, with its fit to an observation.

    `started` is the value of time.perf_counter at the start. `condition` replaces the condition number of the
    observation where the solution rests on more rows than these.
    """
    residual, torque = observation.residual_norms(solution.beta), observation.torque_norms()
    if condition is None and solution.equations is not None and solution.rows is not None:
        condition = condition_number(np.vstack([Z for _, Z, _, _ in solution.rows()]))
    elif condition is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            condition = condition_number(observation.stacked(1.0 / solution.noise)[:, :-1])
    known = _with_unknown(observation, uncertainty(observation, solution, noise_model, least_ratio))
    still = () if observation.standstill is None else (observation.standstill.note,)
    left_out = stop_notes(observation.stops)
    return Estimate(
        base=observation.base,
        method=method,
        beta=solution.beta,
        covariance=known.covariance,
        noise=solution.noise,
        rows=observation.rows,
        rms=residual / np.sqrt(np.maximum(observation.rows, 1)),
        relative_error=residual / np.where(torque > 0, torque, np.inf),
        condition_number=condition,
        status=solution.status,
        seconds=time.perf_counter() - started,
        outcome=solution.outcome,
        signals=observation.signals,
        cutoffs=observation.cutoffs,
        notes=(*observation.notes, *solution.notes, *still, *left_out),
        standard=solution.parameters,
        standard_covariance=known.standard,
        history=solution.history,
        log_format=observation.log_format,
        noise_model=known.noise_model,
        freedom=known.freedom,
        independent_rows=known.independent_rows,
        walls=solution.walls,
        fingerprint=fingerprint(observation.motions) if observation.motions else observation.fingerprint,
        domain=observation.domain,
    )


def _with_unknown(observation: Observation, known: Uncertainty) -> Uncertainty:
    """The uncertainty with infinite variances of the parameters that joints at rest leave unknown."""
    if observation.standstill is None:
        return known

    def infinite(covariance: Array, unknown: NDArray[np.bool_]) -> Array:
        out = np.where(unknown[:, None] | unknown, 0.0, covariance)
        out[unknown, unknown] = np.inf
        return out

    standard = known.standard
    if standard is not None:
        still = observation.standstill.joints
        drives = np.array([not p.inertial and p.owner in still for p in observation.robot.layout])
        standard = infinite(standard, drives)
    return replace(known, covariance=infinite(known.covariance, observation.standstill.unknown), standard=standard)
