"""Friction models by name: words joined by "+", each of which stands for one or more pieces.

    friction = sum of pieces C(theta) c,    a model contains another if each piece of that reduces to one of its own

Sources: those of `pieces`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynid.errors import ModelError, did_you_mean
from dynid.friction.pieces import PIECES, Features, Inner, Piece, unit_of

__all__ = ["FRICTION_WORDS", "FrictionModel", "friction_model"]

Array = NDArray[np.float64]

_BASIC = ("coulomb", "viscous")
FRICTION_WORDS: dict[str, tuple[str, ...]] = {
    "coulomb": ("coulomb",),
    "viscous": ("viscous",),
    "offset": ("offset",),
    "asymmetric": ("coulomb-asymmetric", "viscous-asymmetric"),
    "coulomb-asymmetric": ("coulomb-asymmetric",),
    "viscous-asymmetric": ("viscous-asymmetric",),
    "quadratic": (*_BASIC, "quadratic"),
    "stribeck": (*_BASIC, "stribeck"),
    "stribeck-shaped": (*_BASIC, "stribeck-shaped"),
    "load": (*_BASIC, "load"),
    "load-directional": (*_BASIC, "load-directional"),
    "temperature": (*_BASIC, "temperature"),
    "temperature-exponential": ("coulomb", "viscous-exponential"),
    "tanh": ("tanh", "viscous"),
    "sigmoid": ("sigmoid", "viscous"),
    "power": ("coulomb", "power"),
}


@dataclass(frozen=True)
class FrictionModel:
    """A sum of friction pieces. `theta` (m,) holds the inner parameters of all pieces in order."""

    name: str
    pieces: tuple[Piece, ...]

    @cached_property
    def symbols(self) -> tuple[str, ...]:
        """Names of the linear parameters in the order of `ordered`."""
        return tuple(s for piece in self.ordered for s in piece.symbols)

    @cached_property
    def inner(self) -> tuple[Inner, ...]:
        """Inner (nonlinear) parameters."""
        return tuple(x for piece in self.ordered for x in piece.inner)

    @cached_property
    def ordered(self) -> tuple[Piece, ...]:
        """Signed pieces first, then those without inner parameters, then those with them."""
        return tuple(sorted(self.pieces, key=lambda p: (not p.signed, bool(p.inner))))

    @property
    def signed(self) -> int:
        """Number of linear parameters, the first of `symbols`, that may be negative."""
        return sum(len(piece.symbols) for piece in self.pieces if piece.signed)

    def units(self, *, prismatic: bool = False) -> dict[str, str]:
        """Units by parameter name, for a revolute or a prismatic joint."""
        linear = {s: u for p in self.ordered for s, u in zip(p.symbols, p.units, strict=True)}
        found = linear | {x.name: x.unit for x in self.inner}
        return {name: unit_of(unit, prismatic=prismatic) for name, unit in found.items()}

    @property
    def count(self) -> int:
        """Number of parameters."""
        return sum(piece.count for piece in self.pieces)

    @property
    def names(self) -> frozenset[str]:
        """Names of the pieces."""
        return frozenset(piece.name for piece in self.pieces)

    def needs(self, what: str) -> bool:
        """Whether a piece needs the feature "load" or "temperature"."""
        return any(piece.needs == what for piece in self.pieces)

    def fixed(self, features: Features) -> Array:
        """Columns (N, k) without inner parameters."""
        none = np.zeros(0)
        return _stacked([p.columns(features, none) for p in self.ordered if not p.inner], len(features.v))

    def curved(self, features: Features, theta: Array) -> Array:
        """Columns (N, k) that depend on the inner parameters."""
        return _stacked([p.columns(features, own) for p, own in self._shares(theta)], len(features.v))

    def slopes(self, features: Features, theta: Array) -> Array:
        """Derivatives (m, N, k) of the curved columns with respect to each inner parameter."""
        shares = list(self._shares(theta))
        width = sum(len(p.symbols) for p, _ in shares)
        out = np.zeros((len(theta), len(features.v), width))
        row = column = 0
        for piece, own in shares:
            assert piece.slopes is not None
            k = len(piece.symbols)
            out[row : row + len(own), :, column : column + k] = piece.slopes(features, own)
            row, column = row + len(own), column + k
        return out

    def torque(self, features: Features, values: Mapping[str, float]) -> Array:
        """Friction torque (N,) in N m or N for parameter values by name."""
        theta = np.array([values[x.name] for x in self.inner])
        columns = np.hstack([self.fixed(features), self.curved(features, theta)])
        return np.asarray(columns @ np.array([values[s] for s in self.symbols]))

    def bounds(self, max_velocity: float) -> tuple[Array, Array]:
        """Lower and upper bounds (m,) of the inner parameters."""
        low, high = zip(*(x.bounds(max_velocity) for x in self.inner), strict=True) if self.inner else ((), ())
        return np.array(low), np.array(high)

    def _shares(self, theta: Array) -> Iterator[tuple[Piece, Array]]:
        """Pieces with inner parameters, each with its part of theta."""
        first = 0
        for piece in self.ordered:
            if piece.inner:
                yield piece, theta[first : first + len(piece.inner)]
                first += len(piece.inner)

    def __contains__(self, other: Any) -> bool:
        """Whether this model reduces to the other, smaller one for some parameter values."""
        if not isinstance(other, FrictionModel) or other.names == self.names:
            return False
        return all(any(p.name == q.name or p.name in q.contains for q in self.pieces) for p in other.pieces)

    def unseen_inner(self, smaller: FrictionModel) -> list[bool]:
        """Mask (m,) of the inner parameters that are undefined where the smaller model is true."""
        out = []
        for piece in self.ordered:
            grown = [PIECES[x] for x in (piece.name, *piece.contains) if x in smaller.names]
            shared = {x.name for p in grown for x in p.inner}
            out += [not (grown and (x.name in shared or x.null is not None)) for x in piece.inner]
        return out


def friction_model(name: str, *, offset: bool = False) -> FrictionModel:
    """The model with a name such as "stribeck+load", optionally with a constant torque."""
    if not isinstance(name, str) or not name:
        raise ModelError(
            f"a friction model is named by words such as 'stribeck+load', got {name!r:.60}", "name", code="invalid_type"
        )
    wanted: list[str] = []
    for word in name.split("+"):
        if word.strip() not in FRICTION_WORDS:
            raise ModelError(
                f"unknown friction model '{word.strip()}': use {', '.join(FRICTION_WORDS)}, joined by '+'"
                f"{did_you_mean(word.strip(), FRICTION_WORDS)}",
                "name",
                code="unknown_name",
            )
        wanted += [x for x in FRICTION_WORDS[word.strip()] if x not in wanted]
    if offset and "offset" not in wanted:
        wanted.append("offset")
    covered = {x for w in wanted for x in PIECES[w].contains + PIECES[w].replaces}
    pieces = tuple(PIECES[w] for w in wanted if w not in covered)
    symbols = [s for p in pieces for s in (*p.symbols, *(x.name for x in p.inner))]
    twice = {s for s in symbols if symbols.count(s) > 1}
    if twice:
        raise ModelError(
            f"friction model '{name}' has two parts with the same parameter '{min(twice)}'", "name", code="duplicate"
        )
    return FrictionModel(name, pieces)


def _stacked(columns: list[Array], rows: int) -> Array:
    """Columns side by side, or none (rows, 0)."""
    return np.hstack(columns) if columns else np.zeros((rows, 0))
