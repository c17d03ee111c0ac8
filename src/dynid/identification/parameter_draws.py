"""Draws of the parameters of actuators: their ranges, their correlation, and the robots and laws that have them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynid.errors import Duplicate, InvalidShape, InvalidValue, Mismatch, NotFinite
from dynid.robot.actuator_law import PER_JOINT, ActuatorLaw
from dynid.robot.model import Robot

if TYPE_CHECKING:
    from dynid.identification.estimate import Estimate

__all__ = ["ParameterDraws"]

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class ParameterDraws:
    """Draws of named parameters, such as those of a posterior distribution.

    Attributes
    ----------
    names : tuple of str
        Names of the P parameters, no two the same.
    joints : tuple of str
        Joint of each parameter; empty for one that all joints share and for one of a body.
    symbols : tuple of str
        What each parameter is: the symbol of a drive term ("Ia", "fv", "fc", "fs", "off"), an attribute of
        `ActuatorLaw` ("kp", "delay"), or the symbol of an inertial parameter.
    units : tuple of str
        Unit of each parameter.
    values : ndarray, shape (N, P)
        One draw per row.

    Raises
    ------
    DataError
        If names repeat, counts differ, there are fewer than two draws, or a value is not finite.

    Examples
    --------
    >>> import numpy as np
    >>> from dynid.identification import ParameterDraws
    >>> draws = ParameterDraws(
    ...     ("Ia_joint1", "delay"), ("joint1", ""), ("Ia", "delay"), ("kg m2", "s"),
    ...     np.array([[0.011, 0.004], [0.009, 0.005], [0.010, 0.006]]),
    ... )
    >>> draws.mean
    array([0.01 , 0.005])
    """

    names: tuple[str, ...]
    joints: tuple[str, ...]
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    values: Array

    def __post_init__(self) -> None:
        for field in ("names", "joints", "symbols", "units"):
            object.__setattr__(self, field, tuple(getattr(self, field)))
        values = np.array(self.values, dtype=float)
        count = len(self.names)
        if values.ndim != 2 or values.shape[1] != count or len(values) < 2:
            raise InvalidShape(
                f"draws of {count} parameters need at least two rows of {count}, got shape {values.shape}", "draws"
            )
        if not len(self.joints) == len(self.symbols) == len(self.units) == count:
            raise InvalidShape(f"draws need one joint, symbol and unit for each of {count} parameters", "draws")
        repeated = {name for name in self.names if self.names.count(name) > 1}
        if repeated:
            raise Duplicate(f"two parameters of the draws are named '{min(repeated)}'", "draws")
        if not np.isfinite(values).all():
            name = self.names[int(np.argmin(np.isfinite(values).all(axis=0)))]
            raise NotFinite(f"draws of '{name}' must be finite", "draws")
        values.setflags(write=False)
        object.__setattr__(self, "values", values)

    @classmethod
    def of(cls, estimate: Estimate, count: int, *, seed: int = 0) -> ParameterDraws:
        """Draws of the standard parameters of an estimate, every one of them physically consistent.

        Parameters
        ----------
        estimate : Estimate
            An estimate of `dynid.identify`, see its `draws`.
        count : int
            Number of draws, at least two.
        seed : int, default 0
            Seed of the draws.

        Returns
        -------
        ParameterDraws
            All standard parameters; those that the method leaves alone do not vary.
        """
        robot = estimate.robot
        names, symbols, units = zip(*((p.name, p.symbol, p.unit) for p in robot.layout), strict=True)
        joints = tuple("" if p.inertial or p.owner not in robot.coordinates else p.owner for p in robot.layout)
        return cls(names, joints, symbols, units, estimate.draws(count, seed=seed))

    @property
    def count(self) -> int:
        """Number of draws N."""
        return len(self.values)

    @property
    def mean(self) -> Array:
        """Mean of each parameter, shape (P,)."""
        return np.asarray(self.values.mean(axis=0))

    @property
    def std(self) -> Array:
        """Standard deviation of each parameter, shape (P,)."""
        return np.asarray(self.values.std(axis=0, ddof=1))

    @property
    def correlation(self) -> Array:
        """Correlation of the parameters, shape (P, P); zero for one that does not vary."""
        away = self.values - self.mean
        size = np.sqrt((away**2).sum(axis=0))
        scaled = away / np.where(size > 0, size, 1.0)
        out = scaled.T @ scaled
        np.fill_diagonal(out, 1.0)
        return np.asarray(out)

    def quantiles(self, level: float = 0.9) -> tuple[Array, Array]:
        """Ends of the central range of each parameter.

        Parameters
        ----------
        level : float, default 0.9
            Share of the draws inside the range.

        Returns
        -------
        low, high : ndarray, shape (P,)
        """
        if not 0 < level < 1:
            raise InvalidValue(f"level is a share of the draws between 0 and 1, got {level!r:.40}", "level")
        low, high = np.quantile(self.values, [(1 - level) / 2, (1 + level) / 2], axis=0)
        return low, high

    def models(self, robot: Robot, law: ActuatorLaw) -> Iterator[tuple[Robot, ActuatorLaw]]:
        """Robot and law with the values of each draw.

        Parameters
        ----------
        robot : Robot
            Its drive terms and bodies that are drawn take the drawn values.
        law : ActuatorLaw
            Its attributes that are drawn take the drawn values.

        Yields
        ------
        tuple of Robot and ActuatorLaw

        Raises
        ------
        DataError
            If a parameter belongs neither to the robot nor to the law.
        """
        columns = [self._places(k, robot, law) for k in range(len(self.names))]
        for row in self.values:
            parameters = np.array(robot.parameters)
            fields: dict[str, Array] = {}
            for (own, field, joints), value in zip(columns, row, strict=True):
                if own:
                    parameters[own] = value
                else:
                    fields.setdefault(field, np.array(getattr(law, field)))[joints] = value
            yield robot.with_parameters(parameters), law.changed(**fields)

    def _places(self, k: int, robot: Robot, law: ActuatorLaw) -> tuple[list[int], str, list[int]]:
        """Standard parameters that a drawn parameter is, or an attribute of the law and its joints."""
        name, joint, symbol = self.names[k], self.joints[k], self.symbols[k]
        if symbol in PER_JOINT and (joint in law.joints or not joint):
            return [], symbol, [law.joints.index(joint)] if joint else list(range(law.n))
        if name in robot.parameter_names:
            return [robot.parameter_names.index(name)], "", []
        wanted = {f"{symbol}_{j}" for j in ([joint] if joint else robot.coordinates)}
        own = [i for i, x in enumerate(robot.parameter_names) if x in wanted]
        if not own:
            raise Mismatch(f"the drawn parameter '{name}' belongs neither to the robot nor to the law")
        return own, "", []
