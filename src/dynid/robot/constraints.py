"""Constraints of closed kinematic loops: between two frames of a tree, or between joint positions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray

from dynid.errors import ModelError
from dynid.robot.parts import Frame, checked

__all__ = ["Constraint", "JointEquality", "Loop", "LoopKind"]

Array = NDArray[np.float64]
_ROUNDING = 1e-9  # of the largest weight: what is left of weights that cancel


class LoopKind(StrEnum):
    """What a loop keeps equal between its two frames."""

    CONNECT = "connect"  # the origins coincide: 3 rows
    WELD = "weld"  # the frames coincide: 6 rows
    ROD = "rod"  # the origins keep their distance: 1 row


_ROWS = {LoopKind.CONNECT: 3, LoopKind.WELD: 6, LoopKind.ROD: 1}


@dataclass(frozen=True, eq=False)
class Loop:
    """A constraint that closes a kinematic loop.

    Attributes
    ----------
    kind : LoopKind or str
        "connect": the origins of the two frames coincide (a ball joint, or the pin of a planar linkage). "weld": the
        frames coincide. "rod": the origins keep the distance `length` (a massless rod between two ball joints).
    first, second : Frame
        The two frames, each with the index of its link in `Robot.links` and its placement on that link.
    length : float
        Length of a rod (m); 0 otherwise.
    name : str
        Name for messages; the names of the two frames if empty.

    Raises
    ------
    ModelError
        For an unknown kind, two frames on one link, or a length that does not belong to the kind.
    """

    kind: LoopKind
    first: Frame
    second: Frame
    length: float = 0.0
    name: str = ""

    def __post_init__(self) -> None:
        try:
            object.__setattr__(self, "kind", LoopKind(self.kind))
        except ValueError:
            raise ModelError(
                f"loop of kind '{self.kind}' is unknown: use {', '.join(LoopKind)}", "kind", code="unknown_name"
            ) from None
        object.__setattr__(self, "length", float(checked(self.length, (), f"{self}: length")))
        if self.first.link == self.second.link:
            raise ModelError(f"{self} has both frames on one link")
        if (self.kind == LoopKind.ROD) != (self.length > 0):
            raise ModelError(
                f"{self}: a rod needs a length above zero, and nothing else has one", "length", code="invalid_value"
            )

    @property
    def rows(self) -> int:
        """Number of scalar constraints."""
        return _ROWS[self.kind]

    @property
    def frames(self) -> tuple[Frame, Frame]:
        """The two frames."""
        return self.first, self.second

    def __str__(self) -> str:
        name = f"loop '{self.name}'" if self.name else "the loop"
        return f"{name} between frames '{self.first.name}' and '{self.second.name}'"


@dataclass(frozen=True, eq=False)
class JointEquality:
    """A constraint between joint positions: the weighted sum of some is a polynomial of the weighted sum of others.

    Attributes
    ----------
    weights : mapping
        Joint name to weight of the sum on the left side (rad or m per rad or m).
    polynomial : tuple of float
        Coefficients of the right side, the constant first; the constant alone if there are no leaders.
    leaders : mapping
        Joint name to weight of the sum that the polynomial takes.
    name : str
        Name for messages.

    Raises
    ------
    ModelError
        If there is no joint, a weight is zero, or a value is not a finite number.

    Examples
    --------
    >>> from dynid.robot import JointEquality
    >>> print(JointEquality({"finger": 1.0}, (0.0, 1.2, 0.3), {"thumb": 1.0}))
    the equality of joints 'finger', 'thumb'
    """

    weights: Mapping[str, float]
    polynomial: tuple[float, ...] = (0.0,)
    leaders: Mapping[str, float] = field(default_factory=dict)
    name: str = ""

    def __post_init__(self) -> None:
        sums = [dict(self.weights), dict(self.leaders)]
        given = [*sums[0].values(), *sums[1].values(), *self.polynomial]
        values = checked(given, (len(given),), f"{self}: weights and coefficients").tolist()
        if not self.joints or not self.polynomial or 0.0 in values[: len(given) - len(self.polynomial)]:
            raise ModelError(
                f"{self} needs joints with weights that are not zero, and a polynomial", code="invalid_value"
            )
        if len(self.polynomial) > 1 and not self.leaders:
            raise ModelError(f"{self} has a polynomial but no leaders for it", code="invalid_value")
        object.__setattr__(self, "polynomial", tuple(values[len(given) - len(self.polynomial) :]))
        object.__setattr__(self, "weights", dict(zip(sums[0], values, strict=False)))
        object.__setattr__(self, "leaders", dict(zip(sums[1], values[len(sums[0]) :], strict=False)))

    @property
    def joints(self) -> tuple[str, ...]:
        """Names of all joints in it."""
        return tuple(dict.fromkeys((*self.weights, *self.leaders)))

    @property
    def rows(self) -> int:
        """Number of scalar constraints."""
        return 1

    @property
    def frames(self) -> tuple[Frame, ...]:
        """No frames: the equality is between positions of joints."""
        return ()

    @property
    def linear(self) -> bool:
        """Whether it is linear in the positions."""
        return not self.leaders

    def __str__(self) -> str:
        name = f"the equality '{self.name}'" if self.name else "the equality"
        return f"{name} of joints {', '.join(repr(x) for x in self.joints)}"

    def row(self, number: Mapping[str, int], q: Array) -> tuple[float, Array]:
        """Left side less right side at positions q (n,), and its derivatives (n,); `number` is the place of a joint."""
        left, right = np.zeros((2, len(q)))
        for side, weights in ((left, self.weights), (right, self.leaders)):
            for name, weight in weights.items():
                side[number[name]] += weight
        law = Polynomial(self.polynomial)
        at = float(right @ q)
        return float(left @ q - law(at)), left - law.deriv()(at) * right

    def substituted(self, of: Callable[[str], tuple[str, float, float]]) -> tuple[JointEquality | None, float]:
        """The equality with every joint as `of` says: ratio times another joint plus offset, or the offset alone.

        A name that is empty means a constant. The equality is None where no joint is left; the number is what is then
        left of the right side.
        """
        (weights, fixed), (leaders, at) = (_substituted(x, of) for x in (self.weights, self.leaders))
        law = Polynomial(self.polynomial)(Polynomial([at, 1.0])) if leaders else Polynomial([self._value(at)])
        coefficients = [float(x) for x in law.coef]
        coefficients[0] -= fixed
        if leaders and not any(coefficients[2:]):  # a line
            slope = coefficients[1] if len(coefficients) > 1 else 0.0
            scale = max(map(abs, (*weights.values(), *(slope * w for w in leaders.values()))))
            weights = dict(weights)
            for name, weight in leaders.items():
                weights[name] = weights.get(name, 0.0) - slope * weight
            weights = {name: w for name, w in weights.items() if abs(w) > _ROUNDING * scale}
            leaders, coefficients = {}, coefficients[:1]
        if not weights and not leaders:
            return None, coefficients[0]
        return JointEquality(weights, tuple(coefficients), leaders, self.name), coefficients[0]

    def _value(self, at: float) -> float:
        return float(Polynomial(self.polynomial)(at))


def _substituted(
    weights: Mapping[str, float], of: Callable[[str], tuple[str, float, float]]
) -> tuple[dict[str, float], float]:
    """A weighted sum after the substitution of its joints, and its constant part."""
    out: dict[str, float] = {}
    constant = 0.0
    for name, weight in weights.items():
        other, ratio, offset = of(name)
        constant += weight * offset
        if other:
            out[other] = out.get(other, 0.0) + weight * ratio
    scale = max(map(abs, weights.values()), default=1.0)
    return {name: w for name, w in out.items() if abs(w) > _ROUNDING * scale}, constant


Constraint = Loop | JointEquality
