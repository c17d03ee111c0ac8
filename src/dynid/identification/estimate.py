"""Estimate: identified parameters with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.attached import attached
from dynid.errors import InvalidValue, MissingData
from dynid.feasibility.box import Wall
from dynid.feasibility.prior import KnownMasses
from dynid.identification.estimators.solution import Iteration, Outcome
from dynid.identification.jackknife import NoiseSource
from dynid.identification.judgement import Judgement
from dynid.parameters.base import BASE, BaseParameters, ParameterClass
from dynid.recording.log_format import LogFormat
from dynid.results import Column, Finite, SavedResult, Table, View, about
from dynid.robot.model import Robot
from dynid.signals.domain import Domain
from dynid.signals.fingerprint import Fingerprint
from dynid.signals.settings import Signals

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dynid.feasibility.constraints import Constraints
    from dynid.feasibility.queries import FeasibilityTest
    from dynid.identification.validation_errors import Validation
    from dynid.parameters.base_model import BaseModel
    from dynid.progress import ProgressCallback
    from dynid.recording.dataset import DataSet
    from dynid.recording.recording import Recording

__all__ = ["Estimate", "Prediction"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Prediction:
    """Predicted torques with their uncertainty.

    Attributes
    ----------
    channels : tuple of str
        Joints and wrench channels.
    torque : ndarray, shape (N, channel)
        Predicted torques in N m or N.
    std : ndarray, shape (N, channel)
        Standard deviation of a measured torque about the predicted one.
    beyond : ndarray of bool, shape (N, joint)
        Which joints are outside of the domain of validity.
    """

    channels: tuple[str, ...]
    torque: Array
    std: Array
    beyond: NDArray[np.bool_]


def _percent(relative: float) -> str:
    return f"{relative:.2f}" if relative < 1000 else f"{relative:.0e}"


def _title(estimate: Estimate) -> str:
    return f"{estimate.robot.name}: {estimate.beta.size} base parameters by {estimate.method}"


def _table(estimate: Estimate) -> list[dict[str, Any]]:
    """The base parameters for readers of a file."""
    base = estimate.base
    columns = (base.names, base.expressions, base.units, estimate.beta.tolist(), estimate.std.tolist())
    names = ("name", "expression", "unit", "value", "std")
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


@dataclass(frozen=True, eq=False)
class Estimate(SavedResult):
    """Identified base parameters with their covariance, the fit per channel, and how they were found."""

    kind = "estimate"
    sizes = MappingProxyType(
        {
            "b": ("base.kept", "base parameters"),
            "p": ("robot.layout", "standard parameters"),
            "channel": ("base.channels", "channels"),
        }
    )
    views = MappingProxyType(
        {
            "channels": View("base.channels", exact=True),
            "base_parameters": View(_table, exact=True),
            "standard_parameters": View(
                lambda e: dict(zip(e.robot.parameter_names, e.parameters, strict=True)), dict[str, Finite]
            ),
            "parameter_classes": View(
                lambda e: {name: kind.value for name, kind in e.parameter_classes.items()}, dict[str, ParameterClass]
            ),
        }
    )
    tables = (
        Table(
            _title,
            "b",
            (
                Column("base.names", "parameter"),
                Column("base.expressions", "combination", "combination"),
                Column("base.units", "unit", "unit"),
                Column(lambda e: e.base.values(), "prior", "a priori", ".5g"),
                Column("beta", "estimate", "estimate", ".5g"),
                Column("std", "std", "sigma", ".2g"),
                Column("relative_std", "", "sigma %", _percent),
                Column(lambda e: e.confidence_intervals()[:, 0], "low"),
                Column(lambda e: e.confidence_intervals()[:, 1], "high"),
            ),
            lambda e: e.status,
        ),
        Table(
            "fit",
            "channel",
            (
                Column("base.channels", "channel", "channel"),
                Column("rows", "rows", "rows", "d"),
                Column("rms", "rms", "RMS", ".4g"),
                Column("base.channel_units", "unit", "unit"),
                Column(lambda e: 100 * e.relative_error, "relative %", "relative %", ".2f"),
            ),
            lambda e: f"condition number {e.condition_number:.4g}",
        ),
    )

    base: BaseParameters = field(
        metadata=about(
            "The base parameters: which combinations of standard parameters were identified, from which channels.",
            codec=BASE,
        )
    )
    method: str = field(metadata=about("The method of `identify`."))
    beta: Array = field(metadata=about("Base parameters, in the units `base.units`.", size=("b",), finite=True))
    covariance: Array = field(metadata=about("Their covariance.", size=("b", "b")))
    noise: Array = field(
        metadata=about("Standard deviation of the torque noise per channel.", unit="N m or N", size=("channel",))
    )
    rows: tuple[int, ...] = field(metadata=about("Number of fitted rows per channel.", size=("channel",)))
    rms: Array = field(
        metadata=about("Root mean square of the residual per channel.", unit="N m or N", size=("channel",))
    )
    relative_error: Array = field(
        metadata=about("Norm of the residual relative to the norm of the torque, per channel.", size=("channel",))
    )
    condition_number: float = field(
        metadata=about(
            "Condition number of the base regressor with each channel divided by its noise and each column scaled to "
            "unit norm. Up to about a hundred the motion excites all parameters well; beyond a thousand, noise decides "
            "some."
        )
    )
    status: str = field(metadata=about("How the method ended, in words."))
    seconds: float = field(metadata=about("Computing time.", unit="s"))
    outcome: Outcome = field(
        default=Outcome.CONVERGED,
        metadata=about("How the method ended: converged, not converged, stalled or aborted."),
    )
    signals: Signals = field(default_factory=Signals, metadata=about("How the runs were filtered and differentiated."))
    cutoffs: tuple[float | None, ...] = field(
        default=(), metadata=about("Cut-off frequency in Hz of the low-pass per run, None without one.")
    )
    notes: tuple[str, ...] = field(default=(), metadata=about("Remarks of the method."))
    standard: Array | None = field(
        default=None,
        metadata=about(
            'Standard parameters, if the method estimates them ("feasible", "pc-iv", "pc-didim").',
            size=("p",),
            finite=True,
        ),
    )
    standard_covariance: Array | None = field(
        default=None, metadata=about("Their covariance, if the method estimates it.", size=("p", "p"))
    )
    history: tuple[Iteration, ...] = field(
        default=(), metadata=about("The iterations of a method that simulates or filters.")
    )
    log_format: LogFormat | None = field(default=None, metadata=about("How the recording was read, if known."))
    noise_model: NoiseSource = field(
        default="white",
        metadata=about(
            'What the standard deviations assume of the residuals, see `identify`: "autocorrelated", "white" or '
            '"repetitions".'
        ),
    )
    freedom: float = field(
        default=math.inf,
        metadata=about(
            "Degrees of freedom of the standard deviations: blocks of time less one, or rows less parameters for white "
            "noise."
        ),
    )
    independent_rows: tuple[float, ...] = field(
        default=(),
        metadata=about("Effective number of independent rows per channel; () for white noise.", size=("channel",)),
    )
    walls: tuple[Wall, ...] = field(
        default=(),
        metadata=about(
            "Sides of the plausible box against which the data push: what they want, and where the box ends."
        ),
    )
    fingerprint: Fingerprint | None = field(
        default=None,
        metadata=about("The fitted motion in short, by which a validation tells whether its motion is unseen."),
    )
    known_masses: KnownMasses = field(default_factory=KnownMasses, metadata=about("Masses of bodies that were given."))
    box: bool | None = field(
        default=None,
        metadata=about("Whether the bodies were kept inside the plausible box; None for methods that have none."),
    )
    judgement: Judgement | None = field(
        default=None,
        metadata=about(
            "The verdict of an assessment, which every file made of the estimate holds; None where it was not assessed."
        ),
    )
    domain: Domain | None = field(
        default=None,
        metadata=about("For which motion and load the estimate holds; None where it has no recorded motion."),
    )

    def fault(self) -> str:
        """What is wrong with the fields together: iterations with other base parameters."""
        if any(step.beta.size != self.beta.size for step in self.history):
            return f"an iteration of the history does not have {self.beta.size} base parameters"
        return ""

    @property
    def converged(self) -> bool:
        """Whether the method reached its solution: not aborted, stalled or out of iterations."""
        return self.outcome is Outcome.CONVERGED

    @property
    def robot(self) -> Robot:
        """The robot that was identified, with its a-priori parameters."""
        return self.base.robot

    @property
    def std(self) -> Array:
        """Standard deviation of each base parameter (b,)."""
        # Rounding may leave a variance below zero of a parameter that active constraints determine.
        return np.asarray(np.sqrt(np.maximum(np.diag(self.covariance), 0.0)))

    @property
    def relative_std(self) -> Array:
        """Standard deviation in percent of the value (b,); infinite for a value of zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return 100.0 * self.std / np.abs(self.beta)

    def confidence_intervals(self, level: float = 0.95) -> Array:
        """Confidence intervals of the base parameters, by Student's t.

        Parameters
        ----------
        level : float, default 0.95
            Confidence level, between 0 and 1.

        Returns
        -------
        ndarray, shape (b, 2)
            Lower and upper bounds.
        """
        if not 0 < level < 1:
            raise InvalidValue(f"a confidence level lies between 0 and 1, got {level}", "level")
        reach = scipy.stats.t.ppf(0.5 + level / 2, max(self.freedom, 1.0))
        return np.column_stack([self.beta - reach * self.std, self.beta + reach * self.std])

    @cached_property
    def parameters(self) -> Array:
        """Standard parameters (p,): those of the method, or those closest to the a-priori ones.

        Only the base parameters are identified; the rest comes from the prior. Unless the method has constraints, the
        standard parameters need not be physically consistent.
        """
        return self.standard if self.standard is not None else self.base.standard(self.beta)

    @cached_property
    def standard_std(self) -> Array | None:
        """Standard deviation of each standard parameter (p,); None if the method does not estimate it.

        A parameter that is a base parameter by itself has the standard deviation `std` of that.
        """
        if self.standard_covariance is None:
            return None
        out = np.sqrt(np.maximum(np.diag(self.standard_covariance), 0.0))
        alone = np.count_nonzero(self.base.matrix, axis=1) == 1
        out[np.array(self.base.kept, dtype=int)[alone]] = self.std[alone]
        return out

    @cached_property
    def parameter_classes(self) -> dict[str, ParameterClass]:
        """Class of every standard parameter in this recording: "identifiable" alone, only "combined", "unidentifiable".

        As `base.classes`, but a parameter that other motion would show and this recording does not is unidentifiable
        too: its value is the a-priori one.
        """
        found: dict[str, ParameterClass] = attached(self, "parameter_classes")(self)
        return found

    @cached_property
    def identified_robot(self) -> Robot:
        """The robot with the identified standard parameters."""
        return self.robot.with_parameters(self.parameters)

    def with_judgement(self, judgement: Judgement) -> Estimate:
        """The estimate with the verdict of an assessment, which files made of it then hold.

        Parameters
        ----------
        judgement : Judgement
            The verdict in short: `dynid.assess(estimate, ...).judgement()`.

        Returns
        -------
        Estimate
            The same estimate, which carries the verdict.
        """
        return replace(self, judgement=judgement)

    def draws(self, count: int, *, seed: int = 0, feasible: bool = True) -> Array:
        """Draws of the standard parameters: robots that the recording allows.

        The distribution is normal around `parameters`. The base parameters have their covariance; what they leave open
        has that of the method, or keeps its value where the method estimates none. So does what the recording does not
        show at all, such as a joint at rest.

        Parameters
        ----------
        count : int
            Number of draws.
        seed : int, default 0
            Seed of the draws.
        feasible : bool, default True
            Whether every draw is physically consistent. One that is not moves to the nearest parameters that are, along
            the directions in which the estimate is the least certain.

        Returns
        -------
        ndarray, shape (count, p)
            Standard parameters in SI units, one draw per row.

        Raises
        ------
        DataError
            If fewer than one draw is wanted.

        Examples
        --------
        >>> import dynid
        >>> from dynid.cli.demo import synthetic_recording
        >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb")
        >>> estimate = dynid.identify(robot, synthetic_recording(robot, 0, duration=5.0))
        >>> draws = estimate.draws(50)
        >>> draws.shape == (50, len(estimate.parameters))
        True
        >>> all(dynid.feasibility.is_feasible(estimate.robot, row) for row in draws)
        True
        """
        found: Array = attached(self, "draws")(self, count, seed, feasible)
        return found

    def base_model(self) -> BaseModel:
        """Inverse and forward dynamics from the base parameters alone, with their uncertainty."""
        from dynid.parameters.base_model import BaseModel

        return BaseModel(self.base, self.beta, self.covariance)

    def predict(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Prediction:
        """Torques of a motion with their standard deviation, which grows outside of the domain of validity.

        The standard deviation is that of a measured torque: the residual of the fit, the covariance of the base
        parameters and, beyond the recorded velocity of a joint, its friction, which no recording shows there (see
        `dynid.identification.domain.friction_std`). Positions and accelerations outside need no such term: torques are
        linear in the base parameters, whose covariance holds for every motion.

        Parameters
        ----------
        q, v, a : array_like, shapes (N, nq), (N, nv), (N, nv)
            Positions, velocities and accelerations in SI units; a floating base comes first.

        Returns
        -------
        Prediction
            Torques (N, channel) in N m or N, their standard deviation, and which joints are outside of the domain.

        Raises
        ------
        DataError
            If the estimate has no domain, because it was not identified from recorded motion.

        Examples
        --------
        >>> import dynid
        >>> from dynid.cli.demo import synthetic_recording
        >>> robot = dynid.load_robot("twolink", friction="viscous+coulomb")
        >>> estimate = dynid.identify(robot, synthetic_recording(robot, 0, duration=5.0), "wls")
        >>> middle, fast = estimate.domain.low / 2 + estimate.domain.high / 2, 2 * estimate.domain.velocity
        >>> predicted = estimate.predict([middle, middle], [0 * fast, fast], [0 * fast, 0 * fast])
        >>> predicted.beyond.any(axis=1)
        array([False,  True])
        >>> bool((predicted.std[1] > 2 * predicted.std[0]).all())
        True
        """
        if self.domain is None:
            raise MissingData("the estimate has no domain of validity: identify it from a recording of motion")
        found: Prediction = attached(self, "predict")(self, self.domain, q, v, a)
        return found

    def feasibility(self, constraints: Constraints = "full") -> FeasibilityTest:
        """Whether some physically consistent robot has these base parameters.

        Parameters
        ----------
        constraints : str or sequence of constraints, default "full"
            What makes a robot physically consistent, as for `dynid.feasibility.is_feasible`.

        Returns
        -------
        FeasibilityTest
            The result, with standard parameters that prove it or the constraints that exclude it.
        """
        from dynid.feasibility.queries import is_feasible

        return is_feasible(self.base, self.beta, constraints)

    def validate(
        self,
        recording: Recording | DataSet,
        *,
        signals: Signals | None = None,
        client: Any = None,
        skip_bad: bool = False,
        progress: ProgressCallback | None = None,
    ) -> Validation:
        """Prediction errors on a recording or a data set.

        Parameters
        ----------
        recording : Recording or DataSet
            Motion and torques, if possible not those that were identified from.
        signals : Signals, optional
            How the runs are filtered; by default as for the identification.
        client, skip_bad, progress
            For data sets, as for `identify`.

        Returns
        -------
        Validation
        """
        found: Validation = attached(self, "validate")(
            self, recording, signals=signals, client=client, skip_bad=skip_bad, progress=progress
        )
        return found

    def summary(self) -> str:
        """Tables of the base parameters and of the fit, as wide as the terminal."""
        return str(attached(self, "summary")(self))

    def plot(
        self,
        parameters: str | Sequence[str] | None = None,
        *,
        level: float = 0.95,
        largest: int | None = None,
        ax: Axes | Sequence[Axes] | None = None,
    ) -> NDArray[Any]:
        """Draw base parameters with their confidence intervals beside the a-priori values.

        Parameters
        ----------
        parameters : str or sequence of str, optional
            Names or patterns of base parameters (`base.names`), such as "fv_*"; all by default.
        level : float, default 0.95
            Confidence level of the intervals.
        largest : int, optional
            Draw at most this many, those that differ most from the prior in standard deviations.
        ax : Axes or sequence of Axes, optional
            Where to draw: as many axes as are returned, or one, whose place is divided. By default a new figure.

        Returns
        -------
        ndarray of Axes, shape (unit,)
            One per unit. An axis is logarithmic beyond its smallest values where they differ by decades.

        Raises
        ------
        DataError
            If no parameter matches.
        DynidError
            If matplotlib is not installed.
        """
        axes: NDArray[Any] = attached(self, "plot")(self, parameters, level, largest, ax)
        return axes

    def __repr__(self) -> str:
        return f"Estimate('{self.robot.name}', {self.method}, {self.beta.size} base parameters, {self.status})"
