"""Parts of a Monte Carlo study: robots in closed loop, sensors, filters, starts and estimators."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import (
    Duplicate,
    Infeasible,
    InvalidType,
    InvalidValue,
    MissingArgument,
    MissingData,
    UnknownName,
)
from dynid.feasibility.constraints import Signs
from dynid.feasibility.sets import feasible_set
from dynid.identification.estimators.registry import find_method, method_options
from dynid.identification.jackknife import NoiseModel, check_noise_model
from dynid.robot.inertia import inertia_to_pseudo
from dynid.robot.load import load_robot
from dynid.robot.model import Robot
from dynid.signals.settings import Signals
from dynid.simulation.closed_loop import ClosedLoop
from dynid.simulation.reference import as_reference
from dynid.simulation.sensors import Sensors

__all__ = ["Estimator", "MonteCarloStudy", "Scenario", "Start", "perturbed_parameters"]

Array = NDArray[np.float64]
Start = Literal["truth", "feasible"] | float | ArrayLike

_BATCH = 4096
_MAX_DRAWS = 1_000_000


@dataclass(frozen=True, eq=False)
class Scenario:
    """A robot whose parameters are the truth, in closed loop along a reference.

    Attributes
    ----------
    robot : Robot or str
        The true robot, or the name of a built-in one.
    loop : ClosedLoop
        Controller and integrator settings; the study's `noise` provides the sensors.
    reference : Reference, Excitation, Run or array_like of shape (K, n)
        Motion that the controller follows.
    rate : float, optional
        Rate of the recordings, Hz; by default that of the controller.
    model : Robot, optional
        The robot that is identified, where it differs from the true one, as when a friction term is left out. Its true
        values are taken by name.
    """

    robot: Robot | str
    loop: ClosedLoop
    reference: Any
    rate: float | None = None
    model: Robot | None = None

    def __post_init__(self) -> None:
        controller = self.loop.controller if isinstance(self.loop, ClosedLoop) else None
        if controller is None:
            raise MissingArgument("a scenario needs a dynid.ClosedLoop with a controller", "controller")
        robot = load_robot(self.robot) if isinstance(self.robot, str) else self.robot
        model = robot if self.model is None else self.model
        unknown = sorted(set(model.parameter_names) - set(robot.parameter_names))
        if unknown:
            raise MissingData(f"the model of '{robot.name}' has parameters without a truth: {', '.join(unknown[:3])}")
        truth = dict(zip(robot.parameter_names, robot.parameters, strict=True))
        object.__setattr__(self, "robot", robot)
        object.__setattr__(self, "model", model.with_parameters([truth[name] for name in model.parameter_names]))
        object.__setattr__(self, "reference", as_reference(self.reference, robot, controller.rate))


@dataclass(frozen=True, eq=False)
class Estimator:
    """A method of `identify` with its options.

    Attributes
    ----------
    method : str
        Name of the method.
    options : mapping of str to object
        Options of the method by name.
    name : str
        Name in the tables, where one method runs with several options; by default the method.
    noise_model : {"autocorrelated", "white"}
        What its standard deviations assume of the residuals, as for `identify`.
    """

    method: str
    options: Mapping[str, Any] = field(default_factory=dict)
    name: str = ""
    noise_model: NoiseModel = "autocorrelated"

    def __post_init__(self) -> None:
        object.__setattr__(self, "name", self.name or self.method)
        method_options(self.method, **self.options)
        check_noise_model(self.noise_model)

    @property
    def simulates(self) -> bool:
        """Whether it simulates the closed loop, and so depends on where it starts."""
        return find_method(self.method).simulates


@dataclass(frozen=True, eq=False)
class MonteCarloStudy:
    """A Monte Carlo study: robots x noise x filters x starts x estimators, repeated `runs` times.

    Attributes
    ----------
    robots : mapping of str to Scenario
        Scenarios by name.
    noise : mapping of str to Sensors
        Sensors by name.
    filters : mapping of str to Signals
        Signal settings by name.
    starts : mapping of str to start
        Initial parameters of methods that simulate: "truth", "feasible" (the physically consistent fit to the measured
        regressors), standard parameters (p,), or a share by which the truth is perturbed anew in every run.
    estimators : sequence of str or Estimator
        Methods. Those that do not simulate have no start.
    runs : int
        Number of recordings per robot and noise.
    seed : int
        Seed of all random numbers.
    pairs : sequence of (str, str), optional
        Combinations of noise and filter names; all by default.
    measure : callable, optional
        `measure(experiment, estimate)` returns further figures of each fit by name.
    """

    robots: Mapping[str, Scenario]
    noise: Mapping[str, Sensors]
    filters: Mapping[str, Signals] = field(default_factory=lambda: {"default": Signals()})
    starts: Mapping[str, Start] = field(default_factory=lambda: {"truth": "truth"})
    estimators: Sequence[str | Estimator] = ("wls", "feasible", "iv", "didim", "pc-iv", "pc-didim")
    runs: int = 40
    seed: int = 0
    pairs: Sequence[tuple[str, str]] | None = None
    measure: Callable[..., Mapping[str, float]] | None = None

    def __post_init__(self) -> None:
        for name in ("robots", "noise", "filters", "starts", "estimators"):
            if not getattr(self, name):
                raise MissingArgument(f"a Monte Carlo study needs {name}")
        if self.runs < 1 or self.seed < 0:
            raise InvalidValue(f"a study has at least one run and a seed from 0, got {self.runs} and {self.seed}")
        chosen = tuple(Estimator(e) if isinstance(e, str) else e for e in self.estimators)
        names = [e.name for e in chosen]
        if len(set(names)) < len(names):
            raise Duplicate(
                f"two estimators are named '{max(names, key=names.count)}'; give one another name", "estimators"
            )
        object.__setattr__(self, "estimators", chosen)
        for noise, signals in self.pairs or ():
            if noise not in self.noise or signals not in self.filters:
                raise UnknownName(f"the pair '{noise}', '{signals}' names no noise and filter of the study", "pairs")
        for name, start in self.starts.items():
            _check_start(name, start)

    def units(self) -> list[tuple[str, str, int]]:
        """Robot, noise and run of every recording that is simulated; runs come last, so that all parts grow alike."""
        noises = [n for n in self.noise if self.pairs is None or any(n == pair[0] for pair in self.pairs)]
        return [(r, n, run) for run in range(self.runs) for r in self.robots for n in noises]

    def filters_of(self, noise: str) -> dict[str, Signals]:
        """The filters that this noise goes with."""
        return {f: s for f, s in self.filters.items() if self.pairs is None or (noise, f) in self.pairs}

    def seed_of(self, *names: object) -> int:
        """A seed that depends on the study's and on these names alone."""
        text = "\x1f".join(map(str, (self.seed, *names)))
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])

    def digest(self) -> str:
        """A fingerprint of everything but the number of runs, which may grow; functions count by their names."""
        from dynid import __version__

        parts = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "runs"}
        total = hashlib.sha256(__version__.encode())
        _feed(total, parts)
        return total.hexdigest()


def perturbed_parameters(robot: Robot, share: float, rng: np.random.Generator | int) -> Array:
    """Draw standard parameters around those of a robot.

    Draws are rejected link by link until each is physically consistent, and for the drives until no friction or rotor
    inertia is negative. Parameters that are zero stay zero.

    Parameters
    ----------
    robot : Robot
        The robot.
    share : float
        Standard deviation of each parameter relative to its value.
    rng : numpy.random.Generator or int
        Random number generator or seed.

    Returns
    -------
    ndarray, shape (p,)
        Standard parameters.

    Raises
    ------
    DataError
        If the share is invalid, or no physically consistent draw is found.
    """
    if not 0 <= share < np.inf:
        raise InvalidValue(f"the share of a perturbation must be finite and not negative, got {share}", "share")
    rng = np.random.default_rng(rng)
    truth = robot.parameters
    out = np.array(truth)
    inertial = np.array([p.inertial for p in robot.layout])
    # Contribution of each inertial parameter to the 4x4 pseudo-inertia.
    pseudo = np.array([inertia_to_pseudo(row) for row in np.eye(10)])
    for i in robot.parameter_links:
        name = robot.links[i].name
        at = robot.parameter_names.index(f"m_{name}") + np.arange(10)
        out[at] = _first_feasible(
            truth[at], share, rng, lambda x: np.linalg.eigvalsh(np.tensordot(x, pseudo, 1))[:, 0] > 0, f"link '{name}'"
        )
    drives = np.flatnonzero(~inertial)
    signs = feasible_set(robot, [Signs()])

    def allowed(x: Array) -> NDArray[np.bool]:
        whole = np.tile(truth, (len(x), 1))
        whole[:, drives] = x
        return np.array([signs.slack(row) >= 0 for row in whole])

    out[drives] = _first_feasible(truth[drives], share, rng, allowed, "the drives", batch=16)
    return out


def _first_feasible(
    value: Array,
    share: float,
    rng: np.random.Generator,
    accepted: Callable[[Array], NDArray[np.bool]],
    what: str,
    batch: int = _BATCH,
) -> Array:
    """The first draw around a value that is accepted."""
    if share == 0 or value.size == 0:
        return value
    for _ in range(0, _MAX_DRAWS, _BATCH):
        draws = value + share * np.abs(value) * rng.standard_normal((batch, value.size))
        good = accepted(draws)
        if good.any():
            return draws[int(np.argmax(good))]
    raise Infeasible(f"no physically consistent values of {what} are found {100 * share:g} % around its own")


def _check_start(name: str, start: Start) -> None:
    if isinstance(start, str):
        good = start in ("truth", "feasible")
    else:
        value = np.asarray(start, dtype=float)
        good = bool(np.all(np.isfinite(value))) and (value.ndim == 1 or (value.ndim == 0 and float(value) >= 0))
    if not good:
        raise InvalidValue(
            f"start '{name}' is 'truth', 'feasible', a share or standard parameters, not {start!r:.40}", "starts"
        )


def _feed(total: Any, part: Any) -> None:
    """Add any part of a study to a hash, by content."""
    if is_dataclass(part) and not isinstance(part, type):
        total.update(type(part).__qualname__.encode())
        # Where a robot was read from does not change it.
        part = {f.name: getattr(part, f.name) for f in fields(part) if f.name != "source"}
    if isinstance(part, Mapping):
        for key in part:
            total.update(f"{key}=".encode())
            _feed(total, part[key])
    elif isinstance(part, np.ndarray):
        total.update(f"{part.dtype}{part.shape}".encode() + np.ascontiguousarray(part).tobytes())
    elif isinstance(part, list | tuple):
        total.update(f"[{len(part)}".encode())
        for item in part:
            _feed(total, item)
    elif callable(part):
        if not hasattr(part, "__qualname__"):
            raise InvalidType(
                f"{part!r:.60} is neither a function nor a dataclass, so studies with it cannot be told apart"
            )
        total.update(f"{part.__module__}.{part.__qualname__}".encode())
    else:
        total.update(repr(part).encode())
