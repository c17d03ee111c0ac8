"""Rules of thumb for a link's inertia, from Halper 2024 (3.53), who took them from robot-simulator tutorials.

All are linear in the six entries of the tensor about the centre of mass. Only (a) is a law of physics, and that only
in principal axes; positive definiteness must be required in addition.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import permutations
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynid.errors import DataError, InvalidValue, UnknownName
from dynid.robot.parts import checked

__all__ = ["Rule", "RuleViolation", "rule_list", "sanity_rules", "violated_rules"]

Array = NDArray[np.float64]
Axis = Literal["x", "y", "z"]

# Columns Ixx, Ixy, Iyy, Ixz, Iyz, Izz: indices of the diagonal and of the other entries.
_DIAGONAL, _REST = (0, 2, 5), (1, 3, 4)
_NAMES = ("Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")
_SMALLEST = 1e-4
_RATIO, _SKEW, _SLENDER = 100.0, 0.1, 3.0


@dataclass(frozen=True, eq=False)
class Rule:
    """The rule rows (k, 6) @ (Ixx, Ixy, Iyy, Ixz, Iyz, Izz) >= bound, with its letter and description."""

    letter: str
    words: str
    rows: Array
    bound: float = 0.0

    def slacks(self, entries: Array) -> Array:
        """Slack per row (k,), kg m2; negative where the rule is violated."""
        return np.asarray(self.rows @ entries - self.bound)

    def rounding(self, digits: float) -> Array:
        """Largest error of each slack (k,) if every entry has a rounding error of up to `digits`."""
        return digits * np.abs(self.rows).sum(axis=1)


@dataclass(frozen=True)
class RuleViolation:
    """A rule that a link violates.

    Attributes
    ----------
    code : str
        Letter of the rule, "mass" or "definite".
    message : str
        The rule and by how much it is violated, in words.
    """

    code: str
    message: str


def rule_list(slender: Axis | None = None) -> tuple[Rule, ...]:
    """Rules (a) to (d) for every link, and (e/f) for a link that is slender along an axis of its frame."""
    unit = np.eye(6)
    x, y, z = (unit[i] for i in _DIAGONAL)
    pairs = list(permutations(_DIAGONAL, 2))
    rules = [
        Rule("a", "triangle inequality of the diagonal", np.array([y + z - x, x + z - y, x + y - z])),
        Rule("b", "diagonal entries within a factor 100", np.array([_RATIO * unit[i] - unit[j] for i, j in pairs])),
        Rule(
            "c",
            "no other entry above a tenth of the diagonal",
            np.array([_SKEW * unit[i] - sign * unit[j] for i in _DIAGONAL for j in _REST for sign in (1, -1)]),
        ),
        Rule("d", "diagonal entries of at least 1e-4 kg m2", np.array([x, y, z]), _SMALLEST),
    ]
    if slender is not None:
        if slender not in ("x", "y", "z"):
            raise UnknownName(f"slender axis '{slender}' is unknown: use x, y or z", "slender")
        own = _DIAGONAL["xyz".index(slender)]
        others = [i for i in _DIAGONAL if i != own]
        words = f"slender along {slender}: the other diagonal entries at least three times {_NAMES[own]}"
        letter = "f" if slender == "y" else "e"
        rules.append(Rule(letter, words, np.array([unit[i] - _SLENDER * unit[own] for i in others])))
    return tuple(rules)


def tensor_entries(inertia: ArrayLike) -> Array:
    """Ixx, Ixy, Iyy, Ixz, Iyz, Izz (6,) of a tensor (3, 3)."""
    tensor = checked(inertia, (3, 3), "inertia", DataError)
    if not np.allclose(tensor, tensor.T, atol=1e-12, rtol=1e-9):
        raise InvalidValue("inertia must be symmetric", "inertia")
    return np.array([tensor[0, 0], tensor[0, 1], tensor[1, 1], tensor[0, 2], tensor[1, 2], tensor[2, 2]])


def sanity_rules(mass: float, inertia: ArrayLike, slender: Axis | None = None, digits: float = 0.0) -> list[str]:
    """Rules of thumb that a link violates, in words (Halper 2024).

    Parameters
    ----------
    mass : float
        Mass of the link (kg).
    inertia : array_like, shape (3, 3)
        Its tensor about the centre of mass (kg m2).
    slender : {"x", "y", "z"}, optional
        Axis along which the link is slender.
    digits : float
        Rounding error of the entries, half of the last printed digit; violations within it are ignored.

    Returns
    -------
    list of str
        One message per violated rule, see `violated_rules`.

    Raises
    ------
    DataError
        For a tensor that is not symmetric, or an unknown axis.

    Examples
    --------
    >>> from dynid.feasibility.baselines import sanity_rules
    >>> sanity_rules(1.0, [[1.0, 0, 0], [0, 0.3, 0], [0, 0, 0.3]])
    ['(a) triangle inequality of the diagonal: violated by 0.4 kg m2']
    """
    return [violation.message for violation in violated_rules(mass, inertia, slender, digits)]


def violated_rules(
    mass: float, inertia: ArrayLike, slender: Axis | None = None, digits: float = 0.0
) -> list[RuleViolation]:
    """Rules of thumb that a link violates, with their codes (Halper 2024).

    Parameters
    ----------
    mass : float
        Mass of the link (kg).
    inertia : array_like, shape (3, 3)
        Its tensor about the centre of mass (kg m2).
    slender : {"x", "y", "z"}, optional
        Axis along which the link is slender.
    digits : float
        Rounding error of the entries, half of the last printed digit; violations within it are ignored.

    Returns
    -------
    list of RuleViolation

    Raises
    ------
    DataError
        For a tensor that is not symmetric, or an unknown axis.
    """
    found = [] if mass > digits else [RuleViolation("mass", f"mass {mass:.4g} kg is not positive")]
    entries = tensor_entries(inertia)
    for rule in rule_list(slender):
        slacks = rule.slacks(entries)
        worst = int(np.argmin(slacks + rule.rounding(digits)))
        if slacks[worst] < -rule.rounding(digits)[worst]:
            message = f"({rule.letter}) {rule.words}: violated by {-slacks[worst]:.3g} kg m2"
            found.append(RuleViolation(rule.letter, message))
    smallest = float(np.linalg.eigvalsh(np.asarray(inertia, dtype=float))[0])
    # Errors of `digits` in the entries change an eigenvalue by at most three times that.
    if smallest <= -3 * digits:
        message = f"inertia not positive definite: smallest principal value {smallest:.3g} kg m2"
        found.append(RuleViolation("definite", message))
    return found
