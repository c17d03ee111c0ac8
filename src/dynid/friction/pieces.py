"""Pieces of friction models: torque columns, linear in their coefficients, with nonlinear (inner) parameters.

A piece computes its columns C (N, k) from features of the motion and inner parameters theta (m,), and their exact
derivatives with respect to each inner parameter (m, N, k). A model is a sum of pieces.

    coulomb     fc sign(v)                        stribeck    fs sign(v) exp(-|v / vs|^delta), delta = 2 unless shaped
    viscous     fv v                              tanh        fc tanh(v / vc)
    quadratic   fq v |v|                          power       fp sign(v) |v|^n
    load        fl sign(v) |load|                 sigmoid     fc (tanh((v + v0) / (2 vc)) - tanh(v0 / (2 vc)))
    temperature fvt v (T - 20)                    viscous-exponential    fv v exp(-kt (T - 20))

Sources: Armstrong-Helouvry, Dupont and Canudas de Wit, A Survey of Models, Analysis Tools and Compensation Methods for
the Control of Machines with Friction (1994); Bo and Pavelescu, The Friction-Speed Relation and Its Influence on the
Critical Velocity of Stick-Slip Motion (1982), for the exponent delta; Bittencourt and Gunnarsson, Static Friction in a
Robot Joint: Modeling and Identification of Load and Temperature Effects (2012), for load and temperature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["PIECES", "REFERENCE_TEMPERATURE", "Features", "Inner", "Piece", "unit_of"]

Array = NDArray[np.float64]

# Temperature (deg C) at which temperature-dependent friction has its printed coefficients.
REFERENCE_TEMPERATURE = 20.0
_TINY = 1e-300


class Features(NamedTuple):
    """Inputs of friction, each (N,): velocity (rad/s or m/s), load of the gear (N m or N), temperature (deg C)."""

    v: Array
    load: Array | None = None
    temperature: Array | None = None


@dataclass(frozen=True)
class Inner:
    """A nonlinear parameter with its bounds, and the value `null` at which its piece reduces to a simpler one.

    Bounds are absolute, or relative to the largest velocity. `log` parameters are searched by their logarithm.
    """

    name: str
    unit: str
    low: float
    high: float
    relative: bool = False
    log: bool = True
    null: float | None = None
    points: int = 12

    def bounds(self, max_velocity: float) -> tuple[float, float]:
        """Lower and upper bound for motion up to this velocity."""
        factor = max_velocity if self.relative else 1.0
        return self.low * factor, self.high * factor

    def grid(self, max_velocity: float) -> Array:
        """Values over the whole range, for initial values and for the distribution of a test."""
        low, high = self.bounds(max_velocity)
        return np.geomspace(low, high, self.points) if self.log else np.linspace(low, high, self.points)


@dataclass(frozen=True)
class Piece:
    """Columns of one friction effect. `contains` names the pieces that it reduces to for some parameter values.

    `odd` pieces are odd functions of velocity. Only these are identifiable from pairs of motion in both directions.
    Coefficients are not negative, so that friction dissipates energy, except those of `signed` pieces, which have no
    inner parameters.
    """

    name: str
    symbols: tuple[str, ...]
    units: tuple[str, ...]
    columns: Callable[[Features, Array], Array]
    slopes: Callable[[Features, Array], Array] | None = None
    inner: tuple[Inner, ...] = ()
    contains: tuple[str, ...] = ()
    replaces: tuple[str, ...] = ()
    needs: Literal["", "load", "temperature"] = ""
    odd: bool = True
    signed: bool = False

    @property
    def count(self) -> int:
        """Number of linear and inner parameters."""
        return len(self.symbols) + len(self.inner)


def _one(column: Array) -> Array:
    """One column (N, 1)."""
    return column[:, None]


def _sides(x: Array, by: Array) -> Array:
    """Two columns (N, 2): x where `by` is positive, x where it is negative."""
    return np.column_stack([np.where(by > 0, x, 0.0), np.where(by < 0, x, 0.0)])


def _stribeck(f: Features, theta: Array) -> Array:
    shape = theta[1] if len(theta) > 1 else 2.0
    return _one(np.sign(f.v) * np.exp(-((np.abs(f.v) / theta[0]) ** shape)))


def _stribeck_slopes(f: Features, theta: Array) -> Array:
    shape = theta[1] if len(theta) > 1 else 2.0
    x = np.abs(f.v) / theta[0]
    power = x**shape
    faded = np.sign(f.v) * np.exp(-power) * power
    out = [_one(shape / theta[0] * faded)]
    if len(theta) > 1:
        out.append(_one(-faded * np.log(np.maximum(x, _TINY))))
    return np.array(out)


def _load(f: Features, theta: Array) -> Array:
    assert f.load is not None
    return _one(np.sign(f.v) * np.abs(f.load))


def _load_directional(f: Features, theta: Array) -> Array:
    assert f.load is not None
    return _sides(np.sign(f.v) * np.abs(f.load), f.v * f.load)


def _warmth(f: Features) -> Array:
    """Temperature above the reference (K)."""
    assert f.temperature is not None
    return f.temperature - REFERENCE_TEMPERATURE


def _thinning(f: Features, theta: Array) -> Array:
    return _one(f.v * np.exp(-theta[0] * _warmth(f)))


def _thinning_slopes(f: Features, theta: Array) -> Array:
    return np.array([_one(-_warmth(f) * f.v * np.exp(-theta[0] * _warmth(f)))])


def _tanh(f: Features, theta: Array) -> Array:
    return _one(np.tanh(f.v / theta[0]))


def _tanh_slopes(f: Features, theta: Array) -> Array:
    return np.array([_one(-f.v / theta[0] ** 2 * (1 - np.tanh(f.v / theta[0]) ** 2))])


def _sigmoid(f: Features, theta: Array) -> Array:
    """2 / (1 + exp(-(v + v0) / vc)) less its value at rest; 2 / (1 + exp(-x)) - 1 is tanh(x / 2), without overflow."""
    vc, v0 = theta
    return _one(np.tanh(0.5 * (f.v + v0) / vc) - np.tanh(0.5 * v0 / vc))


def _sigmoid_slopes(f: Features, theta: Array) -> Array:
    vc, v0 = theta
    d, d0 = (0.5 / vc * (1 - np.tanh(0.5 * x / vc) ** 2) for x in (f.v + v0, v0))
    return np.array([_one(-((f.v + v0) * d - v0 * d0) / vc), _one(d - d0)])


def _power(f: Features, theta: Array) -> Array:
    return _one(np.sign(f.v) * np.abs(f.v) ** theta[0])


def _power_slopes(f: Features, theta: Array) -> Array:
    return np.array([_power(f, theta) * np.log(np.maximum(np.abs(f.v), _TINY))[:, None]])


# Units of a revolute joint; `unit_of` converts them for a prismatic one.
_TORQUE, _DAMPING = "N m", "N m s/rad"
_STRIBECK_VELOCITY = Inner("vs", "rad/s", 0.01, 0.7, relative=True)
_ALL = (
    Piece("coulomb", ("fc",), (_TORQUE,), lambda f, _: _one(np.sign(f.v))),
    Piece("viscous", ("fv",), (_DAMPING,), lambda f, _: _one(f.v)),
    Piece("offset", ("off",), (_TORQUE,), lambda f, _: _one(np.ones_like(f.v)), odd=False, signed=True),
    Piece(
        "coulomb-asymmetric",
        ("fcp", "fcn"),
        (_TORQUE,) * 2,
        lambda f, _: _sides(np.sign(f.v), f.v),
        contains=("coulomb", "offset"),
        odd=False,
    ),
    Piece(
        "viscous-asymmetric",
        ("fvp", "fvn"),
        (_DAMPING,) * 2,
        lambda f, _: _sides(f.v, f.v),
        contains=("viscous",),
        odd=False,
    ),
    Piece("quadratic", ("fq",), ("N m s2/rad2",), lambda f, _: _one(f.v * np.abs(f.v))),
    Piece("stribeck", ("fs",), (_TORQUE,), _stribeck, _stribeck_slopes, (_STRIBECK_VELOCITY,)),
    Piece(
        "stribeck-shaped",
        ("fs",),
        (_TORQUE,),
        _stribeck,
        _stribeck_slopes,
        (_STRIBECK_VELOCITY, Inner("delta", "", 0.4, 6.0, null=2.0, points=5)),
        contains=("stribeck",),
    ),
    Piece("load", ("fl",), ("",), _load, needs="load"),
    Piece("load-directional", ("fld", "flb"), ("", ""), _load_directional, contains=("load",), needs="load"),
    Piece(
        "temperature",
        ("fvt",),
        ("N m s/(rad K)",),
        lambda f, _: _one(f.v * _warmth(f)),
        needs="temperature",
        signed=True,
    ),
    Piece(
        "viscous-exponential",
        ("fv",),
        (_DAMPING,),
        _thinning,
        _thinning_slopes,
        (Inner("kt", "1/K", -0.1, 0.2, log=False, null=0.0),),
        contains=("viscous",),
        needs="temperature",
    ),
    Piece(
        "tanh",
        ("fc",),
        (_TORQUE,),
        _tanh,
        _tanh_slopes,
        (Inner("vc", "rad/s", 0.002, 0.7, relative=True),),
        replaces=("coulomb",),
    ),
    Piece(
        "sigmoid",
        ("fc",),
        (_TORQUE,),
        _sigmoid,
        _sigmoid_slopes,
        (
            Inner("vc", "rad/s", 0.001, 0.35, relative=True),
            Inner("v0", "rad/s", -0.5, 0.5, relative=True, log=False, null=0.0, points=9),
        ),
        contains=("tanh",),
        replaces=("coulomb",),
        odd=False,
    ),
    Piece(
        "power",
        ("fp",),
        ("N m (s/rad)^n",),
        _power,
        _power_slopes,
        (Inner("n", "", 0.1, 3.0, null=1.0),),
        contains=("viscous",),
    ),
)
PIECES = {piece.name: piece for piece in _ALL}


def unit_of(unit: str, *, prismatic: bool) -> str:
    """A unit of a revolute joint, converted for a prismatic one: N m to N, rad to m."""
    return unit.replace("N m", "N").replace("rad", "m") if prismatic else unit
