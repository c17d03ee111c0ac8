"""Estimate: identified parameters with their uncertainty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy
from numpy.typing import ArrayLike, NDArray

from dynid.errors import InvalidValue, MissingData
from dynid.feasibility.box import Wall
from dynid.feasibility.prior import KnownMasses
from dynid.identification.domain import Prediction, predict
from dynid.identification.estimators.solution import Iteration, Outcome
from dynid.identification.jackknife import NoiseSource
from dynid.identification.judgement import Judgement
from dynid.parameters.base import BaseParameters
from dynid.robot.model import Robot
from dynid.signals.domain import Domain
from dynid.signals.fingerprint import Fingerprint
from dynid.signals.settings import Signals

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.axes import Axes

    from dynid.feasibility.constraints import Constraints
    from dynid.feasibility.queries import FeasibilityTest
    from dynid.identification.known import ParameterClass
    from dynid.identification.validation import Validation
    from dynid.parameters.base_model import BaseModel
    from dynid.progress import ProgressCallback
    from dynid.recording.dataset import DataSet
    from dynid.recording.log_format import LogFormat
    from dynid.recording.recording import Recording

__all__ = ["Estimate"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Estimate:
    """Identified base parameters with their covariance, the fit per channel, and how they were found.

    Attributes
    ----------
    base : BaseParameters
        The base parameters: which combinations of standard parameters were identified, from which channels.
    method : str
        The method of `identify`.
    beta : ndarray, shape (b,)
        Base parameters, in the units `base.units`.
    covariance : ndarray, shape (b, b)
        Their covariance.
    noise : ndarray, shape (channel,)
        Standard deviation of the torque noise per channel, in N m (N for prismatic joints and forces).
    rows : tuple of int
        Number of fitted rows per channel.
    rms : ndarray, shape (channel,)
        Root mean square of the residual per channel, in N m or N.
    relative_error : ndarray, shape (channel,)
        Norm of the residual relative to the norm of the torque, per channel.
    condition_number : float
        Condition number of the base regressor with each channel divided by its noise and each column scaled to unit
        norm. Up to about a hundred the motion excites all parameters well; beyond a thousand, noise decides some.
    status : str
        How the method ended, in words.
    seconds : float
        Computing time in s.
    outcome : Outcome
        How the method ended: converged, not converged, stalled or aborted.
    signals : Signals
        How the runs were filtered and differentiated.
    cutoffs : tuple of float or None
        Cut-off frequency of the low-pass per run in Hz, None without one.
    notes : tuple of str
        Remarks of the method.
    standard : ndarray, shape (p,), or None
        Standard parameters, if the method estimates them.
    standard_covariance : ndarray, shape (p, p), or None
        Their covariance, if the method estimates it.
    history : tuple of Iteration
        The iterations of a method that simulates or filters.
    log_format : LogFormat or None
        How the recording was read, if known.
    noise_model : {"autocorrelated", "white", "repetitions"}
        What the standard deviations assume of the residuals, see `identify`.
    freedom : float
        Degrees of freedom of the standard deviations: blocks of time less one, or rows less parameters for white noise.
    independent_rows : tuple of float
        Effective number of independent rows per channel; () for white noise.
    walls : tuple of Wall
        Sides of the plausible box at which the estimate ends: the value that the data alone would give, and the limit.
    fingerprint : Fingerprint or None
        Summary of the fitted motion, from which a validation decides whether its motion is unseen.
    known_masses : KnownMasses
        Masses of bodies that were given, in kg.
    box : bool or None
        Whether the bodies were kept inside the plausible box; None for methods that have none.
    judgement : Judgement or None
        The verdict of an assessment, which is written into every file made from the estimate; None if it was not
        assessed.
    domain : Domain or None
        Motion and load for which the estimate is valid; None if it was not identified from recorded motion.
    """

    base: BaseParameters
    method: str
    beta: Array
    covariance: Array
    noise: Array
    rows: tuple[int, ...]
    rms: Array
    relative_error: Array
    condition_number: float
    status: str
    seconds: float
    outcome: Outcome = Outcome.CONVERGED
    signals: Signals = field(default_factory=Signals)
    cutoffs: tuple[float | None, ...] = ()
    notes: tuple[str, ...] = ()
    standard: Array | None = None
    standard_covariance: Array | None = None
    history: tuple[Iteration, ...] = ()
    log_format: LogFormat | None = None
    noise_model: NoiseSource = "white"
    freedom: float = math.inf
    independent_rows: tuple[float, ...] = ()
    walls: tuple[Wall, ...] = ()
    fingerprint: Fingerprint | None = None
    known_masses: KnownMasses = field(default_factory=KnownMasses)
    box: bool | None = None
    judgement: Judgement | None = None
    domain: Domain | None = None

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
        from dynid.identification.known import parameter_classes

        return parameter_classes(self)

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
        from dynid.identification.covariance import draw_parameters

        return draw_parameters(self, count, seed, feasible)

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
        return predict(self, self.domain, q, v, a)

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
        from dynid.identification.validation import validate

        return validate(self, recording, signals=signals, client=client, skip_bad=skip_bad, progress=progress)

    def summary(self) -> str:
        """Tables of the base parameters and of the fit, as wide as the terminal."""
        from dynid.identification.summary import estimate_text

        return estimate_text(self)

    def to_frame(self) -> pl.DataFrame:
        """The base parameters as a table.

        Returns
        -------
        polars.DataFrame
            One row per base parameter: parameter, combination, unit, prior, estimate, std, low and high (the 95 %
            interval).
        """
        import polars as pl

        base, bounds = self.base, self.confidence_intervals()
        columns = {
            "parameter": base.names,
            "combination": base.expressions,
            "unit": base.units,
            "prior": base.values(),
            "estimate": self.beta,
            "std": self.std,
            "low": bounds[:, 0],
            "high": bounds[:, 1],
        }
        return pl.DataFrame(columns)

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
        from dynid.identification.summary import draw_estimate

        return draw_estimate(self, parameters, level, largest, ax)

    def to_dict(self) -> dict[str, Any]:
        """The complete estimate as plain data, with its robot: what `save` writes."""
        from dynid.identification.estimate_file import estimate_to_dict

        return estimate_to_dict(self)

    def save(self, path: str | Path) -> None:
        """Write the complete estimate, with its robot, signals and log format, into one readable JSON file.

        The Python functions of custom drive terms cannot be stored; `load` then needs the robot.
        """
        from dynid.identification.estimate_file import write_estimate

        write_estimate(self, path)

    @staticmethod
    def load(path: str | Path, robot: Robot | None = None) -> Estimate:
        """Read a saved estimate.

        Parameters
        ----------
        path : str or Path
            A file that `save` wrote.
        robot : Robot, optional
            The robot of the estimate. Needed only if it has custom drive terms, whose Python functions a file cannot
            store. If given, it must have the same joints and drive terms as the stored one; its parameter values and
            the smoothness of its friction do not matter, the stored ones are used.

        Returns
        -------
        Estimate
            Equal to the saved one in every field.

        Raises
        ------
        DataError
            If the file does not exist, is not an estimate of this format, belongs to another robot than the one given,
            or needs a robot that is not given.

        Examples
        --------
        >>> import dynid, tempfile, pathlib
        >>> from dynid.cli.demo import synthetic_recording
        >>> robot = dynid.load_robot("twolink")
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "estimate.json"
        >>> dynid.identify(robot, synthetic_recording(robot, 0, duration=5.0)).save(path)
        >>> dynid.Estimate.load(path).robot.name
        'twolink'
        """
        from dynid.identification.estimate_file import read_estimate

        return read_estimate(path, robot)

    def __repr__(self) -> str:
        return f"Estimate('{self.robot.name}', {self.method}, {self.beta.size} base parameters, {self.status})"

    def _repr_html_(self) -> str:
        from dynid.identification.summary import estimate_html

        return estimate_html(self)
